"""Constrained plans in boxes: equal to the extended linear programs of HiGHS, and proved by numbers of their own."""

from __future__ import annotations

from math import log

import naive_boxes
import numpy as np
import plan_cases
import pytest
from plan_cases import PlanCase, random_plan

from hedgerow import worlds
from hedgerow.errors import CertificateError, InvalidInput
from hedgerow.model.kernel_layout import index_of
from hedgerow.model.layout import Layout
from hedgerow.model.occupancy import policy_of_masses
from hedgerow.planning import planner as box_plans
from hedgerow.planning.decomposition import (
    INFEASIBLE,
    SOLVED,
    UNSOLVED,
    PlanProblem,
    PlanWorkspace,
    make_plan_workspace,
)
from hedgerow.planning.lp import BoxSolution, NoSolution, box_program, least_loss_in_boxes, least_violation_in_boxes
from hedgerow.planning.planner import BoxPlan, BoxPlanner, constrained_plan, plan_in_boxes, policy_of_row_masses

TOL_VALUE, TOL_VIOLATION, TOL_PROOF = 1e-9, 1e-8, 1e-9
CHUNK = 25


def solved(case: PlanCase) -> tuple[int, PlanWorkspace]:
    layout, *arrays = case
    workspace = make_plan_workspace(layout, len(case.thresholds))
    return plan_in_boxes(index_of(layout), PlanProblem(*(array.copy() for array in arrays)), workspace), workspace


def by_highs(case: PlanCase) -> tuple[BoxSolution | NoSolution, BoxSolution]:
    program = box_program(case.layout, case.lower, case.upper)
    return (
        least_loss_in_boxes(program, case.loss, case.costs, case.thresholds),
        least_violation_in_boxes(program, case.costs, case.thresholds),
    )


def check_proof(case: PlanCase, status: int, workspace: PlanWorkspace) -> None:
    """What the numbers of an answer prove, without its code."""
    theta, figures, w = workspace.multipliers, workspace.figures, workspace.masses
    reached = w @ case.costs
    assert figures.value == pytest.approx(float(case.loss @ w), rel=1e-12, abs=1e-12)
    assert np.all(theta >= 0.0)
    assert np.all(w >= 0.0)
    share = 1.0 if status == SOLVED else 0.0
    bound = plan_cases.least_weight(case, share * case.loss + case.costs @ theta) - float(theta @ case.thresholds)
    size = case.size * (1.0 + float(theta.sum())) + abs(figures.value)
    assert figures.bound == pytest.approx(bound, abs=1e-12 * size)
    missed = float(np.max(reached - case.thresholds, initial=0.0))
    if status == SOLVED:
        assert figures.violation == 0.0
        assert missed <= 1e-10 * case.size
        assert abs(figures.value - bound) <= TOL_PROOF * (1.0 + abs(figures.value))
    else:
        assert theta.sum() == pytest.approx(1.0, abs=1e-12)
        assert figures.violation == pytest.approx(missed, abs=1e-12 * case.size)
        assert 0.0 < bound <= missed + 1e-12 * case.size
        assert missed - bound <= TOL_PROOF * case.size


@pytest.mark.sampled(10)
@pytest.mark.parametrize("chunk", range(20))
def test_plans_equal_those_of_highs(chunk: int) -> None:
    """500 boxes; about a third of them are infeasible."""
    infeasible = 0
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        case = random_plan(seed)
        status, workspace = solved(case)
        best, nearest = by_highs(case)
        if nearest.value <= TOL_VIOLATION * case.size:
            assert status == SOLVED, seed
            if isinstance(best, BoxSolution):  # else HiGHS failed: its other program says that there is a solution
                assert abs(workspace.figures.value - best.value) <= TOL_VALUE * (1.0 + abs(best.value)), seed
        else:
            infeasible += 1
            assert status == INFEASIBLE, seed
            assert abs(workspace.figures.violation - nearest.value) <= TOL_VIOLATION * case.size, seed
        assert workspace.tallies.status == status
        check_proof(case, status, workspace)
    assert 2 <= infeasible <= CHUNK - 5


