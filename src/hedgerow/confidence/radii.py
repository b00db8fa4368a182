"""Confidence radii: xi for mean costs and epsilon for transition probabilities (paper, section 3).

With probability 1 - delta, |g_hat_i - g_i| <= xi(N) for all episodes, rows and constraints; with probability
1 - 4 delta, |P_hat - P| <= epsilon(P_hat, N) for all episodes and triples; both, the clean event, with 1 - 5 delta.
N is the number of visits of the row, n- = max(1, N - 1), T the number of episodes; |X| counts x_0 and x_L.

    paper    xi = min(1, sqrt(4 ln(T|X||A|m/delta) / max(1, N)))                                   Lemma gen_confidence
             epsilon = 2 sqrt(P_hat iota / n-) + 14 iota / (3 n-),   iota = ln(T|X||A|/delta)      Lemma confidenceset

    tight    xi = min(1, sqrt(ln(2 n_pair m T/delta_G) / (2N)))                                    Hoeffding
             epsilon = sqrt(2 V iota' / N) + 7 iota' / (3 (N - 1)),   iota' = ln(4 n T/delta_P),   empirical Bernstein
             V = P_hat (1 - P_hat) N / (N - 1) the sample variance, N >= 2                         (Maurer and Pontil)

    anytime  tight with N (N + 1) instead of T: no horizon

    efroni   xi = min(1, sqrt(2 ln(6 S |A| L T m/delta) / max(1, N)))                              Efroni, Mannor,
             epsilon = 2 sqrt(P_hat (1 - P_hat) iota / N) + 14 iota / (3 N),                       Pirotta 2020
             iota = ln(6 S |A| L T/delta), S the size of the largest layer                         (xi as recalled)

    All but `kt` also serve weighted means with weights that depend on N alone (`counts.py`): by Hoeffding (1963,
    Theorem 2), sum w_j (g_j - g) exceeds x with probability at most exp(-2 x^2 / sum w^2), so that 1 / sum w^2 takes
    the place of N in xi, but not in the union over N.

    kt       not a radius but an interval, from a mixture of likelihood ratios: `kl.py`; no horizon either

`efroni` is never narrower than `tight`, so what holds for `tight` holds for it. For xi: n_pair <= S |A| L. For epsilon:
n <= S^2 |A| L, so iota' < 2 iota - 3; where epsilon < 1, N > 14 iota/3, hence iota'/(N - 1) <= 2 iota/N in both terms.

The paper takes a union bound over the episodes *and* the values of N and rounds up. The bounds depend on N alone, so a
union over N = 1..T, or over all N with weights 1/(N(N+1)), is enough. The budgets are the paper's: delta_G = delta and
delta_P = 4 delta; those of `kt` are `Shares`. n_pair counts rows; n counts the triples of rows with at least two
successors, because the others have nothing to estimate. Where rows share a law, classes replace rows, and T L replaces
T, because an episode may visit a class L times. There is no m in the transition terms: transitions do not depend on the
constraints.

    T = 1000, |X| = 10, |A| = 3, m = 2, delta = .05, N = 200:   xi = 0.529109, epsilon(.25) = 0.570571
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, log1p, sqrt

from hedgerow.checks import positive_share, short_repr, whole_number
from hedgerow.compiling.bundles import Bundle
from hedgerow.compiling.kernels import kernel
from hedgerow.confidence.counts import Unknowns, make_unknowns
from hedgerow.confidence.kl import kt_bounds
from hedgerow.errors import InvalidInput
from hedgerow.model.layout import Layout

PAPER, TIGHT, ANYTIME, KT, EFRONI = 0, 1, 2, 3, 4
KINDS = {"paper": PAPER, "tight": TIGHT, "anytime": ANYTIME, "kt": KT, "efroni": EFRONI}
WITHOUT_HORIZON = ("anytime", "kt")
"""These hold at all times: they need no number of episodes, and data from elsewhere may come before the first one."""


TOTAL = 5.0
"""The clean event has probability 1 - 5 delta."""
COST_SHARE = 3.0
"""Of it, where transitions have to be estimated as well."""
CERTIFICATE_PART = 6.0
"""One in so many parts of the costs' share is that of the aggregate certificate; docs/aggregate.md has what was
measured.
"""
LOSS_SHARE = 0.1
"""Of the costs' part, for the mean loss where that is estimated"""


