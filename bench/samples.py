"""`python -m bench samples`: how many episodes a preset saves; all presets have the same guarantees.

A *variant* is a preset, with or without what rows share (ties). The reference (`--reference`, by default `sharp`) and
the variants beyond it run on the same worlds, losses and seeds, each learner built for T episodes. What is compared:

    S-OPS     regret, and lambda, the weight of the baseline
    SV-OPS    violation
    CV-OPS    t_bar, the length of its first phase, and regret

A run of the reference ends with an average R(T)/T of the regret, or V(T)/T of the violation, or a weight lambda_T. The
*reach* of a variant is the first checkpoint t from which on its own R(t)/t, V(t)/t or lambda_t stays at or below that
until T. The *saving* is T / reach: with the variant, so many times fewer episodes are enough. Its learning rate is the
one for T too, which is too slow for t, so the saving is an underestimate. For t_bar it is the ratio; a phase that did
not end counts as T. Savings are medians over seeds; each seed is compared with itself.

There is no saving where there is nothing to reach: regret may be negative as long as a learner violates, because the
comparator must not. Nor is there one if a variant is below from the very first checkpoint on, as happens when the
reference ends worse than the uniform policy that both begin with. Those cells say so.

`--baseline` names the baseline of S-OPS: `safest`, the policy of the largest margin, or `user`, one that a user would
have: the source's own budget in the worlds that have one, else the best policy at half of the largest margin.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import nan
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from bench import kept_curves, terminal
from bench.benchmark import Benchmark, in_any_order, option
from bench.kept_curves import Curves, MeanPoint, Task
from hedgerow.checks import FloatArray, IntArray
from hedgerow.display.table import Table
from hedgerow.errors import InvalidInput
from hedgerow.learners.api import SafePolicy
from hedgerow.learners.ops.base import MirrorLearner
from hedgerow.learners.ops.cv_ops import CVOPS
from hedgerow.learners.ops.s_ops import SOPS
from hedgerow.learners.ops.sv_ops import SVOPS
from hedgerow.losses.oblivious import Switching
from hedgerow.planning import offline
from hedgerow.report.plots import Line, Plot, log_plot
from hedgerow.results.metrics import seed_interval
from hedgerow.simulation.run import simulate
from hedgerow.worlds import make
from hedgerow.worlds.world import World

SHOWN = 1_000
"""The plot begins at this fraction of the longest run."""
BARS = 16
"""Of so many points on a line, the last one has its interval drawn."""
DELTA = 0.01
PERIOD = 1_000
"""Episodes from one loss to the next, where losses switch"""
RANDOM_3, RANDOM_5 = "random (1,3,3,1)x3", "random (1,5,5,5,1)x4"
WORLDS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    RANDOM_3: ("random-layered", {"layers": (1, 3, 3, 1), "actions": 3, "constraints": 1}),
    RANDOM_5: ("random-layered", {}),
    "dope-factored": ("dope-factored", {}),
    "dope-factored, known support": ("dope-factored", {"support": "known"}),
    "dope-media": ("dope-media", {}),
    "dope-media, known support": ("dope-media", {"support": "known"}),
    "dope-inventory": ("dope-inventory", {}),
}
LONG_WORLDS = (RANDOM_3, RANDOM_5, "dope-factored", "dope-media")
"""The worlds of the longest runs"""
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "paper": {"preset": "paper"},
    "sharp": {"preset": "sharp"},
    "sharpest, no ties": {"preset": "sharpest", "ties": False},
    "sharpest": {"preset": "sharpest"},
}
"""By name: what the constructor of a learner is given; in the order of what they save."""
WITHOUT_TIES = "sharpest, no ties"
MEASURES = {"S-OPS": ("regret", "mixing"), "SV-OPS": ("violation",), "CV-OPS": ("t_bar", "regret")}
LOSSES = ("own", "switching")
ALWAYS = "always below"
"""The remark for a variant that is below from the first checkpoint on"""
PROTOTYPE: Mapping[tuple[str, str], Mapping[int, float]] = {
    (RANDOM_3, "sharpest"): {10_000: 3.0, 100_000: 3.0, 1_000_000: 3.7},
    (RANDOM_5, "sharpest"): {10_000: 3.0, 100_000: 3.0, 1_000_000: 3.0},
    ("dope-factored", "sharpest, no ties"): {10_000: 5.1, 100_000: 8.0, 1_000_000: 12.2},
    ("dope-factored", "sharpest"): {10_000: 17.6, 100_000: 14.3, 1_000_000: 10.0},
    ("dope-factored, known support", "sharpest, no ties"): {10_000: 4.8, 100_000: 8.5},
    ("dope-factored, known support", "sharpest"): {10_000: 10.0, 100_000: 10.7},
    ("dope-media", "sharpest, no ties"): {10_000: 1.0, 100_000: 6.0},
    ("dope-media", "sharpest"): {10_000: 11.0, 100_000: 32.0, 1_000_000: 10.0},
    ("dope-media, known support", "sharpest, no ties"): {10_000: 4.0, 100_000: 4.5},
    ("dope-media, known support", "sharpest"): {10_000: 21.0, 100_000: 15.0},
    ("dope-inventory", "sharpest"): {10_000: 10.0, 100_000: 10.0},
}
"""Goals for the regret of S-OPS under the world's own loss against `sharp`: what a first prototype reached, and at
least 3 in random worlds, 10 in the others with ties
"""


@dataclass(frozen=True)
class SavingRow:
    """A learner in a world at a number of episodes: medians over seeds."""

    world: str
    learner: str
    losses: str
    measure: str
    variant: str
    episodes: int
    seeds: int
    reference: float
    """The summed regret or violation after all episodes, the last lambda, or t_bar"""
    value: float
    saving: float | None
    """T / reach, 0 if it is not reached; None where there is no such number"""
    note: str = ""
    """Why there is none"""
    goal: float | None = None

    @property
    def verdict(self) -> str:
        if self.saving is None:
            return self.note
        if self.goal is None:
            return "" if self.saving > 0.0 else "not reached"
        return "met" if self.saving >= self.goal else "not met"


@dataclass(frozen=True)
class Samples(Benchmark[list[Curves]]):
    """Regret, violation, mixing weight and first phase under several presets, and how many episodes they save."""

    name = "samples"
    json_file, figure_file = "samples.json", "samples.svg"
    is_timed = False

    lengths: tuple[int, ...] = (10_000, 100_000)
    longest: int = option(1_000_000, "one more length, in some worlds; 0 for none", least=0)
    seeds: int = option(10, "runs per cell of the table")
    few_seeds: int = option(3, "runs per cell of the longest runs")
    processes: int = option(2, "processes that share the runs")
    worlds: tuple[str, ...] = tuple(WORLDS)
    reference: str = option("sharp", "the variant that the others are compared with")
    baseline: str = option("safest", "of S-OPS: safest, or user")
    keep: str = option("", "a folder that keeps finished runs; the next call goes on from there")

    @classmethod
    def quick(cls) -> Self:
        """Short runs and 3 seeds: some minutes instead of hours."""
        return cls(lengths=(10_000,), longest=0, seeds=3)

    @property
    def variants(self) -> tuple[str, ...]:
        names = list(VARIANTS)
        if self.reference not in names:
            raise InvalidInput(f"there is no variant {self.reference!r}; known: {'; '.join(names)}")
        beyond = names[names.index(self.reference) + 1 :]
        return (self.reference, *(("sharp",) if self.reference == "paper" else beyond))

    @property
    def tasks(self) -> list[Task]:
        """The most telling first: an interrupted run has whole cells of the table, of fewer kinds."""
        short, longer = min(self.lengths), [length for length in self.lengths if length > min(self.lengths)]
        last = [self.longest] if self.longest else []
        every, some = self.seeds, self.few_seeds
        plans = [
            ([short], ["S-OPS"], LOSSES[:1], every, self.worlds),
            (longer, ["S-OPS"], LOSSES[:1], every, self.worlds),
            ([short, *longer], ["SV-OPS"], LOSSES[:1], every, self.worlds),
            ([short], ["CV-OPS"], LOSSES[:1], every, self.worlds),
            ([short], ["S-OPS", "SV-OPS", "CV-OPS"], LOSSES[1:], every, self.worlds),
            (last, ["S-OPS"], LOSSES[:1], some, LONG_WORLDS),
        ]
        if self.baseline != "safest":  # the others have none
            plans = [
                (lengths, ["S-OPS"], losses, n, some) for lengths, names, losses, n, some in plans if "S-OPS" in names
            ]
        return [
            Task(world, learner, variant, losses, self.baseline, length, seed)
            for where, names, kinds, seeds, worlds in plans
            for length in where
            for losses in kinds
            for seed in range(seeds)
            for learner in names
            for world in worlds
            if world in self.worlds
            for variant in self.variants
            if is_of_use(world, variant)
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
        return rows(found, self.reference)

    def plot(self, found: list[Curves]) -> Plot:
        return draw(means(found), self.variants)

    def write(self, folder: Path, found: list[Curves], seconds: float) -> list[Path]:
        """The same, and the table that the figure is drawn from."""
        written, table = super().write(folder, found, seconds), (folder / self.figure_file).with_suffix(".parquet")
        kept_curves.save_means(table, means(found))
        return [*written, table]

    def shown(self, found: list[Curves]) -> Iterator[Table | str]:
        columns = [
            "world",
            "learner",
            "losses",
            "measure",
            "variant",
            "episodes",
            self.reference,
            "value",
            "saving",
            "",
        ]
        table = Table("what presets save: medians over seeds", columns, num_text=5, num_keys=4)
        for row in rows(found, self.reference):
            table.add_row(
                row.world, row.learner, row.losses, row.measure, row.variant, f"{row.episodes:,}",
                shown(row.measure, row.reference), shown(row.measure, row.value),
                f"{row.saving:.1f}x" if row.saving else "-", row.verdict,
            )  # fmt: skip
        yield table
        yield (
            f"saving: episodes of {self.reference} / episodes after which the variant has, for good, the same average "
            "per episode"
        )


@dataclass(frozen=True)
class PaperSamples(Samples):
    """What `sharp` saves over `paper`, in long runs of S-OPS and SV-OPS."""

    name = "samples-paper"
    json_file, figure_file = "samples-paper.json", "samples-paper.svg"

    lengths: tuple[int, ...] = (100_000,)
    worlds: tuple[str, ...] = LONG_WORLDS
    reference: str = "paper"

    @classmethod
    def quick(cls) -> Self:
        return cls(lengths=(10_000,), longest=0, seeds=3)

    @property
    def tasks(self) -> list[Task]:
        """The short ones first."""
        runs = [(length, self.seeds) for length in self.lengths] + [(self.longest, self.few_seeds)] * bool(self.longest)
        return [
            Task(world, learner, variant, LOSSES[0], self.baseline, length, seed)
            for length, seeds in runs
            for seed in range(seeds)
            for learner in ("S-OPS", "SV-OPS")
            for world in self.worlds
            for variant in self.variants
        ]


def means(found: Sequence[Curves]) -> list[MeanPoint]:
    """The regret of S-OPS in the longest runs under the world's own loss, from which the figure is drawn."""
    own = [curves for curves in found if curves.task.learner == "S-OPS" and curves.task.losses == "own"]
    longest = max(curves.task.episodes for curves in own)
    sets: dict[tuple[str, str], list[Curves]] = {}
    for curves in sorted(own, key=_place):
        if curves.task.episodes == longest:
            sets.setdefault((curves.task.world, curves.task.variant), []).append(curves)
    points = []
    for (world, variant), some in sets.items():
        columns = seed_interval(np.array([curves.regret for curves in some]))
        for t, mean, low, high in zip(some[0].episodes.tolist(), *(column.tolist() for column in columns), strict=True):
            points.append(MeanPoint(world, variant, longest, t, len(some), mean, low, high))
    return points


