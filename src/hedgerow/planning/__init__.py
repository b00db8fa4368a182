"""Planning in a known world: optimum, Slater point, best replies (linear programs and backward induction)."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
