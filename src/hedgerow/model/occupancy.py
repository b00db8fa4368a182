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
from hedgerow.model.view import policy_between, same_layout

__all__ = (
    "Evaluation", "Residuals", "evaluate", "induced_policy", "induced_transitions", "occupancy", "residuals",
    "row_occupancy", "state_occupancy",
)  # fmt: skip

TOL_POLICY_SUM = 1e-10
ZERO_MASS = 1e-290
"""A state with less mass than this counts as not visited: its induced policy is uniform by convention."""


def __dir__() -> list[str]:
    return list(__all__)


class Residuals(NamedTuple):
    """How far an array over triples is from an occupancy measure; all four numbers are 0 for a valid one.

    Examples:
        >>> import hedgerow as hr
        >>> hr.occupancy.residuals(hr.Layout((1, 1), num_actions=2), [0.25, 0.5])
        Residuals(negativity=0.0, mass=0.25, flow=0.0, transitions=0.0)
    """

    negativity: float
    """By how much the smallest entry is below 0."""
    mass: float
    """The largest |mass of a layer - 1|."""
    flow: float
    """The largest |inflow - outflow| of any inner state."""
    transitions: float
    """The largest |q(x, a, x') - P(x'|x, a) q(x, a)| of any triple; 0 if no transitions P were given."""


def flat_rows(layout: Layout, what: str, given: ArrayLike) -> FloatArray:
    """An array over rows that is given flat (num_rows,) or as a table (num_decision_states, num_actions)."""
    array = numeric_array(what, given)
    if array.shape == (layout.num_decision_states, layout.num_actions):
        array = array.ravel()
    return float_array(what, array, (layout.num_rows,), layout.describe_row)


def checked_policy(layout: Layout, policy: ArrayLike) -> FloatArray:
    """Action probabilities (num_rows,) if they form a distribution in every state; else the message names the state.

    `policy` is flat, a table, or a `Policy`; one whose layout has the same names in another order is translated.
    """
    array = flat_rows(layout, "the action probability", _by_name(layout, policy))
    within("the action probability", array, 0.0, 1.0, layout.describe_row)
    sums = array.reshape(-1, layout.num_actions).sum(axis=1)
    worst = int(np.argmax(np.abs(sums - 1.0)))
    if abs(sums[worst] - 1.0) > TOL_POLICY_SUM:
        raise InvalidInput(
            f"action probabilities of {layout.describe_state(worst)} sum to {float(sums[worst])!r}, not 1"
        )
    return array


def _by_name(layout: Layout, policy: ArrayLike) -> ArrayLike:
    """A policy of another layout with the same names in another order; what is no `Policy` stands as it is."""
    own = getattr(policy, "layout", None)
    if not isinstance(own, Layout) or same_layout(own, layout):
        return policy
    try:
        return policy_between(own, layout, np.asarray(policy))
    except InvalidInput as error:
        raise InvalidInput(f"the policy belongs to another layout: {error}") from error


def uniform_policy(layout: Layout) -> FloatArray:
    """The policy that gives all actions the same probability."""
    return np.full(layout.num_rows, 1.0 / layout.num_actions)


def occupancy(layout: Layout, transitions: ArrayLike, policy: ArrayLike) -> FloatArray:
    """Compute how likely a policy is to pass through each triple (state, action, next state).

    The paper calls the result q^{P,pi}. It is one forward pass through the layers, and works for any transitions, not
    only for the true ones.

    Args:
        layout: The layout.
        transitions: (num_triples,) probabilities of the next states.
        policy: (num_rows,) action probabilities, a table (num_decision_states, num_actions), or a `Policy`.

    Returns:
        (num_triples,) array; the entries of each layer sum to 1.

    Examples:
        >>> import hedgerow as hr
        >>> layout = hr.Layout((1, 2, 1), num_actions=1)
        >>> hr.occupancy.occupancy(layout, [0.25, 0.75, 1.0, 1.0], [1.0, 1.0, 1.0]).tolist()
        [0.25, 0.75, 0.25, 0.75]
    """
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
    """Sum an occupancy over next states: how likely each pair of state and action is visited.

    Args:
        layout: The layout.
        q: (num_triples,) occupancy.

    Returns:
        (num_rows,) array.

    Examples:
        >>> import hedgerow as hr
        >>> layout = hr.Layout((1, 2, 1), num_actions=1)
        >>> hr.occupancy.row_occupancy(layout, [0.25, 0.75, 0.25, 0.75]).tolist()
        [1.0, 0.25, 0.75]
    """
    w: FloatArray = np.add.reduceat(_over_triples(layout, q), layout.row_start[:-1])
    return w


