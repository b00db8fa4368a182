"""The watched run is the plain run, bit for bit, compiled and step by step; its numbers are sums that can be redone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from learner_cases import assert_same, scores

import hedgerow as hr
from hedgerow.experiments import components
from hedgerow.experiments.spec import CellSpec
from hedgerow.experiments.worker import run_cell
from hedgerow.learners.ops.base import MirrorLearner
from hedgerow.model.cmdp import CMDP
from hedgerow.model.occupancy import backward_induction
from hedgerow.planning import offline
from hedgerow.simulation.run import Simulation, simulate
from hedgerow.verify.levels import PURSUIT_RATE, Level, controls, runs
from hedgerow.verify.twin import TwinBoxes, occupancies, upper_occupancies
from hedgerow.verify.twin_watcher import given_of
from hedgerow.verify.verify import Evidence
from hedgerow.verify.worlds import gate, needle, two_actions, wide

ESTIMATOR = (
    "weighted_optimism_all", "weighted_optimism_iterate", "weighted_optimism_chosen", "upper_bound", "bias",
    "bias_bound", "bias_seen",
)  # fmt: skip
(SAFE,) = runs(gate, "s-ops", 400, [0], adversaries=["drifting"], audit=True, estimator=True)
(PURSUED,) = runs(gate, "s-ops", 400, [0], adversaries=["pursuit"])
(WIDE,) = runs(wide, "cv-ops", 900, [0])
(NEEDLE,) = runs(needle, "cv-ops", 1000, [0])


def ingredients(cell: CellSpec) -> tuple[CMDP, Any, Any]:
    """World, learner and adversary of a cell."""
    world = components.build_world(cell.world, Path())
    adversary = components.build_adversary(cell.adversary, cell.seed, world)
    learner = components.build_learner(cell.learner, world, cell.episodes, cell.delta, cell.seed)
    return world.cmdp, learner, adversary


def stepped(cell: CellSpec, *, marks: Any = "all", seed: int = 0) -> Simulation:
    watch = dict(cell.watch or {})
    return Simulation(
        *ingredients(cell), seed, step_wise=True, marks=marks, audit=watch.pop("audit"), watch=watch
    )  # fmt: skip


def test_the_watched_run_is_the_plain_one() -> None:
    plain, watched = simulate(*ingredients(SAFE), seed=0, progress=False, audit=True), run_cell(SAFE).run
    assert watched.loss[-1] == plain.loss[-1]
    assert watched["least_excess"] == plain["least_excess"]
    assert watched["mixing_slack"] == plain["mixing_slack"]
    assert watched["mixing_total"][-1] == plain["mixing_total"][-1]
    assert "width" not in plain.notes
    assert "optimism" not in plain.facts


def test_the_adversary_written_out_is_pursuit() -> None:
    cmdp, learner, _ = ingredients(PURSUED)
    plain, watched = (
        simulate(cmdp, learner, hr.losses.Pursuit(PURSUIT_RATE), seed=0, progress=False),
        run_cell(PURSUED).run,
    )
    assert watched.loss[-1] == plain.loss[-1]
    np.testing.assert_array_equal(watched.losses[-1], plain.losses[-1])


@pytest.mark.parametrize("cell", [SAFE, WIDE, NEEDLE], ids=lambda cell: cell.id)
def test_compiled_and_step_by_step_note_the_same(cell: CellSpec) -> None:
    fast = run_cell(cell).run
    slow = stepped(cell, marks=fast.episodes).run()
    assert (fast.way, slow.way) == ("compiled", "step-wise")
    assert_same(scores(fast), scores(slow))
    for name, column in fast.notes.items():
        np.testing.assert_array_equal(column, slow.notes[name], err_msg=name)
    assert set(fast.facts) == set(slow.facts)
    for name, value in fast.facts.items():
        np.testing.assert_equal(value, slow.facts[name], err_msg=name)


def own_occupancy(cmdp: CMDP, learner: MirrorLearner) -> Any:
    return hr.occupancy.row_occupancy(
        cmdp.layout, hr.occupancy.occupancy(cmdp.layout, cmdp.transitions, learner.policy)
    )  # fmt: skip


def test_columns_are_the_sums_that_they_claim_to_be() -> None:
    """Recomputed episode by episode in plain Python, from the learner's public state."""
    (cell,) = runs(gate, "s-ops", 60, [0], adversaries=["noisy"], estimator=True)
    simulation = stepped(cell)
    cmdp, learner = simulation.world, simulation.learner
    assert isinstance(learner, MirrorLearner)
    sums = {"width": 0.0, "weighted_width": 0.0, "radii": 0.0}
    for t in range(cell.episodes):
        own, q_hat = own_occupancy(cmdp, learner), np.exp(learner.core.state.log_weight)
        lam, width = learner.core.state.reals.mixing, float(np.abs(own - q_hat).sum())
        sums["width"] += width
        sums["weighted_width"] += (1 - lam) * width
        sums["radii"] += 2 * float(learner.core.state.boxes.xi @ q_hat)
        simulation.advance(1)
        assert {name: simulation.columns(t + 1)[name][t] for name in sums} == pytest.approx(sums, rel=1e-12)


