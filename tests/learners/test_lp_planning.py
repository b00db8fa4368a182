"""The programs of the LP learners: published forms against tables computed elsewhere, and against formulas in numpy."""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np
import pytest
from learner_cases import random_world
from lp_cases import VARIANTS, make_lp, set_counts

import hedgerow as hr
from hedgerow.learners.field.lp import LPLearner
from hedgerow.learners.field.lp_kernels import LPCore
from hedgerow.planning.decomposition import INFEASIBLE, SOLVED
from hedgerow.planning.lp import NoSolution, box_program, least_loss_in_boxes
from hedgerow.planning.planner import plan_in_boxes

EPISODES, DELTA = 100_000, 0.01
IOTA = {"dope-factored": 21.493374, "dope-media": 23.208172}
"""ln(6 S A H K / delta), of the sources: 3 states, 2 actions, 6 steps; and 10, 2, 10."""

# The values of an independent program (HiGHS): every pair visited N times at each step, P_hat = P, costs and losses
# known. Rewards of dope-factored are -loss; None: no solution.
OPT_CMDP = {
    "dope-factored": {1e3: -2.108595, 1e4: -2.010109, 1e5: -2.0010038070605, 1e7: -2.000010},
    "dope-media": {1e3: 2.453302, 1e4: 4.892774, 1e5: 6.3839486265463, 1e7: 6.724064},
}
DOPE = {
    "dope-factored": {1e3: None, 1e4: -3.998523, 1e5: -2.1996267408530, 1e7: -2.001996},
    "dope-media": {1e3: None, 1e4: None, 1e5: 1.3333642196240, 1e7: 6.308969},
}
OPT_PESS = {
    "dope-factored": {1e3: None, 1e4: None, 1e5: -20.055647, 1e7: -3.805565},
    "dope-media": {1e5: None, 1e6: None, 1e7: -10.448616},
}


def entries(table: dict[str, dict[float, float | None]]) -> list[tuple[str, int, float | None]]:
    return [(world, int(n), value) for world, row in table.items() for n, value in row.items()]


def published(world: Any, cls: type[LPLearner], visits: int, loss_radius: float = 0.0, **options: Any) -> LPCore:
    """The core after so many visits, with costs and losses that count as known: no radius, but for a given factor."""
    if cls.inputs.baseline:
        limit = world.baseline_thresholds
        best = hr.offline.optimum(world.cmdp.with_thresholds(limit), world.loss)
        options |= {"baseline": best.policy, "baseline_costs": limit}
    core = cls(world.view(), EPISODES, DELTA, **options).core
    tables = core.rule.tables.replace(cost_radius=0.0, loss_radius=loss_radius)
    core = core.replace(rule=core.rule.replace(tables=tables))
    set_counts(core, world.cmdp, world.loss, visits)
    return core


def check(core: LPCore, world: Any, expected: float | None) -> None:
    code = plan_in_boxes(core.index, core.problem, core.workspace)
    if expected is None:
        assert code == INFEASIBLE
        return
    assert code == SOLVED
    rewards = world.cmdp.layout.steps if world.name == "dope-factored" else 0.0
    assert core.workspace.figures.value - rewards == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(("name", "visits", "expected"), entries(OPT_CMDP))
def test_opt_cmdp_plans_as_published(name: str, visits: int, expected: float | None) -> None:
    world = hr.worlds.make(name)
    core = published(world, hr.field.OptCMDP, visits)
    assert core.sets.rule.box.radii.transition_log == pytest.approx(IOTA[name], abs=1e-6)
    check(core, world, expected)


@pytest.mark.parametrize(("name", "visits", "expected"), entries(DOPE))
def test_dope_plans_as_published(name: str, visits: int, expected: float | None) -> None:
    world = hr.worlds.make(name)
    core, layout, gap = published(world, hr.field.DOPE, visits), world.cmdp.layout, 0.8 * world.cmdp.thresholds[0]
    # Of the source also the last step goes on to one of S states, although nothing follows. Ours leads to the end.
    last, before = layout.rows(layout.steps - 1), layout.rows(layout.steps - 2)
    p = np.array([world.cmdp.transitions[layout.row_start[r] : layout.row_start[r + 1]] for r in _range(before)])
    iota = IOTA[name]
    B = np.sum(2.0 * np.sqrt(p * (1.0 - p) * iota / visits) + 14.0 * iota / (3.0 * visits), axis=1)
    assert np.all(core.problem.costs[last, 0] == world.cmdp.mean_costs[0, last])
    core.problem.costs[last, 0] += layout.steps * B
    core.problem.loss[last] -= layout.steps**2 / gap * B
    check(core, world, expected)


