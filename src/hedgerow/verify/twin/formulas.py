"""What a learner was told before its first episode: the shape of the world, what is known of it, and how sure to be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import exp, inf, lgamma, log, pi, sqrt
from typing import NamedTuple

import numpy as np

from hedgerow.checks import BoolArray, FloatArray, IntArray
from hedgerow.model.view import View


class Switches(NamedTuple):
    """The switches that decide which formulas apply; the twin knows those of the presets."""

    radii: str
    """paper, tight or kt"""
    clip_costs: bool
    joint_cost: bool
    ties: bool
    aggregate: bool
    """With a certificate; only for learners that mix"""
    ball_from: int
    """Balls from so many successors on, 0 for none; only for learners that mix"""


class TwinShares(NamedTuple):
    """How 5 delta is split: three parts for costs and two for transitions, all for costs where no transition is
    uncertain; the certificate takes half of the costs' part, balls take half of the transitions' part.
    """

    costs: float
    transitions: float
    certificate: float
    balls: float


@dataclass(frozen=True, eq=False)
class Given:
    """Shape, knowledge, delta and the number of episodes."""

    view: View
    switches: Switches
    delta: float
    episodes: int | None

    @property
    def steps(self) -> int:
        return self.view.layout.steps

    @property
    def num_actions(self) -> int:
        return self.view.layout.num_actions

    @property
    def num_rows(self) -> int:
        return len(self.rows)

    @property
    def num_constraints(self) -> int:
        return len(self.view.thresholds)

    @cached_property
    def rows(self) -> list[tuple[int, int]]:
        """The triples of each row: first and last + 1."""
        starts = self.view.layout.row_start.tolist()
        return list(pairwise(starts))

    @cached_property
    def successor(self) -> list[int]:
        """The next state of each triple."""
        found: list[int] = self.view.layout.successor.tolist()
        return found

    @cached_property
    def layers(self) -> list[range]:
        """The states of each layer, the terminal one included."""
        starts = self.view.layout.state_start.tolist()
        return [range(a, b) for a, b in pairwise(starts)]

    @property
    def num_states(self) -> int:
        return self.layers[-1].stop

    @cached_property
    def moves_at(self) -> IntArray:
        """(num_rows,): the first row with the same transitions."""
        same = self.view.knowledge.same_transitions
        return same if self.switches.ties and same is not None else np.arange(self.num_rows)

    @cached_property
    def costs_at(self) -> IntArray:
        """(num_rows,): the first row with the same costs."""
        same = self.view.knowledge.same_costs
        return same if self.switches.ties and same is not None else np.arange(self.num_rows)

    @property
    def tied(self) -> bool:
        own = np.arange(self.num_rows)
        return bool((self.moves_at != own).any() or (self.costs_at != own).any())

    @property
    def every_visit(self) -> bool:
        """Whether all visits of one episode to a cost law count."""
        return bool(self.view.knowledge.independent_costs)

    @cached_property
    def known_costs(self) -> FloatArray:
        """(num_rows, m): mean costs that are known, else NaN."""
        costs = self.view.knowledge.costs
        return np.full((self.num_rows, self.num_constraints), np.nan) if costs is None else costs.T

    @cached_property
    def known_moves(self) -> FloatArray:
        """(num_triples,): likewise the transitions; those of rows with one successor are known."""
        moves = self.view.knowledge.transitions
        found = np.full(len(self.successor), np.nan) if moves is None else moves.copy()
        for first, last in self.rows:
            if last - first == 1:
                found[first] = 1.0
        return found

    @cached_property
    def uncertain(self) -> BoolArray:
        """(num_rows,): whether the transitions have to be estimated."""
        return np.array([np.isnan(self.known_moves[first]) for first, _ in self.rows])

    @cached_property
    def wide(self) -> BoolArray:
        """(num_rows,): whether the row has a ball beside its box."""
        least = self.switches.ball_from
        sizes = np.array([last - first for first, last in self.rows])
        return self.uncertain & (sizes >= max(2, least)) & (least > 0)

    @cached_property
    def ceilings(self) -> FloatArray:
        """(m,): what an episode costs at most."""
        most = self.view.knowledge.most_costs
        return np.full(self.num_constraints, float(self.steps)) if most is None else np.minimum(most, self.steps)

    @cached_property
    def binding(self) -> list[int]:
        """The constraints that can be violated at all."""
        return [i for i in range(self.num_constraints) if self.view.thresholds[i] < self.ceilings[i]]

    # What has to be estimated, and how surely ------------------------------------------------------------------------

    @property
    def num_costs(self) -> int:
        """Mean costs to be estimated, one per law and constraint."""
        first = self.costs_at == np.arange(self.num_rows)
        return int(np.isnan(self.known_costs[first]).sum())

    @cached_property
    def counted(self) -> list[int]:
        """The rows that count uncertain transitions, one per law."""
        return [r for r in range(self.num_rows) if self.uncertain[r] and self.moves_at[r] == r]

    @property
    def num_triples(self) -> int:
        """Probabilities to be estimated."""
        return sum(self.rows[r][1] - self.rows[r][0] for r in self.counted)

    @cached_property
    def shares(self) -> TwinShares:
        costs = 3.0 if self.num_triples else 5.0
        balls = any(self.wide[r] for r in self.counted)
        return TwinShares(
            costs=costs / 2.0 if self.switches.aggregate else costs,
            transitions=1.0 if balls else 2.0,
            certificate=costs / 2.0,
            balls=1.0,
        )

    @property
    def horizon(self) -> float:
        """T of the union bounds; a law may be visited L times in an episode."""
        return float(self.episodes or 1) * (self.steps if self.tied else 1)

    @cached_property
    def cost_log(self) -> float:
        """The logarithm behind the bounds of one mean cost."""
        m, kind = max(1, self.num_constraints), self.switches.radii
        if kind == "paper":
            return log(self.horizon * self.num_states * self.num_actions * m / self.delta)
        if kind == "tight":
            return log(2.0 * max(1, self.num_costs) * self.horizon / self.delta)
        return log(max(1, self.num_costs) / (self.shares.costs * self.delta))

    @cached_property
    def transition_log(self) -> float:
        """The logarithm behind the bounds of one transition probability."""
        kind = self.switches.radii
        if kind == "paper":
            return log(self.horizon * self.num_states * self.num_actions / self.delta)
        if kind == "tight":
            return log(max(1, self.num_triples) * self.horizon / self.delta)  # 4 n T / (4 delta)
        return log(max(1, self.num_triples) / (self.shares.transitions * self.delta))

    @cached_property
    def ball_log(self) -> float:
        return log(max(1, sum(bool(self.wide[r]) for r in self.counted)) / (self.shares.balls * self.delta))

    @cached_property
    def certificate_log(self) -> float:
        """ln(1 / delta_A)."""
        return -log(self.shares.certificate * self.delta)


# --------------------------------------------------------------------------------------------------------------------
# The formulas of confidence sets, one mean or one row at a time.
#
# >>> low, high = kt_interval(1000, 250.0, 7.649693)
# >>> print(f"{low:.6f} {high:.6f}")
# 0.188881 0.318618
# >>> print(f"{dirichlet_overhead([37, 60, 7], 0.5):.6f}")
# 4.656552
# >>> print(f"{most_in_ball([37, 60, 7], [1.0, 0.4, 0.1], 0.095720):.6f}")
# 0.732114
# >>> print(f"{certificate_radius(10.0, 10.0, 3.0):.6f}")
# 71.588831


HALVINGS = 54
NEXT_TO_NOTHING = 1e-300
J = 14
"""The rates 1/2, 1/4, ..., 2^-J of the certificate's radius"""


