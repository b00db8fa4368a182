"""Costs drawn with the step: by exact enumeration, the factor of Lemma C fails for them and that of Lemma C' holds."""

from __future__ import annotations

from itertools import pairwise, product
from math import exp, log1p

import numpy as np
import pytest

from hedgerow.confidence.aggregate import (
    AggregateRule,
    count_own_episode,
    make_aggregate,
    make_aggregate_rule,
    start_generation,
)
from hedgerow.confidence.boxes import make_boxes
from hedgerow.confidence.counts import make_unknowns
from hedgerow.model.kernel_layout import index_of
from hedgerow.model.layout import Layout

RATES = [2.0**-j for j in range(1, 15)]


def psi(rate: float) -> float:
    return -log1p(-rate) - rate


def expectation(
    layout: Layout, P: np.ndarray, cost_of: np.ndarray, rng: np.random.Generator | None = None, *, per_step: bool
) -> np.ndarray:
    """E exp(...) of one episode, for each rate: every path with its probability, sums and squares by the kernel.

    One action, and the cost of a triple is a fixed number in [0, 1]: it is drawn with the next state. V is made with
    the true means, or with centres from `rng`.
    """
    boxes = make_boxes(make_unknowns(layout, 1), clip_costs=True)
    rule: AggregateRule = make_aggregate_rule(layout, boxes, 1.0, np.array([0.5]), per_step=per_step)
    index, policy = index_of(layout), np.ones(layout.num_rows)
    certificate = make_aggregate(layout, boxes)
    g = np.array([P[a:b] @ cost_of[a:b] for a, b in pairwise(layout.row_start)])
    certificate.p_hat[:], certificate.g_hat[:, 0] = P, g if rng is None else rng.random(len(g))
    start_generation(index, policy, rule, certificate)
    V = certificate.values[0, 0].copy()
    starts = layout.row_start
    certificate.g_hat[:, 0] = g  # the best centres there are, and the sharpest test
    y = g + np.array([P[a:b] @ V[layout.successor[a:b]] for a, b in pairwise(starts)])
    values, scale = np.zeros(len(RATES)), certificate.ranges[0, 0]
    for choice in product(*(range(size) for size in layout.layer_sizes[1:])):
        states = [0, *(int(layout.state_start[k + 1]) + x for k, x in enumerate(choice))]
        triples = np.array(
            [starts[x] + list(layout.successor[starts[x] : starts[x + 1]]).index(s) for x, s in pairwise(states)]
        )
        rows, costs = np.array(states[:-1]), cost_of[triples][:, np.newaxis]
        certificate.sums[0, 0] = certificate.squares[0, 0] = 0.0
        count_own_episode(index, rows, triples, costs, rule, certificate)
        gap, squares = y[rows].sum() - certificate.sums[0, 0], certificate.squares[0, 0]
        values += P[triples].prod() * np.array([exp(rate / scale * gap - psi(rate) * squares) for rate in RATES])
    return values


def two_states() -> tuple[Layout, np.ndarray, np.ndarray]:
    """Half of the steps lead to a state in which V = 1, and cost 1; the others lead to V = 0 and cost nothing."""
    layout = Layout((1, 2, 1), 1)
    return layout, np.array([0.5, 0.5, 1.0, 1.0]), np.array([1.0, 0.0, 1.0, 0.0])


def test_squares_of_costs_and_moves_apart_are_half_of_what_they_must_be() -> None:
    """The example of docs/aggregate.md: with V = c, the square of the sum is twice the sum of the squares."""
    layout, P, _ = two_states()
    squares = {}
    for per_step in (False, True):
        boxes = make_boxes(make_unknowns(layout, 1), clip_costs=True)
        rule = make_aggregate_rule(layout, boxes, 1.0, np.array([0.5]), per_step=per_step)
        certificate = make_aggregate(layout, boxes)
        certificate.p_hat[:], certificate.g_hat[:, 0] = P, [0.5, 1.0, 0.0]
        start_generation(index_of(layout), np.ones(3), rule, certificate)
        count_own_episode(
            index_of(layout), np.array([0, 1]), np.array([0, 2]), np.array([[1.0], [1.0]]), rule, certificate
        )
        assert certificate.values[0, 0].tolist() == [1.0, 1.0, 0.0, 0.0]
        assert certificate.ranges[0, 0] == 2.0
        squares[per_step] = certificate.squares[0, 0] * certificate.ranges[0, 0] ** 2
    assert squares[True] == pytest.approx(1.0)
    assert squares[False] == pytest.approx(0.5)


def test_the_factor_of_an_episode_fails_for_costs_of_the_next_state() -> None:
    assert np.all(expectation(*two_states(), per_step=False) > 1.0 + 1e-10), "A2 is false: no supermartingale"
    assert np.all(expectation(*two_states(), per_step=True) <= 1.0 + 1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_the_factor_of_a_step_holds_whatever_the_cost_has_to_do_with_the_move(seed: int) -> None:
    rng = np.random.default_rng(seed)
    layout = Layout((1, 2, 3, 2, 1), 1)
    P = np.concatenate([rng.dirichlet(np.full(b - a, 0.5)) for a, b in pairwise(layout.row_start)])
    cost_of = (rng.random(layout.num_triples) < 0.5).astype(float) if seed % 2 else rng.random(layout.num_triples)
    assert np.all(expectation(layout, P, cost_of, rng, per_step=True) <= 1.0 + 1e-12)
