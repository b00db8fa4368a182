"""What the kernels of an LP learner work on, in one bundle: rules, counts, bounds, the linear program and the policy.

All LP learners solve min loss^T q with costs^T q <= thresholds, over the boxes of the transitions or at P_hat. They
differ in the tables of the program (`lp_tables.py`) and in what they do with its answer:

    ALONE    play the policy of the plan; without a solution the least violating one
    SWITCH   play it if there is a solution, else the baseline
    ROBUST   play it, or the least violating one, mixed with the baseline so that the mixture is safe (S-OPS)
"""

from __future__ import annotations

import numpy as np

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.bundles import Bundle, Record
from hedgerow.estimates.boxes import Boxes, BoxRule
from hedgerow.estimates.columns import Columns, make_columns
from hedgerow.estimates.counts import Counts
from hedgerow.estimates.premises import PremiseRule, Premises
from hedgerow.learners.field.lp_tables import Tables
from hedgerow.learners.field.progress import Progress, Reals
from hedgerow.learners.mirror.core import Baseline
from hedgerow.learners.statistics import Statistics
from hedgerow.model.index import Index, index_of
from hedgerow.planning.constrained import PlanProblem, PlanWorkspace, make_plan_workspace
from hedgerow.planning.robust import RobustScratch, robust_scratch

ALONE, SWITCH, ROBUST = 0, 1, 2
EXPLORING, LAST_ATTEMPT, COMMITTED = 0, 1, 2
ROOM = 1e-9
"""Safe plans keep thresholds that are lower by this, times 1 + threshold: the planner meets them up to 1e-10."""


class LPRule(Bundle):
    """What stays the same from the first episode to the last."""

    tables: Tables
    late: Tables
    """Those of the last attempt of explore-then-commit; for other learners the same"""
    at_mean: bool
    """Whether plans are made at P_hat instead of in the boxes"""
    tests_baseline: bool
    """Whether the baseline plays while its own pessimistic cost is above the middle of beta and alpha (OptPess-LP)"""
    mixing: int
    """ALONE, SWITCH or ROBUST"""
    epochs: bool
    """Whether to plan only when the visits of some row have doubled"""
    warmup: int
    """So many episodes are left to the baseline"""
    explore: int
    """So many episodes explore before the learner commits; 0 if it never does"""


class LPNumbers(Record):
    """Counters of a learner, besides those of `Progress`."""

    fresh: int
    """1 if the last episode led to a new plan"""
    open: int
    """1 while a plan waits for the slow solver"""
    stage: int
    """Of explore-then-commit: EXPLORING, LAST_ATTEMPT or COMMITTED; 0 for other learners"""
    plans: int
    """Plans made so far"""
    infeasible: int
    """Plans without a solution"""
    unsolved: int
    """Plans that the slow solver had to make"""


class LPFigures(Record):
    """Numbers of the last plan."""

    value: float
    """Its value in the program's own loss; 0 before the first one"""


class LPCore(Bundle):
    """Everything."""

    index: Index
    rule: LPRule
    box: BoxRule
    counts: Counts
    boxes: Boxes
    progress: Progress
    reals: Reals
    numbers: LPNumbers
    figures: LPFigures
    policy: FloatArray
    """(num_rows,): the policy of the next episode"""
    planned_visits: IntArray
    """(num_rows,): the visits at the last plan"""
    baseline: Baseline
    halfway: FloatArray
    """(m,): (alpha + beta) / 2"""
    problem: PlanProblem
    workspace: PlanWorkspace
    unknown: FloatArray
    """(num_rows,): -1 / sqrt(n), the loss of exploration"""
    scratch: RobustScratch
    """Of exploration"""
    columns: Columns
    bounds: FloatArray
    """(m,): U of S-OPS"""
    values: FloatArray
    """(num_states,)"""
    all_rows: IntArray
    """(num_rows,)"""
    premise_rule: PremiseRule
    premises: Premises
    """What tests the things that the learner was told"""


def make_lp_core(
    seen: Statistics,
    rule: LPRule,
    progress: Progress,
    reals: Reals,
    numbers: LPNumbers,
    figures: LPFigures,
    policy: FloatArray,
    planned_visits: IntArray,
    baseline: Baseline,
    premise_rule: PremiseRule,
    premises: Premises,
) -> LPCore:
    """The core on the counts and bounds of `seen`; its tables are still empty."""
    layout, boxes, binding = seen.layout, seen.boxes, baseline.binding
    lower, upper = boxes.lower, boxes.upper
    if rule.at_mean:
        lower = upper = np.zeros(layout.num_triples)
    room = 0.0 if rule.mixing == ALONE else ROOM
    alpha = baseline.thresholds[binding]
    costs = np.zeros((layout.num_rows, len(binding)))
    return LPCore(
        index=index_of(layout),
        rule=rule,
        box=seen.box_rule,
        counts=seen.counts,
        boxes=boxes,
        progress=progress,
        reals=reals,
        numbers=numbers,
        figures=figures,
        policy=policy,
        planned_visits=planned_visits,
        baseline=baseline,
        halfway=0.5 * (baseline.thresholds + baseline.costs) if len(baseline.policies) else baseline.thresholds.copy(),
        problem=PlanProblem(lower, upper, np.zeros(layout.num_rows), costs, alpha - room * (1.0 + alpha)),
        workspace=make_plan_workspace(layout, len(binding)),
        unknown=np.zeros(layout.num_rows),
        scratch=robust_scratch(layout),
        columns=make_columns(layout),
        bounds=np.zeros(len(baseline.thresholds)),
        values=np.zeros(layout.num_states),
        all_rows=np.arange(layout.num_rows, dtype=np.int64),
        premise_rule=premise_rule,
        premises=premises,
    )
