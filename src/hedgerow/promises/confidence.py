"""T1-T4: the confidence sets hold the truth, and what follows from that without further chance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hedgerow.paper import cite
from hedgerow.promises.observation import Observation
from hedgerow.promises.promise import Promise, Verdict, largest_delta, never, rate, together

TOL_BOUND = 1e-12
"""Rounding of an upper occupancy bound (T4)."""


def judge_costs(observations: Sequence[Observation]) -> Verdict:
    breached = sum(one["cost_breaches"] > 0 for one in observations)
    return rate("a mean cost left its radius", breached, len(observations), largest_delta(observations))


def judge_transitions(observations: Sequence[Observation]) -> Verdict:
    breached = sum(one["transition_breaches"] > 0 for one in observations)
    return rate("a transition left its box", breached, len(observations), 4.0 * largest_delta(observations))


def judge_feasibility(observations: Sequence[Observation]) -> Verdict:
    clean = [one for one in observations if one["clean"]]
    offences = sum(one["refuted_feasibility"] > 0 for one in observations)
    failed = sum(one["infeasible"] > 0 for one in observations)
    return together(
        [
            never("a projection without a solution on the clean event", offences, max(len(clean), offences)),
            rate("a projection had no solution", failed, len(observations), 5.0 * largest_delta(observations)),
        ]
    )


def judge_upper_bounds(observations: Sequence[Observation]) -> Verdict:
    watched = [one for one in observations if np.isfinite(one["least_excess"])]
    offences = sum(one["least_excess"] < -TOL_BOUND for one in watched)
    least = min((one["least_excess"] for one in watched), default=0.0)
    return never(
        "an upper occupancy bound below the truth in its box", offences, len(watched), f"least u - q {least:.1e}"
    )


PROMISES = (
    Promise(
        "T1",
        "|g_hat - g| <= xi for all episodes, constraints and pairs",
        cite("gen_confidence"),
        "1 - delta",
        ("confidence",),
        "lower 99 % bound of the breach rate above delta",
        judge_costs,
    ),
    Promise(
        "T2",
        "the true transitions lie in the boxes P_t in all episodes",
        cite("confidenceset"),
        "1 - 4 delta",
        ("confidence",),
        "lower 99 % bound of the breach rate above 4 delta",
        judge_transitions,
    ),
    Promise(
        "T3",
        "every projection has a solution if some policy is feasible",
        cite("feasibility"),
        "1 - 5 delta; surely on the clean event",
        ("confidence", "deterministic"),
        "one infeasible projection on the clean event; rate above 5 delta",
        judge_feasibility,
    ),
    Promise(
        "T4",
        "u_t >= q_t and u_hat_t >= q of pi_hat_t on all pairs",
        "definition of COMP-UOB",
        "surely while P is in its box",
        ("deterministic",),
        f"one deficit above {TOL_BOUND:g}",
        judge_upper_bounds,
    ),
)
