"""What compiled loops share: the random streams of a run, and the losses of a block of episodes."""

from __future__ import annotations

import numpy as np

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.bundles import Bundle
from hedgerow.compiling.kernels import kernel
from hedgerow.environments.play import Streams
from hedgerow.errors import InvalidInput
from hedgerow.losses.adaptive import Pursuit
from hedgerow.losses.blocks import LossBlock
from hedgerow.model.random_streams import Stream


class RandomStreams(Bundle):
    """All random streams of a run: the learner's coin, and the streams of the world."""

    coin: Stream
    streams: Streams


class Losses(Bundle):
    """The losses of a block of episodes, or an adversary that pursues the learner (`losses/adaptive.py`)."""

    patterns: FloatArray
    """(p, num_rows)"""
    pattern: IntArray
    """(count,): which pattern each episode has"""
    rate: float
    """The rate of the pursuit; 0 for losses that are given"""
    average: FloatArray
    """(num_rows,): the policies played so far, as the pursuit remembers them; empty without one"""
    pursuit: FloatArray
    """(num_rows,): the loss of the present episode under pursuit; empty without one"""


def losses_of(block: LossBlock | int, pursuit: Pursuit | None, loss: FloatArray) -> Losses:
    """A block of losses, or so many episodes of a pursuit, which writes its losses into `loss` (num_rows,)."""
    nothing = np.zeros(0)
    if isinstance(block, LossBlock):
        patterns, pattern = np.array(block.patterns, order="C"), np.array(block.index, dtype=np.int64)
        return Losses(patterns, pattern, 0.0, nothing, nothing)
    silent, pattern = np.zeros((1, len(loss))), np.zeros(block, dtype=np.int64)
    if pursuit is None:
        raise InvalidInput("a number of episodes is only enough for an adversary that pursues the learner")
    return Losses(silent, pattern, pursuit.rate, pursuit.average, loss)


def no_losses() -> Losses:
    """A block of no episodes."""
    nothing = np.zeros(0)
    return Losses(np.zeros((1, 0)), np.zeros(0, dtype=np.int64), 0.0, nothing, nothing)


@kernel
def pursue(num_actions: int, given: Losses) -> None:
    """The loss (num_rows,) of `Pursuit`: on the actions that the learner has favoured lately."""
    for r in range(len(given.pursuit)):
        given.pursuit[r] = min(1.0, 0.5 * num_actions * given.average[r])


@kernel
def remember(given: Losses, plays: FloatArray) -> None:
    """Add the policy (num_rows,) that was played to what `Pursuit` remembers."""
    for r in range(len(plays)):
        given.average[r] = (1.0 - given.rate) * given.average[r] + given.rate * plays[r]
