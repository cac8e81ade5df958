"""Single-location regression (arXiv:2410.01537): does attention find the one token that decides?"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
