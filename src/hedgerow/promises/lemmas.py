"""The lemmas. T1-T4: the confidence sets hold the truth, and what follows from that surely. T18-T20: the inequalities
behind the theorems: mirror descent, the loss estimator, the two players of the search. T28-T30: the auxiliary lemmas
of Jin et al. (2020) on occupancies and on the loss estimator.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hedgerow.promises.growth import growth, split
from hedgerow.promises.observation import Observation
from hedgerow.promises.promise import Verdict, any_of, holds, largest_delta, never, rate, rates, together

TOL_BOUND = 1e-12
"""Rounding of an upper occupancy bound (T4)."""
TOL_MIRROR = 1e-7
"""Relative error that projections solved to 1e-10 may add over a run"""
TOL_SUM = 1e-6
"""Rounding of a sum over a run"""
PRIMAL_EVENTS = 9
WEIGHTS = {"all": "2 gamma everywhere", "iterate": "2 gamma q_hat", "chosen": "2 gamma where the sum is positive"}
"""The weights with which Lemma 11 is tested, none of which knows the episode"""


def judge_costs(observations: Sequence[Observation]) -> Verdict:
    """Judge the bounds of mean costs, and the aggregate certificate, which takes half of their probability if used."""
    return together(
        *_breaches("a mean cost left its bounds", observations, "cost"),
        *_optional("the sums of the aggregate certificate failed", observations, "aggregate"),
    )


def judge_transitions(observations: Sequence[Observation]) -> Verdict:
    """Judge the boxes, and the balls, which take half of their probability if there are any."""
    return together(
        *_breaches("a transition left its box", observations, "transition"),
        *_optional("a transition row left its ball", observations, "ball"),
    )


def _breaches(what: str, observations: Sequence[Observation], kind: str) -> list[Verdict]:
    return rates(what, observations, lambda one: one[f"{kind}_breaches"] > 0, lambda one: one[f"{kind}_share"])


def _optional(what: str, observations: Sequence[Observation], kind: str) -> list[Verdict]:
    """Judge such sets where they exist; a run without them needs no verdict."""
    some = [one for one in observations if one[f"{kind}_share"] > 0.0]
    return _breaches(what, some, kind) if some else []


def judge_feasibility(observations: Sequence[Observation]) -> Verdict:
    refuted = [one["refuted_feasibility"] > 0 for one in observations if one["clean"] or one["refuted_feasibility"]]
    return together(
        never("a projection without a solution on the clean event", refuted),
        *rates("a projection had no solution", observations, lambda one: one["infeasible"] > 0, 5.0),
    )


def judge_upper_bounds(observations: Sequence[Observation]) -> Verdict:
    least = [one["least_excess"] for one in observations if np.isfinite(one["least_excess"])]
    below = [excess < -TOL_BOUND for excess in least]
    detail = f"least u - q {min(least, default=0.0):.1e}"
    return never("an upper occupancy bound below the truth in its box", below, detail)


def judge_mirror(observations: Sequence[Observation]) -> Verdict:
    clean = [one for one in observations if one["clean"] and not one["infeasible"]]
    broken = [one["mirror_left"] > one["mirror_right"] * (1.0 + TOL_MIRROR) + TOL_MIRROR for one in clean]
    largest = max((one["mirror_left"] / one["mirror_right"] for one in clean), default=0.0)
    return never("the mirror-descent inequality broken", broken, f"largest left/right {largest:.2f}")


def judge_estimator(observations: Sequence[Observation]) -> Verdict:
    watched = [one for one in observations if np.isfinite(one["optimism"])]
    above = [one["optimism"] > one["optimism_bound"] for one in watched]
    largest = max((one["optimism"] / one["optimism_bound"] for one in watched), default=0.0)
    return together(
        rate("the estimator of some pair was above its bound", above, largest_delta(observations)),
        holds(f"largest share of the bound {largest:.2f}"),
    )


def judge_players(observations: Sequence[Observation]) -> Verdict:
    searched = [one for one in observations if one["searched"]]
    dual, primal, bound = (
        max((one[name] for one in searched), default=np.nan) for name in ("dual_ratio", "primal_ratio", "dual_bound")
    )
    least = min((one["primal_bound"] for one in searched), default=np.nan)
    return together(
        never(
            "the dual player above C_D sqrt(t)",
            [one["dual_ratio"] > one["dual_bound"] + 1e-9 for one in searched],
            f"largest {dual:.2f} sqrt(t), C_D {bound:.2f}",
        ),
        rate(
            "the primal player was above C_P sqrt(t ln t)",
            [one["primal_ratio"] > one["primal_bound"] for one in searched],
            min(1.0, PRIMAL_EVENTS * largest_delta(observations)),
        ),
        holds(f"largest primal regret {primal:.2f} sqrt(t ln t), by mean costs; the theory's C_P is {least:.3g}"),
    )


def judge_occupancies(observations: Sequence[Observation]) -> Verdict:
    """Judge sum |u - q|_1: u takes the worst transitions for every state, which makes it the largest of all."""
    inside = [one for one in observations if not one["transition_breaches"] and np.isfinite(one["upper_bound"])]
    above = [one["weighted_upper"] > one["upper_bound"] + TOL_SUM for one in inside]
    largest = max((one["weighted_upper"] / one["upper_bound"] for one in inside), default=0.0)
    sets = split([one for one in observations if one.group != "estimator"])
    return together(
        never("sum |u - q| above the widths of the boxes", above, f"largest share of them {largest:.2f}"),
        any_of(growth(f"sum |u - q| ({label})", some, "weighted_upper") for label, some in sets),
    )


def judge_weighted_estimator(observations: Sequence[Observation]) -> Verdict:
    watched = [one for one in observations if np.isfinite(one["weighted_optimism_bound"])]
    parts = []
    for name, told in WEIGHTS.items():
        above = [one[f"weighted_optimism_{name}"] > one["weighted_optimism_bound"] for one in watched]
        parts.append(rate(f"the sum with weights {told} was above L ln(L/delta)", above, largest_delta(observations)))
    return together(*parts)


def judge_bias(observations: Sequence[Observation]) -> Verdict:
    """Judge the bias of the estimator in runs without a baseline whose transitions stayed in their boxes."""
    some = [one for one in observations if np.isfinite(one["bias"]) and not one["mixing_total"]]
    inside = [one for one in some if not one["transition_breaches"]]
    surely = [one["bias"] > one["bias_bound"] + TOL_SUM for one in inside]
    seen = [not one["transition_breaches"] and one["bias_seen"] > one["bias_seen_bound"] for one in some]
    largest = max((one["bias"] / one["bias_bound"] for one in inside), default=0.0)
    return together(
        never("a bias above sum |u - q| + gamma |X||A| T", surely, f"largest share {largest:.2f}"),
        rate("sum (l - l_hat)^T q_hat was above that and its deviation", seen, largest_delta(observations)),
    )
