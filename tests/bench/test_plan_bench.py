"""`python -m bench plans`: boxes around the truth, all contenders with the same value, a small run."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
from bench_runs import invoke

from bench.episode_worlds import catalogue_world
from bench.kept_program import KeptProgram
from bench.plans import PlanSpeed, Sequence, boxes_after

TINY = PlanSpeed(worlds=1, plans=3, programs=1)


def test_boxes_hold_the_truth_and_shrink() -> None:
    world = catalogue_world("dope-media")
    few, many = boxes_after(world, 1_000), boxes_after(world, 100_000)
    p = world.cmdp.transitions
    for lower, upper in (few, many):
        assert np.all((lower >= 0.0) & (lower <= p) & (p <= upper) & (upper <= 1.0))
    assert np.sum(few[1] - few[0]) > 2.0 * np.sum(many[1] - many[0])


def test_contenders_agree_and_another_value_is_noticed() -> None:
    rows = TINY.run()
    assert [(row.triples, row.constraints, row.losses, row.verdict) for row in rows] == [
        (84, 1, "same", "same value"),
        (84, 1, "new", "same value"),
    ]
    for row in rows:
        assert 1.0 < row.ratio < row.anew_ratio
        assert (row.ours.count, row.kept.count, row.anew.count) == (3, 3, 1)
    same, new = rows
    assert same.iterations < new.iterations  # the last basis helps, most of all where little changed
    assert TINY.is_right(rows)
    wrong = replace(same, difference=1e-8)
    assert wrong.verdict == "other value"
    assert not TINY.is_right([same, wrong])


def test_the_kept_model_takes_what_changed() -> None:
    sequence = Sequence(catalogue_world("dope-factored"), 10_000, 20, 0.1, 0)
    visited = set()
    for _ in range(20):
        sequence.plan()
        assert abs(sequence.ask_kept().value - sequence.ask_anew().value) <= 1e-9
        before = sequence.problem.loss.copy()
        sequence.go_on()
        visited |= set(sequence._changed.tolist())
        assert not np.array_equal(before, sequence.problem.loss)
    assert 0 < len(visited) < sequence.world.triples
    lower, upper = boxes_after(sequence.world, 10_000)
    assert np.all(sequence.problem.lower[list(visited)] >= lower[list(visited)])
    assert np.any(sequence.problem.upper < upper)


def test_a_kept_model_with_wide_boxes_is_the_program_of_wide_boxes() -> None:
    world = catalogue_world("dope-factored")
    sequence = Sequence(world, 100, 1, 0.0, 0)  # many bounds are 0 or 1, which later ones are not
    problem = sequence.problem
    kept = KeptProgram(world.cmdp.layout, boxes_after(world, 10**9), problem.costs, problem.thresholds)
    kept.change_boxes(np.arange(world.triples), problem.lower, problem.upper)
    assert abs(kept.plan(problem.loss).value - sequence.ask_anew().value) <= 1e-9


def test_the_command_writes_rows() -> None:
    data = json.loads(invoke("plans", "--quick", "--worlds", "1", "--plans", "4", "--json"))
    assert [(row["world"], row["losses"], row["verdict"]) for row in data["figures"]] == [
        ("dope-factored", "same", "same value"),
        ("dope-factored", "new", "same value"),
    ]
