"""Every contender solves the problem that it is given, and the measurement notices when one does not."""

from __future__ import annotations

from contextlib import nullcontext
from functools import cache

import numpy as np
import pytest

from bench import peers
from bench.conic_form import conic_form
from bench.contender import Contender, Target, measure, target
from bench.cvxpy_peers import CvxpyAsWritten, rows_picked
from bench.large_dual import LargeDual
from bench.mirror_steps import SIZES, cold_problem, mirror_step
from bench.ours import Ours
from hedgerow.model.layout import Layout
from hedgerow.projection.problem import ProjectionProblem
from hedgerow.projection.solve import project

SIZE = SIZES[0]
PROBLEMS = (mirror_step, cold_problem)
ACCURACY = {"hedgerow": 1e-9, "hedgerow, project()": 1e-9}
OF_OTHERS = 1e-6
NAMES = [Ours.name, *(peer.name for peer in peers.PEERS)]


@cache
def prepared() -> tuple[dict[str, Contender], dict[str, str]]:
    able, missing = peers.contenders(SIZE.layout, SIZE.constraints, time_limit=10.0)
    return {contender.name: contender for contender in able}, missing


def solved(problem: ProjectionProblem) -> tuple[np.ndarray, Target]:
    return np.exp(project(problem).log_occupancy), target(problem)


@pytest.mark.parametrize("make", PROBLEMS)
@pytest.mark.parametrize("name", NAMES)
def test_contender_agrees(name: str, make: type) -> None:
    able, missing = prepared()
    if name in missing:
        pytest.skip(missing[name])
    for seed in (0, 1):  # the second shows that data is replaced, not kept
        problem = make(SIZE, seed)
        run = able[name].run(problem)
        q, best = solved(problem)
        residual = measure(problem, run.occupancy, best)
        assert residual.worst <= ACCURACY.get(name, OF_OTHERS)
        assert run.seconds > 0.0
        assert run.status
        # A gap of 1e-8 only promises a distance of 1e-4: the divergence is flat around its minimum.
        np.testing.assert_allclose(run.occupancy, q, atol=5e-4 if name not in ACCURACY else 1e-9)


def test_all_contenders_are_there_or_excused() -> None:
    able, missing = prepared()
    assert sorted([*able, *missing]) == sorted(NAMES)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Absent:
        name = "absent solver"

        def __init__(self, layout: Layout, num_constraints: int, time_limit: float) -> None:
            raise ImportError("no such module", name="absent")

    monkeypatch.setattr(peers, "PEERS", (Absent,))
    able, missing = peers.contenders(SIZE.layout, SIZE.constraints, time_limit=1.0)
    assert [contender.name for contender in able] == [Ours.name]
    assert missing == {"absent solver": "not installed (absent)"}


def test_time_limit_is_kept_and_told() -> None:
    run = peers.LBFGSB(SIZE.layout, SIZE.constraints, time_limit=0.0).run(mirror_step(SIZE, 0))
    assert run.status == "time limit"
    assert np.all(np.isfinite(run.occupancy))


@pytest.mark.parametrize("make", PROBLEMS)
def test_measure_notices_every_kind_of_error(make: type) -> None:
    problem = make(SIZE, 2)
    q, best = solved(problem)
    assert measure(problem, q, best).worst <= 1e-9
    assert best.certificate <= 1e-9
    # Too little mass leaves x_0; nothing else is wrong.
    assert measure(problem, 0.999 * q, best).infeasibility == pytest.approx(1e-3, rel=1e-6)
    layout, log_base, lower, upper = problem.layout, problem.log_base, problem.lower, problem.upper
    free = np.exp(project(ProjectionProblem(layout, log_base, lower, upper)).log_occupancy)
    violation = np.max(problem.costs[:, layout.row_of_triple] @ free - problem.thresholds)
    assert measure(problem, free, best).infeasibility == pytest.approx(violation, rel=1e-6)
    for low, high in ((0.0 * lower, upper), (lower, 0.0 * upper + 1.0)):
        looser = project(ProjectionProblem(layout, log_base, low, high, problem.costs, problem.thresholds))
        assert measure(problem, np.exp(looser.log_occupancy), best).infeasibility > 1e-4
    assert np.isnan(measure(problem, np.full_like(q, np.nan), best).worst)
    # A feasible point that is not the projection: the projection of another base onto the same set.
    other = ProjectionProblem(layout, log_base[::-1].copy(), lower, upper, problem.costs, problem.thresholds)
    elsewhere = measure(problem, np.exp(project(other).log_occupancy), best)
    assert elsewhere.infeasibility <= 1e-9
    assert elsewhere.gap > 1e-3


