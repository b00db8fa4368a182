"""T17: a learner that is safe on one world of the pair has regret on the other; the smaller rho, the larger it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.promises.observation import Observation
from hedgerow.promises.promise import LEVEL, Verdict, holds, largest_delta, rate, together, untested
from hedgerow.results.metrics import Growth, power_law

CERTAINTY = 0.646
"""Probability with the corrected divergence 2 eps^2 per pull; the paper prints 3/4."""
SAFETY_EVENTS = 5
PREMISE = 0.05
"""V_1 <= PREMISE sqrt(T) counts as o(sqrt T)."""


def least_regret(one: Observation) -> float:
    """sqrt(2T) / (32 rho)."""
    return sqrt(2.0 * one.episodes) / (32.0 * one["rho"])


def margin_of(one: Observation) -> float:
    """rho without the rounding of its linear program: equal margins compare equal."""
    return round(one["rho"], 6)


def by_margin(some: Sequence[Observation]) -> tuple[int, dict[float, FloatArray]]:
    """The longest horizon, and the regrets (seeds,) there by margin, the largest first."""
    longest = max(one.episodes for one in some)
    last = [one for one in some if one.episodes == longest]
    margins = sorted({margin_of(one) for one in some}, reverse=True)
    return longest, {rho: np.array([one["regret"] for one in last if margin_of(one) == rho]) for rho in margins}


def margin_law(samples: Mapping[float, FloatArray]) -> Growth | None:
    """The exponent in 1/rho of samples at several margins rho; None unless all means are positive."""
    if len(samples) < 2 or any(values.mean() <= 0.0 for values in samples.values()):
        return None
    return power_law([1.0 / rho for rho in samples], list(samples.values()), level=LEVEL)


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
    ratios = [one["regret"] / least_regret(one) for one in second]
    allowed = 1.0 - CERTAINTY + SAFETY_EVENTS * largest_delta(observations)
    longest, regrets = by_margin(second)
    found = margin_law(regrets)
    return together(
        rate("R_2 was below sqrt(2T)/(32 rho)", [ratio < 1.0 for ratio in ratios], allowed),
        holds(f"V_1 at most {excess:.1e} sqrt(T); R_2 at least {min(ratios):.0f} times the bound"),
        untested("the law in rho needs positive regret at several rho")
        if found is None
        else holds(f"R_2 grows like (1/rho)^x with x = {found} at T = {longest:,}", exponent=found.exponent),
    )
