"""`python -m bench calls`: the time of a call from Python, beside that of the compiled code inside it.

Learners first play a warm-up, preset `sharp`, until boxes are informative. Then three copies of each take turns on the
same episodes: one gets them as plain arrays, one as an `Episode`, one runs in the compiled loop, with drawing and exact
scoring. All three must end with the same policy, bit by bit. Episodes are drawn between the timed calls.

The base of projections is independent of the boxes: many of these are active. Beside `Projector.project` and `project`,
the compiled call is timed alone, from v = 0, theta = 0 like the other two.

Every kind of call is made some hundred times before it is timed, files are read a few times. A time is the processor
time of a single call, without that of reading the clock; for the loop, whose turns are longer, it is divided by
episodes.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any, Self

import numpy as np

import hedgerow as hr
from bench import inside, terminal
from bench.benchmark import Benchmark, option
from bench.episode_worlds import LABELS, BenchWorld
from bench.mirror_steps import SIZES
from bench.timing import Spread, at_most, clocked, duration, reading
from hedgerow.display.table import Table
from hedgerow.environments.play import Player, make_streams, make_world
from hedgerow.learners.ops.base import MirrorLearner
from hedgerow.projection.newton import SOLVED
from hedgerow.projection.problem import ProjectionProblem
from hedgerow.simulation.run import Simulation

DELTA = 0.01
WORLDS = (SIZES[0].label, SIZES[1].label, "dope-media")
BOX = 0.2
"""Half the width of the boxes of projections, around the true transitions."""
PLAN, OBSERVE, BOTH = "plan", "observe(rows, losses, costs)", "plan + observe"
OBSERVE_EPISODE, LOAD, COPY = "observe(Episode)", "load", "copy.copy"
PROJECTOR, PROJECT = "Projector.project", "project(ProjectionProblem)"
MOST_SECONDS = {BOTH: 45e-6, PROJECTOR: 25e-6}
"""Goals for the median, in the smallest world"""
MOST_LOADING = 0.3
"""Goal for loading, in every world"""
FIRST_FILES = 3
"""Files that are read before times count"""


@dataclass(frozen=True)
class CallRow:
    """One kind of call in one world; times are seconds."""

    world: str
    triples: int
    who: str
    """The learner, or what else is called"""
    call: str
    time: Spread
    inside: float | None = None
    """The median of the same work in compiled code, where it can be timed apart"""
    asked: float | None = None
    """What the median should be at most"""

    @property
    def verdict(self) -> str:
        if self.asked is None:
            return ""
        return "met" if self.time.median <= self.asked else "not met"


@dataclass(frozen=True)
class Calls(Benchmark[list[CallRow]]):
    """Microseconds of single calls from Python, beside those of the compiled code inside.

    Learners are built for `episodes`, and play `warm_up` of them in the compiled loop.
    """

    name, json_file = "calls", "calls.json"

    worlds: int = option(len(WORLDS), "only the first so many of the three worlds")
    episodes: int = 20_000
    warm_up: int = 8_000
    first: int = 300
    """Calls that are not counted"""
    turns: int = 10
    per_turn: int = 200
    """Calls of a turn"""
    files: int = 40
    """Learners that are loaded, and copied"""
    seed: int = 0

    @classmethod
    def quick(cls) -> Self:
        return cls(worlds=2, warm_up=2_000, turns=4, per_turn=100, files=10)

    def run(self) -> list[CallRow]:
        rows: list[CallRow] = []
        labels = WORLDS[: self.worlds]
        with terminal.progress("bench calls", 3 * len(labels)) as advance:
            for label in labels:
                world = LABELS[label]()
                for name, learner in our_learners(world, self.episodes).items():
                    rows += self._learner(world, name, learner)
                    advance(f"{label}, {name}")
                rows += self._projection(world)
                advance(f"{label}, projections")
        return rows

    def _learner(self, world: BenchWorld, name: str, learner: MirrorLearner) -> list[CallRow]:
        Simulation(world.cmdp, learner, world.loss, self.seed, episodes=self.warm_up).finish()
        arrays, whole = (Caller(world, copy.copy(learner), self.seed + 1, by) for by in (as_arrays, as_episode))
        last = copy.copy(learner)
        loop = Simulation(world.cmdp, last, world.loss, self.seed + 1)
        looped: list[float] = []
        for count in (self.first, *[self.per_turn] * self.turns):
            arrays.play(count)
            whole.play(count)
            begun = process_time()
            loop.advance(count)
            looped.append((process_time() - begun) / count)
        check_equal(arrays.learner, whole.learner, last)
        plans, observes = np.array(arrays.seconds[self.first :]).T
        own = float(np.median(looped[1:]))
        called: dict[str, tuple[Any, float | None]] = {
            PLAN: (plans, None),
            OBSERVE: (observes, None),
            BOTH: (plans + observes, own),
            OBSERVE_EPISODE: (np.array(whole.seconds[self.first :])[:, 1], None),
            LOAD: (self._loads(learner), None),
            COPY: (clocked(lambda: copy.copy(learner), FIRST_FILES + self.files)[FIRST_FILES:], None),
        }
        return [_row(world, name, call, *found) for call, found in called.items()]

    def _loads(self, learner: MirrorLearner) -> list[float]:
        with TemporaryDirectory() as folder:
            path = Path(folder, "learner.hedgerow")
            learner.save(path)
            return clocked(lambda: hr.load(path), FIRST_FILES + self.files)[FIRST_FILES:]

    def _projection(self, world: BenchWorld) -> list[CallRow]:
        layout, arrays = world.cmdp.layout, boxed(world, self.seed)
        projector = hr.projection.Projector(layout, world.cmdp.num_constraints)
        solve = inside.compiled_solve(projector)
        projector.project(*arrays)
        if solve().code != SOLVED:
            raise RuntimeError("the projection is not one that compiled code solves")
        calls: dict[str, tuple[Callable[[], object], Callable[[], None]]] = {
            PROJECTOR: (lambda: projector.project(*arrays), lambda: None),
            PROJECT: (lambda: hr.projection.project(ProjectionProblem(layout, *arrays)), lambda: None),
            "": (solve, lambda: inside.start_over(projector)),
        }
        seconds: dict[str, list[float]] = {call: [] for call in calls}
        for count in (self.first, *[self.per_turn] * self.turns):
            for call, (function, before) in calls.items():
                seconds[call] += clocked(function, count, before)
        counted = {call: found[self.first :] for call, found in seconds.items()}
        own = float(np.median(counted.pop("")))
        return [_row(world, "projection", call, found, own) for call, found in counted.items()]

    def shown(self, found: list[CallRow]) -> Iterator[Table | str]:
        """A table per world."""
        columns = ["who", "call", "p50", "p90", "n", "inside", "asked", "met"]
        for label in dict.fromkeys(row.world for row in found):
            own = [row for row in found if row.world == label]
            table = Table(f"{label}: {own[0].triples} triples", columns, num_text=2, num_keys=2)
            for row in own:
                times = [duration(row.time.median), duration(row.time.p90), str(row.time.count)]
                compiled = "-" if row.inside is None else duration(row.inside)
                table.add_row(row.who, row.call, *times, compiled, at_most(row.asked), row.verdict or "-")
            yield table
        yield "inside: the same work in compiled code. Of plan + observe: an episode of the loop, with its scores."


@dataclass
class Caller:
    """A learner that is called from Python; `tell` makes the arguments of `observe` from an episode."""

    world: BenchWorld
    learner: MirrorLearner
    seed: int
    tell: Callable[[hr.Episode], tuple[Any, ...]]
    seconds: list[tuple[float, float]] = field(default_factory=list)
    """Times of `plan` and `observe`"""

    def __post_init__(self) -> None:
        self.player = Player(self.world.cmdp, make_world(self.world.cmdp), make_streams(self.seed))

    def play(self, count: int) -> None:
        """Play so many episodes: those of a simulation with the same seed."""
        own = reading()
        for _ in range(count):
            begun = process_time()
            plan = self.learner.plan()
            planned = process_time()
            told = self.tell(self.player.play(plan.policy, self.world.loss))
            played = process_time()
            self.learner.observe(*told)
            learnt = process_time()
            self.seconds.append((planned - begun - own, learnt - played - own))


def as_arrays(episode: hr.Episode) -> tuple[Any, ...]:
    """Rows, losses and costs, as a user's program has them."""
    return episode.rows.copy(), episode.losses.copy(), episode.costs.copy()


