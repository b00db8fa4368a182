"""Exact scoring: what a learner really risked in an episode, from the true P, the true mean costs and the mixture.

    q_t = lambda q^{P,baseline} + (1 - lambda) q^{P,pi_t}       (lambda = 0 without a baseline)
    sum_t l_t^T q_t        sum_t [ g_i^T q_t - alpha_i ]^+      never from sampled costs nor from the branch played

Beside the scores it watches the deterministic promises: whether the confidence sets hold the truth (the clean event),
whether u >= q on the visited pairs, whether a projection failed although the event was clean, and the two sides of the
mirror-descent inequality  sum_t l_hat_t^T (q_hat_t - q) <= L ln(|X|^2|A|)/eta + eta sum_t q_hat_t^T l_hat_t^2,
whose right-hand side adds up over restarts.
"""

from __future__ import annotations

from math import exp, inf
from typing import NamedTuple

import numpy as np

from hedgerow.arrays import copy_into
from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling import inlined_kernel, kernel
from hedgerow.estimates.boxes import Boxes
from hedgerow.estimates.upper_occupancy import reach_of_states
from hedgerow.learners.mirror.core import MIXTURE, Core
from hedgerow.learners.mirror.mixing import cost_bounds
from hedgerow.learners.mirror.state import (
    BRANCH,
    COST_RESIDUAL,
    EPISODE,
    EPOCHS,
    ETA,
    INFEASIBLE,
    ITERATIONS,
    LAST_STATUS,
    MIXING,
    PROJECTED,
    RELAXED,
    SEGMENT,
    SUSPECT,
)
from hedgerow.model.index import Index
from hedgerow.model.layout import Layout
from hedgerow.simulation.play import World

TOL_CLEAN = 1e-12

# Places in `sums`.
LOSS = 0  # sum_t l_t^T q_t
MIXED = 1  # sum_t lambda
MIRROR_LINEAR = 2  # sum_t q_hat_t^T l_hat_t
MIRROR_RESTARTS = 3  # sum over restarts of 1/eta
MIRROR_SQUARE = 4  # sum_t eta q_hat_t^T l_hat_t^2
LEAST_EXCESS = 5  # min of u - q_t on the visited pairs, and in an audit on all pairs under the learner's own policy
NOW_MIXING = 6  # lambda of the present episode
NOW_ETA = 7  # its learning rate
NOW_RESIDUAL = 8  # of the projection that ended it
FIRST_MIXING = 9  # lambda_0
MIXING_OVER = 10  # max of lambda - lambda_0 after feasible projections
MIXING_SLACK = 11  # min of (bound of Theorem regrethard's lemma) - lambda, in an audit
NUM_SUMS = 12
# Places in `tallies`.
NEXT_MARK = 0  # which checkpoint comes next
OUTSIDE_P, OUTSIDE_G = 1, 2  # rows whose truth is outside its confidence set at present
UNCLEAN = 3  # episodes that began so
REFUTED_FEASIBILITY = 4  # projections without a solution although the event was clean
REFUTED_SAFETY = 5  # episodes with a baseline whose mixture violated a constraint although the event was clean
SEEN_EPOCHS = 6
SEEN_SEGMENT = 7
FALSE_BASELINE = 8  # 1 if the baseline costs more than it was said to: then safety was not promised
NOW_BRANCH, NOW_CLEAN = 9, 10  # of the present episode
UNSAFE_SO_FAR = 11  # episodes whose mixture violated a constraint
NUM_TALLIES = 12
# Columns of the counters at checkpoints.
INFEASIBLE_SO_FAR, SUSPECT_SO_FAR, ITERATIONS_SO_FAR, UNCLEAN_SO_FAR = 0, 1, 2, 3
BRANCH_NOW, CLEAN_NOW, STATUS_NOW, UNSAFE_MARK = 4, 5, 6, 7
NUM_COUNTERS = 8


class Score(NamedTuple):
    """Running sums; kernels modify it."""

    sums: FloatArray
    """(NUM_SUMS,)"""
    tallies: IntArray
    """(NUM_TALLIES,)"""
    costs: FloatArray
    """(m,): sum_t g_i^T q_t"""
    violation: FloatArray
    """(m,): sum_t [g_i^T q_t - alpha_i]^+"""
    worst: FloatArray
    """(m,): max_t g_i^T q_t - alpha_i"""
    excess: FloatArray
    """(m,): g_i^T q_t - alpha_i of the present episode"""
    bounds: FloatArray
    """(m,): the learner's upper bounds of its costs, kept for checkpoints"""
    losses: FloatArray
    """(num_rows,): sum_t l_t"""
    estimates: FloatArray
    """(num_rows,): sum_t l_hat_t"""
    occupancy: FloatArray
    """(num_rows,): q_t of the present episode"""
    baseline: FloatArray
    """(num_rows,): q of the baseline; empty without one"""
    reach: FloatArray
    """(num_states,)"""
    upper_reach: FloatArray
    """(num_states,): largest reach probabilities in an audit; else empty"""
    outside: IntArray
    """(num_rows, 2): whether the transitions, and the costs, of a row are outside their confidence sets"""


