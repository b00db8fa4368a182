"""Checkpoints: the numbers of episodes after which a run keeps its curves."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hedgerow.checks import IntArray, type_name, unmasked
from hedgerow.environments.play import Environment
from hedgerow.errors import InvalidInput
from hedgerow.learners.api import Learner
from hedgerow.learners.locking import exclusive_as
from hedgerow.learners.statistics import Statistics
from hedgerow.losses.adaptive import Pursuit
from hedgerow.losses.blocks import ObliviousLosses
from hedgerow.losses.oblivious import Fixed, checked
from hedgerow.model.cmdp import CMDP
from hedgerow.model.identity import same_layout
from hedgerow.model.occupancy import checked_loss
from hedgerow.model.view import View

NUM_MARKS = 200


def checkpoints(episodes: int, count: int = NUM_MARKS) -> IntArray:
    """About `count` log-spaced numbers in 1..episodes; the last one is `episodes`."""
    return np.unique(np.round(np.geomspace(1.0, episodes, count)).astype(np.int64))


def checked_marks(marks: str | ArrayLike, episodes: int) -> IntArray:
    """The checkpoints that `marks` asks for in a run of so many episodes; the last episode is always one."""
    if isinstance(marks, str):
        if marks not in ("log", "all"):
            raise InvalidInput(f"marks is {marks!r}; choose 'log', 'all' or an ascending list of numbers of episodes")
        return checkpoints(episodes) if marks == "log" else np.arange(1, episodes + 1, dtype=np.int64)
    array = np.asarray(marks)
    if array.ndim != 1 or array.dtype.kind not in "iu" or array.size == 0 or np.any(np.diff(array) <= 0):
        raise InvalidInput("marks must be an ascending list of whole numbers of episodes")
    if array[0] < 1 or array[-1] > episodes:
        raise InvalidInput(f"marks must lie in 1..{episodes}, not in {array[0]}..{array[-1]}")
    return np.union1d(array, [episodes]).astype(np.int64)


# --------------------------------------------------------------------------------------------------------------------
# Hold Ctrl-C and SIGTERM back until an episode is over.
#
# An episode is scored, played, learnt and noted, one after the other. An exception of a signal handler between two of
# these would leave scores of an episode that the learner has not seen, or a learner of somebody else that has seen half
# of one: the run could not go on. So handlers written in Python wait for its end. A second signal does not wait: a
# learner of somebody else may never return. Nothing crashes then, but the simulation may have to be begun anew.


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


# --------------------------------------------------------------------------------------------------------------------
# Check the arguments of `simulate`: worlds, adversaries and learners of your own, and arguments that are mixed up.


def environment_of(world: Any) -> CMDP | Environment:
    """The CMDP of a world, or an environment of the user's own."""
    for found in (world, getattr(world, "cmdp", None)):
        if isinstance(found, CMDP):
            return found
    if isinstance(world, type) or not isinstance(world, Environment):
        raise _misplaced(
            "first", "a world: a CMDP, an entry of the catalogue, or what has view() and play()", world, ""
        )
    return world


def learner_of(learner: Any) -> Learner:
    """`learner`, if it can plan and observe."""
    if isinstance(learner, type) or not isinstance(learner, Learner):
        lacks = [name for name in ("view", "plan", "observe") if not hasattr(learner, name)]
        advice = "" if isinstance(learner, type) or len(lacks) == 3 else f"; it has no {' and no '.join(lacks)}"
        raise _misplaced("third", "a learner: what has view, plan() and observe(episode)", learner, advice)
    return learner


def limit_of(learner: Learner) -> int | None:
    """The number of episodes that a learner was made for: its own, or that of the `Statistics` that it keeps."""
    own = getattr(learner, "episodes", None)
    kept = [value.episodes for value in getattr(learner, "__dict__", {}).values() if isinstance(value, Statistics)]
    limits = [limit for limit in (own, *kept) if limit is not None]
    return min(limits, default=None)


def adversary_of(losses: Any, world: Any) -> Any:
    """An adversary whose every loss is in [0, 1]; None stands for the world's own loss."""
    if losses is None:
        losses = getattr(world, "loss", None)
        if losses is None:
            raise _misplaced("second", "the losses, an adversary of hedgerow.losses or an array", None, "")
    if isinstance(losses, type | CMDP | View | Learner) or isinstance(getattr(losses, "cmdp", None), CMDP):
        inside = "; pass its own loss, .loss" if hasattr(losses, "loss") and hasattr(losses, "cmdp") else ""
        raise _misplaced("second", "the losses, an adversary of hedgerow.losses or an array", losses, inside)
    if isinstance(losses, ObliviousLosses | Pursuit):
        return losses
    if isinstance(losses, np.ndarray | list | tuple):
        return Fixed(checked_loss(environment_of(world).view().layout, unmasked("the loss", losses)))
    return checked(losses)


def check_match(view: View, learner: Learner) -> None:
    """Refuse a learner that was built for another world."""
    own = learner.view
    if not isinstance(own, View):
        raise InvalidInput(f"the view of a learner is what cmdp.view() returns, not {type_name(own)}")
    named = same_layout(own.layout, view.layout) and own.constraint_names == view.constraint_names
    if not named or not np.array_equal(own.thresholds, view.thresholds):
        raise InvalidInput("the learner was built for another world: build it on the view() of the one to simulate")


def _misplaced(place: str, expected: str, given: object, advice: str) -> InvalidInput:
    if isinstance(given, type):
        advice = f"; make an object of it, {given.__name__}(...)"
    order = "the order is simulate(world, losses, learner)"
    return InvalidInput(f"the {place} argument of a simulation is {expected}, not {type_name(given)}{advice}; {order}")


def own_turn(learner: Any, function: Callable[[], Any]) -> Any:
    """Call `function` while holding the lock of the learner, if it has one.

    Between episodes the learner is at rest, and an adversary may save it.
    """
    if not hasattr(learner, "turn"):
        return function()
    return exclusive_as("simulate", rests=True)(lambda _: function())(learner)
