"""Notes: numbers that the proofs use and a plain simulation does not keep, noted by compiled code in every episode.

With q = q^{P,pi_hat_t} of the learner's policy, q_hat_t its iterate, xi the cost radii, lambda the mixing weight:

    sum |q - q_hat|_1     sum (1 - lambda) |q - q_hat|_1     2 sum xi^T q_hat     sum of the residuals of PROJ
    sum (l_hat_t - (q_t / u_t) l_t)(x,a)                     per pair, u_t on all pairs           (on request)
    sum a_t^T (l_hat_t - (q_t / u_t) l_t)                    for weights a_t(x,a) in [0, 2 gamma] (on request)
    sum (l_t - l_hat_t)^T q_hat_t and its conditional mean   the bias of the estimator            (on request)
    the evidence against the coin: how much likelier the played branches are if the odds of the baseline are other ones
    the regrets of the two players in the first phase of CV-OPS
    episodes that began with a mean cost, a transition row, or the sums of the aggregate certificate outside their sets

A run without notes pays nothing: the loop is compiled once with notes and once without. Notes become columns and facts
of a run; numbers that do not exist in it, such as the margin that a learner without a search has found, are NaN.
"""

from __future__ import annotations

from math import exp, inf, log, nan, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.bundles import Bundle, Record
from hedgerow.compiling.kernels import copy_into, kernel
from hedgerow.confidence.bounds import load_columns, reach_of_states
from hedgerow.confidence.sets import failure_budget
from hedgerow.environments.play import WorldArrays
from hedgerow.environments.scores import Scores, forward
from hedgerow.learners.ops.guarantees import primal_constant
from hedgerow.learners.ops.mixing import baseline_share, is_baseline
from hedgerow.learners.ops.search import regret_constant
from hedgerow.learners.ops.state import Core
from hedgerow.learners.ops.watch import Watch
from hedgerow.model.layout import Layout
from hedgerow.model.occupancy import backward_induction

if TYPE_CHECKING:
    from hedgerow.learners.ops.loop import MirrorWatcher


ODDS = (-2.0, -1.0, -0.5, -0.25, -0.125, -0.0625, 0.0625, 0.125, 0.25, 0.5, 1.0, 2.0)
"""Logarithms h of the factors by which a wrong coin may change the odds of the baseline"""


class NoteSums(Record):
    """Real numbers that notes keep."""

    width: float
    """sum_t |q - q_hat|_1"""
    weighted: float
    """sum_t (1 - lambda) |q - q_hat|_1"""
    radii: float
    """2 sum_t xi^T q_hat"""
    residuals: float
    """sum_t of the cost residuals of PROJ"""
    primal: float
    """sum_t (sum_i phi_i g_i)^T q_t while CV-OPS searches"""
    dual: float
    """sum_t phi^T loss of its dual player"""
    dual_ratio: float
    """max_t of (regret of the dual player) / sqrt(t)"""
    upper: float
    """sum_t (1 - lambda) |u_hat - q|_1, if the estimator is watched"""
    upper_bound: float
    """The bound of `upper` by the widths of the boxes, likewise"""
    weighted_all: float
    """sum_t a_t^T (l_hat_t - (q_t / u_t) l_t), a_t = 2 gamma on all pairs, likewise"""
    weighted_iterate: float
    """The same for a_t = 2 gamma q_hat_t"""
    weighted_chosen: float
    """The same for a_t = 2 gamma on the pairs whose sum so far is positive, 0 on the others"""
    bias: float
    """sum_t (l_t - E l_hat_t)^T q_hat_t, likewise"""
    bias_seen: float
    """sum_t (l_t - l_hat_t)^T q_hat_t, likewise"""
    exploring: float
    """sum_t gamma times the number of pairs, likewise"""
    now_gamma: float
    """gamma of the present episode: after it the rates may be those of a new segment"""


