"""The kernels of the LP learners: the tables of a linear program, row by row, from counts and bounds; and the plan.

With means l_hat and g_hat, a radius r and a width w of each row (x,a),

    loss   = l_hat - loss_radius r - loss_width w
    cost_i = g_hat_i + cost_radius r + cost_width w

and the first two terms of the costs are clipped to [0, 1] on request. Losses are not: a loss that is clipped at 0 ties
with all others while radii are large, and says nothing about which pair is less known.

The radius r = sqrt(Z / max(1, n)) bounds the error of a mean; Z is 2 ln(6 S |A| L T (m + 1)/delta) for Efroni et al.,
4 ln(T|X||A|(m + 1)/delta) for the paper, ln(2 R (m + 1) T/delta) / 2 for the sets `sharp`, R rows. With the sets
`sharpest`, which are intervals,

    cost_i = UCB_i + cost_width w     if cost_radius > 0,     LCB_i + cost_width w     if cost_radius < 0

and r is the larger distance of the mean loss from the ends of its interval; where the loss makes up for pessimistic
costs (`joint`), the largest such distance of loss and costs. The width bounds what wrong transitions add to the
costs of later layers, per unit of such costs:

    RADII        sum_x' epsilon(x,a,x')                    the radii of the transitions, each at most 1
    HALF_BOX     min(1, 1/2 sum_x' (hi - lo))              >= 1/2 |P - P'|_1 for all P, P' in the box
    HALF_SPREAD  min(1, 1/2 sum_x' max(hi - P_hat, P_hat - lo))   >= 1/2 |P - P_hat|_1 for all P in the box
    RADIUS       r                                         one number for everything (OptPess-LP)
    VARIANCE     min(HALF_BOX, sum_x' min(w, (2L - 1) w^2 / (4 theta h lo))),   w = hi - lo, h = L - k - 1 (DOPE+)

For probabilities P and P' and values in [0, d], (P - P') V <= d 1/2 |P - P'|_1: the mass that moves can gain at most d.

P_hat of a row without visits is uniform over its successors; known transitions are their own P_hat, of width 0.

All LP learners solve min loss^T q with costs^T q <= thresholds, over the boxes of the transitions or at P_hat. Besides
these tables they differ in what they do with the answer:

    ALONE    play the policy of the plan; without a solution the least violating one
    SWITCH   play it if there is a solution, else the baseline
    ROBUST   play it, or the least violating one, mixed with the baseline so that the mixture is safe (S-OPS)

`observe` and the compiled loop both call `next_plan`: tables of the visited rows -> is a plan due? -> linear program ->
policy and mixing weight; `conclude` does the last two steps alone, where the slow solver has found the masses.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.bundles import Bundle, Record
from hedgerow.compiling.kernels import copy_into, kernel, shared_kernel
from hedgerow.confidence.bounds import Columns
from hedgerow.confidence.boxes import Boxes, BoxRule
from hedgerow.confidence.counts import Counts
from hedgerow.confidence.radii import EFRONI, PAPER, RadiusRule, epsilon, transition_terms
from hedgerow.confidence.sets import LossSets, Sets, least_bounds
from hedgerow.learners.field.loop import FieldCore
from hedgerow.learners.kernels import BaselineArrays, Mixing, Progress, safe_weight
from hedgerow.model.kernel_layout import LayoutArrays
from hedgerow.model.layout import Layout
from hedgerow.planning.decomposition import (
    INFEASIBLE,
    SOLVED,
    UNSOLVED,
    PlanProblem,
    PlanWorkspace,
    RobustScratch,
    least_cost,
)
from hedgerow.planning.planner import plan_in_boxes, policy_of_row_masses

RADII, HALF_BOX, HALF_SPREAD, RADIUS, VARIANCE = 0, 1, 2, 3, 4
THETAS = 6
"""DOPE+ chooses theta among 0 and 1/4, 1/8, ..., so many of these."""


class LPTables(Bundle):
    """The coefficients of one learner."""

    width: int
    """RADII, HALF_BOX, HALF_SPREAD, RADIUS or VARIANCE"""
    log_term: float
    """Z"""
    loss_radius: float
    cost_radius: float
    loss_width: FloatArray
    """(num_rows,)"""
    cost_width: FloatArray
    """(num_rows,)"""
    clip_costs: bool
    joint: bool
    """Whether the radius of intervals is the largest of loss and costs, or that of the loss"""
    theta: FloatArray
    """(1,): of the width VARIANCE; else 0"""


def make_tables(
    rule: RadiusRule,
    layout: Layout,
    width: int,
    *,
    loss_radius: float,
    cost_radius: float,
    loss_width: FloatArray | float = 0.0,
    cost_width: FloatArray | float = 0.0,
    log_term: float | None = None,
    clip_costs: bool = False,
    joint: bool = False,
) -> LPTables:
    """Tables with the radii of `rule`, or with a given Z; widths have one factor for all rows, or one for each."""
    of_loss, of_costs = (
        np.array(np.broadcast_to(each, layout.num_rows), dtype=float) for each in (loss_width, cost_width)
    )
    if log_term is None:
        log_term = {EFRONI: 2.0, PAPER: 4.0}.get(rule.kind, 0.5) * rule.cost_log
    radii = float(loss_radius), float(cost_radius)
    return LPTables(width, log_term, *radii, of_loss, of_costs, clip_costs, joint, np.zeros(1))


def layers_to_go(layout: Layout) -> FloatArray:
    """(num_rows,): L - k - 1, the most that an episode can cost after a row of layer k."""
    layer = layout.layer_of_state[np.arange(layout.num_rows) // layout.num_actions]
    return np.asarray(layout.steps - layer - 1, dtype=float)


@kernel
def mean_transition(index: LayoutArrays, counts: Counts, rule: BoxRule, boxes: Boxes, row: int, triple: int) -> float:
    """P_hat of a triple of `row`."""
    place = rule.laws.moves_at[row]
    if not rule.uncertain[row]:
        return float(boxes.lower[triple])
    if counts.num_visits[place] == 0:
        return float(1.0 / (index.row_start[row + 1] - index.row_start[row]))
    moves = counts.num_moves[index.row_start[place] + triple - index.row_start[row]]
    return float(moves / counts.num_visits[place])


@kernel
def width_of_row(index: LayoutArrays, counts: Counts, rule: BoxRule, boxes: Boxes, tables: LPTables, row: int) -> float:
    """w of a row."""
    if tables.width == RADIUS:
        return sqrt(tables.log_term / max(1, counts.num_visits[row]))
    if not rule.uncertain[row]:
        return 0.0
    if tables.width == VARIANCE:
        return width_by_variance(index, boxes, row, tables.cost_width[row], tables.theta[0])
    variance_factor, offset = transition_terms(rule.radii, counts.num_visits[row])  # of no use to intervals
    total = 0.0
    for j in range(index.row_start[row], index.row_start[row + 1]):
        if tables.width == HALF_BOX:
            total += 0.5 * (boxes.upper[j] - boxes.lower[j])
        else:
            p_hat = mean_transition(index, counts, rule, boxes, row, j)
            if tables.width == RADII:
                total += min(1.0, epsilon(rule.radii, p_hat, variance_factor, offset))
            else:
                total += 0.5 * max(boxes.upper[j] - p_hat, p_hat - boxes.lower[j])
    return total if tables.width == RADII else min(1.0, total)


@kernel
def width_by_variance(index: LayoutArrays, boxes: Boxes, row: int, ahead: float, theta: float) -> float:
    """VARIANCE of a row with `ahead` = h layers to go; HALF_BOX for theta = 0."""
    half, split = 0.0, 0.0
    smooth = theta * ahead > 0.0
    factor = (2 * len(index.state_start) - 5) / (4.0 * theta * ahead) if smooth else 0.0
    for j in range(index.row_start[row], index.row_start[row + 1]):
        wide = boxes.upper[j] - boxes.lower[j]
        half += 0.5 * wide
        # The first form where lo = 0 as well: there the second one has no bound.
        split += wide if factor * wide >= boxes.lower[j] else factor * wide * wide / boxes.lower[j]
    return min(1.0, half, split) if smooth else min(1.0, half)


@kernel
def mean_with_radius(
    counts: Counts, rule: BoxRule, boxes: Boxes, row: int, column: int, radius: float, clip: bool
) -> float:
    """g_hat + radius of a column of sums, which may be negative; a known mean stays as it is."""
    if not rule.unknown_costs[row, column]:
        return float(boxes.cost_lower[row, column])
    known = counts.num_costs[row] - counts.unknown_costs[row, column]
    shifted = counts.cost_sums[row, column] / max(1, known) + radius
    return float(min(1.0, max(0.0, shifted)) if clip else shifted)


@kernel
def interval_radius(counts: Counts, rule: BoxRule, boxes: Boxes, row: int, column: int) -> float:
    """How far the mean of a column may be from what was observed; 0 where it is known."""
    place = rule.laws.costs_at[row]
    if not rule.unknown_costs[row, column]:
        return 0.0
    mean = counts.cost_sums[place, column] / max(1, counts.num_costs[place] - counts.unknown_costs[place, column])
    return float(max(boxes.cost_upper[row, column] - mean, mean - boxes.cost_lower[row, column]))


ALONE, SWITCH, ROBUST = 0, 1, 2
EXPLORING, LAST_ATTEMPT, COMMITTED = 0, 1, 2
ROOM = 1e-9
"""Safe plans keep thresholds that are lower by this, times 1 + threshold: the planner meets them up to 1e-10."""


class LPRule(Bundle):
    """What stays the same from the first episode to the last."""

    tables: LPTables
    late: LPTables
    """Those of the last attempt of explore-then-commit; for other learners the same"""
    at_mean: bool
    """Whether plans are made at P_hat instead of in the boxes"""
    tests_baseline: bool
    """Whether the baseline plays while its own pessimistic cost is above the middle of beta and alpha (OptPess-LP)"""
    mixing: int
    """ALONE, SWITCH or ROBUST"""
    tunes: bool
    """Whether theta is chosen anew for each plan (DOPE+)"""
    epochs: bool
    """Whether to plan only when the visits of some row have doubled"""
    warmup: int
    """So many episodes are left to the baseline"""
    explore: int
    """So many episodes explore before the learner commits; 0 if it never does"""


class LPNumbers(Record):
    """Counters of a learner, besides those of `Progress`."""

    fresh: int
    """1 if the last episode led to a new plan"""
    open: int
    """1 while a plan waits for the slow solver"""
    stage: int
    """Of explore-then-commit: EXPLORING, LAST_ATTEMPT or COMMITTED; 0 for other learners"""
    plans: int
    """Plans made so far"""
    infeasible: int
    """Plans without a solution"""
    unsolved: int
    """Plans that the slow solver had to make"""


class LPFigures(Record):
    """Numbers of the last plan."""

    value: float
    """Its value in the program's own loss; 0 before the first one"""