def draw(points: Sequence[MeanPoint], variants: Sequence[str]) -> Plot:
    """Mean regret with its interval; the reference, the first of the variants, dashed. Before the last decades curves
    hardly differ.
    """
    lines, seeds = [], sorted({point.seeds for point in points})
    for number, world in enumerate(dict.fromkeys(point.world for point in points)):
        for variant in variants:
            some = [p for p in points if (p.world, p.variant) == (world, variant) and p.episode * SHOWN >= p.length]
            if some := [point for point in some if point.mean > 0.0]:
                ends = [(p.low, p.high) if i % BARS == 0 else (nan, nan) for i, p in enumerate(reversed(some))][::-1]
                dash = "dash" if variant == variants[0] else "dashdot" if variant == WITHOUT_TIES else "solid"
                along = [(float(point.episode), point.mean) for point in some]
                lines.append(Line(f"{world}, {variant}", along, dash=dash, colour=number, intervals=ends))
    count = " to ".join(dict.fromkeys((str(seeds[0]), str(seeds[-1]))))
    return log_plot(f"Regret of S-OPS, mean over {count} seeds, 95 % interval", "episodes", "regret", lines)


def shown(measure: str, value: float) -> str:
    return f"{value:.3f}" if measure == "mixing" else f"{value:.0f}"


