"""The warning of drift: silent while the law stays, heard when costs rise, and never a claim about the learner."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hedgerow.journal.drift import LEAST_BLOCKS, drift

LIMITS = {"delay": 0.2}


def blocks(means: Any, rng: np.random.Generator, told: int = 20, baseline: Any = 0.1) -> list[dict[str, Any]]:
    shares = np.broadcast_to(baseline, len(means))
    return [
        {"told": told, "baseline": float(share), "costs": {"delay": float(rng.binomial(told, mean))}}
        for mean, share in zip(means, shares, strict=True)
    ]


def test_nothing_is_said_of_few_outcomes() -> None:
    rng = np.random.default_rng(0)
    assert drift([], LIMITS) == {}
    assert drift(blocks([0.1] * (LEAST_BLOCKS - 1), rng), LIMITS) == {}
    assert drift(blocks([0.1] * LEAST_BLOCKS, rng), LIMITS)["delay"]["warning"] == ""


@pytest.mark.parametrize("mean", [0.0, 0.1, 0.2])
def test_a_law_that_stays_is_seldom_warned_of(mean: float) -> None:
    rng = np.random.default_rng(1)
    found = [drift(blocks([mean] * 40, rng), LIMITS)["delay"]["warning"] for _ in range(500)]
    assert sum(map(bool, found)) <= 10  # also with the mean at its limit


def test_costs_above_their_limit_and_costs_that_changed_are_told_apart() -> None:
    rng = np.random.default_rng(2)
    found = drift(blocks([0.05] * 30 + [0.45] * 10, rng), LIMITS)["delay"]
    assert found["warning"] == "above its limit"
    assert found["recent"] == pytest.approx(0.45, abs=0.1)
    assert found["outcomes"] == 200
    assert drift(blocks([0.02] * 30 + [0.15] * 10, rng), LIMITS)["delay"]["warning"] == "changed"


def test_a_learner_that_left_its_baseline_is_not_called_drift() -> None:
    rng = np.random.default_rng(3)
    left = drift(blocks([0.02] * 30 + [0.15] * 10, rng, baseline=[0.9] * 30 + [0.2] * 10), LIMITS)["delay"]
    assert (left["warning"], left["z_before"] > 4.0) == ("", True)


def test_equal_outcomes_of_a_block_do_not_pass_for_many() -> None:
    """Days whose costs are all equal: the scatter of the blocks says how little is known."""
    rng = np.random.default_rng(4)
    found = []
    for _ in range(300):
        days = [{"told": 20, "baseline": 0.1, "costs": {"delay": 20.0 * (rng.random() < 0.15)}} for _ in range(80)]
        found.append(drift(days, LIMITS)["delay"]["warning"])
    assert sum(map(bool, found)) <= 6
