"""What Stirling's formula leaves out of ln Gamma: small numbers, where logarithms of Gamma are large.

    ln Gamma(x)       = (x - 1/2) ln x - x + ln(2 pi)/2 + tail(x),      tail(x) = 1/(12 x) - 1/(360 x^3) + ...
    ln Gamma(x + 1/2) =      x    ln x - x + ln(2 pi)/2 + half_tail(x), half_tail(x) = -1/(24 x) + 7/(2880 x^3) - ...

A sum of ln Gamma in which the large terms cancel is a sum of tails: with n = 10^9 visits they cancel to ten digits, and
no digit is lost if they are never formed. The series (Abramowitz and Stegun, 6.1.40; for the half with B_2k(1/2)
instead of B_2k) are asymptotic: from `FROM_HERE` on seven terms leave less than 10^-16. Below it the definition is
used. Either is accurate to `TAIL_ERROR`.
"""

from __future__ import annotations

from math import lgamma, log, pi

from hedgerow.compiling.kernels import kernel

HALF_LOG_TWO_PI = 0.5 * log(2.0 * pi)
HALF_LOG_TWO = 0.5 * log(2.0)
FROM_HERE = 10.0
TAIL_ERROR = 2e-14
"""Ten times what was measured; terms below `FROM_HERE` are at most 23, rounded to 4e-15."""


@kernel
def tail(x: float) -> float:
    """ln Gamma(x) - (x - 1/2) ln x + x - ln(2 pi)/2 for x > 0."""
    if x < FROM_HERE:
        return lgamma(x) - (x - 0.5) * log(x) + x - HALF_LOG_TWO_PI
    y = 1.0 / (x * x)
    series = -691.0 / 360360.0 + y / 156.0
    series = 1.0 / 1260.0 + y * (-1.0 / 1680.0 + y * (1.0 / 1188.0 + y * series))
    return (1.0 / 12.0 + y * (-1.0 / 360.0 + y * series)) / x


@kernel
def half_tail(x: float) -> float:
    """ln Gamma(x + 1/2) - x ln x + x - ln(2 pi)/2 for x >= 0; it rises from -ln(2)/2 to 0."""
    if x <= 0.0:
        return -HALF_LOG_TWO
    if x < FROM_HERE:
        return lgamma(x + 0.5) - x * log(x) + x - HALF_LOG_TWO_PI
    y = 1.0 / (x * x)
    series = 1414477.0 / 738017280.0 - y * 8191.0 / 1277952.0
    series = -31.0 / 40320.0 + y * (127.0 / 215040.0 + y * (-511.0 / 608256.0 + y * series))
    return (-1.0 / 24.0 + y * (7.0 / 2880.0 + y * series)) / x
