"""Watch the proofs of the mirror-descent family during a run, against the truth that only a simulation knows.

Whether the truth is in the confidence sets that the learner uses, which is the clean event (`learners/watch.py`):

    transitions   lo <= P <= hi in all triples of a row
    costs         LCB <= g <= UCB of a row and all constraints
    balls         KL(P_hat || P) <= radius in the rows that have a ball
    sums          sum_r N(r) y(r) <= SX + rad in all generations of the aggregate certificate, y = g + P . V

A set is checked when it is rebuilt, for every row that uses it: where rows share a law, visits of one row may change
the sets of others. Further, whether u >= q on the visited pairs, whether a projection failed although the event was
clean, and the two sides of the mirror-descent inequality

    sum_t l_hat_t^T (q_hat_t - q) <= L ln(|X|^2|A|)/eta + eta sum_t q_hat_t^T l_hat_t^2,

whose right-hand side adds up over restarts; and the sharper one of docs/rates.md, for rates that may fall. All learners
share the scores themselves (`environments/scores.py`).
"""

from __future__ import annotations

from math import exp, inf, log, log1p, sqrt

import numpy as np

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.bundles import Bundle, Record
from hedgerow.compiling.kernels import copy_into, kernel
from hedgerow.confidence.aggregate import aggregate_radius, log_term_of, mean_value
from hedgerow.confidence.bounds import reach_of_states
from hedgerow.environments.play import WorldArrays
from hedgerow.environments.scores import Curves, Scores, forward
from hedgerow.learners.kernels import occupancy_of_baseline
from hedgerow.learners.ops.account import radius_of
from hedgerow.learners.ops.mixing import baseline_share, cost_bounds
from hedgerow.learners.ops.pool import reason_of
from hedgerow.learners.ops.rates import MIXED_EVERY
from hedgerow.learners.ops.state import PROJECTED, RELAXED, Core
from hedgerow.learners.watch import (
    BALL,
    TOL_CLEAN,
    CleanEvent,
    check_costs,
    check_moves,
    is_clean,
    keep_event,
    watch_event,
)
from hedgerow.model.layout import Layout

TOL_BUDGET = 1e-9
"""Rounding of sums over a run"""


class WatchedSets(Bundle):
    """Which sets were checked last, and what follows of the sums; kernels modify it."""

    looked: IntArray
    """(num_rows, 2): the visits behind the box, and behind the bounds of costs, that were last checked; -1: none"""
    sums: FloatArray
    """(slots, m): sum_r N(r) y(r) of the generations of the aggregate certificate; empty where there is none"""
    sums_outside: IntArray
    """(slots, m)"""
    generation: IntArray
    """(slots,): whose sums these are; -1: none"""
    episodes: IntArray
    """(slots,): how many episodes are in them"""


def make_watched_sets(core: Core) -> WatchedSets:
    """Nothing checked yet."""
    rows, (slots, m) = len(core.state.policy), core.state.aggregate.sums.shape
    return WatchedSets(
        looked=np.full((rows, 2), -1, dtype=np.int64),
        sums=np.zeros((slots, m)),
        sums_outside=np.zeros((slots, m), dtype=np.int64),
        generation=np.full(slots, -1, dtype=np.int64),
        episodes=np.zeros(slots, dtype=np.int64),
    )


@kernel
def check_sets(core: Core, world: WorldArrays, rows: IntArray, event: CleanEvent, sets: WatchedSets) -> None:
    """Check the boxes, bounds and balls that may have changed with the counts of some rows."""
    laws, boxes, gradual = core.sets.rule.box.laws, core.state.boxes, core.sets.rule.box.gradual
    for row in rows:
        place = laws.moves_at[row]
        if not gradual or sets.looked[place, 0] != boxes.visits[place]:
            sets.looked[place, 0] = boxes.visits[place]
            for j in range(laws.moves_start[place], laws.moves_start[place + 1]):
                check_moves(core.index, world, boxes, laws.same_moves[j], event)
                _check_ball(core, world, laws.same_moves[j], event)
        place = laws.costs_at[row]
        if not gradual or sets.looked[place, 1] != boxes.cost_visits[place]:
            sets.looked[place, 1] = boxes.cost_visits[place]
            for j in range(laws.costs_start[place], laws.costs_start[place + 1]):
                check_costs(world, boxes, laws.same_costs[j], event)
                _check_ball(core, world, laws.same_costs[j], event)  # it follows the counts with either of the two


