"""`python -m bench projection`: ours and general solvers on the same mirror steps, interleaved in one run.

Problem after problem, every contender in turn, the first one rotating, until each has had all problems or has used up
its time: what disturbs the machine disturbs all. Times are medians over problems, of processor time: every solver has
one thread, so on a quiet machine that is the time on the clock, and on a busy one it leaves out the waiting.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from bench import terminal
from bench.benchmark import Benchmark, option
from bench.contender import Contender, Target, measure, target
from bench.contender_rows import ContenderRow, tables_by_world
from bench.mirror_steps import SIZES, Size, cold_problem, mirror_step
from bench.ours import Ours
from bench.peers import contenders
from bench.timing import Spread
from hedgerow.display.table import Table
from hedgerow.projection.problem import ProjectionProblem

IN_TURN = 8
"""Problems of the loop over different problems; the kernel is compiled for this number."""


@dataclass
class Samples:
    """What one contender did at one size."""

    seconds: list[float] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)
    infeasibility: list[float] = field(default_factory=list)
    gap: list[float] = field(default_factory=list)
    spent: float = 0.0


@dataclass(frozen=True)
class SolverRow(ContenderRow):
    """The figures of one contender at one size."""

    infeasibility: float | None = None
    """The worst over the problems; None without an answer"""
    gap: float | None = None


@dataclass(frozen=True)
class ProjectionSpeed(Benchmark[list[SolverRow]]):
    """The projection beside general solvers, interleaved on the same problems.

    A contender has `budget` seconds per size, and the solve that exceeds it is the last; a solve has `time_limit`.
    """

    name, json_file = "projection", "projection-speed.json"

    sizes: int = option(len(SIZES), "only the smallest so many of the four sizes")
    seed: int = 0
    problems: int = 40
    budget: float = 20.0
    time_limit: float = 30.0

    @classmethod
    def quick(cls) -> Self:
        return cls(sizes=2, problems=IN_TURN, budget=1.0, time_limit=5.0)

    def run(self) -> list[SolverRow]:
        sizes = SIZES[: self.sizes]
        rows: list[SolverRow] = []
        with terminal.progress("bench projection", len(sizes) * self.problems) as advance:
            for size in sizes:
                problems = [mirror_step(size, self.seed + i) for i in range(self.problems)]
                able, missing = contenders(size.layout, size.constraints, self.time_limit)
                samples = {contender.name: Samples() for contender in able}
                for i, problem in enumerate(problems):
                    _one_problem(problem, able[i % len(able) :] + able[: i % len(able)], samples, self.budget)
                    advance(size.label)
                rows += _rows(size, samples, missing)
                rows += _more_of_ours(size, problems, self.seed)
        return rows

    def shown(self, found: list[SolverRow]) -> Iterator[Table | str]:
        """One table per size."""
        yield from tables_by_world(
            found, "x slower", ["infeasibility", "gap"], lambda row: (row.infeasibility, row.gap)
        )
        yield "hedgerow: Newton kernel and recovery from v = 0, in a compiled loop, as learners call it."
        yield "All others: from the problem to the occupancy. Times are of the processor, one thread each."
        yield "infeasibility and gap: the worst over the problems, for all alike, against the certified dual value."


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


def _rows(size: Size, samples: dict[str, Samples], missing: dict[str, str]) -> list[SolverRow]:
    ours = float(np.median(samples[Ours.name].seconds))
    rows = []
    for name, own in samples.items():
        status = ", ".join(f"{text} {count}" for text, count in own.statuses.most_common())
        time = Spread.of(own.seconds)
        infeasibility, gap = _worst(own.infeasibility), _worst(own.gap)
        rows.append(
            SolverRow(size.label, size.layout.num_triples, name, status, time, time.median / ours, infeasibility, gap)
        )
    return rows + [SolverRow(size.label, size.layout.num_triples, name, reason) for name, reason in missing.items()]


def _more_of_ours(size: Size, problems: Sequence[ProjectionProblem], seed: int) -> list[SolverRow]:
    """Different problems in turn, which shows that repeating one does not flatter, and cold starts."""
    solver, rows = Ours(size.layout, size.constraints), []
    cold = [cold_problem(size, seed + i) for i in range(len(problems))]
    for what, chosen in (("8 problems in turn", problems), ("cold starts in turn", cold)):
        groups = [chosen[i : i + IN_TURN] for i in range(0, len(chosen) - IN_TURN + 1, IN_TURN)]
        timed = [solver.time(group) for group in groups]
        if timed:
            unsolved, steps = sum(t[1] for t in timed), float(np.mean([t[2] for t in timed]))
            status = f"unsolved {unsolved}" if unsolved else f"solved, {steps:.1f} steps"
            time = Spread.of([t[0] for t in timed])
            rows.append(SolverRow(size.label, size.layout.num_triples, f"{Ours.name}, {what}", status, time))
    return rows


def _worst(residuals: Sequence[float]) -> float | None:
    worst = float(np.max(residuals))  # NaN if one answer is missing
    return worst if math.isfinite(worst) else None
