"""Random worlds, and a learner in miniature around the aggregate certificate: what the tests of it share."""

from __future__ import annotations

from dataclasses import dataclass

import naive_estimates as naive
import numpy as np
from numpy.random import Generator

from hedgerow.confidence.aggregate import (
    Aggregate,
    AggregateRule,
    AggregateScratch,
    aggregate_bounds,
    count_own_episode,
    make_aggregate,
    make_aggregate_rule,
    make_aggregate_scratch,
    set_cost_centre,
    set_transition_centre,
)
from hedgerow.confidence.bounds import Columns, load_columns, make_columns
from hedgerow.confidence.boxes import Boxes, make_boxes
from hedgerow.confidence.counts import Counts, make_counts, make_unknowns, record, record_costs
from hedgerow.model.kernel_layout import index_of
from hedgerow.model.layout import Layout


@dataclass
class Small:
    """Counts, boxes and the certificate; boxes have radius width/sqrt(N) around the centres."""

    layout: Layout
    p: np.ndarray
    g: np.ndarray
    aggregate: Aggregate
    rule: AggregateRule
    counts: Counts
    boxes: Boxes
    columns: Columns
    scratch: AggregateScratch
    width: float = 3.0

    def see(self, rows: np.ndarray, triples: np.ndarray, costs: np.ndarray, *, own: bool) -> None:
        """One episode, in the order that is asked for: the certificate, counts, boxes, centres."""
        index = index_of(self.layout)
        if own:
            count_own_episode(index, rows, triples, costs, self.rule, self.aggregate)
        laws = make_unknowns(self.layout, self.g.shape[1]).laws
        record(index_of(self.layout), laws, self.counts, rows, triples)
        record_costs(laws, self.counts, rows, costs)
        for r in rows:
            self.refresh(int(r))

    def refresh(self, r: int) -> None:
        index, counts, boxes = index_of(self.layout), self.counts, self.boxes
        N, row = int(counts.num_visits[r]), slice(self.layout.row_start[r], self.layout.row_start[r + 1])
        radius = self.width / np.sqrt(N)
        if not self.rule.known_rows[r] and row.stop - row.start > 1:
            p_hat = counts.num_moves[row] / N
            boxes.lower[row], boxes.upper[row] = np.maximum(p_hat - radius, 0.0), np.minimum(p_hat + radius, 1.0)
            set_transition_centre(index, r, counts.num_moves, int(row.start), N, self.aggregate)
        for i in range(self.g.shape[1]):
            if not self.rule.known_costs[r, i]:
                g_hat = counts.cost_sums[r, i] / N
                boxes.cost_lower[r, i] = max(boxes.cost_lower[r, i], g_hat - radius)
                boxes.cost_upper[r, i] = min(boxes.cost_upper[r, i], g_hat + radius)
        set_cost_centre(r, counts.cost_sums, r, N, boxes.cost_lower, boxes.cost_upper, self.aggregate)

    def bounds(self, pi: np.ndarray, start: float = np.inf) -> np.ndarray:
        index, bounds = index_of(self.layout), np.full(self.g.shape[1], start)
        load_columns(index, self.boxes.lower, self.boxes.upper, pi, self.columns)
        aggregate_bounds(index, self.columns, pi, self.boxes, self.rule, self.aggregate, self.scratch, bounds)
        return bounds

    def play(self, rng: Generator, pi: np.ndarray, *, dependent: bool = False) -> tuple[np.ndarray, ...]:
        """Rows, triples and 0/1 costs; if `dependent`, one number decides about all costs of the episode."""
        rows, triples = naive.some_episode(rng, self.layout, self.p, pi)
        draws = rng.random() if dependent else rng.random((len(rows), self.g.shape[1]))
        return np.array(rows), np.array(triples), (draws < self.g[rows]).astype(float)


def small(
    layout: Layout, p: np.ndarray, g: np.ndarray, delta: float = 0.05, *, known: float = 0.0, seed: int = 0
) -> Small:
    """A fresh one; a share `known` of the rows and of the costs is known."""
    rng, m = np.random.default_rng(seed), g.shape[1]
    known_rows, known_costs = rng.random(layout.num_rows) < known, rng.random(g.shape) < known
    boxes, of_triple = (
        make_boxes(make_unknowns(layout, m), clip_costs=True),
        np.repeat(known_rows, np.diff(layout.row_start)),
    )
    boxes.lower[of_triple] = boxes.upper[of_triple] = p[of_triple]
    boxes.cost_lower[known_costs] = boxes.cost_upper[known_costs] = g[known_costs]
    aggregate = make_aggregate(layout, boxes)
    rule = make_aggregate_rule(layout, boxes, -np.log(delta), np.full(m, -np.inf))
    return Small(
        layout,
        p,
        g,
        aggregate,
        rule,
        make_counts(layout, m),
        boxes,
        make_columns(layout),
        make_aggregate_scratch(layout),
    )


def some_small(seed: int, *, known: float = 0.0, num_constraints: int = 2, largest: int = 4) -> Small:
    rng = np.random.default_rng(seed)
    layout = naive.some_layout(rng, full=seed % 2 == 0, largest=largest)
    p = naive.some_transitions(rng, layout)
    return small(layout, p, rng.random((layout.num_rows, num_constraints)), known=known, seed=seed)


def drift(rng: Generator, layout: Layout, pi: np.ndarray, size: float) -> np.ndarray:
    """A policy nearby."""
    weights = (pi * np.exp(size * rng.normal(size=len(pi)))).reshape(-1, layout.num_actions)
    return (weights / weights.sum(axis=1, keepdims=True)).ravel()
