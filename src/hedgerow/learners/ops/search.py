"""The first phase of CV-OPS, compiled: search for a strictly safe policy, and decide when it is found.

In episode t a primal player (UOB-REPS, `step.py`) chooses the policy and a dual player (online gradient descent) the
weights phi of the constraints. With c_{t,i} the summed costs of constraint i along the path, *all* L layers counted
(D2):

    loss of the primal player on a visited pair   sum_i phi_i g_{t,i}(x,a)            in [0, 1]            (D4)
    loss of the dual player                       alpha_i - c_{t,i}                   alpha once per episode (D3)
    margin m_t = min_i (alpha_i - (1/t) sum_{tau<=t} c_{tau,i})

The uniform mixture of the t policies has the margin m_t up to a radius that holds at all times and for all
constraints at once (D7), by Azuma's inequality and a union with the weights 1/(t(t+1)):

    R_t = L sqrt(ln(m t (t+1) / delta) / (2t))
    stop as soon as  m_t >= 2 R_t,      rho_hat = m_t - R_t > 0

The costs of an episode mostly vary much less than L. The radius of the aggregate certificate uses that
(`confidence/aggregate.py`, docs/aggregate.md, Lemma B, which lets the means vary): with B_i the most that an
episode costs and VV_i = sum (c_i - mean of the episodes before)^2 / B_i^2, and half of delta for either radius,

    R_t = min { L sqrt(ln(2m t (t+1) / delta) / (2t)),  max_i B_i min_l (ln(2 J m / delta) + psi(l) VV_i) / (l t) }

is used where `variance` is set. Safety needs R_t alone. A search that `waits` for the regret of both players stops at

    m_t >= 4 R_t + C_P sqrt(ln t / t) + C_D / sqrt(t)

and leaves a rho_hat of at least half of the largest margin (D8), after 10^6 to 10^11 episodes with the constants of
the theory: only the verification of that claim uses it.

An episode that is not whole counts with 1 in the place of each cost that was not observed on the policy's own path,
in sum at most B_i. That is at least what the policy costs, so the margin and rho_hat stay on the safe side, for the
mixture with this policy in it (docs/counting.md, Lemma B'). One that is left out for a declared reason is neither
in t nor in the mixture, as long as all policies are kept; after that it counts with 1 for each cost.

The first K policies are all kept. After that, the K places become K independent uniform draws from all policies so
far (each place takes the new policy with probability 1/t), and the radius grows by the error of an average over K
draws: L sqrt(ln(2m/delta) / (2K)).

The dual player is Zinkevich's online gradient descent on the simplex:

    phi_{t+1} = projection of phi_t - (c / sqrt(t)) loss_t onto { phi >= 0, sum phi = 1 },     phi_1 uniform

With |loss_t|_2 <= G and the diameter D = sqrt(2) of the simplex the regret after any number tau of rounds is at most
(D^2 / (2c) + G^2 c) sqrt(tau); c = D / (sqrt(2) G) makes that 2 G sqrt(tau): surely, and without a horizon. A loss has
m entries in [alpha_i - L, alpha_i], hence G = sqrt(m) L and C_D = 2 sqrt(m) L. For m = 1 the simplex is a point, and
C_D = 0.
"""

from __future__ import annotations

from math import inf, log, log1p, sqrt

import numpy as np

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.bundles import Bundle, Record
from hedgerow.compiling.kernels import copy_into, kernel
from hedgerow.confidence.aggregate import NUM_RATES, add_total, aggregate_radius
from hedgerow.model.layout import Layout
from hedgerow.model.random_streams import Stream, uniform

EARLIEST_STOP = 2  # one episode tells nothing about a mixture; ln 1 = 0


def step_constant(dimension: int, largest_entry: float) -> float:
    """c = D / (sqrt(2) G) for losses whose `dimension` entries are at most `largest_entry` in absolute value."""
    return 1.0 / (sqrt(dimension) * largest_entry)


def regret_constant(dimension: int, largest_entry: float) -> float:
    """C: the regret after tau rounds is at most C sqrt(tau), whatever the losses."""
    return 0.0 if dimension <= 1 else 2.0 * sqrt(dimension) * largest_entry


def first_point(dimension: int) -> FloatArray:
    """phi_1: uniform."""
    return np.full(dimension, 1.0 / dimension) if dimension else np.zeros(0)


