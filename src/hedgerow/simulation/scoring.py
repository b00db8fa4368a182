"""Exact scoring: what a learner really risked in an episode, from the true P, the true mean costs and the mixture.

    q_t = lambda q^{P,baseline} + (1 - lambda) q^{P,pi_t}       (lambda = 0 without a baseline)
    sum_t l_t^T q_t        sum_t [ g_i^T q_t - alpha_i ]^+      never from sampled costs nor from the branch played

Beside the scores it watches the deterministic promises: whether the confidence sets hold the truth (the clean event),
whether u >= q on the visited pairs, whether a projection failed although the event was clean, and the two sides of the
mirror-descent inequality  sum_t l_hat_t^T (q_hat_t - q) <= L ln(|X|^2|A|)/eta + eta sum_t q_hat_t^T l_hat_t^2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling import inlined_kernel, kernel
from hedgerow.estimates.boxes import Boxes
from hedgerow.learners.core import MIXTURE, Core
from hedgerow.learners.state import EPISODE, EPOCHS, INFEASIBLE, ITERATIONS, LAST_STATUS, RELAXED, SUSPECT
from hedgerow.model.index import Index
from hedgerow.model.layout import Layout
from hedgerow.simulation.play import World

TOL_CLEAN = 1e-12

# Places in `sums`.
LOSS, MIXED, MIRROR_LINEAR, MIRROR_SQUARE, LEAST_EXCESS = 0, 1, 2, 3, 4
NUM_SUMS = 5
# Places in `tallies`.
NEXT_MARK = 0  # which checkpoint comes next
OUTSIDE_P, OUTSIDE_G = 1, 2  # rows whose truth is outside its confidence set at present
UNCLEAN = 3  # episodes that began so
REFUTED_FEASIBILITY = 4  # projections without a solution although the event was clean
REFUTED_SAFETY = 5  # episodes whose mixture violated a constraint although the event was clean
SEEN_EPOCHS = 6
NUM_TALLIES = 7
# Columns of the counters at checkpoints.
INFEASIBLE_SO_FAR, SUSPECT_SO_FAR, ITERATIONS_SO_FAR, UNCLEAN_SO_FAR = 0, 1, 2, 3
NUM_COUNTERS = 4


class Score(NamedTuple):
    """Running sums; kernels modify it."""

    sums: FloatArray
    """(NUM_SUMS,): summed loss and mixing weight, the parts of the mirror-descent inequality, min of u - q"""
    tallies: IntArray
    """(NUM_TALLIES,)"""
    costs: FloatArray
    """(m,): sum_t g_i^T q_t"""
    violation: FloatArray
    """(m,): sum_t [g_i^T q_t - alpha_i]^+"""
    worst: FloatArray
    """(m,): max_t g_i^T q_t - alpha_i"""
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
        losses=np.zeros((count, layout.num_rows)),
        counters=np.zeros((count, NUM_COUNTERS), dtype=np.int64),
    )


def make_score(layout: Layout, num_constraints: int, core: Core, world: World) -> Score:
    """Nothing seen yet."""
    m, rows, policies = num_constraints, layout.num_rows, core.baseline.policies
    score = Score(
        sums=np.zeros(NUM_SUMS),
        tallies=np.zeros(NUM_TALLIES, dtype=np.int64),
        costs=np.zeros(m),
        violation=np.zeros(m),
        worst=np.full(m, -np.inf),
        losses=np.zeros(rows),
        estimates=np.zeros(rows),
        occupancy=np.zeros(rows),
        baseline=np.zeros(rows if len(policies) else 0),
        reach=np.zeros(layout.num_states),
        outside=np.zeros((rows, 2), dtype=np.int64),
    )
    score.sums[LEAST_EXCESS] = np.inf
    score.tallies[SEEN_EPOCHS] = core.state.numbers[EPOCHS]
    for policy in policies:
        forward(core.index, world.transitions, policy, score.reach, score.occupancy)
        score.baseline[:] += score.occupancy / len(policies)
    watch_rows(core.index, core.state.boxes, world, core.buffers.all_rows, score.tallies, score.outside)
    return score


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
def score_plan(index: Index, world: World, policy: FloatArray, lam: float, loss: FloatArray, score: Score) -> None:
    """Add the episode that is about to be played: the learner's policy, its mixing weight, the loss (num_rows,)."""
    forward(index, world.transitions, policy, score.reach, score.occupancy)
    q, sums, losses = score.occupancy, score.sums, score.losses
    if len(score.baseline) > 0:
        sums[MIXED] += lam
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
        score.costs[i] += cost
        score.violation[i] += max(excess, 0.0)
        score.worst[i] = max(score.worst[i], excess)
        unsafe |= excess > 0.0
    clean = score.tallies[OUTSIDE_P] == 0 and score.tallies[OUTSIDE_G] == 0
    if not clean:
        score.tallies[UNCLEAN] += 1
    elif unsafe:
        score.tallies[REFUTED_SAFETY] += 1


@inlined_kernel
def score_learning(core: Core, world: World, rows: IntArray, score: Score) -> None:
    """Add what was learnt from the visited rows (L,); the projection may still be open."""
    trace, sums, tallies = core.buffers.trace, score.sums, score.tallies
    bounded = tallies[OUTSIDE_P] == 0 and core.rule.mixture_bound == MIXTURE
    for k in range(len(rows)):
        q_hat, estimate = trace.q_hat[k], trace.estimate[k]
        sums[MIRROR_LINEAR] += q_hat * estimate
        sums[MIRROR_SQUARE] += q_hat * estimate * estimate
        score.estimates[rows[k]] += estimate
        if bounded:  # u comes from the boxes before this episode, and so does the tally
            sums[LEAST_EXCESS] = min(sums[LEAST_EXCESS], trace.u[k] - score.occupancy[rows[k]])
    if not core.rule.epochs:
        watch_rows(core.index, core.state.boxes, world, rows, tallies, score.outside)
    elif core.state.numbers[EPOCHS] != tallies[SEEN_EPOCHS]:
        tallies[SEEN_EPOCHS] = core.state.numbers[EPOCHS]
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
def close_episode(numbers: IntArray, score: Score, curves: Curves) -> None:
    """After the projection: note a broken promise, and the curves if this is a checkpoint."""
    tallies = score.tallies
    if numbers[LAST_STATUS] == RELAXED and tallies[OUTSIDE_P] == 0 and tallies[OUTSIDE_G] == 0:
        tallies[REFUTED_FEASIBILITY] += 1
    mark = tallies[NEXT_MARK]
    if mark < len(curves.marks) and numbers[EPISODE] == curves.marks[mark]:
        _copy(score.sums, curves.sums[mark])
        _copy(score.costs, curves.costs[mark])
        _copy(score.violation, curves.violation[mark])
        _copy(score.worst, curves.worst[mark])
        _copy(score.losses, curves.losses[mark])
        counters = curves.counters[mark]
        counters[INFEASIBLE_SO_FAR], counters[SUSPECT_SO_FAR] = numbers[INFEASIBLE], numbers[SUSPECT]
        counters[ITERATIONS_SO_FAR], counters[UNCLEAN_SO_FAR] = numbers[ITERATIONS], tallies[UNCLEAN]
        tallies[NEXT_MARK] += 1


@kernel
def _copy(source: FloatArray, target: FloatArray) -> None:
    for i in range(len(source)):
        target[i] = source[i]
