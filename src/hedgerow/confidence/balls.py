"""The divergence ball of a row: all transition laws that its counts allow at all times at once, and the worst of them.

For a row with counts c_1..c_S of its S successors, N = sum c and P_hat = c/N, with probability 1 - delta at all times

    N KL(P_hat || P) <= ln(1/delta) + D(c),   D = ln [ prod (c_y/N)^c_y / DirMult_a(c) ]                 (0^0 = 1)
    DirMult_a(c) = Gamma(Sa)/Gamma(N+Sa) prod Gamma(c_y+a)/Gamma(a),   a = min(1/2, 1/S)

Proof as in `kl.py`, the case S = 2: DirMult_a(c) / prod P(y)^c_y is the mean of likelihood ratios over a Dirichlet
prior, a martingale that starts at 1 (Ville). The sparse weight a = 1/S pays little for successors that never come; if
all of them come, a = 1/2 would give a smaller ball. Against the box of `kl.py` the ball wins in rows of about ten
successors or more; in short ones, or if two of ten are possible and N is large, the box does.
Without its large terms, which cancel (`kl.py`; `seen` = successors with c > 0, A = Sa),

    D = excess(N, A) - excess(0, A) - sum over seen of { excess(c, a) - excess(0, a) },   excess(0, a) = ln Gamma(a)
    excess(c, a) = ln Gamma(c+a) - c ln c + c = c ln(1+a/c) - a + (a-1/2) ln(c+a) + ln(2 pi)/2 + tail(c+a)

The largest p.V over the ball { p : KL(P_hat || p) <= radius } is the least, over nu >= max V, of

    nu - exp(sum P_hat ln(nu - V) - radius)

and *every* nu gives an upper bound: for p in the ball, sum P_hat ln(p (nu-V) / P_hat) <= ln sum p (nu-V) (Jensen). So a
search that stops early, or rounds, is still on the safe side. With u = nu - max V and gaps z = max V - V the best u
has divergence(u) = sum P_hat ln(1 + z/u) + ln sum P_hat / (1 + z/u) = radius, which is about Var z / (2 (u + mean)^2):
Newton's method solves for divergence^(-1/2), which is nearly a line. The best u is 0 if even there the divergence is
below the radius, because the largest V was not seen.

    c = (37, 60, 7), a = 1/2: D = 4.656552;  radius 0.095720, V = (1, .4, .1): the largest p.V = 0.732114
"""

from __future__ import annotations

from math import exp, expm1, inf, lgamma, log, log1p, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.bundles import Bundle
from hedgerow.compiling.kernels import kernel
from hedgerow.confidence.bounds import Columns, sort_above, step_back
from hedgerow.confidence.counts import Counts, Laws, Unknowns
from hedgerow.confidence.kl import EPSILON, HALF_LOG_TWO_PI, TAIL_ERROR, tail
from hedgerow.model.kernel_layout import ONE, LayoutArrays, states_of

SATURATED = 35.0
"""With this radius the largest p.V is max V but for 10^-15 of the span of V."""
MOST_STEPS = 60


@kernel
def ball_radius(num_moves: IntArray, first: int, size: int, num_visits: int, log_inverse_delta: float) -> float:
    """(ln(1/delta) + D(c)) / N for the counts num_moves[first : first + size], whose sum is N; infinite for N = 0."""
    if num_visits < 1:
        return inf
    overhead = dirichlet_overhead(num_moves, first, size, num_visits, min(0.5, 1.0 / size))
    return (log_inverse_delta + overhead) / num_visits * (1.0 + 4.0 * EPSILON)


@kernel
def dirichlet_overhead(num_moves: IntArray, first: int, size: int, num_visits: int, weight: float) -> float:
    """D(c) for N >= 1 and any weight a > 0 of the prior, rounded up."""
    whole, none = size * weight, lgamma(weight)
    overhead = _excess(num_visits, whole) - lgamma(whole)
    start = np.uint64(first)
    for i in range(np.uint64(size)):
        count = num_moves[start + i]
        if count > 0:
            overhead -= _excess(count, weight) - none
    return overhead + (size + 2) * (2.0 * TAIL_ERROR + 4.0 * EPSILON * (abs(none) + log(num_visits)))


@kernel
def _excess(count: int, weight: float) -> float:
    """ln Gamma(c + a) - c ln c + c for c >= 1."""
    x = count + weight
    return count * log1p(weight / count) - weight + (weight - 0.5) * log(x) + HALF_LOG_TWO_PI + tail(x)


class BallRow(NamedTuple):
    """A row of N visits: P_hat(i) = num_moves[first + i] / N and V(i) = values[successor[start + i]], i < size."""

    num_moves: IntArray
    first: np.uint64
    num_visits: int
    successor: NDArray[np.int32]
    start: np.uint64
    size: np.uint64
    values: FloatArray


