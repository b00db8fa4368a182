"""`hedgerow bench cores`: how many episodes per second a sweep of simulations makes on one and on more processes.

A sweep is many independent `simulate` calls, which differ in their seeds; joblib hands them to processes. Kernels are
loaded in every process before the clock starts. One process and more take turns, so that what disturbs the machine
disturbs all of them; throughputs are medians.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from hedgerow import output
from hedgerow.bench import manifest, terminal
from hedgerow.bench.timing import Spread
from hedgerow.catalogue import make
from hedgerow.learners.mirror.svops import SVOPS
from hedgerow.simulation.run import simulate

FILE = "cores.json"
DELTA = 0.01


@dataclass(frozen=True)
class Settings:
    """How much is measured."""

    runs: int = 16
    """Simulations of a sweep"""
    episodes: int = 20_000
    """Of each simulation"""
    rounds: int = 3
    processes: tuple[int, ...] = (1, 2)
    seed: int = 0

    @classmethod
    def quick(cls) -> Settings:
        return cls(runs=8, episodes=2_000, rounds=1)


@dataclass(frozen=True)
class Row:
    """A number of processes; the spread is of the seconds that a sweep took."""

    processes: int
    time: Spread
    episodes_per_second: float
    speed_up: float
    """Against the first row"""


def run(settings: Settings) -> list[Row]:
    """Time all sweeps."""
    from joblib import Parallel

    seconds: dict[int, list[float]] = {count: [] for count in settings.processes}
    with terminal.progress("bench cores", settings.rounds * len(seconds)) as advance:
        for round_number in range(settings.rounds):
            for count in settings.processes:
                with Parallel(n_jobs=count) as pool:
                    _sweep(pool, settings, 2 * count, 100)  # starts the processes, which load the kernels
                    begun = perf_counter()
                    losses = _sweep(pool, settings, settings.runs, settings.episodes)
                    seconds[count].append(perf_counter() - begun)
                if not np.all(np.isfinite(losses)):
                    raise RuntimeError("a simulation of the sweep has no finite loss")
                advance(f"round {round_number + 1}, {count} processes")
    return rows(settings, seconds)


def rows(settings: Settings, seconds: dict[int, list[float]]) -> list[Row]:
    """Throughputs from the seconds of the sweeps, by number of processes."""
    spreads = {count: Spread.of(times) for count, times in seconds.items()}
    first = next(iter(spreads.values())).median
    total = settings.runs * settings.episodes
    return [Row(count, time, total / time.median, first / time.median) for count, time in spreads.items()]


def _sweep(pool: Any, settings: Settings, runs: int, episodes: int) -> list[float]:
    from joblib import delayed

    return list(pool(delayed(one_run)(settings.seed + i, episodes) for i in range(runs)))


def one_run(seed: int, episodes: int) -> float:
    """SV-OPS on the catalogue's random world; its summed loss."""
    world = make("random-layered")
    learner = SVOPS(world.cmdp.view(), episodes, DELTA, "sharp", seed)
    return float(simulate(world.cmdp, world.loss, learner, seed, progress=False).loss[-1])


def as_data(settings: Settings, found: Sequence[Row]) -> dict[str, Any]:
    """The report as JSON can hold it."""
    return manifest.report("cores", asdict(settings), [asdict(row) for row in found])


def write(folder: Path, data: dict[str, Any]) -> Path:
    return manifest.write(folder, FILE, manifest.as_json(data))


def show(found: Sequence[Row]) -> None:
    out = output.Screen()
    table = output.Table("sweeps of SV-OPS", ["processes", "episodes per second", "speed-up", "of the ideal"], 0)
    for row in found:
        ideal = row.speed_up * found[0].processes / row.processes
        table.add_row(str(row.processes), f"{row.episodes_per_second:,.0f}", f"{row.speed_up:.2f}x", f"{ideal:.0%}")
    out.table(table)
    terminal.mention_load(out)
