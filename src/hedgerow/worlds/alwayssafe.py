"""The three worlds of AlwaysSafe (Simao, Jansen and Spaan, AAMAS 2021), unrolled over their steps.

The tables are those of the authors' package gym-factored; the first goes back to Zheng and Ratliff (2020). All costs
are fixed numbers. Rewards become losses in [0, 1]; `source_value` turns them back. The authors have no baseline: ours
is the best policy at a fifth of the budget (at half of it in the difficult one).

| world     | states           | steps | budget | in our units | best reward |
|-----------|------------------|-------|--------|--------------|-------------|
| simple    | 3 in a cycle     | 6     | 3      | 3            | 20 / 3      |
| difficult | (x, y): 3 x 2    | 3     | 0.1    | 0.1          | 0.2         |
| cliff     | a grid of 4 x 6  | 15    | 2      | 1            | -10         |

Changed: in the cliff world a step costs its row number, up to 2, so costs and budget are halved here. A random start is
a layer of its own in front, whose one step costs and loses nothing.

    >>> alwayssafe_simple().cmdp.layout
    Layout(layers=(1, 3, 3, 3, 3, 3, 3, 1), actions=2, 42 of 102 triples)
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hedgerow.worlds import building
from hedgerow.worlds.building import Cell, MoveOutcome
from hedgerow.worlds.entries import entry
from hedgerow.worlds.world import Scale, WorldDefinition

CYCLE_STATES, CYCLE_STEPS = 3, 6
Y_ZERO_WEIGHT, Y_ONE_WEIGHT = 1, 9
"""After the first step y is 0 with probability 1/10."""

CLIFF_MAP = (
    "......",
    ".1111.",
    ".2222.",
    "SCCCCG",
)
"""S is the start, G the goal, C the cliff; a digit is what entering the cell costs."""
CLIFF_STEPS = 15
CLIFF_MOVES = (building.UP, building.RIGHT, building.DOWN, building.LEFT)
FALL = 100
"""What a fall loses, in steps."""
COST_UNIT = 2
"""The largest cost of a step in the cliff world, which is 1 here."""


@entry(
    "alwayssafe-simple",
    "a cycle of three, from a random one: moving on earns s + 1 and costs 1, staying is free",
    source="Simao et al. 2021",
    published={"unconstrained": 12.0, "optimum": 20 / 3},
)
def alwayssafe_simple() -> WorldDefinition:
    S = CYCLE_STATES

    def outcomes(s: int, a: int) -> Iterator[MoveOutcome]:
        reward = (s + 1) * a
        yield MoveOutcome(1, (s + a) % S, 1 - reward / S, a)

    start, limits = np.full(S, 1 / S), {"moves": (3.0, 0.6)}
    scale = Scale("reward", offset=float(S * CYCLE_STEPS), factor=-float(S))
    return building.world_of_outcomes(
        range(S), ("stay", "move"), outcomes, CYCLE_STEPS, start, limits, named=str, scale=scale
    )


@entry(
    "alwayssafe-difficult",
    "one decision, after a draw of y: A costs and earns where y = 1 (9 times in 10), B is free and earns where y = 0",
    source="Simao et al. 2021",
    published={"unconstrained": 1.0, "optimum": 0.2},
)
def alwayssafe_difficult() -> WorldDefinition:
    A = 0  # the costly action
    states = [(x, y) for x in range(3) for y in range(2)]

    def outcomes(state: tuple[int, int], a: int) -> Iterator[MoveOutcome]:
        x, y = state
        if x == 0:
            yield MoveOutcome(Y_ZERO_WEIGHT, (1, 0), 1, 0)
            yield MoveOutcome(Y_ONE_WEIGHT, (1, 1), 1, 0)
        elif x == 1:
            earns = (a == A) == (y == 1)
            yield MoveOutcome(1, (2, y), 0 if earns else 1, int(a == A))
        else:
            yield MoveOutcome(1, state, 1, 0)

    start, limits = np.array([0.5, 0.5, 0, 0, 0, 0]), {"choices of A": (0.1, 0.05)}
    return building.world_of_outcomes(states, ("A", "B"), outcomes, 3, start, limits, named="x{0[0]}y{0[1]}".format)


@entry(
    "alwayssafe-cliff",
    "a walk along a cliff, 4 x 6 cells: the shorter ways lead over cells that cost more",
    source="Simao et al. 2021",
    published={"unconstrained": -7.0, "optimum": -10.0},
)
def alwayssafe_cliff() -> WorldDefinition:
    cells = building.cells_of(CLIFF_MAP)
    start, goal = building.only_cell(cells, "S"), building.only_cell(cells, "G")

    def outcomes(cell: Cell, a: int) -> Iterator[MoveOutcome]:
        following = building.moved(cells, cell, CLIFF_MOVES[a])
        mark = cells[following]
        if cell == goal:
            yield MoveOutcome(1, goal, 0, 0)
        elif mark == "C":
            yield MoveOutcome(1, start, 1, 0)
        else:
            yield MoveOutcome(1, following, 1 / FALL, int(mark) / COST_UNIT if mark.isdigit() else 0)

    limits, scale = {"exposure": (2 / COST_UNIT, 0.4 / COST_UNIT)}, Scale("reward", factor=-float(FALL))
    return building.grid_world(cells, CLIFF_MOVES, outcomes, CLIFF_STEPS, limits, scale=scale)
