"""Compares the costs of the last outcomes with their limits and with those before. It warns, and promises nothing.

Outcomes are summed in blocks (`Sums.blocks`). The last quarter of the blocks is the window. Its mean cost is compared
with the limit and with the mean of all blocks before, in standard errors z that are estimated from the scatter of the
blocks; so what outcomes of one block share is allowed for.

above its limit   z > 3 above the limit. While the promises hold, no expected cost is above it: a false warning is rare.
changed           |z| > 4 between the window and what came before, while the learner left about as much to its baseline
                  as before. Costs change as well when a learner changes its own policy: look, do not conclude.

Every look is a test of its own, so that over years some warnings are false; and a change that is small beside the
scatter, or that keeps the mean, is not seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

LEAST_BLOCKS = 12
"""Below these nothing is said"""
ABOVE, CHANGED = 3.0, 4.0
"""Standard errors"""
SAME_SHARE = 0.05
"""By how much the share of the baseline may differ between two windows that are compared"""


def drift(history: Sequence[Mapping[str, Any]], thresholds: Mapping[str, float]) -> dict[str, dict[str, Any]]:
    """What the last quarter of the outcomes says, by constraint; empty while there are too few.

    Args:
        history: The blocks, as `Journal.status` has them: how many outcomes, the share left to the baseline, and the
            sums of the costs.
        thresholds: The limits in force.
    """
    if len(history) < LEAST_BLOCKS:
        return {}
    split = len(history) - len(history) // 4
    told = np.array([block["told"] for block in history], dtype=np.float64)
    shares = np.array([block["baseline"] for block in history])
    recent, before = slice(split, None), slice(0, split)
    same = abs(np.average(shares[recent], weights=told[recent]) - np.average(shares[before], weights=told[before]))
    found = {}
    for name, limit in thresholds.items():
        sums = np.array([block["costs"][name] for block in history])
        (now, error), (then, other) = _mean(sums[recent], told[recent]), _mean(sums[before], told[before])
        above, changed = (now - limit) / error, (now - then) / float(np.hypot(error, other))
        is_changed = abs(changed) > CHANGED and same <= SAME_SHARE
        found[name] = {
            "outcomes": int(told[recent].sum()), "recent": now, "before": then, "z_limit": above, "z_before": changed,
            "warning": "above its limit" if above > ABOVE else "changed" if is_changed else "",
        }  # fmt: skip
    return found


def _mean(sums: np.ndarray[Any, Any], told: np.ndarray[Any, Any]) -> tuple[float, float]:
    """The mean cost of an outcome, and its standard error by the scatter of the blocks; never 0."""
    total = told.sum()
    mean = sums.sum() / total
    scatter = float(np.sum(told * (sums / told - mean) ** 2)) / (len(told) - 1)
    return float(mean), float(np.sqrt((scatter + 1.0 / total) / total))
