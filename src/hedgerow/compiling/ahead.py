"""Compile in two processes: a companion compiles what many programs share, this process compiles the rest.

A program calls a shared kernel by its address, which it needs at the very end of its own compilation. By then the
companion has usually written that kernel to disk; `wait` waits for it otherwise.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

_companions: dict[str, subprocess.Popen[bytes]] = {}
"""At most one, by the kernel that it compiles."""


@contextmanager
def companion(kernel: str, arguments: Sequence[str]) -> Iterator[None]:
    """Let another process, this Python with `arguments`, compile a kernel in the meantime; it may fail."""
    if (os.cpu_count() or 1) < 2:
        yield
        return
    nowhere = subprocess.DEVNULL
    process = subprocess.Popen([sys.executable, *arguments], stdin=nowhere, stdout=nowhere, stderr=nowhere)
    _companions[kernel] = process
    try:
        yield
    finally:
        _companions.clear()
        process.kill()
        process.wait()


def wait(kernel: str, is_there: Callable[[], bool]) -> None:
    """Wait while a companion compiles a kernel that is not there yet."""
    while kernel in _companions and _companions[kernel].poll() is None and not is_there():
        time.sleep(0.02)
