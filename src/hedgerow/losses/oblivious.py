"""Losses: oblivious adversaries, which fix every loss before the first episode (adaptive ones: `adaptive.py`).

An adversary is a function (t, x, a) -> loss_t(x, a) in [0, 1], t = 0, 1, ..., given by a few parameters and a seed. It
hands out blocks of episodes, in any order and any size, and an episode has the same loss, bit for bit, in whichever
block it is asked for. A block is a table of patterns (p, rows) and an index (count,) into it, so that a million
episodes that alternate between two patterns need no array of a million rows.

    >>> layout = Layout((1, 1), num_actions=2)
    >>> losses = Switching(period=2, patterns=[[0.0, 1.0], [1.0, 0.0]])
    >>> block = losses.block(layout, first=1, count=4)
    >>> block.index.tolist(), block.total().tolist()
    ([0, 1, 1, 0], [2.0, 2.0])
    >>> losses.block(layout, first=3, count=1).dense().tolist()
    [[1.0, 0.0]]
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import floor
from typing import Any, ClassVar

import numpy as np

from hedgerow.checks import (
    FloatArray,
    IntArray,
    did_you_mean,
    frozen,
    num_episodes,
    real_number,
    seed_number,
    short_repr,
    whole_number,
)
from hedgerow.errors import InvalidInput
from hedgerow.losses.adaptive import AdaptiveLosses, CheckedAdaptive, Pursuit
from hedgerow.losses.blocks import (
    CheckedBlocks,
    LossBlock,
    ObliviousLosses,
    check_rows,
    from_table,
    loss_stream,
    one_pattern_each,
    uniform_draws,
    unit_array,
)
from hedgerow.model.layout import Layout
from hedgerow.registry import adversaries as kinds


@dataclass(frozen=True, eq=False, repr=False)
class Fixed(ObliviousLosses):
    """The same loss in every episode.

    Examples:
        >>> import hedgerow as hr
        >>> hr.losses.Fixed([[0.25, 1.0]]).loss.tolist()
        [0.25, 1.0]
    """

    kind: ClassVar[str] = "fixed"
    stochastic: ClassVar[bool] = True
    loss: FloatArray
    """(num_rows,) losses in [0, 1], one for each pair of state and action, or a table (states, actions)."""

    def __post_init__(self) -> None:
        loss = unit_array("the loss", self.loss, 2 if np.ndim(self.loss) == 2 else 1)
        self._set(loss=frozen(loss.ravel()))

    def _block(self, layout: Layout, first: int, count: int) -> LossBlock:
        check_rows(layout, self.loss)
        return LossBlock(self.loss[np.newaxis], np.zeros(count, dtype=np.int64))


@dataclass(frozen=True, eq=False, repr=False)
class IID(ObliviousLosses):
    """Independent losses around a mean: every episode draws a new loss for each pair of state and action.

    Examples:
        >>> import hedgerow as hr
        >>> losses = hr.losses.IID(seed=1, means=[0.0, 1.0])
        >>> losses.block(hr.Layout((1, 1), num_actions=2), first=0, count=2).dense().tolist()
        [[0.0, 1.0], [0.0, 1.0]]
    """

    kind: ClassVar[str] = "iid"
    stochastic: ClassVar[bool] = True
    seed: int = 0
    """Seed of the draws, a whole number of at least 0. Equal seeds give equal losses."""
    means: FloatArray | None = None
    """(num_rows,) mean losses in [0, 1]; None draws them uniformly from [0, 1] by the seed."""
    noise: str = "bernoulli"
    """How losses are drawn: "bernoulli" draws 1 with probability mean, else 0; "uniform" draws from the widest
    interval around the mean that stays in [0, 1]."""

    def __post_init__(self) -> None:
        means = None if self.means is None else unit_array("the mean loss", self.means, 1)
        self._set(seed=seed_number(self.seed), means=means)
        if self.noise not in ("bernoulli", "uniform"):
            raise InvalidInput(f"unknown noise {self.noise!r}; known: bernoulli, uniform")

    def means_on(self, layout: Layout) -> FloatArray:
        """Return the mean losses (num_rows,) on `layout`."""
        if self.means is None:
            return loss_stream(self.seed, 0).random(layout.num_rows)
        return check_rows(layout, self.means)

    def _block(self, layout: Layout, first: int, count: int) -> LossBlock:
        means = self.means_on(layout)
        draws = uniform_draws(self.seed, layout.num_rows, first, count)
        if self.noise == "bernoulli":
            return one_pattern_each((draws < means).astype(np.float64))
        return one_pattern_each(np.clip(means + (2.0 * draws - 1.0) * np.minimum(means, 1.0 - means), 0.0, 1.0))


@dataclass(frozen=True, eq=False, repr=False)
class Switching(ObliviousLosses):
    """A few losses that take turns, each for `period` episodes, and then from the start again.

    Drawn patterns come in pairs. The first gives loss 0 to a random half of every state's actions and 1 to the others,
    the second is its opposite. Every fixed policy therefore loses L/2 on average over a pair, while each pattern alone
    has a policy without loss if there are two or more actions.

    Examples:
        >>> import hedgerow as hr
        >>> losses = hr.losses.Switching(period=2, patterns=[[0.0, 1.0], [1.0, 0.0]])
        >>> losses.block(hr.Layout((1, 1), num_actions=2), first=1, count=3).dense().tolist()
        [[0.0, 1.0], [1.0, 0.0], [1.0, 0.0]]
    """

    kind: ClassVar[str] = "switching"
    period: int
    """Number of episodes before the next pattern, at least 1."""
    patterns: int | FloatArray = 2
    """(p, num_rows) losses in [0, 1], or how many patterns to draw by the seed, at least 2."""
    seed: int = 0
    """Seed of drawn patterns, a whole number of at least 0."""

    def __post_init__(self) -> None:
        patterns = self.patterns
        if isinstance(patterns, int | np.integer):
            patterns = whole_number("the number of patterns", patterns, 2)
        else:
            patterns = unit_array("the patterns", patterns, 2)
        self._set(period=whole_number("the period", self.period, 1), patterns=patterns, seed=seed_number(self.seed))

    def _block(self, layout: Layout, first: int, count: int) -> LossBlock:
        given = self.patterns
        number = given if isinstance(given, int) else len(given)
        turn = (np.arange(first, first + count) // self.period) % number
        if not isinstance(given, int):
            return from_table(check_rows(layout, given), turn)
        used, index = np.unique(turn, return_inverse=True)
        table = np.stack([_drawn_pattern(self.seed, int(j), layout) for j in used])
        return LossBlock(table, index.astype(np.int64))


@dataclass(frozen=True, eq=False, repr=False)
class Drifting(ObliviousLosses):
    """Losses that drift: every entry moves evenly from a high value to a low one and back.

    The low value in [0, 1/2], the high value in [1/2, 1] and the starting point of each entry are drawn by the seed.

    Examples:
        >>> import hedgerow as hr
        >>> losses, layout = hr.losses.Drifting(period=100), hr.Layout((1, 1), num_actions=2)
        >>> first, later = losses.block(layout, 0, 1).dense(), losses.block(layout, 100, 1).dense()
        >>> bool((first == later).all())
        True
    """

    kind: ClassVar[str] = "drifting"
    period: int
    """Number of episodes until the losses are back where they began, at least 2."""
    seed: int = 0
    """Seed of the draws, a whole number of at least 0."""

    def __post_init__(self) -> None:
        self._set(period=whole_number("the period", self.period, 2), seed=seed_number(self.seed))

    def _block(self, layout: Layout, first: int, count: int) -> LossBlock:
        low, high, phase = loss_stream(self.seed, 0).random((3, layout.num_rows)) * [[0.5], [-0.5], [1.0]]
        high += 1.0
        time = (np.arange(first, first + count) % self.period) / self.period
        # A triangle wave rather than a sine: sums and products round the same everywhere, a sine may not.
        wave = np.abs(2.0 * ((time[:, np.newaxis] + phase) % 1.0) - 1.0)
        return one_pattern_each(np.clip(low + (high - low) * wave, 0.0, 1.0))


@dataclass(frozen=True, eq=False, repr=False)
class Replay(ObliviousLosses):
    """Recorded losses, played back one per episode.

    Asking for an episode beyond the table raises `InvalidInput`, unless `cycle` is True.

    Examples:
        >>> import hedgerow as hr
        >>> losses = hr.losses.Replay([[0.0, 1.0], [0.5, 0.5]], cycle=True)
        >>> losses.block(hr.Layout((1, 1), num_actions=2), first=1, count=2).dense().tolist()
        [[0.5, 0.5], [0.0, 1.0]]
    """

    kind: ClassVar[str] = "replay"
    table: FloatArray
    """(episodes, num_rows) losses in [0, 1]: row t is the loss of episode t, counted from 0."""
    cycle: bool = False
    """Whether to start over after the last row."""

    def __post_init__(self) -> None:
        self._set(table=unit_array("the table of losses", self.table, 2))
        if not isinstance(self.cycle, bool):
            raise InvalidInput(f"cycle must be True or False, not {self.cycle!r}")

    def _block(self, layout: Layout, first: int, count: int) -> LossBlock:
        table, last = check_rows(layout, self.table), first + count - 1
        if last >= len(table) and not self.cycle:
            raise InvalidInput(
                f"episode {last} was not recorded: the table holds {len(table)}, numbered from 0; "
                "ask for fewer or pass cycle=True"
            )
        return from_table(table, np.arange(first, last + 1) % len(table))


def _drawn_pattern(seed: int, number: int, layout: Layout) -> FloatArray:
    """Pattern `number` (rows,): half of each state's actions 0, the others 1; the odd ones are complements."""
    draws = loss_stream(seed, 2, number // 2).random((layout.num_decision_states, layout.num_actions))
    rank = draws.argsort(axis=1).argsort(axis=1)
    pattern = (rank >= layout.num_actions // 2).astype(np.float64).ravel()
    return 1.0 - pattern if number % 2 else pattern


register, names, find, describe = kinds.register, kinds.names, kinds.find, kinds.describe


def from_params(kind: str, params: Mapping[str, Any]) -> ObliviousLosses | Pursuit:
    """Make one of hedgerow's own adversaries from its name and its parameters.

    It undoes `adversary.kind` and `adversary.params()`, for instance after reading them from a file.

    Args:
        kind: The name, such as "switching"; `hr.losses.names()` lists all of them.
        params: The constructor's arguments by name.

    Returns:
        The adversary.

    Raises:
        InvalidInput: If the name is unknown, or if the parameters do not fit.

    Examples:
        >>> import hedgerow as hr
        >>> hr.losses.from_params("switching", {"period": 10})
        Switching(period=10, patterns=2, seed=0)
    """
    if not isinstance(kind, str) or kind not in kinds.builtin:
        raise InvalidInput(f"unknown losses {short_repr(kind)}{did_you_mean(str(kind), kinds.builtin)}")
    if not isinstance(params, Mapping):
        raise InvalidInput(f"the parameters of {kind} losses must be a mapping from names to values, not {params!r}")
    try:
        made: ObliviousLosses | Pursuit = kinds.find(kind)(**params)
    except TypeError as error:
        raise InvalidInput(f"{kind} losses cannot be made of {list(params)}: {error}") from error
    return made


def checked(source: Any) -> CheckedBlocks | CheckedAdaptive:
    """Wrap an adversary of your own, to refuse losses that are not numbers in [0, 1].

    `simulate` does this by itself. Errors name the episode and the pair of state and action.

    Args:
        source: An adaptive adversary (with `start`, `loss` and `observe`, see `AdaptiveLosses`), or an object with a
            method `block(layout, first, count)`, or such a function. A block is a `LossBlock` or an array (count,
            num_rows).

    Returns:
        The same adversary with checks.

    Raises:
        InvalidInput: If `source` is none of these.

    Examples:
        >>> import hedgerow as hr
        >>> import numpy as np
        >>> def too_large(layout, first, count):
        ...     return np.full((count, layout.num_rows), 1.5)
        >>> try:
        ...     hr.losses.checked(too_large).block(hr.Layout((1, 1), num_actions=2), first=7, count=1)
        ... except hr.errors.InvalidInput as error:
        ...     print(str(error).partition(";")[0])
        the loss of episode 7 is 1.5 at layer 0, state 0, action 0
    """
    if isinstance(source, AdaptiveLosses):
        return CheckedAdaptive(source)
    function = getattr(source, "block", source)
    if not callable(function):
        raise InvalidInput(
            f"{type(source).__name__} is no adversary: it needs start, loss and observe, or block(layout, first, count)"
        )
    return CheckedBlocks(function)


# --------------------------------------------------------------------------------------------------------------------
# Losses that are hard for whole families of learners, in any world: they look at the number of an action alone.
#
# With t = 0, 1, ... the episode, T the number of episodes and a = 0, 1, ... the action, in every state
#
#     cycle      l_t(a) = 1 if a = t mod |A|, else 0
#     betrayal   l_t(0) = v,     l_t(1) = 0 for t < uT, then 1,    l_t(a) = 1 for a >= 2      (u = 1/2, v = 1/5)
#     hidden     l_t(0) = 1/2,   l_t(1) = 1 for t < uT, then 0,    l_t(a) = 1 for a >= 2      (u = 1/4)
#
# `cycle` beats optimism without chance: whoever plays the action of the least lower bound (mean minus radius, ties to
# the lowest number) in a world of one step meets the loss 1 in every episode, while every action has the mean 1/|A|.
# The regret is T (1 - 1/|A|) exactly. Bounds that are clipped at 0 tie at first, which saves the episodes until they
# do not.
#
#     >>> layout = Layout((1, 1), num_actions=2)
#     >>> Betrayal(episodes=4).block(layout, first=1, count=2).dense().tolist()
#     [[0.2, 0.0], [0.2, 1.0]]


@dataclass(frozen=True, eq=False, repr=False)
class Cycle(ObliviousLosses):
    """The losing action moves on: in episode t the action t mod |A| has loss 1, all others 0.

    Every fixed action has the same mean loss. A learner without chance in its choices can lose in every episode. One
    that draws its actions, as SV-OPS does, hardly feels it.

    Examples:
        >>> import hedgerow as hr
        >>> hr.losses.Cycle().block(hr.Layout((1, 1), num_actions=2), first=0, count=3).dense().tolist()
        [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
    """

    kind: ClassVar[str] = "cycle"

    def _block(self, layout: Layout, first: int, count: int) -> LossBlock:
        patterns = np.tile(np.eye(layout.num_actions), layout.num_decision_states)
        return from_table(patterns, np.arange(first, first + count) % layout.num_actions)


@dataclass(frozen=True, eq=False, repr=False)
class Betrayal(ObliviousLosses):
    """Loss 0 in the first half of the run, 1 in the second: averages of past losses mislead.

    Action 0 has the loss `safe_loss` throughout. Action 1 has 0 before the turn and 1 after it. Further actions have 1.
    It breaks primal-dual learners that add up means, and learners that explore first and then commit.

    Examples:
        >>> import hedgerow as hr
        >>> losses = hr.losses.Betrayal(episodes=4)
        >>> losses.block(hr.Layout((1, 1), num_actions=3), first=1, count=2).dense().tolist()
        [[0.2, 0.0, 1.0], [0.2, 1.0, 1.0]]
    """

    kind: ClassVar[str] = "betrayal"
    episodes: int
    """The number T of episodes of the run, at least 1. An experiment fills it in."""
    turn: float = 0.5
    """When action 1 turns bad, in [0, 1]: after turn * episodes of them, rounded."""
    safe_loss: float = 0.2
    """The loss of action 0, in [0, 1]."""

    def __post_init__(self) -> None:
        turn, safe = real_number("turn", self.turn, 0.0, 1.0), real_number("safe_loss", self.safe_loss, 0.0, 1.0)
        self._set(episodes=num_episodes(self.episodes), turn=turn, safe_loss=safe)

    def _block(self, layout: Layout, first: int, count: int) -> LossBlock:
        patterns = by_action(layout, [[self.safe_loss, 0.0], [self.safe_loss, 1.0]])
        return from_table(patterns, turned(self.turn, self.episodes, first, count))


@dataclass(frozen=True, eq=False, repr=False)
class Hidden(ObliviousLosses):
    """Loss 1 in the first quarter of the run, then 0: learners that abandoned the action lose.

    Action 0 has the loss 1/2 throughout. Action 1 has 1 before the turn and 0 after it. Further actions have 1. It
    breaks primal-dual learners that add up means.

    Examples:
        >>> import hedgerow as hr
        >>> losses = hr.losses.Hidden(episodes=4)
        >>> losses.block(hr.Layout((1, 1), num_actions=3), first=0, count=2).dense().tolist()
        [[0.5, 1.0, 1.0], [0.5, 0.0, 1.0]]
    """

    kind: ClassVar[str] = "hidden"
    episodes: int
    """The number T of episodes of the run, at least 1. An experiment fills it in."""
    turn: float = 0.25
    """When action 1 turns good, in [0, 1]: after turn * episodes of them, rounded."""

    def __post_init__(self) -> None:
        self._set(episodes=num_episodes(self.episodes), turn=real_number("turn", self.turn, 0.0, 1.0))

    def _block(self, layout: Layout, first: int, count: int) -> LossBlock:
        return from_table(by_action(layout, [[0.5, 1.0], [0.5, 0.0]]), turned(self.turn, self.episodes, first, count))


def by_action(layout: Layout, losses: list[list[float]]) -> FloatArray:
    """(patterns, num_rows): the losses of the first actions, 1 for further ones, in every state."""
    table = np.ones((len(losses), layout.num_actions))
    known = min(len(losses[0]), layout.num_actions)
    table[:, :known] = np.asarray(losses)[:, :known]
    return np.tile(table, layout.num_decision_states)


def turned(turn: float, episodes: int, first: int, count: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """(count,): 0 before the turn, 1 from it on. A half is rounded up: T/4 of 10 episodes are 3."""
    start = floor(turn * episodes + 0.5)
    return (np.arange(first, first + count) >= start).astype(np.int64)


# --------------------------------------------------------------------------------------------------------------------
# A random walk of every loss in [0, 1], with any episode at hand.
#
# loss_t = fold(z_0 + d_1 + ... + d_t) with d_s uniform in [-step, step] and fold(z) the distance from z to the nearest
# even number: folding a free walk with symmetric steps gives the walk that is reflected at 0 and 1.
#
#     >>> losses = RandomWalk(step=0.05, seed=3)
#     >>> layout = Layout((1, 1), num_actions=4)
#     >>> late, early = losses.block(layout, 5_000, 1).dense(), losses.block(layout, 0, 5_001).dense()
#     >>> bool((late[0] == early[5_000]).all())
#     True


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
