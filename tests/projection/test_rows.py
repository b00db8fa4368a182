"""The entropic projection of one row onto its box: the vector of the specification, and bisection."""

import naive_projection as naive
import numpy as np
import pytest

from hedgerow.model.kernel_layout import index_of
from hedgerow.model.layout import Layout
from hedgerow.projection.problem import KernelProblem, make_workspace
from hedgerow.projection.rows import bound_value, clip_row, clip_row_wide, find_bounds, settle_full_row, settle_row

TOL = 1e-12
TOL_SUM = 1e-15
TOL_SUM_WIDE = 1e-13
"""exp(a) of an exponent with |a| = 600 is known to 600 units of rounding."""
KINDS = ("wide", "narrow", "points", "edges", "corner")
WAYS = ("settled", "settled by lanes", "from scratch", "log domain", "log domain, logs taken")
every_way = pytest.mark.parametrize("way", WAYS)


def random_row(seed: int, spread: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(log_base, v, lower, upper), all (n,); the conditionals span up to e^spread."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 20))  # more than two pieces of eight lanes
    log_base = -spread * rng.random(n) ** rng.choice([0.3, 1.0, 3.0])
    log_base -= np.logaddexp.reduce(log_base)
    center = rng.exponential(size=n) ** rng.choice([1.0, 3.0])
    center /= center.sum()
    kind = KINDS[seed % len(KINDS)]
    radius = {
        "wide": rng.uniform(0.1, 0.7, n),
        "narrow": rng.uniform(0.0, 0.03, n),
        "points": np.zeros(n),
        "edges": rng.choice([0.0, 0.1, 2.0], size=n),
        "corner": np.zeros(n),
    }[kind]
    if kind == "corner":
        center = np.eye(n)[rng.integers(n)]
    lower, upper = np.clip(center - radius, 0.0, 1.0), np.clip(center + radius, 0.0, 1.0)
    return log_base, rng.normal(size=n), lower, upper


class Row:
    """Row 1 of the layers (1, 2, n, 1), which starts at triple 2 and leads to the states 3, 4, ..., so that a forgotten
    offset shows; what does not belong to it is NaN, or a bound of 7.
    """

    start, first = 2, 3

    def __init__(self, log_base: np.ndarray, v: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> None:
        layout = Layout((1, 2, len(v), 1), 1)
        self.stop, self.shift = self.start + len(v), float(v.min())
        self.own = slice(self.start, self.stop)
        self.index, self.ws = index_of(layout), make_workspace(layout, 0)
        self.weights = np.exp(log_base + self.shift - v)
        """base * exp(shift - v)"""
        padded = []
        for values in (np.exp(log_base), log_base, lower, upper):
            padded.append(np.full(layout.num_triples, np.nan))
            padded[-1][self.own] = values
        nothing = np.zeros(0)
        self.problem = KernelProblem(np.zeros(3), *padded, np.zeros((3, 0)), nothing, nothing)
        self.v = np.full(layout.num_states, np.nan)
        self.v[self.first : self.first + len(v)] = v
        self.ws.scaled[:] = np.exp(self.shift - self.v)
        self.ws.p[:] = np.nan
        self.ws.bound[:] = 7

    @property
    def bound(self) -> np.ndarray:
        return self.ws.bound[self.own]

    @property
    def p(self) -> np.ndarray:
        return self.ws.p[self.own]

    def settle(self, full: bool = False) -> tuple[float, float, int]:
        """From the bounds that are there; writes p and bound."""
        if full:
            return settle_full_row(self.problem, self.start, self.first, self.stop - self.start, self.ws)
        return settle_row(self.index, self.problem, 1, self.ws)

    def find_bounds(self) -> tuple[float, int]:
        self.p[:] = self.weights
        found = find_bounds(self.problem, self.start, self.stop, self.ws)
        np.testing.assert_array_equal(self.p, self.weights)
        return found


def clip(
    log_base: np.ndarray, v: np.ndarray, lower: np.ndarray, upper: np.ndarray, way: str
) -> tuple[float, int, np.ndarray, np.ndarray]:
    """(h, number at a bound, p, bound), by one of `WAYS`."""
    row = Row(log_base, v, lower, upper)
    if way == "log domain, logs taken":
        row.problem = row.problem.replace(log_conditional=np.zeros(0))
    h, count = _solved(row, way)
    outside = np.ones(len(row.ws.p), dtype=bool)
    outside[row.own] = False
    assert np.isnan(row.ws.p[outside]).all()
    assert set(row.ws.bound[outside]) == {7}
    return h, count, row.p, row.bound


def _solved(row: Row, way: str) -> tuple[float, int]:
    if way.startswith("log domain"):
        return clip_row_wide(row.index, row.problem, row.v, 1, row.ws)
    if way.startswith("settled"):  # from no bounds, and from scratch if that does not settle: as `evaluate` does
        row.bound[:] = 0
        full = way == "settled by lanes"
        scale, rest, count = row.settle(full)
        if scale > 0.0:
            return rest * (np.log(scale) + row.shift) + _held_value(row, full), count
    scale, count = row.find_bounds()
    return clip_row(row.index, row.problem, row.v, 1, row.shift, scale, row.ws), count


def _held_value(row: Row, full: bool) -> float:
    """`bound_value`, which remembers logarithms, but not those of the other side."""
    ratio, noted = row.ws.log_ratio, row.ws.noted
    value = bound_value(row.index, row.problem, row.v, 1, full, row.ws)
    assert bound_value(row.index, row.problem, row.v, 1, full, row.ws) == value
    np.testing.assert_array_equal(noted[row.own], row.bound)
    noted[row.own], ratio[row.own] = -row.bound, 7.0
    assert bound_value(row.index, row.problem, row.v, 1, full, row.ws) == value
    return value


@every_way
def test_the_vector_of_the_specification(way: str) -> None:
    log_base, most = np.log([0.5, 0.3, 0.2]), np.array([0.4, 1.0, 1.0])
    h, count, p, bound = clip(log_base, np.zeros(3), np.zeros(3), most, way)
    np.testing.assert_allclose(p, [0.4, 0.36, 0.24], atol=1e-15)
    assert h == pytest.approx(0.0201355, abs=5e-8)
    assert h == pytest.approx(0.4 * np.log(0.8) + 0.6 * np.log(1.2), abs=1e-15)  # closed form: t = 1.2
    assert count == 1
    assert bound.tolist() == [1, 0, 0]


@every_way
@pytest.mark.parametrize("seed", range(60))
def test_bisection_finds_the_same(seed: int, way: str) -> None:
    log_base, v, lower, upper = random_row(seed, spread=8.0)
    h, count, p, bound = clip(log_base, v, lower, upper, way)
    check_is_a_distribution_in_its_box(p, lower, upper, TOL_SUM_WIDE if way.startswith("log domain") else TOL_SUM)
    check_bounds(p, lower, upper, count, bound)
    p_twin, _, h_twin = naive.entropic_box(log_base, v, lower, upper)
    np.testing.assert_allclose(p, p_twin, atol=TOL)
    assert h == pytest.approx(h_twin, abs=TOL)


@pytest.mark.parametrize("spread", [40.0, 200.0, 600.0, 3000.0])
@pytest.mark.parametrize("seed", range(30))
def test_rows_that_span_more_than_floating_point_are_solved_in_the_log_domain(seed: int, spread: float) -> None:
    log_base, v, lower, upper = random_row(seed, spread)
    v *= np.random.default_rng(seed).choice([1.0, 50.0])
    h, count, p, bound = clip(log_base, v, lower, upper, "log domain")
    check_is_a_distribution_in_its_box(p, lower, upper, TOL_SUM_WIDE)
    check_bounds(p, lower, upper, count, bound)
    p_twin, _, h_twin = naive.entropic_box(log_base, v, lower, upper)
    np.testing.assert_allclose(p, p_twin, atol=TOL)
    assert h == pytest.approx(h_twin, rel=TOL, abs=TOL)


def check_is_a_distribution_in_its_box(p: np.ndarray, lower: np.ndarray, upper: np.ndarray, tol_sum: float) -> None:
    """The box exactly; the sum as well as the box itself allows (bounds that are points sum to 1 with rounding)."""
    assert np.all(p >= lower)
    assert np.all(p <= upper)
    given = max(0.0, lower.sum() - 1.0, 1.0 - upper.sum())
    assert p.sum() == pytest.approx(1.0, abs=given + tol_sum)


def check_bounds(p: np.ndarray, lower: np.ndarray, upper: np.ndarray, count: int, bound: np.ndarray) -> None:
    """`bound` names the side, and only what lies at a bound is called bound."""
    assert count == np.count_nonzero(bound)
    np.testing.assert_array_equal(p[bound > 0], upper[bound > 0])
    np.testing.assert_array_equal(p[bound < 0], lower[bound < 0])


@pytest.mark.parametrize("seed", range(20))
def test_both_forms_agree(seed: int) -> None:
    row = random_row(seed, spread=20.0)
    h, count, p, bound = clip(*row, "from scratch")
    h_wide, count_wide, p_wide, bound_wide = clip(*row, "log domain")
    np.testing.assert_allclose(p, p_wide, atol=1e-14)
    assert h == pytest.approx(h_wide, abs=1e-13)
    if KINDS[seed % len(KINDS)] in ("wide", "narrow"):  # elsewhere a bound may be met by rounding only
        assert count == count_wide
        np.testing.assert_array_equal(bound, bound_wide)


@every_way
@pytest.mark.parametrize("seed", range(20))
def test_the_derivative_of_h_is_p(seed: int, way: str) -> None:
    """The envelope theorem, on which the gradient of the dual rests."""
    log_base, v, lower, upper = random_row(seed, spread=3.0)
    _, _, p, _ = clip(log_base, v, lower, upper, way)
    step = 1e-6
    for y in range(len(v)):
        ahead, behind = v.copy(), v.copy()
        ahead[y] += step
        behind[y] -= step
        slope = (clip(log_base, ahead, lower, upper, way)[0] - clip(log_base, behind, lower, upper, way)[0]) / (
            2.0 * step
        )
        assert slope == pytest.approx(p[y], abs=1e-8)


@every_way
def test_adding_a_constant_to_v_moves_h_and_nothing_else(way: str) -> None:
    log_base, v, lower, upper = random_row(0, spread=3.0)
    h, _, p, _ = clip(log_base, v, lower, upper, way)
    h_moved, _, p_moved, _ = clip(log_base, v + 1.5, lower, upper, way)
    np.testing.assert_allclose(p_moved, p, atol=1e-15)
    assert h_moved == pytest.approx(h + 1.5, abs=1e-14)


# The bounds of the last call -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(60))
def test_the_scale_and_the_bounds_from_scratch_are_those_of_bisection(seed: int) -> None:
    log_base, v, lower, upper = random_row(seed, spread=8.0)
    row = Row(log_base, v, lower, upper)
    scale, count = row.find_bounds()
    p, mu, _ = naive.entropic_box(log_base, v, lower, upper)
    side = row.bound
    assert count == np.count_nonzero(side)
    if KINDS[seed % len(KINDS)] in ("wide", "narrow"):  # elsewhere a bound may be met by rounding only
        np.testing.assert_array_equal(side, (p == upper).astype(int) - (p == lower).astype(int))
    if np.any((p > lower) & (p < upper)):  # otherwise any scale between two breakpoints serves
        assert np.log(scale) == pytest.approx(-mu - row.shift, abs=1e-11)


@pytest.mark.parametrize("seed", range(100))
def test_whatever_the_last_bounds_were_settling_is_right_or_admits_defeat(seed: int) -> None:
    log_base, v, lower, upper = random_row(seed, spread=8.0)
    row = Row(log_base, v, lower, upper)
    rng = np.random.default_rng(seed)
    p_twin, _, _ = naive.entropic_box(log_base, v, lower, upper)
    for _ in range(20):
        row.bound[:] = rng.integers(-1, 2, size=len(v))
        scale, _, count = row.settle()
        if scale < 0.0:
            assert (scale, count) == (-1.0, 0)
            continue
        side = row.bound
        weights = row.problem.conditional[row.own] * row.ws.scaled[row.first : row.first + len(v)]
        p = np.where(side > 0, upper, np.where(side < 0, lower, scale * weights))
        np.testing.assert_allclose(p, p_twin, atol=TOL)
        np.testing.assert_array_equal(p, row.p)
        assert count == np.count_nonzero(side)


def test_rows_settle_often_enough() -> None:
    """Otherwise the test above would check nothing, and every step would pay twice."""
    rows = [Row(*random_row(seed, spread=8.0)) for seed in range(300) if KINDS[seed % len(KINDS)] == "wide"]
    for row in rows:
        row.bound[:] = 0
    scales = [row.settle()[0] for row in rows]
    assert np.mean(np.array(scales) > 0.0) > 0.7


@pytest.mark.parametrize("seed", [seed for seed in range(60) if KINDS[seed % len(KINDS)] in ("wide", "narrow")])
def test_the_right_bounds_settle_at_once_and_stay(seed: int) -> None:
    row = Row(*random_row(seed, spread=8.0))
    scale, count = row.find_bounds()
    if count == row.stop - row.start:
        pytest.skip("nothing is free: there is no scale to settle")
    kept = row.bound.copy()
    again, _, count_again = row.settle()
    assert again == pytest.approx(scale, rel=1e-13)
    assert count_again == count
    np.testing.assert_array_equal(row.bound, kept)
