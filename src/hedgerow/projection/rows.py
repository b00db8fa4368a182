"""The inner problem of one row: the entropic projection onto a box of distributions.

    h = min { sum_y p(y) ln(p(y)/pt(y)) + p . v : lo <= p <= hi, sum p = 1 }

Its solution is p(y) = clip(pt(y) e^{-v(y)} t, lo, hi), with the scale t > 0 such that p sums to 1. In t the sum is
piecewise linear and increasing, so no exponential is needed per triple. `settle_row` starts from the bounds of the last
evaluation, the first one from those of the base (`guess_bounds`). `find_bounds` starts from nothing and cannot fail:
fix all violators of the heavier side (those above `hi` if the clipped sum falls short of 1, those below `lo`
otherwise), solve for t on the rest, repeat. A violator on the heavier side stays at its bound in the solution, so this
ends after at most as many rounds as there are successors (Bitran and Hax), usually after one or two.

Worked example: pt = (.5, .3, .2), v = 0, lo = 0, hi = (.4, 1, 1)  ->  p = (.4, .36, .24), t = 1.2, h = .0201355.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.kernels import kernel
from hedgerow.model.kernel_layout import LayoutArrays
from hedgerow.projection.problem import KernelProblem, Workspace
from hedgerow.projection.vectors import LANES, TIE, clip, held_value, weigh

QUICKLY = 6
"""Rounds after which the method that cannot cycle settles the bounds"""
SMALLEST_WEIGHT = 1e-290
"""Below this a product of a conditional and exp(-v) may lose digits, and the row is redone in the log domain."""


@kernel
def guess_bounds(problem: KernelProblem, start: int, stop: int, ws: Workspace) -> None:
    """The bounds that the base is at or beyond, for the triples start..stop-1: what a solve starts from.

    The base of a learner is its last projection, so these are the bounds that were active there. They depend on nothing
    but the problem: a solve has the same result, bit by bit, whatever the workspace was used for before.
    """
    base, lower, upper, bound = problem.conditional, problem.lower, problem.upper, ws.bound
    for j in range(np.uint64(start), np.uint64(stop)):
        at_upper = base[j] >= upper[j] * (1.0 - TIE)
        at_lower = (base[j] <= lower[j] * (1.0 + TIE)) & (not at_upper)
        bound[j] = np.int8(at_upper) - np.int8(at_lower)


@kernel
def count_bounds(row_start: IntArray, bound: NDArray[np.int8], num_bound: IntArray) -> None:
    """How many triples of each row are at a bound."""
    for r in range(len(num_bound)):
        num_bound[r] = 0
        for j in range(row_start[r], row_start[r + 1]):
            num_bound[r] += int(bound[j] != 0)


@kernel
def settle_row(index: LayoutArrays, problem: KernelProblem, row: int, ws: Workspace) -> tuple[float, float, int]:
    """Solve a row with weights base * scaled > 0, starting from the bounds in `ws.bound`. Writes p and bound.

    Returns the scale t, the mass of the free successors and the number at a bound; t = -1 if it does not settle soon.

    From one projection and one Newton step to the next most rows keep their active bounds. Solve for t
    with those, see which bounds that t implies, and repeat until they agree: Newton on the piecewise linear equation.
    Selections replace branches, because the side of a successor is hard to predict. Hence everything is read first.
    """
    base, lower, upper, successor = problem.conditional, problem.lower, problem.upper, index.successor
    scaled, p, bound = ws.scaled, ws.p, ws.bound
    begin, end = np.uint64(index.row_start[row]), np.uint64(index.row_start[row + 1])
    # p(y) = clip(t pt(y) e^-v(y), lo, hi) with the t that makes the sum 1: the sum is piecewise linear in t.
    for _ in range(QUICKLY):
        total = 0.0
        rest = 1.0
        for j in range(begin, end):
            side, least, most = bound[j], lower[j], upper[j]
            weight = base[j] * scaled[np.uint64(successor[j])]
            p[j] = weight
            total += weight if side == 0 else 0.0
            rest -= most if side > 0 else (least if side < 0 else 0.0)
        # Rare: the guessed bounds leave no mass to the free successors, so they cannot be the active ones.
        if not (rest > 0.0 and total > 0.0):
            break
        scale = rest / total
        num_bound = 0
        changed = 0
        for j in range(begin, end):
            x, least, most, last = p[j] * scale, lower[j], upper[j], bound[j]
            above = x > (most * (1.0 - TIE) if last > 0 else most)
            below = (x < (least * (1.0 + TIE) if last < 0 else least)) & (not above)
            side = np.int8(above) - np.int8(below)
            p[j] = most if above else (least if below else x)
            num_bound += int(above) + int(below)
            changed |= side ^ last
            bound[j] = side
        if changed == 0:
            return scale, rest, num_bound
    return -1.0, 0.0, 0


@kernel
def settle_full_row(
    problem: KernelProblem, start: int, first: int, width: int, ws: Workspace
) -> tuple[float, float, int]:
    """`settle_row` for a row of triples start.. that leads to all states first..first+width-1 of the next layer."""
    base, lower, upper, scaled, p, bound = problem.conditional, problem.lower, problem.upper, ws.scaled, ws.p, ws.bound
    for _ in range(QUICKLY):
        total = 0.0
        rest = 1.0
        for i in range(0, width, LANES):
            at, to, count = np.uint64(start + i), np.uint64(first + i), np.uint64(min(LANES, width - i))
            free, held = weigh(base, scaled, lower, upper, bound, at, to, count)
            total += free
            rest -= held
        if not (rest > 0.0 and total > 0.0):
            break
        scale = rest / total
        num_bound = 0
        changed = 0
        for i in range(0, width, LANES):
            at, to, count = np.uint64(start + i), np.uint64(first + i), np.uint64(min(LANES, width - i))
            at_bound, new = clip(base, scaled, lower, upper, bound, p, scale, at, to, count)
            num_bound += at_bound
            changed += new
        if changed == 0:
            return scale, rest, num_bound
    return -1.0, 0.0, 0


@kernel
def bound_value(
    index: LayoutArrays, problem: KernelProblem, v: FloatArray, row: int, is_full: bool, ws: Workspace
) -> float:
    """What the successors at a bound add to h: sum p (ln(p/pt) + v).

    A logarithm is taken once per base and side: log_ratio[j] belongs to the side noted[j].
    """
    lower, upper, successor = problem.lower, problem.upper, index.successor
    p, bound, noted, log_ratio = ws.p, ws.bound, ws.noted, ws.log_ratio
    start, stop = index.row_start[row], index.row_start[row + 1]
    value = 0.0
    for _ in range(2):
        missing = 0
        value = 0.0
        if is_full:
            first = successor[start]
            for i in range(0, stop - start, LANES):
                at, to, count = np.uint64(start + i), np.uint64(first + i), np.uint64(min(LANES, stop - start - i))
                term, lacking = held_value(lower, upper, bound, noted, log_ratio, v, at, to, count)
                value += term
                missing |= lacking
        else:
            for j in range(np.uint64(start), np.uint64(stop)):
                side, term = bound[j], p[j] * (v[np.uint64(successor[j])] + log_ratio[j])
                missing |= side ^ noted[j] if side != 0 else 0
                value += term if side != 0 else 0.0
        if missing == 0:
            break
        _take_logarithms(problem, start, stop, ws)
    return value


@kernel
def _take_logarithms(problem: KernelProblem, start: int, stop: int, ws: Workspace) -> None:
    """Note ln(p/pt) of the successors at a bound for which it is missing."""
    base, p, bound, noted = problem.conditional, ws.p, ws.bound, ws.noted
    for j in range(np.uint64(start), np.uint64(stop)):
        if bound[j] != 0 and bound[j] != noted[j]:
            # 0 ln 0 = 0; equal when a bound of the previous projection is still in force
            ws.log_ratio[j] = 0.0 if p[j] == base[j] or p[j] == 0.0 else np.log(p[j] / base[j])
            noted[j] = bound[j]


@kernel
def solve_row(
    index: LayoutArrays, problem: KernelProblem, v: FloatArray, row: int, lowest: float, ws: Workspace
) -> tuple[float, int]:
    """h and the number at a bound of a row that does not settle, or whose weights may be beyond floating point.

    `scaled` holds exp(lowest - v).
    """
    start, stop, p = index.row_start[row], index.row_start[row + 1], ws.p
    smallest = 1.0
    for j in range(start, stop):
        p[j] = problem.conditional[j] * ws.scaled[index.successor[j]]
        smallest = min(smallest, p[j])
    if not smallest >= SMALLEST_WEIGHT:
        return clip_row_wide(index, problem, v, row, ws)
    scale, count = find_bounds(problem, start, stop, ws)
    return clip_row(index, problem, v, row, lowest, scale, ws), count


@kernel
def find_bounds(problem: KernelProblem, start: int, stop: int, ws: Workspace) -> tuple[float, int]:
    """The scale t and the number at a bound of a row with weights p = base * exp(shift - v) > 0. Writes bound."""
    lower, upper, p, bound = problem.lower, problem.upper, ws.p, ws.bound
    for j in range(start, stop):
        bound[j] = 0
    rest = 1.0
    num_bound = 0
    scale = 1.0
    # Fix all violators of the side that is violated more: they are at that bound in the solution, too. Each round
    # fixes one at least, so it ends.
    while num_bound < stop - start:
        total = 0.0
        for j in range(start, stop):
            if bound[j] == 0:
                total += p[j]
        scale = max(rest, 0.0) / total
        above = 0.0
        below = 0.0
        for j in range(start, stop):
            if bound[j] == 0:
                above += max(p[j] * scale - upper[j], 0.0)
                below += max(lower[j] - p[j] * scale, 0.0)
        if not (above > 0.0 or below > 0.0):  # also ends on NaN
            break
        side = np.int8(1) if above >= below else np.int8(-1)
        limit = upper if above >= below else lower
        for j in range(start, stop):
            if bound[j] == 0 and side * (p[j] * scale - limit[j]) > 0.0:
                bound[j] = side
                rest -= limit[j]
                num_bound += 1
    return scale, num_bound


@kernel
def clip_row(
    index: LayoutArrays, problem: KernelProblem, v: FloatArray, row: int, shift: float, scale: float, ws: Workspace
) -> float:
    """Turn the weights p into the solution for this scale and the bounds in `ws.bound`; return h.

    h = sum over free p (ln t + shift) + sum over bound p (ln(p/pt) + v).
    """
    base, p, bound = problem.conditional, ws.p, ws.bound
    free_mass = 0.0
    h = 0.0
    for j in range(index.row_start[row], index.row_start[row + 1]):
        if bound[j] == 0:
            p[j] *= scale
            free_mass += p[j]
        else:
            p[j] = problem.upper[j] if bound[j] > 0 else problem.lower[j]
            if p[j] > 0.0:
                h += p[j] * v[index.successor[j]]
                if p[j] != base[j]:  # equal when a bound of the previous projection is still in force
                    h += p[j] * np.log(p[j] / base[j])
    if free_mass > 0.0:
        h += free_mass * (np.log(scale) + shift)
    return h


@kernel
def clip_row_wide(
    index: LayoutArrays, problem: KernelProblem, v: FloatArray, row: int, ws: Workspace
) -> tuple[float, int]:
    """`clip_row` in the log domain, for rows whose weights span more than floating point does. Writes p, bound."""
    lower, upper, p, bound = problem.lower, problem.upper, ws.p, ws.bound
    start, stop = index.row_start[row], index.row_start[row + 1]
    for j in range(start, stop):
        bound[j] = 0
    rest = 1.0
    num_bound = 0
    log_scale = 0.0
    while num_bound < stop - start:
        largest = -np.inf
        for j in range(start, stop):
            if bound[j] == 0:
                largest = max(largest, _exponent(index, problem, v, j))
        total = 0.0
        for j in range(start, stop):
            if bound[j] == 0:
                p[j] = np.exp(_exponent(index, problem, v, j) - largest)
                total += p[j]
        log_scale = np.log(max(rest, 0.0) / total) - largest
        above = 0.0
        below = 0.0
        for j in range(start, stop):
            if bound[j] == 0:
                p[j] *= max(rest, 0.0) / total
                above += max(p[j] - upper[j], 0.0)
                below += max(lower[j] - p[j], 0.0)
        if not (above > 0.0 or below > 0.0):  # also ends on NaN
            break
        side = np.int8(1) if above >= below else np.int8(-1)
        limit = upper if above >= below else lower
        for j in range(start, stop):
            if bound[j] == 0 and side * (p[j] - limit[j]) > 0.0:
                bound[j] = side
                p[j] = limit[j]
                rest -= limit[j]
                num_bound += 1
    h = 0.0
    for j in range(start, stop):
        if p[j] > 0.0:
            if bound[j] == 0:
                h += p[j] * log_scale
            else:
                h += p[j] * (np.log(p[j]) - _exponent(index, problem, v, j))
    return h, num_bound


@kernel
def _exponent(index: LayoutArrays, problem: KernelProblem, v: FloatArray, triple: int) -> float:
    """ln pt - v of one triple; the logarithm is taken here if the problem has none."""
    logs = problem.log_conditional
    log_weight = logs[triple] if len(logs) > 0 else np.log(problem.conditional[triple])
    return float(log_weight - v[index.successor[triple]])
