"""A grid without loops: 10 x 10 cells, right or down. After PyNOL's example for O-REPS (Zhao, Li and Zhou, ICML 2022).

From the upper left to the lower right corner there are 18 steps, whatever one does. The chosen direction is taken with
probability 9/10, else the other one; in the last row everybody goes right, in the last column everybody goes down. In
every cell one of the two directions loses 1 and the other nothing. The source draws these losses again every 50
episodes: that is the adversary `switching` with `period=50`. The loss of its own that the world has here is the first
draw of the source, written out in `FREE`.

The source has no constraint. The cost is ours: entering a marked cell costs 1. The marks lie where the own loss leads,
so that the threshold 0.5 binds. Ours too is the baseline, the best policy at half of the threshold.

With `support="full"` every cell may follow each cell one step earlier, as for a learner that knows the layers alone.
With `support="known"` only positive transitions are triples.

    >>> oreps_grid().cmdp.layout
    Layout(19 layers of 1 to 10 states, actions=2, full support)
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.model.cmdp import CMDP
from hedgerow.model.costs import BernoulliCosts
from hedgerow.model.layout import Layout
from hedgerow.worlds.building import DOWN, RIGHT, Cell, cell_name, checked_support
from hedgerow.worlds.entries import entry
from hedgerow.worlds.world import WorldDefinition

SIZE = 10
ACTIONS = (RIGHT, DOWN)
WEIGHTS = (9, 1)
"""Of the chosen direction and of the other one."""
FREE = (
    "RDDRDDDDDD",
    "DRRDRRRRRD",
    "RDDRRDDDDR",
    "DRDRDDRDDR",
    "RDRDDDDDRD",
    "RDDDDRDRRD",
    "DRDRDRRRRR",
    "DDRRRDDRDR",
    "RDRDDDDDDR",
    "DDRRDRRDDR",
)
"""The direction without loss, R or D, by cell."""
MARKED = (
    "..........",
    "..........",
    "...XX.....",
    "...XX.....",
    "......X...",
    "......XX..",
    ".......X..",
    "..........",
    "..........",
    "..........",
)
"""X is a cell that costs."""
THRESHOLD = 0.5


@entry(
    "oreps-grid",
    "right or down in a grid: 10 x 10 cells, one move in ten goes astray; marked cells cost (our addition)",
    source="PyNOL, constraint ours",
    adversaries=("own", "iid", "switching", "cycle", "betrayal", "tempting"),
    frozen=({}, {"support": "known"}),
)
def oreps_grid(*, support: str = "full") -> WorldDefinition:
    layers = [[(r, k - r) for r in range(SIZE) if 0 <= k - r < SIZE] for k in range(2 * SIZE - 1)]
    steps = [_step(cells, following) for cells, following in pairwise(layers)]
    if checked_support(support) == "full":
        layout = Layout([len(cells) for cells in layers], len(ACTIONS))
    else:
        layout = Layout.from_support([weights > 0 for weights in steps])
    total = sum(WEIGHTS)
    marks = [np.array([MARKED[r][c] == "X" for r, c in cells]) for cells in layers[1:]]
    costs = [(weights * mark).sum(axis=2) / total for weights, mark in zip(steps, marks, strict=True)]
    cmdp = CMDP(
        layout,
        layout.join_triples([weights / total for weights in steps]),
        BernoulliCosts(layout.join_rows(costs)[None]),
        [THRESHOLD],
        constraint_names=["marked cells"],
        state_labels=[cell_name(cell) for cells in layers for cell in cells],
        action_labels=("right", "down"),
    )
    loss = [FREE[r][c] != letter for cells in layers[:-1] for r, c in cells for letter in "RD"]
    return WorldDefinition(cmdp, np.array(loss, dtype=float), baseline_thresholds=np.array([THRESHOLD / 2]))


def _step(cells: list[Cell], following: list[Cell]) -> FloatArray:
    """(cells, 2, following): whole weights of the next cells."""
    weights = np.zeros((len(cells), len(ACTIONS), len(following)))
    for i, cell in enumerate(cells):
        for a in range(len(ACTIONS)):
            for b, move in enumerate(ACTIONS):
                weights[i, a, following.index(_entered(cell, move))] += WEIGHTS[int(a != b)]
    return weights


def _entered(cell: Cell, move: Cell) -> Cell:
    """The next cell; in the last row and column there is one only."""
    r, c = cell
    if r == SIZE - 1:
        move = RIGHT
    elif c == SIZE - 1:
        move = DOWN
    return r + move[0], c + move[1]
