"""`python -m bench stress`: thousands of hard projections; each answer is compared with a truth that it does not know.

The generator knows the slack of each problem: the least violation of its constraints is -slack, by a linear program.

    slack < 0    must end INFEASIBLE, with theta in the simplex such that |F(theta) + slack| <= 1e-8 (1e-7), where
                 F(theta) = min { theta^T (C q - alpha) : q within the boxes } > 0 is the proof
    slack >= 0   must end SOLVED, with an independent certificate of at most 1e-9

`python -m bench extreme` does the same with nearly parallel constraints and large worlds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import process_time

import numpy as np

from bench.benchmark import option
from bench.extreme_problems import FAMILIES, extreme_problem
from bench.hard_problems import BOXES, HardProblem, hard_problem
from bench.projection_reference import proves_infeasible
from bench.timing import duration
from bench.trials import TOL_CERTIFICATE, Trial, Trials, worst_certificate
from hedgerow.display.table import Table
from hedgerow.projection.certificate import certify
from hedgerow.projection.problem import ProjectionResult, ProjectionStatus
from hedgerow.projection.solve import project

TOL_SUM = 1e-8
"""By how much the weights of a proof may miss the sum 1"""


@dataclass(frozen=True)
class StressTrial(Trial):
    """A hard problem and its answer.

    The status is that of the projection, or the name of the exception that it raised; the certificate is the worst
    residual of a solution, or the distance of a proof from the truth.
    """

    iterations: int
    seconds: float
    wrong_verdict: bool
    """Infeasible problems called solved, and the other way round"""


@dataclass(frozen=True)
class FamilyRow:
    """The figures of a family; times in seconds."""

    family: str
    instances: int
    solved: int
    infeasible: int
    wrong_verdicts: int
    failures: int
    """Everything else that is wrong: no answer, an exception, a certificate above its tolerance"""
    worst_certificate: float | None
    median_iterations: float
    p99_iterations: float
    max_iterations: int
    median_seconds: float
    max_seconds: float


@dataclass(frozen=True)
class Stress(Trials[StressTrial]):
    """Hard projections against a known truth; ends with 1 if an answer is wrong."""

    name, json_file = "stress", "stress.json"
    families = (*(f"{boxes}, m = 0" for boxes in BOXES), "feasible", "tight", "infeasible")
    praise = "every verdict right, every certificate within its tolerance"
    few = 500

    count: int = option(10_000, "how many problems")
    processes: int = option(2, "processes that share the problems")

    @property
    def judge(self) -> Callable[[int], StressTrial]:
        return try_seed

    def row(self, family: str, trials: Sequence[StressTrial]) -> FamilyRow:
        iterations = np.array([trial.iterations for trial in trials])
        seconds = np.array([trial.seconds for trial in trials])
        return FamilyRow(
            family,
            len(trials),
            solved=sum(trial.status == ProjectionStatus.SOLVED.name for trial in trials),
            infeasible=sum(trial.status == ProjectionStatus.INFEASIBLE.name for trial in trials),
            wrong_verdicts=sum(trial.wrong_verdict for trial in trials),
            failures=sum(bool(trial.complaint) and not trial.wrong_verdict for trial in trials),
            worst_certificate=worst_certificate(trials),
            median_iterations=float(np.median(iterations)),
            p99_iterations=float(np.quantile(iterations, 0.99)),
            max_iterations=int(iterations.max()),
            median_seconds=float(np.median(seconds)),
            max_seconds=float(seconds.max()),
        )

    def table(self, trials: Sequence[StressTrial]) -> Table:
        columns = ["family", "instances", "solved", "infeasible", "wrong", "failures", "certificate"]
        columns += ["steps", "99%", "max", "time", "max"]
        shown = Table(f"{len(trials)} hard projections", columns)
        for row in self.figures(trials):
            counts = [row.instances, row.solved, row.infeasible, row.wrong_verdicts, row.failures]
            certificate = "-" if row.worst_certificate is None else f"{row.worst_certificate:.0e}"
            steps = [f"{row.median_iterations:.0f}", f"{row.p99_iterations:.0f}", str(row.max_iterations)]
            times = [duration(row.median_seconds), duration(row.max_seconds)]
            shown.add_row(row.family, *map(str, counts), certificate, *steps, *times)
        return shown


@dataclass(frozen=True)
class Extreme(Stress):
    """Projections with up to 12 nearly parallel constraints, up to 10^5 triples; ends with 1 if an answer is wrong."""

    name, json_file = "extreme", "extreme.json"
    families = FAMILIES
    few = 100

    count: int = option(20_000, "how many problems")

    @property
    def judge(self) -> Callable[[int], StressTrial]:
        return try_extreme_seed


def try_seed(seed: int) -> StressTrial:
    """A hard problem, made, solved and judged."""
    return tried(seed, hard_problem)


def try_extreme_seed(seed: int) -> StressTrial:
    """An extreme problem, made, solved and judged."""
    return tried(seed, extreme_problem)


def tried(seed: int, make: Callable[[int], HardProblem]) -> StressTrial:
    """Make, solve and judge one instance. An exception is an answer too, and a wrong one."""
    try:
        hard = make(seed)
    except Exception as error:  # one bad instance must not end a run of thousands
        return _raised(seed, "not generated", error, 0.0)
    start = process_time()
    try:
        result = project(hard.problem)
    except Exception as error:
        return _raised(seed, hard.family, error, process_time() - start)
    seconds = process_time() - start
    return judged(seed, hard, result, seconds)


def _raised(seed: int, family: str, error: Exception, seconds: float) -> StressTrial:
    name = type(error).__name__
    return StressTrial(seed, family, name, None, f"raised {name}: {error}", 0, seconds, False)


def judged(seed: int, hard: HardProblem, result: ProjectionResult, seconds: float) -> StressTrial:
    """Compare a result with the truth."""
    is_feasible = hard.slack >= 0.0
    expected = ProjectionStatus.SOLVED if is_feasible else ProjectionStatus.INFEASIBLE
    certificate, complaint = None, ""
    if result.status is not expected:
        complaint = f"ended {result.status.name}, but its slack is {hard.slack:.3g}"
    else:
        certificate = _residual(hard, result)
        limit = TOL_CERTIFICATE if is_feasible else hard.known_to
        if not certificate <= limit:  # also if it is NaN
            what = "certificate" if is_feasible else "proof, which is off by"
            complaint = f"{what} {certificate:.2e} above {limit:.0e}"
            certificate = certificate if np.isfinite(certificate) else None
    wrong_verdict = bool(complaint) and result.status in _OPPOSITE[expected]
    told = (result.status.name, certificate, complaint)
    return StressTrial(seed, hard.family, *told, int(result.iterations), seconds, wrong_verdict)


_OPPOSITE = {
    ProjectionStatus.SOLVED: (ProjectionStatus.INFEASIBLE,),
    ProjectionStatus.INFEASIBLE: (ProjectionStatus.SOLVED,),
}


def _residual(hard: HardProblem, result: ProjectionResult) -> float:
    if hard.slack >= 0.0:
        return certify(hard.problem, result).worst
    if abs(float(np.sum(result.theta)) - 1.0) > TOL_SUM:
        return np.inf  # any positive value could be had by scaling
    return abs(proves_infeasible(hard.problem, result.theta) + hard.slack)
