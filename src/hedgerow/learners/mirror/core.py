"""The core of a learner: everything its kernels need, in one bundle: layout, rules, state, baselines and buffers."""

from __future__ import annotations

import numpy as np

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.bundles import Bundle, Record
from hedgerow.estimates.aggregate import AggregateRule
from hedgerow.estimates.aggregate_bounds import AggregateScratch, make_aggregate_scratch
from hedgerow.estimates.balls import BallRule
from hedgerow.estimates.boxes import BoxRule
from hedgerow.estimates.columns import Columns, make_columns
from hedgerow.estimates.gaps import Gaps, make_gaps
from hedgerow.learners.mirror.safe_search import SearchRule, no_search
from hedgerow.learners.mirror.state import State
from hedgerow.model.index import Index, index_of
from hedgerow.model.layout import Layout
from hedgerow.projection.infeasibility import CuttingPlanes, make_cutting_planes
from hedgerow.projection.kernel_problem import KernelProblem
from hedgerow.projection.workspace import Workspace, make_workspace

MIXTURE, REALISED, DISCARD = 0, 1, 2
MIXTURE_BOUNDS = {"mixture": MIXTURE, "realised": REALISED, "discard": DISCARD}
SUSPECT_THETA = 1e3
SUSPECT_ITERATIONS = 40
RELAXED_THETA = 1e5
"""Replaces SUSPECT_THETA where the thresholds were raised, because these are known to have a solution."""
RELAXED_ITERATIONS = 12
"""Replaces SUSPECT_ITERATIONS there: steps are expensive, and with more room fewer are needed."""
RELAXED_FLOOR = -23.0
"""Floor of ln q~ in such episodes: the least violating policy may change, and weights near 0 are hard to revive."""
MOST_CUTS = 64
"""Rounds that the search for the least violation may take in one episode; about ten are needed."""


class Rule(Bundle):
    """What stays the same from the first episode to the last."""

    box: BoxRule
    epochs: bool
    """Whether boxes are rebuilt only when a count has doubled"""
    doubling: bool
    """Whether the horizon is unknown: restarts after 1, 2, 4, ... episodes"""
    log_inverse_delta: float
    """ln(1 / delta)"""
    pairs: float
    """|X||A|, x_0 and x_L counted"""
    tol: float
    joint_cost: bool
    mixture_bound: int
    literal_sigma: bool
    tied: bool
    """Whether rows share laws; then an episode may change the boxes of rows that it did not visit"""
    aggregate: AggregateRule
    """The rule of the aggregate certificate, where the state has one"""
    ball: BallRule
    """The rule of the balls, where the state has some"""


class Baseline(Bundle):
    """Policies whose uniform mixture is known to be safe: S-OPS has one, CV-OPS many, learners without mixing none."""

    policies: FloatArray
    """(K, num_rows)"""
    costs: FloatArray
    """beta (m,): upper bounds of the expected costs of their uniform mixture"""
    thresholds: FloatArray
    """alpha (m,)"""
    ceilings: FloatArray
    """(m,): what an episode costs at most, L unless less is known"""
    binding: IntArray
    """The constraints that can be violated at all: alpha_i is below its ceiling"""


class Trace(Bundle):
    """The estimates of the last episode, for each pair of its path."""

    visited: IntArray
    """(L,): states"""
    reach: FloatArray
    """(L,): largest probability of each state under the learner's policy"""
    baseline_u: FloatArray
    """(L,): upper occupancy bounds of the baseline"""
    u: FloatArray
    """(L,): upper occupancy bounds of the plan"""
    q_hat: FloatArray
    """(L,): q_hat before the update"""
    estimate: FloatArray
    """(L,): l_hat"""
    fed: FloatArray
    """(L,): what the search of CV-OPS takes as losses"""


