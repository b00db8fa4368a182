"""From the dual solution to an occupancy whose flow is exact.

The policy comes from the row weights, the transitions from the inner problems, which obey their boxes exactly; one
forward pass turns the two into q = q^{p,pi}. What the dual left over in flow is gone; only costs keep a residual.
"""

from __future__ import annotations

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.compiling import kernel
from hedgerow.model.index import Index
from hedgerow.projection.dual import KernelProblem
from hedgerow.projection.workspace import Workspace


@kernel
def recover(
    index: Index, problem: KernelProblem, ws: Workspace, policy: FloatArray, log_w: FloatArray, costs: FloatArray
) -> None:
    """Write pi(a|x) and ln q(x,a) (num_rows,) and the costs c_i^T q (m,); p stays in `ws.p`."""
    num_decision_states = index.state_start[len(index.state_start) - 2]
    reach, p, successor = ws.inflow, ws.p, index.successor
    reach[:] = 0.0
    reach[0] = 1.0
    costs[:] = 0.0
    for x in range(num_decision_states):
        first, last = x * index.num_actions, (x + 1) * index.num_actions
        largest = -np.inf
        for r in range(first, last):
            largest = max(largest, ws.log_w[r])
        total = 0.0
        for r in range(first, last):
            policy[r] = np.exp(ws.log_w[r] - largest)
            total += policy[r]
        # A state that nothing reaches in floating point keeps the mass that the dual gave it.
        log_total = largest + np.log(total)
        shift = np.log(reach[x]) - log_total if reach[x] > 1e-300 else 0.0
        for r in range(first, last):
            policy[r] /= total
            log_w[r] = ws.log_w[r] + shift
            mass = reach[x] * policy[r]
            for i in range(len(costs)):
                costs[i] += mass * problem.costs[r, i]
            for j in range(np.uint64(index.row_start[r]), np.uint64(index.row_start[r + 1])):
                reach[np.uint64(successor[j])] += mass * p[j]
