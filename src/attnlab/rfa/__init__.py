"""Random-feature attention (arXiv:2307.11353): what do frozen random heads with trained values learn?"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
