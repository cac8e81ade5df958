"""In-context linear regression by linear attention (arXiv:2405.11751): when does one layer learn in context?"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
