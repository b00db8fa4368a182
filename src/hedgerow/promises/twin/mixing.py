"""lambda from U, and the rates."""

from __future__ import annotations

from collections.abc import Sequence
from math import log, sqrt

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.promises.twin.given import Given


def mixing_weight(given: Given, bounds: FloatArray, beta: FloatArray) -> float:
    """The least lambda with lambda beta_i + (1 - lambda) min(U_i, ceiling_i) <= alpha_i for all i."""
    least = 0.0
    for i in given.binding:
        alpha, U = float(given.view.thresholds[i]), min(float(bounds[i]), float(given.ceilings[i]))
        if alpha < U:
            least = max(least, (U - alpha) / (U - float(beta[i])))
    return min(least, 1.0)


def rate(given: Given, episodes: float, delta: float) -> float:
    """eta = gamma = sqrt(L ln(L|X||A|/delta) / (T|X||A|))."""
    pairs = given.num_states * given.num_actions
    return sqrt(given.steps * log(given.steps * pairs / delta) / (episodes * pairs))


def doubling_rate(given: Given, done: int) -> float:
    """The rate after `done` episodes without a horizon: segments of 1, 2, 4, ... episodes, delta / ((j+1)(j+2))."""
    j = (done + 1).bit_length() - 1
    return rate(given, 2.0**j, given.delta / ((j + 1.0) * (j + 2.0)))


def path_logs(given: Given, policies: FloatArray, rows: Sequence[int]) -> FloatArray:
    """(K,): the log-probability of the actions of a path (its rows) under each of the policies (K, num_rows)."""
    with np.errstate(divide="ignore"):
        logs: FloatArray = np.log(policies[:, list(rows)]).sum(axis=1)
    return logs
