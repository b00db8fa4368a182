"""What `plan_in_boxes` takes and what it gives: bundles of arrays that are allocated once per layout."""

from __future__ import annotations

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.compiling.bundles import Bundle, Record
from hedgerow.model.layout import Layout
from hedgerow.planning.master import Master, make_master
from hedgerow.planning.robust import RobustScratch, robust_scratch

SOLVED, INFEASIBLE, UNSOLVED = 0, 1, 2
"""The three answers. The first two are proved; the third says that the proof did not close."""

KEPT_PER_ROW = 6
"""Columns that are kept for each row of the master program: few enough for large worlds, enough not to sweep twice."""


class PlanProblem(Bundle):
    """min loss^T q with costs^T q <= thresholds over the occupancies that the boxes allow. Any real numbers will do."""

    lower: FloatArray
    """(num_triples,)"""
    upper: FloatArray
    """(num_triples,): equal to `lower` where transitions are known"""
    loss: FloatArray
    """(num_rows,)"""
    costs: FloatArray
    """(num_rows, m)"""
    thresholds: FloatArray
    """(m,)"""


class PlanFigures(Record):
    """The numbers of an answer and of its proof."""

    value: float
    """The loss of `masses`"""
    bound: float
    """SOLVED: no occupancy that keeps the thresholds has a smaller loss. INFEASIBLE: none has a smaller violation."""
    violation: float
    """The least violation: how far all thresholds must be raised together to let some occupancy in; 0 if SOLVED"""


class PlanTallies(Record):
    """Counts of the last plan."""

    sweeps: int
    """Robust value iterations"""
    status: int
    """SOLVED, INFEASIBLE or UNSOLVED"""
    known: int
    """1 if every box is a single point, which makes sweeps faster; else 0"""


class PlanNumbers(Record):
    """By how much the master program divides."""

    loss_scale: float
    violation_scale: float


class PlanWorkspace(Bundle):
    """Outputs and buffers of `plan_in_boxes`. A plan depends on its problem alone, not on what was left in here."""

    masses: FloatArray
    """(num_rows,): an output, the occupancy of the rows: a mixture of at most m + 1 extreme ones"""
    multipliers: FloatArray
    """(m,): an output, theta >= 0. INFEASIBLE: they sum to 1 and name the constraints that cannot be met together."""
    figures: PlanFigures
    tallies: PlanTallies
    weighted: FloatArray
    """(num_rows,): the loss of a sweep, loss + theta^T costs"""
    reached: FloatArray
    """(m,): the costs of `masses`"""
    columns: FloatArray
    """(number of kept columns, num_rows): occupancies"""
    column_loss: FloatArray
    """(number of kept columns,): their loss"""
    column_costs: FloatArray
    """(number of kept columns, m): their costs"""
    robust: RobustScratch
    # Only for several constraints
    trial: FloatArray
    """(m,): the multipliers of a sweep"""
    scales: FloatArray
    """(m,): the sizes of the costs"""
    numbers: PlanNumbers
    master: Master


def make_plan_workspace(layout: Layout, num_constraints: int) -> PlanWorkspace:
    """Fresh buffers for problems of this shape."""
    m = num_constraints
    kept = (1, 3)[m] if m < 2 else KEPT_PER_ROW * (m + 1)
    return PlanWorkspace(
        masses=np.zeros(layout.num_rows),
        multipliers=np.zeros(m),
        figures=PlanFigures(),
        tallies=PlanTallies(),
        weighted=np.zeros(layout.num_rows),
        reached=np.zeros(m),
        columns=np.zeros((kept, layout.num_rows)),
        column_loss=np.zeros(kept),
        column_costs=np.zeros((kept, m)),
        robust=robust_scratch(layout),
        trial=np.zeros(m),
        scales=np.ones(m),
        numbers=PlanNumbers(),
        master=make_master(kept, m),
    )
