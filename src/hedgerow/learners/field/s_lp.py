"""S-LP: S-OPS with a greedy linear program in the place of its mirror step."""

from __future__ import annotations

from hedgerow.learners.field.lp import LPLearner
from hedgerow.learners.field.lp_kernels import ROBUST, LPRule
from hedgerow.learners.guarantees import Ledger
from hedgerow.paper import cite


class SLP(LPLearner):
    """S-LP: the optimistic plan of OptCMDP, mixed with the baseline as S-OPS mixes; no violation.

    Lambda is the smallest weight of the baseline for which the mixture is safe, whatever transitions and mean costs are
    true within their bounds. Against S-OPS it shows what robustness to an adversary costs: the proof of safety is the
    same, but the plan is greedy, and no regret is promised. Its sisters are StepMix and EpsMix (Li, Huang, Shen and
    Yang 2023, arXiv:2306.06265), which mix an optimistic policy with a known safe one for a reward that must stay above
    a threshold.

    Args:
        seed: Seed of the learner's coin.

    Examples:
        >>> import hedgerow as hr
        >>> world = hr.worlds.make("dope-factored")
        >>> learner = hr.field.SLP(world.view(), episodes=100, delta=0.01, baseline=hr.offline.slater(world))
        >>> learner.plan().notes["mixing_weight"] < 1.0
        True
    """

    kind = "s-lp"
    title = "S-LP"
    source = "this package: the plan of OptCMDP in S-OPS"
    bounded = True

    def _lp_rule(self) -> LPRule:
        return self._rule(self._optimistic_tables(), ROBUST)

    def guarantees(self) -> Ledger:
        """Return what is promised: safety whatever the losses; of the regret nothing is claimed."""
        proof = f"{cite('violation_hard')}, whose proof holds for any policy that is mixed so"
        return self._lp_ledger(self._safety(proof))