class LPCore(Bundle):
    """What the kernels of an LP learner work on: rules, counts, bounds, the linear program and the policy."""

    index: LayoutArrays
    rule: LPRule
    sets: Sets
    losses: LossSets
    progress: Progress
    reals: Mixing
    numbers: LPNumbers
    figures: LPFigures
    policy: FloatArray
    """(num_rows,): the policy of the next episode"""
    planned_visits: IntArray
    """(num_rows,): the visits at the last plan"""
    baseline: BaselineArrays
    halfway: FloatArray
    """(m,): (alpha + beta) / 2"""
    problem: PlanProblem
    workspace: PlanWorkspace
    unknown: FloatArray
    """(num_rows,): -1 / sqrt(n), the loss of exploration"""
    scratch: RobustScratch
    """Of exploration"""
    columns: Columns
    bounds: FloatArray
    """(m,): U of S-OPS"""
    by: IntArray
    """(m,): what gave it"""
    values: FloatArray
    """(num_states,)"""
    expected: FloatArray
    """(num_rows,): the visits of the last policy at P_hat"""
    all_rows: IntArray
    """(num_rows,)"""
    field: FieldCore
    """What the loop of an episode needs; its notes are the numbers that are kept of the plan"""


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
        if core.sets.rule.tied:
            _write_classes(core, r)
        else:
            write_row(core, rule.tables, r)
    if not _is_due(core, rows):
        return SOLVED
    copy_into(core.sets.counts.num_visits, core.planned_visits)
    numbers.fresh = 1
    if rule.explore > 0 and episode != rule.explore and episode != 2 * rule.explore:
        _explore(core)
        return SOLVED
    if episode < rule.warmup or (rule.tests_baseline and _baseline_is_dear(core)):
        core.reals.mixing = 1.0  # no program is solved, and the policy of the last plan stays
        return SOLVED
    if rule.tunes:
        tune(core)
    code = _solve(core)
    return code if code == UNSOLVED else conclude(core, code)


