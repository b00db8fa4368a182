"""Problem (PROJ) as the kernels take it: the base is wt(x,a) pt(x'|x,a), with row weights and conditionals apart."""

from __future__ import annotations

from hedgerow.checks import FloatArray
from hedgerow.compiling.bundles import Bundle


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
