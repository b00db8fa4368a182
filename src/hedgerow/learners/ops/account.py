"""The account of B-OPS: what the episodes so far may have cost in expectation, against what they were allowed to cost.

For every constraint that binds, with alpha its threshold, beta the cost of the baseline, R its ceiling, and for the own
episodes X their observed costs, n their number and mu_hat the mean of the own episodes before (docs/budget.md)

    seen      = sum of X over the own episodes          squares = sum of ((X - mu_hat) / R)^2 over them
    fixed     = beta for each episode of the baseline   allowed = sum of the thresholds of all episodes
    rad       = R min { (ln(J m / delta) + psi(l) squares) / l },   l = 15/16, 7/8, 3/4, 1/2, 1/4, ..., 2^-14,  J = 17
    charged_t = min { charged_{t-1} + step_t,  fixed + seen + rad }

where step_t is beta in an episode of the baseline, and in an own one the ceiling, or the upper bound U of its policy's
cost if that is less (`by_bound`). With probability 1 - delta, at all times, the summed expected costs are at most
`charged`: the sum of own costs is at most seen + rad by Lemma B, and one more episode adds at most its step.

The own policy plays episode t + 1 if charged + step <= allowed + alpha for every such constraint, else the baseline
does. Both keep the summed expected costs at or below `allowed`. The threshold of each episode is added when it ends, so
`allowed` stays right where thresholds change. Where several plans are open, each of them is charged with its step, or
with beta, and allowed its threshold, in advance: `held`, an array (2, binding) with these two sums.

An own episode that is not whole enters with X' = its observed costs + 1 for each cost that nobody observed, cut at R
(docs/counting.md, Lemma B'). One that is left out for a declared reason is no part of the sums: `fixed` takes its step.
An episode of the baseline is a plan of known cost, whatever became of it.
"""

from __future__ import annotations

from math import log

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.compiling.bundles import Bundle, Record
from hedgerow.compiling.kernels import kernel
from hedgerow.confidence.aggregate import NUM_RATES, add_total, aggregate_radius, radius_at
from hedgerow.learners.kernels import ROUND_UP, BaselineArrays

EARLY = (0.9375, 0.875, 0.75)
"""The values of l beside those of the aggregate certificate: best while `squares` are below 10 or so"""


class AccountNumbers(Record):
    """How many episodes have been entered."""

    own: int
    """n: those of the learner's policy that are part of the sums"""
    skipped: int
    """Those of it that are not"""
    baseline: int
    """Those of the baseline"""


class Account(Bundle):
    """The state of an account, an entry for each constraint that binds; empty for learners that have none."""

    seen: FloatArray
    squares: FloatArray
    fixed: FloatArray
    charged: FloatArray
    allowed: FloatArray
    numbers: AccountNumbers


class AccountRule(Bundle):
    """What stays the same."""

    active: bool
    by_bound: bool
    """Whether an own episode is charged with U where that is below the ceiling"""
    log_term: float
    """ln(J m / delta)"""
    scale: float
    """Multiplies rad; below 1 nothing is promised any more"""


def make_account(num_binding: int) -> Account:
    """Nothing entered yet."""
    seen, squares, fixed, charged, allowed = (np.zeros(num_binding) for _ in range(5))
    return Account(seen, squares, fixed, charged, allowed, AccountNumbers())


def make_account_rule(num_binding: int, delta: float, scale: float, *, by_bound: bool) -> AccountRule:
    """The rule for so many constraints that bind."""
    return AccountRule(True, by_bound, log((NUM_RATES + len(EARLY)) * max(1, num_binding)) - log(delta), scale)


def no_account() -> AccountRule:
    """An empty rule, for learners that have no account."""
    return AccountRule(False, False, 0.0, 1.0)


@kernel
def step_of(rule: AccountRule, baseline: BaselineArrays, bounds: FloatArray, i: int) -> float:
    """What the next own episode may cost of constraint i; `bounds` (m,) are U of its policy."""
    return float(min(bounds[i], baseline.ceilings[i]) if rule.by_bound else baseline.ceilings[i])


@kernel
def radius_of(rule: AccountRule, account: Account, baseline: BaselineArrays, j: int) -> float:
    """rad of the j-th constraint that binds."""
    ceiling = baseline.ceilings[baseline.binding[j]]
    radius = aggregate_radius(rule.log_term, account.squares[j], ceiling)
    for rate in EARLY:
        radius = min(radius, ceiling * radius_at(rate, rule.log_term, account.squares[j]))
    return float(rule.scale * radius)


@kernel
def affords_own(
    rule: AccountRule, account: Account, baseline: BaselineArrays, bounds: FloatArray, held: FloatArray
) -> bool:
    """Whether the budget of the episodes so far, open ones included, and of one more has room for an own episode."""
    for j in range(len(baseline.binding)):
        i = baseline.binding[j]
        needed = (account.charged[j] + held[0, j] + step_of(rule, baseline, bounds, i)) * ROUND_UP
        if needed > account.allowed[j] + held[1, j] + baseline.thresholds[i]:
            return False
    return True


@kernel
def set_terms(
    rule: AccountRule, baseline: BaselineArrays, bounds: FloatArray, own: bool, terms: FloatArray
) -> None:  # fmt: skip
    """What a plan of the present state is charged with, and what it may cost, into `terms` (2, m)."""
    for i in range(terms.shape[1]):
        terms[0, i] = step_of(rule, baseline, bounds, i) if own else baseline.costs[i]
        terms[1, i] = baseline.thresholds[i]


@kernel
def enter_own(
    rule: AccountRule, account: Account, baseline: BaselineArrays, terms: FloatArray, paid: FloatArray, skipped: bool
) -> None:
    """Enter an episode of the learner's policy that cost `paid` (m,), or one that is left out."""
    numbers = account.numbers
    for j in range(len(baseline.binding)):
        i = baseline.binding[j]
        if skipped:
            account.fixed[j] += terms[0, i]
        else:
            add_total(paid[i], numbers.own, baseline.ceilings[i], account.seen, account.squares, j)
        _charge(rule, account, baseline, j, terms)
    if skipped:
        numbers.skipped += 1
    else:
        numbers.own += 1


@kernel
def enter_baseline(rule: AccountRule, account: Account, baseline: BaselineArrays, terms: FloatArray) -> None:
    """Enter an episode that the baseline played."""
    for j in range(len(baseline.binding)):
        account.fixed[j] += terms[0, baseline.binding[j]]
        _charge(rule, account, baseline, j, terms)
    account.numbers.baseline += 1


@kernel
def _charge(rule: AccountRule, account: Account, baseline: BaselineArrays, j: int, terms: FloatArray) -> None:
    """Bound the sum that has just grown by an episode, and add what that was allowed to cost: `terms` (2, m)."""
    total, i = account.fixed[j] + account.seen[j] + radius_of(rule, account, baseline, j), baseline.binding[j]
    account.charged[j] = min(account.charged[j] + terms[0, i], total)
    account.allowed[j] += terms[1, i]
