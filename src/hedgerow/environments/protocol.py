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
    """Something to play policies in."""

    def view(self) -> View:
        """What a learner may know of it."""

    def play(self, policy: Policy, rng: Generator) -> Episode:
        """Play `policy` to the end of an episode; all chance that is not the environment's own comes from `rng`."""
