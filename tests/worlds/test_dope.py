"""The three DOPE worlds: their sizes, and the optima that are known of them, on the source's scale and as losses."""

import math

import numpy as np
import pytest
from scipy.optimize import linprog

from hedgerow import worlds
from hedgerow.errors import InvalidInput
from hedgerow.model.occupancy import backward_induction, evaluate
from hedgerow.planning import offline

TOL_GOLDEN = 1e-6

# name: (states, triples), horizon, rewards?, (unconstrained, constrained, baseline) of the source, baseline budget
KNOWN = {
    "dope-factored": ((17, 84), 6, True, (4.0, 2.0, 0.4), 0.6),
    "dope-media": ((92, 1640), 10, False, (5.393138, 6.746704, 8.983489), 1.0),
    "dope-inventory": ((38, 1152), 7, True, (7.0, 6.665322, 1.555711), 0.7),
}


@pytest.fixture(params=KNOWN)
def name(request):
    return request.param


@pytest.fixture(params=["full", "known"])
def world(request, name):
    return worlds.make(name, support=request.param)


def test_sizes_of_the_learners_view(name):
    layout = worlds.make(name).cmdp.layout
    assert layout.is_full
    assert (layout.num_states, layout.num_triples) == KNOWN[name][0]


def test_known_support_is_smaller(name):
    full, known = (worlds.make(name, support=support).cmdp.layout for support in ("full", "known"))
    assert known.num_triples < full.num_triples
    assert known.num_states <= full.num_states


def test_optima_are_those_of_the_source(world):
    _, horizon, rewards, (unconstrained, constrained, baseline), budget = KNOWN[world.name]
    cmdp, loss = world.cmdp, world.loss
    found = {
        "unconstrained": backward_induction(cmdp.layout, cmdp.transitions, loss).value,
        "optimum": offline.optimum(cmdp, loss).value,
        "baseline": offline.optimum(cmdp.with_thresholds([budget]), loss).value,
    }
    expected = {"unconstrained": unconstrained, "optimum": constrained, "baseline": baseline}
    assert world.baseline_thresholds.tolist() == [budget]
    for what, value in expected.items():
        assert world.source_value(found[what]) == pytest.approx(value, abs=TOL_GOLDEN)
        assert found[what] == pytest.approx(horizon - value if rewards else value, abs=TOL_GOLDEN)
        assert getattr(world.golden, what) == pytest.approx(found[what], abs=TOL_GOLDEN)
    strict = offline.strictly_feasible(cmdp, float(cmdp.thresholds[0]) - budget, loss)
    assert strict.value == pytest.approx(found["baseline"], abs=TOL_GOLDEN)


def test_constraints_bind_and_can_be_met_with_room(world):
    best = offline.optimum(world.cmdp, world.loss)
    assert best.costs[0] == pytest.approx(world.cmdp.thresholds[0], abs=1e-8)
    # Each world has a policy that costs nothing (stay, deliver slowly, never order), so the margin is the budget.
    assert offline.slater(world.cmdp).margin == pytest.approx(world.cmdp.thresholds[0], abs=1e-8)
    assert world.golden.margin == pytest.approx(world.cmdp.thresholds[0], abs=1e-8)


def test_factored_by_hand():
    world = worlds.make("dope-factored")
    assert world.cmdp.action_labels == ("stay", "move")
    always_move = np.tile([0.0, 1.0], world.cmdp.layout.num_decision_states)
    found = evaluate(world.cmdp, always_move, world.loss)
    assert world.source_value(found.loss) == pytest.approx(4.0)  # twice around: 2 (1 + 2 + 3) / 3
    assert found.costs.tolist() == [6.0]


def test_media_rows_by_hand():
    layers = worlds.make("dope-media").cmdp.layout.split_triples(worlds.make("dope-media").cmdp.transitions)
    np.testing.assert_allclose(layers[3][4, 0, 3:6], [0.08, 0.74, 0.18], atol=1e-15)
    np.testing.assert_allclose(layers[3][4, 1, 3:6], [0.72, 0.26, 0.02], atol=1e-15)
    np.testing.assert_allclose(layers[3][0, 0, :2], [0.82, 0.18], atol=1e-15)
    np.testing.assert_allclose(layers[3][9, 1, 8:], [0.72, 0.28], atol=1e-15)


def test_inventory_orders_beyond_capacity_are_aliases_of_no_order():
    cmdp = worlds.make("dope-inventory").cmdp
    layers = cmdp.layout.split_triples(cmdp.transitions)
    costs = cmdp.layout.split_rows(cmdp.mean_costs[0])
    for s in range(6):
        for a in range(6 - s, 6):
            np.testing.assert_array_equal(layers[2][s, a], layers[2][s, 0])
            assert costs[2][s, a] == costs[2][s, 0]
    assert costs[2][0, 5] == 1.0  # the dearest: (4 + 2 * 5 + 0 + 5) / 19
    assert costs[2][2, 1] == pytest.approx(9 / 19)


def test_inventory_optimum_by_a_second_program():
    """A linear program over (step, stock, order) written from the definition, without layouts or unrolling."""
    demand, horizon = [0.3, 0.2, 0.2, 0.2, 0.05, 0.05], 7
    keys = [(k, s, a) for k in range(horizon) for s in range(6) for a in range(6 - s)]
    sold = {n: sum(p * min(d, n) for d, p in enumerate(demand)) for n in range(6)}
    flow, gain, cost = np.zeros((horizon * 6, len(keys))), np.zeros(len(keys)), np.zeros(len(keys))
    for j, (k, s, a) in enumerate(keys):
        gain[j] = sold[s + a] / sold[5]
        cost[j] = ((4 + 2 * a if a else 0) + s + a) / 19
        flow[k * 6 + s, j] += 1.0
        if k + 1 < horizon:
            for d, p in enumerate(demand):
                flow[(k + 1) * 6 + max(s + a - d, 0), j] -= p
    inflow = np.zeros(horizon * 6)
    inflow[0] = 1.0
    answer = linprog(-gain, A_ub=cost[None], b_ub=[3.5], A_eq=flow, b_eq=inflow, method="highs")
    world = worlds.make("dope-inventory")
    assert world.source_value(world.golden.optimum) == pytest.approx(-answer.fun, abs=1e-8)
    assert math.isclose(-answer.fun, 6.665322, abs_tol=TOL_GOLDEN)


def test_an_unknown_support_is_named(name):
    with pytest.raises(InvalidInput, match="support is 'some'; choose full or known"):
        worlds.make(name, support="some")
