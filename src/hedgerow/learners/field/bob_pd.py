"""BoB-PD, a primal-dual learner for the best of both worlds; a variant of ours.

It follows PDGD-OPS (Stradi et al. 2024) and the policy optimisation of arXiv:2410.02269 (Stradi et al. 2024), both
recalled: a primal player with small regret on every interval, and a dual player on [0, T^(1/4)]^m.

    l^L_t   = l_t + sum_i lambda_{t,i} g_{i,t},     Xi_t = 1 + max { |lambda_tau|_1 : tau <= t },     s = 1/T
    q_{t+1} = argmin { D(q || ((1 - s) q_t + s uniform) e^{-l^L_t / (Xi_t sqrt(T))}) : q in Delta(boxes) }
    lambda_{t+1,i} = clip(lambda_{t,i} + (c_i - alpha_i) / sqrt(T), 0, T^(1/4))

c_i is <g_{i,t}, q_t> with full feedback. With bandit feedback it is the cost of the path, and l^L_t is estimated by
implicit exploration. The originals project in the Euclidean norm, or optimise policies, and have other step sizes;
fixed share is how this variant gets its regret on intervals.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import FloatArray, frozen
from hedgerow.errors import InvalidInput
from hedgerow.learners.field.base import Feedback
from hedgerow.learners.field.flow import FlowLearner, everything, follows_the_plan
from hedgerow.learners.field.ucpd import CANCELLING
from hedgerow.learners.ledger import Ledger, Promise
from hedgerow.model.episode import Episode
from hedgerow.model.view import View


class BoBPD(FlowLearner):
    """BoB-PD: best of both worlds by a primal and a dual player; a variant of ours.

    The primal player follows the loss and the costs, weighted by multipliers; the dual player raises the multiplier of
    a constraint that is violated, up to T^(1/4). Neither is told the largest margin of the world. Nothing is proved
    about this variant.

    Args:
        view: What the learner may know of the world: `world.view()`.
        episodes: The number T of episodes that it will play.
        delta: How unsure the confidence sets may be, in (0, 1).
        seed: Seed of the learner's own random choices; it has none.
        radii: The radii of the boxes: "source" for those of Efroni, Mannor and Pirotta (2020), which most learners of
            the field take; "hedgerow" for those of S-OPS with preset="sharp".
        feedback: "full" for the losses and costs of all pairs, or "bandit" for those of the visited pairs.

    Examples:
        >>> import hedgerow as hr
        >>> world = hr.catalogue.make("lower-bound-2")
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

    def _restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        super()._restore(state)
        highest = len(self.dual) * self.ceiling
        if np.any(self.dual > self.ceiling) or not self.dual.sum() <= self.largest_dual[0] <= highest:
            raise InvalidInput(f"this is no state of {self.title}: a multiplier is above its ceiling")

    def guarantees(self) -> Ledger:
        """Return the promises of the originals, which are void: no proof covers this variant."""
        void = "this variant is ours: the proofs of PDGD-OPS and of arXiv:2410.02269 do not cover it"
        source = "Stradi et al. 2024; arXiv:2410.02269 (both recalled)"
        regret = "the regret is O(sqrt(T)) up to logarithms, whatever the losses, if costs are independent draws and "
        cancelling = "the violation with cancellation, max(0, sum_t (cost_t - alpha)), is O(sqrt(T)) up to logarithms"
        return Ledger(
            self.title,
            (
                Promise("regret", f"{regret}the largest margin is not below T^(-1/8)", 0.0, source, void),
                Promise("cancelling violation", f"{cancelling}; {CANCELLING}", 0.0, source, void),
            ),
        )
