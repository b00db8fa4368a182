"""The first phase of CV-OPS: its dual player, its stopping rules, the policies that it keeps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.random import SeedSequence
from scipy import stats

from hedgerow.learners.ops.guarantees import primal_constant, segment_bounds
from hedgerow.learners.ops.search import (
    Search,
    SearchRule,
    descend,
    first_point,
    keep_policy,
    make_search,
    mix_costs,
    project_on_simplex,
    regret_constant,
    search_step,
    step_constant,
    stopping_radius,
)
from hedgerow.model.layout import Layout
from hedgerow.model.random_streams import seeded

LAYOUT = Layout((1, 2, 2, 1), 2)


def make_rule(thresholds: list[float], delta: float = 0.05, **changes: Any) -> SearchRule:
    m, L = len(thresholds), float(LAYOUT.steps)
    rule = SearchRule(
        active=True,
        waits=False,
        primal_constant=0.0,
        dual_constant=regret_constant(m, L),
        dual_step=step_constant(m, L),
        steps=L,
        radius_scale=1.0,
        variance=False,
        log_inverse_delta=-np.log(delta),
        binding=np.arange(m),
        thresholds=np.array(thresholds),
        ceilings=np.full(m, L),
        dual_loss=np.zeros(m),
        draws=np.zeros(0, dtype=np.int64),
    )
    return rule.replace(**changes)


def run_until_stop(rule: SearchRule, search: Search, costs: np.ndarray, most: int) -> int:
    for t in range(1, most + 1):
        if search_step(rule, search, t, costs):
            return t
    return 0


@pytest.mark.parametrize(("margin", "expected"), [(0.5, 1_242), (0.25, 5_861), (0.1, 43_873)])
def test_the_practical_rule_stops_where_the_specification_says(margin: float, expected: int) -> None:
    """L = 3, m = 1, delta = .05 and costs that never vary."""
    search = make_search(LAYOUT, 1, 10**6 // 8)
    costs = np.full((3, 1), (1.5 - margin) / 3)
    assert run_until_stop(make_rule([1.5]), search, costs, 50_000) == expected
    assert search.facts.t_bar == expected
    assert search.facts.margin == pytest.approx(margin)
    assert search.facts.rho_hat == pytest.approx(search.facts.margin - search.facts.radius)
    assert search.facts.rho_hat >= margin / 2


def test_the_rules_by_hand() -> None:
    """Each rule stops at the first t at which its inequality holds, written here with numpy alone."""
    L, delta, m = 3.0, 0.05, 2
    t = np.arange(2, 10**6, dtype=float)
    radius = L * np.sqrt(np.log(m * t * (t + 1) / delta) / (2 * t))
    C_P, C_D = 2.0, 2 * np.sqrt(m) * L
    waiting = 4 * radius + C_P * np.sqrt(np.log(t) / t) + C_D / np.sqrt(t)
    costs = np.array([[0.1, 0.3]] * 3)  # margins .9 and .7
    for needed, changes in [
        (2 * radius, {}),
        (waiting, {"waits": True, "primal_constant": C_P}),
    ]:
        search = make_search(LAYOUT, m, 10**6)
        stopped = run_until_stop(make_rule([1.2, 1.6], **changes), search, costs, 100_000)
        assert stopped == t[np.flatnonzero(needed <= 0.7)[0]]


def test_layer_zero_counts() -> None:
    """D2: costs (1, 0) of the two first actions and nothing later, threshold .4, a uniform policy: margin -.1.

    The printed sum over k = 1..L-1 sees no cost at all and would stop with rho_hat near .4.
    """
    rng = np.random.default_rng(0)
    rule, search = make_rule([0.4]), make_search(LAYOUT, 1, 30_000)
    literal, stopped_literal = 0.0, 0
    for t in range(1, 30_001):
        costs = np.zeros((3, 1))
        costs[0, 0] = float(rng.random() < 0.5)
        assert not search_step(rule, search, t, costs)
        literal += costs[1:].sum()
        radius = 3 * np.sqrt(np.log(t * (t + 1) / 0.05) / (2 * t))
        if not stopped_literal and 0.4 - literal / t >= 2 * radius:
            stopped_literal = t
    assert search.facts.margin == pytest.approx(-0.1, abs=0.02)
    assert stopped_literal > 0


def test_costs_of_earlier_episodes_and_one_threshold_an_episode() -> None:
    """D3: the sum runs over the costs of *their* episodes, and alpha is subtracted once per episode.

    As printed, g_t would stand in every term of the sum: one cheap episode would make all earlier ones look cheap.
    """
    rule, search = make_rule([1.0]), make_search(LAYOUT, 1, 200)
    costly, cheap = np.full((3, 1), 0.9), np.zeros((3, 1))
    for t in range(1, 100):
        search_step(rule, search, t, costly)
    assert not search_step(rule, search, 100, cheap)
    assert search.facts.margin == pytest.approx(1.0 - 99 * 2.7 / 100)
    as_printed = (1.0 * 100 - 100 * cheap.sum()) / 100
    assert as_printed == 1.0  # the margin would look perfect
    per_step = 1.0 - (99 * 2.7 / 100) / 3
    assert per_step > 0.0 > search.facts.margin  # alpha / L outside the sum over layers forgets a factor L


def test_losses_of_the_primal_player_are_never_negative() -> None:
    """D4: sum_i phi_i g_i in [0, 1]; the printed sum_i phi_i (g_i - alpha_i / L) is below 0 where costs are small."""
    rng = np.random.default_rng(1)
    thresholds = np.array([1.2, 2.1])
    rule, search = make_rule([1.2, 2.1]), make_search(LAYOUT, 2, 0)
    for _ in range(50):
        weights, costs, mixed = rng.dirichlet([1.0, 1.0]), rng.random((3, 2)) ** 3, np.zeros(3)
        mix_costs(rule, search.replace(weights=weights), costs, mixed)
        np.testing.assert_allclose(mixed, costs @ weights)
        assert mixed.min() >= 0.0
        assert mixed.max() <= 1.0
        printed = (costs - thresholds / 3) @ weights
        # The two differ by the same amount on every pair of an episode: no policy gains by it.
        np.testing.assert_allclose(mixed - printed, np.full(3, thresholds @ weights / 3))
    assert printed.min() < 0.0


def test_the_radius_holds_at_all_times_and_for_all_constraints() -> None:
    """D7: 400 runs of costs 0 or L with true margin 0 for m = 3: a fixed-time radius for one constraint is passed at
    some time in far more than 5 % of the runs, ours in none.
    """
    rng = np.random.default_rng(2)
    episodes, m, L, delta = 4_000, 3, 3.0, 0.05
    t = np.arange(1, episodes + 1, dtype=float)
    fixed = L * np.sqrt(np.log(1 / delta) / (2 * t))
    uniform = L * np.sqrt(np.log(m * t * (t + 1) / delta) / (2 * t))
    passed_fixed = passed_uniform = 0
    for _ in range(400):
        c = L * (rng.random((episodes, m)) < 0.5)
        margin = 1.5 - np.cumsum(c, axis=0) / t[:, None]
        passed_fixed += bool(np.any(margin.max(axis=1) > fixed))
        passed_uniform += bool(np.any(margin.max(axis=1) > uniform))
    assert stats.binomtest(passed_fixed, 400, delta, alternative="greater").pvalue < 1e-9
    assert passed_uniform == 0


@pytest.mark.slow
def test_nothing_is_found_where_nothing_is_safe() -> None:
    """Costs 0 or L with true margin 0: no run stops, and rho_hat is never above the margin when it is positive."""
    rng = np.random.default_rng(3)
    for true_margin, stops in [(0.0, False), (0.6, True)]:
        for _ in range(60):
            rule, search = make_rule([1.5, 1.5]), make_search(LAYOUT, 2, 3_000)
            stopped = 0
            for t in range(1, 3_001):
                costs = np.repeat(rng.random((1, 2)) < 0.5 - true_margin / 3, 3, axis=0).astype(float)
                if search_step(rule, search, t, costs):
                    stopped = t
                    break
            assert (stopped > 0) == stops
            assert search.facts.rho_hat <= true_margin


def variance_radius(costs: np.ndarray, ceilings: np.ndarray, delta: float, L: float) -> float:
    """The formula of the module's text, in plain Python; `costs` (t, m) are those of whole episodes."""
    t, m = costs.shape
    range_radius = L * np.sqrt(np.log(2 * m * t * (t + 1) / delta) / (2 * t))
    before = np.vstack([np.zeros(m), np.cumsum(costs, axis=0)[:-1] / np.arange(1, t)[:, None]])
    VV = (((costs - before) / ceilings) ** 2).sum(axis=0)
    rates = 0.5 ** np.arange(1, 15)
    psi = -np.log(1 - rates) - rates
    widest = max(ceilings[i] * np.min((np.log(2 * 14 * m / delta) + psi * VV[i]) / (rates * t)) for i in range(m))
    return float(min(range_radius, widest))


