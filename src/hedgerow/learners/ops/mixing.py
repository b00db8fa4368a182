"""How often to play the baseline (paper, Algorithm S-OPS, lines 4 and 14-19).

    U_i    = upper bound of the expected cost of pi_hat: UCB_i^T u_hat, or the joint robust cost
    lambda = max(0, max over i with U_i > alpha_i of (min(U_i, L) - alpha_i) / (min(U_i, L) - beta_i))

with L or a smaller known bound of an episode's cost. Then lambda beta_i + (1 - lambda) U_i <= alpha_i for every i.

Constraints with U_i <= alpha_i ask for nothing: the printed maximum over all i exceeds 1 as soon as one U_i lies below
its beta_i (departure D1).

    L = 3, alpha = (1, 1), beta = (.5, .8), U = (2, .6)   ->   lambda = 2/3     (as printed: 2)
"""

from __future__ import annotations

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.kernels import copy_into, kernel
from hedgerow.confidence.aggregate import aggregate_bounds, set_cost_centre, set_transition_centre
from hedgerow.confidence.balls import joint_cost_with_balls
from hedgerow.confidence.bounds import joint_costs_of_columns, reach_of_states
from hedgerow.confidence.columns import keep_columns
from hedgerow.confidence.premises import NOTHING
from hedgerow.learners.kernels import BaselineArrays, safe_weight
from hedgerow.learners.ops.state import DISCARD, PROJECTED, REALISED, Core

WORTH_OF_BALLS, WORTH_OF_SUMS = 0.01, 0.05
"""The share of the part of U above its threshold that an expensive bound has to remove. Measured: with .1 for the
balls, regret in `dope-media` after 10^4 episodes is 2 % larger.
"""
MOST_SKIPPED = 31
"""Evaluations of an expensive bound that are skipped, at most"""


@kernel
def bound_mixture(core: Core, rows: IntArray) -> None:
    """Turn u of the learner's policy into u of the plan, by the rule `mixture_bound`.

    A mixture has no worst transitions of its own (departure D6): its bound is the average of the bounds of its parts.
    """
    trace, lam, kind = core.buffers.trace, core.state.reals.mixing, core.rule.mixture_bound
    branch = core.state.numbers.branch
    if kind == DISCARD:
        for k in range(len(rows)):
            trace.u[k] *= 1.0 - lam
    elif kind == REALISED:
        if branch > 0:
            bound_baselines(core, rows, branch - 1, branch)
            for k in range(len(trace.u)):
                trace.u[k] = trace.baseline_u[k]
    elif lam > 0.0:
        if len(core.baseline.policies) == 1:
            bound_baselines(core, rows, 0, 1)
        else:
            if core.state.numbers.stale:
                refresh_cached_bounds(core)
            for k in range(len(rows)):
                trace.baseline_u[k] = core.state.baseline_u[rows[k]]
        for k in range(len(rows)):
            trace.u[k] = lam * trace.baseline_u[k] + (1.0 - lam) * trace.u[k]


@kernel
def bound_baselines(core: Core, rows: IntArray, first: int, last: int) -> None:
    """u(x,a) of the uniform mixture of the baselines first..last-1 on the visited pairs, into `baseline_u`."""
    policies, columns, trace = core.baseline.policies, core.buffers.baseline_columns, core.buffers.trace
    trace.baseline_u[:] = 0.0
    for j in range(first, last):
        keep_columns(core.index, core.state.boxes.lower, core.state.boxes.upper, policies[j], columns)
        reach_of_states(core.index, columns, trace.visited, len(rows), trace.reach)
        for k in range(len(rows)):
            trace.baseline_u[k] += policies[j, rows[k]] * trace.reach[k] / (last - first)