@kernel
def descend(point: FloatArray, loss: FloatArray, round_number: int, constant: float) -> None:
    """One round, numbered from 1: move `point` in place."""
    step = constant / sqrt(round_number)
    for i in range(len(point)):
        point[i] -= step * loss[i]
    project_on_simplex(point)


@kernel
def project_on_simplex(point: FloatArray) -> None:
    """Replace `point` by the nearest point of the simplex: max(point - tau, 0) with the one tau that makes the sum 1.

    tau is the average excess of the entries that stay positive. Start with all of them and drop those below tau: each
    round drops at least one, and no dropped one would come back, because tau only grows. No sorting, no memory.
    """
    count = len(point)
    total = 0.0
    for i in range(count):
        total += point[i]
    tau = (total - 1.0) / max(1, count)
    while True:
        total, kept = 0.0, 0
        for i in range(len(point)):
            if point[i] > tau:
                total += point[i]
                kept += 1
        if kept == count or kept == 0:
            break
        count = kept
        tau = (total - 1.0) / kept
    for i in range(len(point)):
        point[i] = max(0.0, point[i] - tau)


class SearchState(Record):
    """What a search has found so far."""

    margin: float
    """m_t"""
    radius: float
    """R_t"""
    rho_hat: float
    """rho_hat once the search is over, else 0"""
    t_bar: float
    """The number of episodes whose policies it mixes, once it is over, else 0"""


class Broken(Record):
    """Episodes of a search that were not whole."""

    filled: int
    """Those with 1 in the place of costs that nobody observed"""
    skipped: int
    """Those that are not part of it, neither in t nor in the mixture"""


class Search(Bundle):
    """The state of a search; all arrays are empty, and all facts 0, for learners that do not search."""

    weights: FloatArray
    """phi, of the constraints that bind"""
    cost_sums: FloatArray
    """sum_tau c_{tau,i} of the constraints that bind"""
    squares: FloatArray
    """VV of these, kept where `variance` is set"""
    policies: FloatArray
    """(K, num_rows): the places for policies; the first min(t, K) are taken"""
    facts: SearchState
    broken: Broken


class SearchRule(Bundle):
    """The settings of a search, which do not change."""

    active: bool
    waits: bool
    """Whether it waits for the regret of both players, too"""
    primal_constant: float
    """C_P"""
    dual_constant: float
    """C_D"""
    dual_step: float
    """c of the dual player"""
    steps: float
    """L"""
    radius_scale: float
    """Multiplies R_t; below 1 nothing is promised any more"""
    variance: bool
    """Whether R_t uses how much costs vary"""
    log_inverse_delta: float
    """ln(1/delta)"""
    binding: IntArray
    """The constraints that bind"""
    thresholds: FloatArray
    """alpha of these"""
    ceilings: FloatArray
    """B of these"""
    dual_loss: FloatArray
    """A buffer for the dual player's loss"""
    draws: IntArray
    """(K,): a buffer"""


def make_search(layout: Layout, num_binding: int, capacity: int) -> Search:
    """Nothing seen; `capacity` is K."""
    return Search(
        weights=first_point(num_binding),
        cost_sums=np.zeros(num_binding),
        squares=np.zeros(num_binding),
        policies=np.zeros((capacity, layout.num_rows)),
        facts=SearchState(),
        broken=Broken(),
    )


def no_search() -> SearchRule:
    """An empty rule, for learners that do not search."""
    reals, numbers = np.zeros(0), np.zeros(0, dtype=np.int64)
    return SearchRule(
        False, False, 0.0, 0.0, 0.0, 1.0, 1.0, False, 0.0, numbers, reals, reals.copy(), reals.copy(), numbers.copy(),
    )  # fmt: skip


@kernel
def mix_costs(rule: SearchRule, search: Search, costs: FloatArray, mixed: FloatArray) -> None:
    """sum_i phi_i g_i of the pairs of a path, from their costs (L, m) into `mixed` (L,)."""
    for k in range(len(mixed)):
        total = 0.0
        for i in range(len(rule.binding)):
            total += search.weights[i] * costs[k, rule.binding[i]]
        mixed[k] = min(total, 1.0)  # the weights sum to 1 up to rounding


