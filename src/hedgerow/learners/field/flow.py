"""The compiled part of mirror descent with fixed share: the point that is projected next."""

from __future__ import annotations

from math import log, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import FloatArray, frozen
from hedgerow.compiling.kernels import kernel
from hedgerow.confidence.bounds import load_columns, make_columns, reach_of_states
from hedgerow.errors import CertificateError, InvalidInput
from hedgerow.learners.base import Feedback
from hedgerow.learners.field.base import FieldLearner
from hedgerow.learners.guarantees import Ledger, Promise
from hedgerow.learners.statistics import Statistics
from hedgerow.model.episode import Episode, decide
from hedgerow.model.kernel_layout import Index, index_of
from hedgerow.model.view import View
from hedgerow.projection.projector import Projector


@kernel
def fill_base(
    index: Index, flow: FloatArray, uniform: FloatArray, share: float, tilt: FloatArray, log_base: FloatArray
) -> None:
    """ln of ((1 - share) flow + share uniform) e^{-tilt}; all are arrays of triples but `tilt`, one of rows."""
    for r in range(len(tilt)):
        for j in range(index.row_start[r], index.row_start[r + 1]):
            log_base[j] = log((1.0 - share) * flow[j] + share * uniform[j]) - tilt[r]


# --------------------------------------------------------------------------------------------------------------------
# What UCPD and BoB-PD share: mirror descent on occupancies within boxes, and losses by implicit exploration.
#
#     q~(x,a,x')  = (1 - s) q_t(x,a,x') + s / (triples of the layer)             fixed share
#     q_{t+1}     = argmin { D(q || q~ e^{-tilt}) : q in Delta(boxes) }          a projection without constraints
#
# `tilt` (num_rows,) is the step size times a loss. Fixed share keeps every triple positive: without it, one that the
# boxes once forced to 0 could not come back.
#
# With bandit feedback a loss is estimated on the pairs of the path only, as UOB-REPS does (Jin, Jin, Luo, Sra, Yu
# 2020): l_hat = l / (u + gamma), u the upper occupancy bounds in the boxes *before* the episode, and gamma = sqrt(L
# ln(L|X||A|/delta) / (T|X||A|)) as in SV-OPS.


TOL_MASS = 1e-6
"""How far the mass of a layer in a file may be from 1."""


