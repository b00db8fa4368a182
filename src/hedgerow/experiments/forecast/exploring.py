"""The expected counts after t episodes of uniform actions, rounded.

Counts are kept as a learner keeps them (`counts.py`): rows that share a law are counted at the first row of their
class. All visits count for the transitions; for the costs only the first one of an episode does, unless costs are
independent. Each count is within 1 of its expectation, moves of a row add up to its visits, and sums of costs are
visits times means.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

from hedgerow.checks import FloatArray, IntArray
from hedgerow.estimates.counts import Counts
from hedgerow.estimates.unknowns import Unknowns
from hedgerow.experiments.forecast.model import Model
from hedgerow.model.layout import Layout
from hedgerow.model.occupancy import uniform_policy


class Exploration:
    """Counts after any number of episodes, for a model and what there is to estimate."""

    def __init__(self, model: Model, unknowns: Unknowns) -> None:
        self.model, laws = model, unknowns.laws
        visits, num_rows = model.explored, model.layout.num_rows
        self.visits = np.bincount(laws.moves_at, visits, minlength=num_rows)
        """(num_rows,): per episode, where they are counted"""
        shared = laws.costs_at if not laws.every_visit and np.any(laws.costs_at != np.arange(num_rows)) else None
        self.cost_visits = (
            np.bincount(laws.costs_at, visits, minlength=num_rows)
            if shared is None
            else first_visits_of_classes(model.layout, model.transitions, shared)
        )

    def after(self, episodes: int) -> Counts:
        """The counts after so many episodes."""
        layout, means = self.model.layout, self.model.costs
        num_visits = np.rint(episodes * self.visits).astype(np.int64)
        num_costs = np.rint(episodes * self.cost_visits).astype(np.int64)
        return Counts(
            num_visits=num_visits,
            num_moves=_apportioned(layout, num_visits, self.model.transitions),
            num_costs=num_costs,
            cost_sums=np.ascontiguousarray((num_costs * means).T),
            unknown_moves=np.zeros(layout.num_rows, dtype=np.int64),
            unknown_costs=np.zeros(means.T.shape, dtype=np.int64),
        )


def _apportioned(layout: Layout, num_visits: IntArray, transitions: FloatArray) -> IntArray:
    """Whole numbers (num_triples,) that add up to the visits of each row, in proportion to P."""
    row, first = layout.row_of_triple, layout.row_start[:-1]
    upto = np.cumsum(transitions)
    upto -= (upto[first] - transitions[first])[row]  # within each row
    upto[layout.row_start[1:] - 1] = 1.0
    rounded = np.rint(num_visits[row] * np.minimum(upto, 1.0)).astype(np.int64)
    moves = np.diff(rounded, prepend=0)
    moves[first] = rounded[first]
    return moves


def first_visits_of_classes(layout: Layout, transitions: FloatArray, classes: IntArray) -> FloatArray:
    """(num_rows,): how likely an episode of uniform actions is to visit each class at all, at its first row.

    `classes` (num_rows,) are the first rows. One forward pass serves all classes: it carries the mass that has not met
    its class yet.
    """
    places = np.unique(classes)
    number = np.searchsorted(places, classes)
    policy, size = uniform_policy(layout), len(places)
    alive = np.ones((1, size))  # of the states of layer k, by class
    met = np.zeros(size)
    for k in range(layout.steps):
        rows, triples = layout.rows(k), layout.triples(k)
        w = np.repeat(alive, layout.num_actions, axis=0) * policy[rows, np.newaxis]
        own = np.arange(w.shape[0]), number[rows]
        np.add.at(met, number[rows], w[own])
        w[own] = 0.0
        place = layout.successor[triples] - int(layout.state_start[k + 1]), layout.row_of_triple[triples] - rows.start
        alive = csr_matrix((transitions[triples], place), shape=(layout.layer_sizes[k + 1], w.shape[0])) @ w
    found = np.zeros(layout.num_rows)
    found[places] = met
    return found
