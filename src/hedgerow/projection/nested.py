"""The nested solver, for problems that resist plain Newton: theta in the outer problem, v in the inner one.

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

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from hedgerow.checks import FloatArray, IntArray
from hedgerow.model.kernel_layout import index_of
from hedgerow.model.layout import Layout
from hedgerow.projection.direction import maximise_quadratic, newton_direction
from hedgerow.projection.dual import evaluate, gradient
from hedgerow.projection.newton import SOLVED, STALLED, NewtonOutcome, maximise_dual
from hedgerow.projection.problem import ProjectionProblem, ProjectionSettings, recentred
from hedgerow.projection.workspace import KernelProblem, Workspace, make_workspace

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
