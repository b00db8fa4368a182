"""The core of a learner, everything its kernels need in one bundle: layout, rules, state, baselines and buffers.

The state is all arrays that a learner changes while it learns. Saving a learner writes these.

    q_hat(x,a,x') = exp(log_weight(x,a)) conditional(x'|x,a)      the mirror-descent iterate
    policy(a|x)                                                   what it induces, and what is played
    counts, boxes                                                 what was seen, and what follows from it
    search                                                        how far CV-OPS is on its way to a safe policy

Row weights are logarithms, with a floor of e^-600: a weight that reached 0 would stay there for ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import exp
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.bundles import Bundle, Record
from hedgerow.confidence.aggregate import Aggregate
from hedgerow.confidence.balls import UNSEEN, Balls
from hedgerow.confidence.bounds import Columns, make_columns
from hedgerow.confidence.boxes import Boxes
from hedgerow.confidence.counts import Counts
from hedgerow.confidence.premises import PremiseRule, Premises
from hedgerow.confidence.sets import ANCHORED, MOST_SKIPPED, Patience, Sets
from hedgerow.learners.kernels import BaselineArrays, flat_arrays
from hedgerow.learners.ops.account import Account, AccountRule, make_account
from hedgerow.learners.ops.pool import Pool, PoolRule, make_pool, make_pool_rule
from hedgerow.learners.ops.search import Search, SearchRule, make_search, no_search
from hedgerow.model.kernel_layout import LayoutArrays, index_of
from hedgerow.model.layout import Layout
from hedgerow.projection.infeasibility import CuttingPlanes, make_cutting_planes
from hedgerow.projection.problem import NO_SYSTEM, KernelProblem, Workspace, make_workspace

PROJECTED, RELAXED, UNSOLVED = 0, 1, 2
"""How a projection ended"""
LOG_FLOOR = -600.0
SMALLEST_CONDITIONAL = exp(LOG_FLOOR)
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


class RateRule(Bundle):
    """How eta and gamma are chosen (`rates.py`)."""

    eta: float
    """The first eta, as a multiple of the paper's"""
    gamma: float
    """gamma, likewise"""
    gain: float
    """The constant of rates that fall with what was seen; 0: eta stays"""
    share: float
    """The share of the uniform weights in a mixture; 0: there are none"""
    entropy: float
    """D_0 = sum over the layers of ln(number of triples)"""


class StepRule(Bundle):
    """What stays the same from the first episode to the last."""

    epochs: bool
    """Whether boxes are rebuilt only when a count has doubled"""
    doubling: bool
    """Whether the horizon is unknown: restarts after 1, 2, 4, ... episodes"""
    log_inverse_delta: float
    """ln(1 / delta)"""
    pairs: float
    """|X||A|, x_0 and x_L counted"""
    rates: RateRule
    tol: float
    realised: bool
    """Whether the loss estimate conditions on the policy that plays, because there are too many baselines to average"""
    premises: PremiseRule
    """The learner's inputs, and how they are tested"""
    account: AccountRule
    """The rule of the account of B-OPS"""


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
    """1 if it is not whole: `gaps` and `filled` of the sets say what is known of it"""
    closes: int
    """1 if sums over whole episodes cannot go on after it"""
    skipped: int
    """1 if they leave it out"""
    repeats: int
    """1 if they leave it out because its costs share a cause with those of an earlier plan of its group"""
    counted: int
    """1 if the counts have it already"""
    late: int
    """1 if something was learnt since its plan was made: `late_u` has u of that time"""
    stayed: int
    """1 if that plan was to stay with the baseline (`stay.py`)"""


class Buffers(Bundle):
    """Buffers. Only both columns and the costs of `problem` outlive an episode; they follow from the state."""

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
    all_rows: IntArray
    """(num_rows,): 0, 1, ..."""
    touched: IntArray
    """(num_rows,): the rows whose boxes an episode changed, and the visited ones, each once, where rows share laws"""
    trace: EpisodeBuffer
    marks: EpisodeFlags
    late_u: FloatArray
    """(num_rows,): upper occupancy bounds of a plan, from the boxes of the time when it was made"""
    paid: FloatArray
    """(m,): what an own episode cost, for the account"""
    terms: FloatArray
    """(2, m): what its plan was charged with, and what it may cost"""
    held: FloatArray
    """(2, constraints that bind): the same, summed over the open plans where there are several"""


