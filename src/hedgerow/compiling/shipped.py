"""Compiled code in the package: a platform wheel ships every kernel, and then nothing is compiled at all.

It is made for TARGET, which most x86-64 processors since 2015 or so can run, and gives the same bits as code for the
processor at hand. If the processor lacks one of NEEDED, if numba or Python has another version, or if a source was
changed, nothing is found here and the kernel is compiled.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

TARGET = "x86-64-v3"
NEEDED = ("avx2", "fma", "bmi", "bmi2", "f16c", "lzcnt", "movbe")
"""Features that TARGET requires beyond those of every x86-64 processor."""
FOLDER = Path(__file__).parents[1] / "compiled"
SETTINGS = {"NUMBA_CPU_NAME": TARGET, "NUMBA_CPU_FEATURES": ""}
"""Environment of the process that compiles this code, see `hatch_build.py`"""


_ignored: list[bool] = []


def ignore() -> None:
    """Use no shipped code in this process."""
    _ignored.append(True)


def is_usable() -> bool:
    """Whether shipped code exists, is not ignored, and runs on this processor."""
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