@dataclass(frozen=True)
class Shares:
    """How the intervals of the kind `kt` split the failure probability 5 delta; the shares sum to at most 5.

    Every statement that holds for ever rests on a supermartingale with a failure probability of its own; these
    probabilities add up. Costs decide more than transitions: three of five parts go to costs and two to transitions,
    and all five go to costs where no transition has to be estimated. A tenth of the costs' parts goes to the mean loss
    where that is estimated, which costs the others ln(10/9) in their logarithm. A sixth of the rest goes to the
    aggregate certificate (`aggregate.py`) where there is one, and half of the transitions' parts to the balls of wide
    rows (`balls.py`) where there are any.
    """

    costs: float
    """Share of the intervals of mean costs"""
    transitions: float
    """Share of the boxes"""
    aggregate: float
    """Share of the aggregate certificate"""
    balls: float
    """Share of the balls"""
    losses: float = 0.0
    """Share of the intervals of the mean loss"""


def refuse_empty_promise(delta: float, spent: float) -> None:
    """Refuse a delta of which 1 - `spent` delta leaves no probability: bounds that promise nothing are no bounds.

    The intervals of `kl.py` need this as well: their ln(1/delta') would be negative, and the ends beyond [0, 1].
    """
    if spent * delta >= 1.0:
        raise InvalidInput(
            f"delta is {delta!r}: the confidence sets hold with probability 1 - {spent:g} delta, of which nothing is "
            f"left; choose a delta below {1.0 / spent:g}"
        )


def make_shares(unknowns: Unknowns, *, aggregate: bool = False, num_balls: int = 0, losses: bool = False) -> Shares:
    """The shares for these unknowns, with or without an aggregate certificate, balls and intervals of the loss."""
    certain = unknowns.num_triples == 0
    whole = TOTAL if certain else COST_SHARE
    costs = (1.0 - LOSS_SHARE) * whole if losses else whole
    moves = TOTAL - COST_SHARE
    return Shares(
        costs=costs - costs / CERTIFICATE_PART if aggregate else costs,
        transitions=0.5 * moves if num_balls else moves,
        aggregate=costs / CERTIFICATE_PART if aggregate else 0.0,
        balls=0.5 * moves if num_balls else 0.0,
        losses=LOSS_SHARE * whole if losses else 0.0,
    )


class RadiusRule(Bundle):
    """The radii as kernels take them."""

    kind: int
    cost_log: float
    """The logarithm in xi; for `anytime` without its part ln(N(N+1)); for `kt` ln(1/delta') of one mean cost"""
    transition_log: float
    """iota or iota'; for `anytime` without its part ln(N(N+1)); for `kt` ln(1/delta') of one probability"""
    scale: float


@dataclass(frozen=True)
class Radii:
    """Which radii to use. A `confidence_scale` c < 1 multiplies them by c and voids every high-probability promise."""

    kind: str = "paper"
    confidence_scale: float = 1.0

    def __post_init__(self) -> None:
        if self.kind not in tuple(KINDS):  # a list cannot be looked up in a mapping
            raise InvalidInput(f"the radii are {short_repr(self.kind)}; choose one of {', '.join(KINDS)}")
        scale = positive_share("the confidence scale", self.confidence_scale, below_one=False)
        object.__setattr__(self, "confidence_scale", scale)

    def rule(
        self,
        layout: Layout,
        num_constraints: int,
        delta: float,
        episodes: int | None = None,
        unknowns: Unknowns | None = None,
        shares: Shares | None = None,
    ) -> RadiusRule:
        """The constants for a world, a failure probability delta in (0, 1) and a horizon T, if one is needed; for `kt`
        delta is below 1/5.

        `unknowns` say what has to be estimated, by default everything; `shares` how `kt` spends 5 delta.
        """
        m = max(1, whole_number("the number of constraints", num_constraints, 0))
        d = positive_share("delta", delta, below_one=True)
        if self.kind in WITHOUT_HORIZON:
            T = 1
        elif episodes is None:
            raise InvalidInput(
                f"{self.kind} radii need the number of episodes; without one use {' or '.join(WITHOUT_HORIZON)} radii"
            )
        else:
            T = whole_number("the number of episodes", episodes, 1)
        unknowns = make_unknowns(layout, m) if unknowns is None else unknowns
        num_costs = max(1, unknowns.num_costs) if num_constraints else layout.num_rows
        if unknowns.tied:
            T *= layout.steps
        if self.kind == "paper":
            pairs = layout.num_states * layout.num_actions
            cost_log, transition_log = log(T) + log(pairs * m) - log(d), log(T) + log(pairs) - log(d)
        elif self.kind == "efroni":
            pairs = max(layout.layer_sizes) * layout.num_actions * layout.steps
            transition_log = log(6 * pairs) + log(T) - log(d)
            cost_log = transition_log + log(m)
        elif self.kind == "kt":
            refuse_empty_promise(d, TOTAL)
            shares = make_shares(unknowns) if shares is None else shares
            cost_log = log(num_costs) - log(shares.costs) - log(d)
            transition_log = log(max(1, unknowns.num_triples)) - log(shares.transitions) - log(d)
        else:
            delta_G, delta_P = log(d), log(4.0) + log(d)
            cost_log = log(2 * num_costs) + log(T) - delta_G
            transition_log = log(4 * max(1, unknowns.num_triples)) + log(T) - delta_P
        return RadiusRule(KINDS[self.kind], cost_log, transition_log, self.confidence_scale)