@kernel
def _check_ball(core: Core, world: WorldArrays, row: int, event: CleanEvent) -> None:
    balls, row_start = core.state.balls, core.index.row_start
    if len(balls.radius) > 0 and core.sets.rule.ball.wide[row] and balls.visits[row] > 0:
        divergence = 0.0
        for j in range(row_start[row], row_start[row + 1]):
            if balls.moves[j] > 0:
                share, p = balls.moves[j] / balls.visits[row], world.transitions[j]
                divergence += share * log(share / p) if p > 0.0 else inf
        outside = 1 if divergence > balls.radius[row] + TOL_CLEAN else 0
        event.tallies.balls += outside - event.outside[row, BALL]
        event.outside[row, BALL] = outside


@kernel
def check_sums(core: Core, world: WorldArrays, rows: IntArray, event: CleanEvent, sets: WatchedSets) -> None:
    """Check the aggregate certificate after an episode that visited these rows (L,)."""
    for slot in range(len(sets.generation)):
        _check_generation(core, world, rows, slot, event, sets)


@kernel
def _check_generation(
    core: Core, world: WorldArrays, rows: IntArray, slot: int, event: CleanEvent, sets: WatchedSets
) -> None:
    """Check the inequality of one generation; an episode adds its L rows to both sides."""
    aggregate, rule = core.state.aggregate, core.sets.rule.aggregate
    generation, episodes = aggregate.generation[slot], aggregate.episodes[slot]
    same = generation == sets.generation[slot]
    if generation < 0 or (same and episodes == sets.episodes[slot]):
        return
    one_more = same and episodes == sets.episodes[slot] + 1
    sets.generation[slot], sets.episodes[slot] = generation, episodes
    for i in rule.watched:
        values, total = aggregate.values[slot, i], sets.sums[slot, i] if one_more else 0.0
        if one_more:
            for r in rows:
                total += world.mean_costs[r, i] + mean_value(core.index, r, world.transitions, values)
        else:
            for r in range(aggregate.visits.shape[1]):
                if aggregate.visits[slot, r] > 0:
                    mean = world.mean_costs[r, i] + mean_value(core.index, r, world.transitions, values)
                    total += aggregate.visits[slot, r] * mean
        sets.sums[slot, i] = total
        excess, squares, scale = total - aggregate.sums[slot, i], aggregate.squares[slot, i], aggregate.ranges[slot, i]
        log_term, outside = log_term_of(rule.log_inverse_delta, len(rule.watched), generation), 0
        # psi(l) >= l^2/2, hence rad >= R sqrt(2 log VV): nearly always that settles it.
        if excess > scale * sqrt(2.0 * log_term * squares):
            outside = 1 if excess > aggregate_radius(log_term, squares, scale) else 0
        event.tallies.sums += outside - sets.sums_outside[slot, i]
        sets.sums_outside[slot, i] = outside


class WatchSums(Record):
    """Real numbers that a watch keeps."""

    mirror_linear: float
    """sum_t q_hat_t^T l_hat_t"""
    mirror_restarts: float
    """Sum over restarts of the last 1/eta before the next one"""
    mirror_square: float
    """sum_t eta q_hat_t^T l_hat_t^2"""
    mirror_gap: float
    """sum_t M_t of `rates.py`"""
    mirror_shared: float
    """sum of L ln(1/(1-s)) / eta over the mixtures with uniform weights"""
    least_excess: float
    """min of u - q_t on the visited pairs, and in an audit on all pairs under the learner's policy"""
    now_eta: float
    """Its learning rate"""
    now_residual: float
    """Residual of the projection that ended it"""
    first_mixing: float
    """lambda_0"""
    mixing_over: float
    """max of lambda - lambda_0 after feasible projections"""
    mixing_slack: float
    """min of (bound of Theorem regrethard's lemma) - lambda, in an audit"""
    reserve: float
    """min over episodes t and constraints i of alpha_i t - sum of the expected costs so far"""
    now_share: float
    """The probability of the pool of C-OPS in the present episode"""
    now_reason: float
    """Which set allowed it, by its number; -1 while it is not played"""


