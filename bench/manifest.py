"""The manifest of figures: versions, processor, date and settings, kept in the same file as the figures."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from bench import sources
from hedgerow.storage import datafile

SCHEMA = 1
PACKAGES = ("hedgerow", "numpy", "scipy", "numba", "cvxpy", "clarabel", "ecos", "scs", "highspy", "joblib")


def report(benchmark: str, settings: Mapping[str, Any], figures: list[dict[str, Any]], module: str) -> dict[str, Any]:
    """Figures of the benchmark in a module of `bench`, with everything needed to judge and to repeat them."""
    return {
        "schema": SCHEMA,
        "benchmark": benchmark,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": processor(),
        "cores": os.cpu_count(),
        "load": load(),
        "sources": sources.digest(module),
        "versions": {name: _version(name) for name in PACKAGES},
        "settings": dict(settings),
        "figures": figures,
    }


def write(folder: Path, name: str, text: str) -> Path:
    """Write `text` to `folder`/`name`, atomically, and make the folder if need be."""
    folder.mkdir(parents=True, exist_ok=True)
    datafile.save(folder / name, text.encode(), overwrite=True)
    return folder / name


def as_json(data: object) -> str:
    return json.dumps(data, indent=2, allow_nan=False) + "\n"


def processor() -> str:
    """The processor by the name that its maker gave it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"


def load() -> float | None:
    """The average number of running processes over the last minute; far above 1, something else was running too."""
    try:
        return round(os.getloadavg()[0], 2)
    except (AttributeError, OSError):  # a system that does not count them
        return None


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
