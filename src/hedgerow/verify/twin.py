"""A twin of the learners' arithmetic, in plain Python: from the episodes that were seen to intervals, U and lambda.

It shares no code with what it checks: nothing here imports from `learners` or `confidence`; only `twin_watcher.py`,
which hands the episodes over, knows the learners. Everything is computed in the plainest way, by bisection and by
loops, from the formulas of the paper and of docs/aggregate.md.

    Given            what a learner knew before its first episode, and the shares of delta
    formulas         radii, intervals, balls: one mean or one row at a time
    TwinSets         counts, and the confidence sets that follow from them
    passes           best and worst transitions in the sets, backwards
    Generation       the aggregate certificate

The search of CV-OPS, lambda, and the rates eta and gamma stand with the watcher.

    >>> low, high = kt_interval(1000, 250.0, 7.649693)
    >>> print(f"{low:.6f} {high:.6f}")
    0.188881 0.318618
    >>> print(f"{dirichlet_overhead([37, 60, 7], 0.5):.6f}")
    4.656552
    >>> print(f"{most_in_ball([37, 60, 7], [1.0, 0.4, 0.1], 0.095720):.6f}")
    0.732114
    >>> print(f"{certificate_radius(10.0, 10.0, 3.0):.6f}")
    71.588831
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
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
    anchored: bool
    """Whether bounds may start from the baseline, if that is a single policy; only for learners that mix"""
    eta: float | str
    """paper, adaptive, or a multiple of the paper's"""
    gamma: float | str
    """paper, or a multiple of the paper's"""


class TwinShares(NamedTuple):
    """How 5 delta is split: three parts for costs and two for transitions, all for costs where no transition is
    uncertain; the certificate takes a sixth of the costs' part, balls take half of the transitions' part.
    """

    costs: float
    transitions: float
    certificate: float
    balls: float


