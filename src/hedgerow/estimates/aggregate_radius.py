"""The radius of the aggregate certificate: how far the sum of a generation may be from what it estimates.

    rad = R min { (log + psi(l) VV) / l : l = 1/2, 1/4, ..., 2^-J },     psi(l) = -ln(1 - l) - l,     J = 14
    log = ln(J m / (delta_A w_g)),     w_g = .9 / 40 for the generations g < 40, else .1 / ((g - 39)(g - 38))

The weights w_g sum to 1: the union bound over generations. 40 of them, each half as long again as the one before, last
20 * 1.5^40 = 2 * 10^8 own episodes. A generation thus costs ln 44 = 3.8 for good, while the usual (g + 1)(g + 2) costs
6 at 10^5 episodes. Mixing the values of l instead of taking the best is valid as well, and gives 1 % less.

    VV = 10, log = 10, R = 3   ->   71.588831,       VV = 0   ->   60
"""

from __future__ import annotations

from math import inf, log, log1p

from hedgerow.compiling.kernels import kernel

NUM_RATES = 14
"""J"""
EQUAL_SHARES = 40
"""Generations that share .9 of delta_A"""


@kernel
def aggregate_radius(log_term: float, squares: float, scale: float) -> float:
    """rad for log, VV and R."""
    least, rate = inf, 1.0
    for _ in range(NUM_RATES):
        rate *= 0.5
        least = min(least, (log_term + (-log1p(-rate) - rate) * squares) / rate)
    return scale * least


@kernel
def log_term_of(log_inverse_delta: float, num_constraints: int, generation: int) -> float:
    """log for ln(1 / delta_A), m and g."""
    later = generation - EQUAL_SHARES + 1.0
    inverse_share = EQUAL_SHARES / 0.9 if later <= 0.0 else later * (later + 1.0) / 0.1
    return log_inverse_delta + log(NUM_RATES * num_constraints * inverse_share)
