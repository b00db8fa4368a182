"""Slow, obvious twins of counts, boxes and worst-case bounds, and random worlds to compare on."""

from __future__ import annotations

import numpy as np
from naive_model import sparse_layout
from numpy.random import Generator
from scipy.optimize import linprog

from hedgerow.model.layout import Layout

PRECISE = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def some_layout(rng: Generator, *, full: bool, largest: int = 5) -> Layout:
    """One to five layers of decision states; in a sparse support every row has a successor, every state is one."""
    sizes = (1, *rng.integers(1, largest + 1, size=rng.integers(0, 5)).tolist(), 1)
    actions = int(rng.integers(1, 4))
    if full:
        return Layout(sizes, actions)
    return sparse_layout(rng, sizes, actions, 0.4)


def rows_of(layout: Layout) -> list[slice]:
    return [slice(layout.row_start[r], layout.row_start[r + 1]) for r in range(layout.num_rows)]


def some_transitions(rng: Generator, layout: Layout) -> np.ndarray:
    p = rng.exponential(size=layout.num_triples)
    for row in rows_of(layout):
        p[row] /= p[row].sum()
    return p


def some_policy(rng: Generator, layout: Layout, *, zeros: bool = False) -> np.ndarray:
    """(num_rows,); with `zeros` some actions, but not all of a state, are never played."""
    pi = rng.exponential(size=(layout.num_decision_states, layout.num_actions))
    if zeros:
        pi *= rng.random(pi.shape) < 0.5
        pi[pi.sum(axis=1) == 0, 0] = 1.0
    return (pi / pi.sum(axis=1, keepdims=True)).ravel()


