"""Check the aggregate certificate of a file: can episodes have led to it, and do the bounds follow from it?

Its sums cannot be recounted, but they have limits: an open or closed generation of n episodes has visited every layer n
times, a cost adds at most its ceiling and a value at most its range to each of them, and centres are distributions.
"""

from __future__ import annotations

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.estimates.aggregate import Aggregate
from hedgerow.estimates.aggregate_bounds import aggregate_bounds
from hedgerow.estimates.balls import joint_cost_with_balls
from hedgerow.learners.mirror.core import Core
from hedgerow.learners.mirror.sound_counts import layer_sums
from hedgerow.learners.mirror.sound_numbers import TOLERANCE, demand
from hedgerow.model.layout import Layout

NEVER = 2**62


def check_aggregate(layout: Layout, core: Core, own: int) -> None:
    """Check the certificate of a learner that has played at most `own` episodes of its own."""
    aggregate, rule = core.state.aggregate, core.rule.aggregate
    numbers, slots = aggregate.numbers, len(aggregate.generation)
    if not slots:
        return
    demand(numbers.own <= own, f"state.aggregate.numbers: {numbers.own} own episodes of {own}")
    used = aggregate.generation >= 0
    demand(numbers.turn < slots, f"state.aggregate.numbers: turn is {numbers.turn}; there are {slots} slots")
    demand(bool(np.all(aggregate.generation < numbers.started)), "state.aggregate.generation is not started yet")
    young = np.sort(aggregate.generation[used])
    demand(bool(np.all(np.diff(young) > 0)), "state.aggregate.generation: two slots hold the same one")
    demand(int(used.sum()) == min(slots, numbers.started), "state.aggregate.generation: a slot is empty")
    empty = (aggregate.episodes[~used] == 0).all() and (aggregate.visits[~used] == 0).all()
    demand(bool(empty), "state.aggregate: an empty slot has counted episodes")
    demand(bool(np.all(aggregate.episodes <= numbers.own)), "state.aggregate.episodes exceed the own ones")
    for slot in np.flatnonzero(used):
        sums = layer_sums(layout, aggregate.visits[slot].astype(np.float64))
        demand(bool(np.all(sums == aggregate.episodes[slot])), "state.aggregate.visits of a layer are not its episodes")
    p_sums = np.add.reduceat(aggregate.p_hat, layout.row_start[:-1])
    demand(bool(np.all(np.abs(p_sums - 1.0) <= TOLERANCE)), "state.aggregate.p_hat of a row do not sum to 1")
    allowed = aggregate.episodes[:, np.newaxis] * (rule.ceilings + layout.steps * _largest_values(aggregate))
    demand(
        bool(np.all(aggregate.sums <= allowed * (1.0 + TOLERANCE) + TOLERANCE)), "state.aggregate.sums are too large"
    )
    wide = aggregate.ranges[used] >= (1.0 if rule.per_step else rule.ceilings) - TOLERANCE
    demand(bool(np.all(wide)), "state.aggregate.ranges are below what an episode can cost")


def _largest_values(aggregate: Aggregate) -> FloatArray:
    """(slots, m)"""
    largest: FloatArray = np.max(np.abs(aggregate.values), axis=2, initial=0.0)
    return largest


def least_bounds(core: Core) -> FloatArray:
    """(m,): the least that any generation says of the present policy, or its boxes; changes nothing."""
    arrays = core.state.aggregate.as_dict()
    numbers = type(core.state.aggregate.numbers)(core.state.aggregate.numbers.values.copy())
    copy = Aggregate(**{**{name: arrays[name].copy() for name in arrays if name != "numbers"}, "numbers": numbers})
    least = core.state.bounds.copy()
    if len(core.state.balls.radius):
        for i in core.baseline.binding:
            upper, rule = core.state.boxes.cost_upper, core.rule.ball
            near = joint_cost_with_balls(core.index, core.buffers.columns, rule, core.state.balls, upper, i)
            least[i] = min(least[i], near)
    for slot in range(len(copy.generation)):
        copy.numbers.turn, copy.numbers.next_start = slot, NEVER
        bounds = core.state.bounds.copy()
        aggregate_bounds(
            core.index, core.buffers.columns, core.state.policy, core.state.boxes, core.rule.aggregate, copy,
            core.buffers.certificate, bounds,
        )  # fmt: skip
        least = np.minimum(least, bounds)
    return least
