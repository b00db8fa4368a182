"""UCPD, upper-confidence primal-dual (Qiu, Wei, Yang, Ye, Wang 2020): adversarial losses, and a queue of costs.

Mirror descent on occupancies, along the loss and the costs, each weighted by its queue. With V = L sqrt(T), a = L T and
the share s = 1/T, episode t + 1 plays the policy of

    q_{t+1} = argmin { <V l_t + sum_i Q_i(t) g_{i,t}, q> + a D(q || q~_t) : q in Delta(boxes) },    Q(1) = 0
    Q_i(t+1) = max(0, Q_i(t) + <g_{i,t}, q_{t+1}> - alpha_i)

It needs the losses and costs of *all* pairs. What it promises is the violation with cancellation, V+-: episodes with
room make up for episodes that violate. The positive violation V+ that this package scores may grow linearly.
"""

from __future__ import annotations

from math import sqrt
from typing import ClassVar

import numpy as np

from hedgerow.checks import FloatArray, frozen
from hedgerow.learners.field.base import Feedback
from hedgerow.learners.field.flow import FlowLearner, everything
from hedgerow.learners.ledger import Ledger, Promise
from hedgerow.model.episode import Episode
from hedgerow.model.view import View

CANCELLING = "single episodes may violate, and their summed positive violation may grow linearly"


class UCPD(FlowLearner):
    """UCPD, upper-confidence primal-dual: adversarial losses, full feedback, violation with cancellation.

    A queue for each constraint grows with the costs above the threshold and shrinks with those below. Mirror descent on
    occupancies follows the loss and, weighted by the queues, the costs. The learner sees the losses and costs of all
    pairs after each episode. The confidence sets of its source are balls in the L1 norm; here they are boxes, which the
    proof allows.

    Args:
        view: What the learner may know of the world: `world.view()`.
        episodes: The number T of episodes that it will play.
        delta: How unsure the promises may be, in (0, 1).
        seed: Seed of the learner's own random choices; it has none.
        radii: The radii of the boxes: "source" for those of Efroni, Mannor and Pirotta (2020), which most learners of
            the field take; "hedgerow" for those of S-OPS with preset="sharp".

    Examples:
        >>> import hedgerow as hr
        >>> world = hr.catalogue.make("lower-bound-2")
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
        return Ledger(self.title, self._promises(""))

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
        view: What the learner may know of the world: `world.view()`.
        episodes: The number T of episodes that it will play.
        delta: How unsure the confidence sets may be, in (0, 1).
        seed: Seed of the learner's own random choices; it has none.
        radii: "source" or "hedgerow", as for `UCPD`.

    Examples:
        >>> import hedgerow as hr
        >>> world = hr.catalogue.make("lower-bound-2")
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
        return Ledger(self.title, self._promises("UCPD with bandit feedback is ours: no published guarantee covers it"))
