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

from hedgerow.worlds import grids
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
CLIFF_MOVES = (grids.UP, grids.RIGHT, grids.DOWN, grids.LEFT)
FALL = 100
"""What a fall loses, in steps."""
COST_UNIT = 2
"""The largest cost of a step in the cliff world, which is 1 here."""


@entry(
    "alwayssafe-simple",
    "three states in a cycle, the first one random: moving on earns s + 1 and costs 1, staying is free",
    source="Simao et al. 2021",
    published={"unconstrained": 12.0, "optimum": 20 / 3},
)
def alwayssafe_simple() -> WorldDefinition:
    S = CYCLE_STATES

    def outcomes(s: int, a: int) -> Iterator[grids.MoveOutcome]:
        reward = (s + 1) * a
        yield grids.MoveOutcome(1, (s + a) % S, 1 - reward / S, a)

    course = grids.EpisodeConfig(
        CYCLE_STEPS,
        np.full(S, 1 / S),
        "moves",
        threshold=3.0,
        baseline_threshold=0.6,
        scale=Scale("reward", offset=float(S * CYCLE_STEPS), factor=-float(S)),
        random_costs=False,
    )
    return grids.ingredients(grids.tables(range(S), 2, outcomes), course, [str(s) for s in range(S)], ("stay", "move"))


@entry(
    "alwayssafe-difficult",
    "one decision: A costs and earns where y = 1 (9 times in 10), B is free and earns where y = 0",
    source="Simao et al. 2021",
    published={"unconstrained": 1.0, "optimum": 0.2},
)
def alwayssafe_difficult() -> WorldDefinition:
    A = 0  # the costly action
    states = [(x, y) for x in range(3) for y in range(2)]

    def outcomes(state: tuple[int, int], a: int) -> Iterator[grids.MoveOutcome]:
        x, y = state
        if x == 0:
            yield grids.MoveOutcome(Y_ZERO_WEIGHT, (1, 0), 1, 0)
            yield grids.MoveOutcome(Y_ONE_WEIGHT, (1, 1), 1, 0)
        elif x == 1:
            earns = (a == A) == (y == 1)
            yield grids.MoveOutcome(1, (2, y), 0 if earns else 1, int(a == A))
        else:
            yield grids.MoveOutcome(1, state, 1, 0)

    course = grids.EpisodeConfig(
        3,
        np.array([0.5, 0.5, 0, 0, 0, 0]),
        "choices of A",
        threshold=0.1,
        baseline_threshold=0.05,
        scale=Scale("reward", offset=3.0, factor=-1.0),
        random_costs=False,
    )
    return grids.ingredients(grids.tables(states, 2, outcomes), course, [f"x{x}y{y}" for x, y in states], ("A", "B"))


@entry(
    "alwayssafe-cliff",
    "a walk along a cliff of 4 x 6 cells: the shorter ways lead over cells that cost more",
    source="Simao et al. 2021",
    published={"unconstrained": -7.0, "optimum": -10.0},
)
def alwayssafe_cliff() -> WorldDefinition:
    cells = grids.cells_of(CLIFF_MAP)
    start, goal = grids.only_cell(cells, "S"), grids.only_cell(cells, "G")
    states = [cell for cell, mark in cells.items() if mark != "C"]

    def outcomes(cell: grids.Cell, a: int) -> Iterator[grids.MoveOutcome]:
        following = grids.moved(cells, cell, CLIFF_MOVES[a])
        mark = cells[following]
        if cell == goal:
            yield grids.MoveOutcome(1, goal, 0, 0)
        elif mark == "C":
            yield grids.MoveOutcome(1, start, 1, 0)
        else:
            yield grids.MoveOutcome(1, following, 1 / FALL, int(mark) / COST_UNIT if mark.isdigit() else 0)

    course = grids.EpisodeConfig(
        CLIFF_STEPS,
        states.index(start),
        "exposure",
        threshold=2 / COST_UNIT,
        baseline_threshold=0.4 / COST_UNIT,
        scale=Scale("reward", factor=-float(FALL)),
        random_costs=False,
    )
    names = [grids.MOVE_NAMES[move] for move in CLIFF_MOVES]
    return grids.ingredients(grids.tables(states, 4, outcomes), course, list(map(grids.cell_name, states)), names)
