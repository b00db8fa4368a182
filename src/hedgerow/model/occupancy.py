"""Occupancy measures <-> policies <-> expected losses and costs (paper, section 2).

q(x, a, x') = Pr[x_k = x, a_k = a, x_{k+1} = x'] for x in X_k. It is valid iff every layer carries mass 1, inflow equals
outflow in every inner state, and the transitions that it induces are P. Policies are flat arrays over rows, occupancies
flat arrays over triples (`q`) or rows (`w`, the sum over x').

    >>> layout = Layout((1, 2, 1), num_actions=1)
    >>> occupancy(layout, [0.25, 0.75, 1.0, 1.0], [1.0, 1.0, 1.0]).tolist()
    [0.25, 0.75, 0.25, 0.75]
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hedgerow.checks import FloatArray, float_array, numeric_array, within
from hedgerow.errors import InvalidInput
from hedgerow.model.cmdp import CMDP, cmdp_of
from hedgerow.model.layout import Layout

TOL_POLICY_SUM = 1e-10
ZERO_MASS = 1e-290
"""A state with less mass than this counts as not visited: its induced policy is uniform by convention."""


class Residuals(NamedTuple):
    """By how much an array over triples fails to be an occupancy measure; all 0 for a valid one."""

    negativity: float
    mass: float
    """max over layers |mass - 1|"""
    flow: float
    """max over inner states |inflow - outflow|"""
    transitions: float
    """max over triples |q(x,a,x') - P(x'|x,a) q(x,a)|; 0 when no P was given"""


def flat_rows(layout: Layout, what: str, given: ArrayLike) -> FloatArray:
    """An array over rows (num_rows,), given as one or as a table (num_decision_states, num_actions)."""
    array = numeric_array(what, given)
    if array.shape == (layout.num_decision_states, layout.num_actions):
        array = array.ravel()
    return float_array(what, array, (layout.num_rows,), layout.describe_row)


def checked_policy(layout: Layout, policy: ArrayLike) -> FloatArray:
    """`policy` (num_rows,), or as a table, if every state's action probabilities form a distribution."""
    array = flat_rows(layout, "the action probability", policy)
    within("the action probability", array, 0.0, 1.0, layout.describe_row)
    sums = array.reshape(-1, layout.num_actions).sum(axis=1)
    worst = int(np.argmax(np.abs(sums - 1.0)))
    if abs(sums[worst] - 1.0) > TOL_POLICY_SUM:
        raise InvalidInput(
            f"action probabilities of {layout.describe_state(worst)} sum to {float(sums[worst])!r}, not 1"
        )
    return array


def uniform_policy(layout: Layout) -> FloatArray:
    return np.full(layout.num_rows, 1.0 / layout.num_actions)


def occupancy(layout: Layout, transitions: ArrayLike, policy: ArrayLike) -> FloatArray:
    """q^{P,pi} (num_triples,): the forward pass through the layers, for any P, not only the true one."""
    p = float_array("the transition probability", transitions, (layout.num_triples,), layout.describe_triple)
    pi = checked_policy(layout, policy)
    reach: FloatArray = np.ones(1)  # of the states of layer k
    q = np.empty(layout.num_triples)
    for k in range(layout.steps):
        rows, triples = layout.rows(k), layout.triples(k)
        w = np.repeat(reach, layout.num_actions) * pi[rows]
        q[triples] = w[layout.row_of_triple[triples] - rows.start] * p[triples]
        local = layout.successor[triples] - layout.state_start[k + 1]
        reach = np.bincount(local, q[triples], minlength=layout.layer_sizes[k + 1]).astype(np.float64, copy=False)
    return q


def row_occupancy(layout: Layout, q: ArrayLike) -> FloatArray:
    """q(x, a) (num_rows,)."""
    w: FloatArray = np.add.reduceat(_over_triples(layout, q), layout.row_start[:-1])
    return w


