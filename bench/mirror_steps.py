"""Seeded projection problems as learners meet them, and cold ones, of any size.

A *mirror step* follows one episode. The iterate q is the projection onto the set of the episode before, with every
constraint active. The episode visits one row per layer, and only these L rows change:

    ln q(x,a,.) -= eta lhat(x,a),  eta lhat in (0, 1]          (the loss that was seen)
    box and cost bound of (x,a): one observation more          (centre moves by 1/N, radius shrinks by sqrt(N/(N+1)))

Steps are drawn until the next projection has theta > 0 for every constraint and 10-40 % of the triples at a bound of
their box: a solver that ignored boxes or constraints would be caught.

A *cold* problem has base weights that span e^3, independent of the boxes. Its thresholds are the costs of the point
that minimises D(q || base) + theta^T C q for theta = 1: its multipliers are known to be 1.

    >>> size = Size((1, 3, 3, 1), actions=3, constraints=1)
    >>> size.label, mirror_step(size, seed=0).num_constraints
    ('(1,3,3,1)x3, m=1', 1)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby, pairwise

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from hedgerow.checks import FloatArray, IntArray
from hedgerow.model.layout import Layout
from hedgerow.projection.problem import ProjectionProblem, ProjectionResult
from hedgerow.projection.solve import project

SPREAD = 3.0
"""ln of the ratio of the largest to the smallest base weight of a cold problem."""
AT_BOUND = 1e-9
SHARE = (0.1, 0.4)
"""Range of the share of triples at a bound of their box after a mirror step, among rows with several successors"""
LEAST_THETA = 1e-6
MOST_DRAWS = 200


@dataclass(frozen=True)
class Size:
    """A layout and a number of constraints."""

    layers: tuple[int, ...]
    actions: int
    constraints: int
    successors: int | None = None
    """How many states the rows between inner layers lead to: neighbours on a ring, another stretch for each action.
    None: all states"""

    @cached_property
    def layout(self) -> Layout:
        if self.successors is None:
            return Layout(self.layers, self.actions)
        return Layout.from_support([self._block(here, there) for here, there in pairwise(self.layers)])

    def _block(self, here: int, there: int) -> NDArray[np.bool_]:
        """Who follows whom, (here, actions, there)."""
        if self.successors is None or 1 in (here, there):
            return np.ones((here, self.actions, there), dtype=np.bool_)
        steps = np.arange(there) - np.arange(here)[:, np.newaxis, np.newaxis] - np.arange(self.actions)[:, np.newaxis]
        return np.asarray(steps % there < self.successors)

    @property
    def label(self) -> str:
        """`(1,5^9,1)x4, m=2`: four or more equal layers are written as a power."""
        runs = [(size, len(list(run))) for size, run in groupby(self.layers)]
        parts = [f"{size}^{length}" if length > 3 else ",".join([str(size)] * length) for size, length in runs]
        few = "" if self.successors is None else f" to {self.successors}"
        return f"({','.join(parts)})x{self.actions}{few}, m={self.constraints}"


SIZES = (
    Size((1, 3, 3, 1), 3, 1),
    Size((1, 5, 5, 5, 1), 4, 2),
    Size((1, *[5] * 9, 1), 4, 2),
    Size((1, *[10] * 9, 1), 5, 2),
)
"""45, 240, 840 and 4100 triples."""


@dataclass(frozen=True)
class _Knowledge:
    """What a learner has seen: counts, means and hence boxes and cost bounds."""

    layout: Layout
    counts: FloatArray
    """(num_rows,)"""
    centre: FloatArray
    """(num_triples,): empirical transitions"""
    mean: FloatArray
    """(m, num_rows): empirical costs"""

    @property
    def boxes(self) -> tuple[FloatArray, FloatArray]:
        p = self.centre
        radius = np.sqrt(p * (1.0 - p) / self.counts[self.layout.row_of_triple])
        radius += 1.0 / self.counts[self.layout.row_of_triple]
        return np.maximum(p - radius, 0.0), np.minimum(p + radius, 1.0)

    @property
    def costs(self) -> FloatArray:
        """(m, num_rows): lower confidence bounds."""
        return np.maximum(self.mean - 0.5 / np.sqrt(self.counts), 0.0)

    def observe(self, rows: IntArray, successors: IntArray, rng: Generator) -> _Knowledge:
        """One more visit of each of `rows`, which led to the triples `successors`, with costs of 0 or 1."""
        layout = self.layout
        counts, mean, centre = self.counts.copy(), self.mean.copy(), self.centre.copy()
        counts[rows] += 1.0
        seen = (rng.random((len(mean), len(rows))) < mean[:, rows]).astype(np.float64)
        mean[:, rows] += (seen - mean[:, rows]) / counts[rows]
        for row, triple in zip(rows, successors, strict=True):
            own = slice(layout.row_start[row], layout.row_start[row + 1])
            centre[own] *= (counts[row] - 1.0) / counts[row]
            centre[triple] += 1.0 / counts[row]
        return replace(self, counts=counts, mean=mean, centre=centre)

    def problem(self, log_base: FloatArray, thresholds: FloatArray | None = None) -> ProjectionProblem:
        lower, upper = self.boxes
        if thresholds is None:
            return ProjectionProblem(self.layout, log_base, lower, upper)
        return ProjectionProblem(self.layout, log_base, lower, upper, self.costs, thresholds)


def mirror_step(size: Size, seed: int) -> ProjectionProblem:
    """The projection after one episode of a learner whose constraints are all active."""
    rng = _generator(size, seed, 0)
    layout = size.layout
    for _ in range(MOST_DRAWS):
        before = _knowledge(size, rng)
        log_base = np.log(before.centre) + 0.45 * rng.normal(size=layout.num_triples)
        log_base += rng.normal(size=layout.num_rows)[layout.row_of_triple]
        tilted, thresholds = _tilted(before, log_base, theta=0.5)
        # The least likely triples of a large layout underflow as plain numbers, never as logarithms.
        log_q = tilted.log_occupancy.copy()
        rows, successors = _episode(layout, log_q, rng)
        visited = np.isin(layout.row_of_triple, rows)
        log_q[visited] -= (1.0 - rng.random(layout.num_rows))[layout.row_of_triple[visited]]
        problem = before.observe(rows, successors, rng).problem(log_q, thresholds)
        result = project(problem)
        if (
            result.solved
            and np.all(result.theta > LEAST_THETA)
            and SHARE[0] <= share_at_bound(problem, result) <= SHARE[1]
        ):
            return problem
    raise RuntimeError(f"no mirror step with active constraints and boxes in {MOST_DRAWS} draws at {size.label}")


def cold_problem(size: Size, seed: int) -> ProjectionProblem:
    """A projection from base weights that span e^3; its multipliers theta are 1."""
    rng = _generator(size, seed, 1)
    known = _knowledge(size, rng)
    log_base = -SPREAD * rng.random(size.layout.num_triples)
    _, thresholds = _tilted(known, log_base, theta=1.0)
    return known.problem(log_base, thresholds)


def share_at_bound(problem: ProjectionProblem, result: ProjectionResult) -> float:
    """The share of triples at a bound of their box, among the rows that have more than one successor."""
    layout = problem.layout
    row, starts = layout.row_of_triple, layout.row_start[:-1]
    log_w = np.logaddexp.reduceat(result.log_occupancy, starts)
    p = np.exp(result.log_occupancy - log_w[row])
    at_bound = (p <= problem.lower + AT_BOUND) | (p >= problem.upper - AT_BOUND)
    has_choice = (np.diff(layout.row_start) > 1)[row]
    return float(np.mean(at_bound[has_choice]))


def _generator(size: Size, seed: int, kind: int) -> Generator:
    key = (seed, kind, *size.layers, size.actions, size.constraints)
    if size.successors is not None:
        key += (size.successors,)
    return np.random.default_rng(np.random.SeedSequence(20_270_000, spawn_key=key))


def _knowledge(size: Size, rng: Generator) -> _Knowledge:
    layout = size.layout
    weights = rng.exponential(size=layout.num_triples) + 0.05
    centre = weights / np.add.reduceat(weights, layout.row_start[:-1])[layout.row_of_triple]
    # In proportion to the successors: relative to their centres, boxes are as wide in small as in large layouts.
    counts = np.floor(rng.uniform(5.0, 50.0, layout.num_rows) * np.diff(layout.row_start))
    return _Knowledge(layout, counts, centre, rng.uniform(0.2, 0.9, (size.constraints, layout.num_rows)))


def _tilted(known: _Knowledge, log_base: FloatArray, theta: float) -> tuple[ProjectionResult, FloatArray]:
    """argmin D(q || base) + theta sum_i c_i^T q, and its costs: as thresholds they have the multipliers theta."""
    row = known.layout.row_of_triple
    result = project(known.problem(log_base - theta * known.costs.sum(axis=0)[row]))
    if not result.solved:
        raise RuntimeError(f"a projection without constraints failed: {result.status.message}")
    return result, known.costs[:, row] @ np.exp(result.log_occupancy)


def _episode(layout: Layout, log_q: FloatArray, rng: Generator) -> tuple[IntArray, IntArray]:
    """The rows and triples, one per layer, of a path drawn from the occupancy."""
    state, rows, triples = 0, [], []
    for _ in range(layout.steps):
        first = state * layout.num_actions
        own = slice(layout.row_start[first], layout.row_start[first + layout.num_actions])
        weights = np.exp(log_q[own] - log_q[own].max())
        triple = own.start + rng.choice(len(weights), p=weights / weights.sum())
        triples.append(triple)
        rows.append(layout.row_of_triple[triple])
        state = int(layout.successor[triple])
    return np.array(rows, dtype=np.int64), np.array(triples, dtype=np.int64)
