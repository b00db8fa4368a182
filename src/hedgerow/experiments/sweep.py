"""Run the cells of an experiment that have no result yet, and store results and the manifest.

`hr.sweep` does all in one call, `hedgerow run` the same from a shell; both call `run_experiment`.

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
from typing import Any

from hedgerow.checks import type_name
from hedgerow.errors import HedgerowError, InvalidInput
from hedgerow.experiments import backends
from hedgerow.experiments.options import LIMIT, RunOptions
from hedgerow.experiments.plugins import PluginCollector, record
from hedgerow.experiments.progress import Listener, watcher
from hedgerow.experiments.reading import read
from hedgerow.experiments.source import Source, find
from hedgerow.experiments.spec import CellSpec, Experiment, cells_of, experiment_data
from hedgerow.experiments.warmup import compiled_together
from hedgerow.experiments.worker import CellOutcome, Task, load_referee, own_version, perform
from hedgerow.losses.adaptive import Pursuit
from hedgerow.results import store
from hedgerow.results.groups import Results, heading
from hedgerow.results.manifest import MANIFEST, read_manifest, update_manifest
from hedgerow.storage import atomic

WARM_EPISODES = 3
BETWEEN_NOTES = 1.0
"""Seconds between two updates of the manifest."""


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
    experiment: str | os.PathLike[str],
    directory: str | os.PathLike[str],
    *,
    processes: int | None = None,
    scheduler: str = "",
    resume: bool = False,
    progress: bool = True,
    limit: float | None = None,
) -> Results:
    """Run an experiment and open its results.

    In a script, call it below `if __name__ == "__main__":`, because worker processes import the script.

    Args:
        experiment: The path of a TOML file, or the name of an experiment that ships, such as `quickstart`.
        directory: Where the results go.
        processes: Worker processes on this machine; one per core by default. With 1, cells run in this process, those
            with learners, worlds or adversaries of others in one beside it.
        scheduler: The address of a Dask scheduler, such as `tcp://10.0.0.1:8786`, in the place of `processes`.
        resume: Go on in a directory that was begun before; finished cells are kept.
        progress: Show what is going on.
        limit: Seconds that an episode of a learner of others may take, which run in a process apart; longer ones are
            ended, and their cells fail. None takes what the file says, or 60; infinite for no limit.

    Returns:
        The results, as `hr.results.open(directory)` gives them.

    Raises:
        InvalidInput: If the file has a mistake (with its line), or the directory holds results and `resume` is False.
        HedgerowError: If cells failed. All others have run, and `resume=True` tries those again. Also if code of others
            ends its process or takes too long when it is tried, before anything runs.

    Examples:
        >>> import hedgerow as hr
        >>> results = hr.sweep("quickstart", "out/quickstart")  # doctest: +SKIP
        >>> results.summary().num_rows  # doctest: +SKIP
        8
    """
    if not isinstance(experiment, str | os.PathLike):
        raise InvalidInput(f"an experiment is the path of a TOML file or a name, not {type_name(experiment)}")
    loaded = read(find(os.fspath(experiment)), limit)
    options = RunOptions(None if scheduler else processes, scheduler=scheduler, limit=limit, resume=resume)
    tally = run_experiment(loaded, directory, options, watcher(not progress))
    if tally.interrupted:
        raise KeyboardInterrupt
    if tally.failed:
        cell, reason = next(iter(tally.failed.items()))
        raise HedgerowError(
            f"{len(tally.failed)} of {tally.total} cells failed; the first is {cell}: {reason}. The others are in "
            f"{directory}; resume=True runs the failed ones again"
        )
    if not tally.complete:
        left = tally.total - tally.skipped - tally.done
        raise HedgerowError(f"{left} of {tally.total} cells are missing in {directory}; resume=True runs them")
    return store.open(directory)


def run_experiment(
    experiment: Experiment,
    directory: str | os.PathLike[str],
    options: RunOptions | None = None,
    watch: Listener | None = None,
) -> Tally:
    """Run the unfinished cells.

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
        cells, directory, about, options, watch,
        folder=experiment.folder, trace=experiment.trace, limit=experiment.limit,
    )  # fmt: skip


