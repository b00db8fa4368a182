"""The ends of { g : kl(p, g) <= level }, where kl is the divergence of Bernoulli laws, rounded outward.

    kl(p, g) = p ln(p/g) + q ln(q/(1-g)),   q = 1 - p

Both ends are one problem: the upper end is p + d for the d in (0, q] that solves F(d) = level,

    F(d) = -p ln(1 + d/p) - q ln(1 - d/q),   F' = d / (g r),   F''/F' = (d^2 + p q) / (d g r),   g = p + d,  r = q - d

and the lower end is p minus the d of (q, p). Halley's steps start from the expansion d = w sqrt(p q) + (q - p) w^2/3,
w = sqrt(2 level), or, where this is no guide, from F(d) <= -q ln(1 - d/q) + p ln p with equality for g = 1; two or
three evaluations are enough in all of (p, level). The last step is Newton's: F is convex, so its tangent meets the
level at or beyond the root, *however good the point was*. That leaves rounding, which is added: each of the two terms
of F is right to a few units in its last place, and so is d itself.

    kl(.25, g) <= .07:   distance_above(.25, .75, .07) = 0.179089, hence g <= 0.429089
"""

from __future__ import annotations

from math import expm1, log, log1p, sqrt

import numpy as np

from hedgerow.compiling.kernels import kernel

EPSILON = float(np.finfo(np.float64).eps)
NEXT_TO_NOTHING = 1e-100
"""A p below it does not show in F."""
SATURATED = 30.0
"""From level = 30 q on r is less than 10^-13 q, and d is rounded to q."""
NEARLY = 1e-13
"""What the last step may leave, as a part of d"""
MOST_STEPS = 60


@kernel
def upper_end(p: float, q: float, level: float) -> float:
    """The largest g with kl(p, g) <= level, at most 1; q = 1 - p is given with digits of its own."""
    d = distance_above(p, q, level)
    return 1.0 if d >= q else min(1.0, (p + d) * (1.0 + 2.0 * EPSILON))


@kernel
def lower_end(p: float, q: float, level: float) -> float:
    """The smallest g with kl(p, g) <= level, at least 0."""
    d = distance_above(q, p, level)
    return 0.0 if d >= p else max(0.0, p - d - 2.0 * EPSILON * p)


@kernel
def distance_above(p: float, q: float, level: float) -> float:
    """The d in [0, q] with kl(p, p + d) = level > 0, never too small."""
    if q <= 0.0 or level >= SATURATED * q:
        return q
    if p < NEXT_TO_NOTHING:
        return min(q, -q * expm1(-level / q) * (1.0 + 8.0 * EPSILON))
    d, least, most = _start(p, q, level), 0.0, q
    step = rounding = 0.0
    for _ in range(MOST_STEPS):
        near, far = p * log1p(d / p), -q * log1p(-d / q)
        inverse_slope = (p + d) * (q - d) / d
        step = (far - near - level) * inverse_slope  # Newton's
        rounding = EPSILON * (8.0 * (near + far + level) * inverse_slope + 4.0 * d)
        bend = 0.5 * (d * d + p * q) / (d * d * inverse_slope)
        if step * step * bend <= NEARLY * d:
            break
        if step > 0.0:
            most = d
        else:
            least = d
        onward = d - step / (1.0 - step * bend)  # Halley's
        d = onward if least < onward < most else 0.5 * (least + most)
    return min(q, d - step + rounding)


@kernel
def _start(p: float, q: float, level: float) -> float:
    """A first d in (0, q)."""
    w, sigma = sqrt(2.0 * level), sqrt(p * q)
    d = w * (sigma + (q - p) * w / 3.0)
    if d < 0.5 * q and 2.0 * (p - q) * w < 3.0 * sigma:  # before the parabola's top, if it has one
        return d
    return -q * expm1((p * log(p) - level) / q)
