"""The small dual of the projection: its value, its gradient and the point that attains it.

    g(v, theta) = v(x_0) - theta^T alpha - sum_{x,a} w(x,a) + sum_{x,a} wt(x,a),    theta >= 0,  v(x_L) = 0
    w(x,a) = wt(x,a) exp( v(x) - h(x,a) - theta^T c(x,a) ),   h from `rows`
    dg/dv(x) = [x = x_0] - sum_a w(x,a) + sum_{z,a} w(z,a) p(x|z,a),        dg/dtheta_i = c_i^T w - alpha_i

Adding a constant to v on a layer only rescales the weights of that layer and of the one before, so the best such shifts
have a closed form: after them every layer has mass 1. `evaluate` always applies them ("renormalisation"); then
g = v(x_0) - theta^T alpha - L + sum wt. Row weights are logarithms, conditionals are plain numbers.
"""

from __future__ import annotations

import numpy as np

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.kernels import copy_into, kernel
from hedgerow.model.kernel_layout import Index
from hedgerow.projection.elementary import exponentials, logarithms
from hedgerow.projection.rows import SMALLEST_WEIGHT, bound_value, guess_bounds, settle_full_row, settle_row, solve_row
from hedgerow.projection.short_vectors import add_multiple, weigh_rows
from hedgerow.projection.workspace import FAINT, KernelProblem, Workspace

ONE = np.uint64(1)


@kernel
def evaluate(index: Index, problem: KernelProblem, v: FloatArray, theta: FloatArray, ws: Workspace) -> float:
    """g(v, theta) - sum wt after renormalising `v` (modified); writes p, bound, num_bound, w, masses, log_m of `ws`.

    The first evaluation of a problem must be this one: it also notes what depends on the base alone.
    """
    num_layers = len(index.state_start) - 2
    ws.least_base[0] = _least(problem.conditional)
    ws.noted[:] = 0
    guess_bounds(problem, 0, len(ws.bound), ws)
    for k in range(num_layers):
        solve_layer(index, problem, v, theta, k, ws)
        for x in range(index.state_start[k], index.state_start[k + 1]):
            for r in range(x * index.num_actions, (x + 1) * index.num_actions):
                ws.log_w[r] += v[x] + np.log(ws.factor[r])
        _normalise_layer(index, k, ws)
    _shift(index, v, ws)
    return dual_value(problem, v, theta, num_layers)


@kernel
def evaluate_base(index: Index, problem: KernelProblem, rows: IntArray, v: FloatArray, ws: Workspace) -> float:
    """`evaluate` at theta = 0 and v = 0 (modified), where all rows but `rows` have their base within their boxes.

    All rows but `rows` have p = pt and h = 0, and the bounds of `ws.bound` and `ws.num_bound`: a learner's base is its
    last projection, changed in the rows that an episode visited.
    """
    ws.least_base[0] = _least(problem.conditional)
    ws.noted[:] = 0
    copy_into(problem.conditional, ws.p)
    copy_into(problem.log_weight, ws.log_w)
    for x in range(len(v)):
        ws.scaled[x] = 1.0
        v[x] = 0.0
    for r in rows:
        ws.log_w[r] -= _solve_at_base(index, problem, v, r, ws)
    num_layers = len(index.state_start) - 2
    for k in range(num_layers):
        _normalise_layer(index, k, ws)
    _shift(index, v, ws)
    return float(v[0] - num_layers)


@kernel
def _shift(index: Index, v: FloatArray, ws: Workspace) -> None:
    """Shift `v` on the layers by the masses that these had before they were normalised; then find all masses."""
    shift = 0.0
    for k in range(len(index.state_start) - 3, -1, -1):
        shift -= ws.log_mass[k]
        for x in range(index.state_start[k], index.state_start[k + 1]):
            v[x] += shift
    _find_masses(index, ws)


