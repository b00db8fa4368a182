"""From a cell to its scores, and the worker that runs cells and returns the content of their files.

`run_cell` is a pure function: the same cell, the same bits. A worker sends the content of files to the one process that
owns the directory of results. So workers need no common file system, a worker that outlives its sweep cannot write into
it, and an error is an answer like any other.
"""

from __future__ import annotations

import os
import platform
import signal
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hedgerow.errors import HedgerowError, InfeasibleWarning, InvalidInput
from hedgerow.experiments import components
from hedgerow.experiments.isolation import Apart, Beat, Ended
from hedgerow.experiments.options import LIMIT
from hedgerow.experiments.plugins import PluginBundle, unpack
from hedgerow.experiments.spec import CellSpec
from hedgerow.experiments.warmup import smallest_world
from hedgerow.learners.api import Plan
from hedgerow.model.episode import Episode
from hedgerow.model.policy import Policy
from hedgerow.model.view import View
from hedgerow.planning import offline
from hedgerow.results import store
from hedgerow.simulation.result import Run
from hedgerow.simulation.run import FEWEST_EPISODES, MOST_EPISODES, NUM_MARKS, SOON, Simulation, checkpoints, simulate

Tick = Callable[[int], None]
"""Called with the number of episodes done."""


class CellRun(NamedTuple):
    """The result of a cell."""

    run: Run
    seconds: dict[str, float]
    """Wall time: build (world, baseline, learner), loop (episodes), score (comparators), total"""
    facts: dict[str, float | str]
    """What is known of the world and worth keeping with the curves: slater, its margin rho; baseline_taken, which of
    its baselines `baseline = "offered"` stood for"""
    trace: Run | None = None
    """The same run with every episode as a checkpoint, if it was asked for"""


def run_cell(
    cell: CellSpec,
    folder: Path | None = None,
    tick: Tick | None = None,
    *,
    trace: bool = False,
    beat: Callable[[str], None] = lambda _: None,
) -> CellRun:
    """Run one cell; files that it names are looked for in `folder`. A `trace` keeps every single episode as well.

    `beat` is called with what comes next, each episode of a learner that is not compiled; with nothing when the rest is
    scoring, which may take its time.
    """
    begun, seeds, folder, episodes = time.perf_counter(), cell.seeds, folder or Path(), cell.episodes
    # Code of others might change a world: it gets one of its own.
    world = (components.build_world if cell.is_foreign else components.shared_world)(cell.world, folder)
    adversary = components.build_adversary(cell.adversary, seeds.adversary, world, folder, episodes)
    beat("the construction of the learner")
    learner = components.build_learner(cell.learner, world, episodes, cell.delta, seeds.learner, folder, adversary)
    marks = checkpoints(episodes, NUM_MARKS if cell.marks is None else cell.marks)
    closely = dict(cell.watch or {})
    simulation = Simulation(
        world.cmdp, learner, adversary, seeds.simulation, episodes=episodes, marks="all" if trace else marks,
        audit=closely.pop("audit", False), watch=closely, baseline=world.reference, terms=world.terms,
    )  # fmt: skip
    if simulation.first:
        raise InvalidInput(f"a new learner says that it has observed {simulation.first} episodes already")
    simulation.on_episode = lambda done: beat(f"episode {done}")
    built = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InfeasibleWarning)  # the table of the cell counts such episodes
        count = MOST_EPISODES if simulation.ours or simulation.way == "step-wise" else FEWEST_EPISODES
        while simulation.done < episodes:
            if tick is not None:
                tick(simulation.done)
            beat(f"episode {simulation.done}")
            before = time.perf_counter()
            simulation.advance(count)
            if time.perf_counter() - before < SOON:
                count = min(2 * count, MOST_EPISODES)
    beat("")
    played = time.perf_counter()
    whole, rho = simulation.result(), offline.slater(world.cmdp).margin
    run = whole.at(marks) if trace else whole
    _ = run.regret_so_far  # an optimum for each checkpoint: its time belongs here
    scored = time.perf_counter()
    seconds = {"build": built - begun, "loop": played - built, "score": scored - played, "total": scored - begun}
    facts: dict[str, float | str] = {"slater": rho, "reference": components.reference_name(world)}
    if cell.learner.get("baseline") == "offered":
        facts["baseline_taken"] = components.baseline_taken(cell.learner, world)
    return CellRun(run, seconds, facts, whole if trace else None)


# The worker -----------------------------------------------------------------------------------------------------------


NOT_BEGUN = -1
MOST_DEATHS = 3
_apart = threading.local()


@dataclass(frozen=True)
class Task:
    """A cell that is sent to a worker."""

    cell: CellSpec
    folder: str
    """Where the files that the cell names are looked for"""
    trace: bool
    version: str
    """The version of hedgerow in the process that sends the task"""
    number: int = 0
    """Its place in the counters"""
    counters: str = ""
    """A file of one int64 per task: episodes done; empty if nothing reads it (another machine)"""
    parent: int = 0
    """The process to work for; if it ends, the worker ends; 0 to go on in any case"""
    luggage: PluginBundle = field(default_factory=PluginBundle)
    """The plug-in code that the cell needs"""
    limit: float = LIMIT
    """Seconds that an episode may take, for cells with plug-in code"""


