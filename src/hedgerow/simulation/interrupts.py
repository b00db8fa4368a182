"""Hold Ctrl-C and SIGTERM back until an episode is over.

An episode is scored, played, learnt and noted, one after the other. An exception of a signal handler between two of
these would leave scores of an episode that the learner has not seen, or a learner of somebody else that has seen half
of one: the run could not go on. So handlers written in Python wait for its end. A second signal does not wait: a
learner of somebody else may never return. Nothing crashes then, but the simulation may have to be begun anew.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def held_back() -> Iterator[Callable[[], None]]:
    """Hold signals back; the function that it yields lets those through that have come, and is cheap if none has."""
    if threading.current_thread() is not threading.main_thread():  # handlers only run in the main thread
        yield lambda: None
        return
    handlers: dict[int, Any] = {number: signal.getsignal(number) for number in SIGNALS}
    handlers = {number: handler for number, handler in handlers.items() if callable(handler)}
    held: list[tuple[int, FrameType | None]] = []

    def hold(number: int, frame: FrameType | None) -> None:
        if held:
            handlers[number](number, frame)
        held.append((number, frame))

    def let_through() -> None:
        while held:
            number, frame = held.pop(0)
            handlers[number](number, frame)

    for number in handlers:
        signal.signal(number, hold)
    try:
        yield let_through
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        let_through()
