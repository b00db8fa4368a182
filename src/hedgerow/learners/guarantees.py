"""The guarantee ledger: which promise a learner makes under its present switches, how surely, and by which theorem.

A promise that is void says why, and what all of them rest on, beyond the paper's assumptions, is listed with them.
Probabilities count the paper's delta: the clean event (all confidence sets hold the truth in all episodes) has 1 - 5
delta, of which 4 delta belong to the transitions, if these are not known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from hedgerow.errors import InvalidInput

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
    """What the learner was told and takes as true. Where it is false nothing is promised. What can be tested is tested;
    what was refuted voids the promises above."""

    def in_run(self, stochastic: bool, adversary: str) -> Ledger:
        """Return the ledger as it stands in a run: an adversary voids what assumes independent losses.

        Args:
            stochastic: Whether the losses of the run are independent draws of one law.
            adversary: Who chose the losses, for the reason.

        Returns:
            The same promises; some of them may be void.

        Examples:
            >>> from hedgerow.learners.guarantees import INDEPENDENT_LOSSES, Ledger, Promise
            >>> regret = Promise("regret", "R_T = O(sqrt(T))", 0.95, "a theorem", assumes=INDEPENDENT_LOSSES)
            >>> Ledger("mine", (regret,)).in_run(False, "cycle")["regret"].status
            'void: the losses of this run are adversarial (cycle)'
        """
        if stochastic:
            return self
        reason = f"the losses of this run are adversarial ({adversary})"
        return replace(self, promises=tuple(_without_independence(promise, reason) for promise in self.promises))

    def voided(self, reason: str, but: tuple[str, ...] = ()) -> Ledger:
        """Return the ledger with one more reason why its promises do not hold.

        Args:
            reason: Why; the empty string changes nothing.
            but: The names of promises that it does not concern.

        Returns:
            The same promises, void.

        Examples:
            >>> from hedgerow.learners.guarantees import Ledger, Promise
            >>> safety = Promise("safety", "no violation", 0.95, "a theorem")
            >>> Ledger("mine", (safety,)).voided("3 costs were clipped")["safety"].status
            'void: 3 costs were clipped'
        """
        promises = (p if p.name in but else replace(p, void_because=first_reason(p.void_because, reason)) for p in self)
        return replace(self, promises=tuple(promises))

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
        told = [f"  rests on: {statement}" for statement in self.assumptions]
        return "\n".join([self.learner, *(f"  {promise}" for promise in self.promises), *told])


def _without_independence(promise: Promise, reason: str) -> Promise:
    if promise.assumes != INDEPENDENT_LOSSES:
        return promise
    return replace(promise, void_because=first_reason(promise.void_because, reason))


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
