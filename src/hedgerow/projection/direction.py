"""The Newton direction: eliminate v, solve a small quadratic program for theta, substitute back.

With S = C - B^T H^{-1} B and r = g_theta - B^T H^{-1} g_v the model of the dual in theta alone is
r^T d - d^T S d / 2, to be maximised over steps d that keep theta >= 0: at most m variables, solved exactly by an
active-set method.
"""

from __future__ import annotations

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.compiling.kernels import kernel
from hedgerow.model.kernel_layout import LayoutArrays
from hedgerow.projection.dual import is_full
from hedgerow.projection.problem import KernelProblem, Workspace
from hedgerow.projection.vectors import LANES, PLAIN, add_multiple, add_products

RIDGE = 1e-13
"""Relative to the curvature; it decides between duplicate constraints."""
SMALLEST_CURVATURE = 1e-20
"""Added to the curvature, which is 0, and gives no step, for a constraint whose cost is the same for all policies."""
CANCELLED = 1e-4
"""A curvature this much smaller than the corner that it was subtracted from is computed again without subtraction."""


@kernel
def newton_direction(index: LayoutArrays, problem: KernelProblem, theta: FloatArray, ws: Workspace) -> float:
    """Write step_v and step_theta at the point of the last `evaluate` and `gradient`; return the slope along them."""
    build_system(index, problem, theta, ws)
    return direction(index, problem, theta, ws)


@kernel
def build_system(index: LayoutArrays, problem: KernelProblem, theta: FloatArray, ws: Workspace) -> None:
    """Factor the Newton system at the point of the last `evaluate` and `gradient`; nearby points may use it too."""
    count = 0
    # Constraints that are slack and have multiplier 0 stay so to first order: the border is as narrow as possible.
    for i in range(len(theta)):
        if moves(problem, theta, ws, i):
            ws.candidate[count] = i
            count += 1
    ws.num_candidates[0] = count
    assemble(index, problem, count, ws)
    factor(index, ws)
    for i in range(count):
        solve_forward(index, ws, ws.border[i])
    if count > 0:
        _reduce(index, problem, count, ws)


@kernel
def moves(problem: KernelProblem, theta: FloatArray, ws: Workspace, i: int) -> bool:
    """Whether multiplier i can change to first order: it is positive, or its constraint is violated."""
    return bool(theta[i] > -problem.absorbed[i] or ws.gradient_theta[i] > 0.0)


@kernel
def direction(index: LayoutArrays, problem: KernelProblem, theta: FloatArray, ws: Workspace) -> float:
    """The direction of the last `gradient` by the system that was built last, and the slope along it.

    If the system belongs to another point, this is a simplified Newton step. It ascends all the same, because H and S
    are positive definite.
    """
    num_states = len(ws.gradient_v)
    rhs, border, gradient_v, count = ws.step_v, ws.border, ws.gradient_v, ws.num_candidates[0]
    for x in range(num_states):
        rhs[x] = gradient_v[x]
    solve_forward(index, ws, rhs)
    for i in range(len(theta)):
        ws.step_theta[i] = 0.0
    for i in range(count):
        total = ws.gradient_theta[ws.candidate[i]]
        for x in range(num_states):
            total -= border[i, x] * rhs[x]
        ws.small[1, i] = total
        ws.small[2, i] = -(theta[ws.candidate[i]] + problem.absorbed[ws.candidate[i]])
    # One variable: its quadratic program is a clipped quotient.
    if count == 1:
        ws.small[0, 0] = max(ws.small[1, 0] / ws.schur[0, 0], ws.small[2, 0])
    elif count > 1:
        maximise_quadratic(ws.schur, ws.small, count)
    for i in range(count):
        step = ws.small[0, i]
        ws.step_theta[ws.candidate[i]] = step
        # Substitute theta back before the second half of the solve, where U^{-T} B is at hand.
        for x in range(num_states):
            rhs[x] -= step * border[i, x]
    solve_backward(index, ws, rhs)
    slope = 0.0
    for x in range(num_states):
        slope += gradient_v[x] * rhs[x]
    for i in range(len(theta)):
        slope += ws.gradient_theta[i] * ws.step_theta[i]
    return slope


@kernel
def _reduce(index: LayoutArrays, problem: KernelProblem, count: int, ws: Workspace) -> None:
    """S into `schur`, which holds the corner on entry; borders are U^{-T} B."""
    cancelled = False
    border, schur = ws.border, ws.schur
    for i in range(count):
        corner = schur[i, i]
        for j in range(i + 1):
            total = schur[i, j]
            for x in range(border.shape[1]):
                total -= border[i, x] * border[j, x]
            schur[i, j] = total
            schur[j, i] = total
        cancelled |= schur[i, i] < CANCELLED * corner
    if cancelled:
        _curvature(index, problem, count, ws)
    for i in range(count):
        schur[i, i] = max(schur[i, i], 0.0) * (1.0 + RIDGE) + SMALLEST_CURVATURE


