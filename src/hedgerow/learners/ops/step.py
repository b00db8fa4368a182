"""One episode of learning, compiled: what `observe` and the compiled loop both call.

After episode t, with u the upper occupancy bounds and P_{t-1} the boxes before it (paper, SV-OPS, lines 4-15):

    u(x,a)     = max { q^{P,pi_t}(x,a) : P in P_{t-1} }                    on the L visited pairs
    l_hat(x,a) = l_t(x,a) / (u(x,a) + gamma)                               on the visited pairs, 0 elsewhere
    N, M, S, and with them P_t and the cost bounds                         only after u: it must not see episode t
    ln q~      = ln q_hat_t - eta l_hat
    q_hat_{t+1} = argmin { D(q || q~) : q in Delta(P_t), LCB^T q <= alpha },   pi_{t+1} = its policy

`learn` does all of it, or stops before the last line with a code other than SOLVED when Newton's method met
something unusual: the weights then still hold q~, `fallback.py` finds q_hat_{t+1}, and `settle` completes the
episode. While CV-OPS searches for a safe policy, weighted costs replace the losses (`search.py`).

An episode that is not whole (`absorb.py`) is learnt by the same lines. Its unknown values widen the sets, perhaps of
all rows; sums over whole episodes take it with 1 in the place of each cost that nobody observed, or end, or skip it.

Where no policy can meet the thresholds, as far as the estimates tell, they are raised. On the clean event a projection
always has a solution (Lemma feasibility). Without one, the paper allows any occupancy. Ours is the projection onto
thresholds + slack, where the slack exceeds the least violation s* by at most `room`: almost the least violating choice,
which stays a projection of its predecessor (a restart would forget what was learnt).

The sets move little in one episode. Cutting planes, started from the multipliers that proved the last s*, bracket the
present one, lower <= s* <= upper, to room / 8 in a few backward passes. The slack stays as it is as long as

    upper + room / 8 <= slack <= lower + room.

As soon as the constraints can be met, the thresholds are those of the world again. The room keeps Newton's method well
conditioned: its multipliers grow like 1 / room. The room begins at LEAST_ROOM, or 2 % of the violation. It grows when a
projection fails all the same (`fallback.py`) and shrinks back afterwards.
"""

from __future__ import annotations

from math import exp, log

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.kernels import kernel, shared_kernel
from hedgerow.confidence.bounds import keep_columns, load_columns, reach_of_states, update_columns
from hedgerow.confidence.counts import find_path
from hedgerow.confidence.premises import count_episode, is_impossible
from hedgerow.confidence.sets import (
    bound_by_boxes,
    bound_policy,
    count_broken,
    count_path,
    count_sums,
    refresh_sets,
    update_sets,
)
from hedgerow.environments.play import Path
from hedgerow.learners.ops.account import enter_baseline, enter_own, set_terms
from hedgerow.learners.ops.mixing import bound_mixture, is_baseline, set_mixture, watch_cached_bounds
from hedgerow.learners.ops.pool import judge_episode
from hedgerow.learners.ops.rates import follow_rates, lower_rates, set_rates
from hedgerow.learners.ops.search import mix_costs, search_step
from hedgerow.learners.ops.state import (
    LOG_FLOOR,
    PROJECTED,
    RELAXED,
    RELAXED_FLOOR,
    RELAXED_ITERATIONS,
    RELAXED_THETA,
    SMALLEST_CONDITIONAL,
    SUSPECT_ITERATIONS,
    SUSPECT_THETA,
    Core,
)
from hedgerow.learners.ops.stay import enter_losses
from hedgerow.projection.infeasibility import Bracket, cut_to
from hedgerow.projection.newton import SOLVED, maximise_from_base, recover
from hedgerow.projection.problem import NO_SYSTEM
from hedgerow.projection.rows import count_bounds

REFUSED = -1
LEAST_ROOM = 1e-3
SHARE = 0.02
"""The room may also be this share of the violation."""
SHRINKING = 0.99
"""Factor from one episode to the next of a room that is above the least"""
TOL_INFEASIBLE = 4e-10
"""As in `ProjectionSettings`."""


