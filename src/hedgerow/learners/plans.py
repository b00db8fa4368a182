"""Plans that know whose they are: the number of the episode, and a key of the learner that made them.

An outcome may come late, twice, or to the wrong learner. `observe(episode, plan)` therefore says which plan was played,
and is refused unless that plan is open. Whether it is, is decided by what the plan says and not by which object it is,
so a plan of before a restart fits the learner that was loaded:

    key        a hash of class, view, episodes, delta and seed: learners that are to be told apart need their own seeds
    number     smaller than that of the open plan: it has ended; larger: it was never made
    content    branch, policy and notes: two copies of one learner that went different ways have different plans
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hedgerow.checks import short_repr, type_name
from hedgerow.errors import HedgerowError, InvalidInput
from hedgerow.learners.api import Plan
from hedgerow.model.actions import Actions
from hedgerow.model.episode import Episode
from hedgerow.model.view import View, view_arrays, view_meta

OWN, BASELINE = "own", "baseline"


@dataclass(frozen=True, eq=False, repr=False)
class NumberedPlan(Plan):
    """A plan of one of hedgerow's learners, with the number of its episode and the learner that it belongs to.

    Examples:
        >>> import hedgerow as hr
        >>> view = hr.View.of([["home"]], ["wait", "go"], thresholds={"delay": 0.5})
        >>> plan = hr.field.Uniform(view, episodes=10).plan()
        >>> plan.episode, plan.branch
        (0, 'own')
    """

    episode: int = field(kw_only=True)
    """The number of the episode, counted from 0."""
    branch: str = field(kw_only=True)
    """Whose policy is played: "own", or "baseline" if the random choice of the episode fell on the safe policy."""
    learner_key: str = field(kw_only=True)
    """Tells learners apart by class, view, number of episodes, delta and seed."""


def learner_key(learner: Any) -> str:
    """The key of a learner: equal for its copies, and for what is loaded from its file."""
    view: View = learner.view
    facts = [type(learner).__name__, learner.episodes, learner.delta, learner.seed, view_meta(view)]
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    for name, array in sorted(view_arrays(view, support=True).items()):
        digest.update(f"{name} {array.dtype} {array.shape} ".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


def check_open(given: Any, current: NumberedPlan | None, key: str, episode: int) -> None:
    """Refuse a plan that is not the open one of a learner, whose next outcome is that of `episode`."""
    if not isinstance(given, NumberedPlan):
        raise InvalidInput(
            f"the plan is {type_name(given)}, not one of this learner's; pass what plan() returned: "
            "observe(episode, plan)"
        )
    if given.learner_key != key:
        raise InvalidInput(
            f"the plan of episode {given.episode} was made by another learner (its key is {given.learner_key}, that of "
            f"this one is {key}); tell the outcome to the learner that made the plan"
        )
    if given.episode < episode:
        raise InvalidInput(
            f"the plan of episode {given.episode} has ended: its outcome was learnt, or it was abandoned; nothing is "
            "learnt twice"
        )
    if current is None or given.episode > episode:
        raise InvalidInput(f"the plan of episode {given.episode} is not open here; open_plans lists those that are")
    if not _same_content(given, current):
        raise InvalidInput(
            f"the plan of episode {given.episode} is not the one that is open here: it was made by a copy of this "
            "learner that has seen other episodes"
        )


def missing_outcome(view: View, reason: Any, independent: bool, actions: Actions | None = None) -> Episode:
    """The outcome of a plan that was given up for a reason, which is declared to be independent of it or is not."""
    if not isinstance(reason, str) or not reason.strip():
        raise InvalidInput(f"abandon(plan, reason) needs the reason in words, not {short_repr(reason)}")
    return Episode.missing(view, independent=reason if independent else None, actions=actions)


def tell_failure(learner: Any, plan: Plan, seen: Episode | None, error: BaseException) -> None:
    """Tell a learner what was seen before `error` ended the episode of a plan; what it refuses, the error says."""
    abandon = getattr(learner, "abandon", None)
    try:
        if seen is not None:
            learner.observe(seen)
        elif callable(abandon):
            abandon(plan, f"the environment raised {type(error).__name__} before a step was over")
    except HedgerowError as refused:
        error.add_note(f"and the learner refuses what was seen of the episode: {refused}")


def _same_content(given: NumberedPlan, current: NumberedPlan) -> bool:
    return (
        given.branch == current.branch
        and dict(given.notes) == dict(current.notes)
        and np.array_equal(given.policy.probabilities, current.policy.probabilities)
    )
