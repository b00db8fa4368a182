"""Compiled code that came with the package: a platform wheel brings every kernel, so that nothing is compiled at all.

It is made for TARGET, which most x86-64 processors since 2015 or so can run, and gives the same bits as code for the
processor at hand. A processor that lacks one of NEEDED, another version of numba or Python, or a source that was
changed finds nothing here, and compiles.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

TARGET = "x86-64-v3"
NEEDED = ("avx2", "fma", "bmi", "bmi2", "f16c", "lzcnt", "movbe")
"""What TARGET takes for granted beyond what every x86-64 processor has."""
FOLDER = Path(__file__).parents[1] / "compiled"
SETTINGS = {"NUMBA_CPU_NAME": TARGET, "NUMBA_CPU_FEATURES": ""}
"""Of the process that makes it, see `hatch_build.py`"""


_ignored: list[bool] = []


def ignore() -> None:
    """Look at none of it in this process."""
    _ignored.append(True)


def is_usable() -> bool:
    """Whether there is such code that is not ignored, and this processor can run it."""
    return not _ignored and FOLDER.is_dir() and _fits()


@cache
def _fits() -> bool:
    from llvmlite import binding

    found = binding.get_host_cpu_features()
    return all(found.get(feature) for feature in NEEDED)


def key_of(native: tuple[Any, ...]) -> tuple[Any, ...]:
    """The key of the same function in shipped code."""
    signature, (triple, _, _), hashes = native
    return signature, (triple, TARGET, ""), hashes
