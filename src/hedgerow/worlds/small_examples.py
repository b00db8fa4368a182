"""Four small worlds with numbers of ours: bids under a budget, a battery, a machine that wears out, a polluting plant.

**bidding**: before each of 6 auctions the price p is .2, .4, .6 or .8, uniform at first, then by the chain
`PRICE_CHAIN`. A bid of 0, .3, .5, .7 or .9 wins if it is at least p + .1. A win is worth .5, .7, .9 or 1 by price
level, which is the reward, and costs p; at most 1.5 may be spent in expectation.

**ev-charging** (no real data; those are in `ev-workday`): a battery of 4 units is empty at first; the price of power
is low or high and stays with probability .7. In each of 6 steps one charges 0, 1 or 2 units: one unit succeeds with
probability .9, two with .8, else nothing is charged. Reward -.05 in a step with charging, and in the last step -(1 -
charge / 4) instead. Costs: .25 per unit, times .3 if the price is low; and in steps 2 and 3, counted from 0, when the
grid is crowded, 1/2 per unit.

**maintenance**: a machine with wear 0 to 4 runs gently (wears with probability .3, gains .5), runs hard (.6, gains
1), or is repaired (to wear 0 with probability .9). At wear s a gain is multiplied by 1 - .15 s. Over 10 steps the
cost counts how often wear 4 is reached by running, and each step of running there; it is a coin with that mean.

**pollution-ring** has the form of *Discharge of Sewage* in L. Zhang, Y. Peng, W. Yang and Z. Zhang, *Semi-infinitely
Constrained Markov Decision Processes*, NeurIPS 2022, whose code is public. A plant on a ring of four sites, the corners
(0, 0), (2, 0), (2, 2) and (0, 2), works at its site in each of 10 steps, and then stays, or moves on to the next one,
which is the loss (reward -1). Working at z costs 1 / (1 + |y - z|) at each point y of the grid {0, .5, 1, 1.5, 2}^2: 25
constraints at once. The threshold of y is 1.5 times what it gets if all sites are used alike, 15 times the mean over
the sites; the budget of the baseline is 1.35 times that.

The baseline of each is the best policy under a smaller budget.

    >>> bidding().cmdp.layout.layer_sizes
    (1, 4, 4, 4, 4, 4, 4, 1)
    >>> ev_charging().cmdp.constraint_names
    ('expense', 'load at the peak')
    >>> ring = pollution_ring().cmdp
    >>> ring.num_constraints, ring.constraint_names[1], round(float(ring.thresholds[1]), 6)
    (25, 'at (0, 0.5)', 6.296297)
"""

from __future__ import annotations

import math

import numpy as np

from hedgerow.checks import real_number
from hedgerow.worlds.building import world_over_steps
from hedgerow.worlds.entries import entry
from hedgerow.worlds.world import Scale, WorldDefinition

OURS = "ours"

PRICE_TENTHS, BID_TENTHS = (2, 4, 6, 8), (0, 3, 5, 7, 9)
PRICE_CHAIN = ((0.6, 0.3, 0.1, 0.0), (0.2, 0.5, 0.2, 0.1), (0.1, 0.2, 0.5, 0.2), (0.0, 0.1, 0.3, 0.6))
WORTH = (0.5, 0.7, 0.9, 1.0)
AUCTIONS, MONEY = 6, 1.5


@entry("bidding", "six auctions with a moving price: wins are the reward, what they cost is limited", source=OURS)
def bidding() -> WorldDefinition:
    # In tenths, because 0.6 + 0.1 is more than 0.7 in floating point.
    won = np.array([[bid >= price + 1 for bid in BID_TENTHS] for price in PRICE_TENTHS])
    prices = np.array(PRICE_TENTHS) / 10.0
    return world_over_steps(
        np.repeat(np.array(PRICE_CHAIN)[:, None], len(BID_TENTHS), axis=1),
        AUCTIONS,
        np.full(len(prices), 0.25),
        {"money": (MONEY, MONEY / 3)},
        loss=1.0 - won * np.array(WORTH)[:, None],
        costs=(won * prices[:, None])[None],
        state_names=[f"price {p:g}" for p in prices],
        action_names=[f"bid {bid / 10:g}" for bid in BID_TENTHS],
    )


UNITS, CHARGING_STEPS, CROWDED = 4, 6, (2, 3)
SUCCEEDS, STAYS, DISCOUNT, EFFORT = (1.0, 0.9, 0.8), 0.7, 0.3, 0.05


