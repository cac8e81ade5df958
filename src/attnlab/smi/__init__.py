"""Sequence multi-index models (arXiv:2502.00901): a link of a few lines, and what can be learned of its directions."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
