"""A progress bar, where there is a terminal to show it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(total: int, shown: bool) -> Iterator[Callable[[int], None]]:
    """A function that takes the number of episodes done; it does nothing unless a bar is shown."""
    if not shown or not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from hedgerow.output import Screen

    columns = (TextColumn("episodes"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Screen(error=True).rich, transient=True) as bar:
        task = bar.add_task("episodes", total=total)
        yield lambda done: bar.update(task, completed=done)