def as_episode(episode: hr.Episode) -> tuple[Any, ...]:
    return (episode,)


def our_learners(world: BenchWorld, episodes: int) -> dict[str, MirrorLearner]:
    """Our learners by name."""
    view = world.cmdp.view()
    return {
        "SV-OPS": hr.SVOPS(view, episodes, DELTA, "sharp"),
        "S-OPS": hr.SOPS(view, episodes, DELTA, "sharp", baseline=hr.offline.slater(world.cmdp)),
    }


def boxed(world: BenchWorld, seed: int) -> tuple[Any, ...]:
    """A projection with active boxes: log base, lower, upper, costs and thresholds."""
    cmdp, rng = world.cmdp, np.random.default_rng(seed)
    log_base = rng.normal(size=world.triples) - 3.0
    boxes = np.maximum(cmdp.transitions - BOX, 0.0), np.minimum(cmdp.transitions + BOX, 1.0)
    return log_base, *boxes, cmdp.mean_costs, cmdp.thresholds


def check_equal(one: MirrorLearner, *others: MirrorLearner) -> None:
    """Check that learners with the same episodes have learnt the same."""
    if any(not np.array_equal(one.policy, other.policy) for other in others):
        raise RuntimeError("the same episodes, told in different ways, led to different policies")


def _row(world: BenchWorld, who: str, call: str, seconds: Sequence[float], own: float | None) -> CallRow:
    return CallRow(world.label, world.triples, who, call, Spread.of(seconds), own, asked(world.label, call))


def asked(world: str, call: str) -> float | None:
    """The goal of a call in a world, if it has one."""
    if call == LOAD:
        return MOST_LOADING
    return MOST_SECONDS.get(call) if world == WORLDS[0] else None
