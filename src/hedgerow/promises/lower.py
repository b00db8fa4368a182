"""T17: who is safe on one instance of the pair must regret on the other, the more the smaller rho."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np

from hedgerow.paper import cite
from hedgerow.promises.observation import Observation
from hedgerow.promises.promise import LEVEL, Promise, Verdict, holds, largest_delta, rate, together, untested
from hedgerow.results.metrics import power_law

CERTAINTY = 0.646
"""With the corrected divergence 2 eps^2 per pull; the paper prints 3/4."""
SAFETY_EVENTS = 5
PREMISE = 0.05
"""V_1 <= PREMISE sqrt(T) counts as o(sqrt T)."""


def least_regret(one: Observation) -> float:
    """sqrt(2T) / (32 rho)."""
    return sqrt(2.0 * one.episodes) / (32.0 * one["rho"])


def margin_of(one: Observation) -> float:
    """rho without the rounding of the linear program behind it, so that equal margins compare equal."""
    return round(one["rho"], 6)


def judge_lower_bound(observations: Sequence[Observation]) -> Verdict:
    first = [one for one in observations if one.world == "lower-bound-1"]
    second = [one for one in observations if one.world == "lower-bound-2"]
    if not first or not second:
        return untested("both instances of the pair are needed")
    excess = max(one["violation"] / sqrt(one.episodes) for one in first)
    if excess > PREMISE:
        return untested(
            f"the premise fails: V_1 reaches {excess:.2f} sqrt(T) on the first instance, so nothing follows"
        )
    below = sum(one["regret"] < least_regret(one) for one in second)
    ratio = min(one["regret"] / least_regret(one) for one in second)
    allowed = 1.0 - CERTAINTY + SAFETY_EVENTS * largest_delta(observations)
    parts = [
        rate("R_2 was below sqrt(2T)/(32 rho)", below, len(second), allowed),
        holds(f"V_1 at most {excess:.1e} sqrt(T); R_2 at least {ratio:.0f} times the bound"),
    ]
    return together([*parts, _margin_exponent(second)])


def _margin_exponent(second: Sequence[Observation]) -> Verdict:
    longest = max(one.episodes for one in second)
    margins = sorted({margin_of(one) for one in second}, reverse=True)
    samples = [
        np.array([one["regret"] for one in second if one.episodes == longest and margin_of(one) == rho])
        for rho in margins
    ]
    if len(margins) < 2 or any(values.mean() <= 0.0 for values in samples):
        return untested("the law in rho needs positive regret at several rho")
    found = power_law([1.0 / rho for rho in margins], samples, level=LEVEL)
    return holds(f"R_2 grows like (1/rho)^x with x = {found} at T = {longest:,}", exponent=found.exponent)


PROMISES = (
    Promise(
        "T17",
        "V_T = o(sqrt T) on instance 1 implies R_T >= sqrt(2T) / (32 rho) on instance 2",
        cite("lower_bound"),
        "0.646 - 5 delta (the paper's 3/4 rests on half of the divergence)",
        ("lower-bound",),
        "lower 99 % bound of the rate of smaller regrets above 0.354 + 5 delta",
        judge_lower_bound,
    ),
)
