"""A plant on a ring of four sites whose waste must not gather anywhere: 25 constraints at once.

The form is that of *Discharge of Sewage* in L. Zhang, Y. Peng, W. Yang and Z. Zhang, *Semi-infinitely Constrained
Markov Decision Processes*, NeurIPS 2022, whose code is public; the numbers are ours. The sites are the corners (0,
0), (2, 0), (2, 2) and (0, 2). In each of 10 steps the plant works at its site, and then stays, or moves on to the
next one, which is the loss (reward -1). Working at z costs 1 / (1 + |y - z|) at each point y of the grid {0, .5, 1,
1.5, 2}^2. The threshold of y is 1.5 times what it gets if all sites are used alike, 15 times the mean over the sites;
the budget of the baseline is 1.35 times that.

    >>> world = pollution_ring()
    >>> world.cmdp.num_constraints, world.cmdp.constraint_names[1], round(float(world.cmdp.thresholds[1]), 6)
    (25, 'at (0, 0.5)', 6.296297)
"""

from __future__ import annotations

import math

import numpy as np

from hedgerow.importers.unroll import unroll
from hedgerow.worlds.entries import entry
from hedgerow.worlds.world import Scale, WorldDefinition

SITES = ((0.0, 0.0), (2.0, 0.0), (2.0, 2.0), (0.0, 2.0))
SIDE = (0.0, 0.5, 1.0, 1.5, 2.0)
POINTS = tuple((x, y) for x in SIDE for y in SIDE)
HORIZON = 10
ALLOWED, BASELINE = 1.5, 1.35
"""Thresholds, as multiples of what a plant causes that uses all sites alike"""


@entry(
    "pollution-ring",
    "four sites in a ring: moving on is the loss, and waste must gather at none of 25 points",
    source="after Zhang et al. 2022",
)
def pollution_ring() -> WorldDefinition:
    sites = np.arange(len(SITES))
    transitions = np.zeros((len(SITES), 2, len(SITES)))
    transitions[sites, 0, sites] = 1.0
    transitions[sites, 1, (sites + 1) % len(SITES)] = 1.0
    # Products and sqrt are exact IEEE operations, hypot is not: the hash must be the same everywhere.
    waste = np.array([[1.0 / (1.0 + math.sqrt((x - u) ** 2 + (y - v) ** 2)) for u, v in SITES] for x, y in POINTS])
    alike = HORIZON * ((waste[:, 0] + waste[:, 1] + waste[:, 2] + waste[:, 3]) / len(SITES))
    world = unroll(
        transitions,
        HORIZON,
        0,
        loss=np.tile([0.0, 1.0], (len(SITES), 1)),
        costs=np.repeat(waste[:, :, None], 2, axis=2),
        cost_kind="deterministic",
        thresholds=ALLOWED * alike,
        constraint_names=[f"at ({x:g}, {y:g})" for x, y in POINTS],
        state_names=[f"site ({x:g}, {y:g})" for x, y in SITES],
        action_names=("stay", "move on"),
    )
    assert world.loss is not None  # one was given
    return WorldDefinition(world.cmdp, world.loss, Scale("reward", factor=-1.0), BASELINE * alike)
