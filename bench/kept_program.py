"""The extended linear program of `planning/lp.py` as one model of HiGHS that is kept from plan to plan.

It is built once. For the next plan its losses and the entries of the boxes that changed are exchanged, and the simplex
method starts from the basis of the last answer: the way to ask HiGHS for many similar programs. It is the primal
method: where all losses change it takes half to a third of the time of the dual one, which HiGHS would choose; where
none does both take the same. Tolerances of 1e-7 instead of 1e-10 made no difference.

Columns are the masses of rows and triples; cost constraints and boxes are rows, as in `planning/lp.py`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import highspy
import numpy as np
import scipy.sparse as sp

from hedgerow.checks import FloatArray, IntArray
from hedgerow.model.layout import Layout
from hedgerow.planning.lp import TOL_SOLVER, box_program

PRIMAL = 4
"""Of `simplex_strategy`"""


class Kept(NamedTuple):
    """Row masses (rows,), the least value, and the steps of the simplex method."""

    w: FloatArray
    value: float
    iterations: int


class KeptProgram:
    """One model, with rows for the bounds that say something in the narrowest boxes (triples,) that it will ever have.

    Costs (rows, m) and thresholds (m,) stay.
    """

    def __init__(
        self, layout: Layout, narrowest: tuple[FloatArray, FloatArray], costs: FloatArray, thresholds: FloatArray
    ) -> None:
        program, m, N = box_program(layout, *narrowest), len(thresholds), layout.num_triples
        priced = sp.hstack([sp.csr_array(costs.T), sp.csr_array((m, N))])
        matrix = sp.vstack([program.equalities, priced, program.boxes], format="csr")
        equal, self._row_of = program.equalities.shape[0], layout.row_of_triple
        several = np.diff(layout.row_start)[self._row_of] > 1
        self._least, self._most = np.full(N, -1), np.full(N, -1)
        least, most = np.flatnonzero(several & (narrowest[0] > 0.0)), np.flatnonzero(several & (narrowest[1] < 1.0))
        self._least[least] = equal + m + np.arange(len(least))
        self._most[most] = equal + m + len(least) + np.arange(len(most))
        below, above = np.full(matrix.shape[0], -highspy.kHighsInf), np.zeros(matrix.shape[0])
        below[:equal] = 0.0
        below[0] = above[0] = 1.0
        above[equal : equal + m] = thresholds
        self._highs = _model(matrix, below, above)
        self._columns = np.arange(layout.num_rows, dtype=np.int32)

    def change_boxes(self, triples: IntArray, lower: FloatArray, upper: FloatArray) -> None:
        """Exchange the boxes of these triples; `lower` and `upper` are whole arrays."""
        rows = self._row_of[triples]
        for places, entries in ((self._least[triples], lower[triples]), (self._most[triples], -upper[triples])):
            for place, row, entry in zip(places.tolist(), rows.tolist(), entries.tolist(), strict=True):
                if place >= 0:
                    self._highs.changeCoeff(place, row, entry)

    def plan(self, loss: FloatArray) -> Kept:
        """The least loss (rows,), from the basis of the last plan."""
        self._highs.changeColsCost(len(loss), self._columns, loss)
        self._highs.run()
        status = self._highs.getModelStatus()
        if status != highspy.HighsModelStatus.kOptimal:
            raise RuntimeError(f"HiGHS ended {self._highs.modelStatusToString(status)}")
        masses = np.asarray(self._highs.getSolution().col_value, dtype=np.float64)[: len(loss)]
        info = self._highs.getInfo()
        return Kept(masses, float(info.objective_function_value), int(info.simplex_iteration_count))


def _model(matrix: sp.csr_array, below: FloatArray, above: FloatArray) -> Any:
    """HiGHS with one thread, the tolerances of `planning/lp.py`, and no objective yet."""
    library: Any = highspy  # partly without types
    highs, program = library.Highs(), library.HighsLp()
    options = {"output_flag": False, "threads": 1, "solver": "simplex", "simplex_strategy": PRIMAL}
    for name in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
        options[name] = TOL_SOLVER
    for name, value in options.items():
        highs.setOptionValue(name, value)
    program.num_row_, program.num_col_ = matrix.shape
    program.col_cost_, program.col_lower_ = np.zeros(matrix.shape[1]), np.zeros(matrix.shape[1])
    program.col_upper_ = np.full(matrix.shape[1], highspy.kHighsInf)
    program.row_lower_, program.row_upper_ = below, above
    program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    program.a_matrix_.start_, program.a_matrix_.index_ = matrix.indptr, matrix.indices
    program.a_matrix_.value_ = matrix.data
    highs.passModel(program)
    return highs