class Marks(Record):
    """Flags of the episode that is about to be learnt; all 0 if it is an ordinary one, and between episodes."""

    broken: int
    """1 if it is not whole: `gaps` and `filled` say what is known of it"""
    closes: int
    """1 if sums over whole episodes cannot go on after it"""
    skipped: int
    """1 if they leave it out"""


class Buffers(Bundle):
    """Buffers. Only both columns, `reach` and the costs of `problem` outlive an episode; they follow from the state."""

    problem: KernelProblem
    """The projection; its weights, conditionals and boxes are those of the state, its costs are `optimistic`"""
    planes: CuttingPlanes
    """The search for the least violation; theta is the certificate of the state"""
    newton: Workspace
    v: FloatArray
    """(num_states,)"""
    costs: FloatArray
    """(constraints that bind,)"""
    columns: Columns
    """The boxes as `policy` meets them"""
    baseline_columns: Columns
    baseline_reach: FloatArray
    """(num_states,)"""
    reach: FloatArray
    """(num_states,): largest probability of each decision state under `policy`; only the sum of u needs it"""
    all_rows: IntArray
    """(num_rows,): 0, 1, ..."""
    changed: IntArray
    """(2 num_rows,): the rows whose boxes an episode changed, where these are refreshed gradually"""
    touched: IntArray
    """(num_rows,): these and the visited ones, each once, where rows share laws"""
    before: FloatArray
    """(m,): bounds before a certificate improved them"""
    trace: Trace
    marks: Marks
    gaps: Gaps
    """What is not known of an episode that is not whole"""
    filled: FloatArray
    """(L, m): its costs, 1 in the place of those that were not observed, in sum at most the ceilings"""
    certificate: AggregateScratch
    """Buffers of the aggregate certificate"""


class Core(Bundle):
    """All of it."""

    index: Index
    rule: Rule
    state: State
    baseline: Baseline
    search: SearchRule
    buffers: Buffers


def make_core(layout: Layout, rule: Rule, state: State, baseline: Baseline, search: SearchRule | None = None) -> Core:
    """The bundle around `state`; call `prepare` of `step.py` before use."""
    buffers = _make_buffers(layout, state, baseline)
    return Core(index_of(layout), rule, state, baseline, no_search() if search is None else search, buffers)


def _make_buffers(layout: Layout, state: State, baseline: Baseline) -> Buffers:
    binding = baseline.binding
    problem = KernelProblem(
        log_weight=state.log_weight,
        conditional=state.conditional,
        log_conditional=np.zeros(0),  # the floor of the conditionals keeps them normal numbers
        lower=state.boxes.lower,
        upper=state.boxes.upper,
        costs=np.ascontiguousarray(state.boxes.cost_lower[:, binding]),
        thresholds=baseline.thresholds[binding],
        absorbed=np.zeros(len(binding)),
    )
    return Buffers(
        problem=problem,
        planes=make_cutting_planes(layout, len(binding), MOST_CUTS, state.certificate),
        # Newton's method reuses active bounds and its last system. These decide the last bits: they are state.
        newton=make_workspace(layout, len(binding)).replace(bound=state.bound, **state.system.as_dict()),
        v=np.zeros(layout.num_states),
        costs=np.zeros(len(binding)),
        columns=make_columns(layout),
        baseline_columns=make_columns(layout),
        baseline_reach=np.zeros(layout.num_states),
        reach=np.zeros(layout.num_states),
        all_rows=np.arange(layout.num_rows, dtype=np.int64),
        changed=np.zeros(2 * layout.num_rows, dtype=np.int64),
        touched=np.zeros(layout.num_rows, dtype=np.int64),
        before=np.zeros(len(state.bounds)),
        trace=_make_trace(layout.steps),
        marks=Marks(),
        gaps=make_gaps(layout, len(state.bounds)),
        filled=np.zeros((layout.steps, len(state.bounds))),
        certificate=make_aggregate_scratch(layout),
    )


def _make_trace(steps: int) -> Trace:
    return Trace(np.zeros(steps, dtype=np.int64), *(np.zeros(steps) for _ in range(6)))
