"""T21: S-OPS with a person who stops episodes because of their costs.

As soon as a step has cost something, the episode is aborted. Where costs of one episode depend on each other, what was
seen of later steps is then the cheap part. `Interrupted` tells the truth: the episode was aborted, and all that the
plan could have visited from there on is unknown (docs/counting.md). `FalselyDeclared`, the control, says that the
reason had nothing to do with costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hedgerow.learners.mirror.sops import SOPS
from hedgerow.model.episode import Episode
from hedgerow.promises.lemmas import judge_costs
from hedgerow.promises.observation import Observation
from hedgerow.promises.promise import Verdict, together
from hedgerow.promises.safe import judge_safety


class Interrupted(SOPS):
    """Hears only of the steps up to the first that costs something, and where the episode was aborted."""

    reason: str | None = None

    def observe(self, episode: Any, *more: Any, **named: Any) -> None:
        """Learn from the part of an episode that happened."""
        super().observe(self._cut(episode) if isinstance(episode, Episode) else episode, *more, **named)

    def _cut(self, episode: Episode) -> Episode:
        dear = np.flatnonzero(episode.costs.any(axis=1))
        if not dear.size or dear[0] == self.layout.steps - 1:
            return episode
        count = int(dear[0]) + 1
        return Episode(
            self.view,
            episode.rows[:count],
            episode.losses[:count],
            episode.costs[:count],
            ended_in=int(self.layout.successor[episode.triples[count - 1]]),
            independent=self.reason,
        )


class FalselyDeclared(Interrupted):
    """Says that the episodes were aborted for a reason that has nothing to do with costs."""

    reason = "the end of a shift"


def judge_interrupted(observations: Sequence[Observation]) -> Verdict:
    """Judge safety and the bounds of costs of runs in which episodes were aborted because of costs."""
    return together(judge_safety(observations), judge_costs(observations))
