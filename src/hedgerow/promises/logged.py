"""S-OPS with a log: episodes that somebody else played in the same world come before its own.

A log uses up no delta, because the sets hold at all times: it gives the first factors of their martingales. The choice
of its episodes must not depend on what happened in them (`controls/overconfident.py` has one that does).
"""

from __future__ import annotations

import numpy as np

from hedgerow.learners.mirror.sops import SOPS
from hedgerow.learners.mirror.watcher import MirrorWatcher
from hedgerow.learners.watching import Stage
from hedgerow.model.cmdp import CMDP
from hedgerow.model.episode import Episode

EPISODES = 300
STREAM = 1403
"""Separates the random stream of the log from that of the run, which has the same seed."""


def uniform_log(world: CMDP, episodes: int, seed: int) -> list[Episode]:
    """Episodes of the policy that chooses all actions alike."""
    policy = np.full(world.layout.num_rows, 1.0 / world.layout.num_actions)
    rng = np.random.default_rng([STREAM, seed])
    return [world.play(policy, rng) for _ in range(episodes)]


class Logged(SOPS):
    """Begins with a log of the world in which it will be simulated."""

    def kept(self, log: list[Episode]) -> list[Episode]:
        """The part of the log that it sees: all of it."""
        return log

    def watch(self, stage: Stage, **options: bool) -> MirrorWatcher:
        """Absorb the log, then begin to watch."""
        self.absorb(self.kept(uniform_log(stage.cmdp, EPISODES, self.seed)))
        return super().watch(stage, **options)
