"""Learners: what one is (`protocol`), the families that ship with hedgerow, and how others join in.

    @hr.learners.register("greedy")
    class Greedy: ...                      # __init__(self, view, ...), plan(), observe(episode)

    hr.learners.names(), hr.learners.find("greedy"), hr.learners.describe("greedy")

`mirror` is the family of the paper (sections 4-6): one mirror-descent core, and the learners that are made of it.
"""

from __future__ import annotations

from hedgerow.registry import learners as _registry

register, names, find, describe = _registry.register, _registry.names, _registry.find, _registry.describe

__all__ = ["describe", "find", "names", "register"]
