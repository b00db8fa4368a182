"""Dear bounds are left alone while they are of no use, and U stays an upper bound at all times."""

from __future__ import annotations

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.confidence.aggregate import Aggregate, aggregate_bounds
from hedgerow.confidence.balls import joint_cost_with_balls
from hedgerow.learners.ops.mixing import MOST_SKIPPED, bound_by_balls, bound_by_sums, bound_costs
from hedgerow.learners.ops.state import Core

NEVER = 2**62


def least_bounds(core: Core) -> np.ndarray:
    """(m,): the least that any generation says of the present policy, or its boxes; changes nothing."""
    arrays = core.state.aggregate.as_dict()
    numbers = type(core.state.aggregate.numbers)(core.state.aggregate.numbers.values.copy())
    copy = Aggregate(**{**{name: arrays[name].copy() for name in arrays if name != "numbers"}, "numbers": numbers})
    least = core.state.bounds.copy()
    if len(core.state.balls.radius):
        for i in core.baseline.binding:
            upper, rule = core.state.boxes.cost_upper, core.rule.ball
            near = joint_cost_with_balls(core.index, core.buffers.columns, rule, core.state.balls, upper, i)
            least[i] = min(least[i], near)
    for slot in range(len(copy.generation)):
        copy.numbers.turn, copy.numbers.next_start = slot, NEVER
        bounds = core.state.bounds.copy()
        aggregate_bounds(
            core.index, core.buffers.columns, core.state.policy, core.state.boxes, core.rule.aggregate, copy,
            core.buffers.certificate, bounds,
        )  # fmt: skip
        least = np.minimum(least, bounds)
    return least


def learner_on(name: str, episodes: int, **params: object) -> tuple[hr.SOPS, hr.CMDP, np.ndarray]:
    world = hr.worlds.make(name, **params)
    learner = hr.SOPS(world.view(), episodes, 0.05, "sharpest", 1, baseline=hr.offline.slater(world.cmdp))
    return learner, world.cmdp, world.loss


@pytest.mark.parametrize("name", ["dope-media", "random-layered"])
def test_bounds_lie_between_the_least_and_that_of_the_boxes(name: str) -> None:
    learner, cmdp, loss = learner_on(name, 400)
    rng = np.random.default_rng(2)
    for t in range(400):
        learner.observe(cmdp.play(learner.plan().policy, rng, loss))
        if t % 40 == 7:
            state, found = learner.core.state, learner.core.state.bounds.copy()
            bound_costs(learner.core)
            boxes, least = state.bounds.copy(), least_bounds(learner.core)
            assert np.all(found <= boxes + 1e-12)
            assert np.all(found >= least - 1e-12)
            state.bounds[:] = found


def test_what_does_not_help_is_asked_less_and_less_often() -> None:
    learner, _, _ = learner_on("random-layered", 100, layers=(1, 8, 8, 1), actions=2, constraints=1)
    core = learner.core
    patience, asked = core.state.patience, []
    patience.values[:] = 0  # the start has asked once
    for episode in range(80):
        bound_costs(core)
        left = patience.balls_left
        bound_by_balls(core)  # nothing was seen: balls allow everything
        bound_by_sums(core)
        if left == 0:
            asked.append(episode)
    assert asked == [0, 2, 6, 14, 30, 62]
    assert patience.balls_skipped == MOST_SKIPPED
