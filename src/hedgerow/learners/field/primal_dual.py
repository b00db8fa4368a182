"""The kernel of OptPrimalDual: one optimistic evaluation of the policy, one step of it, one step of the multipliers.

    Q_i(x,a) = max(floor_i, mean_i(x,a) - b_i(x,a) + P_hat V_i),   V_i(x) = sum_a pi(a|x) Q_i(x,a)      costs i < m
    Q_m(x,a) likewise of the loss,                                 V_m(x) = sum_a pi(a|x) (Q_m(x,a) + tau ln pi(a|x))
    pi(a|x) <- pi(a|x)^(1 - eta tau) exp(-eta (Q_m + sum_i lambda_i Q_i)), normalised
    lambda_i <- [(1 - dual tau) lambda_i + dual (V_i(x_0) - alpha_i)]^+

with floor 0 for costs and -tau ln A (L - k) for the loss, whose value an entropy bonus may lower so far. Both steps use
the old policy and the old multipliers.
"""

from __future__ import annotations

from math import e, log, sqrt

import numpy as np

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.bundles import Bundle, Record
from hedgerow.compiling.kernels import kernel
from hedgerow.learners.field.backward import Centres, centre, expected_next, softmax
from hedgerow.model.positions import triples_of


class Steps(Record):
    """The numbers of one update."""

    eta: float
    """The step of the policy"""
    tau: float
    """The weight of the entropy; 0 without it"""
    dual: float
    """The step of the multipliers"""
    bonus_scale: float
    """Factor on all bonuses"""
    phi_log: float
    """ln(48 S^2 A L / delta) for the bonuses of UOpt-RPGPD; 0 for those from the radii"""


class PrimalDual(Bundle):
    """What the update changes, and its buffers."""

    steps: Steps
    thresholds: FloatArray
    """(m,)"""
    multipliers: FloatArray
    """lambda (m,)"""
    log_policy: FloatArray
    """(num_rows,)"""
    policy: FloatArray
    """(num_rows,)"""
    bonus: FloatArray
    """b (num_rows, m + 1), without the factor"""
    q: FloatArray
    """Q (num_rows, m + 1)"""
    values: FloatArray
    """V (num_states, m + 1)"""


@kernel
def primal_dual_step(centres: Centres, rows: IntArray, pd: PrimalDual) -> None:
    """Learn from an episode that visited `rows`, which the counts have already."""
    centre(centres, rows)
    for row in rows:
        set_bonus(centres, row, pd)
    _evaluate(centres, pd)
    index, steps, m = centres.index, pd.steps, len(pd.multipliers)
    for x in range(len(pd.policy) // index.num_actions):
        for r in range(x * index.num_actions, (x + 1) * index.num_actions):
            total = pd.q[r, m]
            for i in range(m):
                total += pd.multipliers[i] * pd.q[r, i]
            pd.log_policy[r] = (1.0 - steps.eta * steps.tau) * pd.log_policy[r] - steps.eta * total
        softmax(index, x, pd.log_policy, pd.policy)
    for i in range(m):
        kept = (1.0 - steps.dual * steps.tau) * pd.multipliers[i]
        pd.multipliers[i] = max(0.0, kept + steps.dual * (pd.values[0, i] - pd.thresholds[i]))


@kernel
def set_bonuses(centres: Centres, pd: PrimalDual) -> None:
    """b of all rows."""
    for row in range(len(pd.policy)):
        set_bonus(centres, row, pd)


@kernel
def set_bonus(centres: Centres, row: int, pd: PrimalDual) -> None:
    """b of a row: xi + (L - k) spread, or phi + sum_y sqrt(P_hat) phi + 5 phi^2."""
    moves = centres.steps_left[row] * centres.spread[row]
    if pd.steps.phi_log > 0.0:
        moves = 0.0
        if centres.rule.uncertain[row]:
            start, stop = triples_of(centres.index, row)
            for j in range(start, stop):
                moves += sqrt(centres.p_hat[j])
            phi = _phi(pd.steps.phi_log, centres.counts.num_visits[row])
            moves = moves * phi + 5.0 * phi * phi
    for i in range(pd.bonus.shape[1]):
        mean = centres.radii[row, i]
        if pd.steps.phi_log > 0.0 and centres.rule.unknown_costs[row, i]:
            counts = centres.counts
            mean = _phi(pd.steps.phi_log, counts.num_costs[row] - counts.unknown_costs[row, i])
        pd.bonus[row, i] = mean + moves


@kernel
def _phi(phi_log: float, num: int) -> float:
    """sqrt((2 ln ln max(2n, e) + 2 phi_log) / max(1, n)), Kitamura et al. 2024."""
    return sqrt((2.0 * log(log(max(2.0 * num, e))) + 2.0 * phi_log) / max(1, num))


@kernel
def _evaluate(centres: Centres, pd: PrimalDual) -> None:
    index, steps, columns = centres.index, pd.steps, pd.q.shape[1]
    lowest = -steps.tau * log(index.num_actions)
    for x in range(len(pd.policy) // index.num_actions - 1, -1, -1):
        for i in range(columns):
            floor_per_step = lowest if i == columns - 1 else 0.0
            value = 0.0
            for r in range(x * index.num_actions, (x + 1) * index.num_actions):
                ahead = expected_next(index, centres.p_hat, pd.values, r, i)
                optimistic = centres.means[r, i] - steps.bonus_scale * pd.bonus[r, i] + ahead
                q = max(floor_per_step * centres.steps_left[r], optimistic)
                pd.q[r, i] = q
                if i == columns - 1 and steps.tau > 0.0:
                    q += steps.tau * pd.log_policy[r]
                value += pd.policy[r] * q
            pd.values[x, i] = value


def make_primal_dual(centres: Centres, thresholds: FloatArray, policy: FloatArray) -> PrimalDual:
    """Before the first episode: `policy` (num_rows,), which is kept up to date, and no multipliers yet."""
    rows, columns = centres.means.shape
    num_states = int(centres.index.state_start[-1])
    return PrimalDual(
        steps=Steps(),
        thresholds=thresholds.copy(),
        multipliers=np.zeros(columns - 1),
        log_policy=np.log(policy),
        policy=policy,
        bonus=np.zeros((rows, columns)),
        q=np.zeros((rows, columns)),
        values=np.zeros((num_states, columns)),
    )
