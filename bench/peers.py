"""General solvers on the same problems, each prepared once for a layout, as well as its interface allows.

    cvxpy + Clarabel   the program of the paper, compiled once with parameters (DPP), of which only the values change;
                       the same with an easier program; and the program of the paper stated anew for each problem
    Clarabel           the conic form in Clarabel's own format; only data is updated
    ECOS, SCS          the conic form; both take a changed matrix only through a new set-up
    L-BFGS-B           scipy, on the large dual

The clock covers everything from the problem to the occupancy. Solvers run at their default accuracy; SCS and L-BFGS-B,
whose defaults are rough (1e-4, 1e-5), are asked for 1e-9. A time limit ends what would not end.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from bench.conic_form import conic_form
from bench.contender import Contender, Run, clocked
from bench.cvxpy_peers import CvxpyAnew, CvxpyAsWritten, CvxpyRows
from bench.large_dual import LargeDual
from bench.ours import Ours
from hedgerow.checks import FloatArray
from hedgerow.model.layout import Layout
from hedgerow.projection.problem import ProjectionProblem
from hedgerow.projection.solve import project

ACCURATE = 1e-9


class Project:
    """`project`, the public function, on a validated problem: everything but the validation is timed."""

    name = "hedgerow, project()"

    def __init__(self, layout: Layout, num_constraints: int, time_limit: float) -> None:
        pass

    def run(self, problem: ProjectionProblem) -> Run:
        return clocked(self._solve, problem)

    def _solve(self, problem: ProjectionProblem) -> tuple[str, FloatArray]:
        result = project(problem)
        return result.status.name.lower(), np.exp(result.log_occupancy)


class Clarabel:
    """Clarabel with its data updated in place."""

    name = "Clarabel"

    def __init__(self, layout: Layout, num_constraints: int, time_limit: float) -> None:
        import clarabel

        self.form = conic_form(layout, num_constraints)
        self.cones = [
            clarabel.ZeroConeT(self.form.num_equations),
            clarabel.NonnegativeConeT(self.form.num_inequalities),
            *[clarabel.ExponentialConeT() for _ in range(layout.num_triples)],
        ]
        self.settings = clarabel.DefaultSettings()
        self.settings.verbose = False
        self.settings.max_threads = 1
        self.settings.presolve_enable = False  # presolve would forbid updates
        self.settings.input_sparse_dropzeros = False
        self.settings.time_limit = time_limit
        self.solver: Any = None

    def run(self, problem: ProjectionProblem) -> Run:
        if self.solver is None:  # the first set-up is preparation
            self.solver = self._new(problem)
        return clocked(self._solve, problem)

    def _new(self, problem: ProjectionProblem) -> Any:
        import clarabel
        from scipy import sparse

        form = self.form
        empty = sparse.csc_array((form.num_variables, form.num_variables))
        matrix = form.matrix.copy()
        matrix.data = form.values(problem)
        c, b = form.objective(), form.right_side(problem)
        return clarabel.DefaultSolver(empty, c, matrix, b, self.cones, self.settings)

    def _solve(self, problem: ProjectionProblem) -> tuple[str, FloatArray]:
        form = self.form
        self.solver.update(q=form.objective(), A=form.values(problem), b=form.right_side(problem))
        solution = self.solver.solve()
        return str(solution.status), np.asarray(solution.x)[: problem.layout.num_triples]


class Ecos:
    """ECOS; its cones are ordered (u, base, q)."""

    name = "ECOS"

    def __init__(self, layout: Layout, num_constraints: int, time_limit: float) -> None:
        import ecos
        from scipy import sparse

        self.ecos = ecos
        self.form = conic_form(layout, num_constraints, cone_order="ubq")
        matrix, equations = self.form.matrix, self.form.num_equations
        self.is_equation = matrix.indices < equations
        # ECOS asks for the old matrix class by name.
        self.equations = sparse.csc_matrix(matrix[:equations])
        self.others = sparse.csc_matrix(matrix[equations:])
        self.dims = {"l": self.form.num_inequalities, "q": [], "e": layout.num_triples}

    def run(self, problem: ProjectionProblem) -> Run:
        return clocked(self._solve, problem)

    def _solve(self, problem: ProjectionProblem) -> tuple[str, FloatArray]:
        form, values = self.form, self.form.values(problem)
        self.equations.data, self.others.data = values[self.is_equation], values[~self.is_equation]
        b = form.right_side(problem)
        c, k = form.objective(), form.num_equations
        answer = self.ecos.solve(c, self.others, b[k:], self.dims, self.equations, b[:k], verbose=False)
        return str(answer["info"]["infostring"]).lower(), answer["x"][: problem.layout.num_triples]


class Scs:
    """SCS, started from its own last answer; a changed matrix needs a new set-up."""

    name = "SCS"

    def __init__(self, layout: Layout, num_constraints: int, time_limit: float) -> None:
        import scs
        from scipy import sparse

        self.scs = scs
        self.form = conic_form(layout, num_constraints)
        self.matrix = sparse.csc_matrix(self.form.matrix)
        self.cone = {"z": self.form.num_equations, "l": self.form.num_inequalities, "ep": layout.num_triples}
        self.settings = {
            "eps_abs": ACCURATE,
            "eps_rel": ACCURATE,
            "max_iters": 10**6,
            "time_limit_secs": time_limit,
            "verbose": False,
        }
        self.last: dict[str, Any] | None = None

    def run(self, problem: ProjectionProblem) -> Run:
        return clocked(self._solve, problem)

    def _solve(self, problem: ProjectionProblem) -> tuple[str, FloatArray]:
        self.matrix.data = self.form.values(problem)
        data = {"A": self.matrix, "b": self.form.right_side(problem), "c": self.form.objective()}
        solver = self.scs.SCS(data, self.cone, **self.settings)
        start = {} if self.last is None else {name: self.last[name] for name in ("x", "y", "s")}
        answer = solver.solve(warm_start=bool(start), **start)
        if answer["info"]["status"] == "solved":
            self.last = answer
        return str(answer["info"]["status"]), np.asarray(answer["x"])[: problem.layout.num_triples]


class LBFGSB:
    """scipy's L-BFGS-B on the large dual, from 0."""

    name = "L-BFGS-B, large dual"

    def __init__(self, layout: Layout, num_constraints: int, time_limit: float) -> None:
        self.time_limit = time_limit

    def run(self, problem: ProjectionProblem) -> Run:
        return clocked(self._solve, problem)

    def _solve(self, problem: ProjectionProblem) -> tuple[str, FloatArray]:
        from scipy.optimize import minimize

        dual, end = LargeDual(problem), perf_counter() + self.time_limit

        def stop_in_time(intermediate_result: Any) -> None:
            if perf_counter() > end:
                raise StopIteration

        found = minimize(
            dual.negative,
            np.zeros(dual.num_variables),
            jac=True,
            method="L-BFGS-B",
            bounds=dual.bounds(),
            callback=stop_in_time,
            options={"gtol": ACCURATE, "ftol": 1e-16, "maxiter": 10**6, "maxfun": 10**6},
        )
        endings = {0: "converged", 1: "iteration limit", 2: "line search ended", 99: "time limit"}
        return endings.get(int(found.status), "stopped"), dual.occupancy(found.x)


PEERS: tuple[Callable[[Layout, int, float], Contender], ...] = (
    Project,
    CvxpyAnew,
    CvxpyAsWritten,
    CvxpyRows,
    Clarabel,
    Ecos,
    Scs,
    LBFGSB,
)


def contenders(layout: Layout, num_constraints: int, time_limit: float) -> tuple[list[Contender], dict[str, str]]:
    """The solvers that can run here, ours first, and for each that cannot its name and the reason."""
    able: list[Contender] = [Ours(layout, num_constraints)]
    missing = {}
    for peer in PEERS:
        try:
            able.append(peer(layout, num_constraints, time_limit))
        except ImportError as error:
            missing[str(getattr(peer, "name", peer))] = f"not installed ({error.name})"
    return able, missing
