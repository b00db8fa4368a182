"""The catalogue: named, frozen, hashed worlds with golden optima.

>>> from hedgerow import catalogue
>>> world = catalogue.make("lower-bound-2")
>>> world.golden.optimum, world.source_value(0.5), world.unit
(0.5, 0.5, 'reward')
"""

from hedgerow.catalogue.entries import WorldDescription, describe, entry, make, names
from hedgerow.catalogue.world import Baseline, Golden, Ingredients, Scale, World

__all__ = [
    "Baseline",
    "Golden",
    "Ingredients",
    "Scale",
    "World",
    "WorldDescription",
    "describe",
    "entry",
    "make",
    "names",
]
