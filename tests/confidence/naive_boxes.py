"""Slow, obvious twins of optimisation over boxes of distributions, and random boxes to compare on."""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.random import Generator
from scipy.optimize import linprog

from hedgerow.model.layout import Layout

PRECISE = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def random_box(rng: Generator, n: int, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Bounds (n,) around a random distribution: trivial, wide, narrow, a point, or touching 0 and 1."""
    center = rng.exponential(size=n)
    center /= center.sum()
    radius = {
        "trivial": np.full(n, 2.0),
        "wide": rng.uniform(0.05, 0.6, n),
        "narrow": rng.uniform(0.0, 0.02, n),
        "point": np.zeros(n),
        "edges": rng.choice([0.0, 0.1, 2.0], size=n),
    }[kind]
    return np.clip(center - radius, 0.0, 1.0), np.clip(center + radius, 0.0, 1.0)


BOX_KINDS = ("trivial", "wide", "narrow", "point", "edges")


def boxes_of(rng: Generator, layout: Layout) -> tuple[np.ndarray, np.ndarray]:
    """Bounds (num_triples,) with a random kind of box in each row."""
    lower, upper = np.zeros(layout.num_triples), np.ones(layout.num_triples)
    for r in range(layout.num_rows):
        row = slice(layout.row_start[r], layout.row_start[r + 1])
        lower[row], upper[row] = random_box(rng, row.stop - row.start, str(rng.choice(BOX_KINDS)))
    return lower, upper


def vertices(lower: np.ndarray, upper: np.ndarray) -> list[np.ndarray]:
    """All vertices of { lower <= p <= upper, sum p = 1 }: at most one coordinate lies strictly between its bounds."""
    n, found = len(lower), []
    for free in range(n):
        others = [j for j in range(n) if j != free]
        for bounds in product(*((lower[j], upper[j]) for j in others)):
            rest = 1.0 - sum(bounds)
            if lower[free] - 1e-12 <= rest <= upper[free] + 1e-12:
                p = np.empty(n)
                p[others], p[free] = bounds, rest
                found.append(p)
    return found


def best_of_row(f: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> float:
    """max { p . f : lower <= p <= upper, sum p = 1 } as a linear program."""
    result = linprog(
        -f, A_eq=np.ones((1, len(f))), b_eq=[1.0], bounds=list(zip(lower, upper, strict=True)), options=PRECISE
    )
    assert result.status == 0, result.message
    return -float(result.fun)


def least_cost_by_lp(layout: Layout, lower: np.ndarray, upper: np.ndarray, cost: np.ndarray) -> float:
    """min { cost^T q : q in Delta(P) } over the triples, with the conditions of Delta(P) written out one by one."""
    n = layout.num_triples
    flow = np.zeros((layout.num_decision_states, n))
    box = np.zeros((2 * n, n))
    objective = np.zeros(n)
    for r in range(layout.num_rows):
        row = range(layout.row_start[r], layout.row_start[r + 1])
        for j in row:
            objective[j] = cost[r]
            flow[r // layout.num_actions, j] += 1.0
            if layout.successor[j] < layout.num_decision_states:
                flow[layout.successor[j], j] -= 1.0
            box[j, row], box[n + j, row] = -upper[j], lower[j]
            box[j, j] += 1.0
            box[n + j, j] -= 1.0
    source = np.zeros(layout.num_decision_states)
    source[0] = 1.0
    result = linprog(objective, A_ub=box, b_ub=np.zeros(2 * n), A_eq=flow, b_eq=source, options=PRECISE)
    assert result.status == 0, result.message
    return float(result.fun)


def least_cost_by_enumeration(layout: Layout, lower: np.ndarray, upper: np.ndarray, cost: np.ndarray) -> float:
    """The same over all deterministic policies and all vertices of the boxes; for a handful of states only."""
    rows = [slice(layout.row_start[r], layout.row_start[r + 1]) for r in range(layout.num_rows)]
    corners = [vertices(lower[row], upper[row]) for row in rows]
    actions = np.arange(layout.num_rows).reshape(-1, layout.num_actions)
    # A deterministic policy uses one row per state, so a choice is an action and a vertex of the box of that row.
    choices = [[(r, p) for r in of_state for p in corners[r]] for of_state in actions]
    best = np.inf
    for combination in product(*choices):
        reach = [1.0] + [0.0] * (layout.num_states - 1)
        total = 0.0
        for x, (r, p) in enumerate(combination):
            total += reach[x] * cost[r]
            for probability, y in zip(p, layout.successor[rows[r]], strict=True):
                reach[y] += reach[x] * probability
        best = min(best, total)
    return best
