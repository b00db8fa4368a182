"""Oblivious adversaries: any block in any order gives the same losses, in [0, 1], and each does what it should."""

import copy
import pickle

import numpy as np
import pytest
from scipy import stats

from hedgerow.errors import InvalidInput
from hedgerow.losses import oblivious as ls
from hedgerow.losses.blocks import uniform_draws
from hedgerow.losses.oblivious import IID, Drifting, Fixed, LossBlock, RandomWalk, Replay, Switching
from hedgerow.model import occupancy as occ
from hedgerow.model.layout import Layout

LAYOUT = Layout((1, 3, 2, 1), 3)
ROWS = LAYOUT.num_rows


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random(shape)


EXAMPLES = [
    Fixed(numbers(ROWS)),
    IID(seed=1),
    IID(seed=2, means=numbers(ROWS), noise="uniform"),
    Switching(period=7, seed=3),
    Switching(period=1, patterns=5, seed=4),
    Switching(period=3, patterns=numbers(4, ROWS)),
    Drifting(period=50, seed=5),
    RandomWalk(step=0.2, seed=6),
    RandomWalk(step=1.0, seed=7),
    Replay(numbers(9, ROWS), cycle=True),
    Replay(numbers(5_000, ROWS)),
]
each = pytest.mark.parametrize("losses", EXAMPLES, ids=lambda adversary: adversary.kind)


def fresh(losses: ls.ObliviousLosses) -> ls.ObliviousLosses:
    """An equal adversary that has not been asked for anything yet."""
    return ls.from_params(losses.kind, losses.params())


@each
def test_an_episode_has_one_loss_whatever_it_is_asked_in(losses: ls.ObliviousLosses) -> None:
    whole = fresh(losses).block(LAYOUT, 0, 4_000).dense()
    rng = np.random.default_rng(12)
    used = fresh(losses)
    requests = [(int(first), int(rng.integers(1, 300))) for first in rng.integers(0, 3_700, size=25)]
    requests += [(3_999, 1), (0, 1), (1, 1), (1_024, 1), (1_023, 2), (2_047, 5)]
    for first, count in requests:
        np.testing.assert_array_equal(used.block(LAYOUT, first, count).dense(), whole[first : first + count])
    late = fresh(losses)
    np.testing.assert_array_equal(late.block(LAYOUT, 3_500, 400).dense(), whole[3_500:3_900])


@each
def test_losses_stay_in_the_unit_interval_and_blocks_are_small(losses: ls.ObliviousLosses) -> None:
    for first, count in ((0, 1), (5, 3), (17, 4_000)):
        block = losses.block(LAYOUT, first, count)
        assert isinstance(block, LossBlock)
        assert block.patterns.shape[1] == ROWS
        assert len(block.patterns) <= count
        assert block.index.shape == (count,)
        assert (block.patterns.dtype, block.index.dtype) == (np.float64, np.int64)
        assert block.patterns.flags.c_contiguous
        assert not block.patterns.flags.writeable
        assert not block.index.flags.writeable
        assert block.patterns.min() >= 0.0
        assert block.patterns.max() <= 1.0
        assert block.index.min() >= 0
        assert block.index.max() < len(block.patterns)


@each
def test_sums_and_means_agree_with_the_dense_block(losses: ls.ObliviousLosses) -> None:
    block = losses.block(LAYOUT, 3, 500)
    np.testing.assert_allclose(block.total(), block.dense().sum(axis=0), rtol=1e-13)
    np.testing.assert_allclose(losses.mean(LAYOUT, 503), losses.block(LAYOUT, 0, 503).dense().mean(axis=0), rtol=1e-13)


