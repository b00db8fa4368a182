"""UCPD and BoB-PD: mirror descent on occupancies within boxes, and multipliers of the constraints.

    q~(x,a,x')  = (1 - s) q_t(x,a,x') + s / (triples of the layer)             fixed share
    q_{t+1}     = argmin { D(q || q~ e^{-tilt}) : q in Delta(boxes) }          a projection without constraints

`tilt` (num_rows,) is the step size times a loss. Fixed share keeps every triple positive: without it, one that the
boxes once forced to 0 could not come back.

With bandit feedback a loss is estimated on the pairs of the path only, as UOB-REPS does (Jin, Jin, Luo, Sra, Yu 2020):
l_hat = l / (u + gamma), u the upper occupancy bounds in the boxes *before* the episode, and gamma = sqrt(L
ln(L|X||A|/delta) / (T|X||A|)) as in SV-OPS.
"""

from __future__ import annotations

from abc import abstractmethod
from math import log, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import FloatArray, frozen
from hedgerow.confidence.bounds import make_columns
from hedgerow.errors import CertificateError, InvalidInput
from hedgerow.learners.api import DELTA
from hedgerow.learners.base import Feedback
from hedgerow.learners.field.base import ALL_SETS, FieldLearner, chosen
from hedgerow.learners.field.flow_kernels import (
    FlowCore,
    FlowNumbers,
    FlowRule,
    descend,
    keep_bounds,
    note_dual,
    run_block,
    take,
    weigh_all,
    weigh_nothing,
    weigh_path,
)
from hedgerow.learners.guarantees import Ledger, Promise
from hedgerow.learners.statistics import Statistics
from hedgerow.model.episode import Episode, decide
from hedgerow.model.view import View
from hedgerow.projection.problem import ProjectionProblem, ProjectionSettings
from hedgerow.projection.projector import make_desk
from hedgerow.projection.solve import project

TOL_MASS = 1e-6
"""How far the mass of a layer in a file may be from 1."""


