"""`python -m bench scale`: time and memory per triple, from 10^2 to 10^6 triples, two constraints.

It measures projections and whole episodes of SV-OPS. In the dense worlds every row leads to all states of the next
layer, in the sparse ones to six neighbours. A Newton step is one pass over the triples and sum_k |X_k|^3 / 3 operations
for the factors: |X_k|^2 / (3 |A| s) per triple with |A| actions and s successors. An episode has L upper occupancy
bounds, each of them a pass over the layers before its state. Linear means that the time per triple stays within a
factor of 3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from bench import terminal
from bench.benchmark import Benchmark, option
from bench.contender import target
from bench.large_episodes import whole_episode
from bench.mirror_steps import Size, cold_problem, mirror_step
from bench.ours import Ours
from bench.timing import duration
from hedgerow.display.table import Table
from hedgerow.projection.problem import ProjectionProblem
from hedgerow.report.plots import Line, Plot, log_plot

SIZES = (
    Size((1, 4, 4, 4, 1), 3, 2),
    Size((1, 5, 5, 5, 5, 1), 4, 2),
    Size((1, 10, 10, 10, 1), 5, 2),
    Size((1, 15, 15, 15, 15, 1), 5, 2),
    Size((1, *[20] * 5, 1), 6, 2),
    Size((1, *[30] * 5, 1), 9, 2),
    Size((1, *[50] * 5, 1), 10, 2),
    Size((1, *[70] * 7, 1), 10, 2),
    Size((1, *[100] * 10, 1), 10, 2),
)
"""120, 340, 1100, 3525, 9840, 32940, 101000, 295400 and 902000 triples."""
SPARSE_SIZES = (
    Size((1, 4, 4, 1), 4, 2, 3),
    Size((1, *[8] * 4, 1), 8, 2, 6),
    Size((1, *[16] * 10, 1), 8, 2, 6),
    Size((1, *[32] * 24, 1), 8, 2, 6),
    Size((1, *[64] * 60, 1), 8, 2, 6),
    Size((1, *[128] * 152, 1), 8, 2, 6),
)
"""80, 1280, 7168, 35840, 182272 and 929792 triples."""
LARGE = 100_000
"""Triples from which two problems are enough: their times hardly differ, and it takes minutes to make them."""
MEASURES = {"mirror_step": "mirror step", "cold_start": "cold start", "episode": "episode of SV-OPS"}
SUPPORTS = ((False, "dense"), (True, "sparse"))


@dataclass(frozen=True)
class SizeRow:
    """The figures of one size: medians over problems, times in seconds."""

    size: str
    triples: int
    mirror_step: float
    mirror_newton_steps: float
    cold_start: float
    cold_newton_steps: float
    bytes_per_triple: float
    """Workspace and buffers, beyond the problem"""
    certificate: float
    """The worst residual of all problems"""
    unsolved: int
    episode: float
    learner_bytes_per_triple: float
    sparse: bool

    def per_triple(self, measure: str) -> float:
        """Seconds per triple of one of MEASURES."""
        return float(getattr(self, measure)) / self.triples

    def times(self, measure: str) -> list[str]:
        """A time, and its nanoseconds per triple."""
        return [duration(getattr(self, measure)), f"{1e9 * self.per_triple(measure):.0f}"]


@dataclass(frozen=True)
class Scale(Benchmark[list[SizeRow]]):
    """Time and memory per triple, from 10^2 to 10^6 triples."""

    name, json_file, figure_file = "scale", "projection-scale.json", "projection-scale.svg"

    sizes: int = option(len(SIZES), "only the smallest so many of the nine dense sizes")
    """The sparse sizes are three fewer, at least one."""
    problems: int = 5
    seed: int = 0

    @classmethod
    def quick(cls) -> Self:
        return cls(sizes=5, problems=3)

    def run(self) -> list[SizeRow]:
        """The small sizes first."""
        sizes = (*SIZES[: self.sizes], *SPARSE_SIZES[: max(1, self.sizes - 3)])
        rows = []
        with terminal.progress("bench scale", len(sizes)) as advance:
            for size in sizes:
                rows.append(_row(size, self.problems, self.seed))
                advance(size.label)
        return rows

    def plot(self, found: list[SizeRow]) -> Plot:
        """Time per triple over the number of triples."""
        lines = [
            Line(
                f"{name}, {support}",
                [(row.triples, 1e9 * row.per_triple(measure)) for row in found if row.sparse == sparse],
                dash="dash" if sparse else "solid",
                colour=colour,
            )
            for sparse, support in SUPPORTS
            for colour, (measure, name) in enumerate(MEASURES.items())
        ]
        return log_plot("Time per triple", "triples (x, a, x')", "nanoseconds per triple", lines)

    def shown(self, found: list[SizeRow]) -> Iterator[Table | str]:
        """Two tables, and how far from linear the times are."""
        columns = ["layers", "triples", "mirror step", "ns/triple", "steps", "cold start", "ns/triple", "steps"]
        projections = Table("projections", [*columns, "bytes/triple", "certificate"])
        columns = ["layers", "triples", "episode", "ns/triple", "bytes/triple"]
        episodes = Table("whole episodes of SV-OPS", columns)
        for row in found:
            first = [row.size, str(row.triples)]
            mirror = [*row.times("mirror_step"), f"{row.mirror_newton_steps:.1f}"]
            cold = [*row.times("cold_start"), f"{row.cold_newton_steps:.1f}"]
            certificate = f"{row.certificate:.0e}" + (f", {row.unsolved} unsolved" if row.unsolved else "")
            projections.add_row(*first, *mirror, *cold, f"{row.bytes_per_triple:.0f}", certificate)
            episodes.add_row(*first, *row.times("episode"), f"{row.learner_bytes_per_triple:.0f}")
        yield projections
        yield episodes
        yield "bytes: of a projection beyond its problem, of a learner with all its buffers"
        for sparse, support in SUPPORTS:
            for measure, name in MEASURES.items():
                times = [row.per_triple(measure) for row in found if row.sparse == sparse]
                apart = max(times) / min(times)
                yield f"{name}, {support}: the slowest size takes {apart:.1f} times as long per triple as the fastest"


def _row(size: Size, most_problems: int, seed: int) -> SizeRow:
    solver = Ours(size.layout, size.constraints)
    num_problems = most_problems if size.layout.num_triples < LARGE else min(2, most_problems)
    seeds = range(seed, seed + num_problems)
    figures = [_figures(solver, [make(size, seed) for seed in seeds]) for make in (mirror_step, cold_problem)]
    (mirror, mirror_steps, *mirror_rest), (cold, cold_steps, *cold_rest) = figures
    triples = size.layout.num_triples
    certificate = max(mirror_rest[0], cold_rest[0])
    unsolved = int(mirror_rest[1] + cold_rest[1])
    per_triple = solver.num_bytes / triples
    times = (mirror, mirror_steps, cold, cold_steps)
    sparse = size.successors is not None
    episode = whole_episode(size, seed)
    return SizeRow(size.label, triples, *times, per_triple, certificate, unsolved, *episode, sparse)


def _figures(solver: Ours, problems: Sequence[ProjectionProblem]) -> tuple[float, float, float, int]:
    """Median seconds, mean Newton steps, worst certificate, number unsolved."""
    timed = [solver.time([problem]) for problem in problems]
    seconds, unsolved, steps = zip(*timed, strict=True)
    worst = max(target(problem).certificate for problem in problems)
    return float(np.median(seconds)), float(np.mean(steps)), worst, sum(map(bool, unsolved))
