"""Seeded projection problems beyond the hard ones: up to 12 nearly parallel constraints, up to 10^5 triples.

Costs are a few directions plus noise of 1e-9..1e-1, so that many multipliers share one job; some constraints are in
units of up to 10^4. Thresholds leave a slack of 1e-7..1 above the least violation, or miss it by as much. Base weights
span up to e^-650. Most problems are small; one in `LARGE_EVERY` has thousands of triples, and a few of these 10^5.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.random import Generator

from bench.hard_problems import BOXES, HardProblem, random_boxes
from bench.projection_reference import least_violation_by_lp
from hedgerow.checks import FloatArray
from hedgerow.model.layout import Layout
from hedgerow.projection.infeasibility import least_violation
from hedgerow.projection.problem import ProjectionProblem

LARGE_EVERY = 250
HUGE = 16
"""One of so many large problems has about 10^5 triples."""
MOST_BY_LP = 3_000
"""Triples up to which another solver computes the least violation; beyond, the bracket of our own must be closed."""
CLOSED = 1e-8
KNOWN_TO = 1e-7
"""The tolerance of the linear program adds up over constraints that differ by less than it."""


def extreme_problem(seed: int) -> HardProblem:
    """The problem of this seed."""
    rng = np.random.default_rng(np.random.SeedSequence(20_270_000, spawn_key=(seed,)))
    layout = _layout(seed, rng)
    lower, upper = random_boxes(layout, str(rng.choice(BOXES)), rng)
    spread = float(rng.choice([0.0, 3.0, 30.0, 150.0, 400.0, 650.0]))
    log_base = -spread * rng.random(layout.num_triples) ** rng.choice([0.2, 1.0, 5.0])
    m = int(rng.integers(1, 13))
    costs = parallel_costs(layout, m, rng)
    units = 10.0 ** rng.uniform(0.0, 4.0, m) if rng.random() < 0.2 else np.ones(m)
    loose = ProjectionProblem(layout, log_base, lower, upper, costs, _thresholds(layout, costs, rng))
    slack = float(rng.choice([-1.0, 1.0, 1.0, 1.0, 1.0]) * 10.0 ** rng.uniform(-7.0, 0.0))
    thresholds = loose.thresholds + (_least(loose) + slack)
    if slack < 0.0:  # a proof is a statement in the unit of the costs
        units = np.ones(m)
    problem = ProjectionProblem(layout, log_base, lower, upper, costs * units[:, None], thresholds * units)
    return HardProblem(problem, _family(layout, m, slack), slack, KNOWN_TO)


def parallel_costs(layout: Layout, m: int, rng: Generator) -> FloatArray:
    """(m, rows) in [0, 1]: one to three directions, each repeated with noise of one size."""
    directions = rng.random((int(rng.integers(1, 4)), layout.num_rows))
    if rng.random() < 0.3:
        directions = np.round(directions)
    noise = 10.0 ** rng.uniform(-9.0, -1.0) * rng.standard_normal((m, layout.num_rows))
    costs: FloatArray = np.clip(directions[rng.integers(0, len(directions), m)] + noise, 0.0, 1.0)
    return costs


def _thresholds(layout: Layout, costs: FloatArray, rng: Generator) -> FloatArray:
    """Thresholds of which several bind at once: those of one random flow, each moved by one common scale."""
    level = rng.random() * layout.steps * costs.mean(axis=1)
    return np.asarray(level + 10.0 ** rng.uniform(-9.0, -1.0) * rng.standard_normal(len(costs)))


def _least(problem: ProjectionProblem) -> float:
    if problem.layout.num_triples <= MOST_BY_LP:
        return least_violation_by_lp(problem)
    found = least_violation(problem.layout, problem.lower, problem.upper, problem.costs, problem.thresholds)
    if not found.upper - found.value <= CLOSED:
        raise ArithmeticError(f"the least violation lies in [{found.value!r}, {found.upper!r}]")
    return found.value


FAMILIES = tuple(
    f"{size}, m {few} 4, {verdict}"
    for size in ("small", "large") for few in ("<=", ">") for verdict in ("feasible", "infeasible")
)  # fmt: skip
"""The families, in the order of a table."""


def _family(layout: Layout, m: int, slack: float) -> str:
    size = "large" if layout.num_triples > MOST_BY_LP else "small"
    return f"{size}, m {'<=' if m <= 4 else '>'} 4, {'feasible' if slack > 0.0 else 'infeasible'}"


def _layout(seed: int, rng: Generator) -> Layout:
    if seed % LARGE_EVERY == LARGE_EVERY - 1:
        huge = seed // LARGE_EVERY % HUGE == HUGE - 1
        steps, width, actions = (8, 60, 4) if huge else (int(rng.integers(3, 10)), int(rng.integers(15, 40)), 3)
        return Layout([1, *[width] * (steps - 1), 1], actions)
    steps, actions, widest = int(rng.integers(1, 8)), int(rng.integers(2, 6)), int(rng.integers(1, 8))
    sizes = [1, *(int(rng.integers(1, widest + 1)) for _ in range(steps - 1)), 1]
    if rng.random() < 0.5:
        return Layout(sizes, actions)
    support = []
    for here, there in pairwise(sizes):
        block = rng.random((here, actions, there)) < 0.6
        np.put_along_axis(block, rng.integers(0, there, (here, actions, 1)), True, axis=2)
        block[rng.integers(0, here, there), rng.integers(0, actions, there), np.arange(there)] = True
        support.append(block)
    return Layout.from_support(support)
