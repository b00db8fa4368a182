"""`hedgerow compile`: compile all kernels now, so that the first run does not wait for it.

Compiled code is kept on disk until a source changes; a second call only loads it. Each stage calls kernels from a
place of its own, with inputs as small as possible.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from hedgerow.commands.terminal import Quiet, one_thread
from hedgerow.output import say

if TYPE_CHECKING:
    from hedgerow.model.cmdp import CMDP

EPISODES = 3


def compile_kernels(quiet: Quiet = False) -> None:
    """Compile all kernels now: a minute or two, once; the first run then starts at once."""
    one_thread()
    begun = time.perf_counter()
    for name, work in stages():
        if not quiet:
            say(f"compiling {name} ...")
        work()
    if not quiet:
        say(f"compiled and cached in {time.perf_counter() - begun:.0f} s")


def stages() -> Iterator[tuple[str, Callable[[], None]]]:
    """What to call, with a name for people."""
    from hedgerow import catalogue

    world = catalogue.make("random-layered", layers=(1, 2, 2, 1), actions=2, constraints=1).cmdp
    yield "the projection", lambda: _project(world)
    yield "the learners, step by step", lambda: _simulate(world, step_wise=True)
    yield "the learners, in blocks of episodes", lambda: _simulate(world, step_wise=False)


def _project(world: CMDP) -> None:
    import numpy as np

    from hedgerow.projection.certificate import certify
    from hedgerow.projection.problem import ProjectionProblem
    from hedgerow.projection.solve import project

    count = world.layout.num_triples
    for thresholds in (world.thresholds, 0.0 * world.thresholds):  # the second one is infeasible
        problem = ProjectionProblem(
            world.layout, np.zeros(count), np.zeros(count), np.ones(count), world.mean_costs, thresholds
        )
        result = project(problem)
        if result.solved:
            certify(problem, result)


def _simulate(world: CMDP, step_wise: bool) -> None:
    import numpy as np

    from hedgerow.experiments import parts
    from hedgerow.registry import learners
    from hedgerow.simulation.run import simulate

    silent = np.zeros(world.layout.num_rows)
    for name in learners.builtin:
        learner = parts.build_learner(parts.complete_learner({"name": name}), world, EPISODES, 0.1, 0)
        simulate(world, silent, learner, progress=False, step_wise=step_wise)
