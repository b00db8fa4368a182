"""Learning by playing an environment: plan, play, observe, and a record of every episode.

`learn` is `hr.simulate` that keeps what was sampled in each episode, not only at checkpoints. Without a model the
record holds sums of samples, and no regret; its `run` has exact scores where the world has (`scored="exact"`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow.checks import FloatArray, IntArray, frozen, num_episodes
from hedgerow.errors import HedgerowError, InvalidInput
from hedgerow.gym.world import GymWorld
from hedgerow.learners.api import Learner
from hedgerow.learners.guarantees import Ledger
from hedgerow.report.figures import results_plot, runs_results
from hedgerow.report.page import report as write_report
from hedgerow.results.groups import Results
from hedgerow.simulation.result import Run
from hedgerow.simulation.run import Simulation

BLOCKS = 200
"""Checkpoints of a run: blocks of equally many episodes, whose means are drawn."""


@dataclass(frozen=True, eq=False)
class Samples:
    """What was sampled in each episode: sums over its steps, not expectations, and no regret.

    `run` has the curves, the page and what the learner noted, as every run.

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
    """(episodes,): the sums of losses that the learner saw."""
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
    run: Run
    """The same as a run: its curves are kept after each of about 200 blocks of equally many episodes."""

    @property
    def scored(self) -> str:
        """Either "sampled", or "exact" if `run` has expectations by the table of the environment."""
        return self.run.scored

    @property
    def ledger(self) -> Ledger | None:
        """What the learner promises, void where something was clipped; None for a learner without a ledger."""
        return self.run.guarantees()

    def plot(self, what: str | None = None) -> Any:
        """Draw one figure of this record, or an overview of it, as `Run.plot` does.

        Args:
            what: `"reward"`, `"cost-0"` (the first constraint), `"cost-1"`, or a figure of `Run.plot`. By default an
                overview that begins with reward and first cost.
        """
        return results_plot(self._results, what)

    def report(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write a page about this record to `path`, as `Run.report` does; `overwrite` replaces a file."""
        return write_report(self._results, path, overwrite=overwrite)

    @property
    def _results(self) -> Results:
        """This record alone, under the name of its environment."""
        env: Any = self.run.world.env  # type: ignore[union-attr]
        return runs_results({"": self.run}, env.spec.id if env.spec is not None else type(env.unwrapped).__name__)

    def to_pandas(self) -> Any:
        """Return the episodes as a data frame.

        Its columns are episode, reward, loss, and one for each constraint, by its name.

        Raises:
            HedgerowError: If pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise HedgerowError("data frames need pandas: install it, or use the arrays of the record") from error
        columns = {"episode": np.arange(1, len(self.losses) + 1), "reward": self.rewards, "loss": self.losses}
        taken = {name if name not in columns else f"cost {name}": i for i, name in enumerate(self.constraint_names)}
        return pd.DataFrame(columns | {name: self.costs[:, i] for name, i in taken.items()})

    def __repr__(self) -> str:
        costs = ", ".join(
            f"{name} {cost:.4g} (threshold {alpha:.4g})"
            for name, cost, alpha in zip(self.constraint_names, self.costs.mean(axis=0), self.thresholds, strict=True)
        )
        means = f"mean reward {self.rewards.mean():.4g}, mean costs [{costs}]"
        clipped = f"clipped: {self.clipped_rewards} rewards, {self.clipped_costs} costs"
        exact = f"; episodes over a threshold: {int(self.run.unsafe[-1])}, exact" if self.scored == "exact" else ""
        return f"Samples({len(self.losses)} episodes; {means}; {clipped}{exact})"


def learn(world: GymWorld, learner: Learner, episodes: int, *, seed: int = 0, progress: bool = False) -> Samples:
    """Let a learner play an environment and record what was sampled.

    If the environment raises in the middle of an episode, what was seen of it is reported to the learner as an
    aborted episode, and the learner can go on. If it raises before a step was over, the plan is abandoned, by learners
    that can do so.

    Args:
        world: The environment.
        learner: A learner that was built on `world.view()`.
        episodes: How many episodes to play.
        seed: Seed of the environment and of the actions; equal seeds give equal records.
        progress: Whether to show a progress bar, in a terminal or a notebook.

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
    if not isinstance(world, GymWorld):
        raise InvalidInput("learn plays a GymWorld, such as GymWorld(env, steps=..., rewards=...); else hr.simulate")
    count, view = num_episodes(episodes), world.view()
    simulation = Simulation(world, learner, None, seed, episodes=count, marks=_blocks(count))
    seen = np.zeros((count, 1 + view.num_constraints))

    def keep(done: int) -> None:
        seen[done - 1] = simulation.referee.last  # type: ignore[union-attr]

    simulation.on_episode = keep
    before = world.clipped_rewards, world.clipped_costs
    run = simulation.run(progress=progress)
    losses = frozen(seen[:, 0].copy())
    return Samples(
        losses=losses,
        rewards=frozen(world.scale.horizon * world.scale.best - world.scale.width * losses),
        costs=frozen(seen[:, 1:].copy()),
        thresholds=view.thresholds,
        constraint_names=view.constraint_names,
        clipped_rewards=world.clipped_rewards - before[0],
        clipped_costs=world.clipped_costs - before[1],
        run=run,
    )


def _blocks(episodes: int) -> IntArray:
    """The last episode of each of at most BLOCKS blocks of about equally many."""
    return np.unique(np.linspace(0, episodes, min(BLOCKS, episodes) + 1).round().astype(np.int64))[1:]


def together(records: Mapping[str, Samples], world: str = "Gymnasium") -> Results:
    """Put records of several learners together, for one figure and one page.

    Args:
        records: Records of equally many episodes, by the name that each is to have.
        world: What the world is called on the page.

    Returns:
        Results as those of a sweep: `.plot("reward")`, `.plot("cost-0")`, `hr.report(results, path)`, `.to_latex()`.

    Raises:
        InvalidInput: If there is no record, or if they have different numbers of episodes or constraints.

    Examples:
        >>> import hedgerow as hr
        >>> from hedgerow.gym import CMDPEnv, GymWorld, learn, together
        >>> env = CMDPEnv(hr.worlds.make("lower-bound-1"))
        >>> world = GymWorld(env, steps=1, rewards=(-1, 0), thresholds={"cost": 0.5})
        >>> records = {name: learn(world, hr.SVOPS(world.view(), 20, 0.05, name), 20) for name in ("paper", "sharp")}
        >>> [group.learner for group in together(records).groups]
        ['paper', 'sharp']
    """
    if not isinstance(records, Mapping) or not records or not all(isinstance(r, Samples) for r in records.values()):
        raise InvalidInput("records are a mapping {name: what `learn` returned}, with at least one entry")
    kinds = {(len(record.losses), record.constraint_names, *record.thresholds) for record in records.values()}
    if len(kinds) > 1:
        raise InvalidInput("the records differ in episodes, constraints or thresholds: they cannot be compared")
    return runs_results({name: record.run for name, record in records.items()}, world)
