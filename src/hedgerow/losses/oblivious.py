"""Losses: oblivious adversaries, which fix every loss before the first episode (adaptive ones: `adaptive.py`).

An adversary is a function (t, x, a) -> loss_t(x, a) in [0, 1], t = 0, 1, ..., given by a few parameters and a seed. It
hands out blocks of episodes, in any order and any size, and an episode has the same loss, bit for bit, in whichever
block it is asked for. A block is a table of patterns (p, rows) and an index (count,) into it, so that a million
episodes that alternate between two patterns need no array of a million rows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import InitVar, dataclass, field
from math import floor
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

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
from hedgerow.model.cmdp import CMDP
from hedgerow.model.layout import Layout
from hedgerow.model.occupancy import backward_induction
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
    period: int = 1000
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
    period: int = 1000
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


# Losses that are hard for whole families of learners ------------------------------------------------------------------
#
# In any world they look at the number of an action alone. With t = 0, 1, ... the episode, T the number of episodes and
# a = 0, 1, ... the action, in every state
#
#     cycle      l_t(a) = 1 if a = t mod |A|, else 0
#     betrayal   l_t(0) = v,     l_t(1) = 0 for t < uT, then 1,    l_t(a) = 1 for a >= 2      (u = 1/2, v = 1/5)
#     hidden     l_t(0) = 1/2,   l_t(1) = 1 for t < uT, then 0,    l_t(a) = 1 for a >= 2      (u = 1/4)
#
# `cycle` beats optimism without chance: a learner that plays the action of the least lower bound (mean minus radius,
# ties to the lowest number) in a world of one step meets the loss 1 in every episode, while every action has the mean
# 1/|A|. The regret is T (1 - 1/|A|) exactly. Bounds that are clipped at 0 tie at first, which saves the episodes until
# they do not.


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


@dataclass(frozen=True, eq=False, repr=False)
class RandomWalk(ObliviousLosses):
    """Losses that walk at random: each entry moves by a small random step and is reflected at 0 and 1.

    Every entry starts anywhere in [0, 1]. Any episode can be asked for at once: the walk is summed in whole multiples
    of 2**-40, which is exact, so the result does not depend on what was asked for before. In formulas, loss_t =
    fold(z_0 + d_1 + ... + d_t) with d_s uniform in [-step, step] and fold(z) the distance from z to the nearest even
    number: folding a free walk with symmetric steps gives the walk that is reflected at 0 and 1.

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


# Losses made for one world: they keep one array over the rows of it ---------------------------------------------------


TOL_VIOLATING = 1e-9
"""A pair that passes its share of the slack by less does so by rounding."""


@dataclass(frozen=True, eq=False, repr=False)
class Tempting(ObliviousLosses):
    """What violates a constraint is free for half of the run, then costs all: unsafe first, cheap later.

    Before the turn the loss is 0 exactly on the pairs that violate a constraint and 1 on the others; afterwards it is
    the reverse. Learners that bound the *summed* violation make up for unsafe episodes with cheap ones: the violation
    that counts every episode by itself grows linearly.

    A pair (state, action) violates constraint i if its least cost to go exceeds that of its state by more than the
    L-th part of what the threshold leaves beyond the least cost of the world. In a world of one step, these are the
    actions whose mean cost exceeds the threshold. A policy that never meets a violating pair is safe; one that
    violates the same constraint in every step is not.

    Raises:
        InvalidInput: If the world has no such pair, or no other one.

    Examples:
        >>> import hedgerow as hr
        >>> world = hr.worlds.make("lower-bound-1", episodes=8)  # action 0 costs 0.625, the threshold is 0.5
        >>> losses = hr.losses.Tempting(world, episodes=8)
        >>> losses.pairs.tolist(), losses.block(world.cmdp.layout, first=3, count=2).dense().tolist()
        ([1.0, 0.0], [[0.0, 1.0], [1.0, 0.0]])
    """

    kind: ClassVar[str] = "tempting"
    world: InitVar[Any]
    """A CMDP or a world of the catalogue; or the pairs themselves, (num_rows,) with 1 for those that violate a
    constraint and 0 for the others. An experiment fills it in."""
    episodes: int
    """The number T of episodes of the run, at least 1. An experiment fills it in."""
    turn: float = 0.5
    """When temptation ends, in [0, 1]: after turn * episodes of them, rounded."""
    pairs: FloatArray = field(init=False)
    """(num_rows,): 1 for pairs that violate a constraint, else 0; all that is kept of the world."""

    def __post_init__(self, world: Any) -> None:
        cmdp = getattr(world, "cmdp", world)
        pairs = violating_pairs(cmdp) if isinstance(cmdp, CMDP) else _given_pairs(cmdp)
        if pairs.min() == pairs.max():
            which = "no pair" if not pairs.any() else "every pair"
            raise InvalidInput(
                f"{which} of state and action violates a constraint in this world, so tempting losses would be the "
                "same for all policies; take lower or higher thresholds, or another adversary"
            )
        turn = real_number("turn", self.turn, 0.0, 1.0)
        self._set(episodes=num_episodes(self.episodes), turn=turn, pairs=frozen(pairs))

    def params(self) -> dict[str, Any]:
        """Return the constructor's arguments by name; the world is the array of its pairs."""
        return {"world": self.pairs, "episodes": self.episodes, "turn": self.turn}

    def _block(self, layout: Layout, first: int, count: int) -> LossBlock:
        pairs = check_rows(layout, self.pairs)
        return from_table(np.stack([1.0 - pairs, pairs]), turned(self.turn, self.episodes, first, count))


