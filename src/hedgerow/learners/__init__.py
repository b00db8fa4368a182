"""Learners: what one is (`api`), the families that ship with hedgerow, and how others join in.

    @hr.learners.register("greedy")
    class Greedy: ...                      # __init__(self, view, ...), plan(), observe(episode)

    hr.learners.names(), hr.learners.find("greedy"), hr.learners.describe("greedy")

`ops` is the family of the paper (sections 4-6): one mirror-descent core, and the learners that are made of it. `field`
has all others. Both derive from `base` and share `kernels`, `watch` and `files`.
"""

import lazy_loader

from hedgerow.registry import learners as _registry

register, names, find, describe = _registry.register, _registry.names, _registry.find, _registry.describe

__getattr__, _, _ = lazy_loader.attach(
    __name__, submodules=["field"], submod_attrs={"guarantees": ["Ledger"], "statistics": ["Statistics"]}
)
__all__ = ["Ledger", "Statistics", "describe", "find", "names", "register"]


def __dir__() -> list[str]:
    return sorted(__all__)
