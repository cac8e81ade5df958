"""Multi-head attention (arXiv:2402.04084): can a layer be recovered from random examples?"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