class Core(Bundle):
    """All of it."""

    index: LayoutArrays
    rule: StepRule
    sets: Sets
    """Confidence sets, on the counts and sets of the state"""
    state: State
    baseline: BaselineArrays
    search: SearchRule
    buffers: Buffers
    pool: Pool
    """The pool of C-OPS: state as well; empty for other learners"""
    pool_rule: PoolRule


def make_core(
    layout: Layout,
    rule: StepRule,
    sets: Sets,
    state: State,
    baseline: BaselineArrays,
    search: SearchRule | None = None,
    *,
    members: int = 0,
    floor: float = 1.0,
    delta: float = 1.0,
) -> Core:
    """The bundle around `state`, with a pool of so many `members`; call `prepare` of `step.py` before use."""
    return Core(
        index=index_of(layout),
        rule=rule,
        sets=sets,
        state=state,
        baseline=baseline,
        search=no_search() if search is None else search,
        buffers=_make_buffers(layout, sets, state, baseline),
        pool=make_pool(layout, members, len(baseline.costs)),
        pool_rule=make_pool_rule(layout, floor, delta, members),
    )


def _make_buffers(layout: Layout, sets: Sets, state: State, baseline: BaselineArrays) -> Buffers:
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
        all_rows=sets.scratch.all_rows,
        touched=np.zeros(layout.num_rows, dtype=np.int64),
        trace=EpisodeBuffer(np.zeros(layout.steps, dtype=np.int64), *(np.zeros(layout.steps) for _ in range(6))),
        marks=EpisodeFlags(),
        late_u=np.zeros(layout.num_rows),
        paid=np.zeros(len(state.bounds)),
        terms=np.zeros((2, len(state.bounds))),
        held=np.zeros((2, len(binding))),
    )


class Numbers(Record):
    """Counters and flags of a learner."""

    episode: int
    """Episodes observed so far"""
    pending: int
    """1 between plan and observe"""
    branch: int
    """What that plan plays: 0 the learner's policy, j + 1 the j-th baseline"""
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


class Pace(Record):
    """What rates that follow what was seen rest on."""

    gap: float
    """sum of M since the weights were uniform"""


class Stay(Record):
    """What the rule when to stay rests on (`stay.py`)."""

    limit: float
    """The baseline is kept while its mean loss per episode is less; 0: there is no such rule"""
    losses: float
    """What the episodes of the baseline have lost"""
    episodes: float
    """Their number"""
    now: float
    """1 if the next episode is left to the baseline by this rule"""


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
    account: Account
    """The account of B-OPS; empty for other learners"""
    premises: Premises
    """The running tests of its inputs"""
    patience: Patience
    anchor: IntArray
    """Likewise for the anchored bound; empty for learners without it"""
    logged: LoggedCounts
    incomplete: Incomplete
    numbers: Numbers
    reals: Reals
    pace: Pace
    stay: Stay


def make_state(
    layout: Layout,
    sets: Sets,
    num_active: int,
    premises: Premises,
    *,
    num_baselines: int = 0,
    search: Search | None = None,
    account: bool = False,
) -> State:
    """The state before the first episode: no data, no weights; `uniform_weights` and a projection give a policy."""
    workspace = make_workspace(layout, num_active)
    cached = layout.num_rows if num_baselines > 1 else 0
    return State(
        log_weight=np.zeros(layout.num_rows),
        conditional=np.zeros(layout.num_triples),
        bound=np.zeros(layout.num_triples, dtype=np.int8),
        system=System(*(getattr(workspace, name) for name in System.fields)),
        policy=np.full(layout.num_rows, 1.0 / layout.num_actions),
        counts=sets.counts,
        boxes=sets.boxes,
        epoch_visits=np.zeros(layout.num_rows, dtype=np.int64),
        multipliers=np.zeros(num_active),
        certificate=np.full(num_active, 1.0 / max(1, num_active)),
        bounds=np.full(sets.counts.cost_sums.shape[1], float(layout.steps)),
        baseline_u=np.zeros(cached),
        baseline_visits=np.zeros(cached, dtype=np.int64),
        search=search if search is not None else make_search(layout, 0, 0),
        aggregate=sets.aggregate,
        balls=sets.balls,
        account=make_account(num_active if account else 0),
        premises=premises,
        patience=sets.patience,
        anchor=sets.anchor.pause,
        logged=LoggedCounts(),
        incomplete=Incomplete(),
        numbers=Numbers(),
        reals=Reals(),
        pace=Pace(),
        stay=Stay(),
    )


