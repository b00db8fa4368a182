"""The calibration of U, and the world whose costs are those of its moves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.model.occupancy import occupancy, row_occupancy
from hedgerow.simulation.run import Simulation
from hedgerow.verify.calibrated import CALIBRATION, EXCESS, CalibratedSOPS, compared, estimated_costs, true_costs
from hedgerow.verify.holes import FallsIntoHoles, holes, is_hole
from hedgerow.verify.worlds import layered

pytestmark = pytest.mark.slow
EPISODES = 130


def watched(step_wise: bool) -> tuple[CalibratedSOPS, dict[str, Any], hr.CMDP]:
    world, loss = layered()
    learner = CalibratedSOPS(world, EPISODES, 0.05, "sharpest", baseline="slater")
    simulation = Simulation(world, learner, loss, 7, step_wise=step_wise, watch={"notes": True})
    simulation.run()
    assert simulation.way == ("step-wise" if step_wise else "compiled")
    return learner, dict(simulation.watcher.facts(np.zeros(world.layout.num_rows))), world


def test_compiled_and_step_by_step_compare_the_same_episodes() -> None:
    (_, compiled, _), (_, stepped, _) = watched(False), watched(True)
    names = [f"{prefix}{t}" for t in (10, 100, EPISODES) for prefix in (CALIBRATION, EXCESS)]
    assert compared(EPISODES) == (10, 100, EPISODES)
    assert {name for name in compiled if name.startswith((CALIBRATION, EXCESS))} == set(names)
    assert {name: compiled[name] for name in names} == {name: stepped[name] for name in names}
    assert compiled["low_bounds"] == stepped["low_bounds"] == 0


def test_comparing_changes_nothing() -> None:
    world, loss = layered()
    calibrated, _, _ = watched(False)
    plain = hr.SOPS(world, EPISODES, 0.05, "sharpest", baseline="slater")
    hr.simulate(world, plain, loss, seed=7, progress=False)
    assert np.array_equal(plain.core.state.policy, calibrated.core.state.policy)


def by_hand(world: hr.CMDP, policy: Any, moves: Any, means: Any) -> float:
    """The cost of a policy, state by state from the first one on."""
    layout = world.layout
    reach, total = np.zeros(layout.num_states), 0.0
    reach[0] = 1.0
    for r in range(layout.num_rows):
        q = reach[r // layout.num_actions] * policy[r]
        total += q * means[r]
        for j in range(layout.row_start[r], layout.row_start[r + 1]):
            reach[layout.successor[j]] += q * moves[j]
    assert reach[-1] == pytest.approx(1.0)
    return total


def test_the_truth_and_the_estimate_are_costs_of_the_policy() -> None:
    learner, _, world = watched(False)
    policy, seen, layout = learner.core.state.policy, learner.estimates, world.layout
    truth = by_hand(world, policy, world.transitions, world.mean_costs[0])
    assert true_costs(world, policy) == pytest.approx([truth])
    alike = 1.0 / np.diff(layout.row_start)[layout.row_of_triple]
    moves = np.where(seen.counts + seen.visits[layout.row_of_triple] > 0, seen.p_hat, alike)
    moves = np.where(seen.known_transitions[layout.row_of_triple], 1.0, moves)
    means = np.where(seen.costs_counted > 0, seen.mean_costs[:, 0], 0.0)
    assert estimated_costs(learner) == pytest.approx([by_hand(world, policy, moves, means)])


def test_the_costs_of_moves_have_the_means_of_the_world() -> None:
    world, loss = holes()
    layout = world.layout
    hole = is_hole(layout)
    assert hole[0] == hole[-1] == 0.0
    policy = np.full(layout.num_rows, 1.0 / layout.num_actions)
    q = row_occupancy(layout, occupancy(layout, world.transitions, policy))
    visited = np.bincount(layout.successor, q[layout.row_of_triple] * world.transitions, layout.num_states)
    assert world.mean_costs @ q == pytest.approx([visited @ hole])
    learner = FallsIntoHoles(world, 20, 0.05, "sharpest", baseline="slater")
    hr.simulate(world, learner, loss, seed=1, progress=False)
    fallen = learner.core.state.counts.num_moves[hole[layout.successor] == 1.0].sum()
    assert learner.core.state.counts.cost_sums.sum() == fallen > 0
