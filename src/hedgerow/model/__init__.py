"""The world (paper, section 2): layout, CMDP, occupancies, offline optima, unrolling, losses."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
