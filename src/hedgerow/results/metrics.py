"""The numbers of a run, and of many seeds together: regret, violation, safety, intervals, growth exponents.

R_T = sum_t l_t^T q_t - T OPT         may be negative
V_T = max_i sum_t [g_i^T q_t - alpha_i]^+       the maximum outside the sum
net: [max_i sum_t (g_i^T q_t - alpha_i)]^+      safe episodes make up for unsafe ones
safe: g_i^T q_t <= alpha_i in every episode, of the mixture that was played
interval over seeds: mean +- t(n - 1) s / sqrt(n), Student's, of level 95 %; none for one seed (decision 29)
growth exponent: the slope b of ln y = a + b ln t over the last decade of episodes, T/10 <= t <= T; of the regret
against the optimum of the losses so far, which is the R_t of every t

>>> round(growth_exponent([1, 10, 100, 300, 1000], [[1.0, 3.0, 20.0, 60.0, 200.0]]).exponent, 6)
1.0
>>> [float(end) for end in seed_interval([1.0, 2.0, 3.0])]  # doctest: +ELLIPSIS
[2.0, -0.484..., 4.484...]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, nan
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hedgerow.checks import FloatArray, numeric_array
from hedgerow.display.numbers import count_of
from hedgerow.display.table import NOTHING, TableCell
from hedgerow.environments.columns import Column, spread
from hedgerow.errors import InvalidInput
from hedgerow.simulation.result import BASELINE_LOSS, COMMON

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
TOL_SAFE = 1e-9
"""An expected cost that exceeds its threshold by no more than this is no violation, but rounding; and a sum over T
episodes that is no larger than T times this is 0."""

REGRET = "regret_so_far"
"""The curve whose exponent is fitted: after t episodes, against the optimum of the losses of these t episodes."""
INTERVALS = "Means over seeds, with 95 % intervals (Student's) in brackets: none for one seed, or for seeds that agree."
"""What stands below tables."""
BANDS = "Line: mean over seeds; band: its 95 % interval."
"""What stands beside curves."""


# One run --------------------------------------------------------------------------------------------------------------


class Metric(NamedTuple):
    """A column of summaries that follows from a cell and its table."""

    column: Column
    of: Callable[[Cell, Any], float | bool | None]


def run_columns(cell: Cell) -> tuple[Column, ...]:
    """Everything of a run that is one number, in the order of tables: scores, metrics, what its learner declares."""
    scores = spread(COMMON, len(cell.constraints))
    declared = (*scores, *(metric.column for metric in METRICS), *cell.columns)
    return tuple(column for column in declared if column.reduce)


def run_numbers(cell: Cell, table: Any) -> dict[str, Any]:
    """The numbers of a run by the names of `run_columns`; None where there is none."""
    metrics = {metric.column.name: metric.of(cell, table) for metric in METRICS}
    return {
        column.name: metrics[column.name] if column.name in metrics else _number(column, cell, table)
        for column in run_columns(cell)
    }


def _number(column: Column, cell: Cell, table: Any) -> Any:
    if column.fact:
        return cell.facts.get(column.name)
    if column.name not in table.column_names:
        return None
    if column.reduce in ("largest", "least"):
        values = [value for value in table.column(column.name).to_pylist() if value is not None]
        return (max if column.reduce == "largest" else min)(values, default=None)
    return table.column(column.name)[-1].as_py()


def _worst(cell: Cell, table: Any) -> float | None:
    """The largest cost minus threshold of any constraint and episode; None where it is not known, or without any."""
    worst = [table.column(f"worst_{i}")[-1].as_py() for i in range(num_constraints(table))]
    return None if None in worst else max(worst, default=None)


def _safe(cell: Cell, table: Any) -> bool | None:
    worst = _worst(cell, table)
    if (num_constraints(table) and worst is None) or cell.facts.get("scored") == "sampled":
        return None
    return worst is None or worst <= 0.0


def _per_episode(cell: Cell, table: Any) -> float:
    found = float(numbers_in(table, "regret")[-1]) / cell.episodes
    return 0.0 if abs(found) <= TOL_SAFE else found


def _unsafe(cell: Cell, table: Any) -> int:
    """The episodes over a limit; those that only rounding makes unsafe do not count."""
    worst = _worst(cell, table)
    return int(numbers_in(table, "unsafe")[-1]) if worst is not None and worst > TOL_SAFE else 0


def _share_saved(of_losses: Callable[[Cell, Any], float | None]) -> Callable[[Cell, Any], float | None]:
    """By how much a sum of losses is below the baseline's; None without a baseline that loses anything."""

    def found(cell: Cell, table: Any) -> float | None:
        lost = numbers_in(table, BASELINE_LOSS.name)[-1] if BASELINE_LOSS.name in table.column_names else 0.0
        own = of_losses(cell, table)
        return None if own is None or not lost > 0.0 else float(1.0 - own / lost)

    return found