def test_large_dual_is_a_lower_bound_with_the_right_gradient() -> None:
    problem = mirror_step(SIZE, 4)
    dual, rng = LargeDual(problem), np.random.default_rng(0)
    best = target(problem)
    y = 0.1 * np.abs(rng.normal(size=dual.num_variables))
    y[0] = 0.0
    value, gradient = dual.negative(y)
    # g = -sum ln Z_k - theta^T alpha - L + sum base bounds the divergence of every feasible point from below.
    shift = np.exp(problem.log_base).sum() - problem.layout.steps
    assert -value + shift <= best.dual_value
    for j in rng.choice(np.arange(1, len(y)), 20, replace=False):
        step = np.zeros_like(y)
        step[j] = 1e-6
        slope = (dual.negative(y + step)[0] - dual.negative(y - step)[0]) / 2e-6
        assert slope == pytest.approx(gradient[j], abs=1e-8)


@pytest.mark.parametrize("cone_order", ["uqb", "ubq"])
def test_conic_form_holds_the_projection(cone_order: str) -> None:
    problem = mirror_step(SIZE, 5)
    q, best = solved(problem)
    w = np.add.reduceat(q, problem.layout.row_start[:-1])
    u = -q * (np.log(q) - problem.log_base)
    form = conic_form(problem.layout, problem.num_constraints, cone_order)
    matrix = form.matrix.copy()
    matrix.data = form.values(problem)
    z = np.concatenate([q, w, u])
    slack = form.right_side(problem) - matrix @ z
    cones = form.num_equations + form.num_inequalities
    np.testing.assert_allclose(slack[: form.num_equations], 0.0, atol=1e-12)
    assert slack[form.num_equations : cones].min() >= -1e-12
    assert slack[cones - form.num_constraints : cones].max() <= 1e-9  # all constraints are active
    cone = slack[cones:].reshape(-1, 3)
    in_order = cone[:, [cone_order.index(letter) for letter in "uqb"]]
    np.testing.assert_allclose(in_order[:, 1] * np.exp(in_order[:, 0] / in_order[:, 1]), in_order[:, 2], rtol=1e-9)
    assert form.objective() @ z + np.exp(problem.log_base).sum() == pytest.approx(best.dual_value, abs=1e-10)


def test_ours_times_batches_and_counts_its_memory() -> None:
    solver = Ours(SIZE.layout, SIZE.constraints)
    problems = [mirror_step(SIZE, seed) for seed in range(8)]
    seconds, unsolved, steps = solver.time(problems)
    assert unsolved == 0
    assert seconds > 0.0
    assert steps == pytest.approx(np.mean([project(problem).iterations for problem in problems]))
    arrays = [*solver.workspace.as_dict().values(), *solver.buffers]
    assert solver.num_bytes == sum(array.size * array.itemsize for array in arrays)


def test_picked_rows_give_the_program_that_cvxpy_compiles() -> None:
    pytest.importorskip("cvxpy")
    problem, data = mirror_step(SIZE, 0), []
    for context in (nullcontext(), rows_picked()):
        peer = CvxpyAsWritten(SIZE.layout, SIZE.constraints, 10.0)
        peer.fill(problem)
        with context:
            data.append(peer.program.get_problem_data(peer.cp.CLARABEL, solver_opts={})[0])
    plain, picked = data
    assert sorted(plain) == sorted(picked)
    assert (plain["A"] != picked["A"]).nnz == 0
    for name in ("b", "c"):
        np.testing.assert_array_equal(plain[name], picked[name])
