"""The grid worlds of ConRL (Brantley, Dudik, Lykouris, Miryoosefi, Simchowitz, Slivkins and Sun, NeurIPS 2020).

Maps and rules are those of the authors' public code. Moves are up, down, left, right; with probability 1/10 one of the
four is drawn instead of the chosen one. An episode has H = 30 steps. The goal pays 1 when it is entered and 1/H in each
step that follows; nobody leaves it. Rewards become losses 1 - reward, so that reward = 30 - loss.

`conrl-8x8` and `conrl-grid`: a pit pays like the goal but costs what it pays, and nobody leaves it. The budget is 0.3.
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

from hedgerow.worlds import grids
from hedgerow.worlds.entries import entry
from hedgerow.worlds.world import Scale, WorldDefinition

STEPS = 30
MOVES = (grids.UP, grids.DOWN, grids.LEFT, grids.RIGHT)
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

_REWARD = Scale("reward", offset=float(STEPS), factor=-1.0)
_NAMES = [grids.MOVE_NAMES[move] for move in MOVES]


@entry(
    "conrl-8x8",
    "a walled grid of 8 x 8 cells with three pits that pay like the goal but cost; one move in ten is random",
    source="Brantley et al. 2020",
    published={"unconstrained": 1.854600, "optimum": 1.546391},
)
def conrl_8x8() -> WorldDefinition:
    return _with_pits(EIGHT)


@entry(
    "conrl-grid",
    "a grid of 8 x 8 cells with eight pits that pay like the goal but cost; one move in ten is random",
    source="Brantley et al. 2020",
    published={"unconstrained": 1.816822, "optimum": 1.536288},
)
def conrl_grid() -> WorldDefinition:
    return _with_pits(OPEN_EIGHT)


@entry(
    "conrl-box",
    "push a box out of the way to the goal; every step with the box in a corner costs; one move in ten is random",
    source="Brantley et al. 2020",
    published={"unconstrained": 1.815769, "optimum": 1.749677},
)
def conrl_box() -> WorldDefinition:
    cells = grids.cells_of(BOX)
    goal = grids.only_cell(cells, "G")
    states = [_Scene(agent, box) for agent in cells for box in cells]

    def outcomes(scene: _Scene, a: int) -> Iterator[grids.MoveOutcome]:
        if scene.agent == goal:
            yield grids.MoveOutcome(1, scene, 1 - STAYED, _in_a_corner(cells, scene.box))
            return
        for move in MOVES:
            following = _pushed(cells, scene, move)
            arrives = following.agent == goal
            weight = CHOSEN if move == MOVES[a] else OTHER
            yield grids.MoveOutcome(weight, following, 0 if arrives else 1, _in_a_corner(cells, following.box))

    start = states.index(_Scene(grids.only_cell(cells, "S"), grids.only_cell(cells, "X")))
    course = grids.EpisodeConfig(STEPS, start, "box in a corner", threshold=3.0, baseline_threshold=1.5, scale=_REWARD)
    names = [f"{grids.cell_name(scene.agent)} box {grids.cell_name(scene.box)}" for scene in states]
    return grids.ingredients(grids.tables(states, len(MOVES), outcomes), course, names, _NAMES)


def _with_pits(rows: Sequence[str]) -> WorldDefinition:
    cells = grids.cells_of(rows)
    states = list(cells)

    def outcomes(cell: grids.Cell, a: int) -> Iterator[grids.MoveOutcome]:
        if cells[cell] in "GP":
            yield grids.MoveOutcome(1, cell, 1 - STAYED, STAYED if cells[cell] == "P" else 0)
            return
        for move in MOVES:
            following = grids.moved(cells, cell, move)
            pays, costs = cells[following] in "GP", cells[following] == "P"
            yield grids.MoveOutcome(CHOSEN if move == MOVES[a] else OTHER, following, 0 if pays else 1, int(costs))

    start = states.index(grids.only_cell(cells, "S"))
    course = grids.EpisodeConfig(STEPS, start, "pits", threshold=0.3, baseline_threshold=0.06, scale=_REWARD)
    return grids.ingredients(
        grids.tables(states, len(MOVES), outcomes), course, list(map(grids.cell_name, states)), _NAMES
    )


class _Scene(NamedTuple):
    agent: grids.Cell
    box: grids.Cell


def _pushed(cells: dict[grids.Cell, str], scene: _Scene, move: grids.Cell) -> _Scene:
    """What the move makes of the scene: nothing, if the agent or the box would walk into a wall."""
    agent = grids.moved(cells, scene.agent, move)
    if agent == scene.agent or agent != scene.box:
        return scene._replace(agent=agent)
    box = grids.moved(cells, scene.box, move)
    return scene if box == scene.box else _Scene(agent, box)


def _in_a_corner(cells: dict[grids.Cell, str], box: grids.Cell) -> int:
    return int(sum(grids.moved(cells, box, move) == box for move in MOVES) >= 2)
