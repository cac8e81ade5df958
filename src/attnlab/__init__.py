"""attnlab: the laboratory for solvable attention.

Systems with one vocabulary, :mod:`attnlab.rfa`, :mod:`attnlab.mha`, :mod:`attnlab.slr`, :mod:`attnlab.aim`, and
:mod:`attnlab.smi` for a model of your own; and one lab that runs them: :mod:`attnlab.lab`. Submodules load when first
used, and so do the systems of other installed packages (entry point ``attnlab.systems``).
"""

from typing import Any

import lazy_loader

__version__ = "0.1.0"

_own, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    try:
        return _own(name)
    # the names of the stub come first: an installed system cannot replace one of them
    except AttributeError:
        from importlib import import_module

        from attnlab.common.systems import systems

        if name not in systems():
            raise  # the AttributeError that Python expects of a name that is not there
        return import_module(systems()[name])
