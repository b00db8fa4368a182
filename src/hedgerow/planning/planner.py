"""Constrained plans in boxes of transitions, compiled: the least loss of all occupancies that keep the thresholds.

    min loss^T q   with  costs^T q <= thresholds,   q in Delta(boxes)

is the *extended* linear program of optimistic planning (OptCMDP, Efroni, Mannor and Pirotta 2020; DOPE, Bura et al.
2022), in which policy and transitions are chosen together. Its extreme points are deterministic policies with extreme
transitions, and extended value iteration finds the best one for any weights. Hence Dantzig and Wolfe's decomposition:
collect few extreme points, mix them, and let multipliers ask for the next one. No constraint takes one sweep, one
constraint the secant method, several a small simplex method over the points (`columns.py` has both).

Every answer proves itself. SOLVED: a sweep at the multipliers gives a lower bound that the mixture attains. INFEASIBLE:
a sweep shows that the weighted costs exceed the weighted thresholds for all occupancies. Else it is UNSOLVED, and the
caller asks another solver.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from hedgerow.checks import FloatArray, float_array, frozen, within
from hedgerow.compiling.kernels import copy_into, kernel, shared_kernel
from hedgerow.errors import CertificateError, InvalidInput
from hedgerow.model.cmdp import CMDP
from hedgerow.model.kernel_layout import LayoutArrays, check_boxes, index_of
from hedgerow.model.layout import Layout
from hedgerow.model.occupancy import policy_of_masses
from hedgerow.planning.columns import begin, conclude, plan_with_columns, plan_with_one_constraint, sweep
from hedgerow.planning.decomposition import (
    INFEASIBLE,
    SOLVED,
    UNSOLVED,
    PlanProblem,
    PlanWorkspace,
    least_cost,
    make_plan_workspace,
)
from hedgerow.planning.lp import (
    NoSolution,
    Suggestion,
    box_program,
    flow_matrix,
    largest_margin,
    least_loss_in_boxes,
    least_violation_in_boxes,
)


@shared_kernel(SOLVED)
def plan_in_boxes(index: LayoutArrays, problem: PlanProblem, workspace: PlanWorkspace) -> int:
    """SOLVED, INFEASIBLE or UNSOLVED; masses, multipliers, figures and tallies of `workspace` say the rest."""
    begin(index, problem, workspace)
    m = len(problem.thresholds)
    if m == 0:
        bound = sweep(index, problem, 1.0, workspace.multipliers, 0, workspace)
        copy_into(workspace.columns[0], workspace.masses)
        return conclude(index, problem, True, bound, workspace)
    if m == 1:
        return plan_with_one_constraint(index, problem, workspace)
    return plan_with_columns(index, problem, workspace)


@kernel
def policy_of_row_masses(index: LayoutArrays, masses: FloatArray, policy: FloatArray) -> None:
    """The policy (num_rows,) of an occupancy of the rows; uniform where a state has no mass."""
    A = index.num_actions
    for x in range(len(masses) // A):
        mass = 0.0
        for r in range(x * A, (x + 1) * A):
            mass += masses[r]
        for r in range(x * A, (x + 1) * A):
            policy[r] = masses[r] / mass if mass > 0.0 else 1.0 / A


ROOM = 1e-9
"""A least violation that HiGHS cannot tell from 0."""

Solver = Literal["sweeps", "HiGHS"]


@dataclass(frozen=True, eq=False, repr=False)
class BoxPlan:
    """The best occupancy in the boxes, or, if none keeps the thresholds, one that misses them least."""

    masses: FloatArray
    """(num_rows,): its mass on each pair of state and action"""
    policy: FloatArray
    """(num_rows,): its policy, uniform in states that it does not reach"""
    value: float
    """Its loss"""
    bound: float
    """No occupancy in the boxes has a smaller loss within the thresholds or, if infeasible, a smaller violation."""
    multipliers: FloatArray
    """(m,): of the thresholds; if infeasible, they sum to 1 and name the constraints that cannot be met together"""
    violation: float
    """How far all thresholds must be raised together to let some occupancy in; 0 if they let one in as they are"""
    sweeps: int
    """Passes of extended value iteration"""
    solver: Solver
    """Who found it: "sweeps" of the compiled planner or, where these did not prove it, "HiGHS" """

    @property
    def feasible(self) -> bool:
        """Whether some occupancy keeps the thresholds."""
        return self.violation == 0.0

    @property
    def gap(self) -> float:
        """What the bound leaves open: of the loss or, if infeasible, of the violation."""
        return (self.value if self.feasible else self.violation) - self.bound

    def __repr__(self) -> str:
        from hedgerow.display import text

        first = f"value={self.value:.6g}" if self.feasible else f"infeasible by {self.violation:.6g}"
        return text.line("BoxPlan", first, f"gap={self.gap:.2g}", f"sweeps={self.sweeps}", f"solver={self.solver!r}")


class BoxPlanner:
    """Plans of one layout and number of constraints: the buffers are made once."""

    def __init__(self, layout: Layout, num_constraints: int) -> None:
        self.layout, self.num_constraints = layout, num_constraints
        self._workspace = make_plan_workspace(layout, num_constraints)

    def plan(
        self, lower: ArrayLike, upper: ArrayLike, loss: ArrayLike, costs: ArrayLike, thresholds: ArrayLike
    ) -> BoxPlan:
        """As `constrained_plan`."""
        problem = self._checked(lower, upper, loss, costs, thresholds)
        workspace = self._workspace
        if plan_in_boxes(index_of(self.layout), problem, workspace) == UNSOLVED:
            return self._by_highs(problem)
        figures = workspace.figures
        return self._answer(
            workspace.masses, figures.bound, workspace.multipliers, figures.violation, problem, solver="sweeps"
        )

    def _checked(
        self, lower: ArrayLike, upper: ArrayLike, loss: ArrayLike, costs: ArrayLike, thresholds: ArrayLike
    ) -> PlanProblem:
        layout, m = self.layout, self.num_constraints
        triples, where = (layout.num_triples,), layout.describe_triple
        lo = within("the lower bound", float_array("the lower bound", lower, triples, where), 0.0, 1.0, where)
        hi = within("the upper bound", float_array("the upper bound", upper, triples, where), 0.0, 1.0, where)
        check_boxes(layout, lo, hi)
        # Writable copies: kernels are compiled once, for writable arrays.
        return PlanProblem(
            lo.copy(),
            hi.copy(),
            float_array("the loss", loss, (layout.num_rows,), layout.describe_row).copy(),
            float_array("the cost", costs, (layout.num_rows, m)).copy(),
            float_array("the threshold", thresholds, (m,)).copy(),
        )

    def _by_highs(self, problem: PlanProblem) -> BoxPlan:
        """The extended linear programs; the bound is that of a sweep at the multipliers of HiGHS."""
        program, share, violation = box_program(self.layout, problem.lower, problem.upper), 1.0, 0.0
        answer = least_loss_in_boxes(program, problem.loss, problem.costs, problem.thresholds)
        if isinstance(answer, NoSolution):
            answer = least_violation_in_boxes(program, problem.costs, problem.thresholds)
            share, violation = 0.0, answer.value
            if violation <= ROOM:  # by rounding: the second program contradicts the first
                again = least_loss_in_boxes(program, problem.loss, problem.costs, problem.thresholds + 2 * ROOM)
                if isinstance(again, NoSolution):
                    raise CertificateError(f"HiGHS could not solve this feasible linear program: {again.message}")
                answer, share, violation = again, 1.0, 0.0
        weighted = share * problem.loss + problem.costs @ answer.multipliers
        least = least_cost(index_of(self.layout), problem.lower, problem.upper, weighted, self._workspace.robust)
        self._workspace.tallies.sweeps += 1
        bound = least - float(answer.multipliers @ problem.thresholds)
        return self._answer(answer.w, bound, answer.multipliers, violation, problem, solver="HiGHS")

    def _answer(
        self,
        masses: FloatArray,
        bound: float,
        multipliers: FloatArray,
        violation: float,
        problem: PlanProblem,
        *,
        solver: Solver,
    ) -> BoxPlan:
        own = masses.copy()
        return BoxPlan(
            frozen(own),
            frozen(policy_of_masses(self.layout, own)),
            float(problem.loss @ own),
            float(bound),
            frozen(multipliers.copy()),
            float(violation),
            self._workspace.tallies.sweeps,
            solver,
        )


def constrained_plan(
    layout: Layout, lower: ArrayLike, upper: ArrayLike, loss: ArrayLike, costs: ArrayLike, thresholds: ArrayLike
) -> BoxPlan:
    """Find the least loss of all occupancies that the boxes allow and whose costs keep the thresholds.

    Policy and transitions are chosen together: this is the plan of an optimist. Where the boxes are single points, it
    is the optimum of that world.

    Args:
        layout: The layout.
        lower: (num_triples,) lower bounds of the transition probabilities.
        upper: (num_triples,) upper bounds; equal to `lower` where transitions are known.
        loss: (num_rows,) losses: any numbers.
        costs: (num_rows, m) costs: any numbers.
        thresholds: (m,) the largest allowed costs.

    Returns:
        The plan with its proof. If no occupancy keeps the thresholds, one that misses them least.

    Raises:
        InvalidInput: If an argument is wrong.
        CertificateError: If HiGHS was asked and had no answer either.

    Examples:
        >>> layout = Layout((1, 2, 1), num_actions=1)
        >>> boxes = np.array([0.25, 0.25, 1.0, 1.0]), np.array([0.75, 0.75, 1.0, 1.0])
        >>> plan = constrained_plan(layout, *boxes, [0.0, 0.0, 1.0], [[0.0], [1.0], [0.0]], [0.5])
        >>> plan.masses.round(9).tolist(), plan.multipliers.round(9).tolist(), plan.solver
        ([1.0, 0.5, 0.5], [1.0], 'sweeps')
        >>> constrained_plan(layout, *boxes, [0.0, 0.0, 1.0], [[0.0], [1.0], [0.0]], [0.125]).violation
        0.125
    """
    if not isinstance(layout, Layout):
        raise InvalidInput(f"layout must be a hedgerow Layout, not {type(layout).__name__}")
    return BoxPlanner(layout, np.size(thresholds)).plan(lower, upper, loss, costs, thresholds)


class KnownPlanner:
    """The programs of `lp.py` for one world by compiled sweeps instead of HiGHS; the buffers are made once.

    A plan in boxes that are single points is the optimum of that world. The largest margin is a least violation:
    lowered by K = 1 + max alpha, no threshold can be met, and thresholds are missed by K - margin at least.

    >>> from hedgerow.model.costs import BernoulliCosts
    >>> planner = KnownPlanner(CMDP(Layout((1, 1), 2), [1.0, 1.0], BernoulliCosts([[0.75, 0.25]]), [0.5]))
    >>> planner.least_loss(np.array([0.0, 1.0])).y.tolist(), planner.largest_margin().value
    ([0.5, 0.5], 0.25)
    """

    def __init__(self, cmdp: CMDP) -> None:
        layout, p = cmdp.layout, cmdp.transitions.copy()
        self._cmdp = cmdp
        self._workspace = make_plan_workspace(layout, cmdp.num_constraints)
        self._problem = PlanProblem(
            lower=p,
            upper=p,
            loss=np.zeros(layout.num_rows),
            costs=cmdp.mean_costs.T.copy(),
            thresholds=np.zeros(cmdp.num_constraints),
        )

    def least_loss(self, loss: FloatArray, alpha: FloatArray | None = None) -> Suggestion | NoSolution:
        """min loss^T w with G w <= alpha; `loss` (rows,), `alpha` (m,), by default the thresholds of the world."""
        status = self._plan(loss, self._cmdp.thresholds if alpha is None else alpha)
        if status != SOLVED:
            reason = "thresholds cannot be met" if status == INFEASIBLE else "the bounds did not meet"
            return NoSolution(f"{reason} after {self._workspace.tallies.sweeps} sweeps")
        return self._suggestion(self._workspace.figures.value)

    def largest_margin(self) -> Suggestion:
        """max s with G w + s <= alpha; needs m >= 1. HiGHS is asked where the sweeps do not prove it."""
        cmdp = self._cmdp
        lowered_by = 1.0 + float(cmdp.thresholds.max())
        if self._plan(np.zeros(cmdp.layout.num_rows), cmdp.thresholds - lowered_by) != INFEASIBLE:
            return largest_margin(flow_matrix(cmdp), cmdp.mean_costs, cmdp.thresholds)
        return self._suggestion(lowered_by - self._workspace.figures.violation)

    def _plan(self, loss: FloatArray, thresholds: FloatArray) -> int:
        self._problem.loss[:], self._problem.thresholds[:] = loss, thresholds
        return plan_in_boxes(index_of(self._cmdp.layout), self._problem, self._workspace)

    def _suggestion(self, value: float) -> Suggestion:
        return Suggestion(self._workspace.masses.copy(), self._workspace.multipliers.copy(), value)
