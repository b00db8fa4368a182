"""Announce compilations (what is compiled, about how long it takes, how far it is), and share them with a companion.

Anything that takes more than two seconds gets one line on stderr, and a progress bar in a terminal or a notebook. The
parts of a compilation are known beforehand: the kernels that a kernel names, and those that these name. Their weights
are about the seconds of processor time of a part. The line comes after two seconds, and stretches what is left by how
busy the machine was in them.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from hedgerow.compiling import cache
from hedgerow.compiling import kernels as compiled_kernels
from hedgerow.display.screen import progress_bar, say

PART, LINK = 0.15, 0.05
"""Seconds for a part, and for each part again in every program that links it"""
PLAINLY = 100.0
"""Seconds for everything when numba compiles each function by itself"""
PACE = 1.2
"""Processor time for a second of weight, measured over whole compilations: 1.17 to 1.23"""
WORTH_A_LINE = 2.0
"""Seconds"""


class Announcer:
    """What is being compiled in this process; numba compiles one thing at a time."""

    def __init__(self) -> None:
        self.depth, self.done = 0, 0.0
        self.move: Callable[[float], None] = lambda done: None
        self.owned = False
        self._waiting: tuple[str, float, float, float] | None = None
        """What is not announced yet, its total, and when it began by the clock and by processor time"""

    @contextmanager
    def whole(self, what: str, seconds: float, shown: bool) -> Iterator[None]:
        """Show one line and one bar for everything that is compiled inside this block."""
        self.owned = True
        try:
            with self._showing(what, seconds, shown):
                yield
        finally:
            self.owned = False

    @contextmanager
    def program(self, kernel: Any) -> Iterator[None]:
        """Announce a program that is compiled inside this block, if it is the outermost one and takes long."""
        with ExitStack() as stack:
            if self.depth == 0:
                stack.enter_context(_without_collection())
            if self.depth == 0 and not self.owned:
                seconds = seconds_ahead([kernel])
                stack.enter_context(self._showing(kernel.py_func.__name__, seconds, seconds >= WORTH_A_LINE))
            self.depth += 1
            try:
                yield
            finally:
                self.depth -= 1
            self.advance(LINK * len(parts_of(kernel)))

    @contextmanager
    def _showing(self, what: str, seconds: float, shown: bool) -> Iterator[None]:
        self.done = 0.0
        self._waiting = (what, seconds, time.perf_counter(), time.process_time()) if shown else None
        try:
            with progress_bar(f"compiling {what}", seconds, shown) as self.move:
                yield
        finally:
            self._waiting, self.move = None, lambda done: None

    def advance(self, seconds: float) -> None:
        """So much more is done. The line comes once it is known how busy this machine is."""
        self.done += seconds
        self.move(self.done)
        if self._waiting is None:
            return
        what, total, begun, worked = self._waiting
        passed = time.perf_counter() - begun
        if passed >= WORTH_A_LINE:
            self._waiting = None
            busy = max(1.0, passed / max(time.process_time() - worked, 1e-3))
            _say(what, max(passed, PACE * total * busy))  # the first parts alone, with what they load, tell no pace


@contextmanager
def _without_collection() -> Iterator[None]:
    """Let the garbage collector rest: it took 7 % of the time of a compilation."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _say(what: str, seconds: float) -> None:
    folder = cache.root()
    kept = f", kept in {folder}" if folder is not None else ""
    say(f"hedgerow: compiling {what}, about {seconds:.0f} s (once{kept})", error=True)


def seconds_ahead(kernels: list[Any], without: Any = None) -> float:
    """About how long these programs take to compile; shared parts count once, and `without` does not count."""
    if not compiled_kernels.AVAILABLE:
        return PLAINLY
    programs: dict[Any, dict[Any, None]] = {}
    pending = list(kernels)
    while pending:
        kernel = pending.pop()
        if kernel not in programs and kernel is not without and not kernel.overloads:
            programs[kernel] = parts_of(kernel)
            pending += [called for part in programs[kernel] for called in callees(part) if is_shared(called)]
    new = {part: None for found in programs.values() for part in found if not part.part.overloads}
    return PART * len(new) + LINK * sum(len(found) for found in programs.values())


def parts_of(kernel: Any) -> dict[Any, None]:
    """The kernel and all kernels that are linked into its program."""
    found: dict[Any, None] = {}
    pending = [kernel]
    while pending:
        part = pending.pop()
        if part not in found:
            found[part] = None
            pending += [called for called in callees(part) if not is_shared(called)]
    return found


def callees(kernel: Any) -> list[Any]:
    """The kernels that a kernel names."""
    function = kernel.py_func
    named = (function.__globals__.get(name) for name in function.__code__.co_names)
    return [value for value in named if hasattr(value, "part")]


def is_shared(kernel: Any) -> bool:
    return hasattr(kernel, "publish")


announcer = Announcer()


# Two processes --------------------------------------------------------------------------------------------------------
#
# A companion compiles what many programs share, this process compiles the rest. A program calls a shared kernel by its
# address, which it needs at the very end of its own compilation. By then the companion has usually written that kernel
# to disk; `wait` waits for it otherwise.


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
