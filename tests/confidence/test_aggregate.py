"""The aggregate certificate: its counters and bounds against slow twins, and what is done with its generations."""

from __future__ import annotations

from copy import deepcopy

import aggregate_worlds as worlds
import naive_aggregate as twin
import naive_estimates as naive
import numpy as np
import pytest

from hedgerow.confidence.aggregate import (
    NUM_SLOTS,
    Aggregate,
    aggregate_radius,
    close_generations,
    log_term_of,
    make_aggregate,
    set_cost_centre,
    set_transition_centre,
    start_generation,
)
from hedgerow.confidence.boxes import make_boxes
from hedgerow.confidence.counts import make_unknowns
from hedgerow.learners.kernels import flat_arrays
from hedgerow.model.kernel_layout import index_of
from hedgerow.model.layout import Layout

CLOSE = 1e-10


@pytest.mark.parametrize(("squares", "expected"), [(10.0, 71.588831), (1000.0, 444.753423), (0.0, 60.0)])
def test_the_radius_of_the_vectors(squares: float, expected: float) -> None:
    assert aggregate_radius(10.0, squares, 3.0) == pytest.approx(expected, abs=5e-7)


def test_the_radius_is_that_of_its_twin() -> None:
    for squares in (0.0, 0.3, 17.0, 1e4, 1e9):
        for log_term in (1.0, 12.0):
            assert aggregate_radius(log_term, squares, 2.0) == pytest.approx(twin.radius(log_term, squares, 2.0))


def test_the_shares_of_the_generations_sum_to_one() -> None:
    shares = [np.exp(-log_term_of(0.0, 1, g)) * 14 for g in range(4000)]
    np.testing.assert_allclose(shares[:60], [twin.share(g) for g in range(60)], rtol=1e-12)
    assert 1 - 1e-4 < sum(shares) <= 1 + 1e-12
    assert log_term_of(2.0, 3, 5) == pytest.approx(twin.log_term(2.0, 3, 5))


@pytest.mark.parametrize("seed", range(16))
def test_a_run_says_what_its_twin_says(seed: int) -> None:
    """Counters, and the bounds of every generation, after a run with policies that drift and some baseline episodes."""
    rng = np.random.default_rng(seed)
    world = worlds.some_small(seed, known=(0.0, 0.4)[seed % 2])
    layout, rule, m = world.layout, world.rule, world.g.shape[1]
    aggregate, mark = world.aggregate, {}
    pi = naive.some_policy(rng, layout, zeros=seed % 3 == 0)
    for _ in range(120):
        path, own = world.play(rng, pi), bool(rng.random() < 0.7)
        before = aggregate.p_hat.copy(), aggregate.g_hat.copy()
        if own:
            for (_, i), generation in mark.items():
                generation.add(*path[:2], path[2][:, i], before[0], before[1][:, i])
        world.see(*path, own=own)
        pi = worlds.drift(rng, layout, pi, 0.2)
        started = aggregate.numbers.started
        world.bounds(pi)
        if aggregate.numbers.started > started:
            for i in range(m):
                V = twin.nominal(layout, aggregate.p_hat, pi, aggregate.g_hat[:, i])
                scale = max(layout.steps, twin.span(layout, V))
                known = rule.known_rows, rule.known_costs[:, i]
                mark[started, i] = twin.Generation(layout, V, scale, *known)
    assert aggregate.numbers.started >= 3
    for (g, i), generation in mark.items():
        (slot,) = np.flatnonzero(aggregate.generation == g)
        SX, VV = generation.sums()
        assert aggregate.episodes[slot] == len(generation.episodes)
        np.testing.assert_array_equal(aggregate.visits[slot], generation.visits())
        np.testing.assert_allclose(aggregate.values[slot, i], generation.V, atol=CLOSE)
        assert aggregate.sums[slot, i] == pytest.approx(SX, abs=1e-8)
        assert aggregate.squares[slot, i] == pytest.approx(VV, abs=1e-8)
        if len(generation.episodes) > 0:
            only = only_slot(aggregate, int(slot))
            world.aggregate = only
            box = world.boxes.lower, world.boxes.upper, world.boxes.cost_lower[:, i], world.boxes.cost_upper[:, i]
            rad = twin.radius(twin.log_term(rule.log_inverse_delta, m, g), VV, generation.scale)
            centres = aggregate.p_hat, aggregate.g_hat[:, i]
            n, N = len(generation.episodes), generation.visits()
            expected = twin.bound(layout, pi, box, centres, generation.V, n, N, SX + rad)
            assert world.bounds(pi)[i] == pytest.approx(expected, abs=1e-8)
            assert world.bounds(pi, expected - 0.1)[i] == expected - 0.1


