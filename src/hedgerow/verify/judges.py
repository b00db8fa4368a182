"""The lemmas. T1-T4: the confidence sets hold the truth, and what follows from that surely. T18-T20: the inequalities
behind the theorems: mirror descent, the loss estimator, the two players of the search. T28-T30: the auxiliary lemmas
of Jin et al. (2020) on occupancies and on the loss estimator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, log, sqrt

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.confidence.premises import FALSE_ALARM
from hedgerow.learners.ops.notes import ODDS
from hedgerow.results.metrics import Growth, power_law
from hedgerow.verify.judging import (
    LEVEL,
    Observation,
    Verdict,
    any_of,
    by_horizon,
    growth,
    holds,
    largest_delta,
    never,
    rate,
    rates,
    refuted,
    safe_prefix,
    soft_prefix,
    split,
    together,
    untested,
)

TOL_BOUND = 1e-12
"""Rounding of an upper occupancy bound (T4)."""
TOL_MIRROR = 1e-7
"""Relative error that projections solved to 1e-10 may add over a run"""
TOL_SUM = 1e-6
"""Rounding of a sum over a run"""
PRIMAL_EVENTS = 9
WEIGHTS = {"all": "2 gamma everywhere", "iterate": "2 gamma q_hat", "chosen": "2 gamma where the sum is positive"}
"""The weights with which Lemma 11 is tested, none of which knows the episode"""


def judge_costs(observations: Sequence[Observation]) -> Verdict:
    """Judge the bounds of mean costs, and the aggregate certificate, which takes half of their probability if used."""
    return together(
        *_breaches("a mean cost left its bounds", observations, "cost"),
        *_optional("the sums of the aggregate certificate failed", observations, "aggregate"),
    )


def judge_transitions(observations: Sequence[Observation]) -> Verdict:
    """Judge the boxes, and the balls, which take half of their probability if there are any."""
    return together(
        *_breaches("a transition left its box", observations, "transition"),
        *_optional("a transition row left its ball", observations, "ball"),
    )


def _breaches(what: str, observations: Sequence[Observation], kind: str) -> list[Verdict]:
    return rates(what, observations, lambda one: one[f"{kind}_breaches"] > 0, lambda one: one[f"{kind}_share"])


def _optional(what: str, observations: Sequence[Observation], kind: str) -> list[Verdict]:
    """Judge such sets where they exist; a run without them needs no verdict."""
    some = [one for one in observations if one[f"{kind}_share"] > 0.0]
    return _breaches(what, some, kind) if some else []


def judge_feasibility(observations: Sequence[Observation]) -> Verdict:
    refuted = [one["refuted_feasibility"] > 0 for one in observations if one["clean"] or one["refuted_feasibility"]]
    return together(
        never("a projection without a solution on the clean event", refuted),
        *rates("a projection had no solution", observations, lambda one: one["infeasible"] > 0, 5.0),
    )


def judge_upper_bounds(observations: Sequence[Observation]) -> Verdict:
    least = [one["least_excess"] for one in observations if np.isfinite(one["least_excess"])]
    below = [excess < -TOL_BOUND for excess in least]
    detail = f"least u - q {min(least, default=0.0):.1e}"
    return never("an upper occupancy bound below the truth in its box", below, detail)


def judge_mirror(observations: Sequence[Observation]) -> Verdict:
    clean = [one for one in observations if one["clean"] and not one["infeasible"]]
    broken = [one["mirror_left"] > one["mirror_right"] * (1.0 + TOL_MIRROR) + TOL_MIRROR for one in clean]
    largest = max((one["mirror_left"] / one["mirror_right"] for one in clean), default=0.0)
    return never("the mirror-descent inequality broken", broken, f"largest left/right {largest:.2f}")


def judge_estimator(observations: Sequence[Observation]) -> Verdict:
    watched = [one for one in observations if np.isfinite(one["optimism"])]
    above = [one["optimism"] > one["optimism_bound"] for one in watched]
    largest = max((one["optimism"] / one["optimism_bound"] for one in watched), default=0.0)
    return together(
        rate("the estimator of some pair was above its bound", above, largest_delta(observations)),
        holds(f"largest share of the bound {largest:.2f}"),
    )


def judge_players(observations: Sequence[Observation]) -> Verdict:
    searched = [one for one in observations if one["searched"]]
    dual, primal, bound = (
        max((one[name] for one in searched), default=np.nan) for name in ("dual_ratio", "primal_ratio", "dual_bound")
    )
    least = min((one["primal_bound"] for one in searched), default=np.nan)
    return together(
        never(
            "the dual player above C_D sqrt(t)",
            [one["dual_ratio"] > one["dual_bound"] + 1e-9 for one in searched],
            f"largest {dual:.2f} sqrt(t), C_D {bound:.2f}",
        ),
        rate(
            "the primal player was above C_P sqrt(t ln t)",
            [one["primal_ratio"] > one["primal_bound"] for one in searched],
            min(1.0, PRIMAL_EVENTS * largest_delta(observations)),
        ),
        holds(f"largest primal regret {primal:.2f} sqrt(t ln t), by mean costs; the theory's C_P is {least:.3g}"),
    )


def judge_occupancies(observations: Sequence[Observation]) -> Verdict:
    """Judge sum |u - q|_1: u takes the worst transitions for every state, which makes it the largest of all."""
    inside = [one for one in observations if not one["transition_breaches"] and np.isfinite(one["upper_bound"])]
    above = [one["weighted_upper"] > one["upper_bound"] + TOL_SUM for one in inside]
    largest = max((one["weighted_upper"] / one["upper_bound"] for one in inside), default=0.0)
    sets = split([one for one in observations if one.group != "estimator"])
    return together(
        never("sum |u - q| above the widths of the boxes", above, f"largest share of them {largest:.2f}"),
        any_of(growth(f"sum |u - q| ({label})", some, "weighted_upper") for label, some in sets),
    )


def judge_weighted_estimator(observations: Sequence[Observation]) -> Verdict:
    watched = [one for one in observations if np.isfinite(one["weighted_optimism_bound"])]
    parts = []
    for name, told in WEIGHTS.items():
        above = [one[f"weighted_optimism_{name}"] > one["weighted_optimism_bound"] for one in watched]
        parts.append(rate(f"the sum with weights {told} was above L ln(L/delta)", above, largest_delta(observations)))
    return together(*parts)


def judge_bias(observations: Sequence[Observation]) -> Verdict:
    """Judge the bias of the estimator in runs without a baseline whose transitions stayed in their boxes."""
    some = [one for one in observations if np.isfinite(one["bias"]) and not one["mixing_total"]]
    inside = [one for one in some if not one["transition_breaches"]]
    surely = [one["bias"] > one["bias_bound"] + TOL_SUM for one in inside]
    seen = [not one["transition_breaches"] and one["bias_seen"] > one["bias_seen_bound"] for one in some]
    largest = max((one["bias"] / one["bias_bound"] for one in inside), default=0.0)
    return together(
        never("a bias above sum |u - q| + gamma |X||A| T", surely, f"largest share {largest:.2f}"),
        rate("sum (l - l_hat)^T q_hat was above that and its deviation", seen, largest_delta(observations)),
    )


# --------------------------------------------------------------------------------------------------------------------
# T5 and T6: the violation and the regret of SV-OPS grow like sqrt(T).


def violation_bound(one: Observation) -> float:
    """sum |q_t - q_hat_t|_1 + 2 sum xi^T q_hat_t + residuals + L (episode 1 is unconstrained): at least V_T, surely."""
    return one["width"] + one["radii"] + one["residuals"] + one["steps"] + TOL_SUM


def judge_soft_violation(observations: Sequence[Observation]) -> Verdict:
    clean = [one for one in observations if one["clean"] and not one["infeasible"]]
    above = [one["violation"] > violation_bound(one) for one in clean]
    tightest = max((one["violation"] / violation_bound(one) for one in clean), default=0.0)
    return together(
        never("V_T above the proof's bound", above, f"largest share of the bound {tightest:.2f}"),
        any_of(growth(f"V_T ({label})", some, "violation", soft_prefix) for label, some in split(observations)),
    )


def judge_soft_regret(observations: Sequence[Observation]) -> Verdict:
    return any_of(growth(f"R_T ({label})", some, "regret") for label, some in split(observations))


# --------------------------------------------------------------------------------------------------------------------
# T7-T11: S-OPS is safe in every episode, and the price of its baseline.


TOL_MIXING = 1e-9


def judge_safety(observations: Sequence[Observation]) -> Verdict:
    """Judge safety; runs that search (CV-OPS) count from the end of their first phase."""
    told = [one for one in observations if one["honest_baseline"]]
    worst = max((one["worst"] for one in told if not one["searched"]), default=np.nan)
    detail = f"largest excess over a threshold {worst:.1e}" if np.isfinite(worst) else ""
    return together(
        never("an unsafe episode on the clean event", [one["refuted_safety"] > 0 for one in told], detail),
        *rates("an episode was unsafe", told, _is_unsafe, 5.0),
    )


def _is_unsafe(one: Observation) -> bool:
    return (one["unsafe_after"] if one["searched"] else one["unsafe"]) > 0


def judge_mixing_range(observations: Sequence[Observation]) -> Verdict:
    over = [one["mixing_over"] for one in observations if np.isfinite(one["mixing_over"])]
    detail = f"largest lambda - lambda_0 {max(over, default=0.0):.1e}"
    return never("lambda above lambda_0", [excess > TOL_MIXING for excess in over], detail)


def judge_mixing_bound(observations: Sequence[Observation]) -> Verdict:
    slacks = [one["mixing_slack"] for one in observations if np.isfinite(one["mixing_slack"])]
    detail = f"least slack {min(slacks, default=0.0):.3f}"
    return never("lambda above its bound by the widths", [slack < -TOL_MIXING for slack in slacks], detail)


def judge_safe_growth(observations: Sequence[Observation]) -> Verdict:
    sets = split([one for one in observations if one.group == "safe-growth"])
    sums = any_of(growth(f"sum lambda ({name})", some, "mixing_total", safe_prefix) for name, some in sets)
    regrets = any_of(growth(f"R_T ({name})", some, "regret", safe_prefix) for name, some in sets)
    pair = [one for one in observations if one.group == "lower-bound" and one.world == "lower-bound-2"]
    return together(sums, regrets, *([_margin_law(pair)] if pair else []))


def _margin_law(pair: Sequence[Observation]) -> Verdict:
    """Judge that R_T min(Delta, Delta^2) does not grow as the margin Delta of the baseline goes to 0."""
    longest, regrets = by_margin(pair)
    found = margin_law({rho: regret * min(rho, rho**2) for rho, regret in regrets.items()})
    if found is None:
        return untested("the law in the margin needs positive regret at several margins")
    sentence = (
        f"R_T min(Delta, Delta^2) has exponent {found} in 1/Delta from Delta = {min(regrets):g} to {max(regrets):g} at "
        f"T = {longest:,}"
    )
    return refuted(f"{sentence}: it grows") if found.low > 0.0 else holds(sentence, exponent=found.exponent)


def judge_weighted_width(observations: Sequence[Observation]) -> Verdict:
    parts = []
    for label, some in split(observations):
        parts.append(growth(f"sum (1 - lambda)|q - q_hat| ({label})", some, "weighted_width"))
        if all(np.isfinite(one["weighted_upper"]) for one in some):
            parts.append(growth(f"sum (1 - lambda)|u_hat - q| ({label})", some, "weighted_upper"))
    return any_of(parts)


# --------------------------------------------------------------------------------------------------------------------
# T12-T16: CV-OPS finds a safe policy, and violates nothing from then on.


TOL_LP = 1e-8
"""Accuracy of the linear program that computes rho"""
NEGLIGIBLE = 1e-9


def ended(observations: Sequence[Observation]) -> list[Observation]:
    """Runs whose search ended."""
    return [one for one in observations if np.isfinite(one["t_bar"])]


def judge_margin(observations: Sequence[Observation]) -> Verdict:
    some = ended(observations)
    above = [one["rho_hat"] > one["margin"] for one in some]
    impossible = [one["margin"] > one["rho"] + TOL_LP for one in some]
    shares = [one["rho_hat"] / one["margin"] for one in some if one["margin"] > 0.0]
    detail = f"largest rho_hat/margin {max(shares):.2f}" if shares else "no mixture had a margin at all"
    return together(
        rate("rho_hat was above the margin of the mixture", above, largest_delta(observations)),
        never("a mixture with more margin than rho", impossible, detail),
    )


def oracle(observations: Sequence[Observation]) -> list[Observation]:
    """Runs whose given constant C_P is at least the regret constant that was measured in them."""
    return [one for one in ended(observations) if _constant(one) >= one["primal_ratio"]]


def _constant(one: Observation) -> float:
    return float(one.spec["learner"].get("primal_constant", np.nan))


def judge_half(observations: Sequence[Observation]) -> Verdict:
    some = oracle(observations)
    if not some:
        return untested("no search ended with a constant that its own regret respected")
    shares = [one["rho_hat"] / one["rho"] for one in some]
    reason = "not with the theory's, which no run of this length survives"
    return together(
        rate("rho_hat was below rho/2", [share < 0.5 for share in shares], 3.0 * largest_delta(observations)),
        holds(f"tested with {_told(some)}, {reason}; least {min(shares):.2f}"),
    )


def judge_duration(observations: Sequence[Observation]) -> Verdict:
    some = oracle(observations)
    if not some:
        return untested("no search ended with a constant that its own regret respected")
    largest, shares = max(one["t_bar"] for one in some), [one["t_bar"] / longest_search(one) for one in some]
    detail = f"tested with {_told(some)}; longest search {largest:,.0f} episodes, {max(shares):.1e} of the bound"
    return never("a search beyond its bound", [share > 1.0 for share in shares], detail)


def longest_search(one: Observation, constant: float | None = None) -> float:
    """((3 C_P + 10 L sqrt(2 ln(1/delta)) + 3 C_D + L) / rho)^4; C_P is the run's own, or `constant`."""
    L, spread = one["steps"], 10.0 * one["steps"] * sqrt(2.0 * log(1.0 / one.delta))
    primal = _constant(one) if constant is None else constant
    return float(((3.0 * primal + spread + 3.0 * one["dual_bound"] + L) / one["rho"]) ** 4)