def some_boxes(rng: Generator, layout: Layout, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Boxes around p (num_triples,), row by row trivial, wide, narrow, a point, or touching the edges."""
    lower, upper = p.copy(), p.copy()
    for row in rows_of(layout):
        n = row.stop - row.start
        kinds = (np.full(n, 2.0), 0.6 * rng.random(n), 0.02 * rng.random(n), np.zeros(n), rng.choice([0, 0.1, 2], n))
        radius = kinds[rng.integers(len(kinds))]
        lower[row], upper[row] = np.clip(p[row] - radius, 0.0, 1.0), np.clip(p[row] + radius, 0.0, 1.0)
    return lower, upper


def greedy(f: list[float], lower: list[float], upper: list[float]) -> float:
    """max p . f over one row: fill the best successor first (the inner step of COMP-UOB)."""
    p, rest = list(lower), 1.0 - sum(lower)
    for j in sorted(range(len(f)), key=lambda j: -f[j]):
        more = min(upper[j] - lower[j], rest)
        p[j] += more
        rest -= more
    return sum(p_j * f_j for p_j, f_j in zip(p, f, strict=True))


def backward(
    layout: Layout, lower: np.ndarray, upper: np.ndarray, pi: np.ndarray, cost: np.ndarray, end: dict
) -> float:
    """f(x_0) of f(x) = sum_a pi(a|x) [cost(x,a) + max p . f]; states in `end` have a value of their own."""
    f = dict(end)
    for x in reversed(range(layout.num_decision_states)):
        if x in f:
            continue
        f[x] = 0.0
        for a in range(layout.num_actions):
            r = x * layout.num_actions + a
            row = slice(layout.row_start[r], layout.row_start[r + 1])
            after = [f[int(y)] for y in layout.successor[row]]
            f[x] += pi[r] * (cost[r] + greedy(after, lower[row].tolist(), upper[row].tolist()))
    return f[0]


def reach(layout: Layout, lower: np.ndarray, upper: np.ndarray, pi: np.ndarray, target: int) -> float:
    """COMP-UOB for one state: 1 there, 0 in the other states of its layer and later."""
    k = layout.layer_of_state[target]
    end = {x: float(x == target) for x in range(int(layout.state_start[k]), layout.num_states)}
    return backward(layout, lower, upper, pi, np.zeros(layout.num_rows), end)


def joint_cost(layout: Layout, lower: np.ndarray, upper: np.ndarray, pi: np.ndarray, cost: np.ndarray) -> float:
    return backward(layout, lower, upper, pi, cost, {layout.num_states - 1: 0.0})


def largest_by_lp(layout: Layout, lower: np.ndarray, upper: np.ndarray, pi: np.ndarray, cost: np.ndarray) -> float:
    """max { sum cost(x,a) q(x,a) : P^q in boxes, pi^q = pi } over the triples.

    The policy is fixed by q(x,a) = pi(a|x) q(x), where q(x) is the inflow, 1 for x_0: linear.
    """
    n, equal, right, box, objective = layout.num_triples, [], [], [], np.zeros(layout.num_triples)
    for r, row in enumerate(rows_of(layout)):
        x = r // layout.num_actions
        of_row = np.zeros(n)
        of_row[row] = 1.0
        objective += cost[r] * of_row
        equal.append(of_row - pi[r] * (layout.successor == x))
        right.append(pi[r] if x == 0 else 0.0)
        for j in range(row.start, row.stop):
            here = np.arange(n) == j
            box += [here - upper[j] * of_row, lower[j] * of_row - here]
    result = linprog(-objective, A_ub=box, b_ub=np.zeros(len(box)), A_eq=equal, b_eq=right, options=PRECISE)
    assert result.status == 0, result.message
    return -float(result.fun)


def reach_by_lp(layout: Layout, lower: np.ndarray, upper: np.ndarray, pi: np.ndarray, target: int) -> float:
    """The largest mass that passes through `target`: cost 1 in each of its rows."""
    cost = (np.arange(layout.num_rows) // layout.num_actions == target).astype(float)
    return largest_by_lp(layout, lower, upper, pi, cost)


def some_episode(rng: Generator, layout: Layout, p: np.ndarray, pi: np.ndarray) -> tuple[list[int], list[int]]:
    """The rows and triples of one episode."""
    x, rows, triples = 0, [], []
    while x < layout.num_decision_states:
        r = x * layout.num_actions + int(rng.choice(layout.num_actions, p=pi.reshape(-1, layout.num_actions)[x]))
        row = slice(layout.row_start[r], layout.row_start[r + 1])
        j = int(rng.choice(np.arange(row.start, row.stop), p=p[row]))
        rows.append(r)
        triples.append(j)
        x = int(layout.successor[j])
    return rows, triples


def caps(layout: Layout, lower: np.ndarray, upper: np.ndarray, pi: np.ndarray) -> np.ndarray:
    """How much mass each state can hold at most, layer by layer, by a linear program per state."""
    result = np.ones(layout.num_states)
    for k in range(layout.steps):
        here, after = layout.states(k), layout.states(k + 1)
        for y in range(after.start, after.stop):
            most = [sum(pi[r] * _most(layout, lower, upper, r, y) for r in _rows_of(layout, x)) for x in _range(here)]
            caps_here = [(0.0, float(cap)) for cap in result[here]]
            program = linprog([-c for c in most], A_eq=[[1.0] * len(most)], b_eq=[1.0], bounds=caps_here)
            assert program.status == 0, program.message
            result[y] = -program.fun
    return result


def _range(states: slice) -> range:
    return range(states.start, states.stop)


def _rows_of(layout: Layout, x: int) -> range:
    return range(x * layout.num_actions, (x + 1) * layout.num_actions)


def _most(layout: Layout, lower: np.ndarray, upper: np.ndarray, r: int, y: int) -> float:
    """max p(y) in the box of a row."""
    row = slice(int(layout.row_start[r]), int(layout.row_start[r + 1]))
    f = [float(state == y) for state in layout.successor[row]]
    return greedy(f, lower[row].tolist(), upper[row].tolist())
