"""One sweep of a plan: the occupancy of least weighted loss in the boxes, kept as a column with its loss and its costs.

    W(share, theta) = min { (share loss + theta^T costs)^T q : q in Delta(boxes) }

Extended value iteration finds it exactly (`decomposition.py`). For share 1 and theta >= 0, W - theta^T thresholds is a
lower bound of the least loss under the constraints; for share 0 and theta in the simplex, of the least violation.
"""

from __future__ import annotations

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.compiling.kernels import copy_into, kernel
from hedgerow.model.kernel_layout import LayoutArrays, triples_of
from hedgerow.planning.decomposition import (
    ABSENT,
    BASIC,
    INFEASIBLE,
    READY,
    SOLVED,
    TOL_PRICE,
    UNSOLVED,
    Master,
    PlanProblem,
    PlanWorkspace,
    RobustScratch,
    find_direction,
    largest_entry,
    least_cost,
    objective,
    optimise,
    reduced_cost,
    refactor,
    row_mass_of_least_cost,
    size_of_multipliers,
    swap,
)

TOL_PROOF = 1e-10
"""An answer is proved if its gap is at most this, times 1 + |value| + L."""
TOL_RESIDUAL = 1e-10
"""... and its costs exceed the thresholds by no more than this, times 1 + their own size."""


