"""Unrolling keeps the loss and the costs of every policy; the judge is a naive forward pass in plain loops."""

import time
from typing import NamedTuple

import numpy as np
import pytest
from scipy import sparse

from hedgerow.errors import InvalidInput
from hedgerow.importers.unroll import RewardScale, unroll
from hedgerow.model.layout import Layout
from hedgerow.model.occupancy import evaluate, occupancy, residuals

TOL_VALUE = 1e-12
H, S, A, M = 5, 4, 3, 2


class Problem(NamedTuple):
    """A finite-horizon MDP with every table per step, and what the naive evaluation needs to know."""

    transitions: np.ndarray
    loss: np.ndarray
    costs: np.ndarray
    start: np.ndarray
    absorbing: tuple[int, ...] = ()
    available: np.ndarray | None = None


def naive_values(problem: Problem, table: np.ndarray) -> tuple[float, np.ndarray]:
    """Expected loss and costs of action probabilities (H, S, A), state after state in plain loops."""
    mass, total, costs = problem.start.copy(), 0.0, np.zeros(len(problem.costs))
    for k in range(len(table)):
        moved = np.zeros(len(mass))
        for s in range(len(mass)):
            for a in range(table.shape[2]):
                weight = mass[s] * table[k, s, a]
                if s in problem.absorbing:
                    moved[s] += weight
                    continue
                real = a
                if problem.available is not None and not problem.available[k, s, a]:
                    real = next(b for b in range(table.shape[2]) if problem.available[k, s, b])
                total += weight * problem.loss[k, s, real]
                costs += weight * problem.costs[:, k, s, real]
                moved += weight * problem.transitions[k, s, real]
        mass = moved
    return total, costs


def random_tables(rng, *, per_step, sparse_rows=True):
    """Transitions, loss and costs, with a leading axis of length H if per_step, and about half of the transitions 0."""
    lead = (H,) if per_step else ()
    weights = rng.random((*lead, S, A, S)) + 1e-3
    if sparse_rows:
        keep = rng.random(weights.shape) < 0.5
        keep[..., 0] |= ~keep.any(axis=-1)
        weights = weights * keep
    return (
        weights / weights.sum(axis=-1, keepdims=True),
        rng.random((*lead, S, A)),
        rng.random((M, *lead, S, A)),
    )


def per_step(table, axis=0):
    return np.repeat(np.expand_dims(table, axis), H, axis=axis)


def random_policy_table(rng):
    return rng.dirichlet(np.ones(A), size=(H, S))


def agree(world, problem, table):
    found = evaluate(world.cmdp, world.policy(table), world.loss)
    loss, costs = naive_values(problem, table)
    assert found.loss == pytest.approx(loss, abs=TOL_VALUE)
    assert found.costs == pytest.approx(costs, abs=TOL_VALUE)


@pytest.mark.parametrize("support", ["known", "full"])
@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("start_kind", ["state", "distribution"])
@pytest.mark.parametrize("special", ["plain", "absorbing", "aliases", "aliases per step"])
@pytest.mark.parametrize("steps", ["stationary", "per step"])
def test_values_of_random_policies_survive(support, form, start_kind, special, steps):
    rng = np.random.default_rng(7)
    varying = steps == "per step"
    transitions, loss, costs = random_tables(rng, per_step=varying)
    problem = Problem(
        transitions if varying else per_step(transitions),
        loss if varying else per_step(loss),
        costs if varying else per_step(costs, axis=1),
        np.array([0.0, 0.0, 1.0, 0.0]) if start_kind == "state" else np.array([0.25, 0.0, 0.5, 0.25]),
    )
    options = {}
    if special == "absorbing":
        options["absorbing"] = (1, 3)
        problem = problem._replace(absorbing=(1, 3))
        transitions[..., 1, :, :] = np.nan  # entries of absorbing states are never read
        loss[..., 1, :] = 7.0
    elif special != "plain":
        mask = rng.random((H, S, A)) < 0.5
        mask[:, :, 1] |= ~mask.any(axis=2)
        if special == "aliases":
            mask[:] = mask[0]
        options["available"] = mask if special == "aliases per step" else mask[0]
        problem = problem._replace(available=mask)
    if form == "sparse":
        blocks = [sparse.csr_matrix(block) for block in transitions.reshape(-1, S * A, S)]
        transitions = blocks if varying else blocks[0]
    start = 2 if start_kind == "state" else problem.start
    world = unroll(transitions, H, start, loss=loss, costs=costs, thresholds=[1, 2], support=support, **options)

    assert world.has_root == (start_kind == "distribution")
    assert world.cmdp.layout.steps == H + world.has_root
    for _ in range(5):
        agree(world, problem, random_policy_table(rng))
    q = occupancy(world.cmdp.layout, world.cmdp.transitions, world.policy(random_policy_table(rng)))
    assert max(residuals(world.cmdp.layout, q, world.cmdp.transitions)) < TOL_VALUE


