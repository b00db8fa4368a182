"""The second expert of C-OPS: a certified mixture of policies, and how much of an episode's coin it gets.

C-OPS knows two mixtures that are safe, that of S-OPS and the *pool's*, and plays each of them with some probability:

    whole = (1 - share) [lambda b + (1 - lambda) pi_hat] + share [w_0 b + sum_j w_j pi_j],      share = 1 - f or 0

Any mixture of safe mixtures is safe, so `share` is free; it follows from the losses. With q_S, q_P the occupancies of
the two under estimated transitions, and q that of the whole, an episode with the pairs r_k and the losses l_k adds

    d = sum_k (q_P - q_S)(r_k) l_k / q(r_k)      to `gap`, and d^2 to `squares`: what the pool lost more, as estimated.

When gap > PATIENCE sqrt(squares + L^2), the pool pauses: for as many episodes as there were so far, the k-th time for k
times as many. That is a rule of thumb. What the regret rests on is a test without estimated transitions: with X the
loss of the episode and c the mean of the losses before it,

    y = X - c if the pool was drawn,   -(X - c) share / (1 - share) if not

has the mean share (loss of the pool - loss of S-OPS), whatever c is. As soon as the sum of all y exceeds its radius
(`aggregate_radius`), the pool is closed for good (docs/choice.md).
"""

from __future__ import annotations

from math import log, sqrt

import numpy as np

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.bundles import Bundle, Record
from hedgerow.compiling.kernels import kernel
from hedgerow.confidence.aggregate import NUM_RATES, aggregate_radius
from hedgerow.confidence.bounds import Columns, load_columns, make_columns, reach_of_states
from hedgerow.confidence.boxes import Boxes
from hedgerow.environments.play import WorldArrays
from hedgerow.environments.scores import Scores, forward
from hedgerow.model.kernel_layout import LayoutArrays
from hedgerow.model.layout import Layout
from hedgerow.model.random_streams import Stream, uniform

PATIENCE = 1.2
"""How many times the root of its squares the gap may be before a pause"""


class PoolNumbers(Record):
    """Counters and flags."""

    size: int
    """Members besides the baseline"""
    due: int
    """The episode before which the members are chosen anew"""
    plans: int
    """How often they were chosen"""
    drawn: int
    """1 if the plan that was made last, or that is being learnt, was drawn from the pool"""
    pauses: int
    """How often it was found to lose more than S-OPS, by estimates"""
    resumes: int
    """The episode from which on it is played; later than the present one during a pause"""
    closed: int
    """1 once the test has found that it loses too much"""


class PoolReals(Record):
    """Real numbers."""

    share: float
    """The probability of the pool in the next episode"""
    base: float
    """w_0, the weight of the baseline in the pool"""
    gap: float
    squares: float
    """Sums of d and d^2"""
    excess: float
    spread: float
    """Sums of y and of (y / R)^2"""
    losses: float
    episodes: float
    """The sum of the losses of whole episodes, and their number"""


class Pool(Bundle):
    """Members, and what was seen of losses: state. All arrays are empty for learners without a pool."""

    policies: FloatArray
    """(most members, num_rows)"""
    weights: FloatArray
    """(most members,): w_j; with w_0 they sum to 1"""
    bounds: FloatArray
    """(most members, m): U of each"""
    reasons: IntArray
    """(most members, m): which set gave it, see `choice.py`"""
    loss_sums: FloatArray
    """(num_rows,): observed losses, older ones with less weight (`choice.py`)"""
    visits: FloatArray
    """(num_rows,): the sum of these weights"""
    p_hat: FloatArray
    """(num_triples,): the transitions with which the members were chosen"""
    occupancy: FloatArray
    """(num_rows,): q_P under these"""
    baseline: FloatArray
    """(num_rows,): q of the baseline under these"""
    numbers: PoolNumbers
    reals: PoolReals


class LatePlan(Record):
    """Of a plan that was made before others were learnt."""

    share: float
    """The probability of the pool"""


