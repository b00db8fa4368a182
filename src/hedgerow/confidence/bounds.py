"""COMP-UOB: the largest probability of reaching a state that any transitions in their boxes allow.

    u(x,a) = max { q^{P,pi}(x,a) : P in boxes } = pi(a|x) f(x_0)     for a Markov policy pi and x in X_k, where
    f = indicator of x on X_k,   f(z) = sum_a pi(a|z) max { p . f : p in box(z,a) }   for z in X_{k-1}, ..., X_0.

Rows choose their p independently, so the backward pass is exact. Every target state has its own worst transitions: one
pass per state (its actions share it), and the bounds of a layer may add up to more than 1. With trivial boxes every
state is reached surely: u(x,a) = pi(a|x). A mixture of policies has no such recursion; average the bounds instead.

A pass goes back through at most WINDOW layers: the bounds of a path cost a multiple of L instead of L^2. The caps of
`caps.py` bound what lies before: f(x_0) <= max { q . f : q <= cap, sum q = 1 } on the layer where the pass ends. Worlds
of up to WINDOW layers, and longer ones with two states in a layer, have the bounds of COMP-UOB itself.

The step of the pass is in `columns.py`. Only `load_columns` there reads boxes and policy; after it, `reach_of_states`
may be called for any targets, as often as needed.
"""

from __future__ import annotations

import numpy as np

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.kernels import kernel
from hedgerow.confidence.columns import Columns, sort_above, step_back
from hedgerow.model.kernel_layout import ONE, Index, first_gap, sort_by_key, states_of

WINDOW = 64
"""Departs from COMP-UOB: deeper states are bounded through the caps of the layer this many layers before them."""


@kernel
def reach_of_states(index: Index, columns: Columns, targets: IntArray, num_targets: int, reach: FloatArray) -> None:
    """reach[i] = largest Pr[visit targets[i]] for i < num_targets, for the boxes and the policy in `columns`."""
    reach_within(index, columns, targets, num_targets, WINDOW, reach)


@kernel
def reach_within(
    index: Index, columns: Columns, targets: IntArray, num_targets: int, window: int, reach: FloatArray
) -> None:
    """`reach_of_states` by passes through at most `window` >= 1 layers."""
    state_start = index.state_start
    if len(state_start) - 2 > window:
        fill_caps(index, columns, len(state_start) - 3 - window)
    k = 0
    for i in range(num_targets):
        target = targets[i]
        if target < state_start[k]:
            k = 0
        while target >= state_start[k + 1]:
            k += 1
        # An indicator needs no sort: the target is above phi = 0, or alone in its layer and phi = 1.
        columns.order[0], columns.key[0] = target, 1.0
        phi, count = (0.0, 1) if state_start[k + 1] - state_start[k] > 1 else (1.0, 0)
        end = max(k - window, 0)
        for h in range(k - 1, end - 1, -1):
            step_back(index, columns, h, phi, count)
            phi, count = sort_above(index, columns, h)
        # At x_0 nothing is above phi = f(x_0), and there is nothing to fill.
        reach[i] = min(fill_to_caps(columns, phi, count), 1.0)


# --------------------------------------------------------------------------------------------------------------------
# Caps: the largest mass that each state can hold, by one pass through the layers from the first to the last.
#
#     cap(x_0) = 1,   cap(y) = max { sum_x q(x) c_y(x) : 0 <= q <= cap on X_k, sum q = 1 }   for y in X_{k+1}, where
#     c_y(x) = sum_a pi(a|x) max { p(y) : p in box(x,a) } = sum_a pi(a|x) min(hi(y), 1 - sum of the other lo).
#
# By induction every P in the boxes has q^{P,pi}(y) <= cap(y): the masses of X_k lie below their caps and sum to 1,
# and no state sends more than c_y(x) of its mass to y. The maximum fills greedily, the best predecessor first.
#
# Caps are the upper occupancy bounds of COMP-UOB if no layer has more than two states (the masses of a layer are then
# any that the caps allow) or if the transitions are known. Else they are larger, but not in their order: with
# w(x,a,y) the width of a box, either kind of bound exceeds the occupancies of P, summed over a layer, by sum q(x,a)
# w(x,a,y) over the layers before, up to terms of second order in w. All caps together cost one pass over the triples;
# COMP-UOB takes one pass for every state.


