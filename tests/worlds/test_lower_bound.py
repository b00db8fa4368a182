"""The lower-bound pair: closed forms (module docstring of `lower_bound`) against the linear program."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hedgerow import worlds
from hedgerow.planning import offline
from hedgerow.worlds.closed_forms import pair_optimum

NAMES = ("lower-bound-1", "lower-bound-2")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("episodes", [4_000, 16_000, 64_000])
@pytest.mark.parametrize("rho", [0.05, 0.1, 0.25, 0.5])
def test_closed_form_equals_the_linear_program(name, episodes, rho):
    world = worlds.make(name, episodes=episodes, rho=rho)
    expected = pair_optimum(name, episodes, rho)
    best, slater = offline.optimum(world.cmdp, world.loss), offline.slater(world.cmdp)
    assert best.value == pytest.approx(expected.optimum, abs=1e-12)
    assert slater.margin == pytest.approx(expected.margin, abs=1e-12)
    np.testing.assert_allclose(slater.policy, [0.0, 1.0], atol=1e-12)
    assert offline.optimum(world.cmdp.with_thresholds([1.0]), world.loss).value == pytest.approx(0.5, abs=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_golden_is_the_closed_form(name):
    world = worlds.make(name)
    expected = pair_optimum(name, 16_000, 0.25)
    assert world.golden.optimum == pytest.approx(expected.optimum, abs=1e-12)
    assert world.golden.unconstrained == expected.unconstrained
    assert world.golden.margin == expected.margin


def test_the_numbers_of_the_paper():
    """eps = .3536 / sqrt(T); costs, rewards and threshold as in the proof."""
    eps = 0.35355339 / math.sqrt(16_000)
    first, second = (worlds.make(name) for name in NAMES)
    np.testing.assert_allclose(first.cmdp.mean_costs, [[0.5 + eps, 0.25]], atol=1e-9)
    np.testing.assert_array_equal(second.cmdp.mean_costs, [[0.5, 0.25]])
    for world in (first, second):
        np.testing.assert_array_equal([world.source_value(loss) for loss in world.loss], [0.5, 0.0])
        assert world.unit == "reward"
        assert world.cmdp.thresholds.tolist() == [0.5]
        assert world.cmdp.costs.kind == "bernoulli"
