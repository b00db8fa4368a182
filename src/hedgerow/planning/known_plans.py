"""The programs of `linear_programs` for large worlds: compiled sweeps over known transitions instead of HiGHS.

A plan in boxes that are single points is the optimum of that world. The largest margin is a least violation: lowered by
K = 1 + max alpha, no threshold can be met, and thresholds are missed by K - margin at least.

    >>> from hedgerow.model.costs import BernoulliCosts
    >>> from hedgerow.model.layout import Layout
    >>> planner = KnownPlanner(CMDP(Layout((1, 1), 2), [1.0, 1.0], BernoulliCosts([[0.75, 0.25]]), [0.5]))
    >>> planner.least_loss(np.array([0.0, 1.0])).y.tolist(), planner.largest_margin().value
    ([0.5, 0.5], 0.25)
"""

from __future__ import annotations

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.model.cmdp import CMDP
from hedgerow.model.index import index_of
from hedgerow.planning.constrained import INFEASIBLE, SOLVED, PlanProblem, make_plan_workspace, plan_in_boxes
from hedgerow.planning.linear_programs import NoSolution, Suggestion, flow_matrix, largest_margin


class KnownPlanner:
    """Plans of one world; the buffers are made once."""

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
