"""`python -m bench cells`: what a cell of a sweep costs outside of its episodes, in processor time.

Small sweeps run in this process, from the text of an experiment to files and manifest: two learners and some seeds in
one world. The time inside episodes is taken off, and the rest is shared among the cells. One sweep is run before the
clock starts: it loads the kernels. Worlds that cells of a process share are built anew in each sweep.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any, Self

from bench import terminal
from bench.benchmark import Benchmark, option
from bench.timing import Spread, at_most, duration
from hedgerow.display.table import Table
from hedgerow.experiments import components
from hedgerow.experiments.options import RunOptions
from hedgerow.experiments.source import Source
from hedgerow.experiments.spec import parse
from hedgerow.experiments.sweep import run_experiment
from hedgerow.simulation.run import Simulation

MOST_SECONDS = 5e-3
"""The goal for a cell outside of its episodes."""
WORLDS = {
    "random layers": 'name = "random-layered"\nlayers = [1, 3, 3, 1]',
    "lower bound": 'name = "lower-bound-1"',
    "dope-media": 'name = "dope-media"',
}
TEXT = """\
seeds = {seeds}
episodes = {episodes}
[[world]]
{world}
[[adversary]]
name = "switching"
period = 10
[[learner]]
name = "s-ops"
preset = "sharp"
[[learner]]
name = "sv-ops"
"""
LEARNERS = 2


@dataclass(frozen=True)
class CellRow:
    """Sweeps in one world; times are seconds of a cell."""

    world: str
    cells: int
    episodes: int
    outside: Spread
    """Outside of the episodes"""
    inside: float
    """The median inside of them"""
    asked: float = MOST_SECONDS

    @property
    def verdict(self) -> str:
        return "met" if self.outside.median <= self.asked else "not met"


@dataclass(frozen=True)
class Cells(Benchmark[list[CellRow]]):
    """Milliseconds that a cell of a sweep takes outside of its episodes."""

    name, json_file = "cells", "cells.json"

    sweeps: int = option(9, "sweeps in each world")
    seeds: int = option(10, "seeds of a sweep, which has two learners")
    episodes: int = option(100, "episodes of a cell")

    @classmethod
    def quick(cls) -> Self:
        return cls(sweeps=3, seeds=4)

    def run(self) -> list[CellRow]:
        rows = []
        with terminal.progress("bench cells", len(WORLDS)) as advance:
            for label, world in WORLDS.items():
                text = TEXT.format(seeds=self.seeds, episodes=self.episodes, world=world)
                found = [one_sweep(text) for _ in range(1 + self.sweeps)][1:]
                outside = Spread.of([outside for outside, _ in found])
                inside = Spread.of([inside for _, inside in found]).median
                rows.append(CellRow(label, LEARNERS * self.seeds, self.episodes, outside, inside))
                advance(label)
        return rows

    def shown(self, found: list[CellRow]) -> Iterator[Table | str]:
        columns = ["world", "cells", "outside of episodes", "p90", "inside", "asked", "met"]
        table = Table("processor time of a cell", columns, num_text=1)
        for row in found:
            times = [duration(row.outside.median), duration(row.outside.p90), duration(row.inside)]
            table.add_row(row.world, str(row.cells), *times, at_most(row.asked), row.verdict)
        yield table


def one_sweep(text: str) -> tuple[float, float]:
    """Seconds of a cell outside and inside of its episodes, in a sweep of all of them."""
    components._shared.clear()
    with TemporaryDirectory() as folder, episodes_timed() as inside:
        begun = process_time()
        tally = run_experiment(parse(Source("cells.toml", text, Path())), Path(folder, "out"), RunOptions(1))
        spent = process_time() - begun
    if not tally.complete:
        raise RuntimeError(f"cells failed: {tally.failed}")
    return (spent - sum(inside)) / tally.total, sum(inside) / tally.total


@contextmanager
def episodes_timed() -> Iterator[list[float]]:
    """Note the processor time of every block of episodes."""
    seconds: list[float] = []
    plain = Simulation.advance

    def timed(self: Simulation, *arguments: Any, **options: Any) -> None:
        begun = process_time()
        plain(self, *arguments, **options)
        seconds.append(process_time() - begun)

    Simulation.advance = timed  # type: ignore[method-assign]
    try:
        yield seconds
    finally:
        Simulation.advance = plain  # type: ignore[method-assign]