@each
def test_parameters_say_it_all(losses: ls.ObliviousLosses) -> None:
    losses.block(LAYOUT, 2_000, 5)  # whatever it remembers now must not matter
    for twin in (fresh(losses), pickle.loads(pickle.dumps(losses)), copy.deepcopy(losses)):
        assert twin == losses
        assert hash(twin) == hash(losses)
        np.testing.assert_array_equal(twin.block(LAYOUT, 40, 10).dense(), losses.block(LAYOUT, 40, 10).dense())
    plain = {
        name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in losses.params().items()
    }
    assert ls.from_params(losses.kind, plain) == losses
    assert all(losses != other for other in EXAMPLES if other is not losses)
    with pytest.raises(AttributeError):
        losses.seed = 5


@pytest.mark.parametrize(
    "kind", [IID, lambda s: Switching(5, seed=s), lambda s: Drifting(9, s), lambda s: RandomWalk(0.1, s)]
)
def test_seeds_matter(kind) -> None:
    blocks = [kind(seed).block(LAYOUT, 0, 20).dense() for seed in (0, 1, 10**30)]
    assert not np.array_equal(blocks[0], blocks[1])
    assert not np.array_equal(blocks[0], blocks[2])


def test_losses_do_not_share_a_stream_with_a_simulation_of_the_same_seed() -> None:
    draws = IID(seed=0, means=np.full(ROWS, 0.5), noise="uniform").block(LAYOUT, 0, 1).dense()[0]
    root = np.random.SeedSequence(0)
    for sequence in (root, *root.spawn(8)):
        assert not np.allclose(draws, np.random.default_rng(sequence).random(ROWS))


@pytest.mark.parametrize("noise", ["bernoulli", "uniform"])
def test_iid_means(noise: str) -> None:
    means = np.concatenate(([0.0, 1.0, 0.5], numbers(ROWS - 3)))
    dense = IID(seed=9, means=means, noise=noise).block(LAYOUT, 100, 4_000).dense()
    np.testing.assert_allclose(dense.mean(axis=0), means, atol=np.sqrt(np.log(2e9) / 8_000))
    np.testing.assert_array_equal(dense[:, 0], 0.0)
    np.testing.assert_array_equal(dense[:, 1], 1.0)
    if noise == "bernoulli":
        assert set(np.unique(dense)) == {0.0, 1.0}
        for row, mean in enumerate(means):
            low, high = stats.binom.ppf([5e-10, 1 - 5e-10], 4_000, mean)
            assert low <= dense[:, row].sum() <= high
    else:
        assert stats.kstest(dense[:, 2], "uniform").pvalue > 1e-6
    seeded = IID(seed=9, noise=noise)
    drawn = seeded.block(LAYOUT, 0, 4_000).dense().mean(axis=0)
    np.testing.assert_allclose(drawn, seeded.means_on(LAYOUT), atol=np.sqrt(np.log(2e9) / 8_000))


def test_iid_episodes_are_independent() -> None:
    dense = IID(seed=4, means=np.full(ROWS, 0.5), noise="uniform").block(LAYOUT, 0, 4_000).dense() - 0.5
    next_episode = (dense[1:] * dense[:-1]).mean() * 12
    next_row = (dense[:, 1:] * dense[:, :-1]).mean() * 12
    assert abs(next_episode) < 5 / np.sqrt(dense.size)
    assert abs(next_row) < 5 / np.sqrt(dense.size)


def test_switching_follows_the_clock() -> None:
    patterns = np.stack([np.full(ROWS, value) for value in (0.0, 0.5, 1.0)])
    block = Switching(period=2, patterns=patterns).block(LAYOUT, 3, 8)
    assert block.dense()[:, 0].tolist() == [0.5, 1.0, 1.0, 0.0, 0.0, 0.5, 0.5, 1.0]
    assert len(Switching(period=1_000, patterns=patterns).block(LAYOUT, 1_500, 2).patterns) == 1


