"""Single-location regression (arXiv:2410.01537): one token decides, attention finds it."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
