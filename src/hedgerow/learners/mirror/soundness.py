"""Check that a learner can be in a restored state: a file with a right checksum may still be wrong.

A state is sound if every number is in its range and every derived number follows from its sources: boxes from counts,
rates from the horizon, the row weights from policy and conditionals, bounds and the mixing weight from all of these.
Then the ledger of the learner is true. Each refusal names the entry.

A new array of the state needs one line in RANGES, a new number one in NUMBER_RANGES or REAL_RANGES.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import InvalidInput
from hedgerow.estimates.balls import UNSEEN
from hedgerow.learners.mirror.base import MirrorLearner
from hedgerow.learners.mirror.mixing import MOST_SKIPPED
from hedgerow.learners.mirror.sound_aggregate import check_aggregate
from hedgerow.learners.mirror.sound_boxes import check_boxes
from hedgerow.learners.mirror.sound_counts import check_counts, check_epochs
from hedgerow.learners.mirror.sound_intervals import check_balls
from hedgerow.learners.mirror.sound_iterate import (
    LOOSE,
    check_cached_bounds,
    check_conditionals,
    check_iterate,
    check_mixing,
    check_open,
)
from hedgerow.learners.mirror.sound_numbers import TOLERANCE, check_declared, check_numbers, check_rates
from hedgerow.learners.mirror.sound_premises import check_premises
from hedgerow.learners.mirror.sound_search import check_policies, check_summed_costs
from hedgerow.learners.mirror.state import PROJECTED, RELAXED, UNSOLVED, Numbers, Reals
from hedgerow.learners.mirror.step import SMALLEST_CONDITIONAL, prepare
from hedgerow.model.view import View
from hedgerow.projection.workspace import NO_SYSTEM

LARGEST = 2.0**53
"""Up to here counters are exact as real numbers."""
HUGE = 1e200

RANGES: Mapping[str, tuple[float, float]] = {
    "log_weight": (-HUGE, LOOSE),
    "conditional": (SMALLEST_CONDITIONAL * (1.0 - TOLERANCE), 1.0 + TOLERANCE),
    "bound": (-1, 1),
    "system.diagonal": (-HUGE, HUGE),
    "system.coupling": (-HUGE, HUGE),
    "system.border": (-HUGE, HUGE),
    "system.schur": (-HUGE, HUGE),
    "system.candidate": (0, LARGEST),
    "system.num_candidates": (NO_SYSTEM, LARGEST),
    "policy": (0.0, 1.0 + TOLERANCE),
    "counts.num_visits": (0, LARGEST),
    "counts.num_moves": (0, LARGEST),
    "counts.num_costs": (0, LARGEST),
    "counts.cost_sums": (0.0, LARGEST),
    "counts.unknown_moves": (0, LARGEST),
    "counts.unknown_costs": (0, LARGEST),
    "boxes.lower": (0.0, 1.0),
    "boxes.upper": (0.0, 1.0),
    "boxes.cost_lower": (-1.0, 1.0),
    "boxes.cost_upper": (0.0, 2.0),
    "boxes.xi": (0.0, 1.0),
    "boxes.visits": (0, LARGEST),
    "boxes.cost_visits": (0, LARGEST),
    "epoch_visits": (0, LARGEST),
    "multipliers": (0.0, HUGE),
    "certificate": (0.0, 1.0 + TOLERANCE),
    "bounds": (0.0, HUGE),
    "baseline_u": (0.0, 1.0 + TOLERANCE),
    "baseline_visits": (0, LARGEST),
    "search.weights": (0.0, 1.0 + TOLERANCE),
    "search.cost_sums": (0.0, HUGE),
    "search.squares": (0.0, HUGE),
    "search.policies": (0.0, 1.0 + TOLERANCE),
    "search.facts": (-HUGE, HUGE),
    "search.broken": (0, LARGEST),
    "aggregate.p_hat": (0.0, 1.0 + TOLERANCE),
    "aggregate.g_hat": (0.0, 1.0),
    "aggregate.values": (0.0, HUGE),
    "aggregate.ranges": (0.0, HUGE),
    "aggregate.sums": (0.0, HUGE),
    "aggregate.squares": (0.0, HUGE),
    "aggregate.visits": (0, LARGEST),
    "aggregate.episodes": (0, LARGEST),
    "aggregate.generation": (-1, LARGEST),
    "aggregate.closed": (0, 1),
    "aggregate.best": (0, LARGEST),
    "aggregate.numbers": (0, LARGEST),
    "balls.moves": (0, LARGEST),
    "balls.visits": (0, LARGEST),
    "balls.radius": (0.0, UNSEEN),
    "premises.visits": (0, LARGEST),
    "premises.moves": (0, LARGEST),
    "premises.sums": (0.0, LARGEST),
    "premises.due": (0, LARGEST),
    "premises.low_moves": (0.0, 1.0),
    "premises.high_moves": (0.0, 1.0),
    "premises.low_costs": (0.0, 1.0),
    "premises.high_costs": (0.0, 1.0),
    "premises.baseline_sums": (0.0, LARGEST),
    "premises.numbers": (0, LARGEST),
    "premises.figures": (0.0, HUGE),
    "patience": (0, MOST_SKIPPED),
    "logged": (0, LARGEST),
    "incomplete": (0, LARGEST),
    "numbers": (0, LARGEST),
    "reals": (0.0, HUGE),
}
"""The range of the entries of each array of a state"""

NUMBER_RANGES: Mapping[str, int] = {
    "pending": 1,
    "open": 1,
    "phase_over": 1,
    "stale": 1,
    "moved": 1,
    "last_status": max(PROJECTED, RELAXED, UNSOLVED),
}
"""The largest value of those numbers that do not count anything."""

REAL_RANGES: Mapping[str, float] = {"mixing": 1.0}


def check_sizes(view: View, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Refuse a state that is too short for its world, before memory for that world is allocated.

    Everything else is as long as the conditionals of the file, which bound the layout already.
    """
    layout, m = view.layout, view.num_constraints
    sizes = np.array(layout.layer_sizes[:-1], dtype=np.float64)
    needed = {
        "counts.cost_sums": layout.num_rows * m,
        "system.diagonal": float(np.sum(sizes**2)),
        "system.coupling": float(np.sum(sizes[:-1] * sizes[1:])),
    }
    for name, size in needed.items():
        if arrays[name].size != size:
            raise InvalidInput(f"state.{name} has {arrays[name].size} entries; this world needs {size:.0f}")


