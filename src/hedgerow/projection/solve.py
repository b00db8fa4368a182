"""`project`: solve one problem, or prove that it has no solution.

Each call ends solved with small residuals, or infeasible with a certificate. Learners call the kernels underneath with
their own workspace. Problems that resist plain Newton go to a nested solver, theta outside and v inside:

    phi(theta) = max_v g(v, theta),   grad phi = C w - alpha  at the inner maximiser,   -hess phi = S

For a fixed theta the inner problem has no constraints, always has a solution and is solved exactly. The outer function
phi is concave and differentiable in m variables; its Newton step comes from the same kernel as the joint one, but at a
point where v is exact. When the constraints are almost or exactly at the limit of what is possible, theta grows to
10^4..10^7. Each point is therefore the centre from which the next one is measured (`recentred`), and steps are judged
by slopes, which keep their digits, instead of values, which do not.

Where many constraints are almost parallel, S is singular up to rounding and its step is noise or no number at all. Then
S + rho diag(S) takes the place of S, with the rho of `RIDGES` one after the other: a shorter step, which ascends.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hedgerow.checks import FloatArray, IntArray, float_array, within
from hedgerow.model.kernel_layout import index_of
from hedgerow.model.layout import Layout
from hedgerow.projection.direction import maximise_quadratic, newton_direction
from hedgerow.projection.dual import evaluate, gradient
from hedgerow.projection.infeasibility import LeastViolation, least_violation
from hedgerow.projection.newton import SOLVED, STALLED, NewtonOutcome, maximise_dual, recover
from hedgerow.projection.problem import (
    KernelProblem,
    ProjectionProblem,
    ProjectionResult,
    ProjectionSettings,
    ProjectionStatus,
    Workspace,
    make_residuals,
    make_workspace,
    recentred,
)

INNER_ITERATIONS = 200
NEAR = 50.0
SLOPPY = 8.0
"""When no step improves any more, residuals up to this many tolerances are accepted."""
OVERSHOOT = 0.1
"""A step may end where the slope along it is at most this much of the first one, with the opposite sign."""
GROWTH = 8.0
"""The most by which a multiplier may grow in one step, relative to 1 + the sum of all."""

RIDGES = (1e-10, 1e-7, 1e-4, 1e-1)
"""What is added to S, relative to its diagonal, when a step without it leads nowhere."""


class Point(NamedTuple):
    """The inner maximum at some theta: the problem centred there, and that theta."""

    problem: KernelProblem
    """Its solution for this theta is v = 0; `absorbed` is theta."""
    v: FloatArray
    slack: FloatArray
    """(m,): C w - alpha, the gradient of phi"""
    flow: float
    iterations: int

    @property
    def theta(self) -> FloatArray:
        return self.problem.absorbed

    @property
    def value(self) -> float:
        """The dual value up to a constant."""
        return float(self.v[0] - self.theta @ self.problem.thresholds)

    @property
    def cost(self) -> float:
        return float(np.max(self.slack, initial=0.0))

    @property
    def complementarity(self) -> float:
        return float(np.max(self.theta * np.abs(self.slack), initial=0.0))

    @property
    def terms(self) -> float:
        """The size of the terms that complementarity is a difference of."""
        return 1.0 + abs(self.value) + float(self.theta @ np.abs(self.problem.thresholds))

    @property
    def error(self) -> float:
        """The largest residual."""
        return max(self.flow, self.cost, self.complementarity / self.terms)

    def within(self, tol: float) -> bool:
        return self.flow <= tol and self.cost <= tol and self.complementarity <= tol * self.terms


def maximise_nested(
    problem: ProjectionProblem, settings: ProjectionSettings, v: FloatArray, theta: FloatArray, ws: Workspace
) -> tuple[NewtonOutcome, KernelProblem]:
    """Improve (v, theta), both modified, to the solution of a problem that has one; `ws` holds its p and w."""
    layout, free = problem.layout, make_workspace(problem.layout, 0)
    start = problem.kernel_arguments()[1]
    origin = Point(start, np.zeros_like(v), np.zeros_like(theta), np.inf, 0)
    point = _solve_inner(layout, origin, v, theta, settings, free)
    iterations = point.iterations
    solved, best = point.within(settings.tol), point
    # Steps from the boldest to the most cautious; the first that finds a better point is taken.
    while not solved and iterations <= settings.max_iterations:
        found = None
        for step, step_v in _outer_steps(layout, point, ws):
            found, spent = _search(layout, point, step, step_v, settings, free, settings.max_iterations - iterations)
            iterations += spent + 1
            if found is not None or point.within(SLOPPY * settings.tol):
                break
        if found is None:
            break
        point = found
        solved = point.within(settings.tol)
        best = point if point.error < best.error else best
    if not solved:  # multipliers of 10^8 leave residuals of rounding alone: the best point counts, not the last one
        point = point if point.within(SLOPPY * settings.tol) else best
        solved = point.within(SLOPPY * settings.tol)
    v[:], theta[:] = point.v, point.theta
    evaluate(index_of(layout), point.problem, np.zeros_like(v), np.zeros_like(theta), ws)
    code = SOLVED if solved else STALLED
    value = point.value - layout.steps  # every layer has mass 1
    return NewtonOutcome(code, iterations, value, point.flow, point.cost, point.complementarity), point.problem


def _solve_inner(
    layout: Layout, center: Point, step_v: FloatArray, step: FloatArray, settings: ProjectionSettings, free: Workspace
) -> Point:
    """The point at center.theta + step, starting from center.v + step_v."""
    problem, v = recentred(layout, center.problem, step_v, step), center.v + step_v
    none = np.zeros(0)
    iterations = 0
    for _ in range(4):
        without = problem.replace(costs=np.zeros((layout.num_rows, 0)), thresholds=none, absorbed=none)
        move = np.zeros_like(v)
        outcome = maximise_dual(
            index_of(layout), without, move, none.copy(), free, settings.tol * 0.1, np.inf, INNER_ITERATIONS
        )
        problem, v = recentred(layout, problem, move, np.zeros_like(step)), v + move
        iterations += int(outcome.iterations)
        # Far from the centre digits are lost, and a step may fail to show its ascent: centre again here.
        if outcome.flow <= settings.tol and (outcome.iterations <= 3 or np.max(np.abs(move)) <= NEAR):
            break
    slack = free.w @ problem.costs - problem.thresholds
    return Point(problem, v, slack, float(outcome.flow), iterations)


def _outer_steps(layout: Layout, point: Point, ws: Workspace) -> Iterator[tuple[FloatArray, FloatArray]]:
    """The Newton step of phi, with the change of v that goes with it to first order; then shorter and safer ones."""
    index, origin = index_of(layout), np.zeros_like(point.slack)
    evaluate(index, point.problem, np.zeros_like(point.v), origin, ws)
    gradient(index, point.problem, ws)
    newton_direction(index, point.problem, origin, ws)
    limit = GROWTH * (1.0 + float(point.theta.sum()))
    moving, still = ws.candidate[: ws.num_candidates[0]], np.zeros_like(point.v)
    # grad phi = slack, so this is the slope of phi along the step.
    if ws.step_theta @ point.slack > 0.0:
        scale = min(1.0, limit / float(np.max(np.abs(ws.step_theta))))
        yield scale * ws.step_theta, scale * ws.step_v
    elif np.isfinite(ws.step_theta).all():
        # Rounding decides the sign of so small a step: go along the gradient instead, a short way.
        step = np.where((point.theta > 0.0) | (point.slack > 0.0), point.slack, 0.0)
        longest = float(np.max(np.abs(step)))
        yield step * (1e-4 * limit / longest if longest > 0.0 else 0.0), still
    for ridge in RIDGES:
        step = _ridged_step(point, moving, ws.schur, ridge)
        longest = float(np.max(np.abs(step), initial=0.0))
        if np.isfinite(longest) and step @ point.slack > 0.0:
            yield step * min(1.0, limit / longest), still


def _ridged_step(point: Point, moving: IntArray, curvature: FloatArray, ridge: float) -> FloatArray:
    """argmax { slack . d - d^T (S + ridge diag(S)) d / 2 : theta + d >= 0 } over the multipliers that are `moving`."""
    n = len(moving)
    S, small = curvature[:n, :n].copy(), np.zeros((n + 4, n + 1))
    # Relative to the diagonal: constraints may be scaled differently.
    S[np.diag_indices(n)] *= 1.0 + ridge
    small[1, :n], small[2, :n] = point.slack[moving], -point.theta[moving]
    if n:
        maximise_quadratic(S, small, n)
    step = np.zeros_like(point.slack)
    step[moving] = small[0, :n]
    return step


def _search(
    layout: Layout,
    point: Point,
    step: FloatArray,
    step_v: FloatArray,
    settings: ProjectionSettings,
    free: Workspace,
    most: int,
) -> tuple[Point | None, int]:
    """A step to where the slope of the concave phi has fallen clearly, and not far beyond 0; None if about `most` inner
    steps find none. Also the number of inner steps.

    Far from the solution phi is almost piecewise linear, so a step that overshoots is followed by a search for the
    kink: the bracket [low, high] shrinks by the secant rule, safeguarded by bisection.
    """
    slope = float(step @ point.slack)
    if not slope > 0.0:
        return None, 0
    low, slope_low, best, spent = 0.0, slope, None, 0
    high, slope_high = np.inf, -np.inf
    length = 1.0
    for round_number in range(60):
        if spent > most:
            break
        change = np.maximum(length * step, -point.theta)
        trial = _solve_inner(layout, point, np.clip(length * step_v, -1e3, 1e3), change, settings, free)
        spent += trial.iterations
        slope_there = float(step @ trial.slack)
        # A slope that is still upwards proves ascent, because phi is concave; an overshoot must show it in the value.
        rounding = 1e-12 * (1.0 + abs(point.value) + float(trial.theta @ np.abs(trial.problem.thresholds)))
        ascends = slope_there >= 0.0 or trial.value >= point.value - rounding
        if ascends and slope_there >= -OVERSHOOT * slope:
            best = trial
            low, slope_low = length, slope_there
            if high == np.inf or slope_there <= 0.5 * slope:
                return best, spent
        else:
            high, slope_high = length, slope_there
        if high - low < 1e-12 * high:
            break
        share = slope_low / (slope_low - slope_high) if round_number % 3 else 0.5
        length = low + (high - low) * min(max(share, 0.02), 0.98)
    return best, spent


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
