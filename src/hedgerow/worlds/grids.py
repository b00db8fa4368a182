"""What the grid worlds of the catalogue share: maps as text, moves, and tables of outcomes that are exact.

A map is a text of one line per row and one character per cell. `#` is a wall; whoever would walk into a wall or off the
map stays where they are. A world says what may happen after each state and action as a list of outcomes with whole
weights. A probability is then one division, and the mean of equal losses is that loss, on every machine.

    >>> cells = cells_of(("S.", "#G"))
    >>> cells
    {(0, 0): 'S', (0, 1): '.', (1, 1): 'G'}
    >>> moved(cells, (0, 0), RIGHT), moved(cells, (0, 0), DOWN)
    ((0, 1), (0, 0))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.importers.unroll import unroll
from hedgerow.worlds.world import Scale, WorldDefinition

Cell: TypeAlias = tuple[int, int]
"""Row and column, counted from 0."""
State = TypeVar("State")

UP, DOWN, LEFT, RIGHT = (-1, 0), (1, 0), (0, -1), (0, 1)
MOVE_NAMES = {UP: "up", DOWN: "down", LEFT: "left", RIGHT: "right"}
WALL = "#"


class MoveOutcome(NamedTuple):
    """One of the things that may happen after a state and an action."""

    weight: int
    """How likely it is, compared with the other outcomes."""
    state: object
    """The next state."""
    loss: float
    """The loss of the step, in [0, 1]."""
    cost: float
    """The cost of the step, in [0, 1]."""


class GridTables(NamedTuple):
    """A finite-horizon MDP with one cost, over S states and A actions."""

    transitions: FloatArray
    """(S, A, S): probabilities of the next states."""
    loss: FloatArray
    """(S, A): mean losses."""
    cost: FloatArray
    """(S, A): mean costs."""


def cells_of(rows: Sequence[str]) -> dict[Cell, str]:
    """The cells of a map that are no walls, in reading order, with their characters."""
    return {(r, c): mark for r, row in enumerate(rows) for c, mark in enumerate(row) if mark != WALL}


def only_cell(cells: Mapping[Cell, str], mark: str) -> Cell:
    """The one cell that has this character."""
    (found,) = (cell for cell, other in cells.items() if other == mark)
    return found


def moved(cells: Mapping[Cell, str], cell: Cell, move: Cell) -> Cell:
    """Where the move leads: to the next cell, or nowhere if there is none."""
    following = cell[0] + move[0], cell[1] + move[1]
    return following if following in cells else cell


def cell_name(cell: Cell) -> str:
    """The name of a cell in labels of states, such as r2c3."""
    return f"r{cell[0]}c{cell[1]}"


def tables(
    states: Sequence[State], num_actions: int, outcomes: Callable[[State, int], Iterable[MoveOutcome]]
) -> GridTables:  # fmt: skip
    """The tables of a process; `outcomes(state, a)` lists what may happen."""
    number = {state: s for s, state in enumerate(states)}
    S, A = len(states), num_actions
    weights, loss, cost = np.zeros((S, A, S)), np.zeros((S, A)), np.zeros((S, A))
    for state, s in number.items():
        for a in range(A):
            for outcome in outcomes(state, a):
                weights[s, a, number[outcome.state]] += outcome.weight  # type: ignore[index]
                loss[s, a] += outcome.weight * outcome.loss
                cost[s, a] += outcome.weight * outcome.cost
    total = weights.sum(axis=2)  # whole numbers: exact in any order
    return GridTables(weights / total[:, :, None], loss / total, cost / total)


class EpisodeConfig(NamedTuple):
    """How episodes go, and what is counted in them."""

    horizon: int
    start: int | FloatArray
    """The number of the first state, or a distribution."""
    constraint: str
    """What the cost is called."""
    threshold: float
    baseline_threshold: float
    """The smaller threshold whose best policy is the baseline."""
    scale: Scale = Scale()
    random_costs: bool = True
    """Whether costs are drawn as 0 or 1; else they are the means themselves."""


def ingredients(
    made: GridTables, course: EpisodeConfig, state_names: Sequence[str], action_names: Sequence[str]
) -> WorldDefinition:  # fmt: skip
    """The layered world of reachable states and positive transitions only."""
    world = unroll(
        made.transitions,
        course.horizon,
        course.start,
        loss=made.loss,
        costs=made.cost[None],
        cost_kind="bernoulli" if course.random_costs else "deterministic",
        thresholds=[course.threshold],
        constraint_names=[course.constraint],
        state_names=state_names,
        action_names=action_names,
        support="known",
    )
    assert world.loss is not None  # one was given
    return WorldDefinition(world.cmdp, world.loss, course.scale, np.array([course.baseline_threshold]))
