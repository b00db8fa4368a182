"""Learning by playing: plan, play, observe, and a record of what was sampled.

Without a model nobody knows the expected loss of a policy, let alone that of the best one: the record holds sums of
samples, and no regret.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import PCG64, Generator, SeedSequence

from hedgerow.checks import FloatArray, frozen, num_episodes, seed_number
from hedgerow.errors import InvalidInput
from hedgerow.gym.stepped import GymWorld
from hedgerow.learners.protocol import Learner


@dataclass(frozen=True, eq=False)
class Samples:
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
        return f"Samples({len(self.losses)} episodes; {means}; {clipped})"


def learn(world: GymWorld, learner: Learner, episodes: int, *, seed: int = 0) -> Samples:
    """Let a learner that was built on `world.view()` play so many episodes; equal seeds give equal records."""
    count, view = num_episodes(episodes), world.view()
    if learner.view.layout != view.layout or learner.view.num_constraints != view.num_constraints:
        raise InvalidInput("the learner was built for another world; build it on world.view()")
    rng = Generator(PCG64(SeedSequence(seed_number(seed))))
    losses, costs = np.zeros(count), np.zeros((count, view.num_constraints))
    before = world.clipped_rewards, world.clipped_costs
    for t in range(count):
        episode = world.play(learner.plan().policy, rng)
        learner.observe(episode)
        losses[t], costs[t] = episode.losses.sum(), episode.costs.sum(axis=0)
    return Samples(
        losses=frozen(losses),
        rewards=frozen(world.scale.horizon * world.scale.best - world.scale.width * losses),
        costs=frozen(costs),
        thresholds=view.thresholds,
        constraint_names=view.constraint_names,
        clipped_rewards=world.clipped_rewards - before[0],
        clipped_costs=world.clipped_costs - before[1],
    )
