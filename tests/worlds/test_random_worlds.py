"""Stored random worlds: rows that sum to exactly 1, optima by a second program, thresholds by dynamic programming."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from plain_program import at, values

from hedgerow import worlds as catalogue
from hedgerow.errors import InvalidInput
from hedgerow.planning import offline
from hedgerow.worlds import random
from hedgerow.worlds.random import RANDOM_WORLDS_MASS, RANDOM_WORLDS_UNIT

ROOT = Path(__file__).resolve().parents[2]
TOL_GOLDEN = 1e-6
STORED = random.arrays()


def tables(name, number=0):
    """(P, reward, utility, share) from the stored numbers, in floating point."""
    if name == "random-uniform-pac":
        reward = STORED["pac_reward"].astype(float)
        return STORED["pac_moves"] / RANDOM_WORLDS_MASS, reward, 1.0 - reward, 0.5
    if name == "random-episode-wise":
        moves, reward, utility = (STORED[f"episode_{part}"][number] for part in ("moves", "reward", "utility"))
        return moves / RANDOM_WORLDS_MASS, reward.astype(float), utility.astype(float), 0.6
    phi, mu, weights = (STORED[f"linear_{part}"] / RANDOM_WORLDS_MASS for part in ("features", "measures", "weights"))
    P = np.array([[phi[:, a] @ mu[h] for a in range(3)] for h in range(4)]).transpose(0, 2, 1, 3)
    reward, utility = (np.array([phi @ theta[h] for h in range(4)]) for theta in weights)
    return P, reward, utility, 0.68


def largest(P, gain):
    value = np.zeros(P.shape[1])
    for k in reversed(range(len(P))):
        value = np.max(gain[k] + P[k] @ value, axis=1)
    return value[0]


CASES = [("random-uniform-pac", {}), ("linear-cmdp", {}), *(("random-episode-wise", {"number": i}) for i in range(10))]


@pytest.mark.parametrize(("name", "params"), CASES)
def test_optima_agree_with_a_second_program(name, params):
    world = catalogue.make(name, **params)
    P, reward, utility, share = tables(name, **params)
    H, S = len(P), P.shape[1]
    best = largest(P, utility)
    alpha = float(world.cmdp.thresholds[0])
    assert 0 <= alpha - (H - share * best) <= 1 / RANDOM_WORLDS_UNIT
    other = values(P, H, at(0, S), reward, [1.0 - utility], [alpha])
    assert world.source_value(world.golden.unconstrained) == pytest.approx(other.unconstrained, abs=TOL_GOLDEN)
    assert world.source_value(world.golden.optimum) == pytest.approx(other.optimum, abs=TOL_GOLDEN)
    assert world.golden.margin == pytest.approx(other.margin, abs=TOL_GOLDEN)
    assert world.golden.margin == pytest.approx((1 - share) * best, abs=1e-5)
    assert world.source_value(world.golden.unconstrained) == pytest.approx(largest(P, reward), abs=1e-9)


@pytest.mark.parametrize(("name", "params"), CASES)
def test_rows_sum_to_exactly_one_and_the_baseline_is_safe(name, params):
    world = catalogue.make(name, **params)
    sums = np.add.reduceat(world.cmdp.transitions, world.cmdp.layout.row_start[:-1])
    assert np.all(sums == 1.0)  # whole multiples of a power of two
    assert world.cmdp.transitions.min() > 0.0
    safe = offline.optimum(world.cmdp.with_thresholds(world.baseline_thresholds), world.loss)
    assert float(world.cmdp.thresholds[0] - safe.costs[0]) >= 0.5 * world.golden.margin - 1e-5


def test_sizes_are_those_of_the_sources():
    found = {name: catalogue.make(name).cmdp.layout for name in dict(CASES)}
    sizes = {name: (layout.num_states, layout.num_triples) for name, layout in found.items()}
    assert sizes == {
        "random-uniform-pac": (272, 21_780),
        "linear-cmdp": (302, 60_600),
        "random-episode-wise": (17, 180),
    }


def test_distributions_look_like_those_of_the_sources():
    moves = STORED["pac_moves"] / RANDOM_WORLDS_MASS
    # Of Dirichlet(a, ..., a) with n parts the expected sum of squares is (a + 1) / (n a + 1).
    assert np.mean(np.sum(moves**2, axis=-1)) == pytest.approx(1.1 / 4, rel=0.05)
    assert np.mean(moves, axis=(0, 1, 2)) == pytest.approx(np.full(30, 1 / 30), abs=0.02)
    assert np.mean(STORED["pac_reward"]) == pytest.approx(0.5, abs=0.06)
    assert np.mean([STORED["episode_reward"], STORED["episode_utility"]]) == pytest.approx(0.1, abs=0.03)
    assert np.mean(STORED["linear_weights"] / RANDOM_WORLDS_MASS) == pytest.approx(0.5, abs=0.15)


def test_episode_wise_worlds_differ_and_some_are_controls():
    worlds = [catalogue.make("random-episode-wise", number=number) for number in range(10)]
    assert len({world.hash for world in worlds}) == 10
    controls = [number for number, world in enumerate(worlds) if world.golden.is_control]
    assert controls == [1, 8]


def test_a_fresh_draw_gives_the_stored_numbers():
    spec = importlib.util.spec_from_file_location("draw_random_worlds", ROOT / "tools" / "draw_random_worlds.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    fresh = tool.drawn()
    assert fresh.keys() == STORED.keys()
    if not np.array_equal(fresh["pac_moves"], STORED["pac_moves"]):
        pytest.skip("this numpy draws from the Dirichlet distribution in another way; the stored draw counts")
    for name, array in fresh.items():
        np.testing.assert_array_equal(array, STORED[name], err_msg=name)


def test_numbers_beyond_the_ten_are_refused():
    with pytest.raises(InvalidInput, match="random-episode-wise: number is 10; it must be at most 9"):
        catalogue.make("random-episode-wise", number=10)
