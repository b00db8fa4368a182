"""S-OPS: the mixing weight, its bound, the estimators under a mixture, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from learner_cases import draw_path, make_learner, random_world

from hedgerow.errors import InvalidInput
from hedgerow.learners.kernels import BaselineArrays, safe_weight
from hedgerow.learners.ops.s_ops import SOPS
from hedgerow.learners.ops.state import arrays_of_state
from hedgerow.learners.ops.step import prepare
from hedgerow.model.cmdp import CMDP
from hedgerow.model.costs import BernoulliCosts
from hedgerow.model.layout import Layout
from hedgerow.model.occupancy import evaluate
from hedgerow.planning import offline

BOTH = np.arange(2)


def weight(rule: Any, U: list[float], alpha: list[float], beta: list[float], horizon: float = 3.0) -> float:
    most = np.full(len(U), horizon)
    return rule(BaselineArrays(np.zeros((0, 0)), np.array(beta), np.array(alpha), most, BOTH[: len(U)]), np.array(U))


def test_a_constraint_that_is_not_in_danger_asks_for_nothing() -> None:
    """L = 3, alpha = (1, 1), beta = (.5, .8), U = (2, .6): 2/3, where the printed formula gives 2."""
    assert weight(safe_weight, [2.0, 0.6], [1.0, 1.0], [0.5, 0.8]) == pytest.approx(2 / 3, abs=1e-11)


def test_the_weight_makes_the_mixture_safe_and_no_smaller_one_does() -> None:
    rng = np.random.default_rng(0)
    for _ in range(500):
        alpha = rng.uniform(0.2, 2.8, 2)
        beta = alpha * rng.uniform(0.0, 0.99, 2)
        U = rng.uniform(0.0, 6.0, 2)
        lam = weight(safe_weight, U, alpha, beta)
        capped = np.minimum(U, 3.0)
        assert np.all(lam * beta + (1 - lam) * capped <= alpha)  # no tolerance: it is rounded up
        first = np.max((3.0 - alpha) / (3.0 - beta))
        assert 0.0 <= lam <= first + 1e-11
        if lam > 0.0:
            less = lam - 1e-9
            assert np.any(less * beta + (1 - less) * capped > alpha)


def test_a_weight_is_zero_without_danger_and_one_without_margin() -> None:
    assert weight(safe_weight, [0.9, 1.0], [1.0, 1.0], [0.5, 0.5]) == 0.0
    assert weight(safe_weight, [1.5], [1.0], [1.0]) == 1.0
    assert weight(safe_weight, [], [], []) == 0.0


def test_first_weight_of_the_spec() -> None:
    """L = 3, alpha = 1.5, beta = 1: lambda_0 = .75, both in the formula and in the first plan, for both bounds."""
    world = CMDP(Layout((1, 1, 1, 1), 2), np.ones(6), BernoulliCosts(np.full((1, 6), 1 / 3)), [1.5])
    for joint in (False, True):
        learner = SOPS(
            world.view(), 100, 0.1, "paper", baseline=np.full(6, 0.5), baseline_costs=[1.0], joint_cost=joint
        )
        assert learner.first_mixing == 0.75
        assert learner.plan().mixing_weight == pytest.approx(0.75, abs=1e-11)
        assert learner.open_plans[0].cost_bounds[0] <= 1.5


def test_the_first_upper_bounds_are_those_of_the_mixture() -> None:
    """Under trivial boxes u_1 = lambda_0 pi_baseline + (1 - lambda_0) / |A|."""
    world = random_world(0)
    learner = make_learner("s-ops", world)
    plan = learner.plan()
    lam = plan.mixing_weight
    rows = draw_path(world, plan.policy, np.random.default_rng(0))
    learner.observe(rows, np.ones(3), np.zeros((3, 2)))
    expected = lam * learner.baseline[rows] + (1 - lam) / 2
    np.testing.assert_allclose(learner.core.buffers.trace.u, expected, rtol=1e-13)


@pytest.mark.parametrize("realised", [False, True])
def test_estimators_under_a_mixture(realised: bool) -> None:
    """Of the mixture; where there are too many baselines to average, of the policy that plays."""
    world, rng = random_world(1), np.random.default_rng(1)
    learner = make_learner("s-ops", world, 200)
    learner.core = learner.core.replace(rule=learner.core.rule.replace(realised=realised))
    branches = set()
    for _ in range(60):
        plan = learner.plan()
        rows = draw_path(world, plan.policy, rng)
        lam, branch = learner.core.state.reals.mixing, learner.core.state.numbers.branch
        own, base, trivial = learner.policy, learner.baseline, learner.core.state.counts.num_visits.max() < 40
        learner.observe(rows, np.ones(3), np.zeros((3, 2)))
        trace, branches = learner.core.buffers.trace, branches | {branch}
        if trivial:  # boxes are still the whole simplex, so every state may be reached surely
            mixture = lam * base[rows] + (1 - lam) * own[rows]
            playing = base[rows] if branch else own[rows]
            np.testing.assert_allclose(trace.u, playing if realised else mixture, rtol=1e-12)
        np.testing.assert_allclose(trace.estimate, 1.0 / (trace.u + learner.gamma), rtol=1e-12)
    assert branches == {0, 1}


def test_the_coin_is_the_learners_own_and_follows_the_weight() -> None:
    world = random_world(2)
    learner, rng = make_learner("s-ops", world, 2_000, seed=3), np.random.default_rng(0)
    expected, seen = 0.0, 0
    for _ in range(500):
        plan = learner.plan()
        expected += plan.mixing_weight
        seen += plan.branch == "baseline"
        np.testing.assert_array_equal(plan.policy, learner.baseline if plan.branch == "baseline" else learner.policy)
        learner.observe(draw_path(world, plan.policy, rng), rng.random(3), np.zeros((3, 2)))
    assert abs(seen - expected) < 5 * np.sqrt(500) / 2


@pytest.mark.parametrize("joint", [False, True])
def test_bounds_cover_the_true_costs_and_joint_ones_are_no_larger(joint: bool) -> None:
    world, rng = random_world(3), np.random.default_rng(3)
    learner = make_learner("s-ops", world, 3_000, confidence_scale=0.3, joint_cost=joint)
    for _ in range(300):
        plan = learner.plan()
        own = evaluate(world, learner.policy).costs
        assert np.all(learner.core.state.bounds >= own - 1e-12)
        rows = draw_path(world, plan.policy, rng)
        learner.observe(rows, rng.random(3), (rng.random((3, 2)) < world.mean_costs[:, rows].T).astype(float))
    assert learner.core.state.reals.mixing <= learner.first_mixing + 1e-9
    other = make_learner("s-ops", world, 3_000, confidence_scale=0.3, joint_cost=not joint)
    mine, theirs = arrays_of_state(learner.core.state), arrays_of_state(other.core.state)
    for name, array in mine.items():
        theirs[name][...] = array
    prepare(other.core)  # the same policy and boxes, bounded the other way
    small, large = (mine, theirs) if joint else (theirs, mine)
    assert np.all(small["bounds"] <= large["bounds"] + 1e-12)
    assert np.any(small["bounds"] < large["bounds"] - 1e-3)


def test_a_baseline_must_be_safe() -> None:
    world = random_world(0)
    slater = offline.slater(world)
    alpha = world.thresholds
    for costs, message in [
        (alpha + 0.1, "the baseline is not safe: 'cost 1' costs"),
        (alpha, "leaves no margin for 'cost 1'"),
        (alpha[:1], "the baseline cost has shape"),
        ([np.nan, 0.0], "the baseline cost is nan"),
        ([-0.1, 0.0], "the baseline cost is -0.1"),
    ]:
        with pytest.raises(InvalidInput, match=message):
            SOPS(world.view(), 10, 0.1, "paper", baseline=slater.policy, baseline_costs=costs)
    with pytest.raises(InvalidInput, match="action probabilities"):
        SOPS(world.view(), 10, 0.1, "paper", baseline=np.ones(12), baseline_costs=slater.costs)
    stuck = SOPS(world.view(), 10, 0.1, "paper", baseline=slater.policy, baseline_costs=alpha, allow_no_margin=True)
    assert stuck.plan().mixing_weight == 1.0
    assert not stuck.guarantees()["regret"].holds