@kernel
def _solve_at_base(index: Index, problem: KernelProblem, v: FloatArray, row: int, ws: Workspace) -> float:
    """h of a row at v = 0, whose bounds are guessed from its base."""
    start, stop, p = index.row_start[row], index.row_start[row + 1], ws.p
    if stop - start == 1:
        p[start] = 1.0
        return 0.0
    guess_bounds(problem, start, stop, ws)
    scale, rest, count = settle_row(index, problem, row, ws)
    if scale < 0.0:
        h, ws.num_bound[row] = solve_row(index, problem, v, row, 0.0, ws)
        return float(h)
    ws.num_bound[row] = count
    h = rest * np.log(scale)
    for j in range(start, stop):
        if ws.bound[j] != 0 and p[j] > 0.0:
            h += p[j] * np.log(p[j] / problem.conditional[j])
    return float(h)


@kernel
def dual_value(problem: KernelProblem, v: FloatArray, theta: FloatArray, num_layers: int) -> float:
    """g - sum wt when every layer has mass 1."""
    value = v[0] - float(num_layers)
    for i in range(len(theta)):
        value -= theta[i] * problem.thresholds[i]
    return float(value)


@kernel
def _find_masses(index: Index, ws: Workspace) -> None:
    """The masses of the states, and their logarithms log_m, from w and log_w of all rows."""
    masses, log_m, w, log_w = ws.masses, ws.log_m, ws.w, ws.log_w
    num_states = index.state_start[len(index.state_start) - 2]
    actions, begin = np.uint64(index.num_actions), np.uint64(0)
    for x in range(np.uint64(num_states)):
        total = 0.0
        for r in range(begin, begin + actions):
            total += w[r]
        masses[x] = total
        log_m[x] = total
        begin += actions
    logarithms(log_m, 0, num_states)
    for x in range(num_states):
        if masses[x] < FAINT:
            log_m[x] = log_sum(log_w, x * index.num_actions, (x + 1) * index.num_actions)


@kernel
def log_sum(values: FloatArray, first: int, last: int) -> float:
    """ln of the sum of the exponentials of values[first:last]."""
    largest = -np.inf
    for i in range(first, last):
        largest = max(largest, values[i])
    total = 0.0
    for i in range(first, last):
        total += np.exp(values[i] - largest)
    return float(largest + np.log(total))


@kernel
def is_full(index: Index, k: int) -> bool:
    """Whether each row of layer k leads to all states of the next layer, in order."""
    first_row, last_row = index.state_start[k] * index.num_actions, index.state_start[k + 1] * index.num_actions
    width = index.state_start[k + 2] - index.state_start[k + 1]
    return bool(index.row_start[last_row] - index.row_start[first_row] == (last_row - first_row) * width)


@kernel
def solve_layer(index: Index, problem: KernelProblem, v: FloatArray, theta: FloatArray, k: int, ws: Workspace) -> None:
    """p and w = factor exp(log_w), without its v, of the rows of layer k, which depend on v of the layer after it.

    A row without active bounds gives e^-h directly, while h would cost a logarithm.
    """
    here, first, last = index.state_start[k], index.state_start[k + 1], index.state_start[k + 2]
    row_start, scaled, costs, num_bound = index.row_start, ws.scaled, problem.costs, ws.num_bound
    lowest, highest = v[first], v[first]
    for y in range(np.uint64(first + 1), np.uint64(last)):
        lowest, highest = min(lowest, v[y]), max(highest, v[y])
    for y in range(np.uint64(first), np.uint64(last)):
        scaled[y] = lowest - v[y]
    exponentials(scaled, first, last)
    width = last - first
    ordinary = ws.least_base[0] * np.exp(lowest - highest) >= SMALLEST_WEIGHT
    for row in range(here * index.num_actions, first * index.num_actions):
        r = np.uint64(row)
        start, stop = row_start[r], row_start[r + ONE]
        whole = 1.0
        if stop - start == 1:
            ws.p[start] = 1.0
            h = v[index.successor[start]]
        else:
            scale = -1.0
            if ordinary:
                full = stop - start == width
                if full:
                    scale, rest, count = settle_full_row(problem, start, first, width, ws)
                else:
                    scale, rest, count = settle_row(index, problem, row, ws)
                if count > 0:
                    h = rest * (np.log(scale) + lowest) + bound_value(index, problem, v, row, full, ws)
                else:  # e^-h is known without a logarithm
                    h = lowest
                    whole = 1.0 / scale
                num_bound[r] = count
            if scale < 0.0:
                whole = 1.0
                h, num_bound[r] = solve_row(index, problem, v, row, lowest, ws)
        total = problem.log_weight[r] - h
        for i in range(len(theta)):
            total -= theta[i] * costs[r, i]
        ws.log_w[r] = total
        ws.factor[r] = whole


