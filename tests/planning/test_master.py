"""The simplex method of the master program against HiGHS: random, tied, redundant and cycling programs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from hedgerow.planning.decomposition import ABSENT, BASIC, READY, Master, make_master, objective, optimise, refactor


def loaded(entries: np.ndarray, prices: np.ndarray, right: np.ndarray, basis: list[int]) -> Master:
    """A master program of the variables (n, rows), at a basis."""
    n, rows = entries.shape
    master = make_master(n - rows, rows - 1)
    master.entries[:], master.prices[:], master.right[:] = entries, prices, right
    master.state[:] = READY
    master.state[basis] = BASIC
    master.basis[:] = basis
    return master


def random_program(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[int]]:
    """Columns, slacks and one more variable; the slacks are feasible. Column prices may be negative, masses bounded."""
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(1, 27)), int(rng.integers(1, 40))
    columns = rng.random((n, m))
    if seed % 3 == 1:
        columns = np.round(2.0 * columns) / 2.0  # ties and equal columns
    if seed % 3 == 2:
        columns[:, m // 2 :] = columns[:, : m - m // 2]  # equal constraints
    # The row of ones: a free policy of price 0 and no costs takes what is left.
    entries = np.vstack(
        [
            np.hstack([np.ones((n, 1)), columns]),
            np.hstack([np.zeros((m, 1)), np.eye(m)]),
            np.append(1.0, np.zeros(m))[None],
        ]
    )
    prices = np.concatenate([-rng.random(n).round(1 + seed % 4), np.zeros(m + 1)])
    right = np.append(1.0, rng.random(m) if seed % 2 else np.round(rng.random(m)))
    return entries, prices, right, [n + m, *range(n, n + m)]


@pytest.mark.parametrize("seed", range(60))
def test_optima_equal_those_of_highs(seed: int) -> None:
    entries, prices, right, basis = random_program(seed)
    master = loaded(entries, prices, right, basis)
    assert refactor(master)
    assert optimise(master)
    truth = linprog(prices, A_eq=entries.T, b_eq=right)
    assert objective(master) == pytest.approx(truth.fun, abs=1e-12)
    x = np.zeros(len(prices))
    x[master.basis] = master.x
    np.testing.assert_allclose(entries.T @ x, right, atol=1e-12)
    assert np.all(x >= 0.0)
    assert np.all(prices - entries @ master.y >= -1e-11)  # dual feasible: the proof
    assert right @ master.y == pytest.approx(truth.fun, abs=1e-11)


def test_the_program_of_beale_does_not_cycle() -> None:
    """Largest coefficients and lowest numbers go round in six pivots on it for ever (Beale 1955)."""
    entries = np.array([[0.25, 0.5, 0.0], [-60.0, -90.0, 0.0], [-1 / 25, -1 / 50, 1.0], [9.0, 3.0, 0.0], *np.eye(3)])
    prices = np.array([-0.75, 150.0, -0.02, 6.0, 0.0, 0.0, 0.0])
    master = loaded(entries, prices, np.array([0.0, 0.0, 1.0]), [4, 5, 6])
    assert refactor(master)
    assert optimise(master)
    assert objective(master) == pytest.approx(-0.05, abs=1e-12)


def test_a_singular_basis_and_a_ray_are_no_answers() -> None:
    entries = np.array([[1.0, 1.0], [1.0, 1.0], [0.0, 1.0]])
    master = loaded(entries, np.zeros(3), np.ones(2), [0, 1])
    assert not refactor(master)
    falling = loaded(np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), np.array([-1.0, 0.0, 0.0]), np.ones(2), [1, 2])
    assert refactor(falling)
    assert not optimise(falling)


def test_an_absent_variable_does_not_enter() -> None:
    entries, prices, right, basis = random_program(3)
    master = loaded(entries, prices, right, basis)
    master.state[: len(prices) - len(right)] = ABSENT
    assert refactor(master)
    assert optimise(master)
    assert objective(master) == 0.0
