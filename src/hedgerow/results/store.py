"""The directory of a sweep.

    DIR/manifest.json            the experiment, and all that differs from run to run
    DIR/cells/<id>.parquet       the curves of a finished cell
    DIR/traces/<id>.parquet      optional: every episode of it

Files are written atomically and never overwritten; a cell is finished when its file is there. Cells may be written by
many processes at once; the manifest belongs to one process at a time.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedgerow import files
from hedgerow.errors import FileFormatError, InvalidInput
from hedgerow.results.naming import fingerprint
from hedgerow.results.record import Cell, Results
from hedgerow.results.surroundings import surroundings
from hedgerow.results.tables import SCHEMA, parquet, run_table, table_bytes, table_header

if TYPE_CHECKING:
    from hedgerow.learners.learner import Learner
    from hedgerow.simulation.outcome import Run

MANIFEST = "manifest.json"
KIND = "hedgerow sweep"
CELLS, TRACES = "cells", "traces"
PathLike = str | os.PathLike[str]


def create(directory: PathLike, manifest: Mapping[str, Any]) -> None:
    """Make `directory` ready for the cells of an experiment, or for more cells of the same one.

    `manifest` holds at least "experiment" (the experiment as data); "source" (its text) and whatever else should be
    kept may follow. Versions, commit, machine and time are added. A directory that holds something else is refused; one
    with the same experiment stays as it is, but for a note under "resumed".
    """
    target = Path(directory)
    if "experiment" not in manifest:
        raise InvalidInput("a manifest needs the entry 'experiment': the experiment as data")
    ours = {"kind": KIND, "schema": SCHEMA, "experiment_hash": fingerprint(manifest["experiment"])}
    fresh = {**ours, **surroundings(), "cells": {}, "resumed": [], **manifest, **ours}
    if target.exists() and not target.is_dir():
        raise InvalidInput(f"{target} is a file; results need a directory")
    if target.is_dir() and any(target.iterdir()):
        _resume(target, fresh)
        return
    for folder in (target, target / CELLS, target / TRACES):
        folder.mkdir(parents=True, exist_ok=True)
    _write_manifest(target, fresh)


def _resume(target: Path, fresh: Mapping[str, Any]) -> None:
    if not (target / MANIFEST).is_file():
        raise InvalidInput(f"{target} is not empty and holds no results of hedgerow; choose another directory")
    old = read_manifest(target)
    if old["experiment_hash"] != fresh["experiment_hash"]:
        raise InvalidInput(
            f"{target} holds the results of another experiment (hash {old['experiment_hash'][:12]}, "
            f"this one has {fresh['experiment_hash'][:12]}); choose another directory"
        )
    for folder in (target / CELLS, target / TRACES):
        folder.mkdir(exist_ok=True)
    note = {key: fresh[key] for key in ("created", "command", "python", "versions", "commit", "machine")}
    _write_manifest(target, {**old, "resumed": [*old.get("resumed", []), note]})


def write_cell(
    directory: PathLike,
    spec: Mapping[str, Any],
    run: Run,
    learner: Learner,
    *,
    trace: Run | None = None,
    facts: Mapping[str, Any] | None = None,
) -> Path:
    """Write the table of a finished cell, atomically; an existing file is never overwritten.

    `trace` is the same run with every episode as a checkpoint; `facts` are further deterministic facts, such as
    {"slater": rho}. The trace is written first: where the cell's file is, nothing is missing.
    """
    target = Path(directory)
    table = run_table(spec, run, learner, facts)
    name = f"{table_header(table.schema.metadata, 'this run')['id']}.parquet"
    path = target / CELLS / name
    if path.exists():
        raise InvalidInput(f"{path} exists already; results are never overwritten: remove it or use another directory")
    if trace is not None:
        # An earlier attempt may have ended between the two files; a trace without its cell counts for nothing.
        files.save(target / TRACES / name, table_bytes(run_table(spec, trace, learner, facts)), overwrite=True)
    files.save(path, table_bytes(table))
    return path


def finished(directory: PathLike) -> set[str]:
    """The ids of the cells whose file is complete and belongs to the cell that it names."""
    ids = set()
    for path in sorted((Path(directory) / CELLS).glob("*.parquet")):
        try:
            ids.add(_header(path)["id"])
        except FileFormatError:
            continue  # as good as not there: `open` says what is wrong with it
    return ids


def update_manifest(directory: PathLike, changes: Mapping[str, Any]) -> None:
    """Replace entries of the manifest, atomically; "cells" is merged cell by cell, entry by entry."""
    target = Path(directory)
    manifest = read_manifest(target)
    cells = dict(manifest.get("cells", {}))
    for name, entry in changes.get("cells", {}).items():
        cells[name] = {**cells.get(name, {}), **entry}
    _write_manifest(target, {**manifest, **changes, "cells": cells})


def read_manifest(directory: PathLike) -> dict[str, Any]:
    """The manifest of a directory of results."""
    path = Path(directory) / MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        is_ours = manifest["kind"] == KIND and isinstance(manifest["experiment_hash"], str)
    except OSError as error:
        raise FileFormatError(f"{directory} holds no results: cannot read {path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise FileFormatError(f"{path} is no manifest of hedgerow results: {error}") from error
    if not is_ours:
        raise FileFormatError(f"{path} is no manifest of hedgerow results")
    if manifest.get("schema") != SCHEMA:
        raise FileFormatError(f"{path} has schema {manifest.get('schema')!r}; this release reads {SCHEMA}")
    result: dict[str, Any] = manifest
    return result


def open(directory: PathLike) -> Results:  # noqa: A001 - read as hr.results.open
    """Everything that a directory of results holds; cells that failed or are missing are listed as such."""
    target = Path(directory)
    manifest = read_manifest(target)
    entries: dict[str, Any] = manifest.get("cells", {})
    cells = []
    for path in sorted((target / CELLS).glob("*.parquet")):
        header = _header(path)
        cells.append(Cell.of(header, entries.get(header["id"], {}), "done"))
    done = {cell.id for cell in cells}
    for name in sorted(set(entries) - done):
        status = "failed" if entries[name].get("status") == "failed" else "missing"
        cells.append(Cell.of({"id": name, **entries[name]}, entries[name], status))
    return Results(target, manifest, tuple(cells), lambda name: read_table(target / CELLS / f"{name}.parquet"))


def read_table(path: PathLike) -> Any:
    """The Arrow table in a file of ours, its checksums verified."""
    try:
        return parquet().read_table(path, page_checksum_verification=True)
    except (OSError, ValueError) as error:  # pyarrow's own errors derive from these
        raise FileFormatError(f"cannot read {path}: {error}; remove it and run its cell again") from error


def _header(path: Path) -> dict[str, Any]:
    try:
        metadata = parquet().read_schema(path).metadata
    except (OSError, ValueError) as error:
        raise FileFormatError(f"cannot read {path}: {error}; remove it and run its cell again") from error
    header = table_header(metadata, str(path))
    if header["id"] != path.stem:
        raise FileFormatError(f"{path} holds the cell {header['id']}; give it back its name")
    return header


def _write_manifest(target: Path, manifest: Mapping[str, Any]) -> None:
    text = json.dumps(manifest, indent=1, sort_keys=False, allow_nan=False)
    files.save(target / MANIFEST, f"{text}\n".encode(), overwrite=True)
