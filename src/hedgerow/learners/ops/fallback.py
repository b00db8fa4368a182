"""Finish projections that Newton's method did not: prove them infeasible and relax them, or use the slow solver.

Cutting planes decide which of the two it is, with proof. If no occupancy meets the thresholds, they are raised by the
least violation and some room (`step.py`). If one does, the slow solver finds the projection, in a limited number of
steps: an episode never takes long. If the projection is not found within these steps, or within the room, it is tried
with four times the room, and so on. The thresholds are then raised by more than needed; `failed` counts the cases in
which they could have been met.
"""

from __future__ import annotations

import warnings

import numpy as np

from hedgerow.errors import InfeasibleWarning
from hedgerow.learners.ops.state import LOG_FLOOR, PROJECTED, RELAXED, SUSPECT_ITERATIONS, SUSPECT_THETA, UNSOLVED, Core
from hedgerow.learners.ops.step import (
    LEAST_ROOM,
    TOL_INFEASIBLE,
    bracket_violation,
    least_room,
    project_all,
    set_thresholds,
    settle,
)
from hedgerow.model.layout import Layout
from hedgerow.projection.newton import SOLVED
from hedgerow.projection.problem import NO_SYSTEM, ProjectionProblem, ProjectionResult, ProjectionSettings
from hedgerow.projection.solve import project

MOST_ITERATIONS = 400
"""Newton steps that the slow solver may take in one episode"""
WIDENING = 4.0
"""The factor from one room to the next."""


def project_now(layout: Layout, core: Core) -> None:
    """Project the weights in the state, whatever it takes, and settle."""
    if project_all(core, PROJECTED) != SOLVED:
        fallback_solve(layout, core)


def fallback_solve(layout: Layout, core: Core) -> None:
    """Finish an episode that `learn` left with a code other than SOLVED."""
    core.state.numbers.suspect += 1
    first = core.state.numbers.infeasible == 0
    set_thresholds(core, 0.0)
    violation = bracket_violation(core, 0.0).lower if len(core.baseline.binding) else -np.inf
    if violation > TOL_INFEASIBLE:
        _relax(layout, core, violation, max(core.state.reals.room, least_room(violation)), RELAXED)
        if first:
            _warn(core, violation)
    elif not _solve_slowly(layout, core, MOST_ITERATIONS, PROJECTED):
        core.state.numbers.failed += 1
        _relax(layout, core, max(violation, 0.0), LEAST_ROOM, UNSOLVED)
        core.state.reals.cost_residual += core.state.reals.slack
        set_thresholds(core, 0.0)


def _relax(layout: Layout, core: Core, violation: float, room: float, status: int) -> None:
    """Raise the thresholds until the projection is found: at the latest when they do not bind any more."""
    while len(core.baseline.binding) and violation + 0.5 * room < layout.steps:
        core.state.reals.room = room
        set_thresholds(core, violation + 0.5 * room)
        core.state.system.num_candidates[0] = NO_SYSTEM  # the old one belongs to the attempt that failed
        if project_all(core, status) == SOLVED:
            return
        room *= WIDENING
    core.state.reals.room = room
    set_thresholds(core, violation + 0.5 * room)
    _solve_slowly(layout, core, ProjectionSettings().max_iterations, status, at_any_rate=True)


def _solve_slowly(layout: Layout, core: Core, most: int, status: int, *, at_any_rate: bool = False) -> bool:
    """Project with the slow solver in at most so many steps; settle if that worked, or in any case `at_any_rate`."""
    state, numbers = core.state, core.state.numbers
    settings = ProjectionSettings(
        tol=core.rule.tol,
        suspect_theta=SUSPECT_THETA,
        suspect_iterations=SUSPECT_ITERATIONS,
        max_iterations=most,
    )
    result = project(_problem(layout, core), settings)
    numbers.iterations += result.iterations
    numbers.last_iterations += result.iterations
    if not (result.solved or at_any_rate):
        return False
    _adopt(layout, core, result)
    state.reals.cost_residual = result.residuals.cost
    settle(core, status)
    return True


def _warn(core: Core, violation: float) -> None:
    warnings.warn(
        f"after {core.state.numbers.episode} episodes no policy meets the thresholds any more, whatever transitions "
        f"and costs the confidence sets allow: some cost exceeds its threshold by {violation:.3g} or more. The "
        "learner goes on with raised thresholds, and `diagnostics` counts such episodes; are the thresholds right?",
        InfeasibleWarning,
        stacklevel=2,
    )


def _problem(layout: Layout, core: Core) -> ProjectionProblem:
    state, problem = core.state, core.buffers.problem
    log_base = state.log_weight[layout.row_of_triple] + np.log(state.conditional)
    return ProjectionProblem(
        layout, log_base, state.boxes.lower, state.boxes.upper, problem.costs.T, problem.thresholds
    )


def _adopt(layout: Layout, core: Core, result: ProjectionResult) -> None:
    """Write a projection into the state: row weights, conditionals and policy."""
    state, starts = core.state, layout.row_start[:-1]
    log_q = result.log_occupancy
    log_w = np.logaddexp.reduceat(log_q, starts)
    state.log_weight[:] = log_w
    state.conditional[:] = np.exp(np.maximum(log_q - log_w[layout.row_of_triple], LOG_FLOOR))
    state.policy[:] = result.policy
    state.multipliers[:] = result.theta
    state.numbers.moved = 1
    state.system.num_candidates[0] = NO_SYSTEM  # it belongs to the attempt that failed
