"""Tables for people: one shape for all commands, wide enough where there is no terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

PLAIN_WIDTH = 140
"""Columns of output that does not go to a terminal."""


def console(error: bool = False) -> Console:
    """Standard output (or error), wide enough for a table when it is not a terminal."""
    from rich.console import Console

    own = Console(highlight=False, stderr=error)
    return own if own.is_terminal else Console(highlight=False, stderr=error, width=PLAIN_WIDTH)


def table(title: str, columns: Sequence[str], num_text: int = 1) -> Table:
    """A table whose first `num_text` columns are text and whose others are numbers."""
    from rich import box
    from rich.table import Table

    result = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", title_style="italic")
    for index, column in enumerate(columns):
        is_text = index < num_text
        result.add_column(column, justify="left" if is_text else "right", no_wrap=index == 0 or not is_text)
    return result
