"""The watched run is the plain run, bit for bit, compiled and step by step; its notes are sums that can be redone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from learner_cases import assert_same, scores

import hedgerow as hr
from hedgerow import files
from hedgerow.learners.mirror.notes import DUAL_RATIO, PRIMAL, RADII, WEIGHTED, WIDTH
from hedgerow.planning.induction import backward_induction
from hedgerow.promises.observation import observe, pack, plain_witness, take, unpack
from hedgerow.promises.specs import PURSUIT_RATE, RunSpec, ground_of, make_learner, make_losses
from hedgerow.promises.witness import Witness
from hedgerow.simulation.run import simulate

SAFE = RunSpec("t", "gate", "s-ops", 400, adversary="drifting", audit=True, estimator=True)


def stepped(spec: RunSpec) -> Witness:
    where = ground_of(spec)
    witness = Witness(
        where.cmdp, make_losses(spec, where), make_learner(spec, where), spec.seed,
        estimator=spec.estimator, step_wise=True, marks="all", audit=spec.audit,
    )  # fmt: skip
    witness.finish()
    return witness


def test_the_watched_run_is_the_plain_one() -> None:
    where = ground_of(SAFE)
    plain = simulate(where.cmdp, make_losses(SAFE, where), make_learner(SAFE, where), SAFE.seed, False, audit=True)
    watched = plain_witness(SAFE)
    watched.finish()
    own = watched.result()
    assert own.loss[-1] == plain.loss[-1]
    assert own["least_excess"] == plain["least_excess"]
    assert own["mixing_slack"] == plain["mixing_slack"]
    assert own["mixing_total"][-1] == plain["mixing_total"][-1]


def test_the_adversary_written_out_is_pursuit() -> None:
    spec = replace(SAFE, adversary="pursuit", estimator=False, audit=False)
    where = ground_of(spec)
    plain = simulate(where.cmdp, hr.losses.Pursuit(PURSUIT_RATE), make_learner(spec, where), spec.seed, False)
    watched = plain_witness(spec)
    watched.finish()
    assert watched.result().loss[-1] == plain.loss[-1]
    np.testing.assert_array_equal(watched.result().losses[-1], plain.losses[-1])


@pytest.mark.parametrize("spec", [SAFE, RunSpec("t", "wide", "cv-ops", 900), RunSpec("t", "needle", "cv-ops", 1000)])
def test_compiled_and_step_by_step_note_the_same(spec: RunSpec) -> None:
    fast, slow = plain_witness(spec), stepped(spec)
    fast.finish()
    whole = slow.result().at(fast.result().episodes)
    assert_same(scores(fast.result()), scores(whole))
    np.testing.assert_array_equal(fast.notes.sums, slow.notes.sums)
    np.testing.assert_array_equal(fast.notes.optimism, slow.notes.optimism)
    if fast.at_stop is not None:
        assert slow.at_stop is not None
        assert fast.at_stop.margin == slow.at_stop.margin
        assert fast.at_stop.violation == slow.at_stop.violation


def test_notes_are_the_sums_that_they_claim_to_be() -> None:
    """Recomputed episode by episode in plain Python, from the learner's public state."""
    spec = RunSpec("t", "gate", "s-ops", 60, adversary="noisy", estimator=True)
    where = ground_of(spec)
    cmdp, learner = where.cmdp, make_learner(spec, where)
    witness = Witness(cmdp, make_losses(spec, where), learner, 0, estimator=True, step_wise=True, marks="all")
    width = weighted = radii = 0.0
    for _ in range(spec.episodes):
        own = hr.occupancy.row_occupancy(
            cmdp.layout, hr.occupancy.occupancy(cmdp.layout, cmdp.transitions, learner.policy)
        )
        q_hat = np.exp(learner.core.state.log_weight)
        lam = float(learner.core.state.reals[2])
        width += np.abs(own - q_hat).sum()
        weighted += (1 - lam) * np.abs(own - q_hat).sum()
        radii += 2 * float(learner.core.state.boxes.xi @ q_hat)
        witness.advance(1)
    sums = witness.notes.sums
    assert sums[[WIDTH, WEIGHTED, RADII]] == pytest.approx([width, weighted, radii], rel=1e-12)


def test_players_of_the_search() -> None:
    """Their regrets, from the weights and costs of every episode."""
    spec = RunSpec("t", "wide", "cv-ops", 300)
    where = ground_of(spec)
    cmdp, learner = where.cmdp, make_learner(spec, where)
    witness = Witness(cmdp, where.loss, learner, 3, step_wise=True, marks="all")
    primal, sums, dual, played, ratio = 0.0, np.zeros(cmdp.layout.num_rows), np.zeros(2), 0.0, 0.0
    for t in range(1, spec.episodes + 1):
        phi = learner.core.state.search.weights.copy()
        own = hr.occupancy.row_occupancy(
            cmdp.layout, hr.occupancy.occupancy(cmdp.layout, cmdp.transitions, learner.policy)
        )
        mixed = phi @ cmdp.mean_costs
        primal, sums = primal + mixed @ own, sums + mixed
        witness.advance(1)
        loss = cmdp.thresholds - witness.watcher._path.costs.sum(axis=0)
        played, dual = played + phi @ loss, dual + loss
        ratio = max(ratio, (played - dual.min()) / np.sqrt(t))
    assert witness.notes.sums[PRIMAL] == pytest.approx(primal, rel=1e-12)
    assert witness.notes.sums[DUAL_RATIO] == pytest.approx(ratio, rel=1e-9)
    np.testing.assert_allclose(witness.notes.primal, sums, rtol=1e-12)
    seen = observe(spec, witness, where)
    best = backward_induction(cmdp.layout, cmdp.transitions, sums).value
    assert seen["primal_ratio"] >= (primal - best) / np.sqrt(300 * np.log(300)) - 1e-12


def test_what_a_search_found_is_exact() -> None:
    spec = RunSpec("t", "wide", "cv-ops", 1200)
    seen = take(spec)
    where = ground_of(spec)
    learner = make_learner(spec, where)
    simulate(where.cmdp, where.loss, learner, 0, False)
    policies = learner.baseline_policies  # type: ignore[attr-defined]
    costs = [hr.occupancy.evaluate(where.cmdp, policy).costs for policy in policies]
    assert seen["margin"] == pytest.approx(float(np.min(where.cmdp.thresholds - np.mean(costs, axis=0))), abs=1e-12)
    assert seen["t_bar"] == len(policies)
    assert seen["rho_hat"] <= seen["margin"] <= seen["rho"]
    assert seen["unsafe_after"] == seen["violation_after"] == 0.0


def test_observations_survive_files() -> None:
    spec = RunSpec("t", "random-layered", "sv-ops", 50, world_params=(("actions", 2), ("layers", (1, 2, 1))))
    seen = take(spec)
    back = unpack(files.unpack(pack(seen), "observation"))
    assert back.spec == spec
    np.testing.assert_equal(back.values, seen.values)  # NaN included
    for name, values in seen.curves.items():
        np.testing.assert_array_equal(back.curves[name], values)
