"""The formulas of confidence sets, one mean or one row at a time.

>>> low, high = kt_interval(1000, 250.0, 7.649693)
>>> print(f"{low:.6f} {high:.6f}")
0.188881 0.318618
>>> print(f"{dirichlet_overhead([37, 60, 7], 0.5):.6f}")
4.656552
>>> print(f"{most_in_ball([37, 60, 7], [1.0, 0.4, 0.1], 0.095720):.6f}")
0.732114
>>> print(f"{certificate_radius(10.0, 10.0, 3.0):.6f}")
71.588831
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp, inf, lgamma, log, pi, sqrt

HALVINGS = 54
NEXT_TO_NOTHING = 1e-300
J = 14
"""The rates 1/2, 1/4, ..., 2^-J of the certificate's radius"""


def bisect(rises: Callable[[float], bool], low: float, high: float) -> float:
    """The place between `low`, where `rises` is false, and `high` at which it becomes true."""
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        if rises(middle):
            high = middle
        else:
            low = middle
    return 0.5 * (low + high)


def divergence(p: float, g: float) -> float:
    """kl(p, g) of two Bernoulli laws."""
    first = 0.0 if p <= 0.0 else inf if g <= 0.0 else p * log(p / g)
    second = 0.0 if p >= 1.0 else inf if g >= 1.0 else (1.0 - p) * log((1.0 - p) / (1.0 - g))
    return first + second


def kt_interval(n: int, total: float, log_inverse_delta: float) -> tuple[float, float]:
    """All g with n kl(total / n, g) <= ln(1/delta) + o(n, total), o the overhead of the Beta(1/2, 1/2) mixture."""
    if n == 0:
        return 0.0, 1.0
    left = n - total
    overhead = log(pi) - lgamma(total + 0.5) - lgamma(left + 0.5) + lgamma(n + 1.0)
    overhead += (total * log(total / n) if total > 0.0 else 0.0) + (left * log(left / n) if left > 0.0 else 0.0)
    p, level = total / n, (log_inverse_delta + overhead) / n
    high = 1.0 if p >= 1.0 else bisect(lambda g: divergence(p, g) > level, p, 1.0)
    low = 0.0 if p <= 0.0 else bisect(lambda g: divergence(p, g) <= level, 0.0, p)
    return low, high


def cost_radius(kind: str, n: int, log_term: float) -> float:
    """xi of the radii `paper` and `tight`."""
    if n == 0:
        return 1.0
    return min(1.0, sqrt(4.0 * log_term / n) if kind == "paper" else sqrt(log_term / (2.0 * n)))


def transition_radius(kind: str, p: float, n: int, log_term: float) -> float:
    """epsilon of the radii `paper` and `tight`."""
    if kind == "paper":
        less = max(1, n - 1)
        return 2.0 * sqrt(p * log_term / less) + 14.0 * log_term / (3.0 * less)
    if n < 2:
        return 1.0
    variance = p * (1.0 - p) * n / (n - 1)
    return sqrt(2.0 * variance * log_term / n) + 7.0 * log_term / (3.0 * (n - 1))


def dirichlet_overhead(counts: Sequence[int], weight: float) -> float:
    """D(c) = ln of prod (c/N)^c over the probability of c under a symmetric Dirichlet prior."""
    n, whole = sum(counts), weight * len(counts)
    likelihood = sum(c * log(c / n) for c in counts if c > 0)
    mixed = lgamma(whole) - lgamma(n + whole) + sum(lgamma(c + weight) - lgamma(weight) for c in counts)
    return likelihood - mixed


def ball_radius(counts: Sequence[int], log_inverse_delta: float) -> float:
    """The radius of { p : KL(P_hat || p) <= radius }; infinite without visits."""
    n = sum(counts)
    if n == 0:
        return inf
    return (log_inverse_delta + dirichlet_overhead(counts, min(0.5, 1.0 / len(counts)))) / n


def most_in_ball(counts: Sequence[int], values: Sequence[float], radius: float) -> float:
    """max p . V over the ball: nu - exp(sum P_hat ln(nu - V) - radius) at the best nu >= max V."""
    n, top = sum(counts), max(values)
    seen = [(c / n, top - v) for c, v in zip(counts, values, strict=True) if c > 0] if n else []
    if radius == inf or all(z == 0.0 for _, z in seen):
        return top

    def beyond(u: float) -> bool:
        """Whether nu = top + u is above the best one."""
        spread = sum(p * log(u + z) for p, z in seen) + log(sum(p / (u + z) for p, z in seen))
        return spread < radius

    u, far = 0.0, 1.0
    if any(z == 0.0 for _, z in seen) or not beyond(0.0):  # else the largest V was not seen, and the best nu is max V
        while not beyond(far):
            far *= 4.0
        u = exp(bisect(lambda x: beyond(exp(x)), log(NEXT_TO_NOTHING), log(far)))
    logs = sum(p * log(u + z) for p, z in seen)
    return top + u - exp(logs - radius)


def certificate_radius(log_term: float, squares: float, scale: float) -> float:
    """rad = R min (log + psi(l) VV) / l, psi(l) = -ln(1 - l) - l."""
    rates = [0.5**j for j in range(1, J + 1)]
    return scale * min((log_term + (-log(1.0 - rate) - rate) * squares) / rate for rate in rates)


def certificate_log(log_inverse_delta: float, num_constraints: int, generation: int) -> float:
    """ln(J m / (delta_A w_g)): forty generations share .9 of delta_A, the later ones the rest."""
    weight = 0.9 / 40.0 if generation < 40 else 0.1 / ((generation - 39.0) * (generation - 38.0))
    return log_inverse_delta + log(J * num_constraints / weight)
