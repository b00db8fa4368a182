"""Run the cells of an experiment that have no result yet, and store results and the manifest.

`hr.sweep` does all in one call, `hedgerow run` the same from a shell; both call `run_experiment`.

A cell is finished when its file is in the directory, intact and from this very run; nothing else counts. A file that is
damaged, or from another run, is made again. So a sweep may end at any moment, by Ctrl-C or by a power cut, and the next
call continues with what is missing. Only this process writes into the directory; times, attempts and errors go into the
manifest, at most once a second.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import weakref
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from hedgerow._late import late
from hedgerow.checks import type_name, whole_number
from hedgerow.errors import HedgerowError, InvalidInput
from hedgerow.experiments import backends
from hedgerow.experiments.objects import written
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
    experiment: str | os.PathLike[str] | Mapping[str, Any],
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
        experiment: The path of a TOML file, the name of an experiment that ships, such as `quickstart`, or a mapping
            with the entries of such a file, whose `world`, `adversary` and `learner` may be all that `compare` takes.
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
    options, target = _options(processes, scheduler, limit, resume), atomic.checked_path(directory)
    if isinstance(experiment, Mapping):
        tally = _run_given("sweep", experiment, target, options, progress)
    elif isinstance(experiment, str | os.PathLike):
        loaded = read(find(os.fspath(experiment)), limit)
        tally = run_experiment(loaded, target, options, watcher(not progress))
    else:
        raise InvalidInput(
            f"an experiment is the path of a TOML file, a name or a mapping, not {type_name(experiment)}"
        )
    _check_complete(tally, f"are in {target}; resume=True runs")
    return store.open(target)


def compare(
    worlds: Any,
    learners: Any,
    losses: Any = None,
    *,
    seeds: int | Sequence[int] = 20,
    episodes: int | float | str | Sequence[int | float | str],
    delta: float = 0.01,
    seed: int = 0,
    declined: str = "refuse",
    directory: str | os.PathLike[str] | None = None,
    processes: int | None = None,
    scheduler: str = "",
    progress: bool = True,
    limit: float | None = None,
    title: str = "",
) -> Results:
    """Compare learners in worlds, against losses, over many seeds.

    Every learner meets every world and all losses, with every seed: each combination is a cell, the same cell with the
    same hash as in a TOML file that says so (`hr.sweep`, `hedgerow compare`). The same call again, with the same
    directory, goes on where the last one ended.

    `worlds`, `learners` and `losses` are each one thing, a list, or a mapping {label: thing}. A thing may be a name, or
    a table {"name": ..., parameters} as in TOML, whose name may be a class or a function. In a script, call it below
    `if __name__ == "__main__":`, because worker processes import the script.

    Args:
        worlds: Names, tables, functions that make a world, or worlds: a CMDP, or what `hr.worlds.make`,
            `hr.from_table` and `hr.unroll` return; of a GymWorld with exact scores its model. Worlds that are no
            entries of the catalogue are written into the directory.
        learners: Names, tables, or classes, also of your own. A learner that needs a baseline takes the one that the
            world offers, unless its table says otherwise: a table alone means what it means in a TOML file.
        losses: Names, tables, classes, losses of `hr.losses`, or one loss for all episodes, (num_rows,) or (states,
            actions). None is the world's own loss. A name or a table without a seed draws other losses for every seed;
            an object has its own seed, and the same losses for all. One of more than 20,000 numbers is written into the
            directory.
        seeds: How many seeds, or a list of them.
        episodes: How many episodes, such as 10_000 or 1e5, or a list of such numbers.
        delta: The failure probability, in (0, 1).
        seed: The number that all chance comes from.
        declined: "skip" leaves out worlds that a learner declines, and says so in the results; "refuse" is an error.
        directory: Where the results go. None takes a temporary directory, which is removed when the results are no
            longer used, or at the end of the program.
        processes: Worker processes on this machine; one per core by default. With 1, cells run in this process, those
            with learners, worlds or losses of your own in one beside it.
        scheduler: The address of a Dask scheduler, such as `tcp://10.0.0.1:8786`, in the place of `processes`.
        progress: Show what is going on.
        limit: Seconds that an episode of a learner of your own may take; None for 60, infinite for no limit.
        title: What pages say above; the empty text for "compare".

    Returns:
        The results, as `hr.results.open(directory)` gives them: `summary()`, `plot()`, `leaderboard()`, and the page
        `compare.html` in `results.directory`; `hr.report(results)` writes that of every learner.

    Raises:
        InvalidInput: If something is wrong, with its place, or the directory holds something else. Nothing is written
            then.
        HedgerowError: If cells failed; all others have run. Also if code of others ends its process or takes too long
            when it is tried, before anything runs.

    Examples:
        >>> import hedgerow as hr
        >>> results = hr.compare(
        ...     "ev-workday",
        ...     {"safe": "s-ops", "careless": hr.UOBREPS},
        ...     seeds=2,
        ...     episodes=50,
        ...     processes=1,
        ...     progress=False,
        ... )
        >>> len(results.cells), [standing.learner for standing in results.leaderboard().blocks[0].standings]
        (4, ['safe', 'careless'])
    """
    options = _options(processes, scheduler, limit, resume=True)
    given: dict[str, Any] = {
        "title": title, "seed": seed, "seeds": seeds, "episodes": episodes, "delta": delta, "declined": declined,
        "world": worlds, "adversary": losses, "learner": learners,
    }  # fmt: skip
    temporary = directory is None
    target = Path(tempfile.mkdtemp(prefix="hedgerow-")) if directory is None else atomic.checked_path(directory)
    try:
        tally = _run_given("compare", given, target, options, progress)
        how = "are lost; name a directory to keep them and to run" if temporary else f"are in {target}; call again for"
        _check_complete(tally, how)
        results = store.open(target)
        late("report.board:write_board")(results)
    except BaseException:
        if temporary:
            shutil.rmtree(target, ignore_errors=True)
        raise
    if temporary:
        weakref.finalize(results, shutil.rmtree, target, ignore_errors=True)
    return results


def _options(processes: int | None, scheduler: str, limit: float | None, resume: bool) -> RunOptions:
    if not isinstance(scheduler, str):
        raise InvalidInput(f"the scheduler is an address such as 'tcp://10.0.0.1:8786', not {type_name(scheduler)}")
    number = None if scheduler or processes is None else whole_number("the number of processes", processes, 1)
    return RunOptions(number, scheduler=scheduler, limit=limit, resume=resume)


def _run_given(name: str, given: Mapping[str, Any], target: Path, options: RunOptions, progress: bool) -> Tally:
    """Run an experiment whose parts may be objects."""
    experiment = written(name, given, target)
    with experiment.kept(target):
        loaded = read(experiment.source, options.limit, offered=experiment.offered)
        return run_experiment(loaded, target, options, watcher(not progress))


def _check_complete(tally: Tally, others: str) -> None:
    """Raise what has become of a sweep that did not finish; `others` says where the finished cells are."""
    if tally.interrupted:
        raise KeyboardInterrupt
    if tally.failed:
        cell, reason = next(iter(tally.failed.items()))
        raise HedgerowError(
            f"{len(tally.failed)} of {tally.total} cells failed; the first is {cell}: {reason}. The others {others} "
            "the failed ones again"
        )
    if not tally.complete:
        left = tally.total - tally.skipped - tally.done
        raise HedgerowError(f"{left} of {tally.total} cells are missing; the others {others} them")


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
    skipped, seconds = len(chosen) - len(waiting), time.perf_counter() - begun
    return Tally(target, len(chosen), skipped, books.done, books.failed, seconds, interrupted, found.damaged)


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
    """Writes result files at once, and now and then the manifest, after the names of the files were made durable."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.failed: dict[str, str] = {}
        self.done = 0
        self._attempts: Counter[str] = Counter()
        self._notes: dict[str, Any] = {}
        self._written = time.monotonic()

    def repeat(self, ids: Iterator[str]) -> None:
        self._attempts.update(ids)

    def enter(self, cell: CellSpec, outcome: CellOutcome) -> None:
        """Store the outcome of a cell: its files first, then its entry in the manifest."""
        for path, content in outcome.files.items():
            # An existing file is no finished cell: finished ones were not run.
            atomic.save(self.directory / path, content, overwrite=True, sync_name=False)
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
        else:
            self.done += 1
        self._notes[cell.id] = note
        if time.monotonic() - self._written > BETWEEN_NOTES:
            self.close()

    def close(self) -> None:
        if self._notes:
            for folder in (store.TRACES, store.CELLS):
                atomic.sync_folder(self.directory / folder)
            update_manifest(self.directory, {"cells": self._notes})
        self._notes, self._written = {}, time.monotonic()
