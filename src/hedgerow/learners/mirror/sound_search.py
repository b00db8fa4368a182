"""Check the search of CV-OPS: its facts must follow from its sums.

After t episodes the margin and the radius are functions of the summed costs and of t; a search that has ended did so
because its rule was met, and left rho_hat = margin - radius.
"""

from __future__ import annotations

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.errors import InvalidInput
from hedgerow.learners.mirror.safe_search import (
    EARLIEST_STOP,
    Facts,
    Search,
    SearchRule,
    needed_margin,
    stopping_radius,
)
from hedgerow.model.layout import Layout

TOLERANCE = 1e-9


def check_search(rule: SearchRule, search: Search, capacity: int, episode: int, over: bool) -> None:
    """Check sums, weights and facts after `episode` episodes of the search; `over`: it ended with the last one."""
    t, facts, expected = episode, search.facts, Facts()
    if np.any(search.cost_sums < 0.0) or np.any(search.cost_sums > t * rule.steps):
        raise InvalidInput(f"state.search.cost_sums must lie in [0, L] per episode; there were {t} episodes")
    if np.any(search.squares > (t if rule.variance else 0) * (1.0 + TOLERANCE)):
        raise InvalidInput(f"state.search.squares are too large; there were {t} episodes")
    if abs(float(search.weights.sum()) - 1.0) > TOLERANCE or np.any(search.weights < 0.0):
        raise InvalidInput("state.search.weights must be positive and sum to 1")
    if t > 0:
        margin = float(np.min(rule.thresholds - search.cost_sums / t))
        radius = stopping_radius(rule, search.squares, capacity, t)
        expected.margin, expected.radius = margin, radius
        if over:
            expected.rho_hat, expected.t_bar = margin - radius, t
            if t < EARLIEST_STOP or margin < needed_margin(rule, radius, t) - TOLERANCE or margin <= radius:
                raise InvalidInput(f"state.search: a margin of {margin!r} after {t} episodes does not end the search")
    if np.any(np.abs(facts.values - expected.values) > TOLERANCE * (1.0 + np.abs(expected.values))):
        raise InvalidInput(
            f"state.search.facts are {facts.values.tolist()}; the summed costs make them {expected.values.tolist()} "
            f"({', '.join(Facts.fields)})"
        )


def check_policies(layout: Layout, name: str, policies: FloatArray) -> None:
    """Check policies (..., num_rows) of learners, whose probabilities sum to 1 up to rounding."""
    sums = policies.reshape(-1, layout.num_decision_states, layout.num_actions).sum(axis=2)
    off = np.argwhere(np.abs(sums - 1.0) > TOLERANCE)
    if len(off):
        j, x = (int(i) for i in off[0])
        raise InvalidInput(f"state.{name}: policy {j} in {layout.describe_state(x)} does not sum to 1")


def check_summed_costs(search: Search, seen: FloatArray, searching: bool) -> None:
    """Check that the search saw what was counted: `seen` (m,), for the constraints that bind, in it and afterwards."""
    rounding = TOLERANCE * (1.0 + seen)
    if np.any(search.cost_sums > seen + rounding) or (searching and np.any(search.cost_sums < seen - rounding)):
        raise InvalidInput("state.search.cost_sums are not the sums of state.counts.cost_sums")


def end_of_search(search: Search, episode: int) -> int:
    """t_bar, as a whole number, of a search in which `episode` episodes have been played so far."""
    t_bar, broken = search.facts.t_bar, search.broken
    if t_bar != np.floor(t_bar) or not 0.0 <= t_bar + broken.skipped <= episode:
        raise InvalidInput(f"state.search.facts: t_bar is {t_bar!r}, not a number of episodes; there were {episode}")
    if broken.filled > (t_bar or episode - broken.skipped):
        raise InvalidInput(f"state.search.broken: filled is {broken.filled}, more than the episodes of the search")
    return int(t_bar)
