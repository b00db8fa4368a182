"""Constrained plans in boxes for Python: the compiled planner, and HiGHS where its proof does not close.

>>> layout = Layout((1, 2, 1), num_actions=1)
>>> boxes = np.array([0.25, 0.25, 1.0, 1.0]), np.array([0.75, 0.75, 1.0, 1.0])
>>> plan = constrained_plan(layout, *boxes, [0.0, 0.0, 1.0], [[0.0], [1.0], [0.0]], [0.5])
>>> plan.masses.round(9).tolist(), plan.multipliers.round(9).tolist(), plan.solver
([1.0, 0.5, 0.5], [1.0], 'sweeps')
>>> constrained_plan(layout, *boxes, [0.0, 0.0, 1.0], [[0.0], [1.0], [0.0]], [0.125]).violation
0.125
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from hedgerow.checks import FloatArray, float_array, frozen, within
from hedgerow.errors import CertificateError, InvalidInput
from hedgerow.model.index import index_of
from hedgerow.model.layout import Layout
from hedgerow.model.occupancy import policy_of_masses
from hedgerow.model.transition_boxes import check_boxes
from hedgerow.planning.box_programs import box_program, least_loss_in_boxes, least_violation_in_boxes
from hedgerow.planning.constrained import UNSOLVED, PlanProblem, make_plan_workspace, plan_in_boxes
from hedgerow.planning.linear_programs import NoSolution
from hedgerow.planning.robust import least_cost

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
        from hedgerow import brief

        first = f"value={self.value:.6g}" if self.feasible else f"infeasible by {self.violation:.6g}"
        return brief.line("BoxPlan", first, f"gap={self.gap:.2g}", f"sweeps={self.sweeps}", f"solver={self.solver!r}")


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
    """
    if not isinstance(layout, Layout):
        raise InvalidInput(f"layout must be a hedgerow Layout, not {type(layout).__name__}")
    return BoxPlanner(layout, np.size(thresholds)).plan(lower, upper, loss, costs, thresholds)