class PoolRule(Bundle):
    """What stays the same, and buffers."""

    floor: float
    """f, the least probability of the mixture of S-OPS"""
    log_inverse_delta: float
    """ln(1 / delta)"""
    columns: Columns
    """The boxes of one member"""
    reach: FloatArray
    """(num_states,)"""
    q: FloatArray
    """(num_rows,)"""
    mixed: FloatArray
    """(num_rows,)"""
    u: FloatArray
    """(L,): upper occupancy bounds of the pool on the visited pairs"""
    tilt: FloatArray
    """(num_rows,): of a late plan, see `tilt_of`"""
    late: LatePlan
    """Likewise"""


def make_pool(layout: Layout, members: int, num_constraints: int) -> Pool:
    """No member yet: all is left to S-OPS."""
    rows = layout.num_rows if members else 0
    pool = Pool(
        policies=np.zeros((members, rows)),
        weights=np.zeros(members),
        bounds=np.zeros((members, num_constraints)),
        reasons=np.zeros((members, num_constraints), dtype=np.int64),
        loss_sums=np.zeros(rows),
        visits=np.zeros(rows),
        p_hat=np.zeros(layout.num_triples if members else 0),
        occupancy=np.zeros(rows),
        baseline=np.zeros(rows),
        numbers=PoolNumbers(),
        reals=PoolReals(),
    )
    pool.reals.base = 1.0
    return pool


def make_pool_rule(layout: Layout, floor: float, delta: float, members: int) -> PoolRule:
    """The rule for this layout; without members, empty buffers."""
    small = layout if members else Layout((1, 1), 1)
    return PoolRule(
        floor=floor,
        log_inverse_delta=-log(delta),
        columns=make_columns(small),
        reach=np.zeros(small.num_states),
        q=np.zeros(small.num_rows),
        mixed=np.zeros(small.num_rows),
        u=np.zeros(small.steps),
        tilt=np.zeros(small.num_rows),
        late=LatePlan(),
    )


@kernel
def draw_member(pool: Pool, num_baselines: int, coin: Stream) -> int:
    """Draw from the pool: 1 for the baseline, num_baselines + 1 + j for member j; -1 if the pool is not drawn."""
    pool.numbers.drawn = 0
    if len(pool.weights) == 0 or not uniform(coin) < pool.reals.share:
        return -1
    pool.numbers.drawn = 1
    left = uniform(coin)
    for j in range(pool.numbers.size):
        left -= pool.weights[j]
        if left < 0.0:
            return num_baselines + 1 + j
    return 1


@kernel
def share_of(pool: Pool, rule: PoolRule, episode: int) -> float:
    """`share` in this episode: 1 - f, or 0 without members, during a pause and once the pool is closed."""
    numbers = pool.numbers
    if numbers.size == 0 or numbers.closed == 1 or episode < numbers.resumes:
        return 0.0
    return 1.0 - rule.floor


@kernel
def bound_members(
    index: LayoutArrays, boxes: Boxes, pool: Pool, rule: PoolRule, rows: IntArray, visited: IntArray,
    baseline_u: FloatArray, reach: FloatArray,
) -> None:  # fmt: skip
    """u of the pool on the visited pairs (L,), into `rule.u`: the average of the bounds of its parts. `baseline_u` (L,)
    are those of the baseline, and `reach` (L,) is a buffer.
    """
    for k in range(len(rows)):
        rule.u[k] = pool.reals.base * baseline_u[k]
    for j in range(pool.numbers.size):
        policy = pool.policies[j]
        load_columns(index, boxes.lower, boxes.upper, policy, rule.columns)
        reach_of_states(index, rule.columns, visited, len(rows), reach)
        for k in range(len(rows)):
            rule.u[k] += pool.weights[j] * policy[rows[k]] * reach[k]


