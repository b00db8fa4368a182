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
from hedgerow.gym.world import GymWorld
from hedgerow.learners.api import Learner, Promising
from hedgerow.learners.guarantees import ABOUT_SETS, Ledger
from hedgerow.learners.plans import tell_failure
from hedgerow.model.identity import between


@dataclass(frozen=True, eq=False)
class Samples:
    """What was sampled in each episode: sums over its steps, not expectations, and no regret.

    Examples:
        >>> import hedgerow as hr
        >>> from hedgerow.gym import CMDPEnv, GymWorld, learn
        >>> env = CMDPEnv(hr.worlds.make("lower-bound-1"))
        >>> world = GymWorld(env, steps=1, rewards=(-1, 0), thresholds={"cost": 0.5})
        >>> record = learn(world, hr.SVOPS(world.view(), 5, 0.05), 5)
        >>> record.losses.shape, record.costs.shape
        ((5,), (5, 1))
    """

    losses: FloatArray
    """(episodes,): the sums of losses that the learner was told."""
    rewards: FloatArray
    """(episodes,): the same on the scale of the rewards; what was clipped is missing from them."""
    costs: FloatArray
    """(episodes, m): the sums of costs."""
    thresholds: FloatArray
    """(m,): the thresholds of the constraints."""
    constraint_names: tuple[str, ...]
    """(m,): the names of the constraints."""
    clipped_rewards: int
    """The number of rewards outside the stated range."""
    clipped_costs: int
    """The number of costs outside [0, 1]."""
    scored: str = "sampled"
    """Always "sampled": the truth is not known."""
    ledger: Ledger | None = None
    """What the learner promised at the end, void where something was clipped; None for a learner without a ledger."""

    def __repr__(self) -> str:
        costs = ", ".join(
            f"{name} {cost:.4g} (threshold {alpha:.4g})"
            for name, cost, alpha in zip(self.constraint_names, self.costs.mean(axis=0), self.thresholds, strict=True)
        )
        means = f"mean reward {self.rewards.mean():.4g}, mean costs [{costs}]"
        clipped = f"clipped: {self.clipped_rewards} rewards, {self.clipped_costs} costs"
        return f"Samples({len(self.losses)} episodes; {means}; {clipped})"


def learn(world: GymWorld, learner: Learner, episodes: int, *, seed: int = 0) -> Samples:
    """Let a learner play an environment and record what was sampled.

    If the environment raises in the middle of an episode, the learner is told what was seen of it, as an episode that
    was aborted, and can go on. If it raises before a step was over, the plan is abandoned, by learners that can do so.

    Args:
        world: The environment.
        learner: A learner that was built on `world.view()`.
        episodes: How many episodes to play.
        seed: Seed of the environment and of the actions; equal seeds give equal records.

    Returns:
        The sums of losses, rewards and costs of each episode.

    Raises:
        InvalidInput: If the learner was built for another world.

    Examples:
        >>> import gymnasium
        >>> import hedgerow as hr
        >>> from hedgerow.gym import GymWorld, learn
        >>> def fell_into_a_hole(state, action, next_state, reward, info):
        ...     return float(next_state in (5, 7, 11, 12))
        >>> lake = gymnasium.make("FrozenLake-v1", is_slippery=False)
        >>> hole = {"thresholds": {"hole": 0.25}, "costs": fell_into_a_hole, "costs_drawn": "step"}
        >>> world = GymWorld(lake, steps=10, rewards=(0, 1), **hole)
        >>> record = learn(world, hr.SVOPS(world.view(), 3, 0.05), 3)
        >>> record.rewards.shape, record.clipped_rewards
        ((3,), 0)
    """
    count, view = num_episodes(episodes), world.view()
    try:
        between(view.layout, view.constraint_names, learner.view.layout, learner.view.constraint_names)
    except InvalidInput as error:
        raise InvalidInput(f"the learner was built for another world; build it on world.view(): {error}") from error
    rng = Generator(PCG64(SeedSequence(seed_number(seed))))
    losses, costs = np.zeros(count), np.zeros((count, view.num_constraints))
    before = world.clipped_rewards, world.clipped_costs
    for t in range(count):
        plan = learner.plan()
        try:
            episode = world.play(plan.policy, rng)
        except BaseException as error:
            tell_failure(learner, plan, world.unfinished, error)
            raise
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
        ledger=_ledger(learner, world.void_because),
    )


def _ledger(learner: Learner, void_because: str) -> Ledger | None:
    """The promises of a learner that has some, as they stand in a world that clipped something."""
    ledger = learner.guarantees() if isinstance(learner, Promising) else None
    return ledger.voided(void_because, but=ABOUT_SETS) if isinstance(ledger, Ledger) else None
