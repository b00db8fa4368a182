"""The promises: every theorem and lemma of the paper that running code can break, with the judge of each.

A row of `PROMISES`, in the paper's order, has a key, the statement, its source, how surely it is promised, the groups
of runs that judge it (`levels.py`), what would refute it, and the judge, a function of the observations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import exp, log, sqrt

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.confidence.premises import FALSE_ALARM
from hedgerow.paper import cite
from hedgerow.results.metrics import Growth, power_law
from hedgerow.verify.bounded import judge_policy_bounds
from hedgerow.verify.calibrated import judge_own_bounds
from hedgerow.verify.judging import (
    LEVEL,
    Claim,
    Measure,
    Observation,
    Verdict,
    any_of,
    by_horizon,
    growth,
    holds,
    largest_delta,
    log_evidence,
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

Runs = Sequence[Observation]
TOL = 1e-9
"""Rounding of what the twin recomputes; that of bounds and estimates adds up over the steps of an episode"""
TOL_BOUND = 1e-12
"""Rounding of an upper occupancy bound (T4)"""
TOL_MIRROR = 1e-7
"""Relative error that projections solved to 1e-10 may add over a run"""
TOL_MIXING, NEGLIGIBLE = 1e-9, 1e-9
TOL_SUM = 1e-6
"""Rounding of a sum over a run"""
TOL_LP = 1e-8
"""Accuracy of the linear program that computes rho"""
PRIMAL_EVENTS, SAFETY_EVENTS = 9, 5
CERTAINTY = 0.646
"""Probability of T17 with the corrected divergence 2 eps^2 per pull; the paper prints 3/4."""
PREMISE = 0.05
"""V_1 <= PREMISE sqrt(T) counts as o(sqrt T)."""
WEIGHTS = {"all": "2 gamma everywhere", "iterate": "2 gamma q_hat", "chosen": "2 gamma where the sum is positive"}
"""The weights with which Lemma 11 is tested, none of which knows the episode"""


# T1-T4: the confidence sets hold the truth, and what follows from that surely. T18-T20: the inequalities behind the
# theorems. T28-T30: the auxiliary lemmas of Jin et al. (2020) on occupancies and on the loss estimator.


def judge_costs(observations: Runs) -> Verdict:
    """Judge the bounds of mean costs, and the aggregate certificate, which takes a sixth of their share if used."""
    return together(
        *_breaches("a mean cost left its bounds", observations, "cost"),
        *_breaches("the sums of the aggregate certificate failed", observations, "aggregate", optional=True),
    )


def judge_transitions(observations: Runs) -> Verdict:
    """Judge the boxes, and the balls, which take half of their probability if there are any."""
    return together(
        *_breaches("a transition left its box", observations, "transition"),
        *_breaches("a transition row left its ball", observations, "ball", optional=True),
    )


def _breaches(what: str, observations: Runs, kind: str, optional: bool = False) -> list[Verdict]:
    """Judge how often such sets lose the truth; runs without `optional` ones need no verdict."""
    if optional:
        observations = [one for one in observations if one[f"{kind}_share"] > 0.0]
        if not observations:
            return []
    return rates(what, observations, lambda one: one[f"{kind}_breaches"] > 0, lambda one: one[f"{kind}_share"])


def judge_feasibility(observations: Runs) -> Verdict:
    refuted = [one["refuted_feasibility"] > 0 for one in observations if one["clean"] or one["refuted_feasibility"]]
    return together(
        never("a projection without a solution on the clean event", refuted),
        *rates("a projection had no solution", observations, lambda one: one["infeasible"] > 0, 5.0),
    )


def judge_upper_bounds(observations: Runs) -> Verdict:
    least = [one["least_excess"] for one in observations if np.isfinite(one["least_excess"])]
    below = [excess < -TOL_BOUND for excess in least]
    detail = f"least u - q {min(least, default=0.0):.1e}"
    return never("an upper occupancy bound below the truth in its box", below, detail)


def _largest(shares: Iterable[float]) -> float:
    return max(shares, default=0.0)


def judge_mirror(
    observations: Runs, right: str = "mirror_right", what: str = "the mirror-descent inequality"
) -> Verdict:
    clean = [one for one in observations if one["clean"] and not one["infeasible"]]
    broken = [one["mirror_left"] > one[right] * (1.0 + TOL_MIRROR) + TOL_MIRROR for one in clean]
    detail = f"largest left/right {_largest(one['mirror_left'] / one[right] for one in clean):.2f}"
    return never(f"{what} broken", broken, detail)


def judge_estimator(observations: Runs) -> Verdict:
    watched = [one for one in observations if np.isfinite(one["optimism"])]
    shares = [one["optimism"] / one["optimism_bound"] for one in watched]
    above = [one["optimism"] > one["optimism_bound"] for one in watched]
    return together(
        rate("the estimator of some pair was above its bound", above, largest_delta(observations)),
        holds(f"largest share of the bound {_largest(shares):.2f}"),
    )


def judge_players(observations: Runs) -> Verdict:
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


def judge_occupancies(observations: Runs) -> Verdict:
    """Judge sum |u - q|_1: u takes the worst transitions for every state, which makes it the largest of all."""
    inside = [one for one in observations if not one["transition_breaches"] and np.isfinite(one["upper_bound"])]
    above = [one["weighted_upper"] > one["upper_bound"] + TOL_SUM for one in inside]
    largest = _largest(one["weighted_upper"] / one["upper_bound"] for one in inside)
    others = [one for one in observations if one.group != "estimator"]
    return together(
        never("sum |u - q| above the widths of the boxes", above, f"largest share of them {largest:.2f}"),
        _grow("sum |u - q|", others, "weighted_upper"),
    )


def judge_weighted_estimator(observations: Runs) -> Verdict:
    watched = [one for one in observations if np.isfinite(one["weighted_optimism_bound"])]
    parts = []
    for name, told in WEIGHTS.items():
        above = [one[f"weighted_optimism_{name}"] > one["weighted_optimism_bound"] for one in watched]
        parts.append(rate(f"the sum with weights {told} was above L ln(L/delta)", above, largest_delta(observations)))
    return together(*parts)


def judge_bias(observations: Runs) -> Verdict:
    """Judge the bias of the estimator in runs without a baseline whose transitions stayed in their boxes."""
    some = [one for one in observations if np.isfinite(one["bias"]) and not one["mixing_total"]]
    inside = [one for one in some if not one["transition_breaches"]]
    surely = [one["bias"] > one["bias_bound"] + TOL_SUM for one in inside]
    seen = [not one["transition_breaches"] and one["bias_seen"] > one["bias_seen_bound"] for one in some]
    largest = _largest(one["bias"] / one["bias_bound"] for one in inside)
    return together(
        never("a bias above sum |u - q| + gamma |X||A| T", surely, f"largest share {largest:.2f}"),
        rate("sum (l - l_hat)^T q_hat was above that and its deviation", seen, largest_delta(observations)),
    )


# T5 and T6: the violation and the regret of SV-OPS grow like sqrt(T).


def violation_bound(one: Observation) -> float:
    """sum |q_t - q_hat_t|_1 + 2 sum xi^T q_hat_t + residuals + L (episode 1 is unconstrained): at least V_T, surely."""
    return one["width"] + one["radii"] + one["residuals"] + one["steps"] + TOL_SUM


def judge_soft_violation(observations: Runs) -> Verdict:
    clean = [one for one in observations if one["clean"] and not one["infeasible"]]
    above = [one["violation"] > violation_bound(one) for one in clean]
    tightest = _largest(one["violation"] / violation_bound(one) for one in clean)
    return together(
        never("V_T above the proof's bound", above, f"largest share of the bound {tightest:.2f}"),
        _grow("V_T", observations, "violation", soft_prefix),
    )


def _grow(what: str, observations: Runs, name: str, prefix: Measure | None = None) -> Verdict:
    """Judge the growth of a number, in all sets of runs that only differ in horizon and seed."""
    return any_of(growth(f"{what} ({label})", some, name, prefix) for label, some in split(observations))


# T7-T11: S-OPS is safe in every episode, and the price of its baseline.


def judge_safety(observations: Runs) -> Verdict:
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


def judge_mixing_range(observations: Runs) -> Verdict:
    over = [one["mixing_over"] for one in observations if np.isfinite(one["mixing_over"])]
    detail = f"largest lambda - lambda_0 {_largest(over):.1e}"
    return never("lambda above lambda_0", [excess > TOL_MIXING for excess in over], detail)


def judge_mixing_bound(observations: Runs) -> Verdict:
    slacks = [one["mixing_slack"] for one in observations if np.isfinite(one["mixing_slack"])]
    detail = f"least slack {min(slacks, default=0.0):.3f}"
    return never("lambda above its bound by the widths", [slack < -TOL_MIXING for slack in slacks], detail)


def judge_safe_growth(observations: Runs) -> Verdict:
    some = [one for one in observations if one.group == "safe-growth"]
    sums = _grow("sum lambda", some, "mixing_total", safe_prefix)
    regrets = _grow("R_T", some, "regret", safe_prefix)
    pair = [one for one in observations if one.group == "lower-bound" and one.world == "lower-bound-2"]
    return together(sums, regrets, *([_margin_law(pair)] if pair else []))


def _margin_law(pair: Runs) -> Verdict:
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


def judge_weighted_width(observations: Runs) -> Verdict:
    parts = []
    for label, some in split(observations):
        parts.append(growth(f"sum (1 - lambda)|q - q_hat| ({label})", some, "weighted_width"))
        if all(np.isfinite(one["weighted_upper"]) for one in some):
            parts.append(growth(f"sum (1 - lambda)|u_hat - q| ({label})", some, "weighted_upper"))
    return any_of(parts)


# T12-T16: CV-OPS finds a safe policy, and violates nothing from then on.


def ended(observations: Runs) -> list[Observation]:
    """Runs whose search ended."""
    return [one for one in observations if np.isfinite(one["t_bar"])]


def judge_margin(observations: Runs) -> Verdict:
    some = ended(observations)
    above = [one["rho_hat"] > one["margin"] for one in some]
    impossible = [one["margin"] > one["rho"] + TOL_LP for one in some]
    shares = [one["rho_hat"] / one["margin"] for one in some if one["margin"] > 0.0]
    detail = f"largest rho_hat/margin {max(shares):.2f}" if shares else "no mixture had a margin at all"
    return together(
        rate("rho_hat was above the margin of the mixture", above, largest_delta(observations)),
        never("a mixture with more margin than rho", impossible, detail),
    )


def oracle(observations: Runs) -> list[Observation]:
    """Runs whose given constant C_P is at least the regret constant that was measured in them."""
    return [one for one in ended(observations) if _constant(one) >= one["primal_ratio"]]


def _constant(one: Observation) -> float:
    return float(one.spec["learner"].get("primal_constant", np.nan))


def judge_half(observations: Runs) -> Verdict:
    some = oracle(observations)
    if not some:
        return untested("no search ended with a constant that its own regret respected")
    shares = [one["rho_hat"] / one["rho"] for one in some]
    reason = "not with the theory's, which no run of this length survives"
    return together(
        rate("rho_hat was below rho/2", [share < 0.5 for share in shares], 3.0 * largest_delta(observations)),
        holds(f"tested with {_told(some)}, {reason}; least {min(shares):.2f}"),
    )


def judge_duration(observations: Runs) -> Verdict:
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


def _told(some: Runs) -> str:
    measured = max(one["primal_ratio"] for one in some)
    return f"C_P = {_constant(some[0]):g}, above the {measured:.2f} measured in the same runs"


def judge_constant_violation(observations: Runs) -> Verdict:
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


def judge_constant_regret(observations: Runs) -> Verdict:
    return _grow("R_T - R_t_bar", ended(observations), "regret_after", _phase_prefix)


def _phase_prefix(one: Observation) -> float:
    """sum lambda as a share of lambda_0 times the episodes of the second phase."""
    return one["mixing_total"] / (one["first_mixing"] * max(1.0, one.episodes - one["t_bar"]))


# T17: a learner that is safe on one world of the pair has regret on the other; the smaller rho, the larger it is.


def least_regret(one: Observation) -> float:
    """sqrt(2T) / (32 rho)."""
    return sqrt(2.0 * one.episodes) / (32.0 * one["rho"])


def margin_of(one: Observation) -> float:
    """rho without the rounding of its linear program: equal margins compare equal."""
    return round(one["rho"], 6)


def by_margin(some: Runs) -> tuple[int, dict[float, FloatArray]]:
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


def judge_lower_bound(observations: Runs) -> Verdict:
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


# T31: the inputs of a learner are tested by what it sees (`confidence/premises.py`), and nothing true is refuted.
#
# The control gets a bound below what its baseline costs. That it is refuted shows that the tests can find something.


def judge_premises(observations: Runs) -> Verdict:
    """Count the runs in which an input of the learner was refuted."""
    return any_of(rates("an input was refuted", observations, lambda one: one["refuted_premises"] > 0.0, FALSE_ALARM))


def judge_budget(observations: Runs) -> Verdict:
    """Judge the account, the budget while the account is right, and how often it is exceeded at all."""
    told = [one for one in observations if one["honest_baseline"]]
    return together(
        never("the budget exceeded although the account was right", [one["refuted_budget"] > 0 for one in told]),
        *rates("own episodes cost more than the account proves", told, lambda one: one["account_breaches"] > 0, 1.0),
        *rates("the budget was exceeded", told, lambda one: one["overdrawn"] > 0, lambda one: one["budget_share"]),
    )


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


def judge_bounds(observations: Runs) -> Verdict:
    certified = sum(one["certified"] for one in observations)
    return together(
        _same("a U that neither sets nor certificate give", observations, "bound"),
        *([holds(f"the certificate gave {certified:.0f} of them")] if certified else []),
        _same("a sum of the certificate that was counted otherwise", observations, "certificate"),
    )


def judge_coin(observations: Runs) -> Verdict:
    """Judge the played branches by the coin, and where the twin has seen them the actions, whatever chose them."""
    mixed = [one for one in observations if one["mixing_total"] > 0.0]
    twins = [one for one in mixed if "actions_0" in one.values]
    played = sum(one["baseline_played"] for one in mixed)
    due = sum(one["mixing_total"] for one in mixed)
    return together(
        _evidence(f"the baseline played {played:,.0f} episodes, due were {due:,.1f}", mixed, "coin"),
        *([_evidence("the actions", twins, "actions")] if twins else []),
    )


def _same(what: str, observations: Runs, name: str) -> Verdict:
    gaps = [one[f"{name}_gap"] for one in observations]
    compared = sum(one["recomputed"] for one in observations)
    detail = f"largest difference {_largest(gaps):.1e} in {compared:,.0f} episodes"
    return never(what, [not gap <= TOL for gap in gaps], detail)


def _evidence(what: str, observations: Runs, name: str) -> Verdict:
    """Judge by the mean likelihood ratio over the odds, from the logarithms `name`_0, `name`_1, ... of every run."""
    if not observations:
        return untested("no run in which a baseline was mixed in")
    evidence = log_evidence(observations, name)
    sentence = f"{what}: likelihood ratio of other odds {_shown(evidence)}, refuted from {1.0 / (1.0 - LEVEL):.0f} on"
    verdict = refuted if evidence >= -log(1.0 - LEVEL) else holds
    return verdict(sentence, log_evidence=evidence)


def _shown(evidence: float) -> str:
    return f"{exp(evidence):.2g}" if evidence < 700.0 else f"e^{evidence:.0f}"


# All of them ----------------------------------------------------------------------------------------------------------


PROMISES = (
    Claim("T1", "the mean costs lie within their bounds, |g_hat - g| <= xi, for all episodes, constraints and pairs; "
            "sharpest: and sum N y <= SX + rad of the aggregate certificate",
            cite("gen_confidence"),
            "1 - delta; sharpest: 1 - 3 delta, or 1 - 5 delta where no transition is uncertain, a sixth of it for the "
            "certificate",
            ("confidence", "coverage"), "lower 99 % bound of the breach rate above its share", judge_costs),
    Claim("T2", "the true transitions lie in the boxes P_t in all episodes; sharpest: and in the balls of wide rows",
            cite("confidenceset"), "1 - 4 delta; sharpest: 1 - 2 delta, half of it each with balls",
            ("confidence", "coverage"), "lower 99 % bound of the breach rate above its share",
            judge_transitions),
    Claim("T3", "every projection has a solution if some policy is feasible", cite("feasibility"),
            "1 - 5 delta; surely on the clean event", ("confidence", "coverage", "deterministic"),
            "one infeasible projection on the clean event; rate above 5 delta", judge_feasibility),
    Claim("T4", "u_t >= q_t and u_hat_t >= q of pi_hat_t on all pairs", "definition of COMP-UOB",
            "surely while P is in its box", ("deterministic",), f"one deficit above {TOL_BOUND:g}",
            judge_upper_bounds),
    Claim("T5", "SV-OPS: V_T = O(L |X| sqrt(|A| T ln(T|X||A|m/delta)))", cite("violationsoft"),
            "1 - 8 delta; the bound by widths surely on the clean event", ("soft-violation",),
            "a run above sum |q - q_hat| + 2 sum xi^T q_hat + L; exponent above 1/2 and its logarithm, not falling",
            judge_soft_violation),
    Claim("T6", "SV-OPS: R_T = O(L |X| sqrt(|A| T ln(T|X||A|/delta))) against any losses",
            cite("regret_soft_unknown"), "1 - 10 delta", ("soft-regret",),
            "exponent above 1/2 and its logarithm, not falling, for some adversary",
            lambda runs: _grow("R_T", runs, "regret")),
    Claim("T7", "S-OPS: the expected costs of the mixture respect every threshold in every episode",
            cite("violation_hard"), "1 - 5 delta; surely on the clean event",
            ("deterministic", "confidence", "coverage", "safe-growth"),
            "one unsafe episode on the clean event; rate above 5 delta", judge_safety),
    Claim("T8", "S-OPS: 0 <= lambda_t <= lambda_0 while projections are feasible",
            f"{cite('violation_hard')}, proof", "surely", ("deterministic", "confidence", "coverage", "safe-growth"),
            f"one excess above {TOL_MIXING:g}", judge_mixing_range),
    Claim("T9", "S-OPS: lambda_t <= max_i (|u_hat - q|_1 + |q - q_hat|_1 + 2 xi^T u_hat) / (alpha_i - beta_i)",
            f"{cite('reg_hard')}, proof", "surely on the clean event", ("deterministic",),
            "one episode above the bound", judge_mixing_bound),
    Claim("T10", "S-OPS: sum lambda = O~(sqrt T), R_T = O~(Psi sqrt T), Psi = max 1 / min(Delta, Delta^2)",
            cite("reg_hard"), "1 - 13 delta", ("safe-growth", "lower-bound"),
            "exponent above 1/2 and its logarithm, not falling; R_T min(Delta, Delta^2) growing as Delta -> 0",
            judge_safe_growth),
    Claim("T11", "S-OPS: sum (1 - lambda) |q - q_hat|_1 = O(L |X| sqrt(|A| T ln))", cite("transition_gamma"),
            "1 - 2 delta", ("safe-width",), "exponent above 1/2 and its logarithm, not falling",
            judge_weighted_width),
    Claim("T12", "CV-OPS: rho_hat <= margin of the found mixture <= rho",
            f"{cite('widehat_rho_leq')}, with a time-uniform radius", "1 - delta; the second inequality surely",
            ("search", "constant"),
            "lower 99 % bound of the rate of rho_hat > margin above delta; one margin above rho",
            judge_margin),
    Claim("T13", "CV-OPS: rho_hat >= rho / 2, if the rule waits for the regret of the players",
            cite("widehat_rho_geq"), "1 - 3 delta and what the primal player's regret bound fails", ("oracle",),
            "lower 99 % bound of the rate of rho_hat < rho/2 above 3 delta", judge_half),
    Claim("T14", "CV-OPS: t_bar <= ((3 C_P + 10 L sqrt(2 ln(1/delta)) + 3 C_D + L) / rho)^4",
            cite("episode_bounds_strictly"), "as T13", ("oracle",), "one search beyond the bound",
            judge_duration),
    Claim("T15", "CV-OPS: V_T does not grow once the search has ended", cite("const_viol"),
            "1 - 6 delta; surely on the clean event and while rho_hat is right", ("search", "constant"),
            "one unsafe episode after the search on the clean event; rate of runs that violate afterwards above "
            "6 delta", judge_constant_violation),
    Claim("T16", "CV-OPS: R_T - R_t_bar = O~(sqrt(T) / min(rho, rho^2))", cite("const_reg"), "1 - 14 delta",
            ("constant",), "exponent above 1/2 and its logarithm, not falling", judge_constant_regret),
    Claim("T17", "V_T = o(sqrt T) on instance 1 implies R_T >= sqrt(2T) / (32 rho) on instance 2",
            cite("lower_bound"), "0.646 - 5 delta (the paper's 3/4 rests on half of the divergence)",
            ("lower-bound",), "lower 99 % bound of the rate of smaller regrets above 0.354 + 5 delta",
            judge_lower_bound),
    Claim("T18", "sum l_hat^T (q_hat - q*) <= L ln(|X|^2|A|)/eta + eta sum q_hat^T l_hat^2", cite("OMD_jin"),
            "surely while q* is in all sets", ("deterministic",), "one run in which the left side is larger",
            judge_mirror),
    Claim("T19", "sum_t (l_hat - (q/u) l)(x,a) <= ln(|X||A|/delta) / (2 gamma) for all pairs",
            cite("alpha_jin_cor"), "1 - delta", ("estimator",), "lower 99 % bound of the rate above delta",
            judge_estimator),
    Claim("T20", "the players of the search: regret <= C_P sqrt(t ln t) and <= C_D sqrt(t) at all times",
            "Jin et al. 2020; Zinkevich 2003", "1 - 9 delta; surely", ("search",),
            "one breach by the dual player; rate above 9 delta for the primal one", judge_players),
    Claim("T21", "S-OPS: safe in every episode, and mean costs in their intervals, if a person aborts episodes, or "
            "takes over in them, because of their costs", "docs/counting.md", "1 - 5 delta; costs as T1",
            ("interrupted",), "as T1 and T7", lambda runs: together(judge_safety(runs), judge_costs(runs))),
    Claim("T22", "the confidence sets are those that the formulas give for what was seen",
            f"{cite('gen_confidence', 'confidenceset')}; `kt`: confidence/kl.py", "surely",
            ("recomputed",), f"one bound that differs by more than {TOL:g}",
            lambda runs: _same("a bound of a confidence set that is not the formula's", runs, "interval")),
    Claim("T23", "U is one of the bounds that sets, balls, certificate and baseline give, and n, N, SX and VV of the "
            "certificate are the sums over the own episodes", f"{cite('S-OPS')}, line 14; docs/aggregate.md", "surely",
            ("recomputed",),
            f"one number that differs by more than {TOL:g}", judge_bounds),
    Claim("T24", "lambda is the least weight that makes the mixture safe against U, and that mixture is announced",
            f"{cite('S-OPS')}, lines 14-19", "surely", ("recomputed",),
            f"one number that differs by more than {TOL:g}", lambda runs: together(
                _same("a lambda that is not that of U", runs, "mixing"),
                _same("a mixture that was not the announced one", runs, "mixture"))),
    Claim("T25", "the baseline is played with probability lambda: branches, and actions, are those of the mixture",
            f"{cite('S-OPS')}, line 4", "surely lambda given the past",
            ("recomputed", "deterministic", "confidence", "coverage", "safe-growth", "search", "constant", "choice"),
            "other odds are 100 times likelier (level 1 %)", judge_coin),
    Claim("T26", "eta = gamma = sqrt(L ln(L|X||A|/delta) / (T|X||A|)), in sharpest gamma a tenth of it and eta by the "
            "rule of docs/rates.md; l_hat = l / (u + gamma) on the visited pairs",
            f"{cite('SV-OPS')}, lines 4-6", "surely", ("recomputed",),
            f"one number that differs by more than {TOL:g}", lambda runs: together(
                _same("an eta or gamma that is not the formula's", runs, "rate"),
                _same("a loss estimate that is not l / (u + gamma)", runs, "estimate"))),
    Claim("T27", "CV-OPS: radius, margin, t_bar and beta are those of the stopping rule",
            f"{cite('CV-OPS')}, with a time-uniform radius", "surely", ("recomputed",),
            f"one number that differs by more than {TOL:g}",
            lambda runs: _same("a search with another radius, end or margin", ended(runs), "search")),
    Claim("T28", "SV-OPS: sum |q^{P^x} - q|_1 = O(L |X| sqrt(|A| T ln(T|X||A|/delta))) for any P^x in the boxes, the "
            "worst for every state x", cite("transition_jin"),
            "1 - 6 delta; the bound by widths surely while P is in its box", ("soft-width", "estimator"),
            "a run above sum_t sum_r q(r) |P^x - P|(r) |states beyond r|; exponent above 1/2 and its logarithm, not "
            "falling", judge_occupancies),
    Claim("T29", "sum_t a_t^T (l_hat - (q/u) l) <= L ln(L/delta) for weights a_t in [0, 2 gamma] known before the "
            "episode", cite("alpha_jin"), "1 - delta", ("estimator",),
            "lower 99 % bound of the rate above delta, for some of three kinds of weights",
            judge_weighted_estimator),
    Claim("T30", "SV-OPS: sum (l - l_hat)^T q_hat <= sum |u - q|_1 + gamma |X||A| T + L sqrt(T ln(1/delta) / 2)",
            cite("bias1_jin"), "1 - delta while P is in its box; the conditional mean surely", ("estimator",),
            "one conditional mean above the first two terms; lower 99 % bound of the rate above delta",
            judge_bias),
    Claim("T31", "no input of a learner is refuted by what it sees, if it is true", "docs/knowledge.md",
            f"1 - {FALSE_ALARM:g} delta", ("confidence", "coverage"), "a rate above that (99 %)", judge_premises),
    Claim("T32", "B-OPS: after every episode the summed expected costs of all episodes so far are at most alpha t",
            "docs/budget.md", "1 - 6 delta; 1 - delta by the ceiling; surely while its account is right", ("budget",),
            "one run above alpha t though the account was right; rate of wrong accounts above delta", judge_budget),
    Claim("T33", "sum l_hat^T (q_hat - q*) <= D_0/eta_T + sum M + mixtures, D_0 = sum_k ln n_k, whatever the rates, if "
            "eta never rises", "docs/rates.md", "surely while q* is in all sets", ("deterministic", "rates"),
            "one run in which the left side is larger",
            lambda runs: judge_mirror(runs, "mirror_least", "the inequality of the rates")),
    Claim("T34", "the anchored bound of a policy is beta + D(x_0), and at least its cost", "docs/anchored.md",
            "surely; the cost on the clean event", ("recomputed",), f"one number that differs by more than {TOL:g}",
            lambda runs: _same("an anchored bound that is not the formula's, or below the cost", runs, "anchored")),
    Claim("T35", "C-OPS: the costs of the whole mixture respect every threshold in every episode", "docs/choice.md",
            "1 - 5 delta; surely on the clean event", ("choice",), "as T7", judge_safety),
    Claim("T36", "the bounds of `Statistics.bound`, with and without a baseline, are at least the costs of policies, "
            "at all times at once", "docs/aggregate.md, docs/anchored.md", "1 - 5 delta", ("bounds",),
            "lower 99 % bound of the rate of runs with a smaller bound above 5 delta", judge_policy_bounds),
    Claim("T37", "S-OPS: the bound U that lambda is computed from is at least the expected cost of its policy",
            f"{cite('S-OPS')}, line 14; docs/aggregate.md", "1 - 5 delta; surely on the clean event", ("calibration",),
            "one smaller U on the clean event; lower 99 % bound of the rate of runs with one above 5 delta",
            judge_own_bounds),
    Claim("T38", "S-OPS: safe in every episode, and the truth in all sets, where cost and next state of a step are one "
            "draw and that is declared", "docs/aggregate.md", "1 - 5 delta; costs as T1, transitions as T2", ("steps",),
            "as T1, T2 and T7",
            lambda runs: together(judge_safety(runs), judge_costs(runs), judge_transitions(runs))),
)  # fmt: skip
BY_KEY = {promise.key: promise for promise in PROMISES}
