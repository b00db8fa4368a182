"""Learning by playing: plan, play, observe, and a record of what was sampled.

Without a model nobody knows the expected loss of a policy, let alone that of the best one: the record holds sums of
samples, and no regret.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import PCG64, Generator, SeedSequence

from hedgerow.checks import FloatArray, frozen, num_episodes, seed_number
from hedgerow.errors import InvalidInput
from hedgerow.gym.stepped import GymWorld
from hedgerow.learners.protocol import Learner
from hedgerow.model.episode import Episode
from hedgerow.model.policy import Policy


@dataclass(frozen=True, eq=False)
class Sampled:
    """Sums over the steps of each episode, as sampled: not expectations, and no regret."""

    losses: FloatArray
    """(episodes,): what the learner was told"""
    rewards: FloatArray
    """(episodes,): the losses on the scale of the rewards; what was clipped is missing from them"""
    costs: FloatArray
    """(episodes, m)"""
    thresholds: FloatArray
    """(m,)"""
    constraint_names: tuple[str, ...]
    clipped_rewards: int
    """Rewards outside the stated range"""
    clipped_costs: int
    """Costs outside [0, 1]"""
    scored: str = "sampled"

    def __repr__(self) -> str:
        costs = ", ".join(
            f"{name} {cost:.4g} (threshold {alpha:.4g})"
            for name, cost, alpha in zip(self.constraint_names, self.costs.mean(axis=0), self.thresholds, strict=True)
        )
        means = f"mean reward {self.rewards.mean():.4g}, mean costs [{costs}]"
        clipped = f"clipped: {self.clipped_rewards} rewards, {self.clipped_costs} costs"
        return f"Sampled({len(self.losses)} episodes; {means}; {clipped})"


def learn(world: GymWorld, learner: Learner | Any, episodes: int, *, seed: int = 0) -> Sampled:
    """Let a learner that was built on `world.view()` play so many episodes; equal seeds give equal records.

    Whatever has `view()` and `play(policy, rng)` and a reward `scale` can stand in the place of `world`.
    """
    count, view = num_episodes(episodes), world.view()
    if learner.view.layout != view.layout or learner.view.num_constraints != view.num_constraints:
        raise InvalidInput("the learner was built for another world; build it on world.view()")
    rng = Generator(PCG64(SeedSequence(seed_number(seed))))
    losses, costs = np.zeros(count), np.zeros((count, view.num_constraints))
    before = world.clipped_rewards, world.clipped_costs
    for t in range(count):
        episode = world.play(_policy_of(learner), rng)
        _tell(learner, episode)
        losses[t], costs[t] = episode.losses.sum(), episode.costs.sum(axis=0)
    return Sampled(
        losses=frozen(losses),
        rewards=frozen(world.scale.horizon * world.scale.best - world.scale.width * losses),
        costs=frozen(costs),
        thresholds=view.thresholds,
        constraint_names=view.constraint_names,
        clipped_rewards=world.clipped_rewards - before[0],
        clipped_costs=world.clipped_costs - before[1],
    )


def _policy_of(learner: Any) -> Policy:
    """The policy of the next plan."""
    policy = learner.plan().policy
    return policy if isinstance(policy, Policy) else Policy(learner.view, policy)


def _tell(learner: Any, episode: Episode) -> None:
    """Hand an episode to a learner; mirror-descent learners still take its arrays."""
    from hedgerow.learners.mirror.learner import Learner as MirrorLearner

    if isinstance(learner, MirrorLearner):
        learner.observe(episode.rows, episode.losses, episode.costs)
    else:
        learner.observe(episode)
