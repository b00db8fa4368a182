"""The value of a matrix game: the master program of cutting planes, in m + 1 variables and without a solver.

    max { t : t <= cut_j . theta for j = 1..n, theta in the simplex }

Entries are mapped onto A in [1, 2], which maps the value likewise. Then theta = x / sum x for the solution of

    min { sum x : A x >= 1, x >= 0 },       dual:  max { sum y : A^T y <= 1, y >= 0 }

The dual can start from y = 0. Simplex pivots in a tableau of m rows lead to its optimum, where x are the multipliers of
its rows, and t corresponds to 1 / sum x.

    cuts (1, 0), (0, 1)   ->   theta = (1/2, 1/2), t = 1/2
"""

from __future__ import annotations

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.compiling.kernels import kernel

TINY = 1e-12
"""Smaller entries of the tableau are rounding: its numbers are about 1."""


@kernel
def solve_game(cuts: FloatArray, count: int, tableau: FloatArray, theta: FloatArray) -> float:
    """Write the best theta (m,) against the first `count` cuts (n, m) and return its value.

    `tableau` is scratch of at least m + 1 rows and n + m + 1 columns.
    """
    m = cuts.shape[1]
    least, most = np.inf, -np.inf
    for j in range(count):
        for i in range(m):
            least, most = min(least, cuts[j, i]), max(most, cuts[j, i])
    span = most - least if most > least else 1.0
    end = count + m
    for i in range(m):
        for j in range(count):
            tableau[i, j] = 1.0 + (cuts[j, i] - least) / span
        for j in range(m):
            tableau[i, count + j] = 1.0 if i == j else 0.0
        tableau[i, end] = 1.0
    for j in range(end + 1):
        tableau[m, j] = -1.0 if j < count else 0.0
    limit = 50 * (m + count)
    for pivot in range(limit):
        column = _entering(tableau, m, end, pivot > limit // 2)
        if column < 0:
            break
        _pivot(tableau, m, end, _leaving(tableau, m, end, column), column)
    total = 0.0
    for i in range(m):
        theta[i] = max(tableau[m, count + i], 0.0)
        total += theta[i]
    for i in range(m):
        theta[i] /= total
    return (1.0 / total - 1.0) * span + least


@kernel
def _entering(tableau: FloatArray, m: int, end: int, first: bool) -> int:
    """The column of the most negative reduced cost, or the `first` negative one, which cannot cycle; -1 if none is."""
    column, best = -1, -TINY
    for j in range(end):
        if tableau[m, j] < best:
            column, best = j, tableau[m, j]
            if first:
                break
    return column


@kernel
def _leaving(tableau: FloatArray, m: int, end: int, column: int) -> int:
    """The row of the least ratio; there is one, because the columns of A are positive."""
    row, least = 0, np.inf
    for i in range(m):
        if tableau[i, column] > TINY and tableau[i, end] / tableau[i, column] < least:
            row, least = i, tableau[i, end] / tableau[i, column]
    return row


@kernel
def _pivot(tableau: FloatArray, m: int, end: int, row: int, column: int) -> None:
    scale = 1.0 / tableau[row, column]
    for j in range(end + 1):
        tableau[row, j] *= scale
    for i in range(m + 1):
        share = tableau[i, column]
        if i != row and share != 0.0:
            for j in range(end + 1):
                tableau[i, j] -= share * tableau[row, j]
