"""T7-T11: S-OPS is safe in every episode, and the price of its baseline."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hedgerow.promises.growth import growth, safe_prefix, split
from hedgerow.promises.lower import by_margin, margin_law
from hedgerow.promises.observation import Observation
from hedgerow.promises.promise import Verdict, any_of, holds, never, rates, refuted, together, untested

TOL_MIXING = 1e-9


def judge_safety(observations: Sequence[Observation]) -> Verdict:
    """Judge safety; runs that search (CV-OPS) count from the end of their first phase."""
    told = [one for one in observations if one["honest_baseline"]]
    worst = max((one["worst"] for one in told if not one["searched"]), default=np.nan)
    detail = f"largest excess over a threshold {worst:.1e}" if np.isfinite(worst) else ""
    return together(
        never("an unsafe episode on the clean event", [one["refuted_safety"] > 0 for one in told], detail),
        *rates("an episode was unsafe", told, _is_unsafe, 5.0),
    )


def _is_unsafe(one: Observation) -> bool:
    return (one["unsafe_after"] if one["searched"] else one["unsafe"]) > 0


def judge_mixing_range(observations: Sequence[Observation]) -> Verdict:
    over = [one["mixing_over"] for one in observations if np.isfinite(one["mixing_over"])]
    detail = f"largest lambda - lambda_0 {max(over, default=0.0):.1e}"
    return never("lambda above lambda_0", [excess > TOL_MIXING for excess in over], detail)


def judge_mixing_bound(observations: Sequence[Observation]) -> Verdict:
    slacks = [one["mixing_slack"] for one in observations if np.isfinite(one["mixing_slack"])]
    detail = f"least slack {min(slacks, default=0.0):.3f}"
    return never("lambda above its bound by the widths", [slack < -TOL_MIXING for slack in slacks], detail)


def judge_safe_growth(observations: Sequence[Observation]) -> Verdict:
    sets = split([one for one in observations if one.group == "safe-growth"])
    sums = any_of(growth(f"sum lambda ({name})", some, "mixing_total", safe_prefix) for name, some in sets)
    regrets = any_of(growth(f"R_T ({name})", some, "regret", safe_prefix) for name, some in sets)
    pair = [one for one in observations if one.group == "lower-bound" and one.world == "lower-bound-2"]
    return together(sums, regrets, *([_margin_law(pair)] if pair else []))


def _margin_law(pair: Sequence[Observation]) -> Verdict:
    """Judge that R_T min(Delta, Delta^2) does not grow as the margin Delta of the baseline goes to 0."""
    longest, regrets = by_margin(pair)
    found = margin_law({rho: regret * min(rho, rho**2) for rho, regret in regrets.items()})
    if found is None:
        return untested("the law in the margin needs positive regret at several margins")
    sentence = (
        f"R_T min(Delta, Delta^2) has exponent {found} in 1/Delta from Delta = {min(regrets):g} to {max(regrets):g} at "
        f"T = {longest:,}"
    )
    return refuted(f"{sentence}: it grows") if found.low > 0.0 else holds(sentence, exponent=found.exponent)


def judge_weighted_width(observations: Sequence[Observation]) -> Verdict:
    parts = []
    for label, some in split(observations):
        parts.append(growth(f"sum (1 - lambda)|q - q_hat| ({label})", some, "weighted_width"))
        if all(np.isfinite(one["weighted_upper"]) for one in some):
            parts.append(growth(f"sum (1 - lambda)|u_hat - q| ({label})", some, "weighted_upper"))
    return any_of(parts)
