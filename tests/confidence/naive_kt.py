"""The Krichevsky-Trofimov interval as it is written down, in sixty digits: slow, and without a thought of rounding."""

from __future__ import annotations

import mpmath
from mpmath import loggamma, mpf

from hedgerow.confidence.kl import kt_bounds, kt_overhead

mpmath.mp.dps = 60
WITHIN = mpf("1e-12")


def x_log(x: mpf, y: mpf) -> mpf:
    """x ln y, where 0 ln 0 = 0."""
    return x * mpmath.log(y) if x else mpf(0)


def overhead(n: int, total: float) -> mpf:
    S, rest = mpf(total), n - mpf(total)
    gammas = loggamma(S + 0.5) + loggamma(rest + 0.5) - loggamma(mpf(n) + 1)
    return x_log(S, S / n) + x_log(rest, rest / n) + mpmath.log(mpmath.pi) - gammas


def divergence(p: mpf, g: mpf) -> mpf:
    """kl(p, g) of Bernoulli laws."""
    if (g <= 0 < p) or (g >= 1 > p):
        return mpf("inf")
    return x_log(p, p / g if p else mpf(1)) + x_log(1 - p, (1 - p) / (1 - g) if p < 1 else mpf(1))


def complaints(n: int, total: float, log_inverse_delta: float) -> list[str]:
    """What is wrong with the kernels' bounds: an end inside the exact one, or 10^-12 outside. No root is needed for it.

    g is outside the set iff kl(p, g) > level, so an end is right if it is outside, or the last point of [0, 1], and
    the point 10^-12 towards p is inside.
    """
    p, exact = mpf(total) / n, overhead(n, total)
    level = (mpf(log_inverse_delta) + exact) / n
    lower, upper = (mpf(end) for end in kt_bounds(n, total, log_inverse_delta))
    found = []
    if not 0 <= mpf(kt_overhead(n, total)) - exact <= WITHIN * level * n:
        found.append(f"o is {float(kt_overhead(n, total) - exact)} off")
    if not 0 <= lower <= p <= upper <= 1:
        found.append(f"{lower} <= {p} <= {upper}")
    for what, end, inner, last in (
        ("lower", lower, min(p, lower + WITHIN), 0),
        ("upper", upper, max(p, upper - WITHIN), 1),
    ):
        if end != last and divergence(p, end) < level:
            found.append(f"the {what} end is inside")
        if divergence(p, inner) > level:
            found.append(f"the {what} end is far outside")
    return [f"n = {n}, S = {total!r}, ln(1/delta) = {log_inverse_delta}: {words}" for words in found]
