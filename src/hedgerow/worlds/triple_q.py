"""The grid world on which Triple-Q was tried (Wei, Liu and Ying, AISTATS 2022): a detour round 105 obstacles.

Inside the walls there are 18 x 18 cells. Obstacles may be entered, but each entry (or stay) costs 1. The cell that is
entered pays sqrt(514) minus its distance to the goal, and the goal pays 100, in each of 25 steps; sqrt(514) is the
distance between the lower left corner and the goal. Nothing is random.

The map below is the one of the authors' notebook, which draws it with the seed 1234. They ask for 20 steps or more
without an obstacle, that is a threshold of 5 entries. A way of the largest reward makes 4: their constraint is slack
(`alpha=5`). The default here is 2, which binds.

Rewards r become losses 1 - r / 100. The source has no baseline; ours is the best policy at a fifth of the threshold.

    >>> len(building.cells_of(MAP)), sum(mark == "X" for mark in building.cells_of(MAP).values())
    (324, 105)
"""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt

from hedgerow.checks import real_number
from hedgerow.worlds import building
from hedgerow.worlds.building import Cell, MoveOutcome
from hedgerow.worlds.entries import entry
from hedgerow.worlds.world import Scale, WorldDefinition

MAP = (
    "####################",
    "#...............G..#",
    "#X....XX...X...X..X#",
    "#..X.XX..X.X....X..#",
    "#X...XXX...X.X.X..X#",
    "#......X..XXX..XX..#",
    "#.XX...XX.....X....#",
    "#X.......X......XX.#",
    "#X.XX...XXX......XX#",
    "#X.XXX..XXX.XX.X...#",
    "#XX.X.X..XX......X.#",
    "#.........XX.X.X...#",
    "#.....XX..X.XX.XX.X#",
    "#........X.XXX....X#",
    "#....XX..X.XXX.X...#",
    "#XXX...XXX.XXX.X.X.#",
    "#.X..X.....X.......#",
    "#X.XX....X.XX.X....#",
    "#.................S#",
    "####################",
)
"""S start, G goal, X obstacle."""
STEPS = 25
GOAL_REWARD = 100
FARTHEST = (18, 1)
"""The cell that pays 0."""
MOVES = (building.UP, building.DOWN, building.LEFT, building.RIGHT)


@entry(
    "triple-q-grid",
    "a large grid with obstacles: 18 x 18 cells; to enter one of 105 obstacles costs; alpha=5, the source's, is slack",
    source="Wei, Liu, Ying 2022",
    frozen=({}, {"alpha": 5.0}),
    published={"unconstrained": 963.979997, "optimum": 874.898845},
)
def triple_q_grid(*, alpha: float = 2.0) -> WorldDefinition:
    alpha = real_number("triple-q-grid: alpha", alpha, 0.0, float(STEPS))
    cells = building.cells_of(MAP)
    goal = building.only_cell(cells, "G")

    def outcomes(cell: Cell, a: int) -> Iterator[MoveOutcome]:
        following = building.moved(cells, cell, MOVES[a])
        reward = GOAL_REWARD if following == goal else _distance(FARTHEST, goal) - _distance(following, goal)
        yield MoveOutcome(1, following, 1 - reward / GOAL_REWARD, int(cells[following] == "X"))

    scale = Scale("reward", offset=float(GOAL_REWARD * STEPS), factor=-float(GOAL_REWARD))
    return building.grid_world(cells, MOVES, outcomes, STEPS, {"obstacles": (alpha, alpha / 5)}, scale=scale)


def _distance(one: Cell, other: Cell) -> float:
    return sqrt((one[0] - other[0]) ** 2 + (one[1] - other[1]) ** 2)
