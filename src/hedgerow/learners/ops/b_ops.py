"""B-OPS: a budget that holds at all times, given one policy that is known to be safe (docs/budget.md).

Many limits are budgets: so far never more than alpha per episode, on average. Cheap episodes may pay for dear ones.
B-OPS plays the policy of SV-OPS as long as its account (`account.py`) proves that this keeps the summed expected costs
at or below alpha t, and leaves the episode to its baseline otherwise. There is no coin: what is played follows from the
past. Mirror descent steps in own episodes alone; episodes of the baseline count for the confidence sets.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from itertools import takewhile
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from hedgerow.checks import FloatArray, IntArray, frozen
from hedgerow.confidence.premises import FALSE_ALARM
from hedgerow.learners.api import BASELINE, DELTA, NumberedPlan, SafePolicy
from hedgerow.learners.base import exclusive
from hedgerow.learners.guarantees import Ledger, Promise, first_reason
from hedgerow.learners.kernels import baseline_arrays
from hedgerow.learners.open_plans import OpenPlan
from hedgerow.learners.ops.account import AccountRule, make_account, make_account_rule, radius_of
from hedgerow.learners.ops.guarantees import (
    assumptions,
    limits,
    rates_note,
    regret_reasons,
    regret_statement,
    shared_promises,
    stay_events,
    stay_note,
    stay_void,
)
from hedgerow.learners.ops.mixing import set_mixture
from hedgerow.learners.ops.s_ops import BaselineLearner
from hedgerow.learners.ops.settings import (
    DEFAULT_PRESET,
    BudgetSwitches,
    Preset,
    budget_events,
    confidence_void,
    names_of,
)
from hedgerow.learners.ops.state import Core
from hedgerow.model.view import View

UNITS = 2.0**40
"""Of what is held back for open plans"""
SOURCE = "docs/budget.md"
REGRET_EVENTS = 14
"""Events of probability delta that the bound of the regret needs: 10 of SV-OPS's regret on the own episodes, 3 more of
its violation on them (that theorem has 8, of which 5 are the clean event), 1 for the deviation of observed costs."""


class BOPS(BaselineLearner):
    """B-OPS, Budgeted Optimistic Policy Search: costs so far never exceed a budget, given a safe policy.

    It learns like SV-OPS. Before each episode it bounds the summed expected costs of all episodes so far, by one sum
    of observed costs and its deviation. If one more episode of its own policy keeps the sum within alpha per episode,
    it plays that policy; else the whole episode is left to the safe policy, the baseline. The promise is weaker than
    that of S-OPS, because cheap episodes pay for dear ones, and far stronger than a bound for the end of the run.
    Choose it if your limit is a budget, and S-OPS if every single episode has to respect it.

    Args:
        baseline_costs: (m,) upper bounds of the expected costs of the baseline, strictly below the thresholds, or a
            mapping {constraint name: bound}; None takes `baseline.costs`.
        allow_no_margin: Whether a cost may equal its threshold; then nothing is ever saved for own episodes.

    Raises:
        InvalidInput: If an argument is wrong, if the baseline is not safe, or if the learner has no such switch.

    Examples:
        >>> import hedgerow as hr
        >>> view = hr.View.of([["home"]], ["wait", "go"], thresholds={"delay": 0.5})
        >>> always_go = hr.SafePolicy(hr.Policy(view, [[0.0, 1.0]]), costs=[0.2])
        >>> learner = hr.BOPS(view, episodes=1000, delta=0.01, baseline=always_go)
        >>> branches = []
        >>> for _ in range(4):
        ...     branches.append(learner.plan().branch)
        ...     learner.observe([("home", "go")], losses=[1.0], costs=[0.0])
        >>> branches                                # two cheap episodes pay for the first own one, then it saves again
        ['baseline', 'baseline', 'own', 'baseline']
    """

    kind = "b-ops"
    title = "B-OPS"
    source = "this package: SV-OPS with an account"
    switches = names_of(BudgetSwitches)

    def __init__(
        self, view: View | Any, episodes: int | None, delta: float = DELTA, preset: Preset = DEFAULT_PRESET,
        seed: int = 0, *, baseline: ArrayLike | SafePolicy | Any,
        baseline_costs: ArrayLike | Mapping[str, float] | None = None, allow_no_margin: bool = False,
        transitions: ArrayLike | None = None, **switches: Unpack[BudgetSwitches],
    ) -> None:  # fmt: skip
        super().__init__(
            view, episodes, delta, preset, seed, baseline=baseline, baseline_costs=baseline_costs,
            allow_no_margin=allow_no_margin, transitions=transitions, **switches,
        )  # fmt: skip

    def _account_rule(self) -> AccountRule:
        settings, binding = self.settings, len(self.view.binding)
        return make_account_rule(binding, self.delta, settings.confidence_scale, by_bound=settings.rule == "bound")

    def _terms(self, plan: NumberedPlan) -> FloatArray:
        """(2, m): what a plan is charged with until it is learnt, and what it may cost, both of the time it was made.

        Lambda is 0 or 1: the bounds of a plan are those of the policy that plays.
        """
        by_bound = plan.branch == BASELINE or self.core.rule.account.by_bound
        charge = plan.cost_bounds if by_bound and plan.cost_bounds is not None else self.view.ceilings
        return np.array([charge, plan.view.thresholds])

    def _use(self, core: Core) -> None:
        super()._use(core)
        self._open_terms: deque[tuple[int, IntArray]] = deque()
        self._held = np.zeros(core.buffers.held.shape, dtype=np.int64)

    def _follow_queue(self) -> None:
        """Hold back what open plans may cost, and decide anew whether the next plan is an own one.

        Sums are of whole multiples of 2^-40, rounded to the safe side: they do not depend on the order of additions.
        """
        core, entries, terms = self.core, self.queue.entries, self._open_terms
        if not (entries or terms):
            return
        while terms and not (entries and terms[0][0] >= entries[0].plan.episode):
            self._held -= terms.popleft()[1]
        known = terms[-1][0] if terms else -1
        fresh = len(entries) - sum(1 for _ in takewhile(lambda one: one.plan.episode > known, reversed(entries)))
        for entry in entries[fresh:]:
            charge, limit = self._terms(entry.plan)[:, self.view.binding] * UNITS
            terms.append((entry.plan.episode, np.array([np.ceil(charge), np.floor(limit)], dtype=np.int64)))
            self._held += terms[-1][1]
        core.buffers.held[:] = self._held / UNITS
        if not core.state.numbers.open:
            set_mixture(core, core.state.numbers.last_status)

    def _fold(self, entry: OpenPlan) -> None:
        self.core.buffers.terms[:] = self._terms(entry.plan)
        self.core.state.reals.mixing = entry.plan.mixing_weight
        super()._fold(entry)

    def _keep_for_later(self, fresh: list[OpenPlan]) -> None:
        # Only own episodes have a loss estimate, and their u is that of the policy alone.
        reals = self.core.state.reals
        mixing, reals.mixing = reals.mixing, 0.0
        super()._keep_for_later(fresh)
        reals.mixing = mixing

    @property
    def reserve(self) -> FloatArray:
        """(m,): how much less than allowed the episodes so far have surely cost, open ones included.

        It is infinite for a constraint that no cost can exceed. An own episode is played if the reserve and one more
        threshold have room for what it may cost.
        """
        account, left = self.core.state.account, np.full(self.view.num_constraints, np.inf)
        held = self.core.buffers.held
        left[self.view.binding] = (account.allowed + held[1]) - (account.charged + held[0])
        return frozen(left)

    @exclusive
    def guarantees(self) -> Ledger:
        """Return what is promised under the present switches: the budget at all times, and the regret."""
        confidence, accuracy = regret_reasons(self)
        no_margin = (
            "a baseline cost equals its threshold" if np.any(self.baseline_costs >= self.view.thresholds) else ""
        )
        events = budget_events(self.settings)
        sure = self._budget.sure(events) if events > 1 else 1.0 - self.delta  # the account needs no transitions
        budget = Promise(
            "budget",
            "after every episode the summed expected costs of all episodes so far, open ones included, are at most "
            f"the sum of their thresholds, at last: {limits(self)}"
            if self.queue.widest > 1 or self.queue.changes
            else "after every episode the summed expected costs of all episodes so far are at most as many times the "
            f"thresholds: {limits(self)}",
            sure,
            f"{SOURCE}, Theorem P",
            confidence_void(self.settings),
        )
        rate = regret_statement(self, "(1 + L / Delta) L |X| sqrt(|A| T ln(T|X||A|m/delta))")
        regret = Promise(
            "regret",
            f"the regret is O({rate}), Delta = min_i (alpha_i - beta_i){rates_note(self)}{stay_note(self)}",
            self._budget.sure(REGRET_EVENTS + FALSE_ALARM + stay_events(self)),
            f"{SOURCE}, Theorem R",
            first_reason(confidence, no_margin, accuracy, stay_void(self)),
        )
        return self._ledger(*shared_promises(self), budget, regret, assumptions=assumptions(self))


def budget_share(view: View, beta: FloatArray, episodes: int, delta: float) -> float:
    """The share of the run that B-OPS leaves to the baseline at most, if its own policy costs just its thresholds; 1
    without a margin.

    By Lemma P of docs/budget.md, with the largest variance of an episode's costs that their mean and ceiling allow.
    """
    baseline = baseline_arrays(view, np.zeros((0, view.layout.num_rows)), beta.copy())
    binding, largest = baseline.binding, 0.0
    alpha, most = baseline.thresholds[binding], baseline.ceilings[binding]
    rule, account = make_account_rule(len(binding), delta, 1.0, by_bound=False), make_account(len(binding))
    account.squares[:] = episodes * (alpha / most) * (1.0 - alpha / most)
    for j, i in enumerate(binding):
        needed, margin = radius_of(rule, account, baseline, j) + most[j] - beta[i], alpha[j] - beta[i]
        largest = max(largest, needed / (margin * episodes) if margin > 0.0 else 1.0)
    return min(1.0, largest)
