"""Buffers, the queue, the ring, bids, the battery and the machine: optima by a second program from the definitions."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise, product

import numpy as np
import pytest
from plain_program import Values, at, values

from hedgerow import worlds
from hedgerow.errors import InvalidInput
from hedgerow.model.occupancy import evaluate
from hedgerow.planning import offline

TOL_GOLDEN = 1e-6


def buffer_chain(levels, rates):
    """P (S, A, S) from rates[a](s) = (up, down)."""
    P = np.zeros((levels, len(rates), levels))
    for (a, rate), s in product(enumerate(rates), range(levels)):
        up, down = rate(s)
        for target, probability in ((s + 1, up), (s - 1, down), (s, 1.0 - up - down)):
            P[s, a, min(max(target, 0), levels - 1)] += probability
    return P


def streaming(size: int, horizon: int, enough: int, alpha: float) -> Values:
    r = 0.25
    P = buffer_chain(size + 1, [lambda s, mu=mu: ((1 - r) * mu, r * (1 - mu)) for mu in (0.7, 0.3)])
    gain = np.repeat((np.arange(size + 1) >= enough)[:, None], 2, axis=1)
    return values(P, horizon, at(0, size + 1), gain, [np.tile([1, 0], (size + 1, 1))], [alpha])


def masa(alpha: float) -> Values:
    def slow(s):
        return 0.1 * 0.3, 0.9 * 0.7

    def fast(s):
        return (0.3, 0.0) if s == 19 else (0.9 * 0.3, 0.1 * 0.7)

    empty = np.repeat((np.arange(20) == 0)[:, None], 2, axis=1)
    return values(buffer_chain(20, [slow, fast]), 40, at(10, 20), np.tile([0, -1], (20, 1)), [empty], [alpha])


def queue() -> Values:
    pairs = list(product((0.1, 0.5, 0.9), (0.0, 0.2, 0.4, 0.6)))

    def rate(a, b):
        return lambda s: (0.0, a) if s == 5 else (b * (1 - a), (1 - b) * a)

    P = buffer_chain(6, [rate(a, b) for a, b in pairs])
    gain = np.repeat(1 - np.arange(6)[:, None] / 5, 12, axis=1)
    service = np.tile([a for a, _ in pairs], (6, 1))
    refused = np.array([[1.0 if s == 5 else 1 - b for _, b in pairs] for s in range(6)])
    return values(P, 10, at(0, 6), gain, [service, refused], [4, 7])


def ring() -> Values:
    sites, side = [(0, 0), (2, 0), (2, 2), (0, 2)], [0, 0.5, 1, 1.5, 2]
    waste = np.array([[1 / (1 + math.dist(y, z)) for z in sites] for y in product(side, side)])
    P = np.stack((np.eye(4), np.roll(np.eye(4), 1, axis=1)), axis=1)
    costs = np.repeat(waste[:, :, None], 2, axis=2)
    return values(P, 10, at(0, 4), np.tile([0, -1], (4, 1)), costs, 1.5 * 10 * waste.mean(axis=1))


def bids() -> Values:
    chain = [[0.6, 0.3, 0.1, 0], [0.2, 0.5, 0.2, 0.1], [0.1, 0.2, 0.5, 0.2], [0, 0.1, 0.3, 0.6]]
    lowest = (1, 2, 3, 4)  # the first bid of 0, .3, .5, .7, .9 that wins at .2, .4, .6, .8
    won = np.array([[bid >= lowest[p] for bid in range(5)] for p in range(4)])
    P = np.repeat(np.array(chain)[:, None], 5, axis=1)
    gain, cost = won * np.array([[0.5], [0.7], [0.9], [1.0]]), won * np.array([[0.2], [0.4], [0.6], [0.8]])
    return values(P, 6, np.full(4, 0.25), gain, [cost], [1.5])


def battery() -> Values:
    """State 2 charge + price."""
    price = np.array([[0.7, 0.3], [0.3, 0.7]])
    P, gain, costs = np.zeros((10, 3, 10)), np.zeros((6, 10, 3)), np.zeros((2, 6, 10, 3))
    for charge, p, a in product(range(5), range(2), range(3)):
        s, works = 2 * charge + p, (0.0, 0.9, 0.8)[a]
        for target, probability in ((min(charge + a, 4), works), (charge, 1 - works)):
            P[s, a, 2 * target : 2 * target + 2] += probability * price[p]
        gain[:5, s, a] = -0.05 * (a > 0)
        gain[5, s, a] = -(1 - charge / 4)
        costs[0, :, s, a] = 0.25 * a * (0.3, 1.0)[p]
        costs[1, 2:4, s, a] = a / 2
    start = np.zeros(10)
    start[:2] = 0.5
    return values(P, 6, start, gain, costs, [0.5, 0.3])


def machine(alpha: float) -> Values:
    P, gain, cost = np.zeros((5, 3, 5)), np.zeros((5, 3)), np.zeros((5, 3))
    for s in range(5):
        for a, (wear, worth) in enumerate(((0.3, 0.5), (0.6, 1.0))):
            P[s, a, min(s + 1, 4)] += wear
            P[s, a, s] += 1 - wear
            gain[s, a] = worth * (1 - 0.15 * s)
            cost[s, a] = (0, 0, 0, wear, 1)[s]
        P[s, 2, 0] += 0.9
        P[s, 2, s] += 0.1
    return values(P, 10, at(0, 5), gain, [cost], [alpha])


# name, parameters, second program, (states, dense triples), known (unconstrained, optimum) or None
Case = tuple[str, dict[str, float], Callable[[], Values], tuple[int, int], tuple[float, float] | None]
CASES: list[Case] = [
    ("streaming-5", {}, lambda: streaming(5, 4, 1, 1.6), (11, 48), (2.099672, 1.900172)),
    ("streaming-20", {}, lambda: streaming(20, 10, 6, 4.0), (56, 680), (0.475996, 0.373237)),
    ("masa-streaming", {}, lambda: masa(1.0), (701, 26_000), (0.0, -17.141039)),
    ("masa-streaming", {"alpha": 2.0}, lambda: masa(2.0), (701, 26_000), (0.0, -16.153072)),
    ("masa-streaming", {"alpha": 4.0}, lambda: masa(4.0), (701, 26_000), (0.0, -14.455173)),
    ("altman-queue", {}, queue, (46, 2_640), None),
    ("pollution-ring", {}, ring, (35, 240), None),
    ("bidding", {}, bids, (26, 440), None),
    ("ev-charging", {}, battery, (50, 1_146), (-0.128080, -0.251948)),
    ("maintenance", {}, lambda: machine(0.05), (41, 510), None),
    ("maintenance", {"alpha": 0.02}, lambda: machine(0.02), (41, 510), None),
]


@pytest.mark.parametrize(
    ("name", "params", "second", "size", "known"), CASES, ids=[f"{case[0]} {case[1] or ''}" for case in CASES]
)
def test_optima_agree_with_a_second_program(name, params, second, size, known):
    world, other = worlds.make(name, **params), second()
    golden = world.golden
    assert world.source_value(golden.unconstrained) == pytest.approx(other.unconstrained, abs=TOL_GOLDEN)
    assert world.source_value(golden.optimum) == pytest.approx(other.optimum, abs=TOL_GOLDEN)
    assert golden.margin == pytest.approx(other.margin, abs=TOL_GOLDEN)
    if known is not None:
        assert (other.unconstrained, other.optimum) == pytest.approx(known, abs=TOL_GOLDEN)
    layout = world.cmdp.layout
    assert layout.num_states == size[0]
    assert layout.num_dense_triples == pytest.approx(size[1], rel=0.02)


@pytest.mark.parametrize("name", dict.fromkeys(case[0] for case in CASES))
def test_the_constraint_binds_and_the_baseline_is_safe(name):
    world = worlds.make(name)
    best = offline.optimum(world)
    assert np.min(world.cmdp.thresholds - best.costs) == pytest.approx(0.0, abs=1e-7)
    assert not world.golden.is_control
    safe = offline.optimum(world.cmdp.with_thresholds(world.baseline_thresholds), world.loss)
    assert np.all(safe.costs < world.cmdp.thresholds - 0.02 * world.golden.margin)
    assert safe.value >= best.value
    assert safe.value == pytest.approx(world.golden.baseline, abs=TOL_GOLDEN)


@pytest.mark.parametrize("name", dict.fromkeys(case[0] for case in CASES))
def test_states_and_actions_have_names(name):
    cmdp = worlds.make(name).cmdp
    assert len(set(cmdp.action_labels)) == cmdp.layout.num_actions
    assert len(set(cmdp.state_labels)) == cmdp.layout.num_states
    assert all(not label.isdigit() for label in (*cmdp.action_labels, *cmdp.state_labels, *cmdp.constraint_names))


def test_a_full_buffer_of_masa_stays_full_under_fast_delivery():
    cmdp = worlds.make("masa-streaming").cmdp
    top = cmdp.layout.state("(20, level 19)")
    for action, expected in (("fast", {19: 1.0}), ("slow", {18: 0.9 * 0.7, 19: 1 - 0.9 * 0.7})):
        row = cmdp.layout.row(top, action)
        triples = slice(cmdp.layout.row_start[row], cmdp.layout.row_start[row + 1])
        following = [cmdp.state_labels[x] for x in cmdp.layout.successor[triples]]
        found = dict(zip(following, cmdp.transitions[triples], strict=True))
        assert found == pytest.approx({f"(21, level {s})": p for s, p in expected.items()})


def test_a_full_queue_refuses_everything_at_the_full_cost():
    cmdp = worlds.make("altman-queue").cmdp
    full = cmdp.layout.state("(9, level 5)")
    for action in cmdp.action_labels:
        assert cmdp.mean_costs[1, cmdp.layout.row(full, action)] == 1.0


def test_bids_win_from_a_tenth_above_the_price_on():
    cmdp = worlds.make("bidding").cmdp
    for price, bid, won in ((0.6, 0.7, True), (0.6, 0.5, False), (0.2, 0.3, True), (0.8, 0.9, True), (0.2, 0, False)):
        row = cmdp.layout.row(f"(3, price {price})", f"bid {bid}")
        assert cmdp.mean_costs[0, row] == (price if won else 0.0)


def test_the_ring_by_hand():
    """Staying at the first site for all ten steps is free of loss and breaks the threshold there."""
    world = worlds.make("pollution-ring")
    stay = np.tile([1.0, 0.0], world.cmdp.layout.num_decision_states)
    found = evaluate(world.cmdp, stay, world.loss)
    assert found.loss == 0.0
    assert found.costs[0] == 10.0
    assert world.cmdp.thresholds[0] == pytest.approx(15 * (1 + 2 / 3 + 1 / (1 + math.sqrt(8))) / 4)


def test_a_smaller_budget_is_never_better():
    for name in ("masa-streaming", "maintenance"):
        made = [worlds.make(name, alpha=alpha) for alpha in (0.02, 0.05, 1.0, 2.0)]
        losses = [offline.optimum(world).value for world in made]
        assert all(less >= more - 1e-9 for less, more in pairwise(losses))


@pytest.mark.parametrize("name", ["masa-streaming", "maintenance"])
def test_bad_budgets(name):
    with pytest.raises(InvalidInput, match=rf"{name}: alpha is -1.0; it must lie in"):
        worlds.make(name, alpha=-1.0)
    with pytest.raises(InvalidInput, match=rf"{name}: alpha is nan"):
        worlds.make(name, alpha=float("nan"))
