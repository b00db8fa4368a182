"""Watching the proofs of the mirror-descent family while it runs, against the truth that only a simulation knows:

whether the confidence sets hold the truth (the clean event), whether u >= q on the visited pairs, whether a projection
failed although the event was clean, and the two sides of the mirror-descent inequality

    sum_t l_hat_t^T (q_hat_t - q) <= L ln(|X|^2|A|)/eta + eta sum_t q_hat_t^T l_hat_t^2,

whose right-hand side adds up over restarts. The scores themselves are everybody's (`environments/scores.py`).
"""

from __future__ import annotations

from math import exp, inf

import numpy as np

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.bundles import Bundle
from hedgerow.compiling.kernels import copy_into, kernel
from hedgerow.environments.play import KernelWorld
from hedgerow.environments.scores import Curves, Scores, forward
from hedgerow.estimates.boxes import Boxes
from hedgerow.estimates.upper_occupancy import reach_of_states
from hedgerow.learners.mirror.core import MIXTURE, Core
from hedgerow.learners.mirror.mixing import cost_bounds
from hedgerow.learners.mirror.state import PROJECTED, RELAXED
from hedgerow.model.index import Index
from hedgerow.model.layout import Layout

TOL_CLEAN = 1e-12

# Places in `sums`.
MIXED = 0  # sum_t lambda
MIRROR_LINEAR = 1  # sum_t q_hat_t^T l_hat_t
MIRROR_RESTARTS = 2  # sum over restarts of 1/eta
MIRROR_SQUARE = 3  # sum_t eta q_hat_t^T l_hat_t^2
LEAST_EXCESS = 4  # min of u - q_t on the visited pairs, and in an audit on all pairs under the learner's own policy
NOW_MIXING = 5  # lambda of the present episode
NOW_ETA = 6  # its learning rate
NOW_RESIDUAL = 7  # of the projection that ended it
FIRST_MIXING = 8  # lambda_0
MIXING_OVER = 9  # max of lambda - lambda_0 after feasible projections
MIXING_SLACK = 10  # min of (bound of Theorem regrethard's lemma) - lambda, in an audit
NUM_SUMS = 11
# Places in `tallies`.
OUTSIDE_P, OUTSIDE_G = 0, 1  # rows whose truth is outside its confidence set at present
UNCLEAN = 2  # episodes that began so
REFUTED_FEASIBILITY = 3  # projections without a solution although the event was clean
REFUTED_SAFETY = 4  # episodes with a baseline whose mixture violated a constraint although the event was clean
SEEN_EPOCHS = 5
SEEN_SEGMENT = 6
FALSE_BASELINE = 7  # 1 if the baseline costs more than it was said to: then safety was not promised
NOW_BRANCH, NOW_CLEAN = 8, 9  # of the present episode
NUM_TALLIES = 10
# Columns of the counters at checkpoints.
INFEASIBLE_SO_FAR, SUSPECT_SO_FAR, ITERATIONS_SO_FAR, UNCLEAN_SO_FAR = 0, 1, 2, 3
BRANCH_NOW, CLEAN_NOW, STATUS_NOW = 4, 5, 6
NUM_COUNTERS = 7


class Watch(Bundle):
    """What was seen so far, and what of it is kept at the C checkpoints; kernels modify it."""

    sums: FloatArray
    """(NUM_SUMS,)"""
    tallies: IntArray
    """(NUM_TALLIES,)"""
    bounds: FloatArray
    """(m,): the learner's upper bounds of its costs, computed for checkpoints"""
    estimates: FloatArray
    """(num_rows,): sum_t l_hat_t"""
    baseline: FloatArray
    """(num_rows,): q of the baseline; empty without one"""
    own: FloatArray
    """(num_rows,): q of the learner's own policy in an audit; else empty"""
    upper_reach: FloatArray
    """(num_states,): largest reach probabilities in an audit; else empty"""
    outside: IntArray
    """(num_rows, 2): whether the transitions, and the costs, of a row are outside their confidence sets"""
    mark_sums: FloatArray
    """(C, NUM_SUMS)"""
    mark_bounds: FloatArray
    """(C, m)"""
    mark_counters: IntArray
    """(C, NUM_COUNTERS)"""


