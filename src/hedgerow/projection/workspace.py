"""Problem (PROJ) as the kernels take it: the base is wt(x,a) pt(x'|x,a), with row weights and conditionals apart."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.bundles import Bundle
from hedgerow.model.layout import Layout


class KernelProblem(Bundle):
    """Arrays over rows are (num_rows, m) here: kernels go from row to row."""

    log_weight: FloatArray
    """(num_rows,): ln wt"""
    conditional: FloatArray
    """(num_triples,): pt, each row sums to 1"""
    log_conditional: FloatArray
    """(num_triples,): ln pt, for rows that span more than floating point; or empty if all pt are normal numbers"""
    lower: FloatArray
    """(num_triples,)"""
    upper: FloatArray
    """(num_triples,)"""
    costs: FloatArray
    """(num_rows, m)"""
    thresholds: FloatArray
    """(m,)"""
    absorbed: FloatArray
    """(m,): multipliers that the base contains already; theta counts from there, so theta >= -absorbed"""


# --------------------------------------------------------------------------------------------------------------------
# The buffers of the projection kernels: allocated once per layout and number of constraints, then reused.


FAINT = 1e-250
"""Smaller shares of a state, and smaller states, are known by their logarithms only."""
NO_SYSTEM = -1
"""Stands for the number of candidates when there is no system."""


class Workspace(Bundle):
    """Kernel state. n_k = |X_k|; `diagonal` and `coupling` hold one matrix per layer, flat, one after the other."""

    # The point at which the dual was evaluated last
    scaled: FloatArray
    """(num_states,): exp(min v of the layer - v(x))"""
    p: FloatArray
    """(num_triples,): optimal conditionals"""
    bound: NDArray[np.int8]
    """(num_triples,): 0 free, +1 at the upper, -1 at the lower bound; the first guess of the next evaluation"""
    num_bound: IntArray
    """(num_rows,): how many triples of the row are at a bound"""
    log_ratio: FloatArray
    """(num_triples,): ln(p/pt) of triples that are or were at the bound `noted`"""
    noted: NDArray[np.int8]
    """(num_triples,): the bound that `log_ratio` was computed for, 0 if none"""
    least_base: FloatArray
    """(1,): the smallest conditional of the base, at most 1"""
    log_w: FloatArray
    """(num_rows,): ln w of rows whose share of their state, or whose state, is FAINT; undefined for others"""
    factor: FloatArray
    """(num_rows,): what log_w lacks while a layer is evaluated"""
    w: FloatArray
    """(num_rows,): optimal row weights, layers normalised to mass 1"""
    masses: FloatArray
    """(num_states,): sum_a w"""
    log_mass: FloatArray
    """(L,): log of the layer masses before normalisation"""
    outflow: FloatArray
    """(num_states,)"""
    inflow: FloatArray
    """(num_states,)"""
    gradient_v: FloatArray
    """(num_states,): the last entry, x_L, stays 0"""
    gradient_theta: FloatArray
    """(m,)"""
    # The Newton system
    diagonal: FloatArray
    """(sum n_k^2,): D_k, then its factor"""
    diagonal_start: IntArray
    """(L + 1,)"""
    flow: FloatArray
    """(sum n_k n_{k+1},): sum_a w p of each pair of states (the negative of the block O); only of full layers"""
    coupling: FloatArray
    """(sum n_k n_{k+1},): the solved block U^{-T} flow"""
    coupling_start: IntArray
    """(L + 1,): where the blocks of a layer begin in `flow` and in `coupling`"""
    border: FloatArray
    """(m, num_states): columns of the candidates, then U^{-T} of them"""
    solved: FloatArray
    """(m, num_states): H^{-1} B_i, only when the curvature is computed without cancellation"""
    held: FloatArray
    """(num_states,): the part of the inflow that arrives through successors at a bound"""
    row_scratch: FloatArray
    """Twice as long as the widest row"""
    schur: FloatArray
    """(m, m): S of the candidates"""
    small: FloatArray
    """(m + 4, m + 1): the small quadratic program, see `direction`"""
    candidate: IntArray
    """(m,): the constraints that take part in a Newton step"""
    num_candidates: IntArray
    """(1,): how many these are; NO_SYSTEM if no system was built"""
    patience: IntArray
    """(1,): how many steps a new system is worth"""
    # Steps
    log_m: FloatArray
    """(num_states,): ln of the state masses"""
    log_m_trial: FloatArray
    theta_trial: FloatArray
    step_m: FloatArray
    step_v: FloatArray
    step_theta: FloatArray


def make_workspace(layout: Layout, num_constraints: int) -> Workspace:
    """Fresh buffers for problems of this shape."""
    sizes = np.array(layout.layer_sizes[:-1], dtype=np.int64)
    diagonal_start = np.concatenate(([0], np.cumsum(sizes**2))).astype(np.int64)
    coupled = sizes[:-1] * sizes[1:]
    coupling_start = np.concatenate(([0], np.cumsum(coupled), [coupled.sum()])).astype(np.int64)
    states, rows, triples, m = layout.num_states, layout.num_rows, layout.num_triples, num_constraints
    return Workspace(
        scaled=np.ones(states),
        p=np.ones(triples),
        bound=np.zeros(triples, dtype=np.int8),
        num_bound=np.zeros(rows, dtype=np.int64),
        log_ratio=np.zeros(triples),
        noted=np.zeros(triples, dtype=np.int8),
        least_base=np.ones(1),
        log_w=np.zeros(rows),
        factor=np.ones(rows),
        w=np.zeros(rows),
        masses=np.zeros(states),
        log_mass=np.zeros(layout.steps),
        outflow=np.zeros(states),
        inflow=np.zeros(states),
        gradient_v=np.zeros(states),
        gradient_theta=np.zeros(m),
        diagonal=np.zeros(int(diagonal_start[-1])),
        diagonal_start=diagonal_start,
        flow=np.zeros(int(coupling_start[-1])),
        coupling=np.zeros(int(coupling_start[-1])),
        coupling_start=coupling_start,
        border=np.zeros((m, states)),
        solved=np.zeros((m, states)),
        held=np.zeros(states),
        row_scratch=np.zeros(2 * int(np.diff(layout.row_start).max())),
        schur=np.zeros((m, m)),
        small=np.zeros((m + 4, m + 1)),
        candidate=np.zeros(m, dtype=np.int64),
        num_candidates=np.full(1, NO_SYSTEM, dtype=np.int64),
        patience=np.array([_patience(layout)], dtype=np.int64),
        log_m=np.zeros(states),
        log_m_trial=np.zeros(states),
        theta_trial=np.zeros(m),
        step_m=np.zeros(states),
        step_v=np.zeros(states),
        step_theta=np.zeros(m),
    )


def _patience(layout: Layout) -> int:
    """How many steps with an old system take as long as a new system: some in wide layers with few transitions.

    In nanoseconds, roughly: 20 per triple, 40 per row and 1 per entry of a block, against 1/4 per multiplication.
    """
    sizes = np.array(layout.layer_sizes[:-1], dtype=np.float64)
    ahead = np.append(sizes[1:], 0.0)
    step = 20.0 * layout.num_triples + 40.0 * layout.num_rows + np.sum(sizes**2 + sizes * ahead)
    return int(0.25 * np.sum(sizes**3 / 3.0 + sizes**2 * ahead + sizes * ahead**2 / 2.0) / step)
