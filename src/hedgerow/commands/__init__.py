"""The commands of the command line, one module for each family: parse, call the library, print. Here: what they share.

Heavy modules are imported inside the commands: `hedgerow --help` answers at once.
"""

from __future__ import annotations

import os
import signal
from typing import Annotated, Any

import typer

FAILED, REFUSED, INTERRUPTED = 1, 2, 128 + signal.SIGINT
"""Exit codes besides 0: some cells or checks failed; the request cannot be met; ended by Ctrl-C, as shells say it."""

SLACK = "slack: the constraint is slack at the optimum, so it costs nothing there; it can still bind while learning"
"""How a world is described whose constraint has the price 0."""

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Print all that is known, not one line each.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors (and JSON, if asked for).")]


def episodes_of(text: str) -> int:
    """A number of episodes as people write it: 100000, 1e5, 100k."""
    from hedgerow.checks import num_episodes
    from hedgerow.errors import InvalidInput

    try:
        return num_episodes(text)
    except InvalidInput as error:
        raise typer.BadParameter(str(error)) from error


def print_json(data: object) -> None:
    import json

    print(json.dumps(data, indent=2, allow_nan=False))


def parameters(values: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}".replace(" ", "") for name, value in values.items())


def one_thread() -> None:
    """Limit every library of this process to one thread: its numbers then do not depend on the number of cores.

    Libraries read these variables when they are loaded, so call this before importing numpy.
    """
    for pool in ("OMP", "OPENBLAS", "MKL", "BLIS", "VECLIB_MAXIMUM", "NUMBA"):
        os.environ[f"{pool}_NUM_THREADS"] = "1"
