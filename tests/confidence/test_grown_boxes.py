"""Intervals of the kind kt that are refreshed when their visits grew by 2 %, against a slow twin that recounts all."""

from __future__ import annotations

from math import fsum
from typing import Any

import naive_estimates as naive
import naive_laws
import numpy as np
import pytest

from hedgerow.confidence.boxes import Boxes, BoxRule, make_box_rule, make_boxes, refresh_all, refresh_grown
from hedgerow.confidence.counts import Counts, Unknowns, make_counts, make_unknowns, record, record_costs
from hedgerow.confidence.radii import Radii
from hedgerow.model.kernel_layout import index_of
from hedgerow.model.knowledge import NOTHING, Knowledge
from hedgerow.model.layout import Layout

NAN = np.nan
M = 2
TOL = 1e-12


def some_knowledge(rng: np.random.Generator, layout: Layout, p: np.ndarray, g: np.ndarray, what: str) -> Knowledge:
    """Laws that rows share, and for `all` some of them known; p and g are changed so that it is true."""
    if what == "nothing":
        return NOTHING
    moves = naive_laws.random_classes(rng, layout, equally_long=True)
    costs = naive_laws.random_classes(rng, layout, equally_long=False)
    for row in range(layout.num_rows):
        start, first = layout.row_start[row], layout.row_start[moves[row]]
        p[start : layout.row_start[row + 1]] = p[first : first + layout.row_start[row + 1] - start]
        g[:, row] = g[:, costs[row]]
    if what == "ties":
        return Knowledge(moves, costs)
    known_p = np.where(np.isin(moves, rng.choice(moves, 3))[layout.row_of_triple], p, NAN)
    known_g = np.where(np.isin(costs, rng.choice(costs, 4)) & (rng.random((M, 1)) < 2.0), g, NAN)
    known_g[0, costs == costs[-1]] = g[0, costs == costs[-1]]  # of one constraint only
    return Knowledge(moves, costs, what == "independent", known_p, known_g)


class Case:
    """A world with its counts and boxes, and the twin beside them."""

    def __init__(self, seed: int, what: str, scale: float, *, full: bool = True) -> None:
        self.rng = rng = np.random.default_rng([seed, len(what)])
        sizes = (1, 3, 2, 3, 1)
        self.layout = layout = Layout(sizes, 2) if full else naive.sparse_layout(rng, sizes, 2, 0.4)
        self.p, self.g = naive.some_transitions(rng, layout), rng.random((M, layout.num_rows))
        self.known = some_knowledge(rng, layout, self.p, self.g, what)
        self.unknowns: Unknowns = make_unknowns(layout, M, self.known, ties=True)
        radii = Radii("kt", scale).rule(layout, M, 0.05, None, self.unknowns)
        self.rule: BoxRule = make_box_rule(radii, self.unknowns, True, gradual=True)
        self.counts: Counts = make_counts(layout, M)
        self.boxes: Boxes = make_boxes(self.unknowns, clip_costs=True)
        self.index, self.changed = index_of(layout), np.zeros(2 * layout.num_rows, dtype=np.int64)
        self.twin = naive_laws.GradualBoxes(layout, M, self.known, radii.cost_log, radii.transition_log, scale)
        self.history: list[naive_laws.Seen] = []
        self.pi = naive.some_policy(rng, layout)

    def play(self, costs: np.ndarray | None = None, *, counts: bool = True) -> list[int]:
        """One more episode; returns the rows whose boxes are said to have changed."""
        rows, triples = naive.some_episode(self.rng, self.layout, self.p, self.pi)
        if costs is None:
            costs = (self.rng.random((len(rows), M)) < self.g[:, rows].T).astype(float)
        record(self.index, self.rule.laws, self.counts, np.array(rows), np.array(triples))
        if counts:
            record_costs(self.rule.laws, self.counts, np.array(rows), costs)
        num = refresh_grown(self.index, self.counts, self.rule, np.array(rows), self.boxes, self.changed)
        steps = [j - int(self.layout.row_start[r]) for r, j in zip(rows, triples, strict=True)]
        self.history.append(naive_laws.Seen(rows, steps, costs, counts))
        return self.changed[:num].tolist()

    def assert_twins(self) -> None:
        layout, boxes, twin = self.layout, self.boxes, self.twin
        for row in range(layout.num_rows):
            own = slice(layout.row_start[row], layout.row_start[row + 1])
            low, high = zip(*twin.boxes[row], strict=True)
            np.testing.assert_allclose(boxes.lower[own], low, atol=TOL, err_msg=f"row {row}")
            np.testing.assert_allclose(boxes.upper[own], high, atol=TOL, err_msg=f"row {row}")
            for i in range(M):
                found = boxes.cost_lower[row, i], boxes.cost_upper[row, i]
                assert found == pytest.approx(twin.costs[row, i], abs=TOL), (row, i)
            assert boxes.visits[row] == twin.made_with[row]
            assert boxes.cost_visits[row] == twin.costs_made_with[row]
            if twin.costs_made_with[int(twin.costs_at[row])]:
                widest = max((twin.costs[row, i][1] - twin.costs[row, i][0]) / 2.0 for i in range(M))
                assert boxes.xi[row] == pytest.approx(widest, abs=TOL)


