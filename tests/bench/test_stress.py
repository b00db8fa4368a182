"""A slice of the stress run and of the comparison with a general solver, and that wrong answers would be noticed."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from bench_runs import invoke

from bench import agreement, stress
from bench.agreement import Agreement
from bench.extreme_problems import extreme_problem
from bench.hard_problems import BOXES, HardProblem, hard_problem
from bench.projection_reference import ReferenceSolution
from bench.stress import Extreme, Stress
from bench.trials import offenders
from hedgerow.projection.certificate import certify
from hedgerow.projection.problem import ProjectionResult, ProjectionStatus
from hedgerow.projection.solve import project
from nightly import daily

SLICE = Stress(count=100, first=0, processes=2)

# The runs ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("count", daily(100, nightly=1_000))
def test_hard_problems_get_the_right_answer(count: int) -> None:
    some = dataclasses.replace(SLICE, count=count)
    trials = some.run()
    assert offenders(trials) == []
    assert [trial.seed for trial in trials] == list(some.seeds)
    rows = some.figures(trials)
    assert [row.family for row in rows] == list(Stress.families)  # every family occurs
    assert all(row.instances >= count // 100 for row in rows)
    assert sum(row.instances for row in rows) == count
    expected = {row.family: (0, row.instances) if row.family == "infeasible" else (row.instances, 0) for row in rows}
    assert {row.family: (row.solved, row.infeasible) for row in rows} == expected


@pytest.mark.slow
@pytest.mark.parametrize("seed", [74, 171, 267, 403, 557, 567, 574, 600, 690, 731, 752, 814, 12260, 12557, 18039])
def test_nearly_parallel_constraints_get_the_right_answer(seed: int) -> None:
    assert stress.try_extreme_seed(seed).complaint == ""


def test_extreme_problems_are_what_they_are_meant_to_be() -> None:
    made = [extreme_problem(seed) for seed in range(40)]
    assert {hard.problem.num_constraints for hard in made} >= {1, 12}
    assert {hard.slack > 0.0 for hard in made} == {True, False}
    assert {hard.family for hard in made} <= set(Extreme.families)
    closest = [np.abs(hard.problem.costs[1:] - hard.problem.costs[0]).max(axis=1).min(initial=1.0) for hard in made]
    assert min(closest) < 1e-6


@pytest.mark.slow
def test_moderate_problems_agree_with_a_general_solver() -> None:
    comparisons = Agreement(count=20).run()
    assert offenders(comparisons) == []
    assert {one.family for one in comparisons} == set(BOXES)
    assert {one.constraints for one in comparisons} == {0, 1, 2, 3}
    assert sum(one.is_judged_by_both for one in comparisons) >= 12


@pytest.mark.slow
def test_two_processes_find_the_same_as_one() -> None:
    alone, shared = (Stress(count=12, first=40, processes=n).run() for n in (1, 2))
    assert [dataclasses.replace(trial, seconds=0.0) for trial in shared] == [
        dataclasses.replace(trial, seconds=0.0) for trial in alone
    ]


# Wrong answers are noticed -------------------------------------------------------------------------------------------


def example(family: str) -> tuple[int, HardProblem, ProjectionResult]:
    for seed in range(100):
        hard = hard_problem(seed)
        if hard.family == family:
            return seed, hard, project(hard.problem)
    raise AssertionError(f"no {family} problem among the first hundred")


@pytest.mark.parametrize("family", ["feasible", "infeasible"])
def test_the_opposite_verdict_is_wrong(family: str) -> None:
    seed, hard, result = example(family)
    assert stress.judged(seed, hard, result, 0.0).complaint == ""
    opposite = ProjectionStatus.INFEASIBLE if family == "feasible" else ProjectionStatus.SOLVED
    trial = stress.judged(seed, hard, dataclasses.replace(result, status=opposite), 0.0)
    assert trial.wrong_verdict
    assert trial.certificate is None
    assert f"ended {opposite.name}, but its slack is" in trial.complaint


@pytest.mark.parametrize("family", ["feasible", "infeasible"])
def test_no_verdict_is_a_failure(family: str) -> None:
    seed, hard, result = example(family)
    given_up = dataclasses.replace(result, status=ProjectionStatus.NUMERICAL_FAILURE)
    trial = stress.judged(seed, hard, given_up, 0.0)
    assert "NUMERICAL_FAILURE" in trial.complaint
    assert not trial.wrong_verdict


def test_a_solution_slightly_off_is_a_failure() -> None:
    seed, hard, result = example("feasible")
    moved = dataclasses.replace(result, log_occupancy=result.log_occupancy + 1e-8)
    trial = stress.judged(seed, hard, moved, 0.0)
    assert "certificate" in trial.complaint
    assert trial.certificate == certify(hard.problem, moved).worst > 1e-9
    nothing = dataclasses.replace(result, log_occupancy=np.full_like(result.log_occupancy, np.nan))
    trial = stress.judged(seed, hard, nothing, 0.0)
    assert trial.complaint
    assert trial.certificate is None  # JSON has no NaN
    json.dumps(SLICE.data([trial]), allow_nan=False)


def test_a_proof_must_be_the_truth_and_not_scaled() -> None:
    seed, hard, result = example("infeasible")
    for theta in (2.0 * result.theta, 0.0 * result.theta, -result.theta):
        trial = stress.judged(seed, hard, dataclasses.replace(result, theta=theta), 0.0)
        assert "proof" in trial.complaint
    other_truth = dataclasses.replace(hard, slack=hard.slack - 2e-8)
    assert "proof" in stress.judged(seed, other_truth, result, 0.0).complaint


@pytest.mark.parametrize("name", ["hard_problem", "project"])
def test_an_exception_is_counted_and_does_not_end_the_run(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("out of luck")

    monkeypatch.setattr(stress, name, fails)
    trials = Stress(count=2, processes=1).run()
    assert [trial.complaint for trial in trials] == ["raised RuntimeError: out of luck"] * 2
    assert sum(row.failures for row in SLICE.figures(trials)) == 2


def test_disagreement_is_noticed_and_an_inaccurate_judge_is_not_believed() -> None:
    _, problem = agreement.moderate_problem(2)
    result = project(problem)
    q = np.exp(result.log_occupancy)

    def complaint(status: str, their_q: np.ndarray, ours: ProjectionResult = result) -> str:
        theirs = ReferenceSolution(status, np.nan, their_q)
        return agreement.compared(2, "narrow", problem, ours, theirs).complaint

    moved = q.copy()
    moved[0] += 1e-5
    assert complaint("optimal", q) == ""
    assert "differ by" in complaint("optimal", moved)
    assert "differ by" in complaint("optimal", np.full_like(q, np.nan))
    assert complaint("optimal_inaccurate", moved) == ""
    worse = dataclasses.replace(result, log_occupancy=result.log_occupancy + 1e-7)
    assert "certificate" in complaint("optimal_inaccurate", q, worse)
    unsolved = dataclasses.replace(result, status=ProjectionStatus.INFEASIBLE)
    assert "INFEASIBLE" in complaint("optimal", q, unsolved)


# The commands --------------------------------------------------------------------------------------------------------


def test_the_commands_print_and_write(tmp_path: Path) -> None:
    for command, file in (("stress", Stress.json_file), ("agree", Agreement.json_file)):
        arguments = [command, "--first", "3", "--count", "2", "--processes", "1"]
        assert "2 " in invoke(*arguments, "--out", str(tmp_path)).splitlines()[0]
        written = json.loads((tmp_path / file).read_text())
        assert written["settings"]["first"] == 3
        assert written["offenders"] == []
        printed = json.loads(invoke(*arguments, "--json"))
        assert [row["instances"] for row in printed["figures"]] == [row["instances"] for row in written["figures"]]


@pytest.mark.parametrize("command", ["stress", "agree"])
def test_a_wrong_answer_ends_with_1_and_says_how_to_repeat_it(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (stress, agreement):
        monkeypatch.setattr(module, "TOL_CERTIFICATE", -1.0)
    seed = example("feasible")[0]
    shown = invoke(command, "--first", str(seed), "--count", "1", "--processes", "1", code=1)
    assert f"python -m bench {command} --first {seed} --count 1" in " ".join(shown.split())
    assert "1 wrong" in shown
