"""Attention-indexed models (arXiv:2506.01582): how well can a full-width attention matrix be learned?"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