def test_a_stationary_policy_table_means_the_same_in_every_step():
    rng = np.random.default_rng(1)
    transitions, loss, _ = random_tables(rng, per_step=False)
    world = unroll(transitions, H, 0, loss=loss)
    table = rng.dirichlet(np.ones(A), size=S)
    np.testing.assert_array_equal(world.policy(table), world.policy(per_step(table)))


def test_both_supports_and_both_forms_describe_the_same_world():
    transitions, loss, costs = random_tables(np.random.default_rng(3), per_step=False)
    dense = unroll(transitions, H, 0, loss=loss, costs=costs, thresholds=[1, 1])
    matrix = sparse.coo_array(transitions.reshape(S * A, S))
    assert unroll(matrix, H, 0, loss=loss, costs=costs, thresholds=[1, 1]).cmdp.content_hash == dense.cmdp.content_hash
    full = unroll(transitions, H, 0, loss=loss, support="full")
    known, everything = (world.cmdp.layout.split_triples(world.cmdp.transitions) for world in (dense, full))
    for k in range(H - 1):
        here, there = dense.state_of[dense.step_of == k], dense.state_of[dense.step_of == k + 1]
        block = everything[k] if k else everything[k][:1]
        rows = here if k else [0]
        np.testing.assert_array_equal(known[k], block[rows][:, :, there])


def test_known_support_keeps_only_what_can_happen():
    # A line 0 -> 1 -> 2 -> ...: after k steps of "stay or move" the states 0..k are possible and no other.
    n, horizon = 6, 4
    transitions = np.zeros((n, 2, n))
    for s in range(n):
        transitions[s, 0, s] = transitions[s, 1, min(s + 1, n - 1)] = 1.0
    world = unroll(transitions, horizon, 0, state_names=list("abcdef"), action_names=["stay", "move"])
    assert world.cmdp.layout.layer_sizes == (1, 2, 3, 4, 1)
    assert world.cmdp.layout.num_triples == world.cmdp.layout.num_rows  # deterministic
    assert world.cmdp.state_labels[:4] == ("(0, a)", "(1, a)", "(1, b)", "(2, a)")
    assert world.cmdp.state_labels[-1] == "end"
    assert world.cmdp.action_labels == ("stay", "move")
    assert world.state_of.tolist() == [0, 0, 1, 0, 1, 2, 0, 1, 2, 3, -1]
    assert world.step_of.tolist() == [0, 1, 1, 2, 2, 2, 3, 3, 3, 3, 4]
    assert world.loss is None


def test_full_support_prunes_nothing():
    world = unroll(np.tile(np.eye(3)[:, None], (1, 2, 1)), 6, 0, support="full")
    assert world.cmdp.layout == Layout((1, 3, 3, 3, 3, 3, 1), 2)
    assert (world.cmdp.layout.num_states, world.cmdp.layout.num_triples) == (17, 84)


