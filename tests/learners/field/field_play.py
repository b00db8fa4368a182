"""Play a learner by hand, episode by episode, against losses that change all the time."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import hedgerow as hr
from hedgerow.testing.trial import small_worlds

WORLDS = {world.name: world.cmdp for world in small_worlds()}


def roomy(world: str, share: float) -> hr.CMDP:
    """A small world whose threshold leaves so much of what is between the least cost and L."""
    cmdp = WORLDS[world]
    least = hr.offline.slater(cmdp).costs
    return cmdp.with_thresholds(least + share * (cmdp.layout.steps - least))


def risky() -> hr.CMDP:
    """Two steps: action 1 leads to the expensive state mostly, action 0 hardly ever."""
    layout = hr.Layout((1, 2, 1), 2)
    transitions = np.concatenate(([0.95, 0.05, 0.1, 0.9], np.ones(4)))
    costs = hr.costs.BernoulliCosts(np.array([[0.0, 0.1, 0.05, 0.1, 0.9, 1.0]]))
    return hr.CMDP(layout, transitions, costs, [0.6])


BINDING = {
    "L = 1": roomy("L = 1", 0.5),
    "sparse": roomy("sparse", 0.35),
    "risky": risky(),
    "known costs": risky().with_knowledge({"costs": risky().mean_costs}),
}
"""Worlds with one constraint that leave room above the least cost, and which the worst policy violates."""


def margin(cmdp: hr.CMDP) -> float:
    return float(hr.offline.slater(cmdp).margin)


def played(cmdp: hr.CMDP, learner: Any, episodes: int, seed: int = 0) -> Iterator[tuple[hr.Plan, hr.Episode]]:
    """Each plan and its episode, before the learner observes it."""
    rng, rows = np.random.default_rng(seed), cmdp.layout.num_rows
    for t in range(episodes):
        plan = learner.plan()
        loss = np.roll(np.linspace(0.0, 1.0, rows), t // 7) * rng.random()
        episode = cmdp.play(plan.policy, rng, loss)
        yield plan, episode
        learner.observe(episode)


def one_step(costs: Any, threshold: float) -> hr.CMDP:
    """One state, an action for each column of the (m, A) costs."""
    means = np.atleast_2d(np.array(costs, dtype=np.float64))
    layout = hr.Layout((1, 1), means.shape[1])
    return hr.CMDP(
        layout, np.ones(layout.num_triples), hr.costs.DeterministicCosts(means), np.full(len(means), threshold)
    )


def betrayal(T: int) -> hr.losses.Replay:
    """Action 0 loses 0.2; action 1 nothing in the first half, 1 in the second."""
    losses = np.tile([0.2, 0.0], (T, 1))
    losses[T // 2 :, 1] = 1.0
    return hr.losses.Replay(losses)


def hidden(T: int) -> hr.losses.Replay:
    """Action 0 loses 1/2; action 1 loses 1 in the first quarter, nothing later."""
    losses = np.tile([0.5, 0.0], (T, 1))
    losses[: T // 4, 1] = 1.0
    return hr.losses.Replay(losses)


def check_continued(cmdp: hr.CMDP, learner: Any, episodes: int, file: Path) -> None:
    """After so many episodes a learner, what is loaded from its file, and its copy go on with the same bits."""
    for _ in played(cmdp, learner, episodes):
        pass
    hr.save(learner, file)
    loaded, twin = hr.load(file), copy.copy(learner)
    for one, other, third in zip(*(played(cmdp, each, 200, 1) for each in (learner, loaded, twin)), strict=True):
        assert one[0].policy.probabilities.tobytes() == other[0].policy.probabilities.tobytes()
        assert one[0].notes == other[0].notes == third[0].notes