class WatchTallies(Record):
    """Whole numbers that it keeps."""

    refuted_feasibility: int
    """Projections without a solution although the event was clean"""
    seen_epochs: int
    seen_segment: int
    false_baseline: int
    """1 if the baseline costs more than it was said to: then safety was not promised"""
    overdrawn: int
    """Episodes after which the summed expected costs were above the budget, of learners with an account"""
    account_breaches: int
    """Own episodes after which these sums were above what the account proves"""
    refuted_budget: int
    """1 if the budget was exceeded although it was promised and nothing it rests on had failed"""


class ProjectionCounters(Record):
    """What became of the projections, kept at checkpoints."""

    status: int
    """How the one that ended the present episode went: 0 solved, 1 relaxed, 2 unsolved"""
    infeasible: int
    """Projections without a solution"""
    suspect: int
    """Projections that needed the slow solver"""
    iterations: int
    """Newton steps"""


class Watch(Bundle):
    """What was seen so far, and what is kept at the C checkpoints; kernels modify it."""

    event: CleanEvent
    sums: WatchSums
    tallies: WatchTallies
    counters: ProjectionCounters
    bounds: FloatArray
    """(m,): the learner's upper bounds of its costs, computed for checkpoints"""
    estimates: FloatArray
    """(num_rows,): sum_t l_hat_t"""
    own_costs: FloatArray
    """(m,): the summed expected costs of the own episodes in the account"""
    baseline: FloatArray
    """(num_rows,): q of the baseline; empty without one"""
    own: FloatArray
    """(num_rows,): q of the learner's policy in an audit; else empty"""
    upper_reach: FloatArray
    """(num_states,): largest reach probabilities in an audit; else empty"""
    sets: WatchedSets
    """What the event rests on"""
    mark_sums: FloatArray
    """(C, fields of `sums`)"""
    mark_bounds: FloatArray
    """(C, m)"""
    mark_overdrawn: IntArray
    """(C,)"""
    mark_counters: IntArray
    """(C, fields of `counters`)"""


def make_watch(layout: Layout, event: CleanEvent, core: Core, world: WorldArrays, *, audit: bool = False) -> Watch:
    """Nothing seen yet. An audit also watches, in every episode, the bounds that concern all pairs."""
    m, rows, num_marks = len(core.baseline.costs), layout.num_rows, len(event.mark_sums)
    watch = Watch(
        event=event,
        sums=WatchSums(),
        tallies=WatchTallies(),
        counters=ProjectionCounters(),
        bounds=np.zeros(m),
        estimates=np.zeros(rows),
        own_costs=np.zeros(m),
        baseline=np.zeros(0),
        own=np.zeros(rows if audit else 0),
        upper_reach=np.zeros(layout.num_states if audit else 0),
        sets=make_watched_sets(core),
        mark_sums=np.zeros((num_marks, len(WatchSums.fields))),
        mark_bounds=np.zeros((num_marks, m)),
        mark_overdrawn=np.zeros(num_marks, dtype=np.int64),
        mark_counters=np.zeros((num_marks, len(ProjectionCounters.fields)), dtype=np.int64),
    )
    watch.sums.least_excess = watch.sums.mixing_slack = watch.sums.reserve = np.inf
    watch.sums.mixing_over = -np.inf
    return follow_core(watch, core, world)


