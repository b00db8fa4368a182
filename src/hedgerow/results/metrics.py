"""The numbers of a run and of many: regret, violation, safety, growth exponents, interquartile means.

R_T = sum_t l_t^T q_t - T OPT         may be negative
V_T = max_i sum_t [g_i^T q_t - alpha_i]^+       the maximum outside the sum
net: [max_i sum_t (g_i^T q_t - alpha_i)]^+      safe episodes make up for unsafe ones
safe: g_i^T q_t <= alpha_i in every episode, of the mixture that was played
growth exponent: the slope b of ln y = a + b ln t over the last decade of episodes, T/10 <= t <= T; of the regret
against the optimum of the losses so far, which is the R_t of every t
interquartile mean: the mean of the middle half (of fewer than four seeds: of all)

>>> round(growth_exponent([1, 10, 100, 300, 1000], [[1.0, 3.0, 20.0, 60.0, 200.0]]).exponent, 6)
1.0
>>> float(interquartile_mean([[0.0], [1.0], [3.0], [100.0]])[0])
2.0
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from hedgerow.checks import FloatArray, numeric_array
from hedgerow.errors import InvalidInput

if TYPE_CHECKING:
    from hedgerow.results.groups import Cell

FIT_FROM = 0.1
"""Exponents are fitted to t >= FIT_FROM * T."""
LEAST_POINTS = 3
"""Of a fit: with fewer checkpoints in the last decade there is no exponent."""
RESAMPLES = 2_000
LEAST_USABLE = 0.9
"""The share of the resamples that must have a slope, or the interval of a power law is unbounded."""
LEVEL = 0.95
BATCH_NUMBERS = 2**20
"""Of a bootstrap: about so many numbers are held at a time."""

REGRET = "regret_so_far"
"""The curve whose exponent is fitted: after t episodes, against the optimum of the losses of these t episodes."""

SUMMARY_TYPES = {
    "hash": "string",
    "regret": "float64",
    "loss": "float64",
    "optimum": "float64",
    "violation": "float64",
    "net_violation": "float64",
    "safe": "bool",
    "worst_excess": "float64",
    "mixing_total": "float64",
    "last_mixing_weight": "float64",
    "regret_exponent": "float64",
    "violation_exponent": "float64",
    "t_bar": "int64",
    "rho_hat": "float64",
    "clean": "bool",
    "unclean": "int64",
    "unsafe": "int64",
    "infeasible": "int64",
    "suspect": "int64",
    "iterations": "int64",
    "worst_residual": "float64",
    "least_excess": "float64",
    "refuted_feasibility": "int64",
    "refuted_safety": "int64",
    "mixing_over": "float64",
    "mixing_slack": "float64",
    "mirror_left": "float64",
    "mirror_right": "float64",
}
"""The columns of a summary, behind the names of the cell, with their Arrow types."""


@dataclass(frozen=True)
class Growth:
    """A fitted power law: value = factor * episode^exponent.

    Numbers are NaN where there is no fit: too few points, or values that are not all positive.

    Examples:
        >>> from hedgerow.results.metrics import growth_exponent
        >>> import numpy as np
        >>> t = np.arange(1, 1001)
        >>> round(growth_exponent(t, 3.0 * np.sqrt(t)).exponent, 6)
        0.5
    """

    exponent: float
    """The exponent."""
    low: float
    """The lower end of its bootstrap interval over seeds; NaN for a single seed."""
    high: float
    """The upper end of the interval."""
    factor: float
    """The factor."""
    first: int
    """The first episode of the fit."""

    def __str__(self) -> str:
        return f"{self.exponent:.2f} [{self.low:.2f}, {self.high:.2f}]"


def cell_metrics(cell: Cell, table: Any) -> dict[str, Any]:
    """The row of one cell in a summary; the columns of `SUMMARY_TYPES`."""
    episodes = column(table, "episode")
    last = {name: table.column(name)[-1].as_py() for name in table.column_names}
    violation, facts = violation_curve(table), cell.facts
    worst = [last[f"worst_{i}"] for i in range(num_constraints(table))]
    known = all(excess is not None for excess in worst)
    unclean, residuals = last.get("unclean"), column(table, "residual") if "residual" in last else np.zeros(0)
    return {
        # What this learner does not note, and what nobody watched, is null.
        **{name: last.get(name, facts.get(name)) for name in SUMMARY_TYPES},
        "hash": cell.hash,
        "violation": float(violation[-1]),
        "net_violation": float(net_violation_curve(table, facts["thresholds"])[-1]),
        "safe": all(excess <= 0.0 for excess in worst) if known and facts.get("scored") != "sampled" else None,
        "worst_excess": max(worst, default=None) if known else None,
        "last_mixing_weight": last.get("mixing_weight"),
        "regret_exponent": growth_exponent(episodes, column(table, REGRET)[np.newaxis]).exponent,
        "violation_exponent": growth_exponent(episodes, violation[np.newaxis]).exponent,
        "clean": None if unclean is None else unclean == 0,
        "worst_residual": float(np.max(residuals, initial=0.0)) if len(residuals) else None,
    }


def num_constraints(table: Any) -> int:
    """How many constraints the world of a cell's table has."""
    return sum(name.startswith("excess_") for name in table.column_names)