@kernel
def _curvature(index: LayoutArrays, problem: KernelProblem, count: int, ws: Workspace) -> None:
    """S as a sum of products: S_ij = sum w [ (d . z_i)(d . z_j) + z_i^T J z_j ] for z_i = (-H^{-1} B_i, e_i).

    Near the end of a nearly infeasible problem S is many orders smaller than C, and C - B^T H^{-1} B is noise.
    Here nothing cancels, and an error of H^{-1} B_i enters squared, because z_i minimises the form.
    """
    solved = ws.solved
    for i in range(count):
        for x in range(len(ws.gradient_v)):
            solved[i, x] = ws.border[i, x]
        solve_backward(index, ws, solved[i])
        for j in range(count):
            ws.schur[i, j] = 0.0
    num_layers = len(index.state_start) - 2
    mean, free_mean = ws.small[2], ws.small[3]  # free at this moment
    for r in range(index.state_start[num_layers] * index.num_actions):
        weight = ws.w[r]
        if weight == 0.0:
            continue
        start, stop = index.row_start[r], index.row_start[r + 1]
        bound = ws.num_bound[r] > 0
        free_mass = 0.0
        for j in range(start, stop):
            if not bound or ws.bound[j] == 0:
                free_mass += ws.p[j]
        for i in range(count):
            mean[i] = 0.0
            free_mean[i] = 0.0
            for j in range(start, stop):
                product = ws.p[j] * solved[i, index.successor[j]]
                mean[i] += product
                if not bound or ws.bound[j] == 0:
                    free_mean[i] += product
            if free_mass > 0.0:
                free_mean[i] /= free_mass
            # d . z_i = -y_i(x) + p . y_i - c_i
            mean[i] += -solved[i, r // index.num_actions] - problem.costs[r, ws.candidate[i]]
        for i in range(count):
            for k in range(i + 1):
                total = mean[i] * mean[k]
                for j in range(start, stop):
                    if not bound or ws.bound[j] == 0:
                        y = index.successor[j]
                        total += ws.p[j] * (solved[i, y] - free_mean[i]) * (solved[k, y] - free_mean[k])
                ws.schur[i, k] += weight * total
                if k != i:
                    ws.schur[k, i] = ws.schur[i, k]


@kernel
def maximise_quadratic(S: FloatArray, small: FloatArray, n: int) -> None:
    """d = argmax { r^T d - d^T S d / 2 : d >= least } for S positive definite and least <= 0.

    small[0] receives d, small[1] holds r, small[2] least; small[3] is scratch for the mask, small[4:] for the solve.
    """
    d, r, least, free = small[0], small[1], small[2], small[3]
    for i in range(n):
        d[i] = 0.0
        free[i] = 1.0 if least[i] < 0.0 or r[i] > 0.0 else 0.0
    for _ in range(5 * n + 10):
        _solve_free(S, small, n)
        target = small[4 : 4 + n, n]
        # Walk from d towards the unconstrained optimum of the free variables until one of them reaches its bound.
        step, blocking = 1.0, -1
        for i in range(n):
            # theta + d >= 0: the first multiplier that would become negative blocks the way.
            if free[i] > 0.0 and target[i] < least[i]:
                ratio = (d[i] - least[i]) / (d[i] - target[i])
                if ratio < step or blocking < 0:
                    step, blocking = ratio, i
        for i in range(n):
            if free[i] > 0.0:
                d[i] += step * (target[i] - d[i])
        if blocking >= 0:
            d[blocking] = least[blocking]
            free[blocking] = 0.0
            continue
        # All free ones are optimal: release the fixed multiplier that gains most per curvature, if any gains at all.
        best, entering = 0.0, -1
        for i in range(n):
            if free[i] == 0.0:
                slope = r[i]
                size = abs(r[i])
                for j in range(n):
                    slope -= S[i, j] * d[j]
                    size += abs(S[i, j] * d[j])
                gain = slope / np.sqrt(S[i, i])
                if slope > 1e-14 * size and gain > best:
                    best, entering = gain, i
        if entering < 0:
            break
        free[entering] = 1.0


@kernel
def _solve_free(S: FloatArray, small: FloatArray, n: int) -> None:
    """The maximiser over the free variables, the others staying at d, into small[4:, n] (Cholesky)."""
    d, r, free = small[0], small[1], small[3]
    for i in range(n):
        for j in range(i + 1):
            # Fixed variables have rows of the identity: one factorisation serves every active set.
            entry = S[i, j] if free[i] > 0.0 and free[j] > 0.0 else (1.0 if i == j else 0.0)
            for k in range(j):
                entry -= small[4 + i, k] * small[4 + j, k]
            if i == j:
                small[4 + i, i] = np.sqrt(max(entry, RIDGE * S[i, i]))
            else:
                small[4 + i, j] = entry / small[4 + j, j]
    y = small[4 : 4 + n, n]
    for i in range(n):
        entry = 0.0
        if free[i] > 0.0:
            entry = r[i]
            for j in range(n):
                if free[j] == 0.0:
                    entry -= S[i, j] * d[j]
        for k in range(i):
            entry -= small[4 + i, k] * y[k]
        y[i] = entry / small[4 + i, i]
    for i in range(n - 1, -1, -1):
        entry = y[i]
        for k in range(i + 1, n):
            entry -= small[4 + k, i] * y[k]
        y[i] = entry / small[4 + i, i]


# --------------------------------------------------------------------------------------------------------------------
# The generalised Hessian of the small dual, by layers.
#
#     -H = sum_{x,a} w [ d d^T + J ],   d = e_x - p - c  (coordinates: x, layer k+1, theta),
#     J = diag(p_F) - p_F p_F^T / sum_F p  on the free successors F, 0 elsewhere.
#
# Block D of layer k+1: diag(outflow) + sum over incoming rows of w (p p^T + J). A row without active bounds contributes
# w diag(p) only, so the sum starts from diag(inflow) and just the rows at a bound need a dense correction w [ p p^T -
# p_F p_F^T / sum_F p - diag(p_bound) ].


@kernel
def assemble(index: LayoutArrays, problem: KernelProblem, num_candidates: int, ws: Workspace) -> None:
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
def _couple_sparse(index: LayoutArrays, k: int, ws: Workspace) -> None:
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
def _correct_layer(index: LayoutArrays, k: int, ws: Workspace) -> None:
    """Add w [ p p^T - p_F p_F^T / sum_F p ] of the rows at a bound of layer k to the upper triangle of the next block.

    w p_bound goes to `held`. It belongs on the diagonal, but a vector load is slow right after a store to one of its
    entries.
    """
    row_start, successor, diagonal, scratch = index.row_start, index.successor, ws.diagonal, ws.row_scratch
    w, p, bound, num_bound, held = ws.w, ws.p, ws.bound, ws.num_bound, ws.held
    first, block = index.state_start[k + 1], ws.diagonal_start[k + 1]
    width = index.state_start[k + 2] - first
    begin, end = index.state_start[k] * index.num_actions, first * index.num_actions
    if not PLAIN and width <= LANES and is_full(index, k):
        add_products(
            diagonal, np.uint64(block), held, np.uint64(first), w, num_bound, p, bound,
            np.uint64(begin), np.uint64(end), np.uint64(row_start[begin]), np.uint64(width),
        )  # fmt: skip
        return
    for r in range(begin, end):
        if num_bound[r] == 0:
            continue
        start, count, weight = np.uint64(row_start[r]), row_start[r + 1] - row_start[r], w[r]
        size = np.uint64(count)
        mass = 0.0
        for j in range(size):
            share = p[start + j]
            mass += share if bound[start + j] == 0 else 0.0
        # All successors at a bound: the row cannot move, J = 0, and only w p p^T is left.
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
def _border_of_layer(index: LayoutArrays, problem: KernelProblem, k: int, i: int, ws: Workspace) -> None:
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


# --------------------------------------------------------------------------------------------------------------------
# The Newton system, block tridiagonal in the layers with an m-wide border.
#
#     [ H   B ] [ d_v     ]   [ g_v     ]
#     [ B^T C ] [ d_theta ] = [ g_theta ]
#
# H is factored layer after layer by block Cholesky. Eliminating the layers before k leaves a matrix that is at least
# diag(outflow) on layer k: every pivot is bounded below by the outflow of its state. This floor repairs rounding, and
# the factorisation cannot fail. A further floor, the inflow / 16, binds only where outflow and inflow differ by that
# much: it keeps the step of such a state to about 16 (a factor e^16 in mass), where the quadratic model means nothing.
# Factors are upper triangular, row by row: every inner loop runs over contiguous memory.


LEAST_RATIO = 1.0 / 16.0


@kernel
def factor(index: LayoutArrays, ws: Workspace) -> None:
    """Overwrite `diagonal` by the Cholesky factors U_k and `coupling` by W_k = U_k^{-T} (sum_a w p)."""
    num_layers = len(index.state_start) - 2
    for k in range(num_layers):
        _cholesky(index, k, ws)
        if k < num_layers - 1:
            _couple(index, k, ws)


@kernel
def _cholesky(index: LayoutArrays, k: int, ws: Workspace) -> None:
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
            # A sparse support leaves zeros that stay zeros.
            if entry != 0.0:
                add_multiple(matrix, start + r * n + r, -entry, matrix, start + i * n + r, n - r)


@kernel
def _couple(index: LayoutArrays, k: int, ws: Workspace) -> None:
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
def solve_forward(index: LayoutArrays, ws: Workspace, rhs: FloatArray) -> None:
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
def solve_backward(index: LayoutArrays, ws: Workspace, rhs: FloatArray) -> None:
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
