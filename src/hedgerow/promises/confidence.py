"""T1-T4: the confidence sets hold the truth, and what follows from that without further chance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hedgerow.promises.observation import Observation
from hedgerow.promises.promise import Verdict, largest_delta, never, rate, together

TOL_BOUND = 1e-12
"""Rounding of an upper occupancy bound (T4)."""


def judge_costs(observations: Sequence[Observation]) -> Verdict:
    breached = [one["cost_breaches"] > 0 for one in observations]
    return rate("a mean cost left its radius", breached, largest_delta(observations))


def judge_transitions(observations: Sequence[Observation]) -> Verdict:
    breached = [one["transition_breaches"] > 0 for one in observations]
    return rate("a transition left its box", breached, 4.0 * largest_delta(observations))


def judge_feasibility(observations: Sequence[Observation]) -> Verdict:
    refuted = [one["refuted_feasibility"] > 0 for one in observations if one["clean"] or one["refuted_feasibility"]]
    failed = [one["infeasible"] > 0 for one in observations]
    return together(
        never("a projection without a solution on the clean event", refuted),
        rate("a projection had no solution", failed, 5.0 * largest_delta(observations)),
    )


def judge_upper_bounds(observations: Sequence[Observation]) -> Verdict:
    least = [one["least_excess"] for one in observations if np.isfinite(one["least_excess"])]
    below = [excess < -TOL_BOUND for excess in least]
    detail = f"least u - q {min(least, default=0.0):.1e}"
    return never("an upper occupancy bound below the truth in its box", below, detail)
