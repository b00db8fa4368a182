"""`python -m bench plans`: boxes around the truth, both solvers with the same value, a small run."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
from bench_runs import invoke

from bench.episode_worlds import catalogue_world
from bench.plans import PlanSpeed, boxes_after

TINY = PlanSpeed(worlds=1, plans=3, programs=1)


def test_boxes_hold_the_truth_and_shrink() -> None:
    world = catalogue_world("dope-media")
    few, many = boxes_after(world, 1_000), boxes_after(world, 100_000)
    p = world.cmdp.transitions
    for lower, upper in (few, many):
        assert np.all((lower >= 0.0) & (lower <= p) & (p <= upper) & (upper <= 1.0))
    assert np.sum(few[1] - few[0]) > 2.0 * np.sum(many[1] - many[0])


def test_both_solvers_agree_and_another_value_is_noticed() -> None:
    (row,) = TINY.run()
    assert (row.triples, row.constraints, row.verdict) == (84, 1, "same value")
    assert row.ratio > 1.0
    assert TINY.is_right([row])
    wrong = replace(row, difference=1e-3)
    assert wrong.verdict == "other value"
    assert not TINY.is_right([row, wrong])


def test_the_command_writes_rows() -> None:
    data = json.loads(invoke("plans", "--quick", "--worlds", "1", "--json"))
    assert data["figures"][0]["world"] == "dope-factored"
    assert data["figures"][0]["verdict"] == "same value"
