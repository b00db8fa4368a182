"""A random walk of every loss in [0, 1], with any episode at hand.

loss_t = fold(z_0 + d_1 + ... + d_t) with d_s uniform in [-step, step] and fold(z) the distance from z to the nearest
even number: folding a free walk with symmetric steps gives the walk that is reflected at 0 and 1.

    >>> losses = RandomWalk(step=0.05, seed=3)
    >>> layout = Layout((1, 1), num_actions=4)
    >>> late, early = losses.block(layout, 5_000, 1).dense(), losses.block(layout, 0, 5_001).dense()
    >>> bool((late[0] == early[5_000]).all())
    True
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from hedgerow.adversaries.loss_blocks import LossBlock, ObliviousLosses, one_pattern_each, uniform_draws
from hedgerow.checks import IntArray, real_number, seed_number
from hedgerow.model.layout import Layout


@dataclass(frozen=True, eq=False, repr=False)
class RandomWalk(ObliviousLosses):
    """Losses that walk at random: each entry moves by a small random step and is reflected at 0 and 1.

    Every entry starts anywhere in [0, 1]. Any episode can be asked for at once: the walk is summed in whole multiples
    of 2**-40, which is exact, so the result does not depend on what was asked for before.

    Examples:
        >>> import hedgerow as hr
        >>> losses, layout = hr.losses.RandomWalk(step=0.05, seed=3), hr.Layout((1, 1), num_actions=4)
        >>> two = losses.block(layout, first=5_000, count=2).dense()
        >>> bool((abs(two[1] - two[0]) <= 0.05).all())
        True
    """

    kind: ClassVar[str] = "random-walk"
    step: float
    """The longest step, from 1e-9 to 1. Steps are uniform in [-step, step]."""
    seed: int = 0
    """Seed of the draws, a whole number of at least 0."""
    _positions: dict[int, _Positions] = field(init=False, repr=False, default_factory=dict)
    _lock: threading.Lock = field(init=False, repr=False, default_factory=threading.Lock)

    _ONE: ClassVar[int] = 2**40

    def __post_init__(self) -> None:
        self._set(step=real_number("the step", self.step, 1e-9, 1.0), seed=seed_number(self.seed))

    def _block(self, layout: Layout, first: int, count: int) -> LossBlock:
        rows = layout.num_rows
        with self._lock:
            positions = self._positions.setdefault(rows, _Positions(rows))
            free = positions.before(first, lambda start, length: self._moves(rows, start, length))
            walk = np.cumsum(self._moves(rows, first, count), axis=0)
            walk += free
            positions.latest = first + count, walk[-1] % (2 * self._ONE)
        walk %= 2 * self._ONE
        return one_pattern_each(np.minimum(walk, 2 * self._ONE - walk) / self._ONE)

    def _moves(self, rows: int, first: int, count: int) -> IntArray:
        """(count, rows): how far the walk moves into each episode; into episode 0, its starting point."""
        draws = uniform_draws(self.seed, rows, first, count)
        moves = np.rint((2.0 * draws - 1.0) * (self.step * self._ONE))
        if first == 0:
            moves[0] = np.rint(draws[0] * self._ONE)
        return moves.astype(np.int64)


class _Positions:
    """Where a walk stood at some episodes: at even distances, fewer and farther apart as the run gets longer."""

    def __init__(self, rows: int, distance: int = 1024, most: int = 256) -> None:
        self.distance, self.most = distance, most
        self.anchors: list[IntArray] = [np.zeros(rows, dtype=np.int64)]
        self.latest: tuple[int, IntArray] = (0, self.anchors[0])
        """The end of the block asked for last: the next one usually begins there."""
        self.piece = max(1, 2**18 // rows)

    def before(self, first: int, moves: Callable[[int, int], IntArray]) -> IntArray:
        """(rows,): the sum of the moves of all episodes before `first`."""
        known = min(first // self.distance, len(self.anchors) - 1)
        at, total = known * self.distance, self.anchors[known]
        if at < self.latest[0] <= first:
            at, total = self.latest
        while at < first:
            stop = min(first, at + self.piece, (at // self.distance + 1) * self.distance)
            total = (total + moves(at, stop - at).sum(axis=0)) % (2 * RandomWalk._ONE)
            at = stop
            if at == len(self.anchors) * self.distance:
                self._remember(total)
        return total

    def _remember(self, total: IntArray) -> None:
        self.anchors.append(total)
        if len(self.anchors) > self.most:
            self.anchors, self.distance = self.anchors[::2], 2 * self.distance
