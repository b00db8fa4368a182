"""What all oblivious adversaries share: blocks of losses, reproducible draws, and checks of what others wrote.

The loss of episode first + i is patterns[index[i]], a vector over rows with entries in [0, 1].
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import fields
from types import FunctionType
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.random import PCG64, Generator, SeedSequence
from numpy.typing import ArrayLike, NDArray

from hedgerow.checks import (
    LARGEST_COUNT,
    FloatArray,
    IntArray,
    float_array,
    frozen,
    numeric_array,
    whole_number,
    within,
)
from hedgerow.errors import InvalidInput
from hedgerow.losses.adaptive import CheckedAdaptive, checked_episode
from hedgerow.model.layout import Layout
from hedgerow.model.view import Stored, refuse_unexpected
from hedgerow.registry import adversaries as kinds

_OWN_STREAMS = 0x1055
"""Simulations spawn the keys (0,), (1,), ...: with an equal seed, losses must not share a stream with the world."""


class LossBlock(NamedTuple):
    """The losses of consecutive episodes: the i-th one has the loss `patterns[index[i]]`.

    A million episodes that alternate between two losses need two patterns, not a million rows.

    Examples:
        >>> import hedgerow as hr
        >>> import numpy as np
        >>> block = hr.losses.LossBlock(np.array([[0.0, 1.0], [0.5, 0.5]]), np.array([0, 1, 1]))
        >>> block.dense().tolist(), block.total().tolist()
        ([[0.0, 1.0], [0.5, 0.5], [0.5, 0.5]], [1.0, 2.0])
    """

    patterns: FloatArray
    """(p, num_rows): different losses with entries in [0, 1], at most one per episode."""
    index: IntArray  # type: ignore[assignment]  # hides tuple.index, which nobody needs here
    """(count,): the number of the pattern of each episode."""

    def dense(self) -> FloatArray:
        """Return the loss of every episode as one array (count, num_rows)."""
        rows: FloatArray = self.patterns[self.index]
        return rows

    def __repr__(self) -> str:
        from hedgerow.display import text

        parts = text.counted(len(self.index), "episode"), text.counted(len(self.patterns), "pattern")
        return text.line("LossBlock", *parts, text.counted(self.patterns.shape[-1], "row"))

    def total(self) -> FloatArray:
        """Return the sum (num_rows,) over the episodes of the block."""
        times = np.bincount(self.index, minlength=len(self.patterns)).astype(np.float64)
        total: FloatArray = np.einsum("p,pr->r", times, self.patterns)
        return total


class ObliviousLosses(Stored, ABC):
    """The base of adversaries that fix all losses before the first episode and do not look at the learner.

    Such an adversary is a few parameters and a seed. It hands out blocks of episodes in any order and size; an episode
    has the same loss in whichever block it is asked for. Objects never change, and are equal if their parameters are.
    `save` writes one of ours into a data file, which an experiment can name: `[[adversary]] file = "losses.npz"`.

    An adversary of your own need not derive from this class: see `checked`.

    Examples:
        >>> import hedgerow as hr
        >>> losses = hr.losses.Switching(period=5)
        >>> isinstance(losses, hr.losses.ObliviousLosses), losses.kind, losses.params()
        (True, 'switching', {'period': 5, 'patterns': 2, 'seed': 0})
    """

    file_kind: ClassVar[str] = "losses"
    called: ClassVar[str] = "list of losses"
    kind: ClassVar[str]
    stochastic: ClassVar[bool] = False
    """Whether losses are independent draws of one distribution. Promises that assume it are void against others."""

    @abstractmethod
    def _block(self, layout: Layout, first: int, count: int) -> LossBlock:
        """`block` after its arguments have been checked."""

    def block(self, layout: Layout, first: int, count: int) -> LossBlock:
        """Return the losses of consecutive episodes.

        Args:
            layout: The layout of the world.
            first: The first episode, counted from 0.
            count: How many episodes, at least 1.

        Returns:
            The losses of the episodes first to first + count - 1.
        """
        first, count = whole_number("the first episode", first, 0), whole_number("the number of episodes", count, 1)
        if first + count > LARGEST_COUNT:
            raise InvalidInput(f"episode {first + count - 1} is too late; episodes are numbered below 2**53")
        block = self._block(layout, first, count)
        for array in block:
            array.setflags(write=False)
        return block

    def mean(self, layout: Layout, episodes: int) -> FloatArray:
        """Return the mean loss (num_rows,) of the first `episodes` episodes on `layout`; bar l in the paper."""
        episodes = whole_number("the number of episodes", episodes, 1)
        step = max(1, 2**20 // layout.num_rows)
        total = np.zeros(layout.num_rows)
        for first in range(0, episodes, step):
            total += self.block(layout, first, min(step, episodes - first)).total()
        return np.clip(total / episodes, 0.0, 1.0)

    def params(self) -> dict[str, Any]:
        """Return the constructor's arguments by name: numbers, text and arrays."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self) if entry.init}  # type: ignore[arg-type]

    def _content(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        if kinds.name_of(type(self)) not in kinds.builtin:
            raise InvalidInput(f"{type(self).__name__} is not one of hedgerow's own adversaries, so it has no file")
        given = {name: value for name, value in self.params().items() if value is not None}
        arrays = {name: value for name, value in given.items() if isinstance(value, np.ndarray)}
        return {"kind": self.kind, "params": {name: given[name] for name in given if name not in arrays}}, arrays

    @classmethod
    def _from_content(cls, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        refuse_unexpected("metadata", meta, ("kind", "params"))
        if meta["kind"] not in kinds.builtin:
            raise InvalidInput(f"there are no losses of the kind {meta['kind']!r}")
        made = kinds.find(meta["kind"])(**meta["params"], **arrays)
        if not isinstance(made, cls):
            raise InvalidInput(f"it holds {meta['kind']} losses")
        return made

    def __repr__(self) -> str:
        from hedgerow.display import text

        parts = (f"{name}={_brief(value)}" for name, value in self.params().items() if value is not None)
        return text.line(type(self).__name__, *parts)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        mine, theirs = self.params(), other.params()
        return all(np.array_equal(mine[name], theirs[name]) for name in mine)

    def __hash__(self) -> int:
        return hash(
            (self.kind, *(np.asarray(value).tobytes() for value in self.params().values() if value is not None))
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), self.params())

    def _set(self, **values: object) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)


