"""Turn the dual solution into an occupancy whose flow is exact.

The policy comes from the row weights, the transitions from the inner problems, which obey their boxes exactly; one
forward pass turns the two into q = q^{p,pi}. The flow has no residual any more; only costs keep one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.kernels import kernel, shared_kernel
from hedgerow.model.kernel_layout import LayoutArrays
from hedgerow.projection.direction import build_system, direction, moves
from hedgerow.projection.dual import evaluate, evaluate_base, evaluate_masses, gradient, mass_direction
from hedgerow.projection.problem import FAINT, NO_SYSTEM, KernelProblem, Workspace
from hedgerow.projection.vectors import logarithms


@kernel
def recover(
    index: LayoutArrays, problem: KernelProblem, ws: Workspace, policy: FloatArray, log_w: FloatArray, costs: FloatArray
) -> None:
    """Write pi(a|x) and ln q(x,a) (num_rows,) and the costs c_i^T q (m,); p stays in `ws.p`."""
    num_states = index.state_start[len(index.state_start) - 2]
    actions, begin = np.uint64(index.num_actions), np.uint64(0)
    reach, log_reach, p, w, successor, row_start = ws.inflow, ws.step_m, ws.p, ws.w, index.successor, index.row_start
    masses, log_m, m = ws.masses, ws.log_m, len(costs)
    reach[:] = 0.0
    reach[0] = 1.0
    costs[:] = 0.0
    for x in range(np.uint64(num_states)):
        for r in range(begin, begin + actions):
            # A quotient of two faint masses has no digits: then by logarithms, which have.
            policy[r] = w[r] / masses[x] if masses[x] >= FAINT else np.exp(ws.log_w[r] - log_m[x])
            # Kept here until all logarithms are taken at once, eight at a time.
            log_w[r] = policy[r]
            mass = reach[x] * policy[r]
            for i in range(m):
                costs[i] += mass * problem.costs[r, i]
            for j in range(np.uint64(row_start[r]), np.uint64(row_start[r + np.uint64(1)])):
                reach[np.uint64(successor[j])] += mass * p[j]
        log_reach[x] = reach[x]
        begin += actions
    logarithms(log_w, 0, len(log_w))
    logarithms(log_reach, 0, num_states)
    begin = np.uint64(0)
    for x in range(np.uint64(num_states)):
        # A state that nothing reaches in floating point keeps the mass that the dual gave it.
        log_mass = log_reach[x] if reach[x] > 1e-300 else log_m[x]
        for r in range(begin, begin + actions):
            log_w[r] = log_mass + (log_w[r] if policy[r] >= FAINT else ws.log_w[r] - log_m[x])
        begin += actions


# --------------------------------------------------------------------------------------------------------------------
# Projected semismooth Newton on the small dual, safeguarded by a line search on its (renormalised) value.
#
#     y = (v, theta) <- start
#     repeat: evaluate; stop if the residuals are small; Newton direction; longest step of 1, 1/2, 1/4, ... that ascends
#
# A system that was factored at an earlier point is used again where that saves more than it costs
# (`_is_good_enough`): for the first step from a learner's base, and for a last one. The direction is that of (v,
# theta); the step is taken in the masses of the states, which determine v. The loop ends as SOLVED; as SUSPECT when
# the multipliers or the iterations grow so much that the caller should look for a certificate of infeasibility before
# it goes on; or as STALLED when no step ascends although residuals are not small.


SOLVED, SUSPECT, STALLED = 0, 1, 2
FAR = 0.5
"""A start that misplaces more mass than this is compared with one of equal masses."""
AT_ONCE = 0.5
"""A step with an old system must be expected to end below this share of the tolerance."""
GROWTH = 8.0
"""The most by which a multiplier may grow in one step, relative to 1 + the sum of all."""


class NewtonOutcome(NamedTuple):
    """How a run of the Newton loop ended."""

    code: int
    iterations: int
    value: float
    """g(v, theta) - sum of the base weights"""
    flow: float
    """max |inflow - outflow|"""
    cost: float
    """max [c_i^T w - alpha_i]^+"""
    complementarity: float
    """max theta_i |c_i^T w - alpha_i|"""


@shared_kernel(NewtonOutcome(SOLVED, 0, 0.0, 0.0, 0.0, 0.0))
def maximise_dual(
    index: LayoutArrays,
    problem: KernelProblem,
    v: FloatArray,
    theta: FloatArray,
    ws: Workspace,
    tol: float,
    suspect_theta: float,
    suspect_iterations: int,
) -> NewtonOutcome:
    """Improve (v, theta) in place until the residuals are <= tol; `ws` then holds p and w of the solution."""
    ws.num_candidates[0] = NO_SYSTEM
    value = evaluate(index, problem, v, theta, ws)
    return climb(index, problem, v, theta, value, ws, tol, suspect_theta, suspect_iterations)


@kernel
def maximise_from_base(
    index: LayoutArrays,
    problem: KernelProblem,
    rows: IntArray,
    v: FloatArray,
    theta: FloatArray,
    ws: Workspace,
    tol: float,
    suspect_theta: float,
    suspect_iterations: int,
) -> NewtonOutcome:
    """`maximise_dual` from v = 0 and theta = 0, for a base that only `rows` may take out of its boxes.

    The first step uses the system that `ws` has kept from the solve before, if any: its base differed in a few rows.
    """
    for i in range(len(theta)):
        theta[i] = 0.0
    value = evaluate_base(index, problem, rows, v, ws)
    return climb(index, problem, v, theta, value, ws, tol, suspect_theta, suspect_iterations)


@shared_kernel(NewtonOutcome(SOLVED, 0, 0.0, 0.0, 0.0, 0.0))
def climb(
    index: LayoutArrays,
    problem: KernelProblem,
    v: FloatArray,
    theta: FloatArray,
    start_value: float,
    ws: Workspace,
    tol: float,
    suspect_theta: float,
    suspect_iterations: int,
) -> NewtonOutcome:
    """The loop, from a point that was just evaluated."""
    value = _start(index, problem, v, theta, start_value, ws)
    iterations = 0
    before_last = np.inf
    while True:
        flow, cost, complementarity = _residuals(problem, theta, ws)
        total = np.sum(theta) + np.sum(problem.absorbed)
        # Multipliers times a residual cannot fall below the multipliers times the rounding of the residual itself.
        if flow <= tol and cost <= tol and complementarity <= max(tol * (1.0 + abs(value)), 1e-15 * total):
            return NewtonOutcome(SOLVED, iterations, value, flow, cost, complementarity)
        # Multipliers without bound are how an infeasible problem shows: the dual is unbounded.
        if iterations >= suspect_iterations or total > suspect_theta:
            return NewtonOutcome(SUSPECT, iterations, value, flow, cost, complementarity)
        worst = max(flow, cost, complementarity)
        old = _is_good_enough(problem, theta, worst, before_last, iterations, tol, ws)
        # Rare: an old system whose direction does not ascend is built anew, and the direction with it.
        while True:  # twice at most
            if not old:
                build_system(index, problem, theta, ws)
            slope = direction(index, problem, theta, ws)
            if slope > 0.0 or not old:
                break
            old = False
        mass_direction(index, problem, ws)
        iterations += 1
        before, before_last = value, worst
        value = _search(index, problem, v, theta, before, slope, ws)
        # No step ascends. With a fresh system that is the end; with an old one it is the system's fault.
        if value == -np.inf:
            if not old:
                return NewtonOutcome(STALLED, iterations, before, flow, cost, complementarity)
            ws.num_candidates[0] = NO_SYSTEM
            value = evaluate_masses(index, problem, ws.log_m, theta, v, ws)
        else:
            for x in range(len(v)):
                ws.log_m[x] = ws.log_m_trial[x]
            for i in range(len(theta)):
                theta[i] = ws.theta_trial[i]
        gradient(index, problem, ws)


@kernel
def _is_good_enough(
    problem: KernelProblem,
    theta: FloatArray,
    worst: float,
    before_last: float,
    iterations: int,
    tol: float,
    ws: Workspace,
) -> bool:
    """Whether the system that was built last will do for the next step.

    At the start it does: the first step has an error of its own anyway. Later, a step with an old system must be the
    last one if it gains as much as the step before, or one of the last few if a new system is expensive.
    """
    if ws.num_candidates[0] == NO_SYSTEM:
        return False
    if iterations > 0:
        expected = worst
        # Steps with one system converge linearly, by the factor of the last step: will so many of them do?
        for _ in range(1 + ws.patience[0]):
            expected *= worst / before_last
        if not expected <= AT_ONCE * tol:
            return False
    for i in range(len(theta)):
        if moves(problem, theta, ws, i):
            known = False
            for j in range(ws.num_candidates[0]):
                # A multiplier that moves now, but had no row in the old system, could not move with it.
                known |= ws.candidate[j] == i
            if not known:
                return False
    return True


@kernel
def _start(
    index: LayoutArrays, problem: KernelProblem, v: FloatArray, theta: FloatArray, start_value: float, ws: Workspace
) -> float:
    """Complete the point that was evaluated, or take that of equal masses if it is better and the given one far off."""
    value = start_value
    gradient(index, problem, ws)
    # A warm start from another problem can be worse than none: equal masses are the other candidate.
    far = False
    for x in range(len(v)):
        far |= abs(ws.gradient_v[x]) > FAR
    if far:
        ws.num_candidates[0] = NO_SYSTEM
        ws.log_m_trial[:] = 0.0
        if evaluate_masses(index, problem, ws.log_m_trial, theta, v, ws) > value:
            for x in range(len(v)):
                ws.log_m[x] = ws.log_m_trial[x]
        value = evaluate_masses(index, problem, ws.log_m, theta, v, ws)
        gradient(index, problem, ws)
    return value


@kernel
def _search(
    index: LayoutArrays,
    problem: KernelProblem,
    v: FloatArray,
    theta: FloatArray,
    before: float,
    slope: float,
    ws: Workspace,
) -> float:
    """Take the longest of the steps 1, 1/2, 1/4, ... that ascends (log_m_trial, theta_trial, v); -inf if none does."""
    step, longest, total = 1.0, 0.0, 0.0
    for i in range(len(theta)):
        longest = max(longest, abs(ws.step_theta[i]))
        total += theta[i] + problem.absorbed[i]
    # Far out the model of theta means little: multipliers that grow by more than a factor overshoot.
    if longest > GROWTH * (1.0 + total):
        step = GROWTH * (1.0 + total) / longest
    for _ in range(80):
        for x in range(len(v)):
            ws.log_m_trial[x] = ws.log_m[x] + step * ws.step_m[x]
        for i in range(len(theta)):
            ws.theta_trial[i] = max(theta[i] + step * ws.step_theta[i], -problem.absorbed[i])
        value = evaluate_masses(index, problem, ws.log_m_trial, ws.theta_trial, v, ws)
        # Armijo's rule, with what rounding may hide of an ascent near the solution.
        rounding = abs(before) + 1.0
        for i in range(len(theta)):
            rounding += abs(ws.theta_trial[i])
        rounding *= 1e-14
        if value >= before + 1e-4 * step * slope - rounding:
            return value
        step *= 0.5
    return -np.inf


@kernel
def _residuals(problem: KernelProblem, theta: FloatArray, ws: Workspace) -> tuple[float, float, float]:
    flow = 0.0
    for x in range(len(ws.gradient_v)):
        flow = max(flow, abs(ws.gradient_v[x]))
    cost = 0.0
    complementarity = 0.0
    for i in range(len(theta)):
        cost = max(cost, ws.gradient_theta[i])
        complementarity = max(complementarity, (theta[i] + problem.absorbed[i]) * abs(ws.gradient_theta[i]))
    return flow, cost, complementarity
