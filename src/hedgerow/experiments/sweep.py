"""`sweep`: run the cells of an experiment that have no result yet, and store results and the manifest.

A cell is finished when its file is in the directory, intact and from this very run; nothing else counts. A file that is
damaged, or from another run, is made again. So a sweep may end at any moment, by Ctrl-C or by a power cut, and the next
call continues with what is missing. Only this process writes into the directory; times, attempts and errors go into the
manifest, at most once a second.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from hedgerow.errors import InvalidInput
from hedgerow.experiments import backends
from hedgerow.experiments.backends import BACKENDS, Counts
from hedgerow.experiments.expand import PlannedCell, cells_of, experiment_data
from hedgerow.experiments.plugins import PluginCollector, record
from hedgerow.experiments.reading import read
from hedgerow.experiments.source import Source
from hedgerow.experiments.spec import LIMIT, Experiment, checked_limit
from hedgerow.experiments.warmup import compiled_together
from hedgerow.experiments.worker import CellOutcome, Task, load_referee, own_version, perform
from hedgerow.losses.adaptive import Pursuit
from hedgerow.results import store
from hedgerow.results.groups import heading
from hedgerow.results.manifest import MANIFEST, read_manifest, update_manifest
from hedgerow.storage import atomic

WARM_EPISODES = 3
BETWEEN_NOTES = 1.0
"""Seconds between two updates of the manifest."""


class Listener:
    """Receives the events of a sweep; this one ignores them."""

    speaks: ClassVar[bool] = True
    """Whether to print progress for people"""

    def warm(self) -> None:
        """Kernels are being compiled or loaded, before the workers start."""

    def damaged(self, reasons: Mapping[str, str]) -> None:
        """The files of these cells cannot be trusted, for these reasons; the cells are run again."""

    def start(self, cells: Sequence[PlannedCell], num_skipped: int, counts: Counts) -> None:
        """These cells are going to run; `counts` returns, at any time, the episodes done by each of them."""

    def finish(self, cell: PlannedCell, outcome: CellOutcome) -> None:
        """A cell has ended, well or not."""

    def again(self, ids: Sequence[str]) -> None:
        """A process died; these cells run again."""

    def stop(self) -> None:
        """Nothing more will happen."""


@dataclass(frozen=True)
class Workers:
    """How to run."""

    backend: str = "loky"
    processes: int | None = None
    """None: one for each core that this process may use"""
    scheduler: str = ""
    """The address of a Dask scheduler"""
    fail_fast: bool = False
    """Stop at the first cell that fails, instead of going on with the others"""
    limit: float | None = None
    """Seconds that an episode of a cell with plug-in code may take; None takes that of the experiment"""

    def __post_init__(self) -> None:
        if self.backend not in BACKENDS:
            raise InvalidInput(f"the backend is {self.backend!r}; choose one of {', '.join(BACKENDS)}")
        if (self.backend == "dask") != bool(self.scheduler):
            raise InvalidInput("the backend dask and the address of a scheduler (tcp://...) belong together")
        if self.processes is not None and self.processes < 1:
            raise InvalidInput(f"the number of processes is {self.processes}; it must be at least 1")
        if self.limit is not None:
            checked_limit(self.limit)


@dataclass(frozen=True)
class Tally:
    """The outcome of a sweep."""

    directory: Path
    total: int
    skipped: int
    """Finished before this call"""
    done: int
    """Finished by this call"""
    failed: dict[str, str]
    """The reason, by cell"""
    seconds: float
    interrupted: bool = False
    damaged: Mapping[str, str] = field(default_factory=dict)
    """The reason, by cell, why an existing file could not be trusted and the cell was run again"""

    @property
    def complete(self) -> bool:
        return self.skipped + self.done == self.total


def sweep(
    experiment: Experiment,
    directory: str | os.PathLike[str],
    *,
    workers: Workers | None = None,
    resume: bool = False,
    only: Sequence[str] = (),
    watch: Listener | None = None,
) -> Tally:
    """Run the unfinished cells. `only` are ids of cells, `resume` allows a directory that was begun before.

    An interrupt ends the call with `interrupted`, not with an exception: finished cells are kept.
    """
    cells = cells_of(experiment)
    about = {
        "experiment": experiment_data(experiment, cells),
        **heading(experiment.title or experiment.name, experiment.description),
        "source": experiment.source.text,
        "source_name": experiment.source.name,
        "source_folder": str(experiment.folder.resolve()),
        **({"declined": [asdict(item) for item in experiment.declined]} if experiment.declined else {}),
    }
    return run_cells(
        cells, directory, about, folder=experiment.folder, trace=experiment.trace, limit=experiment.limit,
        workers=workers, resume=resume, only=only, watch=watch,
    )  # fmt: skip


def run_cells(
    cells: Sequence[PlannedCell],
    directory: str | os.PathLike[str],
    about: Mapping[str, Any],
    *,
    folder: Path | None = None,
    trace: bool = False,
    limit: float = LIMIT,
    workers: Workers | None = None,
    resume: bool = False,
    only: Sequence[str] = (),
    watch: Listener | None = None,
) -> Tally:
    """`sweep` for cells that need not come from a file; they run in the order of `only` if it is given.

    `about` goes into the manifest and holds at least "experiment", which tells this collection of cells from others.
    Files that the cells name are looked for in `folder`; a `trace` also keeps every episode. No episode of a cell with
    plug-in code may take longer than `limit` seconds.
    """
    workers, watch, target = workers or Workers(), watch or Listener(), Path(directory)
    begun, folder = time.perf_counter(), folder or Path()
    chosen = _chosen(cells, only)
    _open(cells, about, folder, target, resume)
    found = store.inspect(target, {cell.id: cell.hash for cell in chosen}, traces=trace)
    waiting = [cell for cell in chosen if cell.id not in found.finished]
    books, interrupted = _Books(target), False
    try:
        if found.damaged:
            watch.damaged(found.damaged)
        if waiting:
            longest = limit if workers.limit is None else workers.limit
            tasks = _tasks(waiting, folder, trace, longest)
            _run(tasks, waiting, len(chosen) - len(waiting), workers, watch, books)
    except KeyboardInterrupt:
        interrupted = True
    finally:
        watch.stop()
        books.close()
    done = len(store.finished(target, {cell.id: cell.hash for cell in waiting}))
    skipped, seconds = len(chosen) - len(waiting), time.perf_counter() - begun
    return Tally(target, len(chosen), skipped, done, books.failed, seconds, interrupted, found.damaged)


def stored_experiment(directory: str | os.PathLike[str], limit: float | None = None) -> Experiment:
    """The experiment whose results a directory holds; `limit` is that of `read`."""
    manifest = read_manifest(directory)
    try:
        source = Source(manifest["source_name"], manifest["source"], atomic.checked_path(manifest["source_folder"]))
    except KeyError as error:
        raise InvalidInput(f"{directory} was not made by a sweep: its manifest has no entry {error}") from error
    return read(source, limit)


def _chosen(cells: Sequence[PlannedCell], only: Sequence[str]) -> Sequence[PlannedCell]:
    known = {cell.id: cell for cell in cells}
    for name in only:
        if name not in known:
            raise InvalidInput(f"there is no cell {name!r}; the first of {len(cells)} is {cells[0].id!r}")
    return [known[name] for name in dict.fromkeys(only)] or cells


def _open(cells: Sequence[PlannedCell], about: Mapping[str, Any], folder: Path, target: Path, resume: bool) -> None:
    """Make the directory, or make sure that it belongs to these cells and may be continued."""
    if not resume and (target / MANIFEST).exists():
        raise InvalidInput(
            f"{target} holds results already: {len(store.finished(target))} finished cells; pass --resume (in Python: "
            "resume=True) to run what is missing, or choose another directory"
        )
    plug_ins = record((cell.spec for cell in cells), folder)
    if resume and (target / MANIFEST).exists():
        _check_plug_ins(target, plug_ins)
    hashes = {cell.id: cell.hash for cell in cells}
    store.create(target, {"hashes": hashes, **about, **({"plug_ins": plug_ins} if plug_ins else {})})


def _check_plug_ins(target: Path, present: Mapping[str, Any]) -> None:
    """Refuse to continue with other code than the results were made with."""
    stored = read_manifest(target).get("plug_ins", {})
    for name in sorted({*stored} & {*present}):
        if stored[name] != present[name]:
            raise InvalidInput(
                f"{target} holds results of another version of {name}: restore its source (the manifest has the text "
                "of files, under plug_ins), or choose another directory"
            )


def _tasks(waiting: Sequence[PlannedCell], folder: Path, trace: bool, limit: float) -> list[Task]:
    packer, place = PluginCollector(folder), str(folder.resolve())
    ours = own_version()
    return [
        Task(cell.id, cell.spec, place, trace, ours, luggage=packer.pack(cell.spec), limit=limit) for cell in waiting
    ]


def _run(
    tasks: Sequence[Task],
    waiting: Sequence[PlannedCell],
    num_skipped: int,
    workers: Workers,
    watch: Listener,
    books: _Books,
) -> None:
    processes = min(workers.processes or _cores(), len(tasks))
    backend = "serial" if workers.backend == "loky" and processes == 1 else workers.backend
    if backend == "loky":
        watch.warm()
        _warm(tasks, watch.speaks)
    with backends.counted(tasks) as (numbered, counts):

        def on_death(lost: Sequence[Task]) -> None:
            books.repeat(task.id for task in lost)
            watch.again([task.id for task in lost])

        watch.start(waiting, num_skipped, counts)
        if backend == "serial":
            outcomes = backends.serial(numbered)
        elif backend == "loky":
            outcomes = backends.loky(numbered, processes, counts, on_death)
        else:
            outcomes = backends.dask(numbered, workers.scheduler)
        with closing(outcomes):
            for outcome in outcomes:
                books.enter(waiting[outcome.number], outcome)
                watch.finish(waiting[outcome.number], outcome)
                if outcome.failed and workers.fail_fast:
                    break


def _warm(tasks: Sequence[Task], shown: bool) -> None:
    """Compile or load every kernel once: worker processes then find them in the cache and need not compile.

    Code of others does not run here: it may do anything.
    """
    samples = {
        (task.spec["learner"]["name"], task.spec["adversary"]["name"] == Pursuit.kind, "watch" in task.spec): task
        for task in tasks
        if not task.is_foreign
    }
    with compiled_together(shown=shown):
        for task in samples.values():
            perform(replace(task, spec={**task.spec, "episodes": WARM_EPISODES}, trace=False))
        load_referee()


def _cores() -> int:
    from joblib import cpu_count

    count: int = cpu_count()
    return count


class _Books:
    """Writes result files at once, and the manifest now and then."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.failed: dict[str, str] = {}
        self._attempts: Counter[str] = Counter()
        self._notes: dict[str, Any] = {}
        self._written = time.monotonic()

    def repeat(self, ids: Iterator[str]) -> None:
        self._attempts.update(ids)

    def enter(self, cell: PlannedCell, outcome: CellOutcome) -> None:
        """Store the outcome of a cell: its files first, then its entry in the manifest."""
        for path, content in outcome.files.items():
            # An existing file is no finished cell: finished ones were not run.
            atomic.save(self.directory / path, content, overwrite=True)
        note: dict[str, Any] = {
            "status": "failed" if outcome.failed else "done",
            "error": outcome.error or None,
            "seconds": {name: round(value, 6) for name, value in outcome.seconds.items()},
            "attempts": self._attempts[cell.id] + 1,
            "worker": outcome.worker,
        }
        if outcome.failed:
            self.failed[cell.id] = outcome.error
            note |= {"details": outcome.details, "hash": cell.hash, "spec": cell.spec}
        self._notes[cell.id] = note
        if time.monotonic() - self._written > BETWEEN_NOTES:
            self.close()

    def close(self) -> None:
        if self._notes:
            update_manifest(self.directory, {"cells": self._notes})
        self._notes, self._written = {}, time.monotonic()
