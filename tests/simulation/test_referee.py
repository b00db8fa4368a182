"""Learners that nobody should believe: refused with a sentence, or scored by what they planned and nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import forgers
import numpy as np
import pytest
from foreign_learners import Wrapped
from forgers import REFUSED, SCORED, Honest
from learner_cases import KINDS, make_learner

import hedgerow as hr
from hedgerow.simulation import referee
from hedgerow.simulation.referee import Copies, is_ours, may_watch
from hedgerow.simulation.run import Simulation

LOSS = np.linspace(0.0, 1.0, 12)


def world() -> hr.CMDP:
    """Two actions, full support; a new one each time, since some of the learners write into it."""
    layout = hr.Layout((1, 3, 2, 1), 2).labelled([f"s{x}" for x in range(7)], ["a0", "a1"])
    rng = np.random.default_rng(3)
    weights = rng.integers(1, 8, layout.num_triples).astype(np.float64)
    transitions = weights / np.add.reduceat(weights, layout.row_start[:-1])[layout.row_of_triple]
    return hr.CMDP(layout, transitions, hr.costs.BernoulliCosts(rng.integers(1, 16, (1, 12)) / 16.0), [1.5])


def played(kind: type, episodes: int = 8, losses: Any = LOSS) -> hr.results.Run:
    place = world()
    return hr.simulate(place, kind(place.view(), episodes, 0.05), losses, seed=1, progress=False, marks="all")


@pytest.mark.parametrize("kind", REFUSED, ids=lambda kind: kind.__name__)
def test_a_plan_that_is_none_is_refused_by_a_sentence(kind: type) -> None:
    with pytest.raises(hr.errors.InvalidInput, match=REFUSED[kind]) as refusal:
        played(kind)
    assert kind.__name__ in str(refusal.value)


@pytest.mark.parametrize("kind", SCORED, ids=lambda kind: kind.__name__)
def test_scores_are_those_of_the_plan_as_it_was(kind: type) -> None:
    """The policies of even and of odd episodes, evaluated by code of its own."""
    place, run = world(), played(kind)
    learner = Honest(place.view(), 8, 0.05)
    values = [hr.occupancy.evaluate(place, content, LOSS) for content in (learner.safe, learner.bold)]
    losses = np.cumsum([values[t % 2].loss for t in range(8)])
    costs = np.cumsum([values[t % 2].costs for t in range(8)], axis=0)
    np.testing.assert_allclose(run.loss, losses, atol=1e-12)
    np.testing.assert_allclose(run.costs, costs, atol=1e-12)
    np.testing.assert_array_equal(run.loss, played(Honest).loss)
    assert abs(values[0].loss - values[1].loss) > 0.01


def test_what_is_played_is_what_is_scored() -> None:
    """The array of a policy that is set to another one between two episodes: the visited rows follow it."""

    class Inputs(forgers.Rebound):
        rows: list[Any] = []  # noqa: RUF012 - read below

        def observe(self, episode: hr.Episode) -> None:
            self.rows.append(episode.rows % 2)
            super().observe(episode)

    played(Inputs, 20)
    assert all(np.all(row == 1) for row in Inputs.rows[1::2])
    assert not all(np.all(row == 1) for row in Inputs.rows[::2])


def test_adversaries_see_what_happened_whatever_the_learner_writes() -> None:
    class Follower:
        def start(self, layout: hr.Layout) -> None:
            self.layout, self.seen = layout, []

        def loss(self, episode: int) -> np.ndarray:
            return LOSS

        def observe(self, episode: int, policy: np.ndarray, trajectory: np.ndarray) -> None:
            self.seen.append((policy.copy(), trajectory.copy()))

    seen = []
    for kind in (Honest, forgers.Meddler, forgers.KeptBase):
        adversary = Follower()
        played(kind, losses=adversary)
        seen.append(adversary.seen)
    for other in seen[1:]:
        for (policy, rows), (its, path) in zip(seen[0], other, strict=True):
            np.testing.assert_array_equal(policy, its)
            np.testing.assert_array_equal(rows, path)


def test_thresholds_of_scores_are_those_of_the_world() -> None:
    class Generous(Honest):
        def observe(self, episode: hr.Episode) -> None:
            super().observe(episode)
            self.view = hr.View(self.view.layout, [3.0], self.view.constraint_names)

    run, honest = played(Generous), played(Honest)
    np.testing.assert_array_equal(run.net_violation, honest.net_violation)
    assert honest.net_violation[-1] > 0.0


@pytest.mark.parametrize("kind", [forgers.ExitInPlan, forgers.ExitInObserve], ids=lambda kind: kind.__name__)
def test_a_learner_cannot_end_the_program(kind: type) -> None:
    with pytest.raises(
        hr.errors.HedgerowError, match=rf"{kind.__name__}\.(plan|observe) raised SystemExit\(0\) in episode 0"
    ):
        played(kind)


def test_a_policy_of_its_own_that_is_none_is_not_shown() -> None:
    class Boastful(Honest):
        policy = np.full(12, np.nan)

    run = played(Boastful)
    assert run.policy is not None
    np.testing.assert_array_equal(run.policy, np.tile([0.0, 1.0], 6))


def test_who_is_ours() -> None:
    view = world().view()

    class Tuned(hr.SVOPS):
        pass

    class Liar(Honest):
        pass

    Liar.__module__, Liar.__qualname__ = "hedgerow.learners.ops.sv_ops", "SVOPS"
    ours, theirs = hr.SVOPS(view, 5, 0.1, "paper"), Tuned(view, 5, 0.1)
    assert is_ours(ours)
    assert not any(map(is_ours, (theirs, Liar(view, 5, 0.1), Honest(view, 5, 0.1))))
    assert may_watch(ours)
    assert may_watch(theirs)
    assert not may_watch(forgers.Overseer(view, 5, 0.1))
    ours.plan = lambda: None  # type: ignore[method-assign,assignment,return-value]
    assert not is_ours(ours)


@pytest.mark.parametrize("kind", KINDS)
def test_our_own_plans_would_be_accepted(kind: str) -> None:
    """What is not asked of our learners holds for them all the same."""
    place = world()
    learner = make_learner(kind, place, 60, preset="sharp", seed=3)
    run = hr.simulate(place, Wrapped(learner), LOSS, seed=5, progress=False, episodes=60)
    assert run.episodes[-1] == 60


def test_equal_contents_are_computed_once_and_old_ones_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    place = world()
    copies = Copies(Honest, place.layout)
    one, two = (hr.Policy(place, np.tile([0.25, 0.75], 6)) for _ in range(2))
    assert one is not two
    assert copies.of(hr.Plan(one), 0).policy is copies.of(hr.Plan(two), 1).policy
    coins = [copies.of(hr.Plan(hr.Mixture((0.5, one), (0.5, two)), one), 2).mixture for _ in range(2)]
    assert coins[0] is coins[1]
    monkeypatch.setattr(referee, "NUMBERS_KEPT", 0)
    few = Copies(Honest, place.layout)
    for number in range(500):
        share = number / 1000
        few.of(hr.Plan(hr.Policy(place, np.tile([share, 1.0 - share], 6))), number)
    assert len(few._kept) == 64


def test_a_learner_of_another_world_is_refused_where_it_crashed() -> None:
    """In a process of its own, many times over: memory beside the arrays of a world was written to."""
    place = Path(forgers.__file__).parent
    code = (
        f"import sys; sys.path.insert(0, {str(place)!r})\n"
        "import forgers, numpy as np, hedgerow as hr\n"
        "world = hr.worlds.make('random-layered', layers=(1, 2, 1), actions=2, constraints=1)\n"
        "for kind in (forgers.OtherWorld, forgers.LayoutMender):\n"
        "    for seed in range(5):\n"
        "        world = hr.worlds.make('random-layered', layers=(1, 2, 1), actions=2, constraints=1)\n"
        "        try:\n"
        "            hr.simulate(world, kind(world.view(), 50, 0.1), seed=seed, progress=False)\n"
        "        except hr.errors.InvalidInput as error:\n"
        "            continue\n"
        "        raise AssertionError('not refused')\n"
        "print('alive')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "alive\n"), done.stderr


def test_a_learner_that_is_asked_elsewhere_first_begins_where_it_says() -> None:
    place = world()
    learner = Honest(place.view(), 9, 0.05)
    learner.episode = 3  # type: ignore[attr-defined]
    assert Simulation(place, learner, LOSS).first == 3