@kernel
def follow_violation(core: Core) -> None:
    """Choose the slack for the present sets, if the last projection had no solution without it."""
    reals = core.state.reals
    if reals.slack == 0.0:
        return
    slack = reals.slack
    room = max(least_room(slack), SHRINKING * reals.room)
    reals.room = room
    set_thresholds(core, 0.0)
    found = bracket_violation(core, 0.125 * room)
    if found.lower <= TOL_INFEASIBLE < found.upper:
        found = bracket_violation(core, 0.0)
    if found.lower <= TOL_INFEASIBLE:
        return
    if not found.upper + 0.125 * room <= slack <= found.lower + room:
        slack = found.upper + 0.5 * room
    set_thresholds(core, slack)


@kernel
def least_room(violation: float) -> float:
    """How large the room is at least."""
    return max(LEAST_ROOM, SHARE * violation)


@kernel
def bracket_violation(core: Core, gap: float) -> Bracket:
    """The least violation of the present thresholds over the present sets, up to `gap`, or as exactly as possible."""
    boxes, problem = core.state.boxes, core.buffers.problem
    return cut_to(
        core.index, boxes.lower, boxes.upper, problem.costs, problem.thresholds, gap, core.buffers.planes
    )  # fmt: skip


@kernel
def set_thresholds(core: Core, slack: float) -> None:
    """Let the projection meet thresholds + slack from now on."""
    baseline, thresholds = core.baseline, core.buffers.problem.thresholds
    core.state.reals.slack = slack
    for i in range(len(thresholds)):
        thresholds[i] = baseline.thresholds[baseline.binding[i]] + slack


@shared_kernel(SOLVED)
def learn(core: Core, rows: IntArray, triples: IntArray, losses: FloatArray, costs: FloatArray) -> int:
    """Learn from an episode: its rows and triples (L,), losses (L,) and costs (L, m); returns how PROJ ended.

    If it is broken, these have the steps that were taken.
    """
    numbers, reals, log_weight, trace = core.state.numbers, core.state.reals, core.state.log_weight, core.buffers.trace
    broken = core.buffers.marks.broken == 1
    # u must come from the boxes before this episode: the estimate has to be optimistic given the past (Corollary 1).
    if core.buffers.marks.late:
        for k in range(len(rows)):
            trace.u[k], trace.q_hat[k] = core.buffers.late_u[rows[k]], exp(log_weight[rows[k]])
    else:
        bound_visited(core, rows)
    if core.search.active:
        if broken:
            trace.fed[:] = 0.0
        else:
            mix_costs(core.search, core.state.search, costs, trace.fed)
        losses = trace.fed
    stayed = _enter_losses(core, losses)
    if stayed:
        losses = trace.fed  # 0: mirror descent steps where its own policy might have played (docs/stay.md)
    if core.rule.account.active:
        # Before anything changes: what the episode is charged with is the bound that it was planned with.
        _enter(core, costs)
        if numbers.branch > 0:
            losses = trace.fed  # 0: mirror descent steps in own episodes alone (docs/budget.md)
    for k in range(len(rows)):
        # Implicit exploration: gamma in the denominator makes the estimate too small, never too large, on average.
        trace.estimate[k] = losses[k] / (trace.u[k] + reals.gamma)
    if len(core.pool.weights) > 0 and not broken and not stayed:
        judge_episode(
            core.index, core.pool, core.pool_rule, core.state.policy, reals.mixing, rows, losses, numbers.episode,
            core.buffers.marks.late == 1,
        )  # fmt: skip
    if broken or core.buffers.marks.counted:
        marks, own = core.buffers.marks, not is_baseline(core)
        if marks.counted:
            count_sums(core.sets, rows, triples, own, marks.closes == 1, marks.skipped == 1)
        else:
            count_broken(core.sets, rows, triples, costs, own, marks.closes == 1, marks.skipped == 1)
        numbers.moved = 1
    else:
        count_path(core.sets, rows, triples, costs, not is_baseline(core))
    if core.buffers.marks.skipped == 0:
        count_episode(
            core.index, core.rule.premises, core.state.premises, rows, triples, costs, 1 if is_baseline(core) else 0,
            not broken, numbers.episode + 1,
        )  # fmt: skip
    if len(core.state.baseline_u) > 0:
        watch_cached_bounds(core, rows)
    touched = _update_boxes(core, core.buffers.all_rows if broken or core.buffers.marks.counted else rows)
    for k in range(len(rows)):
        log_weight[rows[k]] -= reals.eta * trace.estimate[k]
    # From here on the episode is learnt; whatever interrupts the projection leaves it `open`, not lost.
    numbers.pending = 0
    numbers.episode += 1
    numbers.open = 1
    if core.rule.rates.gain > 0.0 or core.rule.rates.share > 0.0:
        follow_rates(core, rows)
    if core.search.active and _search_on(core, costs):
        numbers.phase_over = 1
    if core.rule.doubling and numbers.episode == numbers.segment_end:
        start_segment(core)
    follow_violation(core)
    relaxed = reals.slack > 0.0
    if relaxed:
        copy_floored(log_weight, RELAXED_FLOOR, log_weight)
    changed = core.buffers.touched[:touched] if core.sets.rule.tied else rows
    code = project_weights(core, core.buffers.all_rows if numbers.moved else changed)
    if code != SOLVED and relaxed and not numbers.moved:
        numbers.moved = 1  # raised thresholds have a solution: try again without what the last solve kept
        core.state.system.num_candidates[0] = NO_SYSTEM
        code = project_weights(core, core.buffers.all_rows)
    if code == SOLVED:
        boxes = core.state.boxes
        keep_columns(core.index, boxes.lower, boxes.upper, core.state.policy, core.buffers.columns)
        _conclude(core, RELAXED if relaxed else PROJECTED)
    return code


