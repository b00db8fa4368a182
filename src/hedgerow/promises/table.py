"""The promises: every theorem and lemma of the paper that running code can break, in the paper's order.

A row has a key, the statement, its source, how surely it is promised, the groups of runs that judge it (`levels.py`),
what would refute it, and the judge.
"""

from __future__ import annotations

from hedgerow.paper import cite
from hedgerow.promises import constant, lemmas, lower, safe, soft
from hedgerow.promises.promise import Claim

PROMISES = (
    Claim("T1", "the mean costs lie within their bounds, |g_hat - g| <= xi, for all episodes, constraints and pairs; "
            "sharpest: and sum N y <= SX + rad of the aggregate certificate",
            cite("gen_confidence"),
            "1 - delta; sharpest: 1 - 3 delta, or 1 - 5 delta where no transition is uncertain, half of it each with "
            "the certificate",
            ("confidence", "coverage"), "lower 99 % bound of the breach rate above its share", lemmas.judge_costs),
    Claim("T2", "the true transitions lie in the boxes P_t in all episodes; sharpest: and in the balls of wide rows",
            cite("confidenceset"), "1 - 4 delta; sharpest: 1 - 2 delta, half of it each with balls",
            ("confidence", "coverage"), "lower 99 % bound of the breach rate above its share",
            lemmas.judge_transitions),
    Claim("T3", "every projection has a solution if some policy is feasible", cite("feasibility"),
            "1 - 5 delta; surely on the clean event", ("confidence", "coverage", "deterministic"),
            "one infeasible projection on the clean event; rate above 5 delta", lemmas.judge_feasibility),
    Claim("T4", "u_t >= q_t and u_hat_t >= q of pi_hat_t on all pairs", "definition of COMP-UOB",
            "surely while P is in its box", ("deterministic",), f"one deficit above {lemmas.TOL_BOUND:g}",
            lemmas.judge_upper_bounds),
    Claim("T5", "SV-OPS: V_T = O(L |X| sqrt(|A| T ln(T|X||A|m/delta)))", cite("violationsoft"),
            "1 - 8 delta; the bound by widths surely on the clean event", ("soft-violation",),
            "a run above sum |q - q_hat| + 2 sum xi^T q_hat + L; exponent above 1/2 and its logarithm, not falling",
            soft.judge_violation),
    Claim("T6", "SV-OPS: R_T = O(L |X| sqrt(|A| T ln(T|X||A|/delta))) against any losses",
            cite("regret_soft_unknown"), "1 - 10 delta", ("soft-regret",),
            "exponent above 1/2 and its logarithm, not falling, for some adversary", soft.judge_regret),
    Claim("T7", "S-OPS: the expected costs of the mixture respect every threshold in every episode",
            cite("violation_hard"), "1 - 5 delta; surely on the clean event",
            ("deterministic", "confidence", "coverage", "safe-growth"),
            "one unsafe episode on the clean event; rate above 5 delta", safe.judge_safety),
    Claim("T8", "S-OPS: 0 <= lambda_t <= lambda_0 while projections are feasible",
            f"{cite('violation_hard')}, proof", "surely", ("deterministic", "confidence", "coverage", "safe-growth"),
            f"one excess above {safe.TOL_MIXING:g}", safe.judge_mixing_range),
    Claim("T9", "S-OPS: lambda_t <= max_i (|u_hat - q|_1 + |q - q_hat|_1 + 2 xi^T u_hat) / (alpha_i - beta_i)",
            f"{cite('reg_hard')}, proof", "surely on the clean event", ("deterministic",),
            "one episode above the bound", safe.judge_mixing_bound),
    Claim("T10", "S-OPS: sum lambda = O~(sqrt T), R_T = O~(Psi sqrt T), Psi = max 1 / min(Delta, Delta^2)",
            cite("reg_hard"), "1 - 13 delta", ("safe-growth", "lower-bound"),
            "exponent above 1/2 and its logarithm, not falling; R_T min(Delta, Delta^2) growing as Delta -> 0",
            safe.judge_safe_growth),
    Claim("T11", "S-OPS: sum (1 - lambda) |q - q_hat|_1 = O(L |X| sqrt(|A| T ln))", cite("transition_gamma"),
            "1 - 2 delta", ("safe-width",), "exponent above 1/2 and its logarithm, not falling",
            safe.judge_weighted_width),
    Claim("T12", "CV-OPS: rho_hat <= margin of the found mixture <= rho",
            f"{cite('widehat_rho_leq')}, with a time-uniform radius", "1 - delta; the second inequality surely",
            ("search", "constant"),
            "lower 99 % bound of the rate of rho_hat > margin above delta; one margin above rho",
            constant.judge_margin),
    Claim("T13", "CV-OPS: rho_hat >= rho / 2, if the rule waits for the regret of the players",
            cite("widehat_rho_geq"), "1 - 3 delta and what the primal player's regret bound fails", ("oracle",),
            "lower 99 % bound of the rate of rho_hat < rho/2 above 3 delta", constant.judge_half),
    Claim("T14", "CV-OPS: t_bar <= ((3 C_P + 10 L sqrt(2 ln(1/delta)) + 3 C_D + L) / rho)^4",
            cite("episode_bounds_strictly"), "as T13", ("oracle",), "one search beyond the bound",
            constant.judge_duration),
    Claim("T15", "CV-OPS: V_T does not grow once the search has ended", cite("const_viol"),
            "1 - 6 delta; surely on the clean event and while rho_hat is right", ("search", "constant"),
            "one unsafe episode after the search on the clean event; rate of runs that violate afterwards above "
            "6 delta", constant.judge_violation),
    Claim("T16", "CV-OPS: R_T - R_t_bar = O~(sqrt(T) / min(rho, rho^2))", cite("const_reg"), "1 - 14 delta",
            ("constant",), "exponent above 1/2 and its logarithm, not falling", constant.judge_regret),
    Claim("T17", "V_T = o(sqrt T) on instance 1 implies R_T >= sqrt(2T) / (32 rho) on instance 2",
            cite("lower_bound"), "0.646 - 5 delta (the paper's 3/4 rests on half of the divergence)",
            ("lower-bound",), "lower 99 % bound of the rate of smaller regrets above 0.354 + 5 delta",
            lower.judge_lower_bound),
    Claim("T18", "sum l_hat^T (q_hat - q*) <= L ln(|X|^2|A|)/eta + eta sum q_hat^T l_hat^2", cite("OMD_jin"),
            "surely while q* is in all sets", ("deterministic",), "one run in which the left side is larger",
            lemmas.judge_mirror),
    Claim("T19", "sum_t (l_hat - (q/u) l)(x,a) <= ln(|X||A|/delta) / (2 gamma) for all pairs",
            cite("alpha_jin_cor"), "1 - delta", ("estimator",), "lower 99 % bound of the rate above delta",
            lemmas.judge_estimator),
    Claim("T20", "the players of the search: regret <= C_P sqrt(t ln t) and <= C_D sqrt(t) at all times",
            "Jin et al. 2020; Zinkevich 2003", "1 - 9 delta; surely", ("search",),
            "one breach by the dual player; rate above 9 delta for the primal one", lemmas.judge_players),
)  # fmt: skip
BY_KEY = {promise.key: promise for promise in PROMISES}
