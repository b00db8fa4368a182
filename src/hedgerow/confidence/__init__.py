"""Estimates and confidence sets (paper, section 3), and the worst case that they allow.

`counts` -> `radii` -> `boxes`: what was seen, how far it may be off, and the intervals that follow. On the boxes,
`upper_occupancy` (COMP-UOB) and `joint_cost` bound what a policy may do, by the backward step of `columns`; `robust`
finds the least cost of any policy.

`kt` has intervals that hold at all times at once, for any means:

    hr.confidence.kt_interval(100, 25, math.log(1000))
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
