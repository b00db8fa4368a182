"""What is compiled for whom: the stages of `hedgerow compile`, and what a sweep compiles before its first cell.

A stage compiles the kernels of one part of the package by calling them with the smallest possible inputs. Compiled code
stays in the cache until a source changes; calling them again only loads it. Imports are inside the functions: a
process that finds everything compiled loads nothing for this module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from enum import StrEnum
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from hedgerow.learners.ops.base import MirrorLearner
    from hedgerow.model.cmdp import CMDP

COMPANION = ("-m", "hedgerow", "compile", "--only", "projection", "--quiet")
EPISODES = 3
EVERYTHING = 140.0
"""The weight of all that `hedgerow compile` compiles, see `compiling/warmup.py`"""


class CompileStage(StrEnum):
    """A part of the package whose kernels can be compiled by themselves."""

    PROJECTION = "projection"
    BLOCKS = "blocks"
    STEPS = "steps"
    FIELD = "field"
    RARE = "rare"


@contextmanager
def compiled_together(*, alone: bool = False, shown: bool = True, everything: bool = False) -> Iterator[None]:
    """Compile kernels inside this block, `everything` or those of some simulations.

    Another process compiles those of the projection, unless `alone`.
    """
    from numba import config

    from hedgerow.compiling import kernels
    from hedgerow.compiling.warmup import announcer, companion, seconds_ahead
    from hedgerow.learners.ops.loop import run_block
    from hedgerow.learners.ops.step import begin, learn, project_weights

    programs: list[Any] = [run_block, learn, project_weights, begin]
    if config.DISABLE_JIT or not any(kernel._cache.is_empty for kernel in programs):  # type: ignore[attr-defined]
        with nullcontext() if shown else announcer.whole("what is left", 1.0, shown):
            yield
        return
    alone = alone or not kernels.AVAILABLE  # plain numba shares nothing
    ahead_of_us = EVERYTHING if everything else seconds_ahead(programs)
    if not alone:
        ahead_of_us -= seconds_ahead(programs) - seconds_ahead(programs, without=project_weights)
    with announcer.whole("the kernels", ahead_of_us, shown):
        if alone:
            yield
            return
        with companion("project_weights", COMPANION):
            _compile_loop()
            yield


def compile_stages(only: CompileStage | None = None) -> None:
    """Compile one stage, or all of them: the projection comes last, because a companion compiles it meanwhile."""
    from hedgerow import worlds

    stages: dict[CompileStage, Callable[[CMDP], None]] = {
        CompileStage.BLOCKS: lambda world: _simulate(world, step_wise=False),
        CompileStage.STEPS: _embed,
        CompileStage.FIELD: _compare,
        CompileStage.RARE: _solve_the_rare,
        CompileStage.PROJECTION: _project,
    }
    world = worlds.make("random-layered", layers=(1, 2, 2, 1), actions=2, constraints=1).cmdp
    for stage, work in stages.items():
        if only in (None, stage):
            work(world)


def smallest_world() -> CMDP:
    """One state, one action, and a cost above its threshold."""
    from hedgerow.model.cmdp import CMDP
    from hedgerow.model.costs import DeterministicCosts
    from hedgerow.model.layout import Layout

    return CMDP(Layout((1, 1), 1), [1.0], DeterministicCosts([[1.0]]), [0.5])


def _compile_loop() -> None:
    """Compile the loop of simulations from its outermost kernel inwards: the companion compiles the innermost ones."""
    from hedgerow.learners.ops.loop import MirrorWatcher
    from hedgerow.simulation.run import Simulation

    world = smallest_world()
    watcher = Simulation(world, _learner_that_calls_nothing(world), [0.0]).watcher
    if isinstance(watcher, MirrorWatcher):
        watcher.compile()


def _learner_that_calls_nothing(world: CMDP) -> MirrorLearner:
    """A learner whose constructor calls no kernel."""
    from hedgerow.learners.ops.state import Core
    from hedgerow.learners.ops.sv_ops import SVOPS

    class Patient(SVOPS):
        def _start(self, core: Core) -> None:
            core.state.reals.eta = 1.0

    return Patient(world.view(), 1, 0.1)


def _compile(kernel: Any, *arguments: Any) -> None:
    """Compile a kernel for these arguments without calling it."""
    from numba import config, typeof

    if not config.DISABLE_JIT:  # type: ignore[attr-defined]
        kernel.compile(tuple(cast(Any, typeof)(value) for value in arguments))


def _project(world: CMDP) -> None:
    import numpy as np

    from hedgerow.learners.ops.step import project_weights
    from hedgerow.projection.certificate import certify
    from hedgerow.projection.problem import ProjectionProblem
    from hedgerow.projection.projector import Projector
    from hedgerow.projection.solve import project

    core = _learner_that_calls_nothing(smallest_world()).core
    _compile(project_weights, core, core.buffers.all_rows)  # first: others may be waiting for it
    count = world.layout.num_triples
    for thresholds in (world.thresholds, 0.0 * world.thresholds):  # the second one is infeasible
        problem = ProjectionProblem(
            world.layout, np.zeros(count), np.zeros(count), np.ones(count), world.mean_costs, thresholds
        )
        result = project(problem)
        if result.solved:
            certify(problem, result)
    Projector(world.layout, 1).project(np.zeros(count), np.zeros(count), np.ones(count), world.mean_costs, [1.0])


def _simulate(world: CMDP, step_wise: bool, field: bool = False) -> None:
    """Run the learners of the paper, or those of the field, for a few episodes."""
    import copy

    import numpy as np

    from hedgerow.experiments import components
    from hedgerow.learners.field.lp import LPLearner
    from hedgerow.learners.field.lp_kernels import conclude
    from hedgerow.losses.oblivious import Fixed
    from hedgerow.registry import learners
    from hedgerow.simulation.run import simulate

    silent = np.zeros(world.layout.num_rows)
    for name in [name for name, home in learners.builtin.items() if (".field." in home) == field]:
        hasty = {"confidence_scale": 1e-6} if name == "cv-ops" else {}  # its search ends at once
        part = components.complete_learner({"name": name, **hasty})
        learner = components.build_learner(part, components.BuiltWorld(world), EPISODES, 0.1, 0, losses=Fixed(silent))
        simulate(world, learner, silent, progress=False, step_wise=step_wise)
        if step_wise:
            copy.copy(learner)  # as from a file
        if isinstance(learner, LPLearner):
            _compile(conclude, learner.core, 0)  # called after the slow solver only, which hardly ever happens


def _compare(world: CMDP) -> None:
    """Run the learners of the field both ways."""
    _simulate(world, step_wise=False, field=True)
    _simulate(world, step_wise=True, field=True)


def _embed(world: CMDP) -> None:
    """Call what step-by-step simulations, a user's loop, and learners in Python call."""
    import numpy as np

    from hedgerow.confidence.kl import kt_interval
    from hedgerow.environments.play import play_many
    from hedgerow.learners.ops.sv_ops import SVOPS
    from hedgerow.learners.statistics import Statistics

    kt_interval(1, 0.5, 1.0)
    _simulate(world, step_wise=True)
    learner, statistics = SVOPS(world.view(), EPISODES, 0.1), Statistics(world.view(), EPISODES, 0.1)
    policy = learner.plan().policy
    episode = world.play(policy, np.random.default_rng(0))
    play_many(world, policy, EPISODES, seed=0)
    learner.observe(episode.rows, episode.losses, episode.costs)
    statistics.add(episode)
    SVOPS(world.view(), EPISODES, 0.1, "sharpest").absorb([episode])
    statistics.robust_cost(learner.plan().policy)
    statistics.optimistic_plan()