class Curves(NamedTuple):
    """The sums at the checkpoints, C of them."""

    marks: IntArray
    """(C,): the numbers of episodes after which curves are kept, ascending"""
    sums: FloatArray
    """(C, NUM_SUMS)"""
    costs: FloatArray
    """(C, m)"""
    violation: FloatArray
    """(C, m)"""
    worst: FloatArray
    """(C, m)"""
    excess: FloatArray
    """(C, m)"""
    bounds: FloatArray
    """(C, m)"""
    losses: FloatArray
    """(C, num_rows)"""
    counters: IntArray
    """(C, NUM_COUNTERS)"""


def make_curves(layout: Layout, num_constraints: int, marks: IntArray) -> Curves:
    count, m = len(marks), num_constraints
    return Curves(
        marks=marks.astype(np.int64),
        sums=np.zeros((count, NUM_SUMS)),
        costs=np.zeros((count, m)),
        violation=np.zeros((count, m)),
        worst=np.zeros((count, m)),
        excess=np.zeros((count, m)),
        bounds=np.zeros((count, m)),
        losses=np.zeros((count, layout.num_rows)),
        counters=np.zeros((count, NUM_COUNTERS), dtype=np.int64),
    )


def make_score(layout: Layout, num_constraints: int, core: Core, world: World, *, audit: bool = False) -> Score:
    """Nothing seen yet. An audit also watches, in every episode, the bounds that concern all pairs."""
    m, rows = num_constraints, layout.num_rows
    score = Score(
        sums=np.zeros(NUM_SUMS),
        tallies=np.zeros(NUM_TALLIES, dtype=np.int64),
        costs=np.zeros(m),
        violation=np.zeros(m),
        worst=np.full(m, -np.inf),
        excess=np.zeros(m),
        bounds=np.zeros(m),
        losses=np.zeros(rows),
        estimates=np.zeros(rows),
        occupancy=np.zeros(rows),
        baseline=np.zeros(0),
        reach=np.zeros(layout.num_states),
        upper_reach=np.zeros(layout.num_states if audit else 0),
        outside=np.zeros((rows, 2), dtype=np.int64),
    )
    score.sums[LEAST_EXCESS] = score.sums[MIXING_SLACK] = np.inf
    score.sums[MIXING_OVER] = -np.inf
    return follow_core(score, core, world)


def follow_core(score: Score, core: Core, world: World) -> Score:
    """Go on with a learner that has (re)started: its baseline, its learning rate, its confidence sets."""
    tallies, baseline = score.tallies, core.baseline
    tallies[SEEN_EPOCHS] = core.state.numbers[EPOCHS]
    tallies[SEEN_SEGMENT] = core.state.numbers[SEGMENT]
    score.sums[NOW_ETA] = core.state.reals[ETA]
    score.sums[MIRROR_RESTARTS] += 1.0 / core.state.reals[ETA]
    watch_rows(core.index, core.state.boxes, world, core.buffers.all_rows, tallies, score.outside)
    if not len(baseline.policies):
        return score._replace(baseline=np.zeros(0))
    mixture = np.zeros(len(score.occupancy))
    for policy in baseline.policies:
        forward(core.index, world.transitions, policy, score.reach, score.occupancy)
        mixture += score.occupancy / len(baseline.policies)
    steps, alpha, beta = len(core.buffers.trace.u), baseline.thresholds, baseline.costs
    weights = [(steps - alpha[i]) / (steps - beta[i]) for i in baseline.binding]
    score.sums[FIRST_MIXING] = max(weights, default=0.0)
    # The true costs of a baseline that is told exactly may exceed what was told by rounding.
    tallies[FALSE_BASELINE] = int(np.any((world.mean_costs.T @ mixture - beta)[baseline.binding] > TOL_CLEAN))
    return score._replace(baseline=mixture)


