"""`project`: solve one problem, or prove that it has no solution.

Each call ends solved with small residuals, or infeasible with a certificate. Learners call the kernels underneath with
their own workspace; this is the public function.
"""

from __future__ import annotations

import threading
import weakref
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hedgerow.checks import FloatArray, float_array, within
from hedgerow.model.kernel_layout import index_of
from hedgerow.model.layout import Layout
from hedgerow.projection.infeasibility import LeastViolation, least_violation
from hedgerow.projection.nested import maximise_nested
from hedgerow.projection.newton import SOLVED, NewtonOutcome, maximise_dual, recover
from hedgerow.projection.problem import (
    ProjectionProblem,
    ProjectionResult,
    ProjectionSettings,
    ProjectionStatus,
    make_residuals,
)
from hedgerow.projection.workspace import KernelProblem, Workspace, make_workspace

FINER, SMALLEST_TOL = 100.0, 1e-14
"""What the tolerance is divided by where multipliers are large, and the smallest that makes sense"""


class WarmStart(NamedTuple):
    """A dual point to start from, usually the one of a similar problem.

    A good start saves Newton steps and changes nothing else.

    Examples:
        >>> import hedgerow as hr
        >>> import numpy as np
        >>> problem = hr.projection.ProjectionProblem(
        ...     hr.Layout((1, 1), 2), np.log([0.5, 0.5]), [1.0, 1.0], [1.0, 1.0], [[1.0, 0.0]], [0.25]
        ... )
        >>> first = hr.projection.project(problem)
        >>> start = hr.projection.WarmStart(first.v, first.theta)
        >>> hr.projection.project(problem, warm_start=start).iterations < first.iterations
        True
    """

    v: ArrayLike
    """(num_states,): multipliers of the flow equalities, such as `result.v`."""
    theta: ArrayLike
    """(m,): multipliers of the constraints, at least 0, such as `result.theta`."""

    def __repr__(self) -> str:
        from hedgerow.display import text

        return text.line("WarmStart", f"v={_size(self.v)}", f"theta={_size(self.theta)}")


def _size(values: ArrayLike) -> str:
    """How many numbers there are, whatever they are kept in."""
    return f"array({np.size(values)})"


def project(
    problem: ProjectionProblem, settings: ProjectionSettings | None = None, warm_start: WarmStart | None = None
) -> ProjectionResult:
    """Solve one projection problem, or prove that it has no solution.

    For many problems on one layout, use `Projector`, which keeps its memory between calls.

    Args:
        problem: What to project, and onto what.
        settings: Tolerances and limits; None takes the defaults.
        warm_start: A dual point to start from; None starts from 0.

    Returns:
        The projection with status SOLVED, or the proof of infeasibility with status INFEASIBLE. NUMERICAL_FAILURE means
        that neither was reached.

    Examples:
        >>> import hedgerow as hr
        >>> import numpy as np
        >>> layout = hr.Layout((1, 1), 2)                    # one step, two actions; the first one costs 1
        >>> base, sure = np.log([0.5, 0.5]), [1.0, 1.0]
        >>> limit = {"costs": [[1.0, 0.0]], "thresholds": [0.25]}
        >>> result = hr.projection.project(hr.projection.ProjectionProblem(layout, base, sure, sure, **limit))
        >>> result.policy.round(9).tolist(), result.theta.round(6).tolist()
        ([0.25, 0.75], [1.098612])
    """
    settings = settings or ProjectionSettings()
    if np.any(problem.cost_scales > 1.0):
        return _project_scaled(problem, settings, warm_start)
    # Taken away meanwhile: a signal handler that projects as well must not find it.
    kept, _kept.last = _kept.last, None
    if kept is None or kept[0]() is not problem.layout or kept[1] != problem.num_constraints:
        workspace = make_workspace(problem.layout, problem.num_constraints)
        kept = weakref.ref(problem.layout), problem.num_constraints, workspace
    result = _solve(problem, settings, warm_start, kept[2])
    _kept.last = kept
    return result