def column(table: Any, name: str) -> FloatArray:
    """A column (C,) as numbers."""
    return np.asarray(table.column(name).to_numpy(), dtype=np.float64)


def violation_curve(table: Any) -> FloatArray:
    """V after each checkpoint (C,): the largest of the constraints' sums of positive parts; 0 without constraints."""
    sums = [column(table, f"violation_{i}") for i in range(num_constraints(table))]
    result: FloatArray = np.max(sums, axis=0) if sums else np.zeros(table.num_rows)
    return result


def net_violation_curve(table: Any, thresholds: Sequence[float]) -> FloatArray:
    """V with cancellation after each checkpoint (C,), for the thresholds (m,); 0 without constraints."""
    episodes = column(table, "episode")
    sums = [column(table, f"cost_{i}") - episodes * alpha for i, alpha in enumerate(thresholds)]
    result: FloatArray = np.maximum(np.max(sums, axis=0), 0.0) if sums else np.zeros(table.num_rows)
    return result


def interquartile_mean(values: ArrayLike) -> FloatArray:
    """Over the first axis (seeds, ...): the mean without the lowest and the highest quarter."""
    from scipy.stats import trim_mean

    array = numeric_array("the values", values)
    if array.ndim == 0 or len(array) == 0:
        raise InvalidInput("an interquartile mean needs at least one seed")
    return np.asarray(trim_mean(array, 0.25, axis=0), dtype=np.float64)


def interquartile_interval(
    values: ArrayLike, *, level: float = LEVEL, resamples: int = RESAMPLES, seed: int = 0
) -> tuple[float, float]:
    """Estimate how far the interquartile mean of `values` (seeds,) may be from that of infinitely many seeds.

    The interval is the BCa bootstrap of scipy, with a fixed seed: equal values give equal ends. Where leaving out any
    one seed changes nothing, BCa is not defined, and the percentiles of the same bootstrap are taken.

    Args:
        values: One number per seed (seeds,).
        level: How sure the interval is, between 0 and 1.
        resamples: How many times the seeds are drawn anew.
        seed: Of the draws.

    Returns:
        The ends (low, high); NaN for a single seed, and where a value is not a number.

    Raises:
        InvalidInput: If there is no value, or they are not one number per seed.

    Examples:
        >>> low, high = interquartile_interval([1.0, 2.0, 3.0, 4.0, 5.0])
        >>> 1.0 < low < 3.0 < high < 5.0
        True
    """
    from scipy.stats import bootstrap, trim_mean

    numbers = numeric_array("the values", values)
    if numbers.ndim != 1 or len(numbers) == 0:
        raise InvalidInput(f"an interval needs values (seeds,), one number per seed; they are {numbers.shape}")
    if len(numbers) == 1 or not np.all(np.isfinite(numbers)):
        return float("nan"), float("nan")
    if np.all(numbers == numbers[0]):
        return float(numbers[0]), float(numbers[0])

    def mean(sample: FloatArray, axis: int) -> FloatArray:
        return np.asarray(trim_mean(sample, 0.25, axis=axis))

    for method in ("BCa", "percentile"):
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # of data for which BCa is not defined: those come again
            settings = {"n_resamples": resamples, "confidence_level": level, "method": method}
            ends = bootstrap((numbers,), mean, **settings, rng=np.random.default_rng(seed)).confidence_interval
        if np.isfinite(ends.low) and np.isfinite(ends.high):
            break
    return float(ends.low), float(ends.high)