@kernel
def cost_radius(rule: RadiusRule, num_visits: int) -> float:
    """xi of a row with N visits; 1 while N = 0, whatever the scale. For `kt` the largest, at a mean of 1/2."""
    if num_visits >= 1 and rule.kind == KT:
        lower, upper = scaled_bounds(rule, num_visits, 0.5 * num_visits, rule.cost_log)
        return 0.5 * (upper - lower)
    if num_visits < 1:
        return 1.0
    n = float(num_visits)
    if rule.kind == PAPER:
        xi = sqrt(4.0 * rule.cost_log / n)
    elif rule.kind == EFRONI:
        xi = sqrt(2.0 * rule.cost_log / n)
    else:
        xi = sqrt((rule.cost_log + _log_of_union(rule, num_visits)) / (2.0 * n))
    return min(1.0, rule.scale * xi)


@kernel
def transition_radius(rule: RadiusRule, p_hat: float, num_visits: int) -> float:
    """epsilon of a triple with estimate P_hat in a row with N visits; 1, the trivial bound, where there is no other."""
    if rule.kind == KT:
        lower, upper = scaled_bounds(rule, num_visits, p_hat * num_visits, rule.transition_log)
        return max(p_hat - lower, upper - p_hat)
    variance_factor, offset = transition_terms(rule, num_visits)
    return epsilon(rule, p_hat, variance_factor, offset)


@kernel
def transition_terms(rule: RadiusRule, num_visits: int) -> tuple[float, float]:
    """(v, b) of a row with N visits: epsilon = sqrt(v P_hat) + b, or sqrt(v P_hat (1 - P_hat)) + b if not `paper`."""
    if num_visits < 1 or (rule.kind != PAPER and rule.kind != EFRONI and num_visits < 2):
        return 0.0, 1.0
    n_minus = float(max(1, num_visits - 1))
    if rule.kind == EFRONI:
        v, b = 4.0 * rule.transition_log / num_visits, 14.0 * rule.transition_log / (3.0 * num_visits)
    elif rule.kind == PAPER:
        iota = rule.transition_log
        v, b = 4.0 * iota / n_minus, 14.0 * iota / (3.0 * n_minus)
    else:
        iota = rule.transition_log + _log_of_union(rule, num_visits)
        v, b = 2.0 * iota / n_minus, 7.0 * iota / (3.0 * n_minus)  # 2 V iota / N, as V = P_hat (1 - P_hat) N / n_minus
    return rule.scale**2 * v, rule.scale * b


@kernel
def epsilon(rule: RadiusRule, p_hat: float, variance_factor: float, offset: float) -> float:
    """epsilon from the terms of its row."""
    spread = p_hat if rule.kind == PAPER else p_hat * (1.0 - p_hat)
    return sqrt(variance_factor * spread) + offset


@kernel
def scaled_bounds(rule: RadiusRule, num: int, total: float, log_inverse_delta: float) -> tuple[float, float]:
    """The interval of `kt` for the mean of `num` samples with the sum `total`, drawn in by the scale."""
    lower, upper = kt_bounds(num, total, log_inverse_delta)
    if rule.scale < 1.0 and num > 0:
        mean = total / num
        return mean - rule.scale * (mean - lower), mean + rule.scale * (upper - mean)
    return lower, upper


@kernel
def _log_of_union(rule: RadiusRule, num_visits: int) -> float:
    """ln(N(N+1)) for anytime radii: the weights 1/(N(N+1)) of the union over N sum to 1."""
    if rule.kind != ANYTIME:
        return 0.0
    return log(num_visits) + log1p(num_visits)