class FlowLearner(FieldLearner):
    """A learner whose iterate is an occupancy, with a multiplier for each constraint."""

    _loop = staticmethod(run_block)
    changing: ClassVar[tuple[str, ...]] = ("own_policy", "flow", "dual")
    words = ALL_SETS
    seen: Statistics

    def __init__(
        self, view: View | Any, episodes: int, delta: float, seed: int, *, sets: str, feedback: Feedback
    ) -> None:
        self.feedback = chosen("the feedback is", feedback, ("full", "bandit"))
        super().__init__(view, episodes, delta, seed, sets=sets)
        layout = self.layout
        self.flow: FloatArray = np.zeros(layout.num_triples)
        """(num_triples,): the occupancy q of the next episode"""
        self.dual: FloatArray = np.zeros(self.view.num_constraints)
        """(m,): the multipliers of the next episode"""
        self.largest_dual: FloatArray = np.zeros(1)
        """(1,): the largest sum of the multipliers so far, the next episode included"""
        pairs = layout.num_states * layout.num_actions
        self.gamma = sqrt(layout.steps * (log(layout.steps * pairs) - log(self.delta)) / (self.episodes * pairs))
        """What implicit exploration adds to the occupancy bounds; of no use with full feedback."""
        self._layer_start = layout.row_start[layout.state_start[:-2] * layout.num_actions]
        self._settings = ProjectionSettings()
        self.core = self._make_core()
        descend(self.core, 1.0)
        self._complete()

    def _flow_rule(self, pull: float, inertia: float, *, queues: bool, ceiling: float = 0.0) -> FlowRule:
        """The rule of a subclass."""
        fast = self._settings
        settings = np.array([fast.tol, fast.suspect_theta, fast.suspect_iterations])
        return FlowRule(
            self.feedback == "full", queues, 1.0 / self.episodes, pull, inertia, self.gamma, ceiling, settings
        )

    @abstractmethod
    def _rule(self) -> FlowRule:
        """What makes this learner what it is."""

    def _make_core(self) -> FlowCore:
        """The core on the counts and bounds so far."""
        layout, seen, m = self.layout, self.statistics, self.view.num_constraints
        in_layer = np.diff(np.append(self._layer_start, layout.num_triples))
        return FlowCore(
            field=self.field, rule=self._rule(), numbers=FlowNumbers(), sets=seen.layer, losses=seen.losses,
            thresholds=self.view.thresholds.copy(), flow=self.flow, dual=self.dual,
            largest=self.largest_dual, uniform=np.repeat(1.0 / in_layer, in_layer), tilt=np.zeros(layout.num_rows),
            costs=np.zeros((layout.num_rows, m)), excess=np.zeros(m), columns=make_columns(layout),
            targets=np.zeros(layout.steps, dtype=np.int64), reach=np.zeros(layout.steps),
            desk=make_desk(layout, 0, seen.boxes.lower, seen.boxes.upper),
        )  # fmt: skip

    def _learn(self, episode: Episode) -> None:
        if self.feedback == "full":
            assert episode.all_losses is not None
            assert episode.all_costs is not None
            weigh_all(self.core, episode.all_losses.copy(), episode.all_costs.copy())
        elif follows_the_plan(episode):
            weigh_path(self.core, episode.rows.copy(), episode.losses.copy(), episode.costs.copy())
        else:
            weigh_nothing(self.core)
        descend(self.core, self.core.rule.share)

    @property
    def unfinished(self) -> bool:
        return bool(self.core.numbers.open)

    def _complete(self) -> None:
        """Make the projection that compiled code has left to the slow solver."""
        if self.core.numbers.open:
            desk, boxes = self.core.desk, self.core.sets.boxes
            problem = ProjectionProblem(self.layout, desk.log_base, boxes.lower, boxes.upper, None, ())
            found = project(problem, self._settings)
            if not found.solved:
                raise CertificateError(
                    f"{self.title} cannot go on after episode {self.episode}: a projection without constraints ended "
                    f"with a residual of {found.residuals.worst:.2g}; please report the world"
                )
            desk.log_q[:], desk.policy[:] = found.log_occupancy, found.policy
            take(self.core)
        super()._complete()

    def _arrays(self) -> dict[str, NDArray[Any]]:
        self._complete()
        return super()._arrays()

    def _restore(self, state: dict[str, NDArray[Any]]) -> None:
        super()._restore(state)
        mass = np.add.reduceat(self.flow, self._layer_start)
        if np.any(self.flow < 0.0) or np.any(np.abs(mass - 1.0) > TOL_MASS) or np.any(self.dual < 0.0):
            raise InvalidInput("a flow is no occupancy, or a multiplier is negative")
        if np.any(self.dual > self.layout.steps * self.episode):  # an episode adds a cost at most
            raise InvalidInput(f"{self.episode} episodes make no such multiplier")
        self.core = self._make_core()
        keep_bounds(self.core)
        note_dual(self.core)


def follows_the_plan(episode: Episode) -> bool:
    """Whether the policy of the plan chose all actions, to the end, and all costs are known."""
    counting = decide(episode)
    return counting.planned and counting.gaps is None


# --------------------------------------------------------------------------------------------------------------------
# UCPD, upper-confidence primal-dual (Qiu, Wei, Yang, Ye, Wang 2020): adversarial losses, and a queue of costs.
#
# Mirror descent on occupancies, along the loss and the costs, each weighted by its queue. With V = L sqrt(T), a = L T
# and the share s = 1/T, episode t + 1 plays the policy of
#
#     q_{t+1} = argmin { <V l_t + sum_i Q_i(t) g_{i,t}, q> + a D(q || q~_t) : q in Delta(boxes) },    Q(1) = 0
#     Q_i(t+1) = max(0, Q_i(t) + <g_{i,t}, q_{t+1}> - alpha_i)
#
# It needs the losses and costs of *all* pairs. What it promises is the violation with cancellation, V+-: episodes with
# room make up for episodes that violate. The positive violation V+ that this package scores may grow linearly.


CANCELLING = "single episodes may violate, and their summed positive violation may grow linearly"


