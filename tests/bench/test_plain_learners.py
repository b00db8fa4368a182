"""The plain learners do what they are called after: the same iterates, the linear program, the known projection."""

from __future__ import annotations

import numpy as np
import pytest
from loaded import reach_bounds

from bench.episode_contenders import record
from bench.episode_worlds import BenchWorld, random_world
from bench.mirror_steps import SIZES
from bench.plain_learners import Knowledge, OptimisticLP, PlainOREPS, PlainSVOPS, largest_mean, reach_bound
from hedgerow.errors import InvalidInput
from hedgerow.importers.unroll import unroll
from hedgerow.learners.ops.sv_ops import SVOPS
from hedgerow.model.occupancy import occupancy, row_occupancy
from hedgerow.planning import offline
from hedgerow.projection.problem import ProjectionProblem
from hedgerow.projection.solve import project
from hedgerow.simulation.run import Simulation

SIZE = SIZES[0]
WARM_UP = 1500


@pytest.fixture(scope="module")
def world() -> BenchWorld:
    return random_world(SIZE)


def warmed(world: BenchWorld, episodes: int = WARM_UP) -> SVOPS:
    learner = SVOPS(world.cmdp.view(), 3 * WARM_UP, 0.01, "sharp")
    if episodes:
        Simulation(world.cmdp, learner, world.loss, 0, episodes=episodes).finish()
    return learner


@pytest.mark.parametrize("warm_up", [0, WARM_UP])
def test_plain_svops_has_our_iterates(world: BenchWorld, warm_up: int) -> None:
    ours = warmed(world, warm_up)
    plain = PlainSVOPS(ours)
    before = plain.occupancy.copy()
    recorded = record(world, ours, 25, seed=2)
    for e in range(25):
        assert plain.observe(recorded.rows[e], recorded.losses[e], recorded.costs[e]) == "optimal"
        np.testing.assert_allclose(plain.occupancy, recorded.occupancy[e], atol=5e-4)
    np.testing.assert_array_equal(plain.known.N, ours.core.state.counts.num_visits)
    np.testing.assert_array_equal(plain.known.M, ours.core.state.counts.num_moves)
    # The agreement is far closer than what the episodes changed.
    moved = np.max(np.abs(recorded.occupancy[-1] - before))
    assert np.max(np.abs(plain.occupancy - recorded.occupancy[-1])) < 0.05 * moved


def test_confidence_sets_are_ours(world: BenchWorld) -> None:
    learner = warmed(world)
    known, boxes, layout = Knowledge(learner), learner.core.state.boxes, learner.layout
    lower, upper = known.boxes()
    # Ours are tightened within the same set: never wider, and the same where nothing can be tightened.
    assert np.all(boxes.lower >= lower - 1e-12)
    assert np.all(boxes.upper <= upper + 1e-12)
    np.testing.assert_allclose(known.optimistic(known.S).T, boxes.cost_lower, atol=1e-12)
    reach = reach_bounds(layout, boxes.lower, boxes.upper, learner.core.state.policy)
    found = [reach_bound(layout, lower, upper, learner.policy, x) for x in range(layout.num_decision_states)]
    np.testing.assert_allclose(found, reach, atol=1e-12)


def test_greedy_fill_against_all_vertices() -> None:
    rng = np.random.default_rng(0)
    row = np.array([0, 0, 1, 1, 1], dtype=np.int64)
    for _ in range(50):
        f, lower = rng.random(5), 0.3 * rng.random(5)
        upper = np.maximum(lower, 1.0 - 0.5 * rng.random(5))
        best = []
        for own in (slice(0, 2), slice(2, 5)):
            values = []
            n = own.stop - own.start
            for free in range(n):  # all but one at a bound
                for corner in np.ndindex(*[2] * n):
                    p = np.where(corner, upper[own], lower[own])
                    p[free] = 1.0 - (p.sum() - p[free])
                    if lower[own][free] - 1e-12 <= p[free] <= upper[own][free] + 1e-12:
                        values.append(p @ f[own])
            best.append(max(values))
        np.testing.assert_allclose(largest_mean(f, lower, upper, row, 2), best, atol=1e-12)


def test_optimistic_program_is_the_offline_one_when_all_is_known(world: BenchWorld) -> None:
    learner = warmed(world, 0)
    program = OptimisticLP(learner, world.loss)
    many = 1e14  # no radius is left
    program.known.N[:] = many
    program.known.S[:] = many * world.cmdp.mean_costs
    program.loss_sums = many * world.loss
    assert program.plan(world.cmdp.transitions, world.cmdp.transitions) == "optimal"
    best = offline.optimum(world.cmdp, world.loss)
    assert world.loss @ program.occupancy == pytest.approx(best.value, abs=1e-5)
    attained = row_occupancy(world.cmdp.layout, occupancy(world.cmdp.layout, world.cmdp.transitions, program.policy))
    np.testing.assert_allclose(attained, program.occupancy, atol=1e-6)


def test_optimistic_program_is_optimistic(world: BenchWorld) -> None:
    learner = warmed(world)
    program = OptimisticLP(learner, world.loss)
    recorded = record(world, learner, 2, seed=2)
    assert program.observe(recorded.rows[0], recorded.losses[0], recorded.costs[0]) == "optimal"
    promised = program.known.optimistic(program.loss_sums) @ program.occupancy
    assert promised <= offline.optimum(world.cmdp, world.loss).value
    assert np.all(program.known.optimistic(program.known.S) @ program.occupancy <= world.cmdp.thresholds + 1e-9)


def test_plain_oreps_projects_onto_the_known_flow(world: BenchWorld) -> None:
    learner = warmed(world)
    plain = PlainOREPS(learner, world.cmdp.transitions, world.loss)
    layout, P = learner.layout, world.cmdp.transitions
    rows, none = np.zeros(layout.steps, dtype=np.int64), np.zeros(layout.steps)
    for _ in range(3):
        log_base = (plain.log_w - plain.eta * world.loss)[layout.row_of_triple] + np.log(P)
        assert plain.observe(rows, none, none) == "converged"
        nearest = project(ProjectionProblem(layout, log_base, P, P))
        np.testing.assert_allclose(plain.occupancy, row_occupancy(layout, np.exp(nearest.log_occupancy)), atol=1e-6)


def test_other_radii_are_refused(world: BenchWorld) -> None:
    with pytest.raises(InvalidInput, match="preset='sharp'"):
        Knowledge(SVOPS(world.cmdp.view(), 100, 0.01, "paper"))
    with pytest.raises(InvalidInput, match="preset='sharp'"):
        Knowledge(SVOPS(world.cmdp.view(), 100, 0.01, "sharp", confidence_scale=0.5))


def test_sparse_support_is_followed_as_well() -> None:
    """Three states with a known sparse support over four steps: the bounds go row by row of different lengths."""
    rng = np.random.default_rng(1)
    P = np.array([[[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]], [[0.0, 0.3, 0.7], [0.2, 0.3, 0.5]], [[0.6, 0.0, 0.4], [0, 0, 1]]])
    made = unroll(P, 4, start=0, loss=rng.random((3, 2)), costs=rng.random((1, 3, 2)), thresholds=[2.0])
    assert not made.cmdp.layout.is_full
    world = BenchWorld("sparse", made.cmdp, made.loss)
    ours = warmed(world)
    plain = PlainSVOPS(ours)
    recorded = record(world, ours, 10, seed=2)
    for e in range(10):
        plain.observe(recorded.rows[e], recorded.losses[e], recorded.costs[e])
        np.testing.assert_allclose(plain.occupancy, recorded.occupancy[e], atol=5e-4)
