"""The guarantee ledger: which promise a learner makes under its present switches, how surely, and by which theorem.

A promise that is void says why, and what all of them rest on, beyond the paper's assumptions, is listed with them.
Probabilities count the paper's delta: the clean event (all confidence sets hold the truth in all episodes) has 1 - 5
delta, of which 4 delta belong to the transitions, if these are not known.

A learner tests what it was given as known (`confidence/premises.py`). On the first refutation it warns once
(`PremiseWarning`), its ledger is void from then on and says why, and `on_refuted` decides how it goes on:

    stay    it leaves every further episode to its baseline, if it has one
    warn    it goes on as before
    raise   as "stay", and the call that found it raises a `PremiseError`; the episode has been learnt
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from hedgerow.checks import short_repr
from hedgerow.confidence.premises import (
    BASELINE,
    COSTS,
    LOGGED,
    NOTHING,
    SHARED_TRANSITIONS,
    TRANSITIONS,
    PremiseRule,
    Premises,
)
from hedgerow.errors import InvalidInput, PremiseError, PremiseWarning
from hedgerow.model.layout import Layout
from hedgerow.model.view import View

TRANSITION_SHARE = 4
"""Of the delta in each promise that belong to the confidence sets of the transitions."""
CLEAN_EVENT = 5
"""The delta that all confidence sets spend together."""
NOTHING_LEFT = "delta is too large: nothing is left of the probability of this promise"
"""Why a promise with probability 0 is void."""
INDEPENDENT_LOSSES = "independent losses"
"""What the regret promises of stochastic learners need: losses that are independent draws around a mean."""

ABOUT_SETS = ("confidence", "feasibility", "mixing")
"""The promises that speak of the confidence sets alone, whatever the numbers mean that were seen."""


@dataclass(frozen=True, repr=False)
class Promise:
    """One promise of a learner: what it says, how surely, and by which theorem.

    Examples:
        >>> import hedgerow as hr
        >>> learner = hr.SVOPS(hr.worlds.make("lower-bound-2").view(), episodes=100, delta=0.01)
        >>> promise = learner.guarantees()["regret"]
        >>> promise.holds, round(promise.probability, 6)
        (True, 0.9)
    """

    name: str
    """What the promise is called, such as "safety" or "regret"."""
    statement: str
    """What is promised, in one sentence."""
    probability: float
    """The promise holds with at least this probability, over everything random; 0 if nothing is left of it."""
    source: str
    """The theorem or lemma that proves it."""
    void_because: str = ""
    """Why it does not hold under the present switches; the empty string if it holds."""
    assumes: str = ""
    """What it needs of a run, such as independent losses; the empty string if it holds whatever the losses are."""

    def __post_init__(self) -> None:
        if self.probability <= 0.0 and not self.void_because:
            object.__setattr__(self, "void_because", NOTHING_LEFT)

    @property
    def holds(self) -> bool:
        """Whether nothing makes the promise void."""
        return not self.void_because

    @property
    def status(self) -> str:
        """The word "holds", or "void" with the reason."""
        return "holds" if self.holds else f"void: {self.void_because}"

    def to_dict(self) -> dict[str, Any]:
        """Return the promise as JSON can hold it."""
        return {**vars(self), "holds": self.holds}

    def __repr__(self) -> str:
        from hedgerow.display import text

        return text.line("Promise", text.quoted(self.name), f"probability >= {self.probability:.4g}", self.status)

    def __str__(self) -> str:
        terms = f"probability >= {self.probability:.4g}, {self.source}{self.assumes and f'; assumes {self.assumes}'}"
        return f"{self.name} ({terms}): {self.statement} [{self.status}]"


@dataclass(frozen=True, repr=False)
class Ledger:
    """All promises of a learner, in the order in which they build on each other.

    Iterate over it, or ask by name: `ledger["safety"]`. A promise that is void says why. Probabilities count multiples
    of delta: all confidence sets hold the truth in all episodes with probability 1 - 5 delta, of which 4 delta belong
    to the transitions and are saved where these are known.

    Examples:
        >>> import hedgerow as hr
        >>> learner = hr.SVOPS(hr.worlds.make("lower-bound-2").view(), episodes=100, delta=0.01)
        >>> ledger = learner.guarantees()
        >>> [promise.name for promise in ledger], "safety" in ledger
        (['confidence', 'feasibility', 'violation', 'regret'], False)
    """

    learner: str
    """The name of the learner."""
    promises: tuple[Promise, ...]
    """The promises."""
    assumptions: tuple[str, ...] = ()
    """What the learner takes as true. Where it is false nothing is promised. What can be tested is tested; what was
    refuted voids the promises above."""

    def in_run(self, stochastic: bool, adversary: str) -> Ledger:
        """Return the ledger as it stands in a run: an adversary voids what assumes independent losses.

        Args:
            stochastic: Whether the losses of the run are independent draws of one law.
            adversary: Who chose the losses, for the reason.

        Returns:
            The same promises; some of them may be void.
        """
        if stochastic:
            return self
        reason = f"the losses of this run are adversarial ({adversary})"
        return self.voided(reason, but=tuple(p.name for p in self if p.assumes != INDEPENDENT_LOSSES))

    def voided(self, reason: str, but: tuple[str, ...] = ()) -> Ledger:
        """Return the ledger with one more reason why its promises do not hold.

        Args:
            reason: Why; the empty string changes nothing.
            but: The names of promises that it does not concern.

        Returns:
            The same promises, void.
        """
        promises = (p if p.name in but else replace(p, void_because=first_reason(p.void_because, reason)) for p in self)
        return replace(self, promises=tuple(promises))

    def to_dict(self) -> dict[str, Any]:
        """Return the ledger as JSON can hold it: the promises, and what they rest on.

        Examples:
            >>> import hedgerow as hr
            >>> learner = hr.SVOPS(hr.worlds.make("lower-bound-2").view(), episodes=100, delta=0.01)
            >>> ledger = learner.guarantees().to_dict()
            >>> [(each["name"], each["holds"]) for each in ledger["promises"]][:2]
            [('confidence', True), ('feasibility', True)]
        """
        promises = [promise.to_dict() for promise in self.promises]
        return {"learner": self.learner, "promises": promises, "rests_on": list(self.assumptions)}

    def __getitem__(self, name: str) -> Promise:
        for promise in self.promises:
            if promise.name == name:
                return promise
        names = ", ".join(promise.name for promise in self.promises)
        raise InvalidInput(f"{self.learner} makes no promise {name!r}; it makes: {names}")

    def __iter__(self) -> Iterator[Promise]:
        return iter(self.promises)

    def __len__(self) -> int:
        return len(self.promises)

    def __contains__(self, wanted: object) -> bool:
        """Whether a promise, or one of that name, is in the ledger; void or not."""
        return any(wanted in (promise, promise.name) for promise in self.promises)

    def __repr__(self) -> str:
        from hedgerow.display import text

        void = [text.quoted(promise.name) for promise in self.promises if not promise.holds]
        holding = f"{len(self) - len(void)} of {text.counted(len(self), 'promise')} hold"
        rests = f"rests on {text.counted(len(self.assumptions), 'statement')}" if self.assumptions else ""
        return text.line("Ledger", text.quoted(self.learner), holding, f"void: {', '.join(void)}" * bool(void), rests)

    def _repr_html_(self) -> str:
        from hedgerow.display.views import ledger_html

        return ledger_html(self)

    def __str__(self) -> str:
        promises = [f"  {promise}" for promise in self.promises]
        return "\n".join([self.learner, *promises, *(f"  rests on: {statement}" for statement in self.assumptions)])


@dataclass(frozen=True)
class Budget:
    """Turns a number of delta into a probability."""

    delta: float
    known_transitions: bool

    def spent(self, deltas: float) -> float:
        """`deltas` without the share of the transitions where these are known."""
        return deltas - TRANSITION_SHARE if self.known_transitions else deltas

    def sure(self, deltas: float) -> float:
        """1 - deltas * delta, without the share of the transitions where these are known."""
        return max(0.0, 1.0 - self.spent(deltas) * self.delta)


def first_reason(*reasons: str) -> str:
    """The reasons that apply, joined."""
    return "; ".join(reason for reason in reasons if reason)


ON_REFUTED = ("stay", "warn", "raise")
"""What a learner can do"""
WITHOUT_BASELINE = ("confidence", "feasibility")
"""The promises that do not rest on what the baseline costs"""


def checked_response(on_refuted: Any) -> str:
    """`on_refuted`, if it is one of the three words."""
    if on_refuted not in ON_REFUTED:
        raise InvalidInput(f"on_refuted is {short_repr(on_refuted)}; choose one of {', '.join(ON_REFUTED)}")
    return str(on_refuted)


def announce(view: View, rule: PremiseRule, premises: Premises, on_refuted: str, *, mixes: bool) -> None:
    """Say what was refuted, the first time that this is called after it was.

    `mixes` says whether there is a baseline to stay with.
    """
    if premises.numbers.what == NOTHING or premises.numbers.said:
        return
    premises.numbers.said = 1
    found = refutation(view, rule, premises)
    if on_refuted == "raise":
        raise PremiseError(f"{found}; the promises of this learner are void: correct its inputs and begin again")
    goes_on = "leaves all further episodes to its baseline" if mixes and on_refuted == "stay" else "goes on as before"
    warnings.warn(
        f"{found}; the promises of this learner are void, and it {goes_on} (on_refuted={on_refuted!r})",
        PremiseWarning,
        stacklevel=4,
    )


def refutation(view: View, rule: PremiseRule, premises: Premises) -> str:
    """What was refuted, by what and when, in words; the empty string if nothing was."""
    numbers, figures, layout = premises.numbers, premises.figures, view.layout
    if numbers.what == NOTHING:
        return ""
    seen = f"between {figures.seen_low:.4g} and {figures.seen_high:.4g}"
    told = f"between {figures.told_low:.4g} and {figures.told_high:.4g}"
    when = f"after {numbers.episode} episodes"
    whose = f"{numbers.visits} {'logged' if numbers.stream == LOGGED else 'own'} visits"
    if numbers.what == BASELINE:
        name = view.constraint_names[numbers.column]
        return (
            f"{when}, the baseline costs {seen} of {name!r}, as its {numbers.visits} episodes show; it was said to "
            f"cost at most {figures.told_high:.4g}"
        )
    if numbers.what in (TRANSITIONS, SHARED_TRANSITIONS):
        what = f"the probability of {layout.describe_triple(numbers.where)}"
    else:
        what = f"the mean of {view.constraint_names[numbers.column]!r} in {layout.describe_row(numbers.where)}"
    if numbers.what in (COSTS, TRANSITIONS):
        return f"{when}, {what} lies {seen}, as {whose} show; it was said to be {figures.told_low:.4g}"
    return f"{when}, {what} lies {seen}, as {whose} show; {_elsewhere(layout, rule, premises)} say {told}"


def _elsewhere(layout: Layout, rule: PremiseRule, premises: Premises) -> str:
    """Who says something else: rows that are declared to share the law, or the other stream."""
    numbers = premises.numbers
    moves = numbers.what == SHARED_TRANSITIONS
    row = int(layout.row_of_triple[numbers.where]) if moves else numbers.where
    at = rule.moves_at if moves else rule.costs_at
    parts = []
    if (at == at[row]).sum() > 1:
        parts.append("the rows that are declared to share its law")
    if numbers.beside_logs:
        parts.append("the own episodes" if numbers.stream == LOGGED else "the logs")
    return " and ".join(parts)


def as_refuted(ledger: Ledger, view: View, rule: PremiseRule, premises: Premises) -> Ledger:
    """The ledger as it stands after what was seen: void where it rests on something that was refuted."""
    reason = refutation(view, rule, premises)
    if not reason:
        return ledger
    spared = WITHOUT_BASELINE if premises.numbers.what == BASELINE else ()
    return ledger.voided(f"refuted: {reason}", but=spared)
