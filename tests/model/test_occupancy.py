"""Occupancy <-> policy <-> values, against twins that loop over (k, x, a, x')."""

import naive_model as naive
import numpy as np
import pytest
from naive_model import as_dict, random_cmdp, random_layout, random_policy, random_transitions

import hedgerow as hr
from hedgerow.errors import InvalidInput
from hedgerow.model import occupancy as occ
from hedgerow.model.layout import Layout

TOL = 1e-14


def random_case(seed: int) -> tuple[Layout, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    layout = random_layout(rng, density=float(rng.choice([0.2, 1.0])))
    return layout, random_transitions(rng, layout), random_policy(rng, layout)


@pytest.mark.parametrize("seed", range(15))
def test_forward_pass_equals_its_twin_and_is_valid(seed: int) -> None:
    layout, p, pi = random_case(seed)
    q = occ.occupancy(layout, p, pi)
    found = occ.residuals(layout, q, p)
    assert max(found) < TOL
    twin = naive.occupancy(layout, as_dict(layout, p), layout.split_rows(pi))
    for key, value in as_dict(layout, q).items():
        assert value == pytest.approx(twin[key], abs=TOL)


@pytest.mark.parametrize("seed", range(15))
def test_policy_and_transitions_come_back_from_an_occupancy(seed: int) -> None:
    layout, p, pi = random_case(seed)
    q = occ.occupancy(layout, p, pi)
    np.testing.assert_allclose(occ.induced_policy(layout, q), pi, atol=1e-12)
    np.testing.assert_allclose(occ.induced_transitions(layout, q), p, atol=1e-12)


@pytest.mark.parametrize("seed", range(15))
def test_induced_policy_and_residuals_of_any_array_equal_their_twins(seed: int) -> None:
    layout, p, _ = random_case(seed)
    rng = np.random.default_rng(100 + seed)
    q = rng.random(layout.num_triples) - 0.1 * (seed % 2)
    q[rng.random(layout.num_triples) < 0.3] = 0.0
    named = as_dict(layout, q)
    np.testing.assert_allclose(
        occ.residuals(layout, q, p), naive.residuals(layout, named, as_dict(layout, p)), atol=TOL
    )
    if seed % 2 == 0:
        pi = occ.induced_policy(layout, q)
        for row, value in enumerate(naive.induced_policy(layout, named).values()):
            assert pi[row] == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_marginals_add_up(seed: int) -> None:
    layout, p, pi = random_case(seed)
    q = occ.occupancy(layout, p, pi)
    w, mass = occ.row_occupancy(layout, q), occ.state_occupancy(layout, q)
    named = as_dict(layout, q)
    first = layout.state_start
    for k, x in {key[:2] for key in named}:
        assert mass[first[k] + x] == pytest.approx(sum(v for key, v in named.items() if key[:2] == (k, x)), abs=TOL)
    np.testing.assert_allclose(w, np.repeat(mass, layout.num_actions) * pi, atol=TOL)
    assert mass.sum() == pytest.approx(layout.steps)


@pytest.mark.parametrize("seed", range(8))
def test_values_equal_backward_induction(seed: int) -> None:
    rng = np.random.default_rng(seed)
    world = random_cmdp(rng)
    layout, pi, loss = world.layout, random_policy(rng, world.layout), rng.random(world.layout.num_rows)

    def backwards(per_row: np.ndarray) -> float:
        value = np.zeros(layout.num_states)
        for k in reversed(range(layout.steps)):
            for x in range(layout.states(k).start, layout.states(k).stop):
                for row in range(x * layout.num_actions, (x + 1) * layout.num_actions):
                    j = slice(layout.row_start[row], layout.row_start[row + 1])
                    value[x] += pi[row] * (per_row[row] + world.transitions[j] @ value[layout.successor[j]])
        return float(value[0])

    found = occ.evaluate(world, pi, loss)
    assert found.loss == pytest.approx(backwards(loss), abs=1e-12)
    assert found.costs.tolist() == pytest.approx([backwards(g) for g in world.mean_costs], abs=1e-12)
    assert occ.evaluate(world, pi).loss == 0.0


def test_conventions_where_there_is_no_mass() -> None:
    layout = Layout((1, 2, 1), 2)
    p = np.array([1.0, 0.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0])  # state 1 of layer 1 is never entered
    q = occ.occupancy(layout, p, [1.0, 0.0, 0.25, 0.75, 1.0, 0.0])
    assert occ.induced_policy(layout, q).tolist() == [1.0, 0.0, 0.25, 0.75, 0.5, 0.5]
    assert occ.induced_transitions(layout, q)[:4].tolist() == [1.0, 0.0, 0.5, 0.5]
    given = np.array([0.9, 0.1, 0.2, 0.8, 1.0, 1.0, 1.0, 1.0])
    assert occ.induced_transitions(layout, q, given)[:4].tolist() == [1.0, 0.0, 0.2, 0.8]
    tiny = q.copy()
    tiny[6] = 1e-300  # state 1 of layer 1, action 0: mass, but too little to divide by
    assert occ.induced_policy(layout, tiny)[4:].tolist() == [0.5, 0.5]


def test_each_residual_answers_to_its_own_fault() -> None:
    layout = Layout((1, 2, 1), 1)
    p, q = np.array([0.25, 0.75, 1.0, 1.0]), np.array([0.25, 0.75, 0.25, 0.75])
    assert occ.residuals(layout, q, p) == (0.0, 0.0, 0.0, 0.0)
    assert occ.residuals(layout, 2 * q, p) == (0.0, 1.0, 0.0, 0.0)
    assert occ.residuals(layout, [0.25, 0.75, 0.5, 0.5], p) == (0.0, 0.0, 0.25, 0.0)
    assert occ.residuals(layout, [0.5, 0.5, 0.5, 0.5], p) == (0.0, 0.0, 0.0, 0.25)
    assert occ.residuals(layout, [-0.25, 1.25, -0.25, 1.25], p) == (0.25, 0.0, 0.0, 0.5)
    assert occ.residuals(layout, [0.5, 0.5, 0.5, 0.5]).transitions == 0.0
    assert occ.residuals(Layout((1, 1), 2), [0.5, 0.5]).flow == 0.0


def test_uniform_policy_is_a_policy() -> None:
    layout = Layout((1, 3, 1), 3)
    np.testing.assert_array_equal(occ.checked_policy(layout, occ.uniform_policy(layout)), np.full(12, 1 / 3))


LAYOUT = Layout((1, 2, 1), 2)
PI, P8 = [0.5] * 6, [0.5] * 4 + [1.0] * 4
BAD = [
    (lambda: occ.checked_policy(LAYOUT, [0.5] * 5), r"the action probability has shape \(5,\), expected \(6,\)"),
    (lambda: occ.checked_policy(LAYOUT, [0.5, 0.4, *PI[2:]]), "probabilities of layer 0, state 0 sum to 0.9, not 1"),
    (
        lambda: occ.checked_policy(LAYOUT, [*PI[:4], 1.5, -0.5]),
        "is 1.5 at layer 1, state 1, action 0; every entry must",
    ),
    (lambda: occ.checked_policy(LAYOUT, [np.nan, *PI[1:]]), "is nan at layer 0, state 0, action 0"),
    (
        lambda: occ.checked_loss(LAYOUT, [0.0] * 5 + [1.5]),
        "the loss is 1.5 at layer 1, state 1, action 1; .* in .0, 1.",
    ),
    (lambda: occ.checked_loss(LAYOUT, [0.0] * 5 + [np.nan]), "the loss is nan at layer 1, state 1, action 1"),
    (lambda: occ.checked_loss(LAYOUT, [0.0] * 7), r"the loss has shape \(7,\), expected \(6,\)"),
    (lambda: occ.occupancy(LAYOUT, P8[1:], PI), r"the transition probability has shape \(7,\), expected \(8,\)"),
    (lambda: occ.occupancy(LAYOUT, [np.nan, *P8[1:]], PI), "is nan at layer 0, state 0, action 0, successor 0"),
    (lambda: occ.row_occupancy(LAYOUT, [1.0]), r"the occupancy has shape \(1,\), expected \(8,\)"),
    (lambda: occ.residuals(LAYOUT, P8, [1.0]), r"the transition probability has shape \(1,\)"),
    (
        lambda: occ.residuals(LAYOUT, [np.inf, *P8[1:]]),
        "the occupancy is inf at layer 0, state 0, action 0, successor 0",
    ),
]


@pytest.mark.parametrize(("make", "message"), BAD)
def test_bad_input_is_refused(make, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        make()


def test_a_world_is_evaluated_by_its_own_loss() -> None:
    world = hr.worlds.make("dope-media")
    uniform = hr.Policy.uniform(world)
    assert hr.occupancy.evaluate(world, uniform).loss == hr.occupancy.evaluate(world.cmdp, uniform, world.loss).loss
    assert hr.occupancy.evaluate(world.cmdp, uniform).loss == 0.0
