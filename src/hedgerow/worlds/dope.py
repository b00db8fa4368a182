"""The three worlds on which DOPE was tried: a cycle, a media buffer and an inventory, unrolled over their steps.

Source: A. Bura and others, *DOPE: Doubly Optimistic and Pessimistic Exploration for Safe Reinforcement Learning*, 2022.
All start in state 0 and have one constraint whose costs are fixed numbers. Rewards r in [0, 1] become losses 1 - r, so
that over H steps reward = H - loss. The baseline of each is the best policy under a smaller budget.

| world     | states x actions | H  | budget | baseline budget | source's scale |
|-----------|------------------|----|--------|-----------------|----------------|
| factored  | 3 x 2            | 6  | 3      | 0.6             | reward         |
| media     | 10 x 2           | 10 | 5      | 1               | loss           |
| inventory | 6 x 6            | 7  | 3.5    | 0.7             | reward         |

`support="full"` is the learner's view of the sources, which know nothing of P: each state may follow each. With
`support="known"` only positive transitions are triples.

    >>> dope_factored().cmdp.layout
    Layout(layers=(1, 3, 3, 3, 3, 3, 1), actions=2, full support)
    >>> dope_factored(support="known").cmdp.layout
    Layout(layers=(1, 2, 3, 3, 3, 3, 1), actions=2, 30 of 76 triples)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.worlds.building import Limits, checked_support, world_over_steps
from hedgerow.worlds.entries import entry
from hedgerow.worlds.world import Scale, WorldDefinition

_BOTH_SUPPORTS: tuple[dict[str, str], ...] = ({}, {"support": "known"})

SOURCE = "Bura et al. 2022"
CYCLE_STATES, CYCLE_HORIZON = 3, 6
BUFFER_LEVELS, BUFFER_HORIZON = 10, 10
ARRIVAL_FAST, ARRIVAL_SLOW, DEPARTURE = 0.9, 0.1, 0.8
CAPACITY, INVENTORY_HORIZON = 5, 7
DEMAND = (0.3, 0.2, 0.2, 0.2, 0.05, 0.05)
"""Pr[demand = d] for d = 0..5."""


@entry(
    "dope-factored",
    "a cycle of three states: moving on earns (s + 1) / 3 and costs 1, staying is free",
    frozen=_BOTH_SUPPORTS,
    source=SOURCE,
    published={"unconstrained": 4.0, "optimum": 2.0, "baseline": 0.4},
)
def dope_factored(*, support: str = "full") -> WorldDefinition:
    S = CYCLE_STATES
    states = np.arange(S)
    transitions = np.zeros((S, 2, S))
    transitions[states, 0, states] = 1.0
    transitions[states, 1, (states + 1) % S] = 1.0
    reward = np.stack((np.zeros(S), (states + 1) / S), axis=1)
    cost = np.stack((np.zeros(S), np.ones(S)), axis=1)
    limits, actions = {"moves": (3.0, 0.6)}, ("stay", "move")
    return _world(transitions, CYCLE_HORIZON, limits, 1.0 - reward, cost, actions, support)


@entry(
    "dope-media",
    "a media buffer: an empty one is a loss, fast delivery is the cost",
    frozen=_BOTH_SUPPORTS,
    source=SOURCE,
    published={"unconstrained": 5.393138, "optimum": 6.746704, "baseline": 8.983489},
)
def dope_media(*, support: str = "full") -> WorldDefinition:
    S, lam = BUFFER_LEVELS, DEPARTURE
    transitions = np.zeros((S, 2, S))
    for a, mu in enumerate((ARRIVAL_FAST, ARRIVAL_SLOW)):
        for s in range(S):
            transitions[s, a, s] += mu * lam + (1.0 - mu) * (1.0 - lam)
            transitions[s, a, min(s + 1, S - 1)] += mu * (1.0 - lam)
            transitions[s, a, max(s - 1, 0)] += (1.0 - mu) * lam
    loss = np.zeros((S, 2))
    loss[0] = 1.0
    cost = np.tile([1.0, 0.0], (S, 1))
    limits, actions = {"fast deliveries": (5.0, 1.0)}, ("fast", "slow")
    return _world(transitions, BUFFER_HORIZON, limits, loss, cost, actions, support, scale=Scale())


@entry(
    "dope-inventory",
    "a stock of at most five: orders and storage cost, sales earn",
    frozen=_BOTH_SUPPORTS,
    source=SOURCE,
    published={"unconstrained": 7.0, "optimum": 6.665322, "baseline": 1.555711},
)
def dope_inventory(*, support: str = "full") -> WorldDefinition:
    S = A = CAPACITY + 1
    transitions, revenue, expense = np.zeros((S, A, S)), np.zeros((S, A)), np.zeros((S, A))
    offered = np.add.outer(np.arange(S), np.arange(A)) <= CAPACITY
    for s, a in np.argwhere(offered).tolist():
        stock = s + a
        for d, probability in enumerate(DEMAND):
            transitions[s, a, max(stock - d, 0)] += probability
            # The source weighs 8 d by the probability of *ending* with s + a - d >= 0, which at 0 gathers all larger
            # demands: what there is in stock is sold, and the rest of the demand is lost.
            revenue[s, a] += probability * 8.0 * min(d, stock)
        expense[s, a] = (4.0 + 2.0 * a if a > 0 else 0.0) + stock
    loss, cost = 1.0 - revenue / revenue.max(), expense / expense.max()
    limits, actions = {"expense": (3.5, 0.7)}, [f"order {a}" for a in range(A)]
    return _world(transitions, INVENTORY_HORIZON, limits, loss, cost, actions, support, available=offered)


def _world(
    transitions: FloatArray,
    horizon: int,
    limits: Limits,
    loss: FloatArray,
    cost: FloatArray,
    actions: Sequence[str],
    support: str,
    **more: Any,
) -> WorldDefinition:
    how = {"action_names": actions, "support": checked_support(support), **more}
    return world_over_steps(transitions, horizon, 0, limits, loss=loss, costs=cost[None], **how)
