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
from hedgerow.model.kernel_layout import LayoutArrays
from hedgerow.projection.problem import FAINT, KernelProblem, Workspace
from hedgerow.projection.rows import SMALLEST_WEIGHT, bound_value, guess_bounds, settle_full_row, settle_row, solve_row
from hedgerow.projection.vectors import add_multiple, exponentials, logarithms, weigh_rows

ONE = np.uint64(1)


@kernel
def evaluate(index: LayoutArrays, problem: KernelProblem, v: FloatArray, theta: FloatArray, ws: Workspace) -> float:
    """g(v, theta) - sum wt after renormalising `v` (modified); writes p, bound, num_bound, w, masses, log_m of `ws`.

    The first evaluation of a problem must be this one: it also notes what depends on the base alone.
    """
    num_layers = len(index.state_start) - 2
    ws.least_base[0] = _least(problem.conditional)
    ws.noted[:] = 0
    guess_bounds(problem, 0, len(ws.bound), ws)
    # A shift of v on the next layer scales all weights of this one alike: normalising undoes it, whenever it comes.
    for k in range(num_layers):
        solve_layer(index, problem, v, theta, k, ws)
        for x in range(index.state_start[k], index.state_start[k + 1]):
            for r in range(x * index.num_actions, (x + 1) * index.num_actions):
                ws.log_w[r] += v[x] + np.log(ws.factor[r])
        _normalise_layer(index, k, ws)
    _shift(index, v, ws)
    return dual_value(problem, v, theta, num_layers)


@kernel
def evaluate_base(index: LayoutArrays, problem: KernelProblem, rows: IntArray, v: FloatArray, ws: Workspace) -> float:
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
    # Only the rows that an episode visited have left their boxes: L of them, not all.
    for r in rows:
        ws.log_w[r] -= _solve_at_base(index, problem, v, r, ws)
    num_layers = len(index.state_start) - 2
    for k in range(num_layers):
        _normalise_layer(index, k, ws)
    _shift(index, v, ws)
    return float(v[0] - num_layers)


@kernel
def _shift(index: LayoutArrays, v: FloatArray, ws: Workspace) -> None:
    """Shift `v` on the layers by the masses that these had before they were normalised; then find all masses."""
    # A shift of layer k changes the masses of layers k and k - 1: from the last layer on, each closes its own.
    shift = 0.0
    for k in range(len(index.state_start) - 3, -1, -1):
        shift -= ws.log_mass[k]
        for x in range(index.state_start[k], index.state_start[k + 1]):
            v[x] += shift
    _find_masses(index, ws)


@kernel
def _solve_at_base(index: LayoutArrays, problem: KernelProblem, v: FloatArray, row: int, ws: Workspace) -> float:
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
def _find_masses(index: LayoutArrays, ws: Workspace) -> None:
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
def is_full(index: LayoutArrays, k: int) -> bool:
    """Whether each row of layer k leads to all states of the next layer, in order."""
    first_row, last_row = index.state_start[k] * index.num_actions, index.state_start[k + 1] * index.num_actions
    width = index.state_start[k + 2] - index.state_start[k + 1]
    return bool(index.row_start[last_row] - index.row_start[first_row] == (last_row - first_row) * width)


@kernel
def solve_layer(
    index: LayoutArrays, problem: KernelProblem, v: FloatArray, theta: FloatArray, k: int, ws: Workspace
) -> None:
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
    # Weights pt e^(lowest - v) that are all normal numbers allow the quick way; else logarithms decide.
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
                # Some successors are at a bound: h needs their logarithms.
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
    # Four minima side by side: one after the other, each would wait for the last.
    a, b, c, d = 1.0, 1.0, 1.0, 1.0
    whole = len(values) - len(values) % 4
    for j in range(0, whole, 4):
        a, b = min(a, values[j]), min(b, values[j + 1])
        c, d = min(c, values[j + 2]), min(d, values[j + 3])
    for j in range(whole, len(values)):
        a = min(a, values[j])
    return min(min(a, b), min(c, d))


@kernel
def _normalise_layer(index: LayoutArrays, k: int, ws: Workspace) -> None:
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
def gradient(index: LayoutArrays, problem: KernelProblem, ws: Workspace) -> None:
    """Flows and gradient at the point of the last `evaluate`; leaves sum_a w p per pair of states in `flow`."""
    row_start, successor, state_start, num_actions = (
        index.row_start, index.successor, index.state_start, index.num_actions,
    )  # fmt: skip
    w, p, inflow, outflow, flow = ws.w, ws.p, ws.inflow, ws.outflow, ws.flow
    num_layers = len(state_start) - 2
    inflow[:] = 0.0
    # The flow of sum_a w p between two layers is kept: the Hessian and the step in masses need it again.
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


# --------------------------------------------------------------------------------------------------------------------
# The dual in other coordinates: the masses that leave the states. They determine v.
#
#     v(x) = ln m(x) - ln sum_a wt e^{-h - theta^T c}      backwards through the layers: the outflow of x is m(x)
#
# Masses are the better coordinates for long steps: v follows theta by itself, however large theta is.


LONGEST = 30.0
"""The most by which the Newton direction may change ln of a mass in one step."""


