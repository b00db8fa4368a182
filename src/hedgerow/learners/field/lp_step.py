"""The next plan of an LP learner, compiled: what `observe` and the compiled loop both call.

next_plan    tables of the visited rows -> is a plan due? -> linear program -> policy and mixing weight
conclude     the last two steps alone, where the slow solver has found the masses
"""

from __future__ import annotations

from math import sqrt

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.kernels import copy_into, kernel, shared_kernel
from hedgerow.estimates.columns import load_columns
from hedgerow.estimates.joint_cost import joint_costs_of_columns
from hedgerow.learners.field.lp_core import ALONE, COMMITTED, LAST_ATTEMPT, ROBUST, LPCore
from hedgerow.learners.field.lp_tables import Tables, mean_transition, mean_with_radius, width_of_row
from hedgerow.learners.mirror.mixing import safe_weight
from hedgerow.planning.constrained import (
    INFEASIBLE,
    SOLVED,
    UNSOLVED,
    plan_in_boxes,
    policy_of_row_masses,
)
from hedgerow.planning.robust import least_cost


@shared_kernel(SOLVED)
def next_plan(core: LPCore, rows: IntArray) -> int:
    """Follow the statistics of `rows`, which have changed, and plan the next episode if that is due.

    UNSOLVED: the program is in `core.problem`, and `conclude` has to be called when another solver has its answer.
    """
    numbers, rule, episode = core.numbers, core.rule, core.progress.episode
    numbers.fresh = 0
    if numbers.stage == COMMITTED:
        return SOLVED
    for r in rows:
        write_row(core, rule.tables, r)
    if not _is_due(core, rows):
        return SOLVED
    copy_into(core.counts.num_visits, core.planned_visits)
    numbers.fresh = 1
    if rule.explore > 0 and episode != rule.explore and episode != 2 * rule.explore:
        _explore(core)
        return SOLVED
    if episode < rule.warmup or (rule.tests_baseline and _baseline_is_dear(core)):
        core.reals.mixing = 1.0
        return SOLVED
    code = _solve(core)
    return code if code == UNSOLVED else conclude(core, code)


@kernel
def conclude(core: LPCore, code: int) -> int:
    """Turn the masses of a plan, SOLVED or INFEASIBLE, into the policy and the mixing weight of the next episode.

    UNSOLVED: explore-then-commit has asked a further program, to be solved elsewhere as well.
    """
    numbers, rule, masses = core.numbers, core.rule, core.workspace.masses
    numbers.open = 0
    core.figures.value = core.workspace.figures.value
    if code == INFEASIBLE:
        numbers.infeasible += 1
    if rule.mixing == ALONE:
        policy_of_row_masses(core.index, masses, core.policy)
    elif rule.mixing == ROBUST or numbers.stage == LAST_ATTEMPT:
        policy_of_row_masses(core.index, masses, core.policy)
        core.reals.mixing = robust_mixing(core)
    elif code == SOLVED:
        policy_of_row_masses(core.index, masses, core.policy)
        core.reals.mixing = 0.0
    elif rule.explore == 0:
        core.reals.mixing = 1.0
    elif core.progress.episode < 2 * rule.explore:
        _explore(core)
        return SOLVED
    else:
        return _last_attempt(core)
    if rule.explore > 0:
        numbers.stage = COMMITTED
    return SOLVED


@kernel
def _solve(core: LPCore) -> int:
    core.numbers.plans += 1
    code = plan_in_boxes(core.index, core.problem, core.workspace)
    if code == UNSOLVED:
        core.numbers.open = 1
    return code


@kernel
def _last_attempt(core: LPCore) -> int:
    """Explore-then-commit knows no safe plan after all its exploration: commit to the mixture of S-LP."""
    core.numbers.stage = LAST_ATTEMPT
    for r in core.all_rows:
        write_row(core, core.rule.late, r)
    code = _solve(core)
    if code == UNSOLVED:
        return code
    core.numbers.stage = COMMITTED
    core.figures.value = core.workspace.figures.value
    if code == INFEASIBLE:
        core.numbers.infeasible += 1
    policy_of_row_masses(core.index, core.workspace.masses, core.policy)
    core.reals.mixing = robust_mixing(core)
    return SOLVED


