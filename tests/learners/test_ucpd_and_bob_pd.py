"""UCPD and BoB-PD: runs that can be computed by hand, one step against a general solver, and what they promise."""

from __future__ import annotations

import copy
import pickle
from math import log, sqrt
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from learner_cases import draw_path, random_world

import hedgerow as hr
from hedgerow.learners.field.flow import FlowLearner

ALPHA = 0.5
ONE_STEP = hr.CMDP(hr.Layout((1, 1), 2), [1.0, 1.0], hr.costs.DeterministicCosts([[0.2, 1.0]]), [ALPHA])
"""A safe action and a risky one; with the loss (1, 0) the optimum plays the risky one with probability 3/8."""

FORMS: dict[str, tuple[type[FlowLearner], dict[str, Any]]] = {
    "ucpd": (hr.field.UCPD, {}),
    "ucpd-ix": (hr.field.UCPDIX, {}),
    "bob-pd": (hr.field.BoBPD, {}),
    "bob-pd bandit": (hr.field.BoBPD, {"feedback": "bandit"}),
}


def made(form: str, world: hr.CMDP | hr.View, episodes: int, delta: float = 0.05, **options: Any) -> Any:
    cls, own = FORMS[form]
    return cls(world if isinstance(world, hr.View) else world.view(), episodes, delta, **{**own, **options})


def played(learner: Any, world: hr.CMDP, rng: np.random.Generator) -> hr.Episode:
    """Plan, draw an episode by numpy alone, and observe it; all losses and costs are shown, used or not."""
    rows = draw_path(world, learner.plan().policy, rng)
    losses, costs = rng.random(world.layout.num_rows), rng.random((world.layout.num_rows, world.num_constraints))
    episode = hr.Episode(world.view(), rows, losses[rows], costs[rows], all_losses=losses, all_costs=costs)
    learner.observe(episode)
    return episode


# Runs by hand --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "episodes", "regret", "cancelling", "positive", "dual", "risky"),
    [
        ("ucpd", 10**3, -44.6095, 35.6876, 118.66, 35.587589, 0.155591),
        ("bob-pd", 10**3, -14.7709, 11.8167, 94.567, 0.373677, None),
        pytest.param("ucpd", 10**4, -188.0246, 150.4197, 1000.8299, 150.31971, 0.168973, marks=pytest.mark.nightly),
        pytest.param("bob-pd", 10**4, -22.1992, 17.7594, 760.9991, 0.470587, None, marks=pytest.mark.nightly),
    ],
)
def test_known_runs(
    form: str, episodes: int, regret: float, cancelling: float, positive: float, dual: float, risky: float | None
) -> None:
    """Computed apart from this package: two actions, no transitions, known costs, the loss (1, 0)."""
    learner = made(form, ONE_STEP, episodes)
    run = hr.simulate(ONE_STEP, learner, [1.0, 0.0], progress=False, marks=[episodes - 1, episodes])
    assert run.regret[-1] == pytest.approx(regret, abs=1e-4)
    assert run.costs[-1, 0] - ALPHA * episodes == pytest.approx(cancelling, abs=1e-4)
    assert run.violations[-1, 0] == pytest.approx(positive, abs=1e-4)
    if form == "ucpd":
        assert run["queue"][-1] == pytest.approx(dual, abs=1e-4)  # of the last episode
        assert (run.costs[-1, 0] - run.costs[-2, 0] - 0.2) / 0.8 == pytest.approx(risky, abs=1e-4)
    else:
        assert learner.multipliers[0] == pytest.approx(dual, abs=1e-4)  # after the last episode


