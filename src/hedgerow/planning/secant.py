"""Plans under one constraint: the secant method on the multiplier.

Two occupancies bracket the threshold: q1 has the smaller loss and costs too much, q2 keeps it. The multiplier at which
both weigh the same, theta = (v2 - v1) / (c1 - c2), is where their lines v + theta c cross. A sweep at theta finds an
occupancy below both lines, which replaces q1 or q2, or proves that there is none. Then the mixture of q1 and q2 whose
cost is the threshold is optimal. This is Kelley's method for the dual, which has one variable here.

    >>> from hedgerow.planning.box_plans import constrained_plan
    >>> from hedgerow.model.layout import Layout
    >>> plan = constrained_plan(Layout((1, 1), 2), [1.0, 1.0], [1.0, 1.0], [0.0, 1.0], [[0.75], [0.25]], [0.5])
    >>> plan.value, plan.masses.tolist(), plan.multipliers.tolist()
    (0.5, [0.5, 0.5], [2.0])
"""

from __future__ import annotations

from hedgerow.compiling.kernels import copy_into, kernel
from hedgerow.model.index import Index
from hedgerow.planning.plan_problem import PlanProblem, PlanWorkspace
from hedgerow.planning.sweeps import conclude, largest_entry, sweep

TOL_LINE = 1e-13
"""A sweep that ends this close to the lines, times their size, has found nothing new."""
TOL_ROUNDING = 1e-15
"""Rounding of a sweep, times L and the largest weighted loss of a row."""
TOL_TOUCH = 1e-14
"""A cost above the threshold by this, times L and the largest cost of a row, is rounding."""
MAX_SWEEPS = 200


@kernel
def plan_with_one_constraint(index: Index, problem: PlanProblem, workspace: PlanWorkspace) -> int:
    """The status; outputs in `workspace`."""
    theta, alpha = workspace.multipliers, problem.thresholds[0]
    v, c = workspace.column_loss, workspace.column_costs
    steps = float(len(index.state_start) - 2)
    theta[0] = 0.0
    bound = sweep(index, problem, 1.0, theta, 0, workspace)
    largest_loss, largest_cost = largest_entry(problem.loss), 0.0
    for r in range(len(problem.costs)):
        largest_cost = max(largest_cost, abs(problem.costs[r, 0]))
    allowed = alpha + TOL_TOUCH * steps * largest_cost
    if c[0, 0] <= allowed:
        copy_into(workspace.columns[0], workspace.masses)
        return conclude(index, problem, True, bound, workspace)
    theta[0] = 1.0
    cheapest = sweep(index, problem, 0.0, theta, 1, workspace)
    if c[1, 0] > allowed:
        copy_into(workspace.columns[1], workspace.masses)
        return conclude(index, problem, False, cheapest - alpha, workspace)
    dear, cheap, free = 0, 1, 2  # the columns of q1 and q2, and the one for the next sweep
    for _ in range(MAX_SWEEPS):
        theta[0] = max(0.0, (v[cheap] - v[dear]) / (c[dear, 0] - c[cheap, 0]))
        line = v[dear] + theta[0] * c[dear, 0]
        weight = sweep(index, problem, 1.0, theta, free, workspace)
        bound = weight - theta[0] * alpha
        rounding = TOL_ROUNDING * steps * (largest_loss + theta[0] * largest_cost)
        if weight >= line - TOL_LINE * (1.0 + abs(v[dear]) + theta[0] * abs(c[dear, 0])) - rounding:
            break
        if c[free, 0] > allowed:
            if c[free, 0] >= c[dear, 0]:  # by rounding: nothing lies between the two any more
                break
            dear, free = free, dear
        else:
            cheap, free = free, cheap
    share = min(max((alpha - c[cheap, 0]) / (c[dear, 0] - c[cheap, 0]), 0.0), 1.0)
    for r in range(len(workspace.masses)):
        workspace.masses[r] = share * workspace.columns[dear, r] + (1.0 - share) * workspace.columns[cheap, r]
    return conclude(index, problem, True, bound, workspace)