@kernel
def _enter_losses(core: Core, losses: FloatArray) -> bool:
    """Count what an episode of the baseline has lost, if there is a rule when to stay; whether its plan was to stay."""
    stay, marks = core.state.stay, core.buffers.marks
    if stay.limit == 0.0:
        return False
    if is_baseline(core):
        enter_losses(stay, losses, len(core.buffers.trace.u), marks.broken == 0)
    return marks.stayed == 1 if marks.late else stay.now > 0.0


@kernel
def _enter(core: Core, costs: FloatArray) -> None:
    """Enter the episode into the account of B-OPS."""
    rule, account, marks, paid = core.rule.account, core.state.account, core.buffers.marks, core.buffers.paid
    own, terms = core.state.numbers.branch == 0, core.buffers.terms
    if not marks.late:  # else they are those of its time
        set_terms(rule, core.baseline, core.state.bounds, own, terms)
    if not own:
        enter_baseline(rule, account, core.baseline, terms)
        return
    if marks.broken == 0:  # else `absorb.py` has filled in what was not observed
        paid[:] = 0.0
        for k in range(len(costs)):
            for i in range(len(paid)):
                paid[i] += costs[k, i]
    enter_own(rule, account, core.baseline, terms, paid, marks.skipped == 1)


@kernel
def _search_on(core: Core, costs: FloatArray) -> bool:
    """The step of the search of CV-OPS after an episode; whether it ends here."""
    search, marks, broken = core.state.search, core.buffers.marks, core.state.search.broken
    t = core.state.numbers.episode - broken.skipped
    if marks.skipped and t <= len(search.policies):
        broken.skipped += 1  # the next policy takes the place of this one
        search.policies[t - 1, :] = 0.0
        return False
    if marks.repeats:  # it has taken no place
        broken.skipped += 1
        return False
    if marks.broken == 0:
        return search_step(core.search, search, t, costs)
    broken.filled += 1
    return search_step(core.search, search, t, core.sets.scratch.filled)


@kernel
def learn_path(core: Core, path: Path) -> int:
    """`learn`, if the rows, losses and costs (L of each) are those of an episode that the plan may have led to.

    Writes the triples. REFUSED: something is wrong, and nothing was changed.
    """
    return learn(core, path.rows, path.triples, path.losses, path.costs) if _is_possible(core, path) else REFUSED


@kernel
def _is_possible(core: Core, path: Path) -> bool:
    index, branch, sound = core.index, core.state.numbers.branch, True
    plays, baselines = core.state.policy, core.baseline.policies
    if branch > len(baselines):
        plays = core.pool.policies[branch - 1 - len(baselines)]
    elif branch > 0:
        plays = baselines[branch - 1]
    for k in range(len(path.rows)):
        first, last = index.state_start[k] * index.num_actions, index.state_start[k + 1] * index.num_actions
        if not first <= path.rows[k] < last:
            return False
        sound &= plays[path.rows[k]] > 0.0 and 0.0 <= path.losses[k] <= 1.0
        for i in range(path.costs.shape[1]):
            sound &= 0.0 <= path.costs[k, i] <= 1.0  # not so for NaN
    if not sound or find_path(index, path.rows, path.triples) >= 0:
        return False
    return not is_impossible(core.rule.premises, path.rows, path.triples, path.costs)


