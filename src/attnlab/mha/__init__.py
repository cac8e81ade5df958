"""Provably learning a multi-head attention layer from random examples (arXiv:2402.04084)."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