def growth_exponent(
    episodes: ArrayLike,
    values: ArrayLike,
    *,
    fit_from: float = FIT_FROM,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Growth:
    """Fit c t^b to the interquartile mean of `values` (seeds, C) at `episodes` (C,); seeds are resampled for the ends.

    The interval is the percentile bootstrap; a resample whose mean is somewhere not positive has no slope and is left
    out.
    """
    t, y = numeric_array("the episodes", episodes), np.atleast_2d(numeric_array("the values", values))
    if t.ndim != 1 or y.ndim != 2 or y.shape[1] != len(t) or len(t) == 0:
        raise InvalidInput(f"values must be (seeds, {t.size}), one number per episode listed; they are {y.shape}")
    late = t >= fit_from * t[-1]
    first = int(t[late][0])
    log_t, tail = np.log(t[late]), y[:, late]
    intercept, slope = (float(number) for number in _fit(log_t, interquartile_mean(tail)))
    low, high = float("nan"), float("nan")
    if len(tail) > 1 and np.isfinite(slope):
        low, high = _interval(log_t, tail, level, resamples, seed)
    return Growth(slope, low, high, float(np.exp(intercept)), first)


def power_law(
    points: ArrayLike, samples: Sequence[ArrayLike], *, level: float = LEVEL, resamples: int = RESAMPLES, seed: int = 0
) -> Growth:
    """Fit c x^b to the means of `samples`, each (seeds,), at two or more `points` x > 0.

    Unlike the checkpoints of a curve, every point has runs of its own: they are resampled point by point. Where more
    than a tenth of the resamples have a mean that is not positive, the interval is unbounded: it says nothing.
    """
    x, values = numeric_array("the points", points), [numeric_array("the samples", sample) for sample in samples]
    fits = x.ndim == 1 and len(x) == len(values) and all(v.ndim == 1 and len(v) for v in values)
    if not fits or len(x) < 2 or np.any(x <= 0.0):
        raise InvalidInput("a power law needs two or more positive points, and samples (seeds,) at each of them")
    stream, means = np.random.default_rng(seed), np.array([np.mean(v) for v in values])
    if not np.all(means > 0.0):
        raise InvalidInput("a power law needs positive means")
    drawn = [v[stream.integers(0, len(v), size=(resamples, len(v)))].mean(axis=1) for v in values]
    intercept, slope = (float(number) for number in _fit(np.log(x), means, least=2))
    slopes = _fit(np.log(x), np.stack(drawn, axis=-1), least=2)[1]
    vague = np.sum(np.isfinite(slopes)) < LEAST_USABLE * resamples
    low, high = (-np.inf, np.inf) if vague else _ends(slopes, level)
    return Growth(slope, low, high, float(np.exp(intercept)), int(x[0]))


def _fit(log_t: FloatArray, mean: FloatArray, least: int = LEAST_POINTS) -> tuple[FloatArray, FloatArray]:
    """Intercepts and slopes (...) of the lines through the logarithms of `mean` (..., C); NaN where there is none."""
    usable = np.all(np.isfinite(mean) & (mean > 0.0), axis=-1) & (len(log_t) >= least)
    log_y = np.log(np.where(usable[..., np.newaxis], mean, 1.0))
    centred = log_t - np.mean(log_t)
    with np.errstate(invalid="ignore", divide="ignore"):  # a single point has no slope
        slope = np.where(usable, log_y @ centred / (centred @ centred), np.nan)
    return np.mean(log_y, axis=-1) - slope * np.mean(log_t), slope


def _interval(log_t: FloatArray, tail: FloatArray, level: float, resamples: int, seed: int) -> tuple[float, float]:
    """Percentile bootstrap over the seeds of `tail` (seeds, C).

    Not scipy's: it warns of every resample without a slope, which few seeds with a regret around 0 have often.
    """
    stream, batch = np.random.default_rng(seed), max(1, BATCH_NUMBERS // tail.size)
    slopes = []
    for first in range(0, resamples, batch):
        chosen = stream.integers(0, len(tail), size=(min(batch, resamples - first), len(tail)))
        slopes.append(_fit(log_t, interquartile_mean(tail[chosen.T]))[1])  # of (seeds, batch, C)
    return _ends(np.concatenate(slopes), level)


def _ends(slopes: FloatArray, level: float) -> tuple[float, float]:
    """The percentiles of the slopes that exist; NaN if none does."""
    found = slopes[np.isfinite(slopes)]
    if len(found) == 0:
        return float("nan"), float("nan")
    tails = 0.5 * (1.0 - level)
    return float(np.quantile(found, tails)), float(np.quantile(found, 1.0 - tails))
