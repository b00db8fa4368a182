"""Worlds on two maps of Gymnasium: FrozenLake 4x4 and CliffWalking 4x12, with constraints of our own.

Transitions are those of Gymnasium's slippery tables: the chosen direction and the two at right angles to it, 1/3 each.
Losses, costs and horizons are ours:

`frozen4-hurry`: every step loses 1 until a hole or the goal ends the walk, and a hole costs 1. Falling is the fastest
way out, so the constraint has a high price.

`frozen4-goal`: the goal earns 1 when it is entered, a hole costs 1. Whoever falls earns nothing any more: some policy
of least loss keeps the threshold. The constraint is slack, and the world is a *control*.

`cliff-slippery`: every step loses 1 until the goal is reached; a fall leads back to the start and costs 1 (Gymnasium
counts a fall as 100 steps). A fall takes time as well, so that this is a control too. With `slippery=False` every move
goes where it is meant to.

The baseline is the best policy at a fifth of the threshold.

    >>> frozen4_hurry().cmdp.layout.steps, frozen4_hurry(alpha=0.5).cmdp.thresholds.tolist()
    (20, [0.5])
"""

from __future__ import annotations

from collections.abc import Iterator

from hedgerow.checks import real_number, whole_number
from hedgerow.worlds import grids
from hedgerow.worlds.entries import entry
from hedgerow.worlds.world import Scale, WorldDefinition

FROZEN_MAP = (
    "SFFF",
    "FHFH",
    "FFFH",
    "HFFG",
)
"""S start, F ice, H hole, G goal."""
FROZEN_MOVES = (grids.LEFT, grids.DOWN, grids.RIGHT, grids.UP)
"""In Gymnasium's order, in which the two neighbours of a direction are at right angles to it."""
FROZEN_STEPS = 20

CLIFF_MAP = (
    "............",
    "............",
    "............",
    "SCCCCCCCCCCG",
)
"""S start, C cliff, G goal."""
CLIFF_MOVES = (grids.UP, grids.RIGHT, grids.DOWN, grids.LEFT)
CLIFF_STEPS = 40


@entry(
    "frozen4-hurry",
    "FrozenLake 4x4, slippery: each step loses 1 until hole or goal, holes cost 1 and are the fastest way out",
    source="Gymnasium, constraint ours",
    frozen=({}, {"alpha": 0.1}, {"alpha": 0.5}),
    published={"unconstrained": 4.658108, "optimum": 14.144287},
)
def frozen4_hurry(*, alpha: float = 0.3) -> WorldDefinition:
    return _frozen("frozen4-hurry", alpha, hurry=True)


@entry(
    "frozen4-goal",
    "FrozenLake 4x4, slippery: the goal earns 1, holes cost 1; a control, its constraint is slack",
    source="Gymnasium, constraint ours",
    published={"unconstrained": 0.199133, "optimum": 0.199133},
)
def frozen4_goal(*, alpha: float = 0.1) -> WorldDefinition:
    return _frozen("frozen4-goal", alpha, hurry=False)


@entry(
    "cliff-slippery",
    "CliffWalking 4x12: each step loses 1 until the goal, falls cost 1; a control, its constraint is slack",
    source="Gymnasium, constraint ours",
    frozen=({}, {"slippery": False, "steps": 20}),
    published={"unconstrained": 39.253076, "optimum": 39.253076},
)
def cliff_slippery(*, slippery: bool = True, steps: int = CLIFF_STEPS, alpha: float = 0.5) -> WorldDefinition:
    steps = whole_number("cliff-slippery: steps", steps, 1)
    cells = grids.cells_of(CLIFF_MAP)
    start, goal = grids.only_cell(cells, "S"), grids.only_cell(cells, "G")
    states = [cell for cell, mark in cells.items() if mark != "C"]

    def outcomes(cell: grids.Cell, a: int) -> Iterator[grids.MoveOutcome]:
        if cell == goal:
            yield grids.MoveOutcome(1, goal, 0, 0)
            return
        for move in _directions(CLIFF_MOVES, a) if slippery else CLIFF_MOVES[a : a + 1]:
            following = grids.moved(cells, cell, move)
            falls = cells[following] == "C"
            yield grids.MoveOutcome(1, start if falls else following, 1, int(falls))

    alpha = real_number("cliff-slippery: alpha", alpha, 0.0, float(steps))
    course = grids.EpisodeConfig(steps, states.index(start), "falls", alpha, alpha / 5)
    names = [grids.MOVE_NAMES[move] for move in CLIFF_MOVES]
    return grids.ingredients(grids.tables(states, 4, outcomes), course, list(map(grids.cell_name, states)), names)


def _frozen(name: str, alpha: float, *, hurry: bool) -> WorldDefinition:
    alpha = real_number(f"{name}: alpha", alpha, 0.0, 1.0)
    cells = grids.cells_of(FROZEN_MAP)
    states = list(cells)

    def outcomes(cell: grids.Cell, a: int) -> Iterator[grids.MoveOutcome]:
        if cells[cell] in "HG":
            yield grids.MoveOutcome(1, cell, 0 if hurry else 1, 0)
            return
        for move in _directions(FROZEN_MOVES, a):
            following = grids.moved(cells, cell, move)
            earns = not hurry and cells[following] == "G"
            yield grids.MoveOutcome(1, following, 0 if earns else 1, int(cells[following] == "H"))

    scale = Scale() if hurry else Scale("reward", offset=float(FROZEN_STEPS), factor=-1.0)
    course = grids.EpisodeConfig(
        FROZEN_STEPS, states.index(grids.only_cell(cells, "S")), "holes", alpha, alpha / 5, scale
    )
    names = [grids.MOVE_NAMES[move] for move in FROZEN_MOVES]
    return grids.ingredients(grids.tables(states, 4, outcomes), course, list(map(grids.cell_name, states)), names)


def _directions(moves: tuple[grids.Cell, ...], a: int) -> tuple[grids.Cell, ...]:
    """The directions in which one may slip, each as likely as the others."""
    return moves[a - 1], moves[a], moves[(a + 1) % len(moves)]
