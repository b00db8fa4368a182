"""Backends that run many cells: in this process, in processes on this machine (joblib and loky), on a Dask cluster.

All of them yield outcomes in the order in which cells finish, and none of them changes what a cell computes.

A worker may die (out of memory, kill -9, a machine that is switched off). Dask then runs its tasks elsewhere by itself.
loky gives up all running tasks; this module starts again with the cells that have no outcome yet. A cell that was
running in two deaths runs alone, and if its process dies a third time it has failed like any other.

Cells with plug-in code run in a process apart, of each worker: it is ended if an episode takes longer than the limit,
and whatever else becomes of it, the worker lives on (`isolation`).
"""

from __future__ import annotations

import os
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow.errors import HedgerowError, InvalidInput
from hedgerow.experiments.worker import NOT_BEGUN, CellOutcome, Task, close_apart, perform, perform_apart
from hedgerow.storage import atomic

MOST_DEATHS_IN_COMPANY = 2
PATIENCE = 60.0
"""Seconds that a Dask scheduler, and its first worker, may take to answer."""

Outcomes = Generator[CellOutcome, None, None]
Counts = Callable[[], Sequence[int]]
"""Episodes done by task; -1 for one that has not begun or cannot be seen."""


@contextmanager
def counted(tasks: Sequence[Task]) -> Iterator[tuple[list[Task], Counts]]:
    """The tasks with a common file of counters, and a function that reads it."""
    with tempfile.TemporaryDirectory(prefix="hedgerow-") as folder:
        path = Path(folder) / "counters"
        # Written, not only mapped: on a full disk this is an error, while a page without disk space ends the process.
        atomic.save(path, np.full(max(1, len(tasks)), NOT_BEGUN, dtype=np.int64).tobytes())
        counters = np.memmap(path, dtype=np.int64, mode="r+")
        numbered = [
            replace(task, number=number, counters=str(path), parent=os.getpid()) for number, task in enumerate(tasks)
        ]
        yield numbered, lambda: counters[: len(tasks)].tolist()


def serial(tasks: Iterable[Task]) -> Outcomes:
    """Run the cells one after the other, in this process; those with plug-in code in a process apart."""
    try:
        for task in tasks:
            yield outcome_of(task)
    finally:
        close_apart()


def loky(tasks: Sequence[Task], processes: int, counts: Counts, on_death: Callable[[list[Task]], None]) -> Outcomes:
    """Run on `processes` processes of this machine, each with one thread; `on_death` gets the cells that run again."""
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    waiting = {task.number: task for task in tasks}
    deaths: Counter[int] = Counter()
    while waiting:
        together = [task for task in waiting.values() if deaths[task.number] < MOST_DEATHS_IN_COMPANY]
        batch = together or [next(iter(waiting.values()))]
        try:
            with _ending(_parallel(batch, n_jobs=max(2, processes), backend="loky")) as outcomes:
                for outcome in outcomes:
                    del waiting[outcome.number]
                    yield outcome
        except TerminatedWorkerError:
            lost = _under_way(waiting, counts) or batch
            deaths.update(task.number for task in lost)
            if not together:
                (task,) = batch
                del waiting[task.number]
                yield _killer(task, deaths[task.number])
            else:
                on_death(lost)


def outcome_of(task: Task) -> CellOutcome:
    """Run one cell here, or in a process apart if it has code of others."""
    return perform_apart(task) if task.cell.is_foreign else perform(task)


def dask(tasks: Sequence[Task], scheduler: str) -> Outcomes:
    """Run on the workers of a Dask scheduler, through joblib's own backend for it."""
    client = _client(scheduler)
    try:
        from distributed import KilledWorker

        away = [replace(task, counters="", parent=0) for task in tasks]
        try:
            with _ending(_parallel(away, n_jobs=-1, backend="dask", client=client, pre_dispatch="all")) as outcomes:
                yield from outcomes
        except KilledWorker as error:
            raise HedgerowError(f"the cluster gave a cell up, since its workers died too often: {error}") from error
    finally:
        client.close()


def _parallel(
    tasks: Sequence[Task], *, n_jobs: int, backend: str, pre_dispatch: str = "2*n_jobs", **options: Any
) -> Any:
    """A generator of outcomes. Batches of one: a dying worker loses as little as possible."""
    from joblib import Parallel, delayed, parallel_config

    if backend == "loky":
        options["inner_max_num_threads"] = 1
    with parallel_config(backend=backend, n_jobs=n_jobs, **options):
        pool = Parallel(batch_size=1, pre_dispatch=pre_dispatch, return_as="generator_unordered")
        return pool(delayed(outcome_of)(task) for task in tasks)


@contextmanager
def _ending(outcomes: Any) -> Iterator[Any]:
    """Close the outcomes at the end. If the caller stopped early, joblib cancels the rest; its warning is ignored."""
    try:
        yield outcomes
    finally:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*tasks.*(cancelled|not used)", category=UserWarning)
            outcomes.close()


def _under_way(waiting: dict[int, Task], counts: Counts) -> list[Task]:
    """The cells that have begun and have no outcome: one of them was in the process that died."""
    begun = counts()
    return [task for number, task in waiting.items() if begun[number] != NOT_BEGUN]


def _killer(task: Task, times: int) -> CellOutcome:
    error = f"its process died {times} times, the last time alone: out of memory, or killed from outside"
    return CellOutcome(task.cell.id, task.number, {}, {}, "", error)


def _client(scheduler: str) -> Any:
    try:
        from distributed import Client, Security

        connect: Any = Client
        security: Any = Security
    except ImportError as error:
        raise HedgerowError("a Dask cluster needs the package distributed: pip install 'hedgerow[dask]'") from error
    ours: dict[str, Any] = security().get_connection_args("client")
    # A Dask client takes a minute to find this out by itself.
    encrypted = scheduler.startswith("tls://")
    if encrypted and ours["ssl_context"] is None:
        raise InvalidInput(f"{scheduler} needs a certificate: name ca-file, cert and key in Dask's configuration")
    if ours["require_encryption"] and not encrypted:
        raise InvalidInput(f"Dask's configuration requires encryption, and {scheduler} has none: name a tls:// address")
    try:
        client: Any = connect(scheduler, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise InvalidInput(
            f"no Dask scheduler answers at {scheduler}: start one with `dask scheduler` and name the address that it "
            "prints, such as tcp://10.0.0.1:8786"
        ) from error
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError as error:
        client.close()
        raise InvalidInput(
            f"the scheduler at {scheduler} has no workers: start some with `dask worker {scheduler}`"
        ) from error
    return client
