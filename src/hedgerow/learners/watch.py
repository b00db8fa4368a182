"""Watch a learner during a simulation: are its confidence sets right, and is it safe while they are?

The *clean event* of an episode: the truth, which only a simulation knows, lies in all confidence sets that its plan was
made from; every transition probability in its box, every mean cost within its bounds, and in whatever other sets the
family has. A set counts as it stands, however old: it is checked when it is rebuilt. Bounds of a mean loss do not
belong to it: they are right only if losses are independent draws around a mean, and no safety rests on them.

A learner that is `Watched` returns a `Watcher` for a run. The simulation reports to it, episode by episode, what was
planned, learnt and closed; the watcher returns columns at the checkpoints and facts of the run. A `Compiled` watcher
also runs whole blocks of episodes by itself, and must leave the same scores, bit for bit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.bundles import Bundle, Record
from hedgerow.compiling.kernels import copy_into, kernel
from hedgerow.confidence.boxes import Boxes
from hedgerow.environments.columns import Column
from hedgerow.environments.play import Streams, WorldArrays, make_path
from hedgerow.environments.scores import Curves, Scores, keep_mark
from hedgerow.errors import InvalidInput
from hedgerow.learners.kernels import Losses, losses_of
from hedgerow.losses.adaptive import Pursuit
from hedgerow.losses.blocks import LossBlock
from hedgerow.model.cmdp import CMDP
from hedgerow.model.episode import refuse_impossible
from hedgerow.model.kernel_layout import LayoutArrays

if TYPE_CHECKING:
    from hedgerow.learners.base import BaseLearner

TOL_CLEAN = 1e-12
MOVES, COSTS, BALL = 0, 1, 2
"""Columns of `CleanEvent.outside`"""
_CLEAN = "seeds whose confidence sets held the true transitions and mean costs in all episodes"
WATCHED = (
    Column("mixing_weight", label="λ_t", words="probability of the safe baseline", reduce="", tables=(), least=0.0),
    Column("mixing_total", label="Σ λ_t", words="episodes left to the safe baseline, expected", show="sum",
           tables=("answer", "latex"), least=0.0),
    Column("branch", "int32", words="0 the learner's policy, j + 1 the j-th baseline", reduce="", tables=()),
    Column("clean_now", "bool", words="whether the episode began with the truth in all sets", reduce="", tables=()),
    Column("unclean", "int64", "clean seeds", _CLEAN, "seeds", "whole", ("checks",)),
)  # fmt: skip
"""What is kept of a learner with a baseline, or with confidence sets, whatever its family."""


@dataclass(frozen=True, eq=False)
class RunContext:
    """What a run works with: the true world, the scores so far, the random streams."""

    cmdp: CMDP
    world: WorldArrays
    scores: Scores
    curves: Curves
    streams: Streams


class Watcher:
    """Observes the learner of a run from outside. This one sees nothing: the watcher of learners that have none."""

    declared: tuple[Column, ...] = ()
    """How its columns and facts are declared; a column without a declaration is a note."""

    def ready(self) -> None:
        """Before episodes are played: refuse a learner that cannot go on, finish what an interrupt left open."""

    def planned(self) -> None:
        """A plan was made, and its scores have been added."""

    def played(self, loss: FloatArray, costs: FloatArray) -> None:
        """The plan was played under the loss (num_rows,), at the costs (L, m); the learner does not know it yet."""

    def learnt(self, rows: IntArray) -> bool:
        """The learner was given the visited rows (n,): whether it has learnt, even if something then failed."""
        return True

    def finish(self) -> None:
        """Let the learner finish what an interrupt has left open."""

    def closed(self, mark: int) -> None:
        """The episode is over; it is the checkpoint `mark`, or none if that is -1."""

    def columns(self, reached: int) -> Mapping[str, NDArray[Any]]:
        """What was kept at the first `reached` checkpoints: arrays (reached,) by name."""
        return {}

    def facts(self, comparator: FloatArray) -> Mapping[str, float | int | None]:
        """The facts of the run, one number each; `comparator` is q* (num_rows,)."""
        return {}


@runtime_checkable
class Watched(Protocol):
    """A learner whose proofs can be watched."""

    def watch(self, stage: RunContext, *, audit: bool = False) -> Watcher:
        """The watcher of one run; an `audit` looks at more, and takes longer."""


@runtime_checkable
class Compiled(Protocol):
    """A watcher that can run blocks of episodes."""

    @property
    def compiled(self) -> bool:
        """Whether it may do so for this learner."""

    def run_block(self, block: LossBlock | int, pursuit: Pursuit | None = None) -> None:
        """Run all episodes of a block of losses, or so many against an adversary that pursues the learner."""


class SetTallies(Record):
    """How many sets the truth is outside of at present."""

    transitions: int
    """Rows"""
    costs: int
    """Rows"""
    balls: int
    """Rows"""
    sums: int
    """Generations of the aggregate certificate, constraint by constraint"""


class EventCounters(Record):
    """Whole numbers that are kept at checkpoints: those of the present episode, and totals so far."""

    branch: int
    """0 the learner's policy, j + 1 the j-th policy of the baseline"""
    clean_now: int
    """1 if the episode began with the truth in all confidence sets"""
    unclean: int
    """Episodes that did not"""
    refuted_safety: int
    """Episodes that violated a constraint although the event was clean and safety was promised"""


