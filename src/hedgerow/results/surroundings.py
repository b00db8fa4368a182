"""What differs from run to run: versions, commit, machine, time. It goes into the manifest, never into a table."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("hedgerow", "numpy", "scipy", "numba", "llvmlite", "pyarrow", "joblib")


def surroundings() -> dict[str, Any]:
    """Everything that is worth knowing about this process, as plain data."""
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": typed(sys.argv),
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