@kernel
def ball_value(row: BallRow, radius: float, accuracy: float) -> float:
    """max p.V over the ball, never too small, and too large by `accuracy` times the span of V at most."""
    most, nearest, farthest = _gaps(row)
    if row.num_visits < 1 or radius > SATURATED or farthest <= 0.0:
        return most
    margin = (np.int64(row.size) + 8) * EPSILON
    # Rare: the best successor was never seen. Then u = 0 may be the minimum, where Newton's method has no start.
    if nearest > 0.0:
        logs, inverse = _sums_at_most(row, most, farthest)
        if logs + log(inverse) <= radius:
            below = farthest * exp(logs - radius)
            return min(most, most - below * (1.0 - margin * (2.0 + radius - logs)) + EPSILON * abs(most))
    best, least, largest = 0.0, 0.0, inf
    u = _start(row, radius, most)
    for _ in range(MOST_STEPS):
        logs, away, square = _sums(row, most, u)
        scale, bound = u * exp(logs - radius), -u * expm1(logs - radius)  # u - exp(sum P_hat ln(u + z) - radius)
        # Every u gives an upper bound, so the least of all that were tried counts, not the last.
        best = min(best, bound + margin * (scale * (logs + radius) + abs(bound)))
        divergence, variance = logs + log1p(-away), square - away * away
        if divergence > radius:
            least = u
        else:
            largest = u
        step = -u if divergence <= 0.0 or variance <= 0.0 else _newton(divergence, variance, away, radius) * u
        # The bound is flat at its minimum: what a further step would gain is of second order.
        if scale * variance * (step / u) ** 2 <= accuracy * farthest or (step < 0.0 and u <= accuracy * farthest):
            break
        u = _safe(u + step, least, largest)
    return min(most, most + best + EPSILON * abs(most))


@kernel
def _newton(divergence: float, variance: float, away: float, radius: float) -> float:
    """The step, as a part of u, for divergence^(-1/2) = radius^(-1/2)."""
    return 2.0 * divergence * (1.0 - away) / variance * (sqrt(divergence / radius) - 1.0)


@kernel
def _safe(u: float, least: float, largest: float) -> float:
    """u itself if it is between the two, else something that is."""
    if least < u < largest:
        return u
    if largest == inf:
        return 4.0 * least
    return sqrt(least * largest) if least > 0.0 else 0.1 * largest


@kernel
def _gaps(row: BallRow) -> tuple[float, float, float]:
    """max V, and the smallest and the largest gap z = max V - V of the successors that were seen."""
    most, least, best = -inf, inf, -inf
    for i in range(row.size):
        V = row.values[row.successor[row.start + i]]
        most = max(most, V)
        if row.num_moves[row.first + i] > 0:
            least, best = min(least, V), max(best, V)
    return most, most - best, most - least


@kernel
def _start(row: BallRow, radius: float, most: float) -> float:
    """A first u > 0: with w = u + mean z the divergence is Var z / (2 w^2) - (2/3) skew / w^3 and so on."""
    mean = variance = skew = 0.0
    for i in range(row.size):
        mean += row.num_moves[row.first + i] * (most - row.values[row.successor[row.start + i]])
    mean /= row.num_visits
    for i in range(row.size):
        z = most - row.values[row.successor[row.start + i]] - mean
        square = row.num_moves[row.first + i] * z * z
        variance += square
        skew += square * z
    w = sqrt(variance / row.num_visits / (2.0 * radius))
    if w <= 0.0:
        return mean
    u = w - mean - skew / (1.5 * variance)
    return u if u > 0.25 * w else 0.25 * w * exp(-radius)


@kernel
def _sums(row: BallRow, most: float, u: float) -> tuple[float, float, float]:
    """The means under P_hat of ln(1 + z/u), of b = z/(u + z) and of b^2, for u > 0."""
    logs = away = square = 0.0
    for i in range(row.size):
        count = row.num_moves[row.first + i]
        z = most - row.values[row.successor[row.start + i]]
        if count > 0 and z > 0.0:
            b = z / (u + z)
            logs += count * log1p(z / u)
            away += count * b
            square += count * b * b
    return logs / row.num_visits, min(away / row.num_visits, 1.0 - EPSILON), square / row.num_visits


@kernel
def _sums_at_most(row: BallRow, most: float, farthest: float) -> tuple[float, float]:
    """The means under P_hat of ln(z / farthest) and of farthest / z, for u = 0 and gaps that are all positive."""
    logs = inverse = 0.0
    for i in range(row.size):
        count = row.num_moves[row.first + i]
        if count > 0:
            z = most - row.values[row.successor[row.start + i]]
            logs += count * log(z / farthest)
            inverse += count * (farthest / z)
    return logs / row.num_visits, inverse / row.num_visits


