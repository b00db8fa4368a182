"""OptPrimalDual: policy and multipliers play against each other on optimistic estimates (Efroni et al. 2020).

Each episode brings one optimistic evaluation of the policy, one step of it, and one step of the multipliers:

    Q_i(x,a) = max(floor_i, mean_i(x,a) - b_i(x,a) + P_hat V_i),   V_i(x) = sum_a pi(a|x) Q_i(x,a)      costs i < m
    Q_m(x,a) likewise of the loss,                                 V_m(x) = sum_a pi(a|x) (Q_m(x,a) + tau ln pi(a|x))
    pi(a|x) <- pi(a|x)^(1 - eta tau) exp(-eta (Q_m + sum_i lambda_i Q_i)), normalised
    lambda_i <- [(1 - dual tau) lambda_i + dual (V_i(x_0) - alpha_i)]^+

with floor 0 for costs and -tau ln A (L - k) for the loss, whose value an entropy bonus may lower so far. Both steps use
the old policy and the old multipliers.
"""

from __future__ import annotations

from math import e, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import FloatArray, IntArray, real_number, type_name
from hedgerow.compiling.bundles import Bundle, Record
from hedgerow.compiling.kernels import kernel
from hedgerow.errors import InvalidInput
from hedgerow.learners.api import DELTA, Inputs
from hedgerow.learners.field.backward import Centres, centre, expected_next, make_centres, softmax
from hedgerow.learners.field.base import FieldLearner
from hedgerow.learners.field.loop import (
    FieldCore,
    FieldRun,
    check_sets,
    close_episode,
    count_played,
    end_episode,
    play_episode,
)
from hedgerow.learners.guarantees import INDEPENDENT_LOSSES, Ledger, Promise, first_reason
from hedgerow.learners.kernels import Losses
from hedgerow.model.cmdp import view_of
from hedgerow.model.episode import Episode
from hedgerow.model.kernel_layout import triples_of
from hedgerow.model.random_streams import Stream
from hedgerow.model.view import View

ETA_POWER, TAU_POWER, DELAY = 0.53, 0.4, 3
"""eta_t = (t + DELAY)^-ETA_POWER and tau_t = (t + DELAY)^-TAU_POWER, as in the published experiment."""


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

    field: FieldCore
    centres: Centres
    regularised: bool
    """Whether the steps follow the number of the episode (UOpt-RPGPD)"""
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
def run_block(pd: PrimalDual, run: FieldRun, given: Losses, first: int, coin: Stream) -> tuple[int, bool]:
    """The loop of `loop.py`: how many of the block are done, and that the last of them is closed."""
    core, at = pd.field, pd.centres
    for i in range(first, len(given.pattern)):
        if not play_episode(core, run, given, i, coin):
            return i, True
        count_played(at.sets, at.losses, core, run)
        end_episode(core, run)
        primal_dual_step(pd, run.path.rows)
        check_sets(at.sets, run)
        if close_episode(core, run):
            return i + 1, True
    return len(given.pattern), True


