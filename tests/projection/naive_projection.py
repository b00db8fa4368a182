"""Slow, obvious twins of the projection kernels: every formula row by row, from its definition.

The twins take the public `ProjectionProblem` and know nothing of workspaces, blocks or renormalisation.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np

from hedgerow.projection.problem import ProjectionProblem


def entropic_box(
    log_base: np.ndarray, values: np.ndarray, lower: np.ndarray, upper: np.ndarray
) -> tuple[np.ndarray, float, float]:
    """(p, mu, h) of min { sum p (ln p - log_base) + p . values : lower <= p <= upper, sum p = 1 }.

    p = clip(e^{log_base - values - mu}, lower, upper), with mu found by bisection: the sum decreases in it.
    """
    log_weight = log_base - values

    def at(mu: float) -> np.ndarray:
        return np.minimum(np.maximum(np.exp(log_weight - mu), lower), upper)

    low, high = float(log_weight.min()), float(log_weight.max()) + 745.0  # all at `upper`, all at `lower`
    mu = 0.5 * (low + high)
    while low < mu < high:  # until no number lies between the two
        if at(mu).sum() > 1.0:
            low = mu
        else:
            high = mu
        mu = 0.5 * (low + high)
    p = at(mu)
    positive = p > 0.0
    return p, mu, float(p[positive] @ (np.log(p[positive]) - log_weight[positive]))


class Point(NamedTuple):
    """The small dual at one (v, theta)."""

    p: np.ndarray
    """(num_triples,)"""
    free: np.ndarray
    """(num_triples,): strictly between the bounds"""
    h: np.ndarray
    """(num_rows,)"""
    w: np.ndarray
    """(num_rows,)"""
    value: float
    """g(v, theta)"""
    gradient: np.ndarray
    """(num_decision_states + m,)"""


def small_dual(problem: ProjectionProblem, v: np.ndarray, theta: np.ndarray) -> Point:
    """g and what belongs to it, with v(x_L) = v[-1] as given."""
    layout = problem.layout
    p, free = np.zeros(layout.num_triples), np.zeros(layout.num_triples, dtype=bool)
    h, w = np.zeros(layout.num_rows), np.zeros(layout.num_rows)
    flow = np.zeros(layout.num_states)
    flow[0] = 1.0
    value = v[0] - theta @ problem.thresholds
    for r in range(layout.num_rows):
        row = slice(layout.row_start[r], layout.row_start[r + 1])
        x, after = r // layout.num_actions, layout.successor[row]
        log_mass = np.logaddexp.reduce(problem.log_base[row])
        base_mass = np.exp(log_mass)
        log_conditional = problem.log_base[row] - log_mass
        p[row], _, h[r] = entropic_box(log_conditional, v[after], problem.lower[row], problem.upper[row])
        free[row] = (p[row] > problem.lower[row]) & (p[row] < problem.upper[row])
        w[r] = np.exp(log_mass + v[x] - h[r] - theta @ problem.costs[:, r])
        value += base_mass - w[r]
        flow[x] -= w[r]
        flow[after] += w[r] * p[row]
    gradient = np.concatenate((flow[:-1], problem.costs @ w - problem.thresholds))
    return Point(p, free, h, w, float(value), gradient)


def hessian(problem: ProjectionProblem, point: Point) -> np.ndarray:
    """-(d/dy)^2 g for y = (v on decision states, theta): sum over rows of w (d d^T + J), one dense matrix per row."""
    layout = problem.layout
    states, m = layout.num_states, problem.num_constraints
    total = np.zeros((states + m, states + m))
    for r in range(layout.num_rows):
        row = np.arange(layout.row_start[r], layout.row_start[r + 1])
        after = layout.successor[row]
        d = np.zeros(states + m)
        d[r // layout.num_actions] = 1.0
        d[after] -= point.p[row]
        d[states:] = -problem.costs[:, r]
        p_free = np.zeros(states + m)
        p_free[after] = np.where(point.free[row], point.p[row], 0.0)
        J = np.diag(p_free)
        if p_free.sum() > 0.0:
            J -= np.outer(p_free, p_free) / p_free.sum()
        total += point.w[r] * (np.outer(d, d) + J)
    keep = np.delete(np.arange(states + m), states - 1)  # v(x_L) = 0 is no variable
    return total[np.ix_(keep, keep)]


def best_quadratic(S: np.ndarray, r: np.ndarray, least: np.ndarray) -> np.ndarray:
    """argmax { r^T d - d^T S d / 2 : d >= least } by trying every set of variables that may leave their bound."""
    best, best_value = least, r @ least - 0.5 * least @ S @ least
    for mask in product([False, True], repeat=len(r)):
        free = np.array(mask)
        if not free.any():
            continue
        d = least.copy()
        d[free] = np.linalg.lstsq(S[np.ix_(free, free)], (r - S[:, ~free] @ least[~free])[free], rcond=None)[0]
        value = r @ d - 0.5 * d @ S @ d
        if np.all(d >= least) and value > best_value:
            best, best_value = d, value
    return best
