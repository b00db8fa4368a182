"""S-OPS with a log: episodes that somebody else played in the same world come before its own.

A log costs nothing of delta, because the sets hold at all times: it makes the first factors of their martingales. Which
episodes are in it must not depend on what happened in them (`controls/overconfident.py` has one that does).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hedgerow.estimates.boxes import refresh_all
from hedgerow.estimates.counts import record, record_costs
from hedgerow.learners.mirror.base import MirrorLearner
from hedgerow.learners.mirror.sops import SOPS
from hedgerow.learners.mirror.step import follow_boxes
from hedgerow.learners.mirror.watcher import MirrorWatcher
from hedgerow.learners.watching import Stage
from hedgerow.model.cmdp import CMDP
from hedgerow.model.episode import Episode

EPISODES = 300
STREAM = 1403
"""Keeps the chance of the log apart from that of the run, whose seed it shares."""


def uniform_log(world: CMDP, episodes: int, seed: int) -> list[Episode]:
    """Episodes of the policy that chooses all actions alike."""
    policy = np.full(world.layout.num_rows, 1.0 / world.layout.num_actions)
    rng = np.random.default_rng([STREAM, seed])
    return [world.play(policy, rng) for _ in range(episodes)]


def absorb(learner: MirrorLearner, log: Sequence[Episode]) -> None:
    """Let a learner that has played nothing begin with the counts of a log."""
    core = learner.core
    laws, counts = core.rule.box.laws, core.state.counts
    for episode in log:
        rows = episode.rows.copy()
        record(core.index, laws, counts, rows, episode.triples.copy())
        record_costs(laws, counts, rows, episode.costs.copy())
    refresh_all(core.index, counts, core.rule.box, core.state.boxes)
    follow_boxes(core, core.buffers.all_rows)
    learner._start(core)


class Logged(SOPS):
    """Begins with a log of the world that it is about to be simulated in."""

    def kept(self, log: list[Episode]) -> list[Episode]:
        """The part of the log that it gets to see: all."""
        return log

    def watch(self, stage: Stage, **options: bool) -> MirrorWatcher:
        """The watch begins when the log is absorbed."""
        absorb(self, self.kept(uniform_log(stage.cmdp, EPISODES, self.seed)))
        return super().watch(stage, **options)
