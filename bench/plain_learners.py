"""Learners as one would write them with numpy and a general solver: the peers of a compiled episode.

    PlainSVOPS      SV-OPS, the same iterates as ours: sets and bounds in numpy, the projection by cvxpy + Clarabel
    OptimisticLP    in the manner of OptCMDP (Efroni, Mannor, Pirotta 2020): one linear program per episode, HiGHS
    PlainOREPS      O-REPS (Zimin, Neu 2013): the transitions known, whole losses seen, no constraints; L-BFGS

The last two solve easier problems and promise less; they show the time of an episode without a projection, or without
unknown transitions. All of them take the tight radii and the clipped costs of the preset `sharp`, and `adopt` what a
learner of ours has seen: every contender goes on from the same data.

    >>> np.round(largest_mean(np.array([1.0, 0.5, 0.0]), np.array([0.1, 0.2, 0.1]), np.array([0.5, 0.9, 0.6]),
    ...                       np.zeros(3, dtype=np.int64), 1), 3).tolist()
    [0.7]
"""

from __future__ import annotations

from math import log
from typing import Protocol

import numpy as np

from bench import inside
from bench.cvxpy_peers import CvxpyAsWritten
from hedgerow.checks import FloatArray, IntArray
from hedgerow.errors import InvalidInput
from hedgerow.learners.ops.base import MirrorLearner
from hedgerow.model.layout import Layout
from hedgerow.projection.problem import ProjectionProblem

SMALL_GRADIENT = 1e-6
"""L-BFGS has converged below this, whatever it reports: its line search gives up when only rounding is left."""


class PlainLearner(Protocol):
    """Learns from one episode after the other."""

    name: str

    def observe(self, rows: IntArray, losses: FloatArray, costs: FloatArray) -> str:
        """Learn from rows (L,), losses (L,) and costs (L, m); says how its solver ended."""

    @property
    def occupancy(self) -> FloatArray:
        """(num_rows,): the occupancy that it expects of its policy."""


