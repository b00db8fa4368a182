"""The two halves of Dantzig and Wolfe's decomposition: sweeps that find occupancies, a master program that mixes them.

A sweep is robust value iteration, the least expected cost when transitions may be anything in their boxes:

    V(x_L) = 0,   V(x) = min_a [ c(x,a) + min { p . V : p in box(x,a) } ]

Rows choose their p independently, so the backward pass is exact: V(x_0) = min { c^T q : q in Delta(P) }, the smallest
cost of any occupancy that is consistent with the boxes (extended value iteration). The inner minimum fills greedily:
start from p = lo and hand the remaining mass to the successors, the least V first. This order is the same for all rows
that reach a whole layer.

    V = (0, .5, 1), lo = (.1, .2, .1), hi = (.5, .9, .6)   ->   p = (.5, .4, .1), value .3

The master program has m + 1 rows, and its simplex method allocates nothing:

    min  sum_j price_j x_j    with  sum_j entry_j x_j = right,   x >= 0

Variables are the columns that were collected (an entry is 1, then the costs), one slack per constraint, and the
violation, which lowers all costs at once. Costs come scaled, so that entries and right side are at most about 1. The
inverse of the basis is dense, updated by pivots and computed anew from time to time. The variable of the most negative
reduced cost enters; after a row of steps that lead nowhere, the lowest number does, until a step leads somewhere
(Bland's rule cannot cycle). Of several variables that could leave, the violation leaves first, then the one with the
largest pivot. Nothing is random: the same program takes the same pivots.
"""

from __future__ import annotations

import numpy as np

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.bundles import Bundle, Record
from hedgerow.compiling.kernels import kernel
from hedgerow.model.kernel_layout import LayoutArrays, Positions, first_gap, sort_by_key, triples_of
from hedgerow.model.layout import Layout


class RobustScratch(Bundle):
    """Buffers of the robust kernels, allocated once per layout."""

    values: FloatArray
    """(num_states,): V, an output."""
    order: Positions
    """(size of the largest layer,): the successors of a row by their place in it, the least V first."""
    key: FloatArray
    """(size of the largest layer,): their -V."""
    p: FloatArray
    """(num_triples,): the optimising distributions, an output."""
    action: IntArray
    """(num_decision_states,): the optimising actions, an output."""
    reach: FloatArray
    """(num_states,)"""


def robust_scratch(layout: Layout) -> RobustScratch:
    return RobustScratch(
        values=np.zeros(layout.num_states),
        order=np.zeros(max(layout.layer_sizes), dtype=np.uint64),
        key=np.zeros(max(layout.layer_sizes)),
        p=np.zeros(layout.num_triples),
        action=np.zeros(layout.num_decision_states, dtype=np.int64),
        reach=np.zeros(layout.num_states),
    )


@kernel
def least_cost(
    index: LayoutArrays, lower: FloatArray, upper: FloatArray, cost: FloatArray, scratch: RobustScratch
) -> float:
    """min { cost^T q : q in Delta(P) }; writes values, p and action of `scratch`. `cost` is an array over rows."""
    state_start, row_start, values = index.state_start, index.row_start, scratch.values
    values[state_start[len(state_start) - 2]] = 0.0
    for k in range(len(state_start) - 3, -1, -1):
        layer_is_sorted = False
        for x in range(state_start[k], state_start[k + 1]):
            best = np.inf
            for a in range(index.num_actions):
                r = x * index.num_actions + a
                whole = row_start[r + 1] - row_start[r] == state_start[k + 2] - state_start[k + 1]
                if not whole or not layer_is_sorted:
                    sort_row(index, r, whole, scratch)
                    layer_is_sorted = whole
                value = cost[r] + fill_row(index, lower, upper, r, scratch)
                if value < best:
                    best = value
                    scratch.action[x] = a
            values[x] = best
    return float(values[0])


