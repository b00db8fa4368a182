"""The base of all learners that ship with hedgerow: plan, play, observe.

    plan = learner.plan()                          # the policy of the next episode; it has to be played to its end
    learner.observe(episode)                       # what happened: an `Episode`, or its pieces (path, losses, costs)

A call that is refused changes nothing. One call at a time: while one uses a learner, a second one from another thread
is refused with `BusyError` (`locking.py`). Single numbers such as `episode` can be read at any time.

A family says by `_begin` how an episode begins, by `_end` what is learnt from its outcome, by `_complete` what a slow
solver has to finish, and by `_open_plan` which plan waits for its outcome.
"""

from __future__ import annotations

import inspect
import json
import os
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Self

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import ArrayLike, NDArray

from hedgerow.checks import FloatArray, frozen, num_episodes, positive_share, seed_number
from hedgerow.confidence.premises import PremiseRule, Premises
from hedgerow.errors import InvalidInput
from hedgerow.learners.api import Inputs, Plan, SafePolicy, checked_view, in_own_terms
from hedgerow.learners.files import checked_coin, pack
from hedgerow.learners.guarantees import Ledger
from hedgerow.learners.kernels import BaselineArrays
from hedgerow.learners.locking import Turn, exclusive, exclusive_as
from hedgerow.learners.plans import NumberedPlan, PlanMaker, check_open, drawn_actions, learner_key, missing_outcome
from hedgerow.learners.premises import announce, as_refuted, checked_response
from hedgerow.model.episode import Episode, known_costs, refuse_impossible
from hedgerow.model.policy import Actions
from hedgerow.model.random_streams import seeded
from hedgerow.model.view import UNFIT, View
from hedgerow.storage import datafile

if TYPE_CHECKING:
    from hedgerow.learners.api import RunContext, Watcher

Feedback = Literal["bandit", "full"]
ARGUMENTS = {
    "view": "What the learner may know of the world: `world.view()`.",
    "episodes": "The number T of episodes that it will play.",
    "delta": "How unsure the promises may be, in (0, 1).",
    "seed": "Seed of the learner's random choices, a whole number of at least 0.",
    "baseline": (
        "A policy that is safe, as a `Policy`, an array (num_rows,) or a table (states, actions); or an object that "
        "has `.policy` and `.costs`, such as `SafePolicy`, `world.baseline` or `hr.offline.slater(world)`."
    ),
    "baseline_costs": (
        "(m,) upper bounds of the expected costs of the baseline, or a mapping {constraint name: bound}; None takes "
        "`baseline.costs`."
    ),
    "on_refuted": (
        'What to do when its observations refute what it was told: "stay" warns and leaves every further episode to '
        'the baseline, "warn" warns and goes on, "raise" raises a `PremiseError` and then stays.'
    ),
}
"""What the arguments mean that most learners have: a class documents the others, and those that mean more to it."""


class ProgressNumbers(Protocol):
    """How far a learner is, as kernels count it: see `kernels.Progress`."""

    episode: int
    pending: int
    branch: int


