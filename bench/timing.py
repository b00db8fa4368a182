"""Times as figures: processor time of calls, the median, and the spread from the 10th to the 90th percentile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from math import ceil
from time import process_time

import numpy as np

READINGS = 2_001
"""Pairs of readings of the clock whose difference is taken for what a reading costs"""


@dataclass(frozen=True)
class Spread:
    """Seconds of repeated measurements."""

    median: float
    p10: float
    p90: float
    count: int

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Spread:
        p10, median, p90 = np.quantile(np.asarray(seconds, dtype=np.float64), (0.1, 0.5, 0.9))
        return cls(float(median), float(p10), float(p90), len(seconds))


@cache
def reading() -> float:
    """What an interval of `process_time` holds of the clock itself: half a microsecond, which short calls feel."""
    return float(np.median([-(process_time() - process_time()) for _ in range(READINGS)]))


def _nothing() -> None:
    pass


def clocked(
    function: Callable[[], object], count: int, before: Callable[[], object] = _nothing, batch: int = 1
) -> list[float]:
    """Processor seconds of a call, `count` times: each the mean of `batch` calls after one untimed `before`."""
    own, seconds = reading(), []
    for _ in range(count):
        before()
        begun = process_time()
        for _ in range(batch):
            function()
        seconds.append(max(process_time() - begun - own, 0.0) / batch)
    return seconds


def batch_for(function: Callable[[], object], seconds: float) -> int:
    """How many calls take about so many seconds together."""
    return max(1, ceil(seconds / max(min(clocked(function, 3)), 1e-9)))


def duration(seconds: float) -> str:
    """Three digits and a unit: `12.3 us`, `1.24 s`."""
    for unit, factor in (("s", 1.0), ("ms", 1e3)):
        if seconds * factor >= 0.9995:
            return f"{_three_digits(seconds * factor)} {unit}"
    return f"{_three_digits(seconds * 1e6)} us"


def at_most(seconds: float | None) -> str:
    """A goal as tables show it; None if there is none."""
    return "-" if seconds is None else f"<= {duration(seconds)}"


def _three_digits(value: float) -> str:
    digits = 0 if value >= 99.95 else (1 if value >= 9.995 else 2)
    return f"{value:.{digits}f}"
