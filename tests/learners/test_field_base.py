"""What all learners of the field share: calls in turn, files, the coin, refusals, what they are told."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.learners.api import Inputs, describe_inputs
from hedgerow.learners.field.base import FieldLearner
from hedgerow.learners.guarantees import Ledger
from hedgerow.registry import learners
from nightly import daily


class Half(FieldLearner):
    """Leaves half of the episodes to its baseline, and remembers the last loss of each row."""

    kind, title, source = "half", "Half", "the tests"
    inputs = Inputs(baseline=True)
    changing = ("own_policy", "last")

    def __init__(self, view: hr.View, episodes: int, delta: float, seed: int = 0, *, baseline: Any, scale: float = 1.0):
        super().__init__(view, episodes, delta, seed, sets="sharp", baseline=baseline)
        self.scale = scale
        self.last = np.zeros(self.layout.num_rows)
        self.reals.mixing = 0.5

    def _learn(self, episode: hr.Episode) -> None:
        self.last[episode.rows] = episode.losses
        table = np.exp(-self.last.reshape(-1, self.layout.num_actions))
        self.own_policy[:] = (table / table.sum(axis=1, keepdims=True)).ravel()

    def guarantees(self) -> Ledger:
        return Ledger(self.title, ())


@pytest.fixture(name="world")
def world_of_the_catalogue() -> Any:
    return hr.worlds.make("dope-factored")


def learner_of(world: Any, episodes: int = 40, seed: int = 3) -> Half:
    return Half(world.view(), episodes, 0.05, seed, baseline=hr.offline.slater(world), scale=0.5)


def played(learner: Any, world: Any, episodes: int, seed: int = 0) -> list[bytes]:
    rng, plans = np.random.default_rng(seed), []
    for _ in range(episodes):
        plan = learner.plan()
        plans.append(plan.policy.probabilities.tobytes())
        learner.observe(world.cmdp.play(plan.policy, rng, world.loss))
    return plans


def test_a_learner_goes_on_from_files_copies_and_pickles(world: Any, tmp_path: Path) -> None:
    hr.learners.register("half")(Half)
    learner = learner_of(world)
    played(learner, world, 10)
    hr.save(learner, tmp_path / "half.npz")
    others = [
        hr.load(tmp_path / "half.npz"),
        copy.copy(learner),
        copy.deepcopy(learner),
        pickle.loads(pickle.dumps(learner)),
    ]
    expected = played(learner, world, 20, seed=1)
    assert len(set(expected)) > 2  # both the baseline and the own policy were played
    for other in others:
        assert other.episode == 10
        assert other.scale == 0.5
        assert played(other, world, 20, seed=1) == expected


def test_a_plan_waits_in_the_file(world: Any, tmp_path: Path) -> None:
    hr.learners.register("half")(Half)
    learner = learner_of(world)
    plan = learner.plan()
    hr.save(learner, tmp_path / "half.npz")
    other: Any = hr.load(tmp_path / "half.npz")
    assert other.open_plans
    assert other.open_plans[0].policy.probabilities.tobytes() == plan.policy.probabilities.tobytes()


def test_calls_out_of_turn_change_nothing(world: Any) -> None:
    learner = learner_of(world, episodes=2)
    episode = world.cmdp.play(learner.baseline, np.random.default_rng(0), world.loss)
    with pytest.raises(hr.errors.InvalidInput, match="no episode is planned"):
        learner.observe(episode)
    assert learner.open_plans == ()
    learner.plan()
    before = pickle.dumps(learner.state())
    with pytest.raises(hr.errors.InvalidInput, match="planned already"):
        learner.plan()
    elsewhere = hr.worlds.make("lower-bound-2")
    foreign = elsewhere.cmdp.play(hr.Policy.uniform(elsewhere), np.random.default_rng(0))
    with pytest.raises(hr.errors.InvalidInput, match="another world"):
        learner.observe(foreign)
    with pytest.raises(hr.errors.InvalidInput, match="losses along the trajectory"):
        learner.observe(episode.rows)
    with pytest.raises(hr.errors.InvalidInput, match="pass it alone"):
        learner.observe(episode, losses=[0.0])
    assert pickle.dumps(learner.state()) == before
    learner.observe(episode.rows, episode.losses, episode.costs)
    learner.plan()
    learner.observe(episode)
    with pytest.raises(hr.errors.InvalidInput, match="built for 2 episodes"):
        learner.plan()


def test_a_state_that_cannot_be_is_refused(world: Any) -> None:
    state = learner_of(world).state()
    for wrong, message in (
        ({"progress": np.array([50, 0, 0])}, "beyond its last episode"),
        ({"progress": np.array([0.5, 0, 0])}, "no list of counts"),
        ({"reals": np.array([1.5])}, "mixes wrongly"),
        ({"own.own_policy": state["own.own_policy"] * 2}, "sum"),
        ({"arguments": np.array('{"mood": 1}')}, "no state of Half"),
        ({"coin": np.array("{}")}, "no state of Half"),
    ):
        with pytest.raises(hr.errors.InvalidInput, match=message):
            Half.restored(world.view(), {**state, **wrong})
    with pytest.raises(hr.errors.InvalidInput, match="no state of Half"):
        Half.restored(world.view(), {name: array for name, array in state.items() if name != "own.last"})


def test_full_feedback_is_demanded(world: Any) -> None:
    class Informed(Half):
        feedback = "full"

    learner = Informed(world.view(), 5, 0.05, baseline=hr.offline.slater(world))
    learner.plan()
    with pytest.raises(hr.errors.InvalidInput, match="needs full feedback"):
        learner.observe(world.cmdp.play(hr.Policy.uniform(world), np.random.default_rng(0)))


def test_arguments_are_checked(world: Any) -> None:
    safest = hr.offline.slater(world)
    for arguments, message in (
        ({"episodes": 0}, "episodes"),
        ({"delta": 1.5}, "delta"),
        ({"seed": -1}, "seed"),
        ({"baseline": safest.policy}, "costs of the baseline are missing"),
    ):
        given: dict[str, Any] = {"episodes": 5, "delta": 0.05, "baseline": safest, **arguments}
        with pytest.raises(hr.errors.InvalidInput, match=message):
            Half(world.view(), **given)


def test_what_learners_are_told_is_said_in_words() -> None:
    assert describe_inputs(hr.SOPS) == "T, delta, a baseline"
    assert describe_inputs(hr.field.Uniform) == "nothing"
    assert str(Inputs(cheats="the losses")) == "T, delta; knows the losses"
    assert describe_inputs(object()) == "not said"


@pytest.mark.parametrize("name", learners.builtin)
def test_every_learner_says_what_it_is_told_and_who_described_it(name: str) -> None:
    cls = hr.learners.find(name)
    assert isinstance(cls.inputs, Inputs)  # type: ignore[attr-defined]
    assert cls.source  # type: ignore[attr-defined]
    assert cls.kind == name  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", [name for name, home in learners.builtin.items() if ".field." in home])
@pytest.mark.parametrize("episodes", daily(8, nightly=20))
def test_learners_of_the_field_keep_to_the_contract(name: str, episodes: int) -> None:
    report = hr.check_learner(hr.learners.find(name), episodes=episodes)
    assert report.ok, str(report)
    assert getattr(hr.field, hr.learners.find(name).__name__) is hr.learners.find(name)