@pytest.mark.parametrize("seed", range(24))
def test_the_masses_are_those_of_transitions_in_the_boxes(seed: int) -> None:
    case = random_plan(seed, m=(1, 2, 3, 25)[seed % 4])
    _, workspace = solved(case)
    assert plan_cases.lies_in_the_boxes(case, workspace.masses)
    wrong = workspace.masses.copy()
    wrong[0] += 0.01
    assert not plan_cases.lies_in_the_boxes(case, wrong)


@pytest.mark.parametrize("seed", range(40))
def test_thresholds_that_the_costs_just_reach(seed: int) -> None:
    """Feasible by nothing, by a little and infeasible by a little: no answer claims too much."""
    case = random_plan(seed, m=1 + seed % 4)
    case = case._replace(thresholds=case.thresholds - case.size)  # infeasible
    nearest = least_violation_in_boxes(box_program(*case[:3]), case.costs, case.thresholds)
    for more in (0.0, 1e-13, 1e-11, 1e-9, -1e-13, -1e-11, -1e-9, 1e-6):
        touching = case._replace(thresholds=case.thresholds + nearest.value + more * case.size)
        status, workspace = solved(touching)
        if status != UNSOLVED:
            check_proof(touching, status, workspace)
        assert abs(more) <= 1e-11 or (status == SOLVED) == (more > 0)
        plan = constrained_plan(*touching)
        assert plan.violation <= max(-2.0 * more, 1e-9) * case.size


@pytest.mark.parametrize(
    ("name", "kind", "visits", "value"),
    [
        ("dope-factored", "OptCMDP", 1e5, -2.0010038070605),
        ("dope-factored", "DOPE", 1e5, -2.1996267408530),
        ("dope-media", "OptCMDP", 1e5, 6.3839486265463),
        ("dope-media", "DOPE", 1e5, 1.3333642196240),
        ("dope-factored", "OptCMDP", 1e3, -2.108595),
        ("dope-factored", "DOPE", 1e4, -3.998523),
        ("dope-media", "OptCMDP", 1e7, 6.724064),
        ("dope-media", "DOPE", 1e7, 6.308969),
        ("dope-factored", "DOPE", 1e3, None),
        ("dope-media", "DOPE", 1e4, None),
    ],
)
def test_values_that_another_program_computed(name: str, kind: str, visits: float, value: float | None) -> None:
    """P_hat = P, so many visits of every pair, 1e5 episodes, delta = .01; costs and losses known; None: infeasible."""
    world = worlds.make(name)
    layout, p, steps = world.cmdp.layout, world.cmdp.transitions, world.cmdp.layout.steps
    states, A = layout.layer_sizes[1], layout.num_actions  # of the MDP that was unrolled
    iota = log(6 * states * A * steps * 1e5 / 0.01)
    radius = 2.0 * np.sqrt(p * (1.0 - p) * iota / visits) + 14.0 * iota / (3.0 * visits)
    single = (np.diff(layout.row_start) == 1)[layout.row_of_triple]  # the last layer leads to the end
    lower = np.where(single, 1.0, np.clip(p - radius, 0.0, 1.0))
    upper = np.where(single, 1.0, np.clip(p + radius, 0.0, 1.0))
    loss, costs = world.loss, world.cmdp.mean_costs.T
    if kind == "DOPE":
        budget = {"dope-factored": 0.6, "dope-media": 1.0}[name]  # of the safe policy
        room = world.cmdp.thresholds[0] - budget
        of_layer = np.add.reduceat(radius, layout.row_start[:-1])[A : A * (1 + states)]  # the same in every layer
        bonus = np.concatenate([of_layer[: A * size] for size in layout.layer_sizes[:-1]])
        loss, costs = loss - steps**2 / room * bonus, costs + steps * bonus[:, None]
    plan = constrained_plan(layout, lower, upper, loss, costs, world.cmdp.thresholds)
    assert plan.solver == "sweeps"
    if value is None:
        assert not plan.feasible
        return
    # The source of dope-factored counts rewards: its numbers are of min -reward.
    found = plan.value if world.unit == "loss" else plan.value - steps
    assert found == pytest.approx(value, abs=1e-6 if visits != 1e5 else 1e-12)
    assert plan.sweeps <= 7
    assert abs(plan.gap) <= 1e-13


