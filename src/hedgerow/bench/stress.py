"""`hedgerow bench stress`: thousands of hard projections, each answer held against a truth that it does not know.

The generator knows the slack of each problem: the least violation of its constraints is -slack, by a linear program.

    slack < 0    must end INFEASIBLE, with theta in the simplex such that |F(theta) + slack| <= 1e-8, where
                 F(theta) = min { theta^T (C q - alpha) : q within the boxes } > 0 is the proof
    slack >= 0   must end SOLVED, with an independent certificate of at most 1e-9

The verdict on an answer is a sentence of what is wrong with it, empty if nothing is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from hedgerow import output
from hedgerow.bench import manifest, terminal
from hedgerow.bench.hard_problems import HardProblem, hard_problem
from hedgerow.bench.timing import duration
from hedgerow.projection.certificate import certify, proves_infeasible
from hedgerow.projection.result import ProjectionResult, ProjectionStatus
from hedgerow.projection.solve import project

TOL_CERTIFICATE = 1e-9
TOL_PROOF = 1e-8
MOST_LISTED = 20
"""Offenders printed; the JSON has all."""
FAMILIES = (
    *(f"{boxes}, m = 0" for boxes in ("trivial", "wide", "narrow", "points", "mixed", "edges")),
    "feasible",
    "tight",
    "infeasible",
)
FILE = "stress.json"


@dataclass(frozen=True)
class Settings:
    """Which instances, and how many processes share them."""

    count: int = 10_000
    first: int = 0
    processes: int = 2

    @property
    def seeds(self) -> range:
        return range(self.first, self.first + self.count)


@dataclass(frozen=True)
class Trial:
    """One instance and what became of it."""

    seed: int
    family: str
    status: str
    """Of the projection, or the name of the exception that it raised"""
    certificate: float | None
    """The worst residual of a solution, or the distance of a proof from the truth; None without an answer"""
    iterations: int
    seconds: float
    wrong_verdict: bool
    """Infeasible problems called solved, and the other way round"""
    complaint: str
    """What is wrong; empty if nothing is"""


@dataclass(frozen=True)
class Row:
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


def run(settings: Settings) -> list[Trial]:
    """Every instance, ordered by seed."""
    try_seed(settings.first)  # compile or load the kernels before the clock counts and before processes start
    trials = []
    with terminal.progress("bench stress", settings.count, forecast=True) as advance:
        for trial in _trials(settings.seeds, settings.processes):
            trials.append(trial)
            advance(trial.family)
    return sorted(trials, key=lambda trial: trial.seed)


def _trials(seeds: Sequence[int], processes: int) -> Iterable[Trial]:
    """In any order: one slow instance holds up nobody."""
    if processes == 1:
        return map(try_seed, seeds)
    return _parallel_trials(seeds, processes)


def _parallel_trials(seeds: Sequence[int], processes: int) -> Iterator[Trial]:
    from joblib import Parallel, delayed

    yield from Parallel(n_jobs=processes, return_as="generator_unordered")(delayed(try_seed)(seed) for seed in seeds)


def try_seed(seed: int) -> Trial:
    """Make, solve and judge one instance. An exception is an answer too, and a wrong one."""
    try:
        hard = hard_problem(seed)
    except Exception as error:  # one bad instance must not end a run of thousands
        return _raised(seed, "not generated", error, 0.0)
    start = perf_counter()
    try:
        result = project(hard.problem)
    except Exception as error:
        return _raised(seed, hard.family, error, perf_counter() - start)
    seconds = perf_counter() - start
    return judged(seed, hard, result, seconds)


def _raised(seed: int, family: str, error: Exception, seconds: float) -> Trial:
    name = type(error).__name__
    return Trial(seed, family, name, None, 0, seconds, False, f"raised {name}: {error}")


def judged(seed: int, hard: HardProblem, result: ProjectionResult, seconds: float) -> Trial:
    """Hold a result against the truth."""
    is_feasible = hard.slack >= 0.0
    expected = ProjectionStatus.SOLVED if is_feasible else ProjectionStatus.INFEASIBLE
    certificate, complaint = None, ""
    if result.status is not expected:
        complaint = f"ended {result.status.name}, but its slack is {hard.slack:.3g}"
    else:
        certificate = _residual(hard, result)
        limit = TOL_CERTIFICATE if is_feasible else TOL_PROOF
        if not certificate <= limit:  # also if it is NaN
            what = "certificate" if is_feasible else "proof, which is off by"
            complaint = f"{what} {certificate:.2e} above {limit:.0e}"
            certificate = certificate if np.isfinite(certificate) else None
    wrong_verdict = bool(complaint) and result.status in _OPPOSITE[expected]
    return Trial(
        seed, hard.family, result.status.name, certificate, int(result.iterations), seconds, wrong_verdict, complaint
    )


_OPPOSITE = {
    ProjectionStatus.SOLVED: (ProjectionStatus.INFEASIBLE,),
    ProjectionStatus.INFEASIBLE: (ProjectionStatus.SOLVED,),
}


def _residual(hard: HardProblem, result: ProjectionResult) -> float:
    if hard.slack >= 0.0:
        return certify(hard.problem, result).worst
    if abs(float(np.sum(result.theta)) - 1.0) > TOL_PROOF:
        return np.inf  # any positive value could be had by scaling
    return abs(proves_infeasible(hard.problem, result.theta) + hard.slack)


def summary(trials: Sequence[Trial]) -> list[Row]:
    """One row per family that occurs, in the order of `FAMILIES`."""
    names = dict.fromkeys((*FAMILIES, *(trial.family for trial in trials)))
    groups = [(name, [trial for trial in trials if trial.family == name]) for name in names]
    return [_row(name, group) for name, group in groups if group]


def _row(family: str, trials: Sequence[Trial]) -> Row:
    iterations = np.array([trial.iterations for trial in trials])
    seconds = np.array([trial.seconds for trial in trials])
    certificates = [trial.certificate for trial in trials if trial.certificate is not None]
    return Row(
        family,
        len(trials),
        solved=sum(trial.status == ProjectionStatus.SOLVED.name for trial in trials),
        infeasible=sum(trial.status == ProjectionStatus.INFEASIBLE.name for trial in trials),
        wrong_verdicts=sum(trial.wrong_verdict for trial in trials),
        failures=sum(bool(trial.complaint) and not trial.wrong_verdict for trial in trials),
        worst_certificate=max(certificates, default=None),
        median_iterations=float(np.median(iterations)),
        p99_iterations=float(np.quantile(iterations, 0.99)),
        max_iterations=int(iterations.max()),
        median_seconds=float(np.median(seconds)),
        max_seconds=float(seconds.max()),
    )


def offenders(trials: Sequence[Trial]) -> list[Trial]:
    return [trial for trial in trials if trial.complaint]


def as_data(settings: Settings, trials: Sequence[Trial]) -> dict[str, Any]:
    """The report as JSON can hold it."""
    data = manifest.report("stress", asdict(settings), [asdict(row) for row in summary(trials)])
    data["offenders"] = [asdict(trial) for trial in offenders(trials)]
    return data


def write(folder: Path, data: dict[str, Any]) -> Path:
    return manifest.write(folder, FILE, manifest.as_json(data))


def show(trials: Sequence[Trial]) -> None:
    """A table by family, then what is wrong and how to repeat it."""
    out = output.Screen()
    columns = ["family", "instances", "solved", "infeasible", "wrong", "failures", "certificate"]
    columns += ["steps", "99%", "max", "time", "max"]
    shown = output.Table(f"{len(trials)} hard projections", columns)
    for row in summary(trials):
        shown.add_row(*_cells(row))
    out.table(shown)
    wrong = offenders(trials)
    for trial in wrong[:MOST_LISTED]:
        repeat = f"hedgerow bench stress --first {trial.seed} --count 1"
        out.line(f"seed {trial.seed} ({trial.family}): {trial.complaint}; repeat with: {repeat}")
    if len(wrong) > MOST_LISTED:
        out.line(f"and {len(wrong) - MOST_LISTED} more; --json lists them all")
    out.line(f"{len(wrong)} wrong" if wrong else "every verdict right, every certificate within its tolerance")


def _cells(row: Row) -> list[str]:
    counts = [row.instances, row.solved, row.infeasible, row.wrong_verdicts, row.failures]
    certificate = "-" if row.worst_certificate is None else f"{row.worst_certificate:.0e}"
    steps = [f"{row.median_iterations:.0f}", f"{row.p99_iterations:.0f}", str(row.max_iterations)]
    times = [duration(row.median_seconds), duration(row.max_seconds)]
    return [row.family, *map(str, counts), certificate, *steps, *times]