def make_watch(
    layout: Layout, num_constraints: int, num_marks: int, core: Core, world: KernelWorld, *, audit: bool = False
) -> Watch:
    """Nothing seen yet. An audit also watches, in every episode, the bounds that concern all pairs."""
    m, rows = num_constraints, layout.num_rows
    watch = Watch(
        sums=np.zeros(NUM_SUMS),
        tallies=np.zeros(NUM_TALLIES, dtype=np.int64),
        bounds=np.zeros(m),
        estimates=np.zeros(rows),
        baseline=np.zeros(0),
        own=np.zeros(rows if audit else 0),
        upper_reach=np.zeros(layout.num_states if audit else 0),
        outside=np.zeros((rows, 2), dtype=np.int64),
        mark_sums=np.zeros((num_marks, NUM_SUMS)),
        mark_bounds=np.zeros((num_marks, m)),
        mark_counters=np.zeros((num_marks, NUM_COUNTERS), dtype=np.int64),
    )
    watch.sums[LEAST_EXCESS] = watch.sums[MIXING_SLACK] = np.inf
    watch.sums[MIXING_OVER] = -np.inf
    return follow_core(watch, core, world)


def follow_core(watch: Watch, core: Core, world: KernelWorld) -> Watch:
    """Go on with a learner that has (re)started: its baseline, its learning rate, its confidence sets."""
    tallies, baseline = watch.tallies, core.baseline
    tallies[SEEN_EPOCHS] = core.state.numbers.epochs
    tallies[SEEN_SEGMENT] = core.state.numbers.segment
    watch.sums[NOW_ETA] = core.state.reals.eta
    watch.sums[MIRROR_RESTARTS] += 1.0 / core.state.reals.eta
    watch_rows(core.index, core.state.boxes, world, core.buffers.all_rows, tallies, watch.outside)
    if not len(baseline.policies):
        return watch.replace(baseline=np.zeros(0))
    mixture, occupancy = np.zeros(len(watch.outside)), np.zeros(len(watch.outside))
    reach = np.zeros(len(core.buffers.reach))
    for policy in baseline.policies:
        forward(core.index, world.transitions, policy, reach, occupancy)
        mixture += occupancy / len(baseline.policies)
    steps, alpha, beta = len(core.buffers.trace.u), baseline.thresholds, baseline.costs
    weights = [(steps - alpha[i]) / (steps - beta[i]) for i in baseline.binding]
    watch.sums[FIRST_MIXING] = max(weights, default=0.0)
    # The true costs of a baseline that is told exactly may exceed what was told by rounding.
    tallies[FALSE_BASELINE] = int(np.any((world.mean_costs.T @ mixture - beta)[baseline.binding] > TOL_CLEAN))
    return watch.replace(baseline=mixture)


@kernel
def occupy(core: Core, world: KernelWorld, scores: Scores, watch: Watch) -> None:
    """q_t of the mixture of the episode that is about to be played, into `scores.occupancy`."""
    q, lam = scores.occupancy, core.state.reals.mixing
    forward(core.index, world.transitions, core.state.policy, scores.reach, q)
    if len(watch.baseline) > 0:
        for r in range(len(q)):
            q[r] = lam * watch.baseline[r] + (1.0 - lam) * q[r]


@kernel
def watch_plan(core: Core, world: KernelWorld, scores: Scores, curves: Curves, watch: Watch) -> None:
    """Look at the episode that is about to be played, after its scores have been added."""
    sums, tallies, lam = watch.sums, watch.tallies, core.state.reals.mixing
    clean = tallies[OUTSIDE_P] == 0 and tallies[OUTSIDE_G] == 0
    if len(watch.own) > 0:
        forward(core.index, world.transitions, core.state.policy, watch.upper_reach, watch.own)
        _audit(core, clean, watch)
    if len(watch.baseline) > 0:
        sums[MIXED] += lam
        if core.state.numbers.last_status == PROJECTED:
            sums[MIXING_OVER] = max(sums[MIXING_OVER], lam - sums[FIRST_MIXING])
    unsafe = False
    for i in range(len(scores.excess)):
        unsafe |= scores.excess[i] > 0.0
    sums[NOW_MIXING] = lam
    tallies[NOW_BRANCH] = core.state.numbers.branch
    tallies[NOW_CLEAN] = 1 if clean else 0
    if not clean:
        tallies[UNCLEAN] += 1
    elif unsafe and len(watch.baseline) > 0 and tallies[FALSE_BASELINE] == 0:
        tallies[REFUTED_SAFETY] += 1
    mark = scores.tallies.next_mark
    if mark < len(curves.marks) and scores.tallies.played == curves.marks[mark]:
        cost_bounds(core, watch.bounds)


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
        if watch.tallies[OUTSIDE_P] == 0:
            sums[LEAST_EXCESS] = min(sums[LEAST_EXCESS], u - q)
        width += abs(u - q) + abs(q - exp(state.log_weight[r])) + 2.0 * state.boxes.xi[r] * u
    if not clean or len(watch.baseline) == 0 or state.numbers.last_status != PROJECTED:
        return
    baseline, largest = core.baseline, 0.0
    for i in baseline.binding:
        margin = baseline.thresholds[i] - baseline.costs[i]
        largest = max(largest, width / margin if margin > 0.0 else inf)
    sums[MIXING_SLACK] = min(sums[MIXING_SLACK], largest - state.reals.mixing)


