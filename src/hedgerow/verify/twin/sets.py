"""Counts of what was seen, and the confidence sets that follow from them.

Sets of the radii `paper` and `tight` follow from the present counts. Intervals of the kind `kt` are older than that:
the set of a law is made anew when its visits have grown by one in fifty, and bounds of costs keep what all of them have
in common (the last one stands where they have nothing in common).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.verify.twin.formulas import (
    Given,
    ball_radius,
    certificate_log,
    certificate_radius,
    cost_radius,
    kt_interval,
    most_in_ball,
    transition_radius,
)

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


# --------------------------------------------------------------------------------------------------------------------
# Best and worst transitions in their sets, by backward passes in plain loops.


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


# --------------------------------------------------------------------------------------------------------------------
# The aggregate certificate, counted a second time (docs/aggregate.md).
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
