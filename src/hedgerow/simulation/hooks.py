"""Functions for `simulate(..., on_block=...)`: what to do with the run so far, between blocks of episodes.

    hr.simulate(world, learner, on_block=hr.hooks.live_plot())                    # a figure that grows, in a notebook
    hr.simulate(world, learner, on_block=hr.hooks.tensorboard("logs/s-ops"))      # tensorboard --logdir logs
    hr.simulate(world, learner, on_block=hr.hooks.wandb(project="charging"))
    hr.simulate(world, learner, on_block=hr.hooks.mlflow())                       # into the active run of mlflow

Any function of one argument, the `Run` so far, will do. These note its last checkpoint, once. None of the packages is
needed before its function is called.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from hedgerow.errors import HedgerowError
from hedgerow.simulation.result import Run, run_columns

__all__ = ("last_numbers", "live_plot", "mlflow", "tensorboard", "wandb")


def __dir__() -> list[str]:
    return sorted(__all__)


Hook = Callable[[Run], None]
SILENT = ("episode", "regret_so_far")
"""Columns that are not noted: the step itself, and what is a linear program per checkpoint"""


def last_numbers(run: Run) -> dict[str, float]:
    """Return the numbers of the last checkpoint by name: all columns of the run that are numbers there.

    Args:
        run: The run so far, with one checkpoint at least.

    Examples:
        >>> import hedgerow as hr
        >>> world = hr.worlds.make("lower-bound-2")
        >>> run = hr.simulate(world, hr.field.Uniform(world, 10), progress=False)
        >>> hr.hooks.last_numbers(run)["loss"]
        7.5
    """
    last = run.at(run.episodes[-1:])
    numbers = {name: float(values[-1]) for name, values in run_columns(last).items() if name not in SILENT}
    return {name: value for name, value in numbers.items() if np.isfinite(value)}


def live_plot(what: str | None = None) -> Hook:
    """Draw the run while it goes on: one figure in a notebook, which is replaced after every block.

    Args:
        what: The figure, as in `Run.plot`; by default the overview.

    Raises:
        HedgerowError: If IPython is not installed.

    Examples:
        >>> import hedgerow as hr
        >>> hook = hr.hooks.live_plot("regret")  # hr.simulate(world, learner, on_block=hook)
    """
    display = _package("IPython.display", "ipython").display
    handles: list[Any] = []

    def draw(run: Run) -> None:
        figure = run.plot(what)
        if handles:
            handles[0].update(figure)
        else:
            handles.append(display(figure, display_id=True))

    return _at_new_checkpoints(draw)


def tensorboard(folder: str | os.PathLike[str]) -> Hook:
    """Write the numbers of every new checkpoint for TensorBoard.

    Args:
        folder: Where TensorBoard looks for them: `tensorboard --logdir folder`.

    Raises:
        HedgerowError: If tensorboard is not installed.

    Examples:
        >>> import hedgerow as hr
        >>> hook = hr.hooks.tensorboard("logs/s-ops")  # doctest: +SKIP
    """
    writer = _package("tensorboard.summary", "tensorboard").Writer(os.fspath(folder))

    def write(run: Run) -> None:
        for name, value in last_numbers(run).items():
            writer.add_scalar(name, value, int(run.episodes[-1]))
        writer.flush()

    return _at_new_checkpoints(write)


def wandb(**options: Any) -> Hook:
    """Log the numbers of every new checkpoint to Weights & Biases.

    Args:
        **options: What `wandb.init` takes, such as `project="charging"`.

    Raises:
        HedgerowError: If wandb is not installed.

    Examples:
        >>> import hedgerow as hr
        >>> hook = hr.hooks.wandb(project="charging")  # doctest: +SKIP
    """
    there = _package("wandb", "wandb").init(**options)
    return _at_new_checkpoints(lambda run: there.log(last_numbers(run), step=int(run.episodes[-1])))


def mlflow() -> Hook:
    """Log the numbers of every new checkpoint to the active run of MLflow.

    Raises:
        HedgerowError: If mlflow is not installed.

    Examples:
        >>> import hedgerow as hr
        >>> hook = hr.hooks.mlflow()  # doctest: +SKIP
    """
    there = _package("mlflow", "mlflow")
    return _at_new_checkpoints(lambda run: there.log_metrics(last_numbers(run), step=int(run.episodes[-1])))


def _package(module: str, name: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise HedgerowError(f"this needs the package {name}: pip install {name}") from error


def _at_new_checkpoints(hook: Hook) -> Hook:
    """`hook`, called only if the run has reached a checkpoint since the last time."""
    reached = [0]

    def call(run: Run) -> None:
        if len(run.episodes) > reached[0]:
            reached[0] = len(run.episodes)
            hook(run)

    return call
