"""`python -m bench samples`: how many episodes the preset `sharp` saves; both presets have the same guarantees.

Both presets run on the same worlds, losses and seeds, each learner built for T episodes. A run of `paper` ends with an
average R(T)/T of the regret, and V(T)/T of the violation. The *reach* of `sharp` is the first checkpoint t from which
on its own average, R(t)/t or V(t)/t, stays at or below that until T; the *saving* is T / reach: with `sharp`, so many
times fewer episodes are enough. Since the learning rate of `sharp` is the one for T too, which is too slow for t, the
saving is on the low side. Savings are medians over seeds, a seed against itself.

A saving does not exist where there is nothing to be reached: S-OPS does not violate, and SV-OPS may have negative
regret as long as it violates, because the comparator must not. Nor is it a saving if the average of `sharp` is below
that of `paper` from the very first episode on, as happens when `paper` ends worse than the uniform policy that both
begin with: then `sharp` is better throughout, but no number of episodes says by how much. Those cells say so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Self

import numpy as np

from bench import kept_curves, terminal
from bench.benchmark import Benchmark, in_any_order, option
from bench.kept_curves import Curves, Task
from hedgerow import output
from hedgerow.catalogue import make
from hedgerow.catalogue.world import World
from hedgerow.checks import FloatArray, IntArray
from hedgerow.learners.mirror.base import MirrorLearner
from hedgerow.learners.mirror.settings import Preset
from hedgerow.learners.mirror.sops import SOPS
from hedgerow.learners.mirror.svops import SVOPS
from hedgerow.pages.log_plots import Line, log_plot
from hedgerow.planning import offline
from hedgerow.simulation.run import simulate

SHOWN = 1_000
"""The plot begins at this fraction of the longest run."""
DELTA = 0.01
GOAL = 5.0
WORLDS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "random (1,3,3,1)x3": ("random-layered", {"layers": (1, 3, 3, 1), "actions": 3, "constraints": 1}),
    "random (1,5,5,5,1)x4": ("random-layered", {}),
    "dope-factored": ("dope-factored", {}),
    "dope-media": ("dope-media", {}),
}
LEARNERS = ("SV-OPS", "S-OPS")
PRESETS: tuple[Preset, ...] = ("paper", "sharp")
MEASURES = ("regret", "violation")
ALWAYS = "always below"
"""Of `sharp`: from the first episode on."""


@dataclass(frozen=True)
class SavingRow:
    """A learner in a world at a number of episodes: medians over seeds."""

    world: str
    learner: str
    episodes: int
    measure: str
    paper: float
    """The summed regret or violation after all episodes"""
    sharp: float
    saving: float | None
    """T / reach, 0 if `sharp` does not reach it; None where there is no such number"""
    note: str = ""
    """Why there is none"""

    @property
    def verdict(self) -> str:
        if self.saving is None:
            return self.note
        if self.saving == 0.0:
            return "not reached"
        return "met" if self.saving >= GOAL else "not met"


@dataclass(frozen=True)
class Samples(Benchmark[list[Curves]]):
    """Regret and violation under the presets `paper` and `sharp`, and how many episodes `sharp` saves."""

    name = "samples"
    json_file, figure_file = "samples.json", "samples.svg"
    is_timed = False

    lengths: tuple[int, ...] = (100_000, 1_000_000)
    seeds: int = option(10, "runs per cell of the table")
    processes: int = option(2, "processes that share the runs")
    worlds: tuple[str, ...] = tuple(WORLDS)
    keep: str = option("", "a folder that keeps finished runs; the next call goes on from there")

    @classmethod
    def quick(cls) -> Self:
        """Ten times fewer episodes and 3 seeds: some minutes instead of hours."""
        return cls(lengths=(10_000, 100_000), seeds=3)

    @property
    def tasks(self) -> list[Task]:
        """Seed by seed: an interrupted run has all cells of the table, of fewer seeds."""
        return [
            Task(world, learner, preset, length, seed)
            for length in self.lengths
            for seed in range(self.seeds)
            for world in self.worlds
            for learner in LEARNERS
            for preset in PRESETS
        ]

    def run(self) -> list[Curves]:
        """All runs, in any order."""
        found = kept_curves.load(Path(self.keep), self.tasks) if self.keep else []
        done = {curves.task for curves in found}
        tasks = [task for task in self.tasks if task not in done]
        with terminal.progress("bench samples", len(tasks), forecast=True) as advance:
            for curves in in_any_order(one_run, tasks, self.processes):
                if self.keep:
                    kept_curves.save(Path(self.keep), curves)
                found.append(curves)
                advance(f"{curves.task.world}, {curves.task.learner}")
        return found

    def figures(self, found: list[Curves]) -> list[SavingRow]:
        return rows(found)

    def plot(self, found: list[Curves]) -> str:
        """Regret of S-OPS over the last decades, the mean over seeds of the longest runs; `paper` dashed.

        Before them the presets hardly differ.
        """
        longest = max(curves.task.episodes for curves in found)
        lines = []
        worlds = dict.fromkeys(task.world for task in sorted((curves.task for curves in found), key=_place))
        for number, world in enumerate(worlds):
            for preset in PRESETS:
                wanted = (world, "S-OPS", preset, longest)
                own = [curves for curves in found if curves.task[:4] == wanted]
                mean = np.mean([curves.regret for curves in own], axis=0)
                shown = zip(own[0].episodes, mean, strict=True)
                points = [(float(t), float(r)) for t, r in shown if t * SHOWN >= longest and r > 0.0]
                lines.append(Line(f"{world}, {preset}", points, dashed=preset == "paper", colour=number))
        return log_plot("Regret of S-OPS, mean over seeds", "episodes", "regret", lines)

    def shown(self, found: list[Curves]) -> Iterator[output.Table | str]:
        columns = ["world", "learner", "measure", "episodes", "paper", "sharp", "saving", "at least 5x"]
        table = output.Table("what the preset sharp saves: medians over seeds", columns, num_text=3, num_keys=3)
        for row in rows(found):
            saving = f"{row.saving:.1f}x" if row.saving else "-"
            figures = [f"{row.episodes:,}", f"{row.paper:.0f}", f"{row.sharp:.0f}", saving, row.verdict]
            table.add_row(row.world, row.learner, row.measure, *figures)
        yield table
        yield "saving: episodes of paper / episodes after which sharp has, for good, the same average per episode"


def one_run(task: Task) -> Curves:
    """Simulate, with the world's own loss in every episode."""
    world = _world(task.world)
    result = simulate(world.cmdp, world.loss, make_learner(world, task), task.seed, progress=False)
    return Curves(task, result.episodes, result.regret, result.violation)


