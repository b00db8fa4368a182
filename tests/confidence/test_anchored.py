"""The anchored bound against a slow twin, against worlds drawn from its sets, and against what must hold of it."""

from __future__ import annotations

import naive_estimates as naive
import numpy as np
import pytest
from numpy.random import Generator

from hedgerow.confidence.anchored import anchored_bounds, make_anchored_scratch
from hedgerow.confidence.boxes import Boxes
from hedgerow.model.kernel_layout import index_of
from hedgerow.model.layout import Layout
from hedgerow.model.occupancy import occupancy, row_occupancy
from nightly import daily

TOL = 1e-12


class Case:
    """A layout with boxes of transitions and costs, a baseline b and a policy pi that is near it, or far."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = np.random.default_rng(seed)
        self.layout = layout = naive.some_layout(rng, full=seed % 2 == 0)
        self.p = naive.some_transitions(rng, layout)
        lower, upper = naive.some_boxes(rng, layout, self.p)
        self.g = rng.random((layout.num_rows, 2))
        width = rng.choice([0.0, 0.05, 0.5, 2.0], size=(layout.num_rows, 2))
        cost_lower, cost_upper = self.g - width * rng.random(width.shape), self.g + width * rng.random(width.shape)
        if seed % 3:
            cost_lower, cost_upper = np.clip(cost_lower, 0.0, 1.0), np.clip(cost_upper, 0.0, 1.0)
        nothing, none = np.zeros(layout.num_rows), np.zeros(layout.num_rows, dtype=np.int64)
        self.boxes = Boxes(lower, upper, cost_lower, cost_upper, nothing, none, none.copy())
        self.b = naive.some_policy(rng, layout, zeros=seed % 5 != 0)
        self.pi = naive.some_policy(rng, layout, zeros=seed % 4 != 0)
        if seed % 2:  # the same as b before some layer
            layer = layout.layer_of_state[np.arange(layout.num_rows) // layout.num_actions]
            self.pi = np.where(layer >= rng.integers(layout.steps + 1), self.pi, self.b)

    def bounds(self, beta: np.ndarray) -> np.ndarray:
        found = np.full(2, np.inf)
        scratch = make_anchored_scratch(self.layout)
        anchored_bounds(index_of(self.layout), self.pi, self.b, self.boxes, beta, scratch, found)
        return found

    def costs(self, p: np.ndarray, g: np.ndarray, policy: np.ndarray) -> np.ndarray:
        return row_occupancy(self.layout, occupancy(self.layout, p, policy)) @ g


def differences(case: Case, i: int) -> float:
    """D(x_0), by the formula, state by state."""
    layout, boxes, A = case.layout, case.boxes, case.layout.num_actions
    up, low, base, more = ({layout.num_states - 1: 0.0} for _ in range(4))
    for x in reversed(range(layout.num_decision_states)):
        left = layout.steps - int(layout.layer_of_state[x])
        up[x] = low[x] = base[x] = more[x] = 0.0
        for r in range(x * A, (x + 1) * A):
            row = slice(layout.row_start[r], layout.row_start[r + 1])
            lo, hi, after = boxes.lower[row].tolist(), boxes.upper[row].tolist(), layout.successor[row].tolist()
            q_up = min(left, boxes.cost_upper[r, i] + naive.greedy([up[y] for y in after], lo, hi))
            q_low = max(0.0, boxes.cost_lower[r, i] - naive.greedy([-low[y] for y in after], lo, hi))
            up[x] += case.pi[r] * q_up
            low[x] += case.pi[r] * q_low
            q_base = max(0.0, boxes.cost_lower[r, i] - naive.greedy([-base[y] for y in after], lo, hi))
            base[x] += case.b[r] * q_base
            more[x] += max(case.pi[r] - case.b[r], 0.0) * q_up - max(case.b[r] - case.pi[r], 0.0) * q_low
            more[x] += case.b[r] * naive.greedy([more[y] for y in after], lo, hi)
        more[x] = min(more[x], up[x] - base[x])
    return more[0]


@pytest.mark.parametrize("seed", range(24))
def test_it_is_the_formula(seed: int) -> None:
    case, beta = Case(seed), np.array([0.3, 1.1])
    wanted = [max(beta[i] + differences(case, i), 0.0) for i in range(2)]
    np.testing.assert_allclose(case.bounds(beta), wanted, atol=TOL)


def drawn(rng: Generator, layout: Layout, boxes: Boxes) -> tuple[np.ndarray, np.ndarray]:
    """Transitions and mean costs within their boxes; half of the rows at a vertex, half of the costs at an end."""
    p = boxes.lower.copy()
    for row in naive.rows_of(layout):
        rest, places = 1.0 - p[row].sum(), rng.permutation(np.arange(row.start, row.stop))
        share = 1.0 if rng.random() < 0.5 else rng.random()
        for j in [*places, *places]:  # a second round takes what shares have left
            more = min(boxes.upper[j] - p[j], rest) * share
            p[j], rest = p[j] + more, rest - more
        for j in places:
            more = min(boxes.upper[j] - p[j], rest)
            p[j], rest = p[j] + more, rest - more
    ends = np.where(rng.random(boxes.cost_lower.shape) < 0.5, boxes.cost_lower, boxes.cost_upper)
    inside = boxes.cost_lower + rng.random(ends.shape) * (boxes.cost_upper - boxes.cost_lower)
    return p, np.clip(np.where(rng.random(ends.shape) < 0.5, ends, inside), 0.0, 1.0)


@pytest.mark.parametrize("cases", daily(60, nightly=2_000))
def test_no_world_of_the_sets_costs_more(cases: int) -> None:
    """In each of many worlds drawn from the sets, b costs beta or less there, and pi no more than the bound."""
    smaller = 0
    for seed in range(cases):
        case = Case(seed)
        worlds = [drawn(case.rng, case.layout, case.boxes) for _ in range(50)]
        for p, g in worlds:
            beta = case.costs(p, g, case.b) + 0.1 * case.rng.integers(2)
            assert (case.costs(p, g, case.pi) <= case.bounds(beta) + TOL).all(), seed
        truth = case.costs(case.p, case.g, case.b)
        boxed = [naive.joint_cost(case.layout, case.boxes.lower, case.boxes.upper, case.pi, case.boxes.cost_upper[:, i])
                 for i in range(2)]  # fmt: skip
        smaller += bool((case.bounds(truth) < np.array(boxed) - 0.01).any())
    assert smaller > cases // 4  # it is of use


@pytest.mark.parametrize("seed", range(12))
def test_the_baseline_itself_costs_beta(seed: int) -> None:
    case, beta = Case(seed), np.array([0.3, 1.1])
    case.pi = case.b
    np.testing.assert_allclose(case.bounds(beta), beta, atol=TOL)


@pytest.mark.parametrize("seed", range(24))
def test_it_is_never_above_what_the_boxes_say_of_the_difference(seed: int) -> None:
    case, beta = Case(seed), np.array([0.3, 1.1])
    case.boxes.cost_upper[:] = np.minimum(case.boxes.cost_upper, 1.0)
    case.boxes.cost_lower[:] = np.maximum(case.boxes.cost_lower, 0.0)
    lower, upper = case.boxes.lower, case.boxes.upper
    for i, found in enumerate(case.bounds(beta)):
        most = naive.joint_cost(case.layout, lower, upper, case.pi, case.boxes.cost_upper[:, i])
        least = -naive.joint_cost(case.layout, lower, upper, case.b, -case.boxes.cost_lower[:, i])
        assert found <= beta[i] + most - least + TOL


@pytest.mark.parametrize("seed", range(1, 25, 2))
def test_it_exceeds_beta_by_the_steps_that_are_left_at_most(seed: int) -> None:
    """A policy that differs from layer k on costs at most L - k more, whatever the sets are."""
    case, beta = Case(seed), np.array([0.3, 1.1])
    differs = np.flatnonzero(case.pi != case.b)
    first = case.layout.layer_of_state[differs // case.layout.num_actions].min() if differs.size else case.layout.steps
    assert (case.bounds(beta) <= beta + case.layout.steps - first + TOL).all()


@pytest.mark.parametrize("seed", range(6))
def test_where_all_is_known_it_is_the_cost(seed: int) -> None:
    case = Case(seed)
    nothing, none = np.zeros(case.layout.num_rows), np.zeros(case.layout.num_rows, dtype=np.int64)
    case.boxes = Boxes(case.p, case.p, case.g, case.g, nothing, none, none.copy())
    beta = case.costs(case.p, case.g, case.b)
    np.testing.assert_allclose(case.bounds(beta), case.costs(case.p, case.g, case.pi), atol=1e-12)
