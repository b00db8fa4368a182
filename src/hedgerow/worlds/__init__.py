"""The catalogue: named, frozen, hashed worlds with golden optima.

>>> from hedgerow import catalogue
>>> world = catalogue.make("lower-bound-2")
>>> world.golden.optimum, world.source_value(0.5), world.unit
(0.5, 0.5, 'reward')
"""

from hedgerow.worlds.entries import WorldDescription, describe, entry, make, names
from hedgerow.worlds.world import Baseline, Golden, Scale, World, WorldDefinition

__all__ = [
    "Baseline",
    "Golden",
    "Scale",
    "World",
    "WorldDefinition",
    "WorldDescription",
    "describe",
    "entry",
    "make",
    "names",
]
