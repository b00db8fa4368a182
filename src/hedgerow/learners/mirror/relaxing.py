"""Raise thresholds that no policy can meet, as far as the estimates tell: by how much, from episode to episode.

On the clean event a projection always has a solution (Lemma feasibility). Without one, the paper allows any occupancy.
Ours is the projection onto thresholds + slack, where the slack exceeds the least violation s* by at most `room`: almost
the least violating choice, which stays a projection of its predecessor (a restart would forget what was learnt).

The sets move little in one episode. Cutting planes, started from the multipliers that proved the last s*, bracket the
present one, lower <= s* <= upper, to room / 8 in a few backward passes. The slack stays as it is as long as

    upper + room / 8 <= slack <= lower + room.

As soon as the constraints can be met, the thresholds are those of the world again. The room keeps Newton's method well
conditioned: its multipliers grow like 1 / room. The room begins at LEAST_ROOM, or 2 % of the violation. It grows when a
projection fails all the same (`rescue.py`) and shrinks back afterwards.
"""

from __future__ import annotations

from hedgerow.compiling.kernels import kernel
from hedgerow.learners.mirror.core import Core
from hedgerow.projection.infeasibility import Bracket, cut_to

LEAST_ROOM = 1e-3
SHARE = 0.02
"""The room may also be this share of the violation."""
SHRINKING = 0.99
"""Factor from one episode to the next of a room that is above the least"""
TOL_INFEASIBLE = 4e-10
"""As in `ProjectionSettings`."""


@kernel
def follow_violation(core: Core) -> None:
    """Choose the slack for the present sets, if the last projection had no solution without it."""
    reals = core.state.reals
    if reals.slack == 0.0:
        return
    slack = reals.slack
    room = max(least_room(slack), SHRINKING * reals.room)
    reals.room = room
    meet(core, 0.0)
    found = bracket_violation(core, 0.125 * room)
    if found.lower <= TOL_INFEASIBLE < found.upper:
        found = bracket_violation(core, 0.0)
    if found.lower <= TOL_INFEASIBLE:
        return
    if not found.upper + 0.125 * room <= slack <= found.lower + room:
        slack = found.upper + 0.5 * room
    meet(core, slack)


@kernel
def least_room(violation: float) -> float:
    """How large the room is at least."""
    return max(LEAST_ROOM, SHARE * violation)


@kernel
def bracket_violation(core: Core, gap: float) -> Bracket:
    """The least violation of the present thresholds over the present sets, up to `gap`, or as exactly as possible."""
    boxes, problem = core.state.boxes, core.buffers.problem
    return cut_to(
        core.index, boxes.lower, boxes.upper, problem.costs, problem.thresholds, gap, core.buffers.planes
    )  # fmt: skip


@kernel
def meet(core: Core, slack: float) -> None:
    """Let the projection meet thresholds + slack from now on."""
    baseline, thresholds = core.baseline, core.buffers.problem.thresholds
    core.state.reals.slack = slack
    for i in range(len(thresholds)):
        thresholds[i] = baseline.thresholds[baseline.binding[i]] + slack
