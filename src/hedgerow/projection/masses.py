"""The dual in other coordinates: the masses that leave the states. They determine v.

    v(x) = ln m(x) - ln sum_a wt e^{-h - theta^T c}      backwards through the layers: the outflow of x is m(x)

Masses are the better coordinates for long steps: v follows theta by itself, however large theta is.
"""

from __future__ import annotations

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.compiling.kernels import kernel
from hedgerow.model.kernel_layout import Index
from hedgerow.projection.dual import ONE, dual_value, is_full, solve_layer
from hedgerow.projection.elementary import exponentials, logarithms
from hedgerow.projection.workspace import FAINT, KernelProblem, Workspace

LONGEST = 30.0
"""The most by which the Newton direction may change ln of a mass in one step."""


@kernel
def evaluate_masses(
    index: Index, problem: KernelProblem, log_m: FloatArray, theta: FloatArray, v: FloatArray, ws: Workspace
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
def _share_masses(index: Index, log_m: FloatArray, v: FloatArray, k: int, ws: Workspace) -> None:
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
def mass_direction(index: Index, problem: KernelProblem, ws: Workspace) -> None:
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
def _change(index: Index, problem: KernelProblem, ws: Workspace) -> None:
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