def test_the_radius_knows_how_much_costs_vary() -> None:
    rng = np.random.default_rng(11)
    ceilings = np.array([3.0, 2.0])
    rule, search = make_rule([1.5, 1.5], variance=True, ceilings=ceilings), make_search(LAYOUT, 2, 10_000)
    history = []
    for t in range(1, 200):
        costs = np.minimum(rng.random((3, 2)) * [0.4, 0.1], 1.0)
        search_step(rule, search, t, costs)
        history.append(costs.sum(axis=0))
        expected = variance_radius(np.array(history), ceilings, 0.05, 3.0)
        assert search.facts.radius == pytest.approx(expected, rel=1e-12)
    plain = make_rule([1.5, 1.5])
    assert search.facts.radius < 0.5 * stopping_radius(plain, search.squares, 10_000, 199)


def test_the_radius_that_knows_the_variance_holds_at_all_times() -> None:
    """Means that change from episode to episode, chosen by what was seen: their sum stays below the sum + radius."""
    rule = make_rule([1.5], 0.2, variance=True)
    runs, episodes, delta = 300, 400, 0.2
    breaches = 0
    rng = np.random.default_rng(5)
    for _ in range(runs):
        squares, total, means = np.zeros(1), 0.0, 0.0
        broken = False
        for t in range(1, episodes + 1):
            p = 0.05 if total > means else 0.4  # chases its own luck
            cost = 3.0 * (rng.random() < p)
            squares[0] += ((cost - total / max(1, t - 1)) / 3.0) ** 2
            total, means = total + cost, means + 3.0 * p
            broken |= means - total > t * stopping_radius(rule, squares, episodes, t)
        breaches += broken
    assert stats.binomtest(breaches, runs, delta, alternative="greater").pvalue > 1e-3