def is_of_use(world: str, variant: str) -> bool:
    """Without ties in a world, a variant without them is the same again."""
    return variant != WITHOUT_TIES or "random" not in world


def one_run(task: Task) -> Curves:
    """Simulate."""
    world = _world(task.world)
    losses: Any = world.loss if task.losses == "own" else Switching(period=PERIOD, seed=task.seed)
    learner = make_learner(world, task)
    result = simulate(world.cmdp, learner, losses, seed=task.seed, progress=False)
    mixing = np.asarray(result["mixing_weight"]) if task.learner != "SV-OPS" else np.zeros(len(result.episodes))
    t_bar = learner.t_bar if isinstance(learner, CVOPS) else None
    ended = np.full(len(result.episodes), float(task.episodes if t_bar is None else t_bar))
    return Curves(task, result.episodes, result.regret, result.violation, mixing, ended)


@cache
def _world(label: str) -> World:
    name, params = WORLDS[label]
    return make(name, **params)


def make_learner(world: World, task: Task) -> MirrorLearner:
    view, common = world.cmdp.view(), {"seed": task.seed, **VARIANTS[task.variant]}
    if task.learner == "SV-OPS":
        return SVOPS(view, task.episodes, DELTA, **common)
    if task.learner == "CV-OPS":
        return CVOPS(view, task.episodes, DELTA, **common)
    return SOPS(view, task.episodes, DELTA, baseline=_baseline(task.world, task.baseline), **common)


