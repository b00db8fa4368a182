"""The algorithms (paper, sections 4-6): one mirror-descent core, and the learners that are made of it.

`settings` -> `state` -> `core` -> `step`: the switches, the arrays that change, everything a kernel needs, and one
episode of learning. `learner` wraps them in `plan` and `observe`; SV-OPS, S-OPS and UOB-REPS differ in what they switch
on.
"""
