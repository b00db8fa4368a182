"""The manifest of a directory of results: what it is, and what of it is checked when it is read.

It is JSON that anybody may edit, so that everything which is used later has its kind checked here, once.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from hedgerow import disk
from hedgerow.checks import shown
from hedgerow.errors import FileFormatError, HedgerowError
from hedgerow.results.naming import cell_id, fingerprint

MANIFEST = "manifest.json"
KIND, SCHEMA = "hedgerow sweep", 1
LARGEST = 2**29
"""Bytes: several hundred for each of a million cells."""

_TEXT, _TABLE = (str,), (dict,)
_ENTRIES: dict[str, tuple[type, ...]] = {
    "experiment": _TABLE,
    "cells": _TABLE,
    "hashes": _TABLE,
    "resumed": (list,),
    "declined": (list,),
    "title": _TEXT,
    "description": _TEXT,
    "source": _TEXT,
    "source_name": _TEXT,
    "source_folder": _TEXT,
    "created": _TEXT,
    "command": (list, str),
    "python": _TEXT,
    "commit": (str, type(None)),
    "versions": _TABLE,
    "machine": _TABLE,
}
_CELL_ENTRIES: dict[str, tuple[type, ...]] = {
    "status": _TEXT,
    "error": (str, type(None)),
    "seconds": (dict, int, float, type(None)),
    "details": _TEXT,
    "hash": _TEXT,
    "spec": _TABLE,
}
_DECLINED: dict[str, tuple[type, ...]] = {
    "world": _TEXT,
    "kind": _TEXT,
    "label": _TEXT,
    "episodes": (int,),
    "why": _TEXT,
}
"""All: what an entry is if it is there. An entry of `declined` has all of its own."""


def read_manifest(directory: str | os.PathLike[str]) -> dict[str, Any]:
    """The manifest of a directory of results, checked."""
    path = Path(directory) / MANIFEST
    try:
        manifest = json.loads(disk.read(path, LARGEST).decode(), parse_constant=_refuse)
        is_ours = manifest["kind"] == KIND and isinstance(manifest["experiment_hash"], str)
        problem = _problem(manifest) if is_ours and manifest.get("schema") == SCHEMA else ""
    except OSError as error:
        raise FileFormatError(f"{directory} holds no results: cannot read {path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, RecursionError, MemoryError) as error:
        raise FileFormatError(f"{path} is no manifest of hedgerow results: {shown(str(error))}") from error
    if not is_ours:
        raise FileFormatError(f"{path} is no manifest of hedgerow results")
    if manifest.get("schema") != SCHEMA:
        raise FileFormatError(f"{path} has schema {shown(manifest.get('schema'))}; this release reads {SCHEMA}")
    if problem:
        raise FileFormatError(f"{path} is no manifest of hedgerow results: {problem}; restore it from a copy")
    result: dict[str, Any] = manifest
    return result


def write_manifest(directory: Path, manifest: Mapping[str, Any]) -> None:
    """Write it atomically, in place of an older one."""
    text = json.dumps(manifest, indent=1, sort_keys=False, allow_nan=False)
    disk.save(directory / MANIFEST, f"{text}\n".encode(), overwrite=True)


def update_manifest(directory: str | os.PathLike[str], changes: Mapping[str, Any]) -> None:
    """Replace entries of the manifest of a sweep, atomically.

    Args:
        directory: The directory of the sweep.
        changes: New entries by name. The entry "cells" is merged: cell by cell, entry by entry.

    Raises:
        FileFormatError: If the directory holds no results, or if its manifest is damaged.

    Examples:
        >>> import hedgerow as hr
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     hr.results.create(folder, {"experiment": {"about": "nothing"}})
        ...     hr.results.update_manifest(folder, {"title": "A better title"})
        ...     print(hr.results.open(folder).title)
        A better title
    """
    target = Path(directory)
    manifest = read_manifest(target)
    cells = dict(manifest.get("cells", {}))
    for name, entry in changes.get("cells", {}).items():
        cells[name] = {**cells.get(name, {}), **entry}
    write_manifest(target, {**manifest, **changes, "cells": cells})


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number")


def _problem(manifest: Mapping[str, Any]) -> str:
    """The first entry that is not what it should be, in words; the empty text if all are."""
    wrong = _misfit(manifest, _ENTRIES)
    if wrong:
        return f"its entry {wrong!r} is {shown(manifest[wrong])}"
    if fingerprint(manifest.get("experiment", {})) != manifest["experiment_hash"]:
        return "its experiment does not fit its hash"
    for name, text in manifest.get("hashes", {}).items():
        if not isinstance(text, str):
            return f"the hash of the cell {shown(name)} is {shown(text)}"
    for entry in manifest.get("declined", []):
        if not isinstance(entry, dict) or set(entry) != set(_DECLINED) or _misfit(entry, _DECLINED):
            return f"its entry 'declined' has {shown(entry)}"
    for name, entry in manifest.get("cells", {}).items():
        problem = _problem_of_cell(name, entry)
        if problem:
            return f"its entry for the cell {shown(name)} has {problem}"
    return ""


def _problem_of_cell(name: str, entry: Any) -> str:
    if not isinstance(entry, dict):
        return f"{shown(entry)} in the place of a table"
    wrong = _misfit(entry, _CELL_ENTRIES)
    if wrong:
        return f"{wrong} = {shown(entry[wrong])}"
    seconds = entry.get("seconds")
    for value in seconds.values() if isinstance(seconds, dict) else [seconds or 0.0]:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value < 1e15:
            return f"seconds = {shown(value)}"
    try:
        fits = "spec" not in entry or cell_id(entry["spec"]) == name
    except (HedgerowError, AttributeError, KeyError, TypeError, ValueError):
        fits = False
    return "" if fits else "the description of another cell"


def _misfit(table: Mapping[str, Any], kinds: Mapping[str, tuple[type, ...]]) -> str:
    """The first key whose value is of the wrong kind, or the empty text."""
    for key, allowed in kinds.items():
        if key in table and (isinstance(table[key], bool) or not isinstance(table[key], allowed)):
            return key
    return ""
