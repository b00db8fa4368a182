"""S-LP: S-OPS with a greedy linear program in the place of its mirror step."""

from __future__ import annotations

from typing import ClassVar

from hedgerow.learners.api import Inputs
from hedgerow.learners.field.base import BASELINE_IS_SAFE, COSTS_ARE_DRAWS, confidence, safety
from hedgerow.learners.field.lp import LPLearner
from hedgerow.learners.field.lp_kernels import ROBUST, LPRule, optimistic_tables
from hedgerow.learners.guarantees import Ledger
from hedgerow.paper import cite


class SLP(LPLearner):
    """S-LP: the optimistic plan of OptCMDP, mixed with the baseline as S-OPS mixes; no violation.

    Lambda is the smallest weight of the baseline for which the mixture is safe, whatever transitions and mean costs are
    true within their bounds. Against S-OPS it shows what robustness to an adversary costs: the proof of safety is the
    same, but the plan is greedy, and no regret is promised.

    Args:
        seed: Seed of the learner's coin.

    Raises:
        InvalidInput: If an argument is wrong, or if the baseline is not safe.

    Examples:
        >>> import hedgerow as hr
        >>> world = hr.worlds.make("dope-factored")
        >>> learner = hr.field.SLP(world.view(), episodes=100, delta=0.01, baseline=hr.offline.slater(world))
        >>> learner.plan().notes["mixing_weight"] < 1.0
        True
    """

    kind: ClassVar[str] = "s-lp"
    title: ClassVar[str] = "S-LP"
    source: ClassVar[str] = "this package: the plan of OptCMDP in S-OPS"
    inputs: ClassVar[Inputs] = Inputs(baseline=True)

    def _lp_rule(self) -> LPRule:
        tables = optimistic_tables(self.statistics.box_rule.radii, self.layout)
        return self._rule(tables, ROBUST)

    def guarantees(self) -> Ledger:
        """Return what is promised: safety whatever the losses; of the regret nothing is claimed."""
        safe = safety(self, f"{cite('violation_hard')}, whose proof holds for any policy that is mixed so")
        return self.as_seen(Ledger(self.title, (confidence(self), safe), (COSTS_ARE_DRAWS, BASELINE_IS_SAFE)))
