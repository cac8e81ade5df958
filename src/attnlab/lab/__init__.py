"""The lab: runs figures and sweeps, keeps their results, decides their claims and writes the report."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
