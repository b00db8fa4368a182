"""SV-OPS against its naive twin, and the parts of one episode by hand."""

from __future__ import annotations

from math import log, sqrt

import numpy as np
import pytest
from learner_cases import draw_path, make_learner, random_world
from naive_svops import NaiveSVOPS

from hedgerow.learners.ops.state import PROJECTED, RELAXED
from hedgerow.learners.ops.sv_ops import SVOPS
from hedgerow.model.cmdp import CMDP
from hedgerow.model.costs import DeterministicCosts
from hedgerow.model.layout import Layout
from hedgerow.model.occupancy import residuals

TOL_TWIN = 1e-8


def occupancy_of(learner: SVOPS) -> np.ndarray:
    state = learner.core.state
    return np.exp(state.log_weight)[learner.layout.row_of_triple] * state.conditional


@pytest.mark.parametrize(("seed", "scale"), [(0, 0.05), (1, 1.0), (2, 0.1)])
def test_agrees_with_its_naive_twin(seed: int, scale: float) -> None:
    world, episodes, rng = random_world(seed), 200, np.random.default_rng(seed)
    world = world.with_thresholds(world.thresholds - 0.15)
    learner = SVOPS(world.view(), episodes, 0.1, "paper", confidence_scale=scale)
    twin = NaiveSVOPS(world.view(), episodes, 0.1, scale)
    assert learner.eta == pytest.approx(twin.eta, rel=1e-14)
    bound = False
    for _ in range(episodes):
        plan = learner.plan()
        np.testing.assert_allclose(plan.policy, twin.policy, atol=TOL_TWIN)
        rows = draw_path(world, plan.policy, rng)
        losses = 1.0 - world.mean_costs[0, rows]  # what is cheap in loss is dear in cost
        costs = (rng.random((len(rows), 2)) < world.mean_costs[:, rows].T).astype(float)
        learner.observe(rows, losses, costs)
        twin.observe(rows, losses, costs)
        np.testing.assert_allclose(occupancy_of(learner), twin.q, atol=TOL_TWIN)
        bound |= bool(np.any(learner.core.state.multipliers > 1e-6))
    assert learner.diagnostics["infeasible"] == 0
    assert bound == (scale < 1.0)  # with small radii the constraints really take part


def test_the_first_policy_is_uniform_and_the_first_iterate_the_papers() -> None:
    world = random_world(3)
    learner = SVOPS(world.view(), 50, 0.1, "paper")
    layout = world.layout
    np.testing.assert_array_equal(learner.policy, np.full(layout.num_rows, 1 / layout.num_actions))
    for k, block in enumerate(layout.split_triples(occupancy_of(learner))):
        sizes = layout.layer_sizes[k] * layout.num_actions * layout.layer_sizes[k + 1]
        np.testing.assert_allclose(block, 1.0 / sizes, rtol=1e-13)


def test_one_episode_by_hand() -> None:
    """L = 1: u = pi, l_hat = l / (pi + gamma), and without active constraints the projection only normalises."""
    layout = Layout((1, 1), 2)
    world = CMDP(layout, [1.0, 1.0], DeterministicCosts([[0.5, 0.25]]), [0.75])
    learner = SVOPS(world.view(), 100, 0.1, "paper")
    eta = sqrt(log(1 * 2 * 2 / 0.1) / (100 * 2 * 2))
    learner.plan()
    learner.observe([0], [0.8], [[0.5]])
    weight = 0.5 * np.exp(-eta * 0.8 / (0.5 + eta))
    assert learner.policy[0] == pytest.approx(weight / (weight + 0.5), abs=1e-12)


def test_u_does_not_see_its_own_episode() -> None:
    """In the first episode boxes are trivial, so u = pi for every pair: an update of the boxes before u would show."""
    world = random_world(4)
    learner = SVOPS(world.view(), 50, 0.1, "paper", confidence_scale=1e-3)
    rows = draw_path(world, learner.plan().policy, np.random.default_rng(0))
    learner.observe(rows, np.ones(3), np.ones((3, 2)))
    np.testing.assert_allclose(learner.core.buffers.trace.u, 0.5, rtol=1e-14)
    eta = learner.eta
    np.testing.assert_allclose(learner.core.buffers.trace.estimate, 1.0 / (0.5 + eta), rtol=1e-14)