def _mixing(of_weights: Callable[[Cell, Any], float]) -> Callable[[Cell, Any], float | None]:
    """A number about mixing weights; None for learners that never mix."""

    def found(cell: Cell, table: Any) -> float | None:
        known = {"mixing_weight", "mixing_total"} <= set(table.column_names)
        return of_weights(cell, table) if known and numbers_in(table, "mixing_total")[-1] > 0.0 else None

    return found


def _exponent(curve: Callable[[Any], FloatArray]) -> Callable[[Cell, Any], float]:
    return lambda cell, table: growth_exponent(numbers_in(table, "episode"), curve(table)[np.newaxis]).exponent


METRICS = (
    Metric(Column("optimum", words="loss of the best policy, per episode", tables=()),
           lambda cell, table: cell.facts.get("optimum")),
    Metric(Column("saved", "float64", "saved", "share of the baseline's loss that was saved; negative if more was lost",
                  "mean", "share", ("board",)), _share_saved(lambda cell, table: float(numbers_in(table, "loss")[-1]))),
    Metric(Column("possible", words="share of the baseline's loss that the best policy saves", show="share", tables=()),
           _share_saved(lambda cell, table: cell.facts["optimum"] and cell.facts["optimum"] * cell.episodes)),
    Metric(Column("over", "int64", "over a limit", "episodes that exceed a threshold, by more than rounding", "mean",
                  "whole", (), least=0.0),
           lambda cell, table: None if cell.facts.get("scored") == "sampled" else _unsafe(cell, table)),
    Metric(Column("left", "float64", "left to the baseline", "episodes left to the baseline, expected", "mean", "whole",
                  (), least=0.0), _mixing(lambda cell, table: float(numbers_in(table, "mixing_total")[-1]))),
    Metric(Column("regret_per_episode", label="R_T / T", words="regret per episode", tables=("board",)), _per_episode),
    Metric(Column("regret_exponent", "float64", "exponent b", "R_t ≈ c·t^b over the last decade of episodes, fitted to "
                  "the mean of the seeds, with the 95 % bootstrap interval over seeds; 0.5 is the order √T, 1 means "
                  "that nothing is learnt; a dash where the regret is not positive", "mean", "fixed",
                  ("answer", "short")),
           _exponent(lambda table: numbers_in(table, REGRET))),
    Metric(Column("violation_exponent", show="fixed", tables=()), _exponent(lambda table: violation_curve(table))),
    Metric(Column("violation", "float64", "violation V_T", "max over constraints of the sum over episodes of what the "
                  "expected cost exceeds its threshold by", "mean", "sum", ("answer", "short", "latex", "board"),
                  least=0.0),
           lambda cell, table: float(violation_curve(table)[-1])),
    Metric(Column("net_violation", "float64", "net V_T", "the same with cancellation: episodes below a threshold make "
                  "up for those above it", "mean", "sum", ("answer", "latex", "board"), least=0.0),
           lambda cell, table: float(net_violation_curve(table, cell.facts["thresholds"])[-1])),
    Metric(Column("safe", "bool", "safe", "seeds in which every episode respected every threshold, for the mixture "
                  "that was played", "seeds", tables=("answer", "short", "latex")), _safe),
    Metric(Column("worst_excess", reduce="largest", tables=()), _worst),
    Metric(Column("worst_margin", "float64", "worst margin", "threshold minus expected cost, the least over "
                  "constraints, episodes and seeds", "least", tables=("answer", "latex")),
           lambda cell, table: None if (worst := _worst(cell, table)) is None else -worst),
    Metric(Column("unsafe_share", "float64", "unsafe", "share of the episodes that exceed a threshold", "mean", "share",
                  ("board",), least=0.0), lambda cell, table: _unsafe(cell, table) / cell.episodes),
    Metric(Column("mixing_first", label="first λ", words="weight of the safe policy in the first episode",
                  tables=("short",), least=0.0),
           _mixing(lambda cell, table: float(numbers_in(table, "mixing_weight")[0]))),
    Metric(Column("mixing_mean", label="mean λ", words="weight of the safe policy, mean over episodes",
                  tables=("short", "board"), least=0.0),
           _mixing(lambda cell, table: float(numbers_in(table, "mixing_total")[-1]) / cell.episodes)),
    Metric(Column("mixing_last", label="last λ", words="weight of the safe policy in the last episode",
                  tables=("short", "board"), least=0.0),
           _mixing(lambda cell, table: float(numbers_in(table, "mixing_weight")[-1]))),
)  # fmt: skip
"""What follows from the table of every run."""

