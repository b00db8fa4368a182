"""Check intervals that are older than the counts, or intersections of several: what a file may claim of them.

A box of transitions was made with N' visits of which M' led to each successor, M - (N - N') <= M' <= M; where N' = N it
is recomputed and has to agree. The bounds of a mean cost were intersected with all earlier ones: they are no tighter
than any order of the same costs could have made them, and not wider than the last of them.

    LCB <= LCB(n, min(n, S)), n = floor S or ceil S: all of the sum came first
    LCB >= LCB(K', S') for the least possible S'; and likewise UCB, with F = K - S instead of S

Unknown costs are 0 in the sums of LCB and 1 in those of UCB. A row with unknown moves has an intersection of boxes,
too: each of its bounds is no tighter than any order of the same moves could have made it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hedgerow.checks import BoolArray, FloatArray, IntArray
from hedgerow.errors import InvalidInput
from hedgerow.estimates.balls import follow_counts, make_balls
from hedgerow.estimates.boxes import GROWTH, Boxes, make_boxes
from hedgerow.estimates.kt import kt_interval
from hedgerow.estimates.unknowns import make_unknowns
from hedgerow.learners.mirror.base import MirrorLearner
from hedgerow.learners.mirror.core import Core
from hedgerow.model.layout import Layout

TOLERANCE = 1e-9


def check_gradual_boxes(learner: MirrorLearner) -> None:
    """Check the boxes of a learner whose rows are refreshed when their visits have grown."""
    core, layout = learner.core, learner.layout
    state, laws = core.state, core.rule.box.laws
    boxes, counts = state.boxes, state.counts
    for name, then, now in (
        ("visits", boxes.visits, counts.num_visits + counts.unknown_moves),
        ("cost_visits", boxes.cost_visits, counts.num_costs),
    ):
        late = (then > now) | ((now > then) & (GROWTH * (now - then) >= then) & (core.rule.epochs == 0))
        if name == "visits":
            late = np.where(core.rule.box.uncertain == 1, late, then > 0)
        if np.any(late):
            row = layout.describe_row(int(np.flatnonzero(late)[0]))
            raise InvalidInput(f"state.boxes.{name} of {row} do not belong to the counts")
    _check_known(learner)
    _check_costs(core, boxes)
    _check_moves(learner)
    rows = layout.row_of_triple
    twin = layout.row_start[laws.moves_at[rows]] + np.arange(layout.num_triples) - layout.row_start[rows]
    for name, place in (("lower", twin), ("upper", twin), ("cost_lower", laws.costs_at), ("cost_upper", laws.costs_at)):
        array = getattr(boxes, name)
        if not np.array_equal(array, array[place]):
            raise InvalidInput(f"state.boxes.{name} differ between rows that share a law")


def _check_known(learner: MirrorLearner) -> None:
    """Check that what is known has been the same from the start."""
    layout, view, rule, boxes = learner.layout, learner.view, learner.core.rule.box, learner.core.state.boxes
    start = make_boxes(make_unknowns(layout, view.num_constraints, view.knowledge), clip_costs=bool(rule.clip_costs))
    moves, costs = (rule.uncertain == 0)[layout.row_of_triple], rule.unknown_costs == 0
    for name, known in (("lower", moves), ("upper", moves), ("cost_lower", costs), ("cost_upper", costs)):
        if not np.array_equal(getattr(boxes, name)[known], getattr(start, name)[known]):
            raise InvalidInput(f"state.boxes.{name} differ from what is known")


def check_balls(layout: Layout, core: Core) -> None:
    """Check that balls are those of earlier counts, and that their radii follow from these."""
    balls, counts, index, laws = core.state.balls, core.state.counts, core.index, core.rule.box.laws
    if not len(balls.radius):
        return
    wide, sums = core.rule.ball.wide == 1, np.add.reduceat(balls.moves, layout.row_start[:-1])
    _refuse_balls(np.any(sums != balls.visits) or np.any(balls.visits[~wide] > 0), "visits")
    _refuse_balls(bool(np.any(balls.visits > counts.num_visits[laws.moves_at])), "visits")
    rows = layout.row_of_triple
    twin = layout.row_start[laws.moves_at[rows]] + np.arange(layout.num_triples) - layout.row_start[rows]
    _refuse_balls(bool(np.any(balls.moves > counts.num_moves[twin])), "moves")
    fresh = make_balls(wide, layout.num_triples)
    none = np.zeros_like(counts.unknown_moves)  # a ball is made before moves of its row are unknown
    past = counts.replace(num_visits=balls.visits, num_moves=balls.moves, unknown_moves=none)
    alone = laws.replace(moves_at=np.arange(layout.num_rows, dtype=np.int64))
    follow_counts(index, alone, past, core.rule.ball, core.buffers.all_rows, fresh)
    _refuse_balls(bool(np.any(np.abs(fresh.radius - balls.radius) > TOLERANCE * (1.0 + fresh.radius))), "radius")


def _refuse_balls(wrong: Any, name: str) -> None:
    if wrong:
        raise InvalidInput(f"state.balls.{name} are not those of any earlier counts")


def _check_costs(core: Core, boxes: Boxes) -> None:
    rule, counts = core.rule.box, core.state.counts
    unknown, scale = rule.unknown_costs == 1, rule.radii.scale
    first = (rule.laws.costs_at == np.arange(len(counts.num_costs)))[:, np.newaxis] & unknown
    lower, upper = boxes.cost_lower, boxes.cost_upper
    now, then = (np.broadcast_to(n[:, np.newaxis], unknown.shape)[first] for n in (counts.num_costs, boxes.cost_visits))
    total, unknown_ones, log = counts.cost_sums[first], counts.unknown_costs[first], rule.radii.cost_log
    least, most = np.maximum(0.0, total - (now - then)), np.minimum(total + unknown_ones, then)
    failures = now - total - unknown_ones
    highest = np.maximum(*(_scaled(n, np.minimum(n, total), log, scale)[0] for n in (np.floor(total), np.ceil(total))))
    few, many = np.floor(failures), np.ceil(failures)
    lowest = np.minimum(*(_scaled(n, np.maximum(0.0, n - failures), log, scale)[1] for n in (few, many)))
    wide_low, wide_high = _scaled(then, least, log, scale)[0], _scaled(then, most, log, scale)[1]
    if not rule.clip_costs:
        wide_low = np.where(then > 0, wide_low, -1.0)  # where there is nothing yet, as it was at the start
    _refuse((lower[first] > highest + TOLERANCE) | (lower[first] < wide_low - TOLERANCE), "cost_lower")
    _refuse((upper[first] < lowest - TOLERANCE) | (upper[first] > wide_high + TOLERANCE), "cost_upper")
    _refuse(np.any(lower > upper + TOLERANCE, axis=1), "cost_lower")
    width = np.max(upper - lower, axis=1, initial=0.0) / 2.0
    seen = boxes.cost_visits[rule.laws.costs_at] > 0
    _refuse((np.abs(boxes.xi - width) > TOLERANCE) & seen & np.any(unknown, axis=1), "xi")


def _check_moves(learner: MirrorLearner) -> None:
    """Check that boxes are no narrower than some M' makes them, with tightening by the others of their row."""
    core, layout = learner.core, learner.layout
    rule, counts, boxes = core.rule.box, core.state.counts, core.state.boxes
    row = layout.row_of_triple
    checked = (rule.uncertain == 1)[row] & (rule.laws.moves_at == np.arange(layout.num_rows))[row]
    now, then = counts.num_visits[row], boxes.visits[row]
    moves = counts.num_moves
    least = np.maximum(0, moves - (now - then)).astype(np.float64)
    most = np.minimum(moves, then).astype(np.float64)
    log, scale = rule.radii.transition_log, rule.radii.scale
    lower, upper = _scaled(then, most, log, scale)[0], _scaled(then, least, log, scale)[1]
    starts = layout.row_start[:-1]
    others_upper = np.add.reduceat(upper, starts)[row] - upper
    others_lower = np.add.reduceat(lower, starts)[row] - lower
    share = np.maximum(1, then)
    lower = np.minimum(np.maximum(lower, 1.0 - others_upper), most / share)
    upper = np.maximum(np.minimum(upper, 1.0 - others_lower), least / share)
    lower, upper = _with_unknown_moves(learner, lower, upper)
    seen = checked & (then > 0)
    _refuse(seen & (boxes.lower > lower + TOLERANCE), "lower")
    _refuse(seen & (boxes.upper < upper - TOLERANCE), "upper")
    _refuse(checked & (then == 0) & ((boxes.lower > 0.0) | (boxes.upper < 1.0)), "lower")


