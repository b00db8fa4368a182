"""Thresholds that nobody can meet: how far they are raised, what it costs, and that it ends when they can be met."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest
from learner_cases import draw_path, random_world

from bench.projection_reference import least_violation_by_lp
from hedgerow.errors import InfeasibleWarning
from hedgerow.learners.ops import fallback
from hedgerow.learners.ops.base import MirrorLearner as Learner
from hedgerow.learners.ops.state import PROJECTED, RELAXED, arrays_of_state
from hedgerow.learners.ops.step import LEAST_ROOM, SHARE
from hedgerow.learners.ops.sv_ops import SVOPS
from hedgerow.model.cmdp import CMDP
from hedgerow.projection.newton import SUSPECT
from hedgerow.projection.problem import ProjectionProblem
from hedgerow.simulation.run import Simulation
from hedgerow.worlds import make


def impossible_world(m: int, share: float = 0.5) -> CMDP:
    world = random_world(3, (1, 3, 3, 1), m=m)
    return world.with_thresholds(share * (world.thresholds - 0.25))


def learner_for(world: CMDP) -> SVOPS:
    return SVOPS(world.view(), 100_000, 0.05, "sharp", confidence_scale=0.2)


def least_violation(learner: Learner) -> float:
    """Of the learner's present sets, by one linear program over all triples."""
    state, problem, layout = learner.core.state, learner.core.buffers.problem, learner.layout
    thresholds = learner.view.thresholds[learner.core.baseline.binding]
    base = np.zeros(layout.num_triples)
    return least_violation_by_lp(
        ProjectionProblem(layout, base, state.boxes.lower, state.boxes.upper, problem.costs.T, thresholds)
    )


@pytest.mark.parametrize("m", [1, 2, 3])
def test_thresholds_are_raised_by_the_least_violation_and_a_little_room(m: int) -> None:
    world = impossible_world(m)
    learner = learner_for(world)
    simulation = Simulation(world, learner, np.full(world.layout.num_rows, 0.5))
    with pytest.warns(InfeasibleWarning, match="no policy meets the thresholds"):
        simulation.advance(500)
    for _ in range(20):
        simulation.advance(100)
        least, reals = least_violation(learner), learner.core.state.reals
        assert least > 0.01
        assert learner.core.state.numbers.last_status == RELAXED
        assert least < reals.slack <= least + reals.room
        assert LEAST_ROOM <= reals.room <= 4.0 * max(LEAST_ROOM, SHARE * reals.slack)
        occupancy = np.exp(learner.core.state.log_weight)
        excess = learner.core.buffers.problem.costs.T @ occupancy - world.thresholds
        assert np.max(excess) <= reals.slack + 1e-9
        assert learner.core.state.certificate.sum() == pytest.approx(1.0, abs=1e-12)
    # Compiled code has done nearly all of it by itself.
    assert learner.diagnostics["infeasible"] > 1_500
    assert learner.diagnostics["suspect"] <= 20
    assert learner.diagnostics["failed"] == 0


def test_one_warning_for_a_learner() -> None:
    world = impossible_world(1)
    learner = learner_for(world)
    simulation = Simulation(world, learner, np.full(world.layout.num_rows, 0.5))
    with pytest.warns(InfeasibleWarning) as caught:
        simulation.advance(2_000)
    assert len(caught) == 1


def test_thresholds_are_met_again_as_soon_as_they_can_be() -> None:
    """Costs are 0.9 at first, later 0: the estimates fall below the threshold again."""
    world = random_world(2, (1, 2, 1), m=1)
    world = world.with_thresholds([0.3])
    learner, rng = learner_for(world), np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InfeasibleWarning)
        for t in range(2_000):
            costs = np.full((2, 1), 0.9 if t < 300 else 0.0)
            learner.observe(draw_path(world, learner.plan().policy, rng), rng.random(2), costs)
            if t == 299:
                assert learner.core.state.numbers.last_status == RELAXED
    assert learner.core.state.numbers.last_status == PROJECTED
    assert learner.core.state.reals.slack == 0.0
    assert learner.core.buffers.problem.thresholds.tolist() == [0.3]


@pytest.mark.parametrize("m", [1, 2])
def test_compiled_step_wise_and_continued_from_a_copy_are_the_same(m: int) -> None:
    world = impossible_world(m)
    loss, states = np.linspace(0.0, 1.0, world.layout.num_rows), []
    for way in ("compiled", "step-wise", "copied"):
        learner: Learner = learner_for(world)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InfeasibleWarning)
            simulation = Simulation(world, learner, loss, step_wise=way == "step-wise")
            for _ in range(6):
                simulation.advance(200)
                if way == "copied":
                    learner = copy.copy(learner)
                    simulation.learner = simulation.watcher.learner = learner
        assert learner.core.state.reals.slack > 0.0
        states.append({name: array.tolist() for name, array in arrays_of_state(learner.core.state).items()})
    assert states[0] == states[1]
    assert states[0] == states[2]


def test_a_projection_that_is_too_hard_is_given_up_after_so_many_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """The slow solver has one step: what it does not finish is relaxed, counted as failed, and costs no more."""
    world = make("random-layered", layers=(1, 3, 3, 3, 1), actions=2, constraints=1)
    tight = world.cmdp.with_thresholds([0.0])
    learner = SVOPS(tight.view(), 100_000, 0.05, "sharp")
    simulation = Simulation(tight, learner, world.loss)
    monkeypatch.setattr(fallback, "MOST_ITERATIONS", 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InfeasibleWarning)
        for _ in range(20):
            simulation.advance(10)
            np.testing.assert_allclose(learner.policy.reshape(-1, 2).sum(axis=1), 1.0, atol=1e-12)
    assert learner.diagnostics["failed"] > 0
    assert learner.diagnostics["iterations"] < 200 * 50


@pytest.mark.filterwarnings("ignore::hedgerow.errors.InfeasibleWarning")
@pytest.mark.parametrize("m", [0, 2])
def test_a_projection_that_fails_at_every_room_ends_all_the_same(m: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Newton's method finds nothing, whatever the thresholds: those that do not bind are left to the slow solver."""
    world = impossible_world(2) if m else random_world(3, (1, 3, 3, 1), m=0)
    learner = learner_for(world)
    Simulation(world, learner, np.full(world.layout.num_rows, 0.5)).advance(500)
    monkeypatch.setattr(fallback, "project_all", lambda core, status: SUSPECT)
    fallback.fallback_solve(learner.layout, learner.core)
    np.testing.assert_allclose(learner.policy.reshape(-1, 2).sum(axis=1), 1.0, atol=1e-12)
    assert learner.core.state.numbers.last_status == (RELAXED if m else PROJECTED)
