"""Seeded random projection problems that are hard on purpose, with a truth that another solver knows.

They cover: 1-8 layers of 1-12 states, 1-6 actions, 0-5 constraints; boxes from trivial to points, touching 0 and 1;
single-successor layers; full and sparse support; base weights spanning up to e^-600..1; duplicate, redundant and
exactly tight constraints; feasible and infeasible by 1e-6..1.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.random import Generator

from bench.projection_reference import least_violation_by_lp
from hedgerow.checks import FloatArray
from hedgerow.model.layout import Layout
from hedgerow.projection.problem import ProjectionProblem

BOXES = ("trivial", "wide", "narrow", "points", "mixed", "edges")
"""Kinds of boxes."""


@dataclass(frozen=True, eq=False)
class HardProblem:
    """A problem, what kind it is, and by how much it is feasible (slack > 0) or infeasible (slack < 0)."""

    problem: ProjectionProblem
    family: str
    slack: float
    """inf without constraints, 0 for exactly tight ones"""
    known_to: float = 1e-8
    """How exactly the slack is known"""


def hard_problem(seed: int) -> HardProblem:
    """The problem of this seed."""
    rng = np.random.default_rng(np.random.SeedSequence(20_260_000, spawn_key=(seed,)))
    layout = random_layout(rng)
    boxes = str(rng.choice(BOXES))
    lower, upper = random_boxes(layout, boxes, rng)
    spread = float(rng.choice([0.0, 1.0, 10.0, 40.0, 200.0, 600.0]))
    log_base = -spread * rng.random(layout.num_triples) ** rng.choice([0.3, 1.0, 3.0])
    m = int(rng.integers(0, 6))
    costs = random_costs(layout, m, rng)
    if m == 0:
        problem = ProjectionProblem(layout, log_base, lower, upper)
        return HardProblem(problem, f"{boxes}, m = 0", np.inf)
    # Thresholds around the costs of one flow, then shifted until the least violation is exactly the wanted one.
    loose = ProjectionProblem(layout, log_base, lower, upper, costs, rng.random(m) * layout.steps * 0.5)
    least = least_violation_by_lp(loose)
    slack = float(rng.choice([-1.0, 1.0, 1.0, 0.0]) * 10.0 ** rng.uniform(-6.0, 0.0))
    problem = ProjectionProblem(layout, log_base, lower, upper, costs, loose.thresholds + (least + slack))
    kind = "tight" if slack == 0.0 else ("feasible" if slack > 0.0 else "infeasible")
    return HardProblem(problem, kind, slack)


def random_layout(rng: Generator) -> Layout:
    """1-8 layers of decisions; half of the layouts with sparse support."""
    steps, num_actions = int(rng.integers(1, 9)), int(rng.integers(1, 7))
    widest = int(rng.integers(1, 13))
    sizes = [1, *(int(rng.integers(1, widest + 1)) for _ in range(steps - 1)), 1]
    if rng.random() < 0.5:
        return Layout(sizes, num_actions)
    density = rng.uniform(0.1, 0.9)
    support = []
    for here, there in pairwise(sizes):
        block = rng.random((here, num_actions, there)) < density
        certain = rng.integers(0, there, size=(here, num_actions))
        np.put_along_axis(block, certain[:, :, None], True, axis=2)
        block[rng.integers(0, here, there), rng.integers(0, num_actions, there), np.arange(there)] = True
        support.append(block)
    return Layout.from_support(support)


def random_boxes(layout: Layout, kind: str, rng: Generator) -> tuple[FloatArray, FloatArray]:
    """Boxes that contain a distribution; "edges" puts some bounds at 0 and 1 exactly."""
    n, row = layout.num_triples, layout.row_of_triple
    weights = rng.exponential(size=n) ** rng.choice([1.0, 3.0])
    center = weights / np.add.reduceat(weights, layout.row_start[:-1])[row]
    widths = {
        "trivial": np.full(n, 2.0),
        "wide": rng.uniform(0.2, 1.0, n),
        "narrow": rng.uniform(0.0, 0.05, n),
        "points": np.zeros(n),
        "mixed": rng.choice([0.0, 1e-6, 0.02, 0.3, 2.0], size=layout.num_rows)[row],
        "edges": rng.choice([0.0, 0.1, 2.0], size=n),
    }
    radius = widths[kind]
    lower, upper = np.clip(center - radius, 0.0, 1.0), np.clip(center + radius, 0.0, 1.0)
    if kind == "edges":
        # One successor certain: its row is a corner of the simplex, the others are forced to 0.
        for r in np.flatnonzero(rng.random(layout.num_rows) < 0.3):
            triples = slice(layout.row_start[r], layout.row_start[r + 1])
            corner = np.zeros(triples.stop - triples.start)
            corner[rng.integers(len(corner))] = 1.0
            lower[triples], upper[triples] = corner, corner
    return lower, upper


def random_costs(layout: Layout, m: int, rng: Generator) -> FloatArray:
    """(m, rows): uniform, 0/1 or mostly zero; sometimes the last one repeats or follows from others."""
    style = rng.choice(["uniform", "binary", "rare"])
    costs = rng.random((m, layout.num_rows))
    if style == "binary":
        costs = np.round(costs)
    elif style == "rare":
        costs *= rng.random((m, layout.num_rows)) < 0.1
    if m >= 2 and rng.random() < 0.3:
        costs[-1] = costs[0] if rng.random() < 0.5 else 0.5 * (costs[0] + costs[m - 2])
    return costs
