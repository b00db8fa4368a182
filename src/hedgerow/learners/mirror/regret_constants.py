"""The constant C_P of the primal player of CV-OPS: its regret after tau episodes is at most C_P sqrt(tau ln tau).

UOB-REPS on T episodes, with iota = ln(T|X||A|/delta), a = 4 sqrt(2), b = 45.7 (the widths of the paper's radii) and
eta = gamma = sqrt(L ln(L|X||A|/delta) / (T|X||A|)), has regret at most (Jin et al. 2020, constants written out)

    B(T) = 2E + L ln(|X|^2|A|)/eta + 2 eta |X||A| T + L ln(|X||A|/delta)/(2 gamma) + L ln(L/delta)/2
           + L sqrt(2T ln(1/delta))
    E    = sum_{j<k<L} a sqrt(iota |X_{j+1}|) (3 sqrt(|X_j||A|T) + sqrt(2T ln(1/delta)))          what P costs
           + (b |X_{j+1}| + a^2 |X|) iota |X_j||A| (1 + ln T)                                   of lower order, crude

delta is shared by nine events. Restarts after 1, 2, 4, ... episodes with delta_j = delta / ((j+1)(j+2)) make it
anytime: C_P is the largest value of sum_j min(L T_j, B(T_j)) / sqrt(tau ln tau) over *all* tau, also within a segment.

    layers (1, 4, 4, 1), 3 actions, delta = .05   C_P = 107 with P known, 3.5 10^3 with the leading terms of E alone

With constants of this size the first phase lasts 10^6 (P known) to 10^11 episodes: a statement of the theory, not a
setting for practice. Safety does not need them.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import log, sqrt

from hedgerow.model.layout import Layout

LINEAR_WIDTH = 45.7
ROOT_WIDTH = 4.0 * sqrt(2.0)
EVENTS = 9
LAST_SEGMENT = 80
"""2^80 episodes: beyond it the ratio only falls."""


def primal_constant(layout: Layout, delta: float, *, known_transitions: bool = False) -> float:
    """C_P of UOB-REPS with doubling restarts."""
    steps, played, regret, largest = layout.steps, 0.0, 0.0, 0.0
    for length, bound in segment_bounds(layout, delta, known_transitions):
        # Within a segment the ratio is largest where the trivial bound L tau meets B.
        turn = min(length, bound / steps)
        if played + turn >= 2.0:
            largest = max(largest, (regret + steps * turn) / sqrt((played + turn) * log(played + turn)))
        played += length
        regret += min(steps * length, bound)
    return largest


def segment_bounds(
    layout: Layout, delta: float, known_transitions: bool, *, lower_order: bool = True
) -> Iterator[tuple[float, float]]:
    """(T_j, B(T_j)) of the segments."""
    for j in range(LAST_SEGMENT + 1):
        share = log((j + 1.0) * (j + 2.0) * EVENTS) - log(delta)  # a logarithm: the quotient may be too small a number
        error = 0.0 if known_transitions else transition_error(layout, 2.0**j, share, lower_order)
        yield 2.0**j, 2.0 * error + known_transitions_bound(layout, 2.0**j, share)


def known_transitions_bound(layout: Layout, episodes: float, log_inverse_delta: float) -> float:
    """B(T) without E."""
    L, pairs, T = layout.steps, layout.num_states * layout.num_actions, episodes
    eta = sqrt(L * (log(L * pairs) + log_inverse_delta) / (T * pairs))
    mirror = L * log(layout.num_states * pairs) / eta + 2.0 * eta * pairs * T
    optimism = L * (log(pairs) + log_inverse_delta) / (2.0 * eta) + L * (log(L) + log_inverse_delta) / 2.0
    return mirror + optimism + L * sqrt(2.0 * T * log_inverse_delta)


def transition_error(layout: Layout, episodes: float, log_inverse_delta: float, lower_order: bool = True) -> float:
    """E: how much not knowing P costs."""
    sizes, A, T = layout.layer_sizes, layout.num_actions, episodes
    iota = log(T * layout.num_states * A) + log_inverse_delta
    error = 0.0
    for k in range(1, layout.steps):
        for j in range(k):
            root = 3.0 * sqrt(sizes[j] * A * T) + sqrt(2.0 * T * log_inverse_delta)
            error += ROOT_WIDTH * sqrt(iota * sizes[j + 1]) * root
            if lower_order:
                width = LINEAR_WIDTH * sizes[j + 1] + ROOT_WIDTH**2 * layout.num_states
                error += width * iota * sizes[j] * A * (1.0 + log(T))
    return error
