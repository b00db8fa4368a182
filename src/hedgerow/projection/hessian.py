"""The generalised Hessian of the small dual, by layers.

    -H = sum_{x,a} w [ d d^T + J ],   d = e_x - p - c  (coordinates: x, layer k+1, theta),
    J = diag(p_F) - p_F p_F^T / sum_F p  on the free successors F, 0 elsewhere.

Block D of layer k+1: diag(outflow) + sum over incoming rows of w (p p^T + J). A row without active bounds contributes
w diag(p) only, so the sum starts from diag(inflow) and just the rows at a bound need a dense correction
w [ p p^T - p_F p_F^T / sum_F p - diag(p_bound) ].
"""

from __future__ import annotations

import numpy as np

from hedgerow.compiling.kernels import kernel
from hedgerow.model.kernel_layout import Index
from hedgerow.projection.dual import is_full
from hedgerow.projection.short_vectors import add_multiple
from hedgerow.projection.workspace import KernelProblem, Workspace


@kernel
def assemble(index: Index, problem: KernelProblem, num_candidates: int, ws: Workspace) -> None:
    """Write `diagonal` (upper triangles), `coupling`, `border` (rows of the candidates) and `schur` (the corner)."""
    state_start, diagonal, inflow, outflow, held = index.state_start, ws.diagonal, ws.inflow, ws.outflow, ws.held
    num_layers = len(state_start) - 2
    for i in range(num_candidates):
        for x in range(state_start[num_layers] + 1):
            ws.border[i, x] = 0.0
        for j in range(i + 1):
            ws.schur[i, j] = 0.0
    diagonal[0] = outflow[0]
    for k in range(num_layers):
        first, last = state_start[k + 1], state_start[k + 2]
        if k < num_layers - 1:
            width, block = last - first, ws.diagonal_start[k + 1]
            for j in range(width * width):
                diagonal[block + j] = 0.0
            for x in range(first, last):
                held[x] = 0.0
            _correct_layer(index, k, ws)
            for x in range(width):
                diagonal[block + x * width + x] += outflow[first + x] + (inflow[first + x] - held[first + x])
            if is_full(index, k):
                for j in range(ws.coupling_start[k], ws.coupling_start[k + 1]):
                    ws.coupling[j] = ws.flow[j]
            else:
                _couple_sparse(index, k, ws)
        for i in range(num_candidates):
            _border_of_layer(index, problem, k, i, ws)


@kernel
def _couple_sparse(index: Index, k: int, ws: Workspace) -> None:
    """sum_a w p of the states of layer k, whose rows lead to some successors only."""
    row_start, successor, w, p, coupling = index.row_start, index.successor, ws.w, ws.p, ws.coupling
    here, first, width = (
        index.state_start[k],
        index.state_start[k + 1],
        index.state_start[k + 2] - index.state_start[k + 1],
    )
    block = ws.coupling_start[k]
    for j in range(block, block + (first - here) * width):
        coupling[j] = 0.0
    for x in range(here, first):
        row = block + (x - here) * width - first
        for r in range(x * index.num_actions, (x + 1) * index.num_actions):
            for j in range(row_start[r], row_start[r + 1]):
                coupling[row + successor[j]] += w[r] * p[j]


@kernel
def _correct_layer(index: Index, k: int, ws: Workspace) -> None:
    """Add w [ p p^T - p_F p_F^T / sum_F p ] of the rows at a bound of layer k to the upper triangle of the next block.

    w p_bound goes to `held`. It belongs on the diagonal, but a vector load is slow right after a store to one of its
    entries.
    """
    row_start, successor, diagonal, scratch = index.row_start, index.successor, ws.diagonal, ws.row_scratch
    w, p, bound, num_bound, held = ws.w, ws.p, ws.bound, ws.num_bound, ws.held
    first, block = index.state_start[k + 1], ws.diagonal_start[k + 1]
    width = index.state_start[k + 2] - first
    for r in range(index.state_start[k] * index.num_actions, first * index.num_actions):
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
                aligned = i - i % 2  # entries left of the diagonal are never read
                add_multiple(diagonal, row + aligned, share, scratch, chosen + aligned, width - aligned)
            else:
                for j in range(i, count):
                    diagonal[row + successor[start + np.uint64(j)] - first] += share * scratch[chosen + j]


@kernel
def _border_of_layer(index: Index, problem: KernelProblem, k: int, i: int, ws: Workspace) -> None:
    """What the rows of layer k add to column i of the border and of the corner."""
    row_start, costs, candidate, border, schur = index.row_start, problem.costs, ws.candidate, ws.border, ws.schur
    here, first, last = index.state_start[k], index.state_start[k + 1], index.state_start[k + 2]
    is_inner = k < len(index.state_start) - 3
    width, constraint = last - first, candidate[i]
    for x in range(here, first):
        for r in range(x * index.num_actions, (x + 1) * index.num_actions):
            mass = ws.w[r] * costs[r, constraint]
            border[i, x] -= mass
            for j in range(i + 1):
                schur[i, j] += mass * costs[r, candidate[j]]
            if is_inner and mass != 0.0:
                start, stop = row_start[r], row_start[r + 1]
                if stop - start == width:
                    add_multiple(border[i], first, mass, ws.p, start, width)
                else:
                    for j in range(start, stop):
                        border[i, index.successor[j]] += mass * ws.p[j]
