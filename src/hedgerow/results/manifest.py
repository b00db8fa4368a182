"""The name and the fingerprint of a cell.

A cell is one run of a sweep, given by a plain dictionary: world, adversary and learner with their parameters,
episodes, delta, seed, and readable labels. Its id is made of the labels, for people and file names; its hash covers
everything but the labels, for machines: equal hashes mean equal runs.

    >>> spec = {"world": {"name": "dope-media"}, "adversary": {"name": "iid"}, "learner": {"name": "s-ops"},
    ...         "episodes": 1000, "delta": 0.01, "seed": 3, "label": {"learner": "s-ops sharp"}}
    >>> cell_id(spec)
    'dope-media__iid__s-ops-sharp__T1000__seed3'
    >>> cell_hash(spec) == cell_hash({**spec, "label": {}})
    True
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Mapping
from copy import deepcopy
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, NoReturn

import msgspec
import numpy as np

from hedgerow.checks import short_repr
from hedgerow.errors import FileFormatError, HedgerowError, InvalidInput
from hedgerow.storage import atomic

PARTS = ("world", "adversary", "learner")
_UNSAFE = re.compile(r"[^A-Za-z0-9.+=]+")
_LONGEST_PART = 60


def canonical(data: Mapping[str, Any]) -> str:
    """One text for equal content: sorted keys, no spaces, no NaN."""
    try:
        return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"a cell is described by plain numbers, texts, lists and tables only: {error}") from error


def fingerprint(data: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical text."""
    return hashlib.sha256(canonical(data).encode()).hexdigest()


def plain(value: Any) -> Any:
    """`value` as JSON can hold it: arrays and tuples become lists, and what is no finite number None."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    raise InvalidInput(f"plain data are numbers, texts, and lists or tables of these, not {type(value).__name__}")


def cell_hash(spec: Mapping[str, Any]) -> str:
    """The fingerprint of a cell, its labels left out."""
    return fingerprint({key: value for key, value in spec.items() if key != "label"})


def cell_id(spec: Mapping[str, Any]) -> str:
    """A readable name, safe as a file name: world__adversary__learner__T<episodes>__seed<seed>."""
    for key in (*PARTS, "episodes", "seed"):
        if key not in spec:
            raise InvalidInput(f"the description of a cell has no {key!r}; it has: {', '.join(sorted(spec))}")
    names = [slug(label(spec, part)) for part in PARTS]
    return "__".join([*names, f"T{spec['episodes']}", f"seed{spec['seed']}"])


def label(spec: Mapping[str, Any], part: str) -> str:
    """How `part` (world, adversary, learner) of a cell is called: its label, or else its name."""
    given = spec.get("label", {}).get(part)
    return str(given if given is not None else spec[part]["name"])


def slug(text: str) -> str:
    """`text` with everything that a file name should not contain turned into single dashes; long ones are cut."""
    slug = _UNSAFE.sub("-", text).strip("-.")
    if not slug or len(slug) > _LONGEST_PART:
        slug = f"{slug[: _LONGEST_PART - 9]}-{hashlib.sha256(text.encode()).hexdigest()[:8]}".lstrip("-")
    return slug


# --------------------------------------------------------------------------------------------------------------------
# What differs from run to run: versions, commit, machine, time. It goes into the manifest, never into a table.


PACKAGES = ("hedgerow", "numpy", "scipy", "numba", "llvmlite", "pyarrow", "joblib")


def machine_info() -> dict[str, Any]:
    """Everything that is worth knowing about this process, as plain data."""
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": typed(sys.argv),
        **deepcopy(_fixed_info()),
    }


@cache
def _fixed_info() -> dict[str, Any]:
    """What does not change while this process lives: it runs the code that it has loaded."""
    return {
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in PACKAGES},
        "commit": commit(),
        "machine": {
            "system": f"{platform.system()} {platform.machine()}",
            "processor": _processor(),
            "cores": os.cpu_count(),
        },
    }


def typed(arguments: list[str]) -> list[str]:
    """What was typed, without the folder of the program; a package that was run by -m is named by its folder."""
    program, *rest = arguments
    path = Path(program)
    return [*(["python", "-m", path.parent.name] if path.name == "__main__.py" else [path.name]), *rest]


def commit(folder: Path | None = None) -> str | None:
    """The commit of the git tree that this package stands in, "+" if it was changed since; None outside of one."""
    where = folder or Path(__file__).resolve().parent
    head = _git(where, "rev-parse", "HEAD")
    # A package in site-packages may lie below some other project's tree: only files that git knows count.
    if not head or not _git(where, "ls-files", "."):
        return None
    changed = _git(where, "status", "--porcelain", "--untracked-files=no")
    return head + ("+" if changed else "")


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _processor() -> str:
    """The processor by the name that its maker gave it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


