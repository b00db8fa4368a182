"""OptCMDP (Efroni, Mannor and Pirotta 2020): the best policy of the most favourable world that may still be true."""

from __future__ import annotations

from typing import Any

from hedgerow.learners.api import DELTA, Inputs
from hedgerow.learners.field.base import chosen, clean_probability
from hedgerow.learners.field.lp import LPLearner
from hedgerow.learners.field.lp_kernels import ALONE, HALF_SPREAD, RADII, LPRule, layers_to_go
from hedgerow.learners.guarantees import Ledger, Promise
from hedgerow.model.view import View

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

    Examples:
        >>> import hedgerow as hr
        >>> learner = hr.field.OptCMDP(hr.worlds.make("lower-bound-2").view(), episodes=10, delta=0.05)
        >>> learner.plan().policy.probabilities.tolist()
        [1.0, 0.0]
    """

    kind = "opt-cmdp"
    title = "OptCMDP"
    source = "Efroni, Mannor and Pirotta 2020"
    recalled = "the logarithm in the radius of costs, and the forms of the rates"
    inputs = Inputs()

    def __init__(
        self, view: View | Any, episodes: int, delta: float = DELTA, seed: int = 0, *, optimism: str = "boxes",
        replan: str = "episode", sets: str = "source",
    ) -> None:  # fmt: skip
        self.optimism: str = chosen("optimism is", optimism, OPTIMISM)
        super().__init__(view, episodes, delta, seed, baseline=None, replan=replan, sets=sets)

    def _lp_rule(self) -> LPRule:
        bonus, ahead = self.optimism == "bonus", layers_to_go(self.layout)
        width = HALF_SPREAD if bonus and self.sets == "sharpest" else RADII
        tables = self._tables(
            width, loss_radius=1.0, cost_radius=-1.0, loss_width=ahead if bonus else 0.0,
            cost_width=-ahead if bonus else 0.0, clip_costs=not bonus,
        )  # fmt: skip
        return self._rule(tables, ALONE, at_mean=bonus)

    def guarantees(self) -> Ledger:
        """Return what is promised: bounds of the regret and of the violation, both without a Slater condition."""
        rate, proof = "sqrt(S^2 |A| L^4 T)", f"{self.source}; the form is recalled"
        violation = f"the sum of all positive violations is O~({rate}), with S the size of the largest layer"
        return self._lp_ledger(
            Promise("violation", violation, clean_probability(self), proof), self._regret(rate, proof)
        )