def follow_core(watch: Watch, core: Core, world: WorldArrays) -> Watch:
    """Go on with a learner that has (re)started: its baseline, its learning rate, its confidence sets."""
    tallies, baseline = watch.tallies, core.baseline
    tallies.seen_epochs = core.state.numbers.epochs
    tallies.seen_segment = core.state.numbers.segment
    watch.sums.now_eta = core.state.reals.eta
    watch.sums.mirror_restarts += 1.0 / core.state.reals.eta
    watch = watch.replace(baseline=occupancy_of_baseline(core.index, world, baseline), sets=make_watched_sets(core))
    watch.event.tallies.values[:], watch.event.outside[:] = 0, 0  # those of an earlier phase
    check_sets(core, world, core.buffers.all_rows, watch.event, watch.sets)
    check_sums(core, world, core.buffers.all_rows, watch.event, watch.sets)
    if not len(baseline.policies):
        return watch
    most, alpha, beta = baseline.ceilings, baseline.thresholds, baseline.costs
    weights = [(most[i] - alpha[i]) / (most[i] - beta[i]) for i in baseline.binding]
    watch.sums.first_mixing = max(weights, default=0.0)
    # A learner may be told the exact costs of its baseline; rounding may lift the true costs above these.
    tallies.false_baseline = int(np.any((world.mean_costs.T @ watch.baseline - beta)[baseline.binding] > TOL_CLEAN))
    return watch


@kernel
def watch_plan(core: Core, world: WorldArrays, scores: Scores, curves: Curves, watch: Watch) -> None:
    """Check the episode that is about to be played, after its scores have been added."""
    sums, lam = watch.sums, core.state.reals.mixing
    if len(watch.own) > 0:
        forward(core.index, world.transitions, core.state.policy, watch.upper_reach, watch.own)
        _audit(core, is_clean(watch.event.tallies), watch)
    mixes = len(watch.baseline) > 0 and not core.rule.account.active
    if mixes and core.state.numbers.last_status == PROJECTED and core.state.stay.now == 0.0:
        sums.mixing_over = max(sums.mixing_over, lam - sums.first_mixing)
    promised = mixes and watch.tallies.false_baseline == 0
    watch_event(core.state.numbers.branch, baseline_share(core), promised, scores, watch.event)
    if core.rule.account.active:
        _watch_budget(core, world, scores, watch)
    sums.now_share, sums.now_reason = core.pool.reals.share, reason_of(core.pool)
    mark = scores.tallies.next_mark
    if mark < len(curves.marks) and scores.tallies.played == curves.marks[mark]:
        cost_bounds(core, watch.bounds)


@kernel
def _watch_budget(core: Core, world: WorldArrays, scores: Scores, watch: Watch) -> None:
    """Compare the summed expected costs, the episode that is about to be played included, with the budget."""
    tallies, reserve = watch.tallies, inf
    for i in core.baseline.binding:
        reserve = min(reserve, scores.tallies.played * world.thresholds[i] - scores.costs[i])
    watch.sums.reserve = min(watch.sums.reserve, reserve)
    if reserve < -TOL_BUDGET:
        tallies.overdrawn += 1
        sure = tallies.account_breaches == 0 and tallies.false_baseline == 0
        if sure and (watch.event.counters.unclean == 0 or not core.rule.account.by_bound):
            tallies.refuted_budget = 1


@kernel
def _check_account(core: Core, world: WorldArrays, scores: Scores, watch: Watch) -> None:
    """Compare the expected costs of the own episodes with what the account proves, after it has entered one more."""
    account, baseline, within = core.state.account, core.baseline, True
    for j in range(len(baseline.binding)):
        i = baseline.binding[j]
        watch.own_costs[i] += scores.excess[i] + world.thresholds[i]
        proved = account.seen[j] + radius_of(core.rule.account, account, baseline, j)
        within &= watch.own_costs[i] <= proved + TOL_BUDGET
    if not within:
        watch.tallies.account_breaches += 1


