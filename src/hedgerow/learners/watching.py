"""Watchers: they check the proofs of a learner during a simulation, which alone knows the truth.

A learner that is `Watched` returns a `Watcher` for a run. The simulation tells it, episode by episode, what was
planned, learnt and closed; the watcher returns columns at the checkpoints and facts of the run. A `Compiled` watcher
also runs whole blocks of episodes by itself, and must leave the same scores, bit for bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from numpy.typing import NDArray

from hedgerow.adversaries.adaptive import Pursuit
from hedgerow.adversaries.loss_blocks import LossBlock
from hedgerow.checks import FloatArray, IntArray
from hedgerow.environments.play import KernelWorld, Streams
from hedgerow.environments.scores import Curves, Scores
from hedgerow.model.cmdp import CMDP


@dataclass(frozen=True, eq=False)
class Stage:
    """What a run works with: the true world, the scores so far, the random streams."""

    cmdp: CMDP
    world: KernelWorld
    scores: Scores
    curves: Curves
    streams: Streams


class Watcher(Protocol):
    """Observes the learner of a run from outside."""

    def ready(self) -> None:
        """Before episodes are played: refuse a learner that cannot go on, finish what an interrupt left open."""

    def planned(self) -> None:
        """A plan was made, and its scores have been added."""

    def played(self, loss: FloatArray, costs: FloatArray) -> None:
        """The plan was played under the loss (num_rows,), at the costs (L, m); the learner does not know it yet."""

    def learnt(self, rows: IntArray) -> bool:
        """The learner has been told of the visited rows (n,): whether it has learnt, even if something then failed."""

    def finish(self) -> None:
        """Let the learner finish what an interrupt has left open."""

    def closed(self, mark: int) -> None:
        """The episode is over; it is the checkpoint `mark`, or none if that is -1."""

    def columns(self, reached: int) -> Mapping[str, NDArray[Any]]:
        """What was kept at the first `reached` checkpoints: arrays (reached,) by name."""

    def facts(self, comparator: FloatArray) -> Mapping[str, float | int | None]:
        """The facts of the run, one number each; `comparator` is q* (num_rows,)."""


@runtime_checkable
class Watched(Protocol):
    """A learner whose proofs can be watched."""

    def watch(self, stage: Stage, *, audit: bool = False) -> Watcher:
        """The watcher of one run; an `audit` looks at more, and takes longer."""


@runtime_checkable
class Compiled(Protocol):
    """A watcher that can run blocks of episodes."""

    @property
    def compiled(self) -> bool:
        """Whether it may do so for this learner."""

    def run_block(self, block: LossBlock | int, pursuit: Pursuit | None = None) -> None:
        """Run all episodes of a block of losses, or so many against an adversary that pursues the learner."""


class Nobody:
    """The watcher of learners that have none of their own."""

    def ready(self) -> None:
        return

    def planned(self) -> None:
        return

    def played(self, loss: FloatArray, costs: FloatArray) -> None:
        return

    def learnt(self, rows: IntArray) -> bool:
        return True

    def finish(self) -> None:
        return

    def closed(self, mark: int) -> None:
        return

    def columns(self, reached: int) -> Mapping[str, NDArray[Any]]:
        return {}

    def facts(self, comparator: FloatArray) -> Mapping[str, float | int | None]:
        return {}
