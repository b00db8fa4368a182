"""Slow, obvious twins of what is counted where rows share laws, and of intervals that are refreshed now and then."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
from numpy.random import Generator

from hedgerow.confidence.kl import kt_interval
from hedgerow.model.knowledge import Knowledge
from hedgerow.model.layout import Layout

Interval = tuple[float, float]


def random_classes(rng: Generator, layout: Layout, *, equally_long: bool) -> np.ndarray:
    """(num_rows,): the first row of each row's class, classes of up to four rows or so."""
    size = np.diff(layout.row_start)
    label = rng.integers(0, max(1, layout.num_rows // 3), layout.num_rows)
    first: dict[tuple[int, int], int] = {}
    classes = []
    for row in range(layout.num_rows):
        key = (int(label[row]), int(size[row]) if equally_long else 0)
        classes.append(first.setdefault(key, row))
    return np.array(classes)


@dataclass
class Seen:
    """One episode: its rows, the places of its successors within their rows, its costs, and whether these count."""

    rows: list[int]
    steps: list[int]
    costs: np.ndarray
    counts: bool


@dataclass
class Recount:
    """Counts of a whole history, from dictionaries."""

    visits: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    moves: dict[tuple[int, int], int] = field(default_factory=lambda: defaultdict(int))
    num_costs: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    sums: dict[int, list[list[float]]] = field(default_factory=lambda: defaultdict(list))

    @classmethod
    def of(cls, history: list[Seen], moves_at: np.ndarray, costs_at: np.ndarray, every_visit: bool) -> Recount:
        found = cls()
        for episode in history:
            for row, step in zip(episode.rows, episode.steps, strict=True):
                found.visits[int(moves_at[row])] += 1
                found.moves[int(moves_at[row]), step] += 1
            met = set()
            for row, cost in zip(episode.rows, episode.costs.tolist(), strict=True):
                place = int(costs_at[row])
                if episode.counts and (every_visit or place not in met):
                    found.num_costs[place] += 1
                    found.sums[place].append(cost)
                met.add(place)
        return found


class GradualBoxes:
    """Intervals that are made anew when their samples grew by 2 %: cut with those before, copied to all of a class."""

    def __init__(
        self, layout: Layout, m: int, known: Knowledge, cost_log: float, transition_log: float, scale: float
    ) -> None:
        self.layout, self.m, self.scale = layout, m, scale
        self.cost_log, self.transition_log = cost_log, transition_log
        rows = np.arange(layout.num_rows)
        self.moves_at = rows if known.same_transitions is None else known.same_transitions
        self.costs_at = rows if known.same_costs is None else known.same_costs
        self.every_visit = known.independent_costs
        self.boxes: dict[int, list[Interval]] = {}
        self.costs: dict[tuple[int, int], Interval] = {}
        self.fixed_rows, self.fixed_costs = set(), set()
        for row in range(layout.num_rows):
            own = slice(layout.row_start[row], layout.row_start[row + 1])
            n = own.stop - own.start
            self.boxes[row] = [(0.0, 1.0)] * n
            if known.transitions is not None and not np.isnan(known.transitions[own]).any():
                self.boxes[row] = [(p, p) for p in known.transitions[own].tolist()]
                self.fixed_rows.add(row)
            elif n == 1:
                self.boxes[row] = [(1.0, 1.0)]
                self.fixed_rows.add(row)
            for i in range(m):
                self.costs[row, i] = (0.0, 1.0)
                if known.costs is not None and not np.isnan(known.costs[i, row]):
                    self.costs[row, i] = (float(known.costs[i, row]),) * 2
                    self.fixed_costs.add((row, i))
        self.made_with: dict[int, int] = defaultdict(int)
        self.costs_made_with: dict[int, int] = defaultdict(int)
        self.refreshed = 0
        self.fallen_back = 0

    def interval(self, n: int, total: float, log: float) -> Interval:
        low, high = kt_interval(n, total, log)
        if self.scale < 1.0 and n > 0:
            mean = total / n
            return mean - self.scale * (mean - low), mean + self.scale * (high - mean)
        return low, high

    def add(self, history: list[Seen]) -> None:
        """Everything anew from the whole history, of which the last episode is new."""
        now = Recount.of(history, self.moves_at, self.costs_at, self.every_visit)
        for row in history[-1].rows:
            place = int(self.moves_at[row])
            if place not in self.fixed_rows and self._grown(now.visits[place], self.made_with[place]):
                self._remake_box(place, now)
            place = int(self.costs_at[row])
            if self._grown(now.num_costs[place], self.costs_made_with[place]):
                self._remake_costs(place, now)

    @staticmethod
    def _grown(now: int, then: int) -> bool:
        return now > then and 50 * (now - then) >= then

    def _remake_box(self, place: int, now: Recount) -> None:
        n = now.visits[place]
        plain = [
            self.interval(n, float(now.moves[place, j]), self.transition_log) for j in range(len(self.boxes[place]))
        ]
        tight = []
        for j, (low, high) in enumerate(plain):
            other_low = sum(plain[i][0] for i in range(len(plain)) if i != j)
            other_high = sum(plain[i][1] for i in range(len(plain)) if i != j)
            tight.append((max(low, 1.0 - other_high), min(high, 1.0 - other_low)))
        for row in np.flatnonzero(self.moves_at == place):
            self.boxes[int(row)] = tight
        self.made_with[place] = n
        self.refreshed += 1

    def _remake_costs(self, place: int, now: Recount) -> None:
        n = now.num_costs[place]
        for i in range(self.m):
            if (place, i) in self.fixed_costs:
                continue
            low, high = self.interval(n, sum(cost[i] for cost in now.sums[place]), self.cost_log)
            before = self.costs[place, i]
            if max(low, before[0]) <= min(high, before[1]):
                low, high = max(low, before[0]), min(high, before[1])
            else:
                self.fallen_back += 1
            for row in np.flatnonzero(self.costs_at == place):
                self.costs[int(row), i] = low, high
        self.costs_made_with[place] = n
        self.refreshed += 1
