"""`hedgerow bench scale`: time and memory per triple, from 10^2 to 10^6 triples, two constraints.

Projections, and whole episodes of SV-OPS. In the dense worlds every row leads to all states of the next layer, in the
sparse ones to six neighbours. The work of a Newton step is one pass over the triples and sum_k |X_k|^3 / 3 for the
factors: with |A| actions and s successors |X_k|^2 / (3 |A| s) operations per triple. An episode has L upper occupancy
bounds, each of them a pass over the layers before its state. Linear means that the time per triple stays within a
factor of 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow import output
from hedgerow.bench import manifest, terminal
from hedgerow.bench.contender import target
from hedgerow.bench.large_episodes import whole_episode
from hedgerow.bench.mirror_steps import Size, cold_problem, mirror_step
from hedgerow.bench.ours import Ours
from hedgerow.bench.timing import duration
from hedgerow.pages.log_plots import Line, log_plot
from hedgerow.projection.problem import ProjectionProblem

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
MEASURES = {"mirror": "mirror step", "cold": "cold start", "episode": "episode of SV-OPS"}
JSON_FILE, FIGURE_FILE = "projection-scale.json", "projection-scale.svg"


@dataclass(frozen=True)
class Settings:
    """How much is measured."""

    num_sizes: int = len(SIZES)
    """Of the dense worlds; of the sparse ones there are three less, at least one"""
    num_problems: int = 5
    seed: int = 0

    @classmethod
    def quick(cls, num_sizes: int) -> Settings:
        return cls(num_sizes, num_problems=3)


@dataclass(frozen=True)
class Row:
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

    @property
    def mirror_per_triple(self) -> float:
        return self.mirror_step / self.triples

    @property
    def cold_per_triple(self) -> float:
        return self.cold_start / self.triples

    @property
    def episode_per_triple(self) -> float:
        return self.episode / self.triples


def run(settings: Settings) -> list[Row]:
    """Measure every size, the small ones first."""
    sizes = (*SIZES[: settings.num_sizes], *SPARSE_SIZES[: max(1, settings.num_sizes - 3)])
    rows = []
    with terminal.progress("bench scale", len(sizes)) as advance:
        for size in sizes:
            rows.append(_row(size, settings))
            advance(size.label)
    return rows


def _row(size: Size, settings: Settings) -> Row:
    solver = Ours(size.layout, size.constraints)
    num_problems = settings.num_problems if size.layout.num_triples < LARGE else min(2, settings.num_problems)
    seeds = range(settings.seed, settings.seed + num_problems)
    figures = [_figures(solver, [make(size, seed) for seed in seeds]) for make in (mirror_step, cold_problem)]
    (mirror, mirror_steps, *mirror_rest), (cold, cold_steps, *cold_rest) = figures
    triples = size.layout.num_triples
    certificate = max(mirror_rest[0], cold_rest[0])
    unsolved = int(mirror_rest[1] + cold_rest[1])
    per_triple = solver.num_bytes / triples
    times = (mirror, mirror_steps, cold, cold_steps)
    sparse = size.successors is not None
    return Row(
        size.label, triples, *times, per_triple, certificate, unsolved, *whole_episode(size, settings.seed), sparse
    )


def _figures(solver: Ours, problems: Sequence[ProjectionProblem]) -> tuple[float, float, float, int]:
    """Median seconds, mean Newton steps, worst certificate, number unsolved."""
    timed = [solver.time([problem]) for problem in problems]
    seconds, unsolved, steps = zip(*timed, strict=True)
    worst = max(target(problem).certificate for problem in problems)
    return float(np.median(seconds)), float(np.mean(steps)), worst, sum(map(bool, unsolved))


def as_data(settings: Settings, rows: Sequence[Row]) -> dict[str, Any]:
    """The report as JSON can hold it."""
    return manifest.report("scale", asdict(settings), [asdict(row) for row in rows])


def write(folder: Path, data: dict[str, Any], rows: Sequence[Row]) -> tuple[Path, Path]:
    """The figures as JSON and as a plot."""
    text = manifest.write(folder, JSON_FILE, manifest.as_json(data))
    return text, manifest.write(folder, FIGURE_FILE, plot(rows))


def plot(rows: Sequence[Row]) -> str:
    """Time per triple over the number of triples, as SVG."""
    lines = [
        Line(
            f"{name}, {support}",
            [(row.triples, 1e9 * getattr(row, f"{measure}_per_triple")) for row in rows if row.sparse == sparse],
            dashed=sparse,
            colour=colour,
        )
        for sparse, support in ((False, "dense"), (True, "sparse"))
        for colour, (measure, name) in enumerate(MEASURES.items())
    ]
    return log_plot("Time per triple", "triples (x, a, x')", "nanoseconds per triple", lines)


def show(rows: Sequence[Row]) -> None:
    """A table, and how far from linear the times are."""
    out = output.Screen()
    columns = ["layers", "triples", "mirror step", "ns/triple", "steps", "cold start", "ns/triple", "steps"]
    projections = output.Table("projections", [*columns, "bytes/triple", "certificate"])
    episodes = output.Table("whole episodes of SV-OPS", ["layers", "triples", "episode", "ns/triple", "bytes/triple"])
    for row in rows:
        mirror = [duration(row.mirror_step), f"{1e9 * row.mirror_per_triple:.0f}", f"{row.mirror_newton_steps:.1f}"]
        cold = [duration(row.cold_start), f"{1e9 * row.cold_per_triple:.0f}", f"{row.cold_newton_steps:.1f}"]
        certificate = f"{row.certificate:.0e}" + (f", {row.unsolved} unsolved" if row.unsolved else "")
        projections.add_row(row.size, str(row.triples), *mirror, *cold, f"{row.bytes_per_triple:.0f}", certificate)
        episode = [duration(row.episode), f"{1e9 * row.episode_per_triple:.0f}", f"{row.learner_bytes_per_triple:.0f}"]
        episodes.add_row(row.size, str(row.triples), *episode)
    out.table(projections)
    out.table(episodes)
    terminal.mention_load(out)
    out.line("bytes: of a projection beyond its problem, of a learner with all its buffers")
    for sparse, support in ((False, "dense"), (True, "sparse")):
        for measure, name in MEASURES.items():
            times = [getattr(row, f"{measure}_per_triple") for row in rows if row.sparse == sparse]
            apart = max(times) / min(times)
            out.line(f"{name}, {support}: the slowest size takes {apart:.1f} times as long per triple as the fastest")