@kernel
def _audit(core: Core, clean: bool, watch: Watch) -> None:
    """u_hat >= q^{P,pi_hat} on all pairs (T4), and the bound of the mixing weight (T9); `own` holds the latter.

    lambda <= max_i (|u_hat - q^{P,pi_hat}|_1 + |q^{P,pi_hat} - q_hat|_1 + 2 xi^T u_hat) / (alpha_i - beta_i)
    """
    state, reach, sums = core.state, watch.upper_reach, watch.sums
    columns = core.buffers.columns
    reach_of_states(core.index, columns, columns.states, len(reach) - 1, reach)
    width = 0.0
    for r in range(len(state.policy)):
        u, q = state.policy[r] * reach[r // core.index.num_actions], watch.own[r]
        if watch.event.tallies.transitions == 0:
            sums.least_excess = min(sums.least_excess, u - q)
        width += abs(u - q) + abs(q - exp(state.log_weight[r])) + 2.0 * state.boxes.xi[r] * u
    mixes = len(watch.baseline) > 0 and not core.rule.account.active and state.stay.now == 0.0
    if not clean or not mixes or state.numbers.last_status != PROJECTED:
        return
    baseline, largest = core.baseline, 0.0
    for i in baseline.binding:
        margin = baseline.thresholds[i] - baseline.costs[i]
        largest = max(largest, width / margin if margin > 0.0 else inf)
    sums.mixing_slack = min(sums.mixing_slack, largest - state.reals.mixing)


@kernel
def watch_learning(core: Core, world: WorldArrays, rows: IntArray, scores: Scores, watch: Watch) -> None:
    """Add what was learnt from the visited rows (n,); the projection may still be open."""
    trace, sums, tallies, numbers = core.buffers.trace, watch.sums, watch.tallies, core.state.numbers
    # u comes from the boxes before this episode, and so does the tally; cached bounds from still earlier ones.
    bounded = watch.event.tallies.transitions == 0 and not core.rule.realised
    bounded &= len(core.state.baseline_u) == 0 or watch.event.counters.unclean == 0
    eta = sums.now_eta
    for k in range(len(rows)):
        q_hat, estimate = trace.q_hat[k], trace.estimate[k]
        sums.mirror_linear += q_hat * estimate
        sums.mirror_square += eta * q_hat * estimate * estimate
        sums.mirror_gap += q_hat * estimate + log(1.0 - q_hat + q_hat * exp(-eta * estimate)) / eta
        watch.estimates[rows[k]] += estimate
        if bounded:
            sums.least_excess = min(sums.least_excess, trace.u[k] - scores.occupancy[rows[k]])
    _watch_rates(core, watch)
    if core.rule.account.active and numbers.branch == 0 and core.buffers.marks.skipped == 0:
        _check_account(core, world, scores, watch)
    check_sums(core, world, rows, watch.event, watch.sets)
    if not core.rule.epochs:
        check_sets(core, world, rows, watch.event, watch.sets)
    elif numbers.epochs != tallies.seen_epochs:
        tallies.seen_epochs = numbers.epochs
        check_sets(core, world, core.buffers.all_rows, watch.event, watch.sets)


@kernel
def _watch_rates(core: Core, watch: Watch) -> None:
    """Follow eta from episode to episode: restarts, rates that fall, mixtures with uniform weights."""
    rule, sums, tallies, numbers = core.rule.rates, watch.sums, watch.tallies, core.state.numbers
    before, after = sums.now_eta, core.state.reals.eta
    if rule.share > 0.0 and numbers.episode % MIXED_EVERY == 0:
        sums.mirror_shared -= len(core.buffers.trace.u) * log1p(-rule.share) / before
    restarts = numbers.segment != tallies.seen_segment and rule.gain == 0.0
    if restarts:  # mirror descent begins anew, with its own entropy term
        sums.mirror_restarts += 1.0 / after
    elif after != before:
        sums.mirror_restarts += 1.0 / after - 1.0 / before
    tallies.seen_segment, sums.now_eta = numbers.segment, after


@kernel
def watch_close(core: Core, mark: int, watch: Watch) -> None:
    """Note broken promises after the projection, and keep the numbers if the episode is the checkpoint `mark` >= 0."""
    counters, numbers, now = watch.counters, core.state.numbers, watch.event.tallies
    if numbers.last_status == RELAXED and now.transitions == 0 and now.costs == 0:
        watch.tallies.refuted_feasibility += 1
    keep_event(mark, watch.event)
    if mark >= 0:
        watch.sums.now_residual = core.state.reals.cost_residual
        counters.status, counters.infeasible = numbers.last_status, numbers.infeasible
        counters.suspect, counters.iterations = numbers.suspect, numbers.iterations
        copy_into(watch.sums.values, watch.mark_sums[mark])
        copy_into(watch.bounds, watch.mark_bounds[mark])
        watch.mark_overdrawn[mark] = watch.tallies.overdrawn
        copy_into(counters.values, watch.mark_counters[mark])
