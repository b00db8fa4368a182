"""T7-T11: S-OPS is safe in every episode, and what its baseline costs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hedgerow.paper import cite
from hedgerow.promises.growth import by_horizon, growth, safe_prefix
from hedgerow.promises.lower import margin_of
from hedgerow.promises.observation import Observation
from hedgerow.promises.promise import (
    LEVEL,
    Promise,
    Verdict,
    any_of,
    holds,
    largest_delta,
    never,
    rate,
    refuted,
    together,
    untested,
)
from hedgerow.promises.soft import split
from hedgerow.results.metrics import power_law

TOL_MIXING = 1e-9


def judge_safety(observations: Sequence[Observation]) -> Verdict:
    """Searches (CV-OPS) count from the end of their first phase."""
    told = [one for one in observations if one["honest_baseline"]]
    offences = sum(one["refuted_safety"] > 0 for one in told)
    unsafe = sum((one["unsafe_after"] if one["searched"] else one["unsafe"]) > 0 for one in told)
    worst = max((one["worst"] for one in told if not one["searched"]), default=np.nan)
    detail = f"largest excess over a threshold {worst:.1e}" if np.isfinite(worst) else ""
    return together(
        [
            never("an unsafe episode on the clean event", offences, len(told), detail),
            rate("an episode was unsafe", unsafe, len(told), 5.0 * largest_delta(observations)),
        ]
    )


def judge_mixing_range(observations: Sequence[Observation]) -> Verdict:
    mixed = [one for one in observations if np.isfinite(one["mixing_over"])]
    offences = sum(one["mixing_over"] > TOL_MIXING for one in mixed)
    largest = max((one["mixing_over"] for one in mixed), default=0.0)
    return never("lambda above lambda_0", offences, len(mixed), f"largest lambda - lambda_0 {largest:.1e}")


def judge_mixing_bound(observations: Sequence[Observation]) -> Verdict:
    watched = [one for one in observations if np.isfinite(one["mixing_slack"])]
    offences = sum(one["mixing_slack"] < -TOL_MIXING for one in watched)
    least = min((one["mixing_slack"] for one in watched), default=0.0)
    return never("lambda above its bound by the widths", offences, len(watched), f"least slack {least:.3f}")


def judge_safe_growth(observations: Sequence[Observation]) -> Verdict:
    sets = split([one for one in observations if one.group == "safe-growth"])
    sums = [growth(f"sum lambda ({name})", some, lambda one: one["mixing_total"], safe_prefix) for name, some in sets]
    regrets = [growth(f"R_T ({name})", some, lambda one: one["regret"], safe_prefix) for name, some in sets]
    pair = [one for one in observations if one.group == "lower-bound" and one.world == "lower-bound-2"]
    return together([any_of(sums), any_of(regrets), *([_margin_law(pair)] if pair else [])])


def _margin_law(observations: Sequence[Observation]) -> Verdict:
    """R_T min(Delta, Delta^2) must not grow as the margin Delta of the baseline goes to 0."""
    longest = max(one.episodes for one in observations)
    margins = sorted({margin_of(one) for one in observations}, reverse=True)
    scaled = [
        np.array([one["regret"] * min(rho, rho**2) for one in observations if _is(one, longest, rho)])
        for rho in margins
    ]
    if len(margins) < 2 or any(values.mean() <= 0.0 for values in scaled):
        return untested("the law in the margin needs positive regret at several margins")
    found = power_law([1.0 / rho for rho in margins], scaled, level=LEVEL)
    sentence = (
        f"R_T min(Delta, Delta^2) has exponent {found} in 1/Delta from Delta = {margins[-1]:g} to {margins[0]:g} at "
        f"T = {longest:,}"
    )
    return refuted(f"{sentence}: it grows") if found.low > 0.0 else holds(sentence, exponent=found.exponent)


def _is(one: Observation, episodes: int, rho: float) -> bool:
    return one.episodes == episodes and margin_of(one) == rho


def judge_weighted_width(observations: Sequence[Observation]) -> Verdict:
    parts = []
    for label, some in split(observations):
        parts.append(growth(f"sum (1 - lambda)|q - q_hat| ({label})", some, lambda one: one["weighted_width"]))
        if all(np.isfinite(values).all() for values in by_horizon(some, lambda one: one["weighted_upper"]).values()):
            parts.append(growth(f"sum (1 - lambda)|u_hat - q| ({label})", some, lambda one: one["weighted_upper"]))
    return any_of(parts)


PROMISES = (
    Promise(
        "T7",
        "S-OPS: the expected costs of the mixture respect every threshold in every episode",
        cite("violation_hard"),
        "1 - 5 delta; surely on the clean event",
        ("deterministic", "confidence", "safe-growth"),
        "one unsafe episode on the clean event; rate above 5 delta",
        judge_safety,
    ),
    Promise(
        "T8",
        "S-OPS: 0 <= lambda_t <= lambda_0 while projections are feasible",
        f"{cite('violation_hard')}, proof",
        "surely",
        ("deterministic", "confidence", "safe-growth"),
        f"one excess above {TOL_MIXING:g}",
        judge_mixing_range,
    ),
    Promise(
        "T9",
        "S-OPS: lambda_t <= max_i (|u_hat - q|_1 + |q - q_hat|_1 + 2 xi^T u_hat) / (alpha_i - beta_i)",
        f"{cite('reg_hard')}, proof",
        "surely on the clean event",
        ("deterministic",),
        "one episode above the bound",
        judge_mixing_bound,
    ),
    Promise(
        "T10",
        "S-OPS: sum lambda = O~(sqrt T), R_T = O~(Psi sqrt T), Psi = max 1 / min(Delta, Delta^2)",
        cite("reg_hard"),
        "1 - 11 delta",
        ("safe-growth", "lower-bound"),
        "exponent above 1/2 and its logarithm, not falling; R_T min(Delta, Delta^2) growing as Delta -> 0",
        judge_safe_growth,
    ),
    Promise(
        "T11",
        "S-OPS: sum (1 - lambda) |q - q_hat|_1 = O(L |X| sqrt(|A| T ln))",
        cite("transition_gamma"),
        "1 - 2 delta",
        ("safe-width",),
        "exponent above 1/2 and its logarithm, not falling",
        judge_weighted_width,
    ),
)