@kernel
def evaluate_masses(
    index: LayoutArrays, problem: KernelProblem, log_m: FloatArray, theta: FloatArray, v: FloatArray, ws: Workspace
) -> float:
    """g - sum wt at the point whose states carry the masses exp(log_m), normalised per layer (modified); writes `v`."""
    num_layers = len(index.state_start) - 2
    for k in range(num_layers - 1, -1, -1):
        _normalise_masses(log_m, index.state_start[k], index.state_start[k + 1], ws.masses)
        solve_layer(index, problem, v, theta, k, ws)
        _share_masses(index, log_m, v, k, ws)
    return dual_value(problem, v, theta, num_layers)


@kernel
def _normalise_masses(log_m: FloatArray, first: int, last: int, masses: FloatArray) -> None:
    """Shift log_m[first:last]: its exponentials, `masses`, then sum to 1."""
    begin, end = np.uint64(first), np.uint64(last)
    largest = -np.inf
    for x in range(begin, end):
        largest = max(largest, log_m[x])
    total = 0.0
    for x in range(begin, end):
        masses[x] = log_m[x] - largest
    exponentials(masses, first, last)
    for x in range(begin, end):
        total += masses[x]
    shift = largest + np.log(total)
    for x in range(begin, end):
        log_m[x] -= shift
        masses[x] /= total


@kernel
def _share_masses(index: LayoutArrays, log_m: FloatArray, v: FloatArray, k: int, ws: Workspace) -> None:
    """w and v of the states of layer k from their masses and the relative weights factor exp(log_w) of their rows."""
    first, last, num_actions = index.state_start[k], index.state_start[k + 1], index.num_actions
    masses, log_w, factor, w, largest = ws.masses, ws.log_w, ws.factor, ws.w, ws.scaled  # the last is free by now
    actions, begin_layer = np.uint64(num_actions), np.uint64(first * num_actions)
    begin = begin_layer
    for x in range(np.uint64(first), np.uint64(last)):
        most = -np.inf
        for r in range(begin, begin + actions):
            most = max(most, log_w[r])
        for r in range(begin, begin + actions):
            w[r] = log_w[r] - most
        largest[x] = most
        begin += actions
    exponentials(w, first * num_actions, last * num_actions)
    begin = begin_layer
    for x in range(np.uint64(first), np.uint64(last)):
        total = 0.0
        for r in range(begin, begin + actions):
            w[r] *= factor[r]
            total += w[r]
        v[x] = total
        mass = masses[x] / total
        # Row weights are recovered from masses; where these are faint, from logarithms.
        faint = masses[x] < 1e10 * FAINT
        for r in range(begin, begin + actions):
            if faint | (w[r] < 1e10 * FAINT * total):
                log_w[r] += np.log(factor[r]) + log_m[x] - largest[x] - np.log(total)
            w[r] *= mass
        begin += actions
    logarithms(v, first, last)
    for x in range(np.uint64(first), np.uint64(last)):
        v[x] = log_m[x] - largest[x] - v[x]


@kernel
def mass_direction(index: LayoutArrays, problem: KernelProblem, ws: Workspace) -> None:
    """How ln m changes along (step_v, step_theta): step_v(x) - sum_a pi(a|x) [ p . step_v + c^T step_theta ]."""
    step_m, step_v, inflow, outflow, log_m = ws.step_m, ws.step_v, ws.inflow, ws.outflow, ws.log_m
    _change(index, problem, ws)
    for x in range(np.uint64(index.state_start[len(index.state_start) - 2])):
        step = step_v[x] - step_m[x] / outflow[x] if outflow[x] > 0.0 else 0.0
        step = min(max(step, -LONGEST), LONGEST)
        # Far from balance a Newton step moves a mass by a factor e or so; the ratio of its flows says how far to go.
        if inflow[x] < 0.1 * outflow[x]:
            step = min(step, 0.5 * (np.log(max(inflow[x], 1e-300)) - log_m[x]))
        elif outflow[x] < 0.1 * inflow[x]:
            step = max(step, 0.5 * (np.log(inflow[x]) - log_m[x]))
        step_m[x] = step


@kernel
def _change(index: LayoutArrays, problem: KernelProblem, ws: Workspace) -> None:
    """step_m(x) = sum_a w [ p . step_v + c^T step_theta ]; step_v(x_L) is 0."""
    state_start, row_start, successor = index.state_start, index.row_start, index.successor
    w, p, flow, step_v, step_theta = ws.w, ws.p, ws.flow, ws.step_v, ws.step_theta
    num_layers, actions, begin = len(state_start) - 2, np.uint64(index.num_actions), np.uint64(0)
    for k in range(num_layers):
        here, first, width = state_start[k], state_start[k + 1], state_start[k + 2] - state_start[k + 1]
        is_inner = k < num_layers - 1
        full = is_full(index, k)
        source, there = np.uint64(ws.coupling_start[k]), np.uint64(first)
        for x in range(np.uint64(here), np.uint64(first)):
            total = 0.0
            if is_inner and full:
                for j in range(np.uint64(width)):
                    total += flow[source + j] * step_v[there + j]
                source += np.uint64(width)
            elif is_inner:
                for r in range(begin, begin + actions):
                    inner = 0.0
                    for j in range(np.uint64(row_start[r]), np.uint64(row_start[r + ONE])):
                        inner += p[j] * step_v[np.uint64(successor[j])]
                    total += w[r] * inner
            for i in range(len(step_theta)):
                if step_theta[i] != 0.0:
                    inner = 0.0
                    for r in range(begin, begin + actions):
                        inner += w[r] * problem.costs[r, i]
                    total += inner * step_theta[i]
            ws.step_m[x] = total
            begin += actions