@pytest.mark.parametrize("actions", [2, 3, 4])
def test_switching_hurts_every_fixed_policy_and_spares_one_that_follows(actions: int) -> None:
    layout = Layout((1, 3, 2, 1), actions)
    rng = np.random.default_rng(actions)
    p = 1.0 / np.diff(layout.row_start)[layout.row_of_triple]
    one, other = Switching(period=1, patterns=2, seed=8).block(layout, 0, 2).dense()
    np.testing.assert_array_equal(one + other, 1.0)
    for pattern in (one, other):
        follower = (pattern == 0.0).reshape(-1, actions) / (pattern == 0.0).reshape(-1, actions).sum(
            axis=1, keepdims=True
        )
        assert occ.row_occupancy(layout, occ.occupancy(layout, p, follower.ravel())) @ pattern == 0.0
    for _ in range(20):
        pi = rng.dirichlet(np.full(actions, 0.3), size=layout.num_decision_states).ravel()
        w = occ.row_occupancy(layout, occ.occupancy(layout, p, pi))
        assert (w @ one + w @ other) / 2 == pytest.approx(layout.steps / 2)


def test_drawn_patterns_differ_and_do_not_depend_on_their_number() -> None:
    five = Switching(period=1, patterns=5, seed=2).block(LAYOUT, 0, 5).dense()
    assert len(np.unique(five, axis=0)) == 5
    np.testing.assert_array_equal(Switching(period=1, patterns=9, seed=2).block(LAYOUT, 0, 5).dense(), five)


def test_drifting_is_slow_periodic_and_reaches_both_halves() -> None:
    dense = Drifting(period=40, seed=3).block(LAYOUT, 0, 121).dense()
    assert np.abs(np.diff(dense, axis=0)).max() <= 2 / 40 + 1e-12
    np.testing.assert_array_equal(dense[40:80], dense[:40])
    assert np.all(dense.min(axis=0) <= 0.5 + 1 / 40)
    assert np.all(dense.max(axis=0) >= 0.5 - 1 / 40)
    assert np.all(np.ptp(dense, axis=0) > 0)


def test_a_random_walk_moves_by_its_step_and_forgets_where_it_began() -> None:
    layout = Layout((1, 1), 200)
    dense = RandomWalk(step=0.1, seed=3).block(layout, 0, 3_000).dense()
    moves = np.diff(dense, axis=0)
    assert np.abs(moves).max() <= 0.1 + 1e-11
    inside = (dense[:-1] > 0.1) & (dense[:-1] < 0.9)
    assert stats.kstest(moves[inside][::50], stats.uniform(-0.1, 0.2).cdf).pvalue > 1e-6
    for episode in (0, 1_500, 2_999):  # uniform is the stationary law of a reflected symmetric walk
        assert stats.kstest(dense[episode], "uniform").pvalue > 1e-6


def test_a_random_walk_equals_its_naive_twin() -> None:
    draws = uniform_draws(11, ROWS, 0, 400)
    found = RandomWalk(step=0.3, seed=11).block(LAYOUT, 0, 400).dense()
    for row in range(ROWS):
        position, direction = draws[0, row], 1  # a reflection turns the walk round, for good
        for episode in range(1, 400):
            position += direction * 0.3 * (2 * draws[episode, row] - 1)
            if not 0.0 <= position <= 1.0:
                position, direction = (-position if position < 0.0 else 2.0 - position), -direction
            assert found[episode, row] == pytest.approx(position, abs=1e-9)


def test_a_random_walk_keeps_its_memory_bounded_and_its_values_right() -> None:
    layout = Layout((1, 1), 2)
    losses = RandomWalk(step=0.01, seed=1)
    far = losses.block(layout, 700_000, 3).dense()
    positions = losses._positions[2]
    assert len(positions.anchors) <= positions.most
    assert positions.distance > 1024
    for start in (650_001, 3, 699_999):
        losses.block(layout, start, 2)
    np.testing.assert_array_equal(losses.block(layout, 700_000, 3).dense(), far)
    streamed = RandomWalk(step=0.01, seed=1)
    for first in range(0, 700_000, 50_000):
        streamed.block(layout, first, 50_000)
    np.testing.assert_array_equal(streamed.block(layout, 700_000, 3).dense(), far)


