"""What people read: lines, tables that fit, and names as they are. Everything that is printed passes through here.

Labels, paths and messages come from files and command lines: whatever is in them is shown, never obeyed. So there is no
markup in anything that is printed, and what is no printable character (escape codes, line ends, marks that turn the
direction of writing) is shown as its code:

    >>> visible("sv [/x]"), visible("red: \\x1b[31m"), visible("gnp.\\u202etxt")
    ('sv [/x]', 'red: \\\\x1b[31m', 'gnp.\\\\u202etxt')

A table that is wider than its terminal has its texts wrapped; if that is not enough, its columns follow in several
tables, each with the names of the rows in front. Numbers and names are never cut.
"""

from __future__ import annotations

import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, TextIO
from unicodedata import category

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

PLAIN_WIDTH = 140
"""Columns of output that does not go to a terminal."""
REFRESH = 0.2
"""Seconds between two looks of a notebook at a bar."""
SOON = 1.0
"""Seconds: what is over by then needs no bar in a notebook, where its last line would stay."""
SLOWEST_RATE = 10.0
"""Per second; whatever goes on more slowly is not counted in episodes."""
NARROWEST_TEXT = 16
"""Columns that a text in a table may always ask for; longer words are broken if there is no room for them."""

Cell = str | tuple[str, str]
"""Words, or words and the style that they have in a terminal"""


def visible(value: object) -> str:
    """`value` as one line of printable characters and spaces; anything else is shown as its code."""
    words = str(value)
    if words.isprintable():
        return words
    return "".join(char if char.isprintable() or category(char) == "Zs" else _code(char) for char in words)


def _code(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def say(words: object, *, error: bool = False) -> None:
    """Print one plain line, at once."""
    stream: TextIO = sys.stderr if error else sys.stdout
    print(visible(words), file=stream, flush=True)


class Screen:
    """Standard output or error: a terminal, or something that is 140 columns wide."""

    def __init__(self, error: bool = False) -> None:
        self.error = error

    @cached_property
    def rich(self) -> Console:
        """Where rich prints."""
        from rich.console import Console

        options: Any = {"highlight": False, "markup": False, "emoji": False, "stderr": self.error}
        own = Console(**options)
        return own if own.is_terminal else Console(**options, width=PLAIN_WIDTH)

    @property
    def is_terminal(self) -> bool:
        return self.rich.is_terminal

    def line(self, words: object = "", *, style: str = "", wrap: bool = True) -> None:
        """One line; a terminal gets it wrapped between words, unless somebody is going to copy it."""
        from rich.text import Text

        pieces = [visible(words)]
        if wrap and self.is_terminal:
            pieces = textwrap.wrap(pieces[0], self.rich.width, break_long_words=False, break_on_hyphens=False) or [""]
        for piece in pieces:
            self.rich.print(Text(piece, style), overflow="ignore", no_wrap=True, crop=False)

    def table(self, table: Table) -> None:
        """The table, in as many parts as the width asks for."""
        for part in table.parts(self.rich.width):
            self.rich.print(part)


class Table:
    """A table whose first `num_text` columns are text and whose others are numbers.

    The first `num_keys` columns say what a row is about: where the others do not fit, each part begins with them.
    """

    def __init__(self, title: str, columns: Sequence[str], num_text: int = 1, num_keys: int = 1) -> None:
        self.title, self.columns = visible(title), [visible(column) for column in columns]
        self.num_text, self.num_keys = num_text, num_keys
        self.rows: list[list[tuple[str, str]]] = []

    def add_row(self, *cells: Cell) -> None:
        pairs = [cell if isinstance(cell, tuple) else (cell, "") for cell in cells]
        self.rows.append([(visible(words), style) for words, style in pairs])

    def parts(self, width: int) -> Iterator[Any]:
        """Tables for rich, none of them wider than `width` if that is possible; the first one has the title."""
        for number, (chosen, widths) in enumerate(self._split(width)):
            yield self._part(chosen, widths, self.title if number == 0 else None)

    def _part(self, chosen: Sequence[int], widths: Sequence[int], title: str | None) -> Any:
        from rich import box
        from rich.table import Table as RichTable
        from rich.text import Text

        heading = None if title is None else Text(title)
        made = RichTable(title=heading, box=box.SIMPLE_HEAD, title_justify="left", title_style="italic")
        for i, given in zip(chosen, widths, strict=True):
            side: Any = "left" if i < self.num_text else "right"
            made.add_column(Text(self.columns[i]), justify=side, width=given, overflow="fold")
        for row in self.rows:
            made.add_row(*(Text(row[i][0], row[i][1]) for i in chosen))
        return made

    def _split(self, width: int) -> Iterator[tuple[list[int], list[int]]]:
        """The columns of each part with their widths; a part has at least one column besides the keys."""
        wanted = [self._wanted(i) for i in range(len(self.columns))]
        least = [self._least(*both, i, width) for i, both in enumerate(wanted)]
        keys, rest = list(range(self.num_keys)), list(range(self.num_keys, len(self.columns)))
        while True:
            chosen = [*keys, *rest[:1]]
            for i in rest[1:]:
                if _around(len(chosen) + 1) + sum(least[j] for j in [*chosen, i]) > width:
                    break
                chosen.append(i)
            rest = rest[len(chosen) - len(keys) :]
            room = width - _around(len(chosen))
            yield chosen, _shared([least[i] for i in chosen], [wanted[i][1] for i in chosen], room)
            if not rest:
                return

    def _wanted(self, i: int) -> tuple[int, int]:
        """The widths of column i in which no word is broken, and in which nothing is wrapped."""
        from rich.cells import cell_len

        cells, header = [row[i][0] for row in self.rows], self.columns[i]
        words = [*header.split(), *(word for cell in cells for word in (cell.split() if i < self.num_text else [cell]))]
        return max(map(cell_len, words), default=0), max(map(cell_len, [header, *cells]))

    def _least(self, unbroken: int, whole: int, i: int, width: int) -> int:
        """What column i asks for: numbers all they need, names as well up to half of the width, texts some words."""
        if i >= self.num_text:
            return unbroken
        if i < self.num_keys:
            return min(whole, max(min(unbroken, width // 2), NARROWEST_TEXT, width // (2 * self.num_keys)))
        return min(unbroken, NARROWEST_TEXT)


def _around(columns: int) -> int:
    """What so many columns need besides their content: a space on either side, one between them, one at the edges."""
    return 3 * columns + 1


def _shared(least: Sequence[int], wanted: Sequence[int], room: int) -> list[int]:
    """Widths between `least` and `wanted` with the sum `room`, if that is possible: most to what wraps most."""
    widths = list(least)
    while sum(widths) < min(room, sum(wanted)):
        i = max(range(len(widths)), key=lambda i: wanted[i] / max(1, widths[i]))
        widths[i] += 1
    return widths


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
            self.handle.update({"text/plain": words, "text/html": _escaped(words)}, raw=True)

    def _content(self, now: float) -> dict[str, str]:
        then, before = self.first or (now, self.done)
        speed = (self.done - before) / (now - then) if now > then else 0.0
        words = f"{self.label}: {100.0 * self.done / self.total:.0f} %{_rate(speed)}"
        if speed > 0.0:
            words += f", {_duration((self.total - self.done) / speed)} left"
        bar = f'<progress value="{self.done}" max="{self.total}"></progress> {_escaped(words)}'
        return {"text/plain": words, "text/html": bar}


def _escaped(words: str) -> str:
    from html import escape

    return escape(words)


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
