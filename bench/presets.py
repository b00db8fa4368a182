"""`python -m bench presets`: the time of an episode under the presets `sharpest` and `sharp`, by turns.

Worlds and warm-up are those of `python -m bench episode`; times are medians of processor time. A turn has a number of
episodes, not a length in seconds: what an episode costs changes on the way, most where a learner begins to leave its
baseline, so both presets play the same episodes on every machine. The goal is at most half as much again at 45 and 240
triples, and 1.3 times beyond.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy as np

from bench import inside, terminal
from bench.benchmark import Benchmark, option
from bench.episode import DELTA, LARGE, EpisodeSpeed
from bench.episode_worlds import LABELS, BenchWorld
from bench.timing import duration
from hedgerow.display.table import Table
from hedgerow.learners.ops.base import MirrorLearner
from hedgerow.learners.ops.s_ops import SOPS
from hedgerow.learners.ops.settings import Preset
from hedgerow.learners.ops.sv_ops import SVOPS
from hedgerow.planning import offline

PRESETS: tuple[Preset, Preset] = ("sharp", "sharpest")
LEARNERS = ("SV-OPS", "S-OPS")
SMALL = 240
"""Triples up to which the first goal holds"""
GOALS = (1.5, 1.3)


def goal_of(triples: int) -> float:
    return GOALS[0] if triples <= SMALL else GOALS[1]


WHY = ("steps per episode", "own episodes", "at a bound")
"""The columns that say what projections had to do: sharp, then sharpest"""


def shown_efforts(efforts: Sequence[Mapping[str, float]]) -> list[str]:
    """The cells of these columns."""
    formats = {"steps": "{:.2f}", "own": "{:.0%}", "held": "{:.0%}"}
    return [", ".join(text.format(one[name]) for one in efforts) for name, text in formats.items()]


@dataclass(frozen=True)
class PresetRow:
    """A learner in a world: seconds per episode."""

    world: str
    triples: int
    learner: str
    sharp: float
    sharpest: float
    efforts: tuple[inside.Effort, inside.Effort]
    """Why: of either preset, while it was timed"""

    @property
    def ratio(self) -> float:
        return self.sharpest / self.sharp

    @property
    def goal(self) -> float:
        return goal_of(self.triples)

    @property
    def verdict(self) -> str:
        return "met" if self.ratio <= self.goal else "not met"


@dataclass(frozen=True)
class PresetTimes(Benchmark[list[PresetRow]]):
    """Time of an episode under `sharp` and `sharpest`, by turns."""

    name, json_file = "presets", "preset-times.json"

    worlds: int = option(len(LABELS), "only the first so many of the seven worlds")
    warm_up: int = option(8_000, "episodes before the first that is timed")
    turns: int = option(40, "of each")
    per_turn: int = option(250, "episodes of a turn; a tenth in worlds of over 5,000 triples")

    @classmethod
    def quick(cls) -> Self:
        return cls(worlds=2, warm_up=4_000, turns=12)

    def run(self) -> list[PresetRow]:
        rows: list[PresetRow] = []
        labels = list(LABELS)[: self.worlds]
        with terminal.progress("bench presets", len(labels) * self.turns) as advance:
            for label in labels:
                world = LABELS[label]()
                rows += self._one_world(world, lambda world=world: advance(world.label))
        return rows

    def _one_world(self, world: BenchWorld, advance: Any) -> list[PresetRow]:
        speed = EpisodeSpeed(warm_up=self.warm_up, turns=self.turns)
        per_turn = self.per_turn if world.triples <= LARGE else max(1, self.per_turn // 10)
        able = [
            replace(speed.warmed(world, f"{learner} {preset}", made), per_turn=per_turn)
            for learner in LEARNERS
            for preset in PRESETS
            for made in [_learner(world, learner, preset, speed.episodes)]
        ]
        before = {each.name: (each.learner.diagnostics["iterations"], each.learner.episode) for each in able}
        samples = speed.take_turns(able, advance)
        medians = {name: float(np.median(times)) for name, times in samples.items()}
        efforts = {each.name: inside.effort(each.learner, *before[each.name]) for each in able}
        rows = []
        for learner in LEARNERS:
            sharp, sharpest = (f"{learner} {preset}" for preset in PRESETS)
            why = efforts[sharp], efforts[sharpest]
            rows.append(PresetRow(world.label, world.triples, learner, medians[sharp], medians[sharpest], why))
        return rows

    def shown(self, found: list[PresetRow]) -> Iterator[Table | str]:
        columns = ["world", "learner", "triples", "sharp", "sharpest", "ratio", "asked", "", *WHY]
        table = Table("time of an episode", columns, num_text=2, num_keys=2)
        for row in found:
            times = [duration(row.sharp), duration(row.sharpest), f"{row.ratio:.2f}x", f"<= {row.goal:g}x"]
            why = shown_efforts([asdict(one) for one in row.efforts])
            table.add_row(row.world, row.learner, f"{row.triples:,}", *times, row.verdict, *why)
        yield table


def _learner(world: BenchWorld, name: str, preset: Preset, episodes: int) -> MirrorLearner:
    view = world.cmdp.view()
    if name == "SV-OPS":
        return SVOPS(view, episodes, DELTA, preset)
    return SOPS(view, episodes, DELTA, preset, baseline=offline.slater(world.cmdp))