@kernel
def _write_classes(core: LPCore, row: int) -> None:
    """The tables of all rows that share a law with `row`."""
    laws = core.sets.rule.box.laws
    place = laws.moves_at[row]
    for j in range(laws.moves_start[place], laws.moves_start[place + 1]):
        write_row(core, core.rule.tables, laws.same_moves[j])
    place = laws.costs_at[row]
    for j in range(laws.costs_start[place], laws.costs_start[place + 1]):
        write_row(core, core.rule.tables, laws.same_costs[j])


@shared_kernel(SOLVED)
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
    least_bounds(core.sets, core.columns, core.policy, core.baseline.thresholds, core.bounds, core.by)
    return safe_weight(core.baseline, core.bounds)


@kernel
def write_tables(core: LPCore) -> None:
    """The tables of all rows, after a file was read."""
    for r in core.all_rows:
        write_row(core, core.rule.late if core.numbers.stage == LAST_ATTEMPT else core.rule.tables, r)


@kernel
def write_row(core: LPCore, tables: LPTables, row: int) -> None:
    """The loss and the costs of a row of the program, and where it is asked for P_hat."""
    index, counts, box, boxes, problem = core.index, core.sets.counts, core.sets.rule.box, core.sets.boxes, core.problem
    width = width_of_row(index, counts, box, boxes, tables, row)
    if core.losses.apart:
        _write_intervals(core, tables, row, width)
    else:
        _write_radii(core, tables, row, width)
    if core.rule.at_mean:
        for j in range(index.row_start[row], index.row_start[row + 1]):
            problem.lower[j] = mean_transition(index, counts, box, boxes, row, j)
    if core.rule.explore > 0:
        core.unknown[row] = -1.0 / sqrt(max(1, counts.num_visits[box.laws.moves_at[row]]))


