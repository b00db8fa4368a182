"""The buffers of the projection kernels: allocated once per layout and number of constraints, then reused."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import FloatArray, IntArray
from hedgerow.model.layout import Layout


class Workspace(NamedTuple):
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
    """(num_rows,)"""
    w: FloatArray
    """(num_rows,): optimal row weights, layers normalised to mass 1"""
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
    coupling: FloatArray
    """(sum n_k n_{k+1},): sum_a w p (the negative of the block O), then the solved block"""
    coupling_start: IntArray
    """(L + 1,)"""
    border: FloatArray
    """(m + 1, num_states): columns of the constraints, then the right-hand side in the last row"""
    solved: FloatArray
    """(m, num_states): H^{-1} B_i, only when the curvature is computed without cancellation"""
    held: FloatArray
    """(num_states,): the part of the inflow that arrives through successors at a bound"""
    row_scratch: FloatArray
    """Twice as long as the widest row"""
    schur: FloatArray
    """(m, m)"""
    small: FloatArray
    """(m + 4, m + 1): the small quadratic program, see `direction`"""
    candidate: IntArray
    """(m,): the constraints that take part in a Newton step"""
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
        w=np.zeros(rows),
        log_mass=np.zeros(layout.horizon),
        outflow=np.zeros(states),
        inflow=np.zeros(states),
        gradient_v=np.zeros(states),
        gradient_theta=np.zeros(m),
        diagonal=np.zeros(int(diagonal_start[-1])),
        diagonal_start=diagonal_start,
        coupling=np.zeros(int(coupling_start[-1])),
        coupling_start=coupling_start,
        border=np.zeros((m + 1, states)),
        solved=np.zeros((m, states)),
        held=np.zeros(states),
        row_scratch=np.zeros(2 * int(np.diff(layout.row_start).max())),
        schur=np.zeros((m, m)),
        small=np.zeros((m + 4, m + 1)),
        candidate=np.zeros(m, dtype=np.int64),
        log_m=np.zeros(states),
        log_m_trial=np.zeros(states),
        theta_trial=np.zeros(m),
        step_m=np.zeros(states),
        step_v=np.zeros(states),
        step_theta=np.zeros(m),
    )