@kernel
def sort_row(index: LayoutArrays, row: int, whole: bool, scratch: RobustScratch) -> None:
    """Find the `order` of the successors of a row, or, if they are a whole layer, of all rows that reach it."""
    start, size = index.row_start[row], index.row_start[row + 1] - index.row_start[row]
    for i in range(size):
        scratch.order[i] = i
        scratch.key[i] = -scratch.values[index.successor[start + i]]
    sort_by_key(scratch.order, scratch.key, size, first_gap(size // 3) if whole else 1)


@kernel
def fill_row(index: LayoutArrays, lower: FloatArray, upper: FloatArray, row: int, scratch: RobustScratch) -> float:
    """min { p . V : p in box } of a row whose `order` is known; writes its distribution into `p`."""
    values, successor, p = scratch.values, index.successor, scratch.p
    start, stop = triples_of(index, row)
    if stop - start == 1:
        p[start] = 1.0
        return float(values[successor[start]])
    rest = 1.0
    value = 0.0
    for j in range(start, stop):
        p[j] = lower[j]
        rest -= lower[j]
        value += lower[j] * values[successor[j]]
    for i in range(stop - start):
        if rest <= 0.0:
            break
        j = start + scratch.order[i]
        more = min(upper[j] - lower[j], rest)
        p[j] += more
        rest -= more
        value += more * values[successor[j]]
    return value


@kernel
def row_mass_of_least_cost(index: LayoutArrays, scratch: RobustScratch, w: FloatArray) -> None:
    """w(x,a) (num_rows,) of the minimiser that `least_cost` left in `scratch`: the forward pass."""
    reach = scratch.reach
    reach[:] = 0.0
    reach[0] = 1.0
    w[:] = 0.0
    for x in range(len(scratch.action)):
        r = x * index.num_actions + scratch.action[x]
        w[r] = reach[x]
        for j in range(index.row_start[r], index.row_start[r + 1]):
            reach[index.successor[j]] += reach[x] * scratch.p[j]


@kernel
def largest_entry(values: FloatArray) -> float:
    """max |entry|"""
    largest = 0.0
    for r in range(len(values)):
        largest = max(largest, abs(values[r]))
    return largest


# The master program -------------------------------------------------------------------------------------------------

ABSENT, READY, BASIC = 0, 1, 2
"""A variable that may not enter, that may, and that is in the basis."""
TOL_PRICE = 1e-13
"""A reduced cost above minus this, times 1 + sum of |y|, is rounding."""
TOL_PIVOT = 1e-11
"""Smaller entries of a direction are no reason to leave the basis."""
TOL_TIE = 1e-13
"""Variables that a step brings this close to 0 could all leave."""
REFACTOR_AFTER = 40
"""Pivots"""
PATIENCE = 8
"""So many steps per row may lead nowhere until Bland's rule takes over."""


class MasterTallies(Record):
    """What changes besides the arrays."""

    updates: int
    """Pivots since the inverse was computed anew"""
    stalled: int
    """Steps of length 0 in a row"""


class Master(Bundle):
    """A master program and its basis. Variables: the columns, then the m slacks, then the violation."""

    entries: FloatArray
    """(variables, m + 1)"""
    prices: FloatArray
    """(variables,)"""
    state: IntArray
    """(variables,): ABSENT, READY or BASIC"""
    right: FloatArray
    """(m + 1,)"""
    basis: IntArray
    """(m + 1,): the basic variables"""
    x: FloatArray
    """(m + 1,): their values"""
    y: FloatArray
    """(m + 1,): multipliers of the rows"""
    inverse: FloatArray
    """(m + 1, m + 1): of the matrix whose columns are the entries of the basic variables"""
    matrix: FloatArray
    """(m + 1, m + 1): scratch"""
    direction: FloatArray
    """(m + 1,): scratch"""
    tallies: MasterTallies


def make_master(num_columns: int, num_constraints: int) -> Master:
    """Buffers for so many columns."""
    rows, variables = num_constraints + 1, num_columns + num_constraints + 1
    return Master(
        entries=np.zeros((variables, rows)),
        prices=np.zeros(variables),
        state=np.zeros(variables, dtype=np.int64),
        right=np.zeros(rows),
        basis=np.zeros(rows, dtype=np.int64),
        x=np.zeros(rows),
        y=np.zeros(rows),
        inverse=np.zeros((rows, rows)),
        matrix=np.zeros((rows, rows)),
        direction=np.zeros(rows),
        tallies=MasterTallies(),
    )


@kernel
def optimise(master: Master) -> bool:
    """Pivot from a feasible basis to an optimal one, with its x and y; False if rounding prevents that."""
    tallies = master.tallies
    for _ in range(50 * len(master.prices)):
        # The inverse is updated from pivot to pivot and loses digits: start anew at times, and before the end.
        if tallies.updates >= REFACTOR_AFTER and not refactor(master):
            return False
        find_multipliers(master)
        entering = _entering(master)
        if entering < 0:
            if tallies.updates == 0 or _is_accurate(master):
                return True
            if not refactor(master):
                return False
        elif not _exchange(master, entering) and (tallies.updates == 0 or not refactor(master)):
            return False
    return False


@kernel
def refactor(master: Master) -> bool:
    """The inverse and x of the basis, computed anew by Gauss and Jordan; False if the basis is singular."""
    n, matrix, inverse = len(master.basis), master.matrix, master.inverse
    for j in range(n):
        for i in range(n):
            matrix[i, j] = master.entries[master.basis[j], i]
            inverse[i, j] = 1.0 if i == j else 0.0
    for k in range(n):
        best = k
        for i in range(k + 1, n):
            if abs(matrix[i, k]) > abs(matrix[best, k]):
                best = i
        if not abs(matrix[best, k]) > TOL_PIVOT:
            return False
        for j in range(n):
            matrix[k, j], matrix[best, j] = matrix[best, j], matrix[k, j]
            inverse[k, j], inverse[best, j] = inverse[best, j], inverse[k, j]
        pivot = 1.0 / matrix[k, k]
        for j in range(n):
            matrix[k, j] *= pivot
            inverse[k, j] *= pivot
        for i in range(n):
            factor = matrix[i, k]
            if i != k and factor != 0.0:
                for j in range(n):
                    matrix[i, j] -= factor * matrix[k, j]
                    inverse[i, j] -= factor * inverse[k, j]
    for i in range(n):
        total = 0.0
        for j in range(n):
            total += inverse[i, j] * master.right[j]
        master.x[i] = max(total, 0.0)
    master.tallies.updates = 0
    return True


@kernel
def find_multipliers(master: Master) -> None:
    """y = prices of the basis times its inverse."""
    n = len(master.basis)
    for j in range(n):
        total = 0.0
        for i in range(n):
            total += master.prices[master.basis[i]] * master.inverse[i, j]
        master.y[j] = total


@kernel
def reduced_cost(master: Master, variable: int) -> float:
    total = float(master.prices[variable])
    for i in range(len(master.y)):
        total -= master.y[i] * master.entries[variable, i]
    return total


@kernel
def size_of_multipliers(master: Master) -> float:
    """1 + sum of |y|: reduced costs are sums of numbers of this size."""
    total = 1.0
    for i in range(len(master.y)):
        total += abs(master.y[i])
    return total


@kernel
def objective(master: Master) -> float:
    total = 0.0
    for i in range(len(master.basis)):
        total += master.prices[master.basis[i]] * master.x[i]
    return total


@kernel
def swap(master: Master, place: int, entering: int) -> None:
    """The pivot: `entering`, whose direction is known, takes a place of the basis. x is left to the caller."""
    inverse, direction = master.inverse, master.direction
    n, pivot = len(direction), 1.0 / direction[place]
    for j in range(n):
        inverse[place, j] *= pivot
    for i in range(n):
        if i != place and direction[i] != 0.0:
            for j in range(n):
                inverse[i, j] -= direction[i] * inverse[place, j]
    if master.state[master.basis[place]] == BASIC:
        master.state[master.basis[place]] = READY
    master.state[entering], master.basis[place] = BASIC, entering
    master.tallies.updates += 1


@kernel
def find_direction(master: Master, entering: int) -> None:
    """inverse @ entry: by how much the basic variables shrink when the entering one grows."""
    n = len(master.direction)
    for i in range(n):
        total = 0.0
        for j in range(n):
            total += master.inverse[i, j] * master.entries[entering, j]
        master.direction[i] = total


@kernel
def _entering(master: Master) -> int:
    """The variable that enters; -1 if none improves."""
    least = -TOL_PRICE * size_of_multipliers(master)
    # Rare: after many pivots without progress, Bland's rule, which cannot cycle.
    by_number = master.tallies.stalled > PATIENCE * len(master.basis)
    chosen = -1
    for j in range(len(master.prices)):
        if master.state[j] == READY:
            reduced = reduced_cost(master, j)
            if reduced < least:
                chosen = j
                if by_number:
                    return chosen
                least = reduced
    return chosen


@kernel
def _exchange(master: Master, entering: int) -> bool:
    """Let a variable enter; False if no other one limits it, which only rounding can cause."""
    x, direction, last = master.x, master.direction, len(master.prices) - 1
    find_direction(master, entering)
    step = np.inf
    for i in range(len(x)):
        if direction[i] > TOL_PIVOT:
            step = min(step, x[i] / direction[i])
    if step == np.inf:
        return False
    by_number = master.tallies.stalled > PATIENCE * len(x)
    place, merit = -1, 0.0
    for i in range(len(x)):
        if direction[i] > TOL_PIVOT and x[i] <= step * direction[i] + TOL_TIE:
            own = direction[i]
            if master.basis[i] == last:
                own = np.inf
            elif by_number:
                own = 1.0 / (1.0 + master.basis[i])
            if own > merit:
                place, merit = i, own
    step = x[place] / direction[place]
    for i in range(len(x)):
        x[i] = max(x[i] - step * direction[i], 0.0)
    x[place] = step
    swap(master, place, entering)
    master.tallies.stalled = master.tallies.stalled + 1 if step <= TOL_TIE else 0
    return True


@kernel
def _is_accurate(master: Master) -> bool:
    """Whether the basic variables still solve their equations."""
    for i in range(len(master.right)):
        rest = master.right[i]
        for j in range(len(master.basis)):
            rest -= master.entries[master.basis[j], i] * master.x[j]
        if not abs(rest) <= TOL_TIE:
            return False
    return True


# What a plan takes and gives ------------------------------------------------------------------------------------------

SOLVED, INFEASIBLE, UNSOLVED = 0, 1, 2
"""The three answers. The first two are proved; the third says that the proof did not close."""

KEPT_PER_ROW = 6
"""Columns that are kept for each row of the master program: few enough for large worlds, enough not to sweep twice."""


class PlanProblem(Bundle):
    """min loss^T q with costs^T q <= thresholds over the occupancies that the boxes allow. Any real numbers will do."""

    lower: FloatArray
    """(num_triples,)"""
    upper: FloatArray
    """(num_triples,): equal to `lower` where transitions are known"""
    loss: FloatArray
    """(num_rows,)"""
    costs: FloatArray
    """(num_rows, m)"""
    thresholds: FloatArray
    """(m,)"""


class PlanFigures(Record):
    """The numbers of an answer and of its proof."""

    value: float
    """The loss of `masses`"""
    bound: float
    """SOLVED: no occupancy that keeps the thresholds has a smaller loss. INFEASIBLE: none has a smaller violation."""
    violation: float
    """The least violation: how far all thresholds must be raised together to let some occupancy in; 0 if SOLVED"""


class PlanTallies(Record):
    """Counts of the last plan."""

    sweeps: int
    """Robust value iterations"""
    status: int
    """SOLVED, INFEASIBLE or UNSOLVED"""
    known: int
    """1 if every box is a single point, which makes sweeps faster; else 0"""


class PlanNumbers(Record):
    """By how much the master program divides."""

    loss_scale: float
    violation_scale: float


class PlanWorkspace(Bundle):
    """Outputs and buffers of `plan_in_boxes`. A plan depends on its problem alone, not on what was left in here."""

    masses: FloatArray
    """(num_rows,): an output, the occupancy of the rows: a mixture of at most m + 1 extreme ones"""
    multipliers: FloatArray
    """(m,): an output, theta >= 0. INFEASIBLE: they sum to 1 and name the constraints that cannot be met together."""
    figures: PlanFigures
    tallies: PlanTallies
    weighted: FloatArray
    """(num_rows,): the loss of a sweep, loss + theta^T costs"""
    reached: FloatArray
    """(m,): the costs of `masses`"""
    columns: FloatArray
    """(number of kept columns, num_rows): occupancies"""
    column_loss: FloatArray
    """(number of kept columns,): their loss"""
    column_costs: FloatArray
    """(number of kept columns, m): their costs"""
    robust: RobustScratch
    # Only for several constraints
    trial: FloatArray
    """(m,): the multipliers of a sweep"""
    scales: FloatArray
    """(m,): the sizes of the costs"""
    numbers: PlanNumbers
    master: Master


def make_plan_workspace(layout: Layout, num_constraints: int) -> PlanWorkspace:
    """Fresh buffers for problems of this shape."""
    m = num_constraints
    kept = (1, 3)[m] if m < 2 else KEPT_PER_ROW * (m + 1)
    return PlanWorkspace(
        masses=np.zeros(layout.num_rows),
        multipliers=np.zeros(m),
        figures=PlanFigures(),
        tallies=PlanTallies(),
        weighted=np.zeros(layout.num_rows),
        reached=np.zeros(m),
        columns=np.zeros((kept, layout.num_rows)),
        column_loss=np.zeros(kept),
        column_costs=np.zeros((kept, m)),
        robust=robust_scratch(layout),
        trial=np.zeros(m),
        scales=np.ones(m),
        numbers=PlanNumbers(),
        master=make_master(kept, m),
    )