# --------------------------------------------------------------------------------------------------------------------
# The divergence balls of wide rows, beside their boxes: a learner keeps them and uses them in its joint cost.
#
# A box lets each successor of a row err on its own, a ball all of them together: with ten successors the worst of the
# ball is much nearer. A row is in both sets, so U takes the smaller maximum, row by row. A ball is made of
# the counts with which the box of its row was last made. Once moves of a row are unknown, its ball stays as it was: it
# holds the truth at all times, or not at all. Each law has one ball, with a share of the failure probability.


ACCURACY = 1e-5
"""Error of the largest p.V as a part of the span of V: never too small a maximum, and far below any radius"""


UNSEEN = 1e9
"""A radius that allows everything"""


class Balls(Bundle):
    """State; all arrays are empty where there are no balls."""

    moves: IntArray
    """(num_triples,): the counts of each row with a ball"""
    visits: IntArray
    """(num_rows,): their sums"""
    radius: FloatArray
    """(num_rows,): of the ball; UNSEEN where there is none, or nothing was seen"""


class BallRule(Bundle):
    """What stays the same."""

    wide: NDArray[np.int8]
    """(num_rows,): 1 for the rows that have a ball"""
    log_inverse_delta: float
    """ln(1/delta') of each law"""


def wide_rows(unknowns: Unknowns, from_successors: int) -> NDArray[np.bool_]:
    """(num_rows,): the uncertain rows with so many successors or more; none for 0."""
    enough = np.diff(unknowns.layout.row_start) >= max(2, from_successors)
    wide: NDArray[np.bool_] = unknowns.uncertain & enough & (from_successors > 0)
    return wide


def make_balls(wide: NDArray[np.bool_], num_triples: int) -> Balls:
    """Nothing seen yet."""
    rows, triples = (len(wide), num_triples) if wide.any() else (0, 0)
    return Balls(np.zeros(triples, dtype=np.int64), np.zeros(rows, dtype=np.int64), np.full(rows, UNSEEN))


def no_balls() -> Balls:
    """Empty arrays, for learners without balls."""
    return make_balls(np.zeros(0, dtype=bool), 0)


@kernel
def follow_counts(
    index: LayoutArrays, laws: Laws, counts: Counts, rule: BallRule, rows: IntArray, balls: Balls
) -> None:
    """Bring the balls of some rows, whose boxes were just refreshed, up to date."""
    for row in rows:
        place = laws.moves_at[row]
        visits = counts.num_visits[place]
        if rule.wide[row] and visits != balls.visits[row] and counts.unknown_moves[place] == 0:
            first, start = index.row_start[place], index.row_start[row]
            size = index.row_start[row + 1] - start
            balls.visits[row] = visits
            for i in range(size):
                balls.moves[start + i] = counts.num_moves[first + i]
            same = row != place and balls.visits[place] == visits  # the first row of a law comes first
            balls.radius[row] = (
                balls.radius[place] if same else ball_radius(balls.moves, start, size, visits, rule.log_inverse_delta)
            )


@kernel
def row_of_balls(index: LayoutArrays, balls: Balls, row: int, values: FloatArray) -> BallRow:
    """A row with a ball, whose successors have these values (num_states,)."""
    start = np.uint64(index.row_start[row])
    size = np.uint64(index.row_start[row + 1]) - start
    return BallRow(balls.moves, start, balls.visits[row], index.successor, start, size, values)


@kernel
def joint_cost_with_balls(
    index: LayoutArrays, columns: Columns, rule: BallRule, balls: Balls, costs: FloatArray, i: int
) -> float:
    """`joint_cost_of_columns` for constraint i, where rows with a ball take the smaller of two maxima."""
    first_slot, weight, values = columns.first_slot, columns.weight, columns.values
    values[len(values) - 1] = 0.0
    phi, count = 0.0, 0  # V(x_L) = 0
    for k in range(len(index.state_start) - 3, -1, -1):
        step_back(index, columns, k, phi, count)
        first, last = states_of(index, k)
        base = first_slot[first]
        for x in range(first, last):
            for s in range(first_slot[x], first_slot[x + ONE]):
                row = columns.row[s]
                values[x] += weight[s] * costs[row, i]
                if rule.wide[row]:
                    most = phi + columns.gain[s - base]
                    near = ball_value(row_of_balls(index, balls, row, values), balls.radius[row], ACCURACY)
                    # The row is in its box and in its ball: the smaller of the two maxima is valid.
                    values[x] -= weight[s] * max(most - near, 0.0)
        phi, count = sort_above(index, columns, k)
    return phi  # V(x_0): the only state of its layer
