"""Adaptive adversaries: losses that answer to what the learner did in earlier episodes.

The loss of episode t may depend on the policies pi_s and the trajectories of all episodes s < t, and on nothing of
episode t itself: the learner's coin and actions of that episode are tossed after the loss is fixed. The order of calls
makes this so: `start`, then for every episode `loss(t)` before the episode and `observe(t, ...)` after it.

`Pursuit` remembers an average of the policies and lays the loss where it sees most probability,

    average_0 = uniform,    average_{t+1} = (1 - rate) average_t + rate pi_t,    loss_t = min(1, |A| / 2 * average_t).
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from hedgerow.checks import FloatArray, IntArray, float_array, real_number, whole_number, within
from hedgerow.errors import InvalidInput
from hedgerow.model.layout import Layout
from hedgerow.model.occupancy import checked_policy, uniform_policy


@runtime_checkable
class AdaptiveLosses(Protocol):
    """What a simulation needs of an adversary that reacts to the learner.

    Any object with these three methods will do. Calls come in this order: `start`, then for every episode `loss` before
    it and `observe` after it. Episodes are counted from 0. The loss of an episode may depend on all earlier episodes,
    but not on the learner's random choices in the episode itself.

    Examples:
        >>> import hedgerow as hr
        >>> import numpy as np
        >>> class PunishRepetition:
        ...     def start(self, layout):
        ...         self.next_loss = np.zeros(layout.num_rows)
        ...
        ...     def loss(self, episode):
        ...         return self.next_loss
        ...
        ...     def observe(self, episode, policy, trajectory):
        ...         self.next_loss = np.zeros(len(policy))
        ...         self.next_loss[trajectory] = 1.0
        >>> isinstance(PunishRepetition(), hr.losses.AdaptiveLosses)
        True
    """

    def start(self, layout: Layout) -> None:
        """Forget everything and prepare for a run on `layout`."""

    def loss(self, episode: int) -> FloatArray:
        """Return the loss (num_rows,) of `episode`, with entries in [0, 1]."""

    def observe(self, episode: int, policy: FloatArray, trajectory: IntArray) -> None:
        """Take note of what happened in an episode.

        Args:
            episode: The number of the episode.
            policy: (num_rows,) action probabilities of the policy that was played.
            trajectory: (L,) visited rows, one per layer.
        """


class Pursuit:
    """An adaptive adversary that puts the loss on the actions that the learner has favoured lately.

    It keeps an average of the policies, average = (1 - rate) average + rate policy, which starts as the uniform policy.
    The loss of an action is min(1, average probability * number of actions / 2). An action that the learner has settled
    on costs 1, one that it avoids 0, and all actions 1/2 while it is undecided.

    Args:
        rate: The weight of the latest policy, in (0, 1]. With 1 only the last episode counts.

    Examples:
        >>> import hedgerow as hr
        >>> import numpy as np
        >>> adversary = hr.losses.Pursuit(rate=0.5)
        >>> adversary.start(hr.Layout((1, 1), num_actions=2))
        >>> adversary.loss(0).tolist()
        [0.5, 0.5]
        >>> adversary.observe(0, np.array([1.0, 0.0]), np.array([0]))
        >>> adversary.loss(1).tolist()
        [0.75, 0.25]
    """

    kind: ClassVar[str] = "pursuit"
    stochastic: ClassVar[bool] = False
    """Losses that answer to the learner are no independent draws."""

    def __init__(self, rate: float = 0.1) -> None:
        self.rate = real_number("the rate", rate, 1e-9, 1.0)
        self._layout: Layout | None = None
        self.average: FloatArray = np.empty(0)
        """(num_rows,): what it remembers of the policies so far; a compiled loop goes on with it in place"""
        self._episode = 0

    def start(self, layout: Layout) -> None:
        """Forget everything and prepare for a run on `layout`."""
        self._layout, self.average, self._episode = layout, uniform_policy(layout), 0

    def loss(self, episode: int) -> FloatArray:
        """Return the loss (num_rows,) of `episode`, which must be the next one."""
        layout = self._expect(episode)
        return np.minimum(1.0, 0.5 * layout.num_actions * self.average)

    def observe(self, episode: int, policy: FloatArray, trajectory: IntArray) -> None:
        """Add the `policy` (num_rows,) of `episode` to the average; the `trajectory` does not matter."""
        layout = self._expect(episode)
        self.average = (1.0 - self.rate) * self.average + self.rate * checked_policy(layout, policy)
        self._episode += 1

    def skip(self, episodes: int) -> None:
        """Count `episodes` that a compiled loop has played; it has updated `average` itself."""
        self._episode += episodes

    def params(self) -> dict[str, Any]:
        """Return the constructor's arguments by name."""
        return {"rate": self.rate}

    def _expect(self, episode: int) -> Layout:
        """The layout, if `episode` is the one that comes next."""
        if self._layout is None:
            raise InvalidInput("the adversary has not been started; call start(layout) first")
        if episode != self._episode:
            raise InvalidInput(f"episode {episode} is out of turn; the adversary expects episode {self._episode}")
        return self._layout

    def __repr__(self) -> str:
        return f"Pursuit(rate={self.rate!r})"


class CheckedAdaptive:
    """An adaptive adversary of your own whose losses are checked; `hr.losses.checked` makes one.

    Each loss is copied before it is used, so the adversary cannot change it afterwards.

    Args:
        adversary: An object with `start`, `loss` and `observe`.

    Raises:
        InvalidInput: If a method is missing.

    Examples:
        >>> import hedgerow as hr
        >>> losses = hr.losses.checked(hr.losses.Pursuit(rate=0.5))
        >>> losses.start(hr.Layout((1, 1), num_actions=2))
        >>> losses, losses.loss(0).tolist()
        (checked(Pursuit(rate=0.5)), [0.5, 0.5])
    """

    def __init__(self, adversary: AdaptiveLosses) -> None:
        if not isinstance(adversary, AdaptiveLosses):
            raise InvalidInput(
                f"an adaptive adversary needs start, loss and observe; {type(adversary).__name__} does not"
            )
        self.adversary = adversary
        self._layout: Layout | None = None

    def start(self, layout: Layout) -> None:
        """Start the adversary on `layout`."""
        self._layout = layout
        self.adversary.start(layout)

    def loss(self, episode: int) -> FloatArray:
        """Ask for the loss (num_rows,) of `episode`; `InvalidInput` if an entry is not in [0, 1]."""
        number = whole_number("the episode", episode, 0)
        if self._layout is None:
            raise InvalidInput("the adversary has not been started; call start(layout) first")
        return checked_episode(self._layout, number, self.adversary.loss(number))

    def observe(self, episode: int, policy: FloatArray, trajectory: IntArray) -> None:
        """Show the adversary the `policy` and the `trajectory` of `episode`."""
        self.adversary.observe(episode, policy, trajectory)

    def __repr__(self) -> str:
        return f"checked({self.adversary!r})"


def checked_episode(layout: Layout, episode: int, loss: Any) -> FloatArray:
    """`loss` (num_rows,) with entries in [0, 1], or an error that names the episode and the place."""
    what = f"the loss of episode {episode}"
    array = float_array(what, loss, (layout.num_rows,), layout.describe_row)
    return within(what, array, 0.0, 1.0, layout.describe_row)
