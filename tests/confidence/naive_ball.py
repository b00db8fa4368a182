"""The divergence ball as it is written down: the overhead and the largest p.V in sixty digits, and a conic program."""

from __future__ import annotations

import cvxpy as cp
import mpmath
import numpy as np
from mpmath import loggamma, mpf

mpmath.mp.dps = 60


def overhead(counts: np.ndarray, weight: float) -> mpf:
    """D = ln [ prod (c/N)^c / DirMult_a(c) ]."""
    c, a = [mpf(int(count)) for count in counts], mpf(weight)
    N, whole = mpmath.fsum(c), a * len(c)
    likelihood = mpmath.fsum(x * mpmath.log(x / N) for x in c if x)
    return likelihood - loggamma(whole) + loggamma(N + whole) - mpmath.fsum(loggamma(x + a) - loggamma(a) for x in c)


def largest_mean(counts: np.ndarray, radius: float, V: np.ndarray) -> mpf:
    """max p.V over the ball, by 110 halvings: the worst p is in proportion to P_hat/(nu - V), and sure of nothing else.

    If the divergence of P_hat from it is below the radius even for nu = max V, what is left goes to an unseen best.
    """
    most, rho = mpf(float(V.max())), mpf(radius)
    N = mpf(int(counts.sum()))
    seen = [(mpf(int(c)) / N, most - mpf(float(v))) for c, v in zip(counts, V, strict=True) if c > 0]
    if all(z == 0 for _, z in seen):
        return most

    def divergence(u: mpf) -> mpf:
        return mpmath.fsum(p * mpmath.log(u + z) for p, z in seen) + mpmath.log(
            mpmath.fsum(p / (u + z) for p, z in seen)
        )

    if all(z > 0 for _, z in seen) and divergence(mpf(0)) <= rho:
        return most - mpmath.exp(mpmath.fsum(p * mpmath.log(z) for p, z in seen) - rho)
    low, high = mpf(-4000), mpf(100)  # of ln u
    for _ in range(110):
        middle = (low + high) / 2
        low, high = (middle, high) if divergence(mpmath.exp(middle)) > rho else (low, middle)
    u = mpmath.exp(low)
    weights = [p / (u + z) for p, z in seen]
    return most - mpmath.fsum(w * z for w, (_, z) in zip(weights, seen, strict=True)) / mpmath.fsum(weights)


def by_conic_program(counts: np.ndarray, radius: float, V: np.ndarray) -> float:
    """The same maximum by an interior-point solver."""
    p, p_hat = cp.Variable(len(V), nonneg=True), counts / counts.sum()
    seen = np.flatnonzero(counts)
    ball = cp.sum(cp.rel_entr(p_hat[seen], p[seen])) <= radius
    problem = cp.Problem(cp.Maximize(V @ p), [ball, cp.sum(p) == 1.0])
    return float(problem.solve(solver=cp.CLARABEL))
