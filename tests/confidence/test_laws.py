"""Rows that share laws: where they are counted, what is left to estimate, and counts against a slow recount."""

from __future__ import annotations

from math import log
from typing import Any

import naive_estimates as naive
import naive_laws
import numpy as np
import pytest

import hedgerow as hr
from hedgerow.confidence.counts import make_counts, make_unknowns, record, record_costs
from hedgerow.confidence.radii import Radii, make_shares
from hedgerow.model.kernel_layout import index_of
from hedgerow.model.knowledge import Knowledge
from hedgerow.model.layout import Layout

NAN = np.nan


def tied(rng: np.random.Generator, layout: Layout, **more: Any) -> Knowledge:
    return Knowledge(
        same_transitions=naive_laws.random_classes(rng, layout, equally_long=True),
        same_costs=naive_laws.random_classes(rng, layout, equally_long=False),
        **more,
    )


def deep_layout(rng: np.random.Generator, *, full: bool) -> Layout:
    """Six layers, so that an episode meets a class several times."""
    sizes, actions = (1, 3, 2, 3, 3, 2, 1), 2
    return Layout(sizes, actions) if full else naive.sparse_layout(rng, sizes, actions, 0.4)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("independent", [False, True])
@pytest.mark.parametrize("m", [0, 1, 3])
def test_counts_of_classes_are_those_of_a_recount(m: int, independent: bool, seed: int) -> None:
    """Transitions count at every visit, costs at the first one of an episode unless they are independent."""
    rng = np.random.default_rng([m, seed])
    layout = deep_layout(rng, full=seed % 2 == 0)
    known = tied(rng, layout, independent_costs=independent)
    assert known.same_transitions is not None
    assert known.same_costs is not None
    laws, counts = make_unknowns(layout, m, known, ties=True).laws, make_counts(layout, m)
    p, pi = naive.some_transitions(rng, layout), naive.some_policy(rng, layout)
    history, several = [], False
    for _ in range(60):
        rows, triples = naive.some_episode(rng, layout, p, pi)
        length = int(rng.integers(1, layout.steps + 1)) if rng.random() < 0.3 else layout.steps  # some are cut short
        rows, triples = rows[:length], triples[:length]
        costs, counted = rng.random((length, m)), bool(rng.random() < 0.8)
        record(index_of(layout), laws, counts, np.array(rows), np.array(triples))
        if counted:
            record_costs(laws, counts, np.array(rows), costs)
        steps = [j - int(layout.row_start[r]) for r, j in zip(rows, triples, strict=True)]
        history.append(naive_laws.Seen(rows, steps, costs, counted))
        several |= len({int(known.same_costs[r]) for r in rows}) < length
        assert not laws.counted.any()
    assert several
    recount = naive_laws.Recount.of(history, known.same_transitions, known.same_costs, independent)
    for row in range(layout.num_rows):
        assert counts.num_visits[row] == recount.visits[row]
        own = range(layout.row_start[row], layout.row_start[row + 1])
        assert counts.num_moves[own].tolist() == [recount.moves[row, j] for j in range(len(own))]
        assert counts.num_costs[row] == recount.num_costs[row]
        np.testing.assert_allclose(counts.cost_sums[row], np.sum(recount.sums[row] or [[0.0] * m], axis=0), atol=1e-12)


def test_a_worked_example_of_costs_that_depend_on_each_other() -> None:
    """Three steps in one class, costs .25, .5, 1: the first counts, or all of them."""
    layout = Layout((1, 1, 1, 1), 1)
    for independent, num, total in ((False, 1, 0.25), (True, 3, 1.75)):
        known = Knowledge(same_costs=np.zeros(3, dtype=np.int64), independent_costs=independent)
        laws, counts = make_unknowns(layout, 1, known, ties=True).laws, make_counts(layout, 1)
        record_costs(laws, counts, np.arange(3), np.array([[0.25], [0.5], [1.0]]))
        assert counts.num_costs.tolist() == [num, 0, 0]
        assert counts.cost_sums[0, 0] == total


def test_without_the_switch_nothing_is_shared() -> None:
    rng = np.random.default_rng(0)
    layout = deep_layout(rng, full=True)
    unknowns = make_unknowns(layout, 2, tied(rng, layout), ties=False)
    assert not unknowns.tied
    rows = np.arange(layout.num_rows)
    for at, start, same in (
        (unknowns.laws.moves_at, unknowns.laws.moves_start, unknowns.laws.same_moves),
        (unknowns.laws.costs_at, unknowns.laws.costs_start, unknowns.laws.same_costs),
    ):
        np.testing.assert_array_equal(at, rows)
        np.testing.assert_array_equal(same, rows)
        np.testing.assert_array_equal(start, np.arange(layout.num_rows + 1))


