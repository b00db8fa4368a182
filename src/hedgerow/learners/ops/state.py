"""The core of a learner: everything its kernels need, in one bundle: layout, rules, state, baselines and buffers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.bundles import Bundle, Record
from hedgerow.confidence.aggregate import (
    Aggregate,
    AggregateRule,
    AggregateScratch,
    make_aggregate,
    make_aggregate_scratch,
    no_aggregate,
)
from hedgerow.confidence.balls import BallRule, Balls, no_balls
from hedgerow.confidence.bounds import Columns, make_columns
from hedgerow.confidence.boxes import Boxes, BoxRule, make_boxes
from hedgerow.confidence.budget import Unknowns
from hedgerow.confidence.counts import Counts, Gaps, make_counts, make_gaps
from hedgerow.confidence.premises import PremiseRule, Premises
from hedgerow.learners.kernels import BaselineArrays, flat_arrays
from hedgerow.learners.ops.search import Search, SearchRule, make_search, no_search
from hedgerow.model.kernel_layout import Index, index_of
from hedgerow.model.layout import Layout
from hedgerow.projection.infeasibility import CuttingPlanes, make_cutting_planes
from hedgerow.projection.workspace import KernelProblem, Workspace, make_workspace

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


class StepRule(Bundle):
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
    realised: bool
    """Whether the loss estimate conditions on the policy that plays, because there are too many baselines to average"""
    tied: bool
    """Whether rows share laws; then an episode may change the boxes of rows that it did not visit"""
    aggregate: AggregateRule
    """The rule of the aggregate certificate, where the state has one"""
    ball: BallRule
    """The rule of the balls, where the state has some"""
    premises: PremiseRule
    """What was told, and how it is tested"""


class EpisodeBuffer(Bundle):
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


class EpisodeFlags(Record):
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
    trace: EpisodeBuffer
    marks: EpisodeFlags
    gaps: Gaps
    """What is not known of an episode that is not whole"""
    filled: FloatArray
    """(L, m): its costs, 1 in the place of those that were not observed, in sum at most the ceilings"""
    certificate: AggregateScratch
    """Buffers of the aggregate certificate"""


class Core(Bundle):
    """All of it."""

    index: Index
    rule: StepRule
    state: State
    baseline: BaselineArrays
    search: SearchRule
    buffers: Buffers


def make_core(
    layout: Layout, rule: StepRule, state: State, baseline: BaselineArrays, search: SearchRule | None = None
) -> Core:
    """The bundle around `state`; call `prepare` of `step.py` before use."""
    buffers = _make_buffers(layout, state, baseline)
    return Core(index_of(layout), rule, state, baseline, no_search() if search is None else search, buffers)


def _make_buffers(layout: Layout, state: State, baseline: BaselineArrays) -> Buffers:
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
        marks=EpisodeFlags(),
        gaps=make_gaps(layout, len(state.bounds)),
        filled=np.zeros((layout.steps, len(state.bounds))),
        certificate=make_aggregate_scratch(layout),
    )


def _make_trace(steps: int) -> EpisodeBuffer:
    return EpisodeBuffer(np.zeros(steps, dtype=np.int64), *(np.zeros(steps) for _ in range(6)))


# --------------------------------------------------------------------------------------------------------------------
# The state of a learner: all arrays that it changes while it learns. Saving a learner writes these.
#
#     q_hat(x,a,x') = exp(log_weight(x,a)) conditional(x'|x,a)      the mirror-descent iterate
#     policy(a|x)                                                   what it induces, and what is played
#     counts, boxes                                                 what was seen, and what follows from it
#     search                                                        how far CV-OPS is on its way to a safe policy
#
# Row weights are logarithms, with a floor of e^-600: a weight that reached 0 would stay there for ever.


PROJECTED, RELAXED, UNSOLVED = 0, 1, 2
"""How a projection ended"""
LOG_FLOOR = -600.0


class Numbers(Record):
    """Counters and flags of a learner."""

    episode: int
    """Episodes observed so far"""
    pending: int
    """1 between plan and observe"""
    branch: int
    """What that plan plays: 0 the learner's own policy, j + 1 the j-th baseline"""
    infeasible: int
    """Projections without a solution so far"""
    suspect: int
    """Projections that needed the slow solver"""
    failed: int
    """Those of them that did not reach the tolerance"""
    iterations: int
    """Newton steps so far"""
    last_iterations: int
    """Newton steps of the last projection"""
    last_status: int
    """PROJECTED, RELAXED or UNSOLVED"""
    segment: int
    """j, the segment of the doubling horizon"""
    segment_end: int
    """The episode after which it restarts"""
    epochs: int
    """How often the boxes were rebuilt as a whole"""
    open: int
    """1 while the projection of the last episode is still to be found"""
    phase_over: int
    """1 when the search of CV-OPS has found what it looked for"""
    stale: int
    """1 when the cached bounds of the baselines have to be recomputed"""
    moved: int
    """1 when more than the visited rows may have left their boxes since the last projection"""


class LoggedCounts(Record):
    """What came from logs (`absorb`), and from episodes that were not played as planned."""

    episodes: int
    """Logged episodes, complete or not"""
    steps: int
    """Their steps"""
    truncated: int
    """Episodes, own ones included, of which fewer than L moves are known"""
    costless: int
    """Logged episodes of logs whose costs were left out altogether"""
    off_policy: int
    """Own episodes that were cut short, or in which somebody else chose an action"""


