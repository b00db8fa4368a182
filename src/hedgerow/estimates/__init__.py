"""What the data says (paper, section 3), and what it allows at worst.

`counts` -> `radii` -> `boxes`: what was seen, how far it may be off, and the intervals that follow. On the boxes,
`upper_occupancy` (COMP-UOB) and `joint_cost` bound what a policy may do, by the backward step of `columns`; `robust`
finds the least cost of any policy.
"""