class UCPD(FlowLearner):
    """UCPD, upper-confidence primal-dual: adversarial losses, full feedback, violation with cancellation.

    A queue for each constraint grows with the costs above the threshold and shrinks with those below. Mirror descent on
    occupancies follows the loss and, weighted by the queues, the costs. The learner sees the losses and costs of all
    pairs after each episode. It is a variant: the confidence sets of its source are balls in the L1 norm, here they are
    boxes, which the proof allows; and the constants are those that we recall.

    Args:
        seed: Not used: the learner makes no random choices.

    Examples:
        >>> import hedgerow as hr
        >>> world = hr.worlds.make("lower-bound-2")
        >>> learner = hr.field.UCPD(world.view(), episodes=1000, delta=0.05)
        >>> run = hr.simulate(world, learner, progress=False)
        >>> bool(run.regret[-1] < 0.1 * 1000), learner.queues.shape
        (True, (1,))
    """

    kind = "ucpd"
    title = "UCPD (variant)"
    source = "Qiu, Wei, Yang, Ye and Wang 2020"
    recalled = "V = L sqrt(T), a = L T, the share 1/T, the rates, and their probability 1 - 4 delta"
    feedback: Feedback = "full"
    note_names = ("queue",)

    def __init__(
        self, view: View | Any, episodes: int, delta: float = DELTA, seed: int = 0, *, sets: str = "source"
    ) -> None:
        super().__init__(view, episodes, delta, seed, sets=sets, feedback=type(self).feedback)

    def _rule(self) -> FlowRule:
        steps = float(self.layout.steps)
        return self._flow_rule(steps * sqrt(self.episodes), steps * self.episodes, queues=True)

    @property
    def queues(self) -> FloatArray:
        """(m,): the queue of each constraint; Q in the source."""
        return frozen(self.dual)

    def _sure(self) -> float:
        return max(0.0, 1.0 - 4.0 * self.delta)

    def guarantees(self) -> Ledger:
        """Return what is promised: the growth of the regret, and of the violation with cancellation."""
        return self._ledger(*self._promises(""))

    def _promises(self, void_because: str) -> tuple[Promise, ...]:
        rate, sure = "L |X| sqrt(|A| T) up to logarithms", 0.0 if void_because else self._sure()
        regret = f"the regret against the best feasible policy is O({rate}), whatever the losses, if some policy "
        cancelling = f"the violation with cancellation, max(0, sum_t (cost_t - alpha)), is O({rate}) if some policy "
        strictly = "satisfies the constraints strictly"
        proof = "Qiu et al. 2020 (recalled), with boxes for their L1 balls"
        return (
            Promise("regret", regret + strictly, sure, proof, void_because),
            Promise("cancelling violation", f"{cancelling}{strictly}; {CANCELLING}", sure, proof, void_because),
        )


class UCPDIX(UCPD):
    """UCPD-IX: UCPD with bandit feedback, a variant of ours; nothing is proved about it.

    It estimates the loss on the visited pairs by implicit exploration, as UOB-REPS does, and takes the lower confidence
    bounds of the mean costs in place of the costs of the episode.

    Args:
        delta: How unsure the confidence sets may be, in (0, 1).
        seed: Not used: the learner makes no random choices.

    Examples:
        >>> import hedgerow as hr
        >>> world = hr.worlds.make("lower-bound-2")
        >>> learner = hr.field.UCPDIX(world.view(), episodes=100, delta=0.05)
        >>> learner.feedback, learner.guarantees()["regret"].holds
        ('bandit', False)
    """

    kind = "ucpd-ix"
    title = "UCPD-IX (variant)"
    source = "ours, after Qiu et al. 2020 and Jin et al. 2020"
    feedback: Feedback = "bandit"

    def guarantees(self) -> Ledger:
        """Return the promises of UCPD, which are void here."""
        return self._ledger(*self._promises("UCPD with bandit feedback is ours: no published guarantee covers it"))


