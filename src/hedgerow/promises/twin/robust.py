"""Best and worst transitions in their sets, by backward passes in plain loops."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.promises.twin.formulas import most_in_ball
from hedgerow.promises.twin.given import Given
from hedgerow.promises.twin.sets import Boxes, Sets


def most(low: FloatArray, high: FloatArray, values: Sequence[float]) -> float:
    """max p . V over { low <= p <= high, sum p = 1 }: begin with `low` and give the rest to the largest values."""
    rest, total = 1.0 - float(low.sum()), float(np.dot(low, values))
    for j in sorted(range(len(values)), key=lambda j: -values[j]):
        more = min(float(high[j] - low[j]), rest)
        if more > 0.0:
            total += more * values[j]
            rest -= more
    return total


def worst_values(
    given: Given, policy: FloatArray, costs: FloatArray, boxes: Boxes, *, balls: Sets | None = None
) -> FloatArray:
    """V(x) = sum_a pi(a|x) [c + max p . V] of all states, for costs (num_rows,); with balls the smaller maximum."""
    values = np.zeros(given.num_states)
    for layer in reversed(given.layers[:-1]):
        for x in layer:
            for row in range(x * given.num_actions, (x + 1) * given.num_actions):
                if policy[row] > 0.0:
                    first, last = given.rows[row]
                    nexts = [float(values[y]) for y in given.successor[first:last]]
                    worst = most(boxes.lower[first:last], boxes.upper[first:last], nexts)
                    if balls is not None and given.wide[row]:
                        worst = min(worst, most_in_ball(balls.ball_moves[row], nexts, balls.ball_radius(row)))
                    values[x] += policy[row] * (costs[row] + worst)
    return values


def best_values(given: Given, policy: FloatArray, costs: FloatArray, boxes: Boxes) -> FloatArray:
    """V(x) = sum_a pi(a|x) [c + min p . V]."""
    return -worst_values(given, policy, -costs, boxes)


def upper_occupancies(given: Given, policy: FloatArray, boxes: Boxes) -> FloatArray:
    """(num_rows,): u(x,a) = pi(a|x) max P(x is reached), one backward pass for every state."""
    u = np.zeros(given.num_rows)
    for k, layer in enumerate(given.layers[:-1]):
        for target in layer:
            reach = np.zeros(given.num_states)
            reach[target] = 1.0
            for earlier in reversed(given.layers[:k]):
                for x in earlier:
                    for row in range(x * given.num_actions, (x + 1) * given.num_actions):
                        if policy[row] > 0.0:
                            first, last = given.rows[row]
                            nexts = [float(reach[y]) for y in given.successor[first:last]]
                            reach[x] += policy[row] * most(boxes.lower[first:last], boxes.upper[first:last], nexts)
            own = slice(target * given.num_actions, (target + 1) * given.num_actions)
            u[own] = policy[own] * reach[0]
    return u


def occupancies(given: Given, policy: FloatArray, transitions: FloatArray) -> FloatArray:
    """(num_rows,): q^{P,pi}."""
    reach, q = np.zeros(given.num_states), np.zeros(given.num_rows)
    reach[0] = 1.0
    for row, (first, last) in enumerate(given.rows):
        q[row] = reach[row // given.num_actions] * policy[row]
        for j in range(first, last):
            reach[given.successor[j]] += q[row] * transitions[j]
    return q