@kernel
def forward(
    index: Index, transitions: FloatArray, policy: FloatArray, reach: FloatArray, occupancy: FloatArray
) -> None:
    """q^{P,pi}(x,a) (num_rows,) for the transitions (num_triples,), into `occupancy`; `reach` is overwritten."""
    num_actions, row_start, successor = index.num_actions, index.row_start, index.successor
    reach[:] = 0.0
    reach[0] = 1.0
    for x in range(len(reach) - 1):
        for r in range(x * num_actions, (x + 1) * num_actions):
            mass = reach[x] * policy[r]
            occupancy[r] = mass
            if mass > 0.0:
                for j in range(row_start[r], row_start[r + 1]):
                    reach[successor[j]] += mass * transitions[j]


@inlined_kernel
def score_plan(core: Core, world: World, loss: FloatArray, score: Score, curves: Curves) -> None:
    """Add the episode that is about to be played, with the loss (num_rows,)."""
    index, policy, lam = core.index, core.state.policy, core.state.reals[MIXING]
    forward(index, world.transitions, policy, score.reach, score.occupancy)
    q, sums, losses, tallies = score.occupancy, score.sums, score.losses, score.tallies
    clean = tallies[OUTSIDE_P] == 0 and tallies[OUTSIDE_G] == 0
    if len(score.upper_reach) > 0:
        _audit(core, clean, score)
    if len(score.baseline) > 0:
        sums[MIXED] += lam
        if core.state.numbers[LAST_STATUS] == PROJECTED:
            sums[MIXING_OVER] = max(sums[MIXING_OVER], lam - sums[FIRST_MIXING])
        for r in range(len(q)):
            q[r] = lam * score.baseline[r] + (1.0 - lam) * q[r]
    expected = 0.0
    for r in range(len(q)):
        expected += loss[r] * q[r]
        losses[r] += loss[r]
    sums[LOSS] += expected
    unsafe = False
    for i in range(len(score.costs)):
        cost = 0.0
        for r in range(len(q)):
            cost += world.mean_costs[r, i] * q[r]
        excess = cost - world.thresholds[i]
        score.excess[i] = excess
        score.costs[i] += cost
        score.violation[i] += max(excess, 0.0)
        score.worst[i] = max(score.worst[i], excess)
        unsafe |= excess > 0.0
    sums[NOW_MIXING] = lam
    tallies[NOW_BRANCH] = core.state.numbers[BRANCH]
    tallies[NOW_CLEAN] = 1 if clean else 0
    if unsafe:
        tallies[UNSAFE_SO_FAR] += 1
    if not clean:
        tallies[UNCLEAN] += 1
    elif unsafe and len(score.baseline) > 0 and tallies[FALSE_BASELINE] == 0:
        tallies[REFUTED_SAFETY] += 1
    mark = tallies[NEXT_MARK]
    if mark < len(curves.marks) and core.state.numbers[EPISODE] + 1 == curves.marks[mark]:
        cost_bounds(core, score.bounds)


