"""DOPE+: its pessimism covers all pairs of transitions in the boxes, and it uses variances once boxes are narrow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from learner_cases import random_world

import hedgerow as hr
from hedgerow.confidence.boxes import refresh_all
from hedgerow.errors import InvalidInput
from hedgerow.learners.field.lp_kernels import width_by_variance, write_tables
from hedgerow.model.kernel_layout import index_of
from hedgerow.model.layout import Layout

CHOICES = (0.0, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128)


def extreme(lower: np.ndarray, upper: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The distribution between the bounds that has the largest mean of `values`."""
    p, left = lower.copy(), 1.0 - lower.sum()
    for y in np.argsort(-values):
        given = min(left, upper[y] - lower[y])
        p[y] += given
        left -= given
    return p


def moves_of(layout: Layout, rng: np.random.Generator, box: Any, costs: np.ndarray, pi: np.ndarray, sign: float) -> Any:
    """Transitions in the boxes that make the policy dear (sign 1) or cheap (-1), in random rows random ones."""
    moves, v = np.zeros(layout.num_triples), np.zeros(layout.num_states)
    for row in reversed(range(layout.num_rows)):
        own = slice(layout.row_start[row], layout.row_start[row + 1])
        ahead = v[layout.successor[own]]
        wanted = sign * ahead if rng.random() < 0.8 else rng.random(len(ahead))
        moves[own] = extreme(box[0][own], box[1][own], wanted)
        v[row // layout.num_actions] += pi[row] * (costs[row] + moves[own] @ ahead)
    return moves


def masses_of(layout: Layout, moves: np.ndarray, pi: np.ndarray) -> np.ndarray:
    reach, q = np.zeros(layout.num_states), np.zeros(layout.num_rows)
    reach[0] = 1.0
    for row in range(layout.num_rows):
        q[row] = reach[row // layout.num_actions] * pi[row]
        for j in range(layout.row_start[row], layout.row_start[row + 1]):
            reach[layout.successor[j]] += q[row] * moves[j]
    return q


def pessimism(layout: Layout, box: Any, theta: float) -> np.ndarray:
    """u of all rows, from the formula."""
    u = np.zeros(layout.num_rows)
    for row in range(layout.num_rows):
        h = layout.steps - layout.layer_of_state[row // layout.num_actions] - 1
        own = slice(layout.row_start[row], layout.row_start[row + 1])
        lo, w = box[0][own], box[1][own] - box[0][own]
        u[row] = min(h, h * 0.5 * w.sum())
        if theta > 0.0:
            with np.errstate(divide="ignore", invalid="ignore"):
                squares = np.where(w > 0.0, (2 * layout.steps - 1) * w**2 / (4 * theta * lo), 0.0)
            u[row] = min(u[row], np.minimum(h * w, squares).sum())
    return u


def random_box(layout: Layout, rng: np.random.Generator, size: float) -> tuple[np.ndarray, np.ndarray]:
    weights = rng.exponential(size=layout.num_triples) + 0.05
    centre = weights / np.add.reduceat(weights, layout.row_start[:-1])[layout.row_of_triple]
    radius = size * rng.random(layout.num_triples) * np.sqrt(centre * (1.0 - centre))
    return np.maximum(0.0, centre - radius), np.minimum(1.0, centre + radius)


@pytest.mark.parametrize("size", [1.0, 0.1, 0.01])
def test_no_transitions_in_the_boxes_cost_more_than_the_pessimistic_plan(size: float) -> None:
    rng, nearest, too_small = np.random.default_rng(int(1000 * size)), np.inf, 0
    for _ in range(60):
        layout = Layout((1, *rng.integers(1, 5, size=rng.integers(1, 5)).tolist(), 1), int(rng.integers(1, 3)))
        box, costs = random_box(layout, rng, size), rng.random(layout.num_rows) ** rng.integers(1, 6)
        pi = rng.dirichlet(np.ones(layout.num_actions) * 0.3, layout.num_rows // layout.num_actions).ravel()
        true, planned = (moves_of(layout, rng, box, costs, pi, sign) for sign in (1.0, -1.0))
        cost, q = float(masses_of(layout, true, pi) @ costs), masses_of(layout, planned, pi)
        for theta in CHOICES:
            u = pessimism(layout, box, theta)
            bound = float(q @ (costs + u)) / (1.0 - theta)
            assert cost <= bound + 1e-12
            nearest = min(nearest, bound - cost)
            too_small += cost > float(q @ (costs + 0.2 * u)) + 1e-9
    assert too_small > 0  # a fifth of the pessimism would not do: the cases are hard enough
    assert nearest < 0.2


def test_the_kernel_computes_the_formula() -> None:
    rng = np.random.default_rng(2)
    world = random_world(3, (1, 3, 4, 2, 1))
    seen, layout = hr.learners.Statistics(world, 100), world.layout
    for size in (1.0, 0.1, 0.01):
        box = random_box(layout, rng, size)
        seen.boxes.lower[:], seen.boxes.upper[:] = box
        for theta in CHOICES:
            ahead = layout.steps - layout.layer_of_state[np.arange(layout.num_rows) // layout.num_actions] - 1.0
            found = [
                width_by_variance(index_of(layout), seen.boxes, r, ahead[r], theta) for r in range(layout.num_rows)
            ]
            np.testing.assert_allclose(ahead * found, pessimism(layout, box, theta), rtol=1e-12, atol=1e-15)


def learner_of(world: Any, episodes: int = 200, **options: Any) -> Any:
    return hr.field.DOPEPlus(world, episodes, 0.01, baseline=hr.offline.slater(world), sets="sharp", **options)


def test_theta_is_used_where_costs_are_small_and_boxes_narrow_and_the_plan_is_safe() -> None:
    dear = random_world(3, (1, 3, 3, 3, 3, 3, 1), m=1)
    rare = hr.CMDP(dear.layout, dear.transitions, hr.costs.BernoulliCosts(0.01 * dear.mean_costs), [1.0])
    world = rare.with_thresholds(1.2 * hr.offline.slater(rare).costs)
    learner = learner_of(world)
    hr.simulate(world, learner, hr.losses.IID(), progress=False, episodes=50)
    assert learner.theta[0] == 0.0
    counts, core, N = learner.statistics.counts, learner.core, 10**8
    counts.num_visits[:], counts.num_costs[:] = N, N
    counts.num_moves[:] = np.round(world.transitions * N)
    counts.cost_sums[:, :1] = N * world.mean_costs.T
    refresh_all(core.index, counts, core.sets.rule.box, core.sets.boxes)
    write_tables(core)
    hr.simulate(world, learner, hr.losses.IID(), progress=False, episodes=3)
    assert learner.theta[0] > 0.0
    assert core.problem.thresholds[0] == pytest.approx((1.0 - learner.theta[0]) * world.thresholds[0], abs=1e-8)
    assert learner.plan().notes["mixing_weight"] == 0.0
    assert masses_of(world.layout, world.transitions, learner.policy) @ world.mean_costs[0] <= world.thresholds[0]


def test_what_is_promised_and_what_is_not() -> None:
    world = hr.worlds.make("dope-factored")
    learner = learner_of(world)
    ledger = learner.guarantees()
    assert ledger["safety"].holds
    assert "derived here" in ledger["safety"].source
    assert not ledger["regret"].holds
    assert "variant" in learner.title
    assert "abstract" in learner.recalled
    state = learner.state()
    again = hr.field.DOPEPlus.restored(world.view(), {**state, "own.theta": np.array([0.25])})
    assert again.core.problem.thresholds == pytest.approx(0.75 * world.view().thresholds, abs=1e-8)
    with pytest.raises(InvalidInput, match=r"theta is 0\.3, which is none of its choices"):
        hr.field.DOPEPlus.restored(world.view(), {**state, "own.theta": np.array([0.3])})
