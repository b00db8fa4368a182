"""The kernels of UCPD and BoB-PD: the loss of an episode weighted by multipliers, a projection, and the multipliers.

    weigh_all, weigh_path     l + sum_i lambda_i g_i, of all pairs, or estimated on the pairs of a path
    descend                   the projection of q~ e^{-tilt / inertia} onto the boxes; left open where it resists
    take                      occupancy, policy and multipliers of the next episode

`observe` and the compiled loop both call these; `flow.py` has the mathematics.
"""

from __future__ import annotations

from math import exp, log

from hedgerow.checks import FloatArray, IntArray
from hedgerow.compiling.bundles import Bundle, Record
from hedgerow.compiling.kernels import copy_into, kernel
from hedgerow.confidence.bounds import Columns, load_columns, reach_of_states
from hedgerow.confidence.sets import LossSets, Sets
from hedgerow.learners.field.loop import (
    FieldCore,
    FieldRun,
    check_sets,
    close_episode,
    count_played,
    end_episode,
    play_episode,
)
from hedgerow.learners.kernels import Losses
from hedgerow.model.kernel_layout import triples_of
from hedgerow.model.random_streams import Stream
from hedgerow.projection.newton import SOLVED
from hedgerow.projection.projector import ProjectionBuffers, solve_on


class FlowRule(Bundle):
    """What stays the same from the first episode to the last."""

    full: bool
    """Whether the losses and costs of all pairs are seen"""
    queues: bool
    """Whether the multipliers are the queues of UCPD, or those of BoB-PD"""
    share: float
    """s"""
    pull: float
    """The factor of the loss: V of UCPD, 1 for BoB-PD"""
    inertia: float
    """The tilt is the weighted loss divided by this: a of UCPD, sqrt(T) for BoB-PD"""
    gamma: float
    """What implicit exploration adds to the occupancy bounds; of no use with full feedback"""
    ceiling: float
    """The largest multiplier of BoB-PD"""
    settings: FloatArray
    """(3,): tolerance, suspect multiplier and suspect number of iterations of the projection"""


class FlowNumbers(Record):
    """Where a learner is between two episodes."""

    open: int
    """1 while a projection waits for the slow solver"""


class FlowCore(Bundle):
    """What the kernels of a flow learner work on."""

    field: FieldCore
    rule: FlowRule
    numbers: FlowNumbers
    sets: Sets
    losses: LossSets
    thresholds: FloatArray
    """(m,)"""
    flow: FloatArray
    """(num_triples,): the occupancy q of the next episode"""
    dual: FloatArray
    """(m,): the multipliers of the next episode"""
    largest: FloatArray
    """(1,): max |lambda|_1 so far; UCPD does not use it"""
    uniform: FloatArray
    """(num_triples,): 1 / (triples of the layer)"""
    tilt: FloatArray
    """(num_rows,)"""
    costs: FloatArray
    """(num_rows, m): those that the queues of UCPD are updated by"""
    excess: FloatArray
    """(m,): c - alpha of BoB-PD"""
    columns: Columns
    """The boxes as the policy meets them, of which u of its episode is computed"""
    targets: IntArray
    """(L,): the states of a path"""
    reach: FloatArray
    """(L,): how surely the policy may reach them"""
    desk: ProjectionBuffers


@kernel
def run_block(core: FlowCore, run: FieldRun, given: Losses, first: int, coin: Stream) -> tuple[int, bool]:
    """The loop of `loop.py`: how many of the block are done, and whether the last of them is closed.

    It is not if its projection needs the slow solver: then the learner has to `complete` it first.
    """
    field, path = core.field, run.path
    for i in range(first, len(given.pattern)):
        if not play_episode(field, run, given, i, coin):
            return i, True
        count_played(core.sets, core.losses, field, run)
        end_episode(field, run)
        if core.rule.full:
            weigh_all(core, run.all_losses, run.all_costs)
        else:
            weigh_path(core, path.rows, path.losses, path.costs)
        descend(core, core.rule.share)
        check_sets(core.sets, run)
        if core.numbers.open:
            return i + 1, False
        if close_episode(field, run):
            return i + 1, True
    return len(given.pattern), True


@kernel
def weigh_all(core: FlowCore, losses: FloatArray, costs: FloatArray) -> None:
    """The loss (num_rows,) and the costs (num_rows, m) of all pairs, weighted by the multipliers."""
    for i in range(len(core.dual)):
        core.excess[i] = -core.thresholds[i]
    for r in range(len(losses)):
        total, mass = core.rule.pull * losses[r], row_mass(core, r)
        for i in range(len(core.dual)):
            total += costs[r, i] * core.dual[i]
            core.excess[i] += mass * costs[r, i]
            core.costs[r, i] = costs[r, i]
        core.tilt[r] = total