@kernel
def _audit(core: Core, clean: bool, score: Score) -> None:
    """u_hat >= q^{P,pi_hat} on all pairs (T4), and the bound of the mixing weight (T9); `occupancy` holds the latter.

    lambda <= max_i (|u_hat - q^{P,pi_hat}|_1 + |q^{P,pi_hat} - q_hat|_1 + 2 xi^T u_hat) / (alpha_i - beta_i)
    """
    state, reach, sums = core.state, score.upper_reach, score.sums
    columns = core.buffers.columns
    reach_of_states(core.index, columns, columns.states, len(reach) - 1, reach)
    width = 0.0
    for r in range(len(state.policy)):
        u, q = state.policy[r] * reach[r // core.index.num_actions], score.occupancy[r]
        if score.tallies[OUTSIDE_P] == 0:
            sums[LEAST_EXCESS] = min(sums[LEAST_EXCESS], u - q)
        width += abs(u - q) + abs(q - exp(state.log_weight[r])) + 2.0 * state.boxes.xi[r] * u
    if not clean or len(score.baseline) == 0 or state.numbers[LAST_STATUS] != PROJECTED:
        return
    baseline, largest = core.baseline, 0.0
    for i in baseline.binding:
        margin = baseline.thresholds[i] - baseline.costs[i]
        largest = max(largest, width / margin if margin > 0.0 else inf)
    sums[MIXING_SLACK] = min(sums[MIXING_SLACK], largest - state.reals[MIXING])


@inlined_kernel
def score_learning(core: Core, world: World, rows: IntArray, score: Score) -> None:
    """Add what was learnt from the visited rows (L,); the projection may still be open."""
    trace, sums, tallies, numbers = core.buffers.trace, score.sums, score.tallies, core.state.numbers
    # u comes from the boxes before this episode, and so does the tally; cached bounds from still earlier ones.
    bounded = tallies[OUTSIDE_P] == 0 and core.rule.mixture_bound == MIXTURE
    bounded &= len(core.state.baseline_u) == 0 or tallies[UNCLEAN] == 0
    for k in range(len(rows)):
        q_hat, estimate = trace.q_hat[k], trace.estimate[k]
        sums[MIRROR_LINEAR] += q_hat * estimate
        sums[MIRROR_SQUARE] += sums[NOW_ETA] * q_hat * estimate * estimate
        score.estimates[rows[k]] += estimate
        if bounded:
            sums[LEAST_EXCESS] = min(sums[LEAST_EXCESS], trace.u[k] - score.occupancy[rows[k]])
    if numbers[SEGMENT] != tallies[SEEN_SEGMENT]:
        # A restart: mirror descent begins anew, with its own entropy term.
        tallies[SEEN_SEGMENT] = numbers[SEGMENT]
        sums[NOW_ETA] = core.state.reals[ETA]
        sums[MIRROR_RESTARTS] += 1.0 / core.state.reals[ETA]
    if not core.rule.epochs:
        watch_rows(core.index, core.state.boxes, world, rows, tallies, score.outside)
    elif numbers[EPOCHS] != tallies[SEEN_EPOCHS]:
        tallies[SEEN_EPOCHS] = numbers[EPOCHS]
        watch_rows(core.index, core.state.boxes, world, core.buffers.all_rows, tallies, score.outside)


@kernel
def watch_rows(index: Index, boxes: Boxes, world: World, rows: IntArray, tallies: IntArray, outside: IntArray) -> None:
    """Whether the truth of some rows is within their confidence sets now."""
    lower, upper, row_start = boxes.lower, boxes.upper, index.row_start
    cost_lower, cost_upper = boxes.cost_lower, boxes.cost_upper
    for r in rows:
        outside_p = outside_g = 0
        for j in range(row_start[r], row_start[r + 1]):
            p = world.transitions[j]
            if p < lower[j] - TOL_CLEAN or p > upper[j] + TOL_CLEAN:
                outside_p = 1
        for i in range(world.mean_costs.shape[1]):
            g = world.mean_costs[r, i]
            if g < cost_lower[r, i] - TOL_CLEAN or g > cost_upper[r, i] + TOL_CLEAN:
                outside_g = 1
        tallies[OUTSIDE_P] += outside_p - outside[r, 0]
        tallies[OUTSIDE_G] += outside_g - outside[r, 1]
        outside[r, 0] = outside_p
        outside[r, 1] = outside_g


@inlined_kernel
def close_episode(core: Core, score: Score, curves: Curves) -> None:
    """After the projection: note a broken promise, and the curves if this is a checkpoint."""
    tallies, numbers = score.tallies, core.state.numbers
    if numbers[LAST_STATUS] == RELAXED and tallies[OUTSIDE_P] == 0 and tallies[OUTSIDE_G] == 0:
        tallies[REFUTED_FEASIBILITY] += 1
    mark = tallies[NEXT_MARK]
    if mark < len(curves.marks) and numbers[EPISODE] == curves.marks[mark]:
        score.sums[NOW_RESIDUAL] = core.state.reals[COST_RESIDUAL]
        copy_into(score.sums, curves.sums[mark])
        copy_into(score.costs, curves.costs[mark])
        copy_into(score.violation, curves.violation[mark])
        copy_into(score.worst, curves.worst[mark])
        copy_into(score.excess, curves.excess[mark])
        copy_into(score.bounds, curves.bounds[mark])
        copy_into(score.losses, curves.losses[mark])
        counters = curves.counters[mark]
        counters[INFEASIBLE_SO_FAR], counters[SUSPECT_SO_FAR] = numbers[INFEASIBLE], numbers[SUSPECT]
        counters[ITERATIONS_SO_FAR], counters[UNCLEAN_SO_FAR] = numbers[ITERATIONS], tallies[UNCLEAN]
        counters[BRANCH_NOW], counters[CLEAN_NOW] = tallies[NOW_BRANCH], tallies[NOW_CLEAN]
        counters[STATUS_NOW], counters[UNSAFE_MARK] = numbers[LAST_STATUS], tallies[UNSAFE_SO_FAR]
        tallies[NEXT_MARK] += 1
