"""A folder of observations: one data file per run, named after its spec and the code that made it, and a manifest.

A verification that was interrupted finds its finished runs here. Runs of other code have other names, so that a change
in any module that a run depends on is a new measurement, never an old one read again.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from hedgerow import files
from hedgerow.compiling import sources_of
from hedgerow.errors import FileFormatError
from hedgerow.promises.observation import KIND, Observation, pack, unpack
from hedgerow.promises.specs import RunSpec

PACKAGES = ("hedgerow", "numpy", "scipy", "numba")
HERE = Path(__file__).parent


@cache
def fingerprint() -> str:
    """Of all sources that a run depends on."""
    wanted: set[Path] = set()
    for module in (HERE / "observation.py", *(HERE / "controls").glob("*.py")):
        wanted |= set(sources_of(module))
    digest = hashlib.sha256()
    for source in sorted(wanted):
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    for package in PACKAGES[1:]:
        digest.update(version(package).encode())
    return digest.hexdigest()[:12]


class Store:
    """The files of one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs = folder / "runs"
        self.runs.mkdir(parents=True, exist_ok=True)

    def path(self, spec: RunSpec) -> Path:
        return self.runs / f"{spec.digest}-{fingerprint()}.npz"

    def find(self, spec: RunSpec) -> Observation | None:
        """The observation of a spec, if its file is there and intact; a damaged one is made anew."""
        try:
            found = unpack(files.load(self.path(spec), KIND))
        except FileFormatError:
            return None
        # Groups share runs: the label is the asker's.
        return Observation(spec, found.values, found.curves)

    def keep(self, observation: Observation) -> None:
        files.save(self.path(observation.spec), pack(observation), overwrite=True)

    def write(self, name: str, text: str) -> Path:
        files.save(self.folder / name, text.encode(), overwrite=True)
        return self.folder / name

    def write_json(self, name: str, data: Any) -> Path:
        return self.write(name, json.dumps(data, indent=2, allow_nan=False) + "\n")


def manifest(level: str, only: tuple[str, ...], num_runs: int, resumed: int, seconds: float) -> dict[str, Any]:
    """Where a verification comes from."""
    return {
        "schema": 1,
        "level": level,
        "only": list(only),
        "runs": num_runs,
        "found_finished": resumed,
        "seconds": round(seconds, 1),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "sources": fingerprint(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "versions": {name: version(name) for name in PACKAGES},
    }