def test_a_start_distribution_adds_a_free_root():
    transitions, loss, costs = random_tables(np.random.default_rng(5), per_step=False)
    start = [0.5, 0.0, 0.5, 0.0]
    world = unroll(transitions, H, start, loss=loss, costs=costs, thresholds=[1, 1])
    layout = world.cmdp.layout
    assert layout.layer_sizes[:2] == (1, 2)
    np.testing.assert_array_equal(world.loss[layout.rows(0)], 0.0)
    np.testing.assert_array_equal(world.cmdp.mean_costs[:, layout.rows(0)], 0.0)
    np.testing.assert_array_equal(layout.split_triples(world.cmdp.transitions)[0], np.full((1, A, 2), 0.5))
    assert world.cmdp.state_labels[0] == "start"
    assert (world.state_of[0], world.step_of[0]) == (-1, -1)
    np.testing.assert_array_equal(world.action_of[:A], -1)


def test_an_unavailable_action_is_an_alias_of_the_first_available_one():
    rng = np.random.default_rng(11)
    transitions, loss, costs = random_tables(rng, per_step=False)
    transitions[1, 0], loss[1, 0] = np.nan, np.nan  # never read
    available = np.ones((S, A), dtype=bool)
    available[1, 0] = available[2, 2] = False
    world = unroll(transitions, H, 0, loss=loss, costs=costs, thresholds=[1, 1], available=available)
    layout = world.cmdp.layout
    blocks = layout.split_triples(world.cmdp.transitions)
    for state in range(layout.num_decision_states):
        k, s = world.step_of[state], world.state_of[state]
        rows = slice(state * A, (state + 1) * A)
        expected = {1: [1, 1, 2], 2: [0, 1, 0]}.get(int(s), [0, 1, 2])
        assert world.action_of[rows].tolist() == expected
        np.testing.assert_array_equal(world.loss[rows], loss[s, expected])
        local = state - layout.state_start[k]
        np.testing.assert_array_equal(blocks[k][local], blocks[k][local][expected])


def test_policy_tables_come_back():
    rng = np.random.default_rng(13)
    transitions, loss, _ = random_tables(rng, per_step=False)
    world = unroll(transitions, H, 0, loss=loss, support="full")
    table = random_policy_table(rng)
    back = world.table(world.policy(table))
    np.testing.assert_array_equal(back[1:], table[1:])
    np.testing.assert_array_equal(back[0, 0], table[0, 0])
    np.testing.assert_allclose(back[0, 1:], 1 / A)  # left out: uniform


def test_the_table_of_a_policy_adds_up_aliases_and_keeps_the_value():
    rng = np.random.default_rng(17)
    transitions, loss, _ = random_tables(rng, per_step=False)
    available = np.ones((S, A), dtype=bool)
    available[:, 0] = False
    world = unroll(transitions, H, 0, loss=loss, available=available)
    policy = rng.dirichlet(np.ones(A), size=world.cmdp.layout.num_decision_states).ravel()
    table = world.table(policy)
    np.testing.assert_array_equal(table[:, :, 0], 0.0)
    np.testing.assert_allclose(table.sum(axis=2), 1.0)
    before, after = (evaluate(world.cmdp, pi, world.loss).loss for pi in (policy, world.policy(table)))
    assert after == pytest.approx(before, abs=TOL_VALUE)


def test_cost_kinds_names_and_thresholds_arrive():
    transitions, loss, costs = random_tables(np.random.default_rng(19), per_step=True)
    world = unroll(
        transitions, H, 0, loss=loss, costs=costs, thresholds=[1, 4], constraint_names=["heat", "wear"],
        cost_kind="deterministic",
    )  # fmt: skip
    assert world.cmdp.costs.kind == "deterministic"
    assert world.cmdp.constraint_names == ("heat", "wear")
    assert world.cmdp.thresholds.tolist() == [1, 4]
    assert unroll(transitions, H, 0, costs=costs, thresholds=[1, 4]).cmdp.costs.kind == "bernoulli"


def test_repeated_entries_of_a_sparse_matrix_add_up():
    matrix = sparse.coo_array(([0.25, 0.75, 1.0], ([0, 0, 1], [1, 1, 1])), shape=(2, 2))
    assert unroll(matrix, 3, 0).cmdp.transitions.tolist() == [1.0, 1.0, 1.0]


