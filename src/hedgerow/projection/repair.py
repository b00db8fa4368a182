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
from hedgerow.projection.workspace import FAINT, Workspace


@kernel
def recover(
    index: Index, problem: KernelProblem, ws: Workspace, policy: FloatArray, log_w: FloatArray, costs: FloatArray
) -> None:
    """Write pi(a|x) and ln q(x,a) (num_rows,) and the costs c_i^T q (m,); p stays in `ws.p`."""
    num_decision_states = index.state_start[len(index.state_start) - 2]
    reach, p, w, successor, row_start = ws.inflow, ws.p, ws.w, index.successor, index.row_start
    reach[:] = 0.0
    reach[0] = 1.0
    costs[:] = 0.0
    end = np.uint64(0)
    for x in range(np.uint64(num_decision_states)):
        begin, end = end, end + np.uint64(index.num_actions)
        mass = ws.masses[x]
        if mass >= FAINT:
            for r in range(begin, end):
                policy[r] = w[r] / mass
        else:
            for r in range(begin, end):
                policy[r] = np.exp(ws.log_w[r] - ws.log_m[x])
        # A state that nothing reaches in floating point keeps the mass that the dual gave it.
        log_reach = np.log(reach[x]) if reach[x] > 1e-300 else ws.log_m[x]
        for r in range(begin, end):
            if policy[r] >= FAINT:
                log_w[r] = np.log(policy[r]) + log_reach
            else:
                log_w[r] = ws.log_w[r] + (log_reach - ws.log_m[x])
            mass = reach[x] * policy[r]
            for i in range(len(costs)):
                costs[i] += mass * problem.costs[r, i]
            for j in range(np.uint64(row_start[r]), np.uint64(row_start[r + np.uint64(1)])):
                reach[np.uint64(successor[j])] += mass * p[j]