def run_cells(
    cells: Sequence[CellSpec],
    directory: str | os.PathLike[str],
    about: Mapping[str, Any],
    options: RunOptions | None = None,
    watch: Listener | None = None,
    *,
    folder: Path | None = None,
    trace: bool = False,
    limit: float = LIMIT,
) -> Tally:
    """`run_experiment` for cells that need not come from a file.

    `about` goes into the manifest and holds at least "experiment", which tells this collection of cells from others.
    Files that the cells name are looked for in `folder`; a `trace` also keeps every episode. No episode of a cell with
    plug-in code may take longer than `limit` seconds.
    """
    options, watch, target = options or RunOptions(), watch or Listener(), Path(directory)
    begun, folder = time.perf_counter(), folder or Path()
    chosen = _chosen(cells, options.only)
    _open(cells, about, folder, target, options.resume)
    found = store.inspect(target, {cell.id: cell.hash for cell in chosen}, traces=trace)
    waiting = [cell for cell in chosen if cell.id not in found.finished]
    books, interrupted = _Books(target), False
    try:
        if found.damaged:
            watch.damaged(found.damaged)
        if waiting:
            longest = limit if options.limit is None else options.limit
            tasks = _tasks(waiting, folder, trace, longest)
            _run(tasks, waiting, len(chosen) - len(waiting), options, watch, books)
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


def _chosen(cells: Sequence[CellSpec], only: Sequence[str]) -> Sequence[CellSpec]:
    known = {cell.id: cell for cell in cells}
    for name in only:
        if name not in known:
            raise InvalidInput(f"there is no cell {name!r}; the first of {len(cells)} is {cells[0].id!r}")
    return [known[name] for name in dict.fromkeys(only)] or cells


def _open(cells: Sequence[CellSpec], about: Mapping[str, Any], folder: Path, target: Path, resume: bool) -> None:
    """Make the directory, or make sure that it belongs to these cells and may be continued."""
    if not resume and (target / MANIFEST).exists():
        raise InvalidInput(
            f"{target} holds results already: {len(store.finished(target))} finished cells; pass --resume (in Python: "
            "resume=True) to run what is missing, or choose another directory"
        )
    plug_ins = record((cell.parts for cell in cells), folder)
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


def _tasks(waiting: Sequence[CellSpec], folder: Path, trace: bool, limit: float) -> list[Task]:
    packer, place = PluginCollector(folder), str(folder.resolve())
    ours = own_version()
    return [Task(cell, place, trace, ours, luggage=packer.pack(*cell.parts), limit=limit) for cell in waiting]


def _run(
    tasks: Sequence[Task],
    waiting: Sequence[CellSpec],
    num_skipped: int,
    options: RunOptions,
    watch: Listener,
    books: _Books,
) -> None:
    processes = min(options.processes or _cores(), len(tasks))
    backend = "serial" if options.backend == "loky" and processes == 1 else options.backend
    if backend == "loky":
        watch.warm()
        _warm(tasks, watch.speaks)
    with backends.counted(tasks) as (numbered, counts):

        def on_death(lost: Sequence[Task]) -> None:
            books.repeat(task.cell.id for task in lost)
            watch.again([task.cell.id for task in lost])

        watch.start(waiting, num_skipped, counts)
        if backend == "serial":
            outcomes = backends.serial(numbered)
        elif backend == "loky":
            outcomes = backends.loky(numbered, processes, counts, on_death)
        else:
            outcomes = backends.dask(numbered, options.scheduler)
        with closing(outcomes):
            for outcome in outcomes:
                books.enter(waiting[outcome.number], outcome)
                watch.finish(waiting[outcome.number], outcome)
                if outcome.failed and options.fail_fast:
                    break


def _warm(tasks: Sequence[Task], shown: bool) -> None:
    """Compile or load every kernel once: worker processes then find them in the cache and need not compile.

    Code of others does not run here: it may do anything.
    """
    samples = {
        (task.cell.learner["name"], task.cell.adversary["name"] == Pursuit.kind, task.cell.watch is not None): task
        for task in tasks
        if not task.cell.is_foreign
    }
    with compiled_together(shown=shown):
        for task in samples.values():
            perform(replace(task, cell=replace(task.cell, episodes=WARM_EPISODES), trace=False))
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

    def enter(self, cell: CellSpec, outcome: CellOutcome) -> None:
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
            note |= {"details": outcome.details, "hash": cell.hash, "spec": cell.data}
        self._notes[cell.id] = note
        if time.monotonic() - self._written > BETWEEN_NOTES:
            self.close()

    def close(self) -> None:
        if self._notes:
            update_manifest(self.directory, {"cells": self._notes})
        self._notes, self._written = {}, time.monotonic()
