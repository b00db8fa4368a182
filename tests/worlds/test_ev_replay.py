"""The real cars: drawn days are the recorded ones, and expectations equal averages and counts of the tables."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from hedgerow import worlds
from hedgerow.environments.play import Environment
from hedgerow.errors import InvalidInput
from hedgerow.learners.ops.sv_ops import SVOPS
from hedgerow.model.policy import Mixture, Policy, UniformMixture
from hedgerow.simulation.run import simulate
from hedgerow.worlds import ev_workday as workday
from hedgerow.worlds.ev_replay import RealCars, replayed, shuffled
from nightly import daily

WORLDS = ("ev-workday", "ev-workday-hard")


def some_policy(layout, seed: int) -> np.ndarray:
    draws = np.random.default_rng(seed).random((layout.num_decision_states, layout.num_actions))
    return (draws / draws.sum(axis=1, keepdims=True)).ravel()


@pytest.mark.parametrize("name", WORLDS)
def test_all_days_once_in_the_order_of_dates(name):
    days = workday.days_of(name)
    order = shuffled(days, seed=3)
    assert np.all(np.diff(days.day[order]) >= 0)
    np.testing.assert_array_equal(np.bincount(order, minlength=len(days.chargers)), days.chargers)
    assert not np.array_equal(order, shuffled(days, seed=4))
    np.testing.assert_array_equal(order, shuffled(days, seed=3))


def naive(days, rates, units, line, actions):
    """Loss and cost of a line if `actions` says what is charged in each block, whatever the state."""
    need, loss, cost = 0, 0.0, 0.0
    for k, action in enumerate(actions):
        need = int(days.arrives[line, k]) or need
        served = min(need, action)
        need -= served
        loss += served / units * rates[days.day[line], k]
        if days.leaves[line, k]:
            loss, cost, need = loss + need / units * rates[days.day[line], -1], cost + (need > 0), 0
    return loss, cost


@pytest.mark.parametrize("name", WORLDS)
def test_replayed_against_a_naive_twin(name):
    days, rates, units = workday.days_of(name), workday.daily_rates(name), workday.site_of(name).units
    layout = worlds.make(name).cmdp.layout
    first = np.concatenate(([0], np.cumsum(days.chargers)))[:-1]  # the first charger-day of each line
    for actions in itertools.islice(itertools.product(range(units + 1), repeat=layout.steps), 0, None, 3):
        chosen = np.repeat(actions, layout.layer_sizes[:-1])
        found = replayed(np.eye(units + 1)[chosen].ravel(), name)
        for line in range(0, len(days.chargers), 97):
            expected = naive(days, rates, units, line, actions)
            assert (found.losses[first[line]], found.costs[first[line]]) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("prices", ["carbon", "dutch"])
def test_replay_equals_the_means_of_the_tables(prices):
    """Charging at once costs nothing and loses, in each block, what arrives there at the rate of its date."""
    days, rates = workday.days_of(), workday.daily_rates(prices=prices)
    found = replayed(workday.charge_at_once(), prices=prices)
    assert np.all(found.costs == 0.0)
    direct = days.chargers @ (days.arrives * rates[days.day, :3]).sum(axis=1) / days.total
    assert found.losses.mean() == pytest.approx(direct, abs=1e-12)
    # Always waiting: every car leaves unserved and is charged in the evening.
    waiting = replayed(1.0 - workday.charge_at_once(), prices=prices)
    assert waiting.costs.mean() == pytest.approx(days.chargers @ days.leaves.sum(axis=1) / days.total, abs=1e-12)
    assert waiting.losses.mean() == pytest.approx(
        days.chargers @ (days.leaves.sum(axis=1) * rates[days.day, -1]) / days.total, abs=1e-12
    )


def test_the_world_is_right_where_its_rows_were_counted_so():
    """Waiting in A: what follows need at B is as in the world. Charging in A: what follows an empty charger is."""
    cmdp, days = worlds.make("ev-workday").cmdp, workday.days_of()
    first, second, _ = cmdp.layout.split_triples(cmdp.transitions)
    weight, standing = days.chargers, workday.standing_need(days)
    need, empty = standing[:, 1] > 0, days.arrives[:, 1] == 0
    assert first[0, 0, 1] == pytest.approx(weight @ need / days.total)
    assert first[0, 1, 1] == pytest.approx(weight @ ~empty / days.total)
    again = weight[need] @ (standing[need, 2] > 0) / weight[need].sum()
    assert second[1, 0, 1] == pytest.approx(again)
    fresh = weight[empty] @ (days.arrives[empty, 2] > 0) / weight[empty].sum()
    assert second[0, 0, 1] == second[0, 1, 1] == pytest.approx(fresh)
    # ... and it is not right where they were not: empty at B after waiting.
    still = ~need
    assert weight[still] @ (days.arrives[still, 2] > 0) / weight[still].sum() > 0.94 > 3 * fresh


def test_the_optimum_of_the_world_saves_less_on_the_real_cars():
    wait_in_a = np.array([1, 0, 1, 0, 0, 1, 1, 0, 0, 1.0])
    found, baseline = replayed(wait_in_a), replayed(workday.charge_at_once())
    assert 1.0 - found.losses.mean() / baseline.losses.mean() == pytest.approx(0.113, abs=1e-3)
    assert found.costs.mean() == pytest.approx(563 / 19_440)


@pytest.mark.parametrize("count", daily(1_000, nightly=4_000))
@pytest.mark.parametrize("name", WORLDS)
def test_drawn_days_average_to_what_is_expected(name, count):
    cars = RealCars(name, seed=1)
    layout = cars.view().layout
    policy, rng = Policy(layout, some_policy(layout, 2)), np.random.default_rng(5)
    drawn, expected = np.zeros((count, 2)), np.zeros((count, 2))
    for t in range(count):
        expected[t] = cars.expected(policy)
        episode = cars.play(policy, rng)
        assert episode.complete
        drawn[t] = episode.losses.sum(), episode.costs.sum()
    wrong = (drawn - expected).mean(axis=0) / ((drawn - expected).std(axis=0) / np.sqrt(count))
    assert np.all(np.abs(wrong) < 4.0)


@pytest.mark.parametrize("name", WORLDS)
def test_states_losses_and_costs_of_drawn_days(name):
    """Actions that depend on the block alone leave nothing to chance: a day is the one that was recorded."""
    days, rates, units = workday.days_of(name), workday.daily_rates(name), workday.site_of(name).units
    order, cars, rng = shuffled(days), RealCars(name), np.random.default_rng(7)
    layout = cars.view().layout
    for t in range(1_500):
        actions = rng.integers(0, units + 1, size=layout.steps)
        policy = Policy(layout, np.eye(units + 1)[np.repeat(actions, layout.layer_sizes[:-1])].ravel())
        expected = cars.expected(policy)
        episode = cars.play(policy, rng)
        line = int(order[t])
        assert (episode.losses.sum(), episode.costs.sum()) == pytest.approx(naive(days, rates, units, line, actions))
        assert expected == pytest.approx(naive(days, rates, units, line, actions))
        need = 0
        for k, row in enumerate(episode.rows):
            need = int(days.arrives[line, k]) or need
            state = (0 if k == 0 else need) + int(layout.state_start[k])
            assert divmod(int(row), units + 1) == (state, actions[k])
            need = 0 if days.leaves[line, k] else max(0, need - int(actions[k]))


def test_expectations_are_linear_in_mixtures():
    cars = RealCars()
    layout = cars.view().layout
    one, two = (Policy(layout, some_policy(layout, seed)) for seed in (0, 1))
    a, b = np.array(cars.expected(one)), np.array(cars.expected(two))
    np.testing.assert_allclose(cars.expected(Mixture((0.25, one), (0.75, two))), 0.25 * a + 0.75 * b, atol=1e-15)
    both = UniformMixture(layout, np.stack([one.probabilities, two.probabilities]))
    np.testing.assert_allclose(cars.expected(both), (a + b) / 2, atol=1e-15)


def test_a_learner_plays_the_real_cars():
    cars = RealCars(alpha=0.2)
    assert isinstance(cars, Environment)
    run = simulate(cars, SVOPS(cars.view(), 200, 0.01, "paper"), progress=False)
    assert run.scored == "sampled"
    assert 0.0 < run["observed_loss"][-1] < 200 * 2
    assert cars.remaining == 19_440 - 200


def test_days_come_to_an_end():
    cars = RealCars()
    policy, rng = Policy(cars.view(), workday.charge_at_once()), np.random.default_rng(0)
    cars._next = 19_439
    cars.play(policy, rng)
    for ask in (lambda: cars.play(policy, rng), lambda: cars.expected(policy)):
        with pytest.raises(InvalidInput, match="all 19,440 real charger-days have been played"):
            ask()