@kernel
def weigh_path(core: FlowCore, rows: IntArray, losses: FloatArray, costs: FloatArray) -> None:
    """The losses (L,) of a path divided by u + gamma, 0 elsewhere; and the costs (L, m) in the same way (BoB-PD), or
    the lower bounds of the mean costs of all pairs (UCPD-IX), weighted by the multipliers.
    """
    weigh_nothing(core)
    index, policy = core.field.index, core.field.policy
    for k in range(len(rows)):
        core.targets[k] = rows[k] // index.num_actions
    reach_of_states(index, core.columns, core.targets, len(rows), core.reach)
    for k in range(len(rows)):
        total = core.rule.pull * losses[k]
        for i in range(0 if core.rule.queues else len(core.dual)):
            total += costs[k, i] * core.dual[i]
        core.tilt[rows[k]] += total / (policy[rows[k]] * core.reach[k] + core.rule.gamma)
    for i in range(len(core.dual)):
        core.excess[i] = -core.thresholds[i]
        for k in range(len(rows)):
            core.excess[i] += costs[k, i]


@kernel
def weigh_nothing(core: FlowCore) -> None:
    """What is left of `weigh_path` if the path says nothing about the plan: the bounds of UCPD-IX."""
    for i in range(len(core.dual)):
        core.excess[i] = 0.0
    for r in range(len(core.tilt)):
        core.tilt[r] = 0.0
        for i in range(len(core.dual) if core.rule.queues else 0):
            core.costs[r, i] = core.sets.boxes.cost_lower[r, i]
            core.tilt[r] += core.costs[r, i] * core.dual[i]


@kernel
def row_mass(core: FlowCore, row: int) -> float:
    """q(x,a) of the next episode."""
    start, stop = triples_of(core.field.index, row)
    mass = 0.0
    for j in range(start, stop):
        mass += core.flow[j]
    return mass


@kernel
def descend(core: FlowCore, share: float) -> None:
    """Replace the occupancy by the projection of q~ e^{-tilt / inertia} onto the present boxes; the rest follows.

    A projection that resists stays open: `take` has to be called when the slow solver has put it on the desk.
    """
    desk, inertia, index = core.desk, core.rule.inertia, core.field.index
    if not core.rule.queues:
        inertia *= 1.0 + core.largest[0]
    for r in range(len(core.tilt)):
        start, stop = triples_of(index, r)
        for j in range(start, stop):
            shared = (1.0 - share) * core.flow[j] + share * core.uniform[j]
            desk.log_base[j] = log(shared) - core.tilt[r] / inertia
    for x in range(len(desk.v)):
        desk.v[x] = 0.0
    core.numbers.open = 1
    tol, theta, iterations = core.rule.settings[0], core.rule.settings[1], int(core.rule.settings[2])
    if solve_on(desk, tol, theta, iterations).code == SOLVED:
        take(core)


@kernel
def take(core: FlowCore) -> None:
    """Take the occupancy that is on the desk, and update the multipliers."""
    core.numbers.open = 0
    for j in range(len(core.flow)):
        core.flow[j] = exp(core.desk.log_q[j])
    copy_into(core.desk.policy, core.field.policy)
    keep_bounds(core)
    for i in range(len(core.dual)):
        if core.rule.queues:
            cost = 0.0
            for r in range(len(core.tilt)):
                cost += row_mass(core, r) * core.costs[r, i]
            core.dual[i] = max(0.0, core.dual[i] + cost - core.thresholds[i])
        else:
            raised = core.dual[i] + core.excess[i] / core.rule.inertia
            core.dual[i] = min(max(raised, 0.0), core.rule.ceiling)
    note_dual(core)
    core.largest[0] = max(core.largest[0], core.field.notes[0])


@kernel
def note_dual(core: FlowCore) -> None:
    """What is kept of the next plan: the sum of the multipliers."""
    total = 0.0
    for i in range(len(core.dual)):
        total += core.dual[i]
    core.field.notes[0] = total


@kernel
def keep_bounds(core: FlowCore) -> None:
    """Keep the boxes as the policy meets them: u of the next episode must not see that episode."""
    if not core.rule.full:
        load_columns(core.field.index, core.sets.boxes.lower, core.sets.boxes.upper, core.field.policy, core.columns)