@pytest.mark.nightly  # its steps: test_known_runs
def test_tempting_losses_make_the_positive_violation_linear_while_cancellation_hides_it() -> None:
    found = {}
    for episodes in (2_500, 10_000):
        tempting = hr.losses.Switching(period=episodes // 2, patterns=[[1.0, 0.0], [0.0, 1.0]])
        run = hr.simulate(ONE_STEP, made("ucpd", ONE_STEP, episodes), tempting, progress=False, marks=[episodes])
        found[episodes] = run.violations[-1, 0], run.costs[-1, 0] - ALPHA * episodes
    assert found[10_000] == pytest.approx((612.5329, -1353.2776), abs=1e-3)
    assert found[10_000][0] / found[2_500][0] > 3.0  # sqrt(T) would be 2


@pytest.mark.parametrize("sets", ["source", "sharp"])
def test_bandit_ucpd_is_exponential_weights_in_one_step(sets: str) -> None:
    """With one state u = pi: every number of UCPD-IX follows from the episodes by a few lines."""
    T, delta, alpha, A = 240, 0.05, np.array([0.3]), 3
    view = hr.View(hr.Layout((1, 1), A), alpha, ["c"])
    learner, rng = made("ucpd-ix", view, T, delta, sets=sets), np.random.default_rng(5)
    pi, queue, n, total, queued = np.full(A, 1 / A), 0.0, np.zeros(A), np.zeros(A), 0
    gamma = sqrt(log(2 * A / delta) / (T * 2 * A))
    for _ in range(T):
        np.testing.assert_allclose(learner.plan().policy.probabilities, pi, rtol=1e-9)
        a, loss, cost = int(rng.choice(A, p=pi)), float(rng.random()), float(rng.uniform(0.9, 1.0))
        learner.observe([a], [loss], [cost])
        n[a] += 1
        total[a] += cost
        squared = log(6 * A * T * 2 / delta) * 2 if sets == "source" else log(2 * A * 2 * T / delta) / 2
        mean, xi = total / np.maximum(1, n), np.where(n > 0, np.minimum(1, np.sqrt(squared / np.maximum(1, n))), 1)
        lcb, estimate = np.maximum(0, mean - xi), np.zeros(A)
        estimate[a] = loss / (pi[a] + gamma)
        weights = ((1 - 1 / T) * pi + 1 / T / A) * np.exp(-(sqrt(T) * estimate + queue * lcb) / T)
        pi = weights / weights.sum()
        queue = max(0.0, queue + float(lcb @ pi) - alpha[0])
        queued += queue > 0.0
        assert learner.queues[0] == pytest.approx(queue, abs=1e-9)
    assert queued > 10  # the queue has been at work


def test_bandit_bob_pd_is_exponential_weights_in_one_step() -> None:
    T, delta, alpha, A = 150, 0.05, 0.3, 3
    view = hr.View(hr.Layout((1, 1), A), [alpha], ["c"])
    learner, rng = made("bob-pd bandit", view, T, delta), np.random.default_rng(6)
    pi, lam, largest = np.full(A, 1 / A), 0.0, 0.0
    gamma = sqrt(log(2 * A / delta) / (T * 2 * A))
    for _ in range(T):
        plan = learner.plan()
        np.testing.assert_allclose(plan.policy.probabilities, pi, rtol=1e-9)
        assert plan.notes["multiplier"] == pytest.approx(lam, abs=1e-12)
        a, loss, cost = int(rng.choice(A, p=pi)), float(rng.random()), float(rng.random())
        learner.observe([a], [loss], [cost])
        estimate = np.zeros(A)
        estimate[a] = (loss + lam * cost) / (pi[a] + gamma)
        largest = max(largest, lam)
        weights = ((1 - 1 / T) * pi + 1 / T / A) * np.exp(-estimate / ((1 + largest) * sqrt(T)))
        pi = weights / weights.sum()
        lam = min(max(lam + (cost - alpha) / sqrt(T), 0.0), T**0.25)
    assert lam > 0.0


def test_a_multiplier_is_clipped() -> None:
    world = hr.CMDP(hr.Layout((1, 1, 1, 1, 1, 1), 1), np.ones(5), hr.costs.DeterministicCosts(np.ones((1, 5))), [0.0])
    learner = made("bob-pd", world, 16)  # each episode asks for 5 / 4 more, and T^(1/4) = 2
    hr.simulate(world, learner, np.zeros(5), progress=False)
    assert learner.multipliers.tolist() == [2.0]


# One step against a general solver -----------------------------------------------------------------------------------


def polytope(world: hr.CMDP, seen: hr.learners.Statistics) -> tuple[Any, list[Any], Any]:
    """q over the triples within the boxes, as cvxpy reads it; and q(x, a)."""
    layout = world.layout
    q = cp.Variable(layout.num_triples, nonneg=True)
    row = np.asarray(layout.row_of_triple)
    mass = np.zeros((layout.num_rows, layout.num_triples))
    mass[row, np.arange(layout.num_triples)] = 1.0
    w = mass @ q
    rules = [cp.multiply(seen.lower, w[row]) <= q, q <= cp.multiply(seen.upper, w[row])]
    for x in range(layout.num_decision_states):
        inflow = 1.0 if x == 0 else cp.sum(q[np.flatnonzero(np.asarray(layout.successor) == x)])
        own = slice(x * layout.num_actions, (x + 1) * layout.num_actions)
        rules.append(cp.sum(w[own]) == inflow)
    return q, rules, w


def largest_occupancy(world: hr.CMDP, seen: hr.learners.Statistics, policy: np.ndarray, row: int) -> float:
    """max q(x, a) of a policy over the boxes, as a linear program."""
    _, rules, w = polytope(world, seen)
    for x in range(world.layout.num_decision_states):
        own = slice(x * world.layout.num_actions, (x + 1) * world.layout.num_actions)
        rules.append(w[own] == policy[own] * cp.sum(w[own]))
    return float(cp.Problem(cp.Maximize(w[row]), rules).solve(solver="HIGHS"))


def slow_step(form: str, learner: Any, world: hr.CMDP, before: dict[str, Any], episode: hr.Episode) -> np.ndarray:
    """q_{t+1} by cvxpy and Clarabel, as the step is written: a linear term and a divergence."""
    T, layout, dual = learner.episodes, world.layout, before["dual"]
    L = layout.steps
    losses, costs = np.asarray(episode.all_losses), np.asarray(episode.all_costs)
    if learner.feedback == "bandit":
        pairs = layout.num_states * layout.num_actions
        gamma = sqrt(L * log(L * pairs / learner.delta) / (T * pairs))
        seen_loss = episode.losses + (episode.costs @ dual if form.startswith("bob") else 0.0)
        losses, costs = np.zeros(layout.num_rows), np.asarray(learner.seen.cost_lower)
        for k, row in enumerate(episode.rows):
            losses[row] = seen_loss[k] / (largest_occupancy(world, before["seen"], before["policy"], row) + gamma)
    if form.startswith("ucpd"):
        linear, weight = L * sqrt(T) * losses + costs @ dual, L * T
    else:
        linear = losses if learner.feedback == "bandit" else losses + costs @ dual
        weight = (1.0 + before["largest"]) * sqrt(T)
    base = np.zeros(layout.num_triples)
    for k in range(L):
        own = layout.triples(k)
        base[own] = (1 - 1 / T) * before["flow"][own] + 1 / T / (own.stop - own.start)
    q, rules, w = polytope(world, learner.seen)
    cp.Problem(cp.Minimize(linear @ w / weight + cp.sum(cp.kl_div(q, base))), rules).solve(
        solver="CLARABEL", tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12
    )
    return np.asarray(q.value)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("sparse", [False, True])
def test_a_step_is_that_of_a_general_solver(form: str, sparse: bool) -> None:
    world = random_world(4, (1, 3, 2, 1), sparse=sparse)
    learner, rng = made(form, world, 40, sets="sharp"), np.random.default_rng(1)
    learner.dual[:] = [0.7, 1.9]
    for _ in range(25):
        played(learner, world, rng)
    twin = copy.copy(learner)
    before = {"flow": learner.flow.copy(), "dual": learner.dual.copy(), "policy": learner.policy, "seen": twin.seen}
    before["largest"] = float(getattr(learner, "largest_dual", np.zeros(1))[0])
    episode = played(learner, world, rng)
    expected = slow_step(form, learner, world, before, episode)
    np.testing.assert_allclose(learner.flow, expected, atol=2e-7)
    assert np.abs(learner.flow - before["flow"]).max() > 1e-3
    w = np.add.reduceat(expected, world.layout.row_start[:-1])
    costs, alpha, T = np.asarray(episode.all_costs), world.thresholds, learner.episodes
    if form.startswith("ucpd"):
        seen = costs if form == "ucpd" else learner.seen.cost_lower
        dual = np.maximum(0.0, before["dual"] + w @ seen - alpha)
    else:
        now = np.add.reduceat(before["flow"], world.layout.row_start[:-1])
        cost = now @ costs if form == "bob-pd" else episode.costs.sum(axis=0)
        dual = np.clip(before["dual"] + (cost - alpha) / sqrt(T), 0.0, T**0.25)
    np.testing.assert_allclose(learner.dual, dual, atol=1e-5)


def test_the_first_occupancy_is_uniform_where_that_flows() -> None:
    learner = made("ucpd", random_world(0, (1, 3, 2, 1)), 10)
    np.testing.assert_allclose(learner.flow, np.repeat([1 / 6, 1 / 12, 1 / 4], [6, 12, 4]), rtol=1e-9)
    known = random_world(0, (1, 3, 2, 1))
    told = made("ucpd", known.view().knowing(transitions=known.transitions), 10)
    w = np.add.reduceat(told.flow, known.layout.row_start[:-1])
    np.testing.assert_allclose(told.flow, w[known.layout.row_of_triple] * known.transitions, atol=1e-9)


# The protocol --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_the_contract(form: str) -> None:
    cls, options = FORMS[form]
    found = hr.check_learner(cls, episodes=8, options=options)
    assert found.ok, str(found)
    assert all(finding.outcome == "passed" for finding in found.findings)


@pytest.mark.parametrize("form", FORMS)
def test_files_in_the_middle_of_a_run(form: str, tmp_path: Path) -> None:
    world = random_world(3, (1, 3, 3, 1), sparse=True)
    learner, rng = made(form, world, 60, sets="sharp"), np.random.default_rng(2)
    for _ in range(30):
        played(learner, world, rng)
    hr.save(learner, tmp_path / "learner.npz")
    others = [hr.load(tmp_path / "learner.npz"), copy.deepcopy(learner), pickle.loads(pickle.dumps(learner))]
    for other in others:
        assert type(other) is type(learner)
        assert other.feedback == learner.feedback
    for seed in range(20):
        for each in (learner, *others):
            played(each, world, np.random.default_rng(seed))
    for other in others:
        for name, array in learner.state().items():
            np.testing.assert_array_equal(array, other.state()[name], err_msg=name)


@pytest.mark.parametrize("form", FORMS)
def test_a_state_that_cannot_be_is_refused(form: str) -> None:
    world = random_world(0)
    learner = made(form, world, 20)
    changes = {"own.flow": lambda a: 2.0 * a, "own.dual": lambda a: a - 1.0, "own.own_policy": lambda a: 0.0 * a}
    if form.startswith("bob"):
        changes |= {"own.dual": lambda a: a + 9.0, "own.largest_dual": lambda a: a - 1.0}
    for name, change in changes.items():
        state = learner.state()
        with pytest.raises(hr.errors.InvalidInput):
            type(learner).restored(world.view(), {**state, name: change(state[name])})


def test_full_feedback_is_asked_for_and_a_refused_call_changes_nothing() -> None:
    world = random_world(0)
    for form in ("ucpd", "bob-pd"):
        learner = made(form, world, 20)
        assert hr.simulate(world, learner, hr.losses.IID(), progress=False).way == "compiled"
        learner = made(form, world, 20)
        learner.plan()
        before = learner.state()
        with pytest.raises(hr.errors.InvalidInput, match="needs full feedback"):
            learner.observe([0, 2, 8], np.zeros(3), np.zeros((3, 2)))
        for name, array in learner.state().items():
            np.testing.assert_array_equal(array, before[name])
    with pytest.raises(hr.errors.InvalidInput, match="the feedback is 'half'; choose 'full' or 'bandit'"):
        hr.field.BoBPD(world.view(), 20, 0.05, feedback="half")  # type: ignore[arg-type]


@pytest.mark.parametrize("form", ["ucpd-ix", "bob-pd bandit"])
def test_losses_of_an_overridden_episode_are_left_out(form: str) -> None:
    world = random_world(0, (1, 1, 1), m=1)
    one, other = made(form, world, 20), made(form, world, 20)
    for learner, losses, costs in ((one, [1.0, 1.0], [1.0, 1.0]), (other, [0.0, 0.0], [1.0, 1.0])):
        learner.plan()
        learner.observe(hr.Episode(world.view(), [0, 2], losses, costs, overridden_from=0))
    np.testing.assert_array_equal(one.policy, other.policy)
    np.testing.assert_array_equal(one.dual, other.dual)
    np.testing.assert_allclose(one.policy, 0.5, atol=1e-9)


def test_the_ledger_says_which_violation_is_meant_and_what_is_ours() -> None:
    world = random_world(0)
    ledger = made("ucpd", world, 100, 0.05).guarantees()
    assert [promise.name for promise in ledger] == ["regret", "cancelling violation"]
    assert all(promise.holds and promise.probability == pytest.approx(0.8) for promise in ledger)
    assert "whatever the losses" in ledger["regret"].statement
    assert "may grow linearly" in ledger["cancelling violation"].statement
    for form, reason in (("ucpd-ix", "is ours"), ("bob-pd", "is ours"), ("bob-pd bandit", "is ours")):
        for promise in made(form, world, 100).guarantees():
            assert not promise.holds
            assert promise.probability == 0.0
            assert reason in promise.void_because
    assert hr.field.UCPD.recalled
    assert "variant of ours" in hr.field.BoBPD.source
    assert str(hr.field.UCPD.inputs) == "T, delta"
