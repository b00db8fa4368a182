"""The base of all learners that ship with hedgerow: plan, play, observe; and their lock.

    plan = learner.plan()                          # the policy of the next episode; it has to be played to its end
    learner.observe(episode)                       # what happened: an `Episode`, or its pieces (path, losses, costs)

A family says by `_begin` how an episode begins, by `_end` what is learnt from its outcome, by `_complete` what a slow
solver has to finish, and by `_open_plan` which plan waits for its outcome. A call that is refused changes nothing.

One call at a time. Compiled code works on the arrays of a learner while other threads run: two calls at once would read
torn numbers and write beyond the ends of arrays, so every operation first takes the learner's lock, its turn. No call
waits: one that finds another at work is refused (`BusyError`). A simulation holds the lock from its first episode to
its last. Between its steps the learner is at *rest*: a call of the simulating thread, such as `save` from an adversary,
then finds whole episodes and is allowed. Inside any other operation no call is allowed, not even from a signal handler
of the same thread. Single numbers such as `episode` can be read at any time.
"""

from __future__ import annotations

import inspect
import json
import os
import textwrap
import threading
from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import wraps
from threading import get_ident
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol, Self, TypeVar, cast

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import ArrayLike, NDArray

from hedgerow.checks import (
    FloatArray,
    frozen,
    num_episodes,
    positive_share,
    seed_number,
    short_repr,
    type_name,
    whole_number,
)
from hedgerow.confidence.premises import PremiseRule, Premises
from hedgerow.errors import BusyError, InvalidInput
from hedgerow.learners.api import (
    Inputs,
    NumberedPlan,
    Plan,
    PlanMaker,
    SafePolicy,
    check_open,
    drawn_actions,
    in_own_terms,
    learner_key,
    missing_outcome,
)
from hedgerow.learners.files import checked_coin, pack
from hedgerow.learners.guarantees import Ledger, Promise, announce, as_refuted, checked_response
from hedgerow.learners.kernels import BaselineArrays
from hedgerow.learners.open_plans import (
    MOST_NAMES,
    PREFIX,
    LostPlan,
    OpenPlan,
    OpenPlans,
    check_room,
    enqueue,
    fold,
    queue_up,
    resolve,
    settle,
)
from hedgerow.model.cmdp import view_of
from hedgerow.model.episode import Episode, known_costs, refuse_impossible
from hedgerow.model.policy import Actions
from hedgerow.model.random_streams import seeded
from hedgerow.model.view import UNFIT, View
from hedgerow.registry.signatures import refuse_unfit
from hedgerow.storage import datafile

if TYPE_CHECKING:
    from hedgerow.learners.watch import RunContext, Watcher


F = TypeVar("F", bound=Callable[..., Any])

NOW = 0
"""The one key of a `Turn`."""


class Work(NamedTuple):
    """One operation on a learner: its name, its thread, and whether it leaves the learner at rest meanwhile."""

    what: str
    thread: int
    rests: bool


Turn = dict[int, Work]
"""The operation that is at work on one learner: at most one entry. It belongs to that learner and is never copied."""


def exclusive_as(what: str, *, rests: bool = False) -> Callable[[F], F]:
    """Decorate a function whose first argument is a learner: it becomes the operation `what` and takes its turn."""

    def decorate(function: F) -> F:
        @wraps(function)
        def operation(learner: Any, *args: Any, **kwargs: Any) -> Any:
            turn: Turn = learner.turn
            mine, outer, refused = Work(what, get_ident(), rests), None, False
            try:
                owner = turn.setdefault(NOW, mine)  # atomic: no other thread comes between
                if owner is not mine:
                    if not owner.rests or owner.thread != mine.thread:
                        refused = True
                        raise BusyError(_in_words(owner, mine))
                    outer = owner
                    turn[NOW] = mine
                return function(learner, *args, **kwargs)
            finally:
                # No call from here on: Ctrl-C is handled before or after, never between.
                if not refused and NOW in turn and turn[NOW] is mine:
                    if outer is None:
                        del turn[NOW]
                    else:
                        turn[NOW] = outer

        return cast(F, operation)

    return decorate


