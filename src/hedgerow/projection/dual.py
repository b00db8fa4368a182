"""The small dual of the projection: its value, its gradient and the point that attains it.

    g(v, theta) = v(x_0) - theta^T alpha - sum_{x,a} w(x,a) + sum_{x,a} wt(x,a),    theta >= 0,  v(x_L) = 0
    w(x,a) = wt(x,a) exp( v(x) - h(x,a) - theta^T c(x,a) ),   h from `rows`
    dg/dv(x) = [x = x_0] - sum_a w(x,a) + sum_{z,a} w(z,a) p(x|z,a),        dg/dtheta_i = c_i^T w - alpha_i

Adding a constant to v on a layer only rescales the weights of that layer and of the one before, so the best such shifts
are closed form: after them every layer has mass 1. `evaluate` applies them always ("renormalisation"); then
g = v(x_0) - theta^T alpha - L + sum wt. Row weights live in the log domain, conditionals are plain numbers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.bundles import Bundle
from hedgerow.compiling.kernels import copy_into, kernel
from hedgerow.model.index import Index
from hedgerow.projection.elementary import exponentials, logarithms
from hedgerow.projection.rows import (
    bound_value,
    clip_row,
    clip_row_wide,
    find_bounds,
    guess_bounds,
    settle_full_row,
    settle_row,
)
from hedgerow.projection.short_vectors import add_multiple
from hedgerow.projection.workspace import FAINT, Workspace


class KernelProblem(Bundle):
    """Problem (PROJ) as the kernels see it: the base is wt(x,a) pt(x'|x,a)."""

    log_weight: FloatArray
    """(num_rows,): ln wt"""
    conditional: FloatArray
    """(num_triples,): pt, each row sums to 1"""
    log_conditional: FloatArray
    """(num_triples,): ln pt, for rows that span more than floating point; or empty if all pt are normal numbers"""
    lower: FloatArray
    """(num_triples,)"""
    upper: FloatArray
    """(num_triples,)"""
    costs: FloatArray
    """(num_rows, m)"""
    thresholds: FloatArray
    """(m,)"""
    absorbed: FloatArray
    """(m,): multipliers that the base contains already; theta counts from there, so theta >= -absorbed"""


ONE = np.uint64(1)
SMALLEST_WEIGHT = 1e-290
"""Below this a product of a conditional and exp(-v) may lose digits, and the row is redone in the log domain."""


@kernel
def evaluate(index: Index, problem: KernelProblem, v: FloatArray, theta: FloatArray, ws: Workspace) -> float:
    """g(v, theta) - sum wt after renormalising `v` (modified); writes p, bound, num_bound, w, masses, log_m of `ws`.

    The first evaluation of a problem must be this one: it also notes what depends on the base alone.
    """
    num_layers = len(index.state_start) - 2
    ws.least_base[0] = _least(problem.conditional)
    ws.noted[:] = 0
    guess_bounds(problem.conditional, problem.lower, problem.upper, 0, len(ws.bound), ws.bound)
    for k in range(num_layers):
        solve_layer(
            index.row_start, index.successor, index.num_actions,
            index.state_start[k], index.state_start[k + 1], index.state_start[k + 2],
            problem.log_weight, problem.conditional, problem.log_conditional, problem.lower, problem.upper,
            problem.costs, v, theta, ws.scaled, ws.p, ws.bound, ws.num_bound, ws.log_ratio, ws.noted,
            ws.log_w, ws.factor, ws.least_base[0],
        )  # fmt: skip
        for x in range(index.state_start[k], index.state_start[k + 1]):
            for r in range(x * index.num_actions, (x + 1) * index.num_actions):
                ws.log_w[r] += v[x] + np.log(ws.factor[r])
        _normalise_layer(index, k, ws)
    shift = 0.0
    for k in range(num_layers - 1, -1, -1):
        shift -= ws.log_mass[k]
        for x in range(index.state_start[k], index.state_start[k + 1]):
            v[x] += shift
    _find_masses(index, ws)
    return dual_value(num_layers, v, theta, problem.thresholds)


@kernel
def evaluate_base(index: Index, problem: KernelProblem, rows: IntArray, v: FloatArray, ws: Workspace) -> float:
    """`evaluate` at theta = 0 and v = 0 (modified), where all rows but `rows` have their base within their boxes.

    Those have p = pt and h = 0, and the bounds of `ws.bound` and `ws.num_bound`: a learner's base is its last
    projection, which was changed in the rows that an episode visited.
    """
    base, log_weight, p, log_w, scaled = problem.conditional, problem.log_weight, ws.p, ws.log_w, ws.scaled
    ws.least_base[0] = _least(base)
    ws.noted[:] = 0
    copy_into(base, p)
    copy_into(log_weight, log_w)
    for x in range(len(v)):
        scaled[x] = 1.0
        v[x] = 0.0
    for r in rows:
        log_w[r] -= _solve_at_base(
            index.successor, base, problem.log_conditional, problem.lower, problem.upper, v, scaled, r,
            index.row_start[r], index.row_start[r + 1], p, ws.bound, ws.num_bound,
        )  # fmt: skip
    num_layers = len(index.state_start) - 2
    for k in range(num_layers):
        _normalise_layer(index, k, ws)
    shift = 0.0
    for k in range(num_layers - 1, -1, -1):
        shift -= ws.log_mass[k]
        for x in range(index.state_start[k], index.state_start[k + 1]):
            v[x] = shift
    _find_masses(index, ws)
    return float(v[0] - num_layers)


@kernel
def _solve_at_base(
    successor: NDArray[np.int32],
    base: FloatArray,
    log_base: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    v: FloatArray,
    scaled: FloatArray,
    row: int,
    start: int,
    stop: int,
    p: FloatArray,
    bound: NDArray[np.int8],
    num_bound: IntArray,
) -> float:
    """h of a row at v = 0, whose bounds are guessed from its base."""
    if stop - start == 1:
        p[start] = 1.0
        return 0.0
    guess_bounds(base, lower, upper, start, stop, bound)
    scale, rest, count = settle_row(base, scaled, successor, lower, upper, start, stop, p, bound)
    if scale < 0.0:
        h, num_bound[row] = _solve_row(successor, base, log_base, lower, upper, v, scaled, 0.0, start, stop, p, bound)
        return float(h)
    num_bound[row] = count
    h = rest * np.log(scale)
    for j in range(start, stop):
        if bound[j] != 0 and p[j] > 0.0:
            h += p[j] * np.log(p[j] / base[j])
    return float(h)


@kernel
def dual_value(num_layers: int, v: FloatArray, theta: FloatArray, thresholds: FloatArray) -> float:
    """g - sum wt when every layer has mass 1."""
    value = v[0] - float(num_layers)
    for i in range(len(theta)):
        value -= theta[i] * thresholds[i]
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
def is_full(row_start: IntArray, first_row: int, last_row: int, width: int) -> bool:
    """Whether each of these rows leads to all `width` states of the next layer, in order."""
    return bool(row_start[last_row] - row_start[first_row] == (last_row - first_row) * width)


@kernel
def solve_layer(
    row_start: IntArray,
    successor: NDArray[np.int32],
    num_actions: int,
    here: int,
    first: int,
    last: int,
    log_weight: FloatArray,
    base: FloatArray,
    log_base: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    costs: FloatArray,
    v: FloatArray,
    theta: FloatArray,
    scaled: FloatArray,
    p: FloatArray,
    bound: NDArray[np.int8],
    num_bound: IntArray,
    log_ratio: FloatArray,
    noted: NDArray[np.int8],
    log_w: FloatArray,
    factor: FloatArray,
    least_base: float,
) -> None:
    """p and w = factor exp(log_w), without its v, of the rows of the states here..first-1, which lead to first..last-1.

    Of rows without active bounds e^-h is known, and h would cost a logarithm.
    """
    lowest, highest = v[first], v[first]
    for y in range(np.uint64(first + 1), np.uint64(last)):
        lowest, highest = min(lowest, v[y]), max(highest, v[y])
    for y in range(np.uint64(first), np.uint64(last)):
        scaled[y] = lowest - v[y]
    exponentials(scaled, first, last)
    width = last - first
    ordinary = least_base * np.exp(lowest - highest) >= SMALLEST_WEIGHT
    for r in range(np.uint64(here * num_actions), np.uint64(first * num_actions)):
        start, stop = row_start[r], row_start[r + ONE]
        whole = 1.0
        if stop - start == 1:
            p[start] = 1.0
            h = v[successor[start]]
        else:
            scale = -1.0
            if ordinary:
                full = stop - start == width
                if full:
                    scale, rest, count = settle_full_row(base, scaled, lower, upper, start, first, width, p, bound)
                else:
                    scale, rest, count = settle_row(base, scaled, successor, lower, upper, start, stop, p, bound)
                if count > 0:
                    h = rest * (np.log(scale) + lowest) + bound_value(
                        base, lower, upper, successor, v, start, stop, full, p, bound, log_ratio, noted
                    )
                else:  # e^-h is known without a logarithm
                    h = lowest
                    whole = 1.0 / scale
                num_bound[r] = count
            if scale < 0.0:
                whole = 1.0
                h, num_bound[r] = _solve_row(
                    successor, base, log_base, lower, upper, v, scaled, lowest, start, stop, p, bound
                )
        total = log_weight[r] - h
        for i in range(len(theta)):
            total -= theta[i] * costs[r, i]
        log_w[r] = total
        factor[r] = whole


@kernel
def _solve_row(
    successor: NDArray[np.int32],
    base: FloatArray,
    log_base: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    v: FloatArray,
    scaled: FloatArray,
    lowest: float,
    start: int,
    stop: int,
    p: FloatArray,
    bound: NDArray[np.int8],
) -> tuple[float, int]:
    """h and the number at a bound of a row that does not settle, or whose weights may be beyond floating point."""
    smallest = 1.0
    for j in range(start, stop):
        p[j] = base[j] * scaled[successor[j]]
        smallest = min(smallest, p[j])
    if not smallest >= SMALLEST_WEIGHT:
        return clip_row_wide(base, log_base, lower, upper, successor, v, start, stop, p, bound)
    scale, count = find_bounds(lower, upper, start, stop, p, bound)
    h = clip_row(base, lower, upper, successor, v, lowest, scale, start, stop, p, bound)
    return h, count


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
    _flow_pass(
        index.row_start, index.successor, index.state_start, index.num_actions, problem.costs, problem.thresholds,
        ws.w, ws.p, ws.inflow, ws.outflow, ws.flow, ws.coupling_start, ws.gradient_v, ws.gradient_theta,
    )  # fmt: skip


@kernel
def _flow_pass(
    row_start: IntArray,
    successor: NDArray[np.int32],
    state_start: IntArray,
    num_actions: int,
    costs: FloatArray,
    thresholds: FloatArray,
    w: FloatArray,
    p: FloatArray,
    inflow: FloatArray,
    outflow: FloatArray,
    flow: FloatArray,
    flow_start: IntArray,
    gradient_v: FloatArray,
    gradient_theta: FloatArray,
) -> None:
    """The work of `gradient`, on plain arrays."""
    num_layers, m = len(state_start) - 2, len(gradient_theta)
    inflow[:] = 0.0
    inflow[0] = 1.0
    for i in range(m):
        gradient_theta[i] = -thresholds[i]
    for k in range(num_layers):
        here, first, width = state_start[k], state_start[k + 1], state_start[k + 2] - state_start[k + 1]
        is_inner = k < num_layers - 1
        full = is_inner and is_full(row_start, here * num_actions, first * num_actions, width)
        for x in range(here, first):
            block = flow_start[k] + (x - here) * width
            if full:
                for j in range(np.uint64(block), np.uint64(block + width)):
                    flow[j] = 0.0
            total = 0.0
            for r in range(x * num_actions, (x + 1) * num_actions):
                total += w[r]
                for i in range(m):
                    gradient_theta[i] += w[r] * costs[r, i]
                if full:
                    add_multiple(flow, block, w[r], p, row_start[r], width)
                elif is_inner:
                    for j in range(np.uint64(row_start[r]), np.uint64(row_start[r + 1])):
                        inflow[np.uint64(successor[j])] += w[r] * p[j]
            outflow[x] = total
            if full:
                add_multiple(inflow, first, 1.0, flow, block, width)
    for x in range(state_start[num_layers]):
        gradient_v[x] = inflow[x] - outflow[x]