def _told(some: Sequence[Observation]) -> str:
    measured = max(one["primal_ratio"] for one in some)
    return f"C_P = {_constant(some[0]):g}, above the {measured:.2f} measured in the same runs"


def judge_constant_violation(observations: Sequence[Observation]) -> Verdict:
    some = ended(observations)
    if not some:
        return untested("no search ended")
    grew = [one["violation_after"] > NEGLIGIBLE or one["unsafe_after"] > 0 for one in some]
    broken = [one["refuted_safety"] > 0 for one in some if one["honest_baseline"]]
    means = []
    for label, part in split([one for one in some if one.group == "constant"]):
        found = by_horizon(part, "violation").items()
        listed = ", ".join(f"{values.mean():.1f} at T = {T:,}" for T, values in found)
        means.append(holds(f"mean V_T ({label}): {listed}"))
    return together(
        never("an unsafe episode after the search on the clean event", broken),
        rate("V_T grew after the search", grew, 6.0 * largest_delta(observations)),
        *means,
    )


def judge_constant_regret(observations: Sequence[Observation]) -> Verdict:
    sets = split(ended(observations))
    return any_of(growth(f"R_T - R_t_bar ({label})", part, "regret_after", _phase_prefix) for label, part in sets)


def _phase_prefix(one: Observation) -> float:
    """sum lambda as a share of lambda_0 times the episodes of the second phase."""
    return one["mixing_total"] / (one["first_mixing"] * max(1.0, one.episodes - one["t_bar"]))


