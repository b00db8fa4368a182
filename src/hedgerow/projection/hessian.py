"""The generalised Hessian of the small dual, by layers.

    -H = sum_{x,a} w [ d d^T + J ],   d = e_x - p - c  (coordinates: x, layer k+1, theta),
    J = diag(p_F) - p_F p_F^T / sum_F p  on the free successors F, 0 elsewhere.

Block D of layer k+1: diag(outflow) + sum over incoming rows of w (p p^T + J). A row without active bounds contributes
w diag(p) only, so the sum starts from diag(inflow) and just the rows at a bound need a dense correction
w [ p p^T - p_F p_F^T / sum_F p - diag(p_bound) ].
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.kernels import kernel
from hedgerow.model.index import Index
from hedgerow.projection.dual import KernelProblem, is_full
from hedgerow.projection.short_vectors import add_multiple
from hedgerow.projection.workspace import Workspace


@kernel
def assemble(index: Index, problem: KernelProblem, num_candidates: int, ws: Workspace) -> None:
    """Write `diagonal` (upper triangles), `coupling`, `border` (rows of the candidates) and `schur` (the corner)."""
    _assemble_pass(
        index.row_start, index.successor, index.state_start, index.num_actions, problem.costs, num_candidates,
        ws.candidate, ws.w, ws.p, ws.bound, ws.num_bound, ws.row_scratch, ws.held, ws.inflow, ws.outflow, ws.diagonal,
        ws.diagonal_start, ws.flow, ws.coupling, ws.coupling_start, ws.border, ws.schur,
    )  # fmt: skip


@kernel
def _assemble_pass(
    row_start: IntArray,
    successor: NDArray[np.int32],
    state_start: IntArray,
    num_actions: int,
    costs: FloatArray,
    num_candidates: int,
    candidate: IntArray,
    w: FloatArray,
    p: FloatArray,
    bound: NDArray[np.int8],
    num_bound: IntArray,
    scratch: FloatArray,
    held: FloatArray,
    inflow: FloatArray,
    outflow: FloatArray,
    diagonal: FloatArray,
    diagonal_start: IntArray,
    flow: FloatArray,
    coupling: FloatArray,
    coupling_start: IntArray,
    border: FloatArray,
    schur: FloatArray,
) -> None:
    """The work of `assemble`, on plain arrays."""
    num_layers = len(state_start) - 2
    for i in range(num_candidates):
        for x in range(state_start[num_layers] + 1):
            border[i, x] = 0.0
        for j in range(i + 1):
            schur[i, j] = 0.0
    for k in range(num_layers):
        here, first, last = state_start[k], state_start[k + 1], state_start[k + 2]
        if k == 0:
            diagonal[0] = outflow[0]
        if k < num_layers - 1:
            width, block = last - first, diagonal_start[k + 1]
            for j in range(width * width):
                diagonal[block + j] = 0.0
            for x in range(first, last):
                held[x] = 0.0
            _correct_layer(
                row_start, successor, here * num_actions, first * num_actions, first, last,
                w, p, bound, num_bound, scratch, held, diagonal, block,
            )  # fmt: skip
            for x in range(width):
                diagonal[block + x * width + x] += outflow[first + x] + (inflow[first + x] - held[first + x])
            if is_full(row_start, here * num_actions, first * num_actions, width):
                for j in range(coupling_start[k], coupling_start[k + 1]):
                    coupling[j] = flow[j]
            else:
                _couple_sparse(row_start, successor, num_actions, here, first, width, w, p, coupling, coupling_start[k])
        for i in range(num_candidates):
            _border_of_layer(
                row_start, successor, num_actions, here, first, last, k < num_layers - 1,
                costs, candidate, i, w, p, border, schur,
            )  # fmt: skip


@kernel
def _couple_sparse(
    row_start: IntArray,
    successor: NDArray[np.int32],
    num_actions: int,
    here: int,
    first: int,
    width: int,
    w: FloatArray,
    p: FloatArray,
    coupling: FloatArray,
    block: int,
) -> None:
    """sum_a w p of the states here..first-1, of which each row leads to some successors only."""
    for j in range(block, block + (first - here) * width):
        coupling[j] = 0.0
    for x in range(here, first):
        row = block + (x - here) * width - first
        for r in range(x * num_actions, (x + 1) * num_actions):
            for j in range(row_start[r], row_start[r + 1]):
                coupling[row + successor[j]] += w[r] * p[j]


@kernel
def _correct_layer(
    row_start: IntArray,
    successor: NDArray[np.int32],
    first_row: int,
    last_row: int,
    first: int,
    last: int,
    w: FloatArray,
    p: FloatArray,
    bound: NDArray[np.int8],
    num_bound: IntArray,
    scratch: FloatArray,
    held: FloatArray,
    diagonal: FloatArray,
    block: int,
) -> None:
    """Add w [ p p^T - p_F p_F^T / sum_F p ] of the rows at a bound to the upper triangle of a block.

    w p_bound goes to `held`. It belongs on the diagonal, but a number that was just written alone is slow to be read as
    part of a vector.
    """
    width = last - first
    for r in range(first_row, last_row):
        if num_bound[r] == 0:
            continue
        start, count, weight = np.uint64(row_start[r]), row_start[r + 1] - row_start[r], w[r]
        size = np.uint64(count)
        mass = 0.0
        for j in range(size):
            share = p[start + j]
            mass += share if bound[start + j] == 0 else 0.0
        rest = weight - weight / mass if mass > 0.0 else weight
        # Entry (i, j) is w p_i p_j, or (w - w / sum_F p) p_i p_j when both are free: one vector for either kind of i.
        for j in range(size):
            share = p[start + j]
            scratch[j] = weight * share
            scratch[size + j] = (weight if bound[start + j] != 0 else rest) * share
        for i in range(count):
            at = start + np.uint64(i)
            share, is_bound = p[at], bound[at] != 0
            here = successor[at] - first
            row = block + here * width
            chosen = 0 if is_bound else count
            held[np.uint64(first + here)] += scratch[np.uint64(i)] if is_bound else 0.0
            if count == width:
                aligned = i - i % 2  # what is left of the diagonal is never read
                add_multiple(diagonal, row + aligned, share, scratch, chosen + aligned, width - aligned)
            else:
                for j in range(i, count):
                    diagonal[row + successor[start + np.uint64(j)] - first] += share * scratch[chosen + j]


@kernel
def _border_of_layer(
    row_start: IntArray,
    successor: NDArray[np.int32],
    num_actions: int,
    here: int,
    first: int,
    last: int,
    is_inner: bool,
    costs: FloatArray,
    candidate: IntArray,
    i: int,
    w: FloatArray,
    p: FloatArray,
    border: FloatArray,
    schur: FloatArray,
) -> None:
    """What the rows of the states here..first-1 add to column i of the border and of the corner."""
    width, constraint = last - first, candidate[i]
    for x in range(here, first):
        for r in range(x * num_actions, (x + 1) * num_actions):
            mass = w[r] * costs[r, constraint]
            border[i, x] -= mass
            for j in range(i + 1):
                schur[i, j] += mass * costs[r, candidate[j]]
            if is_inner and mass != 0.0:
                start, stop = row_start[r], row_start[r + 1]
                if stop - start == width:
                    add_multiple(border[i], first, mass, p, start, width)
                else:
                    for j in range(start, stop):
                        border[i, successor[j]] += mass * p[j]