def only_slot(aggregate: Aggregate, slot: int) -> Aggregate:
    """A copy in which the other slots have no episodes, and no generation is due."""
    copy = deepcopy(aggregate)
    copy.episodes[np.arange(NUM_SLOTS) != slot] = 0
    copy.best[:] = slot
    copy.numbers.next_start = 10**9
    return copy


def test_levels_and_constraints_that_nobody_watches_are_left_alone() -> None:
    rng = np.random.default_rng(3)
    world = worlds.some_small(4, num_constraints=3)
    pi = naive.some_policy(rng, world.layout)
    for _ in range(60):
        world.see(*world.play(rng, pi), own=True)
        world.bounds(pi)
    world.rule = world.rule.replace(watched=np.array([0, 2]), levels=np.array([0.0, 0.0, 50.0]))
    bounds = world.bounds(pi, 40.0)
    assert bounds[0] < 40.0
    assert bounds[1] == bounds[2] == 40.0


def test_generations_start_after_half_as_many_episodes_again_and_the_last_are_kept() -> None:
    rng = np.random.default_rng(0)
    world = worlds.some_small(2, num_constraints=1)
    pi, starts = naive.some_policy(rng, world.layout), []
    for t in range(1, 800):
        world.see(*world.play(rng, pi), own=True)
        before = world.aggregate.numbers.started
        world.bounds(pi)
        if world.aggregate.numbers.started > before:
            starts.append(t)
    assert starts == [20, 30, 45, 67, 100, 150, 225, 337, 505, 757]
    assert sorted(world.aggregate.generation) == list(range(2, 10))
    assert world.aggregate.episodes.tolist() == [799 - starts[g] for g in world.aggregate.generation]


def test_closed_generations_count_no_more_and_a_new_one_starts() -> None:
    rng = np.random.default_rng(0)
    world = worlds.some_small(2, num_constraints=1)
    pi, aggregate = naive.some_policy(rng, world.layout), world.aggregate
    close_generations(aggregate)  # nothing to close yet
    assert aggregate.numbers.next_start == 20
    for _ in range(35):
        world.see(*world.play(rng, pi), own=True)
        world.bounds(pi)
    kept = aggregate.episodes[:2].tolist(), aggregate.sums[:2].tolist()
    close_generations(aggregate)
    world.bounds(pi)
    assert aggregate.generation.tolist()[:4] == [0, 1, 2, -1]
    for _ in range(9):
        world.see(*world.play(rng, pi), own=True)
        world.bounds(pi)
    assert (aggregate.episodes[:2].tolist(), aggregate.sums[:2].tolist()) == kept == ([15, 5], kept[1])
    assert aggregate.episodes[2] == 9
    assert np.isfinite(world.bounds(pi)).all()


def test_many_closings_do_not_push_out_the_long_generations() -> None:
    rng = np.random.default_rng(0)
    world = worlds.some_small(2, num_constraints=1)
    pi, aggregate = naive.some_policy(rng, world.layout), world.aggregate
    for t in range(400):
        world.see(*world.play(rng, pi), own=True)
        if t > 300:
            close_generations(aggregate)
        world.bounds(pi)
    assert aggregate.numbers.started > 90
    assert sorted(aggregate.episodes)[1:] == sorted(301 + 1 - s for s in (20, 30, 45, 67, 100, 150, 225))


