"""The directory of a sweep.

    DIR/manifest.json            the experiment, and all that differs from run to run
    DIR/cells/<id>.parquet       the curves of a finished cell
    DIR/traces/<id>.parquet      optional: every episode of it
    DIR/worlds/<hash>.npz        optional: worlds that were given as objects
    DIR/losses/<hash>.npz        optional: losses that were given as objects, if they are many numbers

Files are written atomically and never overwritten while they are good. A cell is finished when its file is there, is
whole, and is that of this very run. Cells may be written by many processes at once; the manifest belongs to one process
at a time.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hedgerow.errors import FileFormatError, InvalidInput
from hedgerow.results.groups import Cell, Results
from hedgerow.results.manifest import KIND, MANIFEST, SCHEMA, cell_id, fingerprint, machine_info, write_manifest
from hedgerow.results.manifest import read_manifest as read_manifest
from hedgerow.results.manifest import update_manifest as update_manifest
from hedgerow.results.table import header_in, run_table, table_bytes, table_in
from hedgerow.storage import atomic

if TYPE_CHECKING:
    from hedgerow.simulation.result import Run

CELLS, TRACES, WORLDS, LOSSES = "cells", "traces", "worlds", "losses"
PathLike = str | os.PathLike[str]


def create(directory: PathLike, manifest: Mapping[str, Any]) -> None:
    """Make a directory ready for the cells of an experiment, or for more cells of the same one.

    Versions, commit, machine and time are added to the manifest. A directory with the same experiment stays as it is,
    with a note under "resumed".

    Args:
        directory: The directory, which may exist if it is empty or holds the same experiment.
        manifest: At least the entry "experiment" (the experiment as data); "source" (its text), "hashes" (of its cells,
            by id) and anything else may follow.

    Raises:
        InvalidInput: If the directory holds something else, or if the entry "experiment" is missing.

    Examples:
        >>> import hedgerow as hr
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     hr.results.create(folder, {"experiment": {"about": "nothing yet"}})
        ...     print(len(hr.results.open(folder).cells))
        0
    """
    target = atomic.checked_path(directory)
    if "experiment" not in manifest:
        raise InvalidInput("a manifest needs the entry 'experiment': the experiment as data")
    ours = {"kind": KIND, "schema": SCHEMA, "experiment_hash": fingerprint(manifest["experiment"])}
    fresh = {**ours, **machine_info(), "cells": {}, "resumed": [], **manifest, **ours}
    if target.exists() and not target.is_dir():
        raise InvalidInput(f"{target} is a file; results need a directory")
    # A process that was killed while it wrote the manifest left a temporary file, and worlds and losses from before.
    early = (atomic.TEMPORARY, WORLDS, LOSSES)
    if target.is_dir() and any(not entry.name.startswith(early) for entry in target.iterdir()):
        _resume(target, fresh)
    else:
        target.mkdir(parents=True, exist_ok=True)
        write_manifest(target, fresh)
    for folder in (target / CELLS, target / TRACES):
        folder.mkdir(exist_ok=True)


def _resume(target: Path, fresh: Mapping[str, Any]) -> None:
    if not (target / MANIFEST).exists():
        raise InvalidInput(f"{target} is not empty and holds no results of hedgerow; choose another directory")
    old = read_manifest(target)
    if old["experiment_hash"] != fresh["experiment_hash"]:
        raise InvalidInput(
            f"{target} holds the results of another experiment (hash {old['experiment_hash'][:12]}, "
            f"this one has {fresh['experiment_hash'][:12]}); choose another directory"
        )
    note = {key: fresh[key] for key in ("created", "command", "python", "versions", "commit", "machine")}
    hashes = {key: fresh[key] for key in ("hashes",) if key in fresh}
    write_manifest(target, {**old, **hashes, "resumed": [*old.get("resumed", []), note]})


def write_cell(
    directory: PathLike,
    spec: Mapping[str, Any],
    run: Run,
    *,
    trace: Run | None = None,
    facts: Mapping[str, Any] | None = None,
) -> Path:
    """Write the table of a finished cell, atomically.

    An existing file is never overwritten. The trace is written first: where the file of a cell is, nothing is missing.

    Args:
        directory: A directory that `create` made ready.
        spec: The description of the cell: world, adversary and learner, each with a "name", episodes, delta, seed, and
            optional labels.
        run: Its run.
        trace: The same run with every episode as a checkpoint; None keeps no trace.
        facts: Further facts that are the same in every run of this cell, such as {"slater": 0.25}.

    Returns:
        The path of the file.

    Raises:
        InvalidInput: If the cell exists already, or if its description is incomplete.

    Examples:
        >>> import hedgerow as hr
        >>> import tempfile
        >>> world = hr.worlds.make("lower-bound-2")
        >>> run = hr.simulate(world, hr.UOBREPS(world.view(), 20, 0.05), progress=False)
        >>> spec = {"world": {"name": "tiny"}, "adversary": {"name": "fixed"}, "learner": {"name": "uob-reps"},
        ...         "episodes": 20, "delta": 0.05, "seed": 0}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     hr.results.create(folder, {"experiment": {"about": "one run"}})
        ...     path = hr.results.write_cell(folder, spec, run)
        ...     print(path.name, len(hr.results.finished(folder)), hr.results.open(folder).summary().num_rows)
        tiny__fixed__uob-reps__T20__seed0.parquet 1 1
    """
    path = Path(directory) / CELLS / f"{cell_id(spec)}.parquet"
    if path.exists():
        raise InvalidInput(f"{path} exists already; results are never overwritten: remove it or use another directory")
    for name, content in cell_files(spec, run, trace=trace, facts=facts).items():
        # An earlier attempt may have ended between the two files; a trace without its cell counts for nothing.
        atomic.save(Path(directory) / name, content, overwrite=name.startswith(TRACES))
    return path


def cell_files(
    spec: Mapping[str, Any], run: Run, *, trace: Run | None = None, facts: Mapping[str, Any] | None = None
) -> dict[str, bytes]:
    """The files of a finished cell by their path below the directory of results, the cell's own last."""
    runs = {TRACES: trace, CELLS: run}
    return {
        f"{folder}/{cell_id(spec)}.parquet": table_bytes(run_table(spec, kept, facts))
        for folder, kept in runs.items()
        if kept is not None
    }