@kernel
def judge_episode(
    index: LayoutArrays, pool: Pool, rule: PoolRule, policy: FloatArray, mixing: float, rows: IntArray,
    losses: FloatArray, episode: int, late: bool,
) -> None:  # fmt: skip
    """Compare the two mixtures by the losses (L,) of an episode; `policy` (num_rows,) and `mixing` are of S-OPS.

    `late`: the plan was made before others were learnt, with `rule.late` and `rule.tilt`.
    """
    reals, share, paid = pool.reals, rule.late.share if late else pool.reals.share, 0.0
    for k in range(len(rows)):
        paid += losses[k]
        pool.loss_sums[rows[k]] += losses[k]
        pool.visits[rows[k]] += 1.0
    centre = reals.losses / reals.episodes if reals.episodes > 0.0 else 0.5 * len(rows)
    reals.losses += paid
    reals.episodes += 1.0
    if share == 0.0:
        return
    d, steps = 0.0, float(len(rule.u))
    if late:
        for k in range(len(rows)):
            d += rule.tilt[rows[k]] * losses[k]
    else:
        forward(index, pool.p_hat, policy, rule.reach, rule.q)
        for k in range(len(rows)):
            r = rows[k]
            q_s, q_p = mixing * pool.baseline[r] + (1.0 - mixing) * rule.q[r], pool.occupancy[r]
            q = share * q_p + (1.0 - share) * q_s
            if q > 0.0:  # at least f times either of the two
                d += (q_p - q_s) * losses[k] / q
    if episode >= pool.numbers.resumes:  # else a plan of before the pause, which has been judged
        reals.gap += d
        reals.squares += d * d
        if reals.gap > PATIENCE * sqrt(reals.squares + steps * steps):
            _pause(pool, episode + 1)
    _test(pool, rule, share, paid - centre, steps)


@kernel
def tilt_of(index: LayoutArrays, pool: Pool, rule: PoolRule, policy: FloatArray, mixing: float) -> None:
    """(q_P - q_S) / q of the present plan in all rows, into `rule.tilt`: d is the sum of it times the losses."""
    share, tilt = pool.reals.share, rule.tilt
    forward(index, pool.p_hat, policy, rule.reach, rule.q)
    for r in range(len(tilt)):
        q_s, q_p = mixing * pool.baseline[r] + (1.0 - mixing) * rule.q[r], pool.occupancy[r]
        q = share * q_p + (1.0 - share) * q_s
        tilt[r] = (q_p - q_s) / q if q > 0.0 else 0.0


@kernel
def _pause(pool: Pool, episode: int) -> None:
    """Leave the next episodes to S-OPS, as many as there were so far; after the k-th pause, k times as many."""
    numbers = pool.numbers
    numbers.pauses += 1
    numbers.resumes = numbers.due = (numbers.pauses + 1) * episode
    pool.reals.gap = pool.reals.squares = 0.0


@kernel
def _test(pool: Pool, rule: PoolRule, share: float, above: float, steps: float) -> None:
    """Add y, and close the pool if the sum exceeds its radius; y is at most R = L (1 - f) / f."""
    reals, scale = pool.reals, steps * (1.0 - rule.floor) / rule.floor
    y = above if pool.numbers.drawn == 1 else -above * share / (1.0 - share)
    reals.excess += y
    reals.spread += y * y / (scale * scale)
    if reals.excess > aggregate_radius(rule.log_inverse_delta + log(float(NUM_RATES)), reals.spread, scale):
        pool.numbers.closed = 1


@kernel
def add_members(
    index: LayoutArrays, world: WorldArrays, pool: Pool, rule: PoolRule, baseline: FloatArray, scores: Scores
) -> None:
    """Turn q of the mixture of S-OPS, in `scores`, into that of the whole; `baseline` (num_rows,) is q of b."""
    share, q = pool.reals.share, scores.occupancy
    if share == 0.0:
        return
    for r in range(len(q)):
        rule.mixed[r] = pool.reals.base * baseline[r]
    for j in range(pool.numbers.size):
        forward(index, world.transitions, pool.policies[j], rule.reach, rule.q)
        for r in range(len(q)):
            rule.mixed[r] += pool.weights[j] * rule.q[r]
    for r in range(len(q)):
        q[r] = share * rule.mixed[r] + (1.0 - share) * q[r]


@kernel
def reason_of(pool: Pool) -> float:
    """Which set gave the largest bound of the heaviest member, by its number; -1 while the pool is not played."""
    if pool.reals.share == 0.0:
        return -1.0
    heaviest = largest = 0
    for j in range(pool.numbers.size):
        if pool.weights[j] > pool.weights[heaviest]:
            heaviest = j
    for i in range(pool.bounds.shape[1]):
        if pool.bounds[heaviest, i] > pool.bounds[heaviest, largest]:
            largest = i
    return float(pool.reasons[heaviest, largest]) if pool.bounds.shape[1] > 0 else -1.0