@kernel
def _write_radii(core: LPCore, tables: LPTables, row: int, width: float) -> None:
    """Loss and costs by means and radii."""
    counts, box, boxes, problem = core.sets.counts, core.sets.rule.box, core.sets.boxes, core.problem
    last = core.losses.column
    radius = sqrt(tables.log_term / max(1, counts.num_costs[row] - counts.unknown_costs[row, last]))
    loss = mean_with_radius(counts, box, boxes, row, last, -tables.loss_radius * radius, False)
    problem.loss[row] = loss - tables.loss_width[row] * width
    binding = core.baseline.binding
    for i in range(len(binding)):
        cost = mean_with_radius(counts, box, boxes, row, binding[i], tables.cost_radius * radius, tables.clip_costs)
        problem.costs[row, i] = cost + tables.cost_width[row] * width


@kernel
def _write_intervals(core: LPCore, tables: LPTables, row: int, width: float) -> None:
    """Loss and costs by the ends of intervals."""
    counts, box, boxes, problem = core.sets.counts, core.sets.rule.box, core.sets.boxes, core.problem
    losses, binding = core.losses, core.baseline.binding
    radius = interval_radius(losses.counts, losses.rule, losses.boxes, row, losses.column)
    for i in range(len(binding)):
        if tables.joint:
            radius = max(radius, interval_radius(counts, box, boxes, row, binding[i]))
        end = boxes.cost_upper[row, binding[i]] if tables.cost_radius > 0.0 else boxes.cost_lower[row, binding[i]]
        problem.costs[row, i] = end + tables.cost_width[row] * width
    loss = mean_with_radius(losses.counts, losses.rule, losses.boxes, row, losses.column, 0.0, False)
    problem.loss[row] = loss - tables.loss_radius * radius - tables.loss_width[row] * width


