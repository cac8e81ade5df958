"""attnlab: the laboratory for solvable attention.

Systems with one vocabulary: :mod:`attnlab.rfa`, :mod:`attnlab.mha`, :mod:`attnlab.slr`, :mod:`attnlab.aim`, and
:mod:`attnlab.smi` for a model of your own; and one lab that runs them: :mod:`attnlab.lab`. Submodules load when used.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
