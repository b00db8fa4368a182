"""`python -m bench agree`: moderate projections, ours beside cvxpy with Clarabel, number by number.

Two solvers that share no code and solve the same strictly convex problem must find the same point:

    |D - D'| <= 1e-8,     max |q - q'| <= 1e-6

Where Clarabel does not call its own answer optimal it cannot be the judge: then our certificate decides alone, and the
distance is reported but not judged.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.contender import divergence
from bench.hard_problems import BOXES, random_boxes, random_costs, random_layout
from bench.trials import TOL_CERTIFICATE, Trial, Trials, worst_certificate
from hedgerow.checks import FloatArray
from hedgerow.display.table import Table
from hedgerow.model import occupancy
from hedgerow.model.layout import Layout
from hedgerow.projection.certificate import certify
from hedgerow.projection.problem import ProjectionProblem
from hedgerow.projection.reference import ReferenceSolution, solve_with_cvxpy
from hedgerow.projection.result import ProjectionResult
from hedgerow.projection.solve import project

MOST_TRIPLES = 400
"""Clarabel solves this in a fraction of a second."""
CLARABEL: dict[str, Any] = {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12, "max_threads": 1}
TOL_OBJECTIVE = 1e-8
TOL_OCCUPANCY = 1e-6


@dataclass(frozen=True)
class Comparison(Trial):
    """Both answers to one problem; the family is its kind of boxes, the status what Clarabel says of its answer."""

    constraints: int
    objective_distance: float | None
    """|D - D'|; None if Clarabel has no answer"""
    occupancy_distance: float | None

    @property
    def is_judged_by_both(self) -> bool:
        return self.status == "optimal"


@dataclass(frozen=True)
class AgreementRow:
    """The figures of one kind of boxes."""

    family: str
    instances: int
    agree: int
    certificate_decides: int
    """Clarabel did not reach its tolerances, and our certificate is within its own"""
    wrong: int
    objective_distance: float | None
    """The worst where Clarabel is optimal; so is the next one"""
    occupancy_distance: float | None
    certificate: float | None


@dataclass(frozen=True)
class Agreement(Trials[Comparison]):
    """Moderate projections beside cvxpy + Clarabel; ends with 1 if an answer is wrong."""

    name, json_file = "agree", "agreement.json"
    families = BOXES
    praise = "no disagreement"
    few = 50

    @property
    def judge(self) -> Callable[[int], Comparison]:
        return compare

    def row(self, family: str, trials: Sequence[Comparison]) -> AgreementRow:
        both = [one for one in trials if one.is_judged_by_both]
        wrong = sum(bool(one.complaint) for one in trials)
        agree = sum(not one.complaint for one in both)
        return AgreementRow(
            family,
            len(trials),
            agree,
            len(trials) - agree - wrong,
            wrong,
            max((one.objective_distance for one in both if one.objective_distance is not None), default=None),
            max((one.occupancy_distance for one in both if one.occupancy_distance is not None), default=None),
            worst_certificate(trials),
        )

    def table(self, trials: Sequence[Comparison]) -> Table:
        columns = ["boxes", "instances", "agree", "certificate decides", "wrong"]
        columns += ["objective", "occupancy", "certificate"]
        shown = Table(f"{len(trials)} projections beside cvxpy + Clarabel", columns)
        for row in self.figures(trials):
            counts = [row.instances, row.agree, row.certificate_decides, row.wrong]
            distances = [row.objective_distance, row.occupancy_distance, row.certificate]
            shown.add_row(row.family, *map(str, counts), *("-" if d is None else f"{d:.0e}" for d in distances))
        return shown

    def shown(self, found: Sequence[Comparison]) -> Iterator[Table | str]:
        yield from super().shown(found)
        yield "objective and occupancy: the largest distance where Clarabel reached its own tolerances of 1e-12."


def moderate_problem(seed: int) -> tuple[str, ProjectionProblem]:
    """A kind of boxes and a feasible problem: base weights spanning up to e^10, 0 to 3 constraints."""
    rng = np.random.default_rng(np.random.SeedSequence(20_280_000, spawn_key=(seed,)))
    layout = random_layout(rng)
    while layout.num_triples > MOST_TRIPLES:
        layout = random_layout(rng)
    boxes = BOXES[seed % len(BOXES)]
    lower, upper = random_boxes(layout, boxes, rng)
    log_base = -float(rng.choice([0.0, 1.0, 3.0, 10.0])) * rng.random(layout.num_triples)
    m = int(rng.integers(0, 4))
    if m == 0:
        return boxes, ProjectionProblem(layout, log_base, lower, upper)
    costs = random_costs(layout, m, rng)
    weights = rng.exponential(size=(layout.num_decision_states, layout.num_actions)) + 0.02
    policy = (weights / weights.sum(axis=1, keepdims=True)).ravel()
    q = occupancy.occupancy(layout, _some_transitions(layout, lower, upper), policy)
    thresholds = costs @ occupancy.row_occupancy(layout, q) + rng.uniform(0.02, 0.2)
    # The base prefers what is expensive: most constraints are active.
    log_base += 2.0 * costs.sum(axis=0)[layout.row_of_triple]
    return boxes, ProjectionProblem(layout, log_base, lower, upper, costs, thresholds)


def _some_transitions(layout: Layout, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Transitions from the lower bounds towards the upper ones, as far as each row sums to 1."""
    starts, row = layout.row_start[:-1], layout.row_of_triple
    room = np.add.reduceat(upper - lower, starts)
    missing = np.maximum(1.0 - np.add.reduceat(lower, starts), 0.0)
    share = np.divide(missing, room, out=np.zeros_like(room), where=room > 0.0)
    p = lower + share[row] * (upper - lower)
    return p / np.add.reduceat(p, starts)[row]


def compare(seed: int) -> Comparison:
    """Solve one problem both ways."""
    boxes, problem = moderate_problem(seed)
    return compared(seed, boxes, problem, project(problem), _reference(problem))


def _reference(problem: ProjectionProblem) -> ReferenceSolution:
    import cvxpy

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the status says the same
            return solve_with_cvxpy(problem, **CLARABEL)
    except cvxpy.error.SolverError:
        return ReferenceSolution("failed", np.nan, np.full(problem.layout.num_triples, np.nan))


def compared(
    seed: int, boxes: str, problem: ProjectionProblem, ours: ProjectionResult, theirs: ReferenceSolution
) -> Comparison:
    """Compare our answer with the other one, or judge it by its certificate where the other one is no judge."""
    certificate = certify(problem, ours).worst
    objective = occupancy_distance = None
    if np.all(np.isfinite(theirs.occupancy)):
        # Not the value that cvxpy reports, which is infinite if an entry is -1e-14.
        objective = abs(ours.objective - divergence(problem, theirs.occupancy))
        occupancy_distance = float(np.max(np.abs(np.exp(ours.log_occupancy) - theirs.occupancy)))
    complaint = ""
    if not ours.solved:
        complaint = f"ended {ours.status.name}, but it is feasible"
    elif not certificate <= TOL_CERTIFICATE:
        complaint = f"certificate {certificate:.2e} above {TOL_CERTIFICATE:.0e}"
    elif theirs.status == "optimal" and not (objective is not None and objective <= TOL_OBJECTIVE):
        complaint = f"objectives differ by {objective}"
    elif theirs.status == "optimal" and not (occupancy_distance is not None and occupancy_distance <= TOL_OCCUPANCY):
        complaint = f"occupancies differ by {occupancy_distance}"
    distances = (problem.num_constraints, objective, occupancy_distance)
    return Comparison(seed, boxes, theirs.status, certificate, complaint, *distances)
