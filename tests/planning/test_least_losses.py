"""Least losses of many losses: the same as those of HiGHS, which is hardly asked any more."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from naive_model import random_layout, random_transitions
from scipy import optimize

from hedgerow.errors import InfeasibleError, InvalidInput
from hedgerow.model.cmdp import CMDP
from hedgerow.model.costs import BernoulliCosts
from hedgerow.model.layout import Layout
from hedgerow.planning import offline
from hedgerow.planning.lp import NoSolution
from hedgerow.planning.planner import KnownPlanner

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


@pytest.mark.parametrize("m", [0, 1, 2, 3, 5])
@pytest.mark.parametrize("seed", range(8))
def test_they_equal_those_of_highs(seed: int, m: int, asked: list[int]) -> None:
    cmdp = random_world(seed, m)
    sequence = drifting_losses(cmdp, seed, 24)
    asked.clear()
    found = offline.least_losses(cmdp, sequence)
    assert asked == []
    assert found == pytest.approx([offline.optimum(cmdp, loss).value for loss in sequence], abs=TOL)


def test_thresholds_that_cannot_bind_and_one_action() -> None:
    layout = Layout((1, 2, 1), 1)
    cmdp = CMDP(layout, [0.5, 0.5, 1.0, 1.0], BernoulliCosts(np.ones((2, 3))), [2.0, 2.0])
    assert offline.least_losses(cmdp, [[0.25, 0.5, 1.0]])[0] == pytest.approx(1.0, abs=1e-15)


def test_a_world_without_a_margin_and_one_without_a_policy() -> None:
    cmdp = CMDP(Layout((1, 1), 2), [1.0, 1.0], BernoulliCosts([[0.75, 0.25]]), [0.25])
    assert offline.least_losses(cmdp, [[0.0, 1.0]]) == pytest.approx([1.0], abs=TOL)
    with pytest.raises(InfeasibleError, match="no policy satisfies the constraints"):
        offline.least_losses(cmdp.with_thresholds([0.2]), [[0.0, 1.0]])


def test_where_the_bounds_do_not_meet_highs_is_asked(monkeypatch, asked: list[int]) -> None:
    cmdp = CMDP(Layout((1, 1), 2), [1.0, 1.0], BernoulliCosts([[0.75, 0.25]]), [0.5])
    monkeypatch.setattr(KnownPlanner, "least_loss", lambda self, loss: NoSolution("the bounds did not meet"))
    assert offline.least_losses(cmdp, [[0.0, 1.0], [0.5, 1.0]]) == pytest.approx([0.5, 0.75], abs=TOL)
    assert len(asked) == 2


def test_losses_are_checked() -> None:
    cmdp = random_world(0, 1)
    with pytest.raises(InvalidInput, match="the losses"):
        offline.least_losses(cmdp, np.full((2, cmdp.layout.num_rows), 1.5))
    assert offline.least_losses(cmdp, np.zeros((0, cmdp.layout.num_rows))).shape == (0,)


def test_the_slater_point_of_a_world_is_found_once(asked: list[int]) -> None:
    cmdp = random_world(3, 2)
    asked.clear()
    first = offline.slater(cmdp)
    assert offline.slater(cmdp) is first
    assert len(asked) == 1
    other = cmdp.with_thresholds(cmdp.thresholds * 0.99)
    assert offline.slater(other).margin != first.margin
    assert len(asked) == 2
