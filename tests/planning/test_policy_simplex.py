"""Optima of one loss after another: the same as those of HiGHS, which is hardly asked any more."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from naive_model import random_layout, random_transitions
from scipy import optimize

from hedgerow.errors import CertificateError, InfeasibleError, InvalidInput
from hedgerow.model.cmdp import CMDP
from hedgerow.model.costs import BernoulliCosts
from hedgerow.model.layout import Layout
from hedgerow.planning import offline
from hedgerow.planning.policy_simplex import PolicySimplex, Suggestions

TOL = 1e-9


def random_world(seed: int, m: int, slack: float = 0.05) -> CMDP:
    """A world whose thresholds are `slack` above what some policy costs."""
    rng = np.random.default_rng(seed)
    layout = random_layout(rng)
    costs = rng.random((m, layout.num_rows))
    free = CMDP(layout, random_transitions(rng, layout), BernoulliCosts(costs), np.full(m, float(layout.steps)))
    return free.with_thresholds(np.minimum(offline.slater(free).costs + slack, layout.steps))


def drifting_losses(cmdp: CMDP, seed: int, count: int) -> np.ndarray:
    """Means of losses that switch, as at the checkpoints of a run; some are extreme."""
    rng = np.random.default_rng(seed)
    patterns = rng.random((3, cmdp.layout.num_rows))
    weights = np.cumsum(rng.random((count, 3)) ** 4, axis=0)
    means = weights @ patterns / weights.sum(axis=1, keepdims=True)
    means[0], means[count // 2] = 0.0, np.round(patterns[0])
    return means


@pytest.fixture
def asked(monkeypatch) -> list[int]:
    """How many rows each program had that HiGHS was asked to solve."""
    calls: list[int] = []
    real = optimize.linprog

    def counting(objective: Any, **options: Any) -> Any:
        calls.append(len(objective))
        return real(objective, **options)

    monkeypatch.setattr(optimize, "linprog", counting)
    return calls


@pytest.mark.slow
@pytest.mark.parametrize("m", [0, 1, 2, 3, 5])
@pytest.mark.parametrize("seed", range(8))
def test_optima_equal_those_of_highs_and_are_certified(seed: int, m: int, asked: list[int]) -> None:
    cmdp = random_world(seed, m)
    optima, sequence = offline.Optima(cmdp), drifting_losses(cmdp, seed, 24)
    asked.clear()
    found = [optima.optimum(loss) for loss in sequence]
    assert asked == []
    for loss, one in zip(sequence, found, strict=True):
        best = offline.optimum(cmdp, loss)
        assert one.value == pytest.approx(best.value, abs=TOL)
        assert abs(one.gap) <= 1e-11 * (1 + one.multipliers.sum())
        assert one.cost_residual <= 1e-12
        assert np.all(one.costs <= cmdp.thresholds + 1e-12)
        assert one.relaxation == 0.0
    together = offline.Optima(cmdp).values(sequence)
    assert together == pytest.approx([one.value for one in found], abs=1e-12)


def test_thresholds_that_cannot_bind_and_one_action() -> None:
    layout = Layout((1, 2, 1), 1)
    cmdp = CMDP(layout, [0.5, 0.5, 1.0, 1.0], BernoulliCosts(np.ones((2, 3))), [2.0, 2.0])
    assert offline.Optima(cmdp).optimum([0.25, 0.5, 1.0]).value == pytest.approx(1.0, abs=1e-15)


def test_a_world_without_a_margin_is_left_to_highs(asked: list[int]) -> None:
    cmdp = CMDP(Layout((1, 1), 2), [1.0, 1.0], BernoulliCosts([[0.75, 0.25]]), [0.25])
    assert offline.Optima(cmdp).optimum([0.0, 1.0]).value == pytest.approx(1.0, abs=TOL)
    assert len(asked) >= 2
    with pytest.raises(InfeasibleError, match="no policy satisfies the constraints"):
        offline.Optima(cmdp.with_thresholds([0.2])).optimum([0.0, 1.0])


@pytest.mark.parametrize("solved", [False, True])
def test_where_the_search_fails_highs_is_asked(solved: bool, monkeypatch, asked: list[int]) -> None:
    """No answer, or one that its own numbers do not prove."""
    cmdp = CMDP(Layout((1, 1), 2), [1.0, 1.0], BernoulliCosts([[0.75, 0.25]]), [0.5])
    optima = offline.Optima(cmdp)
    asked.clear()
    answer = Suggestions(np.array([[1.0, 0.0]]), np.zeros((1, 1)), np.zeros(1), np.array([solved]))
    monkeypatch.setattr(PolicySimplex, "least_losses", lambda self, losses: answer)
    assert optima.optimum([0.0, 1.0]).value == pytest.approx(0.5, abs=TOL)
    assert optima.values([[0.0, 1.0]]) == pytest.approx([0.5], abs=TOL)
    assert len(asked) == 2


def test_without_a_slater_point_highs_is_asked(monkeypatch, asked: list[int]) -> None:
    def withheld(cmdp: CMDP) -> None:
        raise CertificateError("the Slater point failed its check")

    monkeypatch.setattr(offline, "slater", withheld)
    cmdp = CMDP(Layout((1, 1), 2), [1.0, 1.0], BernoulliCosts([[0.75, 0.25]]), [0.5])
    assert offline.Optima(cmdp).optimum([0.0, 1.0]).value == pytest.approx(0.5, abs=TOL)
    assert len(asked) == 1


def test_a_singular_basis_is_no_answer() -> None:
    cmdp = CMDP(Layout((1, 1), 2), [1.0, 1.0], BernoulliCosts([[0.75, 0.25]]), [0.5])
    simplex = PolicySimplex(cmdp, np.array([0.0, 1.0]))
    simplex._matrix[:] = 1.0
    assert not simplex.least_losses(np.array([[0.0, 1.0]])).solved[0]


def test_losses_are_checked() -> None:
    cmdp = random_world(0, 1)
    with pytest.raises(InvalidInput, match="the loss"):
        offline.Optima(cmdp).optimum(np.full(cmdp.layout.num_rows, 1.5))
    with pytest.raises(InvalidInput, match="the losses"):
        offline.Optima(cmdp).values(np.full((2, cmdp.layout.num_rows), 1.5))
    assert offline.Optima(cmdp).values(np.zeros((0, cmdp.layout.num_rows))).shape == (0,)


def test_the_slater_point_of_a_world_is_found_once(asked: list[int]) -> None:
    cmdp = random_world(3, 2)
    asked.clear()
    first = offline.slater(cmdp)
    assert offline.slater(cmdp) is first
    offline.Optima(cmdp)
    assert len(asked) == 1
    other = cmdp.with_thresholds(cmdp.thresholds * 0.99)
    assert offline.slater(other).margin != first.margin
    assert len(asked) == 2
