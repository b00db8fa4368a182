"""T18-T20: the inequalities under the theorems: mirror descent, the loss estimator, the two players of the search."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hedgerow.paper import cite
from hedgerow.promises.observation import Observation
from hedgerow.promises.promise import Promise, Verdict, holds, largest_delta, never, rate, together

TOL_MIRROR = 1e-7
"""Relative: what projections solved to 1e-10 may add over a run."""
PRIMAL_EVENTS = 9


def judge_mirror(observations: Sequence[Observation]) -> Verdict:
    clean = [one for one in observations if one["clean"] and not one["infeasible"]]
    offences = sum(one["mirror_left"] > one["mirror_right"] * (1.0 + TOL_MIRROR) + TOL_MIRROR for one in clean)
    largest = max((one["mirror_left"] / one["mirror_right"] for one in clean), default=0.0)
    return never("the mirror-descent inequality broken", offences, len(clean), f"largest left/right {largest:.2f}")


def judge_estimator(observations: Sequence[Observation]) -> Verdict:
    watched = [one for one in observations if np.isfinite(one["optimism"])]
    above = sum(one["optimism"] > one["optimism_bound"] for one in watched)
    largest = max((one["optimism"] / one["optimism_bound"] for one in watched), default=0.0)
    return together(
        [
            rate("the estimator of some pair was above its bound", above, len(watched), largest_delta(observations)),
            holds(f"largest share of the bound {largest:.2f}"),
        ]
    )


def judge_players(observations: Sequence[Observation]) -> Verdict:
    searched = [one for one in observations if one["searched"]]
    broken = sum(one["dual_ratio"] > one["dual_bound"] + 1e-9 for one in searched)
    above = sum(one["primal_ratio"] > one["primal_bound"] for one in searched)
    dual = max((one["dual_ratio"] for one in searched), default=np.nan)
    bound = max((one["dual_bound"] for one in searched), default=np.nan)
    primal = max((one["primal_ratio"] for one in searched), default=np.nan)
    least = min((one["primal_bound"] for one in searched), default=np.nan)
    return together(
        [
            never(
                "the dual player above C_D sqrt(t)",
                broken,
                len(searched),
                f"largest {dual:.2f} sqrt(t), C_D {bound:.2f}",
            ),
            rate(
                "the primal player was above C_P sqrt(t ln t)",
                above,
                len(searched),
                min(1.0, PRIMAL_EVENTS * largest_delta(observations)),
            ),
            holds(f"largest primal regret {primal:.2f} sqrt(t ln t), by mean costs; the theory's C_P is {least:.3g}"),
        ]
    )


PROMISES = (
    Promise(
        "T18",
        "sum l_hat^T (q_hat - q*) <= L ln(|X|^2|A|)/eta + eta sum q_hat^T l_hat^2",
        cite("OMD_jin"),
        "surely while q* is in all sets",
        ("deterministic",),
        "one run in which the left side is larger",
        judge_mirror,
    ),
    Promise(
        "T19",
        "sum_t (l_hat - (q/u) l)(x,a) <= ln(|X||A|/delta) / (2 gamma) for all pairs",
        cite("alpha_jin_cor"),
        "1 - delta",
        ("estimator",),
        "lower 99 % bound of the rate above delta",
        judge_estimator,
    ),
    Promise(
        "T20",
        "the players of the search: regret <= C_P sqrt(t ln t) and <= C_D sqrt(t) at all times",
        "Jin et al. 2020; Zinkevich 2003",
        "1 - 9 delta; surely",
        ("search",),
        "one breach by the dual player; rate above 9 delta for the primal one",
        judge_players,
    ),
)
