"""Two processes compile at once: a companion takes what many programs share, while this one goes on with the rest.

A program calls what it shares by its address, which is needed at the very end of its own compilation. By then the
companion has mostly finished, and its code is loaded from the disk; `wait` sees to it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

_companions: list[subprocess.Popen[bytes]] = []


@contextmanager
def companion(arguments: Sequence[str]) -> Iterator[None]:
    """Meanwhile another process runs this Python with `arguments`; it is of no consequence if it fails."""
    if (os.cpu_count() or 1) < 2:
        yield
        return
    nowhere = subprocess.DEVNULL
    _companions.append(subprocess.Popen([sys.executable, *arguments], stdin=nowhere, stdout=nowhere, stderr=nowhere))
    try:
        yield
        wait()
    finally:
        while _companions:
            left = _companions.pop()
            left.kill()
            left.wait()


def wait() -> None:
    """Wait for the companion, if there is one."""
    for process in _companions:
        process.wait()
