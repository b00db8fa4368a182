"""Contenders of a benchmark: a run on one problem, and how its answer is measured.

An answer is an occupancy q and nothing more, so every contender is measured by the same errors:

    infeasibility   max |flow residual|, [lo w - q]^+, [q - hi w]^+, [c_i^T w - alpha_i]^+, [-q]^+
    gap             |D(q || base) - g| / (1 + |g|), g the best dual value that `certify` vouches for
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import process_time
from typing import NamedTuple, Protocol

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.projection.certificate import certify
from hedgerow.projection.problem import ProjectionProblem
from hedgerow.projection.solve import project


class Run(NamedTuple):
    """Seconds, the status that the solver reports, and its occupancy (num_triples,), NaN if it has none.

    Seconds are processor time: waiting for other processes does not count.
    """

    seconds: float
    status: str
    occupancy: FloatArray


class Contender(Protocol):
    """A solver, prepared for one layout and number of constraints."""

    name: str

    def run(self, problem: ProjectionProblem) -> Run:
        """Solve one problem and say how long it took."""


Solve = Callable[[ProjectionProblem], tuple[str, FloatArray]]


def clocked(solve: Solve, problem: ProjectionProblem) -> Run:
    """A run whose clock covers everything from the problem to the occupancy."""
    start = process_time()
    status, occupancy = solve(problem)
    return Run(process_time() - start, status, occupancy)


@dataclass(frozen=True)
class Target:
    """The certified optimum of a problem."""

    dual_value: float
    """A lower bound of D(q || base) over the feasible set"""
    certificate: float
    """The worst residual of the solution that it comes from"""


def target(problem: ProjectionProblem) -> Target:
    """Solve with `project`, then take the dual value that the independent certificate finds."""
    result = project(problem)
    if not result.solved:
        raise RuntimeError(f"a benchmark problem was not solved: {result.status.message}")
    certificate = certify(problem, result)
    attained = divergence(problem, np.exp(result.log_occupancy))
    return Target(attained - certificate.absolute_gap, certificate.worst)


class Residual(NamedTuple):
    """How wrong an answer is; NaN when there is none."""

    infeasibility: float
    gap: float

    @property
    def worst(self) -> float:
        return float(np.maximum(self.infeasibility, self.gap))


def measure(problem: ProjectionProblem, occupancy: FloatArray, best: Target) -> Residual:
    """The residuals of an occupancy, from nothing but the problem and the certified optimum."""
    if not np.all(np.isfinite(occupancy)):
        return Residual(np.nan, np.nan)
    gap = abs(divergence(problem, occupancy) - best.dual_value) / (1.0 + abs(best.dual_value))
    return Residual(_infeasibility(problem, occupancy), gap)


def divergence(problem: ProjectionProblem, q: FloatArray) -> float:
    """D(q || base), with 0 ln 0 = 0; negative entries, which are infeasible anyway, count as 0."""
    positive = q > 0.0
    ratio = np.where(positive, np.log(np.where(positive, q, 1.0)) - problem.log_base, 0.0)
    return float(np.sum(q * ratio) - np.sum(q) + np.sum(np.exp(problem.log_base)))


def _infeasibility(problem: ProjectionProblem, q: FloatArray) -> float:
    layout = problem.layout
    w = np.add.reduceat(q, layout.row_start[:-1])
    own = w[layout.row_of_triple]
    arriving = np.bincount(layout.successor, weights=q, minlength=layout.num_states)[:-1]
    arriving[0] = 1.0
    leaving = w.reshape(-1, layout.num_actions).sum(axis=1)
    worst = [
        np.max(np.abs(arriving - leaving)),
        np.max(problem.lower * own - q),
        np.max(q - problem.upper * own),
        np.max(problem.costs @ w - problem.thresholds, initial=0.0),
        np.max(-q),
    ]
    return float(max(worst))
