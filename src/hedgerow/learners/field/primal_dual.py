"""The kernel of OptPrimalDual: one optimistic evaluation of the policy, one step of it, one step of the multipliers.

    Q_i(x,a) = max(floor_i, mean_i(x,a) - b_i(x,a) + P_hat V_i),   V_i(x) = sum_a pi(a|x) Q_i(x,a)      costs i < m
    Q_m(x,a) likewise of the loss,                                 V_m(x) = sum_a pi(a|x) (Q_m(x,a) + tau ln pi(a|x))
    pi(a|x) <- pi(a|x)^(1 - eta tau) exp(-eta (Q_m + sum_i lambda_i Q_i)), normalised
    lambda_i <- [(1 - dual tau) lambda_i + dual (V_i(x_0) - alpha_i)]^+

with floor 0 for costs and -tau ln A (L - k) for the loss, whose value an entropy bonus may lower so far. Both steps use
the old policy and the old multipliers.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import e, log, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import FloatArray, IntArray, real_number, type_name
from hedgerow.compiling.bundles import Bundle, Record
from hedgerow.compiling.kernels import kernel
from hedgerow.errors import InvalidInput
from hedgerow.learners.api import Inputs
from hedgerow.learners.field.backward import Centres, centre, expected_next, make_centres, softmax
from hedgerow.learners.field.base import FieldLearner
from hedgerow.learners.guarantees import INDEPENDENT_LOSSES, Ledger, Promise, first_reason
from hedgerow.model.episode import Episode
from hedgerow.model.kernel_layout import triples_of
from hedgerow.model.view import View


class DualSteps(Record):
    """The numbers of one update."""

    eta: float
    """The step of the policy"""
    tau: float
    """The weight of the entropy; 0 without it"""
    dual: float
    """The step of the multipliers"""
    bonus_scale: float
    """Factor on all bonuses"""
    phi_log: float
    """ln(48 S^2 A L / delta) for the bonuses of UOpt-RPGPD; 0 for those from the radii"""


class PrimalDual(Bundle):
    """What the update changes, and its buffers."""

    steps: DualSteps
    thresholds: FloatArray
    """(m,)"""
    multipliers: FloatArray
    """lambda (m,)"""
    log_policy: FloatArray
    """(num_rows,)"""
    policy: FloatArray
    """(num_rows,)"""
    bonus: FloatArray
    """b (num_rows, m + 1), without the factor"""
    q: FloatArray
    """Q (num_rows, m + 1)"""
    values: FloatArray
    """V (num_states, m + 1)"""


@kernel
def primal_dual_step(centres: Centres, rows: IntArray, pd: PrimalDual) -> None:
    """Learn from an episode that visited `rows`, which the counts have already."""
    centre(centres, rows)
    for row in rows:
        set_bonus(centres, row, pd)
    _evaluate(centres, pd)
    index, steps, m = centres.index, pd.steps, len(pd.multipliers)
    for x in range(len(pd.policy) // index.num_actions):
        for r in range(x * index.num_actions, (x + 1) * index.num_actions):
            total = pd.q[r, m]
            for i in range(m):
                total += pd.multipliers[i] * pd.q[r, i]
            pd.log_policy[r] = (1.0 - steps.eta * steps.tau) * pd.log_policy[r] - steps.eta * total
        softmax(index, x, pd.log_policy, pd.policy)
    for i in range(m):
        kept = (1.0 - steps.dual * steps.tau) * pd.multipliers[i]
        pd.multipliers[i] = max(0.0, kept + steps.dual * (pd.values[0, i] - pd.thresholds[i]))


@kernel
def set_bonuses(centres: Centres, pd: PrimalDual) -> None:
    """b of all rows."""
    for row in range(len(pd.policy)):
        set_bonus(centres, row, pd)


@kernel
def set_bonus(centres: Centres, row: int, pd: PrimalDual) -> None:
    """b of a row: xi + (L - k) spread, or phi + sum_y sqrt(P_hat) phi + 5 phi^2."""
    moves = centres.steps_left[row] * centres.spread[row]
    if pd.steps.phi_log > 0.0:
        moves = 0.0
        if centres.rule.uncertain[row]:
            start, stop = triples_of(centres.index, row)
            for j in range(start, stop):
                moves += sqrt(centres.p_hat[j])
            phi = _phi(pd.steps.phi_log, centres.counts.num_visits[row])
            moves = moves * phi + 5.0 * phi * phi
    for i in range(pd.bonus.shape[1]):
        mean = centres.radii[row, i]
        if pd.steps.phi_log > 0.0 and centres.rule.unknown_costs[row, i]:
            counts = centres.counts
            mean = _phi(pd.steps.phi_log, counts.num_costs[row] - counts.unknown_costs[row, i])
        pd.bonus[row, i] = mean + moves


@kernel
def _phi(phi_log: float, num: int) -> float:
    """sqrt((2 ln ln max(2n, e) + 2 phi_log) / max(1, n)), Kitamura et al. 2024."""
    return sqrt((2.0 * log(log(max(2.0 * num, e))) + 2.0 * phi_log) / max(1, num))


@kernel
def _evaluate(centres: Centres, pd: PrimalDual) -> None:
    index, steps, columns = centres.index, pd.steps, pd.q.shape[1]
    lowest = -steps.tau * log(index.num_actions)
    for x in range(len(pd.policy) // index.num_actions - 1, -1, -1):
        for i in range(columns):
            floor_per_step = lowest if i == columns - 1 else 0.0
            value = 0.0
            for r in range(x * index.num_actions, (x + 1) * index.num_actions):
                ahead = expected_next(index, centres.p_hat, pd.values, r, i)
                optimistic = centres.means[r, i] - steps.bonus_scale * pd.bonus[r, i] + ahead
                q = max(floor_per_step * centres.steps_left[r], optimistic)
                pd.q[r, i] = q
                if i == columns - 1 and steps.tau > 0.0:
                    q += steps.tau * pd.log_policy[r]
                value += pd.policy[r] * q
            pd.values[x, i] = value


def make_primal_dual(centres: Centres, thresholds: FloatArray, policy: FloatArray) -> PrimalDual:
    """Before the first episode: `policy` (num_rows,), which is kept up to date, and no multipliers yet."""
    rows, columns = centres.means.shape
    num_states = int(centres.index.state_start[-1])
    return PrimalDual(
        steps=DualSteps(),
        thresholds=thresholds.copy(),
        multipliers=np.zeros(columns - 1),
        log_policy=np.log(policy),
        policy=policy,
        bonus=np.zeros((rows, columns)),
        q=np.zeros((rows, columns)),
        values=np.zeros((num_states, columns)),
    )


# --------------------------------------------------------------------------------------------------------------------
# OptPrimalDual: policy and multipliers play against each other on optimistic estimates (Efroni et al. 2020).


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
        delta: How unsure the bounds may be, in (0, 1).
        seed: Not used: the learner makes no random choices.
        slater: The largest margin rho that all constraints can have at once, more than 0: `hr.offline.slater(world)`
            computes it. Not needed without constraints, nor with `regularised=True`.
        regularised: Whether to play UOpt-RPGPD.
        bonus_scale: Factor on the bonuses, in [0, 1]. Published experiments take 0.001. Below 1 nothing is promised.

    Raises:
        InvalidInput: If an argument is wrong, or if `slater` is needed and missing.

    Examples:
        >>> import hedgerow as hr
        >>> world = hr.worlds.make("lower-bound-2")
        >>> rho = hr.offline.slater(world).margin
        >>> learner = hr.field.OptPrimalDual(world.view(), episodes=100, delta=0.05, slater=rho)
        >>> float(hr.simulate(world, None, learner, progress=False)["multiplier"][0])
        0.0
    """

    kind: ClassVar[str] = "opt-primal-dual"
    title: ClassVar[str] = "OptPrimalDual"
    source: ClassVar[str] = "Efroni, Mannor and Pirotta 2020; regularised: Kitamura et al. 2024"
    recalled: ClassVar[str] = "the rate of regret and violation; steps and bonus are those of public code"
    inputs: ClassVar[Inputs] = Inputs(slater=True)
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
            raise InvalidInput(f"regularised must be True or False, not {type_name(regularised)}")
        scale = real_number("bonus_scale", bonus_scale, 0.0, 1.0)
        bounded = isinstance(view, View) and view.num_constraints > 0 and not regularised
        rho = _margin(slater, view.layout.steps) if bounded else None
        super().__init__(view, episodes, delta, seed, radii=radii)
        self.slater, self.bonus_scale = rho, scale
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
            vars(self)["inputs"] = Inputs()  # not rho, unlike the class
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

    def _restore(self, state: dict[str, NDArray[Any]]) -> None:
        super()._restore(state)
        if self.multipliers.size and self.multipliers.min() < 0.0:
            raise InvalidInput("a multiplier is negative")
        # An episode adds at most L times its step, which is at most 1 for the regularised kind.
        most = self.layout.steps * self.episode * (1.0 if self.regularised else self._pd.steps.dual)
        if np.any(self.multipliers > most * (1.0 + TOL_SUM)):
            raise InvalidInput(f"{self.episode} episodes make no such multiplier")
        if not np.allclose(np.exp(self.log_policy), self.own_policy, rtol=0.0, atol=1e-12):
            raise InvalidInput("log_policy is not the logarithm of its policy")
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
        return self.as_seen(
            Ledger(
                title,
                (
                    Promise("violation", violation, sure, theorem, void, INDEPENDENT_LOSSES),
                    Promise("regret", regret, sure, theorem, void, INDEPENDENT_LOSSES),
                ),
                () if self.view.num_constraints == 0 or self.regularised else ("slater is at most the largest margin",),
            )
        )


def _margin(slater: object, steps: int) -> float:
    """rho, if it is one."""
    if slater is None:
        raise InvalidInput("slater is missing: the largest margin rho, such as hr.offline.slater(world).margin")
    rho = real_number("slater", slater, 0.0, float(steps))
    if rho == 0.0:
        raise InvalidInput("slater is 0: the multipliers have no bound where no policy has a margin; see regularised")
    return rho
