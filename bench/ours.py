"""The projection as learners call it, timed: the Newton kernel and the recovery of the occupancy, nothing else.

Calling compiled code from Python takes longer than a small projection, and learners do not pay that: their episode is
compiled too. The clock therefore times a compiled loop over problems whose base is given as row weights and
conditionals, as a learner keeps it. Every solve starts from v = 0, theta = 0 in an existing workspace.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import process_time
from typing import NamedTuple

import numpy as np

from bench.contender import Run
from hedgerow.checks import FloatArray
from hedgerow.compiling.kernels import kernel
from hedgerow.forecast.preflight import num_bytes
from hedgerow.model.kernel_layout import LayoutArrays, index_of
from hedgerow.model.layout import Layout
from hedgerow.projection.newton import SOLVED, maximise_dual, recover
from hedgerow.projection.problem import KernelProblem, ProjectionProblem, ProjectionSettings, Workspace, make_workspace


class Buffers(NamedTuple):
    """What a solve writes besides its workspace."""

    v: FloatArray
    theta: FloatArray
    policy: FloatArray
    log_w: FloatArray
    costs: FloatArray


class Limits(NamedTuple):
    """`ProjectionSettings` for the kernel."""

    tol: float
    suspect_theta: float
    suspect_iterations: int


@kernel
def solve_batch(
    index: LayoutArrays,
    problems: tuple[KernelProblem, ...],
    repeats: int,
    buffers: Buffers,
    ws: Workspace,
    limits: Limits,
) -> tuple[int, int]:
    """Solve all problems in turn, `repeats` times; (unsolved, Newton steps). The buffers keep the last answer."""
    unsolved, steps = 0, 0
    for _ in range(repeats):
        for i in range(len(problems)):
            problem = problems[i]
            buffers.v[:] = 0.0
            buffers.theta[:] = 0.0
            outcome = maximise_dual(
                index,
                problem,
                buffers.v,
                buffers.theta,
                ws,
                limits.tol,
                limits.suspect_theta,
                limits.suspect_iterations,
            )
            recover(index, problem, ws, buffers.policy, buffers.log_w, buffers.costs)
            steps += outcome.iterations
            if outcome.code != SOLVED:
                unsolved += 1
    return unsolved, steps


class Ours:
    """Buffers for one layout and number of constraints."""

    name = "hedgerow"
    least_seconds = 1e-2
    """A sample repeats a solve for this long: then neither clock nor call matters."""
    num_samples = 3
    """A measurement is the median of so many samples, because a pause of the machine is longer than a projection."""

    def __init__(self, layout: Layout, num_constraints: int) -> None:
        self.layout, self.index = layout, index_of(layout)
        self.workspace = make_workspace(layout, num_constraints)
        rows, m = layout.num_rows, num_constraints
        self.buffers = Buffers(np.zeros(layout.num_states), np.zeros(m), np.zeros(rows), np.zeros(rows), np.zeros(m))
        settings = ProjectionSettings()
        self.limits = Limits(settings.tol, settings.suspect_theta, settings.suspect_iterations)

    @property
    def num_bytes(self) -> int:
        """Memory beyond the problem itself."""
        return num_bytes((self.workspace, self.buffers))

    def run(self, problem: ProjectionProblem) -> Run:
        """Time one problem, repeated in a compiled loop."""
        seconds, unsolved, _ = self.time([problem])
        p = self.workspace.p
        log_p = np.log(p, where=p > 0.0, out=np.full(len(p), -np.inf))
        occupancy = np.exp(self.buffers.log_w[self.layout.row_of_triple] + log_p)
        return Run(seconds, "unsolved" if unsolved else "solved", occupancy)

    def time(self, problems: Sequence[ProjectionProblem]) -> tuple[float, int, float]:
        """Seconds per problem, number of unsolved solves and Newton steps per problem, over all of them in turn.

        Compiles once for each number of problems.
        """
        batch = tuple(problem.kernel_arguments()[1] for problem in problems)
        self._clocked(batch, 1)  # compiles, and touches the memory
        repeats, (seconds, unsolved, steps) = 1, self._median_sample(batch, 1)
        while seconds < self.least_seconds:
            repeats *= 4
            seconds, unsolved, steps = self._median_sample(batch, repeats)
        solves = repeats * len(problems)
        return seconds / solves, unsolved, steps / solves

    def _median_sample(self, batch: tuple[KernelProblem, ...], repeats: int) -> tuple[float, int, float]:
        return sorted(self._clocked(batch, repeats) for _ in range(self.num_samples))[self.num_samples // 2]

    def _clocked(self, batch: tuple[KernelProblem, ...], repeats: int) -> tuple[float, int, float]:
        """Seconds, unsolved and steps of all repeats, without the time that a call with nothing to do takes.

        Handing over tuples of arrays takes up to half a millisecond, which learners do not pay.
        """
        seconds, unsolved, steps = [], 0, 0
        for count in (0, repeats):
            start = process_time()
            unsolved, steps = solve_batch(self.index, batch, count, self.buffers, self.workspace, self.limits)
            seconds.append(process_time() - start)
        return max(seconds[1] - seconds[0], 0.0), unsolved, float(steps)
