"""What users pass: a world in the place of its view, names as in experiments, numbers as people write them."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator

import hedgerow as hr
from hedgerow.errors import InvalidInput
from hedgerow.learners.api import DELTA
from hedgerow.learners.ops.settings import DEFAULT_PRESET
from hedgerow.model.cmdp import view_of
from hedgerow.planning import baselines
from hedgerow.registry import learners

WORLD = hr.worlds.make("lower-bound-2")
LINES = {
    "state": ["home", "home"], "action": ["walk", "drive"], "next_state": ["done", "done"], "loss": [0.75, 0.25],
    "fuel": [0.0, 0.5],
}  # fmt: skip


class Bell:
    """An environment without a model."""

    def view(self) -> hr.View:
        return WORLD.view()

    def play(self, policy: hr.Policy, rng: Generator) -> hr.Episode:
        return WORLD.cmdp.play(policy, rng, WORLD.loss)


PLACES: dict[str, Any] = {
    "catalogue": WORLD,
    "cmdp": WORLD.cmdp,
    "view": WORLD.view(),
    "environment": Bell(),
    "table": hr.from_table(LINES, {"fuel": 0.25}),
    "unrolled": hr.unroll(np.ones((1, 2, 1)), 2, 0, costs=[[[0.1, 0.2]]], thresholds=[1.0]),
}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("name", [*learners.builtin])
def test_every_learner_is_built_on_whatever_has_a_view(name: str, place: Any) -> None:
    made = learners.find(name)
    view = view_of(place)
    options: dict[str, Any] = {}
    if "baseline" in inspect.signature(made).parameters and made.inputs.baseline:
        options["baseline"] = hr.SafePolicy(hr.Policy.uniform(view), np.asarray(view.thresholds) / 2)
    if made.inputs.slater:
        options["slater"] = 0.1
    if made.inputs.cheats:
        options |= {"world": WORLD, "losses": np.zeros(view.layout.num_rows)}
        if view.layout.num_rows != 2 or not np.array_equal(view.thresholds, WORLD.cmdp.thresholds):
            pytest.skip("the oracle needs the model")
    learner = made(place, 10, **options)
    assert learner.view.content_hash == view.content_hash


@pytest.mark.parametrize("name", [*learners.builtin])
def test_arguments_have_one_order_and_one_default(name: str) -> None:
    given = inspect.signature(learners.find(name)).parameters
    order = [key for key in given if key in ("view", "episodes", "delta", "preset", "seed")]
    assert order == [key for key in ("view", "episodes", "delta", "preset", "seed") if key in given]
    assert "delta" not in given or given["delta"].default == DELTA == 0.01
    assert "preset" not in given or given["preset"].default == DEFAULT_PRESET == "sharpest"


def test_the_sharpest_preset_is_the_default() -> None:
    assert hr.SVOPS(WORLD, 10).settings == hr.SVOPS(WORLD, 10, preset="sharpest").settings
    learner = hr.SOPS(WORLD, 10, baseline="slater")
    assert (learner.settings.preset, learner.delta) == ("sharpest", 0.01)


@pytest.mark.parametrize("name", ["slater", "offered"])
def test_a_baseline_by_name_is_that_of_the_model(name: str) -> None:
    learner = hr.SOPS(WORLD, 10, baseline=name)
    expected = baselines.named(name, WORLD)
    assert np.array_equal(learner.baseline, expected.policy)
    assert np.array_equal(learner.baseline_costs, expected.costs)
    safe = hr.field.DOPE(WORLD.cmdp, 10, baseline="slater")
    assert np.array_equal(safe.baseline_costs, hr.offline.slater(WORLD).costs)


def test_worlds_name_their_own_baselines() -> None:
    cars = hr.worlds.make("ev-workday")
    assert np.array_equal(hr.SOPS(cars, 10, baseline="own").baseline, cars.baseline.policy)
    media = hr.worlds.make("dope-media")
    assert hr.SOPS(media, 10, baseline="budget").baseline_costs <= media.baseline_thresholds + 1e-9


@pytest.mark.parametrize(
    ("place", "name", "message"),
    [
        (
            WORLD.view(),
            "slater",
            "computed from the model of a world, and .* View has none: build .* on the world itself",
        ),
        (Bell(), "slater", "an object of the class Bell has none"),
        (WORLD, "slatter", "there is no baseline 'slatter'; did you mean 'slater'"),
        (WORLD.cmdp, "own", "this world offers no baseline 'own'"),
    ],
)
def test_a_baseline_that_nothing_offers_is_refused(place: Any, name: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        hr.SOPS(place, 10, baseline=name)


@pytest.mark.parametrize(
    ("losses", "same"),
    [
        ("own", None),
        ("iid", hr.losses.IID(seed=3)),
        ("switching", hr.losses.Switching(seed=3)),
        ({"name": "switching", "period": 7}, hr.losses.Switching(period=7, seed=3)),
        ({"name": "switching", "period": 7, "seed": 1}, hr.losses.Switching(period=7, seed=1)),
        ("betrayal", hr.losses.Betrayal(episodes=40)),
        ("early-bird", hr.losses.EarlyBird(WORLD, 40)),
    ],
)
def test_losses_by_name_are_those_of_an_experiment(losses: Any, same: Any) -> None:
    runs = [hr.simulate(WORLD, hr.SVOPS(WORLD, 40), each, seed=3, progress=False) for each in (losses, same)]
    assert np.array_equal(runs[0].losses, runs[1].losses)
    assert np.array_equal(runs[0].regret, runs[1].regret)


@pytest.mark.parametrize(
    ("losses", "message"),
    [
        ("swiching", "did you mean 'switching'"),
        ({"period": 3}, "losses by name are a text or {'name'"),
        ({"name": "switching", "perod": 3}, "has no parameter 'perod'; did you mean 'period'"),
        ({"name": "own", "period": 3}, "own loss has no parameters"),
        ({"name": "random-walk"}, "needs the parameter 'step'"),
    ],
)
def test_losses_that_have_no_such_name_are_refused(losses: Any, message: str) -> None:
    learner = hr.SVOPS(WORLD, 10)
    with pytest.raises(InvalidInput, match=message):
        hr.simulate(WORLD, learner, losses)
    assert learner.episode == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: hr.SVOPS(WORLD, T=100), "SVOPS has no argument 'T': write episodes=100"),
        (lambda: hr.field.Uniform(WORLD, n_episodes=5), "Uniform has no argument 'n_episodes': write episodes=5"),
        (lambda: hr.simulate(WORLD, hr.field.Uniform(WORLD, 9), T=3), "simulate has no argument 'T': write episodes=3"),
        (lambda: hr.simulate(WORLD, hr.field.Uniform(WORLD, 9), prgress=False), "did you mean 'progress'"),
        (lambda: hr.SOPS(WORLD, 100), "SOPS needs the argument 'baseline': a policy that is safe.*\"slater\""),
        (lambda: hr.field.DOPE(WORLD, 100), "DOPE needs the argument 'baseline': a policy that is safe"),
        (lambda: hr.SVOPS(WORLD), "SVOPS needs the argument 'episodes': the number T"),
        (lambda: hr.field.Uniform(WORLD, 5, 0.1), "Uniform: too many positional arguments"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_in_words(call: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        call()


def test_an_error_inside_a_constructor_stays_what_it_is() -> None:
    class Broken(hr.SVOPS):
        def _first_core(self) -> Any:
            raise TypeError("inside")

    with pytest.raises(TypeError, match="inside"):
        Broken(WORLD, 10)


@pytest.mark.parametrize("episodes", [1e2, "100", "0.1k", " 1e2 "])
def test_numbers_of_episodes_as_people_write_them(episodes: Any) -> None:
    learner = hr.field.Uniform(WORLD, "1k")
    assert learner.episodes == 1000
    assert hr.simulate(WORLD, learner, episodes=episodes, progress=False).episodes[-1] == 100


class Lazy:
    """A learner whose plan is a policy."""

    def __init__(self, view: hr.View, made: Any) -> None:
        self.view, self.made = view, made

    def plan(self) -> Any:
        return self.made

    def observe(self, episode: hr.Episode) -> None:
        return


def test_a_plan_may_be_a_bare_policy() -> None:
    policy = hr.Policy.of(WORLD, 0)
    bare, whole = (
        hr.simulate(WORLD, Lazy(WORLD.view(), made), episodes=20, progress=False) for made in (policy, hr.Plan(policy))
    )
    assert np.array_equal(bare.loss, whole.loss)
    assert np.array_equal(bare.costs, whole.costs)
    mixture = hr.Mixture((0.5, policy), (0.5, hr.Policy.of(WORLD, 1)))
    with pytest.raises(InvalidInput, match=r"a Plan or a Policy, not .* Mixture: Plan\(mixture, mixture.draw\(rng\)\)"):
        hr.simulate(WORLD, Lazy(WORLD.view(), mixture), episodes=2, progress=False)


def test_a_policy_is_made_in_whatever_has_a_view() -> None:
    assert hr.Policy.of(Bell(), 1).probabilities.tolist() == [0.0, 1.0]
    with pytest.raises(
        InvalidInput, match="a layout, a view or a world is needed here, not an object of the class int"
    ):
        hr.Policy.of(3, 1)
    with pytest.raises(InvalidInput, match="not the class Bell"):
        hr.Policy.of(Bell, 1)


def test_a_run_says_what_its_names_are() -> None:
    run = hr.simulate(WORLD, hr.SVOPS(WORLD, 10), progress=False)
    with pytest.raises(InvalidInput, match=r"'violations' is no note of the learner, .*: run.violations"):
        run["violations"]
    with pytest.raises(InvalidInput, match="no note 'mixing_weigth'; did you mean 'mixing_weight'"):
        run["mixing_weigth"]


@pytest.mark.parametrize("module", ["offline", "occupancy", "learners", "losses", "hooks"])
def test_modules_show_public_names_only(module: str) -> None:
    shown = dir(getattr(hr, module))
    assert shown == sorted(getattr(hr, module).__all__)
    assert all(hasattr(getattr(hr, module), name) for name in shown)
    assert not [name for name in shown if name.startswith("_") or name in ("Any", "np", "annotations")]
