"""The lock of a learner: one operation at a time.

Compiled code works on the arrays of a learner while other threads run. Two calls at once would read torn numbers and
write beyond the ends of arrays, so every operation first takes the lock, its turn. No call waits: one that finds
another at work is refused and changes nothing. Each learner has its own lock.

A simulation holds it from its first episode to its last. Between its steps the learner is at *rest*: a call of the
simulating thread, such as `save` from an adversary, then finds whole episodes and is allowed. Inside any other
operation no call is allowed, not even from a signal handler of the same thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from threading import get_ident
from typing import Any, TypeVar, cast

from hedgerow.errors import BusyError

F = TypeVar("F", bound=Callable[..., Any])

NOW = 0
"""The one key of a `Turn`."""


class Work:
    """One operation on a learner: its name, its thread, and whether it leaves the learner at rest meanwhile."""

    __slots__ = ("rests", "thread", "what")

    def __init__(self, what: str, thread: int, rests: bool) -> None:
        self.what, self.thread, self.rests = what, thread, rests


Turn = dict[int, Work]
"""The operation that is at work on one learner: at most one entry. It belongs to that learner and is never copied."""


def exclusive_as(what: str, *, rests: bool = False) -> Callable[[F], F]:
    """Decorate a function whose first argument is a learner: it becomes the operation `what` and takes its turn."""

    def decorate(function: F) -> F:
        @wraps(function)
        def operation(learner: Any, *args: Any, **kwargs: Any) -> Any:
            turn: Turn = learner.turn
            mine, outer, refused = Work(what, get_ident(), rests), None, False
            try:
                owner = turn.setdefault(NOW, mine)  # atomic: no other thread comes between
                if owner is not mine:
                    if not owner.rests or owner.thread != mine.thread:
                        refused = True
                        raise BusyError(_in_words(owner, mine))
                    outer = owner
                    turn[NOW] = mine
                return function(learner, *args, **kwargs)
            finally:
                # No call from here on: Ctrl-C is handled before or after, never between.
                if not refused and NOW in turn and turn[NOW] is mine:
                    if outer is None:
                        del turn[NOW]
                    else:
                        turn[NOW] = outer

        return cast(F, operation)

    return decorate


def exclusive(method: F) -> F:
    """A method of a learner that takes its turn under its own name."""
    return exclusive_as(method.__name__)(method)


def _in_words(owner: Work, refused: Work) -> str:
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    where = "this thread" if owner.thread == refused.thread else f"thread {names.get(owner.thread, '?')!r}"
    return (
        f"{refused.what} is refused: {owner.what} is already using this learner in {where}; "
        "call again when it has ended, or give each thread a learner of its own, such as copy.copy(learner)"
    )
