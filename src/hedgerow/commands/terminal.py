"""Output: tables for people, JSON for machines, plain text where there is no terminal; and the options all share."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

PLAIN_WIDTH = 140
"""Columns of output that does not go to a terminal."""
FAILED, REFUSED, INTERRUPTED = 1, 2, 130
"""Exit codes besides 0: some cells failed; the request cannot be met; Ctrl-C."""

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors (and JSON, if asked for).")]


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


def print_json(data: object) -> None:
    print(json.dumps(data, indent=2, allow_nan=False))


def number(value: float | None, digits: int = 6) -> str:
    """A number for a table: rounding noise does not print as -0.000000."""
    if value is None or value != value:
        return "-"
    return f"{value:.{digits}f}" if abs(value) >= 0.5 * 10.0**-digits else f"{0.0:.{digits}f}"


def parameters(values: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}".replace(" ", "") for name, value in values.items())


def one_thread() -> None:
    """One thread for every library of this process, whose numbers then do not depend on the number of cores.

    Libraries read these variables when they are loaded, so this comes before numpy.
    """
    for pool in ("OMP", "OPENBLAS", "MKL", "BLIS", "VECLIB_MAXIMUM", "NUMBA"):
        os.environ[f"{pool}_NUM_THREADS"] = "1"
