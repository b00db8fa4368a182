"""O-REPS with PyNOL: its `Hedge` over the occupancies of a world whose transitions and whole losses are known.

PyNOL's learners ask their domain for a first point and for projections. Its package has no domain of occupancies. The
applications in its repository have some, for grids of their own, with a new cvxpy program for every projection. This
one is for any world and compiles its program once, which is in PyNOL's favour. An episode takes two projections there;
the first one, before the loss is seen, changes nothing.
"""

from __future__ import annotations

import warnings
from importlib import import_module

import numpy as np

from bench import inside
from bench.cvxpy_peers import incidences
from hedgerow.checks import FloatArray, IntArray
from hedgerow.learners.ops.base import MirrorLearner
from hedgerow.model.layout import Layout

LEAST = 1e-12
"""Floor of weights: solvers return zeros and less, and a mirror step never recovers from those."""


class OccupancyDomain:
    """All w(x,a) of a known P, as PyNOL wants it: min kl(w, base) s.t. the flow of w is that of P."""

    def __init__(self, layout: Layout, transitions: FloatArray, start: FloatArray, time_limit: float) -> None:
        from scipy import sparse

        self.cp = cp = import_module("cvxpy")
        self.start, self.time_limit, self.status = start, time_limit, "not solved"
        of_row, leaving, arriving, source = incidences(layout)
        flow = leaving - arriving @ sparse.diags_array(transitions) @ of_row.T
        self.w, self.base = cp.Variable(layout.num_rows), cp.Parameter(layout.num_rows, nonneg=True)
        self.program = cp.Problem(cp.Minimize(cp.sum(cp.kl_div(self.w, self.base))), [flow @ self.w == source])

    def init_x(self, prior: object = None, seed: object = None) -> FloatArray:
        return self.start

    def project(self, w: FloatArray) -> FloatArray:
        """The nearest occupancy; where the solver has no answer, `w` itself and a status that says so."""
        self.base.value = np.maximum(w, LEAST)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # "may be inaccurate" is in the status
                self.program.solve(solver=self.cp.CLARABEL, time_limit=self.time_limit)
        except self.cp.SolverError:
            self.status = "no answer"
            return w
        self.status = str(self.program.status)
        return w if self.w.value is None else np.maximum(self.w.value, LEAST)


class PyNOLHedge:
    """PyNOL's learner, fed with the loss of every episode."""

    name = "PyNOL, O-REPS: P and losses known, no constraints"

    def __init__(
        self, learner: MirrorLearner, transitions: FloatArray, loss: FloatArray, time_limit: float = 60.0
    ) -> None:
        """Goes on from the occupancy of `learner`, with its learning rate."""
        self.environment = import_module("pynol.environment.environment").Environment
        self.loss = loss
        start = inside.row_iterate(learner)
        self.domain = OccupancyDomain(learner.layout, transitions, start, time_limit)
        self.domain.project(start)  # compiles the program
        self.hedge = import_module("pynol.learner.base").Hedge(domain=self.domain, step_size=learner.eta)

    @property
    def occupancy(self) -> FloatArray:
        return np.asarray(self.hedge.middle_x)

    def observe(self, rows: IntArray, losses: FloatArray, costs: FloatArray) -> str:
        self.hedge.opt(self.environment(func=lambda w: float(self.loss @ w), grad=self.loss))
        return self.domain.status
