"""`hedgerow compile`: compile all kernels now; the first run need not wait for it.

Compiled code stays in the cache until a source changes; a second call only loads it. Each stage compiles the kernels of
one part of the package, by calling them with the smallest possible inputs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from hedgerow.commands.terminal import Quiet, one_thread
from hedgerow.display.output import say

if TYPE_CHECKING:
    from pathlib import Path

    from hedgerow.model.cmdp import CMDP

EPISODES = 3


class CompileStage(StrEnum):
    """A part of the package whose kernels can be compiled by themselves."""

    PROJECTION = "projection"
    BLOCKS = "blocks"
    STEPS = "steps"
    FIELD = "field"
    RARE = "rare"


def compile_kernels(
    quiet: Quiet = False,
    only: Annotated[
        CompileStage | None,
        typer.Option(
            help="The projection, simulations in blocks, plan and observe, the learners of the field, or what is rare; "
            "by default all."
        ),
    ] = None,
    jobs: Annotated[
        int,
        typer.Option("--jobs", "-j", min=1, max=2, help="Processes: two finish sooner, one needs less time in total."),
    ] = 2,
    native: Annotated[
        bool, typer.Option("--native", help="Compile for this processor, even if compiled code came with the package.")
    ] = False,
    where: Annotated[bool, typer.Option("--where", help="Say where compiled code is, and compile nothing.")] = False,
    clean: Annotated[bool, typer.Option("--clean", help="Remove what was compiled, and compile nothing.")] = False,
) -> None:
    """Compile all kernels now. This takes less than a minute, once; the first run then starts at once."""
    one_thread()
    if where or clean:
        (_clean if clean else _tell)()
        return
    from hedgerow.compiling import cache as shipped
    from hedgerow.experiments.warming import compiled_together

    begun = time.perf_counter()
    if native:
        shipped.ignore()
    with compiled_together(alone=jobs == 1 or only is not None, shown=not quiet):
        for stage, work in STAGES.items():
            if only in (None, stage):
                work(_world())
    if not quiet:
        say(f"compiled, or loaded, in {time.perf_counter() - begun:.0f} s; hedgerow compile --where tells where it is")


def _clean() -> None:
    from hedgerow.compiling import cache

    folder = cache.root()
    num_files, size = _content(folder)
    cache.remove_all()
    say(f"removed {num_files} files, {size / 1e6:.1f} MB, from {folder}")


def _tell() -> None:
    from hedgerow.compiling import cache
    from hedgerow.compiling import cache as shipped

    num_files, size = _content(cache.root())
    say(f"compiled on this machine: {cache.root()}, {num_files} files, {size / 1e6:.1f} MB")
    if not shipped.FOLDER.is_dir():
        say("no compiled code came with this package")
        return
    num_files, size = _content(shipped.FOLDER)
    used = "used where the first has nothing" if shipped.is_usable() else "not for this processor"
    say(f"came with the package: {shipped.FOLDER}, {num_files} files, {size / 1e6:.1f} MB, {used}")


def _content(folder: Path | None) -> tuple[int, int]:
    """The number of files below a folder, and their bytes."""
    found = [] if folder is None else [file.stat().st_size for file in folder.rglob("*") if file.is_file()]
    return len(found), sum(found)


def _world() -> CMDP:
    from hedgerow import worlds

    return worlds.make("random-layered", layers=(1, 2, 2, 1), actions=2, constraints=1).cmdp


def _project(world: CMDP) -> None:
    import numpy as np

    from hedgerow.experiments.warming import compile_projection
    from hedgerow.projection.certificate import certify
    from hedgerow.projection.problem import ProjectionProblem
    from hedgerow.projection.projector import Projector
    from hedgerow.projection.solve import project

    compile_projection()  # first, because others may be waiting for it
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
    from hedgerow.losses.oblivious import Fixed
    from hedgerow.registry import learners
    from hedgerow.simulation.run import simulate

    silent = np.zeros(world.layout.num_rows)
    for name in [name for name, home in learners.builtin.items() if (".field." in home) == field]:
        hasty = {"confidence_scale": 1e-6} if name == "cv-ops" else {}  # its search ends at once
        part = components.complete_learner({"name": name, **hasty})
        learner = components.build_learner(part, components.BuiltWorld(world), EPISODES, 0.1, 0, losses=Fixed(silent))
        simulate(world, silent, learner, progress=False, step_wise=step_wise)
        if step_wise:
            copy.copy(learner)  # as from a file


def _compare(world: CMDP) -> None:
    """Run the learners of the field both ways."""
    _simulate(world, step_wise=False, field=True)
    _simulate(world, step_wise=True, field=True)


def _embed(world: CMDP) -> None:
    """Call what step-by-step simulations, a user's own loop, and learners in Python call."""
    import numpy as np

    from hedgerow import forecast
    from hedgerow.confidence.kl import kt_interval
    from hedgerow.forecast.preflight import assumed_baseline
    from hedgerow.learners.ops.sv_ops import SVOPS
    from hedgerow.learners.statistics import Statistics

    kt_interval(1, 0.5, 1.0)
    _simulate(world, step_wise=True)
    learner, statistics = SVOPS(world.view(), EPISODES, 0.1), Statistics(world.view(), EPISODES, 0.1)
    episode = world.play(learner.plan().policy, np.random.default_rng(0))
    learner.observe(episode.rows, episode.losses, episode.costs)
    statistics.add(episode)
    SVOPS(world.view(), EPISODES, 0.1, "sharpest").absorb([episode])
    statistics.robust_cost(learner.plan().policy)
    statistics.optimistic_plan()
    view = world.view()
    forecast.forecast(view, forecast.assumed_model(view), assumed_baseline(view), EPISODES, 0.1)


def _rescue(world: CMDP) -> None:
    """Call what is hardly ever needed, but then at once: thresholds that no policy meets, or only one."""
    import warnings

    import numpy as np

    from hedgerow.errors import InfeasibleWarning
    from hedgerow.experiments.warming import smallest_world
    from hedgerow.learners.ops.sv_ops import SVOPS
    from hedgerow.model.kernel_layout import index_of
    from hedgerow.model.layout import Layout
    from hedgerow.planning.robust import least_cost, robust_scratch
    from hedgerow.projection.direction import maximise_quadratic
    from hedgerow.projection.problem import ProjectionProblem
    from hedgerow.projection.solve import project
    from hedgerow.simulation.run import simulate

    learner = SVOPS(smallest_world().view(), EPISODES, 0.1, confidence_scale=1e-6)
    with warnings.catch_warnings(category=InfeasibleWarning, action="ignore"):
        simulate(smallest_world(), [0.0], learner, progress=False)
    layout = Layout((1, 1), 2)
    project(ProjectionProblem(layout, np.zeros(2), np.ones(2), np.ones(2), [[0.0, 1.0]], [0.0]))
    maximise_quadratic(np.eye(1), np.zeros((5, 2)), 1)
    least_cost(index_of(layout), np.ones(2), np.ones(2), np.zeros(2), robust_scratch(layout))


STAGES: dict[CompileStage, Callable[[CMDP], None]] = {
    CompileStage.BLOCKS: lambda world: _simulate(world, step_wise=False),
    CompileStage.STEPS: _embed,
    CompileStage.FIELD: _compare,
    CompileStage.RARE: _rescue,
    CompileStage.PROJECTION: _project,
}
"""The stages in order: the projection comes last, because a companion process compiles it meanwhile."""
