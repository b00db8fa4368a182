"""What a learner is: whoever can say, before its coin, which mixture of Markov policies it plays.

    plan = learner.plan()            # the mixture that is scored, and the policy that the coin chose
    learner.observe(episode)         # what happened when that policy was played to the end

That alone determines occupancy, loss, costs, violation, regret and safety, exactly. Everything else is an *ability*, a
small protocol that is asked for with `isinstance`:

    Promising    guarantees() -> Ledger                what is promised, how surely, by which theorem
    Resumable    state(), restored(view, state)        files, and learners in the middle of a run
    Limited      episodes                              after how many episodes it may be asked no more
    Watched      watch(...)                            proofs that can be watched from outside, see `watching.py`
    Compiled     run_block(...)                        many episodes in one call

A learner that declares `feedback = "full"` finds the losses and costs of *all* pairs in `episode.all_losses` and
`episode.all_costs`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.checks import FloatArray, kind_of
from hedgerow.errors import InvalidInput
from hedgerow.model.episode import Episode
from hedgerow.model.policy import Mixture, Policy
from hedgerow.model.view import View

if TYPE_CHECKING:
    from hedgerow.learners.ledger import Ledger

COMMON_COLUMNS = frozenset(
    ("episode", "loss", "regret", "regret_so_far", "unsafe", "cost", "violation", "worst", "excess", "observed_cost")
)
"""What every run has, the last four of each constraint: notes are called otherwise."""


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """What to play in one episode, from its first step to its last.

    `Plan(policy)` is enough for a learner that plays a policy; `Plan(mixture, mixture.draw(rng))` for one with a coin.
    """

    mixture: Policy | Mixture
    """Before the coin: this is scored"""
    policy: Policy = None  # type: ignore[assignment]  # filled in below where the mixture is a policy
    """What the coin chose: play it to the end of the episode"""
    notes: Mapping[str, float] = field(default_factory=dict)
    """What else is worth keeping of this episode, by name: `mixing_weight`, `bound_0`, ... Columns of the results."""

    def __post_init__(self) -> None:
        if not isinstance(self.mixture, Policy | Mixture):
            raise InvalidInput(f"a plan is made of a Policy or a Mixture, not of {kind_of(self.mixture)}")
        if self.policy is None:
            if isinstance(self.mixture, Mixture):
                raise InvalidInput("a plan with a mixture also needs the policy that its coin chose: mixture.draw(rng)")
            object.__setattr__(self, "policy", self.mixture)
        if not isinstance(self.policy, Policy):
            raise InvalidInput(f"the policy of a plan is a Policy, not {kind_of(self.policy)}")
        if self.policy.layout != self.mixture.layout:
            raise InvalidInput("the mixture and the policy of a plan belong to different layouts")
        object.__setattr__(self, "notes", MappingProxyType(_checked_notes(self.notes)))

    def __repr__(self) -> str:
        from hedgerow import brief

        notes = brief.listed((f"{name}={value:.6g}" for name, value in self.notes.items()), count=len(self.notes))
        return brief.line(type(self).__name__, notes, self.policy.in_words(brief.LONGEST - len(notes) - 8))

    def _repr_html_(self) -> str:
        from hedgerow.learners.notebook import plan_html

        return plan_html(self)


def _checked_notes(notes: Mapping[str, float]) -> dict[str, float]:
    checked = {}
    for name, value in dict(notes).items():
        if not isinstance(name, str) or not name.isidentifier():
            raise InvalidInput(f"a note is called by a word of letters, digits and _, not {name!r}")
        try:
            checked[name] = float(value)
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"the note {name!r} must be a number, not {value!r}") from error
    return checked


def check_note_names(notes: Mapping[str, float]) -> None:
    """Refuse notes that are called like a column that every run has."""
    for name in notes:
        if name in COMMON_COLUMNS or name.rpartition("_")[0] in COMMON_COLUMNS:
            raise InvalidInput(f"a note cannot be called {name!r}: that is a column of every run; choose another name")


@runtime_checkable
class Learner(Protocol):
    """Anybody who plans and observes, in turn."""

    view: View

    def plan(self) -> Plan:
        """What to play next. Each plan is followed by one `observe`."""

    def observe(self, episode: Episode) -> None:
        """What happened when the policy of the plan was played."""


@runtime_checkable
class Promising(Protocol):
    """A learner with guarantees."""

    def guarantees(self) -> Ledger:
        """What is promised under the present switches."""


@runtime_checkable
class Resumable(Protocol):
    """A learner that can be written down between two episodes, and go on elsewhere as if nothing had happened."""

    def state(self) -> Mapping[str, ArrayLike]:
        """Arrays and numbers by name: all that is needed to go on."""

    @classmethod
    def restored(cls, view: View, state: Mapping[str, NDArray[Any]]) -> Resumable:
        """The learner whose `state()` this was."""


@runtime_checkable
class Limited(Protocol):
    """A learner made for so many episodes; None for as many as one likes."""

    episodes: int | None


@dataclass(frozen=True, eq=False, repr=False)
class SafePolicy:
    """A policy that is known to be safe, with upper bounds of its expected costs (m,).

    Whatever has `.policy` and `.costs`, such as `hr.offline.slater(world)`, serves as well.
    """

    policy: FloatArray | Policy
    costs: FloatArray

    def __repr__(self) -> str:
        from hedgerow import brief

        policy = f"policy={type(self.policy).__name__} of {brief.counted(np.size(np.asarray(self.policy)), 'row')}"
        return brief.line("SafePolicy", policy, f"costs={brief.numbers(np.ravel(self.costs))}")


def feedback_of(learner: Any) -> str:
    """`bandit`, or `full` for learners that declare it."""
    feedback = getattr(learner, "feedback", "bandit")
    if feedback not in ("bandit", "full"):
        raise InvalidInput(f"the feedback of {type(learner).__name__} is {feedback!r}; choose 'bandit' or 'full'")
    return str(feedback)


def safe_policy(baseline: Any, costs: ArrayLike | Mapping[str, float] | None) -> tuple[Any, Any]:
    """Policy and costs (m,) of a baseline: something with `.policy` and `.costs`, or a policy and `costs` beside it."""
    if hasattr(baseline, "policy") and hasattr(baseline, "costs"):
        return baseline.policy, baseline.costs if costs is None else costs
    if costs is None:
        raise InvalidInput(
            "the costs of the baseline are missing: pass baseline_costs (m,), or baseline=hr.offline.slater(world)"
        )
    return baseline, costs