def test_the_best_of_all_vertices_in_a_tiny_world() -> None:
    rng, layout = np.random.default_rng(3), Layout((1, 2, 1), 2)
    lower, upper = naive_boxes.boxes_of(rng, layout)
    loss = rng.normal(size=layout.num_rows)
    plan = constrained_plan(layout, lower, upper, loss, np.zeros((layout.num_rows, 0)), [])
    assert plan.value == pytest.approx(naive_boxes.least_cost_by_enumeration(layout, lower, upper, loss), abs=1e-13)
    assert plan.sweeps == 1


def test_two_actions_by_hand() -> None:
    """Loss 0 and cost .75 against loss 1 and cost .25: at the threshold .5 each half of the time; below .25 none."""
    two = Layout((1, 1), 2), [1.0, 1.0], [1.0, 1.0], [0.0, 1.0]
    plan = constrained_plan(*two, [[0.75], [0.25]], [0.5])
    assert (plan.value, plan.masses.tolist(), plan.multipliers.tolist()) == (0.5, [0.5, 0.5], [2.0])
    assert plan.policy.tolist() == [0.5, 0.5]
    assert plan.feasible
    assert plan.gap == 0.0
    none = constrained_plan(*two, [[0.75], [0.25]], [0.125])
    assert (none.violation, none.masses.tolist(), none.multipliers.tolist()) == (0.125, [0.0, 1.0], [1.0])
    assert not none.feasible
    assert none.gap == 0.0
    twice = constrained_plan(*two, [[0.75, 0.75], [0.25, 0.25]], [0.5, 0.5])
    assert twice.value == pytest.approx(0.5, abs=1e-15)
    contrary = constrained_plan(*two, [[1.0, 0.0], [0.0, 1.0]], [0.25, 0.25])  # needs the half of both
    assert contrary.violation == pytest.approx(0.25, abs=1e-15)
    np.testing.assert_allclose(contrary.multipliers, [0.5, 0.5], atol=1e-15)
    np.testing.assert_allclose(contrary.masses, [0.5, 0.5], atol=1e-15)


