"""Radii against their formulas, the published numbers, and coverage by simulation."""

from math import log, nan, sqrt

import naive_estimates as naive
import numpy as np
import pytest

from hedgerow.confidence.counts import make_unknowns
from hedgerow.confidence.radii import Radii, cost_radius, epsilon, transition_radius, transition_terms
from hedgerow.errors import InvalidInput
from hedgerow.model.knowledge import Knowledge
from hedgerow.model.layout import Layout

TEN_STATES = Layout((1, 4, 4, 1), num_actions=3)
"""|X| = 10 and |A| = 3, 27 pairs; 12 + 48 triples of rows with four successors and 12 of rows with one"""
VISITS = (1, 2, 3, 10, 200, 10**6)
P_HATS = (0.0, 0.01, 0.25, 0.5, 1.0)


def test_the_numbers_of_the_paper_preset() -> None:
    rule = Radii("paper").rule(TEN_STATES, 2, 0.05, 1000)
    assert rule.transition_log == pytest.approx(13.304685, abs=1e-6)
    assert cost_radius(rule, 200) == pytest.approx(0.529109, abs=1e-6)
    assert transition_radius(rule, 0.25, 200) == pytest.approx(0.570571, abs=1e-6)


def expected(kind: str, N: int, p: float, m: int, delta: float, T: int) -> tuple[float, float]:
    """xi and epsilon, written down once more from the specification."""
    if kind == "paper":
        iota, n_minus = log(T * 10 * 3 / delta), max(1, N - 1)
        xi = sqrt(4 * log(T * 10 * 3 * m / delta) / max(1, N))
        return min(1.0, xi), 2 * sqrt(p * iota / n_minus) + 14 * iota / (3 * n_minus)
    if kind == "efroni":  # S = 4 states in the largest layer, L = 3
        iota = log(6 * 4 * 3 * 3 * T / delta)
        xi = sqrt(2 * log(6 * 4 * 3 * 3 * T * m / delta) / N)
        return min(1.0, xi), 2 * sqrt(p * (1 - p) * iota / N) + 14 * iota / (3 * N)
    union = N * (N + 1) if kind == "anytime" else T
    xi = min(1.0, sqrt(log(2 * 27 * m * union / delta) / (2 * N)))
    if N < 2:
        return xi, 1.0
    v_hat, iota = p * (1 - p) * N / (N - 1), log(4 * 60 * union / (4 * delta))
    return xi, sqrt(2 * v_hat * iota / N) + 7 * iota / (3 * (N - 1))


@pytest.mark.parametrize("kind", ["paper", "tight", "anytime", "efroni"])
@pytest.mark.parametrize("m", [1, 4])
def test_radii_are_their_formulas(kind: str, m: int) -> None:
    rule = Radii(kind).rule(TEN_STATES, m, 0.01, 5000)
    for N in VISITS:
        for p in P_HATS:
            xi, eps = expected(kind, N, p, m, 0.01, 5000)
            assert cost_radius(rule, N) == pytest.approx(xi, rel=1e-13)
            assert transition_radius(rule, p, N) == pytest.approx(eps, rel=1e-13)


def test_tight_cost_radii_are_narrower_by_the_published_factor() -> None:
    # |X| = 10, |A| = 3, m = 1, delta = .05: 2.77 times narrower for T = 10^4 .. 10^6, with 30 pairs counted; here 27.
    for T in (10**4, 10**6):
        ratio = cost_radius(Radii("paper").rule(TEN_STATES, 1, 0.05, T), 10**5) / cost_radius(
            Radii("tight").rule(TEN_STATES, 1, 0.05, T), 10**5
        )
        assert ratio == pytest.approx(2.77, abs=0.02)


@pytest.mark.parametrize("kind", ["paper", "tight", "anytime", "efroni"])
def test_a_scale_multiplies_the_radii_except_where_nothing_is_known(kind: str) -> None:
    whole = Radii(kind).rule(TEN_STATES, 1, 0.05, 10**4)
    part = Radii(kind, confidence_scale=0.1).rule(TEN_STATES, 1, 0.05, 10**4)
    assert cost_radius(part, 0) == 1.0
    assert transition_radius(part, 0.0, 0) == 1.0
    assert transition_radius(part, 0.5, 10**4) == pytest.approx(0.1 * transition_radius(whole, 0.5, 10**4), rel=1e-14)
    assert cost_radius(part, 10**4) == pytest.approx(0.1 * cost_radius(whole, 10**4), rel=1e-14)
    if kind in ("tight", "anytime"):
        assert transition_radius(part, 0.5, 1) == 1.0


def test_the_number_of_constraints_is_in_the_cost_radius_only() -> None:
    few, many = (Radii("tight").rule(TEN_STATES, m, 0.05, 100) for m in (1, 9))
    assert transition_radius(few, 0.3, 50) == transition_radius(many, 0.3, 50)
    assert cost_radius(few, 500) < cost_radius(many, 500)
    none, one = (Radii("paper").rule(TEN_STATES, m, 0.05, 100) for m in (0, 1))
    assert none.as_dict() == one.as_dict()


