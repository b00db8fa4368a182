"""The pre-flight of a problem against closed forms, plain enumeration and linear programs of its own."""

from __future__ import annotations

from itertools import product
from math import ceil, log

import numpy as np
import pytest
from scipy.optimize import linprog

import hedgerow as hr
from hedgerow.environments.scores import make_scores
from hedgerow.forecast import preflight
from hedgerow.model.layout import Layout
from hedgerow.planning.lp import flow_matrix


def two_layers(thresholds: tuple[float, float]) -> hr.CMDP:
    """Two steps, two states in the second layer of which action 0 always leads to the first."""
    layout = hr.Layout((1, 2, 1), num_actions=2)
    moves = [1.0, 0.0, 0.25, 0.75] + [1.0] * 4
    costs = [[0.5, 0.25, 0.75, 0.125, 0.0, 1.0], [0.0, 0.5, 0.125, 0.25, 0.5, 0.25]]
    return hr.CMDP(layout, moves, hr.costs.BernoulliCosts(costs), thresholds, constraint_names=("fuel", "noise"))


def deterministic_costs(cmdp: hr.CMDP) -> np.ndarray:
    """(policies, m): the costs of every deterministic policy, one after the other."""
    layout, found = cmdp.layout, []
    for actions in product(range(layout.num_actions), repeat=layout.num_decision_states):
        policy = np.eye(layout.num_actions)[list(actions)].ravel()
        found.append(hr.occupancy.evaluate(cmdp, policy).costs)
    return np.array(found)


def test_reachable_states() -> None:
    layout = hr.Layout((1, 3, 2, 1), num_actions=1)
    moves = layout.join_triples([[[[0.5, 0.5, 0.0]]], [[[1.0, 0.0]], [[1.0, 0.0]], [[0.0, 1.0]]], [[[1.0]], [[1.0]]]])
    # The third state of layer 1 is never reached, and the second of layer 2 only from there.
    assert preflight.reachable_states(hr.CMDP(layout, moves)).tolist() == [True, True, True, False, True, False, True]


def test_ranges_of_thresholds() -> None:
    cmdp = two_layers((0.6, 0.6))
    every = deterministic_costs(cmdp)
    for i, found in enumerate(preflight.threshold_ranges(cmdp)):
        # Alone: the extremes over deterministic policies. With the other constraint: a linear program of our own.
        assert found.least == pytest.approx(every[:, i].min(), abs=1e-12)
        assert found.largest == pytest.approx(every[:, i].max(), abs=1e-12)
        flow = flow_matrix(cmdp)
        start = np.eye(flow.shape[0])[0]
        other = linprog(
            cmdp.mean_costs[i], A_ub=cmdp.mean_costs[[1 - i]], b_ub=[0.6], A_eq=flow, b_eq=start, bounds=(0, None)
        )
        assert found.least_with_others == pytest.approx(other.fun, abs=1e-8)
        assert found.least <= found.least_with_others + 1e-12


@pytest.mark.parametrize(
    ("threshold", "verdict"),
    [
        (0.1, "cannot be met"),
        (0.28125, "met, without margin"),
        (0.6, "can bind"),
        (1.25, "never binds"),
        (2.0, "never binds"),
    ],
)
def test_what_a_threshold_means(threshold: float, verdict: str) -> None:
    cmdp = two_layers((threshold, 2.0))
    every = deterministic_costs(cmdp)[:, 0]
    assert (every.min(), every.max()) == (pytest.approx(0.28125), pytest.approx(1.25))
    assert preflight.threshold_ranges(cmdp)[0].verdict == verdict


def test_feasible_with_a_policy_that_proves_it() -> None:
    cmdp = two_layers((0.6, 0.6))
    found = preflight.feasibility(cmdp)
    costs = hr.occupancy.evaluate(cmdp, found["strictly_feasible"]["policy"]).costs
    assert found["feasible"]
    assert float(np.min(cmdp.thresholds - costs)) == pytest.approx(found["rho"], abs=1e-9)
    assert costs == pytest.approx(list(found["strictly_feasible"]["costs"].values()), abs=1e-12)
    assert sum(found["multipliers"].values()) == pytest.approx(1.0)
    assert found["certificate"].startswith("strictly feasible: a policy stays ")


