"""Losses and the adversaries that choose them: oblivious ones hand out blocks, adaptive ones answer what is played.

@hr.losses.register("mine")
class Mine(hr.losses.ObliviousLosses): ...

hr.losses.names(), hr.losses.find("switching"), hr.losses.describe("switching")
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
