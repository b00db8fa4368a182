"""The Newton system, block tridiagonal in the layers with an m-wide border.

    [ H   B ] [ d_v     ]   [ g_v     ]
    [ B^T C ] [ d_theta ] = [ g_theta ]

H is factored layer after layer by block Cholesky. Eliminating the layers before k leaves a matrix that is at least
diag(outflow) on layer k: every pivot is bounded below by the outflow of its state. This floor repairs rounding, and the
factorisation cannot fail. A further floor, the inflow / 16, binds only where outflow and inflow differ by that much: it
keeps the step of such a state to about 16 (a factor e^16 in mass), where the quadratic model means nothing. Factors are
upper triangular, row by row: every inner loop runs over contiguous memory.
"""

from __future__ import annotations

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.compiling.kernels import kernel
from hedgerow.model.kernel_layout import Index
from hedgerow.projection.short_vectors import add_multiple
from hedgerow.projection.workspace import Workspace

LEAST_RATIO = 1.0 / 16.0


@kernel
def factor(index: Index, ws: Workspace) -> None:
    """Overwrite `diagonal` by the Cholesky factors U_k and `coupling` by W_k = U_k^{-T} (sum_a w p)."""
    num_layers = len(index.state_start) - 2
    for k in range(num_layers):
        _cholesky(index, k, ws)
        if k < num_layers - 1:
            _couple(index, k, ws)


@kernel
def _cholesky(index: Index, k: int, ws: Workspace) -> None:
    """U^T U = block k of `diagonal` (n, n), upper triangle, in place, with the pivots bounded below."""
    matrix, start, first = ws.diagonal, ws.diagonal_start[k], index.state_start[k]
    n = index.state_start[k + 1] - first
    for i in range(n):
        row = np.uint64(start + i * n)
        x = first + i
        pivot = max(matrix[row + np.uint64(i)], ws.outflow[x], LEAST_RATIO * ws.inflow[x], 1e-300)
        root = np.sqrt(pivot)
        matrix[row + np.uint64(i)] = root
        inverse = 1.0 / root
        for j in range(np.uint64(i + 1), np.uint64(n)):
            matrix[row + j] *= inverse
        for r in range(i + 1, n):
            entry = matrix[row + np.uint64(r)]
            if entry != 0.0:
                add_multiple(matrix, start + r * n + r, -entry, matrix, start + i * n + r, n - r)


@kernel
def _couple(index: Index, k: int, ws: Workspace) -> None:
    """W = U^{-T} coupling of layer k in place, then the next block of `diagonal` minus W^T W."""
    diagonal, start, next_start = ws.diagonal, ws.diagonal_start[k], ws.diagonal_start[k + 1]
    coupling, block, after = ws.coupling, ws.coupling_start[k], index.state_start[k + 1]
    n, width = after - index.state_start[k], index.state_start[k + 2] - after
    for i in range(n):
        row = np.uint64(block + i * width)
        for r in range(i):
            entry = diagonal[start + r * n + i]
            if entry != 0.0:
                add_multiple(coupling, block + i * width, -entry, coupling, block + r * width, width)
        inverse = 1.0 / diagonal[start + i * n + i]
        for j in range(np.uint64(width)):
            coupling[row + j] *= inverse
        for r in range(width):
            entry = coupling[row + np.uint64(r)]
            if entry != 0.0:
                add_multiple(diagonal, next_start + r * width + r, -entry, coupling, block + i * width + r, width - r)


@kernel
def solve_forward(index: Index, ws: Workspace, rhs: FloatArray) -> None:
    """rhs <- U^{-T} rhs over all layers; the blocks O are -coupling, hence the sign."""
    state_start, diagonal, coupling = index.state_start, ws.diagonal, ws.coupling
    num_layers = len(state_start) - 2
    for k in range(num_layers):
        first, after = state_start[k], state_start[k + 1]
        n, width = after - first, state_start[k + 2] - after
        for i in range(n):
            row = ws.diagonal_start[k] + i * n
            value = rhs[first + i] / diagonal[row + i]
            rhs[first + i] = value
            add_multiple(rhs, first + i + 1, -value, diagonal, row + i + 1, n - i - 1)
            if k < num_layers - 1:
                add_multiple(rhs, after, value, coupling, ws.coupling_start[k] + i * width, width)


@kernel
def solve_backward(index: Index, ws: Workspace, rhs: FloatArray) -> None:
    """rhs <- U^{-1} rhs over all layers."""
    state_start, diagonal, coupling = index.state_start, ws.diagonal, ws.coupling
    num_layers = len(state_start) - 2
    for k in range(num_layers - 1, -1, -1):
        first, after = state_start[k], state_start[k + 1]
        n, width = after - first, state_start[k + 2] - after
        for i in range(n - 1, -1, -1):
            value = rhs[first + i]
            if k < num_layers - 1:
                source, there = np.uint64(ws.coupling_start[k] + i * width), np.uint64(after)
                for j in range(np.uint64(width)):
                    value += coupling[source + j] * rhs[there + j]
            row, here = np.uint64(ws.diagonal_start[k] + i * n), np.uint64(first)
            for j in range(np.uint64(i + 1), np.uint64(n)):
                value -= diagonal[row + j] * rhs[here + j]
            rhs[first + i] = value / diagonal[row + np.uint64(i)]
