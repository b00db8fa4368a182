"""Slow, obvious twins of the aggregate certificate, from the formulas of docs/aggregate.md."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import log

import naive_estimates as naive
import numpy as np

from hedgerow.model.layout import Layout


def radius(log_term: float, squares: float, scale: float) -> float:
    rates = 2.0 ** -np.arange(1, 15)
    return float(scale * np.min((log_term + (-np.log(1 - rates) - rates) * squares) / rates))


def share(generation: int) -> float:
    return 0.9 / 40 if generation < 40 else 0.1 / ((generation - 39) * (generation - 38))


def occupancy(layout: Layout, p: np.ndarray, pi: np.ndarray) -> np.ndarray:
    """q(x,a), by the layers."""
    reach, q = np.zeros(layout.num_states), np.zeros(layout.num_rows)
    reach[0] = 1.0
    for r, row in enumerate(naive.rows_of(layout)):
        q[r] = reach[r // layout.num_actions] * pi[r]
        for j in range(row.start, row.stop):
            reach[layout.successor[j]] += q[r] * p[j]
    return q


def nominal(layout: Layout, p: np.ndarray, pi: np.ndarray, g: np.ndarray) -> np.ndarray:
    """V of every state."""
    V = np.zeros(layout.num_states)
    for x in reversed(range(layout.num_decision_states)):
        for r in range(x * layout.num_actions, (x + 1) * layout.num_actions):
            V[x] += pi[r] * (g[r] + mean(layout, r, p, V))
    return V


def robust(layout: Layout, lower: np.ndarray, upper: np.ndarray, pi: np.ndarray, g: np.ndarray) -> np.ndarray:
    """The largest V of every state that the boxes allow."""
    V = np.zeros(layout.num_states)
    for x in reversed(range(layout.num_decision_states)):
        for r in range(x * layout.num_actions, (x + 1) * layout.num_actions):
            row = slice(layout.row_start[r], layout.row_start[r + 1])
            after = [float(V[y]) for y in layout.successor[row]]
            V[x] += pi[r] * (g[r] + naive.greedy(after, lower[row].tolist(), upper[row].tolist()))
    return V


def mean(layout: Layout, r: int, p: np.ndarray, V: np.ndarray) -> float:
    row = slice(layout.row_start[r], layout.row_start[r + 1])
    return float(p[row] @ V[layout.successor[row]])


def span(layout: Layout, V: np.ndarray) -> float:
    return max(float(np.ptp(V[layout.states(k)])) for k in range(layout.steps))


@dataclass
class Generation:
    """One constraint, one generation; every episode is kept and added up on demand."""

    layout: Layout
    V: np.ndarray
    scale: float
    known_rows: np.ndarray
    known_costs: np.ndarray
    episodes: list = field(default_factory=list)
    """(rows, next states, costs, p_hat, g_hat)"""

    def add(self, rows: list, triples: list, costs: np.ndarray, p_hat: np.ndarray, g_hat: np.ndarray) -> None:
        after = [int(self.layout.successor[j]) for j in triples]
        self.episodes.append((list(rows), after, np.array(costs), p_hat.copy(), g_hat.copy()))

    def visits(self) -> np.ndarray:
        N = np.zeros(self.layout.num_rows)
        for rows, *_ in self.episodes:
            N[rows] += 1
        return N

    def sums(self) -> tuple[float, float]:
        """SX and VV."""
        SX = VV = 0.0
        for rows, after, costs, p_hat, g_hat in self.episodes:
            miss = 0.0
            for r, y, c in zip(rows, after, costs, strict=True):
                expected = mean(self.layout, r, p_hat, self.V)
                value = expected if self.known_rows[r] else float(self.V[y])
                cost = g_hat[r] if self.known_costs[r] else c
                SX += cost + value
                miss += cost - g_hat[r]
                VV += (value - expected) ** 2 / self.scale**2
            VV += miss**2 / self.scale**2
        return SX, VV


def bound(
    layout: Layout,
    pi: np.ndarray,
    box: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    centres: tuple[np.ndarray, np.ndarray],
    V: np.ndarray,
    n: float,
    N: np.ndarray,
    estimate: float,
    *,
    second_order: bool = True,
) -> float:
    """U_agg of one generation; box = lo, hi, LCB, UCB, centres = p_hat, g_hat, estimate = SX + rad."""
    lo, hi, lcb, ucb = box
    p_hat, g_hat = centres
    q_hat, nu = occupancy(layout, p_hat, pi), N / n
    high, low = robust(layout, lo, hi, pi, ucb), -robust(layout, lo, hi, pi, -lcb)
    if not second_order:
        high = low = V
    total = float(q_hat @ g_hat) + estimate / n
    for r, row in enumerate(naive.rows_of(layout)):
        total -= nu[r] * (g_hat[r] + mean(layout, r, p_hat, V))
        more, less = max(q_hat[r] - nu[r], 0.0), max(nu[r] - q_hat[r], 0.0)
        total += more * (ucb[r] - g_hat[r]) + less * (g_hat[r] - lcb[r])
        after = layout.successor[row]
        f_lo, f_hi = q_hat[r] * low[after] - nu[r] * V[after], q_hat[r] * high[after] - nu[r] * V[after]
        f_0 = p_hat[row] @ (f_lo + f_hi) / 2
        if row.stop - row.start > 1:
            up = np.maximum(hi[row] - p_hat[row], 0) * np.maximum(f_hi - f_0, 0)
            down = np.maximum(p_hat[row] - lo[row], 0) * np.maximum(f_0 - f_lo, 0)
            total += float(np.maximum(up, down).sum())
    return total


def log_term(log_inverse_delta: float, num_constraints: int, generation: int) -> float:
    return log_inverse_delta + log(14 * num_constraints / share(generation))
