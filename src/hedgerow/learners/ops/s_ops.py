"""S-OPS (paper, section 5): no violation in any episode, given one policy that is known to be strictly safe.

The same mirror descent as SV-OPS, but its policy pi_hat is only played with probability 1 - lambda; with probability
lambda the whole episode is left to the baseline. lambda is the smallest weight for which the mixture is safe whatever
the transitions and the mean costs are within their confidence sets (`mixing.py`). `baseline_costs` may be any upper
bounds of the true expected costs of the baseline: lambda grows with them, so that safety needs no exact knowledge.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from hedgerow._late import late
from hedgerow.checks import FloatArray
from hedgerow.confidence.premises import FALSE_ALARM
from hedgerow.learners.api import DELTA, Inputs, SafePolicy, checked_baseline_costs, safe_policy
from hedgerow.learners.base import exclusive
from hedgerow.learners.guarantees import Ledger, Promise, first_reason
from hedgerow.learners.ops.base import MirrorLearner
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
    tracking,
)
from hedgerow.learners.ops.settings import DEFAULT_PRESET, BaselineSwitches, Preset, confidence_void, names_of
from hedgerow.learners.ops.state import Core
from hedgerow.learners.ops.stay import stay_limit
from hedgerow.model.cmdp import view_of
from hedgerow.model.occupancy import checked_policy
from hedgerow.model.view import View
from hedgerow.paper import cite

REGRET_EVENTS = 13
"""Events of probability delta that the bound of the regret needs. The clean event has 5, and the proof of Theorem 4
adds 2 for the transitions of the played policies (Lemma transition_jin, in its terms 1 and 4), 1 for the squared
estimates (term 2), 2 for the transitions of the learner's policies (Lemma transition_gamma) and 1 for the radii (both
in its term 3), 1 for the estimates under the learner's policies (term 4) and 1 for those under the best one (term 5).
The paper has 11: it counts both lemmas on transitions as one event, for which it gives no reason.
"""


class BaselineLearner(MirrorLearner):
    """The base of learners that are given a safe policy, S-OPS and B-OPS, which document their arguments."""

    inputs = Inputs(baseline=True)
    mixes = True

    def __init__(
        self, view: View | Any, episodes: int | None, delta: float, preset: Preset, seed: int, *,
        baseline: ArrayLike | SafePolicy | Any, baseline_costs: ArrayLike | Mapping[str, float] | None,
        allow_no_margin: bool, transitions: ArrayLike | None, **switches: Any,
    ) -> None:  # fmt: skip
        policy, costs = safe_policy(baseline, baseline_costs, view)
        view = view_of(view)
        self.baseline = checked_policy(view.layout, policy)
        self.baseline_costs = checked_baseline_costs(view, costs, bool(allow_no_margin))
        self.allow_no_margin = bool(allow_no_margin)
        super().__init__(view, episodes, delta, preset, seed, transitions=transitions, **switches)

    def _first_core(self) -> Core:
        core = self._make_core(self._make_baseline(self.baseline[np.newaxis].copy(), self.baseline_costs.copy()))
        if self.settings.stay == "forecast":
            forecast = late("forecast.model:own_episodes")
            E = forecast(self.view, self.baseline_costs, self.episodes, self.delta, self.settings)
            core.state.stay.limit = stay_limit(self.layout, core.rule.rates.entropy, E)
        return core

    def _arguments(self) -> dict[str, Any]:
        return {**super()._arguments(), "allow_no_margin": self.allow_no_margin}


class SOPS(BaselineLearner):
    """S-OPS, Safe Optimistic Policy Search: no violation in any episode, given a policy that is safe.

    It learns like SV-OPS, but plays its policy only with probability 1 - lambda. With probability lambda the whole
    episode is left to the safe policy, the baseline. Lambda is the smallest weight for which the mixture is safe,
    whatever transitions and mean costs are true within their confidence sets (paper, section 5). Any upper bounds of
    the baseline's costs will do: lambda grows with them, so safety needs no exact knowledge.

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
        >>> learner = hr.SOPS(view, episodes=1000, delta=0.01, baseline=always_go)
        >>> plan = learner.plan()
        >>> round(plan.mixing_weight, 4), plan.branch             # at first it leaves two thirds to the baseline
        (0.6667, 'baseline')
    """

    kind = "s-ops"
    title = "S-OPS"
    switches = names_of(BaselineSwitches)

    def __init__(
        self, view: View | Any, episodes: int | None, delta: float = DELTA, preset: Preset = DEFAULT_PRESET,
        seed: int = 0, *, baseline: ArrayLike | SafePolicy | Any,
        baseline_costs: ArrayLike | Mapping[str, float] | None = None, allow_no_margin: bool = False,
        transitions: ArrayLike | None = None, **switches: Unpack[BaselineSwitches],
    ) -> None:  # fmt: skip
        super().__init__(
            view, episodes, delta, preset, seed, baseline=baseline, baseline_costs=baseline_costs,
            allow_no_margin=allow_no_margin, transitions=transitions, **switches,
        )  # fmt: skip

    @property
    def first_mixing(self) -> float:
        """The largest weight lambda_0 of the baseline that feasible projections can lead to.

        It is the largest (most - threshold) / (most - baseline cost) of any constraint, where most is what an episode
        can cost.
        """
        return largest_mixing(self.view, self.baseline_costs)

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
            cite("violation_hard"),
            confidence_void(self.settings),
        )
        mixing = Promise(
            "mixing",
            f"the weight of the baseline is at most lambda_0 = {self.first_mixing:.6g} while projections are feasible"
            f"{' and it does not stay' if stay_events(self) else ''}",
            1.0,
            f"{cite('violation_hard')}, proof",
        )
        rate = regret_statement(self, "Psi L^3 |X| sqrt(|A| T ln(T|X||A|m/delta))")
        regret = Promise(
            "regret",
            f"the regret is O({rate}), Psi = max_i 1 / min(alpha_i - beta_i, (alpha_i - beta_i)^2){rates_note(self)}"
            f"{stay_note(self)}",
            self._budget.sure(REGRET_EVENTS + FALSE_ALARM + stay_events(self)),
            cite("reg_hard"),
            first_reason(confidence, no_margin, accuracy, stay_void(self)),
        )
        promises = (*shared_promises(self), safety, mixing, regret, *tracking(self, regret))
        return self._ledger(*promises, assumptions=assumptions(self))


def largest_mixing(view: View, beta: FloatArray) -> float:
    """lambda_0 of the baseline costs beta (m,)."""
    alpha, most = view.thresholds, view.ceilings
    return float(max([(most[i] - alpha[i]) / (most[i] - beta[i]) for i in view.binding], default=0.0))
