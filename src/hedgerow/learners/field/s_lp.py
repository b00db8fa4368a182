"""S-LP: S-OPS with a greedy linear program in the place of its mirror step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from numpy.typing import ArrayLike

from hedgerow.learners.api import Inputs, SafePolicy
from hedgerow.learners.field.base import BASELINE_IS_SAFE, COSTS_ARE_DRAWS, confidence, safety
from hedgerow.learners.field.lp import LPLearner
from hedgerow.learners.field.lp_kernels import ROBUST, LPRule, optimistic_tables
from hedgerow.learners.guarantees import Ledger
from hedgerow.model.view import View
from hedgerow.paper import cite


class SLP(LPLearner):
    """S-LP: the optimistic plan of OptCMDP, mixed with the baseline as S-OPS mixes; no violation.

    Lambda is the smallest weight of the baseline for which the mixture is safe, whatever transitions and mean costs are
    true within their bounds. Against S-OPS it shows what robustness to an adversary costs: the proof of safety is the
    same, but the plan is greedy, and no regret is promised.

    Args:
        view: What the learner may know of the world: `world.view()`.
        episodes: The number T of episodes that it will play.
        delta: How unsure the promises may be, in (0, 1).
        seed: Seed of the learner's coin.
        baseline: A policy that is safe, as a `Policy`, an array (num_rows,) or a table (states, actions); or an object
            that has `.policy` and `.costs`, such as `SafePolicy`, `world.baseline` or `hr.offline.slater(world)`.
        baseline_costs: (m,) upper bounds of the expected costs of the baseline, or a mapping {constraint name: bound};
            None takes `baseline.costs`.
        replan: "episode", or "epoch" to plan only when the visits of some pair have doubled.
        radii: "source" takes the radii of Efroni et al. (2020), "hedgerow" those of S-OPS with preset="sharp".
        on_refuted: What to do when its own observations refute what it was told: "stay" warns and leaves every further
            episode to the baseline, "warn" warns and goes on, "raise" raises a `PremiseError` and then stays.

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
    told: ClassVar[Inputs] = Inputs(baseline=True)

    def __init__(
        self,
        view: View,
        episodes: int,
        delta: float,
        seed: int = 0,
        *,
        baseline: ArrayLike | SafePolicy | Any,
        baseline_costs: ArrayLike | Mapping[str, float] | None = None,
        replan: str = "episode",
        radii: str = "source",
        on_refuted: str = "stay",
    ) -> None:
        super().__init__(
            view, episodes, delta, seed, replan=replan, radii=radii, baseline=baseline,
            baseline_costs=baseline_costs, on_refuted=on_refuted
        )  # fmt: skip

    def _lp_rule(self) -> LPRule:
        tables = optimistic_tables(self.statistics.box_rule.radii, self.layout)
        return LPRule(
            tables, tables, at_mean=False, tests_baseline=False, mixing=ROBUST, epochs=self.replan == "epoch", warmup=0,
            explore=0,
        )  # fmt: skip

    def guarantees(self) -> Ledger:
        """Return what is promised: safety whatever the losses; of the regret nothing is claimed."""
        safe = safety(self, f"{cite('violation_hard')}, whose proof holds for any policy that is mixed so")
        return self.as_seen(Ledger(self.title, (confidence(self), safe), (COSTS_ARE_DRAWS, BASELINE_IS_SAFE)))
