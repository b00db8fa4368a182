"""Offline programs of large worlds by compiled sweeps: the same optima as HiGHS, and what happens if they give up."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from naive_model import random_layout, random_transitions

from hedgerow.model.cmdp import CMDP
from hedgerow.model.costs import BernoulliCosts
from hedgerow.model.layout import Layout
from hedgerow.planning import offline
from hedgerow.planning import planner as known_plans
from hedgerow.planning.decomposition import UNSOLVED
from hedgerow.planning.lp import NoSolution, Suggestion, flow_matrix, largest_margin, least_loss
from hedgerow.planning.planner import KnownPlanner


def random_world(seed: int) -> tuple[CMDP, np.ndarray]:
    """A world whose thresholds are a little above what some policy costs."""
    rng = np.random.default_rng(seed)
    layout, m = random_layout(rng), 1 + seed % 4
    costs = rng.random((m, layout.num_rows))
    free = CMDP(layout, random_transitions(rng, layout), BernoulliCosts(costs), np.full(m, float(layout.steps)))
    return free.with_thresholds(np.minimum(offline.slater(free).costs + 0.05, layout.steps)), rng.random(
        layout.num_rows
    )


@pytest.mark.parametrize("seed", range(20))
def test_suggestions_equal_those_of_highs(seed: int) -> None:
    cmdp, loss = random_world(seed)
    planner, flow = KnownPlanner(cmdp), flow_matrix(cmdp)
    best, by_highs = planner.least_loss(loss), least_loss(flow, loss, cmdp.mean_costs, cmdp.thresholds)
    assert isinstance(best, Suggestion)
    assert isinstance(by_highs, Suggestion)
    assert best.value == pytest.approx(by_highs.value, abs=1e-9)
    margin, known = planner.largest_margin(), largest_margin(flow, cmdp.mean_costs, cmdp.thresholds)
    assert margin.value == pytest.approx(known.value, abs=1e-9)
    assert margin.theta.sum() == pytest.approx(1.0, abs=1e-12)
    assert isinstance(planner.least_loss(loss, cmdp.thresholds - known.value - 0.01), NoSolution)


def test_optima_of_large_worlds_are_certified(monkeypatch) -> None:
    cmdp, loss = random_world(5)
    small = [offline.optimum(cmdp, share * loss).value for share in (1.0, 0.5)]
    monkeypatch.setattr(offline, "MANY_ROWS", 0)
    large = [offline.optimum(cmdp, share * loss) for share in (1.0, 0.5)]
    np.testing.assert_allclose([one.value for one in large], small, atol=1e-9)
    assert all(abs(one.gap) <= 1e-12 for one in large)


def test_without_a_proof_the_margin_is_left_to_highs_and_the_loss_has_no_solution(monkeypatch) -> None:
    cmdp = CMDP(Layout((1, 1), 2), [1.0, 1.0], BernoulliCosts([[0.75, 0.25]]), [0.5])
    monkeypatch.setattr(known_plans, "plan_in_boxes", lambda *arguments: UNSOLVED)
    planner = KnownPlanner(cmdp)
    assert planner.largest_margin().value == pytest.approx(0.25, abs=1e-9)
    answer = planner.least_loss(np.array([0.0, 1.0]))
    assert isinstance(answer, NoSolution)
    assert "bounds did not meet" in answer.message


def test_a_small_program_loads_no_compiled_code() -> None:
    code = (
        "import sys, hedgerow as hr; world = hr.worlds.make('dope-factored'); hr.offline.optimum(world);"
        "sys.exit('numba' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