def _brief(value: Any) -> str:
    """A parameter in a few words: an array by its shape."""
    from hedgerow.display import text

    if isinstance(value, np.ndarray):
        return f"array{value.shape}" if value.ndim > 1 else f"array({len(value)})"
    return text.quoted(value) if isinstance(value, str) else repr(value)


def _rebuilt(cls: type[ObliviousLosses], params: Mapping[str, Any]) -> ObliviousLosses:
    return cls(**params)


class CheckedBlocks:
    """Losses of an adversary of your own, checked block by block; `hr.losses.checked` makes one.

    Args:
        source: A function (layout, first, count) that returns a `LossBlock` or an array (count, num_rows).

    Examples:
        >>> import hedgerow as hr
        >>> losses = hr.losses.checked(lambda layout, first, count: [[0.5] * layout.num_rows] * count)
        >>> losses.block(hr.Layout((1, 1), num_actions=2), first=0, count=3).dense().tolist()
        [[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]]
    """

    def __init__(self, source: Callable[[Layout, int, int], LossBlock | ArrayLike]) -> None:
        self._source = source

    @property
    def adversary(self) -> Any:
        """The object whose losses these are, or the function."""
        return getattr(self._source, "__self__", self._source)

    def __repr__(self) -> str:
        from hedgerow.display import text

        of = self.adversary
        return text.line("checked", of.__name__ if isinstance(of, FunctionType) else repr(of))

    def block(self, layout: Layout, first: int, count: int) -> LossBlock:
        """Ask for the losses of consecutive episodes and check them.

        Args:
            layout: The layout of the world.
            first: The first episode, counted from 0.
            count: How many episodes.

        Returns:
            The block, as a copy.

        Raises:
            InvalidInput: If a shape is wrong, or if a loss is not in [0, 1].
        """
        answer = self._source(layout, first, count)
        if isinstance(answer, LossBlock):
            return checked_block(layout, first, count, answer)
        dense = numeric_array(f"the losses of episodes {first} to {first + count - 1}", answer)
        if dense.ndim == 0 or len(dense) != count:
            raise InvalidInput(f"{count} episodes from {first} on were asked for; the answer has shape {dense.shape}")
        return checked_block(layout, first, count, one_pattern_each(dense))


