"""The rule for growth: does a quantity grow like sqrt(T ln(cT)), or faster?

The exponent is the slope of ln(mean over seeds) between the two largest horizons, each of which has runs of its own
(rates and radii depend on T: a prefix of a longer run is another thing). The logarithm has its share:
d ln sqrt(T ln(cT)) / d ln T = 1/2 + 1/(2 ln(cT)) is what is allowed. With the 99 % bootstrap interval [low, high]

    holds      the exponent is at most allowed + 0.05, and high < 1: compatible with the promise, surely sublinear
    refuted    low > allowed, and not falling: the exponent between the two horizons before was no larger by 0.02
    untested   above but falling (the curve still bends), or an interval wider than 1/2, or one that tells neither, or a
               prefix in which even the proof promises nothing

An O(.) cannot be refuted by finitely many numbers; this rule refutes what shows no sign of obeying it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log, sqrt

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


def by_horizon(observations: Sequence[Observation], measure: Measure) -> dict[int, FloatArray]:
    """The values of the seeds, horizon by horizon."""
    horizons = sorted({observation.episodes for observation in observations})
    return {T: np.array([measure(one) for one in observations if one.episodes == T]) for T in horizons}


def growth(what: str, observations: Sequence[Observation], measure: Measure, prefix: Measure | None = None) -> Verdict:
    """Judge the growth of `measure`; `prefix` is the share of the trivial bound that the proof's own bound has."""
    samples = by_horizon(observations, measure)
    horizons = list(samples)
    if len(horizons) < 2:
        return untested(f"{what}: runs of at least two horizons are needed")
    last = horizons[-1]
    means = {T: float(np.mean(values)) for T, values in samples.items()}
    figures = {f"mean at {T}": value for T, value in means.items()}
    if not all(np.isfinite(values).all() for values in samples.values()):
        return untested(f"{what}: not defined in some run", **figures)
    if means[last] <= 0.0:
        return holds(f"{what} at T = {last:,} is {means[last]:.3g}: nothing grows", **figures)
    if prefix is not None:
        share = float(np.mean([prefix(one) for one in observations if one.episodes == last]))
        figures["prefix"] = share
        if share > NO_PREFIX:
            return untested(
                f"{what}: still the linear prefix at T = {last:,}, where the proof's own bound is {share:.0%} of the "
                f"trivial one",
                **figures,
            )
    if means[horizons[-2]] <= 0.0:
        return untested(f"{what}: not positive at T = {horizons[-2]:,}", **figures)
    return _by_exponents(what, observations, samples, means, figures)


def _by_exponents(
    what: str,
    observations: Sequence[Observation],
    samples: dict[int, FloatArray],
    means: dict[int, float],
    figures: dict[str, float],
) -> Verdict:
    horizons = list(samples)
    pair = horizons[-2:]
    found = power_law(pair, [samples[T] for T in pair], level=LEVEL)
    allowed = allowed_exponent(observations, pair)
    figures |= {"exponent": found.exponent, "low": found.low, "high": found.high, "allowed": allowed}
    sentence = f"{what} grows with exponent {found} from T = {pair[0]:,} to {pair[1]:,}, allowed {allowed:.2f}"
    if found.high - found.low > WIDEST:
        return untested(f"{sentence}: too noisy to tell", **figures)
    if found.exponent <= allowed + CLOSE and found.high < 1.0:
        return holds(sentence, **figures)
    before = horizons[-3:-1]
    if len(before) == 2 and means[before[0]] > 0.0:
        earlier = power_law(before, [samples[T] for T in before], level=LEVEL).exponent
        figures["exponent before"] = earlier
        if found.exponent < earlier - FALLING:
            return untested(f"{sentence}: above, but still falling (before: {earlier:.2f})", **figures)
    if found.low > allowed:
        return refuted(sentence, **figures)
    return untested(f"{sentence}: too noisy to tell", **figures)


def allowed_exponent(observations: Sequence[Observation], pair: Sequence[int]) -> float:
    """1/2 and the share of the logarithm, in the middle of the two horizons."""
    argument = max(one["log_argument"] for one in observations)
    return 0.5 + 0.5 / log(sqrt(pair[0] * pair[1]) * argument)


def soft_prefix(one: Observation) -> float:
    """The proof's bound of V_T, sum |q - q_hat| + 2 sum xi^T q_hat, as a share of the trivial bound L T."""
    return (one["width"] + one["radii"]) / (one["steps"] * one.episodes)


def safe_prefix(one: Observation) -> float:
    """sum lambda as a share of lambda_0 T."""
    return one["mixing_total"] / (one["first_mixing"] * one.episodes)