def exclusive(method: F) -> F:
    """A method of a learner that takes its turn under its own name."""
    return exclusive_as(method.__name__)(method)


def _in_words(owner: Work, refused: Work) -> str:
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    where = "this thread" if owner.thread == refused.thread else f"thread {names.get(owner.thread, '?')!r}"
    return (
        f"{refused.what} is refused: {owner.what} is already using this learner in {where}; "
        "call again when it has ended, or give each thread a learner of its own, such as copy.copy(learner)"
    )


Feedback = Literal["bandit", "full"]
ARGUMENTS = {
    "view": (
        "The world, of which the learner only sees the view: a world of the catalogue, a `CMDP`, what else has a "
        "`view()`, or a `View` itself."
    ),
    "episodes": 'The number T of episodes that it will play: 100_000, 1e5 or "100k".',
    "delta": "How unsure the promises may be, in (0, 1).",
    "seed": "Seed of the learner's random choices, a whole number of at least 0.",
    "baseline": (
        "A policy that is safe, as a `Policy`, an array (num_rows,) or a table (states, actions); or an object that "
        "has `.policy` and `.costs`, such as `SafePolicy`, `world.baseline` or `hr.offline.slater(world)`. Where the "
        'learner is built on a world with a model, also a name: "slater" for its safest policy, "budget" or "own" for '
        'what the world names, "offered" for the first of "budget", "own" and half of the largest margin.'
    ),
    "baseline_costs": (
        "(m,) upper bounds of the expected costs of the baseline, or a mapping {constraint name: bound}; None takes "
        "`baseline.costs`."
    ),
    "on_refuted": (
        'What to do when its observations refute one of its inputs: "stay" warns and leaves every further episode to '
        'the baseline, "warn" warns and goes on, "raise" raises a `PremiseError` and then stays.'
    ),
}
"""What the arguments mean that most learners have: a class documents the others, and those that mean more to it."""


class ProgressNumbers(Protocol):
    """How far a learner is, as kernels count it: see `kernels.Progress`."""

    episode: int
    pending: int
    branch: int