def state_occupancy(layout: Layout, q: ArrayLike) -> FloatArray:
    """Sum an occupancy over actions and next states: how likely each state is visited.

    Args:
        layout: The layout.
        q: (num_triples,) occupancy.

    Returns:
        (num_decision_states,) array.

    Examples:
        >>> import hedgerow as hr
        >>> layout = hr.Layout((1, 2, 1), num_actions=1)
        >>> hr.occupancy.state_occupancy(layout, [0.25, 0.75, 0.25, 0.75]).tolist()
        [1.0, 0.25, 0.75]
    """
    mass: FloatArray = row_occupancy(layout, q).reshape(-1, layout.num_actions).sum(axis=1)
    return mass


def induced_policy(layout: Layout, q: ArrayLike) -> FloatArray:
    """Return the policy that an occupancy belongs to: q(state, action) / q(state).

    Args:
        layout: The layout.
        q: (num_triples,) occupancy.

    Returns:
        (num_rows,) action probabilities; uniform in states that are never visited.

    Examples:
        >>> import hedgerow as hr
        >>> hr.occupancy.induced_policy(hr.Layout((1, 1), num_actions=2), [0.25, 0.75]).tolist()
        [0.25, 0.75]
    """
    return policy_of_masses(layout, row_occupancy(layout, q))


def policy_of_masses(layout: Layout, w: FloatArray) -> FloatArray:
    """The policy (num_rows,) that visits pairs in the proportions `w` (num_rows,); uniform in states without mass."""
    by_state = w.reshape(-1, layout.num_actions)
    mass = by_state.sum(axis=1, keepdims=True)
    visited = mass > ZERO_MASS
    return np.where(visited, by_state / np.where(visited, mass, 1.0), 1.0 / layout.num_actions).ravel()


def induced_transitions(layout: Layout, q: ArrayLike, unvisited: ArrayLike | None = None) -> FloatArray:
    """Return the transitions that an occupancy implies: q(state, action, next state) / q(state, action).

    Args:
        layout: The layout.
        q: (num_triples,) occupancy.
        unvisited: (num_triples,) probabilities for rows that are never visited; None makes them uniform.

    Returns:
        (num_triples,) probabilities.

    Examples:
        >>> import hedgerow as hr
        >>> layout = hr.Layout((1, 2, 1), num_actions=1)
        >>> hr.occupancy.induced_transitions(layout, [0.25, 0.75, 0.25, 0.75]).tolist()
        [0.25, 0.75, 1.0, 1.0]
    """
    if unvisited is None:
        unvisited = 1.0 / np.diff(layout.row_start)[layout.row_of_triple]
    w = row_occupancy(layout, q)[layout.row_of_triple]
    visited = w > ZERO_MASS
    return np.where(visited, np.asarray(q, dtype=np.float64) / np.where(visited, w, 1.0), unvisited)