# --------------------------------------------------------------------------------------------------------------------
# BoB-PD, a primal-dual learner for the best of both worlds; a variant of ours.
#
# It follows PDGD-OPS (Stradi et al. 2024) and the policy optimisation of arXiv:2410.02269 (Stradi et al. 2024), both
# recalled: a primal player with small regret on every interval, and a dual player on [0, T^(1/4)]^m.
#
#     l^L_t   = l_t + sum_i lambda_{t,i} g_{i,t},     Xi_t = 1 + max { |lambda_tau|_1 : tau <= t },     s = 1/T
#     q_{t+1} = argmin { D(q || ((1 - s) q_t + s uniform) e^{-l^L_t / (Xi_t sqrt(T))}) : q in Delta(boxes) }
#     lambda_{t+1,i} = clip(lambda_{t,i} + (c_i - alpha_i) / sqrt(T), 0, T^(1/4))
#
# c_i is <g_{i,t}, q_t> with full feedback. With bandit feedback it is the cost of the path, and l^L_t is estimated by
# implicit exploration. The originals project in the Euclidean norm, or optimise policies, and have other step sizes;
# fixed share is how this variant gets its regret on intervals.


class BoBPD(FlowLearner):
    """BoB-PD: best of both worlds by a primal and a dual player; a variant of ours.

    The primal player follows the loss and the costs, weighted by multipliers; the dual player raises the multiplier of
    a constraint that is violated, up to T^(1/4). Neither knows the largest margin of the world. Nothing is proved
    about this variant.

    Args:
        delta: How unsure the confidence sets may be, in (0, 1).
        seed: Not used: the learner makes no random choices.
        feedback: "full" for the losses and costs of all pairs, or "bandit" for those of the visited pairs.

    Examples:
        >>> import hedgerow as hr
        >>> world = hr.worlds.make("lower-bound-2")
        >>> learner = hr.field.BoBPD(world.view(), episodes=1000, delta=0.05, feedback="bandit")
        >>> run = hr.simulate(world, learner, progress=False)
        >>> bool(0.0 <= learner.multipliers[0] <= 1000**0.25)
        True
    """

    kind = "bob-pd"
    title = "BoB-PD (variant)"
    source = "a variant of ours after PDGD-OPS (Stradi et al. 2024) and arXiv:2410.02269"
    recalled = "the originals, which have other step sizes"
    feedback: Feedback = "full"
    changing = ("own_policy", "flow", "dual", "largest_dual")
    note_names = ("multiplier",)

    def __init__(
        self, view: View | Any, episodes: int, delta: float = DELTA, seed: int = 0, *, sets: str = "source",
        feedback: Feedback = "full",
    ) -> None:  # fmt: skip
        super().__init__(view, episodes, delta, seed, sets=sets, feedback=feedback)

    @property
    def multipliers(self) -> FloatArray:
        """(m,): the multiplier of each constraint; lambda in the source."""
        return frozen(self.dual)

    @property
    def ceiling(self) -> float:
        """The largest value that a multiplier can have, T^(1/4)."""
        return sqrt(sqrt(self.episodes))

    def _rule(self) -> FlowRule:
        return self._flow_rule(1.0, sqrt(self.episodes), queues=False, ceiling=self.ceiling)

    def _restore(self, state: dict[str, NDArray[Any]]) -> None:
        super()._restore(state)
        highest = len(self.dual) * self.ceiling
        if np.any(self.dual > self.ceiling) or not self.dual.sum() <= self.largest_dual[0] <= highest:
            raise InvalidInput("a multiplier is above its ceiling")

    def guarantees(self) -> Ledger:
        """Return the promises of the originals, which are void: no proof covers this variant."""
        void = "this variant is ours: the proofs of PDGD-OPS and of arXiv:2410.02269 do not cover it"
        source = "Stradi et al. 2024; arXiv:2410.02269 (both recalled)"
        regret = "the regret is O(sqrt(T)) up to logarithms, whatever the losses, if costs are independent draws and "
        cancelling = "the violation with cancellation, max(0, sum_t (cost_t - alpha)), is O(sqrt(T)) up to logarithms"
        return self._ledger(
            Promise("regret", f"{regret}the largest margin is not below T^(-1/8)", 0.0, source, void),
            Promise("cancelling violation", f"{cancelling}; {CANCELLING}", 0.0, source, void),
        )
