"""`hedgerow bench agree`: moderate projections, ours beside cvxpy with Clarabel, number by number.

Two solvers that share no code and solve the same strictly convex problem must find the same point:

    |D - D'| <= 1e-8,     max |q - q'| <= 1e-6

Where Clarabel does not call its own answer optimal it cannot be the judge: then our certificate decides alone, and the
distance is reported without being held against anybody.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow import output
from hedgerow.bench import manifest, terminal
from hedgerow.bench.contender import divergence
from hedgerow.bench.hard_problems import random_boxes, random_costs, random_layout
from hedgerow.checks import FloatArray
from hedgerow.model import occupancy
from hedgerow.model.layout import Layout
from hedgerow.projection.certificate import certify
from hedgerow.projection.problem import ProjectionProblem
from hedgerow.projection.reference import ReferenceSolution, solve_with_cvxpy
from hedgerow.projection.result import ProjectionResult
from hedgerow.projection.solve import project

BOXES = ("trivial", "wide", "narrow", "points", "mixed", "edges")
MOST_TRIPLES = 400
"""Clarabel solves this in a fraction of a second."""
CLARABEL: dict[str, Any] = {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12, "max_threads": 1}
TOL_OBJECTIVE = 1e-8
TOL_OCCUPANCY = 1e-6
TOL_CERTIFICATE = 1e-9
MOST_LISTED = 20
FILE = "agreement.json"


@dataclass(frozen=True)
class Settings:
    """Which instances."""

    count: int = 500
    first: int = 0


@dataclass(frozen=True)
class Comparison:
    """Both answers to one problem."""

    seed: int
    boxes: str
    constraints: int
    status: str
    """What Clarabel says of its answer"""
    objective_distance: float | None
    """|D - D'|; None if Clarabel has no answer"""
    occupancy_distance: float | None
    certificate: float
    """The worst residual of our answer"""
    complaint: str
    """What is wrong; empty if nothing is"""

    @property
    def is_judged_by_both(self) -> bool:
        return self.status == "optimal"


@dataclass(frozen=True)
class Row:
    """The figures of one kind of boxes."""

    boxes: str
    instances: int
    agree: int
    certificate_decides: int
    """Clarabel did not reach its tolerances, and our certificate is within its own"""
    wrong: int
    objective_distance: float | None
    """The worst where Clarabel is optimal, as the next one"""
    occupancy_distance: float | None
    certificate: float


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
    # A base that prefers what is expensive, so that most constraints are active.
    log_base += 2.0 * costs.sum(axis=0)[layout.row_of_triple]
    return boxes, ProjectionProblem(layout, log_base, lower, upper, costs, thresholds)


def _some_transitions(layout: Layout, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """From the lower bounds as far towards the upper ones as makes each row sum to 1."""
    starts, row = layout.row_start[:-1], layout.row_of_triple
    room = np.add.reduceat(upper - lower, starts)
    missing = np.maximum(1.0 - np.add.reduceat(lower, starts), 0.0)
    share = np.divide(missing, room, out=np.zeros_like(room), where=room > 0.0)
    p = lower + share[row] * (upper - lower)
    return p / np.add.reduceat(p, starts)[row]


def run(settings: Settings) -> list[Comparison]:
    """Every instance, ordered by seed."""
    comparisons = []
    with terminal.progress("bench agree", settings.count, forecast=True) as advance:
        for seed in range(settings.first, settings.first + settings.count):
            comparisons.append(compare(seed))
            advance(comparisons[-1].boxes)
    return comparisons


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
    """Hold our answer against the other one, or against its certificate where the other one is no judge."""
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
    constraints = problem.num_constraints
    return Comparison(seed, boxes, constraints, theirs.status, objective, occupancy_distance, certificate, complaint)


def summary(comparisons: Sequence[Comparison]) -> list[Row]:
    """One row per kind of boxes."""
    groups = [(boxes, [one for one in comparisons if one.boxes == boxes]) for boxes in BOXES]
    return [_row(boxes, group) for boxes, group in groups if group]


def _row(boxes: str, group: Sequence[Comparison]) -> Row:
    both = [one for one in group if one.is_judged_by_both]
    wrong = sum(bool(one.complaint) for one in group)
    agree = sum(not one.complaint for one in both)
    return Row(
        boxes,
        len(group),
        agree,
        len(group) - agree - wrong,
        wrong,
        max((one.objective_distance for one in both if one.objective_distance is not None), default=None),
        max((one.occupancy_distance for one in both if one.occupancy_distance is not None), default=None),
        max(one.certificate for one in group),
    )


def offenders(comparisons: Sequence[Comparison]) -> list[Comparison]:
    return [one for one in comparisons if one.complaint]


def as_data(settings: Settings, comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """The report as JSON can hold it."""
    data = manifest.report("agreement", asdict(settings), [asdict(row) for row in summary(comparisons)])
    data["offenders"] = [asdict(one) for one in offenders(comparisons)]
    return data


def write(folder: Path, data: dict[str, Any]) -> Path:
    return manifest.write(folder, FILE, manifest.as_json(data))


def show(comparisons: Sequence[Comparison]) -> None:
    """A table by kind of boxes, then what is wrong and how to repeat it."""
    out = output.Screen()
    columns = ["boxes", "instances", "agree", "certificate decides", "wrong", "objective", "occupancy", "certificate"]
    shown = output.Table(f"{len(comparisons)} projections beside cvxpy + Clarabel", columns)
    for row in summary(comparisons):
        counts = [row.instances, row.agree, row.certificate_decides, row.wrong]
        distances = [row.objective_distance, row.occupancy_distance, row.certificate]
        shown.add_row(row.boxes, *map(str, counts), *("-" if d is None else f"{d:.0e}" for d in distances))
    out.table(shown)
    out.line("objective and occupancy: the largest distance where Clarabel reached its own tolerances of 1e-12.")
    wrong = offenders(comparisons)
    for one in wrong[:MOST_LISTED]:
        repeat = f"hedgerow bench agree --first {one.seed} --count 1"
        out.line(f"seed {one.seed} ({one.boxes}): {one.complaint}; repeat with: {repeat}")
    out.line(f"{len(wrong)} wrong" if wrong else "no disagreement")
