"""What the learners of the field share: plan, observe, the coin, the baseline, the clean event, files.

A learner keeps the policy of its next episode in `own_policy` and overrides `_learn`, which changes it. With a baseline
it leaves an episode to the baseline with probability `reals.mixing`. All that changes while it learns is in `seen`,
`progress`, `reals`, `coin` and the arrays that `changing` names. A file holds these and the constructor's arguments. A
learner with a compiled loop (`loop.py`) names it as `_loop`, with the same bits as `_learn`.

The clean event: all transition probabilities lie in their boxes and all means within their bounds, in all episodes.

    paper, sharp   1 - 5 delta; 1 - delta where all transitions are known        (`confidence/radii.py`)
    sharpest       1 - 5 delta, balls, certificate and the bounds of the loss included
    source         at least 1 - 4 n T e^-iota - 2 R (m + 1) T e^(-4 iota'),   iota' = iota + ln(m + 1)

for n triples of rows with several successors and R rows. The second is our own union bound over the forms of Efroni,
Mannor and Pirotta (2020): each transition misses its box with probability at most 4 e^-iota at each number of visits,
by empirical Bernstein (Maurer and Pontil 2009), because 2 p (1 - p) / (n - 1) <= 4 p (1 - p) / n for n >= 2; each mean
misses its bound with at most 2 e^(-2 n xi^2), by Hoeffding.
"""

from __future__ import annotations

import functools
import inspect
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from math import exp
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.checks import LARGEST_COUNT, FloatArray, IntArray, float_array, short_repr
from hedgerow.confidence.counts import make_unknowns
from hedgerow.confidence.premises import NOTHING, PremiseRule, Premises, count_episode, make_premise_rule, make_premises
from hedgerow.confidence.sets import SETS, SOURCE, checked_word, refuse_radii
from hedgerow.environments.columns import Column
from hedgerow.errors import InvalidInput
from hedgerow.learners.api import NumberedPlan, checked_baseline_costs, safe_policy
from hedgerow.learners.base import ARGUMENTS, BaseLearner
from hedgerow.learners.field.loop import FieldCore, keep_notes, make_run
from hedgerow.learners.guarantees import CLEAN_EVENT, Budget, Ledger
from hedgerow.learners.kernels import (
    Losses,
    Mixing,
    Progress,
    baseline_arrays,
    draw_branch,
    flat_arrays,
    no_baseline,
    occupancy_of_baseline,
)
from hedgerow.learners.statistics import Statistics
from hedgerow.learners.watch import WATCHED, LearnerWatcher, check_rows, watch_event
from hedgerow.model.episode import Episode, decide
from hedgerow.model.kernel_layout import index_of
from hedgerow.model.occupancy import checked_policy
from hedgerow.model.policy import Policy
from hedgerow.model.view import View

if TYPE_CHECKING:
    from hedgerow.learners.watch import RunContext, Watcher

BY_RADII = (SOURCE, "paper", "sharp")
"""The sets of learners whose formulas are made of radii"""
ALL_SETS = (SOURCE, *SETS)
"""Those of learners that work with any sets"""
NO_TEXT = {"view", "baseline", "baseline_costs", "world", "losses"}
"""The arguments that a file holds as arrays, or does not need"""
DELTA_OF_TESTS = 0.01
"""How unsure the tests of its inputs may be, where the learner takes no delta"""


def chosen(what: str, value: Any, words: Iterable[str]) -> Any:
    """`value`, if it is one of the words; `what` begins the refusal, such as "replan is"."""
    allowed = tuple(words)
    if value not in allowed:
        raise InvalidInput(f"{what} {short_repr(value)}; choose {' or '.join(map(repr, allowed))}")
    return value


def clean_probability(learner: FieldLearner) -> float:
    """A lower bound of the probability of the clean event, for learners with statistics."""
    seen = learner.statistics
    if learner.sets != SOURCE:
        known = learner.view.knowledge.transitions
        certain = known is not None and not np.isnan(known).any() and learner.sets != "sharpest"
        return Budget(learner.delta, certain).sure(CLEAN_EVENT)
    rule, uncertain = seen.box_rule.radii, seen.box_rule.uncertain.astype(bool)
    triples = int(np.diff(learner.layout.row_start)[uncertain].sum())
    means = int(seen.box_rule.unknown_costs.sum())
    missed = 4.0 * triples * exp(-rule.transition_log) + 2.0 * means * exp(-4.0 * rule.cost_log)
    return max(0.0, 1.0 - learner.episodes * missed)