class Given:
    """Shape, knowledge, delta and the number of episodes, and what follows from them before the first episode."""

    def __init__(self, view: View, switches: Switches, delta: float, episodes: int | None) -> None:
        self.view, self.switches, self.delta, self.episodes = view, switches, delta, episodes
        self.steps, self.num_actions = view.layout.steps, view.layout.num_actions
        self.num_constraints = m = len(view.thresholds)
        self.rows: list[tuple[int, int]] = list(pairwise(view.layout.row_start.tolist()))
        """The triples of each row: first and last + 1"""
        self.num_rows = len(self.rows)
        self.successor: list[int] = view.layout.successor.tolist()
        """The next state of each triple"""
        self.layers = [range(a, b) for a, b in pairwise(view.layout.state_start.tolist())]
        """The states of each layer, the terminal one included"""
        self.num_states = self.layers[-1].stop
        known = view.knowledge
        self.moves_at, self.costs_at = self._first_row(known.same_transitions), self._first_row(known.same_costs)
        """(num_rows,): the first row with the same transitions, and with the same costs"""
        self.every_visit = bool(known.independent_costs)
        """Whether all visits of one episode to a cost law count"""
        self.known_costs = np.full((self.num_rows, m), np.nan) if known.costs is None else known.costs.T
        """(num_rows, m): mean costs that are known, else NaN"""
        moves = known.transitions
        self.known_moves = np.full(len(self.successor), np.nan) if moves is None else moves.copy()
        """(num_triples,): likewise the transitions; those of rows with one successor are known"""
        sizes = np.array([last - first for first, last in self.rows])
        self.known_moves[[first for first, last in self.rows if last - first == 1]] = 1.0
        self.uncertain: BoolArray = np.isnan(self.known_moves[[first for first, _ in self.rows]])
        """(num_rows,): whether the transitions have to be estimated"""
        self.wide = self.uncertain & (sizes >= max(2, switches.ball_from)) & (switches.ball_from > 0)
        """(num_rows,): whether the row has a ball beside its box"""
        most = known.max_episode_cost
        self.ceilings = np.full(m, float(self.steps)) if most is None else np.minimum(most, self.steps)
        """(m,): what an episode costs at most"""
        self.binding = [i for i in range(m) if view.thresholds[i] < self.ceilings[i]]
        """The constraints that can be violated at all"""
        self.counted = [r for r in range(self.num_rows) if self.uncertain[r] and self.moves_at[r] == r]
        """The rows that count uncertain transitions, one per law"""
        self.num_triples = sum(int(sizes[r]) for r in self.counted)
        """Probabilities to be estimated"""
        self.shares = self._make_shares()
        self.cost_log, self.transition_log = self._logs()
        """The logarithms behind the bounds of one mean cost, and of one transition probability"""
        num_balls = sum(bool(self.wide[r]) for r in self.counted)
        self.ball_log = log(max(1, num_balls) / (self.shares.balls * delta))
        self.certificate_log = -log(self.shares.certificate * delta)
        """ln(1 / delta_A)"""

    def _first_row(self, same: IntArray | None) -> IntArray:
        return same if self.switches.ties and same is not None else np.arange(self.num_rows)

    def _make_shares(self) -> TwinShares:
        costs = 3.0 if self.num_triples else 5.0
        balls = any(self.wide[r] for r in self.counted)
        return TwinShares(
            costs=costs - costs / 6.0 if self.switches.aggregate else costs,
            transitions=1.0 if balls else 2.0,
            certificate=costs / 6.0,
            balls=1.0,
        )

    def _logs(self) -> tuple[float, float]:
        own, m, delta = np.arange(self.num_rows), max(1, self.num_constraints), self.delta
        tied = bool((self.moves_at != own).any() or (self.costs_at != own).any())
        # T of the union bounds; a law may be visited L times in an episode.
        horizon = float(self.episodes or 1) * (self.steps if tied else 1)
        num_costs = max(1, int(np.isnan(self.known_costs[self.costs_at == own]).sum()))  # one per law and constraint
        num_triples = max(1, self.num_triples)
        if self.switches.radii == "paper":
            pairs = horizon * self.num_states * self.num_actions
            return log(pairs * m / delta), log(pairs / delta)
        if self.switches.radii == "tight":  # of the transitions 4 n T / (4 delta)
            return log(2.0 * num_costs * horizon / delta), log(num_triples * horizon / delta)
        return log(num_costs / (self.shares.costs * delta)), log(num_triples / (self.shares.transitions * delta))


# Formulas: one mean or one row at a time ------------------------------------------------------------------------------


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


# Counts and confidence sets -------------------------------------------------------------------------------------------
#
# Sets of the radii `paper` and `tight` follow from the present counts. Intervals of the kind `kt` are older than that:
# the set of a law is made anew when its visits have grown by one in fifty, and bounds of costs keep what all of them
# have in common (the last one stands where they have nothing in common).


GROWTH = 50


@dataclass(frozen=True, eq=False)
class TwinBoxes:
    """The sets at one time."""

    lower: FloatArray
    """(num_triples,)"""
    upper: FloatArray
    """(num_triples,)"""
    cost_lower: FloatArray
    """(num_rows, m)"""
    cost_upper: FloatArray
    """(num_rows, m)"""


