"""The kernels of Triple-Q: updates along a path, the end of a frame, the greedy policy.

Q(x,a) <- (1 - lr) Q(x,a) + lr (r + Q(x',a') + b),   C_i likewise with the utility 1 - cost_i and its own bonus
lr = (chi + 1) / (chi + n),   a' the action that was taken next; the greedy one where an episode was cut short
end of a frame of F episodes:  Z_i <- [Z_i + L - alpha_i + epsilon - (sum of C_i(x_0,a_0)) / F]^+,  n <- 0,  Q up
"""

from __future__ import annotations

from math import sqrt

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.bundles import Bundle
from hedgerow.compiling.kernels import kernel
from hedgerow.model.index import Index


class Rule(Bundle):
    """The constants."""

    chi: float
    eta: float
    epsilon: float
    steps: float
    """L"""
    bonus: float
    """b = bonus sqrt(lr), or bonus / sqrt(n)"""
    published: bool
    """Whether the constants are those of the paper: b is the former, and reaching a bound is passing it"""
    c_share: float
    """The share of b that utilities get"""
    raised: float
    """What Q gains at the end of a frame"""
    top: float
    """Where Q is reset"""
    reward_scale: float


class Tables(Bundle):
    """What it learns."""

    q: FloatArray
    """Q (num_rows,)"""
    c: FloatArray
    """C (num_rows, m)"""
    visits: FloatArray
    """n (num_rows,): since the frame began"""
    queues: FloatArray
    """Z (m,)"""
    c_sums: FloatArray
    """(m,): sums of C(x_0, a_0) since the frame began"""
    wanted: FloatArray
    """L - alpha (m,)"""
    policy: FloatArray
    """(num_rows,)"""


@kernel
def learn_path(
    index: Index,
    rows: IntArray,
    triples: IntArray,
    losses: FloatArray,
    costs: FloatArray,
    rule: Rule,
    tables: Tables,
) -> None:
    """Update the rows (n,) of one episode, the first one first: each looks at the next one as it was before."""
    terminal = index.state_start[len(index.state_start) - 1] - 1
    for k in range(len(rows)):
        row, state, ahead = rows[k], index.successor[triples[k]], -1
        if k + 1 < len(rows):
            ahead = rows[k + 1]
        elif state != terminal:
            ahead = best_row(index, state, rule, tables)
        tables.visits[row] += 1.0
        lr = (rule.chi + 1.0) / (rule.chi + tables.visits[row])
        b = rule.bonus * (sqrt(lr) if rule.published else 1.0 / sqrt(tables.visits[row]))
        reward = rule.reward_scale * (1.0 - losses[k])
        q_next = tables.q[ahead] if ahead >= 0 else 0.0
        tables.q[row] += lr * (reward + q_next + b - tables.q[row])
        for i in range(len(tables.queues)):
            c_next = tables.c[ahead, i] if ahead >= 0 else 0.0
            tables.c[row, i] += lr * (1.0 - costs[k, i] + c_next + rule.c_share * b - tables.c[row, i])
    for i in range(len(tables.queues) if len(rows) > 0 else 0):
        tables.c_sums[i] += tables.c[rows[0], i]


@kernel
def end_frame(frame: float, rule: Rule, tables: Tables) -> None:
    """Update the queues, count anew, and raise Q, up to where it began."""
    for i in range(len(tables.queues)):
        missing = tables.wanted[i] + rule.epsilon - tables.c_sums[i] / frame
        tables.queues[i] = max(0.0, tables.queues[i] + missing)
        tables.c_sums[i] = 0.0
    for row in range(len(tables.q)):
        tables.visits[row] = 0.0
        tables.q[row] += rule.raised
        reset = _passes(tables.q[row], rule.top, rule)
        for i in range(len(tables.queues)):
            reset |= _passes(tables.c[row, i], rule.steps, rule)
        if reset:
            tables.q[row] = rule.reward_scale * rule.steps
            for i in range(len(tables.queues) if rule.published else 0):
                tables.c[row, i] = rule.steps


@kernel
def _passes(value: float, bound: float, rule: Rule) -> bool:
    return value > bound or (rule.published and value == bound)


@kernel
def best_row(index: Index, state: int, rule: Rule, tables: Tables) -> int:
    """The row of the action with the largest Q + sum_i (Z_i / eta) C_i; of equal ones the first."""
    best, top = -1, 0.0
    for row in range(state * index.num_actions, (state + 1) * index.num_actions):
        value = tables.q[row]
        for i in range(len(tables.queues)):
            value += tables.queues[i] / rule.eta * tables.c[row, i]
        if best < 0 or value > top:
            best, top = row, value
    return best


@kernel
def set_policy(index: Index, rows: IntArray, explored: float, rule: Rule, tables: Tables) -> None:
    """The policy in the states of the given rows: greedy, with the probability `explored` of a random action."""
    for row in rows:
        state = row // index.num_actions
        for r in range(state * index.num_actions, (state + 1) * index.num_actions):
            tables.policy[r] = explored / index.num_actions
        tables.policy[best_row(index, state, rule, tables)] += 1.0 - explored