TIMINGS = (
    Metric(Column("episodes_per_second", "float64", "episodes / s", "median over seeds, of the loop alone where its "
                  "time is known, on the machine that is named", "median", "whole", ("answer", "short")),
           lambda cell, table: cell.episodes_per_second),
    Metric(Column("microseconds", "float64", "µs / episode", "of the loop alone, median over seeds", "median",
                  tables=("board",)),
           lambda cell, table: 1e6 * cell.seconds["loop"] / cell.episodes if cell.seconds.get("loop") else None),
)  # fmt: skip
"""What differs from run to run: summaries do without."""


def num_constraints(table: Any) -> int:
    """How many constraints the world of a cell's table has."""
    return sum(name.startswith("excess_") for name in table.column_names)


def numbers_in(table: Any, name: str) -> FloatArray:
    """A column (C,) as numbers."""
    return np.asarray(table.column(name).to_numpy(), dtype=np.float64)


def violation_curve(table: Any) -> FloatArray:
    """V after each checkpoint (C,): the largest of the constraints' sums of positive parts; 0 without constraints."""
    sums = [numbers_in(table, f"violation_{i}") for i in range(num_constraints(table))]
    result: FloatArray = np.max(sums, axis=0) if sums else np.zeros(table.num_rows)
    return result


def net_violation_curve(table: Any, thresholds: Sequence[float]) -> FloatArray:
    """V with cancellation after each checkpoint (C,), for the thresholds (m,); 0 without constraints."""
    episodes = numbers_in(table, "episode")
    sums = [numbers_in(table, f"cost_{i}") - episodes * alpha for i, alpha in enumerate(thresholds)]
    result: FloatArray = np.maximum(np.max(sums, axis=0), 0.0) if sums else np.zeros(table.num_rows)
    return result


# Many seeds -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Estimate:
    """A number over seeds, with the ends of its interval where it has one.

    Examples:
        >>> from hedgerow.results.metrics import mean_over_seeds
        >>> mean_over_seeds([2.0, 2.0]), mean_over_seeds([4.0]).seeds
        (Estimate(value=2.0, low=2.0, high=2.0, seeds=2), 1)
    """

    value: float
    """The mean, sum, largest, ... over seeds."""
    low: float
    """The lower end of the 95 % interval of a mean; NaN for a single seed, and for what is no mean."""
    high: float
    """The upper end."""
    seeds: int
    """The number of seeds."""