class NoteTallies(Record):
    """Episodes that began with the truth outside its confidence set; and those that the baseline played."""

    cost_breaches: int
    """A mean cost"""
    transition_breaches: int
    """A transition row"""
    ball_breaches: int
    """A transition row, by its ball"""
    aggregate_breaches: int
    """The sums of the aggregate certificate"""
    baseline_played: int
    """Episodes in which the coin fell on a baseline"""


class Notes(Bundle):
    """Running sums; kernels modify them."""

    sums: NoteSums
    tallies: NoteTallies
    own: FloatArray
    """(num_rows,): q of the learner's policy in the present episode"""
    reach: FloatArray
    """(num_states,)"""
    own_reach: FloatArray
    """(num_states,): its largest reach probabilities"""
    baseline_reach: FloatArray
    """(num_states,): those of the baseline"""
    optimism: FloatArray
    """(num_rows,): sum_t (l_hat_t - (q_t / u_t) l_t); empty unless the estimator is watched"""
    chosen: FloatArray
    """(num_rows,): 1 where that was positive before the present episode, else 0; likewise"""
    beyond: FloatArray
    """(num_rows,): the number of decision states in the layers after that of the row"""
    coin: FloatArray
    """(ODDS,): sum_t h B - ln(1 - lambda + lambda e^h), where B = 1 if the coin fell on a baseline, else 0"""
    primal: FloatArray
    """(num_rows,): sum_t sum_i phi_i g_i"""
    dual: FloatArray
    """(m,): sum_t of the losses of the dual player, for the constraints that bind"""
    mark_sums: FloatArray
    """(C, fields of `sums`): at the checkpoints"""
    mark_primal: FloatArray
    """(C, num_rows)"""


def make_notes(layout: Layout, num_constraints: int, num_marks: int, *, estimator: bool) -> Notes:
    """Nothing seen yet."""
    rows, states = layout.num_rows, layout.num_states
    return Notes(
        sums=NoteSums(),
        tallies=NoteTallies(),
        own=np.zeros(rows),
        reach=np.zeros(states),
        own_reach=np.zeros(states),
        baseline_reach=np.zeros(states),
        optimism=np.zeros(rows if estimator else 0),
        chosen=np.zeros(rows if estimator else 0),
        beyond=_states_beyond(layout),
        coin=np.zeros(len(ODDS)),
        primal=np.zeros(rows),
        dual=np.zeros(num_constraints),
        mark_sums=np.zeros((num_marks, len(NoteSums.fields))),
        mark_primal=np.zeros((num_marks, rows)),
    )