class Knowledge:
    """Counts, and the tight confidence sets that follow from them, in numpy."""

    def __init__(self, learner: MirrorLearner) -> None:
        settings = learner.settings
        if settings.radii != "tight" or not settings.clip_costs or settings.confidence_scale != 1.0:
            raise InvalidInput("the plain learners are written for the radii and costs of preset='sharp'")
        if learner.episodes is None:
            raise InvalidInput("the plain learners need a number of episodes")
        layout, m, counts = learner.layout, learner.view.num_constraints, inside.seen(learner)
        self.layout = layout
        self.N, self.M, self.S = counts.visits, counts.moves, counts.cost_sums
        self.uncertain = (np.diff(layout.row_start) > 1)[layout.row_of_triple]
        self.cost_log = log(2 * layout.num_rows * m * learner.episodes / learner.delta)
        self.transition_log = log(4 * max(1, self.uncertain.sum()) * learner.episodes / (4.0 * learner.delta))

    def record(self, rows: IntArray, costs: FloatArray) -> None:
        """Count one episode."""
        layout = self.layout
        targets = np.append(rows[1:] // layout.num_actions, layout.num_states - 1)
        for row, target, cost in zip(rows, targets, costs, strict=True):
            own = layout.successor[layout.row_start[row] : layout.row_start[row + 1]]
            self.M[layout.row_start[row] + np.searchsorted(own, target)] += 1.0
            self.N[row] += 1.0
            self.S[:, row] += cost

    def boxes(self) -> tuple[FloatArray, FloatArray]:
        """lo and hi (num_triples,): P_hat -+ epsilon, without the tightening that does not change the set."""
        N = self.N[self.layout.row_of_triple]
        p_hat, n_minus = self.M / np.maximum(1.0, N), np.maximum(1.0, N - 1.0)
        epsilon = np.sqrt(2.0 * p_hat * (1.0 - p_hat) * self.transition_log / n_minus)
        epsilon += 7.0 * self.transition_log / (3.0 * n_minus)
        known = self.uncertain & (N >= 2.0)
        lower = np.where(known, np.maximum(0.0, p_hat - epsilon), np.where(self.uncertain, 0.0, 1.0))
        return lower, np.where(known, np.minimum(1.0, p_hat + epsilon), 1.0)

    def optimistic(self, sums: FloatArray) -> FloatArray:
        """Lower confidence bounds (..., num_rows) of means from their sums, clipped at 0."""
        visits = np.maximum(1.0, self.N)
        xi = np.where(self.N > 0.0, np.minimum(1.0, np.sqrt(self.cost_log / (2.0 * visits))), 1.0)
        bounds: FloatArray = np.maximum(0.0, sums / visits - xi)
        return bounds


def largest_mean(f: FloatArray, lower: FloatArray, upper: FloatArray, row: IntArray, num_rows: int) -> FloatArray:
    """max { p . f : lower <= p <= upper, sum p = 1 } of each row, greedily; the arguments are per triple."""
    order = np.lexsort((-f, row))
    f, low, width, row = f[order], lower[order], (upper - lower)[order], row[order]
    first = np.searchsorted(row, np.arange(num_rows))
    before = np.cumsum(width) - width  # what earlier triples could take, those of earlier rows included
    room = 1.0 - np.add.reduceat(low, first)
    more = np.clip(room[row] - (before - before[first][row]), 0.0, width)
    means: FloatArray = np.add.reduceat((low + more) * f, first)
    return means


def reach_bound(layout: Layout, lower: FloatArray, upper: FloatArray, policy: FloatArray, state: int) -> float:
    """The largest probability of visiting `state` that the boxes allow (COMP-UOB), backwards through the layers."""
    k = int(layout.layer_of_state[state])
    f = np.zeros(layout.num_states)
    f[state] = 1.0
    for h in range(k - 1, -1, -1):
        triples, rows, states = layout.triples(h), layout.rows(h), layout.states(h)
        own = layout.row_of_triple[triples] - rows.start
        best = largest_mean(f[layout.successor[triples]], lower[triples], upper[triples], own, rows.stop - rows.start)
        f[states] = (policy[rows] * best).reshape(-1, layout.num_actions).sum(axis=1)
    return float(f[0])


class PlainSVOPS:
    """SV-OPS line by line, with one parametrised cvxpy program for all episodes."""

    name = "SV-OPS with cvxpy + Clarabel"

    def __init__(self, learner: MirrorLearner, time_limit: float = 60.0) -> None:
        self.layout, self.thresholds = learner.layout, learner.view.thresholds
        self.eta, self.gamma = learner.eta, learner.gamma
        self.known = Knowledge(learner)
        self.q = inside.triple_iterate(learner)
        self.policy = np.array(learner.policy)
        self.solver = CvxpyAsWritten(self.layout, len(self.thresholds), time_limit)
        self.solver.run(self._problem(np.zeros(self.layout.num_rows)))  # compiles the program

    @property
    def occupancy(self) -> FloatArray:
        return np.asarray(np.add.reduceat(self.q, self.layout.row_start[:-1]))

    def observe(self, rows: IntArray, losses: FloatArray, costs: FloatArray) -> str:
        layout, known = self.layout, self.known
        lower, upper = known.boxes()
        reach = [reach_bound(layout, lower, upper, self.policy, int(row) // layout.num_actions) for row in rows]
        estimate = np.zeros(layout.num_rows)
        estimate[rows] = losses / (self.policy[rows] * np.array(reach) + self.gamma)
        known.record(rows, costs)
        answer = self.solver.run(self._problem(estimate))
        if not np.all(np.isfinite(answer.occupancy)):
            return answer.status  # the iterate stays as it is
        self.q = np.maximum(answer.occupancy, 0.0)
        self.policy = _policy(layout, self.occupancy)
        return answer.status

    def _problem(self, estimate: FloatArray) -> ProjectionProblem:
        """What to project after the losses (num_rows,) were estimated."""
        known, layout = self.known, self.layout
        log_base = np.log(np.maximum(self.q, 1e-300)) - self.eta * estimate[layout.row_of_triple]
        return ProjectionProblem(layout, log_base, *known.boxes(), known.optimistic(known.S), self.thresholds)


class OptimisticLP:
    """One linear program per episode: the least optimistic loss over all occupancies that boxes and costs allow.

    Losses must be drawn alike in all episodes for its promise to hold; against an adversary it has none.
    """

    name = "optimistic LP with HiGHS"

    def __init__(self, learner: MirrorLearner, mean_loss: FloatArray, time_limit: float = 60.0) -> None:
        """`mean_loss` (num_rows,) is the average of the losses that `learner` has seen."""
        from scipy import sparse

        self.layout, self.thresholds, self.time_limit = learner.layout, learner.view.thresholds, time_limit
        self.known = Knowledge(learner)
        self.loss_sums = self.known.N * mean_loss
        layout, row = self.layout, self.layout.row_of_triple
        n, states = layout.num_triples, layout.num_decision_states
        inner = np.flatnonzero(layout.successor < states)
        entries = np.concatenate([np.ones(n), -np.ones(len(inner))])
        places = np.concatenate([row // layout.num_actions, layout.successor[inner]])
        columns = np.concatenate([np.arange(n), inner])
        self.flow = sparse.csr_array((entries, (places, columns)), shape=(states, n))
        self.source = np.zeros(states)
        self.source[0] = 1.0
        self.of_row = sparse.csr_array((np.ones(n), (row, np.arange(n))), shape=(layout.num_rows, n))
        self.q = np.zeros(n)

    @property
    def occupancy(self) -> FloatArray:
        return np.asarray(np.add.reduceat(self.q, self.layout.row_start[:-1]))

    @property
    def policy(self) -> FloatArray:
        return _policy(self.layout, self.occupancy)

    def observe(self, rows: IntArray, losses: FloatArray, costs: FloatArray) -> str:
        self.loss_sums[rows] += losses
        self.known.record(rows, costs)
        return self.plan(*self.known.boxes())

    def plan(self, lower: FloatArray, upper: FloatArray) -> str:
        """Solve the program for these boxes and the counts so far."""
        from scipy import sparse
        from scipy.optimize import linprog

        known, row = self.known, self.layout.row_of_triple
        boxed = known.uncertain
        of_own_row = self.of_row[row[boxed]]  # w of the row of each triple
        identity = sparse.eye_array(len(row), format="csr")[boxed]
        above = identity - sparse.diags_array(upper[boxed]) @ of_own_row
        below = sparse.diags_array(lower[boxed]) @ of_own_row - identity
        costs = sparse.csr_array(known.optimistic(known.S)[:, row])
        answer = linprog(
            known.optimistic(self.loss_sums)[row],
            A_ub=sparse.vstack([above, below, costs]),
            b_ub=np.concatenate([np.zeros(2 * int(boxed.sum())), self.thresholds]),
            A_eq=self.flow,
            b_eq=self.source,
            method="highs",
            options={"time_limit": self.time_limit},
        )
        if answer.status != 0:
            return "infeasible" if answer.status == 2 else str(answer.message)
        self.q = np.maximum(answer.x, 0.0)
        return "optimal"


class PlainOREPS:
    """Mirror descent when P is known and the whole loss is seen: the dual has one variable per inner state."""

    name = "O-REPS, plain: P and losses known, no constraints"

    def __init__(self, learner: MirrorLearner, transitions: FloatArray, loss: FloatArray) -> None:
        self.layout, self.P, self.loss, self.eta = learner.layout, transitions, loss, learner.eta
        self.log_w = np.log(inside.row_iterate(learner))
        self.v = np.zeros(self.layout.num_states)

    @property
    def occupancy(self) -> FloatArray:
        return np.asarray(np.exp(self.log_w))

    def observe(self, rows: IntArray, losses: FloatArray, costs: FloatArray) -> str:
        from scipy.optimize import minimize

        log_base, inner = self.log_w - self.eta * self.loss, slice(1, self.layout.num_decision_states)

        def dual(values: FloatArray) -> tuple[float, FloatArray]:
            """sum_k ln Z_k and its gradient, inflow - outflow with the sign changed."""
            v = np.zeros(self.layout.num_states)
            v[inner] = values
            value, log_w = self._normalised(log_base, v)
            w = np.exp(log_w)
            gradient = w.reshape(-1, self.layout.num_actions).sum(axis=1)
            arriving = np.bincount(
                self.layout.successor, w[self.layout.row_of_triple] * self.P, minlength=self.layout.num_states
            )
            return value, gradient[inner] - arriving[inner]

        options = {"ftol": 1e-15, "gtol": 1e-9, "maxiter": 10_000, "maxfun": 100_000}
        found = minimize(dual, self.v[inner], jac=True, method="L-BFGS-B", options=options)
        self.v[inner] = found.x
        self.log_w = self._normalised(log_base, self.v)[1]
        return "converged" if np.max(np.abs(found.jac), initial=0.0) <= SMALL_GRADIENT else "stopped early"

    def _normalised(self, log_base: FloatArray, v: FloatArray) -> tuple[float, FloatArray]:
        """sum_k ln Z_k, and ln w with every layer of mass 1, where w ~ base exp(v(x) - sum_x' P v(x'))."""
        layout = self.layout
        ahead = np.add.reduceat(self.P * v[layout.successor], layout.row_start[:-1])
        log_w = log_base + np.repeat(v[: layout.num_decision_states], layout.num_actions) - ahead
        value = 0.0
        for k in range(layout.steps):
            log_mass = float(np.logaddexp.reduce(log_w[layout.rows(k)]))
            log_w[layout.rows(k)] -= log_mass
            value += log_mass
        return value, log_w


def _policy(layout: Layout, w: FloatArray) -> FloatArray:
    """pi(a|x) from w(x,a); uniform where nothing goes."""
    of_state = w.reshape(-1, layout.num_actions)
    mass = of_state.sum(axis=1, keepdims=True)
    policy = np.where(mass > 0.0, of_state / np.where(mass > 0.0, mass, 1.0), 1.0 / layout.num_actions)
    return np.ascontiguousarray(policy).ravel()
