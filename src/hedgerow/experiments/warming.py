"""Compiling what is needed before it is needed: one line, one bar, and two processes where there are two cores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

COMPANION = ("-m", "hedgerow", "compile", "--only", "projection", "--quiet")


@contextmanager
def compiled_together(*, alone: bool = False, shown: bool = True) -> Iterator[None]:
    """Meanwhile kernels are compiled: those of the projection by another process, unless `alone`."""
    from numba import config

    from hedgerow.compiling import ahead
    from hedgerow.compiling.announcing import announcer, seconds_ahead
    from hedgerow.learners.mirror.loop import run_block
    from hedgerow.learners.mirror.step import learn
    from hedgerow.projection.newton import climb

    programs: list[Any] = [run_block, learn, climb]
    if config.DISABLE_JIT or not any(kernel._cache.is_empty for kernel in programs):  # type: ignore[attr-defined]
        yield
        return
    with announcer.whole("the kernels", seconds_ahead(programs), shown):
        if alone:
            yield
        else:
            with ahead.companion(COMPANION):
                yield