# --------------------------------------------------------------------------------------------------------------------
# T17: a learner that is safe on one world of the pair has regret on the other; the smaller rho, the larger it is.


CERTAINTY = 0.646
"""Probability with the corrected divergence 2 eps^2 per pull; the paper prints 3/4."""
SAFETY_EVENTS = 5
PREMISE = 0.05
"""V_1 <= PREMISE sqrt(T) counts as o(sqrt T)."""


def least_regret(one: Observation) -> float:
    """sqrt(2T) / (32 rho)."""
    return sqrt(2.0 * one.episodes) / (32.0 * one["rho"])


def margin_of(one: Observation) -> float:
    """rho without the rounding of its linear program: equal margins compare equal."""
    return round(one["rho"], 6)


def by_margin(some: Sequence[Observation]) -> tuple[int, dict[float, FloatArray]]:
    """The longest horizon, and the regrets (seeds,) there by margin, the largest first."""
    longest = max(one.episodes for one in some)
    last = [one for one in some if one.episodes == longest]
    margins = sorted({margin_of(one) for one in some}, reverse=True)
    return longest, {rho: np.array([one["regret"] for one in last if margin_of(one) == rho]) for rho in margins}


def margin_law(samples: Mapping[float, FloatArray]) -> Growth | None:
    """The exponent in 1/rho of samples at several margins rho; None unless all means are positive."""
    if len(samples) < 2 or any(values.mean() <= 0.0 for values in samples.values()):
        return None
    return power_law([1.0 / rho for rho in samples], list(samples.values()), level=LEVEL)