def test_a_saved_state_goes_on_with_the_same_bits() -> None:
    worlds_of = [worlds.some_small(6), worlds.some_small(6)]
    said: list[list[bytes]] = [[], []]
    for which, world in enumerate(worlds_of):
        rng = np.random.default_rng(1)
        pi = naive.some_policy(rng, world.layout)
        for t in range(150):
            world.see(*world.play(rng, pi), own=True)
            pi = worlds.drift(rng, world.layout, pi, 0.1)
            said[which].append(world.bounds(pi).tobytes())
            if which == 1 and t == 70:
                saved = {name: array.copy() for name, array in flat_arrays(world.aggregate).items()}
                world.aggregate = worlds.some_small(6).aggregate
                for name, array in flat_arrays(world.aggregate).items():
                    array[...] = saved[name]
                for array in world.scratch.as_dict().values():
                    array[:] = np.nan
    assert said[0] == said[1]


def test_centres() -> None:
    layout = Layout((1, 3, 1), 2)
    index, aggregate = index_of(layout), make_aggregate(layout, make_boxes(make_unknowns(layout, 2)))
    assert (aggregate.g_hat == 0.5).all()
    np.testing.assert_allclose(np.add.reduceat(aggregate.p_hat, layout.row_start[:-1]), 1.0)
    set_transition_centre(index, 1, np.array([9, 9, 2, 0, 6]), 2, 0, aggregate)
    np.testing.assert_allclose(aggregate.p_hat[:6], 1 / 3)
    set_transition_centre(index, 1, np.array([9, 9, 2, 0, 6]), 2, 8, aggregate)
    np.testing.assert_allclose(aggregate.p_hat[:6], [1 / 3, 1 / 3, 1 / 3, 0.25, 0.0, 0.75])
    lower, upper = np.full((8, 2), -1.0), np.ones((8, 2))
    lower[5, 1] = 0.6
    set_cost_centre(5, np.array([[0.0, 0.0], [1.0, 2.0]]), 1, 4, lower, upper, aggregate)
    assert aggregate.g_hat[5].tolist() == [0.25, 0.6]
    set_cost_centre(5, np.array([[0.0, 0.0], [1.0, 2.0]]), 0, 0, lower, upper, aggregate)
    assert aggregate.g_hat[5].tolist() == [0.5, 0.6]
    lower[4, 0] = upper[4, 0] = 0.125  # known
    set_cost_centre(4, np.zeros((8, 2)), 4, 3, lower, upper, aggregate)
    assert aggregate.g_hat[4].tolist() == [0.125, 0.0]


def test_what_is_known_before_the_first_episode_is_a_centre_from_the_start() -> None:
    world = worlds.some_small(5, known=0.5)
    known = world.rule.known_rows == 1
    single = np.diff(world.layout.row_start) == 1
    assert (known & ~single).any()
    assert (~known).any()
    of_triple = np.repeat(known, np.diff(world.layout.row_start))
    np.testing.assert_array_equal(world.aggregate.p_hat[of_triple], world.p[of_triple])
    costs = world.rule.known_costs == 1
    assert costs.any()
    np.testing.assert_array_equal(world.aggregate.g_hat[costs], world.g[costs])
    assert (world.aggregate.g_hat[~costs] == 0.5).all()


def test_a_constraint_that_costs_nothing() -> None:
    """R is never 0."""
    world = worlds.some_small(2, num_constraints=1)
    world.rule = world.rule.replace(ceilings=np.zeros(1))
    world.aggregate.g_hat[:] = 0.0
    pi = naive.some_policy(np.random.default_rng(0), world.layout)
    start_generation(index_of(world.layout), pi, world.rule, world.aggregate)
    assert (world.aggregate.ranges[0] > 0.0).all()


def test_nothing_is_said_before_the_first_generation() -> None:
    world = worlds.some_small(2)
    pi = naive.some_policy(np.random.default_rng(0), world.layout)
    assert world.bounds(pi, 7.0).tolist() == [7.0, 7.0]
