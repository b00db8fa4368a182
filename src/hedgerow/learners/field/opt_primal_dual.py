"""OptPrimalDual: policy and multipliers play against each other on optimistic estimates (Efroni et al. 2020)."""

from __future__ import annotations

from collections.abc import Mapping
from math import log, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import FloatArray, kind_of, real_number
from hedgerow.errors import InvalidInput
from hedgerow.learners.field.backward import make_centres
from hedgerow.learners.field.base import FieldLearner
from hedgerow.learners.field.primal_dual import make_primal_dual, primal_dual_step, set_bonuses
from hedgerow.learners.ledger import INDEPENDENT_LOSSES, Ledger, Promise, first_reason
from hedgerow.learners.told import Told
from hedgerow.model.episode import Episode
from hedgerow.model.view import View

ETA_POWER, TAU_POWER, DELAY = 0.53, 0.4, 3
TOL_SUM = 1e-9
"""Rounding that a sum over episodes may have"""
"""eta_t = (t + DELAY)^-ETA_POWER and tau_t = (t + DELAY)^-TAU_POWER, as in the published experiment."""


class OptPrimalDual(FieldLearner):
    """OptPrimalDual-CMDP: small steps of policy and multipliers, no program to solve.

    Each episode evaluates the policy with optimistic losses and costs, truncated at 0 in every step, and takes one step
    of the policy and one of the multipliers (Efroni, Mannor and Pirotta 2020). Cheap episodes make up for unsafe ones:
    single episodes violate constraints for ever.

    With D = L / slater the steps are eta = sqrt(2 ln A / (L^2 (1 + m D)^2 T)) and D / (L sqrt(m T)), as in public code
    for m = 1; the form for m > 1 is ours. The bonus of a pair in layer k is xi + (L - k) sum_y epsilon(y).

    `regularised=True` is UOpt-RPGPD (Kitamura et al. 2024): entropy and multipliers are regularised with weight
    tau_t = (t + 3)^-0.4, all steps are (t + 3)^-0.53. It needs no `slater`. With radii="source" its bonus is the one of
    the published experiment, phi sum_y sqrt(P_hat(y)) + 5 phi^2, and phi for means, which that experiment knows.

    Args:
        view: What the learner may know of the world: `world.view()`.
        episodes: The number T of episodes that it will play.
        delta: How unsure the bounds may be, in (0, 1).
        seed: Not used: the learner makes no random choice of its own.
        slater: The largest margin rho that all constraints can have at once, more than 0: `hr.offline.slater(world)`
            computes it. Not needed without constraints, nor with `regularised=True`.
        radii: "source" or "hedgerow".
        regularised: Whether to play UOpt-RPGPD.
        bonus_scale: Factor on the bonuses, in [0, 1]. Published experiments take 0.001. Below 1 nothing is promised.

    Raises:
        InvalidInput: If an argument is wrong, or if `slater` is needed and missing.

    Examples:
        >>> import hedgerow as hr
        >>> world = hr.catalogue.make("lower-bound-2")
        >>> rho = hr.offline.slater(world).margin
        >>> learner = hr.field.OptPrimalDual(world.view(), episodes=100, delta=0.05, slater=rho)
        >>> float(hr.simulate(world, None, learner, progress=False)["multiplier"][0])
        0.0
    """

    kind: ClassVar[str] = "opt-primal-dual"
    title: ClassVar[str] = "OptPrimalDual"
    source: ClassVar[str] = "Efroni, Mannor and Pirotta 2020; regularised: Kitamura et al. 2024"
    recalled: ClassVar[str] = "the rate of regret and violation; steps and bonus are those of public code"
    told: ClassVar[Told] = Told(slater=True)
    changing: ClassVar[tuple[str, ...]] = ("own_policy", "log_policy", "multipliers")

    def __init__(
        self,
        view: View,
        episodes: int,
        delta: float,
        seed: int = 0,
        *,
        slater: float | None = None,
        radii: str = "source",
        regularised: bool = False,
        bonus_scale: float = 1.0,
    ) -> None:
        if not isinstance(regularised, bool | np.bool_):
            raise InvalidInput(f"regularised must be True or False, not {kind_of(regularised)}")
        scale = real_number("bonus_scale", bonus_scale, 0.0, 1.0)
        bounded = isinstance(view, View) and view.num_constraints > 0 and not regularised
        rho = _margin(slater, view.layout.steps) if bounded else None
        own: dict[str, float | None] = {"slater": rho, "regularised": bool(regularised), "bonus_scale": scale}
        super().__init__(view, episodes, delta, seed, radii=radii, **own)
        self.regularised, L, m = bool(regularised), self.layout.steps, self.view.num_constraints
        dual_bound = 0.0 if rho is None else L / rho
        assert self.seen is not None
        self._centres = make_centres(self.seen)
        self._pd = make_primal_dual(self._centres, self.view.thresholds, self.own_policy)
        self.log_policy: FloatArray = self._pd.log_policy
        self.multipliers: FloatArray = self._pd.multipliers
        steps, A = self._pd.steps, self.layout.num_actions
        steps.bonus_scale = scale
        if self.regularised:
            vars(self)["told"] = Told()  # not rho, unlike the class
            if radii == "source":
                steps.phi_log = log(48.0 * max(self.layout.layer_sizes) ** 2 * A * L) - log(self.delta)
        else:
            steps.eta = sqrt(2.0 * log(A) / self.episodes) / (L * (1.0 + m * dual_bound))
            steps.dual = dual_bound / (L * sqrt(max(1, m) * self.episodes))
        set_bonuses(self._centres, self._pd)

    def _learn(self, episode: Episode) -> None:
        steps = self._pd.steps
        if self.regularised:
            steps.eta = steps.dual = float(self.episode - 1 + DELAY) ** -ETA_POWER
            steps.tau = float(self.episode - 1 + DELAY) ** -TAU_POWER
        primal_dual_step(self._centres, self._changed_rows(episode), self._pd)

    def _notes(self) -> Mapping[str, float]:
        return {"multiplier": float(self.multipliers.sum())}

    def _restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        super()._restore(state)
        if self.multipliers.size and self.multipliers.min() < 0.0:
            raise InvalidInput(f"this is no state of {self.title}: a multiplier is negative")
        # An episode adds at most L times its step, which is at most 1 for the regularised kind.
        most = self.layout.steps * self.episode * (1.0 if self.regularised else self._pd.steps.dual)
        if np.any(self.multipliers > most * (1.0 + TOL_SUM)):
            raise InvalidInput(f"this is no state of {self.title}: {self.episode} episodes make no such multiplier")
        if not np.allclose(np.exp(self.log_policy), self.own_policy, rtol=0.0, atol=1e-12):
            raise InvalidInput(f"this is no state of {self.title}: log_policy is not the logarithm of its policy")
        assert self.seen is not None
        self._centres = make_centres(self.seen)
        set_bonuses(self._centres, self._pd)

    def _sure(self) -> float:
        return max(0.0, 1.0 - 5.0 * self.delta)

    def guarantees(self) -> Ledger:
        """Return what is promised: regret and violation of order sqrt(T), the latter with cancellation."""
        void = first_reason(
            "nothing is proved for the bonus and the steps of the published experiment" * self.regularised,
            "bonus_scale is below 1" * (self._pd.steps.bonus_scale < 1.0),
        )
        sure = 0.0 if void else self._sure()
        theorem = "Efroni, Mannor and Pirotta 2020, as recalled"
        regret = "regret grows as sqrt(T), up to logarithms"
        violation = (
            "the sum of all excess costs grows as sqrt(T), up to logarithms; cheap episodes make up for unsafe ones"
        )
        title = f"{self.title}, regularised" if self.regularised else self.title
        return Ledger(
            title,
            (
                Promise("violation", violation, sure, theorem, void, INDEPENDENT_LOSSES),
                Promise("regret", regret, sure, theorem, void, INDEPENDENT_LOSSES),
            ),
            () if self.view.num_constraints == 0 or self.regularised else ("slater is at most the largest margin",),
        )


def _margin(slater: object, steps: int) -> float:
    """rho, if it is one."""
    if slater is None:
        raise InvalidInput("slater is missing: the largest margin rho, such as hr.offline.slater(world).margin")
    rho = real_number("slater", slater, 0.0, float(steps))
    if rho == 0.0:
        raise InvalidInput("slater is 0: the multipliers have no bound where no policy has a margin; see regularised")
    return rho