def seed_interval(values: ArrayLike, least: float | None = None) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The mean of `values` (seeds, ...) over seeds, and the ends of its interval, each (...).

    The interval is Student's of level 95 %, the only kind in all outputs: mean +- t(n - 1) s / sqrt(n). It is exact for
    normal values, and wide where seeds are few, as it should be: a bootstrap of three numbers cannot leave their range.
    One seed has no interval: the ends are NaN. Seeds that agree have one of width 0. No end is below `least`.
    """
    from scipy.special import stdtrit

    numbers = numeric_array("the values", values)
    if numbers.ndim == 0 or len(numbers) == 0:
        raise InvalidInput(f"an interval over seeds needs values (seeds, ...), not an array of shape {numbers.shape}")
    count, mean = len(numbers), np.mean(numbers, axis=0)
    if count == 1:
        return mean, np.full_like(mean, nan), np.full_like(mean, nan)
    with np.errstate(invalid="ignore"):  # what is not finite has no interval
        # In units of the largest: the squares of large numbers overflow.
        size = np.max(np.abs(numbers), axis=0)
        size = np.where(size > 0.0, size, 1.0)
        half = stdtrit(count - 1, 0.5 * (1.0 + LEVEL)) * np.std(numbers / size, axis=0, ddof=1) / np.sqrt(count) * size
        low, high = mean - half, mean + half
    return mean, low if least is None else np.maximum(low, least), high


def mean_over_seeds(values: ArrayLike, *, least: float | None = None, small: float = 0.0) -> Estimate:
    """The mean of one number per seed (seeds,), with its interval; what is no larger than `small` is rounding."""
    numbers = numeric_array("the values", values)
    if numbers.ndim != 1 or len(numbers) == 0:
        raise InvalidInput(f"a mean over seeds needs values (seeds,), one number per seed; they are {numbers.shape}")
    numbers = np.where(np.abs(numbers) <= small, 0.0, numbers)
    if len(numbers) > 1 and np.ptp(numbers) <= small:  # equal numbers need not be equal to their mean
        return Estimate(float(numbers[0]), float(numbers[0]), float(numbers[0]), len(numbers))
    mean, low, high = (float(end) for end in seed_interval(numbers, least))
    return Estimate(mean, low, high, len(numbers))


def over_seeds(column: Column, values: Sequence[float | bool | None], episodes: int) -> Estimate | None:
    """The numbers of runs of so many episodes, one per seed, as one number; None if there is none.

    A mean, a sum and a rate are those of all seeds or of none.
    """
    known = np.array([float(value) for value in values if value is not None and isfinite(value)])
    if not len(known) or (len(known) < len(values) and column.reduce in ("mean", "sum", "rate")):
        return None
    if column.reduce == "mean":
        return mean_over_seeds(known, least=column.least, small=TOL_SAFE * episodes if column.show == "sum" else 0.0)
    return Estimate(float(_REDUCED[column.reduce](known, column, episodes)), nan, nan, len(values))


_REDUCED: Mapping[str, Callable[[FloatArray, Column, int], Any]] = {
    "sum": lambda known, column, episodes: known.sum(),
    "rate": lambda known, column, episodes: known.sum() / (episodes * len(known)),
    "largest": lambda known, column, episodes: known.max(),
    "least": lambda known, column, episodes: known.min(),
    "median": lambda known, column, episodes: np.median(known),
    "seeds": lambda known, column, episodes: np.sum(known > 0.0 if column.type == "bool" else known == 0.0),
}


def number_cell(column: Column | None, found: Estimate | None) -> TableCell:
    """A number over seeds in a table, as its column declares it, with its interval where it has one."""
    if column is None or found is None or not isfinite(found.value):
        return NOTHING
    if column.reduce == "seeds":
        tone = ("good" if found.value == found.seeds else "bad") if column.type == "bool" else ""
        return TableCell(count_of(int(found.value), found.seeds), tone=tone)
    show, value, low, high = column.show, found.value, found.low, found.high
    return TableCell(
        lambda numbers: numbers.show(show, value),
        (lambda numbers: numbers.interval(low, high, lambda end: numbers.show(show, end))) if low < high else "",
    )


# Growth ---------------------------------------------------------------------------------------------------------------


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


def growth_exponent(
    episodes: ArrayLike,
    values: ArrayLike,
    *,
    fit_from: float = FIT_FROM,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Growth:
    """Fit c t^b to the mean of `values` (seeds, C) at `episodes` (C,); seeds are resampled for the ends.

    The interval is the percentile bootstrap, because an exponent is no mean of numbers of the seeds; a resample whose
    mean is somewhere not positive has no slope and is left out.
    """
    t, y = numeric_array("the episodes", episodes), np.atleast_2d(numeric_array("the values", values))
    if t.ndim != 1 or y.ndim != 2 or y.shape[1] != len(t) or len(t) == 0:
        raise InvalidInput(f"values must be (seeds, {t.size}), one number per episode listed; they are {y.shape}")
    late = t >= fit_from * t[-1]
    first = int(t[late][0])
    log_t, tail = np.log(t[late]), y[:, late]
    intercept, slope = (float(number) for number in _fit(log_t, tail.mean(axis=0)))
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
        slopes.append(_fit(log_t, tail[chosen.T].mean(axis=0))[1])  # of (seeds, batch, C)
    return _ends(np.concatenate(slopes), level)


def _ends(slopes: FloatArray, level: float) -> tuple[float, float]:
    """The percentiles of the slopes that exist; NaN if none does."""
    found = slopes[np.isfinite(slopes)]
    if len(found) == 0:
        return float("nan"), float("nan")
    tails = 0.5 * (1.0 - level)
    return float(np.quantile(found, tails)), float(np.quantile(found, 1.0 - tails))