@kernel
def bound_visited(core: Core, rows: IntArray) -> None:
    """u of the plan in some rows, at most L, ascending: of the learner's policy, mixed with the baselines if any."""
    _bound_own(core, rows)
    if len(core.baseline.policies) > 0:
        bound_mixture(core, rows)


@kernel
def bound_plan(core: Core, u: FloatArray) -> None:
    """u of the present plan in all rows, as `learn` would compute it: L of them at a time, which it has room for."""
    steps = len(core.buffers.trace.u)
    for first in range(0, len(u), steps):
        rows = core.buffers.all_rows[first : first + steps]
        bound_visited(core, rows)
        for k in range(len(rows)):
            u[rows[k]] = core.buffers.trace.u[k]


@kernel
def _bound_own(core: Core, rows: IntArray) -> None:
    """u and q_hat of the visited pairs under the learner's policy, whose boxes are in `columns`."""
    trace = core.buffers.trace
    for k in range(len(rows)):
        trace.visited[k] = rows[k] // core.index.num_actions
    reach_of_states(core.index, core.buffers.columns, trace.visited, len(rows), trace.reach)
    for k in range(len(rows)):
        trace.u[k] = core.state.policy[rows[k]] * trace.reach[k]
        trace.q_hat[k] = exp(core.state.log_weight[rows[k]])


@kernel
def _update_boxes(core: Core, rows: IntArray) -> int:
    """Bring the visited rows up to date, or with epochs all rows as soon as one of them has twice its visits.

    Where rows share laws, returns how many rows are in `touched`: those visited, or changed with them.
    """
    counts, boxes, changed, tied = core.state.counts, core.state.boxes, core.sets.scratch.changed, core.sets.rule.tied
    if not core.rule.epochs:
        changed = changed[: update_sets(core.sets, rows)]
        copy_optimistic(core, changed)
        update_columns(core.index, boxes.lower, boxes.upper, changed, core.buffers.columns)
        update_columns(core.index, boxes.lower, boxes.upper, changed, core.buffers.baseline_columns)
        return _touched(core, rows, changed) if tied else 0
    doubled = False
    for k in range(len(rows)):
        place = core.sets.rule.box.laws.moves_at[rows[k]]
        doubled |= counts.num_visits[place] >= max(1, 2 * core.state.epoch_visits[place])
    if doubled:
        for r in range(len(counts.num_visits)):
            core.state.epoch_visits[r] = counts.num_visits[r]
        core.state.numbers.epochs += 1
        core.state.numbers.moved = 1
        refresh_sets(core.sets)
        copy_optimistic(core, core.buffers.all_rows)
        core.buffers.columns.kept[0] = core.buffers.baseline_columns.kept[0] = 0
    return _touched(core, rows, changed[:0]) if tied else 0


@kernel
def _touched(core: Core, rows: IntArray, changed: IntArray) -> int:
    """Write the rows of both lists, each once, into `touched`; how many they are."""
    touched, marked, count = core.buffers.touched, core.sets.rule.box.laws.counted, 0
    for some in (rows, changed):
        for r in some:
            if marked[r] == 0:
                marked[r] = 1
                touched[count] = r
                count += 1
    for k in range(count):
        marked[touched[k]] = 0
    return count


@kernel
def copy_optimistic(core: Core, rows: IntArray) -> None:
    """Copy LCB of the constraints that bind into the costs of the projection."""
    binding = core.baseline.binding
    for r in rows:
        for i in range(len(binding)):
            core.buffers.problem.costs[r, i] = core.state.boxes.cost_lower[r, binding[i]]


