"""Observations, the input of judges: the last row of a cell's table and its facts, as plain numbers by name.

Numbers that do not exist in a run (the margin that SV-OPS found, say) are NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from math import inf, log, nan
from typing import Any

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.errors import InvalidInput
from hedgerow.learners.ops.notes import ODDS
from hedgerow.results.groups import Cell
from hedgerow.results.manifest import label
from hedgerow.results.metrics import num_constraints, power_law, violation_curve


@dataclass(frozen=True)
class Observation:
    """A finished run, seen as a member of one of the groups of a level."""

    group: str
    spec: Mapping[str, Any]
    """The description of its cell"""
    values: Mapping[str, float]

    def __getitem__(self, name: str) -> float:
        return self.values[name]

    @property
    def world(self) -> str:
        return str(self.spec["world"]["name"]).rpartition(":")[2].replace("_", "-")

    @property
    def adversary(self) -> str:
        return label(self.spec, "adversary")

    @property
    def preset(self) -> str:
        return str(self.spec["learner"]["preset"])

    @property
    def episodes(self) -> int:
        return int(self.spec["episodes"])

    @property
    def delta(self) -> float:
        return float(self.spec["delta"])


def values_of(cell: Cell, table: Any) -> dict[str, float]:
    """The numbers of a finished cell: columns by name after the last episode, facts, and what follows from them.

    clean                          1 if no episode began with the truth outside a confidence set
    violation, worst               of all constraints together
    rho                            the Slater margin of the world
    violation_, unsafe_, regret_after   what came after the search of CV-OPS had ended
    """
    last = {name: table.column(name)[-1].as_py() for name in table.column_names}
    facts = {name: value for name, value in cell.facts.items() if value is None or isinstance(value, int | float)}
    values = {name: nan if value is None else float(value) for name, value in {**last, **facts}.items()}
    values["violation"] = float(violation_curve(table)[-1])
    values["worst"] = max((values[f"worst_{i}"] for i in range(num_constraints(table))), default=-inf)
    values["clean"], values["rho"] = float(values["unclean"] == 0), values["slater"]
    after = {name: values[name] - values[f"{name}_at_stop"] for name in ("violation", "unsafe", "regret")}
    return values | {f"{name}_after": value for name, value in after.items()}


# --------------------------------------------------------------------------------------------------------------------
# The rule for growth: does a quantity grow like sqrt(T ln(cT)), or faster?
#
# The exponent is the slope of ln(mean over seeds) between the two largest horizons. Each horizon has runs of its own,
# because rates and radii depend on T: a prefix of a longer run is not a run. With the share of the logarithm, the
# allowed exponent is d ln sqrt(T ln(cT)) / d ln T = 1/2 + 1/(2 ln(cT)). With the 99 % bootstrap interval [low, high]
#
#     holds      the exponent is at most allowed + 0.05, and high < 1: compatible with the promise, surely sublinear
#     refuted    low > allowed, and not falling: the exponent between the two horizons before was no larger by 0.02
#     untested   above but falling (the curve still bends), or an interval wider than 1/2, or one that tells neither, or
#                a prefix in which even the proof promises nothing
#
# An O(.) cannot be refuted by finitely many numbers; this rule refutes what shows no sign of obeying it.


FALLING = 0.02
CLOSE = 0.05
WIDEST = 0.5
NO_PREFIX = 0.5
"""Beyond this share of the trivial bound, a curve is still in its linear prefix."""

Measure = Callable[[Observation], float]


def split(observations: Sequence[Observation]) -> list[tuple[str, list[Observation]]]:
    """Runs that only differ in horizon and seed, each set under a name."""
    sets: dict[str, list[Observation]] = {}
    for one in observations:
        sets.setdefault(f"{one.world}, {one.adversary}, {one.preset}", []).append(one)
    return sorted(sets.items())


def by_horizon(observations: Sequence[Observation], name: str) -> dict[int, FloatArray]:
    """The values of the seeds, horizon by horizon."""
    horizons = sorted({one.episodes for one in observations})
    return {T: np.array([one[name] for one in observations if one.episodes == T]) for T in horizons}


def growth(what: str, observations: Sequence[Observation], name: str, prefix: Measure | None = None) -> Verdict:
    """Judge the growth of a number; `prefix` is the share of the trivial bound that the proof's own bound has."""
    samples = by_horizon(observations, name)
    means = {T: float(np.mean(values)) for T, values in samples.items()}
    figures, last = {f"mean at {T}": value for T, value in means.items()}, max(samples, default=0)
    if len(samples) < 2:
        return untested(f"{what}: runs of at least two horizons are needed")
    if not np.isfinite(list(means.values())).all():
        return untested(f"{what}: not defined in some run", **figures)
    if means[last] <= 0.0:
        return holds(f"{what} at T = {last:,} is {means[last]:.3g}: nothing grows", **figures)
    if prefix is not None:
        share = figures["prefix"] = float(np.mean([prefix(one) for one in observations if one.episodes == last]))
        if share > NO_PREFIX:
            reason = f"where the proof's own bound is {share:.0%} of the trivial one"
            return untested(f"{what}: still the linear prefix at T = {last:,}, {reason}", **figures)
    *_, before, last = samples
    if means[before] <= 0.0:
        return untested(f"{what}: not positive at T = {before:,}", **figures)
    allowed = allowed_exponent(observations, (before, last))
    return _by_exponents(f"{what} grows with exponent", samples, allowed, figures)


