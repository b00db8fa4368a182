"""The state of a learner: all arrays that it changes while it learns. Saving a learner writes these.

    q_hat(x,a,x') = exp(log_weight(x,a)) conditional(x'|x,a)      the mirror-descent iterate
    policy(a|x)                                                   what it induces, and what is played
    counts, boxes                                                 what was seen, and what follows from it
    search                                                        how far CV-OPS is on its way to a safe policy

Row weights are logarithms, with a floor of e^-600: a weight that reached 0 would stay there for ever.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.bundles import Bundle, Record
from hedgerow.estimates.aggregate import Aggregate, make_aggregate, no_aggregate
from hedgerow.estimates.balls import Balls, no_balls
from hedgerow.estimates.boxes import Boxes, make_boxes
from hedgerow.estimates.counts import Counts, make_counts
from hedgerow.estimates.unknowns import Unknowns
from hedgerow.learners.mirror.safe_search import Search, make_search
from hedgerow.projection.workspace import make_workspace

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


class Logged(Record):
    """What came from logs (`absorb`), and from episodes that were not played as planned."""

    episodes: int
    """Logged episodes, complete or not"""
    steps: int
    """Their steps"""
    prefixes: int
    """Episodes, own ones included, of which fewer than L moves are known"""
    costless: int
    """Logged episodes of logs whose costs were left out altogether"""
    interfered: int
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
    patience: Patience
    logged: Logged
    incomplete: Incomplete
    numbers: Numbers
    reals: Reals


def make_state(
    unknowns: Unknowns,
    num_active: int,
    clip_costs: bool,
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
        patience=Patience(),
        logged=Logged(),
        incomplete=Incomplete(),
        numbers=Numbers(),
        reals=Reals(),
    )


def flat_arrays(bundle: Bundle) -> dict[str, NDArray[Any]]:
    """The arrays by name; those of bundles within as `counts.num_visits` and so on. They are not copies."""
    arrays: dict[str, NDArray[Any]] = {}
    for name, value in bundle.as_dict().items():
        if isinstance(value, Bundle):
            arrays |= {f"{name}.{part}": array for part, array in flat_arrays(value).items()}
        else:
            arrays[name] = value.values if isinstance(value, Record) else value
    if isinstance(bundle, Search) and not len(bundle.weights):
        arrays["facts"], arrays["broken"] = arrays["facts"][:0], arrays["broken"][:0]  # of no search
    return arrays
