"""`python -m bench plans`: a constrained plan in boxes, compiled, beside the extended linear program by HiGHS.

Boxes are those of OptCMDP (Efroni, Mannor and Pirotta 2020) around the true transitions after so many visits of every
pair; losses and costs are known. The compiled time is that of one call with arrays at hand, as a learner makes it once
per episode. HiGHS gets the program from scipy, as a learner in Python would call it; its time includes building the
sparse matrices. Both values must agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import log
from typing import Self

import numpy as np

from bench import terminal
from bench.benchmark import Benchmark, option
from bench.calls import clocked
from bench.episode_worlds import LABELS, BenchWorld, catalogue_world
from bench.mirror_steps import SIZES
from bench.timing import Spread, duration
from hedgerow.checks import FloatArray
from hedgerow.display.table import Table
from hedgerow.model.kernel_layout import index_of
from hedgerow.planning.decomposition import SOLVED, PlanProblem, make_plan_workspace
from hedgerow.planning.lp import BoxSolution, box_program, least_loss_in_boxes
from hedgerow.planning.planner import plan_in_boxes

WORLDS = ("dope-factored", "dope-inventory", "dope-media", SIZES[-1].label)
"""84, 1152, 1640 and 4100 triples"""
EPISODES, DELTA = 1e5, 0.01
TOL_VALUE = 1e-8


@dataclass(frozen=True)
class PlanRow:
    """Both solvers in one world; times are seconds."""

    world: str
    triples: int
    constraints: int
    sweeps: int
    ours: Spread
    highs: Spread
    difference: float
    """Of the two values"""

    @property
    def ratio(self) -> float:
        """How many times longer HiGHS takes."""
        return self.highs.median / self.ours.median

    @property
    def verdict(self) -> str:
        return "same value" if self.difference <= TOL_VALUE else "other value"


@dataclass(frozen=True)
class PlanSpeed(Benchmark[list[PlanRow]]):
    """Microseconds of a constrained plan in boxes, beside those of HiGHS."""

    name, json_file = "plans", "plans.json"

    worlds: int = option(len(WORLDS), "only the first so many of the four worlds")
    visits: int = option(10_000, "visits of every pair: fewer make wider boxes")
    plans: int = 1_000
    """Compiled plans that are timed"""
    programs: int = 20
    """Linear programs that are timed"""

    @classmethod
    def quick(cls) -> Self:
        return cls(plans=200, programs=3)

    def run(self) -> list[PlanRow]:
        rows = []
        labels = WORLDS[: self.worlds]
        with terminal.progress("bench plans", len(labels)) as advance:
            for label in labels:
                world = LABELS[label]() if label in LABELS else catalogue_world(label)
                rows.append(self._row(world))
                advance(label)
        return rows

    def _row(self, world: BenchWorld) -> PlanRow:
        cmdp, layout = world.cmdp, world.cmdp.layout
        lower, upper = boxes_after(world, self.visits)
        arrays = np.array(world.loss), cmdp.mean_costs.T.copy(), np.array(cmdp.thresholds)
        index, problem = index_of(layout), PlanProblem(lower, upper, *arrays)
        workspace = make_plan_workspace(layout, cmdp.num_constraints)
        if plan_in_boxes(index, problem, workspace) != SOLVED:
            raise RuntimeError(f"the plan of {world.label} is not solved")
        found: list[object] = []

        def ask_highs() -> None:
            found[:] = [least_loss_in_boxes(box_program(layout, lower, upper), *arrays)]

        ours = clocked(lambda: plan_in_boxes(index, problem, workspace), self.plans)
        highs = clocked(ask_highs, self.programs)
        answer = found[0]
        if not isinstance(answer, BoxSolution):
            raise RuntimeError(f"HiGHS has no solution for {world.label}")
        return PlanRow(
            world.label,
            world.triples,
            cmdp.num_constraints,
            workspace.tallies.sweeps,
            Spread.of(ours),
            Spread.of(highs),
            abs(workspace.figures.value - answer.value),
        )

    def shown(self, found: list[PlanRow]) -> Iterator[Table | str]:
        columns = ["world", "triples", "m", "sweeps", "ours", "HiGHS", "ratio", "value"]
        table = Table("a constrained plan in boxes", columns, num_text=1)
        for row in found:
            times = duration(row.ours.median), duration(row.highs.median), f"{row.ratio:.0f}x"
            table.add_row(row.world, str(row.triples), str(row.constraints), str(row.sweeps), *times, row.verdict)
        yield table

    def is_right(self, found: list[PlanRow]) -> bool:
        return all(row.difference <= TOL_VALUE for row in found)


def boxes_after(world: BenchWorld, visits: int) -> tuple[FloatArray, FloatArray]:
    """Bounds (num_triples,): the true transitions, give or take 2 sqrt(p (1 - p) iota / n) + 14 iota / (3 n)."""
    layout, p = world.cmdp.layout, world.cmdp.transitions
    iota = log(6 * layout.num_rows * EPISODES / DELTA)
    radius = 2.0 * np.sqrt(p * (1.0 - p) * iota / visits) + 14.0 * iota / (3.0 * visits)
    single = (np.diff(layout.row_start) == 1)[layout.row_of_triple]  # nothing to learn: there is one successor
    return np.where(single, 1.0, np.maximum(p - radius, 0.0)), np.where(single, 1.0, np.minimum(p + radius, 1.0))
