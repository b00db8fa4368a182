"""Signals that ask a command to end: Ctrl-C and SIGTERM, in order and with the code that says which.

    SIGINT     exit code 130, also where the command inherits that it is ignored: a shell that is not interactive does
               so for what it starts with `&`, and such a command could not be stopped in order
    SIGTERM    the same as SIGINT, and exit code 143
    SIGHUP     left alone: `nohup` has it ignored, and the command goes on after its terminal is closed

Only the command line does this. Importing hedgerow changes no handler.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

INTERRUPTED, TERMINATED = 128 + signal.SIGINT, 128 + signal.SIGTERM
"""Exit codes, as shells make them"""


class Terminated(KeyboardInterrupt):
    """SIGTERM: whoever ends in order after Ctrl-C does so after this as well."""


@contextmanager
def ending_in_order() -> Iterator[Callable[[Any], Any]]:
    """Turn signals into exceptions; the function that it yields says which exit code replaces that of Ctrl-C."""
    came: list[int] = []

    def end(number: int, frame: Any) -> None:
        came.append(number)
        raise Terminated

    def code(wanted: Any) -> Any:
        return TERMINATED if wanted == INTERRUPTED and came else wanted

    if threading.current_thread() is not threading.main_thread():  # only there can handlers be set
        yield code
        return
    before: dict[int, Any] = {signal.SIGTERM: signal.signal(signal.SIGTERM, end)}
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        before[signal.SIGINT] = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield code
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
