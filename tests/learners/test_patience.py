"""Dear bounds are left alone while they are of no use, and U stays an upper bound at all times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from learner_cases import assert_same, scores

import hedgerow as hr
from hedgerow.confidence.aggregate import Aggregate, aggregate_bounds
from hedgerow.confidence.anchored import anchored_bounds
from hedgerow.confidence.balls import joint_cost_with_balls
from hedgerow.confidence.sets import MOST_SKIPPED, bound_by_anchor, bound_by_balls, bound_by_boxes, bound_by_sums
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
            upper, rule = core.state.boxes.cost_upper, core.sets.rule.ball
            near = joint_cost_with_balls(core.index, core.buffers.columns, rule, core.state.balls, upper, i)
            least[i] = min(least[i], near)
    base, beta, scratch = core.baseline.policies[0], core.baseline.costs, core.sets.anchor.scratch
    scratch.columns.kept[0] = 0
    anchored_bounds(core.index, core.state.policy, base, core.state.boxes, beta, scratch, least)
    for slot in range(len(copy.generation)):
        copy.numbers.turn, copy.numbers.next_start = slot, NEVER
        bounds = core.state.bounds.copy()
        aggregate_bounds(
            core.index, core.buffers.columns, core.state.policy, core.state.boxes, core.sets.rule.aggregate, copy,
            core.sets.scratch.certificate, bounds,
        )  # fmt: skip
        least = np.minimum(least, bounds)
    return least


def learner_on(name: str, episodes: int, **params: object) -> tuple[hr.SOPS, hr.CMDP, np.ndarray]:
    world = hr.worlds.make(name, **params)
    learner = hr.SOPS(
        world.view(), episodes, 0.05, "sharpest", 1, baseline=hr.offline.slater(world.cmdp), anchored=True
    )
    return learner, world.cmdp, world.loss


@pytest.mark.parametrize("name", ["dope-media", "random-layered"])
def test_bounds_lie_between_the_least_and_that_of_the_boxes(name: str) -> None:
    learner, cmdp, loss = learner_on(name, 400)
    rng = np.random.default_rng(2)
    for t in range(400):
        learner.observe(cmdp.play(learner.plan().policy, rng, loss))
        if t % 40 == 7:
            state, found = learner.core.state, learner.core.state.bounds.copy()
            core = learner.core
            bound_by_boxes(core.sets, core.buffers.columns, state.policy, state.bounds)
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
        bound_by_boxes(core.sets, core.buffers.columns, core.state.policy, core.state.bounds)
        left = patience.balls_left
        bound_by_balls(core.sets, core.buffers.columns, core.state.bounds)  # nothing was seen: balls allow everything
        bound_by_sums(core.sets, core.buffers.columns, core.state.policy, core.state.bounds)
        if left == 0:
            asked.append(episode)
    assert asked == [0, 2, 6, 14, 30, 62]
    assert patience.balls_skipped == MOST_SKIPPED


def test_the_anchor_is_asked_as_rarely_and_never_where_the_switch_is_off() -> None:
    """Where all may cost L, a policy far from the baseline gains nothing; the baseline itself costs beta."""
    learner, _, _ = learner_on("random-layered", 100, layers=(1, 4, 4, 1), actions=2, constraints=1)
    core, asked = learner.core, []
    anchor, alpha = core.sets.anchor, float(learner.view.thresholds[0])
    anchor.costs[0] = alpha  # no better start than the threshold: D(x_0) says all
    anchor.pause[:] = 0
    far = np.where(anchor.policy > 0.5, 0.0, 1.0)
    far /= far.reshape(-1, 2).sum(axis=1).repeat(2)
    for episode in range(70):
        bounds, left = np.array([alpha + 1e-3]), anchor.pause[0]
        bound_by_anchor(core.sets, far, bounds)
        assert bounds[0] == alpha + 1e-3
        if left == 0:
            asked.append(episode)
    assert asked == [0, 2, 6, 14, 30, 62]
    anchor.pause[0] = 0
    bounds = np.array([float(learner.layout.steps)])
    bound_by_anchor(core.sets, anchor.policy, bounds)
    assert bounds[0] == pytest.approx(alpha)
    assert anchor.pause.tolist() == [0, 0]
    off = hr.SOPS(learner.view, 100, 0.05, baseline=learner.baseline, baseline_costs=learner.baseline_costs)
    assert len(off.core.sets.anchor.policy) == len(off.core.state.anchor) == 0


def test_both_ways_and_files_are_the_same_with_an_anchor_and_it_lowers_lambda(tmp_path: Path) -> None:
    runs = []
    for step_wise, anchored in ((False, True), (True, True), (False, False)):
        world = hr.worlds.make("slater-needle")
        learner = hr.SOPS(world, 3000, 0.05, baseline="budget", anchored=anchored)
        how: dict[str, Any] = {"progress": False, "step_wise": step_wise}
        hr.simulate(world, learner, episodes=1500, seed=1, **how)
        hr.save(learner, tmp_path / "learner", overwrite=True)
        again = hr.load(tmp_path / "learner")
        both = [hr.simulate(world, each, seed=2, **how) for each in (learner, again)]
        assert_same(*map(scores, both))
        assert both[0].unsafe[-1] == 0
        runs.append(both[0])
    assert_same(*map(scores, runs[:2]))
    assert runs[0]["mixing_weight"].mean() < runs[2]["mixing_weight"].mean()
