"""Backward induction: the least expected loss without constraints, exactly.

V(x_L) = 0,   V(x) = min_a Q(x, a),   Q(x, a) = loss(x, a) + sum_x' P(x'|x, a) V(x').

The loss may be any real numbers: with loss + theta^T g this is the Lagrangian of the constrained problem, whose value
gives the lower bounds of `hedgerow.planning.offline`.

    >>> layout = Layout((1, 2, 1), num_actions=2)
    >>> P = [1.0, 0.0, 0.5, 0.5, 1.0, 1.0, 1.0, 1.0]
    >>> best = backward_induction(layout, P, [0.0, 0.0, 1.0, 1.0, 0.5, 0.25])
    >>> best.value, best.policy.tolist()
    (0.625, [0.0, 1.0, 1.0, 0.0, 0.0, 1.0])
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hedgerow.checks import FloatArray, float_array
from hedgerow.model.layout import Layout


class Induction(NamedTuple):
    """Optimal value, values of all states (num_states,) and a deterministic optimal policy (rows,)."""

    value: float
    """V(x_0)"""
    state_values: FloatArray
    policy: FloatArray
    """Ties go to the action of the lowest number."""


def backward_induction(layout: Layout, transitions: ArrayLike, loss: ArrayLike) -> Induction:
    """Minimise the expected loss (rows,) under P (triples,)."""
    p = float_array("the transition probability", transitions, (layout.num_triples,), layout.describe_triple)
    cost = float_array("the loss", loss, (layout.num_rows,), layout.describe_row)
    V = np.zeros(layout.num_states)
    choice = np.empty(layout.num_decision_states, dtype=np.int64)
    for k in reversed(range(layout.steps)):
        states, rows, triples = layout.states(k), layout.rows(k), layout.triples(k)
        ahead = np.add.reduceat(p[triples] * V[layout.successor[triples]], layout.row_start[rows] - triples.start)
        Q = (cost[rows] + ahead).reshape(-1, layout.num_actions)
        choice[states] = Q.argmin(axis=1)
        V[states] = Q.min(axis=1)
    policy = np.zeros((layout.num_decision_states, layout.num_actions))
    policy[np.arange(len(choice)), choice] = 1.0
    return Induction(float(V[0]), V, policy.ravel())
