"""SV-OPS once more, slow and obvious: line by line, sharing nothing but `project`."""

from __future__ import annotations

from math import log, sqrt

import numpy as np

from hedgerow.model.view import View
from hedgerow.projection.problem import ProjectionProblem
from hedgerow.projection.solve import project


class NaiveSVOPS:
    """Paper radii times `scale`; full support."""

    def __init__(self, view: View, episodes: int, delta: float, scale: float) -> None:
        self.view, self.layout = view, view.layout
        self.T, self.delta, self.scale = episodes, delta, scale
        layout, m = self.layout, view.num_constraints
        self.N = np.zeros(layout.num_rows)
        self.M = np.zeros(layout.num_triples)
        self.S = np.zeros((m, layout.num_rows))
        pairs = layout.num_states * layout.num_actions
        self.eta = self.gamma = sqrt(layout.steps * log(layout.steps * pairs / delta) / (episodes * pairs))
        self.q = np.zeros(layout.num_triples)
        for k in range(layout.steps):
            self.q[layout.triples(k)] = 1.0 / (layout.triples(k).stop - layout.triples(k).start)
        self.policy = np.full(layout.num_rows, 1.0 / layout.num_actions)

    def boxes(self) -> tuple[np.ndarray, np.ndarray]:
        layout, lo, hi = self.layout, np.zeros(len(self.M)), np.ones(len(self.M))
        iota = log(self.T * layout.num_states * layout.num_actions / self.delta)
        for j, r in enumerate(layout.row_of_triple):
            if layout.row_start[r + 1] - layout.row_start[r] == 1:
                lo[j] = 1.0
            elif self.N[r] > 0:
                p_hat, n = self.M[j] / self.N[r], max(1, self.N[r] - 1)
                epsilon = self.scale * (2 * sqrt(p_hat * iota / n) + 14 * iota / (3 * n))
                lo[j], hi[j] = max(0.0, p_hat - epsilon), min(1.0, p_hat + epsilon)
        return lo, hi

    def optimistic_costs(self) -> np.ndarray:
        m = self.view.num_constraints
        pairs = self.layout.num_states * self.layout.num_actions
        visits = np.maximum(1, self.N)
        xi = np.minimum(1.0, self.scale * np.sqrt(4 * log(self.T * pairs * m / self.delta) / visits))
        xi[self.N == 0] = 1.0
        return self.S / visits - xi

    def reach(self, target: int, state: int) -> float:
        """The largest probability of coming from `state` to `target`: COMP-UOB by recursion over layers."""
        layout, (lo, hi) = self.layout, self.boxes()
        k = int(layout.layer_of_state[target])
        f = {x: float(x == target) for x in range(layout.states(k).start, layout.states(k).stop)}
        for h in range(k - 1, -1, -1):
            order = sorted(f, key=lambda x: -f[x])
            f = {x: self._backed_up(x, f, order, lo, hi) for x in range(layout.states(h).start, layout.states(h).stop)}
        return f[state]

    def _backed_up(self, x: int, f: dict[int, float], order: list[int], lo: np.ndarray, hi: np.ndarray) -> float:
        layout, value = self.layout, 0.0
        for r in range(x * layout.num_actions, (x + 1) * layout.num_actions):
            triple = {int(layout.successor[j]): j for j in range(layout.row_start[r], layout.row_start[r + 1])}
            left = 1.0 - sum(lo[j] for j in triple.values())
            for y in order:
                more = min(hi[triple[y]] - lo[triple[y]], left)
                left -= more
                value += self.policy[r] * (lo[triple[y]] + more) * f[y]
        return value

    def observe(self, rows: np.ndarray, losses: np.ndarray, costs: np.ndarray) -> None:
        layout = self.layout
        estimate = np.zeros(layout.num_rows)
        for k, r in enumerate(rows):
            u = self.policy[r] * self.reach(r // layout.num_actions, 0)
            estimate[r] = losses[k] / (u + self.gamma)
        for k, r in enumerate(rows):
            target = rows[k + 1] // layout.num_actions if k + 1 < len(rows) else layout.num_states - 1
            self.N[r] += 1
            self.M[layout.row_start[r] + target - layout.successor[layout.row_start[r]]] += 1
            self.S[:, r] += costs[k]
        lo, hi = self.boxes()
        log_base = self.base(estimate)
        result = project(ProjectionProblem(layout, log_base, lo, hi, self.optimistic_costs(), self.view.thresholds))
        assert result.solved
        self.q, self.policy = np.exp(result.log_occupancy), result.policy

    def base(self, estimate: np.ndarray) -> np.ndarray:
        """ln q~ (num_triples,)."""
        base: np.ndarray = np.log(self.q) - self.eta * estimate[self.layout.row_of_triple]
        return base