def bisect(rises: Callable[[float], bool], low: float, high: float) -> float:
    """The place between `low`, where `rises` is false, and `high` at which it becomes true."""
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        if rises(middle):
            high = middle
        else:
            low = middle
    return 0.5 * (low + high)


def divergence(p: float, g: float) -> float:
    """kl(p, g) of two Bernoulli laws."""
    first = 0.0 if p <= 0.0 else inf if g <= 0.0 else p * log(p / g)
    second = 0.0 if p >= 1.0 else inf if g >= 1.0 else (1.0 - p) * log((1.0 - p) / (1.0 - g))
    return first + second


def kt_interval(n: int, total: float, log_inverse_delta: float) -> tuple[float, float]:
    """All g with n kl(total / n, g) <= ln(1/delta) + o(n, total), o the overhead of the Beta(1/2, 1/2) mixture."""
    if n == 0:
        return 0.0, 1.0
    left = n - total
    overhead = log(pi) - lgamma(total + 0.5) - lgamma(left + 0.5) + lgamma(n + 1.0)
    overhead += (total * log(total / n) if total > 0.0 else 0.0) + (left * log(left / n) if left > 0.0 else 0.0)
    p, level = total / n, (log_inverse_delta + overhead) / n
    high = 1.0 if p >= 1.0 else bisect(lambda g: divergence(p, g) > level, p, 1.0)
    low = 0.0 if p <= 0.0 else bisect(lambda g: divergence(p, g) <= level, 0.0, p)
    return low, high


