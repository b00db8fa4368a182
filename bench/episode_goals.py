"""Goals for the time of an episode, and whether they are met.

>>> found = goals({("(1,3,3,1)x3, m=1", "SV-OPS"): 9e-6}, {"(1,3,3,1)x3, m=1": 45})
>>> [(goal.name, goal.shown_found, goal.shown_asked, goal.met) for goal in found]
[('SV-OPS', '9.00 us', '<= 8.00 us', False)]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bench.mirror_steps import SIZES
from bench.timing import duration

MOST_SECONDS = dict(zip((size.label for size in SIZES), (8e-6, 29e-6, 128e-6, 348e-6), strict=True))
"""Goals for an episode of SV-OPS, by world"""
RATIOS = (
    ("cvxpy learner / SV-OPS", "SV-OPS with cvxpy + Clarabel", "SV-OPS", 1000.0, False),
    ("SV-OPS / one evaluation", "SV-OPS", "SV-OPS, one evaluation", 2.0, True),
    ("S-OPS joint / SV-OPS", "S-OPS, joint", "SV-OPS", 1.5, True),
    ("S-OPS all pairs / SV-OPS", "S-OPS, all pairs", "SV-OPS", 4.0, True),
)
"""Name, numerator, denominator, the goal, and whether that is the most (or the least)"""


@dataclass(frozen=True)
class Goal:
    """One goal in one world."""

    name: str
    world: str
    found: float
    asked: float
    at_most: bool
    is_time: bool = False

    @property
    def met(self) -> bool:
        return self.found <= self.asked if self.at_most else self.found >= self.asked

    @property
    def shown_found(self) -> str:
        return duration(self.found) if self.is_time else f"{self.found:.3g}x"

    @property
    def shown_asked(self) -> str:
        sign = "<=" if self.at_most else ">="
        return f"{sign} {duration(self.asked) if self.is_time else f'{self.asked:g}x'}"


def goals(medians: Mapping[tuple[str, str], float], worlds: Mapping[str, int]) -> tuple[Goal, ...]:
    """All goals that can be judged from seconds by (world, contender); a contender without a time has no goal."""
    found = []
    for world in worlds:
        own = medians.get((world, "SV-OPS"))
        if own is not None and world in MOST_SECONDS:
            found.append(Goal("SV-OPS", world, own, MOST_SECONDS[world], True, is_time=True))
        for name, above, below, asked, at_most in RATIOS:
            pair = medians.get((world, above)), medians.get((world, below))
            if pair[0] is not None and pair[1] is not None:
                found.append(Goal(name, world, pair[0] / pair[1], asked, at_most))
    return tuple(found)
