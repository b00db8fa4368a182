"""The largest expected cost of a policy that any transitions in their boxes allow.

    U_i = max { sum_{x,a} c_i(x,a) q^{P,pi}(x,a) : P in boxes } = V(x_0),   V(x_L) = 0,
    V(x) = sum_a pi(a|x) [ c_i(x,a) + max { p . V : p in box(x,a) } ]

With c_i = UCB_i, and the true transitions in their boxes, U_i is at least the true cost. It is at most the paper's
sum_{x,a} UCB_i(x,a) u(x,a), where every pair chooses its own worst transitions while here all share the same. One
backward pass per constraint takes the place of one per state.
"""

from __future__ import annotations

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.kernels import kernel
from hedgerow.estimates.columns import Columns, Positions, average_actions, fill_layer, sort_above
from hedgerow.model.index import Index


@kernel
def joint_costs_of_columns(index: Index, columns: Columns, costs: FloatArray, bounds: FloatArray) -> None:
    """U_i of all constraints for costs (num_rows, m), into `bounds` (m,): one backward pass per constraint.

    `columns` hold the boxes and the policy: `load_columns` comes first.
    """
    state_start, first_slot = index.state_start, columns.first_slot
    values, order, key, left, gain = columns.values, columns.order, columns.key, columns.left, columns.gain
    start, stop, slot, lower, width = columns.start, columns.stop, columns.slot, columns.lower, columns.width
    weight, rest, row = columns.weight, columns.rest, columns.row
    num_layers = len(state_start) - 2
    for i in range(len(bounds)):
        values[state_start[num_layers]] = 0.0
        for k in range(num_layers - 1, -1, -1):
            first, last = state_start[k], state_start[k + 1]
            phi, count = sort_above(values, last, state_start[k + 2], order, key)
            base = first_slot[first]
            num_slots = first_slot[last] - base
            fill_layer(phi, order, key, count, start, stop, slot, lower, width, rest, base, num_slots, left, gain)
            average_actions(first, last, phi, first_slot, weight, gain, values)
            _add_costs(first, last, first_slot, weight, row, costs, i, values)
        bounds[i] = values[0]


@kernel
def _add_costs(
    first: int,
    last: int,
    first_slot: Positions,
    weight: FloatArray,
    row: IntArray,
    costs: FloatArray,
    i: int,
    values: FloatArray,
) -> None:
    """V(x) += sum_a pi(a|x) c_i(x,a) for the states first..last-1."""
    for x in range(first, last):
        total = 0.0
        for s in range(first_slot[x], first_slot[x + 1]):
            total += weight[s] * costs[row[s], i]
        values[x] += total
