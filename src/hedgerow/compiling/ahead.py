"""Two processes compile at once: a companion takes what many programs share, while this one goes on with the rest.

A program calls what it shares by its address, which is needed at the very end of its own compilation. By then the
companion has mostly written its code to the disk; `wait` sees to it.
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
    """Meanwhile another process, this Python with `arguments`, compiles a kernel; it is no matter if it fails."""
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
    """Wait while a companion is at work on a kernel that is not there yet."""
    while kernel in _companions and _companions[kernel].poll() is None and not is_there():
        time.sleep(0.02)
