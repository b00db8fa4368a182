"""`python -m bench plans`: a constrained plan in boxes, compiled, beside the extended linear program by HiGHS.

Every world has a sequence of programs, as a learner makes one per episode. The first has the boxes of OptCMDP (Efroni,
Mannor and Pirotta 2020) around the true transitions after so many visits of every pair. From one to the next an episode
is drawn by the last plan, which narrows the boxes of the pairs that it visited; losses stay or, in a second sequence,
all change. Costs are known. All contenders take turns on the same programs:

- ours: a compiled call with arrays at hand, which starts anew each time;
- HiGHS, kept: one model (`bench/kept_program.py`); what changed is exchanged, and the simplex method goes on from the
  last basis;
- HiGHS, anew: the program from scipy, its sparse matrices included, some times only.

Times are medians of processor time. All values must agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import log
from time import process_time
from typing import Self

import numpy as np

from bench import terminal
from bench.benchmark import Benchmark, option
from bench.episode_worlds import LABELS, BenchWorld, catalogue_world
from bench.kept_program import Kept, KeptProgram
from bench.mirror_steps import SIZES
from bench.timing import Spread, batch_for, clocked, duration
from hedgerow.checks import FloatArray, IntArray
from hedgerow.display.table import Table
from hedgerow.environments.play import Player, make_streams, make_world
from hedgerow.model.kernel_layout import index_of
from hedgerow.model.occupancy import policy_of_masses
from hedgerow.model.policy import Policy
from hedgerow.planning.decomposition import SOLVED, PlanProblem, make_plan_workspace
from hedgerow.planning.lp import BoxSolution, box_program, least_loss_in_boxes
from hedgerow.planning.planner import plan_in_boxes

WORLDS = ("dope-factored", "dope-inventory", "dope-media", SIZES[-1].label)
"""84, 1152, 1640 and 4100 triples"""
EPISODES, DELTA = 1e5, 0.01
CHANGES = {"same": 0.0, "new": 0.1}
"""By how much losses differ from those of the world at most, drawn anew for every program; clipped to [0, 1]"""
BATCH_SECONDS = 2e-4
"""Our plans of one program are repeated for so long: a single one is too short for the clock."""
TOL_VALUE = 1e-9
"""For the difference of two values, relative to the larger of 1 and the value"""


@dataclass(frozen=True)
class PlanRow:
    """The contenders on one sequence of programs; times are seconds."""

    world: str
    triples: int
    constraints: int
    losses: str
    """`same`, or `new` in every program"""
    sweeps: float
    """Mean number of ours"""
    iterations: float
    """Mean number of simplex steps of the kept model"""
    ours: Spread
    kept: Spread
    anew: Spread
    difference: float
    """The largest of any value from ours, relative"""

    @property
    def ratio(self) -> float:
        """How many times longer the kept model takes."""
        return self.kept.median / self.ours.median

    @property
    def anew_ratio(self) -> float:
        return self.anew.median / self.ours.median

    @property
    def verdict(self) -> str:
        return "same value" if self.difference <= TOL_VALUE else "other value"


@dataclass(frozen=True)
class PlanSpeed(Benchmark[list[PlanRow]]):
    """Microseconds of a constrained plan in boxes, beside those of HiGHS with a kept model and without."""

    name, json_file = "plans", "plans.json"

    worlds: int = option(len(WORLDS), "only the first so many of the four worlds")
    visits: int = option(10_000, "visits of every pair at first: fewer make wider boxes")
    plans: int = option(200, "programs of a sequence")
    programs: int = option(10, "of these that HiGHS also solves anew")
    seed: int = 0

    @classmethod
    def quick(cls) -> Self:
        return cls(plans=20, programs=2)

    def run(self) -> list[PlanRow]:
        rows = []
        labels = WORLDS[: self.worlds]
        with terminal.progress("bench plans", len(labels) * len(CHANGES) * self.plans) as advance:
            for label in labels:
                world = LABELS[label]() if label in LABELS else catalogue_world(label)
                for losses in CHANGES:
                    rows.append(self._row(world, losses, partial(advance, f"{label}, {losses} losses")))
        return rows

    def _row(self, world: BenchWorld, losses: str, advance: Callable[[], None]) -> PlanRow:
        sequence = Sequence(world, self.visits, self.plans, CHANGES[losses], self.seed)
        times: dict[str, list[float]] = {"ours": [], "kept": [], "anew": []}
        iterations, sweeps, worst, batch = [], [], 0.0, batch_for(sequence.plan, BATCH_SECONDS)
        every = max(1, self.plans // self.programs)
        for number in range(self.plans + 1):  # the first is solved by all, and its times do not count
            first = number == 0
            own = clocked(sequence.plan, 1, batch=batch)
            begun = process_time()
            answer = sequence.ask_kept()
            kept = process_time() - begun
            values = [answer.value]
            if number % every == 0:
                begun = process_time()
                values.append(sequence.ask_anew().value)
                times["anew"] += [process_time() - begun][first:]
            value = sequence.workspace.figures.value
            worst = max(worst, *(abs(other - value) / max(1.0, abs(value)) for other in values))
            if not first:
                times["ours"] += own
                times["kept"].append(kept)
                iterations.append(answer.iterations)
                sweeps.append(sequence.workspace.tallies.sweeps)
                advance()
            sequence.go_on()
        counts = float(np.mean(sweeps)), float(np.mean(iterations))
        ours, theirs, anew = map(Spread.of, times.values())
        where = world.label, world.triples, world.cmdp.num_constraints, losses
        return PlanRow(*where, *counts, ours, theirs, anew, worst)

    def shown(self, found: list[PlanRow]) -> Iterator[Table | str]:
        columns = ["world", "losses", "triples", "m", "sweeps", "ours", "steps", "HiGHS, kept", "ratio"]
        table = Table("a constrained plan in boxes", [*columns, "HiGHS, anew", "ratio", "value"], num_text=2)
        for row in found:
            counts = str(row.triples), str(row.constraints), f"{row.sweeps:.1f}"
            kept = f"{row.iterations:.0f}", duration(row.kept.median), f"{row.ratio:.0f}x"
            anew = duration(row.anew.median), f"{row.anew_ratio:.0f}x"
            table.add_row(row.world, row.losses, *counts, duration(row.ours.median), *kept, *anew, row.verdict)
        yield table
        yield "kept: one model of HiGHS, started from its last basis. anew: built and solved by scipy each time."

    def is_right(self, found: list[PlanRow]) -> bool:
        return all(row.verdict == "same value" for row in found)


class Sequence:
    """Programs of one world, one after another, and the contenders that solve them."""

    def __init__(self, world: BenchWorld, visits: int, plans: int, change: float, seed: int) -> None:
        cmdp, self.world, self._change = world.cmdp, world, change
        self._visits = np.full(cmdp.layout.num_rows, float(visits))
        self._rng = np.random.default_rng(seed)
        self._player = Player(cmdp, make_world(cmdp), make_streams(seed))
        arrays = cmdp.mean_costs.T.copy(), np.array(cmdp.thresholds)
        self.problem = PlanProblem(*boxes_after(world, self._visits), self._losses(), *arrays)
        self.workspace = make_plan_workspace(cmdp.layout, cmdp.num_constraints)
        self._index = index_of(cmdp.layout)
        self._kept = KeptProgram(cmdp.layout, boxes_after(world, visits + plans + 1), *arrays)
        self._changed: IntArray = np.arange(world.triples)

    def plan(self) -> None:
        """Ours."""
        if plan_in_boxes(self._index, self.problem, self.workspace) != SOLVED:
            raise RuntimeError(f"a plan of {self.world.label} is not solved")

    def ask_kept(self) -> Kept:
        """HiGHS from its last basis, with what has changed."""
        self._kept.change_boxes(self._changed, self.problem.lower, self.problem.upper)
        return self._kept.plan(self.problem.loss)

    def ask_anew(self) -> BoxSolution:
        """HiGHS with a program that is built for it."""
        problem = self.problem
        program = box_program(self.world.cmdp.layout, problem.lower, problem.upper)
        answer = least_loss_in_boxes(program, problem.loss, problem.costs, problem.thresholds)
        if not isinstance(answer, BoxSolution):
            raise RuntimeError(f"HiGHS has no solution for {self.world.label}: {answer.message}")
        return answer

    def go_on(self) -> None:
        """Play an episode of our plan, and make the next program."""
        layout = self.world.cmdp.layout
        policy = Policy(self.world.cmdp.view(), policy_of_masses(layout, self.workspace.masses))
        rows = self._player.play(policy, self.world.loss).rows
        self._visits[rows] += 1.0
        self.problem.lower[:], self.problem.upper[:] = boxes_after(self.world, self._visits)
        self.problem.loss[:] = self._losses()
        self._changed = np.flatnonzero(np.isin(layout.row_of_triple, rows))

    def _losses(self) -> FloatArray:
        loss = np.array(self.world.loss)
        return np.clip(loss + self._change * self._rng.uniform(-1.0, 1.0, len(loss)), 0.0, 1.0)


def boxes_after(world: BenchWorld, visits: FloatArray | int) -> tuple[FloatArray, FloatArray]:
    """Bounds (num_triples,): the true transitions, give or take 2 sqrt(p (1 - p) iota / n) + 14 iota / (3 n).

    `visits` is n, of every pair or (num_rows,).
    """
    layout, p = world.cmdp.layout, world.cmdp.transitions
    n = np.broadcast_to(np.asarray(visits, dtype=np.float64), layout.num_rows)[layout.row_of_triple]
    iota = log(6 * layout.num_rows * EPISODES / DELTA)
    radius = 2.0 * np.sqrt(p * (1.0 - p) * iota / n) + 14.0 * iota / (3.0 * n)
    single = (np.diff(layout.row_start) == 1)[layout.row_of_triple]  # nothing to learn: there is one successor
    return np.where(single, 1.0, np.maximum(p - radius, 0.0)), np.where(single, 1.0, np.minimum(p + radius, 1.0))
