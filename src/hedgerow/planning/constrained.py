"""Constrained plans in boxes of transitions, compiled: the least loss of all occupancies that keep the thresholds.

    min loss^T q   with  costs^T q <= thresholds,   q in Delta(boxes)

is the *extended* linear program of optimistic planning (OptCMDP, Efroni, Mannor and Pirotta 2020; DOPE, Bura et al.
2022), in which policy and transitions are chosen together. Its extreme points are deterministic policies with extreme
transitions, and extended value iteration finds the best one for any weights. Hence Dantzig and Wolfe's decomposition:
collect few extreme points, mix them, and let multipliers ask for the next one. No constraint takes one sweep, one
constraint the secant method (`secant.py`), several a small simplex method over the points (`columns_in_boxes.py`).

Every answer proves itself. SOLVED: a sweep at the multipliers gives a lower bound that the mixture attains. INFEASIBLE:
a sweep shows that the weighted costs exceed the weighted thresholds for all occupancies. Else it is UNSOLVED, and the
caller asks another solver.
"""

from __future__ import annotations

from hedgerow.checks import FloatArray
from hedgerow.compiling.kernels import copy_into, kernel
from hedgerow.model.index import Index
from hedgerow.planning.columns_in_boxes import plan_with_columns
from hedgerow.planning.plan_problem import (
    INFEASIBLE,
    SOLVED,
    UNSOLVED,
    PlanFigures,
    PlanProblem,
    PlanTallies,
    PlanWorkspace,
    make_plan_workspace,
)
from hedgerow.planning.secant import plan_with_one_constraint
from hedgerow.planning.sweeps import begin, conclude, sweep

__all__ = [
    "INFEASIBLE",
    "SOLVED",
    "UNSOLVED",
    "PlanFigures",
    "PlanProblem",
    "PlanTallies",
    "PlanWorkspace",
    "make_plan_workspace",
    "plan_in_boxes",
    "policy_of_row_masses",
]


@kernel
def plan_in_boxes(index: Index, problem: PlanProblem, workspace: PlanWorkspace) -> int:
    """SOLVED, INFEASIBLE or UNSOLVED; masses, multipliers, figures and tallies of `workspace` say the rest."""
    begin(index, problem, workspace)
    m = len(problem.thresholds)
    if m == 0:
        bound = sweep(index, problem, 1.0, workspace.multipliers, 0, workspace)
        copy_into(workspace.columns[0], workspace.masses)
        return conclude(index, problem, True, bound, workspace)
    if m == 1:
        return plan_with_one_constraint(index, problem, workspace)
    return plan_with_columns(index, problem, workspace)


@kernel
def policy_of_row_masses(index: Index, masses: FloatArray, policy: FloatArray) -> None:
    """The policy (num_rows,) of an occupancy of the rows; uniform where a state has no mass."""
    A = index.num_actions
    for x in range(len(masses) // A):
        mass = 0.0
        for r in range(x * A, (x + 1) * A):
            mass += masses[r]
        for r in range(x * A, (x + 1) * A):
            policy[r] = masses[r] / mass if mass > 0.0 else 1.0 / A
