"""Projections that Newton's method did not finish at once: proved infeasible and relaxed, or solved the slow way.

On the clean event a projection always has a solution (Lemma feasibility). Without one, thresholds are raised by the
least violation s* that makes them attainable and by 10^-6 more, so that the iterate is the least violating choice and
stays a projection of its predecessor (the paper allows any occupancy there; a restart would forget what was learnt).
"""

from __future__ import annotations

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.learners.core import SUSPECT_ITERATIONS, SUSPECT_THETA, Core
from hedgerow.learners.state import (
    COST_RESIDUAL,
    FAILED,
    INFEASIBLE,
    ITERATIONS,
    LAST_ITERATIONS,
    LOG_FLOOR,
    MOVED,
    PROJECTED,
    RELAXED,
    SUSPECT,
    UNSOLVED,
)
from hedgerow.learners.step import project_weights, settle
from hedgerow.model.layout import Layout
from hedgerow.projection.newton import SOLVED
from hedgerow.projection.problem import ProjectionProblem
from hedgerow.projection.result import ProjectionResult, ProjectionSettings, ProjectionStatus
from hedgerow.projection.solve import project
from hedgerow.projection.workspace import NO_SYSTEM

RELAXATION = 1e-6


def project_now(layout: Layout, core: Core) -> None:
    """Project the weights in the state, whatever it takes, and settle."""
    if project_weights(core, core.buffers.all_rows) == SOLVED:
        settle(core, PROJECTED)
    else:
        rescue(layout, core)


def rescue(layout: Layout, core: Core) -> None:
    """Finish an episode that `learn` left with a code other than SOLVED."""
    state, numbers = core.state, core.state.numbers
    settings = ProjectionSettings(tol=core.rule.tol, suspect_theta=SUSPECT_THETA, suspect_iterations=SUSPECT_ITERATIONS)
    thresholds = core.buffers.problem.thresholds
    result = project(_problem(layout, core, thresholds), settings)
    status, iterations = PROJECTED, result.iterations
    numbers[SUSPECT] += 1
    if result.status is ProjectionStatus.INFEASIBLE:
        numbers[INFEASIBLE] += 1
        status = RELAXED
        result = project(_problem(layout, core, thresholds + result.least_violation + RELAXATION), settings)
        iterations += result.iterations
    if not result.solved:
        numbers[FAILED] += 1
        # Its occupancy obeys everything but the costs; a learner with a baseline plays that instead.
        status = UNSOLVED
    numbers[ITERATIONS] += iterations
    numbers[LAST_ITERATIONS] += iterations
    _adopt(layout, core, result)
    state.reals[COST_RESIDUAL] = result.residuals.cost
    settle(core, status)


def _problem(layout: Layout, core: Core, thresholds: FloatArray) -> ProjectionProblem:
    state = core.state
    log_base = state.log_weight[layout.row_of_triple] + np.log(state.conditional)
    return ProjectionProblem(
        layout, log_base, state.boxes.lower, state.boxes.upper, core.buffers.problem.costs.T, thresholds
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
    state.numbers[MOVED] = 1
    state.system.num_candidates[0] = NO_SYSTEM  # it belongs to the attempt that failed
