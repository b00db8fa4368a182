"""Statistics: counts and bounds against formulas, plans against linear programs of their own and enumeration."""

from __future__ import annotations

from itertools import product
from math import log, sqrt
from pathlib import Path

import numpy as np
import pytest
from greedy import Greedy
from learner_cases import random_world
from numpy.random import Generator
from scipy.optimize import linprog

import hedgerow as hr
from hedgerow.model.occupancy import evaluate, occupancy, row_occupancy
from hedgerow.storage import datafile

PRECISE = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
TOL = 1e-8


def drawn_episode(world: hr.CMDP, policy: hr.Policy, loss: np.ndarray, rng: Generator, steps: int = 99) -> hr.Episode:
    """An episode drawn with numpy alone, aborted after `steps` steps; losses are Bernoulli with means `loss`."""
    layout, state, rows = world.layout, 0, []
    for _ in range(min(steps, layout.steps)):
        row = layout.row(state, policy.draw(state, rng))
        own = slice(layout.row_start[row], layout.row_start[row + 1])
        rows.append(row)
        state = int(rng.choice(layout.successor[own], p=world.transitions[own]))
    losses = (rng.random(len(rows)) < loss[rows]).astype(float)
    costs = world.costs.sample(rng)[:, rows].T
    ended_in = state if len(rows) < layout.steps else None
    return hr.Episode(world.view(), np.array(rows), losses, costs, ended_in=ended_in)


def filled(
    world: hr.CMDP, episodes: int, seed: int = 0, loss: np.ndarray | None = None, **options: object
) -> tuple[hr.learners.Statistics, np.ndarray]:
    """Statistics after so many episodes of the uniform policy, and the mean loss of the world."""
    rng = np.random.default_rng(seed)
    loss = rng.random(world.layout.num_rows) if loss is None else loss
    seen = hr.learners.Statistics(world.view(), episodes + 1, 0.05, **options)
    for _ in range(episodes):
        seen.add(drawn_episode(world, hr.Policy.uniform(world), loss, rng))
    return seen, loss


