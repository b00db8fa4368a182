"""T12-T16: CV-OPS finds a safe policy, and from then on nothing is violated."""

from __future__ import annotations

from collections.abc import Sequence
from math import log, sqrt

import numpy as np

from hedgerow.paper import cite
from hedgerow.promises.growth import by_horizon, growth
from hedgerow.promises.observation import Observation
from hedgerow.promises.promise import (
    Promise,
    Verdict,
    any_of,
    holds,
    largest_delta,
    never,
    rate,
    together,
    untested,
)
from hedgerow.promises.soft import split

TOL_LP = 1e-8
"""Accuracy of the linear program behind rho."""
NEGLIGIBLE = 1e-9


def ended(observations: Sequence[Observation]) -> list[Observation]:
    """Runs whose search ended."""
    return [one for one in observations if np.isfinite(one["t_bar"])]


def judge_margin(observations: Sequence[Observation]) -> Verdict:
    some = ended(observations)
    above = sum(one["rho_hat"] > one["margin"] for one in some)
    impossible = sum(one["margin"] > one["rho"] + TOL_LP for one in some)
    shares = [one["rho_hat"] / one["margin"] for one in some if one["margin"] > 0.0]
    detail = f"largest rho_hat/margin {max(shares):.2f}" if shares else "no mixture had a margin at all"
    return together(
        [
            rate("rho_hat was above the margin of the mixture", above, len(some), largest_delta(observations)),
            never("a mixture with more margin than rho", impossible, len(some), detail),
        ]
    )


def oracle(observations: Sequence[Observation]) -> list[Observation]:
    """Runs whose given constant C_P is at least the regret constant that was measured in them."""
    return [one for one in ended(observations) if _constant(one) >= one["primal_ratio"]]


def _constant(one: Observation) -> float:
    return float(one.spec["learner"].get("primal_constant", np.nan))


def judge_half(observations: Sequence[Observation]) -> Verdict:
    some = oracle(observations)
    if not some:
        return untested("no search ended with a constant that its own regret respected")
    low = sum(one["rho_hat"] < 0.5 * one["rho"] for one in some)
    least = min(one["rho_hat"] / one["rho"] for one in some)
    allowed = 3.0 * largest_delta(observations)
    given = _told(some)
    tested = f"tested with {given}, not with the theory's, which no run of this length survives; least {least:.2f}"
    return together([rate("rho_hat was below rho/2", low, len(some), allowed), holds(tested)])


def judge_duration(observations: Sequence[Observation]) -> Verdict:
    some = oracle(observations)
    if not some:
        return untested("no search ended with a constant that its own regret respected")
    late = sum(one["t_bar"] > longest_search(one) for one in some)
    largest = max(one["t_bar"] for one in some)
    share = max(one["t_bar"] / longest_search(one) for one in some)
    detail = f"tested with {_told(some)}; longest search {largest:,.0f} episodes, {share:.1e} of the bound"
    return never("a search beyond its bound", late, len(some), detail)


def longest_search(one: Observation, constant: float | None = None) -> float:
    """((3 C_P + 10 L sqrt(2 ln(1/delta)) + 3 C_D + L) / rho)^4; C_P is the run's own, or `constant`."""
    L, spread = one["steps"], 10.0 * one["steps"] * sqrt(2.0 * log(1.0 / one.delta))
    primal = _constant(one) if constant is None else constant
    return float(((3.0 * primal + spread + 3.0 * one["dual_bound"] + L) / one["rho"]) ** 4)


def _told(some: Sequence[Observation]) -> str:
    measured = max(one["primal_ratio"] for one in some)
    return f"C_P = {_constant(some[0]):g}, above the {measured:.2f} measured in the same runs"


def judge_violation(observations: Sequence[Observation]) -> Verdict:
    some = ended(observations)
    if not some:
        return untested("no search ended")
    grew = sum(one["violation_after"] > NEGLIGIBLE or one["unsafe_after"] > 0 for one in some)
    honest = [one for one in some if one["honest_baseline"]]
    broken = sum(one["refuted_safety"] > 0 for one in honest)
    parts = [
        never("an unsafe episode after the search on the clean event", broken, len(honest)),
        rate("V_T grew after the search", grew, len(some), 6.0 * largest_delta(observations)),
    ]
    for label, part in split([one for one in some if one.group == "constant"]):
        means = {T: values.mean() for T, values in by_horizon(part, lambda one: one["violation"]).items()}
        listed = ", ".join(f"{value:.1f} at T = {T:,}" for T, value in means.items())
        parts.append(holds(f"mean V_T ({label}): {listed}"))
    return together(parts)


def judge_regret(observations: Sequence[Observation]) -> Verdict:
    some = ended(observations)
    return any_of(
        growth(f"R_T - R_t_bar ({label})", part, lambda one: one["regret_after"], _phase_prefix)
        for label, part in split(some)
    )


def _phase_prefix(one: Observation) -> float:
    """sum lambda as a share of lambda_0 times the episodes of the second phase."""
    return one["mixing_total"] / (one["first_mixing"] * max(1.0, one.episodes - one["t_bar"]))


PROMISES = (
    Promise(
        "T12",
        "CV-OPS: rho_hat <= margin of the found mixture <= rho",
        f"{cite('widehat_rho_leq')}, with a time-uniform radius",
        "1 - delta; the second inequality surely",
        ("search", "constant"),
        "lower 99 % bound of the rate of rho_hat > margin above delta; one margin above rho",
        judge_margin,
    ),
    Promise(
        "T13",
        "CV-OPS: rho_hat >= rho / 2, if the rule waits for the regret of the players",
        cite("widehat_rho_geq"),
        "1 - 3 delta and what the primal player's regret bound fails",
        ("oracle",),
        "lower 99 % bound of the rate of rho_hat < rho/2 above 3 delta",
        judge_half,
    ),
    Promise(
        "T14",
        "CV-OPS: t_bar <= ((3 C_P + 10 L sqrt(2 ln(1/delta)) + 3 C_D + L) / rho)^4",
        cite("episode_bounds_strictly"),
        "as T13",
        ("oracle",),
        "one search beyond the bound",
        judge_duration,
    ),
    Promise(
        "T15",
        "CV-OPS: V_T does not grow once the search has ended",
        cite("const_viol"),
        "1 - 6 delta; surely on the clean event and while rho_hat is right",
        ("search", "constant"),
        "one unsafe episode after the search on the clean event; rate of runs that violate afterwards above 6 delta",
        judge_violation,
    ),
    Promise(
        "T16",
        "CV-OPS: R_T - R_t_bar = O~(sqrt(T) / min(rho, rho^2))",
        cite("const_reg"),
        "1 - 14 delta",
        ("constant",),
        "exponent above 1/2 and its logarithm, not falling",
        judge_regret,
    ),
)