@kernel
def search_step(rule: SearchRule, search: Search, episode: int, costs: FloatArray) -> bool:
    """Add the costs (L, m) of the path of episode t = `episode` >= 1, move the weights; whether to stop here."""
    margin = inf
    for i in range(len(rule.binding)):
        c = 0.0
        for k in range(len(costs)):
            c += costs[k, rule.binding[i]]
        if rule.variance:
            add_total(c, episode - 1, rule.ceilings[i], search.cost_sums, search.squares, i)
        else:
            search.cost_sums[i] += c
        rule.dual_loss[i] = rule.thresholds[i] - c
        # D2, D3: all L layers, and alpha_i once per episode.
        margin = min(margin, rule.thresholds[i] - search.cost_sums[i] / episode)
    if len(search.weights) > 1:
        descend(search.weights, rule.dual_loss, episode, rule.dual_step)
    radius = stopping_radius(rule, search.squares, len(search.policies), episode)
    search.facts.margin = margin
    search.facts.radius = radius
    if episode < EARLIEST_STOP or not margin >= needed_margin(rule, radius, episode):
        return False
    # Lemma 4 (widehat_rho_leq), with a radius that holds at a stopping time (D7): rho_hat > 0, as margin >= 2 R_t.
    search.facts.rho_hat = margin - radius
    search.facts.t_bar = episode
    return True


@kernel
def stopping_radius(rule: SearchRule, squares: FloatArray, capacity: int, episode: int) -> float:
    """R_t, with the error of the K draws once not all policies are kept."""
    t, m = float(episode), max(1, len(rule.binding))
    share = log(2.0) if rule.variance else 0.0  # either radius gets half of delta
    radius = rule.steps * sqrt((log(m) + log(t) + log1p(t) + rule.log_inverse_delta + share) / (2.0 * t))
    if rule.variance:
        widest, log_term = 0.0, rule.log_inverse_delta + log(2.0 * m * NUM_RATES)
        for i in range(len(squares)):
            widest = max(widest, aggregate_radius(log_term, squares[i], rule.ceilings[i]) / t)
        radius = min(radius, widest)
    # Lemma 4 is about the mixture of all policies; a sample of them errs by Hoeffding's inequality on top.
    if episode > capacity:
        radius += rule.steps * sqrt((log(2.0 * m) + rule.log_inverse_delta) / (2.0 * capacity))
    return rule.radius_scale * radius


@kernel
def needed_margin(rule: SearchRule, radius: float, episode: int) -> float:
    """The margin at which the search ends."""
    if not rule.waits:
        return 2.0 * radius
    t = float(episode)
    primal, dual = rule.primal_constant * sqrt(log(t) / t), rule.dual_constant / sqrt(t)
    return 2.0 * radius + (primal + dual + 2.0 * radius)


@kernel
def keep_policy(rule: SearchRule, search: Search, policy: FloatArray, episode: int, coin: Stream) -> None:
    """Keep the policy (num_rows,) of episode t = `episode` >= 1, or let it take some of the places by chance."""
    policies, capacity = search.policies, len(search.policies)
    if episode <= capacity:
        copy_into(policy, policies[episode - 1])
        return
    if episode == capacity + 1:
        _redraw(policies, rule.draws, coin)
    # Places are taken independently with probability 1/t: jump from one to the next by a geometric number.
    scale = 1.0 / log1p(-1.0 / episode)
    place = _jump(scale, coin)
    while place < capacity:
        copy_into(policy, policies[int(place)])
        place += 1.0 + _jump(scale, coin)


@kernel
def _jump(scale: float, coin: Stream) -> float:
    """How many places stay as they are before the next one is taken."""
    return float(int(min(log1p(-uniform(coin)) * scale, 1e15)))


@kernel
def _redraw(policies: FloatArray, times: IntArray, coin: Stream) -> None:
    """Turn K places that hold K policies into K independent uniform draws from them. The order of the places does not
    matter, because all further chance treats them alike. `times` counts how often each was drawn.
    """
    capacity = len(policies)
    times[:] = 0
    for _ in range(capacity):
        times[min(int(uniform(coin) * capacity), capacity - 1)] += 1
    free = 0
    for j in range(capacity):
        while times[j] > 1:
            while times[free] > 0:
                free += 1
            copy_into(policies[j], policies[free])
            times[free] = 1
            times[j] -= 1
