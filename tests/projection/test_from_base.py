"""Projections of a learner's kind: a base that is the last projection but for a few rows, and a system from before."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from projection_cases import random_problem

from hedgerow.checks import IntArray
from hedgerow.projection.dual import evaluate, evaluate_base, gradient
from hedgerow.projection.newton import SOLVED, NewtonOutcome, maximise_from_base, recover
from hedgerow.projection.problem import ProjectionProblem, ProjectionSettings, make_workspace
from hedgerow.projection.solve import project

TOL = ProjectionSettings().tol


class Iterate:
    """A base that is projected again and again, changed in a few rows in between, as in `learners/ops/step.py`."""

    def __init__(self, seed: int) -> None:
        self.rng, self.problem = np.random.default_rng(seed), random_problem(seed, boxes="wide", m=2)
        self.layout, (self.index, self.kernel) = self.problem.layout, self.problem.kernel_arguments()
        self.ws = make_workspace(self.layout, 2)
        self.v, self.theta, self.policy = np.zeros(self.layout.num_states), np.zeros(2), np.zeros(self.layout.num_rows)
        self.project(np.arange(self.layout.num_rows))

    def project(self, rows: IntArray) -> NewtonOutcome:
        outcome = maximise_from_base(self.index, self.kernel, rows, self.v, self.theta, self.ws, TOL, np.inf, 60)
        assert outcome.code == SOLVED
        log_w = self.kernel.log_weight.copy()
        recover(self.index, self.kernel, self.ws, self.policy, log_w, np.zeros(2))
        conditional = np.maximum(self.ws.p, 1e-250)
        self.kernel = self.kernel.replace(log_weight=log_w, conditional=conditional, log_conditional=np.zeros(0))
        return outcome

    def change(self) -> IntArray:
        """One row per layer loses weight and room; returns these."""
        layout, kernel = self.layout, self.kernel
        rows = np.array([self.rng.integers(layout.rows(k).start, layout.rows(k).stop) for k in range(layout.steps)])
        lower, upper, log_weight = kernel.lower.copy(), kernel.upper.copy(), kernel.log_weight.copy()
        for r in rows:
            row = slice(layout.row_start[r], layout.row_start[r + 1])
            log_weight[r] -= 0.1 * self.rng.random()
            room = upper[row] - lower[row]
            center = lower[row] + room * (1.0 - lower[row].sum()) / max(room.sum(), 1e-300)  # sums to 1
            lower[row] += 0.1 * (center - lower[row])
            upper[row] -= 0.1 * (upper[row] - center)
        self.kernel = kernel.replace(lower=lower, upper=upper, log_weight=log_weight)
        return rows

    def as_problem(self) -> ProjectionProblem:
        kernel, row = self.kernel, self.layout.row_of_triple
        log_base = kernel.log_weight[row] + np.log(kernel.conditional)
        return replace(self.problem, log_base=log_base, lower=kernel.lower, upper=kernel.upper)


@pytest.mark.parametrize("seed", range(12))
def test_only_changed_rows_need_to_be_solved_at_the_base(seed: int) -> None:
    iterate = Iterate(seed)
    rows, ws, other = iterate.change(), iterate.ws, make_workspace(iterate.layout, 2)
    v, u = np.full(iterate.layout.num_states, 7.0), np.zeros(iterate.layout.num_states)
    value = evaluate_base(iterate.index, iterate.kernel, rows, v, ws)
    assert value == pytest.approx(evaluate(iterate.index, iterate.kernel, u, np.zeros(2), other), abs=1e-12)
    np.testing.assert_allclose(v, u, atol=1e-12)
    for mine, full in ((ws.p, other.p), (ws.w, other.w), (ws.masses, other.masses), (ws.log_m, other.log_m)):
        np.testing.assert_allclose(mine, full, atol=1e-12)
    several = (np.diff(iterate.layout.row_start) > 1)[iterate.layout.row_of_triple]  # bounds of others are never read
    np.testing.assert_array_equal(ws.bound[several], other.bound[several])
    np.testing.assert_array_equal(ws.num_bound, other.num_bound)
    gradient(iterate.index, iterate.kernel, ws)
    gradient(iterate.index, iterate.kernel, other)
    np.testing.assert_allclose(ws.gradient_v, other.gradient_v, atol=1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_a_sequence_of_projections_is_that_of_single_ones(seed: int) -> None:
    iterate = Iterate(seed)
    for _ in range(8):
        rows = iterate.change()
        alone = project(iterate.as_problem())
        iterate.project(rows)
        np.testing.assert_allclose(np.exp(iterate.kernel.log_weight)[iterate.layout.row_of_triple] * iterate.ws.p,
                                   np.exp(alone.log_occupancy), atol=1e-8)  # fmt: skip
        np.testing.assert_allclose(iterate.theta, alone.theta, atol=1e-6)


@pytest.mark.parametrize("spoil", ["scaled", "noise", "negative"])
@pytest.mark.parametrize("seed", range(8))
def test_a_useless_system_costs_steps_but_no_accuracy(seed: int, spoil: str) -> None:
    iterate = Iterate(seed)
    rows, ws, rng = iterate.change(), iterate.ws, np.random.default_rng(seed)
    alone = project(iterate.as_problem())
    ws.num_candidates[0] = max(ws.num_candidates[0], 0)  # there is none if the first projection took no step
    for array in (ws.diagonal, ws.coupling, ws.border, ws.schur):
        if spoil == "scaled":
            array *= 100.0
        elif spoil == "noise":
            array[...] = rng.exponential(size=array.shape)
        else:  # no ascent, or no step at all: the system is built anew
            array[...] = -np.abs(array)
    iterate.project(rows)
    occupancy = np.exp(iterate.kernel.log_weight)[iterate.layout.row_of_triple] * ws.p
    np.testing.assert_allclose(occupancy, np.exp(alone.log_occupancy), atol=1e-8)