def _solve(
    problem: ProjectionProblem, settings: ProjectionSettings, warm_start: WarmStart | None, workspace: Workspace
) -> ProjectionResult:
    index, kernel_problem = problem.kernel_arguments()
    v, theta = _start(problem, warm_start)
    outcome = maximise_dual(
        index, kernel_problem, v, theta, workspace, settings.tol, settings.suspect_theta, settings.suspect_iterations
    )
    if outcome.code == SOLVED:
        result = _result(problem, kernel_problem, workspace, v, theta, outcome)
        if result.residuals.complementarity <= settings.tol:
            return result
        # The repair of the flow moves costs by up to `tol`, which large multipliers magnify: a step or two more.
        v, theta, finer = v.copy(), theta.copy(), max(settings.tol / FINER, SMALLEST_TOL)
        again = maximise_dual(
            index, kernel_problem, v, theta, workspace, finer, settings.suspect_theta, settings.suspect_iterations
        )
        if again.code != SOLVED:
            return result
        finished = _result(problem, kernel_problem, workspace, v, theta, again)
        return replace(finished, iterations=outcome.iterations + again.iterations)
    least = _least_violation(problem)
    if least.value > settings.tol_infeasible:
        result = _result(problem, kernel_problem, workspace, v, theta, outcome)
        return replace(result, status=ProjectionStatus.INFEASIBLE, theta=least.theta, least_violation=least.value)
    relaxation = 0.0
    if least.value > -settings.tol_infeasible:
        relaxation = max(least.value, 0.0) + 1.25 * settings.tol_infeasible
    relaxed = problem.relaxed(relaxation)
    iterations = outcome.iterations
    if not (np.isfinite(v).all() and np.isfinite(theta).all()):  # a step along a direction that was no number
        v, theta = _start(problem, warm_start)
    outcome, kernel_problem = maximise_nested(relaxed, settings, v, theta, workspace)
    result = _result(relaxed, kernel_problem, workspace, v, theta, outcome, relaxation)
    return replace(result, iterations=iterations + outcome.iterations)


class _Kept(threading.local):
    """The workspace of the last call in this thread: results do not depend on what it was used for before."""

    last: tuple[weakref.ref[Layout], int, Workspace] | None = None
    """With the layout and the number of constraints that it was made for"""


_kept = _Kept()


def _project_scaled(
    problem: ProjectionProblem, settings: ProjectionSettings, warm_start: WarmStart | None
) -> ProjectionResult:
    """The projection with every constraint in a unit in which its costs are at most 1, as the tolerances expect."""
    scales = problem.cost_scales
    scaled = ProjectionProblem(
        problem.layout, problem.log_base, problem.lower, problem.upper,
        problem.costs / scales[:, np.newaxis], problem.thresholds / scales,
    )  # fmt: skip
    if warm_start is not None:
        v, theta = _start(problem, warm_start)
        warm_start = WarmStart(v, theta * scales)
    result = project(scaled, settings, warm_start)
    if result.status is not ProjectionStatus.INFEASIBLE:
        return replace(result, theta=result.theta / scales)
    least = _least_violation(problem)
    return replace(result, theta=least.theta, least_violation=least.value)


def _start(problem: ProjectionProblem, warm_start: WarmStart | None) -> tuple[FloatArray, FloatArray]:
    """The given dual point, or 0: a mirror-descent iterate is nearly feasible."""
    states, m = problem.layout.num_states, problem.num_constraints
    if warm_start is None:
        return np.zeros(states), np.zeros(m)
    v = float_array("v of the warm start", warm_start.v, (states,), problem.layout.describe_state)
    theta = float_array("theta of the warm start", warm_start.theta, (m,))
    within("theta of the warm start", theta, 0.0, 1e300)
    return v - v[-1], theta.copy()


def _least_violation(problem: ProjectionProblem) -> LeastViolation:
    if problem.num_constraints == 0:
        return LeastViolation(-np.inf, -np.inf, np.zeros(0), 0)
    return least_violation(problem.layout, problem.lower, problem.upper, problem.costs, problem.thresholds)


def _result(
    problem: ProjectionProblem,
    kernel_problem: KernelProblem,
    workspace: Workspace,
    v: FloatArray,
    theta: FloatArray,
    outcome: NewtonOutcome,
    relaxation: float = 0.0,
) -> ProjectionResult:
    """The answer for `problem`, whose thresholds were raised by `relaxation`; costs count from those before."""
    layout = problem.layout
    policy, log_w = np.zeros(layout.num_rows), np.zeros(layout.num_rows)
    costs = np.zeros(problem.num_constraints)
    recover(index_of(layout), kernel_problem, workspace, policy, log_w, costs)
    p = workspace.p
    log_p = np.log(p, where=p > 0.0, out=np.full(len(p), -np.inf))
    log_q = log_w[layout.row_of_triple] + log_p
    q = np.exp(log_q)
    kl = np.sum(np.where(q > 0.0, q * (np.where(q > 0.0, log_q, 0.0) - problem.log_base), 0.0))
    base_mass = float(np.exp(problem.log_base).sum())
    cost = float(np.max(costs - problem.thresholds + relaxation, initial=0.0))
    product = outcome.complementarity
    if relaxation == 0.0:
        cost = max(cost, outcome.cost)
        product = max(product, float(np.max(theta * np.abs(costs - problem.thresholds), initial=0.0)))
    return ProjectionResult(
        status=ProjectionStatus.SOLVED if outcome.code == SOLVED else ProjectionStatus.NUMERICAL_FAILURE,
        log_occupancy=log_q,
        policy=policy,
        v=v,
        theta=theta,
        objective=float(kl - q.sum() + base_mass),
        dual_value=outcome.value + base_mass,
        residuals=make_residuals(outcome.flow, cost, product, outcome.value, theta, problem.thresholds),
        iterations=outcome.iterations,
        relaxation=relaxation,
    )