def judge_lower_bound(observations: Sequence[Observation]) -> Verdict:
    first = [one for one in observations if one.world == "lower-bound-1"]
    second = [one for one in observations if one.world == "lower-bound-2"]
    if not first or not second:
        return untested("both instances of the pair are needed")
    excess = max(one["violation"] / sqrt(one.episodes) for one in first)
    if excess > PREMISE:
        return untested(
            f"the premise fails: V_1 reaches {excess:.2f} sqrt(T) on the first instance, so nothing follows"
        )
    ratios = [one["regret"] / least_regret(one) for one in second]
    allowed = 1.0 - CERTAINTY + SAFETY_EVENTS * largest_delta(observations)
    longest, regrets = by_margin(second)
    found = margin_law(regrets)
    return together(
        rate("R_2 was below sqrt(2T)/(32 rho)", [ratio < 1.0 for ratio in ratios], allowed),
        holds(f"V_1 at most {excess:.1e} sqrt(T); R_2 at least {min(ratios):.0f} times the bound"),
        untested("the law in rho needs positive regret at several rho")
        if found is None
        else holds(f"R_2 grows like (1/rho)^x with x = {found} at T = {longest:,}", exponent=found.exponent),
    )


# --------------------------------------------------------------------------------------------------------------------
# T31: what a learner was told is tested by what it sees (`confidence/premises.py`), and nothing true is refuted.
#
# The control is told less than its baseline costs. That it is refuted shows that the tests can find something.


