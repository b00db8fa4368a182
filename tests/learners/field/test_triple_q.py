"""Triple-Q: a slow twin, the queue, losses that break it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from backward_twins import TripleQTwin
from field_play import WORLDS, check_continued, one_step, played

import hedgerow as hr
from hedgerow.errors import InvalidInput


@pytest.mark.parametrize("constants", ["source", "experiment"])
@pytest.mark.parametrize("world", ["m = 1", "m = 0", "m = 3", "L = 1", "sparse"])
def test_a_slow_twin_has_the_same_policies(world: str, constants: str) -> None:
    cmdp, T = WORLDS[world], 400
    learner, twin = hr.field.TripleQ(cmdp.view(), T, constants=constants), TripleQTwin(cmdp.view(), T, constants)
    assert learner.frame == twin.frame == 36
    for plan, episode in played(cmdp, learner, T):
        np.testing.assert_allclose(plan.policy.probabilities, twin.policy().ravel(), rtol=0.0, atol=1e-9)
        assert plan.notes["queue"] == pytest.approx(twin.Z.sum(), rel=1e-9)
        twin.learn(episode)
    np.testing.assert_allclose(learner.q, twin.Q.ravel(), rtol=1e-9)
    np.testing.assert_allclose(learner.c, twin.C.reshape(len(twin.Z), cmdp.layout.num_rows).T, rtol=1e-9)


def test_an_adversary_that_follows_it_makes_regret_linear() -> None:
    cmdp = one_step([[0.0, 0.0]], 1.0)
    for constants, least in (("source", 0.99), ("experiment", 0.04)):
        for T in (3_000, 6_000):
            learner = hr.field.TripleQ(cmdp.view(), T, constants=constants)
            run = hr.simulate(cmdp, learner, hr.losses.Pursuit(), progress=False, marks=[T])
            assert run.regret[-1] > least * T


def test_cycling_losses_cost_it_a_share_of_all_episodes() -> None:
    cmdp, T = one_step([[0.0, 0.0]], 1.0), 12_000
    learner = hr.field.TripleQ(cmdp.view(), T, constants="experiment")
    run = hr.simulate(cmdp, learner, hr.losses.Switching(period=1, patterns=np.eye(2)), progress=False)
    assert run.regret[-1] > 0.05 * T


def test_the_constants_of_the_source_say_nothing_yet() -> None:
    # The bonus of the first visit is larger than L: the first action stays the best, whatever it loses.
    cmdp, T = one_step([[0.0, 0.0]], 1.0), 2_000
    learner = hr.field.TripleQ(cmdp.view(), T)
    assert hr.simulate(cmdp, learner, hr.losses.Fixed([1.0, 0.0]), progress=False).regret[-1] == T


def test_cheap_episodes_hide_unsafe_ones() -> None:
    cmdp, T = one_step([[0.2, 1.0]], 0.5), 6_000
    learner = hr.field.TripleQ(cmdp.view(), T, constants="experiment")
    run = hr.simulate(cmdp, learner, hr.losses.Fixed([1.0, 0.0]), progress=False)
    assert run.unsafe[-1] > 20
    assert run.costs[-1, 0] < 0.5 * T


def test_an_episode_that_was_cut_short_looks_at_the_greedy_action() -> None:
    cmdp = WORLDS["m = 1"]
    view = cmdp.view()
    learner = hr.field.TripleQ(view, 100, constants="experiment")
    learner.plan()
    learner.q[2 * 2] = 50.0  # state 2, action 0
    learner.observe(hr.Episode(view, [0], [0.0], [1.0], ended_in=2))
    assert learner.q[0] == pytest.approx(32.0 + 96.0 + 0.2 * np.sqrt(np.log(100)))  # lr = 1; action 1 has 96


def test_costs_that_are_unknown_teach_nothing() -> None:
    cmdp = WORLDS["L = 1"]
    view = cmdp.view()
    learner = hr.field.TripleQ(view, 100)
    before = learner.q.copy()
    learner.plan()
    learner.observe(hr.Episode(view, [0], [0.0], unknown_costs=True))
    np.testing.assert_array_equal(learner.q, before)
    assert learner.episode == 1


def test_it_is_continued_from_a_file(tmp_path: Path) -> None:
    cmdp = WORLDS["m = 3"]
    for constants in ("source", "experiment"):
        learner = hr.field.TripleQ(cmdp.view(), 300, constants=constants)
        check_continued(cmdp, learner, 100, tmp_path / f"{constants}.hedge")


def test_wrong_arguments_are_refused() -> None:
    view = WORLDS["m = 1"].view()
    with pytest.raises(InvalidInput, match="choose 'source'"):
        hr.field.TripleQ(view, 10, constants="theory")
    state = hr.field.TripleQ(view, 10).state()
    with pytest.raises(InvalidInput, match="negative"):
        hr.field.TripleQ.restored(view, {**state, "own.queues": np.array([-1.0])})


def test_what_it_is_told_and_what_it_promises() -> None:
    learner = hr.field.TripleQ(WORLDS["m = 1"].view(), 10)
    assert str(learner.inputs) == "T"
    assert all(promise.holds and promise.assumes == "independent losses" for promise in learner.guarantees())
    assert "make up for unsafe" in learner.guarantees()["violation"].statement
    several, tuned = WORLDS["m = 3"].view(), hr.field.TripleQ(learner.view, 10, constants="experiment")
    for other in (hr.field.TripleQ(several, 10), tuned):
        assert not any(promise.holds for promise in other.guarantees())


def test_it_keeps_the_contract_with_the_other_constants() -> None:
    assert hr.check_learner(hr.field.TripleQ, options={"constants": "experiment"}).ok
