"""The worlds of real charger-days: known values by a linear program and by enumeration, and rows counted by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

from hedgerow import worlds
from hedgerow.errors import InvalidInput
from hedgerow.experiments import components
from hedgerow.learners.ops.s_ops import SOPS
from hedgerow.losses import oblivious as ls
from hedgerow.model.occupancy import evaluate
from hedgerow.planning import offline
from hedgerow.worlds import ev_workday as workday
from hedgerow.worlds.ev_replay import EVDays

WORLDS = ("ev-workday", "ev-workday-hard")
WAIT_IN_A, CHARGE_AT_ONCE, ALWAYS_WAIT = (0, 1, 1), (1, 1, 1), (0, 0, 0)


def policy(actions: tuple[int, int, int]) -> np.ndarray:
    """One action per block; in the empty states it does not matter."""
    chosen = [actions[0], 0, actions[1], 0, actions[2]]
    return np.eye(2)[chosen].ravel()


@pytest.fixture(scope="module")
def world():
    return worlds.make("ev-workday")


def test_layout_and_labels(world):
    layout = world.cmdp.layout
    assert (layout.layer_sizes, layout.num_rows, layout.num_triples) == ((1, 2, 2, 1), 10, 16)
    assert layout.state_labels == ("x0", "B empty", "B need", "C empty", "C need", "end")
    assert layout.action_labels == ("wait", "charge")
    assert world.cmdp.constraint_names == ("unserved",)
    hard = worlds.make("ev-workday-hard").cmdp.layout
    assert (hard.layer_sizes, hard.num_actions, hard.num_rows) == ((1, 3, 3, 3, 1), 3, 30)


def test_costs_are_those_that_are_known(world):
    costs = dict(zip(range(10), world.cmdp.mean_costs[0].tolist(), strict=True))
    row = world.cmdp.layout.row
    assert costs.pop(row("x0", "wait")) == pytest.approx(563 / 19_440, abs=1e-15)
    assert costs.pop(row("B need", "wait")) == pytest.approx(3009 / 16_911, abs=1e-15)
    assert costs.pop(row("C need", "wait")) == 1.0
    assert set(costs.values()) == {0.0}


@pytest.mark.parametrize(
    ("actions", "loss", "cost"),
    [(CHARGE_AT_ONCE, 0.3935, 0.0), (WAIT_IN_A, 0.3159, 0.029), (ALWAYS_WAIT, 0.5501, 1.0425)],
)
def test_policies_have_known_values(world, actions, loss, cost):
    found = evaluate(world.cmdp, policy(actions), world.loss)
    assert found.loss == pytest.approx(loss, abs=5e-5)
    assert found.costs[0] == pytest.approx(cost, abs=5e-5)


@pytest.mark.parametrize(
    ("alpha", "prices", "optimum"),
    [
        (0.1, "carbon", 0.3159),
        (0.2, "carbon", 0.3159),
        (0.02, "carbon", 0.3399),
        (0.1, "dutch", 0.5922),
        (0.2, "dutch", 0.5664),
    ],
)
def test_optimum_two_ways(alpha, prices, optimum):
    """The program over occupancies, and the best mixture of the eight deterministic policies."""
    world = worlds.make("ev-workday", alpha=alpha, prices=prices)
    values = [evaluate(world.cmdp, policy(each), world.loss) for each in itertools.product((0, 1), repeat=3)]
    mixed = linprog(
        [value.loss for value in values],
        A_ub=[[value.costs[0] for value in values]],
        b_ub=[alpha],
        A_eq=np.ones((1, 8)),
        b_eq=[1.0],
        method="highs",
    )
    assert offline.optimum(world.cmdp, world.loss).value == pytest.approx(mixed.fun, abs=1e-9)
    assert world.golden.optimum == pytest.approx(mixed.fun, abs=1e-9)
    assert mixed.fun == pytest.approx(optimum, abs=5e-5)
    assert world.golden.margin == pytest.approx(alpha)


def test_baselines(world):
    assert world.golden.baseline == pytest.approx(0.3935, abs=5e-5)
    assert worlds.make("ev-workday", prices="dutch").golden.baseline == pytest.approx(0.6429, abs=5e-5)
    for name in WORLDS:
        made = worlds.make(name)
        found = evaluate(made.cmdp, made.baseline.policy, made.loss)
        assert found.costs.tolist() == [0.0]  # exactly
        assert found.loss == pytest.approx(made.golden.baseline, abs=1e-12)
        assert made.baseline.costs.tolist() == [0.001]
    learner = SOPS(world.view(), 100, 0.01, "paper", baseline=world.baseline)
    np.testing.assert_array_equal(learner.baseline, workday.charge_at_once())


def test_hard_twin_has_less_to_gain():
    hard = worlds.make("ev-workday-hard")
    assert 1.0 - hard.golden.optimum / hard.golden.baseline == pytest.approx(0.131, abs=5e-4)


@pytest.mark.parametrize("name", WORLDS)
def test_zero_cost_rows_are_those_without_costs(name):
    costs = worlds.make(name).cmdp.mean_costs[0]
    np.testing.assert_array_equal(workday.zero_cost_rows(name), costs == 0.0)


@pytest.mark.parametrize(("name", "count"), [("ev-workday", 19_440), ("ev-workday-hard", 19_370)])
def test_daily_losses_average_to_the_worlds_own(name, count):
    world, daily = worlds.make(name), workday.daily_losses(name)
    assert daily.shape == (count, world.cmdp.layout.num_rows)
    assert 0.0 <= daily.min() <= daily.max() <= 1.0
    np.testing.assert_allclose(daily.mean(axis=0), world.loss, atol=1e-12)
    np.testing.assert_array_equal(EVDays(name).block(world.cmdp.layout, 0, count).dense(), daily)


def test_losses_of_the_first_day(world):
    first, largest = workday.daily_losses()[0], 0.66375
    row, shares = world.cmdp.layout.row, world.cmdp.mean_costs[0]
    assert first[row("B need", "charge")] == pytest.approx(0.02768 / largest)
    assert first[row("C need", "charge")] == pytest.approx(0.02963 / largest)
    assert first[row("x0", "charge")] == pytest.approx(10_967 / 19_440 * 0.09298 / largest)
    for state in ("x0", "B need", "C need"):
        assert first[row(state, "wait")] == pytest.approx(shares[row(state, "wait")] * 0.19598 / largest)
    assert np.all(first[[2, 3, 6, 7]] == 0.0)


# Counting -------------------------------------------------------------------------------------------------------------


def slow_tally(days, units, k, state, action):
    """Visits, unserved, charged and missed units and successors of a row, day by day, from the definition."""
    visits = unserved = charged = missed = 0
    following = [0] * (units + 1)
    lines = zip(*(part.tolist() for part in (days.arrives, days.leaves, days.chargers)), strict=True)
    for arrives, leaves, chargers in lines:
        standing = 0
        for j in range(k + 1):
            standing = arrives[j] or standing
            if j < k and leaves[j]:
                standing = 0
        need = standing
        if k > 0 and (standing != state if state else arrives[k] != 0):
            continue
        if k > 0 and state == 0:
            need = 0
        left = max(0, need - action)
        visits += chargers
        charged += chargers * (need - left)
        if leaves[k] and left:
            unserved, missed, left = unserved + chargers, missed + chargers * left, 0
        if k + 1 < len(arrives):
            following[arrives[k + 1] or (0 if leaves[k] else left)] += chargers
    return visits, unserved, charged, missed, following


@pytest.mark.parametrize("name", WORLDS)
def test_counts_against_a_slow_twin(name):
    site = workday.site_of(name)
    days = workday.charger_days(site.days)
    layers = workday.tally(days, site.units)
    for k, layer in enumerate(layers):
        for state, action in itertools.product(range(len(layer.visits)), range(site.units + 1)):
            visits, unserved, charged, missed, following = slow_tally(days, site.units, k, state, action)
            assert layer.visits[state] == visits
            assert layer.unserved[state, action] == unserved
            assert layer.charged[state, action] == charged
            assert layer.missed[state, action] == missed
            if k + 1 < len(layers):
                assert layer.successors[state, action].tolist() == following
            assert layer.successors[state, action].sum() == visits


# The adversary --------------------------------------------------------------------------------------------------------


def test_ev_days_end_unless_they_are_cycled(world):
    layout, losses = world.cmdp.layout, EVDays()
    with pytest.raises(InvalidInput, match=r"19,440 real charger-days; episode 19440 is not .* call it a bootstrap"):
        losses.block(layout, 19_400, 41)
    again = EVDays(cycle=True).block(layout, 19_439, 2).dense()
    np.testing.assert_array_equal(again, workday.daily_losses()[[19_439, 0]])
    assert ls.from_params("ev-days", {"prices": "dutch"}) == EVDays(prices="dutch")
    assert EVDays() != EVDays(prices="dutch")


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"world": "ev-weekend"}, r"no charger-days of 'ev-weekend'; did you mean 'ev-workday'"),
        ({"prices": "spanish"}, r"prices is 'spanish'; choose carbon or dutch"),
        ({"world": "ev-workday-hard", "prices": "dutch"}, r"prices is 'dutch'; choose carbon"),
        ({"cycle": 1}, r"cycle must be True or False"),
    ],
)
def test_ev_days_refuse_what_does_not_exist(params, message):
    with pytest.raises(InvalidInput, match=message):
        EVDays(**params)


def test_ev_days_in_an_experiment(world, tmp_path):
    part = components.complete_adversary({"name": "ev-days"}, 19_440)
    built = components.BuiltWorld(world.cmdp, world.loss)
    components.check_adversary(part, built, 19_440, tmp_path)
    with pytest.raises(InvalidInput, match="real charger-days"):
        components.check_adversary(part, built, 19_441, tmp_path)
    with pytest.raises(InvalidInput, match="given for 10 rows"):
        components.check_adversary(part, components.BuiltWorld(worlds.make("ev-workday-hard").cmdp), 10, tmp_path)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"alpha": 4.0}, r"ev-workday: alpha is 4.0; it must lie in \[0, 3\]"),
        ({"prices": "gold"}, r"ev-workday: prices is 'gold'; choose carbon or dutch"),
    ],
)
def test_bad_input(params, message):
    with pytest.raises(InvalidInput, match=message):
        worlds.make("ev-workday", **params)
