"""Metrics against closed forms and numpy: exponents of powers, V with its maximum outside."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from run_cases import EPISODES, made_directory, made_run, made_spec

from hedgerow import results
from hedgerow.errors import HedgerowError, InvalidInput
from hedgerow.results import store
from hedgerow.results.metrics import growth_exponent, power_law

T = EPISODES.astype(float)


@pytest.mark.parametrize("exponent", [-0.5, 0.0, 0.5, 1.0])
def test_exponent_of_a_power(exponent: float) -> None:
    growth = growth_exponent(T, 3.0 * T**exponent)
    assert growth.exponent == pytest.approx(exponent, abs=1e-12)
    assert growth.factor == pytest.approx(3.0)
    assert np.isnan(growth.low)  # one seed
    assert growth.first >= 100


def test_only_the_last_decade_counts() -> None:
    early = np.where(T < 100, 1e6, T**0.5)
    assert growth_exponent(T, early).exponent == pytest.approx(0.5)
    assert growth_exponent(T, early, fit_from=0.0).exponent < 0.0


def test_slope_is_that_of_polyfit_on_the_mean() -> None:
    rng = np.random.default_rng(3)
    values = np.exp(rng.normal(size=(9, len(T)))) * T**0.6
    mean, late = values.mean(axis=0), T >= 100
    slope, intercept = np.polyfit(np.log(T[late]), np.log(mean[late]), 1)
    growth = growth_exponent(T, values)
    assert growth.exponent == pytest.approx(slope)
    assert growth.factor == pytest.approx(np.exp(intercept))


def test_interval_holds_the_truth_and_shrinks_with_seeds() -> None:
    """Seeds whose exponents are normal around 0.5: the interval covers it, and sixteen times the seeds quarter it."""
    rng = np.random.default_rng(11)
    widths = []
    for seeds in (8, 128):
        values = T ** (0.5 + 0.05 * rng.normal(size=(seeds, 1)))
        growth = growth_exponent(T, values, resamples=500)
        assert growth.low < growth.exponent < growth.high
        assert growth.low < 0.53
        assert growth.high > 0.47
        widths.append(growth.high - growth.low)
    assert 2.0 < widths[0] / widths[1] < 8.0


def test_the_interval_is_the_same_every_time() -> None:
    values = T ** np.linspace(0.4, 0.7, 12)[:, np.newaxis]
    assert growth_exponent(T, values) == growth_exponent(T, values)
    assert growth_exponent(T, values, seed=1) != growth_exponent(T, values)


def test_the_interval_is_that_of_scipy() -> None:
    """On seeds that leave every resample a slope, where scipy has nothing to warn of."""
    from scipy.stats import bootstrap

    values = np.exp(np.random.default_rng(5).normal(size=(6, len(T)))) * T**0.6
    late = T >= 100

    def slope(chosen: np.ndarray) -> float:
        mean = values[chosen].mean(axis=0)
        return float(np.polyfit(np.log(T[late]), np.log(mean[late]), 1)[0])

    stream = np.random.default_rng(0)
    found = bootstrap((np.arange(6),), slope, n_resamples=300, vectorized=False, method="percentile", rng=stream)
    growth = growth_exponent(T, values, resamples=300)
    assert (growth.low, growth.high) == pytest.approx(tuple(found.confidence_interval), abs=1e-9)


def test_three_seeds_around_zero_warn_of_nothing() -> None:
    """Some resamples have no positive mean, and no slope: they are left out, and no library complains of them."""
    values = np.stack([T**0.5, T**0.5, -10.0 + 0.0 * T]) + 3.4
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        growth = growth_exponent(T, values)
    assert not told
    assert growth.low <= growth.exponent <= growth.high


def test_no_exponent_where_there_is_no_power() -> None:
    assert np.isnan(growth_exponent(T, -T).exponent)
    assert np.isnan(growth_exponent(T, np.zeros((3, len(T)))).exponent)
    assert np.isnan(growth_exponent(T, np.full(len(T), np.nan)).exponent)
    assert np.isnan(growth_exponent([1, 2], [1.0, 2.0]).exponent)
    with pytest.raises(InvalidInput, match="one number per episode"):
        growth_exponent(T, [1.0, 2.0])


def test_the_maximum_of_the_violation_is_outside_the_sum(tmp_path: Path) -> None:
    """Two constraints that take turns: V is the larger sum, not the sum of the larger ones."""
    store.create(tmp_path / "out", {"experiment": {}})
    turns = np.array([[1.0, 0.0], [1.0, 2.0], [4.0, 2.0]])
    episodes = np.array([1, 2, 3])
    run = made_run(episodes=episodes, violations=turns, worst=np.array([[1.0, -1.0], [1.0, 2.0], [3.0, 2.0]]))
    store.write_cell(tmp_path / "out", made_spec(episodes=3), run)
    (row,) = results.open(tmp_path / "out").summary().to_pylist()
    assert row["violation"] == 4.0
    assert row["safe"] is False
    assert row["worst_excess"] == 3.0


def test_summary_row(tmp_path: Path) -> None:
    store.create(tmp_path / "out", {"experiment": {}})
    run = made_run(2, unclean=np.arange(len(EPISODES)), t_bar=40, rho_hat=0.125)
    store.write_cell(tmp_path / "out", made_spec(seed=2), run)
    (row,) = results.open(tmp_path / "out").summary().to_pylist()
    assert row["regret"] == run.regret[-1]
    assert row["mixing_total"] == run["mixing_total"][-1]
    assert row["regret_exponent"] == pytest.approx(0.5)
    assert row["violation_exponent"] is None
    assert (row["safe"], row["unclean"], row["residual"]) == (True, len(EPISODES) - 1, 1e-12)
    assert (row["mixing_first"], row["mixing_last"]) == (0.5, run["mixing_weight"][-1])
    assert (row["t_bar"], row["rho_hat"], row["episodes"], row["seed"]) == (40, 0.125, 1000, 2)
    assert (row["cell"], row["learner"]) == ("toy__switching-100__s-ops-sharp__T1000__seed2", "s-ops sharp")


def test_a_world_without_constraints_is_safe(tmp_path: Path) -> None:
    store.create(tmp_path / "out", {"experiment": {}})
    store.write_cell(tmp_path / "out", made_spec(), made_run(m=0))
    store.write_cell(tmp_path / "out", made_spec(seed=1), made_run(1))
    opened = results.open(tmp_path / "out")
    first, _ = opened.summary().to_pylist()
    assert (first["violation"], first["safe"], first["worst_excess"]) == (0.0, True, None)
    curves = opened.curves()
    assert curves["excess_1"].null_count == len(EPISODES)  # the world without constraints


def test_types_do_not_depend_on_what_is_missing(tmp_path: Path) -> None:
    made_directory(tmp_path / "a")
    assert str(results.open(tmp_path / "a").summary().schema.field("t_bar").type) == "int64"
    assert results.open(tmp_path / "a").summary()["t_bar"].null_count == 8


def test_timings_come_from_the_manifest(tmp_path: Path) -> None:
    made_directory(tmp_path / "a", seeds=1)
    rows = results.open(tmp_path / "a").timings().to_pylist()
    assert rows[0]["seconds_loop"] == 0.5
    assert rows[0]["episodes_per_second"] == 2000.0


def test_data_frames(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    made_directory(tmp_path / "a", seeds=1)
    opened = results.open(tmp_path / "a")
    assert len(opened.to_pandas()) == 2
    assert len(opened.to_pandas("curves")) == 2 * len(EPISODES)
    with pytest.raises(InvalidInput, match="no table 'curve'"):
        opened.to_pandas("curve")


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made_directory(tmp_path / "a", seeds=1)
    opened = results.open(tmp_path / "a")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(HedgerowError, match="need pandas"):
        opened.to_pandas()
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(HedgerowError, match="install pyarrow"):
        results.open(tmp_path / "a")


# Power laws through points that have runs of their own ----------------------------------------------------------------


def test_power_law_of_a_power_is_exact() -> None:
    points = [100, 1000, 10_000]
    found = power_law(points, [np.full(5, 3.0 * x**0.7) for x in points])
    assert (found.exponent, found.factor) == pytest.approx((0.7, 3.0), abs=1e-12)
    assert (found.low, found.high) == pytest.approx((0.7, 0.7), abs=1e-9)
    assert str(found) == "0.70 [0.70, 0.70]"


def test_power_law_is_the_line_through_the_logarithms_of_the_means() -> None:
    stream = np.random.default_rng(2)
    points, samples = [3.0, 7.0, 50.0], [stream.lognormal(size=k) for k in (4, 9, 2)]
    slope = np.polyfit(np.log(points), np.log([sample.mean() for sample in samples]), 1)[0]
    assert power_law(points, samples).exponent == pytest.approx(slope)


def test_interval_covers_the_true_exponent_of_noisy_points() -> None:
    stream, covered = np.random.default_rng(0), 0
    for trial in range(60):
        samples = [x**0.5 * stream.lognormal(-0.02, 0.2, size=12) for x in (256, 4096)]
        interval = power_law([256, 4096], samples, level=0.99, seed=trial)
        assert interval.low < interval.exponent < interval.high
        covered += interval.low <= 0.5 <= interval.high
    assert covered >= 54


def test_values_around_zero_have_no_power_law() -> None:
    with pytest.raises(InvalidInput, match="positive means"):
        power_law([10, 100], [[1.0], [-1.0]])
    vague = power_law([10, 100], [[1.0, 1.0], [9.0, -8.0]])
    assert (vague.low, vague.high) == (-np.inf, np.inf)


@pytest.mark.parametrize(
    ("points", "samples"), [([10], [[1.0]]), ([10, 100], [[1.0]]), ([0, 100], [[1.0], [2.0]]), ([1, 2], [1.0, 2.0])]
)
def test_power_laws_of_nonsense_are_refused(points: list[int], samples: list[object]) -> None:
    with pytest.raises(InvalidInput, match="two or more positive points"):
        power_law(points, samples)  # type: ignore[arg-type]