@kernel
def tune(core: LPCore) -> None:
    """Choose the theta under which the last policy, at P_hat, exceeds its thresholds least by its pessimistic costs."""
    tables, binding, alpha, costs = core.rule.tables, core.baseline.binding, core.baseline.thresholds, core.bounds
    visit_expected(core)
    now = _expected_width(core, tables.theta[0])
    for i in range(len(binding)):
        costs[i] = -now
        for r in core.all_rows:
            costs[i] += core.expected[r] * core.problem.costs[r, i]
    chosen, least = tables.theta[0], np.inf
    for trial in range(THETAS + 1):
        theta = 0.5 ** float(trial + 1) if trial > 0 else 0.0
        added, worst = _expected_width(core, theta), -np.inf
        for i in range(len(binding)):
            worst = max(worst, (costs[i] + added) / (1.0 - theta) - alpha[binding[i]])
        if worst < least:
            chosen, least = theta, worst
    if chosen != tables.theta[0]:
        tables.theta[0] = chosen
        write_tables(core)
        set_room(core)


@kernel
def _expected_width(core: LPCore, theta: float) -> float:
    """The pessimism of the last policy for the costs that follow, at P_hat."""
    ahead, total = core.rule.tables.cost_width, 0.0
    for r in core.all_rows:
        if core.sets.rule.box.uncertain[r] and core.expected[r] * ahead[r] > 0.0:
            width = width_by_variance(core.index, core.sets.boxes, r, ahead[r], theta)
            total += core.expected[r] * ahead[r] * width
    return total


@kernel
def set_room(core: LPCore) -> None:
    """The thresholds of the program: (1 - theta) alpha, and a little less."""
    for i in range(len(core.baseline.binding)):
        alpha = core.baseline.thresholds[core.baseline.binding[i]]
        core.problem.thresholds[i] = (1.0 - core.rule.tables.theta[0]) * alpha - ROOM * (1.0 + alpha)


@kernel
def visit_expected(core: LPCore) -> None:
    """The expected visits of the last policy at P_hat: a forward pass."""
    index, reach = core.index, core.values
    for x in range(len(reach)):
        reach[x] = 1.0 if x == 0 else 0.0
    for r in core.all_rows:
        core.expected[r] = reach[r // index.num_actions] * core.policy[r]
        for j in range(index.row_start[r], index.row_start[r + 1]):
            mean = mean_transition(index, core.sets.counts, core.sets.rule.box, core.sets.boxes, r, j)
            reach[index.successor[j]] += core.expected[r] * mean


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
        place = core.sets.rule.box.laws.moves_at[r]
        doubled |= core.sets.counts.num_visits[place] >= max(1, 2 * core.planned_visits[place])
    return doubled


@kernel
def _explore(core: LPCore) -> None:
    """The policy that may visit the least known pairs most, mixed with the baseline: safe whatever it costs, and with
    the sets `sharpest` safe by its bounds.
    """
    boxes = core.sets.boxes
    least_cost(core.index, boxes.lower, boxes.upper, core.unknown, core.scratch)
    for x in range(len(core.scratch.action)):
        for a in range(core.index.num_actions):
            core.policy[x * core.index.num_actions + a] = 1.0 if a == core.scratch.action[x] else 0.0
    copy_into(core.baseline.ceilings, core.bounds)  # U of any policy: no episode costs more than its ceiling
    if core.losses.apart:
        least_bounds(core.sets, core.columns, core.policy, core.baseline.thresholds, core.bounds, core.by)
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