def test_replay_ends_with_its_record_unless_it_may_start_over() -> None:
    table = numbers(4, ROWS)
    np.testing.assert_array_equal(Replay(table).block(LAYOUT, 1, 3).dense(), table[1:])
    with pytest.raises(InvalidInput, match="episode 4 was not recorded: the table holds 4, numbered from 0; ask for"):
        Replay(table).block(LAYOUT, 3, 2)
    np.testing.assert_array_equal(Replay(table, cycle=True).block(LAYOUT, 3, 2).dense(), table[[3, 0]])


def test_one_adversary_serves_many_layouts() -> None:
    losses, other = RandomWalk(step=0.1, seed=0), Layout((1, 1), 2)
    apart = fresh(losses).block(other, 10, 5).dense()
    losses.block(LAYOUT, 10, 5)
    np.testing.assert_array_equal(losses.block(other, 10, 5).dense(), apart)


BAD = [
    (lambda: Fixed([0.5, 1.5]), r"the loss is 1.5 at index 1; every entry must lie in \[0, 1\]"),
    (lambda: Fixed([np.nan]), "the loss is nan at index 0"),
    (lambda: Fixed([[[0.5]]]), r"the loss must have shape \(rows,\) and at least one entry, not \(1, 1, 1\)"),
    (lambda: Fixed([]), r"at least one entry, not \(0,\)"),
    (lambda: Fixed(["a"]), "the loss must be an array of numbers"),
    (lambda: Fixed([0.5]).block(LAYOUT, 0, 1), "losses are given for 1 rows; the layout has 18"),
    (lambda: IID(seed=-1), "the seed is -1; it must be at least 0"),
    (lambda: IID(seed=0.5), "the seed must be a whole number, not 0.5"),
    (lambda: IID(noise="gauss"), "unknown noise 'gauss'; known: bernoulli, uniform"),
    (lambda: IID(means=[2.0]), "the mean loss is 2.0 at index 0"),
    (lambda: IID(means=[0.5]).block(LAYOUT, 0, 1), "losses are given for 1 rows; the layout has 18"),
    (lambda: Switching(period=0), "the period is 0; it must be at least 1"),
    (lambda: Switching(period=2**60), "the period is 1152921504606846976; it must be at most"),
    (lambda: Switching(period=1, patterns=1), "the number of patterns is 1; it must be at least 2"),
    (lambda: Switching(period=1, patterns=True), "the number of patterns must be a whole number, not True"),
    (lambda: Switching(period=1, patterns=[0.5]), r"the patterns must have shape \(patterns, rows\)"),
    (lambda: Switching(period=1, patterns=[[0.5]]).block(LAYOUT, 0, 1), "losses are given for 1 rows"),
    (lambda: Drifting(period=1), "the period is 1; it must be at least 2"),
    (lambda: RandomWalk(step=0.0), "the step is 0.0; it must lie in"),
    (lambda: RandomWalk(step=np.nan), "the step is nan; it must lie in"),
    (lambda: RandomWalk(step="x"), "the step must be a number, not 'x'"),
    (lambda: Replay([[0.5], [-1.0]]), r"the table of losses is -1.0 at index \(1, 0\)"),
    (lambda: Replay([[0.5]], cycle=1), "cycle must be True or False, not 1"),
    (lambda: IID().block(LAYOUT, -1, 1), "the first episode is -1; it must be at least 0"),
    (lambda: IID().block(LAYOUT, 0, 0), "the number of episodes is 0; it must be at least 1"),
    (lambda: IID().block(LAYOUT, 2**53, 1), "episode 9007199254740992 is too late"),
    (lambda: IID().mean(LAYOUT, 0), "the number of episodes is 0; it must be at least 1"),
    (
        lambda: ls.from_params("chaos", {}),
        "unknown losses 'chaos'; known: fixed, iid, switching, drifting, random-walk",
    ),
    (lambda: ls.from_params([], {}), "unknown losses"),
    (lambda: ls.from_params("iid", {"sead": 1}), r"iid losses cannot be made of \['sead'\]: .*unexpected keyword"),
    (lambda: ls.from_params("fixed", {}), r"fixed losses cannot be made of \[\]: .*missing"),
    (lambda: ls.from_params("iid", 3), "the parameters of iid losses must be a mapping from names to values, not 3"),
]


