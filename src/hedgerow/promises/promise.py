"""Promises: a statement of the paper, the runs it needs, a measurement, and a rule that can refute it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from hedgerow.errors import InvalidInput
from hedgerow.promises.observation import Observation

LEVEL = 0.99
"""The level of all intervals; bounds of probabilities are one-sided, each at this level."""
Share = float | Callable[["Observation"], float]
"""How often something may fail, as a multiple of delta: in all runs alike, or run by run"""


class Status(Enum):
    """How a check ended; the values are the words of the table."""

    HOLDS = "holds"
    REFUTED = "refuted"
    UNTESTED = "not tested here"


@dataclass(frozen=True)
class Verdict:
    """A status, the sentence that goes with it, and the numbers behind it."""

    status: Status
    sentence: str
    figures: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Claim:
    """One row of the table. `judge` sees the observations of `groups`, and nothing else."""

    key: str
    statement: str
    reference: str
    probability: str
    groups: tuple[str, ...]
    rule: str
    """What would refute it"""
    judge: Callable[[Sequence[Observation]], Verdict]


def holds(sentence: str, **figures: float) -> Verdict:
    return Verdict(Status.HOLDS, sentence, figures)


def refuted(sentence: str, **figures: float) -> Verdict:
    return Verdict(Status.REFUTED, sentence, figures)


def untested(sentence: str, **figures: float) -> Verdict:
    return Verdict(Status.UNTESTED, sentence, figures)


def rate(what: str, failed: Iterable[bool], allowed: float) -> Verdict:
    """Judge a promise that may fail with probability `allowed`: refuted if even the lower 99 % bound is above that.

    `failed` says of every run whether it did.
    """
    cases = [bool(case) for case in failed]
    failures, runs = sum(cases), len(cases)
    if runs == 0:
        return untested(f"no run in which {what} could have happened")
    low, high = clopper_pearson(failures, runs)
    sentence = f"{what} in {failures} of {runs} runs: probability within [{low:.3f}, {high:.3f}], allowed {allowed:.3g}"
    figures = {"failures": float(failures), "runs": float(runs), "low": low, "high": high, "allowed": allowed}
    return Verdict(Status.REFUTED if low > allowed else Status.HOLDS, sentence, figures)


def rates(
    what: str, observations: Sequence[Observation], failed: Callable[[Observation], bool], share: Share
) -> list[Verdict]:
    """`rate`, separately for runs that may fail with different probabilities: `share` times delta, 0 for those in which
    nothing can fail.

    Judged together, those that may fail more often would hide the others.
    """
    sets: dict[float, list[Observation]] = {}
    for one in observations:
        allowed = share(one) * one.delta if callable(share) else share * one.delta
        sets.setdefault(round(allowed, 12), []).append(one)
    return [
        rate(f"{what} ({', '.join(sorted({one.preset for one in some}))})", map(failed, some), min(1.0, allowed))
        for allowed, some in sorted(sets.items())
        if allowed > 0.0
    ] or [untested(f"no run in which {what} could have happened")]


def clopper_pearson(failures: int, runs: int) -> tuple[float, float]:
    """The exact bounds of Clopper and Pearson (1934) for a probability: (low, high).

    >>> low, high = clopper_pearson(0, 200)
    >>> low, round(high, 4)
    (0.0, 0.0228)
    """
    from scipy.stats import binomtest

    if not 0 <= failures <= runs or runs < 1:
        raise InvalidInput(f"{failures} failures in {runs} runs is no count")
    bounds = binomtest(failures, runs).proportion_ci(2.0 * LEVEL - 1.0, "exact")  # both sides have their 1 %
    return float(bounds.low), float(bounds.high)


def never(what: str, broken: Iterable[bool], detail: str = "") -> Verdict:
    """Judge a deterministic implication: a single run refutes it. `broken` says of every run whether it does."""
    cases = [bool(case) for case in broken]
    if not cases:
        return untested(f"no run in which {what} was possible")
    figures = {"offences": float(sum(cases)), "cases": float(len(cases))}
    ending = f"; {detail}" if detail else ""
    if any(cases):
        return refuted(f"{what} in {sum(cases)} of {len(cases)} runs{ending}", **figures)
    return holds(f"{what}: never in {len(cases)} runs{ending}", **figures)


def together(*parts: Verdict) -> Verdict:
    """Combine checks that must all hold: refuted if one is, else untested if one is, else it holds."""
    return _joined(parts, (Status.REFUTED, Status.UNTESTED, Status.HOLDS))


def any_of(parts: Iterable[Verdict]) -> Verdict:
    """Combine one check in several circumstances: refuted if one is, else it holds if it does in one of them."""
    return _joined(parts, (Status.REFUTED, Status.HOLDS, Status.UNTESTED))


def _joined(parts: Iterable[Verdict], order: tuple[Status, ...]) -> Verdict:
    listed = sorted(parts, key=lambda part: order.index(part.status))
    sentences = [
        f"not tested: {part.sentence}".replace("not tested: not tested: ", "not tested: ")
        if part.status is Status.UNTESTED
        else part.sentence
        for part in listed
    ]
    figures = {f"{n}.{key}": value for n, part in enumerate(listed) for key, value in part.figures.items()}
    return Verdict(listed[0].status if listed else Status.UNTESTED, ". ".join(sentences) or "no runs", figures)


def largest_delta(observations: Sequence[Observation]) -> float:
    return max((one.delta for one in observations), default=0.0)