@shared_kernel(SOLVED)
def project_weights(core: Core, rows: IntArray) -> int:
    """Replace the weights, changed in `rows` since the last time, by their projection, and read off the policy.

    Unless the code is SOLVED, weights and policy stay.
    """
    index, problem, newton = core.index, core.buffers.problem, core.buffers.newton
    theta, costs = core.state.multipliers, core.buffers.costs
    # The base is the last projection with L rows changed, so the multipliers are increments: it starts at 0.
    raised = core.state.reals.slack > 0.0
    outcome = maximise_from_base(
        index, problem, rows, core.buffers.v, theta, newton, core.rule.tol,
        RELAXED_THETA if raised else SUSPECT_THETA, RELAXED_ITERATIONS if raised else SUSPECT_ITERATIONS,
    )  # fmt: skip
    core.state.numbers.iterations += outcome.iterations
    core.state.numbers.last_iterations = outcome.iterations
    if outcome.code == SOLVED:
        recover(index, problem, newton, core.state.policy, core.state.log_weight, costs)
        residual = 0.0
        for i in range(len(costs)):
            residual = max(residual, costs[i] - problem.thresholds[i])
        core.state.reals.cost_residual = residual
        copy_floored(newton.p, SMALLEST_CONDITIONAL, core.state.conditional)  # 10^-261 changes no sum of a row
        core.state.numbers.moved = 0
    return outcome.code


@kernel
def copy_floored(source: FloatArray, floor: float, target: FloatArray) -> None:
    for j in range(len(source)):
        target[j] = max(source[j], floor)


@kernel
def settle(core: Core, status: int) -> None:
    """Complete an episode whose projection is in the state: compute bounds and mixing weight of the next one."""
    boxes = core.state.boxes
    load_columns(core.index, boxes.lower, boxes.upper, core.state.policy, core.buffers.columns)
    _conclude(core, status)


@kernel
def _conclude(core: Core, status: int) -> None:
    """`settle`, where the columns hold the policy already."""
    copy_floored(core.state.log_weight, LOG_FLOOR, core.state.log_weight)
    core.state.numbers.last_status = status
    core.state.numbers.open = 0
    if status == RELAXED:
        core.state.numbers.infeasible += 1
    if len(core.baseline.policies) > 0:
        bound_policy(core.sets, core.buffers.columns, core.state.policy, core.state.bounds)
        set_mixture(core, status)


@shared_kernel(SOLVED)
def project_all(core: Core, status: int) -> int:
    """Project the weights of all rows, and settle if that worked."""
    code = project_weights(core, core.buffers.all_rows)
    if code == SOLVED:
        settle(core, status)
    return code


@kernel
def begin(core: Core, episodes: float, log_inverse_delta: float) -> int:
    """Set the rates for so many episodes, uniform weights and the first policy; returns how PROJ ended.

    With full support the uniform weights are a flow already, and without data the projection returns them unchanged.
    """
    set_rates(core, episodes, log_inverse_delta)
    uniform_weights(core)
    prepare(core)
    return project_all(core, PROJECTED)


@kernel
def prepare(core: Core) -> None:
    """Rebuild all that follows from the state, after a start and after a file was read."""
    boxes = core.state.boxes
    set_thresholds(core, core.state.reals.slack)
    copy_optimistic(core, core.buffers.all_rows)
    count_bounds(core.index.row_start, core.state.bound, core.buffers.newton.num_bound)
    load_columns(core.index, boxes.lower, boxes.upper, core.state.policy, core.buffers.columns)
    if len(core.baseline.policies) > 0:
        bound_by_boxes(core.sets, core.buffers.columns, core.state.policy, core.state.bounds)


@kernel
def start_segment(core: Core) -> None:
    """Start the next segment of the doubling horizon: T_j = 2^j, delta_j = delta / ((j+1)(j+2)), uniform weights.

    Adaptive rates only become smaller, and nothing is forgotten.
    """
    numbers = core.state.numbers
    numbers.segment += 1
    j = numbers.segment
    length = 2.0**j
    numbers.segment_end = numbers.episode + 2**j
    log_inverse_delta = core.rule.log_inverse_delta + log((j + 1.0) * (j + 2.0))
    if core.rule.rates.gain > 0.0:
        lower_rates(core, length, log_inverse_delta)
    else:
        set_rates(core, length, log_inverse_delta)
        uniform_weights(core)


@kernel
def uniform_weights(core: Core) -> None:
    """Equal weights for all triples of a layer, of sum 1; with full support the paper's q_hat_1, a valid flow."""
    index, state = core.index, core.state
    state.numbers.moved = 1
    for k in range(len(index.state_start) - 2):
        first, last = index.state_start[k] * index.num_actions, index.state_start[k + 1] * index.num_actions
        num_triples = index.row_start[last] - index.row_start[first]
        for r in range(first, last):
            own = index.row_start[r + 1] - index.row_start[r]
            state.log_weight[r] = log(own / num_triples)
            state.conditional[index.row_start[r] : index.row_start[r + 1]] = 1.0 / own
