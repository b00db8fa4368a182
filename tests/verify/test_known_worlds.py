"""The worlds of which more is known are what they claim to be, and so is what learners do with them."""

from __future__ import annotations

import numpy as np
import pytest

from hedgerow import worlds
from hedgerow.errors import InvalidInput
from hedgerow.experiments.worker import run_cell
from hedgerow.planning import offline
from hedgerow.verify.controls import EPISODES, LoggedRun
from hedgerow.verify.levels import EQUAL, SHARPEST, SMALL, Named, runs
from hedgerow.verify.worlds import (
    buffer,
    chorus,
    cycle,
    dependent_costs,
    fan,
    layered,
    partly_known,
    rooms,
    two_actions,
)

SHARES = ("cost_share", "aggregate_share", "transition_share", "ball_share")


@pytest.mark.parametrize("build", [layered, partly_known, cycle, buffer, chorus, fan, rooms])
def test_their_constraints_bind_and_can_be_met(build: object) -> None:
    cmdp, loss = build()  # type: ignore[operator]
    assert offline.slater(cmdp).margin > 0.1
    free = offline.optimum(cmdp.with_thresholds([float(cmdp.layout.steps)] * cmdp.num_constraints), loss)
    assert offline.optimum(cmdp, loss).value > free.value + 1e-3


@pytest.mark.parametrize(("kind", "sign"), [("equal", 1), ("opposite", -1)])
def test_dependent_costs_have_the_means_and_the_dependence(kind: str, sign: int) -> None:
    independent = worlds.make("random-layered", layers=(1, 3, 3, 1), actions=3, constraints=1).cmdp
    cmdp, _ = layered(kind)
    np.testing.assert_allclose(cmdp.mean_costs, independent.mean_costs, atol=1e-12)
    rng = np.random.default_rng(0)
    draws = np.array([cmdp.costs.sample(rng)[0] for _ in range(4000)])
    np.testing.assert_allclose(draws.mean(axis=0), cmdp.mean_costs[0], atol=0.05)
    first, second, third = (cmdp.layout.rows(k).start for k in range(3))
    covariance = np.cov(draws[:, [first, second, third]].T)
    assert np.sign(covariance[0, 1]) == np.sign(covariance[1, 2]) == sign
    assert covariance[0, 2] > 0.0
    with pytest.raises(InvalidInput, match="'loose'"):
        dependent_costs(cmdp.layout, cmdp.mean_costs, "loose")


@pytest.mark.parametrize(
    ("world", "learner", "shares"),
    [
        (SMALL, "s-ops", (2.5, 0.5, 2.0, 0.0)),
        (SMALL, "sv-ops", (3.0, 0.0, 2.0, 0.0)),
        (two_actions, "s-ops", (25 / 6, 5 / 6, 0.0, 0.0)),
        (fan, "s-ops", (2.5, 0.5, 1.0, 1.0)),
        (fan, "sv-ops", (3.0, 0.0, 2.0, 0.0)),
    ],
)
def test_runs_know_their_budgets(world: Named, learner: str, shares: tuple[float, ...]) -> None:
    (cell,) = runs(world, learner, 20, [0], presets=SHARPEST)
    run = run_cell(cell).run
    assert tuple(run[name] for name in SHARES) == pytest.approx(shares, rel=1e-15)
    assert sum(run[name] for name in SHARES) == pytest.approx(5.0, rel=1e-15)
    (cell,) = runs(world, learner, 20, [0], presets=["sharp"])
    run = run_cell(cell).run
    assert tuple(run[name] for name in SHARES) == (1.0, 0.0, 4.0 if shares[2] else 0.0, 0.0)


def test_a_log_narrows_the_sets_from_the_first_episode_on() -> None:
    cells = [runs(EQUAL, learner, 50, [0], presets=SHARPEST)[0] for learner in ("s-ops", LoggedRun)]
    alone, logged = (run_cell(cell).run for cell in cells)
    assert logged["mixing_weight"][0] < alone["mixing_weight"][0]
    visits = logged.learner.core.state.counts.num_visits[:3].sum()
    assert visits == EPISODES + 50
    assert logged["unclean"][-1] == 0