class BaseLearner(ABC):
    """The base of all learners that ship with hedgerow: plan, play, observe.

    Ask for a plan, play its policy to the end of the episode, and say what happened with `observe`. A call that is
    refused changes nothing. A learner serves one call at a time; a second one from another thread raises `BusyError`.
    """

    kind: ClassVar[str]
    """The name by which experiments and files call the learner, such as "s-ops"."""
    title: ClassVar[str]
    """Its name in its source, such as "S-OPS"."""
    source: ClassVar[str]
    """Who described it, and when."""
    inputs: ClassVar[Inputs] = Inputs()
    """What it is told before its first episode."""
    feedback: Feedback = "bandit"
    """Whether an episode shows the pairs on its way, or all of them; some learners can do with either."""

    episodes: int | None
    """The number T of episodes that it was built for; None if that is not known."""
    progress: ProgressNumbers
    """How far it is."""
    own_policy: FloatArray
    """(num_rows,): its policy of the next episode, as the array that kernels change."""
    baselines: BaselineArrays
    """The policies that are known to be safe, if it has any."""
    premise_rule: PremiseRule
    premises: Premises
    """What tests the things that the learner was told."""

    argument_texts: ClassVar[Mapping[str, str]] = ARGUMENTS
    """What the arguments mean that a class does not document."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        doc = cls.__dict__.get("__doc__") or ""
        if "Args:\n" in doc:
            cls.__doc__ = _completed(doc, inspect.signature(cls.__init__).parameters, cls.argument_texts)

    def __init__(self, view: View, episodes: int | None, delta: float, seed: int, on_refuted: str) -> None:
        self.turn: Turn = {}
        self.view = checked_view(view)
        self.layout = self.view.layout
        self.episodes = self._checked_horizon(episodes)
        self.delta = positive_share("delta", delta, below_one=True)
        self.seed = seed_number(seed)
        self.coin = seeded(SeedSequence(self.seed))
        self.on_refuted = checked_response(on_refuted)
        self._key = learner_key(self)
        self._plans: PlanMaker | None = None

    def _checked_horizon(self, episodes: int | None) -> int | None:
        return num_episodes(episodes)

    # The loop --------------------------------------------------------------------------------------------------------

    @exclusive
    def plan(self) -> NumberedPlan:
        """Choose the policy of the next episode. Each plan must be followed by one `observe`.

        Returns:
            The plan: `plan.policy` is to be played to the end of the episode.

        Raises:
            InvalidInput: If an episode is planned already, or if all episodes have been played.
        """
        if self.progress.pending:
            raise InvalidInput(f"episode {self.episode} is planned already; call observe with what happened in it")
        self.check_horizon(1)
        self._begin()
        return self._open_plan()

    @abstractmethod
    def _begin(self) -> None:
        """Draw which policy plays the next episode: `progress.branch`, and `progress.pending` = 1."""

    @property
    @exclusive
    def open_plans(self) -> tuple[NumberedPlan, ...]:
        """The plans that wait for their outcome, at most one.

        A learner that was loaded after a crash still has it.
        """
        return (self._open_plan(),) if self.progress.pending else ()

    @abstractmethod
    def _open_plan(self) -> NumberedPlan:
        """The plan of the present episode, made by `_planned`."""

    def _planned(
        self, mixing_weight: float, notes: dict[str, float], cost_bounds: FloatArray | None = None
    ) -> NumberedPlan:
        plans = self._plans
        if plans is None or plans.baselines is not self.baselines:  # the first one, or that of a new phase
            plans = self._plans = PlanMaker(self.view, self.baselines, self.seed, self._key)
        return plans.plan(self.episode, self.own_policy, mixing_weight, self.progress.branch, notes, cost_bounds)

    def _check_open(self, plan: Any) -> None:
        check_open(plan, self._open_plan() if self.progress.pending else None, self._key, self.episode)

    @exclusive
    def observe(
        self,
        episode: Episode | Any,
        losses: ArrayLike | Plan | None = None,
        costs: ArrayLike | None = None,
        *,
        plan: Plan | None = None,
    ) -> None:
        """Learn from an episode that was planned: `observe(episode)`, `observe(episode, plan)`.

        Say which plan was played wherever an outcome may be delivered late, twice, or to the wrong learner: a plan that
        has ended, or that another learner made, is refused. Without it the episode is that of the only open plan.

        From an episode that was aborted, or in which somebody else chose an action, only the confidence sets learn;
        its losses say nothing about the plan and are left out. They make room for what is unknown of it.

        Args:
            episode: An `Episode`; or the path alone: rows (L,), or pairs (state, action) by number or label.
            losses: (L,) losses in [0, 1], if `episode` is a path; else the plan may stand here.
            costs: (L, m) costs in [0, 1], or (L,) for one constraint, if `episode` is a path.
            plan: The plan that was played.

        Raises:
            InvalidInput: If no episode is planned, if the plan is not open, if the path is impossible, for some
                learners also if it has probability 0 under the plan, if what the view knows rules it out, if a number
                is wrong, or if the learner needs full feedback and the episode has none.
            PremiseError: If the episode, which has been learnt, refutes something that the learner was told, and
                on_refuted="raise".

        Warns:
            PremiseWarning: If the episode refutes something that the learner was told.
        """
        if isinstance(losses, Plan):
            losses, plan = None, losses
        if plan is not None:
            self._check_open(plan)
        if not self.progress.pending:
            raise InvalidInput("no episode is planned; call plan, play its policy, then observe")
        if isinstance(episode, Episode):
            if losses is not None or costs is not None:
                raise InvalidInput("an Episode holds its losses and costs already; pass it alone")
            self._learn_from(episode)
        elif losses is None:
            raise InvalidInput("the losses along the trajectory are missing: observe(path, losses, costs)")
        elif not self._end_path(episode, losses, costs):
            # An Episode says what is wrong, or reads what is put otherwise.
            self._learn_from(Episode(self.view, episode, losses, costs))
        self._complete()
        self.announce()

    def _end_path(self, rows: Any, losses: Any, costs: Any) -> bool:
        """Learn from a path of plain numbers, if there is a fast way; False if it has to become an `Episode`."""
        return False

    def _learn_from(self, episode: Episode) -> None:
        episode = in_own_terms(self.view, episode)
        if self.feedback == "full" and (episode.all_losses is None or episode.all_costs is None):
            raise InvalidInput(
                f"{self.title} needs full feedback: Episode(..., all_losses=(rows,), all_costs=(rows, m))"
            )
        refuse_impossible(self.view, episode.rows, episode.triples, known_costs(episode))
        self._check_actions(episode)
        self._end(episode)

    def _check_actions(self, episode: Episode) -> None:
        """Refuse actions that are not those of the plan: what they would have done says nothing about it."""
        followed = None if episode.irregular is None else episode.irregular.actions
        if followed is not None and not np.array_equal(followed.numbers, self.drawn_actions().numbers):
            raise InvalidInput(
                "the actions of the episode are not those of the plan; pass the plan.actions that were followed, or "
                "none"
            )

    @abstractmethod
    def _end(self, episode: Episode) -> None:
        """Learn from the outcome of the open plan, whole or not; the learner is then at the next episode."""

    @exclusive
    def abandon(self, plan: Plan, reason: str, *, independent: bool = False, actions: Actions | None = None) -> None:
        """End a plan whose outcome will not be known: an episode that was lost, or never carried out.

        What its policy could have visited is unknown from here on, and confidence sets make room for it, since giving
        up the episode may have had to do with its costs. Only a reason that has nothing to do with costs or moves
        leaves nothing unknown; the promises then rest on that.

        Args:
            plan: The open plan.
            reason: Why, in words. The ledger names it if it is declared to be independent; else nothing rests on it.
            independent: Whether the reason is declared to have nothing to do with what the episode cost, or would have.
                "It was never carried out" is not enough.
            actions: `plan.actions`, if they were followed, or would have been: then only the pairs that were drawn
                become unknown.

        Raises:
            InvalidInput: If the plan is not open, or if the reason has no words.
        """
        self._check_open(plan)
        outcome = missing_outcome(self.view, reason, independent, actions)
        self._check_actions(outcome)
        self._end(outcome)
        self._complete()
        self.announce()

    @exclusive
    def complete(self) -> None:
        """Finish what compiled code left open, such as a program that needs the slow solver.

        If that is interrupted, the next plan begins with it. An episode is never learnt by halves.
        """
        self._complete()

    def _complete(self) -> None:
        return

    @property
    def unfinished(self) -> bool:
        """Whether the last episode still has to be completed."""
        return False

    def check_horizon(self, more: int) -> None:
        """Refuse to play `more` episodes if that is beyond the number that the learner was built for."""
        if self.episodes is not None and self.episode + more > self.episodes:
            raise InvalidInput(
                f"this learner was built for {self.episodes} episodes and has played {self.episode}; build one for more"
                f"{self._without_horizon}"
            )

    _without_horizon: ClassVar[str] = ""
    """What the refusal of further episodes says besides, where a learner can do without their number"""

    def drawn_actions(self) -> Actions:
        """Return the actions of the plan that waits for its `observe`, drawn beforehand: `plan.actions`."""
        return drawn_actions(self.layout, self.played_array(), self.seed, self.episode)

    # What it knows ---------------------------------------------------------------------------------------------------

    @property
    def episode(self) -> int:
        """The number of episodes observed so far."""
        return self.progress.episode

    @property
    @exclusive
    def policy(self) -> FloatArray:
        """(num_rows,): the learner's policy for the next episode."""
        return frozen(self.own_policy)

    @property
    @exclusive
    def played(self) -> FloatArray:
        """(num_rows,): the policy of the last plan."""
        return frozen(self.played_array())

    def played_array(self) -> FloatArray:
        """Return the policy of the last plan as the array that compiled code uses; do not write to it."""
        branch = self.progress.branch
        return self.baselines.policies[branch - 1] if branch else self.own_policy

    def announce(self) -> None:
        """Say, once, that something that the learner was told has been refuted; `observe` calls it."""
        mixes = len(self.baselines.policies) > 0
        announce(self.view, self.premise_rule, self.premises, self.on_refuted, mixes=mixes)

    def as_seen(self, ledger: Ledger) -> Ledger:
        """Return `ledger` as it stands now: void where it rests on something that was refuted."""
        return as_refuted(ledger, self.view, self.premise_rule, self.premises)

    @abstractmethod
    def guarantees(self) -> Ledger:
        """Return what is promised under the present switches, how surely, and by which theorem."""

    @abstractmethod
    def watch(self, stage: RunContext, *, audit: bool = False) -> Watcher:
        """Make the object that watches the learner's proofs during a simulation.

        Args:
            stage: Where the simulation keeps its scores.
            audit: Whether to watch more, which is slower.
        """

    def keeps_to(self, family: type) -> bool:
        """Return whether it plans and observes as `family` does, so that its compiled loop does the same."""
        steps, own = ("plan", "observe", "_begin", "_end", "_learn"), type(self)
        return all(getattr(own, step, None) is getattr(family, step, None) for step in steps)

    # Files -----------------------------------------------------------------------------------------------------------

    @exclusive
    def state(self) -> dict[str, NDArray[Any]]:
        """Return arrays by name: all that is needed to continue; `restored` takes them back."""
        arrays = {"arguments": _text(self._arguments()), "coin": _text(self.coin.state), **self._arrays()}
        if self.inputs.baseline:
            arrays |= {"baseline": self.baselines.policies[0], "baseline_costs": self.baselines.costs}
        return {name: array.copy() for name, array in arrays.items()}

    @abstractmethod
    def _arguments(self) -> dict[str, Any]:
        """The arguments of the constructor by name, but the baseline: what JSON can hold."""

    @abstractmethod
    def _arrays(self) -> dict[str, NDArray[Any]]:
        """What changes while it learns, by name, and does not follow from the rest."""

    @classmethod
    def restored(cls, view: View, state: Mapping[str, NDArray[Any]]) -> Self:
        """Return the learner on `view` whose `state()` was `state`.

        Raises:
            InvalidInput: If the arrays cannot be such a state.
        """
        given = {name: np.asarray(array) for name, array in dict(state).items()}
        try:
            arguments, coin = json.loads(str(given.pop("arguments"))), json.loads(str(given.pop("coin")))
            learner = cls._rebuilt(view, dict(arguments), given)
            if _text(learner._arguments()) != _text(arguments):
                raise InvalidInput("its arguments must mean what they say")
            learner.coin.go_to(checked_coin(coin, learner.seed))
            learner._restore(given)
        except InvalidInput as error:
            raise InvalidInput(f"this is no state of {cls.title}: {error}") from error
        except KeyError as error:
            raise InvalidInput(f"this is no state of {cls.title}: the entry {error} is missing") from error
        except UNFIT as error:
            raise InvalidInput(f"this is no state of {cls.title}: {error or 'there is no memory for it'}") from error
        return learner

    @classmethod
    def _rebuilt(cls, view: View, arguments: dict[str, Any], state: dict[str, NDArray[Any]]) -> Self:
        """A fresh learner with these arguments; takes those of them that are arrays out of `state`."""
        if cls.inputs.baseline:
            policy, costs = state.pop("baseline"), state.pop("baseline_costs")
            if policy.dtype != np.float64 or costs.dtype != np.float64:
                raise InvalidInput("baseline and baseline_costs must be float64")
            arguments["baseline"] = SafePolicy(policy, costs)
        return cls(view, **arguments)

    @abstractmethod
    def _restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Take over the arrays of a state, which has been made for the same arguments, if they can be right."""

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the learner to one data file, atomically; `hr.load` reads it.

        A learner may be saved between any two calls, a planned episode included.

        Args:
            path: The file; `.npz` is the usual ending.
            overwrite: Whether an existing file may be replaced.
        """
        datafile.save(path, pack(self, _state_to_save(self)), overwrite=overwrite)

    def __copy__(self) -> Self:
        """An equal learner of its own, as from a file; a learner shares nothing."""
        return type(self).restored(self.view, _state_to_copy(self))

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.__copy__()

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickle holds the content of a data file, and reading it checks that content as `load` does."""
        return type(self).restored, (self.view, _state_to_copy(self))

    # In words --------------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        from hedgerow.display import text

        limit = "unknown" if self.episodes is None else str(self.episodes)
        name, value = self._choice
        parts = f"episode {self.episode} of {limit}", f"{name}={value!r}"
        return text.line(type(self).__name__, repr(self.layout), *parts)

    def _repr_html_(self) -> str:
        from hedgerow.display.views import learner_html

        return learner_html(self, " ".join(self._choice))

    @property
    @abstractmethod
    def _choice(self) -> tuple[str, str]:
        """The choice that says most about how it learns: name and value."""


def _completed(doc: str, parameters: Iterable[str], texts: Mapping[str, str]) -> str:
    """A docstring whose section `Args:` also has the parameters that only `texts` explain, in their order."""
    lines = inspect.cleandoc(doc).splitlines()
    first = lines.index("Args:") + 1
    last = next((k for k in range(first, len(lines)) if not lines[k]), len(lines))
    entries: dict[str, list[str]] = {}
    for line in lines[first:last]:
        if line[4] != " ":
            name = line.strip().partition(":")[0]
        entries.setdefault(name, []).append(line)
    for name in parameters:
        if name in entries:
            entries[name] = entries.pop(name)  # to its place
        elif name in texts:
            entries[name] = textwrap.wrap(
                f"{name}: {texts[name]}", 112, initial_indent=" " * 4, subsequent_indent=" " * 8
            )
    stars = [name for name in entries if name.startswith("*")]
    ordered = [line for name in (*(name for name in entries if name not in stars), *stars) for line in entries[name]]
    return "\n".join((*lines[:first], *ordered, *lines[last:]))


def _text(content: Any) -> NDArray[np.str_]:
    return np.array(json.dumps(content, sort_keys=True))


@exclusive_as("save", rests=True)
def _state_to_save(learner: BaseLearner) -> dict[str, NDArray[Any]]:
    return learner.state()


@exclusive_as("copy", rests=True)
def _state_to_copy(learner: BaseLearner) -> dict[str, NDArray[Any]]:
    return learner.state()
