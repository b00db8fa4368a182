"""What is printed: lines, tables and progress bars. Everything that is printed passes through here.

There is no markup in anything that is printed: names are shown as `text.visible` shows them, never obeyed.
"""

from __future__ import annotations

import os
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, TextIO

from hedgerow.display.text import Html, visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from hedgerow.display.table import Table

PLAIN_WIDTH = 140
"""Columns of output that does not go to a terminal, unless COLUMNS says otherwise."""
REFRESH = 0.2
"""Seconds between two looks of a notebook at a bar."""
SOON = 1.0
"""Seconds: what is over by then needs no bar in a notebook, where its last line would stay."""
SLOWEST_RATE = 10.0
"""Per second; whatever goes on more slowly is not counted in episodes."""


def say(words: object, *, error: bool = False) -> None:
    """Print one plain line, at once."""
    stream: TextIO = sys.stderr if error else sys.stdout
    print(visible(words), file=stream, flush=True)


def literal(words: str) -> str:
    """Words for a reader of rich's markup, as `typer` is of help: brackets remain brackets."""
    from rich.markup import escape

    return escape(words)


class Screen:
    """Standard output or error: a terminal, or something as wide as COLUMNS says, or else 140 columns."""

    def __init__(self, error: bool = False) -> None:
        self.error = error

    @cached_property
    def rich(self) -> Console:
        """Where rich prints."""
        from rich.console import Console

        options: Any = {"highlight": False, "markup": False, "emoji": False, "stderr": self.error}
        own = Console(**options)
        return own if own.is_terminal or _columns() else Console(**options, width=PLAIN_WIDTH)

    @property
    def is_terminal(self) -> bool:
        return self.rich.is_terminal

    def line(self, words: object = "", *, style: str = "", wrap: bool = True) -> None:
        """One line; where the width is known, it is wrapped between words, unless it is meant to be copied."""
        from rich.text import Text

        pieces = [visible(words)]
        if wrap and (self.is_terminal or _columns()):
            pieces = textwrap.wrap(pieces[0], self.rich.width, break_long_words=False, break_on_hyphens=False) or [""]
        for piece in pieces:
            self.rich.print(Text(piece, style), overflow="ignore", no_wrap=True, crop=False)

    def table(self, table: Table) -> None:
        """The table, in as many parts as the width asks for."""
        for part in table.parts(self.rich.width):
            self.rich.print(part)


def _columns() -> int:
    """The width that the environment asks for; 0 if it does not."""
    asked = os.environ.get("COLUMNS", "")
    return int(asked) if asked.isdecimal() else 0


# Progress ------------------------------------------------------------------------------------------------------------


_bars: list[str] = []
"""The labels of the bars on display."""


@contextmanager
def progress_bar(label: str, total: float, shown: bool = True) -> Iterator[Callable[[float], None]]:
    """A function that takes how much of `total` is done: it moves a bar where there is a terminal or a notebook.

    The bar appears when it is first moved, and a second one at the same time does not appear at all.
    """
    if shown and sys.stderr is not None and sys.stderr.isatty():
        bar: Any = _TerminalBar(label, total)
    elif shown and in_notebook():
        bar = _NotebookBar(label, total)
    else:
        yield lambda done: None
        return

    def move(done: float) -> None:
        if not _bars:
            _bars.append(label)
            bar.start()
        if _bars == [label]:
            bar.move(done)

    ended = False
    try:
        yield move
        ended = True
    finally:
        if _bars == [label]:
            _bars.clear()
            bar.stop(ended)


def in_notebook() -> bool:
    """Whether a notebook shows what is displayed."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return any(kind.__name__ == "ZMQInteractiveShell" for kind in type(shell).__mro__)  # Colab's derives from it


class _TerminalBar:
    def __init__(self, label: str, total: float) -> None:
        self.label, self.total = label, total

    def start(self) -> None:
        self.bar = make_progress(Screen(error=True))
        self.task = self.bar.add_task(self.label, total=self.total)
        self.bar.start()

    def move(self, done: float) -> None:
        self.bar.update(self.task, completed=done)

    def stop(self, ended: bool) -> None:
        self.bar.stop()


class _NotebookBar:
    """One output of a cell, which is replaced while the work goes on and says in the end how long it took.

    It needs nothing but the page: no widgets. What is over within `SOON` seconds shows nothing.
    """

    def __init__(self, label: str, total: float) -> None:
        self.label, self.total, self.begun = visible(label), total, time.monotonic()
        self.handle: Any = None
        self.done, self.shown = 0.0, 0.0
        self.first: tuple[float, float] | None = None
        """When it was first moved, and to where: what came before, such as compiling, has another rate."""

    def start(self) -> None:
        """Nothing to see yet."""

    def move(self, done: float) -> None:
        now, self.done = time.monotonic(), done
        self.first = self.first or (now, done)
        if now - self.begun < SOON or now - self.shown < REFRESH:
            return
        self.shown = now
        if self.handle is None:
            page: Any = import_module("IPython.display")
            self.handle = page.display(self._content(now), raw=True, display_id=True)
        else:
            self.handle.update(self._content(now), raw=True)

    def stop(self, ended: bool) -> None:
        if self.handle is not None:
            took = time.monotonic() - self.begun
            how = "done" if ended else f"stopped at {100.0 * self.done / self.total:.0f} %"
            words = f"{self.label}: {how} after {_duration(took)}{_rate(self.done / max(took, 1e-9))}"
            self.handle.update({"text/plain": words, "text/html": Html.escape(words)}, raw=True)

    def _content(self, now: float) -> dict[str, str]:
        then, before = self.first or (now, self.done)
        speed = (self.done - before) / (now - then) if now > then else 0.0
        words = f"{self.label}: {100.0 * self.done / self.total:.0f} %{_rate(speed)}"
        if speed > 0.0:
            words += f", {_duration((self.total - self.done) / speed)} left"
        bar = Html('<progress value="{}" max="{}"></progress> {}').format(self.done, self.total, words)
        return {"text/plain": words, "text/html": bar}


def _rate(speed: float) -> str:
    """Of episodes; what is measured in seconds has no rate worth telling."""
    return f", {speed:,.0f}/s" if speed > SLOWEST_RATE else ""


def _duration(seconds: float) -> str:
    """`7 s`, `3:05 min`, `2:10 h`."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02d} min"
    return f"{whole // 3600}:{whole % 3600 // 60:02d} h"


def make_progress(screen: Screen) -> Progress:
    """A progress display: the name of each task without markup, a bar, the share, the rate, and the time left."""
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
    from rich.table import Column
    from rich.text import Text

    class Name(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(visible(task.description), overflow="fold", no_wrap=False)

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(_rate(task.speed or 0.0).removeprefix(", "), style="progress.data.speed")

    name, share = Name(table_column=Column(overflow="fold", ratio=1)), TextColumn("{task.percentage:>3.0f} %")
    columns = (name, BarColumn(bar_width=12), share, Rate(), TimeRemainingColumn())
    return Progress(*columns, console=screen.rich, transient=True)