class MixingSums(Record):
    """Real numbers that are kept at checkpoints."""

    now_mixing: float
    """lambda of the present episode"""
    mixed: float
    """sum_t lambda"""


class CleanEvent(Bundle):
    """What was seen of the event so far, and what is kept at the C checkpoints; kernels modify it."""

    tallies: SetTallies
    outside: IntArray
    """(num_rows, 3): 1 where the transitions, the costs, or the transitions by the ball of a row are outside"""
    counters: EventCounters
    sums: MixingSums
    mark_counters: IntArray
    """(C, fields of `counters`)"""
    mark_sums: FloatArray
    """(C, fields of `sums`)"""


def make_event(num_rows: int, num_marks: int) -> CleanEvent:
    """Nothing seen yet."""
    return CleanEvent(
        tallies=SetTallies(),
        outside=np.zeros((num_rows, 3), dtype=np.int64),
        counters=EventCounters(),
        sums=MixingSums(),
        mark_counters=np.zeros((num_marks, len(EventCounters.fields)), dtype=np.int64),
        mark_sums=np.zeros((num_marks, len(MixingSums.fields))),
    )


@kernel
def is_clean(now: SetTallies) -> bool:
    """Whether the truth is in all sets."""
    return now.transitions == 0 and now.costs == 0 and now.balls == 0 and now.sums == 0


@kernel
def check_moves(index: LayoutArrays, world: WorldArrays, boxes: Boxes, row: int, event: CleanEvent) -> None:
    """Compare the box of a row with its true transitions."""
    outside = 0
    for j in range(index.row_start[row], index.row_start[row + 1]):
        p = world.transitions[j]
        if p < boxes.lower[j] - TOL_CLEAN or p > boxes.upper[j] + TOL_CLEAN:
            outside = 1
    event.tallies.transitions += outside - event.outside[row, MOVES]  # the tally counts each row at most once
    event.outside[row, MOVES] = outside


@kernel
def check_costs(world: WorldArrays, boxes: Boxes, row: int, event: CleanEvent) -> None:
    """Compare the bounds of the costs of a row with their true means."""
    outside = 0
    for i in range(world.mean_costs.shape[1]):
        g = world.mean_costs[row, i]
        if g < boxes.cost_lower[row, i] - TOL_CLEAN or g > boxes.cost_upper[row, i] + TOL_CLEAN:
            outside = 1
    event.tallies.costs += outside - event.outside[row, COSTS]
    event.outside[row, COSTS] = outside


@kernel
def check_rows(index: LayoutArrays, world: WorldArrays, boxes: Boxes, rows: IntArray, event: CleanEvent) -> None:
    """Compare the sets of some rows (n,), which have just changed, with the truth."""
    for row in rows:
        check_moves(index, world, boxes, row, event)
        check_costs(world, boxes, row, event)


