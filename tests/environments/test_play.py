"""Episodes that are drawn: frequencies against the probabilities, streams apart, impossible things never."""

from __future__ import annotations

import numpy as np
import pytest
from learner_cases import random_world, with_costs

from hedgerow.environments.play import Environment, Player, make_path, make_streams, make_world, play
from hedgerow.errors import InvalidInput
from hedgerow.model.cmdp import CMDP
from hedgerow.model.costs import CostDistribution, EmpiricalCosts
from hedgerow.model.kernel_layout import index_of
from hedgerow.model.layout import Layout
from hedgerow.model.occupancy import occupancy, row_occupancy
from hedgerow.model.policy import Policy

EPISODES = 20_000


def played(world: CMDP, policy: np.ndarray, episodes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(episodes, L) rows and triples, (episodes, L, m) costs."""
    index, bundle, streams = index_of(world.layout), make_world(world), make_streams(seed)
    episode = make_path(world.layout, world.num_constraints)
    rows, triples, costs = [], [], []
    for _ in range(episodes):
        play(index, bundle, policy.copy(), streams, episode)
        rows.append(episode.rows.copy())
        triples.append(episode.triples.copy())
        costs.append(episode.costs.copy())
    return np.array(rows), np.array(triples), np.array(costs)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bernoulli", "deterministic", "beta", "empirical"])
def test_frequencies_are_the_occupancy_and_costs_have_their_means(kind: str) -> None:
    world = with_costs(random_world(0), kind)
    policy = np.random.default_rng(0).dirichlet([1.0, 1.0], size=6).ravel()
    rows, triples, costs = played(world, policy, EPISODES)
    q = occupancy(world.layout, world.transitions, policy)
    seen = np.bincount(triples.ravel(), minlength=world.layout.num_triples) / EPISODES
    assert np.all(np.abs(seen - q) < 5 * np.sqrt(0.25 / EPISODES))
    np.testing.assert_array_equal(world.layout.row_of_triple[triples], rows)
    w = row_occupancy(world.layout, q)
    for r in np.flatnonzero(w > 0.05):
        for i in range(2):
            mean = costs[:, :, i][rows == r].mean()
            assert abs(mean - world.mean_costs[i, r]) < 5 * np.sqrt(0.25 / (w[r] * EPISODES))
    assert costs.min() >= 0.0
    assert costs.max() <= 1.0


def test_paths_are_connected() -> None:
    world = random_world(7, (1, 3, 3, 1), 2, sparse=True)
    rows, triples, _ = played(world, np.full(world.layout.num_rows, 0.5), 500)
    np.testing.assert_array_equal(world.layout.successor[triples[:, :-1]], rows[:, 1:] // 2)
    assert np.all(world.layout.successor[triples[:, -1]] == world.layout.num_states - 1)


def test_what_has_probability_0_never_happens() -> None:
    layout = Layout((1, 3, 1), 3)
    world = CMDP(layout, [0.0, 1.0, 0.0] * 3 + [1.0] * 9)
    policy = np.array([0.0, 1.0, 0.0] * 4)
    rows, _, _ = played(world, policy, 200)
    assert set(map(tuple, rows.tolist())) == {(1, 3 + 3 + 1)}
    zeros = EmpiricalCosts(np.stack([np.zeros((1, 12)), np.ones((1, 12)), np.full((1, 12), 0.5)]), [0.0, 1.0, 0.0])
    _, _, costs = played(CMDP(layout, world.transitions, zeros, [1.0]), policy, 200)
    assert np.all(costs == 1.0)


def test_streams_are_apart() -> None:
    """Other costs do not change the path, and equal seeds give equal episodes."""
    world, policy = random_world(1), np.full(12, 0.5)
    rows, triples, costs = played(world, policy, 100)
    others = played(with_costs(world, "beta"), policy, 100)
    np.testing.assert_array_equal(rows, others[0])
    np.testing.assert_array_equal(triples, others[1])
    again = played(world, policy, 100)
    np.testing.assert_array_equal(costs, again[2])
    assert not np.array_equal(rows, played(world, policy, 100, seed=1)[0])


class Shared(CostDistribution):
    """One coin for the whole matrix: nobody's but the test's."""

    def __init__(self, means: np.ndarray, factor: float = 1.0) -> None:
        self.means, self.factor = means, factor

    def sample(self, rng: np.random.Generator) -> np.ndarray:
        return self.factor * (rng.random() < 0.5) * 2.0 * self.means

    def arrays(self) -> dict[str, np.ndarray]:
        return {"means": self.means}


def test_costs_of_any_class_are_drawn_by_their_own_sample() -> None:
    world = random_world(0)
    means = 0.4 * world.mean_costs
    shared = CMDP(world.layout, world.transitions, Shared(means), world.thresholds)
    player = Player(shared, make_world(shared), make_streams(3))
    policy, loss = Policy.uniform(world), np.linspace(0.0, 1.0, world.layout.num_rows)
    stream = make_streams(3).costs
    for _ in range(50):
        episode = player.play(policy, loss)
        expected = (stream.random() < 0.5) * 2.0 * means[:, episode.rows].T
        np.testing.assert_array_equal(episode.costs, expected)
        np.testing.assert_array_equal(episode.losses, loss[episode.rows])
        assert episode.all_costs is None
    wrong = CMDP(world.layout, world.transitions, Shared(world.mean_costs, 9.0), world.thresholds)
    with pytest.raises(InvalidInput, match=r"a cost drawn by Shared.sample is .* must lie in \[0, 1\]"):
        Player(wrong, make_world(wrong), make_streams(3)).play(policy, loss)  # the first coin of this stream says 1


def test_full_feedback_tells_the_losses_and_costs_of_all_pairs() -> None:
    world = random_world(0)
    player, loss = Player(world, make_world(world), make_streams(1), full=True), np.linspace(0.0, 1.0, 12)
    plain, matrices = Player(world, make_world(world), make_streams(1)), []
    for _ in range(300):
        episode, bandit = player.play(Policy.uniform(world), loss), plain.play(Policy.uniform(world), loss)
        np.testing.assert_array_equal(episode.rows, bandit.rows)  # the same streams
        np.testing.assert_array_equal(episode.all_losses, loss)
        np.testing.assert_array_equal(episode.costs, episode.all_costs[episode.rows])
        matrices.append(episode.all_costs)
    assert np.all(np.abs(np.mean(matrices, axis=0) - world.mean_costs.T) < 5 * np.sqrt(0.25 / 300))


def test_a_cmdp_is_an_environment() -> None:
    world, loss = random_world(0), np.linspace(0.0, 1.0, 12)
    assert isinstance(world, Environment)
    policy = np.random.default_rng(0).dirichlet([1.0, 1.0], size=6).ravel()
    rng, visits = np.random.default_rng(1), np.zeros(12)
    for _ in range(2_000):
        episode = world.play(policy, rng, loss)
        visits[episode.rows] += 1
        np.testing.assert_array_equal(episode.losses, loss[episode.rows])
    expected = row_occupancy(world.layout, occupancy(world.layout, world.transitions, policy))
    assert np.all(np.abs(visits / 2_000 - expected) < 5 * np.sqrt(0.25 / 2_000))
    assert world.play(policy, np.random.default_rng(2)).losses.tolist() == [0.0, 0.0, 0.0]
