"""Times as figures: the median, and the spread from the 10th to the 90th percentile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


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
