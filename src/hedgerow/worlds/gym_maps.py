"""Worlds on two maps of Gymnasium: FrozenLake 4x4 and CliffWalking 4x12, with constraints of our own.

Transitions are those of Gymnasium's slippery tables: the chosen direction and the two at right angles to it, 1/3 each.
Losses, costs and horizons are ours:

`frozen4-hurry`: every step loses 1 until a hole or the goal ends the walk, and a hole costs 1. Falling is the fastest
way out, so the constraint has a high price.

`frozen4-goal`: the goal earns 1 when it is entered, a hole costs 1. After a fall nothing is earned any more: some
policy of least loss keeps the threshold, and the constraint is slack.

`cliff-slippery`: every step loses 1 until the goal is reached; a fall leads back to the start and costs 1 (Gymnasium
counts a fall as 100 steps). A fall takes time as well, so the constraint is slack here too. With `slippery=False`
every move goes where it is meant to.

The baseline is the best policy at a fifth of the threshold.

    >>> frozen4_hurry().cmdp.layout.steps, frozen4_hurry(alpha=0.5).cmdp.thresholds.tolist()
    (20, [0.5])
"""

from __future__ import annotations

from collections.abc import Iterator

from hedgerow.checks import real_number, whole_number
from hedgerow.worlds import building
from hedgerow.worlds.building import Cell, MoveOutcome
from hedgerow.worlds.entries import entry
from hedgerow.worlds.world import Scale, WorldDefinition

FROZEN_MAP = (
    "SFFF",
    "FHFH",
    "FFFH",
    "HFFG",
)
"""S start, F ice, H hole, G goal."""
FROZEN_MOVES = (building.LEFT, building.DOWN, building.RIGHT, building.UP)
"""In Gymnasium's order, in which the two neighbours of a direction are at right angles to it."""
FROZEN_STEPS = 20

CLIFF_MAP = (
    "............",
    "............",
    "............",
    "SCCCCCCCCCCG",
)
"""S start, C cliff, G goal."""
CLIFF_MOVES = (building.UP, building.RIGHT, building.DOWN, building.LEFT)
CLIFF_STEPS = 40


@entry(
    "frozen4-hurry",
    "FrozenLake 4x4, slippery, in a hurry: steps lose 1 until hole or goal; holes cost 1 and are the fastest way out",
    source="Gymnasium, constraint ours",
    frozen=({}, {"alpha": 0.1}, {"alpha": 0.5}),
    published={"unconstrained": 4.658108, "optimum": 14.144287},
)
def frozen4_hurry(*, alpha: float = 0.3) -> WorldDefinition:
    return _frozen("frozen4-hurry", alpha, hurry=True)


@entry(
    "frozen4-goal",
    "FrozenLake 4x4, slippery, as it is: the goal earns 1, holes cost 1; its constraint is slack",
    source="Gymnasium, constraint ours",
    published={"unconstrained": 0.199133, "optimum": 0.199133},
)
def frozen4_goal(*, alpha: float = 0.1) -> WorldDefinition:
    return _frozen("frozen4-goal", alpha, hurry=False)


@entry(
    "cliff-slippery",
    "CliffWalking 4x12, slippery: each step loses 1 until the goal, falls cost 1; its constraint is slack",
    source="Gymnasium, constraint ours",
    frozen=({}, {"slippery": False, "steps": 20}),
    published={"unconstrained": 39.253076, "optimum": 39.253076},
)
def cliff_slippery(*, slippery: bool = True, steps: int = CLIFF_STEPS, alpha: float = 0.5) -> WorldDefinition:
    steps = whole_number("cliff-slippery: steps", steps, 1)
    alpha = real_number("cliff-slippery: alpha", alpha, 0.0, float(steps))
    cells = building.cells_of(CLIFF_MAP)
    start, goal = building.only_cell(cells, "S"), building.only_cell(cells, "G")

    def outcomes(cell: Cell, a: int) -> Iterator[MoveOutcome]:
        if cell == goal:
            yield MoveOutcome(1, goal, 0, 0)
            return
        for move in _directions(CLIFF_MOVES, a) if slippery else CLIFF_MOVES[a : a + 1]:
            following = building.moved(cells, cell, move)
            falls = cells[following] == "C"
            yield MoveOutcome(1, start if falls else following, 1, int(falls))

    limits = {"falls": (alpha, alpha / 5)}
    return building.grid_world(cells, CLIFF_MOVES, outcomes, steps, limits, scale=Scale(), cost_kind="bernoulli")


def _frozen(name: str, alpha: float, *, hurry: bool) -> WorldDefinition:
    alpha = real_number(f"{name}: alpha", alpha, 0.0, 1.0)
    cells = building.cells_of(FROZEN_MAP)

    def outcomes(cell: Cell, a: int) -> Iterator[MoveOutcome]:
        if cells[cell] in "HG":
            yield MoveOutcome(1, cell, 0 if hurry else 1, 0)
            return
        for move in _directions(FROZEN_MOVES, a):
            following = building.moved(cells, cell, move)
            earns = not hurry and cells[following] == "G"
            yield MoveOutcome(1, following, 0 if earns else 1, int(cells[following] == "H"))

    how = {"scale": Scale() if hurry else None, "cost_kind": "bernoulli"}
    return building.grid_world(cells, FROZEN_MOVES, outcomes, FROZEN_STEPS, {"holes": (alpha, alpha / 5)}, **how)


def _directions(moves: tuple[Cell, ...], a: int) -> tuple[Cell, ...]:
    """The directions in which one may slip, each as likely as the others."""
    return moves[a - 1], moves[a], moves[(a + 1) % len(moves)]
