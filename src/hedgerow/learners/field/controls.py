"""Learners that learn nothing, to compare others with: always the baseline, uniform actions, and the oracle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.checks import FloatArray, type_name, unmasked
from hedgerow.compiling.kernels import kernel
from hedgerow.errors import InvalidInput
from hedgerow.learners.api import Inputs, SafePolicy
from hedgerow.learners.field.base import FieldLearner
from hedgerow.learners.field.loop import FieldCore, FieldRun, close_episode, end_episode, heed, play_episode
from hedgerow.learners.guarantees import Ledger, Promise
from hedgerow.learners.kernels import Losses
from hedgerow.learners.statistics import Statistics
from hedgerow.losses.adaptive import AdaptiveLosses
from hedgerow.losses.blocks import ObliviousLosses
from hedgerow.losses.oblivious import checked
from hedgerow.model.cmdp import CMDP
from hedgerow.model.episode import Episode
from hedgerow.model.layout import Layout
from hedgerow.model.occupancy import checked_loss
from hedgerow.model.random_streams import Stream
from hedgerow.model.view import View, same_layout
from hedgerow.planning import offline

MOST_NUMBERS = 2**20
"""The size of the blocks in which losses are added up."""


@kernel
def run_block(core: FieldCore, run: FieldRun, given: Losses, first: int, coin: Stream) -> tuple[int, bool]:
    """The loop of `loop.py`, without anything to learn: how many of the block are done, and that the last is closed."""
    for i in range(first, len(given.pattern)):
        if not play_episode(core, run, given, i, coin):
            return i, True
        end_episode(core, run)
        heed(core)
        if close_episode(core, run):
            return i + 1, True
    return len(given.pattern), True


class FixedPolicy(FieldLearner):
    """A learner that learns nothing and keeps no statistics."""

    source = "a reference"
    _loop = staticmethod(run_block)

    def _statistics(self) -> Statistics | None:
        return None

    def _learn(self, episode: Episode) -> None:
        return


class AlwaysBaseline(FixedPolicy):
    """Always the baseline: the policy that is known to be safe, in every episode.

    A reference, which learns nothing: a safe learner is worth its effort where it loses less.

    Args:
        episodes: The number T of episodes that it will play.

    Examples:
        >>> import hedgerow as hr
        >>> world = hr.worlds.make("lower-bound-2")
        >>> learner = hr.field.AlwaysBaseline(world.view(), episodes=10, baseline=hr.offline.slater(world))
        >>> learner.plan().notes["mixing_weight"]
        1.0
    """

    kind = "always-baseline"
    title = "always the baseline"
    inputs = Inputs(episodes=False, delta=False, baseline=True)

    def __init__(
        self, view: View | Any, episodes: int, *, baseline: ArrayLike | SafePolicy | Any,
        baseline_costs: ArrayLike | Mapping[str, float] | None = None, on_refuted: str = "stay",
    ) -> None:  # fmt: skip
        super().__init__(view, episodes, baseline=baseline, baseline_costs=baseline_costs, on_refuted=on_refuted)
        self.reals.mixing = 1.0

    def guarantees(self) -> Ledger:
        """Return what is promised: safety, as surely as the baseline is safe."""
        statement = "in every episode the expected costs are those of the baseline"
        return self._ledger(Promise("safety", statement, 1.0, "its costs"))


class Uniform(FixedPolicy):
    """Uniform: every action with the same probability.

    A reference, which learns nothing and promises nothing.

    Args:
        episodes: The number T of episodes that it will play.

    Examples:
        >>> import hedgerow as hr
        >>> learner = hr.field.Uniform(hr.worlds.make("lower-bound-2").view(), episodes=10)
        >>> learner.plan().policy.probabilities.tolist()
        [0.5, 0.5]
    """

    kind = "uniform"
    title = "uniform"
    inputs = Inputs(episodes=False, delta=False)

    def __init__(self, view: View | Any, episodes: int) -> None:
        super().__init__(view, episodes)

    def guarantees(self) -> Ledger:
        """Return what is promised: nothing."""
        return self._ledger()


class Oracle(FixedPolicy):
    """The oracle: the best feasible policy for the mean loss of the whole run, which no learner can know.

    A reference: its regret is 0 by definition, because regret is counted from this policy.

    Args:
        view: The world, or its view.
        world: The CMDP itself, or anything that has one in `.cmdp` or `.model.cmdp`; None if it stands in the place of
            the view.
        losses: The adversary of the run, which must not answer to the learner; or one loss for all episodes,
            (num_rows,) or a table (states, actions). None takes the world's own loss.

    Raises:
        InvalidInput: If the view is not that of the world, or if the losses are not fixed before the run.
        InfeasibleError: If no policy respects the thresholds.

    Examples:
        >>> import hedgerow as hr
        >>> world, losses = hr.worlds.make("lower-bound-2"), hr.losses.Switching(period=10)
        >>> learner = hr.field.Oracle(world, episodes=100, losses=losses)
        >>> bool(abs(hr.simulate(world, learner, losses, progress=False).regret[-1]) < 1e-9)
        True
    """

    kind = "oracle"
    title = "oracle"
    inputs = Inputs(episodes=True, delta=False, cheats="the world and all losses")

    def __init__(self, view: View | Any, episodes: int, *, world: CMDP | Any = None, losses: Any = None) -> None:
        super().__init__(view, episodes)
        world = view if world is None else world
        model = getattr(world, "model", None)  # of a GymWorld with exact scores
        world = model if isinstance(getattr(model, "cmdp", None), CMDP) else world
        cmdp = world if isinstance(world, CMDP) else getattr(world, "cmdp", None)
        if not isinstance(cmdp, CMDP):
            raise InvalidInput(f"the oracle needs the world itself, a CMDP, not {type_name(world)}")
        if not same_layout(cmdp.layout, self.layout) or not np.array_equal(cmdp.thresholds, self.view.thresholds):
            raise InvalidInput("the view of the oracle is that of another world: build it on the view() of `world`")
        chosen = getattr(world, "loss", None) if losses is None else losses
        if chosen is None:
            raise InvalidInput("this world has no loss of its own: give the oracle the losses of the run, losses=...")
        self.own_policy[:] = offline.optimum(cmdp, _mean_loss(chosen, self.layout, self.episodes)).policy

    @classmethod
    def _rebuilt(cls, view: View, arguments: dict[str, Any], state: dict[str, NDArray[Any]]) -> Self:
        """An oracle without a policy: a file keeps the policy, not the world and the losses that it follows from."""
        oracle = cls.__new__(cls)
        FieldLearner.__init__(oracle, view, **arguments)
        return oracle

    def guarantees(self) -> Ledger:
        """Return what is promised: no regret and no violation, by what it knows."""
        why = "it knows the world and all losses"
        return self._ledger(
            Promise("safety", "in every episode the expected costs respect the thresholds", 1.0, why),
            Promise("regret", "the regret of the whole run is 0", 1.0, why),
        )


def _mean_loss(losses: Any, layout: Layout, episodes: int) -> FloatArray:
    """The mean loss (num_rows,) of the first episodes, for losses in any form that `simulate` takes."""
    if isinstance(losses, AdaptiveLosses):
        raise InvalidInput(
            f"the oracle must know all losses before the run, and those of {type(losses).__name__} answer to the "
            "learner: take an adversary that is fixed beforehand"
        )
    if isinstance(losses, np.ndarray | list | tuple):
        return checked_loss(layout, unmasked("the loss", losses))
    if isinstance(losses, ObliviousLosses):
        return losses.mean(layout, episodes)
    blocks, total, size = checked(losses), np.zeros(layout.num_rows), max(1, MOST_NUMBERS // layout.num_rows)
    for first in range(0, episodes, size):
        total += blocks.block(layout, first, min(size, episodes - first)).total()  # type: ignore[union-attr]
    return np.clip(total / episodes, 0.0, 1.0)