def test_rows_with_one_successor_are_not_counted() -> None:
    one_way = Layout((1, 1, 1), num_actions=2)
    assert Radii("tight").rule(one_way, 1, 0.05, 100).transition_log == pytest.approx(log(100 / 0.05), rel=1e-14)
    rng = np.random.default_rng(7)
    layout = naive.some_layout(rng, full=False)
    n = sum(row.stop - row.start for row in naive.rows_of(layout) if row.stop - row.start > 1)
    assert Radii("tight").rule(layout, 1, 0.05, 100).transition_log == pytest.approx(log(n * 100 / 0.05), rel=1e-14)


def most_unlike(size: int) -> Layout:
    """Layers of one size: the number of triples is S times that of pairs, where `tight` comes closest."""
    return Layout((1, *[size] * 3, 1), num_actions=2)


WIDE = {
    "small": (TEN_STATES, 1000, 0.05),
    "one row": (Layout((1, 1), 1), 1, 0.99),
    "one episode": (most_unlike(40), 1, 0.99),
    "wide": (most_unlike(200), 10, 0.9),
    "long": (most_unlike(12), 10**7, 1e-4),
    "two layers": (Layout((1, 300, 300, 1), 1), 1, 0.999),
}


@pytest.mark.parametrize("case", WIDE)
@pytest.mark.parametrize("m", [0, 1, 5])
def test_the_radii_of_efroni_are_never_narrower_than_tight_ones(case: str, m: int) -> None:
    layout, T, delta = WIDE[case]
    wide, narrow = (Radii(kind).rule(layout, m, delta, T) for kind in ("efroni", "tight"))
    assert narrow.transition_log < 2.0 * wide.transition_log - 3.0
    for N in (*range(200), *np.geomspace(200, 1e9, 60).astype(np.int64).tolist()):
        assert cost_radius(wide, N) >= cost_radius(narrow, N)
        for p in (0.0, 1e-6, 0.01, 0.25, 0.5, 0.75, 0.999, 1.0):
            assert min(1.0, transition_radius(wide, p, N)) >= min(1.0, transition_radius(narrow, p, N))


def test_tied_rows_keep_that_order() -> None:
    layout = TEN_STATES
    known = Knowledge(same_costs=np.zeros(layout.num_rows, dtype=np.int64))
    unknowns = make_unknowns(layout, 1, known, ties=True)
    assert unknowns.tied
    wide, narrow = (Radii(kind).rule(layout, 1, 0.05, 1000, unknowns) for kind in ("efroni", "tight"))
    assert wide.cost_log >= narrow.cost_log
    assert wide.transition_log == pytest.approx(log(6 * 4 * 3 * 3 * 1000 * 3 / 0.05), rel=1e-13)
    assert wide.transition_log >= narrow.transition_log


@pytest.mark.parametrize("kind", ["paper", "tight", "anytime", "efroni"])
def test_estimates_stay_within_their_radii(kind: str) -> None:
    """Any breach in a run of T visits to one row of two successors has probability at most delta (4 delta) / rows."""
    T, runs, delta, p = 1000, 400, 0.2, 0.3
    layout = Layout((1, 2, 1), num_actions=1)
    rule = Radii(kind).rule(layout, 1, delta, T)
    draws = np.random.default_rng(0).random((runs, T)) < p
    estimate = np.cumsum(draws, axis=1) / np.arange(1, T + 1)
    xi = np.array([cost_radius(rule, N) for N in range(1, T + 1)])
    terms = np.array([transition_terms(rule, N) for N in range(1, T + 1)])
    eps = np.array([[epsilon(rule, q, *term) for q, term in zip(row, terms, strict=True)] for row in estimate[:20]])
    assert (np.abs(estimate - p) > xi).any(axis=1).mean() <= delta
    assert (np.abs(estimate[:20] - p) > eps).any(axis=1).mean() <= 4 * delta
    assert xi[-1] < 0.2  # and they say something


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"kind": "loose"}, "choose one of paper, tight, anytime, kt, efroni"),
        ({"kind": ["kt"]}, "the radii are .'kt'.; choose one of"),
        ({"confidence_scale": 0.0}, "confidence scale"),
        ({"confidence_scale": 1.5}, "confidence scale"),
        ({"confidence_scale": nan}, "confidence scale"),
    ],
)
def test_settings_out_of_range_are_refused(arguments: dict, complaint: str) -> None:
    with pytest.raises(InvalidInput, match=complaint):
        Radii(**arguments)


def test_a_rule_needs_a_failure_probability_and_a_horizon() -> None:
    for delta in (0.0, 1.0, nan):
        with pytest.raises(InvalidInput, match="delta"):
            Radii().rule(TEN_STATES, 1, delta, 10)
    with pytest.raises(InvalidInput, match="anytime"):
        Radii("tight").rule(TEN_STATES, 1, 0.1)
    with pytest.raises(InvalidInput, match="number of episodes"):
        Radii().rule(TEN_STATES, 1, 0.1, 0)
    without, ignored = (Radii("anytime").rule(TEN_STATES, 1, 0.1, episodes) for episodes in (None, 77))
    assert without.as_dict() == ignored.as_dict()
