"""Safe-ETC: explore safely for T^(2/3) episodes, then commit to the best policy that is known to be safe."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

from numpy.typing import ArrayLike

from hedgerow.learners.api import Inputs, SafePolicy
from hedgerow.learners.field.base import BASELINE_IS_SAFE, COSTS_ARE_DRAWS, confidence, safety, stochastic_regret
from hedgerow.learners.field.lp import LPLearner
from hedgerow.learners.field.lp_kernels import SWITCH, LPRule, optimistic_tables
from hedgerow.learners.guarantees import Ledger
from hedgerow.model.view import View


class SafeETC(LPLearner):
    """Safe-ETC: explore-then-commit without a violation.

    For N0 = ceil(T^(2/3)) episodes the baseline plays with probability lambda_0 = max_i (L - alpha_i) / (L - beta_i),
    else the policy that may visit the least known pairs most. That is safe whatever it costs, because an episode costs
    at most L, or the ceiling of the view. Then the learner commits to the policy of least mean loss whose pessimistic
    costs (those of DOPE) respect the thresholds. If there is none it explores for N0 more episodes and tries again; if
    there still is none, it commits to the mixture that S-LP would play.

    Args:
        seed: Seed of the learner's coin.
        radii: "source" takes the radii of Efroni et al. (2020) and the pessimism of DOPE as printed, "hedgerow" the
            radii of S-OPS with preset="sharp" and the sharper pessimism.

    Raises:
        InvalidInput: If an argument is wrong, or if the baseline is not safe.

    Examples:
        >>> import hedgerow as hr
        >>> world = hr.worlds.make("dope-factored")
        >>> learner = hr.field.SafeETC(world.view(), episodes=1000, delta=0.01, baseline=hr.offline.slater(world))
        >>> learner.num_exploring, round(learner.plan().notes["mixing_weight"], 6)
        (100, 0.5)
    """

    kind: ClassVar[str] = "safe-etc"
    title: ClassVar[str] = "Safe-ETC"
    source: ClassVar[str] = "folklore, in the form of this package"
    inputs: ClassVar[Inputs] = Inputs(baseline=True)

    def __init__(
        self,
        view: View,
        episodes: int,
        delta: float,
        seed: int = 0,
        *,
        baseline: ArrayLike | SafePolicy | Any,
        baseline_costs: ArrayLike | Mapping[str, float] | None = None,
        radii: str = "source",
        on_refuted: str = "stay",
    ) -> None:
        super().__init__(
            view, episodes, delta, seed, radii=radii, baseline=baseline,
            baseline_costs=baseline_costs, on_refuted=on_refuted
        )  # fmt: skip

    @property
    def num_exploring(self) -> int:
        """N0: episodes before the first attempt to commit."""
        return math.ceil(math.pow(self.episodes, 2.0 / 3.0) - 1e-9)

    def _lp_rule(self) -> LPRule:
        tables = self._pessimistic_tables(sharp=self.radii == "hedgerow", loss_radius=0.0, loss_width=0.0)
        optimistic = optimistic_tables(self.statistics.box_rule.radii, self.layout)
        return self._rule(tables, SWITCH, late=optimistic, explore=self.num_exploring)

    def guarantees(self) -> Ledger:
        """Return what is promised: safety whatever the losses, and a regret if these are draws."""
        source = "pessimism of Bura et al. 2022, and a mixture that is safe whatever an episode costs"
        regret = stochastic_regret(self, "T^(2/3) / Delta^(2/3), other factors left out", "folklore, recalled")
        return self.as_seen(
            Ledger(self.title, (confidence(self), safety(self, source), regret), (COSTS_ARE_DRAWS, BASELINE_IS_SAFE))
        )
