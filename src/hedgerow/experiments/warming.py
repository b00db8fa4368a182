"""Compile kernels before they are needed: with one line, one bar, and two processes where there are two cores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from hedgerow.learners.ops.base import MirrorLearner
    from hedgerow.model.cmdp import CMDP

COMPANION = ("-m", "hedgerow", "compile", "--only", "projection", "--quiet")


@contextmanager
def compiled_together(*, alone: bool = False, shown: bool = True) -> Iterator[None]:
    """Compile kernels inside this block; another process compiles those of the projection, unless `alone`."""
    from numba import config

    from hedgerow.compiling import linking, warmup
    from hedgerow.compiling.warmup import announcer, seconds_ahead
    from hedgerow.learners.ops.loop import run_block
    from hedgerow.learners.ops.step import learn, project_weights

    programs: list[Any] = [run_block, learn, project_weights]
    if config.DISABLE_JIT or not any(kernel._cache.is_empty for kernel in programs):  # type: ignore[attr-defined]
        with nullcontext() if shown else announcer.whole("what is left", 1.0, shown):
            yield
        return
    alone = alone or not linking.AVAILABLE  # plain numba shares nothing
    ahead_of_us = seconds_ahead(programs) if alone else seconds_ahead(programs, without=project_weights)
    with announcer.whole("the kernels", ahead_of_us, shown):
        if alone:
            yield
            return
        with warmup.companion("project_weights", COMPANION):
            _compile_loop()
            yield


def _compile_loop() -> None:
    """Compile the loop of simulations from its outermost kernel inwards: the companion compiles the innermost ones."""
    from hedgerow.learners.ops.audit import MirrorWatcher
    from hedgerow.simulation.run import Simulation

    world = smallest_world()
    watcher = Simulation(world, [0.0], _patient(world)).watcher
    if isinstance(watcher, MirrorWatcher):
        watcher.compile()


def compile_projection() -> None:
    """Compile the projection of learners, which all their programs share."""
    from numba import config, typeof

    from hedgerow.learners.ops.step import project_weights

    if not config.DISABLE_JIT:  # type: ignore[attr-defined]
        core, program, kind = _patient(smallest_world()).core, cast(Any, project_weights), cast(Any, typeof)
        program.compile((kind(core), kind(core.buffers.all_rows)))


def smallest_world() -> CMDP:
    """One state, one action, and a cost above its threshold."""
    from hedgerow.model.cmdp import CMDP
    from hedgerow.model.costs import DeterministicCosts
    from hedgerow.model.layout import Layout

    return CMDP(Layout((1, 1), 1), [1.0], DeterministicCosts([[1.0]]), [0.5])


def _patient(world: CMDP) -> MirrorLearner:
    """A learner that calls no kernel when it is made."""
    from hedgerow.learners.ops.state import Core
    from hedgerow.learners.ops.sv_ops import SVOPS

    class Patient(SVOPS):
        def _start(self, core: Core) -> None:
            core.state.reals.eta = 1.0

    return Patient(world.view(), 1, 0.1)
