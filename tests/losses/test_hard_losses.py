"""The losses that break whole families of learners: definitions, the numbers known of them, and what they refuse."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from scipy.optimize import linprog

import hedgerow as hr
from hedgerow.errors import InvalidInput
from hedgerow.losses import Betrayal, Cycle, EarlyBird, Hidden, Tempting
from hedgerow.losses import oblivious as ls
from hedgerow.losses.oblivious import violating_pairs
from hedgerow.model.layout import Layout

LAYOUT = Layout((1, 3, 2, 1), 3)
ROWS = LAYOUT.num_rows
PAIRS = (np.arange(ROWS) % 4 == 0).astype(float)
EXAMPLES = [
    Cycle(),
    Betrayal(episodes=3_000),
    Betrayal(episodes=3_000, turn=0.3, safe_loss=0.7),
    Hidden(episodes=3_000),
    Hidden(episodes=3_000, turn=1.0),
    EarlyBird(np.linspace(0.0, 1.0, ROWS), episodes=3_000),
    Tempting(PAIRS, episodes=3_000),
    Tempting(PAIRS, episodes=3_000, turn=0.1),
]
each = pytest.mark.parametrize("losses", EXAMPLES, ids=repr)


def bandit(costs: tuple[float, ...] = (0.2, 1.0), threshold: float = 0.5) -> hr.CMDP:
    """One step, one state; the constraint is on one cost."""
    layout = Layout((1, 1), len(costs))
    return hr.CMDP(layout, np.ones(len(costs)), hr.costs.BernoulliCosts([costs]), [threshold])


# Blocks and parameters ------------------------------------------------------------------------------------------------


@each
def test_an_episode_has_one_loss_whatever_block_it_is_asked_in(losses: ls.ObliviousLosses) -> None:
    whole = losses.block(LAYOUT, 0, 4_000).dense()
    assert whole.min() >= 0.0
    assert whole.max() <= 1.0
    rng = np.random.default_rng(3)
    for first in [0, 1, 749, 750, 1_499, 1_500, 2_999, 3_999, *rng.integers(0, 3_700, size=10).tolist()]:
        count = min(int(rng.integers(1, 300)), 4_000 - first)
        block = losses.block(LAYOUT, first, count)
        np.testing.assert_array_equal(block.dense(), whole[first : first + count])
        assert len(block.patterns) <= min(3, count)
        assert not block.patterns.flags.writeable
    np.testing.assert_allclose(losses.mean(LAYOUT, 4_000), whole.mean(axis=0), rtol=1e-12)


@each
def test_parameters_say_it_all(losses: ls.ObliviousLosses) -> None:
    plain = {
        name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in losses.params().items()
    }
    twins = ls.from_params(losses.kind, plain), pickle.loads(pickle.dumps(losses)), copy.deepcopy(losses)
    for twin in twins:
        assert twin == losses
        assert hash(twin) == hash(losses)
        np.testing.assert_array_equal(twin.block(LAYOUT, 740, 20).dense(), losses.block(LAYOUT, 740, 20).dense())
    assert all(losses != other for other in EXAMPLES if other is not losses)
    assert not losses.stochastic
    with pytest.raises(AttributeError):
        losses.episodes = 5


def test_cycle_moves_the_losing_action_on() -> None:
    dense = Cycle().block(LAYOUT, 0, 7).dense().reshape(7, LAYOUT.num_decision_states, 3)
    for t in range(7):
        for state in range(LAYOUT.num_decision_states):
            assert dense[t, state].tolist() == [float(a == t % 3) for a in range(3)]


@pytest.mark.parametrize("actions", [1, 2, 4])
def test_betrayal_and_hidden_are_their_definitions(actions: int) -> None:
    layout = Layout((1, 2, 1), actions)
    T = 10
    betrayal = Betrayal(episodes=T).block(layout, 0, T + 2).dense().reshape(T + 2, 3, actions)
    hidden = Hidden(episodes=T).block(layout, 0, T + 2).dense().reshape(T + 2, 3, actions)
    for t in range(T + 2):
        for a in range(actions):
            bad = 0.2 if a == 0 else 1.0 if a > 1 or t >= T / 2 else 0.0
            good = 0.5 if a == 0 else 1.0 if a > 1 or t < T / 4 else 0.0
            assert (betrayal[t, :, a] == bad).all()
            assert (hidden[t, :, a] == good).all()


def test_turns_are_rounded_so_that_decimals_mean_what_they_say() -> None:
    layout = Layout((1, 1), 2)
    for turn, T, before in ((0.07, 100, 7), (5 / 7, 7, 5), (0.25, 10, 3), (0.0, 10, 0), (1.0, 10, 10), (0.3, 1, 0)):
        dense = Betrayal(T, turn).block(layout, 0, 20).dense()
        assert int((dense[:, 1] == 0.0).sum()) == before, (turn, T)


def test_early_birds_find_the_worlds_own_loss() -> None:
    world = hr.worlds.make("dope-factored")
    losses = EarlyBird(world, episodes=50, until=0.2)
    dense = losses.block(world.cmdp.layout, 0, 50).dense()
    assert (dense[:10] == world.loss).all()
    assert not dense[10:].any()
    assert losses == EarlyBird(world.loss, 50, 0.2)


# What is tempting -----------------------------------------------------------------------------------------------------


def test_in_one_step_the_actions_above_the_threshold_tempt() -> None:
    costs = (0.2, 0.9, 0.5, 0.51)
    assert violating_pairs(bandit(costs)).tolist() == [0.0, 1.0, 0.0, 1.0]
    two = hr.CMDP(
        Layout((1, 1), 3), np.ones(3), hr.costs.BernoulliCosts([[0.1, 0.9, 0.2], [0.1, 0.2, 0.9]]), [0.5, 0.6]
    )
    assert violating_pairs(two).tolist() == [0.0, 1.0, 1.0]


def test_tempting_losses_turn_round() -> None:
    losses = Tempting(bandit((0.2, 0.9, 0.5)), episodes=4)
    assert losses.pairs.tolist() == [0.0, 1.0, 0.0]
    assert losses.block(Layout((1, 1), 3), 1, 2).dense().tolist() == [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]


def largest_cost(cmdp: hr.CMDP, i: int, allowed: np.ndarray, start: int = 0) -> tuple[float, float]:
    """The least and the largest cost i from `start` on over policies on `allowed` rows, by a linear program."""
    layout = cmdp.layout
    flow = np.zeros((layout.num_decision_states, layout.num_rows))
    for row in range(layout.num_rows):
        flow[row // layout.num_actions, row] += 1.0
        for triple in range(layout.row_start[row], layout.row_start[row + 1]):
            if layout.successor[triple] < layout.num_decision_states:
                flow[layout.successor[triple], row] -= cmdp.transitions[triple]
    source = (np.arange(layout.num_decision_states) == start).astype(float)
    bounds = [(0.0, None if ok else 0.0) for ok in allowed]
    found = []
    for sign in (1.0, -1.0):
        answer = linprog(sign * cmdp.mean_costs[i], A_eq=flow, b_eq=source, bounds=bounds, method="highs")
        assert answer.status == 0
        found.append(sign * float(answer.fun))
    return found[0], found[1]


@pytest.mark.parametrize("seed", range(4))
def test_violating_pairs_by_linear_programs_and_what_follows_from_them(seed: int) -> None:
    world = hr.worlds.make("random-layered", layers=(1, 3, 2, 1), actions=3, constraints=2, seed=seed).cmdp
    layout, everything = world.layout, np.ones(world.layout.num_rows, dtype=bool)
    expected = np.zeros(layout.num_rows, dtype=bool)
    for i in range(2):
        least = largest_cost(world, i, everything)[0]
        for row in range(layout.num_rows):
            state = row // layout.num_actions
            only = everything.copy()
            only[state * layout.num_actions : (state + 1) * layout.num_actions] = False
            only[row] = True
            excess = largest_cost(world, i, only, state)[0] - largest_cost(world, i, everything, state)[0]
            expected[row] |= excess > (world.thresholds[i] - least) / layout.steps
    found = violating_pairs(world).astype(bool)
    np.testing.assert_array_equal(found, expected)
    assert 0 < found.sum() < len(found)
    calm = ~found
    if calm.reshape(-1, layout.num_actions).any(axis=1).all():
        for i in range(2):  # whoever never meets such a pair is safe
            assert largest_cost(world, i, calm)[1] <= world.thresholds[i] + 1e-9


def test_summed_violation_hides_what_tempting_losses_do() -> None:
    """UCPD (Qiu et al. 2020) on one step with full feedback and exact costs, written down once more.

    L = 1, alpha = 1/2, g = (1/5, 1): V+ = 612.5 while the sum is -1353.3 at T = 10,000.
    """
    T, cost, threshold = 10_000, np.array([0.2, 1.0]), 0.5
    world = bandit((0.2, 1.0), threshold)
    losses = Tempting(world, T).block(world.layout, 0, T).dense()
    V, scale, share = np.sqrt(T), float(T), 1.0 / T
    theta, queue, positive, summed = np.full(2, 0.5), 0.0, 0.0, 0.0
    for t in range(T):
        if t > 0:
            theta = ((1.0 - share) * theta + share / 2) * np.exp(-(V * losses[t - 1] + queue * cost) / scale)
            theta /= theta.sum()
            queue = max(0.0, queue + float(cost @ theta) - threshold)
        excess = float(cost @ theta) - threshold
        positive, summed = positive + max(0.0, excess), summed + excess
    assert positive == pytest.approx(612.5329, abs=1e-3)
    assert summed == pytest.approx(-1353.2776, abs=1e-3)


# The numbers that are known of the others -----------------------------------------------------------------------------


def index_regret(actions: int, T: int, floor: float) -> float:
    """Of the rule that plays the action of the least lower bound of the mean loss, ties to the lowest number."""
    losses = Cycle().block(Layout((1, 1), actions), 0, T).dense()
    iota = 2.0 * np.log(6 * actions * T * 2 / 0.01)
    visits, sums, total = np.zeros(actions), np.zeros(actions), 0.0
    for loss in losses:
        tried = np.maximum(visits, 1.0)
        a = int(np.argmin(np.maximum(floor, sums / tried - np.sqrt(iota / tried))))
        visits[a], sums[a], total = visits[a] + 1.0, sums[a] + loss[a], total + loss[a]
    return float(total - losses.sum(axis=0).min())


@pytest.mark.parametrize(("actions", "T", "expected"), [(2, 10_000, 5_000.0), (3, 9_000, 6_000.0)])
def test_cycle_costs_an_index_rule_everything_but_the_mean(actions: int, T: int, expected: float) -> None:
    assert index_regret(actions, T, floor=-np.inf) == expected
    assert 0.85 * expected < index_regret(actions, T, floor=0.0) < expected


def regret(losses: ls.ObliviousLosses, T: int, seed: int) -> float:
    world = bandit((0.0, 0.0), 1.0)
    learner = hr.UOBREPS(world.view(), T, 0.05, "sharp", seed=seed, transitions=world.transitions)
    return float(hr.simulate(world, learner, losses, seed=seed, progress=False).regret[-1])


def test_a_learner_that_draws_its_actions_hardly_feels_them() -> None:
    """Known of Exp3-IX at T = 10,000: 17.9 on cycle, -580 on betrayal, -936 on hidden; UOB-REPS is of that family."""
    T = 10_000
    assert abs(np.mean([regret(Cycle(), T, seed) for seed in range(3)])) < 0.01 * T
    assert np.mean([regret(Betrayal(T), T, seed) for seed in range(3)]) < -300.0
    assert np.mean([regret(Hidden(T), T, seed) for seed in range(3)]) < -300.0


def test_what_early_birds_miss_is_never_won_back() -> None:
    """The baseline throughout: the regret is the gap of every early episode, and not a bit more."""
    world = hr.worlds.make("lower-bound-1")
    T, cmdp = 200, world.cmdp
    safest = hr.offline.slater(cmdp)
    learner = hr.field.AlwaysBaseline(cmdp.view(), T, baseline=safest)
    run = hr.simulate(cmdp, learner, EarlyBird(world, T, until=0.25), progress=False, marks="all")
    gap = float(safest.policy @ world.loss) - hr.offline.optimum(cmdp, world.loss).value
    assert gap > 0.1
    np.testing.assert_allclose(run.regret, gap * np.minimum(run.episodes, 50), atol=1e-6)


# Refusals -------------------------------------------------------------------------------------------------------------

BAD = [
    (lambda: Betrayal(episodes=0), "the number of episodes is 0; it must be at least 1"),
    (lambda: Betrayal(episodes=2.5), "the number of episodes must be a whole number"),
    (lambda: Betrayal(10, turn=1.5), r"turn is 1.5; it must lie in \[0, 1\]"),
    (lambda: Betrayal(10, safe_loss=-0.1), r"safe_loss is -0.1; it must lie in \[0, 1\]"),
    (lambda: Betrayal(10, safe_loss="x"), "safe_loss must be a number"),
    (lambda: Hidden(10, turn=float("nan")), "turn is nan"),
    (lambda: EarlyBird([0.5, 1.5], 10), "the world's own loss is 1.5 at index 1"),
    (lambda: EarlyBird([0.5], 10, until=2), "until is 2.0; it must lie in"),
    (lambda: EarlyBird(bandit(), 10), "a CMDP has no loss of its own; give early-bird losses the loss itself"),
    (lambda: EarlyBird([0.5], 10).block(LAYOUT, 0, 1), "losses are given for 1 rows; the layout has 18"),
    (lambda: Tempting(PAIRS, 10).block(Layout((1, 1), 2), 0, 1), "losses are given for 18 rows; the layout has 2"),
    (lambda: Tempting(PAIRS, -1), "the number of episodes is -1"),
    (lambda: Tempting(PAIRS, 10, turn=-1), "turn is -1.0"),
    (lambda: Tempting([0.0, 0.5], 10), "tempting losses take a world, or its pairs: 1 for those that violate"),
    (lambda: Tempting("media", 10), "the world of tempting losses must be an array of numbers"),
    (lambda: Tempting(bandit((0.2, 0.5)), 10), "no pair of state and action violates a constraint in this world"),
    (lambda: Tempting(bandit((0.7, 0.9)), 10), "every pair of state and action violates a constraint"),
    (lambda: Tempting([1.0, 1.0], 10), "every pair of state and action"),
    (lambda: ls.from_params("hidden", {}), "hidden losses cannot be made of"),
]


@pytest.mark.parametrize(("make", "message"), BAD)
def test_bad_input_is_refused(make, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        make()
