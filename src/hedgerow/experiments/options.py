"""How to run: the options that `hedgerow run`, `resume`, `demo`, `compare` and `hr.sweep` share.

An option is a field here. The command line shows those with a help text (`commands/run.py`), and `sweep` obeys them.
This module is light: the command line imports it to print its help.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from hedgerow.errors import InvalidInput

BACKENDS = ("loky", "serial", "dask")
LIMIT, LONGEST = 60.0, 1e9
"""Seconds that an episode of a learner of others may take: unless a file says otherwise, and at most."""


def option(default: Any, help_text: str, *names: str, **limits: Any) -> Any:
    """A field that the command line shows, with its names and limits there."""
    return field(default=default, metadata={"help": help_text, "names": names, "limits": limits})


@dataclass(frozen=True)
class RunOptions:
    """How to run the cells of an experiment; nothing here changes what they compute."""

    processes: int | None = option(
        None, "Processes on this machine; all cores by default.", "--processes", "-j", metavar="N", min=1
    )
    backend: str = option("loky", "loky, serial or dask.", "--backend", autocompletion=lambda: BACKENDS)
    scheduler: str = option("", "tcp://... of a Dask scheduler, with --backend dask.", "--scheduler")
    fail_fast: bool = option(False, "Stop at the first cell that fails, or go on.", "--fail-fast/--keep-going")
    limit: float | None = option(
        None, "Seconds that an episode of a learner of others may take; inf for no limit.", "--limit"
    )
    """None takes that of the experiment"""
    only: tuple[str, ...] = option((), "Run only the cell with this id; may be repeated.", "--only", metavar="ID")
    """Ids of cells, in the order in which they are to run; nothing for all"""
    resume: bool = False
    """Whether the directory may have been begun before"""

    def __post_init__(self) -> None:
        if self.scheduler and self.backend == "loky":
            object.__setattr__(self, "backend", "dask")
        if self.backend not in BACKENDS:
            raise InvalidInput(f"the backend is {self.backend!r}; choose one of {', '.join(BACKENDS)}")
        if (self.backend == "dask") != bool(self.scheduler):
            raise InvalidInput("the backend dask and the address of a scheduler (tcp://...) belong together")
        if self.processes is not None and self.processes < 1:
            raise InvalidInput(f"the number of processes is {self.processes}; it must be at least 1")
        if self.limit is not None:
            checked_limit(self.limit)


def checked_limit(value: Any) -> float:
    """A time limit in seconds: a positive number, infinite for none."""
    from hedgerow.checks import real_number

    limit = math.inf if value == math.inf else real_number("the time limit", value, 0.0, LONGEST)
    if limit <= 0.0:
        raise InvalidInput(f"the time limit is {value!r} s; it must be positive, or inf for none")
    return limit