def is_stochastic(adversary: Any) -> bool:
    """Whether an adversary says by `stochastic = True` that its losses are independent draws of one distribution."""
    return getattr(_unwrapped(adversary), "stochastic", False) is True


def known_as(adversary: Any) -> str:
    """What to call an adversary: its kind, or the name of its class or function."""
    own = _unwrapped(adversary)
    kind = getattr(own, "kind", None)
    return kind if isinstance(kind, str) else str(getattr(own, "__name__", type(own).__name__))


def _unwrapped(adversary: Any) -> Any:
    while isinstance(adversary, CheckedBlocks | CheckedAdaptive):
        adversary = adversary.adversary
    return adversary


def checked_block(layout: Layout, first: int, count: int, block: LossBlock) -> LossBlock:
    """`block` if it holds `count` losses for `layout` in [0, 1], as a copy; episodes are named from `first` on."""
    patterns, index = numeric_array(f"the block from episode {first} on", block.patterns), np.asarray(block.index)
    if patterns.ndim == 0 or index.shape != (count,) or index.dtype.kind not in "iu":
        raise InvalidInput(f"the block from episode {first} on needs patterns (p, rows) and {count} whole numbers")
    wrong = np.flatnonzero((index < 0) | (index >= len(patterns)))
    if len(wrong):
        episode = first + int(wrong[0])
        raise InvalidInput(f"episode {episode} names pattern {index[wrong[0]]}; there are {len(patterns)} patterns")
    # One look at the table; only if something is wrong, episode after episode for the place. NaN fails `>=` too.
    if patterns.shape[1:] != (layout.num_rows,) or not np.all((patterns >= 0.0) & (patterns <= 1.0)):
        for i in range(count):
            checked_episode(layout, first + i, patterns[index[i]])
        raise InvalidInput(f"the block from episode {first} on has a pattern outside [0, 1] that no episode uses")
    return LossBlock(frozen(patterns), frozen(index.astype(np.int64)))


# Draws and tables -----------------------------------------------------------------------------------------------------


def loss_stream(seed: int, *key: int) -> Generator:
    """A stream for whatever is drawn once; the key 1 belongs to `uniform_draws`."""
    return Generator(PCG64(SeedSequence(seed, spawn_key=(_OWN_STREAMS, *key))))


def uniform_draws(seed: int, rows: int, first: int, count: int) -> FloatArray:
    """(count, rows) uniform draws. Episode t owns the draws t * rows, ..., (t + 1) * rows - 1 of one long stream.

    So any episode is at hand: a draw takes exactly one step of PCG64, whose `advance` jumps over any number of them.
    """
    bits = PCG64(SeedSequence(seed, spawn_key=(_OWN_STREAMS, 1)))
    bits.advance(first * rows)
    return Generator(bits).random((count, rows))


def one_pattern_each(losses: FloatArray) -> LossBlock:
    return LossBlock(losses, np.arange(len(losses), dtype=np.int64))


def from_table(table: FloatArray, index: NDArray[np.int64]) -> LossBlock:
    """The whole table if the block is longer than it is, else the part that the block uses."""
    if len(table) <= len(index):
        return LossBlock(table, index)
    used, compressed = np.unique(index, return_inverse=True)
    return LossBlock(table[used], compressed.astype(np.int64))


def unit_array(what: str, value: ArrayLike, axes: int) -> FloatArray:
    array = numeric_array(what, value)
    if array.ndim != axes or not array.size:
        shape = "(rows,)" if axes == 1 else "(patterns, rows)"
        raise InvalidInput(f"{what} must have shape {shape} and at least one entry, not {array.shape}")
    return within(what, float_array(what, array, array.shape), 0.0, 1.0)


def check_rows(layout: Layout, array: FloatArray) -> FloatArray:
    if array.shape[-1] != layout.num_rows:
        raise InvalidInput(f"losses are given for {array.shape[-1]} rows; the layout has {layout.num_rows}")
    return array
