"""The kernels of OPSE-DP: a backward pass for one weight theta of the utility, and the bisection over theta.

In rewards, for which the source is written: r = 1 - loss, u = 1 - cost, and d, a reward for uncertain pairs.

    Q^r = r + clip(b_r + P_hat V^r, 0, top_r)     Q^d = d + clip(b_d + P_hat V^d, 0, top_d)
    Q^u = u + clip(P_hat V^u - b_u, 0, top_u)     pi = softmax((Q^r + Q^d + theta Q^u) / tau)
    V^r = sum_a pi (Q^r - tau ln pi)              V^d = sum_a pi Q^d,   V^u = sum_a pi Q^u

V^u belongs to the policy that comes out, whatever theta is: a policy is taken if its V^u(x_0) reaches what is needed.
"""

from __future__ import annotations

from math import sqrt

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.bundles import Bundle
from hedgerow.compiling.kernels import kernel
from hedgerow.learners.field.backward import Centres, centre, softmax
from hedgerow.model.positions import triples_of

R, D, U = 0, 1, 2
"""The columns"""
BISECTIONS = 20


class Passes(Bundle):
    """The constants of the learner, its rewards and bonuses as they are now, and the buffers of a pass."""

    theory: bool
    """Whether rewards and bonuses come from the confidence sets, which proves safety, or from means and visits"""
    tau: float
    most_theta: float
    needed: float
    """V^u(x_0) of a policy that is known to be safe"""
    scales: FloatArray
    """(num_rows, 4): what multiplies the uncertainty of a row in b_r, b_d, b_u, and its pessimism in d"""
    tops: FloatArray
    """(num_rows, 3)"""
    p_hat: FloatArray
    """(num_triples,)"""
    rewards: FloatArray
    """r, d, u (num_rows, 3)"""
    bonuses: FloatArray
    """b_r, b_d, -b_u (num_rows, 3)"""
    q: FloatArray
    """(num_rows, 3)"""
    values: FloatArray
    """(num_states, 3)"""
    log_policy: FloatArray
    """(num_rows,)"""
    policy: FloatArray
    """(num_rows,)"""


@kernel
def opse_step(centres: Centres, rows: IntArray, passes: Passes) -> float:
    """Learn from an episode that visited `rows`, and plan; returns theta, or -1 if no policy is known to be safe."""
    centre(centres, rows)
    set_rows(centres, rows, passes)
    return bisect(centres, passes)


@kernel
def set_rows(centres: Centres, rows: IntArray, passes: Passes) -> None:
    """Rewards and bonuses of the given rows."""
    loss = centres.means.shape[1] - 1
    for row in rows:
        if passes.theory:
            width = _width(centres, row, passes)
            passes.rewards[row, R] = 1.0 - centres.boxes.cost_lower[row, loss]
            passes.rewards[row, U] = 1.0 - centres.boxes.cost_upper[row, 0]
            pessimism = centres.radii[row, 0] + passes.scales[row, U] * width
        else:
            width = _ridge(centres, row, passes)
            passes.rewards[row, R] = 1.0 - centres.means[row, loss]
            passes.rewards[row, U] = 1.0 - centres.means[row, 0]
            pessimism = width
        passes.rewards[row, D] = passes.scales[row, 3] * pessimism
        passes.bonuses[row, R] = passes.scales[row, R] * width
        passes.bonuses[row, D] = passes.scales[row, D] * width
        passes.bonuses[row, U] = -passes.scales[row, U] * width


@kernel
def _width(centres: Centres, row: int, passes: Passes) -> float:
    """For each P in the box of the row and each V in [0, h], |(P - P_hat) V| <= h times this.

    It bounds half the 1-norm of P - P_hat: the sum of hi - P_hat does, and the sum of P_hat - lo.
    """
    start, stop = triples_of(centres.index, row)
    above = below = 0.0
    for j in range(start, stop):
        passes.p_hat[j] = centres.p_hat[j]
        above += centres.boxes.upper[j] - centres.p_hat[j]
        below += centres.p_hat[j] - centres.boxes.lower[j]
    return max(0.0, min(1.0, above, below)) if centres.rule.uncertain[row] else 0.0


@kernel
def _ridge(centres: Centres, row: int, passes: Passes) -> float:
    """1 / sqrt(1 + N), and P_hat = M / (1 + N): regression on one-hot features with ridge 1."""
    start, stop = triples_of(centres.index, row)
    num = centres.counts.num_visits[row]
    for j in range(start, stop):
        known = not centres.rule.uncertain[row]
        passes.p_hat[j] = centres.p_hat[j] if known else centres.counts.num_moves[j] / (1.0 + num)
    return 1.0 / sqrt(1.0 + num)


@kernel
def bisect(centres: Centres, passes: Passes) -> float:
    """The least theta in [0, most_theta] whose policy is known to be safe, up to bisection; leaves that policy."""
    if _pass(centres, 0.0, passes) >= passes.needed:
        return 0.0
    if _pass(centres, passes.most_theta, passes) < passes.needed:
        return -1.0
    low, high, tried = 0.0, passes.most_theta, passes.most_theta
    for _ in range(BISECTIONS):
        tried = 0.5 * (low + high)
        if _pass(centres, tried, passes) >= passes.needed:
            high = tried
        else:
            low = tried
    if tried != high:
        _pass(centres, high, passes)
    return high


@kernel
def _pass(centres: Centres, theta: float, passes: Passes) -> float:
    """V^u(x_0) of the policy for theta, which is left in `policy`."""
    index, q, values = centres.index, passes.q, passes.values
    for x in range(len(passes.policy) // index.num_actions - 1, -1, -1):
        first, last = x * index.num_actions, (x + 1) * index.num_actions
        for r in range(first, last):
            v_r, v_d, v_u = passes.bonuses[r, R], passes.bonuses[r, D], passes.bonuses[r, U]
            start, stop = triples_of(index, r)
            for j in range(start, stop):
                y, p = index.successor[j], passes.p_hat[j]
                v_r += p * values[y, R]
                v_d += p * values[y, D]
                v_u += p * values[y, U]
            q[r, R] = passes.rewards[r, R] + min(max(v_r, 0.0), passes.tops[r, R])
            q[r, D] = passes.rewards[r, D] + min(max(v_d, 0.0), passes.tops[r, D])
            q[r, U] = passes.rewards[r, U] + min(max(v_u, 0.0), passes.tops[r, U])
            passes.log_policy[r] = (q[r, R] + q[r, D] + theta * q[r, U]) / passes.tau
        softmax(index, x, passes.log_policy, passes.policy)
        v_r = v_d = v_u = 0.0
        for r in range(first, last):
            p = passes.policy[r]
            v_r += p * (q[r, R] - passes.tau * passes.log_policy[r])
            v_d += p * q[r, D]
            v_u += p * q[r, U]
        values[x, R], values[x, D], values[x, U] = v_r, v_d, v_u
    return float(values[0, U])
