"""The rule for growth: does a quantity grow like sqrt(T ln(cT)), or faster?

The exponent is the slope of ln(mean over seeds) between the two largest horizons. Each horizon has runs of its own,
because rates and radii depend on T: a prefix of a longer run is not a run. With the share of the logarithm, the allowed
exponent is d ln sqrt(T ln(cT)) / d ln T = 1/2 + 1/(2 ln(cT)). With the 99 % bootstrap interval [low, high]

    holds      the exponent is at most allowed + 0.05, and high < 1: compatible with the promise, surely sublinear
    refuted    low > allowed, and not falling: the exponent between the two horizons before was no larger by 0.02
    untested   above but falling (the curve still bends), or an interval wider than 1/2, or one that tells neither, or a
               prefix in which even the proof promises nothing

An O(.) cannot be refuted by finitely many numbers; this rule refutes what shows no sign of obeying it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.promises.observation import Observation
from hedgerow.promises.promise import LEVEL, Verdict, holds, refuted, untested
from hedgerow.results.metrics import power_law

FALLING = 0.02
CLOSE = 0.05
WIDEST = 0.5
NO_PREFIX = 0.5
"""Beyond this share of the trivial bound, a curve is still in its linear prefix."""

Measure = Callable[[Observation], float]


def split(observations: Sequence[Observation]) -> list[tuple[str, list[Observation]]]:
    """Runs that only differ in horizon and seed, each set under a name."""
    sets: dict[str, list[Observation]] = {}
    for one in observations:
        sets.setdefault(f"{one.world}, {one.adversary}, {one.preset}", []).append(one)
    return sorted(sets.items())


def by_horizon(observations: Sequence[Observation], name: str) -> dict[int, FloatArray]:
    """The values of the seeds, horizon by horizon."""
    horizons = sorted({one.episodes for one in observations})
    return {T: np.array([one[name] for one in observations if one.episodes == T]) for T in horizons}


def growth(what: str, observations: Sequence[Observation], name: str, prefix: Measure | None = None) -> Verdict:
    """Judge the growth of a number; `prefix` is the share of the trivial bound that the proof's own bound has."""
    samples = by_horizon(observations, name)
    means = {T: float(np.mean(values)) for T, values in samples.items()}
    figures, last = {f"mean at {T}": value for T, value in means.items()}, max(samples, default=0)
    if len(samples) < 2:
        return untested(f"{what}: runs of at least two horizons are needed")
    if not np.isfinite(list(means.values())).all():
        return untested(f"{what}: not defined in some run", **figures)
    if means[last] <= 0.0:
        return holds(f"{what} at T = {last:,} is {means[last]:.3g}: nothing grows", **figures)
    if prefix is not None:
        share = figures["prefix"] = float(np.mean([prefix(one) for one in observations if one.episodes == last]))
        if share > NO_PREFIX:
            reason = f"where the proof's own bound is {share:.0%} of the trivial one"
            return untested(f"{what}: still the linear prefix at T = {last:,}, {reason}", **figures)
    *_, before, last = samples
    if means[before] <= 0.0:
        return untested(f"{what}: not positive at T = {before:,}", **figures)
    allowed = allowed_exponent(observations, (before, last))
    return _by_exponents(f"{what} grows with exponent", samples, allowed, figures)


def _by_exponents(what: str, samples: dict[int, FloatArray], allowed: float, figures: dict[str, float]) -> Verdict:
    first, last = pair = list(samples)[-2:]
    found = power_law(pair, [samples[T] for T in pair], level=LEVEL)
    figures |= {"exponent": found.exponent, "low": found.low, "high": found.high, "allowed": allowed}
    sentence = f"{what} {found} from T = {first:,} to {last:,}, allowed {allowed:.2f}"
    if found.high - found.low > WIDEST:
        return untested(f"{sentence}: too noisy to tell", **figures)
    if found.exponent <= allowed + CLOSE and found.high < 1.0:
        return holds(sentence, **figures)
    before = list(samples)[-3:-1]
    if len(before) == 2 and samples[before[0]].mean() > 0.0:
        earlier = power_law(before, [samples[T] for T in before], level=LEVEL).exponent
        figures["exponent before"] = earlier
        if found.exponent < earlier - FALLING:
            return untested(f"{sentence}: above, but still falling (before: {earlier:.2f})", **figures)
    if found.low > allowed:
        return refuted(sentence, **figures)
    return untested(f"{sentence}: too noisy to tell", **figures)


def allowed_exponent(observations: Sequence[Observation], pair: Sequence[int]) -> float:
    """1/2 plus the share of the logarithm, in the middle of the two horizons."""
    argument = max(one["log_argument"] for one in observations)
    return 0.5 + 0.5 / (0.5 * log(pair[0] * pair[1]) + argument)


def soft_prefix(one: Observation) -> float:
    """The proof's bound of V_T, sum |q - q_hat| + 2 sum xi^T q_hat, as a share of the trivial bound L T."""
    return (one["width"] + one["radii"]) / (one["steps"] * one.episodes)


def safe_prefix(one: Observation) -> float:
    """sum lambda as a share of lambda_0 T."""
    return one["mixing_total"] / (one["first_mixing"] * one.episodes)
