"""The anchored bound: the cost of a policy as the known cost of the baseline plus the largest possible difference.

The other bounds of a policy pi start from nothing. Here b is a policy whose cost is known to be at most beta. Then

    C(pi) <= beta + D(x_0),    D(x_L) = 0,    and for a state x of layer k

    D(x)  = min(V_up(x) - W_low(x), sum_a (pi - b)+ Q_up - sum_a (b - pi)+ Q_low + sum_a b max { p . D : p in box })
    Q_up  = min(L - k, UCB + max { p . V_up : p in box }),        V_up(x)  = sum_a pi(a|x) Q_up(x,a)
    Q_low = max(0, LCB + min { p . V_low : p in box }),           V_low(x) = sum_a pi(a|x) Q_low(x,a)
    W_low(x) = sum_a b(a|x) max(0, LCB + min { p . W_low : p in box })

because V^pi - V^b = sum_a (pi - b) Q^pi + sum_a b P (V^pi - V^b) (docs/anchored.md). A policy that differs from b from
layer k on costs at most L - k more than b, however little is known; the box bound has to assume L.

    beta = .2, pi differs from b in the last step only, nothing is known    ->    1.2, where the boxes say L
"""

from __future__ import annotations

from functools import cache

import numpy as np

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.bundles import Bundle
from hedgerow.compiling.kernels import kernel
from hedgerow.confidence.bounds import Columns, keep_columns, make_columns, sort_above, step_back
from hedgerow.confidence.boxes import Boxes
from hedgerow.model.kernel_layout import ONE, LayoutArrays, states_of
from hedgerow.model.layout import Layout


class AnchoredScratch(Bundle):
    """Buffers of the bound. Only `columns` outlives a call: it may be kept in step with boxes (`update_columns`)."""

    columns: Columns
    """The boxes of the rows that either policy plays"""
    union: FloatArray
    """(num_rows,): (pi + b) / 2, whose support that is"""
    upper: FloatArray
    """V_up (num_states,)"""
    lower: FloatArray
    """-V_low (num_states,)"""
    floor: FloatArray
    """-W_low (num_states,)"""
    more: FloatArray
    """D (num_states,)"""
    q_upper: FloatArray
    """(rows of the largest layer,): max p . V_up of its slots"""
    q_lower: FloatArray
    """(rows of the largest layer,): max p . (-V_low)"""
    q_floor: FloatArray
    """(rows of the largest layer,): max p . (-W_low)"""


def make_anchored_scratch(layout: Layout) -> AnchoredScratch:
    """Fresh buffers."""
    states, widest = layout.num_states, max(layout.layer_sizes) * layout.num_actions
    return AnchoredScratch(
        columns=make_columns(layout),
        union=np.zeros(layout.num_rows),
        upper=np.zeros(states),
        lower=np.zeros(states),
        floor=np.zeros(states),
        more=np.zeros(states),
        q_upper=np.zeros(widest),
        q_lower=np.zeros(widest),
        q_floor=np.zeros(widest),
    )


class Anchor(Bundle):
    """A policy whose costs are known, for the bounds of others."""

    policy: FloatArray
    """b (num_rows,); empty if there is none"""
    costs: FloatArray
    """beta (m,)"""
    pause: IntArray
    """(2,): evaluations until the next one, and how many are skipped, see `bound_by_anchor` of `sets.py`; or empty"""
    scratch: AnchoredScratch


def make_anchor(layout: Layout, policy: FloatArray, costs: FloatArray) -> Anchor:
    """The anchor at a policy (num_rows,) of costs at most (m,)."""
    return Anchor(policy, costs, np.zeros(2, dtype=np.int64), make_anchored_scratch(layout))


@cache
def no_anchor() -> Anchor:
    """Nothing is known of any policy."""
    return Anchor(np.zeros(0), np.zeros(0), np.zeros(0, dtype=np.int64), make_anchored_scratch(Layout((1, 1), 1)))


