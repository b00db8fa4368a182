"""The forecast for S-OPS, against a slow computation of its own, real learners, and what must hold in any case."""

from __future__ import annotations

from itertools import product
from math import log, sqrt
from typing import Any

import mpmath
import naive_estimates
import naive_kt
import numpy as np
import pytest

import hedgerow as hr
from hedgerow import forecast as fc
from hedgerow.forecast.model import Forecaster, LambdaForecast, LambdaRange
from hedgerow.forecast.preflight import baseline_choices, world_baseline
from hedgerow.forecast.summary import BaselineForecast, assumed_baseline, slack_of, time_ties, verdict, wishes
from hedgerow.model.layout import Layout
from hedgerow.model.occupancy import uniform_policy

DELTA, TINY = 0.02, (1, 2, 2, 1)
SMALL = {"layers": (1, 3, 3, 1), "actions": 3, "constraints": 1}


def tiny() -> hr.View:
    states = [["home"], ["left", "right"], ["near", "far"]]
    return hr.View.of(states, ["wait", "go"], {"delay": 0.6, "noise": 0.9}, successors={("left", "go"): ["far"]})


def some_views() -> dict[str, hr.View]:
    """With little and much knowledge, narrow and wide rows, sparse and full support."""
    plain, m = tiny(), 2
    costs = np.full((m, plain.layout.num_rows), np.nan)
    costs[0, [1, 4]], costs[1, :3] = 0.25, 0.0
    wide = hr.View(Layout((1, 10, 10, 1), 2), [1.0], ("cost",))
    return {
        "plain": plain,
        "known costs": plain.knowing(costs=costs, max_episode_cost={"noise": 1.5}),
        "tied": hr.View(Layout((1, 3, 3, 3, 1), 2), [1.0], ("cost",)).knowing(
            same_transitions=[-1, -1, *range(6), *range(6), *[-1] * 6],
            same_costs=[-1, -1, *range(6), *range(6), *range(6)],
        ),
        "wide": wide,
        "media": hr.worlds.make("dope-media").view(),
        "no margin in a threshold": hr.View(Layout((1, 2, 1), 2), [0.0, 0.5], ("never", "seldom")),
    }  # fmt: skip


VIEWS = some_views()


def caster(view: hr.View, episodes: int = 10_000, preset: Any = "sharpest") -> Forecaster:
    return Forecaster(view, fc.assumed_model(view), assumed_baseline(view).costs, episodes, DELTA, preset)


def forecast_of(view: hr.View, episodes: int = 10_000) -> dict[str, Any]:
    return fc.forecast(view, fc.assumed_model(view), assumed_baseline(view), episodes, DELTA)


# By hand --------------------------------------------------------------------------------------------------------------


def paths(layout: Layout, P: np.ndarray) -> list[tuple[float, list[int]]]:
    """Every path of uniform actions with its probability: (probability, rows)."""
    found = [(1.0, [0], 0)]
    for _ in range(layout.steps):
        longer = []
        for p, rows, x in found:
            for a in range(layout.num_actions):
                r = x * layout.num_actions + a
                for j in range(layout.row_start[r], layout.row_start[r + 1]):
                    longer.append((p * P[j] / layout.num_actions, [*rows, r], int(layout.successor[j])))
        found = longer
    return [(p, rows[1:]) for p, rows, _ in found]


def kt_upper(n: int, total: float, log_inverse_delta: float) -> float:
    """By halving, in sixty digits."""
    if n == 0:
        return 1.0
    p, level = mpmath.mpf(total) / n, (mpmath.mpf(log_inverse_delta) + naive_kt.overhead(n, total)) / n
    low, high = p, mpmath.mpf(1)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if naive_kt.divergence(p, middle) <= level else (low, middle)
    return float(low)