def residuals(layout: Layout, q: ArrayLike, transitions: ArrayLike | None = None) -> Residuals:
    """Measure how far an array over triples is from a valid occupancy.

    Args:
        layout: The layout.
        q: (num_triples,) array.
        transitions: (num_triples,) probabilities that `q` should belong to; None does not ask for that.

    Returns:
        The four residuals, all 0 for a valid occupancy.

    Examples:
        >>> import hedgerow as hr
        >>> layout = hr.Layout((1, 2, 1), num_actions=1)
        >>> hr.occupancy.residuals(layout, [0.25, 0.75, 0.5, 0.5]).flow
        0.25
    """
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
    """The expected loss and the expected costs of a policy in a world.

    Examples:
        >>> import hedgerow as hr
        >>> world = hr.worlds.make("lower-bound-2")
        >>> loss, costs = hr.occupancy.evaluate(world, hr.Policy.uniform(world), world.loss)
        >>> round(loss, 3), costs.shape
        (0.75, (1,))
    """

    loss: float
    """The expected sum of losses of an episode; 0 if no loss was given."""
    costs: FloatArray
    """(m,): the expected sum of costs of an episode."""

    def __repr__(self) -> str:
        from hedgerow.display import text

        return text.line("Evaluation", f"loss={self.loss:.6g}", f"costs={text.numbers(self.costs)}")


def checked_loss(layout: Layout, loss: ArrayLike) -> FloatArray:
    """A loss (num_rows,), given flat or as a table, if all its entries are in [0, 1]."""
    array = flat_rows(layout, "the loss", loss)
    return within("the loss", array, 0.0, 1.0, layout.describe_row)


def evaluate(world: CMDP | Any, policy: ArrayLike, loss: ArrayLike | None = None) -> Evaluation:
    """Compute the expected loss and the expected costs of a policy, exactly.

    Args:
        world: A CMDP, a world of the catalogue, or anything that has a CMDP in `.cmdp`.
        policy: (num_rows,) action probabilities, a table (num_decision_states, num_actions), or a `Policy`.
        loss: (num_rows,) losses in [0, 1], or a table; None takes the world's own `.loss`, or 0 if it
            has none.

    Returns:
        The expected loss and the expected costs (m,) of one episode.

    Examples:
        >>> import hedgerow as hr
        >>> world = hr.worlds.make("dope-media")
        >>> always_first = [1.0, 0.0] * world.cmdp.layout.num_decision_states
        >>> found = hr.occupancy.evaluate(world, always_first)
        >>> round(found.loss, 4), found.costs.round(4).tolist()
        (5.3931, [10.0])
    """
    cmdp = cmdp_of(world)
    w = row_occupancy(cmdp.layout, occupancy(cmdp.layout, cmdp.transitions, policy))
    loss = getattr(world, "loss", None) if loss is None else loss
    value = 0.0 if loss is None else float(checked_loss(cmdp.layout, loss) @ w)
    return Evaluation(value, cmdp.mean_costs @ w)


class Induction(NamedTuple):
    """Optimal value, values of all states (num_states,) and a deterministic optimal policy (rows,)."""

    value: float
    """V(x_0)"""
    state_values: FloatArray
    policy: FloatArray
    """Ties go to the action of the lowest number."""


def backward_induction(layout: Layout, transitions: ArrayLike, loss: ArrayLike) -> Induction:
    """Minimise the expected loss (rows,) under P (triples,) without constraints, exactly.

        V(x_L) = 0,   V(x) = min_a Q(x, a),   Q(x, a) = loss(x, a) + sum_x' P(x'|x, a) V(x').

    The loss may be any real numbers: with loss + theta^T g this is the Lagrangian of the constrained problem, whose
    value gives the lower bounds of `hedgerow.planning.offline`.

    >>> P = [1.0, 0.0, 0.5, 0.5, 1.0, 1.0, 1.0, 1.0]
    >>> best = backward_induction(Layout((1, 2, 1), num_actions=2), P, [0.0, 0.0, 1.0, 1.0, 0.5, 0.25])
    >>> best.value, best.policy.tolist()
    (0.625, [0.0, 1.0, 1.0, 0.0, 0.0, 1.0])
    """
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


def _over_triples(layout: Layout, q: ArrayLike) -> FloatArray:
    return float_array("the occupancy", q, (layout.num_triples,), layout.describe_triple)
