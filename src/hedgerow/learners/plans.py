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
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.random import PCG64, Generator, SeedSequence

from hedgerow.checks import FloatArray, short_repr, type_name
from hedgerow.errors import HedgerowError, InvalidInput
from hedgerow.learners.api import Plan
from hedgerow.learners.kernels import BaselineArrays
from hedgerow.model.episode import Episode
from hedgerow.model.layout import Layout
from hedgerow.model.policy import Actions, Mixture, Policy, UniformMixture
from hedgerow.model.view import View, view_arrays, view_meta

OWN, BASELINE = "own", "baseline"
ACTIONS = 1
"""The key of the streams of drawn actions, beside the coin, which has none"""


@dataclass(frozen=True, eq=False, repr=False)
class NumberedPlan(Plan):
    """A plan of one of hedgerow's learners: for which of its episodes, and the numbers it rests on.

    Examples:
        >>> import hedgerow as hr
        >>> view = hr.View.of([["home"]], ["wait", "go"], thresholds={"delay": 0.5})
        >>> plan = hr.SVOPS(view, episodes=1000, delta=0.01).plan()
        >>> plan.episode, plan.branch, plan.mixing_weight
        (0, 'own', 0.0)
    """

    episode: int = field(kw_only=True)
    """The number of the episode, counted from 0."""
    branch: str = field(kw_only=True)
    """Whose policy is played: "own", or "baseline" if the random choice of the episode fell on the safe policy."""
    learner_key: str = field(kw_only=True)
    """Tells learners apart by class, view, number of episodes, delta and seed."""
    view: View = field(kw_only=True)
    """What the learner knows of the world, with the thresholds and their names."""
    seed: int = field(kw_only=True)
    """The seed of the learner's random choices."""
    cost_bounds: FloatArray | None = field(kw_only=True, default=None)
    """(m,): upper bounds of the expected costs of the mixture, valid while the confidence sets hold the truth; None for
    learners that do not compute them."""

    @cached_property
    def actions(self) -> Actions:
        """The actions of this episode, drawn beforehand from `policy`, one for each state.

        Play them or draw from `policy` on the way: their law is the same. If they are followed, say so by
        `Episode(..., actions=plan.actions)`. Then, if the episode is aborted, it is known what it would have done, and
        the confidence sets need less room for it.
        """
        return drawn_actions(self.view.layout, self.policy.probabilities, self.seed, self.episode)

    @property
    def mixing_weight(self) -> float:
        """The probability lambda of the baseline before the random choice; 0 for learners without one."""
        return self.notes.get("mixing_weight", 0.0)

    def __repr__(self) -> str:
        from hedgerow.display import text

        numbers = f"mixing_weight={self.mixing_weight:.4g}"
        if self.cost_bounds is not None:
            numbers += f", cost_bounds={text.numbers(self.cost_bounds)}"
        summary = f"episode {self.episode}, {self.branch}, {numbers}"
        return text.line(type(self).__name__, summary, self.policy.in_words(text.LONGEST - len(summary) - 16))


class PlanMaker:
    """Makes the plans of a learner as long as its baselines stay the same: what is known of these is kept."""

    def __init__(self, view: View, baselines: BaselineArrays, seed: int, learner_key: str) -> None:
        layout, policies = view.layout, baselines.policies
        self.baselines, self._layout = baselines, layout
        self._common = {"view": view, "seed": seed, "learner_key": learner_key}
        self._single = Policy.trusted(layout, policies[0]) if len(policies) == 1 else None
        self._mixture: Policy | Mixture | None = self._single
        if len(policies) > 1:
            self._mixture = UniformMixture.of_table(layout, policies)

    def plan(
        self,
        episode: int,
        own: FloatArray,
        mixing_weight: float,
        branch: int,
        notes: Mapping[str, float],
        cost_bounds: FloatArray | None = None,
    ) -> NumberedPlan:
        """The plan of an episode whose coin fell on `branch`: 0 for the policy `own`, j + 1 for the j-th baseline."""
        mine = Policy.trusted(self._layout, own)
        mixture: Policy | Mixture = mine
        if self._mixture is not None:
            mixture = Mixture.trusted((mixing_weight, self._mixture), (1.0 - mixing_weight, mine))
        plan = NumberedPlan.__new__(NumberedPlan)  # everything is known to be sound
        plan.__dict__.update(
            mixture=mixture,
            policy=mine if branch == 0 else self._chosen(branch - 1),
            notes=MappingProxyType(notes),
            episode=episode,
            branch=BASELINE if branch else OWN,
            cost_bounds=cost_bounds,
            **self._common,
        )
        return plan

    def _chosen(self, j: int) -> Policy:
        return self._single or Policy.trusted(self._layout, self.baselines.policies[j])


def drawn_actions(layout: Layout, policy: FloatArray, seed: int, episode: int) -> Actions:
    """The actions of an episode that plays `policy` (num_rows,), drawn beforehand; each episode has its own stream."""
    return Actions.drawn(layout, policy, Generator(PCG64(SeedSequence(seed, spawn_key=(ACTIONS, episode)))))


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