@dataclass(frozen=True)
class CellOutcome:
    """The outcome of a cell."""

    id: str
    number: int
    files: dict[str, bytes]
    """The content of its files, by path below the directory of results; empty if it failed"""
    seconds: dict[str, float]
    worker: str
    error: str = ""
    """One line"""
    details: str = ""
    """The traceback of an unexpected error"""

    @property
    def failed(self) -> bool:
        return bool(self.error)


def perform(task: Task, beat: Beat = lambda _: None) -> CellOutcome:
    """Run the cell of `task` in this process; an error becomes part of the outcome. `beat` is told what comes next."""
    begun = time.perf_counter()
    _leave_interrupts_to(task.parent)
    try:
        _check_version(task.version)
        beat("the loading of plug-ins")
        unpack(task.luggage)
        done = run_cell(task.cell, Path(task.folder), _counter(task), trace=task.trace, beat=beat)
        content = store.cell_files(task.cell.data, done.run, trace=done.trace, facts=done.facts)
        seconds = {**done.seconds, "total": time.perf_counter() - begun}
        return CellOutcome(task.cell.id, task.number, content, seconds, _here())
    except HedgerowError as error:
        return _failure(task, begun, str(error), "")
    except (Exception, SystemExit, GeneratorExit) as error:  # sys.exit(0) is no way to finish a cell
        return _failure(task, begun, f"{type(error).__name__}: {error}", traceback.format_exc())


def perform_apart(task: Task) -> CellOutcome:
    """Run the cell of `task`, with code of others, in a process that is ended if an episode takes too long.

    The process serves the next cell as well. A process that is killed from outside, or for want of memory, costs time
    only: its cell runs again, and fails after MOST_DEATHS deaths.
    """
    begun, place = time.perf_counter(), _place()
    there = replace(task, parent=os.getpid())
    for death in range(1, MOST_DEATHS + 1):
        try:
            outcome: CellOutcome = place.call(_ready, there, limit=task.limit, look=lambda: _end_with(task.parent))
            return outcome
        except Ended as error:
            if error.killed and death < MOST_DEATHS:
                continue
            name = task.cell.learner["name"]
            times = f", {death} times" if error.killed else ""
            return _failure(task, begun, f"the learner {name}: {error}{times}", "")
    raise AssertionError("the last death returns")


def _ready(task: Task, beat: Beat) -> CellOutcome:
    """`perform`, after what a simulation needs is loaded or compiled: no learner is to blame for that time."""
    if not hasattr(_apart, "ready"):
        load_referee()
        _apart.ready = True
    return perform(task, beat)


def load_referee() -> None:
    """Load or compile the kernels that every simulation needs."""
    world = smallest_world()
    simulate(world, Still(world.view()), [0.0], progress=False, episodes=1)


class Still:
    """The smallest learner."""

    def __init__(self, view: View) -> None:
        self.view = view

    def plan(self) -> Plan:
        return Plan(Policy.uniform(self.view))

    def observe(self, episode: Episode) -> None:
        return


def close_apart() -> None:
    """End the process of `perform_apart`, if this thread has one."""
    _place().close()


def _place() -> Apart:
    """The process for the code of others; one for each thread, since a worker of Dask may have many."""
    place: Apart | None = getattr(_apart, "place", None)
    if place is None:
        place = _apart.place = Apart()
    return place


def _end_with(parent: int) -> None:
    """End this process if the one that it works for has ended."""
    if parent and os.getpid() != parent and os.getppid() != parent:
        _place().close()
        os._exit(1)


def _failure(task: Task, begun: float, error: str, details: str) -> CellOutcome:
    return CellOutcome(task.cell.id, task.number, {}, {"total": time.perf_counter() - begun}, _here(), error, details)


def _leave_interrupts_to(parent: int) -> None:
    """Ignore Ctrl-C, which a terminal sends to all processes; the one that owns the sweep ends its workers in order."""
    if parent and parent != os.getpid() and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


@cache
def own_version() -> str:
    """The version of hedgerow in this process."""
    return version("hedgerow")


def _check_version(expected: str) -> None:
    if own_version() != expected:
        raise HedgerowError(
            f"this worker ({_here()}) has hedgerow {own_version()}, the sweep was begun with {expected}: "
            "install the same version everywhere"
        )


def _counter(task: Task) -> Tick:
    """A function that notes the episodes done, and ends this process if its parent has ended."""
    counters = np.memmap(task.counters, dtype=np.int64, mode="r+") if task.counters else None

    def note(done: int) -> None:
        if task.parent and os.getpid() != task.parent and os.getppid() != task.parent:
            os._exit(1)
        if counters is not None:
            counters[task.number] = done

    return note


def _here() -> str:
    return f"{platform.node()}:{os.getpid()}"
