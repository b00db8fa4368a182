"""COMP-UOB: the largest probability of reaching a state that any transitions in their boxes allow.

    u(x,a) = max { q^{P,pi}(x,a) : P in boxes } = pi(a|x) f(x_0)     for a Markov policy pi and x in X_k, where
    f = indicator of x on X_k,   f(z) = sum_a pi(a|z) max { p . f : p in box(z,a) }   for z in X_{k-1}, ..., X_0.

Rows choose their p independently, so the backward pass is exact. Every target state has its own worst transitions: one
pass per state (its actions share it), and the bounds of a layer may add up to more than 1. With trivial boxes every
state is reached surely: u(x,a) = pi(a|x). A mixture of policies has no such recursion; average the bounds instead.

A pass goes back through at most WINDOW layers: the bounds of a path cost a multiple of L instead of L^2. The caps of
`caps.py` bound what lies before: f(x_0) <= max { q . f : q <= cap, sum q = 1 } on the layer where the pass ends. Worlds
of up to WINDOW layers, and longer ones with two states in a layer, have the bounds of COMP-UOB itself.

The step of the pass is in `columns.py`. Only `load_columns` there reads boxes and policy; after it, `reach_of_states`
may be called for any targets, as often as needed.
"""

from __future__ import annotations

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.kernels import kernel
from hedgerow.estimates.caps import fill_caps, fill_to_caps
from hedgerow.estimates.columns import Columns, sort_above, step_back
from hedgerow.model.index import Index

WINDOW = 64
"""Departs from COMP-UOB: deeper states are bounded through the caps of the layer this many layers before them."""


@kernel
def reach_of_states(index: Index, columns: Columns, targets: IntArray, num_targets: int, reach: FloatArray) -> None:
    """reach[i] = largest Pr[visit targets[i]] for i < num_targets, for the boxes and the policy in `columns`."""
    reach_within(index, columns, targets, num_targets, WINDOW, reach)


@kernel
def reach_within(
    index: Index, columns: Columns, targets: IntArray, num_targets: int, window: int, reach: FloatArray
) -> None:
    """`reach_of_states` by passes through at most `window` >= 1 layers."""
    state_start = index.state_start
    if len(state_start) - 2 > window:
        fill_caps(index, columns, len(state_start) - 3 - window)
    k = 0
    for i in range(num_targets):
        target = targets[i]
        if target < state_start[k]:
            k = 0
        while target >= state_start[k + 1]:
            k += 1
        # An indicator needs no sort: the target is above phi = 0, or alone in its layer and phi = 1.
        columns.order[0], columns.key[0] = target, 1.0
        phi, count = (0.0, 1) if state_start[k + 1] - state_start[k] > 1 else (1.0, 0)
        end = max(k - window, 0)
        for h in range(k - 1, end - 1, -1):
            step_back(index, columns, h, phi, count)
            phi, count = sort_above(index, columns, h)
        # At x_0 nothing is above phi = f(x_0), and there is nothing to fill.
        reach[i] = min(fill_to_caps(columns, phi, count), 1.0)