def arrays_of_state(state: State) -> dict[str, NDArray[Any]]:
    """The arrays of a state by name, such as `counts.num_visits`; they are not copies."""
    arrays = flat_arrays(state)
    if not len(state.search.weights):  # no search: its records have nothing to say
        arrays["search.facts"], arrays["search.broken"] = arrays["search.facts"][:0], arrays["search.broken"][:0]
    if not len(state.account.allowed):
        arrays = {name: array for name, array in arrays.items() if not name.startswith("account.")}
    if not len(state.anchor):
        del arrays["anchor"]
    if state.stay.limit == 0.0:
        del arrays["stay"]
    return arrays


def derived(core: Core) -> frozenset[str]:
    """The arrays of the state that a file leaves out: boxes, where they follow from the counts."""
    follow = not core.sets.rule.box.gradual and not core.rule.epochs
    return frozenset(f"boxes.{name}" for name in Boxes.fields) if follow else frozenset()


# What a file may hold: the range of each array; a new array needs a word here -----------------------------------------


TOLERANCE = 1e-9
LOOSE = 1e-6
"""Tolerance for the residuals of a projection"""
LARGEST = 2.0**53
"""Up to here counters are exact as real numbers."""
HUGE = 1e200

COUNT, PROBABILITY, POSITIVE, ANY = (0, LARGEST), (0.0, 1.0 + TOLERANCE), (0.0, HUGE), (-HUGE, HUGE)
_RANGES: tuple[tuple[tuple[float, float], str], ...] = (
    (COUNT, "counts.num_visits counts.num_moves counts.num_costs counts.unknown_moves counts.unknown_costs"),
    (COUNT, "boxes.visits boxes.cost_visits epoch_visits baseline_visits search.broken balls.moves balls.visits"),
    (COUNT, "aggregate.visits aggregate.episodes aggregate.best aggregate.numbers system.candidate"),
    (COUNT, "premises.visits premises.moves premises.due premises.numbers logged incomplete numbers account.numbers"),
    ((0.0, LARGEST), "counts.cost_sums premises.sums premises.baseline_sums"),
    (PROBABILITY, "policy certificate baseline_u search.weights search.policies aggregate.p_hat"),
    ((0.0, 1.0), "boxes.lower boxes.upper boxes.xi aggregate.g_hat"),
    ((0.0, 1.0), "premises.low_moves premises.high_moves premises.low_costs premises.high_costs"),
    (POSITIVE, "multipliers bounds search.cost_sums search.squares premises.figures reals pace stay"),
    (POSITIVE, "account.seen account.squares account.fixed account.charged account.allowed"),
    (POSITIVE, "aggregate.values aggregate.ranges aggregate.sums aggregate.squares"),
    (ANY, "system.diagonal system.coupling system.border system.schur search.facts"),
    ((-HUGE, LOOSE), "log_weight"),
    ((SMALLEST_CONDITIONAL * (1.0 - TOLERANCE), 1.0 + TOLERANCE), "conditional"),
    ((-1, 1), "bound"),
    ((NO_SYSTEM, LARGEST), "system.num_candidates"),
    ((-1.0, 1.0), "boxes.cost_lower"),
    ((0.0, 2.0), "boxes.cost_upper"),
    ((-1, LARGEST), "aggregate.generation"),
    ((0, 1), "aggregate.closed"),
    ((0.0, UNSEEN), "balls.radius"),
    ((0, MOST_SKIPPED), "patience anchor"),
)
RANGES = {name: limits for limits, names in _RANGES for name in names.split()}
"""The range of the entries of each array of a state"""
POOL_RANGES = {
    **dict.fromkeys(("policies", "weights", "p_hat"), PROBABILITY),
    **dict.fromkeys(("bounds", "loss_sums", "visits"), POSITIVE),
    "reasons": (0, ANCHORED),
    "numbers": COUNT,
    "reals": ANY,
}
"""Likewise of a pool; what is missing follows from the others"""

NUMBER_RANGES: Mapping[str, int] = {
    **dict.fromkeys(("pending", "open", "phase_over", "stale", "moved"), 1),
    "last_status": max(PROJECTED, RELAXED, UNSOLVED),
}
"""The largest value of those numbers that do not count anything."""

REAL_RANGES: Mapping[str, float] = {"mixing": 1.0}
