"""Always the baseline: the policy that is known to be safe, in every episode; a control that learns nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.checks import FloatArray, type_name, unmasked
from hedgerow.errors import InvalidInput
from hedgerow.learners.api import Inputs, SafePolicy
from hedgerow.learners.field.base import FieldLearner
from hedgerow.learners.guarantees import Ledger, Promise
from hedgerow.learners.statistics import Statistics
from hedgerow.losses.adaptive import AdaptiveLosses
from hedgerow.losses.blocks import ObliviousLosses
from hedgerow.losses.oblivious import checked
from hedgerow.model.cmdp import CMDP
from hedgerow.model.episode import Episode
from hedgerow.model.identity import same_layout
from hedgerow.model.layout import Layout
from hedgerow.model.occupancy import checked_loss
from hedgerow.model.view import View
from hedgerow.planning import offline


class AlwaysBaseline(FieldLearner):
    """Always the baseline: the policy that is known to be safe, in every episode; a control.

    It learns nothing. A safe learner is worth its effort where it loses less than this one.

    Args:
        episodes: The number T of episodes that it will play.

    Examples:
        >>> import hedgerow as hr
        >>> world = hr.worlds.make("lower-bound-2")
        >>> learner = hr.field.AlwaysBaseline(world.view(), episodes=10, baseline=hr.offline.slater(world))
        >>> learner.plan().notes["mixing_weight"]
        1.0
    """

    kind: ClassVar[str] = "always-baseline"
    title: ClassVar[str] = "always the baseline"
    source: ClassVar[str] = "a control"
    inputs: ClassVar[Inputs] = Inputs(episodes=False, delta=False, baseline=True)

    def __init__(
        self,
        view: View,
        episodes: int,
        *,
        baseline: ArrayLike | SafePolicy | Any,
        baseline_costs: ArrayLike | Mapping[str, float] | None = None,
        on_refuted: str = "stay",
    ) -> None:
        super().__init__(view, episodes, baseline=baseline, baseline_costs=baseline_costs, on_refuted=on_refuted)
        self.reals.mixing = 1.0

    def _statistics(self) -> Statistics | None:
        return None

    def _learn(self, episode: Episode) -> None:
        return

    def guarantees(self) -> Ledger:
        """Return what is promised: safety, as surely as the baseline is safe."""
        safe = Promise("safety", "in every episode the expected costs are those of the baseline", 1.0, "its costs")
        return self.as_seen(Ledger(self.title, (safe,)))


# --------------------------------------------------------------------------------------------------------------------
# Uniform: every action with the same probability in every episode, a control that learns nothing.


class Uniform(FieldLearner):
    """Uniform: every action with the same probability, a control that learns nothing and promises nothing.

    Args:
        episodes: The number T of episodes that it will play.

    Examples:
        >>> import hedgerow as hr
        >>> learner = hr.field.Uniform(hr.worlds.make("lower-bound-2").view(), episodes=10)
        >>> learner.plan().policy.probabilities.tolist()
        [0.5, 0.5]
    """

    kind: ClassVar[str] = "uniform"
    title: ClassVar[str] = "uniform"
    source: ClassVar[str] = "a control"
    inputs: ClassVar[Inputs] = Inputs(episodes=False, delta=False)

    def __init__(self, view: View, episodes: int) -> None:
        super().__init__(view, episodes)

    def _statistics(self) -> Statistics | None:
        return None

    def _learn(self, episode: Episode) -> None:
        return

    def guarantees(self) -> Ledger:
        """Return what is promised: nothing."""
        return self.as_seen(Ledger(self.title, ()))


# --------------------------------------------------------------------------------------------------------------------
# The oracle: the best feasible policy for the losses of the whole run, which no learner can know; a control.


MOST_NUMBERS = 2**20
"""The size of the blocks in which losses are added up."""


class Oracle(FieldLearner):
    """The oracle: the best feasible policy for the mean loss of the whole run; a control that cheats.

    Its regret is 0 by definition: that is the policy that regret is counted from.

    Args:
        view: What a learner may know of the world: `world.view()`.
        episodes: The number T of episodes that it will play.
        world: The CMDP itself, or anything that has one in `.cmdp`.
        losses: The adversary of the run, which must not answer to the learner; or one loss for all episodes,
            (num_rows,) or a table (states, actions).

    Raises:
        InvalidInput: If the view is not that of the world, or if the losses are not fixed before the run.
        InfeasibleError: If no policy respects the thresholds.

    Examples:
        >>> import hedgerow as hr
        >>> world, losses = hr.worlds.make("lower-bound-2"), hr.losses.Switching(period=10)
        >>> learner = hr.field.Oracle(world.view(), episodes=100, world=world, losses=losses)
        >>> bool(abs(hr.simulate(world, losses, learner, progress=False).regret[-1]) < 1e-9)
        True
    """

    kind: ClassVar[str] = "oracle"
    title: ClassVar[str] = "oracle"
    source: ClassVar[str] = "a control"
    inputs: ClassVar[Inputs] = Inputs(episodes=True, delta=False, cheats="the world and all losses")

    def __init__(self, view: View, episodes: int, *, world: CMDP | Any, losses: Any) -> None:
        super().__init__(view, episodes)
        cmdp = world if isinstance(world, CMDP) else getattr(world, "cmdp", None)
        if not isinstance(cmdp, CMDP):
            raise InvalidInput(f"the oracle needs the world itself, a CMDP, not {type_name(world)}")
        if not same_layout(cmdp.layout, self.layout) or not np.array_equal(cmdp.thresholds, self.view.thresholds):
            raise InvalidInput("the view of the oracle is that of another world: build it on the view() of `world`")
        self.own_policy[:] = offline.optimum(cmdp, _mean_loss(losses, self.layout, self.episodes)).policy

    @classmethod
    def _rebuilt(cls, view: View, arguments: dict[str, Any], state: dict[str, NDArray[Any]]) -> Self:
        """An oracle without a policy: a file keeps the policy, not the world and the losses that it follows from."""
        oracle = cls.__new__(cls)
        FieldLearner.__init__(oracle, view, **arguments)
        return oracle

    def _statistics(self) -> Statistics | None:
        return None

    def _learn(self, episode: Episode) -> None:
        return

    def guarantees(self) -> Ledger:
        """Return what is promised: no regret and no violation, by what it is told."""
        told = "it is told the world and all losses"
        return self.as_seen(
            Ledger(
                self.title,
                (
                    Promise("safety", "in every episode the expected costs respect the thresholds", 1.0, told),
                    Promise("regret", "the regret of the whole run is 0", 1.0, told),
                ),
            )
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