@cache
def _world(label: str) -> World:
    name, params = WORLDS[label]
    return make(name, **params)


def make_learner(world: World, task: Task) -> MirrorLearner:
    view = world.cmdp.view()
    if task.learner == "SV-OPS":
        return SVOPS(view, task.episodes, DELTA, task.preset, task.seed)
    safest = offline.slater(world.cmdp)
    return SOPS(
        view, task.episodes, DELTA, task.preset, task.seed, baseline=safest.policy, baseline_costs=safest.costs
    )  # fmt: skip


def reach(episodes: IntArray, averages: FloatArray, target: float) -> float:
    """The first checkpoint from which on the averages stay at or below `target`; infinite if there is none."""
    above = np.flatnonzero(averages > target)
    first = int(above[-1]) + 1 if len(above) else 0
    return float(episodes[first]) if first < len(episodes) else np.inf


def rows(found: Sequence[Curves]) -> list[SavingRow]:
    """The table, in the order of the settings."""
    runs = {curves.task: curves for curves in found}
    groups: dict[tuple[str, str, int], list[Task]] = {}
    for task in sorted(runs, key=_place):
        if task.preset == "paper":
            groups.setdefault((task.world, task.learner, task.episodes), []).append(task)
    return [
        _row(measure, [(runs[task], runs[task._replace(preset="sharp")]) for task in tasks])
        for tasks in groups.values()
        for measure in MEASURES
    ]


def _place(task: Task) -> tuple[int, int, int, int]:
    return list(WORLDS).index(task.world), LEARNERS.index(task.learner), task.episodes, task.seed


def _row(measure: str, pairs: Sequence[tuple[Curves, Curves]]) -> SavingRow:
    task = pairs[0][0].task
    savings = []
    for paper, sharp in pairs:
        target = float(paper.average(measure)[-1])
        if target > 0.0:
            after = reach(sharp.episodes, sharp.average(measure), target)
            savings.append(np.inf if after == sharp.episodes[0] else task.episodes / after)
    saving, note = None, "no violation" if measure == "violation" else "not positive"
    if 2 * len(savings) > len(pairs):  # most seeds have something to be reached
        middle = float(np.median(savings))
        saving, note = (middle, "") if np.isfinite(middle) else (None, ALWAYS)
    ends = [float(np.median([getattr(pair[i], measure)[-1] for pair in pairs])) for i in (0, 1)]
    return SavingRow(task.world, task.learner, task.episodes, measure, ends[0], ends[1], saving, note)
