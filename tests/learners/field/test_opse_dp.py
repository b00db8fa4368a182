"""OPSE-DP: a slow twin, safety whatever the losses, presets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from backward_twins import OPSETwin
from field_play import BINDING, WORLDS, check_continued, one_step, played

import hedgerow as hr
from hedgerow.errors import InvalidInput


@pytest.mark.parametrize("constants", ["theory", "experiment"])
@pytest.mark.parametrize(("world", "sets"), [("risky", "sharp"), ("L = 1", "sharp"), ("sparse", "source")])
def test_a_slow_twin_has_the_same_plans(world: str, sets: str, constants: str) -> None:
    cmdp, T = BINDING[world], 400
    safest = hr.offline.slater(cmdp)
    learner = hr.field.OPSEDP(cmdp.view(), T, 0.1, baseline=safest, sets=sets, constants=constants)
    twin = OPSETwin(cmdp.view(), T, 0.1, float(safest.costs[0]), sets, constants)
    own = 0
    for t, (plan, episode) in enumerate(played(cmdp, learner, T)):
        if t % 8 == 0 or t > T - 20:
            mixing, theta, policy = twin.plan()
            assert plan.notes["mixing_weight"] == mixing
            assert plan.notes["theta"] == pytest.approx(theta, rel=1e-9)
            if policy is not None:
                np.testing.assert_allclose(learner.policy, policy.ravel(), rtol=0.0, atol=1e-9)
                own += 1
        twin.seen.count(episode)
    assert own > 5 or (world, constants) == ("sparse", "theory")


def adversaries(cmdp: hr.CMDP, seed: int) -> dict[str, Any]:
    return {
        "tempting": hr.losses.Fixed(1.0 - cmdp.mean_costs[0]),
        "switching": hr.losses.Switching(period=1, seed=seed),
        "pursuit": hr.losses.Pursuit(rate=0.5),
        "walk": hr.losses.RandomWalk(step=0.2, seed=seed),
    }


@pytest.mark.sampled(4)
@pytest.mark.parametrize("world", BINDING)
@pytest.mark.parametrize("sets", ["source", "sharp"])
def test_theory_is_never_unsafe_on_the_clean_event(world: str, sets: str) -> None:
    cmdp, T, unclean, own = BINDING[world], 800, 0, 0.0
    for seed in range(2):
        for losses in adversaries(cmdp, seed).values():
            learner = hr.field.OPSEDP(cmdp.view(), T, 0.1, seed, baseline=hr.offline.slater(cmdp), sets=sets)
            run = hr.simulate(cmdp, learner, losses, seed=seed, progress=False)
            assert run.facts["refuted_safety"] == 0
            unclean += run["unclean"][-1]
            own += T - run["mixing_total"][-1]
            if run["unclean"][-1] == 0:
                assert run.safe[-1]
    assert unclean == 0
    assert own > 0 or world == "sparse" or sets == "source"  # it does leave its baseline


def test_it_gets_better_than_its_baseline() -> None:
    cmdp, loss = one_step([[0.1, 0.9]], 0.5), np.array([1.0, 0.0])
    learner = hr.field.OPSEDP(cmdp.view(), 4_000, 0.05, baseline=hr.offline.slater(cmdp), sets="sharp")
    run = hr.simulate(cmdp, learner, hr.losses.Fixed(loss), progress=False)
    assert run.safe[-1]
    assert run.loss[-1] < 0.8 * 4_000
    assert run["mixing_weight"][-1] == 0.0


def test_without_a_binding_constraint_it_never_needs_its_baseline() -> None:
    cmdp = one_step([[0.1, 0.9]], 1.0)
    learner = hr.field.OPSEDP(cmdp.view(), 50, 0.05, baseline=[1.0, 0.0], baseline_costs=[1.0])
    run = hr.simulate(cmdp, learner, hr.losses.Fixed([1.0, 0.0]), progress=False)
    assert run["mixing_total"][-1] == 0.0
    assert run["theta"][-1] == 0.0


def test_the_constants_of_the_experiment_are_not_safe() -> None:
    cmdp = one_step([[0.0, 0.45]], 0.2)
    cmdp = hr.CMDP(cmdp.layout, cmdp.transitions, hr.costs.BernoulliCosts(cmdp.mean_costs), cmdp.thresholds)
    unsafe = 0
    for seed in range(5):
        learner = hr.field.OPSEDP(cmdp.view(), 200, 0.05, baseline=hr.offline.slater(cmdp), constants="experiment")
        unsafe += int(hr.simulate(cmdp, learner, hr.losses.Fixed([1.0, 0.0]), seed=seed, progress=False).unsafe[-1])
    assert unsafe > 0
    promises = learner.guarantees()
    assert not promises["safety"].holds
    assert "experiment" in promises["safety"].void_because


def test_what_it_promises() -> None:
    cmdp = WORLDS["m = 1"]
    learner = hr.field.OPSEDP(cmdp.view(), 10, 0.01, baseline=hr.offline.slater(cmdp))
    ledger = learner.guarantees()
    assert ledger["safety"].holds
    assert ledger["safety"].probability == pytest.approx(0.95)
    assert ledger["safety"].assumes == ""
    assert ledger["regret"].assumes == "independent losses"
    assert str(learner.inputs) == "T, delta, a baseline"


def test_it_is_continued_from_a_file(tmp_path: Path) -> None:
    cmdp = WORLDS["m = 1"]
    for constants in ("theory", "experiment"):
        learner = hr.field.OPSEDP(cmdp.view(), 400, 0.1, 3, baseline=hr.offline.slater(cmdp), constants=constants)
        check_continued(cmdp, learner, 200, tmp_path / f"{constants}.hedge")


def test_wrong_arguments_are_refused() -> None:
    for world in ("m = 0", "m = 3"):
        cmdp = WORLDS[world]
        with pytest.raises(InvalidInput, match="one constraint"):
            hr.field.OPSEDP(cmdp.view(), 10, 0.05, baseline=hr.offline.slater(cmdp))
    cmdp = WORLDS["m = 1"]
    with pytest.raises(InvalidInput, match="choose 'theory'"):
        hr.field.OPSEDP(cmdp.view(), 10, 0.05, baseline=hr.offline.slater(cmdp), constants="tuned")
    with pytest.raises(InvalidInput, match="a world or its view is needed"):
        hr.field.OPSEDP(cmdp.layout, 10, 0.05, baseline=hr.offline.slater(cmdp))


def test_it_keeps_the_contract_with_the_other_constants() -> None:
    assert hr.check_learner(hr.field.OPSEDP, options={"constants": "experiment"}).ok
