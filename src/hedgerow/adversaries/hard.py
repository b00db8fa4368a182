"""Losses that are hard for whole families of learners, in any world: they look at the number of an action alone.

With t = 0, 1, ... the episode, T the number of episodes and a = 0, 1, ... the action, in every state

    cycle      l_t(a) = 1 if a = t mod |A|, else 0
    betrayal   l_t(0) = v,     l_t(1) = 0 for t < uT, then 1,    l_t(a) = 1 for a >= 2      (u = 1/2, v = 1/5)
    hidden     l_t(0) = 1/2,   l_t(1) = 1 for t < uT, then 0,    l_t(a) = 1 for a >= 2      (u = 1/4)

`cycle` beats optimism without chance: whoever plays the action of the least lower bound (mean minus radius, ties to the
lowest number) in a world of one step meets the loss 1 in every episode, while every action has the mean 1/|A|. The
regret is T (1 - 1/|A|) exactly. Bounds that are clipped at 0 tie at first, which saves the episodes until they do not.

    >>> layout = Layout((1, 1), num_actions=2)
    >>> Betrayal(episodes=4).block(layout, first=1, count=2).dense().tolist()
    [[0.2, 0.0], [0.2, 1.0]]
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor
from typing import ClassVar

import numpy as np

from hedgerow.adversaries.loss_blocks import LossBlock, ObliviousLosses, from_table
from hedgerow.checks import FloatArray, num_episodes, real_number
from hedgerow.model.layout import Layout


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
    """An action that is free for half of the run, then costs all: the mean of the past betrays.

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
    """An action that costs all for a quarter of the run, then nothing: who gave it up misses it.

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
