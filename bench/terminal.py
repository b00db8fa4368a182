"""Progress of the benchmarks, on stderr: stdout may be JSON."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter

from bench import manifest
from hedgerow.display.screen import Screen, make_progress, say

PATIENCE = 2.0
"""Seconds between two lines"""

Advance = Callable[[str], None]
"""A function that is called with what was just done"""


def mention_load(out: Screen) -> None:
    """Say so if something else keeps the machine busy: times are then too long, and their ratios unsteady."""
    load, cores = manifest.load(), os.cpu_count() or 1
    if load is not None and load > 0.75 * cores:
        out.line(f"The machine is busy (load {load:.1f} on {cores} cores): run again when it is quiet.")


@contextmanager
def progress(title: str, total: int, forecast: bool = False) -> Iterator[Advance]:
    """A bar in a terminal, plain lines elsewhere; a `forecast` adds rate and time left, for many equal steps."""
    own = Screen(error=True)
    if not own.is_terminal:
        yield _plain(title, total, forecast)
        return
    with make_progress(own) as bar:
        task = bar.add_task(title, total=total)

        def advance(what: str) -> None:
            bar.update(task, advance=1, description=f"{title}: {what}")

        yield advance


def _plain(title: str, total: int, forecast: bool) -> Advance:
    """Lines at least two seconds apart, and one at the end of anything that took as long."""
    start, spoken, done = perf_counter(), perf_counter(), 0

    def advance(what: str) -> None:
        nonlocal spoken, done
        done += 1
        now = perf_counter()
        if now - spoken > PATIENCE or (done == total and now - start > PATIENCE):
            spoken = now
            rate = done / (now - start)
            ahead = f", {rate:.1f}/s, {(total - done) / rate:.0f} s left" if forecast else ""
            say(f"{title} {done}/{total}: {what}, {now - start:.0f} s{ahead}", error=True)

    return advance