@pytest.mark.parametrize("preset", ["paper", "sharp"])
def test_iterates_are_occupancies_within_boxes_and_optimistic_costs(preset: str) -> None:
    world, rng = random_world(5, (1, 3, 3, 1), 3), np.random.default_rng(5)
    learner = SVOPS(world.view(), 400, 0.1, preset, confidence_scale=0.2)
    boxes, layout = learner.core.state.boxes, world.layout
    for t in range(400):
        rows = draw_path(world, learner.plan().policy, rng)
        learner.observe(rows, rng.random(3), (rng.random((3, 2)) < world.mean_costs[:, rows].T).astype(float))
        if t % 20 == 0 and learner.core.state.numbers.last_status == PROJECTED:
            q = occupancy_of(learner)
            found = residuals(layout, q)
            assert max(found.negativity, found.mass, found.flow) <= 1e-12
            w = np.exp(learner.core.state.log_weight)
            p = learner.core.state.conditional
            assert np.all(p >= boxes.lower - 1e-12)
            assert np.all(p <= boxes.upper + 1e-12)
            assert np.all(boxes.cost_lower.T @ w <= world.thresholds + 1e-9)


def test_a_vacuous_threshold_takes_no_part() -> None:
    world = random_world(6)
    loose = world.with_thresholds([world.thresholds[0], world.layout.steps])
    learner = SVOPS(loose.view(), 50, 0.1, "paper")
    assert learner.core.baseline.binding.tolist() == [0]
    assert learner.plan().cost_bounds.shape == (2,)
    learner.observe(draw_path(world, learner.policy, np.random.default_rng(0)), np.ones(3), np.ones((3, 2)))
    assert learner.core.state.counts.cost_sums[:, 1].sum() == 3.0


def test_known_sparse_support_starts_from_a_flow() -> None:
    world = random_world(7, (1, 3, 3, 1), 2, sparse=True)
    assert not world.layout.is_full
    learner = SVOPS(world.view(), 50, 0.1, "paper")
    found = residuals(world.layout, occupancy_of(learner))
    assert max(found.negativity, found.mass, found.flow) <= 1e-12


def test_known_transitions_give_exact_occupancy_bounds() -> None:
    world, rng = random_world(8), np.random.default_rng(8)
    learner = SVOPS(world.view(), 50, 0.1, "paper", transitions=world.transitions)
    for _ in range(20):
        policy = learner.plan().policy
        w = np.array(policy)
        reach = np.ones(1)
        for k in range(world.layout.steps):
            rows, triples = world.layout.rows(k), world.layout.triples(k)
            w[rows] *= np.repeat(reach, 2)
            reach = np.bincount(
                world.layout.successor[triples] - world.layout.state_start[k + 1],
                w[world.layout.row_of_triple[triples]] * world.transitions[triples],
            )
        path = draw_path(world, policy, rng)
        learner.observe(path, rng.random(3), np.zeros((3, 2)))
        np.testing.assert_allclose(learner.core.buffers.trace.u, w[path], rtol=1e-12)


@pytest.mark.filterwarnings("ignore::hedgerow.errors.InfeasibleWarning")
def test_an_impossible_projection_is_relaxed_counted_and_survived() -> None:
    layout = Layout((1, 2, 1), 2)
    world = CMDP(layout, [0.5] * 4 + [1.0] * 4, DeterministicCosts(np.full((1, 6), 0.9)), [0.5])
    learner, rng = SVOPS(world.view(), 100, 0.1, "paper", confidence_scale=0.01), np.random.default_rng(0)
    for _ in range(100):
        learner.observe(draw_path(world, learner.plan().policy, rng), rng.random(2), np.full((2, 1), 0.9))
        np.testing.assert_allclose(learner.policy.reshape(-1, 2).sum(axis=1), 1.0, atol=1e-12)
    assert learner.core.state.numbers.last_status == RELAXED
    assert 50 < learner.diagnostics["infeasible"] <= 100
    assert learner.diagnostics["failed"] == 0


@pytest.mark.slow
def test_learning_finds_the_cheap_action() -> None:
    """Known world, fixed loss, no constraint in the way: the policy must turn towards the better action."""
    world = CMDP(Layout((1, 1), 2), [1.0, 1.0])
    learner, rng = SVOPS(world.view(), 5_000, 0.1, "paper"), np.random.default_rng(0)
    for _ in range(5_000):
        row = draw_path(world, learner.plan().policy, rng)
        learner.observe(row, [0.2, 0.8][row[0] : row[0] + 1])
    assert learner.policy[0] > 0.9


def test_svops_never_mixes() -> None:
    learner = make_learner("sv-ops", random_world(9))
    assert learner.core.state.reals.mixing == 0.0
    assert learner.plan().branch == "own"