class TwinSets:
    """Everything that was seen so far."""

    def __init__(self, given: Given) -> None:
        self.given = given
        rows, m = given.num_rows, given.num_constraints
        self.visits, self.costs_seen = [0] * rows, [0] * rows
        self.moves = [0] * len(given.successor)
        self.cost_sums = np.zeros((rows, m))
        self.ball_moves: list[list[int]] = [[0] * (last - first) for first, last in given.rows]
        self._made_with, self._costs_made_with = [0] * rows, [0] * rows
        self._boxes = self._first_boxes()

    def _first_boxes(self) -> TwinBoxes:
        given = self.given
        free = np.isnan(given.known_moves)
        known = ~np.isnan(given.known_costs)
        least = 0.0 if given.switches.clip_costs else -1.0
        return TwinBoxes(
            lower=np.where(free, 0.0, given.known_moves),
            upper=np.where(free, 1.0, given.known_moves),
            cost_lower=np.where(known, given.known_costs, least),
            cost_upper=np.where(known, given.known_costs, 1.0),
        )

    def triples_of(self, rows: Sequence[int]) -> list[int]:
        """The triples of a path, from the rows that it visited, one per layer."""
        given, found = self.given, []
        for k, row in enumerate(rows):
            arrived = rows[k + 1] // given.num_actions if k + 1 < len(rows) else given.num_states - 1
            first, last = given.rows[row]
            found.append(first + given.successor[first:last].index(arrived))
        return found

    def see(self, rows: Sequence[int], costs: FloatArray) -> None:
        """Count an episode: its rows (L,) and costs (L, m)."""
        given, counted = self.given, set()
        for k, (row, triple) in enumerate(zip(rows, self.triples_of(rows), strict=True)):
            place = int(given.moves_at[row])
            self.visits[place] += 1
            self.moves[given.rows[place][0] + triple - given.rows[row][0]] += 1
            place = int(given.costs_at[row])
            if given.every_visit or place not in counted:
                counted.add(place)
                self.costs_seen[place] += 1
                self.cost_sums[place] += costs[k]
        if given.switches.radii == "kt":
            self._refresh(rows)

    def refresh_all(self) -> None:
        """Make all sets anew, as CV-OPS does at the end of its search."""
        for r in range(self.given.num_rows):
            if self.given.uncertain[r] and self.given.moves_at[r] == r:
                self._make_box(r)
            if self.given.costs_at[r] == r and self.costs_seen[r]:
                self._make_costs(r)
            self._make_ball(r)

    def _refresh(self, rows: Sequence[int]) -> None:
        given, changed = self.given, set()
        for row in rows:
            place = int(given.moves_at[row])
            if given.uncertain[place] and _grown(self.visits[place], self._made_with[place]):
                self._make_box(place)
                changed |= set(np.flatnonzero(given.moves_at == place).tolist())
            place = int(given.costs_at[row])
            if _grown(self.costs_seen[place], self._costs_made_with[place]):
                self._make_costs(place)
                changed |= set(np.flatnonzero(given.costs_at == place).tolist())
        for row in changed:
            self._make_ball(row)

    def _make_ball(self, row: int) -> None:
        first, last = self.given.rows[int(self.given.moves_at[row])]
        if self.given.wide[row]:
            self.ball_moves[row] = self.moves[first:last]

    def _make_costs(self, place: int) -> None:
        given, n = self.given, self.costs_seen[place]
        self._costs_made_with[place] = n
        for i in range(given.num_constraints):
            if not np.isnan(given.known_costs[place, i]):
                continue
            low, high = kt_interval(n, float(self.cost_sums[place, i]), given.cost_log)
            older = self._boxes.cost_lower[place, i], self._boxes.cost_upper[place, i]
            if max(low, older[0]) <= min(high, older[1]):
                low, high = max(low, older[0]), min(high, older[1])
            self._boxes.cost_lower[given.costs_at == place, i] = low
            self._boxes.cost_upper[given.costs_at == place, i] = high

    def _make_box(self, place: int) -> None:
        given, n = self.given, self.visits[place]
        self._made_with[place] = n
        first, last = given.rows[place]
        ends = [kt_interval(n, float(count), given.transition_log) for count in self.moves[first:last]]
        low, high = _drawn_in(np.array([a for a, _ in ends]), np.array([b for _, b in ends]))
        for row in np.flatnonzero(given.moves_at == place):
            first, last = given.rows[row]
            self._boxes.lower[first:last], self._boxes.upper[first:last] = low, high

    def boxes(self) -> TwinBoxes:
        """All sets at present."""
        return self._boxes if self.given.switches.radii == "kt" else self._from_radii()

    def _from_radii(self) -> TwinBoxes:
        given, boxes, kind = self.given, self._first_boxes(), self.given.switches.radii
        for row in range(given.num_rows):
            place = int(given.moves_at[row])
            n, (first, last), (at, end) = self.visits[place], given.rows[row], given.rows[place]
            if given.uncertain[row] and n:
                p = np.array(self.moves[at:end]) / n
                radius = np.array([transition_radius(kind, float(share), n, given.transition_log) for share in p])
                low, high = np.maximum(p - radius, 0.0), np.minimum(p + radius, 1.0)
                boxes.lower[first:last], boxes.upper[first:last] = _drawn_in(low, high)
            place = int(given.costs_at[row])
            n = self.costs_seen[place]
            mean, xi = self.cost_sums[place] / max(1, n), cost_radius(kind, n, given.cost_log)
            low, high = mean - xi, mean + xi
            if given.switches.clip_costs:
                low, high = np.maximum(low, 0.0), np.minimum(high, 1.0)
            free = np.isnan(given.known_costs[row])
            boxes.cost_lower[row, free], boxes.cost_upper[row, free] = low[free], high[free]
        return boxes

    def ball_radius(self, row: int) -> float:
        return ball_radius(self.ball_moves[row], self.given.ball_log)


