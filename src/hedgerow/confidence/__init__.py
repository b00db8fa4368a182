"""Estimates and confidence sets (paper, section 3), and the worst case that they allow.

`counts` -> `radii` -> `boxes`: what was seen, how far it may be off, and the intervals that follow. On the boxes,
`upper_occupancy` (COMP-UOB) and `joint_cost` bound what a policy may do, by the backward step of `columns`; `robust`
finds the least cost of any policy.

`kt` has intervals that hold at all times at once, for any means:

    hr.estimates.kt_interval(100, 25, math.log(1000))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hedgerow.confidence.kl import kt_interval

__all__ = ["kt_interval"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'hedgerow.confidence' has no attribute {name!r}; public names: {__all__}")
    from hedgerow.confidence import kl  # not before it is used: it loads a compiler

    globals()[name] = value = getattr(kl, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
