"""`python -m bench cores`: how many episodes per second a sweep of simulations makes on one and on more processes.

A sweep is many independent `simulate` calls, which differ in their seeds; joblib gives them to processes. Seconds are
by the clock on the wall: how much sooner two processes are done is what is measured. Every process loads its kernels
before that clock starts. One process and more take turns: what disturbs the machine disturbs all of them. Throughputs
are medians.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Self

import numpy as np

from bench import terminal
from bench.benchmark import Benchmark
from bench.timing import Spread
from hedgerow.display.table import Table
from hedgerow.learners.ops.sv_ops import SVOPS
from hedgerow.simulation.run import simulate
from hedgerow.worlds import make

DELTA = 0.01


@dataclass(frozen=True)
class SweepRow:
    """A number of processes; the spread is of the seconds that a sweep took."""

    processes: int
    time: Spread
    episodes_per_second: float
    speed_up: float
    """Speed-up over the first row"""


@dataclass(frozen=True)
class Cores(Benchmark[dict[int, list[float]]]):
    """Episodes per second of a sweep on one and on two processes."""

    name, json_file = "cores", "cores.json"

    runs: int = 16
    """Simulations of a sweep"""
    episodes: int = 20_000
    """Episodes of each simulation"""
    rounds: int = 3
    processes: tuple[int, ...] = (1, 2)
    seed: int = 0

    @classmethod
    def quick(cls) -> Self:
        return cls(runs=8, episodes=2_000, rounds=1)

    def run(self) -> dict[int, list[float]]:
        """Seconds of all sweeps, by number of processes."""
        from joblib import Parallel

        seconds: dict[int, list[float]] = {count: [] for count in self.processes}
        with terminal.progress("bench cores", self.rounds * len(seconds)) as advance:
            for round_number in range(self.rounds):
                for count in self.processes:
                    with Parallel(n_jobs=count) as pool:
                        self._sweep(pool, 2 * count, 100)  # starts the processes, which load the kernels
                        begun = perf_counter()
                        losses = self._sweep(pool, self.runs, self.episodes)
                        seconds[count].append(perf_counter() - begun)
                    if not np.all(np.isfinite(losses)):
                        raise RuntimeError("a simulation of the sweep has no finite loss")
                    advance(f"round {round_number + 1}, {count} processes")
        return seconds

    def _sweep(self, pool: Any, runs: int, episodes: int) -> list[float]:
        from joblib import delayed

        return list(pool(delayed(one_run)(self.seed + i, episodes) for i in range(runs)))

    def figures(self, found: dict[int, list[float]]) -> list[SweepRow]:
        """Throughputs."""
        spreads = {count: Spread.of(times) for count, times in found.items()}
        first = next(iter(spreads.values())).median
        total = self.runs * self.episodes
        return [SweepRow(count, time, total / time.median, first / time.median) for count, time in spreads.items()]

    def shown(self, found: dict[int, list[float]]) -> Iterator[Table | str]:
        rows = self.figures(found)
        table = Table("sweeps of SV-OPS", ["processes", "episodes per second (wall)", "speed-up", "of the ideal"], 0)
        for row in rows:
            ideal = row.speed_up * rows[0].processes / row.processes
            table.add_row(str(row.processes), f"{row.episodes_per_second:,.0f}", f"{row.speed_up:.2f}x", f"{ideal:.0%}")
        yield table


def one_run(seed: int, episodes: int) -> float:
    """SV-OPS on the catalogue's random world; its summed loss."""
    world = make("random-layered")
    learner = SVOPS(world.cmdp.view(), episodes, DELTA, "sharp", seed)
    return float(simulate(world.cmdp, learner, world.loss, seed=seed, progress=False).loss[-1])
