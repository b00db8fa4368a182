"""Checkpoints: the numbers of episodes after which a run keeps its curves."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hedgerow.checks import IntArray
from hedgerow.errors import InvalidInput

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