def check_ranges(arrays: Mapping[str, NDArray[Any]]) -> None:
    """Check every entry of every array by itself."""
    for name, array in arrays.items():
        low, high = RANGES.get(name, (-np.inf, np.inf))
        outside = ~((array >= low) & (array <= high) & np.isfinite(array))  # NaN is outside everything
        if outside.any():
            place = tuple(int(i) for i in np.argwhere(outside)[0])
            raise InvalidInput(
                f"state.{name} is {array[place].item()!r} at {place}; it must lie in [{low:g}, {high:g}]"
            )
    records = (("numbers", Numbers, NUMBER_RANGES), ("reals", Reals, REAL_RANGES))
    for name, record, largest in records:
        for field, most in largest.items():
            value = arrays[name][record.place(field)].item()
            if value > most:
                raise InvalidInput(f"state.{name}: {field} is {value!r}; it must lie in [0, {most:g}]")


def check_indices(arrays: Mapping[str, NDArray[Any]], num_baselines: int) -> None:
    """Check the indices that compiled code uses without a check."""
    branch = Numbers(arrays["numbers"]).branch
    if branch > num_baselines:
        raise InvalidInput(f"state.numbers: branch is {branch}; there are {num_baselines} baselines")
    if np.any(arrays["aggregate.best"] >= arrays["aggregate.generation"].size):
        raise InvalidInput("state.aggregate.best names a slot that does not exist")
    candidates, count = arrays["system.candidate"], int(arrays["system.num_candidates"][0])
    if count > candidates.size or np.any(candidates >= candidates.size):
        raise InvalidInput("state.system.candidate names a constraint that does not exist")
    if np.any(np.diff(candidates[: max(0, count)]) <= 0):
        raise InvalidInput("state.system.candidate must ascend")


def check_state(learner: MirrorLearner, given: Mapping[str, NDArray[Any]]) -> None:
    """Check the state that was restored from `given`; recompute what follows from it in the learner's own arrays."""
    core, layout, settings = learner.core, learner.layout, learner.settings
    state, episode = core.state, learner.episode
    check_numbers(learner)
    check_declared(learner)
    begun = learner.begun
    discarded = begun if settings.phase2_stats == "discard" else 0
    tied, logged = bool(core.rule.tied), state.logged
    check_counts(layout, state, core.rule.box.laws, tied, episode - discarded + logged.episodes)
    check_epochs(layout, state, core.rule.epochs, tied, begun - discarded)
    whole = not (state.incomplete.values.any() or state.search.broken.values.any())
    complete = not tied and not logged.episodes and whole
    if complete and (core.search.active or (begun and not discarded)):
        seen = state.counts.cost_sums[:, learner.view.binding].sum(axis=0)
        check_summed_costs(state.search, seen, bool(core.search.active))
    check_boxes(learner)
    check_balls(layout, core)
    check_premises(layout, core, episode, forgotten=discarded > 0)
    check_aggregate(layout, core, episode - begun)
    check_policies(layout, "policy", state.policy)
    check_rates(learner)
    check_conditionals(layout, state.conditional)
    settled = not state.numbers.open
    if settled:
        check_iterate(learner)
    else:
        check_open(layout, state.log_weight)
    prepare(core)
    check_mixing(learner, given, settled)
    check_cached_bounds(learner)
