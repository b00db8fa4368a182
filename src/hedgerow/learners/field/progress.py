"""How far a learner of the field is, as numbers that kernels can change."""

from __future__ import annotations

from hedgerow.compiling.bundles import Record


class Progress(Record):
    """Counters of a learner."""

    episode: int
    """Episodes observed so far"""
    pending: int
    """1 between plan and observe"""
    branch: int
    """What that plan plays: 0 the own policy, 1 the baseline"""


class Reals(Record):
    """Real numbers that change while it learns."""

    mixing: float
    """lambda: the probability of the baseline in the next episode"""