@kernel
def watch_learning(core: Core, world: KernelWorld, rows: IntArray, scores: Scores, watch: Watch) -> None:
    """Add what was learnt from the visited rows (n,); the projection may still be open."""
    trace, sums, tallies, numbers = core.buffers.trace, watch.sums, watch.tallies, core.state.numbers
    # u comes from the boxes before this episode, and so does the tally; cached bounds from still earlier ones.
    bounded = tallies[OUTSIDE_P] == 0 and core.rule.mixture_bound == MIXTURE
    bounded &= len(core.state.baseline_u) == 0 or tallies[UNCLEAN] == 0
    for k in range(len(rows)):
        q_hat, estimate = trace.q_hat[k], trace.estimate[k]
        sums[MIRROR_LINEAR] += q_hat * estimate
        sums[MIRROR_SQUARE] += sums[NOW_ETA] * q_hat * estimate * estimate
        watch.estimates[rows[k]] += estimate
        if bounded:
            sums[LEAST_EXCESS] = min(sums[LEAST_EXCESS], trace.u[k] - scores.occupancy[rows[k]])
    if numbers.segment != tallies[SEEN_SEGMENT]:
        # A restart: mirror descent begins anew, with its own entropy term.
        tallies[SEEN_SEGMENT] = numbers.segment
        sums[NOW_ETA] = core.state.reals.eta
        sums[MIRROR_RESTARTS] += 1.0 / core.state.reals.eta
    if not core.rule.epochs:
        watch_rows(core.index, core.state.boxes, world, rows, tallies, watch.outside)
    elif numbers.epochs != tallies[SEEN_EPOCHS]:
        tallies[SEEN_EPOCHS] = numbers.epochs
        watch_rows(core.index, core.state.boxes, world, core.buffers.all_rows, tallies, watch.outside)


@kernel
def watch_rows(
    index: Index, boxes: Boxes, world: KernelWorld, rows: IntArray, tallies: IntArray, outside: IntArray
) -> None:
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


@kernel
def watch_close(core: Core, mark: int, watch: Watch) -> None:
    """After the projection: note a broken promise, and what to keep if the episode is the checkpoint `mark` >= 0."""
    tallies, numbers = watch.tallies, core.state.numbers
    if numbers.last_status == RELAXED and tallies[OUTSIDE_P] == 0 and tallies[OUTSIDE_G] == 0:
        tallies[REFUTED_FEASIBILITY] += 1
    if mark >= 0:
        watch.sums[NOW_RESIDUAL] = core.state.reals.cost_residual
        copy_into(watch.sums, watch.mark_sums[mark])
        copy_into(watch.bounds, watch.mark_bounds[mark])
        counters = watch.mark_counters[mark]
        counters[INFEASIBLE_SO_FAR], counters[SUSPECT_SO_FAR] = numbers.infeasible, numbers.suspect
        counters[ITERATIONS_SO_FAR], counters[UNCLEAN_SO_FAR] = numbers.iterations, tallies[UNCLEAN]
        counters[BRANCH_NOW], counters[CLEAN_NOW] = tallies[NOW_BRANCH], tallies[NOW_CLEAN]
        counters[STATUS_NOW] = numbers.last_status