@kernel
def fill_caps(index: Index, columns: Columns, last_layer: int) -> None:
    """The caps of the layers 0, ..., last_layer under the boxes and the policy in `columns`, into `columns.caps`."""
    state_start, caps, order, key = index.state_start, columns.caps, columns.order, columns.key
    caps[0] = 1.0
    for k in range(last_layer):
        base = columns.first_slot[state_start[k]]
        for y in range(state_start[k + 1], state_start[k + 2]):
            count = 0
            for entry in range(columns.start[y], columns.stop[y]):
                s = base + columns.slot[entry]
                x = np.uint64(columns.row[s] // index.num_actions)
                if count == 0 or order[count - 1] != x:  # the entries of a column are sorted by state
                    order[count] = x
                    key[count] = 0.0
                    count += 1
                key[count - 1] += columns.weight[s] * (
                    columns.lower[entry] + min(columns.width[entry], columns.rest[s])
                )
            sort_by_key(order, key, count, first_gap(count // 9))
            caps[y] = min(fill_to_caps(columns, 0.0, count), 1.0)


@kernel
def fill_to_caps(columns: Columns, phi: float, count: int) -> float:
    """max { sum q f : q <= caps, sum q = 1 }, where f is `key` on order[:count], best first, and phi elsewhere."""
    total, left = phi, 1.0
    for i in range(count):
        mass = min(columns.caps[columns.order[i]], left)
        left -= mass
        total += mass * (columns.key[i] - phi)
    return total


# --------------------------------------------------------------------------------------------------------------------
# The largest expected cost of a policy that any transitions in their boxes allow.
#
#     U_i = max { sum_{x,a} c_i(x,a) q^{P,pi}(x,a) : P in boxes } = V(x_0),   V(x_L) = 0,
#     V(x) = sum_a pi(a|x) [ c_i(x,a) + max { p . V : p in box(x,a) } ]
#
# With c_i = UCB_i, and the true transitions in their boxes, U_i is at least the true cost. It is at most the paper's
# sum_{x,a} UCB_i(x,a) u(x,a), where every pair chooses its own worst transitions; here all pairs share the same. One
# backward pass per constraint replaces one per state.


@kernel
def joint_costs_of_columns(index: Index, columns: Columns, costs: FloatArray, bounds: FloatArray) -> None:
    """U_i of all constraints for costs (num_rows, m), into `bounds` (m,): one backward pass per constraint.

    `columns` hold the boxes and the policy: `load_columns` comes first.
    """
    for i in range(len(bounds)):
        bounds[i] = joint_cost_of_columns(index, columns, costs, i, 1.0)


@kernel
def joint_cost_of_columns(index: Index, columns: Columns, costs: FloatArray, i: int, sign: float) -> float:
    """U_i for the costs of one constraint, times `sign`: with -1 it is minus the least that the boxes allow.

    Leaves V of the decision states in `columns.values`.
    """
    first_slot, weight, values = columns.first_slot, columns.weight, columns.values
    phi, count = 0.0, 0  # V(x_L) = 0
    for k in range(len(index.state_start) - 3, -1, -1):
        step_back(index, columns, k, phi, count)
        first, last = states_of(index, k)
        for x in range(first, last):
            cost = 0.0
            for s in range(first_slot[x], first_slot[x + ONE]):
                cost += weight[s] * costs[columns.row[s], i]
            values[x] += sign * cost
        phi, count = sort_above(index, columns, k)
    return phi  # V(x_0): the only state of its layer
