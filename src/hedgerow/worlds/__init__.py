"""Worlds by name: frozen, hashed ones with golden optima that ship with hedgerow, and those of others.

    @hr.worlds.register("mine")
    def mine(*, size: int = 3): ...        # returns a CMDP, a pair (CMDP, loss) or a `WorldDefinition`

>>> import hedgerow as hr
>>> world = hr.worlds.make("lower-bound-2")
>>> world.golden.optimum, world.source_value(0.5), world.unit
(0.5, 0.5, 'reward')
"""

import lazy_loader

from hedgerow.registry import worlds as _registry

register, names, find = _registry.register, _registry.names, _registry.find  # without loading a world


__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
