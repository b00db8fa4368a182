"""The grid worlds of ConRL (Brantley, Dudik, Lykouris, Miryoosefi, Simchowitz, Slivkins and Sun, NeurIPS 2020).

Maps and rules are those of the authors' public code. Moves are up, down, left, right; with probability 1/10 one of the
four is drawn instead of the chosen one. An episode has H = 30 steps. The goal pays 1 when it is entered and 1/H in each
step that follows; it is never left. Rewards become losses 1 - reward, so that reward = 30 - loss.

`conrl-8x8` and `conrl-grid`: a pit pays like the goal but costs what it pays, and is never left. The budget is 0.3.
Each cost is drawn as 0 or 1 with the mean of the source's.

`conrl-box`: walking into the box pushes it, if there is room. A step costs 1/H if afterwards two or more neighbours of
the box are walls, also when the goal is reached. The budget is 0.1. Changed: costs and budget are multiplied by H, so
that a step costs 0 or 1 and the budget is 3 steps. Each cost is drawn with the mean of the source's.

The source has no baseline. Ours is the best policy at a fifth of the budget; at half of it in the box world, where the
least possible cost is a third of the budget.

    >>> conrl_8x8().cmdp.thresholds.tolist(), conrl_box().cmdp.thresholds.tolist()
    ([0.3], [3.0])
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hedgerow.worlds import building
from hedgerow.worlds.building import Cell, MoveOutcome
from hedgerow.worlds.entries import entry
from hedgerow.worlds.world import WorldDefinition

STEPS = 30
MOVES = (building.UP, building.DOWN, building.LEFT, building.RIGHT)
CHOSEN, OTHER = 37, 1
"""Weights of the chosen move and of each other one: 9/10 + 1/40 and 1/40."""
STAYED = 1 / STEPS
"""What a step in the goal or in a pit pays once one is there."""

EIGHT = (
    "##########",
    "#.......G#",
    "#...P....#",
    "#........#",
    "#.....P..#",
    "#........#",
    "#........#",
    "#...P....#",
    "#S.......#",
    "##########",
)
OPEN_EIGHT = (
    "S.......",
    "........",
    "...P..P.",
    "........",
    "........",
    ".PP.....",
    ".P..P.P.",
    "...P...G",
)
BOX = (
    "######",
    "#.S###",
    "#.X..#",
    "##...#",
    "###.G#",
    "######",
)
"""S start, G goal, P pit, X the box at first."""


@entry(
    "conrl-8x8",
    "a walled grid with three pits: 8 x 8 cells; pits pay like the goal but cost; one move in ten is random",
    source="Brantley et al. 2020",
    published={"unconstrained": 1.854600, "optimum": 1.546391},
)
def conrl_8x8() -> WorldDefinition:
    return _with_pits(EIGHT)


@entry(
    "conrl-grid",
    "a grid with eight pits: 8 x 8 cells; pits pay like the goal but cost; one move in ten is random",
    source="Brantley et al. 2020",
    published={"unconstrained": 1.816822, "optimum": 1.536288},
)
def conrl_grid() -> WorldDefinition:
    return _with_pits(OPEN_EIGHT)


@entry(
    "conrl-box",
    "push a box out of the way: every step with the box in a corner costs; one move in ten is random",
    source="Brantley et al. 2020",
    published={"unconstrained": 1.815769, "optimum": 1.749677},
)
def conrl_box() -> WorldDefinition:
    cells = building.cells_of(BOX)
    goal = building.only_cell(cells, "G")
    states = [_Scene(agent, box) for agent in cells for box in cells]

    def outcomes(scene: _Scene, a: int) -> Iterator[MoveOutcome]:
        if scene.agent == goal:
            yield MoveOutcome(1, scene, 1 - STAYED, _in_a_corner(cells, scene.box))
            return
        for move in MOVES:
            following = _pushed(cells, scene, move)
            arrives = following.agent == goal
            weight = CHOSEN if move == MOVES[a] else OTHER
            yield MoveOutcome(weight, following, 0 if arrives else 1, _in_a_corner(cells, following.box))

    def named(scene: _Scene) -> str:
        return f"{building.cell_name(scene.agent)} box {building.cell_name(scene.box)}"

    start = _Scene(building.only_cell(cells, "S"), building.only_cell(cells, "X"))
    actions, limits = [building.MOVE_NAMES[move] for move in MOVES], {"box in a corner": (3.0, 1.5)}
    return building.world_of_outcomes(
        states, actions, outcomes, STEPS, start, limits, named=named, cost_kind="bernoulli"
    )


def _with_pits(rows: Sequence[str]) -> WorldDefinition:
    cells = building.cells_of(rows)

    def outcomes(cell: Cell, a: int) -> Iterator[MoveOutcome]:
        if cells[cell] in "GP":
            yield MoveOutcome(1, cell, 1 - STAYED, STAYED if cells[cell] == "P" else 0)
            return
        for move in MOVES:
            following = building.moved(cells, cell, move)
            pays, costs = cells[following] in "GP", cells[following] == "P"
            yield MoveOutcome(CHOSEN if move == MOVES[a] else OTHER, following, 0 if pays else 1, int(costs))

    return building.grid_world(cells, MOVES, outcomes, STEPS, {"pits": (0.3, 0.06)}, cost_kind="bernoulli")


class _Scene(NamedTuple):
    agent: Cell
    box: Cell


def _pushed(cells: dict[Cell, str], scene: _Scene, move: Cell) -> _Scene:
    """What the move makes of the scene: nothing, if the agent or the box would walk into a wall."""
    agent = building.moved(cells, scene.agent, move)
    if agent == scene.agent or agent != scene.box:
        return scene._replace(agent=agent)
    box = building.moved(cells, scene.box, move)
    return scene if box == scene.box else _Scene(agent, box)


def _in_a_corner(cells: dict[Cell, str], box: Cell) -> int:
    return int(sum(building.moved(cells, box, move) == box for move in MOVES) >= 2)