def _states_beyond(layout: Layout) -> FloatArray:
    layer = layout.layer_of_state[np.arange(layout.num_rows) // layout.num_actions]
    return (layout.num_states - 1 - layout.state_start[layer + 1]).astype(np.float64)


@kernel
def note_plan(core: Core, world: WorldArrays, watch: Watch, notes: Notes) -> None:
    """Note, before an episode, widths under the present confidence sets, and whether these hold the truth."""
    state, sums, own = core.state, notes.sums, notes.own
    forward(core.index, world.transitions, state.policy, notes.reach, own)
    width = radii = 0.0
    for r in range(len(own)):
        q_hat = exp(state.log_weight[r])
        width += abs(own[r] - q_hat)
        radii += 2.0 * state.boxes.xi[r] * q_hat
    lam = state.reals.mixing if len(core.baseline.policies) > 0 else 0.0
    sums.width += width
    sums.weighted += (1.0 - lam) * width
    sums.radii += radii
    breaches, now = notes.tallies, watch.event.tallies
    breaches.cost_breaches += 1 if now.costs > 0 else 0
    breaches.transition_breaches += 1 if now.transitions > 0 else 0
    breaches.ball_breaches += 1 if now.balls > 0 else 0
    breaches.aggregate_breaches += 1 if now.sums > 0 else 0
    if len(core.baseline.policies) > 0:
        _note_coin(baseline_share(core), is_baseline(core), notes)
    if core.search.active:
        phi, binding = state.search.weights, core.search.binding
        for r in range(len(own)):
            mixed = 0.0
            for i in range(len(binding)):
                mixed += phi[i] * world.mean_costs[r, binding[i]]
            notes.primal[r] += mixed
            sums.primal += mixed * own[r]


@kernel
def _note_coin(lam: float, baseline: bool, notes: Notes) -> None:
    """Multiply the likelihood ratios of a coin with other odds, e^h times those of lambda: martingales of mean 1."""
    notes.tallies.baseline_played += 1 if baseline else 0
    for j in range(len(ODDS)):
        notes.coin[j] += (ODDS[j] if baseline else 0.0) - log(1.0 - lam + lam * exp(ODDS[j]))


@kernel
def note_estimator(core: Core, world: WorldArrays, loss: FloatArray, scores: Scores, notes: Notes) -> None:
    """Subtract (q_t / u_t) l_t on all pairs; `scores.occupancy` holds q_t, u_t is computed here, not read."""
    state, policies, lam, sums = core.state, core.baseline.policies, 0.0, notes.sums
    gamma = sums.now_gamma = state.reals.gamma
    # Buffers that hold nothing between episodes: notes must not touch what the learner reads.
    spare, num_states = core.buffers.baseline_columns, len(notes.reach)
    load_columns(core.index, state.boxes.lower, state.boxes.upper, state.policy, spare)
    reach_of_states(core.index, spare, spare.states, num_states - 1, notes.own_reach)
    if len(policies) > 0:
        lam = state.reals.mixing
        load_columns(core.index, state.boxes.lower, state.boxes.upper, policies[0], spare)
        reach_of_states(core.index, spare, spare.states, num_states - 1, notes.baseline_reach)
    for r in range(len(notes.own)):
        x = r // core.index.num_actions
        u_hat = state.policy[r] * notes.own_reach[x]
        sums.upper += (1.0 - lam) * abs(u_hat - notes.own[r])
        sums.upper_bound += (1.0 - lam) * notes.own[r] * notes.beyond[r] * _width(core, world, r)
        u = (1.0 - lam) * u_hat
        if lam > 0.0:
            u += lam * policies[0, r] * notes.baseline_reach[x]
        q, q_hat = scores.occupancy[r], exp(state.log_weight[r])
        notes.chosen[r] = 1.0 if notes.optimism[r] > 0.0 else 0.0
        if u > 0.0:
            expected = q / u * loss[r]
            notes.optimism[r] -= expected
            sums.weighted_all -= 2.0 * gamma * expected
            sums.weighted_iterate -= 2.0 * gamma * q_hat * expected
            sums.weighted_chosen -= 2.0 * gamma * notes.chosen[r] * expected
        sums.bias += q_hat * loss[r] * (1.0 - q / (u + gamma))
        sums.bias_seen += q_hat * loss[r]
        sums.exploring += gamma


@kernel
def _width(core: Core, world: WorldArrays, row: int) -> float:
    """How far P(row) may be from any transitions in its box, sum_y max(hi - P, P - lo)."""
    boxes, row_start, total = core.state.boxes, core.index.row_start, 0.0
    for j in range(row_start[row], row_start[row + 1]):
        p = world.transitions[j]
        total += max(boxes.upper[j] - p, p - boxes.lower[j])
    return total


@kernel
def note_episode(core: Core, costs: FloatArray, notes: Notes) -> None:
    """Note the losses of the dual player of the search, after an episode and before it is learnt."""
    if not core.search.active:
        return
    rule, phi, sums, best = core.search, core.state.search.weights, notes.sums, np.inf
    for i in range(len(rule.binding)):
        c = 0.0
        for k in range(len(costs)):
            c += costs[k, rule.binding[i]]
        notes.dual[i] += rule.thresholds[i] - c
        sums.dual += phi[i] * (rule.thresholds[i] - c)
        best = min(best, notes.dual[i])
    played = core.state.numbers.episode + 1
    sums.dual_ratio = max(sums.dual_ratio, (sums.dual - best) / sqrt(played))


@kernel
def note_learning(core: Core, rows: IntArray, notes: Notes) -> None:
    """Add l_hat_t."""
    trace, sums, gamma = core.buffers.trace, notes.sums, notes.sums.now_gamma
    for k in range(len(rows)):
        estimate = trace.estimate[k]
        notes.optimism[rows[k]] += estimate
        sums.weighted_all += 2.0 * gamma * estimate
        sums.weighted_iterate += 2.0 * gamma * trace.q_hat[k] * estimate
        sums.weighted_chosen += 2.0 * gamma * notes.chosen[rows[k]] * estimate
        sums.bias_seen -= trace.q_hat[k] * estimate


@kernel
def note_close(core: Core, mark: int, notes: Notes) -> None:
    """Note the residual of the projection, and keep the sums if this was the checkpoint `mark` >= 0."""
    notes.sums.residuals += max(0.0, core.state.reals.cost_residual)
    if mark >= 0:
        copy_into(notes.sums.values, notes.mark_sums[mark])
        copy_into(notes.primal, notes.mark_primal[mark])


COLUMNS = {
    "width": "width",  # sum |q - q_hat|_1 of the learner's policy and its iterate
    "weighted_width": "weighted",  # sum (1 - lambda) |q - q_hat|_1
    "weighted_upper": "upper",  # sum (1 - lambda) |u_hat - q|_1; NaN unless the estimator is watched
    "radii": "radii",  # 2 sum xi^T q_hat
    "residuals": "residuals",  # sum of the cost residuals of the projections
}


def proof_columns(notes: Notes, reached: int) -> dict[str, NDArray[Any]]:
    """Sums so far at the first `reached` checkpoints (reached,)."""
    columns = {name: notes.mark_sums[:reached, NoteSums.place(field)] for name, field in COLUMNS.items()}
    return columns if len(notes.optimism) else {**columns, "weighted_upper": np.full(reached, nan)}


def proof_facts(watcher: MirrorWatcher, notes: Notes, comparator: FloatArray) -> dict[str, float | int | None]:
    """The facts of the run, one number each; `comparator` is q* (num_rows,).

    steps, log_argument          L, and ln(|X||A|m/delta): what stands in the logarithms of the bounds beside ln T
    ..._breaches                 episodes that began with a mean cost, a transition row, a row by its ball, the sums of
                                 the aggregate certificate outside their sets
    ..._share                    the probability that this may ever happen, as a multiple of delta; 0 where it cannot
    honest_baseline              1 if there is a baseline that costs no more than it was said to
    first_mixing                 lambda_0
    coin_0, coin_1, ...          log-likelihood ratios of the played branches for coins with other odds (`ODDS`)
    optimism, optimism_bound     max over pairs of sum (l_hat - (q/u) l), and ln(|X||A|/delta) / (2 gamma)
    weighted_optimism_...        sum a^T (l_hat - (q/u) l) for three kinds of weights a_t in [0, 2 gamma]
    weighted_optimism_bound      L ln(L/delta)
    upper_bound                  the bound of sum (1 - lambda) |u_hat - q|_1 by the widths of the boxes
    bias, bias_bound             sum (l - E l_hat)^T q_hat; sum |u - q|_1 + gamma times the pairs, for SV-OPS
    bias_seen, bias_seen_bound   sum (l - l_hat)^T q_hat; and L sqrt(T ln(1/delta) / 2) more
    searched, margin             whether the learner searches; the exact margin of the mixture that it found
    ..._at_stop                  V, unsafe episodes and R when the search ended
    primal_ratio, primal_bound   max of (regret of the primal player) / sqrt(t ln t); C_P of the theory
    dual_ratio, dual_bound       max of (regret of the dual player) / sqrt(t); C_D
    """
    learner, watch, layout, stop = watcher.learner, watcher.watch, watcher.learner.layout, watcher.at_stop
    pairs, searched = layout.num_states * layout.num_actions, hasattr(learner, "rho_hat")
    binding = len(learner.view.binding)
    unknowns, _, _, shares = failure_budget(learner.view, learner.settings.choice, mixes=learner.mixes)
    return {
        "steps": layout.steps,
        "log_argument": log(pairs * max(1, learner.view.num_constraints)) - log(learner.delta),
        **{name: getattr(notes.tallies, name) for name in NoteTallies.fields},
        "cost_share": shares.costs,
        "transition_share": shares.transitions if unknowns.num_triples else 0.0,
        "ball_share": shares.balls,
        "aggregate_share": shares.aggregate,
        "honest_baseline": int(len(watch.baseline) > 0 and not watch.tallies.false_baseline),
        "first_mixing": watch.sums.first_mixing,
        **{f"coin_{j}": float(notes.coin[j]) for j in range(len(ODDS))},
        "optimism": float(np.max(notes.optimism)) if len(notes.optimism) else nan,
        "optimism_bound": (log(pairs) - log(learner.delta)) / (2.0 * learner.gamma),
        **_estimator_facts(watcher, notes),
        "searched": int(searched),
        "margin": stop.margin if stop else nan,
        "violation_at_stop": stop.violation if stop else nan,
        "unsafe_at_stop": stop.unsafe if stop else nan,
        "regret_at_stop": stop.loss - float(stop.losses @ comparator) if stop else nan,
        "primal_ratio": _primal_ratio(watcher, notes) if searched else nan,
        "primal_bound": primal_constant(layout, learner.delta) if searched else nan,
        "dual_ratio": notes.sums.dual_ratio if searched else nan,
        "dual_bound": regret_constant(binding, float(layout.steps)) if searched else nan,
    }


def _estimator_facts(watcher: MirrorWatcher, notes: Notes) -> dict[str, float]:
    """Both sides of the inequalities about the loss estimator; NaN where it is not watched.

    Given the past, l_hat^T q_hat lies in [0, L], because q_hat <= u: its sum is within L sqrt(T ln(1/delta) / 2) of the
    sum of its conditional means, by Azuma's inequality.
    """
    sums, learner, L = notes.sums, watcher.learner, watcher.learner.layout.steps
    played, log_inverse_delta = watcher.stage.scores.tallies.played, -log(learner.delta)
    known = sums.upper + sums.exploring
    found = {
        "weighted_optimism_all": sums.weighted_all,
        "weighted_optimism_iterate": sums.weighted_iterate,
        "weighted_optimism_chosen": sums.weighted_chosen,
        "weighted_optimism_bound": L * (log(L) + log_inverse_delta),
        "upper_bound": sums.upper_bound,
        "bias": sums.bias,
        "bias_bound": known,
        "bias_seen": sums.bias_seen,
        "bias_seen_bound": known + L * sqrt(0.5 * played * log_inverse_delta),
    }
    return found if len(notes.optimism) else dict.fromkeys(found, nan)


def _primal_ratio(watcher: MirrorWatcher, notes: Notes) -> float:
    """The largest (regret of the primal player) / sqrt(t ln t) at the checkpoints t >= 2 of the search."""
    cmdp, last, largest = watcher.stage.cmdp, getattr(watcher.learner, "t_bar", None) or inf, -inf
    reached = watcher.stage.scores.tallies.next_mark
    for mark, t in enumerate(watcher.stage.curves.marks[:reached].tolist()):
        if 2 <= t <= last:
            best = backward_induction(cmdp.layout, cmdp.transitions, notes.mark_primal[mark]).value
            largest = max(largest, (float(notes.mark_sums[mark, NoteSums.place("primal")]) - best) / sqrt(t * log(t)))
    return largest