@entry(
    "ev-charging",
    "charging at a moving price: a battery and a crowded hour; two budgets, and it should be full at the end",
    published={"unconstrained": -0.128080, "optimum": -0.251948},
    source=OURS,
)
def ev_charging() -> WorldDefinition:
    places = [(charge, price) for charge in range(UNITS + 1) for price in range(2)]
    shape = (CHARGING_STEPS, len(places), len(SUCCEEDS))
    transitions = np.zeros((len(places), len(SUCCEEDS), len(places)))
    loss, expense, crowd = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    for s, (charge, price) in enumerate(places):
        for a, p in enumerate(SUCCEEDS):
            for following in range(2):
                moves = STAYS if following == price else 1.0 - STAYS
                transitions[s, a, places.index((min(charge + a, UNITS), following))] += p * moves
                transitions[s, a, places.index((charge, following))] += (1.0 - p) * moves
            loss[:-1, s, a] = EFFORT if a else 0.0
            expense[:, s, a] = 0.25 * a * (1.0 if price else DISCOUNT)
            crowd[list(CROWDED), s, a] = a / 2
        loss[-1, s] = 1.0 - charge / UNITS
    start = np.zeros(len(places))
    start[:2] = 0.5
    return world_over_steps(
        transitions,
        CHARGING_STEPS,
        start,
        {"expense": (0.5, 0.25), "load at the peak": (0.3, 0.15)},
        loss=loss,
        costs=np.stack((expense, crowd)),
        scale=Scale("reward", factor=-1.0),
        state_names=[f"charge {charge}, {('low', 'high')[price]} price" for charge, price in places],
        action_names=[f"charge {a}" for a in range(len(SUCCEEDS))],
    )


WORST, MAINTENANCE_STEPS, FADING, REPAIRED = 4, 10, 0.15, 0.9
WEARS, GAINS = (0.3, 0.6), (0.5, 1.0)


@entry(
    "maintenance",
    "a machine that wears out: gains are the reward, running it worn out is the cost",
    frozen=({}, {"alpha": 0.02}),
    source=OURS,
)
def maintenance(*, alpha: float = 0.05) -> WorldDefinition:
    real_number("maintenance: alpha", alpha, 0.0, float(MAINTENANCE_STEPS))
    S = WORST + 1
    transitions, gain, worn = np.zeros((S, 3, S)), np.zeros((S, 3)), np.zeros((S, 3))
    for s in range(S):
        for a, (wears, full) in enumerate(zip(WEARS, GAINS, strict=True)):
            transitions[s, a, min(s + 1, WORST)] += wears
            transitions[s, a, s] += 1.0 - wears
            gain[s, a] = full * (1.0 - FADING * s)
            worn[s, a] = 1.0 if s == WORST else wears if s == WORST - 1 else 0.0
        transitions[s, 2, 0] += REPAIRED
        transitions[s, 2, s] += 1.0 - REPAIRED
    return world_over_steps(
        transitions,
        MAINTENANCE_STEPS,
        0,
        {"worn out": (alpha, alpha / 5)},
        loss=1.0 - gain,
        costs=worn[None],
        cost_kind="bernoulli",
        state_names=[f"wear {s}" for s in range(S)],
        action_names=("gentle", "hard", "repair"),
    )


SITES = ((0.0, 0.0), (2.0, 0.0), (2.0, 2.0), (0.0, 2.0))
SIDE = (0.0, 0.5, 1.0, 1.5, 2.0)
POINTS = tuple((x, y) for x in SIDE for y in SIDE)
RING_STEPS = 10
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
    alike = RING_STEPS * ((waste[:, 0] + waste[:, 1] + waste[:, 2] + waste[:, 3]) / len(SITES))
    names = [f"at ({x:g}, {y:g})" for x, y in POINTS]
    pairs = zip((ALLOWED * alike).tolist(), (BASELINE * alike).tolist(), strict=True)
    return world_over_steps(
        transitions,
        RING_STEPS,
        0,
        dict(zip(names, pairs, strict=True)),
        loss=np.tile([0.0, 1.0], (len(SITES), 1)),
        costs=np.repeat(waste[:, :, None], 2, axis=2),
        scale=Scale("reward", factor=-1.0),
        state_names=[f"site ({x:g}, {y:g})" for x, y in SITES],
        action_names=("stay", "move on"),
    )