@pytest.mark.parametrize("learner", ["s-ops", "sv-ops"])
def test_the_inequalities_of_the_estimator_have_the_sides_that_they_claim(learner: str) -> None:
    """Both sides of Lemmas 10 to 12, episode by episode, with upper bounds that share no code with the learner's."""
    (cell,) = runs(gate, learner, 60, [0], adversaries=["noisy"], estimator=True)
    simulation = stepped(cell)
    cmdp, own = simulation.world, simulation.learner
    assert isinstance(own, MirrorLearner)
    given, layout, sums = given_of(own), cmdp.layout, dict.fromkeys(ESTIMATOR, 0.0)
    beyond = (
        np.array([3, 3, 1, 1, 1, 1])[: layout.num_rows] - 1.0
    )  # the states after that of each row: 2 rooms, or none
    optimism, gamma = np.zeros(layout.num_rows), own.gamma
    for _ in range(cell.episodes):
        state = own.core.state
        boxes = TwinBoxes(
            *(getattr(state.boxes, name).copy() for name in ("lower", "upper", "cost_lower", "cost_upper"))
        )
        lam, q_hat = state.reals.mixing, np.exp(state.log_weight)
        u_hat, q = upper_occupancies(given, state.policy, boxes), own_occupancy(cmdp, own)
        u, q_t = (1 - lam) * u_hat, (1 - lam) * q
        for policy in own.core.baseline.policies:
            u = u + lam * upper_occupancies(given, policy, boxes)
            q_t = q_t + lam * occupancies(given, policy, cmdp.transitions)
        widths = np.maximum(boxes.upper - cmdp.transitions, cmdp.transitions - boxes.lower)
        chosen = optimism > 0.0
        simulation.advance(1)
        loss, rows = simulation.watcher._losses, own.core.buffers.trace.visited  # type: ignore[attr-defined]
        visited = simulation.watcher._path.rows  # type: ignore[attr-defined]
        assert (visited // layout.num_actions == rows).all()
        l_hat = np.zeros(layout.num_rows)
        l_hat[visited] = loss[visited] / (u[visited] + gamma)
        step = l_hat - np.divide(q_t, u, out=np.zeros_like(u), where=u > 0.0) * loss
        optimism += step
        sums["weighted_optimism_all"] += 2 * gamma * step.sum()
        sums["weighted_optimism_iterate"] += 2 * gamma * step @ q_hat
        sums["weighted_optimism_chosen"] += 2 * gamma * step @ chosen
        sums["upper_bound"] += (1 - lam) * float(q * beyond @ np.add.reduceat(widths, layout.row_start[:-1]))
        sums["bias"] += float(q_hat @ (loss - q_t * loss / (u + gamma)))
        sums["bias_bound"] += (1 - lam) * float(np.abs(u_hat - q).sum()) + gamma * layout.num_rows
        sums["bias_seen"] += float(q_hat @ (loss - l_hat))
    facts = simulation.result().facts
    assert {name: facts[name] for name in ESTIMATOR} == pytest.approx(sums, rel=1e-9)
    spread = layout.steps * np.sqrt(0.5 * 60 * np.log(1 / 0.05))
    assert facts["bias_seen_bound"] == pytest.approx(sums["bias_bound"] + spread)
    assert facts["weighted_optimism_bound"] == pytest.approx(layout.steps * np.log(layout.steps / 0.05))
    assert facts["optimism"] == pytest.approx(optimism.max())


def test_players_of_the_search() -> None:
    """Their regrets, from the weights and costs of every episode."""
    (cell,) = runs(wide, "cv-ops", 300, [0])
    simulation = stepped(cell, seed=3)
    cmdp, learner, watcher = simulation.world, simulation.learner, simulation.watcher
    assert isinstance(learner, MirrorLearner)
    primal, sums, dual, played = 0.0, np.zeros(cmdp.layout.num_rows), np.zeros(2), 0.0
    primal_ratio, dual_ratio = -np.inf, 0.0
    for t in range(1, cell.episodes + 1):
        phi, own = learner.core.state.search.weights.copy(), own_occupancy(cmdp, learner)
        mixed = phi @ cmdp.mean_costs
        primal, sums = primal + mixed @ own, sums + mixed
        simulation.advance(1)
        loss = cmdp.thresholds - watcher._path.costs.sum(axis=0)  # type: ignore[attr-defined]
        played, dual = played + phi @ loss, dual + loss
        dual_ratio = max(dual_ratio, (played - dual.min()) / np.sqrt(t))
        best = backward_induction(cmdp.layout, cmdp.transitions, sums).value
        if t >= 2:
            primal_ratio = max(primal_ratio, (primal - best) / np.sqrt(t * np.log(t)))
    facts = simulation.result().facts
    assert facts["t_bar"] is None
    assert facts["dual_ratio"] == pytest.approx(dual_ratio, rel=1e-9)
    assert facts["primal_ratio"] == pytest.approx(primal_ratio, rel=1e-9)
    assert facts["dual_ratio"] <= facts["dual_bound"]
    assert facts["primal_ratio"] <= facts["primal_bound"]


@pytest.mark.parametrize(
    ("world", "violates"), [(wide, False), ({"name": two_actions, "costly": 1.0, "threshold": 0.4}, True)]
)
def test_what_a_search_found_is_exact(world: Any, violates: bool, tmp_path: Path) -> None:
    cells = runs(world, "cv-ops", 1200, [0])
    evidence = Evidence(Level("x", {"search": cells}), tmp_path)
    evidence.gather(cells, 1, False, None)
    (seen,) = evidence.seen("search", cells)
    cmdp, learner, adversary = ingredients(cells[0])
    run = simulate(cmdp, learner, adversary, seed=0, progress=False, marks="all")
    costs = [hr.occupancy.evaluate(cmdp, policy).costs for policy in learner.baseline_policies]
    assert seen["margin"] == pytest.approx(float(np.min(cmdp.thresholds - np.mean(costs, axis=0))), abs=1e-12)
    assert seen["t_bar"] == len(costs)
    assert seen["rho"] == offline.slater(cmdp).margin
    assert seen["rho_hat"] <= seen["margin"] <= seen["rho"]
    assert seen["unsafe_after"] == seen["violation_after"] == 0.0
    at_stop = len(costs) - 1
    assert seen["violation_at_stop"] == run.violation[at_stop]
    assert seen["unsafe_at_stop"] == run.unsafe[at_stop]
    assert (seen["violation_at_stop"] > 0.0) == (seen["unsafe_at_stop"] > 0) == violates
    assert seen["regret_after"] == pytest.approx(run.regret[-1] - run.regret[at_stop], rel=1e-9)


def test_what_judges_see_is_the_run_itself(tmp_path: Path) -> None:
    """Through Parquet and back: the same numbers, and NaN for those that a run does not have."""
    evidence = Evidence(Level("x", {"safe": [SAFE]}), tmp_path)
    evidence.gather([SAFE], 1, False, None)
    (seen,) = evidence.seen("safe", [SAFE])
    run = run_cell(SAFE).run
    for name in ("width", "weighted_upper", "residuals", "mixing_total", "infeasible"):
        assert seen[name] == run[name][-1]
    for name in ("least_excess", "mirror_left", "optimism", "optimism_bound", "first_mixing", "cost_breaches"):
        assert seen[name] == run[name]
    assert (seen["regret"], seen["violation"], seen["worst"]) == (run.regret[-1], run.violation[-1], run.worst.max())
    assert (seen["clean"], seen["honest_baseline"], seen["searched"]) == (1.0, 1.0, 0.0)
    for name in ("t_bar", "margin", "primal_ratio", "dual_bound", "regret_after"):
        assert np.isnan(seen[name]), name
    assert (seen.world, seen.adversary, seen.preset, seen.episodes, seen.delta) == (
        "gate", "drifting", "sharp", 400, 0.05,
    )  # fmt: skip


def test_runs_whose_confidence_sets_fail_are_not_clean(tmp_path: Path) -> None:
    cells = controls()["narrow-radii"][:1]
    evidence = Evidence(Level("x", {"narrow": cells}), tmp_path)
    evidence.gather(cells, 1, False, None)
    (seen,) = evidence.seen("narrow", cells)
    assert seen["clean"] == 0.0
    assert seen["unclean"] >= max(seen["cost_breaches"], seen["transition_breaches"]) > 0.0
    assert seen["unclean"] <= seen["cost_breaches"] + seen["transition_breaches"]
