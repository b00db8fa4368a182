"""The aggregate certificate, counted a second time (docs/aggregate.md).

When a generation starts, which V it freezes and which centres are used is the learner's choice, and Theorems A and B
allow any, as long as they are known before the episode. The twin takes them from the learner *before* the episode and
counts n, N, SX and VV itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.promises.twin.formulas import certificate_log, certificate_radius
from hedgerow.promises.twin.given import Given
from hedgerow.promises.twin.robust import best_values, occupancies, worst_values
from hedgerow.promises.twin.sets import Boxes


@dataclass(frozen=True, eq=False)
class Centres:
    """What the learner expects before an episode."""

    p_hat: FloatArray
    """(num_triples,)"""
    g_hat: FloatArray
    """(num_rows, m)"""


@dataclass(eq=False)
class Generation:
    """One generation: its choice, and what was counted since."""

    number: int
    values: FloatArray
    """V (m, num_states)"""
    scale: FloatArray
    """R (m,)"""
    visits: FloatArray
    """N (num_rows,)"""
    sums: FloatArray = field(init=False)
    """SX (m,)"""
    squares: FloatArray = field(init=False)
    """VV (m,)"""
    episodes: int = 0
    """n"""

    def __post_init__(self) -> None:
        self.sums, self.squares = np.zeros(len(self.scale)), np.zeros(len(self.scale))

    def least_scale(self, given: Given) -> FloatArray:
        """(m,): R must be at least the ceiling and the largest difference of V within a layer."""
        spans = [np.ptp(self.values[:, layer.start : layer.stop], axis=1) for layer in given.layers]
        least: FloatArray = np.maximum(given.ceilings, np.max(spans, axis=0))
        return least

    def count(
        self, given: Given, rows: Sequence[int], triples: Sequence[int], costs: FloatArray, centres: Centres
    ) -> None:
        """Add an own episode: D once for all its costs, d for every step."""
        self.episodes += 1
        for row in rows:
            self.visits[row] += 1
        for i in given.binding:
            miss, squares = 0.0, 0.0
            for k, (row, triple) in enumerate(zip(rows, triples, strict=True)):
                first, last = given.rows[row]
                nexts = self.values[i][given.successor[first:last]]
                mean = float(centres.p_hat[first:last] @ nexts)
                value = float(nexts[triple - first]) if given.uncertain[row] else mean
                centre = float(centres.g_hat[row, i])
                cost = float(costs[k, i]) if np.isnan(given.known_costs[row, i]) else centre
                self.sums[i] += cost + value
                miss += cost - centre
                squares += (value - mean) ** 2
            self.squares[i] += (miss**2 + squares) / self.scale[i] ** 2


@dataclass(frozen=True, eq=False)
class Present:
    """What all generations need to know of the present policy and one constraint."""

    given: Given
    boxes: Boxes
    centres: Centres
    q_hat: FloatArray
    high: FloatArray
    low: FloatArray
    constraint: int

    @classmethod
    def of(cls, given: Given, policy: FloatArray, boxes: Boxes, centres: Centres, i: int) -> Present:
        high = worst_values(given, policy, boxes.cost_upper[:, i], boxes)
        low = best_values(given, policy, boxes.cost_lower[:, i], boxes)
        return cls(given, boxes, centres, occupancies(given, policy, centres.p_hat), high, low, i)

    def bound(self, one: Generation) -> float:
        """U_agg of Theorem B for a generation with n >= 1."""
        given, i, n = self.given, self.constraint, one.episodes
        V, g_hat, p_hat = one.values[i], self.centres.g_hat[:, i], self.centres.p_hat
        log_term = certificate_log(given.certificate_log, len(given.binding), one.number)
        total = float(one.sums[i]) + certificate_radius(log_term, float(one.squares[i]), float(one.scale[i]))
        bound = float(self.q_hat @ g_hat)
        for row, (first, last) in enumerate(given.rows):
            q, nu, nexts = self.q_hat[row], one.visits[row] / n, given.successor[first:last]
            p = p_hat[first:last]
            total -= one.visits[row] * (g_hat[row] + p @ V[nexts])
            bound += max(q - nu, 0.0) * (self.boxes.cost_upper[row, i] - g_hat[row])
            bound += max(nu - q, 0.0) * (g_hat[row] - self.boxes.cost_lower[row, i])
            f_low, f_high = q * self.low[nexts] - nu * V[nexts], q * self.high[nexts] - nu * V[nexts]
            f_0 = 0.5 * float(p @ (f_low + f_high))
            up = np.maximum(self.boxes.upper[first:last] - p, 0.0) * np.maximum(f_high - f_0, 0.0)
            down = np.maximum(p - self.boxes.lower[first:last], 0.0) * np.maximum(f_0 - f_low, 0.0)
            bound += float(np.maximum(up, down).sum())
        return bound + total / n
