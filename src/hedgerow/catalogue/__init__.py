"""The catalogue: named, frozen, hashed worlds with golden optima.

>>> from hedgerow import catalogue
>>> world = catalogue.make("lower-bound-2")
>>> world.golden.optimum, world.source_value(0.5), world.unit
(0.5, 0.5, 'reward')
"""

from hedgerow.catalogue.instance import Golden, Ingredients, Instance, Scale
from hedgerow.catalogue.registry import Description, describe, entry, make, names

__all__ = ["Description", "Golden", "Ingredients", "Instance", "Scale", "describe", "entry", "make", "names"]