@pytest.mark.slow
@pytest.mark.sampled(4)
@pytest.mark.parametrize("scale", [1.0, 0.05])
@pytest.mark.parametrize("what", ["nothing", "ties", "all", "independent"])
@pytest.mark.parametrize("full", [True, False])
def test_boxes_are_those_of_the_twin(full: bool, what: str, scale: float) -> None:
    case = Case(1, what, scale, full=full)
    for t in range(260):
        before = {name: array.copy() for name, array in case.boxes.as_dict().items()}
        changed = case.play(counts=t % 7 != 3)
        case.twin.add(case.history)
        case.assert_twins()
        assert len(changed) <= 2 * case.layout.num_rows
        untouched = np.setdiff1d(np.arange(case.layout.num_rows), changed)
        triples = np.isin(case.layout.row_of_triple, untouched)
        for name in ("cost_lower", "cost_upper", "xi"):
            np.testing.assert_array_equal(getattr(case.boxes, name)[untouched], before[name][untouched])
        for name in ("lower", "upper"):
            np.testing.assert_array_equal(getattr(case.boxes, name)[triples], before[name][triples])
    assert case.twin.refreshed < 0.9 * 260 * 2 * case.layout.steps  # else nothing was ever left as it was
    if scale < 1.0:
        assert case.twin.fallen_back > 0
    else:
        assert case.twin.fallen_back == 0


def test_a_row_is_refreshed_exactly_when_it_grew_by_a_fiftieth() -> None:
    """With N' the visits of the last time: at the first N with 50 (N - N') >= N'."""
    layout = Layout((1, 2, 1), 1)
    unknowns = make_unknowns(layout, 1)
    rule = make_box_rule(Radii("kt").rule(layout, 1, 0.05, None, unknowns), unknowns, True, gradual=True)
    counts, boxes, index = make_counts(layout, 1), make_boxes(unknowns, clip_costs=True), index_of(layout)
    changed, times = np.zeros(2 * layout.num_rows, dtype=np.int64), []
    for t in range(1, 1001):
        rows, triples = np.array([0, 1]), np.array([0, 2])
        record(index, rule.laws, counts, rows, triples)
        record_costs(rule.laws, counts, rows, np.zeros((2, 1)))
        num = refresh_grown(index, counts, rule, rows, boxes, changed)
        if num:
            times.append(t)
            assert sorted(changed[:num].tolist()) == [0, 0, 1]  # moves and costs of row 0, costs of row 1
    expected, then = [], 0
    for t in range(1, 1001):
        if 50 * (t - then) >= then:
            expected.append(t)
            then = t
    assert times == expected
    assert times[:100] == [*range(1, 51), *range(51, 52), *range(53, 101, 2), *times[75:100]][:100]
    assert len(times) < 200


def one_row(sums: list[float], scale: float) -> Boxes:
    """The boxes of a world with one row after costs one by one."""
    layout = Layout((1, 1), 1)
    unknowns = make_unknowns(layout, 1)
    rule = make_box_rule(Radii("kt", scale).rule(layout, 1, 0.05, None, unknowns), unknowns, True, gradual=True)
    counts, boxes, index = make_counts(layout, 1), make_boxes(unknowns, clip_costs=True), index_of(layout)
    for cost in sums:
        record(index, rule.laws, counts, np.array([0]), np.array([0]))
        record_costs(rule.laws, counts, np.array([0]), np.array([[cost]]))
        refresh_grown(index, counts, rule, np.array([0]), boxes, np.zeros(2, dtype=np.int64))
    return boxes


