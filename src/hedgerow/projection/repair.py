"""Turn the dual solution into an occupancy whose flow is exact.

The policy comes from the row weights, the transitions from the inner problems, which obey their boxes exactly; one
forward pass turns the two into q = q^{p,pi}. The flow has no residual any more; only costs keep one.
"""

from __future__ import annotations

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.compiling.kernels import kernel
from hedgerow.model.index import Index
from hedgerow.projection.elementary import logarithms
from hedgerow.projection.kernel_problem import KernelProblem
from hedgerow.projection.workspace import FAINT, Workspace


@kernel
def recover(
    index: Index, problem: KernelProblem, ws: Workspace, policy: FloatArray, log_w: FloatArray, costs: FloatArray
) -> None:
    """Write pi(a|x) and ln q(x,a) (num_rows,) and the costs c_i^T q (m,); p stays in `ws.p`."""
    num_states = index.state_start[len(index.state_start) - 2]
    actions, begin = np.uint64(index.num_actions), np.uint64(0)
    reach, log_reach, p, w, successor, row_start = ws.inflow, ws.step_m, ws.p, ws.w, index.successor, index.row_start
    masses, log_m, m = ws.masses, ws.log_m, len(costs)
    reach[:] = 0.0
    reach[0] = 1.0
    costs[:] = 0.0
    for x in range(np.uint64(num_states)):
        for r in range(begin, begin + actions):
            policy[r] = w[r] / masses[x] if masses[x] >= FAINT else np.exp(ws.log_w[r] - log_m[x])
            log_w[r] = policy[r]
            mass = reach[x] * policy[r]
            for i in range(m):
                costs[i] += mass * problem.costs[r, i]
            for j in range(np.uint64(row_start[r]), np.uint64(row_start[r + np.uint64(1)])):
                reach[np.uint64(successor[j])] += mass * p[j]
        log_reach[x] = reach[x]
        begin += actions
    logarithms(log_w, 0, len(log_w))
    logarithms(log_reach, 0, num_states)
    begin = np.uint64(0)
    for x in range(np.uint64(num_states)):
        # A state that nothing reaches in floating point keeps the mass that the dual gave it.
        log_mass = log_reach[x] if reach[x] > 1e-300 else log_m[x]
        for r in range(begin, begin + actions):
            log_w[r] = log_mass + (log_w[r] if policy[r] >= FAINT else ws.log_w[r] - log_m[x])
        begin += actions