def _by_exponents(what: str, samples: dict[int, FloatArray], allowed: float, figures: dict[str, float]) -> Verdict:
    first, last = pair = list(samples)[-2:]
    found = power_law(pair, [samples[T] for T in pair], level=LEVEL)
    figures |= {"exponent": found.exponent, "low": found.low, "high": found.high, "allowed": allowed}
    sentence = f"{what} {found} from T = {first:,} to {last:,}, allowed {allowed:.2f}"
    if found.high - found.low > WIDEST:
        return untested(f"{sentence}: too noisy to tell", **figures)
    if found.exponent <= allowed + CLOSE and found.high < 1.0:
        return holds(sentence, **figures)
    before = list(samples)[-3:-1]
    if len(before) == 2 and samples[before[0]].mean() > 0.0:
        earlier = power_law(before, [samples[T] for T in before], level=LEVEL).exponent
        figures["exponent before"] = earlier
        if found.exponent < earlier - FALLING:
            return untested(f"{sentence}: above, but still falling (before: {earlier:.2f})", **figures)
    if found.low > allowed:
        return refuted(sentence, **figures)
    return untested(f"{sentence}: too noisy to tell", **figures)


def allowed_exponent(observations: Sequence[Observation], pair: Sequence[int]) -> float:
    """1/2 plus the share of the logarithm, in the middle of the two horizons."""
    argument = max(one["log_argument"] for one in observations)
    return 0.5 + 0.5 / (0.5 * log(pair[0] * pair[1]) + argument)


def soft_prefix(one: Observation) -> float:
    """The proof's bound of V_T, sum |q - q_hat| + 2 sum xi^T q_hat, as a share of the trivial bound L T."""
    return (one["width"] + one["radii"]) / (one["steps"] * one.episodes)


def safe_prefix(one: Observation) -> float:
    """sum lambda as a share of lambda_0 T."""
    return one["mixing_total"] / (one["first_mixing"] * one.episodes)


# --------------------------------------------------------------------------------------------------------------------
# Promises: a statement of the paper, the runs it needs, a measurement, and a rule that can refute it.


LEVEL = 0.99
"""The level of all intervals; bounds of probabilities are one-sided, each at this level."""
Share = float | Callable[["Observation"], float]
"""How often something may fail, as a multiple of delta: in all runs alike, or run by run"""


class Status(Enum):
    """How a check ended; the values are the words of the table."""

    HOLDS = "holds"
    REFUTED = "refuted"
    UNTESTED = "not tested here"
    UNRUN = "not run at this level"


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


def unrun(finished: int, wanted: int) -> Verdict:
    """The verdict where runs are missing: whatever the others say, it is not judged."""
    return Verdict(Status.UNRUN, f"{finished:,} of {wanted:,} runs are finished")


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


def log_evidence(observations: Sequence[Observation], name: str) -> float:
    """The logarithm of the mean over odds of the product over seeds of the mean over runs of the likelihood ratios."""
    seeds: dict[int, list[list[float]]] = {}
    for one in observations:
        logs = [one[f"{name}_{j}"] for j in range(len(ODDS))]
        seeds.setdefault(int(one.spec["seed"]), []).append(logs)
    products = np.sum([_log_mean(np.array(logs)) for logs in seeds.values()], axis=0)
    return float(_log_mean(products))


def _log_mean(logs: FloatArray) -> Any:
    """ln of the mean of exp(logs) over the first axis."""
    return np.logaddexp.reduce(logs, axis=0) - log(len(logs))
