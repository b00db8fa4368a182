"""`Projector`: many projections on one layout, from plain arrays, with all buffers made once.

One call of compiled code checks the arrays, splits the base into row weights and conditionals, solves the problem and
recovers the occupancy. Whatever it does not solve at once, or finds wrong, is left to `project`, which proves
infeasibility, takes the slow way, or says what is wrong.
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hedgerow.checks import FloatArray, taken, whole_number
from hedgerow.compiling.bundles import Bundle
from hedgerow.compiling.kernels import kernel
from hedgerow.errors import BusyError, InvalidInput
from hedgerow.model.kernel_layout import TOL_BOX, LayoutArrays, index_of
from hedgerow.model.layout import Layout
from hedgerow.projection.newton import SOLVED, STALLED, maximise_dual, recover
from hedgerow.projection.problem import (
    KernelProblem,
    ProjectionProblem,
    ProjectionResult,
    ProjectionSettings,
    ProjectionStatus,
    Workspace,
    make_residuals,
    make_workspace,
)
from hedgerow.projection.solve import WarmStart, project


class ProjectionBuffers(Bundle):
    """Everything that the projections of one projector work on."""

    index: LayoutArrays
    problem: KernelProblem
    newton: Workspace
    log_base: FloatArray
    """(num_triples,)"""
    v: FloatArray
    """(num_states,)"""
    theta: FloatArray
    """(m,)"""
    log_q: FloatArray
    """(num_triples,): a result"""
    policy: FloatArray
    """(num_rows,): a result"""
    log_w: FloatArray
    """(num_rows,)"""
    costs: FloatArray
    """(m,)"""


def make_desk(layout: Layout, num_constraints: int, lower: FloatArray, upper: FloatArray) -> ProjectionBuffers:
    """Buffers for projections into the boxes `lower`, `upper` (num_triples,), which are not copied."""
    rows, triples, m = layout.num_rows, layout.num_triples, num_constraints
    problem = KernelProblem(
        log_weight=np.zeros(rows),
        conditional=np.zeros(triples),
        log_conditional=np.zeros(triples),
        lower=lower,
        upper=upper,
        costs=np.zeros((rows, m)),
        thresholds=np.zeros(m),
        absorbed=np.zeros(m),
    )
    return ProjectionBuffers(
        index=index_of(layout),
        problem=problem,
        newton=make_workspace(layout, m),
        log_base=np.zeros(triples),
        v=np.zeros(layout.num_states),
        theta=np.zeros(m),
        log_q=np.zeros(triples),
        policy=np.zeros(rows),
        log_w=np.zeros(rows),
        costs=np.zeros(m),
    )


class Answer(NamedTuple):
    """How a call ended; the point itself is on the desk."""

    code: int
    iterations: int
    flow: float
    cost: float
    complementarity: float
    objective: float
    dual_value: float


class Projector:
    """Projections on one layout, one after the other, without new memory for each.

    A projector serves one call at a time. Give each thread its own.

    Args:
        layout: The layers, the actions, and which states can follow which.
        num_constraints: The number m of constraints.
        settings: Tolerances and limits; None takes the defaults.

    Raises:
        InvalidInput: If `layout` is not a layout, or if `num_constraints` is negative.

    Examples:
        >>> import hedgerow as hr
        >>> import numpy as np
        >>> projector = hr.projection.Projector(hr.Layout((1, 2, 1), num_actions=1))
        >>> base, lower, upper = np.log([0.5, 0.5, 0.5, 0.5]), [0.0, 0.0, 1.0, 1.0], [0.4, 1.0, 1.0, 1.0]
        >>> np.exp(projector.project(base, lower, upper).log_occupancy).round(12).tolist()
        [0.4, 0.6, 0.4, 0.6]
    """

    def __init__(self, layout: Layout, num_constraints: int = 0, settings: ProjectionSettings | None = None) -> None:
        if not isinstance(layout, Layout):
            raise InvalidInput(f"layout must be a hedgerow Layout, not {type(layout).__name__}")
        self.layout, self.num_constraints = layout, whole_number("the number of constraints", num_constraints, 0)
        self.settings, self._lock = settings or ProjectionSettings(), threading.Lock()
        triples = layout.num_triples
        self._desk = make_desk(layout, self.num_constraints, np.zeros(triples), np.ones(triples))

    def __repr__(self) -> str:
        from hedgerow.display import text

        return text.line("Projector", repr(self.layout), text.counted(self.num_constraints, "constraint"))

    def project(
        self,
        log_base: ArrayLike,
        lower: ArrayLike,
        upper: ArrayLike,
        costs: ArrayLike | None = None,
        thresholds: ArrayLike = (),
        warm_start: WarmStart | None = None,
    ) -> ProjectionResult:
        """Project one point, as `hr.projection.project` does for a `ProjectionProblem`.

        Args:
            log_base: (num_triples,) logarithm of the point to project.
            lower: (num_triples,) lower bounds of the transition probabilities.
            upper: (num_triples,) upper bounds of the transition probabilities.
            costs: (m, num_rows) costs; None without constraints.
            thresholds: (m,) the largest allowed costs.
            warm_start: A dual point to start from; None starts from 0.

        Raises:
            BusyError: If the projector is at work in another call.
            InvalidInput: If a shape or a number is wrong.
        """
        given = (log_base, lower, upper, costs, thresholds)
        if not self._lock.acquire(blocking=False):
            raise BusyError("this projector is at work in another call; give each thread a projector of its own")
        try:
            if self._load(given, warm_start):
                settings = self.settings
                answer = solve_on(self._desk, settings.tol, settings.suspect_theta, settings.suspect_iterations)
                if answer.code == SOLVED:
                    return self._result(answer)
        finally:
            self._lock.release()
        return project(ProjectionProblem(self.layout, *given), self.settings, warm_start)

    def _load(self, given: tuple[Any, ...], warm_start: WarmStart | None) -> bool:
        """Put the numbers on the desk, without a look at them; False if some are not plain, or of another shape."""
        desk, problem = self._desk, self._desk.problem
        costs = problem.costs.T
        pairs = list(zip((desk.log_base, problem.lower, problem.upper, costs, problem.thresholds), given, strict=True))
        if given[3] is None and not self.num_constraints:
            del pairs[3]
        if warm_start is None:
            desk.v.fill(0.0)
            desk.theta.fill(0.0)
        else:
            pairs += [(desk.v, warm_start.v), (desk.theta, warm_start.theta)]
        return all(taken(place, array) or not (place.size or np.size(array)) for place, array in pairs)

    def _result(self, answer: Answer) -> ProjectionResult:
        desk, alpha = self._desk, self._desk.problem.thresholds
        value = float(desk.v[0] - desk.theta @ alpha) - self.layout.steps
        return ProjectionResult(
            status=ProjectionStatus.SOLVED,
            log_occupancy=desk.log_q.copy(),
            policy=desk.policy.copy(),
            v=desk.v.copy(),
            theta=desk.theta.copy(),
            objective=answer.objective,
            dual_value=answer.dual_value,
            residuals=make_residuals(answer.flow, answer.cost, answer.complementarity, value, desk.theta, alpha),
            iterations=answer.iterations,
        )


@kernel
def solve_on(desk: ProjectionBuffers, tol: float, suspect_theta: float, suspect_iterations: int) -> Answer:
    """Solve what is on the desk, from its v and theta; the code is STALLED for arrays that are not sound."""
    index, problem, newton = desk.index, desk.problem, desk.newton
    if not _is_sound(desk):
        return Answer(STALLED, 0, 0.0, 0.0, 0.0, 0.0, 0.0)
    base_mass = _split(desk)
    shift = desk.v[len(desk.v) - 1]
    for x in range(len(desk.v)):
        desk.v[x] -= shift
    found = maximise_dual(index, problem, desk.v, desk.theta, newton, tol, suspect_theta, suspect_iterations)
    if found.code != SOLVED:
        return Answer(found.code, found.iterations, 0.0, 0.0, 0.0, 0.0, 0.0)
    recover(index, problem, newton, desk.policy, desk.log_w, desk.costs)
    cost = found.cost
    for i in range(len(desk.costs)):
        cost = max(cost, desk.costs[i] - problem.thresholds[i])
    objective = _compose(desk) + base_mass
    return Answer(SOLVED, found.iterations, found.flow, cost, found.complementarity, objective, found.value + base_mass)


@kernel
def _is_sound(desk: ProjectionBuffers) -> bool:
    """Whether all numbers are finite and in their ranges, and every box holds a distribution."""
    problem, row_start = desk.problem, desk.index.row_start
    lower, upper = problem.lower, problem.upper
    sound = True
    for r in range(len(row_start) - 1):
        least, most = 0.0, 0.0
        for j in range(row_start[r], row_start[r + 1]):
            sound &= np.isfinite(desk.log_base[j]) and 0.0 <= lower[j] <= upper[j] <= 1.0
            least += lower[j]
            most += upper[j]
        sound &= least <= 1.0 + TOL_BOX and most >= 1.0 - TOL_BOX
        for i in range(problem.costs.shape[1]):
            sound &= abs(problem.costs[r, i]) <= 1.0  # larger ones are measured in a unit of their own, by `project`
    for x in range(len(desk.v)):
        sound &= np.isfinite(desk.v[x])
    for i in range(len(desk.theta)):
        sound &= np.isfinite(problem.thresholds[i]) and 0.0 <= desk.theta[i] <= 1e300
    return sound


@kernel
def _split(desk: ProjectionBuffers) -> float:
    """Row weights and conditionals of the base; returns its mass."""
    problem, row_start, log_base = desk.problem, desk.index.row_start, desk.log_base
    mass = 0.0
    for r in range(len(row_start) - 1):
        start, stop = row_start[r], row_start[r + 1]
        largest = log_base[start]
        for j in range(start + 1, stop):
            largest = max(largest, log_base[j])
        total = 0.0
        for j in range(start, stop):
            total += np.exp(log_base[j] - largest)
        log_total = largest + np.log(total)
        problem.log_weight[r] = log_total
        mass += np.exp(log_total)
        for j in range(start, stop):
            problem.log_conditional[j] = log_base[j] - log_total
            problem.conditional[j] = np.exp(problem.log_conditional[j])
    return mass


@kernel
def _compose(desk: ProjectionBuffers) -> float:
    """ln q of all triples; returns sum q ln(q / base) - q."""
    p, row_start, log_q = desk.newton.p, desk.index.row_start, desk.log_q
    value = 0.0
    for r in range(len(row_start) - 1):
        for j in range(row_start[r], row_start[r + 1]):
            log_q[j] = desk.log_w[r] + np.log(p[j]) if p[j] > 0.0 else -np.inf
            q = np.exp(log_q[j])
            value += q * (log_q[j] - desk.log_base[j]) - q if q > 0.0 else 0.0
    return value