class Incomplete(Record):
    """Episodes, own and logged ones, that are not whole."""

    unknown: int
    """Those with unknown values"""
    independent: int
    """Those of which something was left out for a declared reason"""


class Patience(Record):
    """How long the expensive bounds are skipped after they did not help, see `mixing.py`."""

    balls_left: int
    """Episodes until the balls are evaluated again"""
    balls_skipped: int
    """Episodes for which they are skipped"""
    sums_left: int
    """Likewise for the aggregate certificate"""
    sums_skipped: int


class Reals(Record):
    """Real numbers of a learner."""

    eta: float
    gamma: float
    mixing: float
    """lambda, the probability of the baseline in the next episode"""
    cost_residual: float
    """Residual of the last projection, after the repair of its flow"""
    slack: float
    """By how much the thresholds are raised, because nothing meets them; else 0"""
    room: float
    """The part of `slack` beyond the least violation, at most"""


class System(Bundle):
    """The Newton system that the last projection built last: arrays of the workspace, see there."""

    diagonal: FloatArray
    coupling: FloatArray
    border: FloatArray
    schur: FloatArray
    candidate: IntArray
    num_candidates: IntArray


class State(Bundle):
    """The arrays; kernels modify them in place."""

    log_weight: FloatArray
    """(num_rows,): ln q_hat(x,a)"""
    conditional: FloatArray
    """(num_triples,): P of q_hat, positive"""
    bound: NDArray[np.int8]
    """(num_triples,): at which bounds of their boxes the conditionals are; the next projection starts from there"""
    system: System
    """The system for the first step of the next projection"""
    policy: FloatArray
    """(num_rows,)"""
    counts: Counts
    boxes: Boxes
    epoch_visits: IntArray
    """(num_rows,): N when the boxes were last rebuilt as a whole"""
    multipliers: FloatArray
    """(constraints that bind,): theta of the last projection"""
    certificate: FloatArray
    """(constraints that bind,): in the simplex; proves the least violation while there is a slack"""
    bounds: FloatArray
    """(m,): U, upper bounds of the costs of `policy`; kept by learners with a baseline"""
    baseline_u: FloatArray
    """(num_rows,): upper occupancy bounds of the mixture of several baselines, as last computed; else empty"""
    baseline_visits: IntArray
    """(num_rows,): N at that time"""
    search: Search
    """The search of CV-OPS; empty for other learners"""
    aggregate: Aggregate
    """The aggregate certificate; empty for learners that have none"""
    balls: Balls
    """The balls of wide rows; empty for learners that have none"""
    premises: Premises
    """What tests the things that the learner was told"""
    patience: Patience
    logged: LoggedCounts
    incomplete: Incomplete
    numbers: Numbers
    reals: Reals


def make_state(
    unknowns: Unknowns,
    num_active: int,
    clip_costs: bool,
    premises: Premises,
    *,
    num_baselines: int = 0,
    search: Search | None = None,
    aggregate: bool = False,
    balls: Balls | None = None,
) -> State:
    """The state before the first episode: no data, no weights; `uniform_weights` and a projection give a policy."""
    layout, num_constraints = unknowns.layout, unknowns.unknown_costs.shape[1]
    boxes = make_boxes(unknowns, clip_costs=clip_costs)
    workspace = make_workspace(layout, num_active)
    cached = layout.num_rows if num_baselines > 1 else 0
    return State(
        log_weight=np.zeros(layout.num_rows),
        conditional=np.zeros(layout.num_triples),
        bound=np.zeros(layout.num_triples, dtype=np.int8),
        system=System(*(getattr(workspace, name) for name in System.fields)),
        policy=np.full(layout.num_rows, 1.0 / layout.num_actions),
        counts=make_counts(layout, num_constraints),
        boxes=boxes,
        epoch_visits=np.zeros(layout.num_rows, dtype=np.int64),
        multipliers=np.zeros(num_active),
        certificate=np.full(num_active, 1.0 / max(1, num_active)),
        bounds=np.full(num_constraints, float(layout.steps)),
        baseline_u=np.zeros(cached),
        baseline_visits=np.zeros(cached, dtype=np.int64),
        search=search if search is not None else make_search(layout, 0, 0),
        aggregate=make_aggregate(layout, boxes) if aggregate else no_aggregate(),
        balls=no_balls() if balls is None else balls,
        premises=premises,
        patience=Patience(),
        logged=LoggedCounts(),
        incomplete=Incomplete(),
        numbers=Numbers(),
        reals=Reals(),
    )


def arrays_of_state(state: State) -> dict[str, NDArray[Any]]:
    """The arrays of a state by name, such as `counts.num_visits`; they are not copies."""
    arrays = flat_arrays(state)
    if not len(state.search.weights):  # no search: its records have nothing to say
        arrays["search.facts"], arrays["search.broken"] = arrays["search.facts"][:0], arrays["search.broken"][:0]
    return arrays


def derived(core: Core) -> frozenset[str]:
    """The arrays of the state that a file leaves out: boxes, where they follow from the counts."""
    follow = not core.rule.box.gradual and not core.rule.epochs
    return frozenset(f"boxes.{name}" for name in Boxes.fields) if follow else frozenset()
