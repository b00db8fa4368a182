"""`python -m bench episode`: microseconds per episode, ours beside learners written with general solvers.

Every learner plays a warm-up first, preset `sharp`, until boxes are informative and constraints active. Then all
contenders of a world take turns, the first one rotating, each with a short run of episodes, until all have had their
turns or used up their time: what disturbs the machine disturbs all. Times are medians of processor time.

Ours are timed in the compiled loop with everything in it: drawing the episode, learning, exact scoring. The others go
on from what our SV-OPS has seen, on episodes that it played; only their learning is timed. tools/profile_episode.py
shows where the time of our episode goes, function by function.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any, Self

import numpy as np

from bench import terminal
from bench.benchmark import Benchmark, option
from bench.contender_rows import ContenderRow, tables_by_world
from bench.episode_contenders import Compiled, Contender, Plain, Recorded, record
from bench.episode_goals import Goal, goals
from bench.episode_worlds import LABELS, BenchWorld
from bench.mirror_steps import SIZES
from bench.plain_learners import OptimisticLP, PlainLearner, PlainOREPS, PlainSVOPS
from bench.pynol_peer import PyNOLHedge
from bench.timing import Spread
from hedgerow.display.table import Table
from hedgerow.learners.ops.base import MirrorLearner
from hedgerow.learners.ops.s_ops import SOPS
from hedgerow.learners.ops.sv_ops import SVOPS
from hedgerow.learners.ops.uob_reps import UOBREPS
from hedgerow.planning import offline
from hedgerow.report.plots import Line, Plot, log_plot
from hedgerow.simulation.run import Simulation
from hedgerow.verify.controls import TheoryStop

DELTA = 0.01
OURS = "SV-OPS"
FLOOR = "SV-OPS, one evaluation"
LARGE = 5_000
"""Triples beyond which an eighth of the warm-up is enough: a sparse support has little to learn about each row."""


@dataclass(frozen=True)
class EpisodeRow(ContenderRow):
    """The figures of one contender in one world; times are seconds per episode."""

    deviation: float | None = None
    """The largest difference of q_hat(x,a), for contenders that should follow our iterates"""


@dataclass(frozen=True)
class EpisodeSpeed(Benchmark[list[EpisodeRow]]):
    """Microseconds per episode, ours beside learners with general solvers, interleaved.

    Learners are built for `episodes`. A turn of ours should last `turn` seconds, the others have one episode. A
    contender has `budget` seconds per world, and the turn that exceeds it is the last.
    """

    name, json_file, figure_file = "episode", "episode-speed.json", "episode-speed.svg"

    worlds: int = option(len(LABELS), "only the first so many of the seven worlds")
    episodes: int = 20_000
    warm_up: int = 8_000
    turns: int = 40
    turn: float = 0.02
    most_per_turn: int = 250
    budget: float = 30.0
    seed: int = 0

    @classmethod
    def quick(cls) -> Self:
        return cls(worlds=2, warm_up=4_000, turns=12, budget=2.0)

    def run(self) -> list[EpisodeRow]:
        rows: list[EpisodeRow] = []
        labels = list(LABELS)[: self.worlds]
        with terminal.progress("bench episode", len(labels) * (self.turns + 1)) as advance:
            for label in labels:
                try:
                    world = LABELS[label]()
                except ImportError as error:
                    rows.append(EpisodeRow(label, 0, OURS, _not_installed(error)))
                    continue
                rows += self._one_world(world, advance)
        return rows

    def _one_world(self, world: BenchWorld, advance: terminal.Advance) -> list[EpisodeRow]:
        compiled = list(self.compiled(world).values())
        own = compiled[0].learner
        plain, missing = plain_learners(world, own, record(world, copy.copy(own), self.turns, self.seed + 2))
        advance(f"{world.label}, warm")
        able: list[Contender] = [*compiled, *plain]
        samples = self.take_turns(able, lambda: advance(world.label))
        ours = float(np.median(samples[OURS]))
        rows = []
        for contender in able:
            time = Spread.of(samples[contender.name])
            told = (contender.status, time, time.median / ours, contender.deviation)
            rows.append(EpisodeRow(world.label, world.triples, contender.name, *told))
        return rows + [EpisodeRow(world.label, world.triples, name, reason) for name, reason in missing.items()]

    def compiled(self, world: BenchWorld) -> dict[str, Compiled]:
        """Our learners after their warm-up, by name, and the floor of the first."""
        learners = our_learners(world, self.episodes)
        found = {name: self.warmed(world, name, each) for name, each in learners.items()}
        return found | {FLOOR: self._floor(world, found[OURS])}

    def _floor(self, world: BenchWorld, ours: Compiled) -> Compiled:
        """The same loop with one evaluation of the dual instead of each projection: no residual is too large."""
        learner = copy.copy(ours.learner)
        learner.core = learner.core.replace(rule=learner.core.rule.replace(tol=np.inf))
        return Compiled(FLOOR, learner, Simulation(world.cmdp, learner, world.loss, self.seed + 1), ours.per_turn)

    def warmed(self, world: BenchWorld, name: str, learner: MirrorLearner) -> Compiled:
        """The learner after its warm-up, in the compiled loop."""
        episodes = self.warm_up if world.triples <= LARGE else self.warm_up // 8
        warm_up = Simulation(world.cmdp, learner, world.loss, self.seed, episodes=episodes)
        warm_up.advance(episodes // 2)  # compiles, if need be
        begun = warm_up.seconds
        warm_up.finish()
        price = (warm_up.seconds - begun) / (episodes - episodes // 2)
        per_turn = int(np.clip(self.turn / price, 10, self.most_per_turn))
        return Compiled(name, learner, Simulation(world.cmdp, learner, world.loss, self.seed + 1), per_turn)

    def take_turns(self, able: Sequence[Contender], advance: Callable[[], None]) -> dict[str, list[float]]:
        """Seconds per episode of all contenders, by name."""
        samples: dict[str, list[float]] = {contender.name: [] for contender in able}
        spent = dict.fromkeys(samples, 0.0)
        for i in range(self.turns):
            first = i % len(able)
            for contender in [*able[first:], *able[:first]]:
                if spent[contender.name] <= self.budget:
                    begun = perf_counter()
                    samples[contender.name].append(contender.turn())
                    spent[contender.name] += perf_counter() - begun
            advance()
        return samples

    def more(self, found: list[EpisodeRow]) -> dict[str, Any]:
        return {"goals": [asdict(goal) for goal in _goals(found)]}

    def plot(self, found: list[EpisodeRow]) -> Plot:
        """Time over size, for the worlds with random layers."""
        sizes = {size.label for size in SIZES}
        timed = [row for row in found if row.time is not None and row.world in sizes]
        lines = [
            Line(name, [(row.triples, 1e6 * row.time.median) for row in timed if row.contender == name and row.time])
            for name in dict.fromkeys(row.contender for row in timed)
        ]
        return log_plot("Time of an episode", "triples (x, a, x')", "microseconds", lines)

    def shown(self, found: list[EpisodeRow]) -> Iterator[Table | str]:
        """A table per world, and the goals."""
        yield from tables_by_world(found, "x SV-OPS", ["deviation"], lambda row: (row.deviation,))
        table = Table("goals", ["goal", "world", "found", "asked", "met"], num_text=2, num_keys=2)
        for goal in _goals(found):
            table.add_row(goal.name, goal.world, goal.shown_found, goal.shown_asked, "met" if goal.met else "not met")
        yield table
        yield "Ours: the compiled loop with sampling, learning and exact scoring. Others: learning alone, on our data."
        yield "deviation: of q_hat from ours, for contenders that should follow it. steps: of Newton's method."


def _goals(rows: Sequence[EpisodeRow]) -> tuple[Goal, ...]:
    medians = {(row.world, row.contender): row.time.median for row in rows if row.time is not None}
    return goals(medians, {row.world: row.triples for row in rows})


def our_learners(world: BenchWorld, episodes: int) -> dict[str, MirrorLearner]:
    """Our learners by name; the others are compared with the first."""
    view, best = world.cmdp.view(), offline.slater(world.cmdp)
    safe: dict[str, Any] = {"baseline": best.policy, "baseline_costs": best.costs}
    return {
        OURS: SVOPS(view, episodes, DELTA, "sharp"),
        "S-OPS, joint": SOPS(view, episodes, DELTA, "sharp", **safe),
        "S-OPS, all pairs": SOPS(view, episodes, DELTA, "sharp", joint_cost=False, **safe),
        # With the constants of the theory the search does not end, and its episodes cost the same.
        "CV-OPS, phase 1": TheoryStop(view, episodes, DELTA, "sharp"),
        "UOB-REPS": UOBREPS(view, episodes, DELTA, "sharp"),
    }


def plain_learners(world: BenchWorld, own: MirrorLearner, recorded: Recorded) -> tuple[list[Plain], dict[str, str]]:
    """Learners in Python that can run here, and why the others cannot."""
    makers: dict[str, tuple[Callable[[], PlainLearner], bool]] = {
        PlainSVOPS.name: (lambda: PlainSVOPS(own), True),
        OptimisticLP.name: (lambda: OptimisticLP(own, world.loss), False),
        PlainOREPS.name: (lambda: PlainOREPS(own, world.cmdp.transitions, world.loss), False),
        PyNOLHedge.name: (lambda: PyNOLHedge(own, world.cmdp.transitions, world.loss), False),
    }
    able: list[Plain] = []
    missing: dict[str, str] = {}
    for name, (make, follows) in makers.items():
        try:
            able.append(Plain(name, make(), recorded, follows))
        except ImportError as error:
            missing[name] = _not_installed(error)
    return able, missing


def _not_installed(error: ImportError) -> str:
    return f"not installed ({error.name})"
