"""Check the arguments of `simulate`: worlds, adversaries and learners of your own, and arguments that are mixed up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hedgerow.adversaries.adaptive import Pursuit
from hedgerow.adversaries.loss_blocks import ObliviousLosses
from hedgerow.adversaries.losses import Fixed, checked
from hedgerow.checks import kind_of, unmasked
from hedgerow.environments.protocol import Environment
from hedgerow.errors import InvalidInput
from hedgerow.learners.ownership import in_turn
from hedgerow.learners.protocol import Learner
from hedgerow.learners.statistics import Statistics
from hedgerow.model.cmdp import CMDP
from hedgerow.model.identity import same_layout
from hedgerow.model.occupancy import checked_loss
from hedgerow.model.view import View


def environment_of(world: Any) -> CMDP | Environment:
    """The CMDP of a world, or an environment of the user's own."""
    for found in (world, getattr(world, "cmdp", None)):
        if isinstance(found, CMDP):
            return found
    if isinstance(world, type) or not isinstance(world, Environment):
        raise _misplaced(
            "first", "a world: a CMDP, an entry of the catalogue, or what has view() and play()", world, ""
        )
    return world


def learner_of(learner: Any) -> Learner:
    """`learner`, if it can plan and observe."""
    if isinstance(learner, type) or not isinstance(learner, Learner):
        lacks = [name for name in ("view", "plan", "observe") if not hasattr(learner, name)]
        advice = "" if isinstance(learner, type) or len(lacks) == 3 else f"; it has no {' and no '.join(lacks)}"
        raise _misplaced("third", "a learner: what has view, plan() and observe(episode)", learner, advice)
    return learner


def limit_of(learner: Learner) -> int | None:
    """The number of episodes that a learner was made for: its own, or that of the `Statistics` that it keeps."""
    own = getattr(learner, "episodes", None)
    kept = [value.episodes for value in getattr(learner, "__dict__", {}).values() if isinstance(value, Statistics)]
    limits = [limit for limit in (own, *kept) if limit is not None]
    return min(limits, default=None)


def adversary_of(losses: Any, world: Any) -> Any:
    """An adversary whose every loss is in [0, 1]; None stands for the world's own loss."""
    if losses is None:
        losses = getattr(world, "loss", None)
        if losses is None:
            raise _misplaced("second", "the losses, an adversary of hedgerow.losses or an array", None, "")
    if isinstance(losses, type | CMDP | View | Learner) or isinstance(getattr(losses, "cmdp", None), CMDP):
        inside = "; pass its own loss, .loss" if hasattr(losses, "loss") and hasattr(losses, "cmdp") else ""
        raise _misplaced("second", "the losses, an adversary of hedgerow.losses or an array", losses, inside)
    if isinstance(losses, ObliviousLosses | Pursuit):
        return losses
    if isinstance(losses, np.ndarray | list | tuple):
        return Fixed(checked_loss(environment_of(world).view().layout, unmasked("the loss", losses)))
    return checked(losses)


def check_match(view: View, learner: Learner) -> None:
    """Refuse a learner that was built for another world."""
    own = learner.view
    if not isinstance(own, View):
        raise InvalidInput(f"the view of a learner is what cmdp.view() returns, not {kind_of(own)}")
    named = same_layout(own.layout, view.layout) and own.constraint_names == view.constraint_names
    if not named or not np.array_equal(own.thresholds, view.thresholds):
        raise InvalidInput("the learner was built for another world: build it on the view() of the one to simulate")


def _misplaced(place: str, expected: str, given: object, advice: str) -> InvalidInput:
    if isinstance(given, type):
        advice = f"; make an object of it, {given.__name__}(...)"
    order = "the order is simulate(world, losses, learner)"
    return InvalidInput(f"the {place} argument of a simulation is {expected}, not {kind_of(given)}{advice}; {order}")


def own_turn(learner: Any, function: Callable[[], Any]) -> Any:
    """Call `function` while holding the lock of the learner, if it has one.

    Between episodes the learner is at rest, and an adversary may save it.
    """
    if not hasattr(learner, "turn"):
        return function()
    return in_turn("simulate", rests=True)(lambda _: function())(learner)