@cache
def _baseline(label: str, kind: str) -> SafePolicy:
    world = _world(label)
    safest = offline.slater(world.cmdp)
    if kind == "safest":
        return SafePolicy(safest.policy, safest.costs)
    alpha = world.cmdp.thresholds
    budget = world.baseline_thresholds if world.baseline_thresholds is not None else alpha - 0.5 * safest.margin
    chosen = offline.optimum(world.cmdp.with_thresholds(budget), world.loss)
    return SafePolicy(chosen.policy, chosen.costs)


def reach(episodes: IntArray, averages: FloatArray, target: float) -> float:
    """The first checkpoint from which on the averages stay at or below `target`; infinite if there is none."""
    above = np.flatnonzero(averages > target)
    first = int(above[-1]) + 1 if len(above) else 0
    return float(episodes[first]) if first < len(episodes) else np.inf


class _Cell(NamedTuple):
    world: str
    learner: str
    losses: str
    baseline: str
    variant: str
    episodes: int


def rows(found: Sequence[Curves], reference: str = "sharp") -> list[SavingRow]:
    """The table, in the order of the settings; seeds without their reference are left out."""
    runs = {curves.task: curves for curves in found}
    cells: dict[_Cell, list[tuple[Curves, Curves]]] = {}
    for task in sorted(runs, key=_place):
        other = task._replace(variant=reference)
        if task.variant != reference and other in runs:
            cell = _Cell(task.world, task.learner, task.losses, task.baseline, task.variant, task.episodes)
            cells.setdefault(cell, []).append((runs[other], runs[task]))
    return [_row(cell, measure, pairs) for cell, pairs in cells.items() for measure in MEASURES[cell.learner]]


def _place(task_or_curves: Task | Curves) -> tuple[Any, ...]:
    task = task_or_curves.task if isinstance(task_or_curves, Curves) else task_or_curves
    learner, variant = list(MEASURES).index(task.learner), list(VARIANTS).index(task.variant)
    return list(WORLDS).index(task.world), learner, task.losses, task.episodes, variant, task.seed


def _row(cell: _Cell, measure: str, pairs: Sequence[tuple[Curves, Curves]]) -> SavingRow:
    savings = []
    for then, now in pairs:
        if measure == "t_bar":
            savings.append(float(then.t_bar[-1] / now.t_bar[-1]))
            continue
        target = float(then.average(measure)[-1])
        if target > 0.0 or measure == "mixing":
            after = reach(now.episodes, now.average(measure), target)
            savings.append(np.inf if after == now.episodes[0] else cell.episodes / after)
    saving, note = None, "no violation" if measure == "violation" else "not positive"
    if 2 * len(savings) > len(pairs):  # most seeds have something to reach
        middle = float(np.median(savings))
        saving, note = (middle, "") if np.isfinite(middle) else (None, ALWAYS)
    ends = [float(np.median([getattr(pair[i], measure)[-1] for pair in pairs])) for i in (0, 1)]
    aimed = (cell.learner, cell.losses, cell.baseline, measure) == ("S-OPS", "own", "safest", "regret")
    goal = PROTOTYPE.get((cell.world, cell.variant), {}).get(cell.episodes) if aimed else None
    return SavingRow(
        cell.world, cell.learner, cell.losses, measure, cell.variant, cell.episodes, len(pairs),
        ends[0], ends[1], saving, note, goal,
    )  # fmt: skip
