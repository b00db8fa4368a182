"""One sweep of a plan: the occupancy of least weighted loss in the boxes, kept as a column with its loss and its costs.

    W(share, theta) = min { (share loss + theta^T costs)^T q : q in Delta(boxes) }

Extended value iteration finds it exactly (`robust.py`). For share 1 and theta >= 0, W - theta^T thresholds is a lower
bound of the least loss under the constraints; for share 0 and theta in the simplex, of the least violation.
"""

from __future__ import annotations

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.compiling.kernels import kernel
from hedgerow.model.index import Index
from hedgerow.model.positions import triples_of
from hedgerow.planning.plan_problem import INFEASIBLE, SOLVED, UNSOLVED, PlanProblem, PlanWorkspace
from hedgerow.planning.robust import RobustScratch, least_cost, row_mass_of_least_cost

TOL_PROOF = 1e-10
"""An answer is proved if its gap is at most this, times 1 + |value| + L."""
TOL_RESIDUAL = 1e-10
"""... and its costs exceed the thresholds by no more than this, times 1 + their own size."""


@kernel
def sweep(
    index: Index, problem: PlanProblem, share: float, theta: FloatArray, place: int, workspace: PlanWorkspace
) -> float:
    """W(share, theta); its occupancy goes into column number `place`."""
    loss, costs, weighted = problem.loss, problem.costs, workspace.weighted
    for r in range(len(loss)):
        total = share * loss[r]
        for i in range(len(theta)):
            total += theta[i] * costs[r, i]
        weighted[r] = total
    if workspace.tallies.known:
        value = _least_cost_at_points(index, weighted, workspace.robust)
    else:
        value = least_cost(index, problem.lower, problem.upper, weighted, workspace.robust)
    workspace.tallies.sweeps += 1
    masses = workspace.columns[place]
    row_mass_of_least_cost(index, workspace.robust, masses)
    workspace.column_loss[place] = measure(problem, masses, workspace.column_costs[place])
    return value


@kernel
def begin(index: Index, problem: PlanProblem, workspace: PlanWorkspace) -> None:
    """Get ready for the sweeps of a problem: if its transitions are known, they are those of every sweep."""
    lower, p, tallies = problem.lower, workspace.robust.p, workspace.tallies
    tallies.sweeps, tallies.known = 0, 1
    for j in range(len(lower)):
        if lower[j] < problem.upper[j]:
            tallies.known = 0
            return
        p[j] = lower[j]
    for r in range(len(problem.loss)):
        start = index.row_start[r]
        if index.row_start[r + 1] - start == 1:
            p[start] = 1.0  # whatever its bounds say


@kernel
def _least_cost_at_points(index: Index, cost: FloatArray, scratch: RobustScratch) -> float:
    """As `least_cost` where nothing is left to choose in the boxes: backward induction with the transitions `p`."""
    values, p, successor, A = scratch.values, scratch.p, index.successor, index.num_actions
    last = len(scratch.action)
    values[last] = 0.0
    for x in range(last - 1, -1, -1):
        best = np.inf
        for a in range(A):
            start, stop = triples_of(index, x * A + a)
            value = 0.0
            for j in range(start, stop):
                value += p[j] * values[successor[j]]
            value += cost[x * A + a]
            if value < best:
                best = value
                scratch.action[x] = a
        values[x] = best
    return float(values[0])


@kernel
def measure(problem: PlanProblem, masses: FloatArray, reached: FloatArray) -> float:
    """The loss of `masses` (num_rows,); writes its costs into `reached` (m,)."""
    loss, costs, total = problem.loss, problem.costs, 0.0
    for i in range(len(reached)):
        reached[i] = 0.0
    for r in range(len(masses)):
        mass = masses[r]
        if mass > 0.0:
            total += mass * loss[r]
            for i in range(len(reached)):
                reached[i] += mass * costs[r, i]
    return total


@kernel
def excess(reached: FloatArray, thresholds: FloatArray) -> float:
    """By how much the worst constraint is missed: max of reached - thresholds."""
    worst = -np.inf
    for i in range(len(reached)):
        worst = max(worst, reached[i] - thresholds[i])
    return worst


@kernel
def largest_entry(values: FloatArray) -> float:
    """max |entry|"""
    largest = 0.0
    for r in range(len(values)):
        largest = max(largest, abs(values[r]))
    return largest


@kernel
def conclude(index: Index, problem: PlanProblem, feasible: bool, bound: float, workspace: PlanWorkspace) -> int:
    """The figures of `masses` and the status that `bound` proves for them."""
    figures, steps = workspace.figures, len(index.state_start) - 2
    value = measure(problem, workspace.masses, workspace.reached)
    figures.value, figures.bound, figures.violation = value, bound, 0.0
    status = SOLVED if feasible else INFEASIBLE
    if not feasible:
        violation = excess(workspace.reached, problem.thresholds)
        figures.violation = violation
        if not abs(violation - bound) <= TOL_PROOF * (1.0 + abs(violation) + steps) or not bound > 0.0:
            status = UNSOLVED
    elif not abs(value - bound) <= TOL_PROOF * (1.0 + abs(value) + steps):
        status = UNSOLVED
    else:
        for i in range(len(workspace.reached)):
            room = TOL_RESIDUAL * (1.0 + abs(problem.thresholds[i]))
            if not workspace.reached[i] - problem.thresholds[i] <= room:
                status = UNSOLVED
    workspace.tallies.status = status
    return status