class FlowLearner(FieldLearner):
    """A learner whose iterate is an occupancy, with a multiplier for each constraint."""

    changing: ClassVar[tuple[str, ...]] = ("own_policy", "flow", "dual")
    seen: Statistics

    def __init__(self, view: View, episodes: int, delta: float, seed: int, *, radii: str, feedback: Feedback) -> None:
        if feedback not in ("full", "bandit"):
            raise InvalidInput(f"the feedback is {feedback!r}; choose 'full' or 'bandit'")
        super().__init__(view, episodes, delta, seed, radii=radii)
        layout, self.feedback = self.layout, feedback
        self.flow: FloatArray = np.zeros(layout.num_triples)
        """(num_triples,): the occupancy q of the next episode"""
        self.dual: FloatArray = np.zeros(self.view.num_constraints)
        """(m,): the multipliers of the next episode"""
        pairs = layout.num_states * layout.num_actions
        self.gamma = sqrt(layout.steps * (log(layout.steps * pairs) - log(self.delta)) / (self.episodes * pairs))
        """What implicit exploration adds to the occupancy bounds; of no use with full feedback."""
        self._layer_start = layout.row_start[layout.state_start[:-2] * layout.num_actions]
        in_layer = np.diff(np.append(self._layer_start, layout.num_triples))
        self._uniform = np.repeat(1.0 / in_layer, in_layer)
        self._index, self._log_base = index_of(layout), np.zeros(layout.num_triples)
        self._projector, self._columns = Projector(layout), make_columns(layout)
        self._descend(1.0, np.zeros(layout.num_rows))

    def _descend(self, share: float, tilt: FloatArray) -> None:
        """Replace the occupancy by the projection of q~ e^{-tilt} onto the present boxes; the policy follows."""
        boxes = self.seen.boxes
        fill_base(self._index, self.flow, self._uniform, share, tilt, self._log_base)
        found = self._projector.project(self._log_base, boxes.lower, boxes.upper)
        if not found.solved:
            raise CertificateError(
                f"{self.title} cannot go on after episode {self.episode}: a projection without constraints ended with "
                f"a residual of {found.residuals.worst:.2g}; please report the world"
            )
        np.exp(found.log_occupancy, out=self.flow)
        self.own_policy[:] = found.policy
        self._keep_bounds()

    def _keep_bounds(self) -> None:
        """Keep the boxes as the policy meets them: u of the next episode must not see that episode."""
        if self.feedback == "bandit":
            boxes = self.seen.boxes
            load_columns(self._index, boxes.lower, boxes.upper, self.own_policy, self._columns)

    def _estimated(self, episode: Episode, losses: FloatArray) -> FloatArray:
        """(num_rows,): losses (L,) of the path divided by u + gamma, 0 elsewhere.

        The loss of an episode that did not follow the plan says nothing about the plan: it is left out.
        """
        estimate = np.zeros(self.layout.num_rows)
        if follows_the_plan(episode):
            rows, reach = episode.rows, np.zeros(len(episode.rows))
            reach_of_states(self._index, self._columns, rows // self.layout.num_actions, len(rows), reach)
            estimate[rows] = losses / (self.own_policy[rows] * reach + self.gamma)
        return estimate

    def _masses(self) -> FloatArray:
        """(num_rows,): q(x,a) of the next episode."""
        masses: FloatArray = np.add.reduceat(self.flow, self.layout.row_start[:-1])
        return masses

    def _restore(self, state: dict[str, NDArray[Any]]) -> None:
        super()._restore(state)
        mass = np.add.reduceat(self.flow, self._layer_start)
        if np.any(self.flow < 0.0) or np.any(np.abs(mass - 1.0) > TOL_MASS) or np.any(self.dual < 0.0):
            raise InvalidInput("a flow is no occupancy, or a multiplier is negative")
        if np.any(self.dual > self.layout.steps * self.episode):  # an episode adds a cost at most
            raise InvalidInput(f"{self.episode} episodes make no such multiplier")
        self._keep_bounds()


def follows_the_plan(episode: Episode) -> bool:
    """Whether the policy of the plan chose all actions, to the end, and all costs are known."""
    counting = decide(episode)
    return counting.planned and counting.gaps is None


def everything(episode: Episode) -> tuple[FloatArray, FloatArray]:
    """The losses (num_rows,) and costs (num_rows, m) of all pairs, which `observe` demands with full feedback."""
    assert episode.all_losses is not None
    assert episode.all_costs is not None
    return episode.all_losses, episode.all_costs


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
    pairs after each episode. The confidence sets of its source are balls in the L1 norm; here they are boxes, which the
    proof allows.

    Args:
        seed: Not used: the learner makes no random choices.

    Examples:
        >>> import hedgerow as hr
        >>> world = hr.worlds.make("lower-bound-2")
        >>> learner = hr.field.UCPD(world.view(), episodes=1000, delta=0.05)
        >>> run = hr.simulate(world, None, learner, progress=False)
        >>> bool(run.regret[-1] < 0.1 * 1000), learner.queues.shape
        (True, (1,))
    """

    kind: ClassVar[str] = "ucpd"
    title: ClassVar[str] = "UCPD"
    source: ClassVar[str] = "Qiu, Wei, Yang, Ye and Wang 2020"
    recalled: ClassVar[str] = "V = L sqrt(T), a = L T, the share 1/T, the rates, and their probability 1 - 4 delta"
    feedback: Feedback = "full"

    def __init__(self, view: View, episodes: int, delta: float, seed: int = 0, *, radii: str = "source") -> None:
        super().__init__(view, episodes, delta, seed, radii=radii, feedback=type(self).feedback)

    def _revealed(self, episode: Episode) -> tuple[FloatArray, FloatArray]:
        """The losses (num_rows,) and costs (num_rows, m) to descend along."""
        return everything(episode)

    def _learn(self, episode: Episode) -> None:
        losses, costs = self._revealed(episode)
        pull, inertia = self.layout.steps * sqrt(self.episodes), self.layout.steps * self.episodes
        self._descend(1.0 / self.episodes, (pull * losses + costs @ self.dual) / inertia)
        self.dual[:] = np.maximum(0.0, self.dual + self._masses() @ costs - self.view.thresholds)

    @property
    def queues(self) -> FloatArray:
        """(m,): the queue of each constraint; Q in the source."""
        return frozen(self.dual)

    def _notes(self) -> dict[str, float]:
        return {"queue": float(self.dual.sum())}

    def _sure(self) -> float:
        return max(0.0, 1.0 - 4.0 * self.delta)

    def guarantees(self) -> Ledger:
        """Return what is promised: the growth of the regret, and of the violation with cancellation."""
        return self.as_seen(Ledger(self.title, self._promises("")))

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

    kind: ClassVar[str] = "ucpd-ix"
    title: ClassVar[str] = "UCPD-IX"
    source: ClassVar[str] = "ours, after Qiu et al. 2020 and Jin et al. 2020"
    feedback: Feedback = "bandit"

    def _revealed(self, episode: Episode) -> tuple[FloatArray, FloatArray]:
        return self._estimated(episode, episode.losses), self.seen.cost_lower

    def guarantees(self) -> Ledger:
        """Return the promises of UCPD, which are void here."""
        return self.as_seen(
            Ledger(self.title, self._promises("UCPD with bandit feedback is ours: no published guarantee covers it"))
        )


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
    a constraint that is violated, up to T^(1/4). Neither is told the largest margin of the world. Nothing is proved
    about this variant.

    Args:
        delta: How unsure the confidence sets may be, in (0, 1).
        seed: Not used: the learner makes no random choices.
        feedback: "full" for the losses and costs of all pairs, or "bandit" for those of the visited pairs.

    Examples:
        >>> import hedgerow as hr
        >>> world = hr.worlds.make("lower-bound-2")
        >>> learner = hr.field.BoBPD(world.view(), episodes=1000, delta=0.05, feedback="bandit")
        >>> run = hr.simulate(world, None, learner, progress=False)
        >>> bool(0.0 <= learner.multipliers[0] <= 1000**0.25)
        True
    """

    kind: ClassVar[str] = "bob-pd"
    title: ClassVar[str] = "BoB-PD"
    source: ClassVar[str] = "a variant of ours after PDGD-OPS (Stradi et al. 2024) and arXiv:2410.02269"
    recalled: ClassVar[str] = "the originals, which have other step sizes"
    feedback: Feedback = "full"
    changing: ClassVar[tuple[str, ...]] = ("own_policy", "flow", "dual", "largest_dual")

    def __init__(
        self,
        view: View,
        episodes: int,
        delta: float,
        seed: int = 0,
        *,
        radii: str = "source",
        feedback: Feedback = "full",
    ) -> None:
        self.largest_dual: FloatArray = np.zeros(1)
        """(1,): max |lambda|_1 so far, the next episode included"""
        super().__init__(view, episodes, delta, seed, radii=radii, feedback=feedback)

    @property
    def multipliers(self) -> FloatArray:
        """(m,): the multiplier of each constraint; lambda in the source."""
        return frozen(self.dual)

    @property
    def ceiling(self) -> float:
        """The largest value that a multiplier can have, T^(1/4)."""
        return sqrt(sqrt(self.episodes))

    def _notes(self) -> dict[str, float]:
        return {"multiplier": float(self.dual.sum())}

    def _learn(self, episode: Episode) -> None:
        rate = 1.0 / sqrt(self.episodes)
        if self.feedback == "full":
            losses, costs = everything(episode)
            excess = self._masses() @ costs - self.view.thresholds
            loss = losses + costs @ self.dual
        else:
            excess = episode.costs.sum(axis=0) - self.view.thresholds
            if not follows_the_plan(episode):
                excess = np.zeros(len(self.dual))  # what somebody else did says nothing about the plan
            loss = self._estimated(episode, episode.losses + episode.costs @ self.dual)
        self._descend(1.0 / self.episodes, loss * rate / (1.0 + self.largest_dual[0]))
        self.dual[:] = np.clip(self.dual + rate * excess, 0.0, self.ceiling)
        self.largest_dual[0] = max(self.largest_dual[0], self.dual.sum())

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
        return self.as_seen(
            Ledger(
                self.title,
                (
                    Promise("regret", f"{regret}the largest margin is not below T^(-1/8)", 0.0, source, void),
                    Promise("cancelling violation", f"{cancelling}; {CANCELLING}", 0.0, source, void),
                ),
            )
        )
