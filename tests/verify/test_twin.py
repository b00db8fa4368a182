"""The twin: right by brute force, independent of what it checks, in agreement with sound learners and with no other."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import hedgerow as hr
from hedgerow.experiments.worker import run_cell
from hedgerow.learners.ops.notes import ODDS, _note_coin, make_notes
from hedgerow.verify import levels, twin, twin_watcher, verify
from hedgerow.verify.claims import TOL
from hedgerow.verify.controls import CONTROLS
from hedgerow.verify.judging import Status
from hedgerow.verify.levels import EQUAL, PRESETS, SHARPEST, SMALL, Level, runs
from hedgerow.verify.mutants import RIGHT, MutantCVOPS, MutantSOPS, MutantSVOPS, SteppedSOPS
from hedgerow.verify.twin import (
    Generation,
    Given,
    Switches,
    TwinBoxes,
    TwinCentres,
    TwinSets,
    ball_radius,
    best_values,
    kt_interval,
    most,
    most_in_ball,
    occupancies,
    upper_occupancies,
    worst_values,
)
from hedgerow.verify.twin_watcher import GAPS, RecomputedCVOPS, RecomputedSOPS, RecomputedSVOPS
from hedgerow.verify.worlds import buffer, chorus, partly_known, rooms, two_actions, wide

SHARP = Switches(
    "tight",
    clip_costs=True,
    joint_cost=True,
    ties=False,
    aggregate=False,
    ball_from=0,
    anchored=False,
    eta="paper",
    gamma="paper",
)
NEW = (
    "dull-estimator", "frozen-boxes", "short-logs", "squares-per-step", "cheap-certificate", "late-lambda",
    "low-ceiling", "biased-coin", "idle-coin", "small-gamma", "short-search",
)  # fmt: skip


# The twin shares nothing with what it checks ------------------------------------------------------------------------


def imports_of(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            yield str(node.module)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_the_twin_shares_no_code_with_what_it_checks() -> None:
    for module in (twin, twin_watcher):
        found = {name for name in imports_of(Path(module.__file__)) if name.startswith("hedgerow")}
        assert not any(name.startswith(("hedgerow.confidence", "hedgerow.projection")) for name in found)
        assert module is twin_watcher or found == {"hedgerow.checks", "hedgerow.model.view"}


# It is right --------------------------------------------------------------------------------------------------------


def test_the_best_of_a_box_is_that_of_a_linear_program() -> None:
    rng = np.random.default_rng(1)
    for _ in range(60):
        size = int(rng.integers(2, 6))
        p = rng.dirichlet(np.ones(size))
        low, high = p * rng.uniform(0.0, 1.0, size), p + (1.0 - p) * rng.uniform(0.0, 1.0, size)
        values = rng.normal(size=size)
        solved = linprog(-values, A_eq=np.ones((1, size)), b_eq=[1.0], bounds=np.stack((low, high), axis=1))
        assert most(low, high, values.tolist()) == pytest.approx(-solved.fun, abs=1e-9)


def test_the_best_of_a_ball_is_that_of_a_search() -> None:
    counts, values = [12, 5, 0], [0.1, 0.6, 1.0]
    radius = ball_radius(counts, 3.0)
    share = np.array(counts) / 17
    grid = np.array([(a, b, 1.0 - a - b) for a in np.linspace(0, 1, 401) for b in np.linspace(0, 1, 401) if a + b <= 1])
    with np.errstate(divide="ignore"):
        inside = grid[(share[:2] * np.log(share[:2] / grid[:, :2])).sum(axis=1) <= radius]
    best = float((inside @ np.array(values)).max())
    assert best <= most_in_ball(counts, values, radius) <= best + 0.005


def test_intervals_hold_what_they_promise() -> None:
    """n kl(p, g) is ln(1/delta) + overhead at both ends, and the mixture of likelihoods is as defined."""
    n, total, logs = 40, 13.0, 4.0
    low, high = kt_interval(n, total, logs)
    grid = (np.arange(200_000) + 0.5) / 200_000  # Beta(1/2, 1/2) by its arcsine quantiles
    prior = np.sin(0.5 * np.pi * grid) ** 2
    log_mixture = np.log(np.mean(prior**total * (1 - prior) ** (n - total)))
    for end in (low, high):
        likelihood = total * np.log(end) + (n - total) * np.log1p(-end)
        assert log_mixture - likelihood == pytest.approx(logs, abs=1e-6)
    assert kt_interval(0, 0.0, 1.0) == (0.0, 1.0)
    assert kt_interval(5, 0.0, 1.0)[0] == 0.0
    assert kt_interval(5, 5.0, 1.0)[1] == 1.0


@pytest.fixture
def small() -> tuple[Given, TwinBoxes, Any]:
    """A world of four layers, boxes around its transitions, and a policy."""
    world = hr.worlds.make("random-layered", layers=(1, 2, 2, 1), actions=2, constraints=1)
    given = Given(world.view(), SHARP, 0.05, 100)
    P, rng = world.cmdp.transitions, np.random.default_rng(2)
    several = np.diff(world.cmdp.layout.row_start)[world.cmdp.layout.row_of_triple] > 1
    away = np.where(several, 0.2, 0.0)
    g = world.cmdp.mean_costs.T
    boxes = TwinBoxes(
        np.maximum(P - away, 0.0), np.minimum(P + away, 1.0), np.maximum(g - 0.1, 0), np.minimum(g + 0.1, 1)
    )
    policy = rng.dirichlet(np.ones(2), size=given.num_rows // 2).ravel()
    return given, boxes, policy


def corners(given: Given, boxes: TwinBoxes) -> Iterator[Any]:
    """All transitions in which every row is at a corner of its box; rows have one or two successors."""
    rows = [row for row, (first, last) in enumerate(given.rows) if last - first == 2]
    for choice in product((0, 1), repeat=len(rows)):
        P = boxes.upper.copy()
        for row, which in zip(rows, choice, strict=True):
            first, _ = given.rows[row]
            a, b = first + which, first + 1 - which
            P[a] = min(boxes.upper[a], 1.0 - boxes.lower[b])
            P[b] = 1.0 - P[a]
        yield P


def test_bounds_are_those_of_the_worst_corner(small: tuple[Given, TwinBoxes, Any]) -> None:
    given, boxes, policy = small
    all_q = np.array([occupancies(given, policy, P) for P in corners(given, boxes)])
    np.testing.assert_allclose(upper_occupancies(given, policy, boxes), all_q.max(axis=0), atol=1e-12)
    costs = boxes.cost_upper[:, 0]
    assert worst_values(given, policy, costs, boxes)[0] == pytest.approx((all_q @ costs).max(), abs=1e-12)
    assert best_values(given, policy, costs, boxes)[0] == pytest.approx((all_q @ costs).min(), abs=1e-12)


def test_an_episode_of_the_certificate_by_hand(small: tuple[Given, TwinBoxes, Any]) -> None:
    given, _, _ = small
    rows = [0, 2 * 1, 2 * 3 + 1]
    triples = TwinSets(given).triples_of(rows)
    p_hat = np.concatenate([np.full(last - first, 1.0 / (last - first)) for first, last in given.rows])
    V = np.arange(given.num_states, dtype=float)[np.newaxis]
    one = Generation(0, V, np.array([4.0]), np.zeros(given.num_rows))
    one.count(
        given, rows, triples, np.array([[1.0], [0.0], [0.5]]), TwinCentres(p_hat, np.full((given.num_rows, 1), 0.25))
    )
    # States 0 | 1 2 | 3 4 | 5: next states 1, 3, 5, of which 1.5, 3.5, 5 were expected; costs are 0.75 above theirs.
    assert one.episodes == 1
    assert one.sums[0] == pytest.approx(1.5 + 1 + 3 + 5)
    assert one.squares[0] == pytest.approx((0.75**2 + 0.5**2 + 0.5**2) / 16)
    assert np.flatnonzero(one.visits).tolist() == rows
    assert one.least_scale(given)[0] == given.steps


def test_the_coin_has_a_fair_bet_against_it() -> None:
    """Whatever lambda is, the likelihood ratios have mean 1."""
    layout = hr.worlds.make("lower-bound-1").cmdp.layout
    for lam in (0.0, 0.1, 0.73, 1.0):
        ratios = []
        for baseline in (True, False):
            notes = make_notes(layout, 1, 1, estimator=False)
            _note_coin(lam, baseline, notes)
            ratios.append(np.exp(notes.coin))
        np.testing.assert_allclose(lam * ratios[0] + (1 - lam) * ratios[1], np.ones(len(ODDS)), rtol=1e-12)


# It agrees with sound learners --------------------------------------------------------------------------------------


def gaps_of(world: Any, learner: Any, episodes: int, preset: str) -> dict[str, Any]:
    (cell,) = runs(world, learner, episodes, [0], adversaries=["drifting"], presets=[preset], twin=True)
    facts = dict(run_cell(cell).run.facts)
    assert facts["recomputed"] >= 10
    for name in GAPS:
        assert facts[f"{name}_gap"] < 0.01 * TOL, name
    return facts


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("learner", [RecomputedSOPS, RecomputedSVOPS])
def test_every_preset_states_what_the_twin_finds(learner: Any, preset: str) -> None:
    gaps_of(SMALL, learner, 60, preset)


@pytest.mark.slow
@pytest.mark.parametrize("world", [partly_known, buffer, chorus], ids=lambda world: world.__name__)
def test_so_do_learners_that_know_more(world: Any) -> None:
    gaps_of(world, RecomputedSOPS, 80, "sharpest")


@pytest.mark.slow
@pytest.mark.parametrize(("world", "episodes"), [(rooms, 400), (wide, levels.SETTLED)])
def test_so_does_the_certificate_where_it_gives_the_bound(world: Any, episodes: int) -> None:
    assert gaps_of(world, RecomputedSOPS, episodes, "sharpest")["certified"] > 0


@pytest.mark.slow
def test_so_does_a_search_that_ends() -> None:
    assert gaps_of(wide, RecomputedCVOPS, 320, "sharpest")["t_bar"] is not None


# And with no other --------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", NEW)
def test_what_is_wrong_by_little_is_refuted(name: str, tmp_path: Path) -> None:
    control = next(control for control in CONTROLS if control.name == name)
    cells = levels.controls()[name]
    groups = {group: cells[:1] for key in control.promises for group in verify.BY_KEY[key].groups}
    report = verify.verify(Level("one", groups, {name: cells}), tmp_path, only=control.promises, processes=1)
    assert [one.promise.key for one in report.controls] == list(control.promises)
    for one in report.controls:
        assert one.caught, one.verdict.sentence


@pytest.mark.slow
def test_the_same_runs_of_sound_learners_are_not(tmp_path: Path) -> None:
    """Factors of 1 in the places of the wrong ones."""
    drifting = {"adversaries": ["drifting"], "twin": True}
    cells = [
        *runs(SMALL, MutantSOPS, 150, 1, presets=PRESETS, twin=True),
        *runs(EQUAL, SteppedSOPS, 200, 1, presets=SHARPEST, twin=True),
        *runs(SMALL, MutantSVOPS, 50, 1, **drifting),  # type: ignore[arg-type]
        *runs(wide, MutantCVOPS, 320, 1, presets=SHARPEST, twin=True),
    ]
    keys = ("T22", "T23", "T24", "T25", "T26", "T27")
    report = verify.verify(Level("one", {"recomputed": cells}), tmp_path, only=keys, processes=1)
    for one in report.promises:
        assert one.verdict.status is Status.HOLDS, one.verdict.sentence


@pytest.mark.parametrize(("mutant", "sound"), [(MutantSOPS, "s-ops"), (SteppedSOPS, "s-ops"), (MutantSVOPS, "sv-ops")])
def test_a_mutant_without_a_mistake_is_the_learner(mutant: Any, sound: str) -> None:
    (one,), (other,) = (runs(two_actions, who, 60, [3], presets=SHARPEST) for who in (mutant, sound))
    mine, theirs = run_cell(one).run, run_cell(other).run
    np.testing.assert_array_equal(mine.loss, theirs.loss)
    np.testing.assert_array_equal(mine["mixing_total"], theirs["mixing_total"])


def test_a_mutant_has_the_constants_that_it_is_given() -> None:
    world = hr.worlds.make("random-layered", layers=(1, 2, 1), actions=2, constraints=1)
    safe = hr.offline.slater(world.cmdp)
    told = {"baseline": safe.policy, "baseline_costs": safe.costs, "preset": "sharpest"}
    right = MutantSOPS(world.view(), 100, 0.05, **told)  # type: ignore[arg-type]
    for name in RIGHT:
        if name in ("search_radius", "squares", "mixing", "coin"):
            continue
        wrong = MutantSOPS(world.view(), 100, 0.05, **{name: 0.5}, **told)  # type: ignore[arg-type]
        seen = [_constants(learner) for learner in (right, wrong)]
        changed = [key for key in seen[0] if seen[1][key] != seen[0][key]]
        assert changed == [name]
        assert seen[1][name] == pytest.approx(0.5 * seen[0][name])


def _constants(learner: MutantSOPS) -> dict[str, float]:
    rule, reals = learner.core.sets.rule, learner.core.state.reals
    radii = rule.box.radii
    return {
        "cost_log": radii.cost_log,
        "transition_log": radii.transition_log,
        "certificate_log": rule.aggregate.log_inverse_delta,
        "ball_log": rule.ball.log_inverse_delta,
        "ceiling": float(learner.core.baseline.ceilings[0]),
        "eta": reals.eta,
        "gamma": reals.gamma,
    }
