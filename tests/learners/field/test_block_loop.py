"""The compiled loop of the learners of the field: the bits of single episodes, whatever the costs and the losses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from learner_cases import random_world, with_costs

import hedgerow as hr

T = 120
LEARNERS: dict[str, Callable[[hr.CMDP], Any]] = {
    "opt-primal-dual": lambda world: hr.field.OptPrimalDual(world, T, 0.05, slater=hr.offline.slater(world).margin),
    "regularised": lambda world: hr.field.OptPrimalDual(world, T, 0.05, regularised=True),
    "ucpd": lambda world: hr.field.UCPD(world, T, 0.05),
    "ucpd-ix": lambda world: hr.field.UCPDIX(world, T, 0.05),
    "bob-pd": lambda world: hr.field.BoBPD(world, T, 0.05),
    "bob-pd bandit": lambda world: hr.field.BoBPD(world, T, 0.05, feedback="bandit"),
    "opse-dp": lambda world: hr.field.OPSEDP(world, T, 0.01, 7, baseline=hr.offline.slater(world)),
    "triple-q": lambda world: hr.field.TripleQ(world, T),
    "triple-q experiment": lambda world: hr.field.TripleQ(world, T, constants="experiment"),
    "s-lp": lambda world: hr.field.SLP(world, T, 0.01, 7, baseline=hr.offline.slater(world)),
    "always-baseline": lambda world: hr.field.AlwaysBaseline(world, T, baseline=hr.offline.slater(world)),
    "uniform": lambda world: hr.field.Uniform(world, T),
}
LOSSES: dict[str, Callable[[], Any]] = {
    "switching": lambda: hr.losses.Switching(period=20, seed=1),
    "pursuit": lambda: hr.losses.Pursuit(rate=0.1),
}


def both_ways(world: Any, made: Callable[[Any], Any], losses: Callable[[], Any]) -> list[tuple[Any, Any]]:
    """The learner and its run, compiled and episode by episode."""
    found = []
    for step_wise in (False, True):
        learner = made(world)
        run = hr.simulate(world, learner, losses(), seed=3, progress=False, step_wise=step_wise)
        assert run.way == ("step-wise" if step_wise else "compiled")
        found.append((learner, run))
    return found


def assert_same(one: tuple[Any, Any], other: tuple[Any, Any]) -> None:
    mine, theirs = one[0].state(), other[0].state()
    assert mine.keys() == theirs.keys()
    assert one[1].notes.keys() == other[1].notes.keys()
    for name, array in mine.items():
        np.testing.assert_array_equal(array, theirs[name], name)
    for name, values in one[1].notes.items():
        np.testing.assert_array_equal(values, other[1].notes[name], name)
    for name in ("loss", "costs", "violations", "worst"):
        np.testing.assert_array_equal(getattr(one[1], name), getattr(other[1], name), name)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("losses", LOSSES)
@pytest.mark.parametrize("costs", ["bernoulli", "deterministic", "beta", "empirical"])
@pytest.mark.parametrize("learner", LEARNERS)
def test_compiled_blocks_give_the_bits_of_single_episodes(learner: str, costs: str, losses: str) -> None:
    """With full feedback the loop draws all costs of an episode itself, as `sample` of each kind of costs does."""
    world = with_costs(random_world(4, m=1), costs)
    assert_same(*both_ways(world, LEARNERS[learner], LOSSES[losses]))


@pytest.mark.parametrize("learner", ["ucpd", "ucpd-ix", "s-lp", "dope-plus"])
def test_sets_of_rows_that_share_laws_are_the_same_in_blocks(learner: str) -> None:
    """With the sharpest sets an episode also changes rows that it did not visit."""
    world = hr.worlds.make("streaming-5")
    safe = hr.offline.slater(world)
    kinds: dict[str, Callable[[Any], Any]] = {
        "ucpd": lambda world: hr.field.UCPD(world, T, 0.05, sets="sharpest"),
        "ucpd-ix": lambda world: hr.field.UCPDIX(world, T, 0.05, sets="sharpest"),
        "s-lp": lambda world: hr.field.SLP(world, T, 0.01, 7, baseline=safe, sets="sharpest"),
        "dope-plus": lambda world: hr.field.DOPEPlus(world, T, 0.01, 7, baseline=safe, sets="sharpest"),
    }
    one, other = both_ways(world, kinds[learner], LOSSES["switching"])
    assert one[0].statistics.layer.rule.tied
    assert_same(one, other)


@pytest.mark.parametrize("learner", ["ucpd", "ucpd-ix", "bob-pd", "bob-pd bandit"])
def test_projections_that_resist_are_left_to_the_slow_solver(learner: str) -> None:
    world = random_world(4)

    def impatient(world: hr.CMDP) -> Any:
        made = LEARNERS[learner](world)
        made.core.rule.settings[2] = 0.0  # no Newton step: every projection ends open
        return made

    slow = both_ways(world, impatient, LOSSES["switching"])
    assert_same(*slow)
    fast = hr.simulate(world, LEARNERS[learner](world), LOSSES["switching"](), seed=3, progress=False)
    np.testing.assert_allclose(slow[0][1].loss, fast.loss, rtol=0.0, atol=1e-6)


def test_costs_of_a_class_of_ones_own_are_drawn_episode_by_episode() -> None:
    class Halves(hr.costs.CostDistribution):
        def __init__(self, means: Any) -> None:
            self.means = np.asarray(means, dtype=float)

        def sample(self, rng: np.random.Generator) -> Any:
            return 0.5 * (rng.random(self.means.shape) < 2.0 * self.means)

        def arrays(self) -> dict[str, Any]:
            return {"means": self.means}

    world = hr.CMDP(hr.Layout((1, 1), 2), [1.0, 1.0], Halves([[0.1, 0.4]]), [0.5])
    for made in (LEARNERS["ucpd"], LEARNERS["triple-q"]):
        assert hr.simulate(world, made(world), [0.5, 0.0], progress=False).way == "step-wise"


def test_a_subclass_that_learns_in_its_own_way_is_not_run_compiled() -> None:
    class Stubborn(hr.field.TripleQ):
        def _learn(self, episode: hr.Episode) -> None:
            return

    world = random_world(4)
    learner = Stubborn(world, T)
    before = learner.policy.copy()
    assert hr.simulate(world, learner, hr.losses.IID(), progress=False).way == "step-wise"
    np.testing.assert_array_equal(learner.policy, before)
