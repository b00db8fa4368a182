"""The paper as it is printed, where the learners have repairs: what goes wrong, or takes for ever."""

from __future__ import annotations

from math import isfinite

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.learners.kernels import BaselineArrays
from hedgerow.verify.controls import LiteralSigma, TheoryStop, literal_weight
from hedgerow.verify.worlds import opposed, wide


def test_the_printed_sigma_exceeds_one() -> None:
    """L = 3, alpha = (1, 1), beta = (.5, .8), U = (2, .6): 2, here cut to 1; the repair makes it 2/3."""
    beta, alpha, most = np.array([0.5, 0.8]), np.array([1.0, 1.0]), np.array([3.0, 3.0])
    baseline = BaselineArrays(np.zeros((0, 0)), beta, alpha, most, np.arange(2))
    assert literal_weight(baseline, np.array([2.0, 0.6])) == 1.0
    assert literal_weight(baseline, np.array([0.9, 0.6])) == 0.0


def test_the_printed_sigma_is_played_from_the_first_episode_on() -> None:
    world, _ = opposed()
    learner = LiteralSigma(world.view(), 40, 0.05, "sharp", baseline=hr.offline.slater(world))
    rng = np.random.default_rng(0)
    for _ in range(20):
        expected = literal_weight(learner.core.baseline, learner.core.state.bounds)
        plan = learner.plan()
        assert plan.mixing_weight == expected
        learner.observe(world.play(plan.policy, rng))


@pytest.mark.parametrize(("constant", "ends"), [(0.0, True), (None, False)])
def test_a_search_that_waits_for_the_theory(constant: float | None, ends: bool) -> None:
    world, loss = wide()
    late = TheoryStop(world.view(), 3_000, 0.05, "sharp", primal_constant=constant, confidence_scale=0.3)
    soon = hr.CVOPS(world.view(), 3_000, 0.05, "sharp", confidence_scale=0.3)
    assert isfinite(late.core.search.primal_constant)
    for learner in (late, soon):
        hr.simulate(world, learner, loss, seed=1, progress=False)
    assert soon.t_bar is not None
    assert (late.t_bar is not None) == ends
    assert late.t_bar is None or late.t_bar > soon.t_bar
