"""The guarantee ledger: which promise a learner makes under its present switches, how surely, and by which theorem.

A promise that is void says why, and what all of them rest on, beyond the paper's assumptions, is listed with them.
Probabilities count the paper's delta: the clean event (all confidence sets hold the truth in all episodes) has 1 - 5
delta, of which 4 delta belong to the transitions, if these are not known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hedgerow.errors import InvalidInput

TRANSITION_SHARE = 4
"""Of the delta in each promise that belong to the confidence sets of the transitions."""


@dataclass(frozen=True, repr=False)
class Promise:
    """One line of the ledger."""

    name: str
    statement: str
    probability: float
    """At least this, over everything random; 0 if nothing is left of it"""
    source: str
    """Theorem or lemma of the paper"""
    void_because: str = ""
    """Why it does not hold, or the empty string"""

    @property
    def holds(self) -> bool:
        return not self.void_because

    @property
    def status(self) -> str:
        return "holds" if self.holds else f"void: {self.void_because}"

    def __repr__(self) -> str:
        from hedgerow import brief

        return brief.line("Promise", brief.quoted(self.name), f"probability >= {self.probability:.4g}", self.status)

    def __str__(self) -> str:
        return f"{self.name} (probability >= {self.probability:.4g}, {self.source}): {self.statement} [{self.status}]"


@dataclass(frozen=True, repr=False)
class Ledger:
    """All promises of a learner, in the order of what rests on what: `for promise in ledger`, `ledger["safety"]`."""

    learner: str
    promises: tuple[Promise, ...]
    rests_on: tuple[str, ...] = ()
    """What the learner was told and takes as true: where it is not, nothing is promised, and nothing will tell"""

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
        from hedgerow import brief

        void = [brief.quoted(promise.name) for promise in self.promises if not promise.holds]
        holding = f"{len(self) - len(void)} of {brief.counted(len(self), 'promise')} hold"
        rests = f"rests on {brief.counted(len(self.rests_on), 'statement')}" if self.rests_on else ""
        return brief.line("Ledger", brief.quoted(self.learner), holding, f"void: {', '.join(void)}" * bool(void), rests)

    def _repr_html_(self) -> str:
        from hedgerow.learners.notebook import ledger_html

        return ledger_html(self)

    def __str__(self) -> str:
        told = [f"  rests on: {statement}" for statement in self.rests_on]
        return "\n".join([self.learner, *(f"  {promise}" for promise in self.promises), *told])


@dataclass(frozen=True)
class Budget:
    """Turns a number of delta into a probability."""

    delta: float
    known_transitions: bool

    def sure(self, deltas: float) -> float:
        """1 - deltas * delta, without the share of the transitions where these are known."""
        spent = deltas - TRANSITION_SHARE if self.known_transitions else deltas
        return max(0.0, 1.0 - spent * self.delta)


def first_reason(*reasons: str) -> str:
    """The reasons that apply, joined."""
    return "; ".join(reason for reason in reasons if reason)