@dataclass(frozen=True, eq=False, repr=False)
class EarlyBird(ObliviousLosses):
    """The world's own loss while safe learners hold back, then 0: what was missed is never won back.

    A safe learner plays its baseline, or close to it, until it has seen enough. These losses tell policies apart in
    that time only. The regret of a safe learner is then about the gap between baseline and optimum, times the episodes
    that it left to its baseline.

    Examples:
        >>> import hedgerow as hr
        >>> losses = hr.losses.EarlyBird([0.5, 1.0], episodes=20)
        >>> losses.block(hr.Layout((1, 1), num_actions=2), first=1, count=2).dense().tolist()
        [[0.5, 1.0], [0.0, 0.0]]
    """

    kind: ClassVar[str] = "early-bird"
    own_loss: FloatArray
    """(num_rows,) losses in [0, 1] of the early episodes; or a world of the catalogue, which has its own. An experiment
    fills it in."""
    episodes: int
    """The number T of episodes of the run, at least 1. An experiment fills it in."""
    until: float = 0.1
    """How long policies differ, in [0, 1]: for until * episodes of them, rounded. In the first tenth of a run a safe
    learner mixes with its baseline most: there S-OPS collects a tenth to a third of its regret against the world's own
    loss in most worlds of the catalogue, at T = 10,000 and 100,000."""

    def __post_init__(self) -> None:
        given: Any = self.own_loss
        if isinstance(given, CMDP):
            raise InvalidInput("a CMDP has no loss of its own; give early-bird losses the loss itself, (num_rows,)")
        loss = unit_array("the world's own loss", getattr(given, "loss", given), 1)
        until = real_number("until", self.until, 0.0, 1.0)
        self._set(own_loss=frozen(loss), episodes=num_episodes(self.episodes), until=until)

    def _block(self, layout: Layout, first: int, count: int) -> LossBlock:
        loss = check_rows(layout, self.own_loss)
        return from_table(np.stack([loss, np.zeros_like(loss)]), turned(self.until, self.episodes, first, count))


def violating_pairs(cmdp: CMDP) -> FloatArray:
    """(num_rows,): 1 for pairs that violate a constraint, else 0.

    With V_i(x) the least expected cost i from x on, Q_i(x, a) that of playing a first, and slack_i = alpha_i -
    V_i(x_0), a pair violates constraint i if Q_i(x, a) - V_i(x) > slack_i / L. In one step this is g_i(a) > alpha_i. In
    general the cost of a policy is V_i(x_0) plus its expected sum of Q_i - V_i over the L steps. So a policy that never
    meets a violating pair is safe. One that violates the same constraint in every step is not.
    """
    layout, P = cmdp.layout, cmdp.transitions
    violating = np.zeros(layout.num_rows, dtype=bool)
    for cost, threshold in zip(cmdp.mean_costs, cmdp.thresholds, strict=True):
        least = backward_induction(layout, P, cost)
        Q = cost + np.add.reduceat(P * least.state_values[layout.successor], layout.row_start[:-1])
        V = np.repeat(least.state_values[: layout.num_decision_states], layout.num_actions)
        excess, share = Q - V, (threshold - least.value) / layout.steps
        violating |= excess > share + TOL_VIOLATING
    return violating.astype(np.float64)


def _given_pairs(world: ArrayLike) -> FloatArray:
    pairs = unit_array("the world of tempting losses", world, 1)
    if not np.isin(pairs, (0.0, 1.0)).all():
        raise InvalidInput("tempting losses take a world, or its pairs: 1 for those that violate a constraint, else 0")
    return pairs