def dense_program(layout: hr.Layout, lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Flow equalities, box inequalities (<= 0) and the map from triples to rows, over triples, entry by entry."""
    n = layout.num_triples
    flow, box, to_rows = np.zeros((layout.num_decision_states, n)), [], np.zeros((layout.num_rows, n))
    for r in range(layout.num_rows):
        own = range(layout.row_start[r], layout.row_start[r + 1])
        for j in own:
            to_rows[r, j] = 1.0
            flow[r // layout.num_actions, j] += 1.0
            if layout.successor[j] < layout.num_decision_states:
                flow[layout.successor[j], j] -= 1.0
            above, below = np.zeros(n), np.zeros(n)
            above[list(own)], below[list(own)] = -upper[j], lower[j]
            above[j] += 1.0
            below[j] -= 1.0
            box += [above, below]
    return flow, np.array(box), to_rows


def least_by_lp(
    seen: hr.learners.Statistics,
    objective: np.ndarray,
    costs: np.ndarray,
    alpha: np.ndarray,
    policy: np.ndarray | None = None,
) -> float:
    """min objective^T w with costs^T w <= alpha over the boxes, for all policies or for one; inf if infeasible."""
    layout = seen.layout
    flow, box, to_rows = dense_program(layout, seen.lower, seen.upper)
    source = np.zeros(len(flow))
    source[0] = 1.0
    A_eq, b_eq = flow, source
    if policy is not None:  # w(x,a) = pi(a|x) w(x)
        same_state = np.kron(np.eye(layout.num_decision_states), np.ones((layout.num_actions, layout.num_actions)))
        fixed = to_rows - policy[:, None] * (same_state @ to_rows)
        A_eq, b_eq = np.vstack([flow, fixed]), np.append(source, np.zeros(layout.num_rows))
    result = linprog(
        objective @ to_rows,
        A_ub=np.vstack([costs.T @ to_rows, box]),
        b_ub=np.append(alpha, np.zeros(len(box))),
        A_eq=A_eq,
        b_eq=b_eq,
        options=PRECISE,
    )
    assert result.status in (0, 2), result.message
    return float(result.fun) if result.status == 0 else np.inf


# Counts, radii, boxes ----------------------------------------------------------------------------------------------


def test_counts_are_those_of_the_steps_that_were_taken() -> None:
    world, rng = random_world(3, m=2), np.random.default_rng(1)
    seen, loss = hr.learners.Statistics(world.view(), 60, 0.1), np.full(world.layout.num_rows, 0.5)
    episodes = [drawn_episode(world, hr.Policy.uniform(world), loss, rng, 1 + t % 3) for t in range(60)]
    assert not all(episode.complete for episode in episodes)
    unseen = drawn_episode(world, hr.Policy.uniform(world), loss, rng)
    unknown = np.ones((3, 2), dtype=bool)
    episodes[-1] = hr.Episode(world.view(), unseen.rows, unseen.losses, unknown_costs=unknown)
    for episode in episodes:
        seen.add(episode)
    visits, moves = np.zeros(world.layout.num_rows), np.zeros(world.layout.num_triples)
    sums, counted = np.zeros((world.layout.num_rows, 3)), np.zeros(world.layout.num_rows)
    for episode in episodes:
        for k, row in enumerate(episode.rows):
            visits[row] += 1
            moves[episode.triples[k]] += 1
            sums[row] += [*episode.costs[k], episode.losses[k]]
            counted[row] += 1
    assert (seen.visits == visits).all()
    assert (seen.moves == moves).all()
    np.testing.assert_array_equal(np.column_stack((seen.cost_sums, seen.loss_sums)), sums)
    known = counted[:, None] - np.isin(np.arange(len(counted)), unseen.rows)[:, None]
    np.testing.assert_allclose(seen.mean_costs, sums[:, :2] / np.maximum(known, 1))
    np.testing.assert_allclose(seen.mean_loss, sums[:, 2] / np.maximum(counted, 1))
    assert seen.num_episodes == 60


@pytest.mark.parametrize("sets", ["sharp", "paper", "source"])
def test_the_loss_is_one_more_cost_in_the_radii(sets: str) -> None:
    world, T, delta = random_world(4, m=2), 500, 0.05
    seen, _ = filled(world, T - 1, sets=sets)
    layout, N = world.layout, np.maximum(seen.visits, 1)
    n_uncertain = sum(c for c in np.diff(layout.row_start) if c > 1)
    if sets == "paper":
        pairs = layout.num_states * layout.num_actions
        xi = np.sqrt(4 * log(T * pairs * 3 / delta) / N)
        iota = log(T * pairs / delta)
    elif sets == "source":
        pairs = max(layout.layer_sizes) * layout.num_actions * layout.steps
        xi = np.sqrt(2 * log(6 * T * pairs * 3 / delta) / N)
        iota = log(6 * T * pairs / delta)
    else:
        union = np.full(len(N), T)
        xi = np.sqrt(np.log(2 * layout.num_rows * 3 * union / delta) / (2 * N))
        iota = np.log(4 * n_uncertain * union / (4 * delta))[layout.row_of_triple]
    xi = np.where(seen.visits == 0, 1.0, np.minimum(1.0, xi))
    np.testing.assert_allclose(seen.cost_radius, xi)
    for lower, upper, mean, width in (
        (seen.loss_lower, seen.loss_upper, seen.mean_loss, xi),
        (seen.cost_lower, seen.cost_upper, seen.mean_costs, xi[:, None]),
    ):
        np.testing.assert_allclose(lower, np.clip(mean - width, 0.0, 1.0))
        np.testing.assert_allclose(upper, np.clip(mean + width, 0.0, 1.0))
    n = np.maximum(1, N[layout.row_of_triple] - (sets != "source"))
    p, of_row = seen.mean_transitions, N[layout.row_of_triple]
    spread = p if sets == "paper" else p * (1 - p)
    factor, offset = (4, 14) if sets in ("paper", "source") else (2, 7)
    epsilon = np.minimum(1.0, np.sqrt(factor * spread * iota / n) + offset * iota / (3 * n))
    single = np.diff(layout.row_start)[layout.row_of_triple] == 1
    many = (of_row > 1) & ~single
    np.testing.assert_allclose(seen.transition_radius[many], epsilon[many])
    assert (seen.transition_radius[single] == 0.0).all()
    assert (seen.lower >= p - epsilon - 1e-12)[many].all()
    assert (seen.upper <= p + epsilon + 1e-12)[many].all()


def test_plans_and_robust_costs_with_the_radii_of_efroni() -> None:
    """Its bounds hold whatever tight ones hold, so a plan is more optimistic and a robust cost larger."""
    world = random_world(5, m=1)
    wide, loss = filled(world, 400, seed=3, sets="source")
    narrow, _ = filled(world, 400, seed=3, sets="sharp")
    np.testing.assert_array_equal(wide.visits, narrow.visits)
    for lower, upper in (("lower", "upper"), ("cost_lower", "cost_upper"), ("loss_lower", "loss_upper")):
        assert (getattr(wide, lower) <= getattr(narrow, lower) + 1e-12).all()
        assert (getattr(wide, upper) >= getattr(narrow, upper) - 1e-12).all()
    for seen in (wide, narrow):
        seen.optimistic_plan()
    assert wide.planned.value <= narrow.planned.value + TOL <= hr.offline.optimum(world, loss).value + 2 * TOL
    policy = hr.Policy.uniform(world)
    assert (wide.robust_cost(policy) >= narrow.robust_cost(policy) - TOL).all()
    assert repr(wide).endswith("sets='source')")
    assert hr.learners.Statistics.restored(world.view(), wide.state()).sets == wide.sets


def test_paper_numbers_of_the_radii_module() -> None:
    """T = 1000, 10 states, 3 actions, m + 1 = 2, delta = .05, N = 200: xi = .529109."""
    layout = hr.Layout((1, 8, 1), 3)
    view = hr.View(layout, [1.0], ["cost"])
    seen = hr.learners.Statistics(view, 1000, 0.05, sets="paper")
    for _ in range(200):
        seen.add(hr.Episode(view, [0, 3], [0.5, 0.5], [1.0, 0.0]))
    assert seen.cost_radius[0] == pytest.approx(0.529109, abs=1e-6)
    assert seen.cost_radius[0] == pytest.approx(sqrt(4 * log(1000 * 10 * 3 * 2 / 0.05) / 200))


def test_the_truth_lies_within_the_bounds() -> None:
    """The clean event, of probability 1 - 5 delta at least, on 40 runs: all bounds, at every tenth episode."""
    misses = 0
    for seed in range(40):
        world, rng = random_world(seed, layers=(1, 2, 2, 1), m=1), np.random.default_rng(100 + seed)
        loss = rng.random(world.layout.num_rows)
        seen, clean = hr.learners.Statistics(world.view(), 100, 0.02), True
        for t in range(100):
            seen.add(drawn_episode(world, hr.Policy.uniform(world), loss, rng))
            if t % 10 == 9:
                p, g = world.transitions, world.mean_costs.T
                clean &= bool(np.all((seen.lower <= p + 1e-12) & (p <= seen.upper + 1e-12)))
                clean &= bool(np.all((seen.cost_lower <= g) & (g <= seen.cost_upper)))
                clean &= bool(np.all((seen.loss_lower <= loss) & (loss <= seen.loss_upper)))
                if clean:  # then the plan is optimistic: a deterministic consequence
                    seen.optimistic_plan()
                    assert seen.planned is not None
                    assert seen.planned.raised == 0.0
                    assert seen.planned.value <= hr.offline.optimum(world, loss).value + TOL
        misses += not clean
    assert misses <= 4  # 10 % of 40 at most; more than that has a probability of a few percent


def test_doubled() -> None:
    view = hr.View(hr.Layout((1, 1), 2), [], [])
    seen = hr.learners.Statistics(view, 100, 0.1)
    answers = [seen.doubled(), seen.doubled()]
    for action in [0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]:
        seen.add(hr.Episode(view, [action], [0.0]))
        answers.append(seen.doubled())
    #        first, asked twice; 0->1, 1->2, 3 < 4, 4, 5 < 8, other action, 6..9 < 10, 10, 11
    assert answers == [True, False, True, True, False, True, False, True] + [False] * 4 + [True, False]


# Plans -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [0, 1, 2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_the_optimistic_plan_is_that_of_the_linear_program(seed: int, m: int) -> None:
    world = random_world(seed, m=m, sparse=seed % 2 == 1)
    seen, _ = filled(world, 150, seed, confidence_scale=0.2)
    policy = seen.optimistic_plan()
    planned = seen.planned
    assert planned is not None
    assert planned.policy is policy
    assert planned.raised == 0.0
    assert (planned.costs <= world.thresholds + TOL).all()
    by_lp = least_by_lp(seen, seen.loss_lower, seen.cost_lower, world.thresholds)
    assert planned.value == pytest.approx(by_lp, abs=TOL)
    own = least_by_lp(seen, seen.loss_lower, seen.cost_lower, world.thresholds + 1e-9, np.asarray(policy))
    assert own == pytest.approx(by_lp, abs=1e-6)  # the policy itself attains it, under some transitions in the boxes


def vertices(lower: np.ndarray, upper: np.ndarray) -> list[tuple[float, float]]:
    """The extreme points of { lower <= p <= upper, sum p = 1 } for two successors."""
    least = max(lower[0], 1.0 - upper[1])
    most = min(upper[0], 1.0 - lower[1])
    return [(least, 1.0 - least), (most, 1.0 - most)]


@pytest.mark.parametrize("seed", range(6))
def test_the_optimistic_plan_is_the_best_of_all_on_a_tiny_world(seed: int) -> None:
    """All deterministic policies under all extreme transitions, and all mixtures of two of them."""
    world = random_world(seed, layers=(1, 2, 1), actions=2, m=1)
    seen, _ = filled(world, 40, seed, confidence_scale=0.3)
    points = []
    for a, b, c in product(range(2), repeat=3):
        own = slice(world.layout.row_start[a], world.layout.row_start[a + 1])
        for p in vertices(seen.lower[own], seen.upper[own]):
            w = np.zeros(6)
            w[a], w[2 + b], w[4 + c] = 1.0, p[0], p[1]
            points.append((float(seen.loss_lower @ w), float(seen.cost_lower[:, 0] @ w)))
    alpha, best = float(world.thresholds[0]), np.inf
    for (l1, c1), (l2, c2) in product(points, repeat=2):
        if c1 <= alpha:
            share = 1.0 if c2 <= alpha else (alpha - c1) / (c2 - c1)
            best = min(best, (1.0 - share) * l1 + share * l2)
    seen.optimistic_plan()
    assert seen.planned is not None
    assert seen.planned.value == pytest.approx(best, abs=TOL)


def test_wider_bounds_and_higher_thresholds_never_cost_more() -> None:
    world = random_world(7, m=2)
    values = []
    for scale in (1.0, 0.5, 0.2, 0.05):
        seen, _ = filled(world, 200, confidence_scale=scale)
        seen.optimistic_plan()
        assert seen.planned is not None
        values.append(seen.planned.value)
    assert values == sorted(values)
    assert values[0] < values[-1]
    for more in (0.1, 0.5):
        higher, _ = filled(world.with_thresholds(world.thresholds + more), 200, confidence_scale=0.05)
        higher.optimistic_plan()
        assert higher.planned is not None
        assert higher.planned.value <= values[-1] + TOL


@pytest.mark.parametrize("m", [1, 2])
def test_thresholds_that_cannot_be_met_are_raised_as_little_as_possible(m: int) -> None:
    world = random_world(11, m=m)
    tight = world.with_thresholds(np.zeros(m))
    seen, _ = filled(tight, 300, confidence_scale=0.02)
    policy = seen.optimistic_plan()
    planned = seen.planned
    assert planned is not None
    assert planned.raised > 0.1
    assert planned.costs == pytest.approx(np.full(m, planned.raised), abs=1e-6) if m == 1 else True
    # One less and nothing is left; so much and something is.
    for by, feasible in ((-1e-6, False), (1e-6, True)):
        value = least_by_lp(seen, seen.loss_lower, seen.cost_lower, np.full(m, planned.raised + by))
        assert np.isfinite(value) == feasible
    assert isinstance(policy, hr.Policy)
    assert (planned.costs <= planned.raised + TOL).all()


@pytest.mark.parametrize("seed", range(5))
def test_the_pessimistic_plan_is_safe_for_everything_in_the_boxes(seed: int) -> None:
    world = random_world(seed, m=2)
    world = world.with_thresholds(np.minimum(world.thresholds + 0.6, world.layout.steps))
    seen, loss = filled(world, 400, seed, confidence_scale=0.1)
    policy = seen.pessimistic_plan()
    assert seen.planned is not None
    assert (seen.robust_cost(policy) <= seen.planned.costs + TOL).all()
    assert (seen.robust_cost(policy) <= world.thresholds + TOL).all()
    assert (evaluate(world, policy, loss).costs <= world.thresholds).all()
    pessimist = seen.planned.value
    seen.optimistic_plan()
    assert seen.planned.value <= pessimist + TOL


def test_no_pessimistic_plan_before_anything_is_known() -> None:
    world = random_world(2, m=2)
    seen = hr.learners.Statistics(world.view(), 100, 0.1)
    with pytest.raises(hr.errors.InfeasibleError, match="no policy is known to be safe after 0 episodes") as caught:
        seen.pessimistic_plan()
    # Unknown rows cost 1 each, and 1 more for each step that their unknown successors take: 3 + (1 + 1) or so.
    assert caught.value.least_violation > 0.5
    assert sum(caught.value.multipliers) == pytest.approx(1.0)
    assert set(caught.value.constraints) <= set(world.constraint_names)
    assert seen.planned is None


@pytest.mark.parametrize("seed", range(6))
def test_the_robust_cost_is_that_of_the_linear_program(seed: int) -> None:
    world, rng = random_world(seed, m=2, sparse=seed % 2 == 0), np.random.default_rng(seed)
    seen, _ = filled(world, 100, seed, confidence_scale=0.3)
    weights = rng.exponential(size=(world.layout.num_decision_states, 2))
    policy = hr.Policy(world, weights / weights.sum(axis=1, keepdims=True))
    bounds = seen.robust_cost(policy)
    for i in range(2):
        worst = -least_by_lp(
            seen, -seen.cost_upper[:, i], np.zeros((world.layout.num_rows, 0)), np.zeros(0), np.asarray(policy)
        )
        assert bounds[i] == pytest.approx(worst, abs=TOL)
    np.testing.assert_array_equal(bounds, seen.robust_cost(np.asarray(policy)))


@pytest.mark.parametrize("seed", range(3))
def test_values_bound_the_truth_and_agree_with_robust_costs(seed: int) -> None:
    world = random_world(seed, sparse=seed == 1)
    seen, loss = filled(world, 3_000, seed)
    policy = hr.Policy(world, np.random.default_rng(seed).dirichlet(np.ones(2), world.layout.num_decision_states))
    least, middle, most = (seen.values(policy, which) for which in ("lower", "mean", "upper"))
    np.testing.assert_allclose(most.costs[0], seen.robust_cost(policy), rtol=0.0, atol=1e-12)
    true = evaluate(world, policy, loss)
    for low, mean, high, value in (
        (least.loss[0], middle.loss[0], most.loss[0], true.loss),
        (least.costs[0], middle.costs[0], most.costs[0], true.costs),
    ):
        assert np.all(low < value)
        assert np.all(value < high)
        np.testing.assert_allclose(mean, value, rtol=0.0, atol=0.15)
    for values in (least, middle, most):
        table = policy.probabilities.reshape(-1, 2)
        np.testing.assert_allclose(values.loss, (table * values.q_loss.reshape(-1, 2)).sum(axis=1), rtol=1e-12)
        assert values.q_costs.shape == (world.layout.num_rows, 2)
        assert values.costs.shape == (world.layout.num_decision_states, 2)


def test_values_by_the_means_are_those_of_the_estimated_world() -> None:
    """By an occupancy, which is another way than a backward pass."""
    world = random_world(4)
    seen, _ = filled(world, 500, 4)
    policy, layout = hr.Policy.uniform(world), world.layout
    masses = row_occupancy(layout, occupancy(layout, seen.mean_transitions, policy))
    found = seen.values(policy)
    assert found.loss[0] == pytest.approx(float(masses @ seen.mean_loss))
    np.testing.assert_allclose(found.costs[0], masses @ seen.mean_costs)
    known = hr.learners.Statistics(world, 10, transitions=world.transitions)
    known.add(drawn_episode(world, policy, np.ones(layout.num_rows), np.random.default_rng(0)))
    assert known.values(policy).loss[0] == pytest.approx(
        float(row_occupancy(layout, occupancy(layout, world.transitions, policy)) @ known.mean_loss)
    )


def test_values_refuse_what_they_cannot_judge() -> None:
    world = random_world(0)
    seen, policy = hr.learners.Statistics(world, 10), hr.Policy.uniform(world)
    with pytest.raises(hr.errors.InvalidInput, match="values takes a policy; for a mixture"):
        seen.values(hr.Mixture((1.0, policy)))
    with pytest.raises(hr.errors.InvalidInput, match="which is 'best'; choose one of mean, lower, upper"):
        seen.values(policy, "best")
    with pytest.raises(hr.errors.InvalidInput):
        seen.values([0.5, 0.5])


def test_known_transitions() -> None:
    world = random_world(5, m=1)
    seen, _ = filled(world, 50, transitions=world.transitions, confidence_scale=0.01)
    np.testing.assert_array_equal(seen.lower, world.transitions)
    assert (seen.transition_radius == 0.0).all()
    policy = hr.Policy.uniform(world)
    w = row_occupancy(world.layout, occupancy(world.layout, world.transitions, policy))
    np.testing.assert_allclose(seen.robust_cost(policy), w @ seen.cost_upper)
    assert isinstance(seen.optimistic_plan(), hr.Policy)


# Refusals and files ------------------------------------------------------------------------------------------------


def test_refusals_change_nothing() -> None:
    world, other = random_world(1, m=1), random_world(1, layers=(1, 2, 1), m=1)
    seen, loss = filled(world, 1)
    stranger = drawn_episode(other, hr.Policy.uniform(other), np.zeros(9), np.random.default_rng(0))
    for wrong in (stranger, [0, 1], None):
        with pytest.raises(hr.errors.InvalidInput, match=r"another world|takes an Episode"):
            seen.add(wrong)  # type: ignore[arg-type]
    assert seen.num_episodes == 1
    seen.add(drawn_episode(world, hr.Policy.uniform(world), loss, np.random.default_rng(0)))
    with pytest.raises(hr.errors.InvalidInput, match="made for 2 episodes"):
        seen.add(drawn_episode(world, hr.Policy.uniform(world), loss, np.random.default_rng(0)))
    assert seen.visits[:2].sum() == 2
    with pytest.raises(hr.errors.InvalidInput, match="for a mixture, add up"):
        seen.robust_cost(hr.Mixture((1.0, hr.Policy.uniform(world))))  # type: ignore[arg-type]
    with pytest.raises(hr.errors.InvalidInput, match="another layout"):
        seen.robust_cost(hr.Policy.uniform(other))
    with pytest.raises(hr.errors.InvalidInput, match="a world or its view is needed"):
        hr.learners.Statistics(world.view, 10, 0.1)
    with pytest.raises(hr.errors.InvalidInput, match="need the number of episodes"):
        hr.learners.Statistics(world.view(), None, 0.1)
    assert hr.learners.Statistics(world.view(), None, 0.1, sets="sharpest").episodes is None
    assert hr.learners.Statistics(world.view(), 1e5, 0.1).episodes == 100_000


def test_what_it_hands_out_cannot_be_written_to_and_does_not_change() -> None:
    world = random_world(1, m=1)
    seen, loss = filled(world, 1)
    before, visits = seen.visits, seen.visits.copy()
    seen.add(drawn_episode(world, hr.Policy.uniform(world), loss, np.random.default_rng(0)))
    assert (before == visits).all()
    with pytest.raises(ValueError, match="read-only"):
        seen.lower[0] = 0.5


@pytest.mark.parametrize("known", [False, True])
def test_a_state_goes_on_bit_for_bit(known: bool, tmp_path: Path) -> None:
    world = random_world(6, m=2)
    seen, loss = filled(world, 30, transitions=world.transitions if known else None)
    seen.episodes_left = 1  # what somebody hangs on it is no part of the state
    seen.doubled()
    (tmp_path / "seen").write_bytes(datafile.pack("seen", 1, {}, seen.state()))
    again = hr.learners.Statistics.restored(world.view(), datafile.load(tmp_path / "seen", "seen").arrays)
    assert again.num_episodes == 30
    episode = drawn_episode(world, hr.Policy.uniform(world), loss, np.random.default_rng(5))
    for one in (seen, again):
        one.add(episode)
    assert seen.doubled() == again.doubled()
    for name in (
        "visits",
        "moves",
        "cost_sums",
        "loss_sums",
        "lower",
        "upper",
        "cost_lower",
        "cost_upper",
        "loss_lower",
    ):
        np.testing.assert_array_equal(getattr(seen, name), getattr(again, name))
    np.testing.assert_array_equal(np.asarray(seen.optimistic_plan()), np.asarray(again.optimistic_plan()))


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("num_visits", lambda a: a + 1),
        ("num_visits", lambda a: a[:-1]),
        ("num_visits", lambda a: a.astype(float)),
        ("num_moves", lambda a: a[::-1].copy()),
        ("sums", lambda a: a + 100.0),
        ("sums", lambda a: a * np.nan),
        ("sums", lambda a: a[:, :1]),
        ("episodes", lambda a: a + 5),
        ("unknown_episodes", lambda a: a + 31),
        ("unknown_moves", lambda a: a + 1),
        ("unknown_costs", lambda a: a + 1),
        ("settings", lambda a: a * 0.0),
        ("radii", lambda a: np.array("loose")),
        ("visits_then", lambda a: a + 1000),
        ("visits_then", None),
        ("extra", lambda a: np.zeros(1)),
    ],
)
def test_a_damaged_state_is_refused(name: str, damage: object) -> None:
    world = random_world(6, m=2)
    seen, _ = filled(world, 30)
    seen.doubled()
    state = seen.state()
    if damage is None:
        del state[name]
    else:
        state[name] = damage(state.get(name))  # type: ignore[operator]
    with pytest.raises(hr.errors.InvalidInput):
        hr.learners.Statistics.restored(world.view(), state)


# The learner of twenty lines ---------------------------------------------------------------------------------------


def test_greedy_on_dope_media() -> None:
    world, rng = hr.worlds.make("dope-media"), np.random.default_rng(0)
    learner, plans = Greedy(world.view(), 20_000, 0.01), set()
    for _ in range(300):
        plan = learner.plan()
        plans.add(id(plan.policy))
        learner.observe(drawn_episode(world.cmdp, plan.policy, world.loss, rng))
    planned = learner.seen.planned
    assert planned is not None
    assert planned.raised == 0.0
    assert 0.0 < planned.value < world.golden.optimum
    assert planned.policy is learner.policy
    assert learner.seen.num_episodes == 300


def test_greedy_in_a_simulation() -> None:
    world = hr.worlds.make("dope-media")
    run = hr.simulate(
        world, Greedy(world.view(), 20_000, 0.01), hr.losses.Switching(period=1_000), episodes=60, progress=False
    )
    assert np.isfinite(run.regret).all()
    assert np.isfinite(run.violation).all()
    assert bool(run.safe[-1]) in (True, False)
