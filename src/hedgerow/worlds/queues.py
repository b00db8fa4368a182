"""Buffers and a queue: media that must not run dry, and a queue whose service and arrivals both cost.

A level rises by one with probability `up`, falls by one with probability `down`, and is clipped at both ends.

| world          | levels | H  | start | up, down                             | cost                 | budget |
|----------------|--------|----|-------|--------------------------------------|----------------------|--------|
| streaming-5    | 0..5   | 4  | 0     | (1 - r) mu, r (1 - mu)               | 1 for fast delivery  | 1.6    |
| streaming-20   | 0..20  | 10 | 0     | the same                             | the same             | 4      |
| masa-streaming | 0..19  | 40 | 10    | in (1 - .7), (1 - in) .7             | 1 at level 0         | 1      |
| altman-queue   | 0..5   | 10 | 0     | b (1 - a), (1 - b) a                 | a, and 1 - b         | 4, 7   |

Streaming (T. Kitamura and others, 2025, code of *Provably Efficient RL under Episode-Wise Safety in Constrained MDPs
with Linear Function Approximation*, read in public): mu = .7 for fast delivery and .3 for slow, r = .25. The source
draws mu from [.5, .9] and r from [.1, .4] and constrains slow deliveries from below; we take the middle. The reward is
1 in a step that begins with at least 1 (streaming-5) or 6 (streaming-20) packets.

masa-streaming (`MediaStreaming` of MASA-Safe-RL, A. W. Goodall and others, 2026, read in public): in = .1 for slow and
.9 for fast delivery, which at the full level fills every gap (in = 1). Fast delivery has reward -1. Horizon and budget
are ours.

altman-queue has the form of flow and service control in E. Altman, *Constrained Markov Decision Processes*, 1999; its
numbers are ours. An action is a pair of a service rate a in {.1, .5, .9} and an arrival rate b in {0, .2, .4, .6}. A
full queue takes no arrivals: there b counts as 0. The reward is 1 - level / 5; service and refused arrivals cost.

The baseline of each is the best policy under a smaller budget, which is ours.

    >>> streaming_5().cmdp.layout
    Layout(layers=(1, 2, 3, 4, 1), actions=2, 38 of 48 triples)
    >>> altman_queue().cmdp.constraint_names
    ('service', 'refused arrivals')
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hedgerow.checks import real_number
from hedgerow.worlds.building import Limits, world_over_steps
from hedgerow.worlds.entries import entry
from hedgerow.worlds.world import Scale, WorldDefinition

KITAMURA = "Kitamura et al. 2025"
FAST, SLOW, DEPARTURE = 0.7, 0.3, 0.25
MASA_SLOW, MASA_FAST, MASA_OUT, MASA_LEVELS, MASA_HORIZON = 0.1, 0.9, 0.7, 20, 40
SERVICE, ARRIVALS = (0.1, 0.5, 0.9), (0.0, 0.2, 0.4, 0.6)
QUEUE_LEVELS, QUEUE_HORIZON = 6, 10

Rates = Callable[[int, int], tuple[float, float]]
"""(level, action) -> (up, down)"""


def _queue(
    levels: int, actions: Sequence[str], rates: Rates, horizon: int, start: int, limits: Limits, **more: Any
) -> WorldDefinition:
    """One level up or down in a step, clipped at the ends; `more` are loss, costs and scale."""
    transitions = np.zeros((levels, len(actions), levels))
    for s in range(levels):
        for a in range(len(actions)):
            up, down = rates(s, a)
            transitions[s, a, min(s + 1, levels - 1)] += up
            transitions[s, a, max(s - 1, 0)] += down
            transitions[s, a, s] += 1.0 - up - down
    names = [f"level {s}" for s in range(levels)]
    return world_over_steps(transitions, horizon, start, limits, state_names=names, action_names=actions, **more)


# Streaming ------------------------------------------------------------------------------------------------------------


@entry(
    "streaming-5",
    "a media buffer of 5: it should not be empty, and fast delivery is the cost",
    published={"unconstrained": 2.099672, "optimum": 1.900172},
    source=KITAMURA,
)
def streaming_5() -> WorldDefinition:
    return _streaming(size=5, horizon=4, enough=1, budget=1.6)


@entry(
    "streaming-20",
    "a media buffer of 20: it should hold at least 6, and fast delivery is the cost",
    published={"unconstrained": 0.475996, "optimum": 0.373237},
    source=KITAMURA,
)
def streaming_20() -> WorldDefinition:
    return _streaming(size=20, horizon=10, enough=6, budget=4.0)


def _streaming(size: int, horizon: int, enough: int, budget: float) -> WorldDefinition:
    levels = size + 1
    rates = [((1.0 - DEPARTURE) * mu, DEPARTURE * (1.0 - mu)) for mu in (FAST, SLOW)]
    loss = np.ones((levels, 2))
    loss[enough:] = 0.0
    limits, costs = {"fast deliveries": (budget, budget / 4)}, np.tile([1.0, 0.0], (1, levels, 1))
    return _queue(levels, ("fast", "slow"), lambda s, a: rates[a], horizon, 0, limits, loss=loss, costs=costs)


@entry(
    "masa-streaming",
    "a media buffer, seldom empty: fast delivery is the loss, and an empty buffer the cost",
    frozen=({}, {"alpha": 2.0}, {"alpha": 4.0}),
    published={"unconstrained": 0.0, "optimum": -17.141039},
    source="MASA-Safe-RL 2026",
)
def masa_streaming(*, alpha: float = 1.0) -> WorldDefinition:
    real_number("masa-streaming: alpha", alpha, 0.0, float(MASA_HORIZON))

    def rates(s: int, a: int) -> tuple[float, float]:
        full = s == MASA_LEVELS - 1
        arriving = (MASA_SLOW, 1.0 if full else MASA_FAST)[a]
        return arriving * (1.0 - MASA_OUT), (1.0 - arriving) * MASA_OUT

    empty = np.zeros((1, MASA_LEVELS, 2))
    empty[:, 0] = 1.0
    limits, loss = {"empty": (alpha, alpha / 4)}, np.tile([0.0, 1.0], (MASA_LEVELS, 1))
    middle, scale = MASA_LEVELS // 2, Scale("reward", factor=-1.0)
    return _queue(
        MASA_LEVELS, ("slow", "fast"), rates, MASA_HORIZON, middle, limits, loss=loss, costs=empty, scale=scale
    )


# The queue ------------------------------------------------------------------------------------------------------------


@entry(
    "altman-queue",
    "a queue that should be short: service costs, and so do refused arrivals",
    source="after Altman 1999",
)
def altman_queue() -> WorldDefinition:
    pairs = [(a, b) for a in SERVICE for b in ARRIVALS]

    def rates(s: int, action: int) -> tuple[float, float]:
        a, b = pairs[action]
        b = 0.0 if s == QUEUE_LEVELS - 1 else b
        return b * (1.0 - a), (1.0 - b) * a

    service = np.tile([a for a, _ in pairs], (QUEUE_LEVELS, 1))
    refused = np.tile([1.0 - b for _, b in pairs], (QUEUE_LEVELS, 1))
    refused[-1] = 1.0
    loss = np.repeat(np.arange(QUEUE_LEVELS)[:, None] / (QUEUE_LEVELS - 1), len(pairs), axis=1)
    limits = {"service": (4.0, 2.5), "refused arrivals": (7.0, 5.5)}
    names = [f"serve {a:g}, admit {b:g}" for a, b in pairs]
    costs = np.stack((service, refused))
    return _queue(QUEUE_LEVELS, names, rates, QUEUE_HORIZON, 0, limits, loss=loss, costs=costs)
