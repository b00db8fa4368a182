"""C-OPS, choice by certificate: S-OPS beside a pool of policies that are certified to be safe.

S-OPS learns by mirror descent and pays for what it does not know by leaving episodes to the baseline. Often a mixture
that needs the baseline less is known to be safe already. C-OPS looks for the best of these (`choice.py`), plays it
beside the mixture of S-OPS, and lets the losses decide how often (`pool.py`). Any mixture of safe mixtures is safe, so
that safety is that of S-OPS, member by member. The regret is at most that of the S-OPS within, which has a probability
of at least f in every episode, plus O(L sqrt(T / f)) (docs/choice.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import FloatArray, frozen
from hedgerow.confidence.premises import FALSE_ALARM
from hedgerow.confidence.sets import REASONS
from hedgerow.learners.api import OWN, NumberedPlan
from hedgerow.learners.base import exclusive
from hedgerow.learners.guarantees import Ledger, Promise, first_reason
from hedgerow.learners.kernels import flat_arrays
from hedgerow.learners.open_plans import OpenPlan
from hedgerow.learners.ops.choice import choose, make_choice, occupy
from hedgerow.learners.ops.guarantees import (
    assumptions,
    limits,
    regret_reasons,
    regret_statement,
    shared_promises,
    stay_events,
    stay_note,
    stay_void,
    unknown_void,
)
from hedgerow.learners.ops.mixing import baseline_share, cost_bounds, is_due, set_mixture
from hedgerow.learners.ops.pool import reason_of, tilt_of
from hedgerow.learners.ops.s_ops import REGRET_EVENTS, SOPS
from hedgerow.learners.ops.settings import confidence_void
from hedgerow.learners.ops.state import Core
from hedgerow.model.policy import Mixture, Policy
from hedgerow.paper import cite

FOLLOW = ("pool.occupancy", "pool.baseline")
"""Arrays that follow from the others"""
FLOOR = 0.05
"""f: the least probability of the mixture of S-OPS"""


class COPS(SOPS):
    """C-OPS, choice by certificate: safe in every episode like S-OPS, and sooner away from the baseline.

    It runs S-OPS, and beside it a pool: the mixture of least estimated loss among policies whose costs are certified,
    followed in the whole episode or only in a part of it. With probability `pool_weight`, which is 0.95 or 0, an
    episode is drawn from the pool, else from the mixture of S-OPS. The pool pauses while it seems to lose more than
    S-OPS, and is closed for good if it does by a test that no adversary can mislead (docs/choice.md).

    Args:
        baseline_costs: (m,) upper bounds of the expected costs of the baseline, strictly below the thresholds, or a
            mapping {constraint name: bound}; None takes `baseline.costs`.
        allow_no_margin: Whether a cost may equal its threshold; then only the baseline is ever played.

    Raises:
        InvalidInput: If an argument is wrong, if the baseline is not safe, or if the learner has no such switch.

    Examples:
        >>> import hedgerow as hr
        >>> view = hr.View.of([["home"]], ["wait", "go"], thresholds={"delay": 0.5})
        >>> always_go = hr.SafePolicy(hr.Policy(view, [[0.0, 1.0]]), costs=[0.25])
        >>> learner = hr.COPS(view, episodes=1000, delta=0.01, baseline=always_go)
        >>> plan = learner.plan()
        >>> round(plan.mixing_weight, 4), bool(plan.cost_bounds[0] <= 0.5)
        (0.6667, True)
    """

    kind = "c-ops"
    title = "C-OPS"
    source = "docs/choice.md, on Stradi, Castiglioni, Marchesi and Gatti 2025"
    pools = True
    # The regret is proved for these rates; and with adaptive ones it was a third larger against `pursuit`.
    preset_changes: ClassVar[Mapping[str, Mapping[str, Any]]] = {"sharpest": {"eta": "paper", "gamma": "paper"}}
    floor = FLOOR

    def _use(self, core: Core) -> None:
        super()._use(core)
        self._choice_buffers = make_choice(self.layout, self.view.num_constraints, len(core.baseline.binding))

    def _start(self, core: Core) -> None:
        super()._start(core)
        self._complete()

    def _complete(self) -> None:
        super()._complete()
        if is_due(self.core):
            self._keep_played()
            choose(self.core, self._choice_buffers)
            set_mixture(self.core, self.core.state.numbers.last_status)

    def _keep_played(self) -> None:
        """Copy the member that was played last to the last place, which new members leave alone."""
        policies, member = self.core.pool.policies, self._member
        if self.queue.entries and self.queue.entries[-1].plan.episode >= self.episode:
            self.progress.branch = 0  # open plans hold what they play
        elif member >= 0:
            self._let_play(policies[member])

    def _enter(self, policy: FloatArray, repeats: bool) -> None:
        super()._enter(policy, repeats)
        if self.queue.entries:
            self.progress.branch = 0

    def _let_play(self, policy: FloatArray) -> None:
        """Make a policy (num_rows,) the one that was played last."""
        policies = self.core.pool.policies
        policies[-1] = policy
        self.progress.branch = len(self.baselines.policies) + len(policies)

    @property
    def _num_members(self) -> int:  # type: ignore[override]
        """How many places the pool has."""
        return len(self.core.pool.weights)

    @property
    def _pool_drawn(self) -> int:  # type: ignore[override]
        """1 if the coin of the last plan fell on the pool."""
        return self.core.pool.numbers.drawn

    def _fold(self, entry: OpenPlan) -> None:
        self.core.pool.numbers.drawn = entry.drawn
        if entry.branch > len(self.baselines.policies):
            self._let_play(entry.played)
        if entry.u is not None:
            self.core.pool_rule.late.share = entry.plan.notes["pool_weight"]
            self.core.pool_rule.tilt[:] = 0.0 if entry.tilt is None else entry.tilt
        super()._fold(entry)

    def _keep_for_later(self, fresh: list[OpenPlan]) -> None:
        super()._keep_for_later(fresh)
        core = self.core
        if core.pool.reals.share > 0.0:
            tilt_of(core.index, core.pool, core.pool_rule, core.state.policy, core.state.reals.mixing)
            tilt = frozen(core.pool_rule.tilt)
            for entry in fresh:
                entry.tilt = tilt

    def played_array(self) -> FloatArray:
        """Return the policy of the plan that is learnt from, or else of the last one; do not write to it."""
        member = self._member
        if member < 0 or self.queue.folding is not None:
            return super().played_array()
        played: FloatArray = self.core.pool.policies[member]
        return played

    @property
    def _member(self) -> int:
        """The member of the pool that the last plan plays; -1 if it plays none."""
        return max(self.progress.branch - 1 - len(self.baselines.policies), -1)

    @property
    @exclusive
    def pool(self) -> tuple[tuple[float, Policy, dict[str, tuple[float, str]]], ...]:
        """What the pool mixes at present, apart from the baseline.

        Returns:
            For each member its weight, its policy, and by constraint the bound of its cost and the name of the set that
            gave it: "box", "ball", "certificate" or "anchored".
        """
        pool, names = self.core.pool, self.view.constraint_names
        return tuple(
            (
                float(pool.weights[j]),
                Policy.trusted(self.layout, pool.policies[j].copy()),
                {
                    name: (float(pool.bounds[j, i]), REASONS[pool.reasons[j, i]])
                    for i, name in enumerate(names)
                },
            )
            for j in range(pool.numbers.size)
        )  # fmt: skip

    def _open_plan(self) -> NumberedPlan:
        core, bounds = self.core, np.zeros(self.view.num_constraints)
        cost_bounds(core, bounds)
        bounds.setflags(write=False)
        member, pool = self._member, core.pool
        notes = {
            "mixing_weight": baseline_share(core),
            "branch": float(self.progress.branch),
            "pool_weight": pool.reals.share,
            "pool_reason": reason_of(pool),
            **self._stay_notes(),
        }
        notes.update(zip(self._bound_names, bounds.tolist(), strict=True))
        plan = self._planned(core.state.reals.mixing, notes, bounds)
        if pool.reals.share == 0.0:
            return plan
        pooled = self._pooled()
        plan.__dict__["mixture"] = Mixture.trusted((pool.reals.share, pooled), (1.0 - pool.reals.share, plan.mixture))
        if member >= 0:
            plan.__dict__.update(policy=pooled.parts[1 + member][1], branch=OWN)
        return plan

    def _pooled(self) -> Mixture:
        """The mixture of the pool; while nothing is learnt, plans share it."""
        pool, entries = self.core.pool, self.queue.entries
        if entries and entries[-1].u is None and entries[-1].is_pooled:
            shared = entries[-1].plan.mixture.parts[0][1]  # type: ignore[union-attr]
            assert isinstance(shared, Mixture)
            return shared
        policies = [Policy.trusted(self.layout, pool.policies[j]) for j in range(pool.numbers.size)]
        baseline = Policy.trusted(self.layout, self.baselines.policies[0])
        members = zip(pool.weights[: len(policies)].tolist(), policies, strict=True)
        return Mixture.trusted((pool.reals.base, baseline), *members)

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of the state by name, those that follow from others included."""
        own = {f"pool.{name}": array for name, array in flat_arrays(self.core.pool).items()}
        return super().state_arrays() | own

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {name: array for name, array in super()._arrays().items() if name not in FOLLOW}

    def _restore(self, state: dict[str, NDArray[Any]]) -> None:
        from hedgerow.learners.ops.soundness import restore_pool

        restore_pool(self.core, {name: state.pop(name) for name in list(state) if name.startswith("pool.")})
        occupy(self.core)
        super()._restore(state)

    def _other_rates(self) -> str:
        settings = self.settings
        same = settings.eta == settings.gamma == "paper" and settings.share == 0.0
        return "" if same else "the proof is for the rates of the paper"

    @exclusive
    def guarantees(self) -> Ledger:
        """Return what is promised under the present switches: safety in every episode, and the regret."""
        confidence, accuracy = regret_reasons(self)
        no_margin = (
            "a baseline cost equals its threshold" if np.any(self.baseline_costs >= self.view.thresholds) else ""
        )
        safety = Promise(
            "safety",
            f"in every episode the expected costs of the mixture respect the thresholds: {limits(self)}",
            self._budget.sure(5),
            f"docs/choice.md; {cite('violation_hard')}",
            confidence_void(self.settings),
        )
        open_at_once = self.queue.widest
        late = f", and L for each of the {open_at_once} plans that were open at once" if open_at_once > 1 else ""
        choice = Promise(
            "choice",
            f"the losses exceed those of the S-OPS within, which has probability {self.floor:g} or more in every "
            f"episode, by O(L sqrt(T ln(1/delta) / f)) at most{late}",
            max(0.0, 1.0 - 2.0 * self.delta),
            "docs/choice.md",
            unknown_void(self),
        )
        rate = regret_statement(self, "Psi L^3 |X| sqrt(|A| T ln(T|X||A|m/delta))")
        regret = Promise(
            "regret",
            f"the regret is O({rate} / f), Psi = max_i 1 / min(alpha_i - beta_i, (alpha_i - beta_i)^2), "
            f"f = {self.floor:g}{stay_note(self)}",
            self._budget.sure(REGRET_EVENTS + 2 + FALSE_ALARM + stay_events(self)),
            f"docs/choice.md; {cite('reg_hard')}",
            first_reason(confidence, no_margin, accuracy, self._other_rates(), stay_void(self)),
        )
        return self._ledger(*shared_promises(self), safety, choice, regret, assumptions=assumptions(self))
