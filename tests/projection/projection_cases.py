"""Random projection problems of moderate size: full and sparse support, free and active boxes, active constraints."""

from __future__ import annotations

import numpy as np
from naive_model import sparse_layout
from numpy.random import Generator

from hedgerow.model import occupancy
from hedgerow.model.layout import Layout
from hedgerow.projection.problem import ProjectionProblem

BOXES = ("free", "wide", "narrow", "points", "mixed")


def random_layout(rng: Generator, sparse: bool) -> Layout:
    sizes = (1, *rng.integers(1, 5, size=rng.integers(0, 4)).tolist(), 1)
    actions = int(rng.integers(1, 4))
    if not sparse:
        return Layout(sizes, actions)
    return sparse_layout(rng, sizes, actions, 0.5)


def random_transitions(rng: Generator, layout: Layout) -> np.ndarray:
    weights = rng.exponential(size=layout.num_triples) + 0.02
    return weights / np.add.reduceat(weights, layout.row_start[:-1])[layout.row_of_triple]


def random_policy(rng: Generator, layout: Layout) -> np.ndarray:
    weights = rng.exponential(size=(layout.num_decision_states, layout.num_actions)) + 0.02
    return (weights / weights.sum(axis=1, keepdims=True)).ravel()


def boxes_around(rng: Generator, layout: Layout, p: np.ndarray, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Boxes (num_triples,) that contain the transitions `p`."""
    n = layout.num_triples
    radius = {
        "free": np.full(n, 2.0),
        "wide": rng.uniform(0.05, 0.5, n),
        "narrow": rng.uniform(0.0, 0.05, n),
        "points": np.zeros(n),
        "mixed": rng.choice([0.0, 1e-3, 0.1, 2.0], size=layout.num_rows)[layout.row_of_triple],
    }[kind]
    return np.clip(p - radius, 0.0, 1.0), np.clip(p + radius, 0.0, 1.0)


def random_problem(
    seed: int, *, boxes: str | None = None, sparse: bool | None = None, m: int | None = None, slack: float = 0.02
) -> ProjectionProblem:
    """A feasible problem whose base prefers expensive actions, so that most of its constraints are active.

    The thresholds lie `slack` above the costs of one occupancy within the boxes.
    """
    rng = np.random.default_rng(seed)
    layout = random_layout(rng, bool(seed % 2) if sparse is None else sparse)
    m = int(rng.integers(0, 4)) if m is None else m
    p, policy = random_transitions(rng, layout), random_policy(rng, layout)
    lower, upper = boxes_around(rng, layout, p, boxes or BOXES[seed % len(BOXES)])
    costs = rng.random((m, layout.num_rows))
    w = occupancy.row_occupancy(layout, occupancy.occupancy(layout, p, policy))
    log_base = rng.uniform(-3.0, 0.0, layout.num_triples) + 2.0 * costs.sum(axis=0)[layout.row_of_triple]
    return ProjectionProblem(layout, log_base, lower, upper, costs, costs @ w + slack)


def feasible_occupancy(seed: int) -> tuple[ProjectionProblem, np.ndarray]:
    """A problem and an occupancy (num_triples,) that satisfies all its conditions, strictly positive."""
    rng = np.random.default_rng(seed)
    problem = random_problem(seed)
    layout = problem.layout
    p = 0.5 * (problem.lower + problem.upper)
    for r in range(layout.num_rows):  # walk from the lower bounds towards the upper ones until the row sums to 1
        row = slice(layout.row_start[r], layout.row_start[r + 1])
        least, room = problem.lower[row], problem.upper[row] - problem.lower[row]
        missing = 1.0 - least.sum()
        p[row] = least + (missing / room.sum() * room if room.sum() > 0.0 else 0.0)
    q = occupancy.occupancy(layout, p, random_policy(rng, layout))
    costs = problem.costs @ occupancy.row_occupancy(layout, q)
    thresholds = np.maximum(problem.thresholds, costs)
    return ProjectionProblem(layout, problem.log_base, problem.lower, problem.upper, problem.costs, thresholds), q


def random_dual_point(seed: int, problem: ProjectionProblem, size: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """(v, theta) with v(x_L) = 0 and theta >= 0."""
    rng = np.random.default_rng(10_000 + seed)
    v = size * rng.normal(size=problem.layout.num_states)
    v[-1] = 0.0
    return v, rng.exponential(size=problem.num_constraints)