def by_hand(view: hr.View, beta: np.ndarray, t: int, horizon: int, preset: str) -> float:
    """lambda of the uniform policy after t episodes in the tiny world, by the formulas as they are written down."""
    layout, m, A = view.layout, view.num_constraints, view.layout.num_actions
    sizes = [int(layout.row_start[r + 1] - layout.row_start[r]) for r in range(layout.num_rows)]
    P = np.concatenate([np.full(n, 1.0 / n) for n in sizes])
    ways = paths(layout, P)
    often = np.array([sum(p for p, rows in ways if r in rows) for r in range(layout.num_rows)])
    place = [layout.layer_sizes[layout.layer_of_state[r // A]] for r in range(layout.num_rows)]
    within = [r // A - int(layout.state_start[layout.layer_of_state[r // A]]) for r in range(layout.num_rows)]
    shape = np.array([(2 * j + 1) / n for j, n in zip(within, place, strict=True)])
    triples = sum(n for n in sizes if n > 1)
    # 2.5 of 5 delta for the costs (the aggregate has .5), 2 for the transitions; sharp: delta and 4 delta.
    cost_log = log(layout.num_rows * m / (2.5 * DELTA))
    move_log = log(triples / (2.0 * DELTA))
    lower, upper, U = np.zeros(layout.num_triples), np.ones(layout.num_triples), []
    for r, n in enumerate(sizes):
        triple, N = range(layout.row_start[r], layout.row_start[r + 1]), round(t * often[r])
        if n == 1:
            lower[triple[0]] = 1.0
            continue
        marks = [round(N * k / n) for k in range(n + 1)]
        moves = np.diff(marks)
        if preset == "sharpest":
            high = [kt_upper(N, M, move_log) for M in moves]
            low = [1.0 - kt_upper(N, N - M, move_log) for M in moves]
        else:
            iota, p_hat = log(4 * triples * horizon / (4.0 * DELTA)), moves / max(N, 1)
            eps = [sqrt(2 * p * (1 - p) * iota / (N - 1)) + 7 * iota / (3 * (N - 1)) if N > 1 else 1.0 for p in p_hat]
            high, low = np.minimum(1.0, p_hat + eps).tolist(), np.maximum(0.0, p_hat - eps).tolist()
            if N == 0:
                high, low = [1.0] * n, [0.0] * n
        for j, k in enumerate(triple):  # what the others leave
            lower[k] = max(low[j], 1.0 - (sum(high) - high[j]))
            upper[k] = min(high[j], 1.0 - (sum(low) - low[j]))
    for i in range(m):
        g = shape * float(view.thresholds[i]) / float(shape @ often)
        assert g.max() <= 1.0
        N = [round(t * q) for q in often]
        if preset == "sharpest":
            ucb = np.array([kt_upper(n, n * c, cost_log) for n, c in zip(N, g, strict=True)])
        else:
            xi = [sqrt(log(2 * layout.num_rows * m * horizon / DELTA) / (2 * n)) if n else 1.0 for n in N]
            ucb = np.minimum(1.0, np.where(np.array(N) > 0, g, 0.0) + xi)
        U.append(naive_estimates.joint_cost(layout, lower, upper, uniform_policy(layout), ucb))
    weights = [0.0]
    for i in range(m):
        u = min(U[i], float(layout.steps))
        if u > view.thresholds[i]:
            weights.append((u - float(view.thresholds[i])) / (u - float(beta[i])))
    return max(weights)


@pytest.mark.parametrize("preset", ["sharpest", "sharp"])
def test_lambda_is_what_the_formulas_say(preset: Any) -> None:
    view, beta = tiny(), np.array([0.2, 0.5])
    found = fc.forecast(view, fc.assumed_model(view), BaselineForecast(beta, "told"), 3_000, DELTA)
    for mark in found["marks"]:
        t = mark["episodes"]
        assert mark[preset]["least"] == pytest.approx(by_hand(view, beta, t, max(t, 3_000), preset), abs=1e-9)


def test_classes_are_visited_as_often_as_all_paths_say() -> None:
    view = VIEWS["tied"]
    layout, model, seen = view.layout, fc.assumed_model(view), caster(view).exploration
    ways = paths(layout, model.transitions)
    moves, costs = view.knowledge.same_transitions, view.knowledge.same_costs
    for r in range(layout.num_rows):
        assert seen.visits[r] == pytest.approx(sum(p * sum(moves[s] == r for s in rows) for p, rows in ways), abs=1e-12)
        met = sum(p for p, rows in ways if any(costs[s] == r for s in rows))
        assert seen.cost_visits[r] == pytest.approx(met, abs=1e-12)
    every = caster(view.knowing(independent_costs=True)).exploration
    assert every.cost_visits == pytest.approx(np.bincount(costs, model.explored, layout.num_rows), abs=1e-12)


@pytest.mark.parametrize("name", VIEWS)
def test_counts_are_those_of_episodes(name: str) -> None:
    view = VIEWS[name]
    model, seen = fc.assumed_model(view), caster(view)
    for t in (0, 1, 7, 1_000, 12_345_678):
        counts = seen.exploration.after(t)
        place = seen.unknowns.laws.moves_at == np.arange(view.layout.num_rows)
        sums = np.add.reduceat(counts.num_moves, view.layout.row_start[:-1])
        assert np.array_equal(sums[place], counts.num_visits[place])
        expected = counts.num_visits[view.layout.row_of_triple] * model.transitions
        assert np.all(np.abs(counts.num_moves - expected) <= 1.0)
        assert np.all((counts.cost_sums >= 0.0) & (counts.num_costs >= counts.cost_sums.T).T)


# Against learners -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", ["sharpest", "sharp"])
@pytest.mark.parametrize("name", VIEWS)
def test_the_rule_is_the_learners(name: str, preset: Any) -> None:
    view, own = VIEWS[name], caster(VIEWS[name], 500, preset)
    learner = hr.SOPS(
        view, 500, DELTA, preset, baseline=uniform_policy(view.layout), baseline_costs=own.beta, allow_no_margin=True
    )
    rule = learner.core.sets.rule
    assert own.radii.as_dict() == rule.box.radii.as_dict()
    assert own.ball_rule.log_inverse_delta == rule.ball.log_inverse_delta
    assert np.array_equal(own.ball_rule.wide, rule.ball.wide)
    # Before the first episode both know nothing: lambda of the learner's first plan.
    bare = Forecaster(view, own.model, own.beta, 500, DELTA, preset)
    bare.model.policy[:] = learner.policy
    assert bare.weight(bare.after(0).upper) == learner.plan().mixing_weight


def test_the_bounds_are_the_learners() -> None:
    world = hr.worlds.make("random-layered", **SMALL)
    safest = hr.offline.slater(world)
    learner = hr.SOPS(world.view(), 4_000, DELTA, "sharp", baseline=safest)
    hr.simulate(world, learner, world.loss, seed=3, episodes=2_000, progress=False)
    model = fc.Model(world.cmdp.layout, world.cmdp.transitions, world.cmdp.mean_costs, np.array(learner.policy), {})
    own = Forecaster(world.view(), model, np.array(safest.costs), 4_000, DELTA, "sharp")
    bounds = own.from_counts(learner.core.state.counts)
    assert bounds.upper == pytest.approx(learner.core.state.bounds, abs=1e-12)
    assert own.weight(bounds.upper) == pytest.approx(learner.plan().mixing_weight, abs=1e-12)
    assert np.all(bounds.lower <= model.true_costs)
    assert np.all(model.true_costs <= bounds.upper)


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["sharpest", "sharp"])
def test_a_run_is_near_its_forecast(preset: Any) -> None:
    world = hr.worlds.make("random-layered", **SMALL)
    safest, T = hr.offline.slater(world), 30_000
    learner = hr.SOPS(world.view(), T, 0.01, preset, baseline=safest)
    run = hr.simulate(world, learner, world.loss, seed=0, progress=False)
    model = fc.true_model(world.cmdp, world.loss)
    course = LambdaForecast(Forecaster(world.view(), model, np.array(safest.costs), T, 0.01, preset), T)
    for t in (1_000, 10_000, T):
        k = int(np.flatnonzero(run.episodes >= t)[0])
        least, most = course.at(t)
        assert least - 0.02 < run["mixing_weight"][k] < most
    mean = course.mean(T)
    assert mean.least < run["mixing_total"][-1] / T < mean.most


# Whatever is assumed --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", VIEWS)
def test_more_episodes_leave_less_to_the_baseline(name: str) -> None:
    found = forecast_of(VIEWS[name])
    for preset in ("sharpest", "sharp"):
        least, most = ([mark[preset][end] for mark in found["marks"]] for end in ("least", "most"))
        assert least == sorted(least, reverse=True)
        assert most == sorted(most, reverse=True)
        assert all(0.0 <= a <= b <= found["lambda_0"] * (1 + 1e-9) for a, b in zip(least, most, strict=True))
    last = found["marks"][-1]
    assert last["episodes"] == 10**7
    if name == "no margin in a threshold":
        assert last["sharpest"]["least"] == pytest.approx(1.0)
    else:
        assert last["sharpest"]["most"] < 0.05
    assert found["last"]["least"] <= found["mean"]["least"] + 1e-9 <= found["lambda_0"] * (1 + 1e-9) + 1e-9
    assert found["mean"]["least"] <= found["mean"]["most"] <= 1.0


@pytest.mark.parametrize("episodes", [300, 100_000])
@pytest.mark.parametrize("name", VIEWS)
def test_knowledge_never_makes_it_worse(name: str, episodes: int) -> None:
    found = forecast_of(VIEWS[name], episodes)
    assert found["wishes"]
    for wish in found["wishes"]:
        assert wish["least"] <= found["last"]["least"] + 1e-9, wish
        assert wish["most"] <= found["last"]["most"] + 1e-9, wish
    told = [wish["knowledge"] for wish in found["wishes"]]
    assert len(set(told)) == len(told)


@pytest.mark.parametrize("name", VIEWS)
def test_the_slack_adds_up(name: str) -> None:
    own = caster(VIEWS[name])
    for t in (50, 5_000):
        bounds = own.after(t)
        for i in range(own.view.num_constraints):
            slack = slack_of(own, bounds, i)
            assert slack.upper == bounds.upper[i]
            assert float(slack.rows.sum()) == pytest.approx(
                slack.upper - slack.true, abs=1e-4 if own.wide.any() else 1e-9
            )
            assert slack.costs + slack.transitions + slack.cross == pytest.approx(slack.upper - slack.true, abs=1e-12)
            assert float(slack.row_costs.sum()) == pytest.approx(slack.costs, abs=1e-12)
            assert slack.rows.min() > -1e-6
            assert min(slack.costs, slack.transitions) > -1e-9


def test_balls_of_wide_rows_count() -> None:
    own = caster(VIEWS["wide"])
    bounds = own.after(2_000)
    worst = own.worst(bounds.boxes, bounds.balls, bounds.boxes.cost_upper, 0)
    assert worst.with_balls
    assert worst.cost == bounds.upper[0]


# The model ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", VIEWS)
def test_the_own_policy_costs_its_threshold(name: str) -> None:
    view = VIEWS[name]
    model = fc.assumed_model(view)
    assert model.true_costs == pytest.approx(view.thresholds, abs=1e-9)
    assert np.all((model.costs >= 0.0) & (model.costs <= 1.0))
    known = view.knowledge
    if known.costs is not None:
        assert np.array_equal(model.costs[~np.isnan(known.costs)], known.costs[~np.isnan(known.costs)])
    if known.same_costs is not None:
        assert np.array_equal(model.costs, model.costs[:, known.same_costs])
    if known.transitions is not None:
        given = ~np.isnan(known.transitions)
        assert np.array_equal(model.transitions[given], known.transitions[given])


def test_a_threshold_that_cannot_be_reached_is_told() -> None:
    view = tiny()
    dear = view.knowing(costs=np.where(np.arange(10) % 2, [[1.0], [np.nan]], np.nan))
    words = fc.assumed_model(dear).assumptions["costs"]
    assert "'delay': 0 on average, so that the learner's policy costs 1.5;" in words
    assert "'noise'" in words
    all_known = view.knowing(costs=np.zeros((2, 10)))
    assert "all known, the learner's policy costs 0" in fc.assumed_model(all_known).assumptions["costs"]
    loose = hr.View(view.layout, [3.0, 2.5], ("a", "b"))
    assert (
        "'a': 1 on average, so that the learner's policy costs 3, its threshold"
        in fc.assumed_model(loose).assumptions["costs"]
    )


def test_the_model_of_a_world() -> None:
    world = hr.worlds.make("random-layered", **SMALL)
    own, bare = fc.true_model(world.cmdp, world.loss), fc.true_model(world.cmdp)
    assert own.true_costs == pytest.approx(world.cmdp.thresholds, abs=1e-9)
    assert hr.occupancy.evaluate(world, own.policy, world.loss).loss == pytest.approx(world.golden.optimum, abs=1e-9)
    assert "optimum" in own.assumptions["policy"]
    assert np.all(bare.true_costs <= world.cmdp.thresholds + 1e-9)
    strict = fc.true_model(world.cmdp.with_thresholds([1.1]))
    assert strict.true_costs == pytest.approx([1.1], abs=1e-9)
    assert "as far as the thresholds allow" in strict.assumptions["policy"]
    loose = fc.true_model(world.cmdp.with_thresholds([2.9]))
    assert np.array_equal(loose.policy, uniform_policy(world.cmdp.layout))


# Wishes, verdicts -----------------------------------------------------------------------------------------------------


def test_wishes_for_ties_are_true_ones() -> None:
    world = hr.worlds.make("dope-media").cmdp
    free = world.with_knowledge(None)
    tied = time_ties(free.view(), fc.true_model(free))
    assert tied is not None
    world.with_knowledge(tied.knowledge)  # which refuses what is not true
    assert time_ties(world.view(), fc.true_model(world)) is None  # these are declared already
    random = hr.worlds.make("random-layered", **SMALL)
    assert time_ties(random.view(), fc.true_model(random.cmdp)) is None
    once = hr.View(Layout((1, 2, 1), 2), [0.5], ("cost",))
    assert time_ties(once, fc.assumed_model(once)) is None


def test_wishes_are_made_for_what_is_not_known() -> None:
    view = tiny()
    rows = np.array([2, 5])
    words = [wish.words for wish in wishes(view, fc.assumed_model(view), rows, 1_000)]
    assert "all transitions" in words
    assert "the mean costs of the 2 pairs above" in words
    assert "a log of 1,000 episodes of uniform actions" in words
    model = fc.assumed_model(view)
    full = view.knowing(transitions=model.transitions, costs=model.costs)
    left = [wish.words for wish in wishes(full, model, rows, 1_000)]
    assert not any("mean costs" in wish or wish == "all transitions" for wish in left)
    (few,) = (wish for wish in wishes(view, model, rows, 1_000) if "pairs above" in wish.words)
    assert np.flatnonzero(~np.isnan(few.view.knowledge.costs[0])).tolist() == [2, 5]


def test_everything_known_leaves_nothing() -> None:
    view = tiny()
    model = fc.assumed_model(view)
    full = view.knowing(transitions=model.transitions, costs=model.costs)
    found = fc.forecast(full, model, assumed_baseline(full), 1_000, DELTA)
    assert found["last"]["most"] < 1e-9
    assert found["mean"]["most"] < 1e-9
    assert "soon play" in found["verdict"]


def test_no_constraint_that_can_be_violated() -> None:
    view = hr.View(Layout((1, 2, 1), 2), [2.0], ("cost",))
    found = fc.forecast(view, fc.assumed_model(view), assumed_baseline(view), 1_000, DELTA)
    assert (found["lambda_0"], found["last"]["most"], found["wishes"], found["rows"]) == (0.0, 0.0, [], [])
    assert "UOB-REPS" in found["verdict"]
    free = hr.View(Layout((1, 2, 1), 2), [], ())
    assert "UOB-REPS" in forecast_of(free, 10)["verdict"]


@pytest.mark.parametrize(
    ("mean", "words"),
    [
        (
            (0.95, 0.97),
            "95 to 97 % to the baseline, and the last one still with a probability of 90 %. It would be little",
        ),
        ((0.4, 0.6), "Much of this run is the baseline's"),
        ((0.05, 0.2), "5.0 to 20 % to the baseline"),
        ((0.0, 0.004), "0 to 0.4 % to the baseline"),
    ],
)
def test_verdicts(mean: tuple[float, float], words: str) -> None:
    assert words in verdict(1_000, LambdaRange(*mean), LambdaRange(0.9, 0.9))


@pytest.mark.parametrize("logged", [0, 150])
def test_the_course_of_lambda_episode_by_episode(logged: int) -> None:
    T = 600
    own = caster(tiny(), T)
    course, explored, least, most = LambdaForecast(own, T, logged), 0.0, [], []
    for t in range(T):
        least.append(own.mixing(t + logged).least)
        low, high = (own.mixing(int(e) + logged).most for e in (np.floor(explored), np.ceil(explored)))
        most.append(low + (explored % 1.0) * (high - low))
        if t % 50 == 49:
            assert course.at(t).least == least[-1]
            assert course.at(t).most == pytest.approx(most[-1], abs=6e-3)
        explored += 1.0 - most[-1]
    mean = course.mean(T)
    assert mean.least == pytest.approx(float(np.mean(least)), abs=3e-3)
    assert mean.most == pytest.approx(float(np.mean(most)), abs=3e-3)


def test_a_learner_without_margin_never_explores() -> None:
    view = VIEWS["no margin in a threshold"]
    course = LambdaForecast(caster(view), 10_000)
    assert course.explored(10_000) < 1.0
    assert course.mean(10_000).most == pytest.approx(1.0, abs=1e-3)


# Baselines ------------------------------------------------------------------------------------------------------------


def test_choices_of_a_baseline() -> None:
    world = hr.worlds.make("dope-media")
    found = {choice["policy"]: choice for choice in baseline_choices(world)}
    slater, half, tenth, budget = found.values()
    assert slater["margin"] == pytest.approx(world.golden.margin, abs=1e-9)
    assert half["margin"] == pytest.approx(slater["margin"] / 2, abs=1e-8)
    assert tenth["margin"] == pytest.approx(slater["margin"] / 10, abs=1e-8)
    assert world.golden.optimum < tenth["loss"] < half["loss"] < slater["loss"]
    assert budget["loss"] == pytest.approx(world.golden.baseline, abs=1e-8)
    assert world_baseline(world, world.cmdp).costs == pytest.approx([1.0], abs=1e-8)
    days = hr.worlds.make("ev-workday")
    assert world_baseline(days, days.cmdp).costs.tolist() == [0.001]
    assert "Slater" in world_baseline(None, world.cmdp).words


# Logs -----------------------------------------------------------------------------------------------------------------


def test_a_log_is_where_the_bounds_begin() -> None:
    """lambda of the learner's first plan after a log is the weight that the forecast has for its policy."""
    world = hr.worlds.make("random-layered", **SMALL).cmdp
    view, beta = world.view(), np.array([0.9])
    log = hr.Log.played(world, hr.Policy.uniform(view), 400, seed=1)
    learner = hr.SOPS(view, 500, DELTA, baseline=uniform_policy(view.layout), baseline_costs=beta, allow_no_margin=True)
    learner.absorb(log)
    own = Forecaster(view, fc.assumed_model(view), beta, 500, DELTA, log=log)
    own.model.policy[:] = learner.policy
    assert own.weight(own.after(0).upper) == pytest.approx(learner.plan().mixing_weight, abs=1e-12)
    bare = Forecaster(view, own.model, beta, 500, DELTA)
    assert own.weight(own.after(300).upper) < bare.weight(bare.after(300).upper)
    fixed = Forecaster(view, own.model, beta, 500, DELTA, "sharp", log=log)  # takes no log
    assert fixed.exploration.start is None


def test_wishes_that_a_log_refutes_are_not_granted() -> None:
    view = tiny()
    both = [("home", "go"), ("left", "wait")]
    log = hr.Log.read(view, [hr.Episode(view, [*both, ("far", "go")], [0.0] * 3, np.ones((3, 2)))])  # costs L
    told = {name: fc.forecast(view, fc.assumed_model(view), assumed_baseline(view), 1_000, DELTA, log=given)["wishes"]
            for name, given in (("without", None), ("with", log))}  # fmt: skip
    half = "that an episode costs half of its present ceiling at most"
    assert half in [wish["knowledge"] for wish in told["without"]]
    assert half not in [wish["knowledge"] for wish in told["with"]]
    assert len(told["with"]) == len(told["without"]) - 1


def test_pairs_of_the_tiny_world() -> None:
    """The by-hand world is what it is thought to be."""
    layout = tiny().layout
    assert layout.layer_sizes == TINY
    assert len(list(product(range(layout.num_decision_states), range(2)))) == layout.num_rows == 10
    assert layout.num_triples == 15