# The dual player ------------------------------------------------------------------------------------------------------


def test_projection_on_the_simplex_against_the_sorted_formula() -> None:
    rng = np.random.default_rng(4)
    for _ in range(300):
        point = rng.normal(scale=rng.choice([0.1, 1.0, 30.0]), size=rng.integers(1, 9))
        ordered = np.sort(point)[::-1]
        excess = (np.cumsum(ordered) - 1) / np.arange(1, len(point) + 1)
        expected = np.maximum(point - excess[np.flatnonzero(ordered > excess)[-1]], 0.0)
        project_on_simplex(point)
        np.testing.assert_allclose(point, expected, atol=1e-12)
        assert point.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("m", [2, 3, 6])
def test_the_dual_regret_never_passes_its_constant(m: int) -> None:
    """At every time, for random, constant and switching losses: T20 of the specification."""
    rng, L = np.random.default_rng(5), 3.0
    patterns = {
        "random": lambda t: rng.uniform(-L, L, m),
        "constant": lambda t: np.linspace(-L, L, m),
        "switching": lambda t: np.where(np.arange(m) == (t // 50) % m, -L, L),
        "pursuit": lambda t: L * np.where(np.arange(m) == np.argmax(point), 1.0, -1.0),
    }
    for loss_of in patterns.values():
        point, total, sums, worst = first_point(m), 0.0, np.zeros(m), 0.0
        for t in range(1, 2_001):
            loss = loss_of(t)
            total += point @ loss
            sums += loss
            worst = max(worst, (total - sums.min()) / np.sqrt(t))
            descend(point, loss, t, step_constant(m, L))
        assert worst <= regret_constant(m, L)
    assert regret_constant(1, L) == 0.0


# Constants ------------------------------------------------------------------------------------------------------------


def test_the_theory_constant_of_the_specification() -> None:
    """78 with P known and 2.5 10^3 with the leading terms, where tau is the end of a segment; larger over all tau."""
    layout = Layout((1, 4, 4, 1), 3)
    for known, expected in [(True, 78.2), (False, 2_476.0)]:
        played = regret = largest = 0.0
        for length, bound in segment_bounds(layout, 0.05, known, lower_order=False):
            played, regret = played + length, regret + min(3 * length, bound)
            if played >= 2:
                largest = max(largest, regret / np.sqrt(played * np.log(played)))
        assert largest == pytest.approx(expected, rel=1e-3)
    assert primal_constant(layout, 0.05, known_transitions=True) == pytest.approx(107.4, rel=1e-3)
    assert 3_515 < primal_constant(layout, 0.05) < 2e4


# Policies that are kept -----------------------------------------------------------------------------------------------


def test_all_policies_are_kept_while_there_is_room() -> None:
    rule, search, coin = make_rule([1.5]), make_search(LAYOUT, 1, 5), seeded(SeedSequence(6))
    for t in range(1, 6):
        keep_policy(rule, search, np.full(LAYOUT.num_rows, float(t)), t, coin)
    np.testing.assert_array_equal(search.policies[:, 0], [1, 2, 3, 4, 5])


def test_beyond_the_room_places_are_independent_uniform_draws() -> None:
    """5 places, 12 policies, 4000 times: every policy is as likely in every place, and places are independent."""
    coin, room, last, times = seeded(SeedSequence(7)), 5, 12, 4_000
    rule, search = make_rule([1.5]).replace(draws=np.zeros(room, dtype=np.int64)), make_search(LAYOUT, 1, room)
    seen = np.zeros((times, room), dtype=int)
    for i in range(times):
        for t in range(1, last + 1):
            keep_policy(rule, search, np.full(LAYOUT.num_rows, float(t)), t, coin)
        seen[i] = search.policies[:, 0]
    assert stats.chisquare(np.bincount(seen.ravel(), minlength=last + 1)[1:]).pvalue > 1e-3
    # The number of times that one policy is held is binomial: the mark of independent draws with replacement.
    held = np.bincount((seen == 3).sum(axis=1), minlength=room + 1)[:4]
    expected = stats.binom.pmf(np.arange(room + 1), room, 1 / last) * times
    expected = np.append(expected[:3], expected[3:].sum())
    assert stats.chisquare(np.append(held[:3], times - held[:3].sum()), expected).pvalue > 1e-3


def test_the_radius_grows_by_what_the_draws_may_be_off() -> None:
    costs, rule = np.full((3, 1), 0.2), make_rule([1.5])
    room, exact = make_search(LAYOUT, 1, 100), make_search(LAYOUT, 1, 1_000)
    for t in range(1, 201):
        search_step(rule, room, t, costs)
        search_step(rule, exact, t, costs)
        extra = 3 * np.sqrt(np.log(2 / 0.05) / 200) if t > 100 else 0.0
        assert room.facts.radius == pytest.approx(exact.facts.radius + extra)
