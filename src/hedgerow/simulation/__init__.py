"""Simulations: the driver, the referee that believes no learner, the run, its file, and functions to watch it."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
