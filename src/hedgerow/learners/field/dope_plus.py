"""DOPE+ (Yu et al. 2025), in a variant of ours: DOPE with pessimism by the law of total variance.

The published estimators of costs and rewards could not be read, only that they come from a law of total variance and
from a bound that the algorithm may optimise. What follows is our derivation in that spirit.

Let P be the true transitions and P' those of the plan, both in the boxes; V the true values of the costs c of the
policy, d = (P - P') V in each row, w = hi - lo, h = L - k - 1 in layer k. Means are over episodes of the policy in P'.

    (1)  |d| <= h min(1, 1/2 sum_y w(y))                                       mass that moves gains h at most
    (2)  |d| <= sum_y min(w(y)^2 / (2 eta lo(y)), h w(y)) + eta/2 Var_P'(V)    for every eta > 0

(2): d = sum_y (P - P')(y) (V(y) - P'V). Where the second term of the minimum is the smaller one, |V - P'V| <= h; the
sum over the others is at most sqrt(sum w^2 / P') sqrt(Var_P'(V)) by Cauchy and Schwarz, P' >= lo, and
2 a b <= a^2 / eta + eta b^2. Let u be the smaller of (1) and of (2) without its variance, and D the mean of sum_k |d|.
By telescoping, and Jensen's inequality for the actions,

    mean of sum_k Var_P'(V_{k+1})  <=  mean of sum_k (Q^2 - (P'V)^2)  =  mean of sum_k (c + d)(Q + P'V)
                                   <=  (2 L - 1) (mean of sum_k c  +  D),           Q = c + PV = P'V + c + d

With eta = 2 theta / (2 L - 1), D <= mean of sum_k u + theta (mean of sum_k c + D). So the true cost is at most

    mean of sum_k c  +  D   <=   (mean of sum_k (c + u)) / (1 - theta)                  for every theta in [0, 1)

which is linear in the occupancy of the plan: the program asks sum q' (UCB + u) <= (1 - theta) alpha. All theta are
valid at once; for each plan the learner takes the one of 0, 1/4, 1/8, ... under which its last policy looks least
costly. theta = 0 is the sharper DOPE. Others pay where an episode costs little for its length: for S successors per row
and boxes of width w, (1) adds up to about w S L^2 / 4, and (2) with the best theta to w S L sqrt(2 C), C the cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import ArrayLike, NDArray

from hedgerow.checks import FloatArray
from hedgerow.errors import InvalidInput
from hedgerow.learners.api import DELTA, SafePolicy
from hedgerow.learners.field.loop import FieldCore
from hedgerow.learners.field.lp import LPLearner
from hedgerow.learners.field.lp_kernels import (
    SWITCH,
    THETAS,
    VARIANCE,
    LPCore,
    LPRule,
    layers_to_go,
    set_room,
)
from hedgerow.learners.guarantees import INDEPENDENT_LOSSES, Ledger, Promise
from hedgerow.model.view import View


class DOPEPlus(LPLearner):
    """DOPE+, a variant: DOPE with pessimism by the law of total variance, and the bonus that it needs.

    A policy plays if its pessimistic costs respect the thresholds, else the baseline. In layer k, with h = L - k - 1
    and w = hi - lo for each successor, the program has the costs UCB + u, the thresholds (1 - theta) alpha and the loss
    l_hat - xi - (L / Delta) (2 xi + u), where

        u = min(h, h/2 sum w, sum min(h w, (2L - 1) w^2 / (4 theta lo)))

    and theta is chosen anew for each plan, among 0 and 1/4, 1/8, ...: the one under which the policy of the last plan
    looks least costly. It is safe for every theta: the true cost of a policy is at most its planned cost with UCB + u,
    divided by 1 - theta, because the summed variances of its values are at most (2L - 1) times its costs plus what
    wrong transitions add to them (law of total variance). The bonus of the loss makes up for what pessimism forbids.

    The source, Yu, Lee, Overman and Lee (2025), announces such estimators and a regret of order L^2.5 instead of L^3.
    We could read its abstract, not its formulas: the ones here are ours, and that regret is not proved for them.

    Args:
        seed: Seed of the learner's coin, which decides nothing here: the weight of the baseline is 0 or 1.

    Examples:
        >>> import hedgerow as hr
        >>> world = hr.worlds.make("dope-factored")
        >>> learner = hr.field.DOPEPlus(world.view(), episodes=100, delta=0.01, baseline=hr.offline.slater(world))
        >>> learner.plan().notes["mixing_weight"], learner.theta.tolist()
        (1.0, [0.0])
    """

    kind = "dope-plus"
    title = "DOPE+ (variant)"
    source = "a variant of ours after Yu, Lee, Overman and Lee 2025"
    recalled = "only the abstract was read: the estimators are derived here, and the published regret is not claimed"
    changing = (*LPLearner.changing, "theta")

    def __init__(
        self, view: View | Any, episodes: int, delta: float = DELTA, seed: int = 0, *,
        baseline: ArrayLike | SafePolicy | Any, baseline_costs: ArrayLike | Mapping[str, float] | None = None,
        replan: str = "episode", sets: str = "source", on_refuted: str = "stay",
    ) -> None:  # fmt: skip
        super().__init__(
            view, episodes, delta, seed, replan=replan, sets=sets, baseline=baseline, baseline_costs=baseline_costs,
            on_refuted=on_refuted,
        )  # fmt: skip

    @property
    def theta(self) -> FloatArray:
        """(1,): theta of the last plan."""
        return self.core.rule.tables.theta

    def _lp_rule(self) -> LPRule:
        factor, ahead = self.layout.steps / self.margin, layers_to_go(self.layout)
        tables = self._tables(
            VARIANCE, loss_radius=1.0 + 2.0 * factor, cost_radius=1.0, loss_width=factor * ahead, cost_width=ahead,
            clip_costs=True,
        )  # fmt: skip
        return self._rule(tables, SWITCH, tunes=True)

    def _make_core(self) -> LPCore:
        """The core of LP learners, with the theta of the last plan."""
        before = 0.0 if isinstance(self.core, FieldCore) else self.theta[0]  # none yet
        core = super()._make_core()
        core.rule.tables.theta[0] = before
        set_room(core)
        return core

    def _restore(self, state: dict[str, NDArray[Any]]) -> None:
        super()._restore(state)
        allowed = (0.0, *(0.5 ** (trial + 1) for trial in range(1, THETAS + 1)))
        if self.theta[0] not in allowed:
            raise InvalidInput(f"theta is {float(self.theta[0])!r}, which is none of its choices")

    def guarantees(self) -> Ledger:
        """Return what is promised: safety whatever the losses; of the published regret nothing is claimed."""
        safe = self._safety("law of total variance on the confidence sets, derived here")
        what = "the regret is O~(L^2.5 S sqrt(|A| T) / Delta) for losses that are independent draws"
        void = "it is proved for the estimators of its source, and ours are others"
        return self._lp_ledger(safe, Promise("regret", what, 0.0, "Yu et al. 2025", void, INDEPENDENT_LOSSES))
