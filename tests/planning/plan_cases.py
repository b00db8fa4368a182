"""Random plans in boxes, and slow twins of what a plan claims: bounds by plain recursion, membership by HiGHS."""

from __future__ import annotations

from typing import NamedTuple

import naive_boxes
import numpy as np
import scipy.sparse as sp
from naive_model import random_layout, random_policy, random_transitions
from numpy.random import Generator
from scipy.optimize import linprog

from hedgerow.model.layout import Layout

CONSTRAINTS = (0, 1, 2, 3, 4, 25)
STYLES = ("plain", "ties", "large", "sparse")


class PlanCase(NamedTuple):
    """The arguments of `constrained_plan`."""

    layout: Layout
    lower: np.ndarray
    upper: np.ndarray
    loss: np.ndarray
    costs: np.ndarray
    thresholds: np.ndarray

    @property
    def size(self) -> float:
        """How large costs get: the unit of residuals."""
        return 1.0 + self.layout.steps * float(np.abs(self.costs).max(initial=0.0))


def random_plan(seed: int, m: int | None = None) -> PlanCase:
    """All kinds of boxes, losses of any sign, tied and duplicated costs, thresholds near those of some policy."""
    rng = np.random.default_rng(seed)
    m = CONSTRAINTS[seed % len(CONSTRAINTS)] if m is None else m
    layout = random_layout(rng, density=0.5) if seed % 5 else random_full_layout(rng)
    lower, upper = naive_boxes.boxes_of(rng, layout)
    if rng.random() < 0.2:
        lower = upper = random_transitions(rng, layout)  # known: all boxes are points
    rows, style = layout.num_rows, STYLES[rng.integers(4)]
    loss, costs = rng.random(rows), rng.random((rows, m))
    if style == "ties":
        loss, costs = np.round(loss), np.round(costs)
    elif style == "large":  # as bonuses are
        loss, costs = -1000.0 * loss, costs * rng.choice([1.0, 10.0, 100.0], m) + rng.choice([0.0, -1.0, 5.0], m)
    elif style == "sparse":
        loss, costs = rng.normal(size=rows), costs * (rng.random((rows, 1)) < 0.5)
    if m > 2 and rng.random() < 0.5:
        costs[:, 1] = costs[:, 0]
        costs[:, 2] = 0.5 * (costs[:, 0] + costs[:, m - 1])
    thresholds = costs.T @ masses_of_some_policy(rng, layout, lower, upper)
    width = np.abs(costs).max(axis=0, initial=0.0)
    kind = rng.random()
    if kind < 0.5:
        thresholds += rng.uniform(-2.0, 0.05) * width
    elif kind < 0.8:
        thresholds += rng.uniform(-0.1, 0.2, m) * width
    elif kind < 0.9:
        thresholds = np.round(thresholds)
    return PlanCase(layout, lower, upper, loss, costs, thresholds)


def random_full_layout(rng: Generator) -> Layout:
    sizes = rng.integers(2, 9, rng.integers(1, 6)).tolist()
    return Layout((1, *sizes, 1), int(rng.integers(1, 4)))


def masses_of_some_policy(rng: Generator, layout: Layout, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """(num_rows,): of a random policy under transitions somewhere in the boxes."""
    policy, w, reach = random_policy(rng, layout), np.zeros(layout.num_rows), np.zeros(layout.num_states)
    reach[0] = 1.0
    for r in range(layout.num_rows):
        row = slice(layout.row_start[r], layout.row_start[r + 1])
        lo, hi = lower[row], upper[row]
        room = hi.sum() - lo.sum()
        p = lo + (hi - lo) * (1.0 - lo.sum()) / room if room > 0.0 else lo
        w[r] = reach[r // layout.num_actions] * policy[r]
        np.add.at(reach, layout.successor[row], w[r] * p)
    return w


def least_weight(case: PlanCase, weights: np.ndarray) -> float:
    """min { weights^T q : q in the boxes }: recursion over states, in plain Python."""
    layout, values = case.layout, np.zeros(case.layout.num_states)
    for x in reversed(range(layout.num_decision_states)):
        found = []
        for r in range(x * layout.num_actions, (x + 1) * layout.num_actions):
            total, row = weights[r], range(layout.row_start[r], layout.row_start[r + 1])
            rest = 1.0 - sum(case.lower[j] for j in row)
            for j in sorted(row, key=lambda j: values[layout.successor[j]]):
                more = min(rest, case.upper[j] - case.lower[j])
                rest -= more
                total += (case.lower[j] + more) * values[layout.successor[j]]
            found.append(total)
        values[x] = min(found)
    return float(values[0])


def lies_in_the_boxes(case: PlanCase, w: np.ndarray, tolerance: float = 1e-9) -> bool:
    """Whether some transitions in the boxes lead to the row masses `w`: HiGHS looks for the masses of the triples."""
    layout, N = case.layout, case.layout.num_triples
    outflow = w.reshape(-1, layout.num_actions).sum(axis=1)
    arrive = sp.csr_array((np.ones(N), (layout.successor, np.arange(N))), shape=(layout.num_states, N))
    leave = sp.csr_array((np.ones(N), (layout.row_of_triple, np.arange(N))), shape=(layout.num_rows, N))
    inner = arrive[1 : layout.num_decision_states]
    mass = w[layout.row_of_triple]
    bounds = np.column_stack([case.lower * mass - tolerance, case.upper * mass + tolerance])
    unknown = sp.vstack([inner, leave])
    wanted = np.concatenate([outflow[1:], w])
    # The two sets of equations overlap: allow for rounding by writing each as two inequalities.
    A, b = sp.vstack([unknown, -unknown]), np.concatenate([wanted, -wanted]) + tolerance
    return abs(outflow[0] - 1.0) <= tolerance and linprog(np.zeros(N), A_ub=A, b_ub=b, bounds=bounds).status == 0
