"""Worlds from tables: layers are found, values end up where they belong, and mistakes are named by state and line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import hedgerow as hr

LINES: dict[str, list[Any]] = {
    "state": ["dawn", "dawn", "dawn", "dawn", "dry", "dry", "wet", "wet"],
    "action": ["go", "go", "stay", "stay", "go", "stay", "go", "stay"],
    "next_state": ["dry", "wet", "dry", "wet", "night", "night", "night", "night"],
    "probability": [0.9, 0.1, 0.2, 0.8, 1.0, 1.0, 1.0, 1.0],
    "loss": [0.0, 0.0, 0.0, 0.0, 0.2, 1.0, 0.0, 0.6],
    "energy": [0.0, 0.0, 0.0, 0.0, 0.5, 0.0, 0.8, 0.1],
}


def changed(**columns: Any) -> dict[str, Any]:
    return {name: column for name, column in {**LINES, **columns}.items() if column is not None}


def test_a_table_is_the_world_that_arrays_make() -> None:
    layout = hr.Layout((1, 2, 1), num_actions=2)
    moves = [[[[0.9, 0.1], [0.2, 0.8]]], [[[1.0], [1.0]], [[1.0], [1.0]]]]
    means = layout.join_rows([[[0.0, 0.0]], [[0.5, 0.0], [0.8, 0.1]]])
    wanted = hr.CMDP(
        layout, layout.join_triples(moves), hr.costs.BernoulliCosts([means]), [0.3], constraint_names=["energy"],
        state_labels=["dawn", "dry", "wet", "night"], action_labels=["go", "stay"],
    )  # fmt: skip
    world = hr.from_table(LINES, {"energy": 0.3})
    assert world.cmdp.content_hash == wanted.content_hash
    assert world.loss is not None
    assert world.loss.tolist() == [0.0, 0.0, 0.2, 1.0, 0.0, 0.6]
    assert hr.offline.optimum(world.cmdp, world.loss).value == pytest.approx(0.4)  # by hand: README's first world


def test_all_forms_of_a_table_are_the_same_world(tmp_path: Path) -> None:
    table = pa.table(LINES)
    csv.write_csv(table, tmp_path / "world.csv")
    parquet.write_table(table, tmp_path / "world.parquet")
    renamed = table.rename_columns(["from", "action", "next_state", "p", "loss", "energy"])
    forms: list[tuple[Any, dict[str, Any]]] = [
        (LINES, {}),
        (table, {}),
        (tmp_path / "world.csv", {}),
        (str(tmp_path / "world.parquet"), {}),
        (renamed, {"columns": {"state": "from", "probability": "p"}}),
        (table.take(np.random.default_rng(0).permutation(8)), {"start": "dawn"}),
    ]
    worlds = [hr.from_table(form, {"energy": 0.3}, **options) for form, options in forms]
    optima = [hr.offline.optimum(world.cmdp, world.loss).value for world in worlds]
    np.testing.assert_allclose(optima, 0.4, atol=1e-9)
    assert len({world.cmdp.content_hash for world in worlds[:-1]}) == 1


def test_probability_and_loss_may_be_missing_and_names_may_be_numbers() -> None:
    lines = {"state": [0, 0, 1, 1], "action": ["a", "b"] * 2, "next_state": [1, 1, 2, 2]}
    world = hr.from_table(lines, {})
    assert world.loss is None
    assert world.cmdp.state_labels == ("0", "1", "2")
    assert world.view().num_constraints == 0
    assert hr.from_table(lines, {}, start=0).cmdp.content_hash == world.cmdp.content_hash


def test_costs_may_be_deterministic() -> None:
    world = hr.from_table(LINES, {"energy": 0.3}, cost_kind="deterministic")
    assert world.cmdp.costs.kind == "deterministic"


def test_a_table_with_steps_is_unrolled() -> None:
    lines = {
        "state": ["a", "a", "b", "b"],
        "action": ["swap", "stay"] * 2,
        "next_state": ["b", "a", "a", "b"],
        "loss": [0.5, 1.0, 0.0, 1.0],
        "wear": [0.5, 0.0, 0.5, 0.0],
    }
    world = hr.from_table(lines, {"wear": 1.0}, steps=4, start="a")
    moves = [[[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]]
    wanted = hr.unroll(
        moves, 4, 0, loss=[[0.5, 1.0], [0.0, 1.0]], costs=[[[0.5, 0.0], [0.5, 0.0]]], thresholds=[1.0],
        constraint_names=["wear"], state_names=["a", "b"], action_names=["swap", "stay"],
    )  # fmt: skip
    assert world.cmdp.content_hash == wanted.cmdp.content_hash
    assert world.unrolled is not None
    assert world.unrolled.episode([0, 1, 1, 0], [0, 1, 0, 1], [0.0] * 4, [0.0] * 4).losses.tolist() == [0.0] * 4


def test_it_simulates() -> None:
    world = hr.from_table(LINES, {"energy": 0.3})
    safe = hr.Policy.of(world, "stay")
    learner = hr.SOPS(world.view(), 50, 0.05, "paper", baseline=safe, baseline_costs={"energy": 0.1})
    run = hr.simulate(world, learner, progress=False)
    assert run.safe[-1]


WRONG = [
    (changed(probability=[0.9, 0.2, 0.2, 0.8, 1, 1, 1, 1]), "the probabilities of 'go' in 'dawn' sum to 1.1, not 1"),
    (
        changed(probability=[0.9, 0.1, 0.2, 0.8, 1, 1, 1, 2]),
        "the 'probability' of line 7 is 2.0; it must be a number in",
    ),
    (changed(loss=[float("nan")] * 8), "the 'loss' of line 0 is nan"),
    (changed(energy=["x"] * 8), "the 'energy' of line 0 is 'x'"),
    (changed(energy=[0.0, 0.1] + [0.0] * 6), "the lines of 'go' in 'dawn' give 'energy' as 0.0 and as 0.1"),
    (changed(energy=None), "has no column 'energy'; .*columns={'energy': ...}"),
    (changed(energy=None, enrgy=[0.0] * 8), "no column 'energy'; did you mean 'enrgy'"),
    (
        changed(next_state=None, next=LINES["next_state"]),
        "no column 'next_state'; is it 'next'\\? If .*: columns={'next_state': 'next'}",
    ),
    (
        changed(loss=None, reward=[1.0] * 8),
        "a column 'reward' and no 'loss': losses .* are minimised. Add a",
    ),
    (changed(loss=None, Rewards=[1.0] * 8), "a column 'Rewards' and no 'loss'"),
    (changed(state=[None, *LINES["state"][1:]]), "line 0 of the table of transitions does not say its 'state'"),
    (changed(state=[0.5, *[1.0] * 7]), "the 'state' of line 0 is 0.5; give names or whole numbers"),
    (changed(action=["go", "go", "stay", "stay", "go", "stay", "go", "wait"]), "no line for 'wait' in 'dawn'"),
    (changed(next_state=["dry", "dry", *LINES["next_state"][2:]]), "'dawn', 'go', 'dry' stands in two lines"),
    (changed(next_state=[*LINES["next_state"][:7], "day"]), "ends in 'night' and 'day'; exactly one state"),
    (changed(next_state=[*LINES["next_state"][:7], "dawn"]), "could begin anywhere: name the first state"),
    (changed(next_state=["dry", "wet", "dry", "wet", "night", "night", "dry", "night"]), "after 1 and after 2 steps"),
    (changed(next_state=["dry", "night", "dry", "night", *["night"] * 4]), "could begin in 'dawn', 'wet'"),
    (changed(next_state=["dry", "night", "dry", "wet", *["night"] * 4]), "may have ended or go on in 'dry'"),
    ({name: [] for name in LINES}, "the table of transitions is empty"),
    (changed(loss=[0.0]), "the table of transitions is no table"),
    (3, "a table of transitions is the path of a CSV, .*, not an object of the class int"),
]


@pytest.mark.parametrize(("lines", "message"), WRONG, ids=range(len(WRONG)))
def test_mistakes_are_named(lines: Any, message: str) -> None:
    with pytest.raises(hr.errors.InvalidInput, match=message):
        hr.from_table(lines, {"energy": 0.3})


def test_states_that_nothing_leads_to_are_named() -> None:
    lines = changed(next_state=["dry", "night", "dry", "night", *["night"] * 4], probability=[1, 0, 1, 0, 1, 1, 1, 1])
    with pytest.raises(hr.errors.InvalidInput, match="nothing leads to 'wet' from 'dawn'"):
        hr.from_table(lines, {"energy": 0.3}, start="dawn")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start": "dusk"}, "no line begins in 'dusk'"),
        ({"steps": 3}, "with steps, name the first state: start='dawn'"),
        ({"steps": 3, "start": "dawn"}, "'night' has no lines; with steps an episode goes on"),
        ({"steps": 0, "start": "dawn"}, "steps"),
        ({"cost_kind": "beta"}, "cost_kind is 'beta'; choose one of bernoulli, deterministic"),
        ({"columns": {"to": "next_state"}}, "columns renames 'to', which is no column of a world"),
        ({"columns": {"probability": "p"}}, "has no column 'p'"),
        ({"columns": ["state"]}, "columns are a mapping"),
    ],
)
def test_wrong_arguments(options: dict[str, Any], message: str) -> None:
    with pytest.raises(hr.errors.InvalidInput, match=message):
        hr.from_table(LINES, {"energy": 0.3}, **options)


def test_thresholds_go_by_name() -> None:
    with pytest.raises(hr.errors.InvalidInput, match="thresholds are a mapping"):
        hr.from_table(LINES, [0.3])  # type: ignore[arg-type]
    for name in (1, "state", "loss"):
        with pytest.raises(hr.errors.InvalidInput, match="it needs a name, and none of state, action"):
            hr.from_table(LINES, {name: 0.3})  # type: ignore[dict-item]
    with pytest.raises(hr.errors.InvalidInput, match="every entry must lie in"):
        hr.from_table(LINES, {"energy": 9.0})


def test_a_reward_beside_a_loss_or_as_a_constraint_is_a_column_like_any_other() -> None:
    assert hr.from_table(changed(reward=[9.0] * 8), {"energy": 0.3}).loss is not None
    assert hr.from_table(changed(loss=None, reward=[0.5] * 8), {"reward": 1.5}).loss is None
    named = hr.from_table(changed(loss=None, reward=LINES["loss"]), {"energy": 0.3}, columns={"loss": "reward"})
    assert named.loss is not None
