"""Tables of many states become worlds in time that grows as the table does."""

from __future__ import annotations

import time

import numpy as np
import pytest

import hedgerow as hr

CHAIN = 30_000
LONGEST = 10.0
"""Processor seconds; one look through all states for each state would take several times as many."""


def chain(states: int) -> dict[str, list[object]]:
    """Every state has two actions that both lead to the next one."""
    here = [f"s{i}" for i in range(states) for _ in range(2)]
    there = [f"s{i + 1}" if i + 1 < states else "end" for i in range(states) for _ in range(2)]
    return {"state": here, "action": ["slow", "fast"] * states, "next_state": there, "fuel": [0.0, 0.5] * states}


@pytest.mark.slow
def test_a_long_chain_is_read_in_one_pass() -> None:
    table = chain(CHAIN)
    begun = time.process_time()
    world = hr.from_table(table, thresholds={"fuel": 1.0})
    assert time.process_time() - begun < LONGEST
    layout = world.cmdp.layout
    assert layout.steps == CHAIN
    assert layout.num_triples == 2 * CHAIN
    np.testing.assert_array_equal(layout.successor, np.repeat(np.arange(1, CHAIN + 1), 2))


def test_a_wide_table_needs_no_table_of_all_pairs() -> None:
    width = 3_000  # a table of all pairs of two such layers would take 72 megabytes, and more for actions and bounds
    here = ["start"] * width + [f"a{i}" for i in range(width)] + [f"b{i}" for i in range(width)]
    there = [f"a{i}" for i in range(width)] + [f"b{(7 * i) % width}" for i in range(width)] + ["end"] * width
    chance = [1.0 / width] * width + [1.0] * (2 * width)
    table = {"state": here, "action": ["go"] * len(here), "next_state": there, "probability": chance}
    world = hr.from_table(table, thresholds={})
    layout = world.cmdp.layout
    assert layout.layer_sizes == (1, width, width, 1)
    assert layout.num_triples == 3 * width
    labels = layout.state_labels
    assert labels is not None
    for row in (1, 2, 1_000):
        (target,) = layout.successor[layout.row_start[row] : layout.row_start[row + 1]]
        assert labels[target] == f"b{7 * (row - 1) % width}"


def test_successors_are_found_whatever_the_order_of_the_lines() -> None:
    table = {
        "state": ["x", "x", "a", "b"],
        "action": ["go"] * 4,
        "next_state": ["b", "a", "end", "end"],
        "probability": [0.75, 0.25, 1.0, 1.0],
    }
    world = hr.from_table(table, thresholds={})
    labels = world.cmdp.layout.state_labels
    assert labels is not None
    found = {labels[y]: p for y, p in zip(world.cmdp.layout.successor[:2], world.cmdp.transitions[:2], strict=True)}
    assert found == {"a": 0.25, "b": 0.75}


def test_an_unrolled_table_is_kept_sparse() -> None:
    n = 400
    table = {
        "state": [f"s{i}" for i in range(n) for _ in range(2)],
        "action": ["left", "right"] * n,
        "next_state": [f"s{(i + d) % n}" for i in range(n) for d in (-1, 1)],
        "fuel": [0.0, 1.0] * n,
    }
    world = hr.from_table(table, thresholds={"fuel": 1.0}, steps=3, start="s0")
    assert world.cmdp.layout.steps == 3
    assert world.cmdp.mean_costs[0, :2].tolist() == [0.0, 1.0]