def test_what_all_intervals_have_in_common_and_what_follows_when_that_is_nothing() -> None:
    """Forty costs of 1 prove a mean near 1; if four hundred costs of 0 follow, the mean is somewhere else."""
    high = one_row([1.0] * 40, 1.0)
    both = one_row([1.0] * 40 + [0.0] * 3, 1.0)
    assert both.cost_lower[0, 0] == high.cost_lower[0, 0]  # the later interval alone would begin lower
    assert both.cost_upper[0, 0] < 1.0
    later = one_row([1.0] * 40 + [0.0] * 400, 1.0)
    assert later.cost_upper[0, 0] < high.cost_lower[0, 0]
    assert later.cost_lower[0, 0] < 0.5


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("what", ["nothing", "ties", "all"])
@pytest.mark.parametrize("scale", [1.0, 0.05, 1e-6])
def test_every_box_holds_a_distribution_and_what_was_seen(scale: float, what: str, seed: int) -> None:
    case = Case(seed, what, scale, full=seed % 2 == 0)
    layout, boxes, counts = case.layout, case.boxes, case.counts
    for _ in range(80):
        case.play()
        assert (boxes.lower >= 0.0).all()
        assert (boxes.lower <= boxes.upper).all()
        assert (boxes.upper <= 1.0).all()
        assert (boxes.cost_lower <= boxes.cost_upper).all()
    refresh_all(case.index, counts, case.rule, boxes)
    for row in range(layout.num_rows):
        own = slice(layout.row_start[row], layout.row_start[row + 1])
        lower, upper = boxes.lower[own], boxes.upper[own]
        assert fsum(lower.tolist()) <= 1.0 + 1e-15 * len(lower)
        assert fsum(upper.tolist()) >= 1.0 - 1e-15 * len(upper)
        place = int(case.rule.laws.moves_at[row])
        visits = counts.num_visits[place]
        if case.rule.uncertain[place] and visits:
            first = int(layout.row_start[place])
            p_hat = counts.num_moves[first : first + len(lower)] / visits
            assert (lower <= p_hat).all()
            assert (p_hat <= upper).all()


@pytest.mark.parametrize("way", ["grown", "all"])
@pytest.mark.parametrize("kind", ["paper", "tight", "anytime", "kt"])
def test_what_is_known_never_changes_and_tied_rows_are_copies(kind: str, way: str) -> None:
    case = Case(5, "all", 1.0)
    known, layout = case.known, case.layout
    gradual = kind == "kt"
    radii = Radii(kind).rule(layout, M, 0.05, 10**4, case.unknowns)
    case.rule = make_box_rule(radii, case.unknowns, True, gradual=gradual)
    boxes = case.boxes
    assert known.transitions is not None
    assert known.costs is not None
    assert known.same_transitions is not None
    for t in range(120):
        case.play()
        if way == "all" and t % 10 == 0:
            refresh_all(case.index, case.counts, case.rule, boxes)
        sure_p, sure_g = ~np.isnan(known.transitions), ~np.isnan(known.costs.T)
        for array in (boxes.lower, boxes.upper):
            np.testing.assert_array_equal(array[sure_p], case.p[sure_p])
        for array in (boxes.cost_lower, boxes.cost_upper):
            np.testing.assert_array_equal(array[sure_g], case.g.T[sure_g])
            np.testing.assert_array_equal(array, array[known.same_costs])
        assert (boxes.xi[sure_g.all(axis=1)] == 0.0).all()
        np.testing.assert_array_equal(boxes.xi, boxes.xi[known.same_costs])
        for row in range(layout.num_rows):
            twin = int(known.same_transitions[row])
            own, other = (slice(layout.row_start[r], layout.row_start[r + 1]) for r in (row, twin))
            np.testing.assert_array_equal(boxes.lower[own], boxes.lower[other])
            np.testing.assert_array_equal(boxes.upper[own], boxes.upper[other])
    assert sure_g.all(axis=1).any()
    assert sure_p.any()


@pytest.mark.slow
def test_the_truth_stays_in_intervals_that_share_and_are_cut() -> None:
    """The clean event has probability 1 - 5 delta = .75 at least; of 60 runs all or almost all are clean."""
    misses = 0
    for seed in range(60):
        case = Case(seed, "ties", 1.0)
        clean = True
        for _ in range(150):
            case.play()
            boxes = case.boxes
            clean &= bool(np.all((boxes.lower <= case.p + TOL) & (case.p <= boxes.upper + TOL)))
            clean &= bool(np.all((boxes.cost_lower <= case.g.T + TOL) & (boxes.cost_upper + TOL >= case.g.T)))
        misses += not clean
    assert misses <= 15


def refreshed(unknowns: Unknowns, kind: str, clip: bool) -> dict[str, Any]:
    layout = unknowns.layout
    rule = make_box_rule(Radii(kind).rule(layout, M, 0.05, 100, unknowns), unknowns, clip, gradual=kind == "kt")
    boxes = make_boxes(unknowns, clip_costs=clip)
    refresh_all(index_of(layout), make_counts(layout, M), rule, boxes)
    return boxes.as_dict()


@pytest.mark.parametrize("kind", ["paper", "tight", "anytime"])
@pytest.mark.parametrize("clip", [True, False])
def test_refreshing_without_any_visit_changes_nothing(clip: bool, kind: str) -> None:
    case = Case(3, "all", 1.0)
    start = make_boxes(case.unknowns, clip_costs=clip).as_dict()
    for name, array in refreshed(case.unknowns, kind, clip).items():
        np.testing.assert_array_equal(array, start[name], err_msg=name)