@kernel
def _least(values: FloatArray) -> float:
    """The smallest value, at most 1."""
    a, b, c, d = 1.0, 1.0, 1.0, 1.0
    whole = len(values) - len(values) % 4
    for j in range(0, whole, 4):
        a, b = min(a, values[j]), min(b, values[j + 1])
        c, d = min(c, values[j + 2]), min(d, values[j + 3])
    for j in range(whole, len(values)):
        a = min(a, values[j])
    return min(min(a, b), min(c, d))


@kernel
def _normalise_layer(index: Index, k: int, ws: Workspace) -> None:
    """w of layer k with mass 1; remembers the log of the mass that it had."""
    first, last = index.state_start[k] * index.num_actions, index.state_start[k + 1] * index.num_actions
    begin, end, log_w, w = np.uint64(first), np.uint64(last), ws.log_w, ws.w
    largest = -np.inf
    for r in range(begin, end):
        largest = max(largest, log_w[r])
    for r in range(begin, end):
        w[r] = log_w[r] - largest
    exponentials(w, first, last)
    total = 0.0
    for r in range(begin, end):
        total += w[r]
    log_mass = largest + np.log(total)
    ws.log_mass[k] = log_mass
    for r in range(begin, end):
        w[r] /= total
        log_w[r] -= log_mass


@kernel
def gradient(index: Index, problem: KernelProblem, ws: Workspace) -> None:
    """Flows and gradient at the point of the last `evaluate`; leaves sum_a w p per pair of states in `flow`."""
    row_start, successor, state_start, num_actions = (
        index.row_start, index.successor, index.state_start, index.num_actions,
    )  # fmt: skip
    w, p, inflow, outflow, flow = ws.w, ws.p, ws.inflow, ws.outflow, ws.flow
    num_layers = len(state_start) - 2
    inflow[:] = 0.0
    inflow[0] = 1.0
    for k in range(num_layers):
        here, first, width = state_start[k], state_start[k + 1], state_start[k + 2] - state_start[k + 1]
        is_inner = k < num_layers - 1
        full = is_inner and is_full(index, k)
        for x in range(here, first):
            row, total = x * num_actions, 0.0
            for r in range(row, row + num_actions):
                total += w[r]
            outflow[x] = total
            if full:
                block = ws.coupling_start[k] + (x - here) * width
                weigh_rows(flow, block, w, row, num_actions, p, row_start[row], width)
                add_multiple(inflow, first, 1.0, flow, block, width)
            elif is_inner:
                for r in range(row, row + num_actions):
                    for j in range(np.uint64(row_start[r]), np.uint64(row_start[r + 1])):
                        inflow[np.uint64(successor[j])] += w[r] * p[j]
    for x in range(state_start[num_layers]):
        ws.gradient_v[x] = inflow[x] - outflow[x]
    for i in range(len(ws.gradient_theta)):
        total = -problem.thresholds[i]
        for r in range(np.uint64(len(w))):
            total += w[r] * problem.costs[r, i]
        ws.gradient_theta[i] = total
