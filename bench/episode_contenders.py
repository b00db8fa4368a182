"""Contenders of `python -m bench episode`: learners in the compiled loop, and learners in Python.

All of them run on one thread and are timed by the processor time of this process: the same as wall time when nothing
else runs, and hardly disturbed when something does.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from time import process_time
from typing import Protocol

import numpy as np

from bench import inside
from bench.episode_worlds import BenchWorld
from bench.plain_learners import PlainLearner
from hedgerow.checks import FloatArray, IntArray
from hedgerow.learners.api import Plan
from hedgerow.learners.ops.base import MirrorLearner
from hedgerow.model.episode import Episode
from hedgerow.simulation.run import Simulation, simulate

CLOSE = 5e-4
"""Occupancies that differ by less count as equal: a gap of 1e-8 only guarantees a distance of 1e-4."""


@dataclass(frozen=True)
class Recorded:
    """Episodes that were played, to be learnt from again: rows and losses (n, L), costs (n, L, m).

    The occupancy (n, num_rows) is q_hat of the learner that played, after each of them.
    """

    rows: IntArray
    losses: FloatArray
    costs: FloatArray
    occupancy: FloatArray


class Recorder:
    """A learner whose episodes are recorded."""

    def __init__(self, learner: MirrorLearner) -> None:
        self.view, self.learner = learner.view, learner
        self.played: list[tuple[IntArray, FloatArray, FloatArray, FloatArray]] = []

    def plan(self) -> Plan:
        return self.learner.plan()

    def observe(self, episode: Episode) -> None:
        self.learner.observe(episode)
        kept = (episode.rows.copy(), episode.losses.copy(), episode.costs.copy())
        self.played.append((*kept, inside.row_iterate(self.learner)))


def record(world: BenchWorld, learner: MirrorLearner, episodes: int, seed: int) -> Recorded:
    """Play `learner` for so many episodes and keep them."""
    recorder = Recorder(learner)
    simulate(world.cmdp, recorder, world.loss, seed=seed, progress=False, episodes=episodes)
    return Recorded(*(np.array(values) for values in zip(*recorder.played, strict=True)))


class Contender(Protocol):
    """Something that takes turns."""

    name: str

    def turn(self) -> float:
        """Seconds per episode."""

    @property
    def status(self) -> str: ...

    @property
    def deviation(self) -> float | None: ...


@dataclass
class Compiled:
    """A learner of ours in the compiled loop."""

    name: str
    learner: MirrorLearner
    simulation: Simulation
    per_turn: int
    deviation: float | None = None

    @property
    def status(self) -> str:
        counts = self.learner.diagnostics
        unusual = [f"{name} {counts[name]}" for name in ("infeasible", "suspect", "failed") if counts[name]]
        steps = counts["iterations"] / max(1, self.learner.episode)
        return f"{', '.join(unusual) or 'exact'}, {steps:.1f} steps"

    def turn(self) -> float:
        begun = process_time()
        self.simulation.advance(self.per_turn)
        return (process_time() - begun) / self.per_turn


@dataclass
class Plain:
    """A learner in Python, fed with recorded episodes; `follows` says whether it should have our iterates."""

    name: str
    learner: PlainLearner
    recorded: Recorded
    follows: bool
    played: int = 0
    worst: float = 0.0
    statuses: Counter[str] = field(default_factory=Counter)

    @property
    def status(self) -> str:
        told = ", ".join(f"{text} {count}" for text, count in self.statuses.most_common())
        return told + (", inexact" if self.follows and not self.worst <= CLOSE else "")

    @property
    def deviation(self) -> float | None:
        return self.worst if self.follows else None

    def turn(self) -> float:
        e, recorded = self.played, self.recorded
        rows, losses, costs = recorded.rows[e], recorded.losses[e], recorded.costs[e]
        begun = process_time()
        self.statuses[self.learner.observe(rows, losses, costs)] += 1
        seconds = process_time() - begun
        self.worst = max(self.worst, float(np.max(np.abs(self.learner.occupancy - recorded.occupancy[e]))))
        self.played += 1
        return seconds