def cost_radius(kind: str, n: int, log_term: float) -> float:
    """xi of the radii `paper` and `tight`."""
    if n == 0:
        return 1.0
    return min(1.0, sqrt(4.0 * log_term / n) if kind == "paper" else sqrt(log_term / (2.0 * n)))


def transition_radius(kind: str, p: float, n: int, log_term: float) -> float:
    """epsilon of the radii `paper` and `tight`."""
    if kind == "paper":
        less = max(1, n - 1)
        return 2.0 * sqrt(p * log_term / less) + 14.0 * log_term / (3.0 * less)
    if n < 2:
        return 1.0
    variance = p * (1.0 - p) * n / (n - 1)
    return sqrt(2.0 * variance * log_term / n) + 7.0 * log_term / (3.0 * (n - 1))


def dirichlet_overhead(counts: Sequence[int], weight: float) -> float:
    """D(c) = ln of prod (c/N)^c over the probability of c under a symmetric Dirichlet prior."""
    n, whole = sum(counts), weight * len(counts)
    likelihood = sum(c * log(c / n) for c in counts if c > 0)
    mixed = lgamma(whole) - lgamma(n + whole) + sum(lgamma(c + weight) - lgamma(weight) for c in counts)
    return likelihood - mixed


def ball_radius(counts: Sequence[int], log_inverse_delta: float) -> float:
    """The radius of { p : KL(P_hat || p) <= radius }; infinite without visits."""
    n = sum(counts)
    if n == 0:
        return inf
    return (log_inverse_delta + dirichlet_overhead(counts, min(0.5, 1.0 / len(counts)))) / n


def most_in_ball(counts: Sequence[int], values: Sequence[float], radius: float) -> float:
    """max p . V over the ball: nu - exp(sum P_hat ln(nu - V) - radius) at the best nu >= max V."""
    n, top = sum(counts), max(values)
    seen = [(c / n, top - v) for c, v in zip(counts, values, strict=True) if c > 0] if n else []
    if radius == inf or all(z == 0.0 for _, z in seen):
        return top

    def beyond(u: float) -> bool:
        """Whether nu = top + u is above the best one."""
        spread = sum(p * log(u + z) for p, z in seen) + log(sum(p / (u + z) for p, z in seen))
        return spread < radius

    u, far = 0.0, 1.0
    if any(z == 0.0 for _, z in seen) or not beyond(0.0):  # else the largest V was not seen, and the best nu is max V
        while not beyond(far):
            far *= 4.0
        u = exp(bisect(lambda x: beyond(exp(x)), log(NEXT_TO_NOTHING), log(far)))
    logs = sum(p * log(u + z) for p, z in seen)
    return top + u - exp(logs - radius)


def certificate_radius(log_term: float, squares: float, scale: float) -> float:
    """rad = R min (log + psi(l) VV) / l, psi(l) = -ln(1 - l) - l."""
    rates = [0.5**j for j in range(1, J + 1)]
    return scale * min((log_term + (-log(1.0 - rate) - rate) * squares) / rate for rate in rates)


def certificate_log(log_inverse_delta: float, num_constraints: int, generation: int) -> float:
    """ln(J m / (delta_A w_g)): forty generations share .9 of delta_A, the later ones the rest."""
    weight = 0.9 / 40.0 if generation < 40 else 0.1 / ((generation - 39.0) * (generation - 38.0))
    return log_inverse_delta + log(J * num_constraints / weight)
