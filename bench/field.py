"""`python -m bench field`: microseconds per episode of all learners of the field, beside S-OPS and one linear program.

All learners have the radii of S-OPS with preset `sharp` and play a warm-up first. Then they take turns, each with a
short run of compiled episodes with everything in it: drawing, learning, planning, exact scoring. Times are medians of
processor time. "much data" is the same LP learner with all counts times 1,000 after its warm-up: narrow boxes,
constraints that bind, and more sweeps per plan. HiGHS solves the program of OptCMDP's last plan, over rows and triples,
and nothing else is timed.

The goals: at most 3 times S-OPS; for LP learners also at least 100 times faster than a linear program per episode.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from time import process_time
from typing import Any, Self

import numpy as np

from bench import terminal
from bench.benchmark import Benchmark, option
from bench.episode_worlds import BenchWorld, catalogue_world
from bench.timing import Spread, duration
from hedgerow.confidence.boxes import refresh_all
from hedgerow.display.table import Table
from hedgerow.learners.field import (
    DOPE,
    OPSEDP,
    SLP,
    UCPD,
    UCPDIX,
    AlwaysBaseline,
    BoBPD,
    DOPEPlus,
    OptCMDP,
    OptPessLP,
    OptPrimalDual,
    SafeETC,
    TripleQ,
)
from hedgerow.learners.field.lp import LPLearner
from hedgerow.learners.field.lp_kernels import write_tables
from hedgerow.learners.ops.s_ops import SOPS
from hedgerow.planning import offline
from hedgerow.planning.lp import NoSolution, box_program, least_loss_in_boxes
from hedgerow.simulation.run import Simulation

WORLDS = ("dope-factored", "dope-media")
DELTA = 0.01
OURS, HIGHS, RICH = "S-OPS", "HiGHS, one program", "much data"
RICHER = 1_000
"""Times the counts"""
MOST_TIMES, LEAST_FASTER = 3.0, 100.0
SAME_VALUE = 1e-6


@dataclass(frozen=True)
class FieldRow:
    """A contender in a world; seconds per episode."""

    world: str
    triples: int
    contender: str
    time: Spread
    times_ours: float
    """The median over that of S-OPS"""
    faster: float
    """The median of HiGHS over this one"""
    status: str
    plans: bool
    """Whether it solves a linear program for each plan"""

    @property
    def verdict(self) -> str:
        if self.contender in (OURS, HIGHS):
            return ""
        fast = self.times_ours <= MOST_TIMES and (self.faster >= LEAST_FASTER or not self.plans)
        return "met" if fast else "not met"


@dataclass(frozen=True)
class FieldSpeed(Benchmark[list[FieldRow]]):
    """Time of an episode of the learners of the field, by turns with S-OPS and a linear program by HiGHS."""

    name, json_file = "field", "field-speed.json"

    warm_up: int = option(8_000, "episodes before the first that is timed")
    turns: int = option(40, "of each learner")
    programs: int = option(5, "that HiGHS solves in each world")
    per_turn: int = 200
    seed: int = 0

    @classmethod
    def quick(cls) -> Self:
        return cls(warm_up=2_000, turns=8, programs=2)

    def run(self) -> list[FieldRow]:
        rows: list[FieldRow] = []
        with terminal.progress("bench field", len(WORLDS) * self.turns) as advance:
            for name in WORLDS:
                rows += self._one_world(catalogue_world(name), partial(advance, name))
        return rows

    def _one_world(self, world: BenchWorld, advance: Callable[[], None]) -> list[FieldRow]:
        learners = contenders(world, self.warm_up + self.turns * self.per_turn)
        runs = {name: self._warmed(world, each) for name, each in learners.items()}
        for name in [name for name, each in learners.items() if isinstance(each, LPLearner)]:
            learners[f"{name}, {RICH}"] = rich = much_data(learners[name])
            runs[f"{name}, {RICH}"] = Simulation(world.cmdp, rich, world.loss, self.seed + 1)
        times: dict[str, list[float]] = {name: [] for name in runs}
        names = list(runs)
        for i in range(self.turns):
            for name in names[i % len(names) :] + names[: i % len(names)]:
                begun = process_time()
                runs[name].advance(self.per_turn)
                times[name].append((process_time() - begun) / self.per_turn)
            advance()
        times[HIGHS], status = programs(learners["OptCMDP"], self.programs)
        ours, theirs = (float(np.median(times[name])) for name in (OURS, HIGHS))
        told = {HIGHS: status} | {name: f"{runs[name].way}{_status(each)}" for name, each in learners.items()}
        plans = [name for name, each in learners.items() if isinstance(each, LPLearner)]
        spreads = {name: Spread.of(seconds) for name, seconds in times.items()}
        return [
            FieldRow(
                world.label, world.triples, name, time, time.median / ours, theirs / time.median, told[name],
                name in plans,
            )
            for name, time in spreads.items()
        ]  # fmt: skip

    def _warmed(self, world: BenchWorld, learner: Any) -> Simulation:
        Simulation(world.cmdp, learner, world.loss, self.seed, episodes=self.warm_up).finish()
        return Simulation(world.cmdp, learner, world.loss, self.seed + 1)

    def is_right(self, found: list[FieldRow]) -> bool:
        return all("wrong" not in row.status for row in found)

    def shown(self, found: list[FieldRow]) -> Iterator[Table | str]:
        columns = ["world", "contender", "triples", "median", f"x {OURS}", "faster than HiGHS", "status", ""]
        table = Table("time of an episode", columns, num_text=2, num_keys=2)
        for row in found:
            figures = (duration(row.time.median), f"{row.times_ours:.2f}x", f"{row.faster:,.0f}x")
            table.add_row(row.world, row.contender, f"{row.triples:,}", *figures, row.status, row.verdict)
        yield table
        yield f"Goals: at most {MOST_TIMES:g}x {OURS}; LP learners also at least {LEAST_FASTER:g}x faster than HiGHS."


def contenders(world: BenchWorld, episodes: int) -> dict[str, Any]:
    """The learners by name, all with the same radii; DOPE without its warm-up, which would plan nothing."""
    view, safe = world.cmdp.view(), offline.slater(world.cmdp)
    common: dict[str, Any] = {"sets": "sharp"}
    return {
        OURS: SOPS(view, episodes, DELTA, "sharp", baseline=safe),
        "OptCMDP": OptCMDP(view, episodes, DELTA, **common),
        "DOPE, sharp": DOPE(view, episodes, DELTA, baseline=safe, warmup=0, sharp=True, **common),
        "DOPE+": DOPEPlus(view, episodes, DELTA, baseline=safe, **common),
        "S-LP": SLP(view, episodes, DELTA, baseline=safe, **common),
        "OptPess-LP": OptPessLP(view, episodes, DELTA, baseline=safe, **common),
        "Safe-ETC": SafeETC(view, episodes, DELTA, baseline=safe, **common),
        "OptPrimalDual": OptPrimalDual(view, episodes, DELTA, slater=safe.margin, **common),
        "OptPrimalDual, regularised": OptPrimalDual(view, episodes, DELTA, regularised=True, **common),
        "UCPD": UCPD(view, episodes, DELTA, **common),
        "UCPD-IX": UCPDIX(view, episodes, DELTA, **common),
        "BoB-PD": BoBPD(view, episodes, DELTA, **common),
        "BoB-PD, bandit": BoBPD(view, episodes, DELTA, feedback="bandit", **common),
        "OPSE-DP": OPSEDP(view, episodes, DELTA, baseline=safe, **common),
        "Triple-Q": TripleQ(view, episodes, constants="experiment"),
        "always the baseline": AlwaysBaseline(view, episodes, baseline=safe),
    }


def much_data(learner: LPLearner) -> LPLearner:
    """A copy that has seen everything 1,000 times as often."""
    rich = copy.copy(learner)
    counts = rich.statistics.counts
    for array in (counts.num_visits, counts.num_moves, counts.num_costs, counts.cost_sums):
        array *= RICHER
    refresh_all(rich.core.index, counts, rich.core.sets.rule.box, rich.core.sets.boxes)
    write_tables(rich.core)
    return rich


def programs(learner: LPLearner, count: int) -> tuple[list[float], str]:
    """Seconds that HiGHS takes for the program of the last plan, and whether its answer is that of the plan."""
    problem, seconds, status = learner.core.problem, [], "same value"
    for _ in range(count):
        begun = process_time()
        program = box_program(learner.layout, problem.lower, problem.upper)
        answer = least_loss_in_boxes(program, problem.loss, problem.costs, problem.thresholds)
        seconds.append(process_time() - begun)
        value = float(learner.planned_values[0])
        if isinstance(answer, NoSolution) or abs(answer.value - value) > SAME_VALUE * (1.0 + abs(value)):
            status = "wrong: another value"
    return seconds, status


def _status(learner: Any) -> str:
    if not isinstance(learner, LPLearner):
        return ""
    notes = learner.core.numbers
    return f"; {notes.infeasible:,} infeasible, {notes.unsolved} unsolved of {notes.plans:,} plans"
