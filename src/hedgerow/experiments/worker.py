"""The worker: run a cell, and return the content of its files.

A worker sends the content to the one process that owns the directory of results. So workers need no common file system,
a worker that outlives its sweep cannot write into it, and an error is an answer like any other.
"""

from __future__ import annotations

import os
import platform
import signal
import threading
import time
import traceback
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow.errors import HedgerowError
from hedgerow.experiments.plugins import Luggage, unpack
from hedgerow.experiments.run_cell import Tick, run_cell
from hedgerow.results import store

NOT_BEGUN = -1


@dataclass(frozen=True)
class Task:
    """A cell that is sent to a worker."""

    id: str
    spec: dict[str, Any]
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
    luggage: Luggage = field(default_factory=Luggage)
    """The plug-in code that the cell needs"""


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


def perform(task: Task) -> CellOutcome:
    """Run the cell of `task`; an error becomes part of the outcome."""
    begun = time.perf_counter()
    _leave_interrupts_to(task.parent)
    try:
        _check_version(task.version)
        unpack(task.luggage)
        done = run_cell(task.spec, Path(task.folder), _counter(task), trace=task.trace)
        content = store.cell_files(task.spec, done.run, trace=done.trace, facts=done.facts)
        return CellOutcome(
            task.id, task.number, content, {**done.seconds, "total": time.perf_counter() - begun}, _here()
        )
    except HedgerowError as error:
        return _failure(task, begun, str(error), "")
    except Exception as error:
        return _failure(task, begun, f"{type(error).__name__}: {error}", traceback.format_exc())


def _failure(task: Task, begun: float, error: str, details: str) -> CellOutcome:
    return CellOutcome(task.id, task.number, {}, {"total": time.perf_counter() - begun}, _here(), error, details)


def _leave_interrupts_to(parent: int) -> None:
    """Ignore Ctrl-C, which a terminal sends to all processes; the one that owns the sweep ends its workers in order."""
    if parent and parent != os.getpid() and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def own_version() -> str:
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