@kernel
def load_anchored(
    index: LayoutArrays, boxes: Boxes, policy: FloatArray, baseline: FloatArray, scratch: AnchoredScratch
) -> None:
    """Load the boxes of the rows that `policy` or `baseline` (num_rows,) plays; changed boxes go to `update_columns`,
    else set `columns.kept[0] = 0` first.
    """
    for r in range(len(policy)):
        scratch.union[r] = 0.5 * (policy[r] + baseline[r])
    keep_columns(index, boxes.lower, boxes.upper, scratch.union, scratch.columns)


@kernel
def anchored_cost(
    index: LayoutArrays,
    policy: FloatArray,
    baseline: FloatArray,
    boxes: Boxes,
    beta: float,
    i: int,
    scratch: AnchoredScratch,
) -> float:
    """beta + D(x_0) of constraint i, at least 0; `load_anchored` comes first."""
    steps = len(index.state_start) - 2
    end = index.state_start[steps]
    scratch.upper[end] = scratch.lower[end] = scratch.floor[end] = scratch.more[end] = 0.0
    for k in range(steps - 1, -1, -1):
        _largest(index, scratch.columns, k, scratch.upper, scratch.q_upper)
        _largest(index, scratch.columns, k, scratch.lower, scratch.q_lower)
        _largest(index, scratch.columns, k, scratch.floor, scratch.q_floor)
        # `_step` finds max p . D, the last one, where `step_back` has left it.
        phi = _largest_gain(index, scratch.columns, k, scratch.more)
        _step(index, k, policy, baseline, boxes, i, phi, scratch)
    return max(beta + float(scratch.more[0]), 0.0)


@kernel
def _largest_gain(index: LayoutArrays, columns: Columns, k: int, f: FloatArray) -> float:
    """phi; then phi + `gain` is max { p . f : p in box } of the slots of layer k, f (num_states,) on layer k + 1."""
    first, last = states_of(index, k + 1)
    for y in range(first, last):
        columns.values[y] = f[y]
    phi, count = sort_above(index, columns, k + 1)
    step_back(index, columns, k, phi, count)
    return phi


@kernel
def _largest(index: LayoutArrays, columns: Columns, k: int, f: FloatArray, best: FloatArray) -> None:
    """max { p . f : p in box } of the slots of layer k, into `best`."""
    phi = _largest_gain(index, columns, k, f)
    first, last = states_of(index, k)
    for s in range(columns.first_slot[last] - columns.first_slot[first]):
        best[s] = phi + columns.gain[s]


@kernel
def _step(
    index: LayoutArrays, k: int, policy: FloatArray, baseline: FloatArray, boxes: Boxes, i: int, phi: float,
    scratch: AnchoredScratch,
) -> None:  # fmt: skip
    """V_up, -V_low, -W_low and D of the states of layer k."""
    columns, most = scratch.columns, float(len(index.state_start) - 2 - k)
    first, last = states_of(index, k)
    base = columns.first_slot[first]
    for x in range(first, last):
        upper = lower = floor = more = 0.0
        for s in range(columns.first_slot[x], columns.first_slot[x + ONE]):
            row, slot = columns.row[s], s - base
            q_upper = min(most, boxes.cost_upper[row, i] + scratch.q_upper[slot])
            q_lower = max(0.0, boxes.cost_lower[row, i] - scratch.q_lower[slot])
            upper += policy[row] * q_upper
            lower -= policy[row] * q_lower
            floor -= baseline[row] * max(0.0, boxes.cost_lower[row, i] - scratch.q_floor[slot])
            change = policy[row] - baseline[row]
            more += change * (q_upper if change > 0.0 else q_lower)
            more += baseline[row] * (phi + columns.gain[slot])
        scratch.upper[x], scratch.lower[x], scratch.floor[x] = upper, lower, floor
        scratch.more[x] = min(more, upper + floor)


@kernel
def anchored_bounds(
    index: LayoutArrays, policy: FloatArray, baseline: FloatArray, boxes: Boxes, beta: FloatArray,
    scratch: AnchoredScratch, bounds: FloatArray,
) -> None:  # fmt: skip
    """Lower the `bounds` (m,) of the costs of `policy` to the anchored ones, for beta (m,) of `baseline`."""
    load_anchored(index, boxes, policy, baseline, scratch)
    for i in range(len(bounds)):
        bounds[i] = min(bounds[i], anchored_cost(index, policy, baseline, boxes, beta[i], i, scratch))
