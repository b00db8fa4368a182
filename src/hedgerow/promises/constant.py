"""T12-T16: CV-OPS finds a safe policy, and violates nothing from then on."""

from __future__ import annotations

from collections.abc import Sequence
from math import log, sqrt

import numpy as np

from hedgerow.promises.growth import by_horizon, growth, split
from hedgerow.promises.observation import Observation
from hedgerow.promises.promise import Verdict, any_of, holds, largest_delta, never, rate, together, untested

TOL_LP = 1e-8
"""Accuracy of the linear program that computes rho"""
NEGLIGIBLE = 1e-9


def ended(observations: Sequence[Observation]) -> list[Observation]:
    """Runs whose search ended."""
    return [one for one in observations if np.isfinite(one["t_bar"])]


def judge_margin(observations: Sequence[Observation]) -> Verdict:
    some = ended(observations)
    above = [one["rho_hat"] > one["margin"] for one in some]
    impossible = [one["margin"] > one["rho"] + TOL_LP for one in some]
    shares = [one["rho_hat"] / one["margin"] for one in some if one["margin"] > 0.0]
    detail = f"largest rho_hat/margin {max(shares):.2f}" if shares else "no mixture had a margin at all"
    return together(
        rate("rho_hat was above the margin of the mixture", above, largest_delta(observations)),
        never("a mixture with more margin than rho", impossible, detail),
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
    shares = [one["rho_hat"] / one["rho"] for one in some]
    reason = "not with the theory's, which no run of this length survives"
    return together(
        rate("rho_hat was below rho/2", [share < 0.5 for share in shares], 3.0 * largest_delta(observations)),
        holds(f"tested with {_told(some)}, {reason}; least {min(shares):.2f}"),
    )


def judge_duration(observations: Sequence[Observation]) -> Verdict:
    some = oracle(observations)
    if not some:
        return untested("no search ended with a constant that its own regret respected")
    largest, shares = max(one["t_bar"] for one in some), [one["t_bar"] / longest_search(one) for one in some]
    detail = f"tested with {_told(some)}; longest search {largest:,.0f} episodes, {max(shares):.1e} of the bound"
    return never("a search beyond its bound", [share > 1.0 for share in shares], detail)


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
    grew = [one["violation_after"] > NEGLIGIBLE or one["unsafe_after"] > 0 for one in some]
    broken = [one["refuted_safety"] > 0 for one in some if one["honest_baseline"]]
    means = []
    for label, part in split([one for one in some if one.group == "constant"]):
        found = by_horizon(part, "violation").items()
        listed = ", ".join(f"{values.mean():.1f} at T = {T:,}" for T, values in found)
        means.append(holds(f"mean V_T ({label}): {listed}"))
    return together(
        never("an unsafe episode after the search on the clean event", broken),
        rate("V_T grew after the search", grew, 6.0 * largest_delta(observations)),
        *means,
    )


def judge_regret(observations: Sequence[Observation]) -> Verdict:
    sets = split(ended(observations))
    return any_of(growth(f"R_T - R_t_bar ({label})", part, "regret_after", _phase_prefix) for label, part in sets)


def _phase_prefix(one: Observation) -> float:
    """sum lambda as a share of lambda_0 times the episodes of the second phase."""
    return one["mixing_total"] / (one["first_mixing"] * max(1.0, one.episodes - one["t_bar"]))