def _with_unknown_moves(learner: MirrorLearner, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The same ends, for rows with unknown moves the tightest that any order of the known ones can lead to."""
    core, layout = learner.core, learner.layout
    row, counts, radii = layout.row_of_triple, core.state.counts, core.rule.box.radii
    moves = counts.num_moves.astype(np.float64)
    failures = counts.num_visits[row] - counts.num_moves
    highest = _scaled(counts.num_moves, moves, radii.transition_log, radii.scale)[0]
    lowest = _scaled(failures, np.zeros(len(failures)), radii.transition_log, radii.scale)[1]
    starts, some = layout.row_start[:-1], (counts.unknown_moves > 0)[row]
    others_lowest = np.add.reduceat(lowest, starts)[row] - lowest
    others_highest = np.add.reduceat(highest, starts)[row] - highest
    return (
        np.where(some, np.maximum(highest, 1.0 - others_lowest), lower),
        np.where(some, np.minimum(lowest, 1.0 - others_highest), upper),
    )


def _scaled(num: IntArray | FloatArray, total: FloatArray, log: float, scale: float) -> tuple[FloatArray, FloatArray]:
    whole = np.asarray(num, dtype=np.int64)
    lower, upper = kt_interval(whole, np.minimum(total, whole), log)
    mean = total / np.maximum(1, whole)
    drawn_in = (whole > 0) & (scale < 1.0)
    low: FloatArray = np.where(drawn_in, mean - scale * (mean - lower), lower)
    high: FloatArray = np.where(drawn_in, mean + scale * (upper - mean), upper)
    return low, high


def _refuse(wrong: BoolArray, name: str) -> None:
    if np.any(wrong):
        raise InvalidInput(f"state.boxes.{name} are not what any episodes with these counts make of them")