def _solve_the_rare(_: CMDP) -> None:
    """Call what is hardly ever needed, but then at once: thresholds that no policy meets, or only one."""
    import warnings

    import numpy as np

    from hedgerow.errors import InfeasibleWarning
    from hedgerow.learners.ops.sv_ops import SVOPS
    from hedgerow.model.kernel_layout import index_of
    from hedgerow.model.layout import Layout
    from hedgerow.planning.decomposition import least_cost, robust_scratch
    from hedgerow.projection.direction import maximise_quadratic
    from hedgerow.projection.problem import ProjectionProblem
    from hedgerow.projection.solve import project
    from hedgerow.simulation.run import simulate

    learner = SVOPS(smallest_world().view(), EPISODES, 0.1, confidence_scale=1e-6)
    with warnings.catch_warnings(category=InfeasibleWarning, action="ignore"):
        simulate(smallest_world(), learner, [0.0], progress=False)
    layout = Layout((1, 1), 2)
    project(ProjectionProblem(layout, np.zeros(2), np.ones(2), np.ones(2), [[0.0, 1.0]], [0.0]))
    maximise_quadratic(np.eye(1), np.zeros((5, 2)), 1)
    least_cost(index_of(layout), np.ones(2), np.ones(2), np.zeros(2), robust_scratch(layout))
