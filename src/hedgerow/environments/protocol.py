"""The protocol of environments: anything that can play a policy for an episode and report what happened.

A CMDP is one. It also knows the truth, so runs in it are scored exactly. Any other environment (a Gymnasium
environment, a simulator, a plant) gives only samples.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from numpy.random import Generator

from hedgerow.model.episode import Episode
from hedgerow.model.policy import Policy
from hedgerow.model.view import View


@runtime_checkable
class Environment(Protocol):
    """Something to play policies in, such as a simulator of your own or a real plant.

    Any object with these two methods will do. A `CMDP` is one as well, and knows the truth, so that runs in it are
    scored exactly. In any other environment there are only samples.

    Examples:
        >>> import hedgerow as hr
        >>> class Corridor:
        ...     def view(self):
        ...         return hr.View.of([["home"]], ["wait", "go"], thresholds={"delay": 0.5})
        ...
        ...     def play(self, policy, rng):
        ...         action = policy.draw("home", rng)
        ...         return hr.Episode(self.view(), [("home", action)], losses=[0.5 * action], costs=[1.0 - action])
        >>> isinstance(Corridor(), hr.Environment)
        True
    """

    def view(self) -> View:
        """Return what a learner may know of the environment."""

    def play(self, policy: Policy, rng: Generator) -> Episode:
        """Play one episode.

        Args:
            policy: The policy to play, to the end of the episode.
            rng: The generator for every chance that is not the environment's own, such as the choice of actions.

        Returns:
            What happened.
        """