def test_stored_zeros_are_no_triples():
    matrix = sparse.csr_array(([0.0, 1.0, 1.0], [0, 1, 1], [0, 2, 3]), shape=(2, 2))
    world = unroll(matrix, 3, 0)
    assert world.cmdp.layout.layer_sizes == (1, 1, 1, 1)
    assert world.state_of.tolist() == [0, 1, 1, -1]


def test_results_are_read_only():
    world = unroll(np.ones((1, 1, 1)), 2, 0, loss=[[0.5]])
    for array in (world.loss, world.state_of, world.step_of, world.action_of, world.is_copy, world.default_table):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_reward_scale_inverts():
    scale = RewardScale(best=2.0, width=5.0, horizon=3)
    assert scale.total_reward(0.0) == 6.0
    assert scale.total_loss(scale.total_reward(1.25)) == pytest.approx(1.25)


def test_large_sparse_worlds_unroll_quickly():
    rng = np.random.default_rng(23)
    n, actions, horizon = 2_000, 4, 30
    rows = np.repeat(np.arange(n * actions), 3)
    columns = (rows // actions + rng.integers(-20, 21, len(rows))) % n
    matrix = sparse.coo_array((np.full(len(rows), 1 / 3), (rows, columns)), shape=(n * actions, n))
    begin = time.process_time()
    world = unroll(matrix, horizon, 0)
    assert time.process_time() - begin < 5.0  # about 0.15 s; a loop over rows in Python would take far longer
    assert not world.cmdp.layout.is_full


TWO = np.array([[[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [1.0, 0.0]]])


def changed(index, value, array=TWO):
    array = np.array(array, dtype=float)
    array[index] = value
    return array


ONES = np.ones((2, 2))
BAD = {
    "horizon 0": ({"horizon": 0}, "horizon is 0; it must be at least 1"),
    "fractional horizon": ({"horizon": 2.5}, "horizon must be a whole number"),
    "sum": ({"transitions": changed((0, 1, 1), 0.4)}, "transitions of state 0, action 1 sum to 0.9, not 1"),
    "sum per step": (
        {"transitions": changed((2, 1, 0, 0), 0.1, np.tile(TWO, (3, 1, 1, 1)))},
        "transitions of step 2, state 1, action 0 sum to 1.1",
    ),
    "NaN": ({"transitions": changed((1, 0, 1), np.nan)}, "at state 1, action 0, successor 1 is nan"),
    "infinity": ({"transitions": changed((1, 0, 1), np.inf)}, "at state 1, action 0, successor 1 is inf"),
    "negative": ({"transitions": changed((0, 0), [1.5, -0.5])}, "state 0, action 0, successor 1 is -0.5"),
    "empty row": ({"transitions": sparse.csr_array((4, 2))}, "transitions of state 0, action 0 sum to 0.0, not 1"),
    "shape": ({"transitions": np.ones((2, 2))}, r"transitions have shape \(2, 2\); expected \(states, actions"),
    "no states": ({"transitions": np.ones((0, 2, 0))}, "transitions have shape"),
    "steps": ({"transitions": np.tile(TWO, (4, 1, 1, 1))}, "given for 4 steps; the horizon is 3"),
    "ragged": ({"transitions": [[[1.0], [1.0, 2.0]]]}, "must be an array of numbers"),
    "text": ({"transitions": [[["a"]]]}, "must be an array of numbers: found entries of type"),
    "sparse shape": ({"transitions": sparse.csr_array((5, 2))}, r"shape \(5, 2\); expected \(states \* actions"),
    "sparse steps": ({"transitions": [sparse.csr_array(TWO.reshape(4, 2))] * 2}, "2 transition matrices given; 3"),
    "sparse mixture": (
        {"transitions": [sparse.csr_array(TWO.reshape(4, 2))] * 2 + [sparse.csr_array((6, 2))]},
        r"matrix of step 2 has shape \(6, 2\)",
    ),
    "sparse type": (
        {"transitions": sparse.csr_array(TWO.reshape(4, 2)).astype(complex)},
        "not entries of type complex",
    ),
    "start outside": ({"start": 2}, "start state is 2; the states are numbered 0 to 1"),
    "negative start": ({"start": -1}, "start state is -1"),
    "fractional start": ({"start": 0.5}, "start state must be a whole number"),
    "start sum": ({"start": [0.5, 0.4]}, "start distribution sums to 0.9, not 1"),
    "start length": ({"start": [1.0]}, r"start probability has shape \(1,\), expected \(2,\)"),
    "start negative": ({"start": [1.5, -0.5]}, "start probability is 1.5 at state 0"),
    "start NaN": ({"start": [np.nan, 1.0]}, "start probability is nan at state 0"),
    "loss shape": ({"loss": np.ones((3, 2))}, r"loss has shape \(3, 2\), expected \(2, 2\) or \(3, 2, 2\)"),
    "loss range": ({"loss": changed((1, 0), 1.25, ONES)}, r"loss is 1.25 at state 1, action 0; .* in \[0, 1\]"),
    "loss range per step": (
        {"loss": changed((2, 1, 0), -0.1, np.ones((3, 2, 2)))},
        "loss is -0.1 at step 2, state 1, action 0",
    ),
    "loss NaN": ({"loss": changed((0, 1), np.nan, ONES)}, "loss is nan at state 0, action 1"),
    "cost axes": ({"costs": ONES, "thresholds": [1]}, r"costs have shape \(2, 2\); expected \(constraints"),
    "cost shape": ({"costs": np.ones((1, 2, 3)), "thresholds": [1]}, r"constraint 0 has shape \(2, 3\)"),
    "cost range": ({"costs": 2 * ONES[None], "thresholds": [1]}, "constraint 0 is 2.0 at state 0, action 0"),
    "thresholds": ({"costs": ONES[None]}, r"threshold has shape \(0,\), expected \(1,\)"),
    "large threshold": ({"costs": ONES[None], "thresholds": [4]}, "threshold is 4.0"),
    "absorbing": ({"absorbing": [2]}, "absorbing state 2 does not exist"),
    "absorbing type": ({"absorbing": 1}, "absorbing must be a collection"),
    "available shape": ({"available": [True, False]}, r"available has shape \(2,\)"),
    "available type": ({"available": ONES}, "type float64; expected bool"),
    "no action": ({"available": np.array([[True, True], [False, False]])}, "state 1 has no available action"),
    "no action in a step": (
        {"available": changed((2, 0), 0, np.ones((3, 2, 2))) > 0},
        "step 2, state 0 has no available action",
    ),
    "names": ({"state_names": ["a", "a"]}, "state names must be distinct"),
    "action names": ({"action_names": ["a"]}, "action names: 1 given, 2 needed"),
    "support": ({"support": "some"}, "support is 'some'; choose one of known, full"),
    "cost kind": ({"cost_kind": "beta"}, "cost_kind is 'beta'; choose one of bernoulli, deterministic"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named(case):
    change, message = BAD[case]
    arguments = {"transitions": TWO, "horizon": 3, "start": 0} | change
    with pytest.raises(InvalidInput, match=message):
        unroll(**arguments)


def test_places_use_the_given_names():
    with pytest.raises(InvalidInput, match="transitions of state pit, action 0 sum to"):
        unroll(changed((1, 0, 1), 0.5), 3, 0, state_names=["road", "pit"])


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (np.full((2, 3), 0.5), "has shape"),
        (np.full((2, 2, 2), 0.5), "has shape"),
        (np.full((2, 2), np.nan), "nan"),
        (np.full((2, 2), 0.4), r"step 0, state 0 are \[0.4, 0.4\]"),
        (np.array([[0.5, 0.5], [1.5, -0.5]]), r"step 1, state 1 are \[1.5, -0.5\]"),
    ],
)
def test_bad_policy_tables_are_named(table, message):
    with pytest.raises(InvalidInput, match=message):
        unroll(TWO, 3, 0).policy(table)


def test_policy_tables_of_unreachable_states_are_not_read():
    world = unroll(np.tile(np.eye(2)[:, None], (1, 2, 1)), 3, 0)
    assert world.policy([[0.25, 0.75], [9.0, 9.0]]).tolist() == [0.25, 0.75] * 3
