"""Safe-ETC: explore safely for T^(2/3) episodes, then commit to the best policy that is known to be safe."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from numpy.typing import ArrayLike

from hedgerow.confidence.sets import SOURCE
from hedgerow.learners.api import DELTA, SafePolicy
from hedgerow.learners.field.lp import LPLearner
from hedgerow.learners.field.lp_kernels import SWITCH, LPRule
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
        sets: "source" takes the radii of Efroni et al. (2020) and the pessimism of DOPE as printed; "paper", "sharp"
            and "sharpest" the sets of S-OPS with that preset and the sharper pessimism. With "sharpest" the weight of
            the baseline while exploring follows from the bounds of what is explored, as that of S-LP does.

    Examples:
        >>> import hedgerow as hr
        >>> world = hr.worlds.make("dope-factored")
        >>> learner = hr.field.SafeETC(world.view(), episodes=1000, delta=0.01, baseline=hr.offline.slater(world))
        >>> learner.num_exploring, round(learner.plan().notes["mixing_weight"], 6)
        (100, 0.5)
    """

    kind = "safe-etc"
    title = "Safe-ETC"
    source = "folklore, in the form of this package"
    bounded = True

    def __init__(
        self, view: View | Any, episodes: int, delta: float = DELTA, seed: int = 0, *,
        baseline: ArrayLike | SafePolicy | Any, baseline_costs: ArrayLike | Mapping[str, float] | None = None,
        sets: str = "source", on_refuted: str = "stay",
    ) -> None:  # fmt: skip
        super().__init__(
            view, episodes, delta, seed, sets=sets, baseline=baseline, baseline_costs=baseline_costs,
            on_refuted=on_refuted,
        )  # fmt: skip

    @property
    def num_exploring(self) -> int:
        """N0: episodes before the first attempt to commit."""
        return math.ceil(math.pow(self.episodes, 2.0 / 3.0) - 1e-9)

    def _lp_rule(self) -> LPRule:
        tables = self._pessimistic_tables(sharp=self.sets != SOURCE, loss_radius=0.0, loss_width=0.0)
        return self._rule(tables, SWITCH, late=self._optimistic_tables(), explore=self.num_exploring)

    def guarantees(self) -> Ledger:
        """Return what is promised: safety whatever the losses, and a regret if these are draws."""
        source = "pessimism of Bura et al. 2022, and a mixture that is safe whatever an episode costs"
        regret = self._regret("T^(2/3) / Delta^(2/3), other factors left out", "folklore, recalled")
        return self._lp_ledger(self._safety(source), regret)
