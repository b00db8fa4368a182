"""lambda in the course of a run, between two models of the run.

least    every episode so far explored, whatever the coin said, and the own policy is that of the model
most     only the episodes of the own policy explored, 1 - lambda of them, while the baseline showed nothing new; and
         the own policy is as optimistic as its bounds let it be

With w(e) the lambda that e explored episodes lead to, `most` follows from e' = 1 - w(e): e episodes have explored after
the time t(e), the integral of 1 / (1 - w), and the baseline plays T - e(T) of T episodes. This matters wherever w is
near 1: a learner that hardly explores hardly learns.
"""

from __future__ import annotations

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.experiments.forecast.bounds import Forecaster, Mixing

POINTS = 36
"""Numbers of explored episodes at which bounds are computed; between them lambda is a line in ln e"""
FINE = 4_000
"""Points of the integral"""
STUCK = 1.0 - 1e-9
"""With this lambda nothing is ever explored."""


class Course:
    """The course of a run of at most `episodes`, after a log of `logged` episodes of uniform actions."""

    def __init__(self, caster: Forecaster, episodes: int, logged: int = 0) -> None:
        self.caster, self.logged = caster, logged
        explored = np.unique(np.concatenate(([0], np.rint(np.geomspace(1, max(1, episodes), POINTS))))).astype(np.int64)
        weights = np.array([caster.mixing(int(e) + logged) for e in explored])
        self._explored = np.unique(np.concatenate(([0.0], np.geomspace(0.1, max(1, episodes), FINE))))
        self._least, self._most = (np.interp(np.log1p(self._explored), np.log1p(explored), w) for w in weights.T)
        self._time = _integral(self._explored, 1.0 / (1.0 - np.minimum(self._most, STUCK)))

    def at(self, t: int) -> Mixing:
        """lambda after t episodes."""
        least = self.caster.mixing(t + self.logged).least
        most = float(np.interp(self.explored(t), self._explored, self._most))
        return Mixing(least, max(least, most))

    def explored(self, t: float) -> float:
        """How many of t episodes the own policy has explored at least."""
        return float(np.interp(t, self._time, self._explored))

    def mean(self, episodes: int) -> Mixing:
        """The share of the episodes that is left to the baseline."""
        inside = np.minimum(self._explored, episodes)
        least = float(_integral(inside, self._least)[-1]) / episodes
        return Mixing(least, max(least, 1.0 - self.explored(episodes) / episodes))


def _integral(x: FloatArray, y: FloatArray) -> FloatArray:
    """The integral of y from x[0] to each of x, by trapezoids."""
    areas = 0.5 * (y[1:] + y[:-1]) * np.diff(x)
    return np.concatenate(([0.0], np.cumsum(areas)))
