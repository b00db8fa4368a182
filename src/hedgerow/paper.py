"""The paper that this package implements, and where its statements are to be found in it.

Numbers are those of the arXiv version: theorems, lemmas, corollaries and algorithms are counted through all sections
and the appendix, each kind by itself. The proceedings may count otherwise. Therefore the label of the LaTeX source (for
the first theorem, which has none, the name of its macro) stands beside every number.

    >>> cite("violation_hard")
    'Theorem 3 (violation_hard)'
    >>> cite("gen_confidence", "confidenceset")
    'Lemma 7 (gen_confidence) and Lemma 9 (confidenceset)'
"""

from __future__ import annotations

TITLE = "Learning Adversarial MDPs with Stochastic Hard Constraints"
AUTHORS = ("Francesco Emanuele Stradi", "Matteo Castiglioni", "Alberto Marchesi", "Nicola Gatti")
VENUE = "ICML"
YEAR = 2025
ARXIV = "2403.03672"

NUMBERS = {
    "Learner-Environment Interaction": "Algorithm 1",
    "SV-OPS": "Algorithm 2",
    "S-OPS": "Algorithm 3",
    "CV-OPS": "Algorithm 4",
    "violationsoft": "Theorem 1",
    "regret_soft_unknown": "Theorem 2",
    "violation_hard": "Theorem 3",
    "reg_hard": "Theorem 4",
    "const_viol": "Theorem 5",
    "const_reg": "Theorem 6",
    "lower_bound": "Theorem 7",
    "rosenberg19a": "Lemma 1",
    "feasibility": "Lemma 2",
    "episode_bounds_strictly": "Lemma 3",
    "widehat_rho_leq": "Lemma 4",
    "widehat_rho_geq": "Lemma 5",
    "indep_confidence": "Lemma 6",
    "gen_confidence": "Lemma 7",
    "transition_gamma": "Lemma 8",
    "confidenceset": "Lemma 9",
    "transition_jin": "Lemma 10",
    "alpha_jin": "Lemma 11",
    "alpha_jin_cor": "Corollary 1",
    "bias1_jin": "Lemma 12",
    "OMD_jin": "Lemma 13",
}
"""Label -> kind and number. Algorithms go by their names, the lemma without a label by whom it quotes."""


def cite(*labels: str) -> str:
    """The statements of these labels, number first."""
    return " and ".join(f"{NUMBERS[label]} ({label})" for label in labels)
