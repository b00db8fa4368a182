"""What the LP learners promise, and how surely.

The clean event: all transition probabilities lie in their boxes and all means within their bounds, in all episodes.

    hedgerow   1 - 5 delta; 1 - delta where all transitions are known             (`estimates/radii.py`)
    source     at least 1 - 4 n T e^-iota - 2 R (m + 1) T e^(-4 iota'),   iota' = iota + ln(m + 1)

for n triples of rows with several successors and R rows. The second is our own union bound over the forms of Efroni,
Mannor and Pirotta (2020): each transition misses its box with probability at most 4 e^-iota at each number of visits,
by empirical Bernstein (Maurer and Pontil 2009), because 2 p (1 - p) / (n - 1) <= 4 p (1 - p) / n for n >= 2; each mean
misses its bound with at most 2 e^(-2 n xi^2), by Hoeffding.
"""

from __future__ import annotations

from math import exp
from typing import TYPE_CHECKING

import numpy as np

from hedgerow.learners.ledger import CLEAN_EVENT, INDEPENDENT_LOSSES, Budget, Promise

if TYPE_CHECKING:
    from hedgerow.learners.field.base import FieldLearner
    from hedgerow.learners.field.lp_base import LPLearner

COSTS_ARE_DRAWS = "costs of an episode are independent draws around means that do not change"
BASELINE_IS_SAFE = "the baseline costs are upper bounds of its true expected costs"


def clean_probability(learner: FieldLearner) -> float:
    """A lower bound of the probability of the clean event, for learners with statistics."""
    assert learner.seen is not None
    seen = learner.seen
    if learner.radii == "hedgerow":
        known = learner.view.knowledge.transitions
        return Budget(learner.delta, known is not None and not np.isnan(known).any()).sure(CLEAN_EVENT)
    rule, uncertain = seen.box_rule.radii, seen.box_rule.uncertain.astype(bool)
    triples = int(np.diff(learner.layout.row_start)[uncertain].sum())
    means = int(seen.box_rule.unknown_costs.sum())
    missed = 4.0 * triples * exp(-rule.transition_log) + 2.0 * means * exp(-4.0 * rule.cost_log)
    return max(0.0, 1.0 - learner.episodes * missed)


def confidence(learner: LPLearner) -> Promise:
    """The clean event itself, for transitions and costs."""
    return Promise(
        "confidence",
        "in every episode all transition probabilities lie in their boxes and all mean costs within their bounds",
        clean_probability(learner),
        "union bound over Hoeffding and empirical Bernstein inequalities (Maurer and Pontil 2009)",
    )


def safety(learner: LPLearner, source: str, probability: float | None = None) -> Promise:
    """No violation in any episode, whatever the losses."""
    return Promise(
        "safety",
        "in every episode the expected costs of what is played respect the thresholds, whatever the losses",
        clean_probability(learner) if probability is None else probability,
        source,
    )


def stochastic_regret(learner: LPLearner, rate: str, source: str, void_because: str = "") -> Promise:
    """A regret that is promised for losses that are independent draws."""
    return Promise(
        "regret",
        f"the regret is O~({rate}), with S the size of the largest layer, for losses that are independent draws",
        clean_probability(learner),
        source,
        void_because,
        assumes=INDEPENDENT_LOSSES,
    )