class _LearnerType(ABCMeta):
    """A class whose calls are refused in words if an argument is missing or has another name."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().__call__(*args, **kwargs)
        except TypeError:
            texts: Mapping[str, str] = getattr(cls, "argument_texts", {})
            refuse_unfit(cls.__name__, cls, args, kwargs, texts)
            raise

    @property
    def __signature__(cls) -> inspect.Signature:
        """That of the constructor, which `inspect` would not look for behind `__call__`."""
        whole = inspect.signature(cls.__init__)  # type: ignore[misc]
        return whole.replace(parameters=list(whole.parameters.values())[1:])


class BaseLearner(metaclass=_LearnerType):
    """The base of all learners that ship with hedgerow: plan, play, observe.

    A family derives from it and says what an episode teaches; its learners document their arguments.
    """

    kind: ClassVar[str]
    """The name by which experiments and files call the learner, such as "s-ops"."""
    title: ClassVar[str]
    """Its name in its source, such as "S-OPS"."""
    source: ClassVar[str]
    """Who described it, and when."""
    inputs: ClassVar[Inputs] = Inputs()
    """What it needs to know before its first episode."""
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
    """The running tests of what it was given as known."""
    queue: OpenPlans
    """The open plans, where there are several (`open_plans.py`)."""
    opens: ClassVar[bool] = False
    """Whether several plans may be open at once; a learner of others that does not say so keeps to one."""
    no_groups: str = "only SV-OPS, S-OPS, CV-OPS and UOB-REPS count a group as one value"
    """Why its plans may not be in groups; the empty text if they may."""
    holds_open: ClassVar[tuple[str, ...]] = ()
    """The sums over episodes that it also promises with several open plans."""

    argument_texts: ClassVar[Mapping[str, str]] = ARGUMENTS
    """What the arguments mean that a class does not document."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        doc = cls.__dict__.get("__doc__") or ""
        if "Args:\n" in doc:
            given = inspect.signature(cls.__init__).parameters.values()
            names = [f"**{each.name}" if each.kind is each.VAR_KEYWORD else each.name for each in given]
            unsafe = ", or if the baseline is not safe" * cls.inputs.baseline
            cls.__doc__ = _completed(doc, names, cls.argument_texts, f"InvalidInput: If an argument is wrong{unsafe}.")

    def __init__(self, view: View, episodes: int | None, delta: float, seed: int, on_refuted: str) -> None:
        self.turn: Turn = {}
        self.view = view_of(view)
        self.layout = self.view.layout
        self.episodes = self._checked_horizon(episodes)
        self.delta = positive_share("delta", delta, below_one=True)
        self.seed = seed_number(seed)
        self.coin = seeded(SeedSequence(self.seed))
        self.on_refuted = checked_response(on_refuted)
        self._key = learner_key(self)
        self._plans: PlanMaker | None = None
        self.queue = OpenPlans()

    def _checked_horizon(self, episodes: int | None) -> int | None:
        return num_episodes(episodes)

    @exclusive
    def plan(self, *, group: str | None = None) -> NumberedPlan:
        """Choose the policy of the next episode. Each plan must be followed by one `observe`, or `abandon`.

        Args:
            group: The name of the group of plans whose costs share a cause with those of this one, such as the day of
                a fleet; see `close_group`. None for a plan whose costs are independent of those of all others.

        Returns:
            The plan: `plan.policy` is to be played to the end of the episode.

        Raises:
            InvalidInput: If `max_open` plans are open already, if all episodes have been planned, or if the group is
                closed.
        """
        fold(self)
        check_room(self, group)
        self.check_horizon(1 + max(len(self.queue.entries), self.progress.pending))
        queue_up(self)
        self._begin()
        plan = self._open_plan()
        if group is not None:
            plan = replace(plan, group=group)
        if group is not None or self.queue.entries:
            enqueue(self, plan)
        return plan

    @abstractmethod
    def _begin(self) -> None:
        """Draw which policy plays the next episode: `progress.branch`, and `progress.pending` = 1."""

    @property
    @exclusive
    def open_plans(self) -> tuple[NumberedPlan, ...]:
        """The plans that wait for their outcome, in the order in which they were made, at most `max_open`.

        A learner that was loaded after a crash still has them.
        """
        if self.queue.entries:
            return tuple(entry.plan for entry in self.queue.waiting)
        return (self._open_plan(),) if self.progress.pending else ()

    @property
    def num_open(self) -> int:
        """How many plans wait for their outcome."""
        return len(self.queue.waiting) if self.queue.entries else self.progress.pending

    @property
    def num_waiting(self) -> int:
        """How many outcomes are known and wait until those of earlier plans, or of their group, have come."""
        return len(self.queue.entries) - len(self.queue.waiting)

    @property
    def max_open(self) -> int:
        """How many plans may wait for their outcome at the same time; 1 unless it is set.

        With more than one, outcomes may come in any order, and are learnt in the order of the plans. The promises then
        rest on two assumptions more, which the ledger states (docs/open-plans.md). A learner whose confidence sets need
        the number T of episodes makes T plans at most; the others any number.
        """
        return self.queue.most

    @max_open.setter
    @exclusive
    def max_open(self, most: int) -> None:
        count = whole_number("max_open", most, 1)
        if count > 1 and not self.opens:
            raise InvalidInput(f"{self.title} keeps one open plan; max_open must be 1")
        self.queue.most = count

    @exclusive
    def close_group(self, group: str) -> None:
        """Say that a group will have no further plans, so that its outcomes can be learnt once all of them have come.

        Plans after the first one of an open group are made without its outcomes: only so they are draws of their own.
        Decide without regard to its outcomes when to close it, such as at the end of the day. Until then nothing is
        learnt from it, nor from plans that were made after its first one.

        Args:
            group: The name that was given to `plan`.

        Raises:
            InvalidInput: If no open plan has this group, or if it is closed already.
        """
        settle(self)
        if group in self.queue.closed:
            raise InvalidInput(f"the group {short_repr(group)} is closed already")
        if group is None or not self.queue.members(group):
            raise InvalidInput(f"no open plan has the group {short_repr(group)}")
        self.queue.closed = [*self.queue.closed[1 - MOST_NAMES :], group]
        fold(self)

    @abstractmethod
    def _open_plan(self) -> NumberedPlan:
        """The plan of the present episode, made by `_planned`."""

    def _planned(
        self,
        mixing_weight: float,
        notes: dict[str, float],
        cost_bounds: FloatArray | None = None,
        own_bounds: FloatArray | None = None,
    ) -> NumberedPlan:
        plans = self._plans
        if plans is None or plans.baselines is not self.baselines:  # the first one, or that of a new phase
            plans = self._plans = PlanMaker(self.view, self.baselines, self.seed, self._key)
        entries, own = self.queue.entries, self.own_policy
        if entries and entries[-1].u is None:  # nothing was learnt since: the plans share one array
            own = entries[-1].own.probabilities
        number, branch = self.episode + len(entries), self.progress.branch
        return plans.plan(number, own, mixing_weight, branch, notes, cost_bounds, own_bounds)

    def _entry_of(self, plan: Any) -> OpenPlan | None:
        """The open plan that is meant, None if the state of the learner says all of it; anything else is refused."""
        if self.queue.entries:
            settle(self)
        if self.queue.entries:
            return self.queue.find(plan, self._key, self.episode)
        if plan is not None:
            former = getattr(plan, "learner_key", None) in self.queue.keys
            key = plan.learner_key if former else self._key
            check_open(plan, self._open_plan() if self.progress.pending else None, key, self.episode)
        return None

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
        has ended, or that another learner made, is refused. Without it the episode is that of the only open plan. With
        several open plans, an outcome waits until those of all earlier plans are known: learning in the order in which
        outcomes come would believe the cheap ones first, if costly ones take longer.

        From an episode that was aborted or overridden only the confidence sets learn, and they make room for what is
        unknown of it; its losses say nothing about the plan and are left out.

        Args:
            episode: An `Episode`; or the path alone: rows (L,), or pairs (state, action) by number or label.
            losses: (L,) losses in [0, 1], if `episode` is a path; else the plan may stand here.
            costs: (L, m) costs in [0, 1], or (L,) for one constraint, if `episode` is a path.
            plan: The plan that was played.

        Raises:
            InvalidInput: If no episode is planned, if the plan is not open, if the path is impossible, for some
                learners also if it has probability 0 under the plan, if what the view knows rules it out, if a number
                is wrong, or if the learner needs full feedback and the episode has none.
            PremiseError: If the episode, which has been learnt, refutes an input of the learner, and
                on_refuted="raise".

        Warns:
            PremiseWarning: If the episode refutes an input of the learner.
        """
        if isinstance(losses, Plan):
            losses, plan = None, losses
        entry = self._entry_of(plan)
        if not self.progress.pending:
            raise InvalidInput("no episode is planned; call plan, play its policy, then observe")
        if isinstance(episode, Episode):
            if losses is not None or costs is not None:
                raise InvalidInput("an Episode holds its losses and costs already; pass it alone")
            self._receive(episode, entry)
        elif losses is None:
            raise InvalidInput("the losses along the trajectory are missing: observe(path, losses, costs)")
        elif entry is not None or not self._end_path(episode, losses, costs):
            # An Episode says what is wrong, or reads what is put otherwise.
            self._receive(Episode(self.view, episode, losses, costs), entry)
        self._complete()
        self.announce()

    def _end_path(self, rows: Any, losses: Any, costs: Any) -> bool:
        """Learn from a path of plain numbers, if there is a fast way; False if it has to become an `Episode`."""
        return False

    def _receive(self, episode: Episode, entry: OpenPlan | None) -> None:
        """Learn from the outcome of a plan, None for that of the state; or let it wait for those of earlier plans."""
        episode = self.checked_outcome(episode, entry)
        if entry is None:
            self._end(episode)
        else:
            entry.outcome = episode
            fold(self)

    def checked_outcome(self, episode: Episode, entry: OpenPlan | LostPlan | None) -> Episode:
        """Return an outcome in the terms of the view, if it can be that of a plan, None for that of the state."""
        episode = in_own_terms(self.view, episode)
        if self.feedback == "full" and (episode.all_losses is None or episode.all_costs is None):
            raise InvalidInput(
                f"{self.title} needs full feedback: Episode(..., all_losses=(rows,), all_costs=(rows, m))"
            )
        refuse_impossible(self.view, episode.rows, episode.triples, known_costs(episode))
        followed = None if episode.irregular is None else episode.irregular.actions
        if followed is not None and not (
            np.array_equal(followed.numbers, self.drawn_actions().numbers) if entry is None else entry.drew(followed)
        ):
            # What they would have done says nothing about the plan.
            raise InvalidInput(
                "the actions of the episode are not those of the plan; pass the plan.actions that were followed, or "
                "none"
            )
        self._check_played(episode, self.played_array() if entry is None else entry.played)
        return episode

    def _check_played(self, episode: Episode, played: FloatArray) -> None:
        """Refuse steps that the policy (num_rows,) of the plan cannot have produced; not all learners need that."""
        return

    def _enter(self, policy: FloatArray, repeats: bool) -> None:
        """The plan of this own policy (num_rows,) is the next to be learnt from; it may repeat one of its group."""
        return

    def _fold(self, entry: OpenPlan) -> None:
        """Learn from the outcome of the first of several plans."""
        assert entry.outcome is not None
        self._end(entry.outcome)

    def _keep_for_later(self, fresh: list[OpenPlan]) -> None:
        """Give plans that were made from the present state what it takes to learn from them later."""
        nothing = np.zeros(self.layout.num_rows)
        for entry in fresh:
            entry.u = nothing

    def _follow_queue(self) -> None:
        """Take notice of plans that were put into the queue, or left it."""
        return

    _num_members: int = 0
    """How many policies beside its own and its baselines a plan may name by number."""
    _pool_drawn: int = 0
    """1 if the coin of the last plan fell on these."""

    def _take_in(self, log: Any) -> None:
        """Learn from a log that waited for the outcomes of open plans."""
        raise NotImplementedError

    def _take_back(self, plan: LostPlan, outcome: Episode) -> None:
        """Learn the outcome of a plan that was learnt as unknown, in the place of that."""
        raise NotImplementedError

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
        entry = self._entry_of(plan)
        self._receive(missing_outcome(self.view, reason, independent, actions), entry)
        self._complete()
        self.announce()

    @property
    def unresolved(self) -> tuple[int, ...]:
        """The numbers of the plans that were given up and whose outcome can still be learnt, by `resolve`.

        A plan that was left out for a declared reason, or that had a group and was learnt, is none of them; nor are
        more than the last 1,000.
        """
        waiting = (entry.plan.episode for entry in self.queue.entries if entry.is_given_up)
        return (*(plan.episode for plan in self.queue.lost), *waiting)

    @exclusive
    def resolve(self, episode: Episode, plan: Plan | int) -> None:
        """Learn the outcome of a plan that was given up, in the place of what is unknown of it.

        It may come at any time, and for any reason: the confidence sets are then those that they would have been had
        it come in time. It is learnt once the outcomes of all plans that are open now are. Its losses, and sums over
        whole episodes, are not made up for.

        Args:
            episode: What happened.
            plan: The plan, or its number.

        Raises:
            InvalidInput: If the plan is none of `unresolved`, or if it cannot have had this outcome.

        Examples:
            >>> import hedgerow as hr
            >>> view = hr.View.of([["home"]], ["wait", "go"], thresholds={"delay": 0.5})
            >>> learner = hr.SVOPS(view, episodes=1000, delta=0.01)
            >>> plan = learner.plan()
            >>> learner.abandon(plan, "no answer")
            >>> learner.unresolved, learner.core.state.counts.unknown_costs.tolist()
            ((0,), [[1], [1]])
            >>> learner.resolve(hr.Episode(view, [("home", "go")], losses=[0.5], costs=[1.0]), plan)
            >>> learner.unresolved, learner.core.state.counts.unknown_costs.tolist()
            ((), [[0], [0]])
        """
        if not isinstance(episode, Episode):
            raise InvalidInput(f"resolve takes an Episode and a plan, not {type_name(episode)}")
        resolve(self, episode, plan)
        self._complete()
        self.announce()

    @exclusive
    def complete(self) -> None:
        """Finish what compiled code left open, such as a program that needs the slow solver.

        If that is interrupted, the next plan begins with it. An episode is never learnt by halves.
        """
        self._complete()
        fold(self)

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
        entries = self.queue.entries
        return entries[-1].played if entries else frozen(self.played_array())

    def played_array(self) -> FloatArray:
        """Return the policy of the plan that is learnt from, or else of the last one; do not write to it.

        That of the last one is the array that compiled code uses.
        """
        if self.queue.folding is not None:
            return self.queue.folding
        branch = self.progress.branch
        return self.baselines.policies[branch - 1] if branch else self.own_policy

    def announce(self) -> None:
        """Say, once, that an input of the learner has been refuted; `observe` calls it."""
        mixes = len(self.baselines.policies) > 0
        announce(self.view, self.premise_rule, self.premises, self.on_refuted, mixes=mixes)

    def as_seen(self, ledger: Ledger) -> Ledger:
        """Return `ledger` as it stands now: void where it rests on something that was refuted."""
        ledger = self.queue.stated_in(ledger, self.holds_open)
        return as_refuted(ledger, self.view, self.premise_rule, self.premises)

    def _ledger(self, *promises: Promise, assumptions: tuple[str, ...] = (), title: str = "") -> Ledger:
        """These promises, void where they rest on something that was refuted."""
        return self.as_seen(Ledger(title or self.title, promises, assumptions))

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

    @exclusive
    def state(self) -> dict[str, NDArray[Any]]:
        """Return arrays by name: all that is needed to continue; `restored` takes them back."""
        arrays = {"arguments": _text(self._arguments()), "coin": _text(self.coin.state), **self._arrays()}
        if self.inputs.baseline:
            arrays |= {"baseline": self.baselines.policies[0], "baseline_costs": self.baselines.costs}
        arrays |= self.queue.arrays()
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
            waiting = {name: given.pop(name) for name in list(given) if name.partition(".")[0] == PREFIX}
            learner = cls._rebuilt(view, dict(arguments), given)
            if _text(learner._arguments()) != _text(arguments):
                raise InvalidInput("its arguments must mean what they say")
            learner.coin.go_to(checked_coin(coin, learner.seed))
            learner.queue = OpenPlans.of_facts(waiting)
            learner._restore(given)
            learner.queue.take(learner, waiting)
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


def _completed(doc: str, parameters: Iterable[str], texts: Mapping[str, str], raises: str) -> str:
    """A docstring whose section `Args:` also has the parameters that only `texts` explain, in their order.

    Unless it says itself what is raised, `raises` stands behind them.
    """
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
    after = [] if "Raises:" in lines else ["", "Raises:", f"    {raises}"]
    arguments = (line for entry in entries.values() for line in entry)
    return "\n".join((*lines[:first], *arguments, *after, *lines[last:]))


def _text(content: Any) -> NDArray[np.str_]:
    return np.array(json.dumps(content, sort_keys=True))


@exclusive_as("save", rests=True)
def _state_to_save(learner: BaseLearner) -> dict[str, NDArray[Any]]:
    return learner.state()


@exclusive_as("copy", rests=True)
def _state_to_copy(learner: BaseLearner) -> dict[str, NDArray[Any]]:
    return learner.state()