def judge_premises(observations: Sequence[Observation]) -> Verdict:
    """Count the runs in which something that the learner was told was refuted."""
    return any_of(
        rates("what was told was refuted", observations, lambda one: one["refuted_premises"] > 0.0, FALSE_ALARM)
    )


# --------------------------------------------------------------------------------------------------------------------
# T21: S-OPS with a person who stops episodes because of their costs (`controls.Interrupted`).


def judge_interrupted(observations: Sequence[Observation]) -> Verdict:
    """Judge safety and the bounds of costs of runs in which episodes were aborted because of costs."""
    return together(judge_safety(observations), judge_costs(observations))


# --------------------------------------------------------------------------------------------------------------------
# T22-T27: what a learner states follows from what it has seen, number by number; and it plays what it announces.
#
# A confidence set that is 5 % too narrow loses the truth hardly more often than it may: no count of breaches shows
# it. So the twin (`twin.py`) computes sets, bounds, lambda, rates and the radius of the search a second time, and one
# number that differs by more than rounding refutes.
#
# Branches and actions are random. With h = ln of a factor on the odds of the baseline, the likelihood ratio of a coin
# with these odds is a martingale of mean 1 if the coin is right. So is its mean over several h, and over runs with
# one seed, which share their random numbers; runs with other seeds are independent and multiply. By Markov's
# inequality such a number is 100 or more with probability 1 % at most.


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
