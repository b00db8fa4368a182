"""Offline optima against enumeration of all deterministic policies, backward induction and closed forms."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
import pytest
from scipy.optimize import linprog

from hedgerow.errors import CertificateError, InfeasibleError, InvalidInput
from hedgerow.model.cmdp import CMDP
from hedgerow.model.costs import BernoulliCosts
from hedgerow.model.layout import Layout
from hedgerow.model.occupancy import backward_induction, evaluate, occupancy, residuals
from hedgerow.planning import offline
from hedgerow.planning.lp import Suggestion

TOL = 1e-9
TINY = ((1, 2, 1), (1, 2, 2, 1), (1, 1, 3, 1), (1, 1))


class World(NamedTuple):
    cmdp: CMDP
    loss: np.ndarray


def random_layout(rng, sizes, actions):
    """Full support, or a random one in which every row has a successor and every state a predecessor."""
    if rng.random() < 0.5:
        return Layout(sizes, actions)
    support = []
    for here, there in itertools.pairwise(sizes):
        block = rng.random((here, actions, there)) < 0.5
        block[rng.integers(here, size=there), rng.integers(actions, size=there), np.arange(there)] = True
        block[..., 0] |= ~block.any(axis=2)
        support.append(block)
    return Layout.from_support(support)


def random_world(seed, m, sizes=None, actions=2, slack=None):
    """A world whose thresholds lie `slack` above the costs of a random policy (default: vacuous)."""
    rng = np.random.default_rng(seed)
    layout = random_layout(rng, sizes or TINY[seed % len(TINY)], actions)
    p = rng.random(layout.num_triples) ** 3 + 1e-6
    p /= np.add.reduceat(p, layout.row_start[:-1])[layout.row_of_triple]
    loss = rng.random(layout.num_rows)
    costs = BernoulliCosts(np.clip(1 - loss + rng.uniform(-0.4, 0.4, (m, layout.num_rows)), 0, 1))
    cmdp = CMDP(layout, p, costs, np.full(m, float(layout.steps)))
    if slack is not None:
        policy = rng.dirichlet(np.ones(actions), layout.num_decision_states).ravel()
        cmdp = cmdp.with_thresholds(np.minimum(evaluate(cmdp, policy).costs + slack, layout.steps))
    return World(cmdp, loss)


def naive_evaluation(cmdp, loss, actions):
    """Loss and costs of a deterministic policy by recursion over the tree of states."""
    layout = cmdp.layout

    def from_state(x):
        if x == layout.num_decision_states:
            return np.zeros(1 + cmdp.num_constraints)
        r = x * layout.num_actions + actions[x]
        now = np.concatenate(([loss[r]], cmdp.mean_costs[:, r]))
        ahead = range(layout.row_start[r], layout.row_start[r + 1])
        return now + sum(cmdp.transitions[j] * from_state(int(layout.successor[j])) for j in ahead)

    return from_state(0)


def enumerated(world):
    """(policies, 1 + m): loss and costs of every deterministic policy."""
    layout = world.cmdp.layout
    choices = itertools.product(range(layout.num_actions), repeat=layout.num_decision_states)
    return np.array([naive_evaluation(world.cmdp, world.loss, actions) for actions in choices])


def best_mixture(points, alpha):
    """min loss over mixtures of the enumerated policies with costs <= alpha."""
    n = len(points)
    return linprog(points[:, 0], A_ub=points[:, 1:].T, b_ub=alpha, A_eq=np.ones((1, n)), b_eq=[1.0]).fun


def largest_margin_of_mixtures(points, alpha):
    n, m = len(points), len(alpha)
    A_ub = np.hstack([points[:, 1:].T, np.ones((m, 1))])
    bounds = [(0, None)] * n + [(None, None)]
    A_eq = np.append(np.ones(n), 0.0)[None]
    return -linprog(np.append(np.zeros(n), -1.0), A_ub=A_ub, b_ub=alpha, A_eq=A_eq, b_eq=[1.0], bounds=bounds).fun


def assert_certified(world, solution, margin=0.0):
    """The properties that make a solution one, from its policy alone."""
    cmdp, loss = world
    check = evaluate(cmdp, solution.policy, loss)
    assert solution.value == pytest.approx(check.loss, abs=1e-14)
    np.testing.assert_allclose(solution.costs, check.costs, atol=1e-14)
    assert np.all(check.costs <= cmdp.thresholds - margin + TOL)
    assert np.all(solution.multipliers >= 0)
    np.testing.assert_allclose(solution.multipliers * (cmdp.thresholds - margin - check.costs), 0, atol=1e-7)
    assert abs(solution.gap) <= TOL
    assert solution.gap == solution.value - solution.dual_value
    assert solution.state_values.shape == (cmdp.layout.num_states,)
    assert max(residuals(cmdp.layout, solution.occupancy, cmdp.transitions)) <= 1e-12


@pytest.fixture(params=["rows", "columns"])
def method(request, monkeypatch):
    """Both ways to the answer: the program over rows, and column generation as for large worlds."""
    if request.param == "columns":
        monkeypatch.setattr(offline, "MANY_ROWS", 0)
    return request.param


@pytest.mark.parametrize("seed", range(12))
def test_backward_induction_equals_enumeration(seed):
    world = random_world(seed, m=0)
    best = backward_induction(world.cmdp.layout, world.cmdp.transitions, world.loss)
    assert best.value == pytest.approx(enumerated(world)[:, 0].min(), abs=1e-13)
    assert best.value == best.state_values[0]
    assert evaluate(world.cmdp, best.policy, world.loss).loss == pytest.approx(best.value, abs=1e-13)


def test_backward_induction_accepts_losses_outside_the_unit_interval_but_no_nan():
    layout = Layout((1, 1), 2)
    assert backward_induction(layout, [1.0, 1.0], [7.0, -3.0]).value == -3.0
    with pytest.raises(InvalidInput, match="loss is nan at layer 0, state 0, action 1"):
        backward_induction(layout, [1.0, 1.0], [0.0, np.nan])


@pytest.mark.parametrize("m", [0, 2])
@pytest.mark.usefixtures("method")
def test_without_binding_constraints_the_optimum_equals_backward_induction(m):
    for seed in range(40):
        sizes = ((1, 4, 6, 3, 1), (1, 3, 1), (1, *[4] * 8, 1))[seed % 3]
        world = random_world(seed, m, sizes, actions=1 + seed % 4)  # thresholds = L are vacuous
        solution = offline.optimum(*world)
        assert_certified(world, solution)
        reference = backward_induction(world.cmdp.layout, world.cmdp.transitions, world.loss).value
        assert abs(solution.value - reference) <= 1e-10


@pytest.mark.parametrize("seed", range(16))
@pytest.mark.usefixtures("method")
def test_optimum_and_slater_equal_the_best_mixture_of_enumerated_policies(seed):
    world = random_world(seed, m=1 + seed % 3, slack=0.02)
    solution, slater = offline.optimum(*world), offline.slater(world.cmdp)
    assert_certified(world, solution)
    assert solution.relaxation == 0.0
    points = enumerated(world)
    assert solution.value == pytest.approx(best_mixture(points, world.cmdp.thresholds), abs=TOL)
    assert slater.margin == pytest.approx(largest_margin_of_mixtures(points, world.cmdp.thresholds), abs=TOL)
    np.testing.assert_allclose(slater.costs, evaluate(world.cmdp, slater.policy).costs, atol=1e-14)
    assert slater.margin == np.min(world.cmdp.thresholds - slater.costs)
    assert slater.multipliers.sum() == pytest.approx(1.0)
    assert abs(slater.gap) <= TOL
    assert slater.dual_value >= slater.margin - 1e-14


def test_the_two_methods_agree_on_larger_worlds(monkeypatch):
    for seed in range(6):
        world = random_world(seed, m=4, sizes=(1, *[6] * 6, 1), actions=3, slack=0.05)
        by_rows, margin = offline.optimum(*world), offline.slater(world.cmdp).margin
        with monkeypatch.context() as patch:
            patch.setattr(offline, "MANY_ROWS", 0)
            by_columns = offline.optimum(*world)
            same = world.cmdp.with_thresholds(world.cmdp.thresholds)  # a new object, not solved yet
            assert offline.slater(same).margin == pytest.approx(margin, abs=TOL)
        assert_certified(world, by_columns)
        assert by_columns.value == pytest.approx(by_rows.value, abs=TOL)
        np.testing.assert_allclose(by_columns.multipliers, by_rows.multipliers, atol=1e-6)


def two_actions(alpha, means=(0.8, 0.3)):
    """One step; the lossless action costs more. Closed form: clip q(a_1)."""
    return CMDP(Layout((1, 1), 2), [1.0, 1.0], BernoulliCosts([means]), [alpha], constraint_names=["energy"])


@pytest.mark.usefixtures("method")
def test_two_actions_closed_form():
    cmdp = two_actions(0.5)
    solution = offline.optimum(cmdp, [0.0, 1.0])
    q = (0.5 - 0.3) / (0.8 - 0.3)
    np.testing.assert_allclose(solution.policy, [q, 1 - q], atol=1e-12)
    assert solution.value == pytest.approx(1 - q, abs=1e-12)
    assert solution.multipliers[0] == pytest.approx(1 / 0.5)
    assert offline.slater(cmdp).margin == pytest.approx(0.2, abs=1e-12)


def test_multipliers_are_the_price_of_a_threshold():
    world = random_world(3, m=2, sizes=(1, 4, 4, 1), actions=3, slack=0.05)
    solution, step = offline.optimum(*world), 1e-5
    assert solution.multipliers.max() > 0.01
    for i in range(2):
        moved = world.cmdp.with_thresholds(world.cmdp.thresholds + step * np.eye(2)[i])
        saved = solution.value - offline.optimum(moved, world.loss).value
        assert saved / step == pytest.approx(solution.multipliers[i], abs=1e-4)


def test_without_constraints_the_margin_is_infinite():
    world = random_world(0, m=0)
    slater = offline.slater(world.cmdp)
    assert slater.margin == np.inf
    assert slater.costs.shape == slater.multipliers.shape == (0,)
    np.testing.assert_array_equal(slater.policy, 1 / world.cmdp.layout.num_actions)
    assert offline.strictly_feasible(world.cmdp, 0.1).costs.shape == (0,)


@pytest.mark.usefixtures("method")
def test_infeasible_thresholds_name_least_violation_and_cause():
    layout = Layout((1, 1), 2)
    costs = BernoulliCosts([[0.9, 0.4], [0.1, 0.1]])
    cmdp = CMDP(layout, [1.0, 1.0], costs, [0.15, 0.5], constraint_names=["heat", "noise"])
    with pytest.raises(
        InfeasibleError, match=r"exceeded by at least 0\.25 \(constraints that cause it: 'heat'\)"
    ) as caught:
        offline.optimum(cmdp, [0.0, 1.0])
    assert caught.value.least_violation == pytest.approx(0.25, abs=TOL)
    assert caught.value.constraints == ("heat",)
    np.testing.assert_allclose(caught.value.multipliers, [1.0, 0.0], atol=1e-9)
    assert offline.slater(cmdp).margin == pytest.approx(-0.25, abs=TOL)
    raised = cmdp.with_thresholds(cmdp.thresholds + caught.value.least_violation)
    assert offline.optimum(raised, [0.0, 1.0]).value == pytest.approx(1.0, abs=1e-6)


@pytest.mark.usefixtures("method")
def test_two_opposing_constraints_are_infeasible_together():
    cmdp = CMDP(Layout((1, 1), 2), [1.0, 1.0], BernoulliCosts([[1.0, 0.0], [0.0, 1.0]]), [0.4, 0.4])
    with pytest.raises(InfeasibleError, match=r"at least 0\.1 .*'cost 1', 'cost 2'") as caught:
        offline.optimum(cmdp, [0.0, 0.0])
    np.testing.assert_allclose(caught.value.multipliers, [0.5, 0.5], atol=1e-9)


@pytest.mark.parametrize("shortfall", [0.0, 1e-12, 9e-10])
@pytest.mark.usefixtures("method")
def test_problems_feasible_to_within_rounding_are_solved(shortfall):
    for seed in range(8):
        world = random_world(seed, m=2, sizes=(1, 4, 4, 1), actions=3, slack=0.1)
        tight = world.cmdp.thresholds - offline.slater(world.cmdp).margin - shortfall
        solution = offline.optimum(world.cmdp.with_thresholds(tight), world.loss)
        assert solution.cost_residual <= 4e-9
        assert solution.relaxation <= 2e-9
        assert np.all(evaluate(world.cmdp, solution.policy).costs <= tight + 4e-9)


def test_a_shortfall_above_the_tolerance_is_infeasible():
    with pytest.raises(InfeasibleError, match="energy"):
        offline.optimum(two_actions(0.3 - 1e-7), [0.0, 1.0])


@pytest.mark.usefixtures("method")
def test_strictly_feasible_keeps_its_margin_and_minimises():
    world = random_world(5, m=2, sizes=(1, 3, 3, 1), actions=2, slack=0.2)
    rho = offline.slater(world.cmdp).margin
    points = enumerated(world)
    for margin in (0.0, rho / 2, 0.99 * rho):
        with_loss = offline.strictly_feasible(world.cmdp, margin, world.loss)
        assert_certified(world, with_loss, margin)
        assert with_loss.value == pytest.approx(best_mixture(points, world.cmdp.thresholds - margin), abs=TOL)
        cheapest = offline.strictly_feasible(world.cmdp, margin)
        assert cheapest.value == pytest.approx(cheapest.costs.mean(), abs=1e-12)
        assert cheapest.value <= with_loss.costs.mean() + TOL
    at_the_edge = offline.strictly_feasible(world.cmdp, rho)
    assert np.all(at_the_edge.costs <= world.cmdp.thresholds - rho + 4e-9)


def test_a_margin_above_rho_names_rho():
    with pytest.raises(InfeasibleError, match=r"largest possible margin is rho = 0\.2 .*'energy'") as caught:
        offline.strictly_feasible(two_actions(0.5), 0.3)
    assert caught.value.least_violation == pytest.approx(0.1, abs=TOL)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda cmdp: offline.optimum(cmdp, [0.0]), r"the loss has shape \(1,\), expected \(2,\)"),
        (lambda cmdp: offline.optimum(cmdp, [0.0, 1.5]), r"loss is 1.5 at layer 0, state 0, action 1"),
        (lambda cmdp: offline.optimum(cmdp, [np.nan, 0.0]), "finite"),
        (lambda cmdp: offline.strictly_feasible(cmdp, -0.1), r"margin is -0.1; it must lie in \[0, 1\]"),
        (lambda cmdp: offline.strictly_feasible(cmdp, np.nan), "margin is nan"),
        (lambda cmdp: offline.strictly_feasible(cmdp, "wide"), "margin must be a number"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InvalidInput, match=message):
        call(two_actions(0.5))


def test_a_wrong_answer_of_the_solver_is_withheld(monkeypatch):
    """Neither a suboptimal w nor wrong multipliers get past the certificate."""
    cmdp, loss = two_actions(0.5), [0.0, 1.0]
    good = offline.optimum(cmdp, loss)
    for w, theta in (
        ([0.3, 0.7], good.multipliers),
        ([0.4, 0.6], good.multipliers + 0.1),
        ([0.5, 0.5], good.multipliers),
    ):
        answer = Suggestion(np.array(w), np.array(theta), 0.0)
        monkeypatch.setattr(offline, "least_loss", lambda *_, answer=answer: answer)
        with pytest.raises(CertificateError, match="the optimum failed its check"):
            offline.optimum(cmdp, loss)
    monkeypatch.setattr(offline, "largest_margin", lambda *_: Suggestion(np.array([0.5, 0.5]), np.ones(1), 0.0))
    with pytest.raises(CertificateError, match="the Slater point failed its check"):
        offline.slater(cmdp)


def test_results_are_read_only():
    solution = offline.optimum(two_actions(0.5), [0.0, 1.0])
    with pytest.raises(ValueError, match="read-only"):
        solution.policy[0] = 1.0
    with pytest.raises(AttributeError):
        solution.value = 0.0


@pytest.mark.slow
def test_a_hundred_thousand_rows():
    width, depth, actions = 250, 40, 10
    rng = np.random.default_rng(1)
    sizes = (1, *[width] * depth, 1)
    inner = np.zeros((width, actions, width), dtype=bool)
    for jump in (0, 1, 2):  # action a of state x leads to three neighbouring states
        x, a = np.meshgrid(np.arange(width), np.arange(actions), indexing="ij")
        inner[x, a, (x + 3 * a + jump) % width] = True
    ends = np.ones((1, actions, width), dtype=bool), np.ones((width, actions, 1), dtype=bool)
    layout = Layout.from_support([ends[0], *[inner] * (depth - 1), ends[1]])
    assert layout.num_rows > 100_000
    assert layout.layer_sizes == sizes
    p = rng.random(layout.num_triples)
    p /= np.add.reduceat(p, layout.row_start[:-1])[layout.row_of_triple]
    loss = rng.random(layout.num_rows)
    costs = BernoulliCosts(0.5 * (1 - loss) + 0.5 * rng.random((2, layout.num_rows)))
    vacuous = CMDP(layout, p, costs, [float(layout.steps)] * 2)
    slater = offline.slater(vacuous)
    cmdp = vacuous.with_thresholds(slater.costs + 0.1 * layout.steps)
    solution = offline.optimum(cmdp, loss)
    assert np.all(solution.multipliers > 0.1)
    assert abs(solution.gap) <= 1e-9 * layout.steps
    assert solution.cost_residual <= 1e-9
    np.testing.assert_allclose(solution.occupancy, occupancy(layout, p, solution.policy))
