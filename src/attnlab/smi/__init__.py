"""Sequence multi-index models (arXiv:2502.00901): can the directions of your own model be learned?"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