@kernel
def primal_dual_step(pd: PrimalDual, rows: IntArray) -> None:
    """Learn from an episode that visited `rows`, which the counts have already."""
    centres, index, steps, m = pd.centres, pd.centres.index, pd.steps, len(pd.multipliers)
    if pd.regularised:
        t = float(pd.field.progress.episode - 1 + DELAY)
        steps.eta = steps.dual = t**-ETA_POWER
        steps.tau = t**-TAU_POWER
    centre(centres, rows)
    for row in rows:
        set_bonus(centres, row, pd)
    _evaluate(centres, pd)
    for x in range(len(pd.policy) // index.num_actions):
        for r in range(x * index.num_actions, (x + 1) * index.num_actions):
            total = pd.q[r, m]
            for i in range(m):
                total += pd.multipliers[i] * pd.q[r, i]
            pd.log_policy[r] = (1.0 - steps.eta * steps.tau) * pd.log_policy[r] - steps.eta * total
        softmax(index, x, pd.log_policy, pd.policy)
    # After the policy: both steps are taken from the old pair, and V belongs to the old policy.
    for i in range(m):
        kept = (1.0 - steps.dual * steps.tau) * pd.multipliers[i]
        pd.multipliers[i] = max(0.0, kept + steps.dual * (pd.values[0, i] - pd.thresholds[i]))
    note_multipliers(pd)


@kernel
def note_multipliers(pd: PrimalDual) -> None:
    """What is kept of the next plan: the sum of the multipliers."""
    total = 0.0
    for i in range(len(pd.multipliers)):
        total += pd.multipliers[i]
    pd.field.notes[0] = total


@kernel
def set_bonuses(pd: PrimalDual) -> None:
    """b of all rows."""
    for row in range(len(pd.policy)):
        set_bonus(pd.centres, row, pd)


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


TOL_SUM = 1e-9
"""Rounding that a sum over episodes may have"""


class OptPrimalDual(FieldLearner):
    """OptPrimalDual-CMDP: small steps of policy and multipliers, no program to solve.

    Each episode evaluates the policy with optimistic losses and costs, truncated at 0 in every step, and takes one step
    of the policy and one of the multipliers (Efroni, Mannor and Pirotta 2020). Cheap episodes make up for unsafe ones:
    single episodes violate constraints for ever.

    With D = L / slater the steps are eta = sqrt(2 ln A / (L^2 (1 + m D)^2 T)) and D / (L sqrt(m T)), as in public code
    for m = 1; the form for m > 1 is ours. The bonus of a pair in layer k is xi + (L - k) sum_y epsilon(y).

    `regularised=True` is UOpt-RPGPD (Kitamura et al. 2024): entropy and multipliers are regularised with weight
    tau_t = (t + 3)^-0.4, all steps are (t + 3)^-0.53. It needs no `slater`. With sets="source" its bonus is the one of
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
        >>> float(hr.simulate(world, learner, progress=False)["multiplier"][0])
        0.0
    """

    _loop = staticmethod(run_block)
    kind = "opt-primal-dual"
    title = "OptPrimalDual"
    source = "Efroni, Mannor and Pirotta 2020; regularised: Kitamura et al. 2024"
    recalled = "the rate of regret and violation; steps and bonus are those of public code"
    inputs = Inputs(slater=True)
    changing = ("own_policy", "log_policy", "multipliers")
    note_names = ("multiplier",)

    def __init__(
        self, view: View | Any, episodes: int, delta: float = DELTA, seed: int = 0, *, slater: float | None = None,
        sets: str = "source", regularised: bool = False, bonus_scale: float = 1.0,
    ) -> None:  # fmt: skip
        if not isinstance(regularised, bool | np.bool_):
            raise InvalidInput(f"regularised must be True or False, not {type_name(regularised)}")
        scale = real_number("bonus_scale", bonus_scale, 0.0, 1.0)
        known = view_of(view)
        rho = _margin(slater, known.layout.steps) if known.num_constraints and not regularised else None
        super().__init__(known, episodes, delta, seed, sets=sets)
        self.slater, self.bonus_scale = rho, scale
        self.regularised, L, m = bool(regularised), self.layout.steps, self.view.num_constraints
        dual_bound = 0.0 if rho is None else L / rho
        self.log_policy: FloatArray = np.log(self.own_policy)
        self.multipliers: FloatArray = np.zeros(m)
        self._steps = DualSteps()
        A, self._steps.bonus_scale = self.layout.num_actions, scale
        if self.regularised:
            vars(self)["inputs"] = Inputs()  # not rho, unlike the class
            if sets == "source":
                self._steps.phi_log = log(48.0 * max(self.layout.layer_sizes) ** 2 * A * L) - log(self.delta)
        else:
            self._steps.eta = sqrt(2.0 * log(A) / self.episodes) / (L * (1.0 + m * dual_bound))
            self._steps.dual = dual_bound / (L * sqrt(max(1, m) * self.episodes))
        self.core = self._make_core()

    def _make_core(self) -> PrimalDual:
        """The core on the counts and bounds so far."""
        rows, columns, states = self.layout.num_rows, self.view.num_constraints + 1, self.layout.num_states
        core = PrimalDual(
            field=self.field, centres=make_centres(self.statistics), regularised=self.regularised, steps=self._steps,
            thresholds=self.view.thresholds.copy(), multipliers=self.multipliers, log_policy=self.log_policy,
            policy=self.own_policy,
            bonus=np.zeros((rows, columns)), q=np.zeros((rows, columns)), values=np.zeros((states, columns)),
        )  # fmt: skip
        set_bonuses(core)
        note_multipliers(core)
        return core

    def _learn(self, episode: Episode) -> None:
        primal_dual_step(self.core, self._changed_rows(episode))

    def _restore(self, state: dict[str, NDArray[Any]]) -> None:
        super()._restore(state)
        if self.multipliers.size and self.multipliers.min() < 0.0:
            raise InvalidInput("a multiplier is negative")
        # An episode adds at most L times its step, which is at most 1 for the regularised kind.
        most = self.layout.steps * self.episode * (1.0 if self.regularised else self._steps.dual)
        if np.any(self.multipliers > most * (1.0 + TOL_SUM)):
            raise InvalidInput(f"{self.episode} episodes make no such multiplier")
        if not np.allclose(np.exp(self.log_policy), self.own_policy, rtol=0.0, atol=1e-12):
            raise InvalidInput("log_policy is not the logarithm of its policy")
        self.core = self._make_core()

    def _sure(self) -> float:
        return max(0.0, 1.0 - 5.0 * self.delta)

    def guarantees(self) -> Ledger:
        """Return what is promised: regret and violation of order sqrt(T), the latter with cancellation."""
        void = first_reason(
            "nothing is proved for the bonus and the steps of the published experiment" * self.regularised,
            "bonus_scale is below 1" * (self._steps.bonus_scale < 1.0),
        )
        sure = 0.0 if void else self._sure()
        theorem = "Efroni, Mannor and Pirotta 2020, as recalled"
        regret = "regret grows as sqrt(T), up to logarithms"
        violation = (
            "the sum of all excess costs grows as sqrt(T), up to logarithms; cheap episodes make up for unsafe ones"
        )
        needs_margin = self.view.num_constraints > 0 and not self.regularised
        return self._ledger(
            Promise("violation", violation, sure, theorem, void, INDEPENDENT_LOSSES),
            Promise("regret", regret, sure, theorem, void, INDEPENDENT_LOSSES),
            assumptions=("slater is at most the largest margin",) if needs_margin else (),
            title=f"{self.title}, regularised" if self.regularised else self.title,
        )


def _margin(slater: object, steps: int) -> float:
    """rho, if it is one."""
    if slater is None:
        raise InvalidInput("slater is missing: the largest margin rho, such as hr.offline.slater(world).margin")
    rho = real_number("slater", slater, 0.0, float(steps))
    if rho == 0.0:
        raise InvalidInput("slater is 0: the multipliers have no bound where no policy has a margin; see regularised")
    return rho