def _grown(now: int, then: int) -> bool:
    return now > then and GROWTH * (now - then) >= then


def _drawn_in(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The same set of distributions with the narrowest intervals: the others must be able to make up the rest."""
    return np.maximum(low, 1.0 - (high.sum() - high)), np.minimum(high, 1.0 - (low.sum() - low))


# Best and worst transitions in their sets -----------------------------------------------------------------------------


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
    given: Given, policy: FloatArray, costs: FloatArray, boxes: TwinBoxes, *, balls: TwinSets | None = None
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


def best_values(given: Given, policy: FloatArray, costs: FloatArray, boxes: TwinBoxes) -> FloatArray:
    """V(x) = sum_a pi(a|x) [c + min p . V]."""
    return -worst_values(given, policy, -costs, boxes)


def anchored_cost(
    given: Given, policy: FloatArray, baseline: FloatArray, beta: float, boxes: TwinBoxes, i: int
) -> float:
    """beta + D(x_0) of docs/anchored.md, for one constraint."""
    up, low, base, more = (np.zeros(given.num_states) for _ in range(4))
    for k, layer in reversed(list(enumerate(given.layers[:-1]))):
        for x in layer:
            for row in range(x * given.num_actions, (x + 1) * given.num_actions):
                first, last = given.rows[row]
                lo, hi, after = boxes.lower[first:last], boxes.upper[first:last], given.successor[first:last]
                best = [most(lo, hi, [float(v[y]) for y in after]) for v in (up, -low, -base, more)]
                q_up = min(float(given.steps - k), boxes.cost_upper[row, i] + best[0])
                q_low, q_base = (max(0.0, boxes.cost_lower[row, i] - far) for far in best[1:3])
                change = policy[row] - baseline[row]
                up[x] += policy[row] * q_up
                low[x] += policy[row] * q_low
                base[x] += baseline[row] * q_base
                more[x] += change * (q_up if change > 0.0 else q_low) + baseline[row] * best[3]
            more[x] = min(more[x], up[x] - base[x])
    return max(beta + float(more[0]), 0.0)


def upper_occupancies(given: Given, policy: FloatArray, boxes: TwinBoxes) -> FloatArray:
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


# The aggregate certificate, counted a second time (docs/aggregate.md) -------------------------------------------------
#
# When a generation starts, which V it freezes and which centres are used is the learner's choice, and Theorems A and B
# allow any, as long as they are known before the episode. The twin takes them from the learner *before* the episode and
# counts n, N, SX and VV itself.


@dataclass(frozen=True, eq=False)
class TwinCentres:
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
        self, given: Given, rows: Sequence[int], triples: Sequence[int], costs: FloatArray, centres: TwinCentres
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
    boxes: TwinBoxes
    centres: TwinCentres
    q_hat: FloatArray
    high: FloatArray
    low: FloatArray
    constraint: int

    @classmethod
    def of(cls, given: Given, policy: FloatArray, boxes: TwinBoxes, centres: TwinCentres, i: int) -> Present:
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
