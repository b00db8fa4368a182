"""What a sweep shows while it runs: a display in a terminal, plain lines elsewhere, both on stderr.

In a terminal: one bar for all episodes with rate and time left, and one line for each cell that is under way.
Elsewhere: a line for each cell that ends.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from hedgerow.display.screen import Screen, make_progress, say

if TYPE_CHECKING:
    from rich.progress import Progress

    from hedgerow.experiments.backends import Counts
    from hedgerow.experiments.spec import CellSpec
    from hedgerow.experiments.worker import CellOutcome

REFRESH = 0.25
"""Seconds between two looks at the counters."""
MOST_LINES = 16
"""Lines for running cells, at most"""


class Listener:
    """Receives the events of a sweep; this one ignores them."""

    speaks: ClassVar[bool] = True
    """Whether to print progress for people"""

    def warm(self) -> None:
        """Kernels are being compiled or loaded, before the workers start."""

    def damaged(self, reasons: Mapping[str, str]) -> None:
        """The files of these cells cannot be trusted, for these reasons; the cells are run again."""

    def start(self, cells: Sequence[CellSpec], num_skipped: int, counts: Counts) -> None:
        """These cells are going to run; `counts` returns, at any time, the episodes done by each of them."""

    def finish(self, cell: CellSpec, outcome: CellOutcome) -> None:
        """A cell has ended, well or not."""

    def again(self, ids: Sequence[str]) -> None:
        """A process died; these cells run again."""

    def stop(self) -> None:
        """Nothing more will happen."""


def watcher(quiet: bool, patience: float = 0.0) -> Listener:
    """The listener that suits the output; `patience` is the least number of seconds between two plain lines."""
    if quiet:
        return Quiet()
    return Display() if sys.stderr.isatty() else ProgressLines(patience)


def damage_line(reasons: Mapping[str, str]) -> str:
    """Which files were not what they should be, in one line."""
    first, more = next(iter(reasons.values())), len(reasons) - 1
    return first + (f", and {more} more; these cells run again" if more else "; its cell runs again")


class Quiet(Listener):
    """Reports only what is unexpected."""

    speaks = False

    def damaged(self, reasons: Mapping[str, str]) -> None:
        _say(f"hedgerow: {damage_line(reasons)}")


class ProgressLines(Listener):
    """Prints a plain line for each event; for cells that end well, one per `patience` seconds and the last."""

    def __init__(self, patience: float = 0.0) -> None:
        self.begun, self.done, self.total = time.monotonic(), 0, 0
        self.patience, self._spoken = patience, -patience

    def warm(self) -> None:
        _say("preparing the compiled kernels")

    def damaged(self, reasons: Mapping[str, str]) -> None:
        _say(damage_line(reasons))

    def start(self, cells: Sequence[CellSpec], num_skipped: int, counts: Counts) -> None:
        self.begun, self.done, self.total = time.monotonic(), num_skipped, num_skipped + len(cells)
        if num_skipped:
            _say(f"{num_skipped} of {self.total} cells are finished already")

    def finish(self, cell: CellSpec, outcome: CellOutcome) -> None:
        self.done += 1
        now = time.monotonic()
        if not outcome.failed and self.done < self.total and now - self._spoken < self.patience:
            return
        self._spoken = now
        _say(f"[{self.done}/{self.total}] {cell.id}: {summary_line(cell, outcome)}")

    def again(self, ids: Sequence[str]) -> None:
        _say(f"a worker process died; running again: {', '.join(ids)}")


def _say(words: str) -> None:
    say(words, error=True)


class Display(Listener):
    """A live display: all episodes together, and a line for each running cell."""

    def __init__(self) -> None:
        self.screen = Screen(error=True)
        self.bar: Progress | None = None
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._ended: set[str] = set()

    def warm(self) -> None:
        self.screen.line("preparing the compiled kernels")

    def damaged(self, reasons: Mapping[str, str]) -> None:
        self.screen.line(damage_line(reasons))

    def start(self, cells: Sequence[CellSpec], num_skipped: int, counts: Counts) -> None:
        self.cells, self.counts = cells, counts
        if num_skipped:
            self.screen.line(f"{num_skipped} of {num_skipped + len(cells)} cells are finished already")
        self.bar = make_progress(self.screen)
        total = sum(cell.episodes for cell in cells)
        self.all = self.bar.add_task(f"{len(cells)} cells", total=total)
        self.lines: dict[str, Any] = {}
        self.full = 0  # episodes of the cells that have ended
        self.bar.start()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def finish(self, cell: CellSpec, outcome: CellOutcome) -> None:
        self._ended.add(cell.id)
        if outcome.failed:
            self.screen.line(f"failed: {cell.id}: {outcome.error}", style="red")

    def again(self, ids: Sequence[str]) -> None:
        self.screen.line(f"a worker process died; running again: {', '.join(ids)}")

    def stop(self) -> None:
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
        if self.bar is not None:
            self._look()
            self.bar.stop()

    def _watch(self) -> None:
        while not self._stopped.wait(REFRESH):
            self._look()

    def _look(self) -> None:
        """Read the counters and move the bars."""
        assert self.bar is not None
        done = 0
        for cell, count in zip(self.cells, self.counts(), strict=True):
            length = cell.episodes
            if cell.id in self._ended:
                done += length
                if cell.id in self.lines:
                    self.bar.remove_task(self.lines.pop(cell.id))
            elif count >= 0:
                done += count
                if cell.id not in self.lines and len(self.lines) < MOST_LINES:
                    self.lines[cell.id] = self.bar.add_task(f"  {cell.id}", total=length)
                if cell.id in self.lines:
                    self.bar.update(self.lines[cell.id], completed=count)
        left = len(self.cells) - len(self._ended)
        self.bar.update(self.all, completed=done, description=f"{left} of {len(self.cells)} cells left")


def summary_line(cell: CellSpec, outcome: CellOutcome) -> str:
    """How a cell ended, in a few words."""
    if outcome.failed:
        return f"failed: {outcome.error}"
    loop = outcome.seconds.get("loop", 0.0)
    rate = f", {cell.episodes / loop:,.0f} episodes/s" if loop > 0.0 else ""
    return f"done in {outcome.seconds.get('total', 0.0):.1f} s{rate}"