@pytest.mark.parametrize(("name", "visits", "expected"), entries(OPT_PESS))
def test_opt_pess_lp_plans_as_published(name: str, visits: int, expected: float | None) -> None:
    world = hr.worlds.make(name)
    gap = 0.8 * world.cmdp.thresholds[0]
    # With known losses the source drops one radius b of the loss, not those that pay for the pessimism.
    check(published(world, hr.field.OptPessLP, visits, 4.0 * world.cmdp.layout.steps / gap), world, expected)


def _range(rows: slice) -> range:
    return range(rows.start, rows.stop)


# The tables against their formulas, with costs and losses estimated -------------------------------------------------


def numpy_tables(learner: LPLearner, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Loss (rows,) and costs (rows, m) of a variant, from its statistics, by the formulas in the text."""
    seen, layout, view = learner.statistics, learner.layout, learner.view
    L, A, S, m, T = layout.steps, layout.num_actions, max(layout.layer_sizes), view.num_constraints, learner.episodes
    n, sums = np.maximum(1, seen.visits), lambda x: np.add.reduceat(x, layout.row_start[:-1])
    several = np.diff(layout.row_start) > 1
    p = np.where(seen.visits[layout.row_of_triple] > 0, seen.mean_transitions, 0.0)
    sizes = np.diff(layout.row_start)[layout.row_of_triple]
    p_hat = np.where(seen.visits[layout.row_of_triple] > 0, p, 1.0 / sizes)
    layer = np.repeat(layout.layer_of_state[: layout.num_decision_states], A)
    ahead, gap = L - layer - 1, np.min(view.thresholds - learner.baseline_costs) if learner.baseline else 1.0
    xi = np.sqrt(2 * log(6 * S * A * L * T * (m + 1) / learner.delta) / n)
    if learner.sets == "sharp":
        pairs = layout.num_rows * (m + 1)
        xi = np.sqrt(log(2 * pairs * T / learner.delta) / (2 * n))
    B = np.where(several, sums(seen.transition_radius), 0.0)
    half = np.where(several, np.minimum(1.0, 0.5 * sums(seen.upper - seen.lower)), 0.0)
    spread = np.minimum(1.0, 0.5 * sums(np.maximum(seen.upper - p_hat, p_hat - seen.lower)))
    loss, costs = seen.mean_loss, seen.mean_costs
    clip = lambda x: np.clip(x, 0.0, 1.0)  # noqa: E731
    c = lambda x: x[:, None]  # noqa: E731
    if name in ("opt-cmdp", "opt-cmdp epoch", "s-lp", "s-lp epoch"):
        return loss - xi, clip(costs - c(xi))
    if name == "opt-cmdp bonus":
        return loss - xi - ahead * B, costs - c(xi + ahead * B)
    if name == "dope":
        return loss - 3 * L / gap * xi - L**2 / gap * B, costs + c(xi + L * B)
    if name.startswith("dope"):
        return loss - 3 * L / gap * xi - L**2 / gap * half, clip(costs + c(xi)) + c(ahead * half)
    if name.startswith("opt-pess-lp"):
        b = np.sqrt(log(16 * S**2 * A * L * T / learner.delta) / n)
        u = (1 + S * L) * b if name == "opt-pess-lp" else xi + ahead * np.where(several, spread, 0.0)
        return loss - (1 + 4 * L / gap) * u, costs + c(u)
    if name == "safe-etc":
        return loss, costs + c(xi + L * B)
    return loss, clip(costs + c(xi)) + c(ahead * half)


@pytest.mark.parametrize("episodes", [3, 150])
@pytest.mark.parametrize("name", VARIANTS)
def test_tables_follow_their_formulas(name: str, episodes: int) -> None:
    """With few visits unvisited rows, with many those that several episodes have filled."""
    world = random_world(3, (1, 3, 3, 1), 2, 2, sparse=True)
    learner = make_lp(name, world, 10**6 if "etc" in name else 200)
    rng, loss = np.random.default_rng(0), np.random.default_rng(1).random(world.layout.num_rows)
    for _ in range(episodes):
        learner.plan()
        learner.observe(world.play(hr.Policy.uniform(world), rng, loss))
    if learner.replan == "episode":
        expected_loss, expected_costs = numpy_tables(learner, name)
        np.testing.assert_allclose(learner.core.problem.loss, expected_loss, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(learner.core.problem.costs, expected_costs, rtol=1e-12, atol=1e-12)
    boxes, problem = learner.statistics.boxes, learner.core.problem
    if learner.core.rule.at_mean:
        rows, sizes = world.layout.row_of_triple, np.diff(world.layout.row_start)
        seen = learner.statistics.visits[rows] > 0
        np.testing.assert_array_equal(problem.lower[seen], learner.statistics.mean_transitions[seen])
        np.testing.assert_array_equal(problem.lower[~seen], 1.0 / sizes[rows[~seen]])
        assert problem.upper is problem.lower
    else:
        assert problem.lower is boxes.lower
        assert problem.upper is boxes.upper


@pytest.mark.parametrize("name", VARIANTS)
def test_with_everything_known_all_plan_the_optimum(name: str) -> None:
    world = random_world(5, m=1)
    loss = np.random.default_rng(5).random(world.layout.num_rows)
    learner = make_lp(name, world, 100)
    set_counts(learner.core, world, loss, 10**17)
    core = learner.core
    assert plan_in_boxes(core.index, core.problem, core.workspace) == SOLVED
    best = hr.offline.optimum(world, loss)
    assert core.workspace.figures.value == pytest.approx(best.value, abs=1e-4)


@pytest.mark.parametrize("seed", range(6))
def test_plans_are_those_of_highs(seed: int) -> None:
    """The plan that is played has the value of a linear program by HiGHS, whether feasible or not."""
    world, rng = random_world(seed, m=1 + seed % 2), np.random.default_rng(seed)
    loss = rng.random(world.layout.num_rows)
    for name in ("opt-cmdp", "dope sharp", "opt-pess-lp layered"):
        learner = make_lp(name, world, 400)
        for _ in range(60):
            learner.plan()
            learner.observe(world.play(hr.Policy.uniform(world), rng, loss))
        problem = learner.core.problem
        answer = least_loss_in_boxes(
            box_program(world.layout, problem.lower, problem.upper), problem.loss, problem.costs, problem.thresholds
        )
        infeasible = isinstance(answer, NoSolution)
        if name == "opt-cmdp":
            assert not infeasible
        if infeasible:
            assert learner.reals.mixing == 1.0
        elif learner.reals.mixing == 0.0:
            assert learner.planned_values[0] == pytest.approx(answer.value, abs=1e-6)


def test_opt_cmdp_is_optimistic() -> None:
    """On the clean event the value of its plan is at most the optimum, if losses are fixed."""
    for seed in range(4):
        world = random_world(seed, m=1)
        loss = np.random.default_rng(seed).random(world.layout.num_rows)
        for name in ("opt-cmdp", "opt-cmdp bonus", "opt-cmdp epoch"):
            learner = make_lp(name, world, 300)
            run = hr.simulate(world, learner, loss, seed=seed, progress=False, marks="all")
            clean = run["clean_now"]
            assert clean.mean() > 0.9
            assert np.all(run["plan_value"][clean] <= hr.offline.optimum(world, loss).value + 1e-9)
            assert run["infeasible"][-1] == 0


@pytest.mark.parametrize("actions", [2, 3])
@pytest.mark.parametrize("optimism", ["boxes", "bonus"])
def test_opt_cmdp_loses_everything_that_moves_on(actions: int, optimism: str) -> None:
    """A loss that moves on every episode: the index rule walks into it each time, for a regret of T (1 - 1/A)."""
    layout, T = hr.Layout((1, 1), actions), 60 * actions
    world = hr.CMDP(layout, np.ones(actions), hr.costs.DeterministicCosts(np.zeros((1, actions))), [0.5])
    learner = hr.field.OptCMDP(world.view(), T, 0.01, optimism=optimism)
    run = hr.simulate(world, learner, hr.losses.Switching(1, np.eye(actions)), progress=False)
    assert run.loss[-1] == T
    assert run.regret[-1] == pytest.approx(T * (1.0 - 1.0 / actions), abs=1e-9)
