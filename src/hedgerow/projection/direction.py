"""The Newton direction: eliminate v, solve a small quadratic program for theta, substitute back.

With S = C - B^T H^{-1} B and r = g_theta - B^T H^{-1} g_v the model of the dual in theta alone is
r^T d - d^T S d / 2, to be maximised over steps d that keep theta >= 0: at most m variables, solved exactly by an
active-set method.
"""

from __future__ import annotations

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.compiling.kernels import kernel
from hedgerow.model.kernel_layout import Index
from hedgerow.projection.factor import factor, solve_backward, solve_forward
from hedgerow.projection.hessian import assemble
from hedgerow.projection.workspace import KernelProblem, Workspace

RIDGE = 1e-13
"""Relative to the curvature; it decides between duplicate constraints."""
SMALLEST_CURVATURE = 1e-20
"""Added to the curvature, which is 0, and gives no step, for a constraint whose cost is the same for all policies."""
CANCELLED = 1e-4
"""A curvature this much smaller than the corner that it was subtracted from is computed again without subtraction."""


@kernel
def newton_direction(index: Index, problem: KernelProblem, theta: FloatArray, ws: Workspace) -> float:
    """Write step_v and step_theta at the point of the last `evaluate` and `gradient`; return the slope along them."""
    build_system(index, problem, theta, ws)
    return direction(index, problem, theta, ws)


@kernel
def build_system(index: Index, problem: KernelProblem, theta: FloatArray, ws: Workspace) -> None:
    """Factor the Newton system at the point of the last `evaluate` and `gradient`; nearby points may use it too."""
    count = 0
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
def direction(index: Index, problem: KernelProblem, theta: FloatArray, ws: Workspace) -> float:
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
    if count == 1:
        ws.small[0, 0] = max(ws.small[1, 0] / ws.schur[0, 0], ws.small[2, 0])
    elif count > 1:
        maximise_quadratic(ws.schur, ws.small, count)
    for i in range(count):
        step = ws.small[0, i]
        ws.step_theta[ws.candidate[i]] = step
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
def _reduce(index: Index, problem: KernelProblem, count: int, ws: Workspace) -> None:
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
def _curvature(index: Index, problem: KernelProblem, count: int, ws: Workspace) -> None:
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