def test_infeasible_with_weights_that_prove_it() -> None:
    cmdp = two_layers((0.3, 0.3))
    found = preflight.feasibility(cmdp)
    theta = np.array(list(found["multipliers"].values()))
    # No policy, not even a mixture, has a smaller weighted cost than the best deterministic one.
    least = float((deterministic_costs(cmdp) @ theta).min())
    assert not found["feasible"]
    assert found["strictly_feasible"] is None
    assert least > theta @ cmdp.thresholds
    assert least - theta @ cmdp.thresholds == pytest.approx(-found["rho"], abs=1e-9)
    assert f">= {least:.6g}, while the thresholds allow 0.3" in found["certificate"]


def test_feasible_without_margin() -> None:
    least = float(deterministic_costs(two_layers((1.0, 1.0)))[:, 0].min())
    found = preflight.feasibility(two_layers((least, 2.0)))
    assert found["feasible"]
    assert found["certificate"].startswith("feasible, but not strictly")


def test_visits_until_radii_say_something() -> None:
    cmdp = hr.worlds.make("random-layered", layers=(1, 3, 3, 1), actions=3, constraints=1).cmdp
    T, delta = 10_000, 0.05
    rows = {row["radii"]: row for row in preflight.informative_radii(cmdp, T, delta)}
    # paper: xi = sqrt(4 ln(T|X||A|m/delta) / N) < 1, that is N > 4 ln(...)
    exact = 4 * log(T * 8 * 3 * 1 / delta)
    assert rows["paper"]["visits"]["cost_below_1"] == ceil(exact)
    assert rows["paper"]["visits"]["cost_below_0.1"] == ceil(100 * exact)
    # tight: xi = sqrt(ln(2 n_pair m T/delta) / 2N)
    assert rows["tight"]["visits"]["cost_below_1"] == ceil(log(2 * 21 * T / delta) / 2)
    # paper, three successors: 2 sqrt(iota / 3n) + 14 iota / 3n < 2/3 with n = N - 1
    iota = log(T * 8 * 3 / delta)
    n = rows["paper"]["visits"]["transitions"] - 1
    assert 2 * (iota / (3 * n)) ** 0.5 + 14 * iota / (3 * n) < 2 / 3
    assert 2 * (iota / (3 * (n - 1))) ** 0.5 + 14 * iota / (3 * (n - 1)) >= 2 / 3
    # Uniform actions reach a pair of the first layer in every third episode, others less often.
    for row in rows.values():
        assert row["episodes_rarest_pair"]["transitions"] >= row["episodes_typical_pair"]["transitions"]
        assert row["episodes_typical_pair"]["transitions"] >= 3 * row["visits"]["transitions"]


def test_nothing_to_learn_about_certain_transitions() -> None:
    cmdp = hr.worlds.make("lower-bound-1").cmdp
    assert all(row["visits"]["transitions"] == 0 for row in preflight.informative_radii(cmdp, 100, 0.1))


@pytest.mark.parametrize("limit", [1, 2, 3, 17, 1024, 1025])
def test_first_visits_is_a_bisection(limit: int) -> None:
    assert preflight.first_visits(lambda visits: visits >= limit) == limit
    assert preflight.first_visits(lambda visits: False) == preflight.MOST_VISITS


def test_a_learner_that_refuses_says_why() -> None:
    cmdp = hr.worlds.make("lower-bound-1").cmdp.with_thresholds([0.25])  # no margin at all
    runs = {run["learner"]: run for run in preflight.probe_learners(cmdp, 200, 0.1)}
    assert "no margin" in runs["s-ops"]["refused"] or "not safe" in runs["s-ops"]["refused"]
    assert runs["sv-ops"]["seconds"] == pytest.approx(200e-6 * runs["sv-ops"]["microseconds_per_episode"])


def test_bytes_of_a_tree() -> None:
    assert preflight.num_bytes((np.zeros(3), (np.zeros(2, np.int32), 5), "x")) == 32
    assert preflight.num_bytes(make_scores(Layout((1, 1), 1), 0)) == 8 * (1 + 1 + 1 + 2 + 3)  # a bundle with a record