def voided_by_unknown(guarantees: Callable[[Any], Ledger]) -> Callable[[Any], Ledger]:
    """Make all promises that rest on what was seen void as soon as something of an episode is unknown."""

    @functools.wraps(guarantees)
    def with_unknown(learner: Any) -> Ledger:
        ledger = guarantees(learner)
        unknown = 0 if learner.seen is None else learner.seen.num_unknown
        if not unknown:
            return ledger
        reason = f"{unknown} episodes with unknown values: {learner.title} has no bounds for these"
        voided = (replace(promise, probability=0.0, void_because=promise.void_because or reason) for promise in ledger)
        return replace(ledger, promises=tuple(voided))

    return with_unknown


class FieldLearner(BaseLearner):
    """The base of the learners of the field; the classes in `hr.field` document their arguments.

    Ask for a plan, play its policy to the end of the episode, and say what happened with `observe`.

    Examples:
        >>> import hedgerow as hr
        >>> world = hr.worlds.make("lower-bound-2")
        >>> learner = hr.field.Uniform(world.view(), episodes=10)
        >>> isinstance(learner, hr.Learner), learner.source
        (True, 'a reference')
    """

    recalled: ClassVar[str] = ""
    """Which of its constants we recall and have not read in the source; the empty string for none."""
    changing: ClassVar[tuple[str, ...]] = ("own_policy",)
    """The arrays that change while it learns, by the names of attributes."""
    note_names: ClassVar[tuple[str, ...]] = ()
    """What is kept of a plan besides the mixing weight: the names of `field.notes`."""
    words: ClassVar[tuple[str, ...]] = BY_RADII
    """The confidence sets that it takes."""
    _loop: ClassVar[Any] = None
    """Its compiled loop over a block of losses, called with `core`; None runs every episode step by step."""
    bounded: ClassVar[bool] = False
    """Whether it bounds the costs of its policies by balls and certificate, where its sets have these."""
    episodes: int
    """The number T of episodes that it was built for."""
    progress: Progress
    """How far it is."""

    argument_texts: ClassVar[Mapping[str, str]] = {
        **ARGUMENTS,
        "replan": '"episode", or "epoch" to plan only when the visits of some pair have doubled.',
        "sets": (
            'The confidence sets: "source" those of Efroni, Mannor and Pirotta (2020), as most learners of the field '
            'have them; "paper", "sharp" or, where the learner takes them, "sharpest" those of S-OPS with that preset.'
        ),
    }

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in cls.__dict__:
            type.__setattr__(cls, "__init__", refuse_radii(cls.__init__))
        if "guarantees" in cls.__dict__:  # whatever a source promises, it knows of no unknown values
            type.__setattr__(cls, "guarantees", voided_by_unknown(cls.guarantees))

    def __init__(
        self, view: View | Any, episodes: int, delta: float = 0.5, seed: int = 0, *, baseline: Any = None,
        baseline_costs: ArrayLike | Mapping[str, float] | None = None, sets: str = "source", on_refuted: str = "stay",
    ) -> None:  # fmt: skip
        super().__init__(view, episodes, delta, seed, on_refuted)
        self.sets: str = checked_word(sets, self.words)
        self.baseline: Policy | None = None
        self.baseline_costs: FloatArray = np.zeros(0)
        self.baselines = no_baseline(self.view)
        if self.inputs.baseline:
            policy, costs = safe_policy(baseline, baseline_costs, view)
            self.baseline = Policy.trusted(self.layout, checked_policy(self.layout, policy))
            self.baseline_costs = checked_baseline_costs(self.view, costs)
            policies = np.array([self.baseline.probabilities])
            self.baselines = baseline_arrays(self.view, policies, self.baseline_costs.copy())
        self.progress, self.reals = Progress(), Mixing()
        self.own_policy = np.full(self.layout.num_rows, 1.0 / self.layout.num_actions)
        self.seen = self._statistics()
        if self.inputs.delta and self._sure() <= 0.0:
            raise InvalidInput(
                f"delta is {self.delta!r}: nothing is left of the probability with which {self.title} promises "
                "anything; choose a smaller delta"
            )
        self.premise_rule, self.premises = self._make_premises()
        self.field = FieldCore(
            index=index_of(self.layout), progress=self.progress, reals=self.reals, policy=self.own_policy,
            baseline=self.baselines, premise_rule=self.premise_rule, premises=self.premises,
            notes=np.zeros(len(self.note_names)),
        )  # fmt: skip
        self.core: Any = self.field

    def _statistics(self) -> Statistics | None:
        """Counts and bounds; None for learners that learn nothing."""
        return Statistics(self.view, self.episodes, self.delta, self.sets, bounded=self.bounded)

    @property
    def statistics(self) -> Statistics:
        """Counts and bounds, of learners that have them."""
        assert self.seen is not None
        return self.seen

    def _make_premises(self) -> tuple[PremiseRule, Premises]:
        """What tests the inputs of the learner: known parts, and what its baseline costs."""
        ties = self.sets == "sharpest"
        unknowns = make_unknowns(self.layout, self.view.num_constraints, self.view.knowledge, ties=ties)
        beta = self.baseline_costs if self.baseline is not None else None
        stays = self.on_refuted != "warn"
        delta = self.delta if self.inputs.delta else DELTA_OF_TESTS
        rule = make_premise_rule(self.view, unknowns, delta, beta=beta, absorbs=False, stays=stays)
        return rule, make_premises(rule, self.layout.num_triples, absorbs=False)

    def _sure(self) -> float:
        """How surely the confidence sets hold, for learners that take a delta."""
        return clean_probability(self)

    @abstractmethod
    def _learn(self, episode: Episode) -> None:
        """Learn from an episode, which `seen` has counted already, and set `own_policy` and `reals.mixing`."""

    def _changed_rows(self, episode: Episode) -> IntArray:
        """The rows whose statistics an episode may have changed: all of them, if something of it is unknown."""
        if episode.irregular is None:
            return episode.rows.copy()
        return np.arange(self.layout.num_rows, dtype=np.int64)

    def _notes(self) -> Mapping[str, float]:
        """Numbers worth keeping of the next episode, besides the mixing weight."""
        return dict(zip(self.note_names, self.field.notes.tolist(), strict=True))

    def _begin(self) -> None:
        self.progress.branch = draw_branch(len(self.baselines.policies), self.reals.mixing, self.coin)
        self.progress.pending = 1

    def _open_plan(self) -> NumberedPlan:
        lam = self.reals.mixing
        return self._planned(lam, {**({"mixing_weight": lam} if self.baseline is not None else {}), **self._notes()})

    def _end(self, episode: Episode) -> None:
        if self.seen is not None:
            own = self.progress.branch == 0
            self.seen.add(episode, Policy.trusted(self.layout, self.played_array()), own=own)
        self.progress.pending = 0
        self.progress.episode += 1
        self._count_premises(episode)
        if self.feedback == "bandit" or episode.all_losses is not None:
            self._learn(episode)

    def _complete(self) -> None:
        self.heed_premises()

    def _count_premises(self, episode: Episode) -> None:
        """Test its inputs by an episode, unless that is left out for a declared reason."""
        if not decide(episode).skipped:
            count_episode(
                index_of(self.layout), self.premise_rule, self.premises, episode.rows.copy(), episode.triples.copy(),
                episode.costs.copy(), self.progress.branch, episode.irregular is None, self.episode,
            )  # fmt: skip

    def heed_premises(self) -> None:
        """Leave the next episode to the baseline if one of the learner's inputs has been refuted."""
        if self.baseline is not None and self.premise_rule.stays and self.premises.numbers.what != NOTHING:
            self.reals.mixing = 1.0

    def watch(self, stage: RunContext, *, audit: bool = False) -> Watcher:
        """Make the object that watches confidence sets and safety in the run `stage`; an `audit` sees no more."""
        return FieldWatcher(self, stage)

    def _arguments(self) -> dict[str, Any]:
        """The attributes that are called like arguments."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters if name not in NO_TEXT}

    def _arrays(self) -> dict[str, NDArray[Any]]:
        seen = {} if self.seen is None else self.seen.state()
        return {
            "progress": self.progress.values,
            "reals": self.reals.values,
            **{f"own.{name}": getattr(self, name) for name in self.changing},
            **{f"premises.{name}": array for name, array in flat_arrays(self.premises).items()},
            **{f"seen.{name}": array for name, array in seen.items()},
        }

    def _restore(self, state: dict[str, NDArray[Any]]) -> None:
        progress, reals = state["progress"], state["reals"]
        if progress.shape != self.progress.values.shape or progress.dtype.kind not in "iu" or progress.min() < 0:
            raise InvalidInput("progress is no list of counts")
        self.progress.values[:] = progress
        self.reals.values[:] = float_array("a number of the state", reals, self.reals.values.shape)
        if self.progress.episode > self.episodes or not 0.0 <= self.reals.mixing <= 1.0:
            raise InvalidInput("it is beyond its last episode, or mixes wrongly")
        if max(self.progress.pending, self.progress.branch) > 1 or (self.progress.branch and self.baseline is None):
            raise InvalidInput("it plays a policy that it does not have")
        if self.seen is not None:
            counted = {name.removeprefix("seen."): array for name, array in state.items() if name.startswith("seen.")}
            seen = Statistics.restored(self.view, counted)
            if _made_for(seen) != _made_for(self.seen):
                raise InvalidInput("its statistics are those of another learner")
            if seen.num_episodes > self.progress.episode:
                raise InvalidInput("it has counted more episodes than it observed")
            self.seen = seen
        for name in self.changing:
            mine = getattr(self, name)
            given = float_array(f"{name} of the state", state[f"own.{name}"], mine.shape)
            if mine.dtype.kind == "i" and np.any((given < 0.0) | (given > LARGEST_COUNT) | (given != np.floor(given))):
                raise InvalidInput(f"{name} is no list of counts")
            mine[...] = given
        checked_policy(self.layout, self.own_policy)
        for name, mine in flat_arrays(self.premises).items():
            given = np.asarray(state[f"premises.{name}"])
            if given.shape != mine.shape or given.dtype != mine.dtype or not np.all(np.isfinite(given) & (given >= 0)):
                raise InvalidInput(f"premises.{name} cannot be right")
            mine[...] = given

    @property
    def _choice(self) -> tuple[str, str]:
        return "sets", self.sets


def _made_for(seen: Statistics) -> tuple[Any, ...]:
    return seen.episodes, seen.delta, seen.sets, seen.confidence_scale, seen.bounded


_REFUTED = "unsafe episodes with a baseline although the event was clean; anything but 0 is a defect"
DECLARED = (*WATCHED, Column("refuted_safety", "int64", "refuted", _REFUTED, "sum", "whole", ("checks",), fact=True))


class FieldWatcher(LearnerWatcher):
    """Watches one run of a learner: whether its sets hold the truth, and what it leaves to its baseline."""

    learner: FieldLearner
    declared: tuple[Column, ...] = DECLARED

    def __init__(self, learner: FieldLearner, stage: RunContext) -> None:
        super().__init__(learner, stage)
        baseline = occupancy_of_baseline(learner.field.index, stage.world, learner.baselines)
        self.run = make_run(learner, stage, self.event, baseline, self._path)
        self._check(np.arange(learner.layout.num_rows, dtype=np.int64))

    @property
    def compiled(self) -> bool:
        """Whether blocks may be run compiled: not if a subclass plans or observes in a way of its own."""
        family = next(base for base in type(self.learner).__mro__ if "_loop" in vars(base))
        return family is not FieldLearner and self.learner.keeps_to(family)

    def _check(self, rows: IntArray) -> None:
        seen = self.learner.seen
        if seen is not None:
            check_rows(index_of(seen.layout), self.stage.world, seen.boxes, rows, self.event)

    def planned(self) -> None:
        super().planned()
        learner = self.learner
        watch_event(learner.progress.branch, learner.reals.mixing, True, self.stage.scores, self.event)
        self.run.notes[:] = learner.field.notes

    def _look(self, rows: IntArray) -> None:
        layer = None if self.learner.seen is None else self.learner.seen.layer
        self._check(layer.scratch.all_rows if layer is not None and layer.rule.tied else rows)

    def _keep(self, mark: int) -> None:
        keep_notes(mark, self.run)

    def _run(self, given: Losses, first: int) -> tuple[int, bool]:
        learner = self.learner
        try:
            done: tuple[int, bool] = learner._loop(learner.core, self.run, given, first, learner.coin)
            return done
        finally:
            if self.learner.seen is not None:
                self.learner.seen.counted(self.learner.episode)

    def columns(self, reached: int) -> dict[str, NDArray[Any]]:
        """The weight of the baseline, whether the sets hold the truth, and the notes, as far as a learner has them."""
        mixing = self.mixing_columns(reached) if self.learner.baseline is not None else {}
        event = self.event_columns(reached) if self.learner.seen is not None else {}
        return mixing | event | dict(zip(self.learner.note_names, self.run.mark_notes[:reached].T, strict=True))

    def facts(self, comparator: FloatArray) -> dict[str, float | int | None]:
        """How often a learner with a baseline was unsafe although its sets held the truth: 0, if it is right."""
        if self.learner.baseline is None:
            return {}
        return {"refuted_safety": self.event.counters.refuted_safety}
