"""`hedgerow bench projection`: ours and general solvers on the same mirror steps, interleaved in one run.

Problem after problem, every contender in turn, the first one rotating, until each has had all problems or has used up
its time: what disturbs the machine disturbs all. Times are medians over problems, of processor time: every solver has
one thread, so on a quiet machine that is the time on the clock, and on a busy one it leaves out the waiting.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow import output
from hedgerow.bench import manifest, terminal
from hedgerow.bench.contender import Contender, Target, measure, target
from hedgerow.bench.mirror_steps import SIZES, Size, cold_problem, mirror_step
from hedgerow.bench.ours import Ours
from hedgerow.bench.peers import contenders
from hedgerow.bench.timing import Spread, duration
from hedgerow.projection.problem import ProjectionProblem

FILE = "projection-speed.json"
IN_TURN = 8
"""Problems of the loop over different problems; the kernel is compiled for this number."""


@dataclass(frozen=True)
class Settings:
    """How much is measured."""

    num_sizes: int = len(SIZES)
    num_problems: int = 40
    budget: float = 20.0
    """Seconds per contender and size; the solve that exceeds it is the last"""
    time_limit: float = 30.0
    """Seconds per solve"""
    seed: int = 0

    @classmethod
    def quick(cls, num_sizes: int) -> Settings:
        return cls(num_sizes, num_problems=IN_TURN, budget=1.0, time_limit=5.0)


@dataclass
class Samples:
    """What one contender did at one size."""

    seconds: list[float] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)
    infeasibility: list[float] = field(default_factory=list)
    gap: list[float] = field(default_factory=list)
    spent: float = 0.0


@dataclass(frozen=True)
class Row:
    """The figures of one contender at one size; times are in seconds and None if it could not run."""

    size: str
    triples: int
    contender: str
    status: str
    time: Spread | None = None
    slower: float | None = None
    """How many times our median"""
    infeasibility: float | None = None
    """The worst over the problems; None without an answer"""
    gap: float | None = None


def run(settings: Settings) -> list[Row]:
    """Measure everything."""
    sizes = SIZES[: settings.num_sizes]
    rows: list[Row] = []
    with terminal.progress("bench projection", len(sizes) * settings.num_problems) as advance:
        for size in sizes:
            problems = [mirror_step(size, settings.seed + i) for i in range(settings.num_problems)]
            able, missing = contenders(size.layout, size.constraints, settings.time_limit)
            samples = {contender.name: Samples() for contender in able}
            for i, problem in enumerate(problems):
                _one_problem(problem, able[i % len(able) :] + able[: i % len(able)], samples, settings.budget)
                advance(size.label)
            rows += _rows(size, samples, missing)
            rows += _more_of_ours(size, problems, settings)
    return rows


def _one_problem(
    problem: ProjectionProblem, able: Sequence[Contender], samples: dict[str, Samples], budget: float
) -> None:
    best: Target = target(problem)
    for contender in able:
        own = samples[contender.name]
        if own.spent > budget:
            continue
        answer = contender.run(problem)
        residual = measure(problem, answer.occupancy, best)
        own.seconds.append(answer.seconds)
        own.statuses[answer.status] += 1
        own.infeasibility.append(residual.infeasibility)
        own.gap.append(residual.gap)
        own.spent += answer.seconds


def _rows(size: Size, samples: dict[str, Samples], missing: dict[str, str]) -> list[Row]:
    ours = float(np.median(samples[Ours.name].seconds))
    rows = []
    for name, own in samples.items():
        status = ", ".join(f"{text} {count}" for text, count in own.statuses.most_common())
        time = Spread.of(own.seconds)
        infeasibility, gap = _worst(own.infeasibility), _worst(own.gap)
        rows.append(
            Row(size.label, size.layout.num_triples, name, status, time, time.median / ours, infeasibility, gap)
        )
    return rows + [Row(size.label, size.layout.num_triples, name, reason) for name, reason in missing.items()]


def _more_of_ours(size: Size, problems: Sequence[ProjectionProblem], settings: Settings) -> list[Row]:
    """Different problems in turn, which shows that repeating one does not flatter, and cold starts."""
    solver, rows = Ours(size.layout, size.constraints), []
    cold = [cold_problem(size, settings.seed + i) for i in range(settings.num_problems)]
    for what, chosen in (("8 problems in turn", problems), ("cold starts in turn", cold)):
        groups = [chosen[i : i + IN_TURN] for i in range(0, len(chosen) - IN_TURN + 1, IN_TURN)]
        timed = [solver.time(group) for group in groups]
        if timed:
            unsolved, steps = sum(t[1] for t in timed), float(np.mean([t[2] for t in timed]))
            status = f"unsolved {unsolved}" if unsolved else f"solved, {steps:.1f} steps"
            time = Spread.of([t[0] for t in timed])
            rows.append(Row(size.label, size.layout.num_triples, f"{Ours.name}, {what}", status, time))
    return rows


def _worst(residuals: Sequence[float]) -> float | None:
    worst = float(np.max(residuals))  # NaN if one answer is missing
    return worst if math.isfinite(worst) else None


def as_data(settings: Settings, rows: Sequence[Row]) -> dict[str, Any]:
    """The report as JSON can hold it."""
    return manifest.report("projection", asdict(settings), [asdict(row) for row in rows])


def write(folder: Path, data: dict[str, Any]) -> Path:
    return manifest.write(folder, FILE, manifest.as_json(data))


def show(rows: Sequence[Row]) -> None:
    """One table per size."""
    out = output.Screen()
    for label in dict.fromkeys(row.size for row in rows):
        own = [row for row in rows if row.size == label]
        columns = ["contender", "status", "median", "p10 - p90", "n", "x slower", "infeasibility", "gap"]
        shown = output.Table(f"{label}: {own[0].triples} triples, mirror steps", columns, num_text=2)
        for row in own:
            shown.add_row(*_cells(row))
        out.table(shown)
    terminal.mention_load(out)
    for words in (
        "hedgerow: Newton kernel and recovery from v = 0, in a compiled loop, as learners call it.",
        "All others: from the problem to the occupancy. Times are of the processor, one thread each.",
        "infeasibility and gap: the worst over the problems, measured alike for all, against the certified dual value.",
    ):
        out.line(words)


def _cells(row: Row) -> list[str]:
    if row.time is None:
        return [row.contender, row.status, *["-"] * 6]
    spread = f"{duration(row.time.p10)} - {duration(row.time.p90)}"
    slower = "-" if row.slower is None else (f"{row.slower:.0f}" if row.slower >= 10 else f"{row.slower:.1f}")
    residuals = ["-" if value is None else f"{value:.0e}" for value in (row.infeasibility, row.gap)]
    return [row.contender, row.status, duration(row.time.median), spread, str(row.time.count), slower, *residuals]
