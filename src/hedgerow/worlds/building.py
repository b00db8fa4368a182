"""What builders of worlds share: tables over H steps that become layered worlds, and maps of cells as text.

A map has one line per row and one character per cell. `#` is a wall; a move into a wall or off the map leads nowhere. A
world on a map says what may happen after each state and action as a list of outcomes with whole weights. A probability
is then one division, and the mean of equal losses is that loss, on every machine.

    >>> cells = cells_of(("S.", "#G"))
    >>> cells
    {(0, 0): 'S', (0, 1): '.', (1, 1): 'G'}
    >>> moved(cells, (0, 0), RIGHT), moved(cells, (0, 0), DOWN)
    ((0, 1), (0, 0))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.errors import InvalidInput
from hedgerow.importers.unroll import Support, unroll
from hedgerow.worlds.world import Scale, WorldDefinition

Limits: TypeAlias = Mapping[str, tuple[float, float]]
"""By the name of a constraint: its threshold, and the smaller one whose best policy is the baseline."""


def world_over_steps(
    transitions: FloatArray,
    horizon: int,
    start: int | FloatArray,
    limits: Limits,
    *,
    loss: FloatArray,
    costs: FloatArray,
    scale: Scale | None = None,
    **options: Any,
) -> WorldDefinition:
    """The layered world of tables over (S, A) or (H, S, A): loss, and costs of all constraints.

    Losses are 1 - reward unless there is another `scale`, and costs are fixed numbers unless `cost_kind` is among the
    `options`, which are those of `unroll`.
    """
    thresholds, baseline = np.array(list(limits.values())).T
    how = {"cost_kind": "deterministic", "thresholds": thresholds, "constraint_names": list(limits), **options}
    world = unroll(transitions, horizon, start, loss=loss, costs=costs, **how)
    assert world.loss is not None  # one was given
    return WorldDefinition(world.cmdp, world.loss, scale or reward_scale(horizon), baseline)


def reward_scale(horizon: int) -> Scale:
    """Of losses 1 - reward over H steps: reward = H - loss."""
    return Scale("reward", offset=float(horizon), factor=-1.0)


def checked_support(support: str) -> Support:
    if support == "full":
        return "full"
    if support == "known":
        return "known"
    raise InvalidInput(f"support is {support!r}; choose full or known")


# Maps -----------------------------------------------------------------------------------------------------------------

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


def world_of_outcomes(
    states: Sequence[State],
    actions: Sequence[str],
    outcomes: Callable[[State, int], Iterable[MoveOutcome]],
    horizon: int,
    start: State | FloatArray,
    limits: Limits,
    *,
    named: Callable[[Any], str] = cell_name,
    cost_kind: str = "deterministic",
    scale: Scale | None = None,
) -> WorldDefinition:
    """The layered world of reachable states and positive transitions; `outcomes(state, a)` lists what may happen.

    `start` is the first state, or a distribution over all of them.
    """
    number = {state: s for s, state in enumerate(states)}
    S, A = len(states), len(actions)
    weights, loss, cost = np.zeros((S, A, S)), np.zeros((S, A)), np.zeros((S, A))
    for state, s in number.items():
        for a in range(A):
            for outcome in outcomes(state, a):
                weights[s, a, number[outcome.state]] += outcome.weight  # type: ignore[index]
                loss[s, a] += outcome.weight * outcome.loss
                cost[s, a] += outcome.weight * outcome.cost
    total = weights.sum(axis=2)  # whole numbers: exact in any order
    return world_over_steps(
        weights / total[:, :, None],
        horizon,
        start if isinstance(start, np.ndarray) else number[start],
        limits,
        loss=loss / total,
        costs=(cost / total)[None],
        scale=scale,
        cost_kind=cost_kind,
        state_names=list(map(named, states)),
        action_names=actions,
        support="known",
    )


def grid_world(
    cells: Mapping[Cell, str],
    moves: Sequence[Cell],
    outcomes: Callable[[Cell, int], Iterable[MoveOutcome]],
    horizon: int,
    limits: Limits,
    **options: Any,
) -> WorldDefinition:
    """The same for a walker on a map that starts at S; the cells C of a cliff are no states."""
    states = [cell for cell, mark in cells.items() if mark != "C"]
    names = [MOVE_NAMES[move] for move in moves]
    return world_of_outcomes(states, names, outcomes, horizon, only_cell(cells, "S"), limits, **options)