@kernel
def refresh_cached_bounds(core: Core) -> None:
    """u(x,a) of the uniform mixture of many baselines on all pairs, from the present boxes.

    They are cached until the visits of some pair have doubled (the epochs of UOB-REPS). While the confidence sets hold
    the truth, older boxes bound it as well, and until the visits double the radii change little.
    """
    policies, columns, u = core.baseline.policies, core.buffers.baseline_columns, core.state.baseline_u
    boxes, reach = core.state.boxes, core.buffers.baseline_reach
    u[:] = 0.0
    for j in range(len(policies)):
        keep_columns(core.index, boxes.lower, boxes.upper, policies[j], columns)
        reach_of_states(core.index, columns, columns.states, len(reach) - 1, reach)
        for r in range(len(u)):
            u[r] += policies[j, r] * reach[r // core.index.num_actions] / len(policies)
    for r in range(len(u)):
        core.state.baseline_visits[r] = core.state.counts.num_visits[r]
    core.state.numbers.stale = 0


@kernel
def watch_cached_bounds(core: Core, rows: IntArray) -> None:
    """Note whether some visited row has twice the visits that the cached bounds were made with."""
    state = core.state
    for r in rows:
        place = core.rule.box.laws.moves_at[r]
        if state.counts.num_visits[place] >= max(1, 2 * state.baseline_visits[place]):
            state.numbers.stale = 1


@kernel
def bound_costs(core: Core) -> None:
    """U (m,) of the present policy into `bounds`; its boxes are in `columns`."""
    buffers, bounds, upper = core.buffers, core.state.bounds, core.state.boxes.cost_upper
    if core.rule.joint_cost:
        joint_costs_of_columns(core.index, buffers.columns, upper, bounds)
        return
    num_states = len(buffers.reach) - 1
    reach_of_states(core.index, buffers.columns, buffers.columns.states, num_states, buffers.reach)
    bounds[:] = 0.0
    for x in range(num_states):
        for r in range(x * core.index.num_actions, (x + 1) * core.index.num_actions):
            u = core.state.policy[r] * buffers.reach[x]
            for i in range(len(bounds)):
                bounds[i] += upper[r, i] * u


@kernel
def bound_by_balls(core: Core) -> None:
    """Let the balls of wide rows, if there are any, improve on the `bounds` of the present policy.

    That is expensive, and often of little use: after an evaluation that removed little of what lies above the
    thresholds, the next 1, 3, 7, ... are skipped. U stays valid without them.
    """
    bounds, alpha, patience = core.state.bounds, core.baseline.thresholds, core.state.patience
    if len(core.state.balls.radius) == 0:
        return
    if patience.balls_left > 0:
        patience.balls_left -= 1
        return
    looked = helped = False
    for i in core.baseline.binding:
        if bounds[i] > alpha[i]:  # else nothing is gained
            looked = True
            balls, upper = core.state.balls, core.state.boxes.cost_upper
            near = joint_cost_with_balls(core.index, core.buffers.columns, core.rule.ball, balls, upper, i)
            helped |= bounds[i] - near > WORTH_OF_BALLS * (bounds[i] - alpha[i])
            bounds[i] = min(bounds[i], near)
    if looked:
        patience.balls_left = patience.balls_skipped = _to_skip(patience.balls_skipped, helped)


@kernel
def bound_by_sums(core: Core) -> None:
    """Let the aggregate certificate, if there is one, improve on the `bounds`, with the same patience."""
    bounds, before, patience = core.state.bounds, core.buffers.before, core.state.patience
    if len(core.state.aggregate.generation) == 0:
        return
    if patience.sums_left > 0:
        patience.sums_left -= 1
        return
    copy_into(bounds, before)
    aggregate_bounds(
        core.index, core.buffers.columns, core.state.policy, core.state.boxes, core.rule.aggregate,
        core.state.aggregate, core.buffers.certificate, bounds,
    )  # fmt: skip
    looked = helped = False
    for i in core.baseline.binding:
        above = before[i] - core.baseline.thresholds[i]
        looked |= above > 0.0
        helped |= above > 0.0 and before[i] - bounds[i] > WORTH_OF_SUMS * above
    if looked:
        patience.sums_left = patience.sums_skipped = _to_skip(patience.sums_skipped, helped)


@kernel
def _to_skip(skipped: int, helped: bool) -> int:
    """How many evaluations to skip after one that helped or did not, if `skipped` were skipped before it."""
    return 0 if helped else min(2 * skipped + 1, MOST_SKIPPED)


@kernel
def set_centres(core: Core, rows: IntArray) -> None:
    """Set the centres of the aggregate certificate in some rows whose boxes were just refreshed."""
    counts, boxes, rule, aggregate = core.state.counts, core.state.boxes, core.rule.box, core.state.aggregate
    for row in rows:
        if rule.uncertain[row]:
            place = rule.laws.moves_at[row]
            first = core.index.row_start[place]
            set_transition_centre(core.index, row, counts.num_moves, first, counts.num_visits[place], aggregate)
        place = rule.laws.costs_at[row]
        set_cost_centre(
            row, counts.cost_sums, place, counts.num_costs[place], boxes.cost_lower, boxes.cost_upper, aggregate
        )


@kernel
def cost_bounds(core: Core, bounds: FloatArray) -> None:
    """Upper bounds (m,) of the expected costs of the next episode before its coin, at most the ceilings: those of the
    mixture if there is a baseline, else the joint robust cost of the policy.
    """
    lam, beta, ceilings = core.state.reals.mixing, core.baseline.costs, core.baseline.ceilings
    if len(core.baseline.policies) == 0:
        joint_costs_of_columns(core.index, core.buffers.columns, core.state.boxes.cost_upper, bounds)
        for i in range(len(bounds)):
            bounds[i] = min(bounds[i], ceilings[i])
        return
    for i in range(len(bounds)):
        bounds[i] = lam * beta[i] + (1.0 - lam) * min(core.state.bounds[i], ceilings[i])


@kernel
def mixing_weight(core: Core, status: int) -> float:
    """lambda for the next episode, rounded up; 1 after a projection without a solution, and after something that the
    learner was told has been refuted, unless it is to go on.
    """
    if status != PROJECTED or (core.rule.premises.stays and core.state.premises.numbers.what != NOTHING):
        return 1.0
    if core.rule.literal_sigma:
        return literal_weight(core.baseline, core.state.bounds)
    return safe_weight(core.baseline, core.state.bounds)


@kernel
def literal_weight(baseline: BaselineArrays, bounds: FloatArray) -> float:
    """sigma as printed: over all constraints as soon as one is in danger; cut to [0, 1]. A demonstration of D1."""
    alpha, beta, lam, danger = baseline.thresholds, baseline.costs, 0.0, False
    for i in baseline.binding:
        danger |= bounds[i] > alpha[i]
    if not danger:
        return 0.0
    for i in baseline.binding:
        U = min(bounds[i], baseline.ceilings[i])
        lam = max(lam, (U - alpha[i]) / (U - beta[i])) if beta[i] != U else 1.0
    return min(1.0, lam)
