"""The largest expected cost of a policy that any transitions in their boxes allow.

    U_i = max { sum_{x,a} c_i(x,a) q^{P,pi}(x,a) : P in boxes } = V(x_0),   V(x_L) = 0,
    V(x) = sum_a pi(a|x) [ c_i(x,a) + max { p . V : p in box(x,a) } ]

With c_i = UCB_i, and the true transitions in their boxes, U_i is at least the true cost. It is at most the paper's
sum_{x,a} UCB_i(x,a) u(x,a), where every pair chooses its own worst transitions; here all pairs share the same. One
backward pass per constraint replaces one per state.
"""

from __future__ import annotations

from hedgerow.checks import FloatArray
from hedgerow.compiling.kernels import kernel
from hedgerow.estimates.columns import Columns, sort_above, step_back
from hedgerow.model.index import Index
from hedgerow.model.positions import ONE, states_of


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
