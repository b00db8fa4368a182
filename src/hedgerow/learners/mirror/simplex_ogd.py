"""The dual player of CV-OPS: online gradient descent on the simplex (paper, section 6; the algorithm is Zinkevich's).

    phi_{t+1} = projection of phi_t - (c / sqrt(t)) loss_t onto { phi >= 0, sum phi = 1 },     phi_1 uniform

With |loss_t|_2 <= G and the diameter D = sqrt(2) of the simplex the regret after any number tau of rounds is at most
(D^2 / (2c) + G^2 c) sqrt(tau); c = D / (sqrt(2) G) makes that 2 G sqrt(tau): surely, and without a horizon. In CV-OPS a
loss has m entries in [alpha_i - L, alpha_i], hence G = sqrt(m) L and C = 2 sqrt(m) L. For m = 1 the simplex is a point,
and C = 0.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.compiling.kernels import kernel


def step_constant(dimension: int, largest_entry: float) -> float:
    """c = D / (sqrt(2) G) for losses whose `dimension` entries are at most `largest_entry` in absolute value."""
    return 1.0 / (sqrt(dimension) * largest_entry)


def regret_constant(dimension: int, largest_entry: float) -> float:
    """C: the regret after tau rounds is at most C sqrt(tau), whatever the losses."""
    return 0.0 if dimension <= 1 else 2.0 * sqrt(dimension) * largest_entry


def first_point(dimension: int) -> FloatArray:
    """phi_1: uniform."""
    return np.full(dimension, 1.0 / dimension) if dimension else np.zeros(0)


@kernel
def descend(point: FloatArray, loss: FloatArray, round_number: int, constant: float) -> None:
    """One round, numbered from 1: move `point` in place."""
    step = constant / sqrt(round_number)
    for i in range(len(point)):
        point[i] -= step * loss[i]
    project_on_simplex(point)


@kernel
def project_on_simplex(point: FloatArray) -> None:
    """Replace `point` by the nearest point of the simplex: max(point - tau, 0) with the one tau that makes the sum 1.

    tau is the average excess of the entries that stay positive. Start with all of them and drop those below tau: each
    round drops at least one, and no dropped one would come back, because tau only grows. No sorting, no memory.
    """
    count = len(point)
    total = 0.0
    for i in range(count):
        total += point[i]
    tau = (total - 1.0) / max(1, count)
    while True:
        total, kept = 0.0, 0
        for i in range(len(point)):
            if point[i] > tau:
                total += point[i]
                kept += 1
        if kept == count or kept == 0:
            break
        count = kept
        tau = (total - 1.0) / kept
    for i in range(len(point)):
        point[i] = max(0.0, point[i] - tau)
