"""OptCMDP (Efroni, Mannor and Pirotta 2020): the best policy of the most favourable world that may still be true."""

from __future__ import annotations

from typing import ClassVar

from hedgerow.errors import InvalidInput
from hedgerow.learners.api import Inputs
from hedgerow.learners.field.base import COSTS_ARE_DRAWS, clean_probability, confidence, stochastic_regret
from hedgerow.learners.field.lp import LPLearner
from hedgerow.learners.field.lp_kernels import ALONE, RADII, LPRule, layers_to_go
from hedgerow.learners.guarantees import Ledger, Promise
from hedgerow.model.view import View

SOURCE = "Efroni, Mannor and Pirotta 2020"
OPTIMISM = ("boxes", "bonus")


class OptCMDP(LPLearner):
    """OptCMDP: optimistic planning over policies and transitions together; soft constraints.

    Each plan minimises the lower bounds l_hat - xi of the loss over all transitions in the boxes, with the lower bounds
    max(0, g_hat - xi) of the costs below the thresholds. If there is no such policy, which happens off the clean event
    only, the least violating one is played. With `optimism="bonus"` the program is solved at the observed frequencies,
    and loss and costs get a bonus for what wrong transitions may change later. The costs are not clipped at 0 then,
    which would break optimism.

    Args:
        seed: Not used: the learner makes no random choices.
        optimism: "boxes" or "bonus".

    Raises:
        InvalidInput: If an argument is wrong.

    Examples:
        >>> import hedgerow as hr
        >>> learner = hr.field.OptCMDP(hr.worlds.make("lower-bound-2").view(), episodes=10, delta=0.05)
        >>> learner.plan().policy.probabilities.tolist()
        [1.0, 0.0]
    """

    kind: ClassVar[str] = "opt-cmdp"
    title: ClassVar[str] = "OptCMDP"
    source: ClassVar[str] = SOURCE
    recalled: ClassVar[str] = "the logarithm in the radius of costs, and the forms of the rates"
    inputs: ClassVar[Inputs] = Inputs()

    def __init__(
        self,
        view: View,
        episodes: int,
        delta: float,
        seed: int = 0,
        *,
        optimism: str = "boxes",
        replan: str = "episode",
        radii: str = "source",
    ) -> None:
        if optimism not in OPTIMISM:
            raise InvalidInput(f"optimism is {optimism!r}; choose 'boxes' or 'bonus'")
        self.optimism = optimism
        super().__init__(view, episodes, delta, seed, baseline=None, replan=replan, radii=radii)

    def _lp_rule(self) -> LPRule:
        bonus, ahead = self.optimism == "bonus", layers_to_go(self.layout)
        tables = self._tables(
            RADII, loss_radius=1.0, cost_radius=-1.0, loss_width=ahead if bonus else 0.0,
            cost_width=-ahead if bonus else 0.0, clip_costs=not bonus,
        )  # fmt: skip
        return self._rule(tables, ALONE, at_mean=bonus)

    def guarantees(self) -> Ledger:
        """Return what is promised: bounds of the regret and of the violation, both without a Slater condition."""
        rate = "sqrt(S^2 |A| L^4 T)"
        violation = Promise(
            "violation",
            f"the sum of all positive violations is O~({rate}), with S the size of the largest layer",
            clean_probability(self),
            f"{SOURCE}; the form is recalled",
        )
        regret = stochastic_regret(self, rate, f"{SOURCE}; the form is recalled")
        return self.as_seen(Ledger(self.title, (confidence(self), violation, regret), (COSTS_ARE_DRAWS,)))
