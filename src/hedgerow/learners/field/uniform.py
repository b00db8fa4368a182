"""Uniform: every action with the same probability in every episode, a control that learns nothing."""

from __future__ import annotations

from typing import ClassVar

from hedgerow.learners.field.base import FieldLearner
from hedgerow.learners.ledger import Ledger
from hedgerow.learners.statistics import Statistics
from hedgerow.learners.told import Told
from hedgerow.model.episode import Episode
from hedgerow.model.view import View


class Uniform(FieldLearner):
    """Uniform: every action with the same probability, a control that learns nothing and promises nothing.

    Args:
        view: What the learner may know of the world: `world.view()`.
        episodes: The number T of episodes that it will play.

    Examples:
        >>> import hedgerow as hr
        >>> learner = hr.field.Uniform(hr.catalogue.make("lower-bound-2").view(), episodes=10)
        >>> learner.plan().policy.probabilities.tolist()
        [0.5, 0.5]
    """

    kind: ClassVar[str] = "uniform"
    title: ClassVar[str] = "uniform"
    source: ClassVar[str] = "a control"
    told: ClassVar[Told] = Told(episodes=False, delta=False)

    def __init__(self, view: View, episodes: int) -> None:
        super().__init__(view, episodes)

    def _statistics(self) -> Statistics | None:
        return None

    def _learn(self, episode: Episode) -> None:
        return

    def guarantees(self) -> Ledger:
        """Return what is promised: nothing."""
        return self.as_seen(Ledger(self.title, ()))
