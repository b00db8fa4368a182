"""T22-T27: what a learner states follows from what it has seen, number by number; and it plays what it announces.

A confidence set that is 5 % too narrow loses the truth hardly more often than it may: no count of breaches shows it. So
the twin (`twin/`) computes sets, bounds, lambda, rates and the radius of the search a second time, and one number that
differs by more than rounding refutes.

Branches and actions are random. With h = ln of a factor on the odds of the baseline, the likelihood ratio of a coin
with these odds is a martingale of mean 1 if the coin is right. So is its mean over several h, and over runs with one
seed, which share their random numbers; runs with other seeds are independent and multiply. By Markov's inequality such
a number is 100 or more with probability 1 % at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.learners.mirror.notes import ODDS
from hedgerow.promises.observation import Observation
from hedgerow.promises.promise import LEVEL, Verdict, holds, never, refuted, together, untested

TOL = 1e-9
"""Rounding; those of bounds and estimates add up over the steps of an episode"""


def judge_sets(observations: Sequence[Observation]) -> Verdict:
    return _same("a bound of a confidence set that is not the formula's", observations, "interval")


def judge_bounds(observations: Sequence[Observation]) -> Verdict:
    certified = sum(one["certified"] for one in observations)
    return together(
        _same("a U that neither sets nor certificate give", observations, "bound"),
        *([holds(f"the certificate gave {certified:.0f} of them")] if certified else []),
        _same("a sum of the certificate that was counted otherwise", observations, "certificate"),
    )


def judge_mixing(observations: Sequence[Observation]) -> Verdict:
    return together(
        _same("a lambda that is not that of U", observations, "mixing"),
        _same("a mixture that was not the announced one", observations, "mixture"),
    )


def judge_coin(observations: Sequence[Observation]) -> Verdict:
    """Judge the played branches by the coin, and where the twin has seen them the actions, whoever chose them."""
    mixed = [one for one in observations if one["mixing_total"] > 0.0]
    twins = [one for one in mixed if "actions_0" in one.values]
    played = sum(one["baseline_played"] for one in mixed)
    due = sum(one["mixing_total"] for one in mixed)
    return together(
        _evidence(f"the baseline played {played:,.0f} episodes, due were {due:,.1f}", mixed, "coin"),
        *([_evidence("the actions", twins, "actions")] if twins else []),
    )


def judge_rates(observations: Sequence[Observation]) -> Verdict:
    return together(
        _same("an eta or gamma that is not the formula's", observations, "rate"),
        _same("a loss estimate that is not l / (u + gamma)", observations, "estimate"),
    )


def judge_search(observations: Sequence[Observation]) -> Verdict:
    ended = [one for one in observations if np.isfinite(one["t_bar"])]
    return _same("a search with another radius, end or margin", ended, "search")


def _same(what: str, observations: Sequence[Observation], name: str) -> Verdict:
    gaps = [one[f"{name}_gap"] for one in observations]
    compared = sum(one["recomputed"] for one in observations)
    detail = f"largest difference {max(gaps, default=0.0):.1e} in {compared:,.0f} episodes"
    return never(what, [not gap <= TOL for gap in gaps], detail)


def _evidence(what: str, observations: Sequence[Observation], name: str) -> Verdict:
    """Judge by the mean likelihood ratio over the odds, from the logarithms `name`_0, `name`_1, ... of every run."""
    if not observations:
        return untested("no run in which a baseline was mixed in")
    evidence = log_evidence(observations, name)
    sentence = f"{what}: likelihood ratio of other odds {_shown(evidence)}, refuted from {1.0 / (1.0 - LEVEL):.0f} on"
    verdict = refuted if evidence >= -log(1.0 - LEVEL) else holds
    return verdict(sentence, log_evidence=evidence)


def _shown(evidence: float) -> str:
    return f"{exp(evidence):.2g}" if evidence < 700.0 else f"e^{evidence:.0f}"


def log_evidence(observations: Sequence[Observation], name: str) -> float:
    """The logarithm of the mean over odds of the product over seeds of the mean over runs of the likelihood ratios."""
    seeds: dict[int, list[list[float]]] = {}
    for one in observations:
        logs = [one[f"{name}_{j}"] for j in range(len(ODDS))]
        seeds.setdefault(int(one.spec["seed"]), []).append(logs)
    products = np.sum([_log_mean(np.array(logs)) for logs in seeds.values()], axis=0)
    return float(_log_mean(products))


def _log_mean(logs: FloatArray) -> FloatArray:
    """ln of the mean of exp(logs) over the first axis."""
    means: FloatArray = np.logaddexp.reduce(logs, axis=0) - log(len(logs))
    return means
