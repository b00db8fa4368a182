"""Counts of what was seen, and the confidence sets that follow from them.

Sets of the radii `paper` and `tight` follow from the present counts. Intervals of the kind `kt` are older than that:
the set of a law is made anew when its visits have grown by one in fifty, and bounds of costs keep what all of them have
in common (the last one stands where they have nothing in common).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.promises.twin.formulas import ball_radius, cost_radius, kt_interval, transition_radius
from hedgerow.promises.twin.given import Given

GROWTH = 50


@dataclass(frozen=True, eq=False)
class Boxes:
    """The sets at one time."""

    lower: FloatArray
    """(num_triples,)"""
    upper: FloatArray
    """(num_triples,)"""
    cost_lower: FloatArray
    """(num_rows, m)"""
    cost_upper: FloatArray
    """(num_rows, m)"""


class Sets:
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

    def _first_boxes(self) -> Boxes:
        given = self.given
        free = np.isnan(given.known_moves)
        known = ~np.isnan(given.known_costs)
        least = 0.0 if given.switches.clip_costs else -1.0
        return Boxes(
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

    def boxes(self) -> Boxes:
        """All sets at present."""
        return self._boxes if self.given.switches.radii == "kt" else self._from_radii()

    def _from_radii(self) -> Boxes:
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
