"""The rates of mirror descent: eta and gamma, rates that follow what was seen, and a share of the uniform weights.

The paper takes eta = gamma = sqrt(L ln(L|X||A|/delta) / (T|X||A|)). The switches `eta` and `gamma` multiply these, and
eta may also fall in the course of a run. Let u be the uniform weights, 1/n_k on the n_k triples of layer k, and let
q~ = q_hat e^(-eta l_hat), with every layer divided by its sum. One episode of mirror descent with any rates is

    q~  <-  (1 - s) q~ + s u                         in every 32nd episode, if there is a share
    q~  <-  q~^r u^(1-r),   r = eta_new / eta        if the rate falls from eta to eta_new
    q_hat_{t+1} = the projection of q~

The second line is what makes falling rates sound: without it the distance of q_hat to the comparator, which may be
arbitrarily large, would be multiplied by the growth of 1/eta; with it only that of u is, at most D_0 = sum_k ln n_k.
For every q that is in all sets (docs/rates.md)

    sum_t l_hat_t^T (q_hat_t - q)  <=  D_0 / eta_T + sum_t M_t + (number of mixtures) L ln(1/(1-s)) / eta_T,
    M_t = sum over the visited pairs of q_hat l_hat + ln(1 - q_hat (1 - e^(-eta l_hat))) / eta <= eta/2 q_hat l_hat^2.

With eta="adaptive" the rate follows these gaps, as in AdaHedge: from FIRST times the paper's rate on, it falls to
GAIN D_0 / sum M as soon as this is less than 1/STEP of it. Projections of a few changed rows are cheap, those of all
rows are not: hence the steps, of which there are few, and the mixtures in every 32nd episode only.
"""

from __future__ import annotations

from math import exp, expm1, log, log1p, sqrt

from hedgerow.checks import IntArray
from hedgerow.compiling.kernels import kernel
from hedgerow.learners.ops.state import Core, RateRule
from hedgerow.model.layout import Layout

FIRST, GAIN, STEP = 2.0, 0.15, 1.25
"""Of adaptive rates: the first one as a multiple of the paper's, and the two constants of the rule"""
MIXED_EVERY = 32
"""Episodes between two mixtures with the uniform weights"""


def make_rate_rule(layout: Layout, eta: float | str, gamma: float | str, share: float) -> RateRule:
    """The rule that the switches describe; "paper" is 1."""
    entropy = sum(log(layout.triples(k).stop - layout.triples(k).start) for k in range(layout.steps))
    first = FIRST if eta == "adaptive" else 1.0 if eta == "paper" else float(eta)
    return RateRule(
        eta=first,
        gamma=1.0 if gamma == "paper" else float(gamma),
        gain=GAIN if eta == "adaptive" else 0.0,
        share=-expm1(MIXED_EVERY * log1p(-share)),
        entropy=entropy,
    )


@kernel
def set_rates(core: Core, episodes: float, log_inverse_delta: float) -> None:
    """Multiples of sqrt(L ln(L|X||A|/delta) / (T|X||A|)), for T = `episodes`."""
    steps, pairs = len(core.buffers.trace.u), core.rule.pairs
    rate = sqrt(steps * (log(steps * pairs) + log_inverse_delta) / (episodes * pairs))
    core.state.reals.eta = core.rule.rates.eta * rate
    core.state.reals.gamma = core.rule.rates.gamma * rate


@kernel
def follow_rates(core: Core, rows: IntArray) -> None:
    """Lower eta if the gaps ask for it, and mix uniform weights in if it is time; the weights hold q~.

    `trace` holds l_hat and q_hat of the visited rows (n,).
    """
    rule, reals, pace, trace = core.rule.rates, core.state.reals, core.state.pace, core.buffers.trace
    for k in range(len(rows)):
        pace.gap += mirror_gap(trace.q_hat[k], trace.estimate[k], reals.eta)
    wanted = reals.eta
    if 0.0 < rule.gain * rule.entropy < pace.gap * reals.eta / STEP:
        wanted = rule.gain * rule.entropy / pace.gap
    mixes = rule.share > 0.0 and core.state.numbers.episode % MIXED_EVERY == 0
    if wanted < reals.eta or mixes:
        draw_to_uniform(core, wanted / reals.eta, rule.share if mixes else 0.0)
        reals.eta = wanted


@kernel
def mirror_gap(q_hat: float, estimate: float, eta: float) -> float:
    """q l + ln(1 - q (1 - e^(-eta l))) / eta of one pair, in [0, eta/2 q l^2]."""
    q = min(q_hat, 1.0)  # a projection is exact up to its tolerance
    return max(0.0, q * estimate + log1p(q * expm1(-eta * estimate)) / eta)


@kernel
def lower_rates(core: Core, episodes: float, log_inverse_delta: float) -> None:
    """Go on with the rates of a longer horizon, without forgetting the weights."""
    before = core.state.reals.eta
    set_rates(core, episodes, log_inverse_delta)
    core.state.reals.eta = min(before, core.state.reals.eta)
    draw_to_uniform(core, core.state.reals.eta / before, 0.0)


@kernel
def draw_to_uniform(core: Core, kept: float, share: float) -> None:
    """q~ <- ((1 - share) q~ + share u)^kept u^(1 - kept) in all rows, where q~ is divided by its sum in every layer."""
    index, state = core.index, core.state
    state.numbers.moved = 1
    for k in range(len(index.state_start) - 2):
        first, last = index.state_start[k] * index.num_actions, index.state_start[k + 1] * index.num_actions
        mass, triples = 0.0, float(index.row_start[last] - index.row_start[first])
        for r in range(first, last):
            mass += exp(state.log_weight[r])
        for r in range(first, last):
            _draw_row(core, r, log(mass), triples, kept, share)


@kernel
def _draw_row(core: Core, r: int, log_mass: float, triples: float, kept: float, share: float) -> None:
    """The same for one row of a layer with so many triples, whose weights sum to exp(log_mass)."""
    state, start, end = core.state, core.index.row_start[r], core.index.row_start[r + 1]
    own, weight = float(end - start), state.log_weight[r] - log_mass
    if share > 0.0:
        old = (1.0 - share) * exp(weight)
        new = old + share * own / triples
        for j in range(start, end):
            state.conditional[j] = (old * state.conditional[j] + share / triples) / new
        weight = log(new)
    if kept < 1.0:
        total = 0.0
        for j in range(start, end):
            state.conditional[j] = state.conditional[j] ** kept * own ** (kept - 1.0)
            total += state.conditional[j]
        for j in range(start, end):
            state.conditional[j] /= total
        weight = kept * weight + (1.0 - kept) * log(own / triples) + log(total)
    state.log_weight[r] = weight