# --------------------------------------------------------------------------------------------------------------------
# The manifest of a directory of results: what it is, and what of it is checked when it is read.
#
# It is JSON that people may edit, so that everything which is used later has its kind checked here, once.


MANIFEST = "manifest.json"
KIND, SCHEMA = "hedgerow sweep", 1
LARGEST = 2**29
"""Bytes: several hundred for each of a million cells."""


class CellEntry(msgspec.Struct):
    """What the manifest may say of a cell."""

    status: str = ""
    error: str | None = None
    seconds: dict[str, Annotated[float, msgspec.Meta(ge=0.0, lt=1e15)]] | None = None
    details: str = ""
    hash: str = ""
    spec: dict[str, Any] | None = None


class DeclinedEntry(msgspec.Struct, forbid_unknown_fields=True):
    """A cell that was left out before the run, and why."""

    world: str
    kind: str
    label: str
    episodes: int
    why: str
    adversary: str = ""


class Entries(msgspec.Struct):
    """What is read of a manifest later; it may have other entries."""

    experiment_hash: str
    experiment: dict[str, Any] = {}
    cells: dict[str, CellEntry] = {}
    hashes: dict[str, str] = {}
    resumed: list[Any] = []
    declined: list[DeclinedEntry] = []
    title: str = ""
    description: str = ""
    source: str = ""
    source_name: str = ""
    source_folder: str = ""
    created: str = ""
    command: list[Any] | str = ""
    python: str = ""
    commit: str | None = None
    versions: dict[str, Any] = {}
    machine: dict[str, Any] = {}


def read_manifest(directory: str | os.PathLike[str]) -> dict[str, Any]:
    """The manifest of a directory of results, checked."""
    path = Path(directory) / MANIFEST
    try:
        manifest = json.loads(atomic.read(path, LARGEST).decode(), parse_constant=_refuse)
        is_ours = manifest["kind"] == KIND and isinstance(manifest["experiment_hash"], str)
        problem = _problem(manifest) if is_ours and manifest.get("schema") == SCHEMA else ""
    except OSError as error:
        raise FileFormatError(f"{directory} holds no results: cannot read {path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, RecursionError, MemoryError) as error:
        raise FileFormatError(f"{path} is no manifest of hedgerow results: {short_repr(str(error))}") from error
    if not is_ours:
        raise FileFormatError(f"{path} is no manifest of hedgerow results")
    if manifest.get("schema") != SCHEMA:
        raise FileFormatError(f"{path} has schema {short_repr(manifest.get('schema'))}; this release reads {SCHEMA}")
    if problem:
        raise FileFormatError(f"{path} is no manifest of hedgerow results: {problem}; restore it from a copy")
    result: dict[str, Any] = manifest
    return result


def write_manifest(directory: Path, manifest: Mapping[str, Any]) -> None:
    """Write it atomically, in place of an older one."""
    text = json.dumps(manifest, allow_nan=False, indent=1)  # not msgspec's: paths may be no text (lone surrogates)
    atomic.save(directory / MANIFEST, f"{text}\n".encode(), overwrite=True)


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
    try:
        entries = msgspec.convert(manifest, Entries)
    except (msgspec.ValidationError, OverflowError) as error:
        return short_repr(str(error))
    if fingerprint(entries.experiment) != entries.experiment_hash:
        return "its experiment does not fit its hash"
    for name, entry in entries.cells.items():
        if entry.spec is not None and not _describes(entry.spec, name):
            return f"its entry for the cell {short_repr(name)} has the description of another cell"
    return ""


def _describes(spec: Mapping[str, Any], name: str) -> bool:
    try:
        return cell_id(spec) == name
    except (HedgerowError, AttributeError, KeyError, TypeError, ValueError):
        return False