@kernel
def sweep(
    index: LayoutArrays, problem: PlanProblem, share: float, theta: FloatArray, place: int, workspace: PlanWorkspace
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
def begin(index: LayoutArrays, problem: PlanProblem, workspace: PlanWorkspace) -> None:
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
def _least_cost_at_points(index: LayoutArrays, cost: FloatArray, scratch: RobustScratch) -> float:
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
def conclude(index: LayoutArrays, problem: PlanProblem, feasible: bool, bound: float, workspace: PlanWorkspace) -> int:
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


# --------------------------------------------------------------------------------------------------------------------
# Plans under one constraint: the secant method on the multiplier.
#
# Two occupancies bracket the threshold: q1 has the smaller loss and costs too much, q2 keeps it. The multiplier at
# which both weigh the same, theta = (v2 - v1) / (c1 - c2), is where their lines v + theta c cross. A sweep at theta
# finds an occupancy below both lines, which replaces q1 or q2, or proves that there is none. Then the mixture of q1
# and q2 whose cost is the threshold is optimal. This is Kelley's method for the dual, which has one variable here.


TOL_LINE = 1e-13
"""A sweep that ends this close to the lines, times their size, has found nothing new."""
TOL_ROUNDING = 1e-15
"""Rounding of a sweep, times L and the largest weighted loss of a row."""
TOL_TOUCH = 1e-14
"""A cost above the threshold by this, times L and the largest cost of a row, is rounding."""
MOST_SECANT_SWEEPS = 200


@kernel
def plan_with_one_constraint(index: LayoutArrays, problem: PlanProblem, workspace: PlanWorkspace) -> int:
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
    # The constraint does not bind: the unconstrained optimum is the answer, with multiplier 0.
    if c[0, 0] <= allowed:
        copy_into(workspace.columns[0], workspace.masses)
        return conclude(index, problem, True, bound, workspace)
    theta[0] = 1.0
    cheapest = sweep(index, problem, 0.0, theta, 1, workspace)
    # Even the cheapest occupancy costs too much: the threshold cannot be met, by this much.
    if c[1, 0] > allowed:
        copy_into(workspace.columns[1], workspace.masses)
        return conclude(index, problem, False, cheapest - alpha, workspace)
    dear, cheap, free = 0, 1, 2  # the columns of q1 and q2, and the one for the next sweep
    for _ in range(MOST_SECANT_SWEEPS):
        theta[0] = max(0.0, (v[cheap] - v[dear]) / (c[dear, 0] - c[cheap, 0]))
        line = v[dear] + theta[0] * c[dear, 0]
        weight = sweep(index, problem, 1.0, theta, free, workspace)
        bound = weight - theta[0] * alpha
        rounding = TOL_ROUNDING * steps * (largest_loss + theta[0] * largest_cost)
        # Nothing lies below both lines: theta is optimal, and W - theta alpha is the proof.
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


# --------------------------------------------------------------------------------------------------------------------
# Plans under several constraints: column generation in two phases (Dantzig and Wolfe).
#
#     1.  min s          with  sum_j x_j = 1,  sum_j x_j c_j - s <= alpha,  x, s >= 0
#     2.  min x^T v      with  sum_j x_j = 1,  sum_j x_j c_j <= alpha,      x >= 0
#
# over the occupancies j that were collected, with losses v_j and costs c_j (m,). The master program finds the best
# mixture and its multipliers; a sweep at these multipliers finds the occupancy that would help most, and with it a
# bound on what is left to gain. The first phase ends when s is 0, or with the least violation and its proof. The second
# begins at the mixture that the first has found.


MAX_SWEEPS = 2_000
TOL_GAP = 2e-13
"""The bounds have met when they are this close, in the scaled numbers of the master program."""
TOL_VIOLATION = 1e-12
"""A least violation below this, in scaled numbers, is rounding: thresholds are raised by it."""


@kernel
def plan_with_columns(index: LayoutArrays, problem: PlanProblem, workspace: PlanWorkspace) -> int:
    """The status; outputs in `workspace`."""
    theta, master, m = workspace.multipliers, workspace.master, len(problem.thresholds)
    for i in range(m):
        theta[i] = 0.0
    bound = sweep(index, problem, 1.0, theta, 0, workspace)
    _scale(index, problem, workspace)
    worst = _worst(problem, workspace)
    if worst < 0:
        copy_into(workspace.columns[0], workspace.masses)
        return conclude(index, problem, True, bound, workspace)
    _begin(problem, worst, workspace)
    # First phase: the least violation. It ends early once the violation leaves the basis.
    bound = _collect(index, problem, 0.0, 0.0, workspace)
    raised, violation = 0.0, len(master.prices) - 1
    if master.state[violation] == BASIC:
        place = _place_of(master, violation)
        raised = master.x[place] * workspace.numbers.violation_scale
        if not raised <= TOL_VIOLATION * workspace.numbers.violation_scale:
            _mix(workspace)
            return conclude(index, problem, False, bound, workspace)
        if not _drive_out(problem, place, raised, workspace):
            workspace.tallies.status = UNSOLVED
            return UNSOLVED
    master.state[violation] = ABSENT
    for j in range(len(workspace.column_loss)):
        master.prices[j] = workspace.column_loss[j] / workspace.numbers.loss_scale
    bound = _collect(index, problem, 1.0, raised, workspace)
    _mix(workspace)
    return conclude(index, problem, True, bound, workspace)


@kernel
def _collect(index: LayoutArrays, problem: PlanProblem, share: float, raised: float, workspace: PlanWorkspace) -> float:
    """Collect columns until the best mixture of them is the best of all, by the loss (share 1) or the violation (0).

    The best bound that a sweep proved, with its theta in `multipliers`. The violation need not reach a bound once it
    is 0: it leaves the basis.
    """
    master, theta, m = workspace.master, workspace.trial, len(problem.thresholds)
    violation, best = len(master.prices) - 1, -np.inf
    unit = workspace.numbers.loss_scale if share == 1.0 else workspace.numbers.violation_scale
    while workspace.tallies.sweeps < MAX_SWEEPS:
        if not optimise(master) or (share == 0.0 and master.state[violation] != BASIC):
            break
        total, weighted = 0.0, 0.0
        for i in range(m):
            theta[i] = max(-master.y[i + 1], 0.0) * unit / workspace.scales[i]
            total += theta[i]
        for i in range(m):
            if share == 0.0:
                theta[i] /= total  # which is 1 but for rounding
            weighted += theta[i] * problem.thresholds[i]
        # The sweep is the pricing step: the occupancy of least reduced cost, among all that the boxes allow.
        place = _free_place(master, len(workspace.column_loss))
        bound = sweep(index, problem, share, theta, place, workspace) - weighted
        if bound > best:
            best = bound
            copy_into(theta, workspace.multipliers)
        _add(problem, place, share, workspace)
        size = size_of_multipliers(master)
        raise_worth = raised * total  # the bound is that of the thresholds as they were
        if objective(master) * unit - best <= TOL_GAP * size * unit + raise_worth:
            break
        if reduced_cost(master, place) >= -TOL_PRICE * size:
            break
    return best


@kernel
def _scale(index: LayoutArrays, problem: PlanProblem, workspace: PlanWorkspace) -> None:
    """The sizes of losses and costs, by which the master program divides."""
    scales, numbers = workspace.scales, workspace.numbers
    steps = float(len(index.state_start) - 2)
    largest = 0.0
    for i in range(len(scales)):
        scales[i] = 0.0
    for r in range(len(problem.loss)):
        largest = max(largest, abs(problem.loss[r]))
        for i in range(len(scales)):
            scales[i] = max(scales[i], abs(problem.costs[r, i]))
    numbers.loss_scale = steps * largest if largest > 0.0 else 1.0
    numbers.violation_scale = np.inf
    for i in range(len(scales)):
        scales[i] = max(steps * scales[i], abs(problem.thresholds[i]))
        if scales[i] == 0.0:
            scales[i] = 1.0
        numbers.violation_scale = min(numbers.violation_scale, scales[i])


@kernel
def _worst(problem: PlanProblem, workspace: PlanWorkspace) -> int:
    """The constraint that column 0 misses by most; -1 if it keeps all."""
    worst, most = -1, 0.0
    for i in range(len(problem.thresholds)):
        missed = workspace.column_costs[0, i] - problem.thresholds[i]
        if missed > TOL_TOUCH * workspace.scales[i] and missed > most:
            worst, most = i, missed
    return worst


@kernel
def _begin(problem: PlanProblem, worst: int, workspace: PlanWorkspace) -> None:
    """The master program of the first phase. Basis: column 0, the violation, and all slacks but that of `worst`."""
    master, kept, m = workspace.master, len(workspace.column_loss), len(problem.thresholds)
    for j in range(len(master.prices)):
        master.prices[j], master.state[j] = 0.0, ABSENT
    for i in range(m):
        master.right[i + 1] = problem.thresholds[i] / workspace.scales[i]
        for j in range(m + 1):
            master.entries[kept + i, j] = 1.0 if j == i + 1 else 0.0
        master.entries[kept + m, i + 1] = -workspace.numbers.violation_scale / workspace.scales[i]
        master.state[kept + i] = BASIC
        master.basis[i + 1] = kept + i
    master.right[0] = 1.0
    master.entries[kept + m, 0] = 0.0
    master.prices[kept + m] = 1.0
    _add(problem, 0, 0.0, workspace)
    master.state[kept + worst], master.state[kept + m], master.state[0] = READY, BASIC, BASIC
    master.basis[0], master.basis[worst + 1] = 0, kept + m
    master.tallies.stalled = 0
    refactor(master)


@kernel
def _add(problem: PlanProblem, place: int, share: float, workspace: PlanWorkspace) -> None:
    """Offer the column of a sweep to the master program."""
    master = workspace.master
    master.state[place] = READY
    master.prices[place] = share * workspace.column_loss[place] / workspace.numbers.loss_scale
    master.entries[place, 0] = 1.0
    for i in range(len(problem.thresholds)):
        master.entries[place, i + 1] = workspace.column_costs[place, i] / workspace.scales[i]


@kernel
def _free_place(master: Master, kept: int) -> int:
    """A place for a new column: an empty one, or that of the column which would help least."""
    chosen, most = 0, -np.inf
    for j in range(kept):
        if master.state[j] == ABSENT:
            return j
        if master.state[j] == READY:
            reduced = reduced_cost(master, j)
            if reduced > most:
                chosen, most = j, reduced
    return chosen


@kernel
def _place_of(master: Master, variable: int) -> int:
    for i in range(len(master.basis)):
        if master.basis[i] == variable:
            return i
    return -1


@kernel
def _drive_out(problem: PlanProblem, place: int, raised: float, workspace: PlanWorkspace) -> bool:
    """Raise all thresholds by the violation, which is rounding; it is 0 then, and a slack takes its place."""
    master, kept = workspace.master, len(workspace.column_loss)
    chosen, largest = -1, 0.0
    for i in range(len(problem.thresholds)):
        master.right[i + 1] += raised / workspace.scales[i]
        if master.state[kept + i] == READY and abs(master.inverse[place, i + 1]) > largest:
            chosen, largest = kept + i, abs(master.inverse[place, i + 1])
    if chosen < 0:
        return False
    find_direction(master, chosen)
    master.x[place] = 0.0
    swap(master, place, chosen)
    return refactor(master)


@kernel
def _mix(workspace: PlanWorkspace) -> None:
    """The occupancy of the mixture, into `masses`."""
    master, masses, kept = workspace.master, workspace.masses, len(workspace.column_loss)
    total = 0.0
    for i in range(len(master.basis)):
        if master.basis[i] < kept:
            total += master.x[i]
    for r in range(len(masses)):
        masses[r] = 0.0
    for i in range(len(master.basis)):
        if master.basis[i] < kept and master.x[i] > 0.0:
            _pile(masses, master.x[i] / total, workspace.columns[master.basis[i]])


@kernel
def _pile(masses: FloatArray, share: float, column: FloatArray) -> None:
    """masses += share * column"""
    for r in range(len(masses)):
        masses[r] += share * column[r]