@kernel
def watch_event(branch: int, mixing: float, promised: bool, scores: Scores, event: CleanEvent) -> None:
    """Count the episode that is about to be played, after its scores have been added.

    `promised` says whether it may violate nothing while the event is clean.
    """
    counters, sums = event.counters, event.sums
    clean, unsafe = is_clean(event.tallies), False
    for i in range(len(scores.excess)):
        unsafe |= scores.excess[i] > 0.0
    counters.branch, counters.clean_now = branch, 1 if clean else 0
    sums.now_mixing = mixing
    sums.mixed += mixing
    if not clean:
        counters.unclean += 1
    elif unsafe and promised:
        counters.refuted_safety += 1


@kernel
def keep_event(mark: int, event: CleanEvent) -> None:
    """Keep the numbers if the episode is the checkpoint `mark` >= 0."""
    if mark >= 0:
        copy_into(event.counters.values, event.mark_counters[mark])
        copy_into(event.sums.values, event.mark_sums[mark])


class LearnerWatcher(Watcher, ABC):
    """Watches one run of a learner, episode by episode; a family that has a compiled loop also runs blocks by it."""

    declared: tuple[Column, ...] = WATCHED

    def __init__(self, learner: BaseLearner, stage: RunContext) -> None:
        learner.complete()
        self.learner, self.stage = learner, stage
        self.event = make_event(learner.layout.num_rows, len(stage.curves.marks))
        self._path = make_path(learner.layout, learner.view.num_constraints)
        self._losses = np.zeros(learner.layout.num_rows)
        self._learnt, self._closed = learner.episode, True

    @property
    def compiled(self) -> bool:
        """Whether blocks may be run compiled."""
        return False

    def ready(self) -> None:
        if self.learner.num_open or self.learner.num_waiting:  # compiled code would draw that branch again
            raise InvalidInput(
                f"episode {self.learner.episode} of the learner is planned already; call observe with what happened "
                "in it before it is simulated"
            )
        self._closed = self._closed and not self.learner.unfinished
        self._close()

    def planned(self) -> None:
        self._learnt = self.learner.episode

    def learnt(self, rows: IntArray) -> bool:
        if self.learner.episode == self._learnt:
            return False
        own = self._path.rows[: len(rows)]
        own[:] = rows  # kernels are compiled for arrays that can be written to
        self._look(own)
        self._closed = False
        return True

    def finish(self) -> None:
        self.learner.complete()

    def closed(self, mark: int) -> None:
        self._keep(mark)
        self._closed = True

    @abstractmethod
    def _look(self, rows: IntArray) -> None:
        """Check the sets that the visits of these rows (n,) may have changed."""

    @abstractmethod
    def _keep(self, mark: int) -> None:
        """Keep the numbers of an episode that is over."""

    def run_block(self, block: LossBlock | int, pursuit: Pursuit | None = None) -> None:
        """Run all episodes of a block of losses, or so many against an adversary that pursues the learner."""
        done, given = 0, losses_of(block, pursuit, self._losses)
        while done < len(given.pattern):
            done, self._closed = self._run(given, done)
            if self.learner.progress.pending:  # by what the learner knows the episode is impossible
                refuse_impossible(self.learner.view, self._path.rows, self._path.triples, self._path.costs)
            self._close()
            self.learner.announce()

    def _run(self, given: Losses, first: int) -> tuple[int, bool]:
        """Run the episodes first, ... compiled: how many of the block are done, and whether the last one is closed."""
        raise NotImplementedError

    def _close(self) -> None:
        """Finish the last episode, if it waits for a slow solver."""
        self.learner.complete()
        if not self._closed:
            self._keep(keep_mark(self.stage.scores, self.stage.curves))
            self._closed = True

    def mixing_columns(self, reached: int) -> dict[str, NDArray[Any]]:
        """lambda in the episodes of the first `reached` checkpoints, and summed so far."""
        sums = self.event.mark_sums[:reached]
        return {
            "mixing_weight": sums[:, MixingSums.place("now_mixing")],
            "mixing_total": sums[:, MixingSums.place("mixed")],
        }

    def event_columns(self, reached: int) -> dict[str, NDArray[Any]]:
        """Which policy was drawn there, whether the event was clean, and in how many episodes so far it was not."""
        counters = self.event.mark_counters[:reached]
        return {
            column.name: counters[:, EventCounters.place(column.name)].astype(column.type)
            for column in WATCHED
            if column.name in EventCounters.fields
        }