@pytest.mark.parametrize(("make", "message"), BAD)
def test_bad_input_is_refused(make, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        make()


def dense_with(episode: int, row: int, value: float):
    """A block function of zeros with one odd entry."""

    def block(layout: Layout, first: int, count: int) -> np.ndarray:
        losses = np.zeros((count, layout.num_rows))
        if first <= episode < first + count:
            losses[episode - first, row] = value
        return losses

    return block


class Patterns:
    """A user-written adversary that answers with a table and an index."""

    def __init__(self, patterns, index) -> None:
        self.answer = LossBlock(patterns, index)

    def block(self, layout: Layout, first: int, count: int) -> LossBlock:
        return self.answer


ZERO = np.zeros((1, ROWS))
NAN = np.full((1, ROWS), np.nan)
FOREIGN = [
    (dense_with(12, 5, np.nan), "the loss of episode 12 is nan at layer 1, state 0, action 2"),
    (dense_with(12, 17, 1.5), "the loss of episode 12 is 1.5 at layer 2, state 1, action 2; every entry must lie in"),
    (dense_with(11, 0, -1e-9), "the loss of episode 11 is -1e-09 at layer 0, state 0, action 0"),
    (lambda layout, first, count: np.zeros((count, 3)), r"the loss of episode 10 has shape \(3,\), expected \(18,\)"),
    (lambda layout, first, count: np.zeros((1, ROWS)), r"4 episodes from 10 on were asked for; .* shape \(1, 18\)"),
    (lambda layout, first, count: 0.5, r"4 episodes from 10 on were asked for; the answer has shape \(\)"),
    (lambda layout, first, count: None, "the losses of episodes 10 to 13 must be an array of numbers"),
    (lambda layout, first, count: np.zeros(count), r"the loss of episode 10 has shape \(\), expected \(18,\)"),
    (Patterns(np.vstack([ZERO, NAN]), np.array([0, 0, 1, 0])), "the loss of episode 12 is nan at layer 0, state 0"),
    (Patterns(np.vstack([ZERO, NAN]), np.zeros(4, dtype=int)), "has a pattern outside .0, 1. that no episode uses"),
    (Patterns(ZERO, np.array([0, 0, 0, 1])), "episode 13 names pattern 1; there are 1 patterns"),
    (Patterns(ZERO, np.array([0, -1, 0, 0])), "episode 11 names pattern -1"),
    (Patterns(ZERO, np.zeros(4)), r"needs patterns \(p, rows\) and 4 whole numbers"),
    (Patterns(ZERO, np.zeros(3, dtype=int)), r"needs patterns \(p, rows\) and 4 whole numbers"),
]


@pytest.mark.parametrize(("source", "message"), FOREIGN)
def test_a_wrong_answer_of_a_foreign_adversary_is_located(source, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        ls.checked(source).block(LAYOUT, 10, 4)


def test_right_answers_pass_unchanged() -> None:
    np.testing.assert_array_equal(ls.checked(dense_with(11, 2, 1.0)).block(LAYOUT, 10, 4).dense()[1, 2], 1.0)
    mine = EXAMPLES[1]
    found, expected = ls.checked(mine).block(LAYOUT, 10, 4), mine.block(LAYOUT, 10, 4)
    np.testing.assert_array_equal(found.dense(), expected.dense())
    table = np.zeros((1, ROWS))
    block = ls.checked(Patterns(table, np.zeros(4, dtype=np.int32))).block(LAYOUT, 10, 4)
    table[:] = 7.0
    assert block.total().max() == 0.0


def test_something_that_is_no_adversary_is_refused() -> None:
    with pytest.raises(InvalidInput, match="int is no adversary: it needs start, loss and observe, or block"):
        ls.checked(3)