def state_occupancy(layout: Layout, q: ArrayLike) -> FloatArray:
    """q(x) (num_decision_states,)."""
    mass: FloatArray = row_occupancy(layout, q).reshape(-1, layout.num_actions).sum(axis=1)
    return mass


def induced_policy(layout: Layout, q: ArrayLike) -> FloatArray:
    """pi^q(a|x) = q(x,a) / q(x) (num_rows,); uniform in states without mass."""
    return policy_of_masses(layout, row_occupancy(layout, q))


def policy_of_masses(layout: Layout, w: FloatArray) -> FloatArray:
    """w(x,a) / w(x) (num_rows,) for masses of rows (num_rows,), each at least 0; uniform in states without mass."""
    by_state = w.reshape(-1, layout.num_actions)
    mass = by_state.sum(axis=1, keepdims=True)
    visited = mass > ZERO_MASS
    return np.where(visited, by_state / np.where(visited, mass, 1.0), 1.0 / layout.num_actions).ravel()


def induced_transitions(layout: Layout, q: ArrayLike, unvisited: ArrayLike | None = None) -> FloatArray:
    """P^q(x'|x,a) = q(x,a,x') / q(x,a) (num_triples,); `unvisited` (default uniform) in rows without mass."""
    if unvisited is None:
        unvisited = 1.0 / np.diff(layout.row_start)[layout.row_of_triple]
    w = row_occupancy(layout, q)[layout.row_of_triple]
    visited = w > ZERO_MASS
    return np.where(visited, np.asarray(q, dtype=np.float64) / np.where(visited, w, 1.0), unvisited)


def residuals(layout: Layout, q: ArrayLike, transitions: ArrayLike | None = None) -> Residuals:
    """How far `q` is from a valid occupancy (of `transitions`, if given)."""
    array = _over_triples(layout, q)
    w = np.add.reduceat(array, layout.row_start[:-1])
    layer_mass = [w[layout.rows(k)].sum() for k in range(layout.steps)]
    outflow = w.reshape(-1, layout.num_actions).sum(axis=1)
    inflow = np.bincount(layout.successor, weights=array, minlength=layout.num_states)
    flow = np.abs(inflow[1:-1] - outflow[1:])
    off = 0.0
    if transitions is not None:
        p = float_array("the transition probability", transitions, array.shape, layout.describe_triple)
        off = float(np.max(np.abs(array - p * w[layout.row_of_triple])))
    return Residuals(
        negativity=float(max(0.0, -array.min())),
        mass=float(np.max(np.abs(np.array(layer_mass) - 1.0))),
        flow=float(flow.max(initial=0.0)),
        transitions=off,
    )


class Evaluation(NamedTuple):
    """Expected loss and costs (m,) of a policy in a world."""

    loss: float
    costs: FloatArray

    def __repr__(self) -> str:
        from hedgerow import brief

        return brief.line("Evaluation", f"loss={self.loss:.6g}", f"costs={brief.numbers(self.costs)}")


def checked_loss(layout: Layout, loss: ArrayLike) -> FloatArray:
    """`loss` (num_rows,), or as a table, with entries in [0, 1]."""
    array = flat_rows(layout, "the loss", loss)
    return within("the loss", array, 0.0, 1.0, layout.describe_row)


def evaluate(world: CMDP | Any, policy: ArrayLike, loss: ArrayLike | None = None) -> Evaluation:
    """loss^T q and bar G^T q for q = q^{P,pi}, exactly; `world` is a CMDP or an entry of the catalogue."""
    cmdp = cmdp_of(world)
    w = row_occupancy(cmdp.layout, occupancy(cmdp.layout, cmdp.transitions, policy))
    value = 0.0 if loss is None else float(checked_loss(cmdp.layout, loss) @ w)
    return Evaluation(value, cmdp.mean_costs @ w)


def _over_triples(layout: Layout, q: ArrayLike) -> FloatArray:
    return float_array("the occupancy", q, (layout.num_triples,), layout.describe_triple)
