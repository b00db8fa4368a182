"""Estimates and confidence sets (paper, section 3), and the worst case that they allow.

`counts` -> `radii` -> `boxes`: what was seen, how far it may be off, and the intervals that follow. On the boxes,
`bounds` limits what a policy may do (COMP-UOB, and the joint cost), by a backward step. `aggregate` bounds the costs of
the learner's policy by one sum over its episodes. `counts` also says what is unknown, `radii` how the failure
probability is shared, `premises` tests prior information, `snapshot` shows it all to a user.

`kl` has intervals that hold at all times at once, for any means:

    hr.confidence.kt_interval(100, 25, math.log(1000))
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
