"""Losses made for one world: they know its costs, or its own loss. What they keep of it is one array over the rows.

    tempting     before uT: 0 on the pairs that violate a constraint, 1 on the others; then the reverse      (u = 1/2)
    early-bird   before uT: the world's own loss; then 0 everywhere                                          (u = 1/10)

Which pairs violate? With V_i(x) the least expected cost i from x on, Q_i(x, a) that of playing a first, and slack_i =
alpha_i - V_i(x_0), a pair violates constraint i if

    Q_i(x, a) - V_i(x) > slack_i / L.

In one step this is g_i(a) > alpha_i. In general the cost of a policy is V_i(x_0) plus its expected sum of Q_i - V_i
over the L steps. So a policy that never meets a violating pair is safe. One that violates the same constraint in every
step is not.

    >>> Tempting([0.0, 1.0], episodes=4).block(Layout((1, 1), num_actions=2), first=1, count=2).dense().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
"""

from __future__ import annotations

from dataclasses import InitVar, dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from hedgerow.checks import FloatArray, frozen, num_episodes, real_number
from hedgerow.errors import InvalidInput
from hedgerow.losses.blocks import LossBlock, ObliviousLosses, check_rows, from_table, unit_array
from hedgerow.losses.oblivious import turned
from hedgerow.model.cmdp import CMDP
from hedgerow.model.layout import Layout
from hedgerow.planning.induction import backward_induction

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
    """(num_rows,): 1 for pairs that violate a constraint, as the top of this module defines it, else 0."""
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