def test_ties_go_to_the_lowest_action() -> None:
    layout = Layout((1, 2, 1), 3)
    lower, upper = np.zeros(layout.num_triples), np.ones(layout.num_triples)
    lower[6:] = 1.0
    plan = constrained_plan(layout, lower, upper, np.zeros(9), np.zeros((9, 0)), [])
    assert plan.masses.tolist() == [1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("seed", range(12))
def test_the_same_problem_has_the_same_bits_whatever_came_before(seed: int) -> None:
    case = random_plan(seed, m=(0, 1, 3, 25)[seed % 4])
    layout, *arrays = case
    index, used = index_of(layout), make_plan_workspace(layout, len(case.thresholds))
    other = PlanProblem(*(array.copy() for array in arrays)).replace(loss=-case.loss)
    plan_in_boxes(index, other, used)
    again = PlanProblem(*(array.copy() for array in arrays))
    status, fresh = solved(case)
    assert plan_in_boxes(index, again, used) == status
    for name in ("masses", "multipliers"):
        np.testing.assert_array_equal(getattr(used, name), getattr(fresh, name))
    np.testing.assert_array_equal(used.figures.values, fresh.figures.values)
    np.testing.assert_array_equal(used.tallies.values, fresh.tallies.values)
    for given, kept in zip(arrays, again.as_dict().values(), strict=True):
        np.testing.assert_array_equal(given, kept)


def test_the_policy_of_masses() -> None:
    case = random_plan(7, m=2)
    masses = solved(case)[1].masses
    policy = np.full(case.layout.num_rows, np.nan)
    policy_of_row_masses(index_of(case.layout), masses, policy)
    np.testing.assert_allclose(policy, policy_of_masses(case.layout, masses), atol=1e-15)
    policy_of_row_masses(index_of(case.layout), np.zeros(case.layout.num_rows), policy)
    np.testing.assert_array_equal(policy, 1.0 / case.layout.num_actions)


def unsolved(index: object, problem: PlanProblem, workspace: PlanWorkspace) -> int:
    workspace.masses[:], workspace.multipliers[:] = np.nan, np.nan
    return UNSOLVED


@pytest.mark.parametrize("seed", range(8))
def test_where_the_proof_does_not_close_highs_answers_and_says_so(seed: int, monkeypatch) -> None:
    case = random_plan(seed, m=1 + seed % 3)
    own = constrained_plan(*case)
    monkeypatch.setattr(box_plans, "plan_in_boxes", unsolved)
    other = constrained_plan(*case)
    assert (own.solver, other.solver) == ("sweeps", "HiGHS")
    assert other.feasible == own.feasible
    assert other.violation == pytest.approx(own.violation, abs=1e-8 * case.size)
    if own.feasible:
        assert other.value == pytest.approx(own.value, rel=1e-8, abs=1e-8)
    assert abs(other.gap) <= 1e-7 * (1.0 + abs(own.value)) * case.size


def test_programs_that_contradict_each_other_by_rounding(monkeypatch) -> None:
    """HiGHS finds no solution, then no violation: thresholds are raised a little; if that does not help, it is told."""
    two = Layout((1, 1), 2), [1.0, 1.0], [1.0, 1.0], [0.0, 1.0], [[0.75], [0.25]], [0.5]
    asked: list[np.ndarray] = []

    def fails_once(program: object, loss: object, costs: object, thresholds: np.ndarray) -> BoxSolution | NoSolution:
        asked.append(thresholds)
        return NoSolution("no") if len(asked) == 1 else BoxSolution(np.array([0.5, 0.5]), np.array([2.0]), 0.5)

    monkeypatch.setattr(box_plans, "plan_in_boxes", unsolved)
    monkeypatch.setattr(box_plans, "least_loss_in_boxes", fails_once)
    plan = constrained_plan(*two)
    assert plan.feasible
    assert plan.value == 0.5
    assert asked[1][0] == pytest.approx(0.5, abs=1e-8)
    monkeypatch.setattr(box_plans, "least_loss_in_boxes", lambda *arguments: NoSolution("no"))
    with pytest.raises(CertificateError, match="could not solve this feasible linear program"):
        constrained_plan(*two)


def test_a_planner_keeps_nothing_of_the_last_plan() -> None:
    case = random_plan(4, m=2)
    planner = BoxPlanner(case.layout, 2)
    first = planner.plan(*case[1:])
    kept = first.masses.copy()
    planner.plan(case.lower, case.upper, -case.loss, case.costs, case.thresholds)
    np.testing.assert_array_equal(first.masses, kept)
    assert len(repr(first)) <= 200
    assert repr(first).startswith("BoxPlan(")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lower": np.array([0.5, 1.5])}, "the lower bound is 1.5"),
        ({"lower": np.array([1.0, 1.0]), "upper": np.array([1.0, 0.5])}, "exceeds the upper bound"),
        ({"lower": np.array([0.0, 1.0]), "upper": np.array([0.5, 1.0])}, "holds no distribution"),
        ({"loss": np.array([np.nan, 0.0])}, "the loss is nan"),
        ({"loss": np.zeros(3)}, "the loss has shape"),
        ({"costs": np.zeros((2, 2))}, "the cost has shape"),
        ({"thresholds": np.array([np.inf])}, "the threshold is inf"),
        ({"layout": "layout"}, "must be a hedgerow Layout"),
    ],
)
def test_wrong_arguments(change: dict, message: str) -> None:
    case = PlanCase(Layout((1, 1), 2), np.ones(2), np.ones(2), np.zeros(2), np.zeros((2, 1)), np.ones(1))
    assert isinstance(constrained_plan(*case), BoxPlan)
    with pytest.raises(InvalidInput, match=message):
        constrained_plan(*case._replace(**change))
