"""Slow twins of the learners that plan by backward passes: plain numpy, one pair at a time, sharing no code with them.

A twin is told each episode and says which policy comes next.
"""

from __future__ import annotations

from math import e, log, sqrt
from typing import Any

import numpy as np

import hedgerow as hr


class SeenTwin:
    """Counts, and the radii of both kinds, as dictionaries of pairs and successors."""

    def __init__(self, view: hr.View, T: int, delta: float, sets: str) -> None:
        self.layout, self.T, self.delta, self.sets = view.layout, T, delta, sets
        layout, self.columns = view.layout, view.num_constraints + 1
        self.successors = {
            r: layout.successor[layout.row_start[r] : layout.row_start[r + 1]].tolist() for r in range(layout.num_rows)
        }
        self.visits = dict.fromkeys(self.successors, 0)
        self.moves = {(r, y): 0 for r, ys in self.successors.items() for y in ys}
        self.sums = {r: np.zeros(self.columns) for r in self.successors}
        pairs = max(layout.layer_sizes) * layout.num_actions * layout.steps
        uncertain = sum(len(ys) for ys in self.successors.values() if len(ys) > 1)
        if sets == "source":
            self.iota, self.iota_c = log(6 * pairs * T / delta), log(6 * pairs * T * self.columns / delta)
        else:
            self.iota = log(max(1, uncertain) * T / delta)
            self.iota_c = log(2 * layout.num_rows * self.columns * T / delta)

    def count(self, episode: hr.Episode) -> None:
        ends = [*(r // self.layout.num_actions for r in episode.rows[1:]), self.layout.num_states - 1]
        for k, row in enumerate(episode.rows.tolist()):
            self.visits[row] += 1
            self.moves[row, ends[k]] += 1
            self.sums[row] += [*episode.costs[k], episode.losses[k]]

    def p_hat(self, row: int, y: int) -> float:
        return self.moves[row, y] / self.visits[row] if self.visits[row] else 1.0 / len(self.successors[row])

    def mean(self, row: int, i: int) -> float:
        return float(self.sums[row][i]) / max(1, self.visits[row])

    def xi(self, row: int) -> float:
        n = self.visits[row]
        if n == 0:
            return 1.0
        return min(1.0, sqrt(2 * self.iota_c / n) if self.sets == "source" else sqrt(self.iota_c / (2 * n)))

    def epsilon(self, row: int, y: int) -> float:
        n, p = self.visits[row], self.p_hat(row, y)
        if len(self.successors[row]) == 1:
            return 0.0
        if n == 0 or (n == 1 and self.sets != "source"):
            return 1.0
        if self.sets == "source":
            return 2 * sqrt(p * (1 - p) * self.iota / n) + 14 * self.iota / (3 * n)
        return sqrt(2 * p * (1 - p) * self.iota / (n - 1)) + 7 * self.iota / (3 * (n - 1))

    def box(self, row: int) -> tuple[dict[int, float], dict[int, float]]:
        """lo and hi by successor, each drawn in by what the others leave."""
        ys = self.successors[row]
        if len(ys) == 1:
            return {ys[0]: 1.0}, {ys[0]: 1.0}
        if self.visits[row] == 0:
            return dict.fromkeys(ys, 0.0), dict.fromkeys(ys, 1.0)
        low = {y: max(0.0, self.p_hat(row, y) - self.epsilon(row, y)) for y in ys}
        high = {y: min(1.0, self.p_hat(row, y) + self.epsilon(row, y)) for y in ys}
        return (
            {y: max(low[y], 1.0 - sum(high[z] for z in ys if z != y)) for y in ys},
            {y: min(high[y], 1.0 - sum(low[z] for z in ys if z != y)) for y in ys},
        )

    def steps_left(self, row: int) -> int:
        layer = int(self.layout.layer_of_state[row // self.layout.num_actions])
        return int(self.layout.steps) - layer


class PrimalDualTwin:
    """OptPrimalDual and UOpt-RPGPD."""

    def __init__(self, view: hr.View, T: int, delta: float, rho: float, sets: str, regularised: bool, scale: float):
        self.seen, self.alpha = SeenTwin(view, T, delta, sets), view.thresholds
        self.regularised, self.scale = regularised, scale
        self.m, layout = view.num_constraints, view.layout
        L, A = layout.steps, layout.num_actions
        D = L / rho if self.m else 0.0
        self.eta = sqrt(2 * log(A) / (L**2 * (1 + self.m * D) ** 2 * T))
        self.t_lambda = L * sqrt(self.m * T) / D if self.m else 1.0
        self.policy = np.full((layout.num_states - 1, A), 1.0 / A)
        self.lam, self.t = np.zeros(self.m), 0
        self.phi_log = log(48 * max(layout.layer_sizes) ** 2 * A * L / delta)

    def phi(self, n: int) -> float:
        return sqrt((2 * log(log(max(2 * n, e))) + 2 * self.phi_log) / max(1, n))

    def bonus(self, row: int) -> float:
        seen, ys = self.seen, self.seen.successors[row]
        if self.regularised and seen.sets == "source":
            phi = self.phi(seen.visits[row])
            roots = sum(sqrt(seen.p_hat(row, y)) for y in ys)
            return phi + (roots * phi + 5 * phi**2 if len(ys) > 1 else 0.0)
        return seen.xi(row) + seen.steps_left(row) * sum(seen.epsilon(row, y) for y in ys)

    def learn(self, episode: hr.Episode) -> None:
        seen = self.seen
        seen.count(episode)
        states, A = self.policy.shape
        tau = (self.t + 3) ** -0.4 if self.regularised else 0.0
        eta = (self.t + 3) ** -0.53 if self.regularised else self.eta
        step = eta if self.regularised else 1.0 / self.t_lambda
        Q, V = np.zeros((states, A, self.m + 1)), np.zeros((states + 1, self.m + 1))
        for x in reversed(range(states)):
            for a in range(A):
                row = x * A + a
                for i in range(self.m + 1):
                    floor = -tau * log(A) * seen.steps_left(row) if i == self.m else 0.0
                    ahead = sum(seen.p_hat(row, y) * V[y, i] for y in seen.successors[row])
                    Q[x, a, i] = max(floor, seen.mean(row, i) - self.scale * self.bonus(row) + ahead)
            V[x] = self.policy[x] @ Q[x]
            V[x, self.m] += tau * (self.policy[x] @ np.log(self.policy[x]))
        weights = np.append(self.lam, 1.0)
        grown = self.policy ** (1 - eta * tau) * np.exp(-eta * (Q @ weights))
        self.policy = grown / grown.sum(axis=1, keepdims=True)
        self.lam = np.maximum(0.0, (1 - step * tau) * self.lam + step * (V[0, : self.m] - self.alpha))
        self.t += 1


class OPSETwin:
    """OPSE-DP with both kinds of constants."""

    def __init__(self, view: hr.View, T: int, delta: float, beta: float, sets: str, constants: str) -> None:
        self.seen, self.theory = SeenTwin(view, T, delta, sets), constants == "theory"
        self.L, self.A, self.alpha = view.layout.steps, view.layout.num_actions, float(view.thresholds[0])
        self.states, self.margin = view.layout.num_states - 1, self.alpha - beta
        self.tau = 1 / sqrt(T) if self.theory else 0.1
        L, D = self.L, self.margin
        self.most = 2 / D * ((1 + self.tau * log(self.A)) * L + L * L * (L + 1) / D) if self.theory else 300.0

    def row(self, row: int) -> dict[str, Any]:
        """Rewards, bonuses and bounds of one pair, and its estimated transitions."""
        seen, ys, ent = self.seen, self.seen.successors[row], 1 + self.tau * log(self.A)
        left = seen.steps_left(row)
        n, h = seen.visits[row], left - 1
        if not self.theory:
            known = len(ys) == 1
            s = 1 / sqrt(1 + n)
            p = {y: 1.0 if known else seen.moves[row, y] / (1 + n) for y in ys}
            r, u = 1 - seen.mean(row, 1), 1 - seen.mean(row, 0)
            return {"p": p, "r": (r, s, ent * left), "d": (s, s, left), "u": (u, -s, left)}
        low, high = seen.box(row)
        p = {y: seen.p_hat(row, y) for y in ys}
        w = min(1.0, sum(high[y] - p[y] for y in ys), sum(p[y] - low[y] for y in ys))
        r = 1 - max(0.0, seen.mean(row, 1) - seen.xi(row))
        u = 1 - min(1.0, seen.mean(row, 0) + seen.xi(row))
        d = 2 * self.L / self.margin * (seen.xi(row) + h * w)
        most_d = self.L / self.margin * h * (h + 1)
        return {"p": p, "r": (r, ent * h * w, ent * left), "d": (d, most_d * w, most_d), "u": (u, -h * w, left)}

    def passed(self, theta: float) -> tuple[float, Any]:
        V = {name: dict.fromkeys(range(self.states + 1), 0.0) for name in ("r", "d", "u")}
        policy = np.zeros((self.states, self.A))
        for x in reversed(range(self.states)):
            Q = {name: np.zeros(self.A) for name in V}
            for a in range(self.A):
                told = self.rows[x * self.A + a]
                for name in V:
                    gain, bonus, top = told[name]
                    ahead = bonus + sum(p * V[name][y] for y, p in told["p"].items())
                    Q[name][a] = gain + min(max(ahead, 0.0), top)
            logits = (Q["r"] + Q["d"] + theta * Q["u"]) / self.tau
            weights = np.exp(logits - logits.max())
            policy[x] = weights / weights.sum()
            entropy = -sum(p * log(p) for p in policy[x] if p > 0.0)
            V["r"][x] = policy[x] @ Q["r"] + self.tau * entropy
            V["d"][x], V["u"][x] = policy[x] @ Q["d"], policy[x] @ Q["u"]
        return V["u"][0], policy

    def plan(self) -> tuple[float, float, Any]:
        """(mixing weight, theta, policy)."""
        self.rows = [self.row(r) for r in range(self.states * self.A)]
        needed = self.L - self.alpha + 1e-12 * self.L
        utility, policy = self.passed(0.0)
        if utility >= needed:
            return 0.0, 0.0, policy
        if self.passed(self.most)[0] < needed:
            return 1.0, self.most, None
        low, high = 0.0, self.most
        for _ in range(20):
            middle = (low + high) / 2
            low, high = (low, middle) if self.passed(middle)[0] >= needed else (middle, high)
        return 0.0, high, self.passed(high)[1]


class TripleQTwin:
    """Triple-Q with both kinds of constants, in tables of states and actions."""

    def __init__(self, view: hr.View, T: int, constants: str) -> None:
        layout = view.layout
        self.L, self.A, self.m, self.T = layout.steps, layout.num_actions, view.num_constraints, T
        self.published, states, pairs = constants == "source", layout.num_states - 1, max(layout.layer_sizes) * self.A
        self.scale = 1.0 if self.published else 32.0
        self.Q = np.full((states, self.A), self.scale * self.L)
        self.C = np.full((self.m, states, self.A), float(self.L))
        self.N, self.Z, self.sums = np.zeros((states, self.A)), np.zeros(self.m), np.zeros(self.m)
        self.alpha, self.chi, self.frame, self.t = view.thresholds, T**0.2, int(T**0.6), 0
        self.iota = 128 * log(sqrt(2 * pairs * self.L) * T)
        self.eta = T**0.2 if self.published else 1e-4 * T**0.2 * sqrt(pairs * self.L**4)
        self.eps = 8 * sqrt(pairs * self.L**6 * self.iota**3) / T**0.2 if self.published else 0.5

    def bonus(self, n: float) -> float:
        if self.published:
            return 0.25 * sqrt(self.L**2 * self.iota * (self.chi + 1) / (self.chi + n))
        return 0.2 * sqrt(log(self.T) / n)

    def policy(self) -> Any:
        index = self.Q + sum((z / self.eta * c for z, c in zip(self.Z, self.C, strict=True)), np.zeros_like(self.Q))
        greedy = np.eye(self.A)[index.argmax(axis=1)]
        if self.published:
            return greedy
        epsilon = 1.0
        for s in range(self.t):
            epsilon *= 0.95 if s % 20 == 0 else 1.0
        noisy = 0.97 * greedy + 0.03 / self.A
        return epsilon / self.A + (1 - epsilon) * noisy

    def learn(self, episode: hr.Episode) -> None:
        path = [divmod(int(r), self.A) for r in episode.rows]
        Q_then, C_then = self.Q.copy(), self.C.copy()
        for k, (x, a) in enumerate(path):
            self.N[x, a] += 1
            lr, b = (self.chi + 1) / (self.chi + self.N[x, a]), self.bonus(self.N[x, a])
            ahead = Q_then[path[k + 1]] if k + 1 < len(path) else 0.0
            self.Q[x, a] = (1 - lr) * self.Q[x, a] + lr * (self.scale * (1 - episode.losses[k]) + ahead + b)
            for i in range(self.m):
                ahead = C_then[i][path[k + 1]] if k + 1 < len(path) else 0.0
                utility = 1 - episode.costs[k, i] + ahead + (b if self.published else 0.01 * b)
                self.C[i][x, a] = (1 - lr) * self.C[i][x, a] + lr * utility
        self.sums += self.C[:, path[0][0], path[0][1]]
        self.t += 1
        if self.t % self.frame == 0:
            self.end_frame()

    def end_frame(self) -> None:
        self.Z = np.maximum(0.0, self.Z + (self.L - self.alpha) + self.eps - self.sums / self.frame)
        self.sums[:], self.N[:] = 0.0, 0.0
        if self.published:
            self.Q += 2 * self.L**3 * sqrt(self.iota) / self.eta
            above = (self.Q >= self.L) | (self.C >= self.L).any(axis=0)
            self.Q[above], self.C[:, above] = self.L, self.L
        else:
            self.Q += 3.0
            self.Q[(self.Q > 34.0 * self.L) | (self.C > self.L).any(axis=0)] = 32.0 * self.L