@kernel
def robust_mixing(core: LPCore) -> float:
    """lambda of S-OPS for the present policy: its largest costs within all bounds, as a weight of the baseline."""
    load_columns(core.index, core.boxes.lower, core.boxes.upper, core.policy, core.columns)
    joint_costs_of_columns(core.index, core.columns, core.boxes.cost_upper, core.bounds)
    return safe_weight(core.baseline, core.bounds)


@kernel
def write_tables(core: LPCore) -> None:
    """The tables of all rows, after a file was read."""
    for r in core.all_rows:
        write_row(core, core.rule.late if core.numbers.stage == LAST_ATTEMPT else core.rule.tables, r)


@kernel
def write_row(core: LPCore, tables: Tables, row: int) -> None:
    """The loss and the costs of a row of the program, and where it is asked for P_hat."""
    index, counts, box, boxes, problem = core.index, core.counts, core.box, core.boxes, core.problem
    width = width_of_row(index, counts, box, boxes, tables, row)
    last = counts.cost_sums.shape[1] - 1
    radius = sqrt(tables.log_term / max(1, counts.num_costs[row] - counts.unknown_costs[row, last]))
    loss = mean_with_radius(counts, box, boxes, row, last, -tables.loss_radius * radius, False)
    problem.loss[row] = loss - tables.loss_width[row] * width
    binding = core.baseline.binding
    for i in range(len(binding)):
        cost = mean_with_radius(counts, box, boxes, row, binding[i], tables.cost_radius * radius, tables.clip_costs)
        problem.costs[row, i] = cost + tables.cost_width[row] * width
    if core.rule.at_mean:
        for j in range(index.row_start[row], index.row_start[row + 1]):
            problem.lower[j] = mean_transition(index, counts, box, boxes, row, j)
    if core.rule.explore > 0:
        core.unknown[row] = -1.0 / sqrt(max(1, counts.num_visits[row]))


@kernel
def _is_due(core: LPCore, rows: IntArray) -> bool:
    """Whether the next episode needs a new plan."""
    rule, episode = core.rule, core.progress.episode
    if not rule.epochs or episode == 0 or episode == rule.warmup:
        return True
    if rule.explore > 0 and (episode == rule.explore or episode == 2 * rule.explore):
        return True
    doubled = False
    for r in rows:
        doubled |= core.counts.num_visits[r] >= max(1, 2 * core.planned_visits[r])
    return doubled


@kernel
def _explore(core: LPCore) -> None:
    """The policy that may visit the least known pairs most, mixed with the baseline: safe whatever it costs."""
    least_cost(core.index, core.boxes.lower, core.boxes.upper, core.unknown, core.scratch)
    for x in range(len(core.scratch.action)):
        for a in range(core.index.num_actions):
            core.policy[x * core.index.num_actions + a] = 1.0 if a == core.scratch.action[x] else 0.0
    copy_into(core.baseline.ceilings, core.bounds)
    core.reals.mixing = safe_weight(core.baseline, core.bounds)


@kernel
def _baseline_is_dear(core: LPCore) -> bool:
    """Whether the pessimistic cost of the baseline at P_hat reaches the middle of its cost and the threshold."""
    binding, dear = core.baseline.binding, False
    for i in range(len(binding)):
        dear |= cost_at(core, core.baseline.policies[0], i) >= core.halfway[binding[i]]
    return dear


@kernel
def cost_at(core: LPCore, policy: FloatArray, i: int) -> float:
    """The expected cost of column i of the program under `policy` and P_hat: a backward pass."""
    index, problem, values = core.index, core.problem, core.values
    values[len(values) - 1] = 0.0
    for x in range(len(values) - 2, -1, -1):
        total = 0.0
        for r in range(x * index.num_actions, (x + 1) * index.num_actions):
            if policy[r] > 0.0:
                ahead = problem.costs[r, i]
                for j in range(index.row_start[r], index.row_start[r + 1]):
                    ahead += problem.lower[j] * values[index.successor[j]]
                total += policy[r] * ahead
        values[x] = total
    return float(values[0])