@pytest.mark.parametrize("seed", range(4))
def test_the_rows_of_a_law_are_listed_with_its_first_row_in_front(seed: int) -> None:
    rng = np.random.default_rng(seed)
    layout = deep_layout(rng, full=False)
    known = tied(rng, layout)
    unknowns = make_unknowns(layout, 1, known, ties=True)
    laws = unknowns.laws
    assert unknowns.tied
    for first, at, start, same in (
        (known.same_transitions, laws.moves_at, laws.moves_start, laws.same_moves),
        (known.same_costs, laws.costs_at, laws.costs_start, laws.same_costs),
    ):
        assert first is not None
        np.testing.assert_array_equal(at, first)
        for row in range(layout.num_rows):
            expected = [r for r in range(layout.num_rows) if first[r] == row]
            assert same[start[row] : start[row + 1]].tolist() == expected
            assert not expected or expected[0] == row


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("ties", [False, True])
def test_what_is_left_to_estimate(ties: bool, seed: int) -> None:
    """Of each class one row, unless it is known; with a row by row count in plain Python."""
    rng = np.random.default_rng(seed)
    layout = deep_layout(rng, full=seed % 2 == 0)
    m, known = 2, tied(rng, layout)
    assert known.same_transitions is not None
    assert known.same_costs is not None
    p, g = np.full(layout.num_triples, NAN), np.full((m, layout.num_rows), NAN)
    known_classes = set(rng.choice(known.same_transitions, 4).tolist())
    known_costs = {(int(rng.integers(m)), int(c)) for c in rng.choice(known.same_costs, 4)}
    for row in range(layout.num_rows):
        own = slice(layout.row_start[row], layout.row_start[row + 1])
        if int(known.same_transitions[row]) in known_classes:
            p[own] = 1.0 / (own.stop - own.start)
        for i in range(m):
            if (i, int(known.same_costs[row])) in known_costs:
                g[i, row] = 0.5
    knowledge = Knowledge(known.same_transitions, known.same_costs, False, p, g)
    unknowns = make_unknowns(layout, m, knowledge, ties=ties)
    moves, triples, costs = set(), 0, set()
    for row in range(layout.num_rows):
        n, place = int(np.diff(layout.row_start)[row]), int(known.same_transitions[row]) if ties else row
        if n > 1 and int(known.same_transitions[row]) not in known_classes and place not in moves:
            moves.add(place)
            triples += n
        for i in range(m):
            if (i, int(known.same_costs[row])) not in known_costs:
                costs.add((i, int(known.same_costs[row]) if ties else row))
    assert unknowns.counted_rows.tolist() == sorted(moves)
    assert unknowns.num_triples == triples
    assert unknowns.num_costs == len(costs)
    assert unknowns.unknown_costs.sum() == np.isnan(g).sum()
    extra = make_unknowns(layout, m, knowledge, ties=ties, extra=1)
    assert extra.num_costs == len(costs) + len({int(c) for c in known.same_costs} if ties else range(layout.num_rows))


@pytest.mark.parametrize("kind", ["paper", "tight", "anytime", "kt"])
def test_logarithms_count_what_there_is_to_estimate(kind: str) -> None:
    """Of classes, with T L in the place of T where rows share laws; the paper's radii count all pairs."""
    rng = np.random.default_rng(1)
    layout, m, T, delta = deep_layout(rng, full=True), 2, 500, 0.05
    known = tied(rng, layout)
    unknowns = make_unknowns(layout, m, known, ties=True)
    rule = Radii(kind).rule(layout, m, delta, T, unknowns)
    L, pairs = layout.steps, layout.num_states * layout.num_actions
    n_costs, n_triples = m * len(np.unique(known.same_costs)), unknowns.num_triples
    expected = {
        "paper": (log(T * L * pairs * m / delta), log(T * L * pairs / delta)),
        "tight": (log(2 * n_costs * T * L / delta), log(4 * n_triples * T * L / (4 * delta))),
        "anytime": (log(2 * n_costs * L / delta), log(4 * n_triples * L / (4 * delta))),
        "kt": (log(n_costs / (3 * delta)), log(n_triples / (2 * delta))),
    }[kind]
    assert (rule.cost_log, rule.transition_log) == pytest.approx(expected, rel=1e-14)


def test_shares_sum_to_five_at_most_and_go_where_they_are_needed() -> None:
    layout = Layout((1, 3, 2, 1), 2)
    everything, no_moves = make_unknowns(layout, 1), make_unknowns(Layout((1, 1, 1), 2), 1)
    for aggregate in (False, True):
        for balls in (0, 3):
            shares = make_shares(everything, aggregate=aggregate, num_balls=balls)
            assert shares.costs + shares.transitions + shares.aggregate + shares.balls == 5.0
            assert shares.costs + shares.aggregate == 3.0
            assert (shares.aggregate > 0.0, shares.balls > 0.0) == (aggregate, balls > 0)
    certain = make_shares(no_moves, aggregate=True)
    assert certain.costs + certain.aggregate == 5.0
    known = make_unknowns(layout, 1, Knowledge(transitions=np.ones(layout.num_triples)))
    assert make_shares(known).costs == 5.0


def test_known_rows_leave_no_logarithm_of_zero() -> None:
    world = hr.worlds.make("random-layered").cmdp
    known = Knowledge(transitions=world.transitions, costs=world.mean_costs)
    unknowns = make_unknowns(world.layout, world.num_constraints, known)
    assert (unknowns.num_costs, unknowns.num_triples) == (0, 0)
    for kind in ("paper", "tight", "anytime", "kt"):
        rule = Radii(kind).rule(world.layout, world.num_constraints, 0.05, 100, unknowns)
        assert np.isfinite([rule.cost_log, rule.transition_log]).all()
        assert rule.cost_log > 0.0