class Inspection(NamedTuple):
    """What the files of cells are worth."""

    finished: set[str]
    """Ids of the cells whose files are whole and hold the run that they should"""
    damaged: dict[str, str]
    """Ids of those whose files cannot be trusted: why"""


def inspect(directory: PathLike, hashes: Mapping[str, str] | None = None, *, traces: bool = False) -> Inspection:
    """Look at the cells with these `hashes` by id (None: at all files), every byte; `traces`: each must have one."""
    target, found = Path(directory), Inspection(set(), {})
    names = hashes if hashes is not None else [path.stem for path in sorted((target / CELLS).glob("*.parquet"))]
    for name in names:
        files = [target / folder / f"{name}.parquet" for folder in ((CELLS, TRACES) if traces else (CELLS,))]
        if not os.path.lexists(files[0]):
            continue
        try:
            for path in files:
                _header(path, hashes)
        except FileFormatError as error:
            found.damaged[name] = str(error)
        else:
            found.finished.add(name)
    return found


def finished(directory: PathLike, hashes: Mapping[str, str] | None = None) -> set[str]:
    """List the cells whose files are whole and hold the run that they should.

    Args:
        directory: The directory of a sweep.
        hashes: The hashes that cells should have, by id; None looks at all files.

    Returns:
        The ids of these cells.

    Examples:
        >>> import hedgerow as hr
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     hr.results.create(folder, {"experiment": {"about": "nothing yet"}})
        ...     print(hr.results.finished(folder))
        set()
    """
    return inspect(directory, hashes).finished


def open(directory: PathLike) -> Results:  # noqa: A001 - read as hr.results.open
    """Read the results of a sweep.

    Cells that failed or are missing are listed as such.

    Args:
        directory: The directory of the sweep.

    Returns:
        The results.

    Raises:
        FileFormatError: If the directory holds no results, or if a file is damaged or belongs to another experiment.

    Examples:
        >>> import hedgerow as hr
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     hr.results.create(folder, {"experiment": {"about": "nothing yet"}})
        ...     print(hr.results.open(folder).cells)
        ()
    """
    target = atomic.checked_path(directory)
    manifest = read_manifest(target)
    entries: dict[str, Any] = manifest.get("cells", {})
    cells = []
    for path in sorted((target / CELLS).glob("*.parquet")):
        try:
            header = _header(path, manifest.get("hashes"))
        except FileFormatError as error:
            raise FileFormatError(f"{error}; remove it, or run its cell again: hedgerow resume {target}") from error
        cells.append(Cell.of(header, entries.get(header["id"], {}), "done"))
    done = {cell.id for cell in cells}
    for name in sorted(set(entries) - done):
        status = "failed" if entries[name].get("status") == "failed" else "missing"
        cells.append(Cell.of({**entries[name], "id": name}, entries[name], status))

    def load_trace(name: str) -> Any:
        path = target / TRACES / f"{name}.parquet"
        return read_table(path) if path.exists() else None

    return Results(
        target, manifest, tuple(cells), lambda name: read_table(target / CELLS / f"{name}.parquet"), load_trace
    )


def read_table(path: PathLike) -> Any:
    """The Arrow table in a file of ours, its checksums verified."""
    return table_in(_content(path), str(path))


def _content(path: PathLike) -> bytes:
    try:
        return atomic.read(path)
    except OSError as error:
        raise FileFormatError(f"cannot read {path}: {error.strerror}") from error


def _header(path: Path, hashes: Mapping[str, str] | None) -> dict[str, Any]:
    """The header of a cell's file, after it was checked that it is whole and the right one."""
    header = header_in(_content(path), str(path))
    if header["id"] != path.stem:
        raise FileFormatError(f"{path} holds the cell {header['id']}, not the one that its name says")
    if hashes is not None and hashes.get(path.stem) != header["hash"]:
        raise FileFormatError(f"{path} holds a run of another experiment (hash {header['hash'][:12]})")
    return header
