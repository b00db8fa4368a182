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
from hedgerow.compiling.kernels import kernel
from hedgerow.confidence.bounds import joint_costs_of_columns, keep_columns, reach_of_states
from hedgerow.confidence.premises import NOTHING
from hedgerow.learners.kernels import draw_branch, safe_weight
from hedgerow.learners.ops.account import affords_own
from hedgerow.learners.ops.pool import bound_members, draw_member, share_of
from hedgerow.learners.ops.state import PROJECTED, Core
from hedgerow.learners.ops.stay import is_worth_staying
from hedgerow.model.random_streams import Stream


@kernel
def draw_policy(core: Core, coin: Stream) -> int:
    """Draw which policy plays the next episode: 0 the learner's, j + 1 the j-th baseline, behind them the pool's."""
    branch = draw_member(core.pool, len(core.baseline.policies), coin)
    return branch if branch >= 0 else draw_branch(len(core.baseline.policies), core.state.reals.mixing, coin)


@kernel
def is_baseline(core: Core) -> bool:
    """Whether the open plan plays a baseline."""
    return 0 < core.state.numbers.branch <= len(core.baseline.policies)


@kernel
def is_due(core: Core) -> bool:
    """Whether the members of the pool are to be chosen before the next episode; not while that is the baseline's."""
    numbers, stays = core.pool.numbers, core.state.stay.now > 0.0
    due = numbers.closed == 0 and numbers.due <= core.state.numbers.episode
    return len(core.pool.weights) > 0 and due and not stays


@kernel
def baseline_share(core: Core) -> float:
    """The probability with which the next episode is left to the baseline: lambda, unless there is a pool."""
    lam, share = core.state.reals.mixing, core.pool.reals.share
    return (1.0 - share) * lam + share * core.pool.reals.base if share > 0.0 else lam


@kernel
def bound_mixture(core: Core, rows: IntArray) -> None:
    """Turn u of the learner's policy into u of the plan.

    A mixture has no worst transitions of its own (departure D6): its bound is the average of the bounds of its parts.
    Where these are too many, u is that of the policy that plays.
    """
    trace, lam = core.buffers.trace, core.state.reals.mixing
    branch = core.state.numbers.branch
    if core.rule.realised:
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
    share = core.pool.reals.share
    if share > 0.0:
        if lam == 0.0:
            bound_baselines(core, rows, 0, 1)
        bound_members(
            core.index, core.state.boxes, core.pool, core.pool_rule, rows, trace.visited, trace.baseline_u, trace.reach
        )
        for k in range(len(rows)):
            trace.u[k] = share * core.pool_rule.u[k] + (1.0 - share) * trace.u[k]


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
        place = core.sets.rule.box.laws.moves_at[r]
        if state.counts.num_visits[place] >= max(1, 2 * state.baseline_visits[place]):
            state.numbers.stale = 1


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
    pool, share = core.pool, core.pool.reals.share
    for i in range(len(bounds)):
        bounds[i] = lam * beta[i] + (1.0 - lam) * min(core.state.bounds[i], ceilings[i])
        if share > 0.0:
            pooled = pool.reals.base * beta[i]
            for j in range(pool.numbers.size):
                pooled += pool.weights[j] * pool.bounds[j, i]
            bounds[i] = share * pooled + (1.0 - share) * bounds[i]


@kernel
def set_mixture(core: Core, status: int) -> None:
    """Set lambda for the next episode, and the share of the pool: none while all is left to the baseline."""
    reals, numbers, stay = core.state.reals, core.state.premises.numbers, core.state.stay
    stay.now = 1.0 if is_worth_staying(stay) else 0.0
    reals.mixing = mixing_weight(core, status)
    stays = status != PROJECTED or (core.rule.premises.stays and numbers.what != NOTHING) or stay.now > 0.0
    share = 0.0 if stays else share_of(core.pool, core.pool_rule, core.state.numbers.episode)
    core.pool.reals.share = share


@kernel
def mixing_weight(core: Core, status: int) -> float:
    """lambda for the next episode, rounded up; 1 after a projection without a solution, after something that the
    learner was told has been refuted, unless it is to go on, and while leaving the baseline does not pay.
    """
    # No solution: by Lemma 2 (feasibility) the sets have lost the truth, and U with them. All is left to the baseline.
    if status != PROJECTED or (core.rule.premises.stays and core.state.premises.numbers.what != NOTHING):
        return 1.0
    if core.state.stay.now > 0.0:
        return 1.0
    if core.rule.account.active:
        account, bounds = core.state.account, core.state.bounds
        return 0.0 if affords_own(core.rule.account, account, core.baseline, bounds, core.buffers.held) else 1.0
    return safe_weight(core.baseline, core.state.bounds)
