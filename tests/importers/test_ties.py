"""Which rows of an unrolled process share a law: those of the same table entry, and they truly do."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.importers.gym_table import unroll_gymnasium
from hedgerow.importers.unroll import Unrolled

H, S, A = 4, 3, 3
START = np.array([0.5, 0.5, 0.0])


def tables(seed: int, lead: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Transitions (..., S, A, S), about half of them 0, and costs (2, ..., S, A)."""
    rng = np.random.default_rng(seed)
    weights = rng.exponential(size=(*lead, S, A, S)) * (rng.random((*lead, S, A, S)) < 0.6)
    weights[..., 0] += weights.sum(axis=-1) == 0.0
    return weights / weights.sum(axis=-1, keepdims=True), rng.random((2, *lead, S, A))


def some_available(lead: tuple[int, ...]) -> np.ndarray:
    """Where some actions stand for others: state 0 offers the actions 1 and 2, state 2 only the last one."""
    available = np.ones((*lead, S, A), dtype=bool)
    available[..., 0, 0] = False
    available[..., 2, :2] = False
    return available


def keys(world: Unrolled, moves_per_step: bool, costs_per_step: bool) -> tuple[list[Any], list[Any]]:
    """What makes each row's law, read off the labels: (step, state, action that is carried out), or the root."""
    layout, moves, costs = world.cmdp.layout, [], []
    for row in range(layout.num_rows):
        state = row // A
        step, original, action = int(world.step_of[state]), int(world.state_of[state]), int(world.action_of[row])
        if step < 0:
            moves.append("root")
            costs.append("root")
            continue
        last = step == world.horizon - 1  # leads to the terminal state for sure, whatever the table says
        moves.append(("last", row) if last else (step if moves_per_step else None, original, action))
        costs.append((step if costs_per_step else None, original, action))
    return moves, costs


def first_of_each(labels: list[Any]) -> list[int]:
    return [labels.index(label) for label in labels]


def declared(same: np.ndarray | None, num_rows: int) -> list[int]:
    return list(range(num_rows)) if same is None else same.tolist()


def assert_true(cmdp: hr.CMDP) -> None:
    """Rows that are said to share a law have the same numbers, row by row."""
    layout, known = cmdp.layout, cmdp.knowledge
    for row, twin in enumerate(declared(known.same_transitions, layout.num_rows)):
        own, other = (cmdp.transitions[layout.row_start[r] : layout.row_start[r + 1]] for r in (row, twin))
        np.testing.assert_array_equal(own, other)
    for row, twin in enumerate(declared(known.same_costs, layout.num_rows)):
        np.testing.assert_array_equal(cmdp.mean_costs[:, row], cmdp.mean_costs[:, twin])


CASES = list(product([False, True], [False, True], ["known", "full"], [0, START], [False, True]))


@pytest.mark.parametrize(("moves_per_step", "costs_per_step", "support", "start", "aliases"), CASES, ids=str)
def test_rows_of_one_table_entry_share_their_laws_and_no_others_do(
    moves_per_step: bool, costs_per_step: bool, support: Any, start: Any, aliases: bool
) -> None:
    P, _ = tables(1, (H,) if moves_per_step else ())
    _, costs = tables(2, (H,) if costs_per_step else ())
    options: dict[str, Any] = {"available": some_available(())} if aliases else {}
    world = hr.unroll(P, H, start, costs=costs, thresholds=[1.0, 1.0], support=support, **options)
    moves, of_costs = keys(world, moves_per_step, costs_per_step)
    num_rows, known = world.cmdp.layout.num_rows, world.cmdp.knowledge
    assert declared(known.same_transitions, num_rows) == first_of_each(moves)
    assert declared(known.same_costs, num_rows) == first_of_each(of_costs)
    assert (known.same_transitions is None) == (moves_per_step and not aliases and start is 0)  # noqa: F632
    assert not known.independent_costs
    assert known.transitions is None
    assert known.costs is None
    assert known.max_episode_cost is None
    assert_true(world.cmdp)


def test_tables_of_every_step_share_nothing_across_steps_even_if_they_are_equal() -> None:
    """Whoever gives a table per step says that steps may differ."""
    P, costs = tables(3, ())
    world = hr.unroll(
        np.stack([P] * H), H, 0, costs=np.stack([costs] * H, axis=1), thresholds=[1.0, 1.0], support="full"
    )
    assert not world.cmdp.knowledge


def test_actions_that_stand_for_another_at_some_steps_only() -> None:
    P, costs = tables(4, ())
    available = np.ones((H, S, A), dtype=bool)
    available[1, :, 0] = False
    available[2, 1, 2] = False
    world = hr.unroll(P, H, START, costs=costs, thresholds=[1.0, 1.0], available=available)
    moves, of_costs = keys(world, False, True)  # costs are kept per step as soon as what is available is
    assert declared(world.cmdp.knowledge.same_transitions, world.cmdp.layout.num_rows) == first_of_each(moves)
    assert declared(world.cmdp.knowledge.same_costs, world.cmdp.layout.num_rows) == first_of_each(of_costs)
    assert_true(world.cmdp)


def test_absorbing_states_share_as_well() -> None:
    P, costs = tables(5, ())
    world = hr.unroll(P, H, 0, costs=costs, thresholds=[1.0, 1.0], absorbing=[2], support="full")
    assert_true(world.cmdp)
    moves, _ = keys(world, False, False)
    assert len(set(declared(world.cmdp.knowledge.same_transitions, world.cmdp.layout.num_rows))) == len(set(moves))


@pytest.mark.parametrize("horizon", [1, 2])
def test_short_processes(horizon: int) -> None:
    P, costs = tables(6, ())
    world = hr.unroll(P, horizon, START, costs=costs, thresholds=[1.0, 1.0])
    assert_true(world.cmdp)
    classes = declared(world.cmdp.knowledge.same_transitions, world.cmdp.layout.num_rows)
    assert classes[:A] == [0] * A  # the root does the same whatever the action
    assert classes[A:] == list(range(A, len(classes)))  # each entry is met once before the last step


def test_without_costs_only_transitions_are_shared() -> None:
    P, _ = tables(7, ())
    world = hr.unroll(P, H, 0)
    assert world.cmdp.knowledge.same_transitions is not None
    assert world.cmdp.knowledge.same_costs is None


@pytest.mark.parametrize("support", ["known", "full"])
@pytest.mark.parametrize("start", [0, np.array([0.5, 0.5, 0.0])], ids=["state", "root"])
def test_a_table_of_gymnasium(support: Any, start: Any) -> None:
    """Copies of states in which an episode has ended are states of their own; gaps in the actions are aliases."""
    table = {
        0: {0: [(0.5, 1, 0.0, False), (0.5, 2, 1.0, True)], 1: [(1.0, 0, 0.0, False)]},
        1: {1: [(0.25, 0, 0.0, False), (0.75, 1, 0.5, False)]},
        2: {0: [(1.0, 2, 0.0, False)], 1: [(0.5, 1, 0.0, False), (0.5, 0, 0.0, True)]},
    }
    costs = np.random.default_rng(0).random((1, 3, 2))
    world = unroll_gymnasium(table, 5, start=start, costs=costs, thresholds=[2.0], support=support)
    layout, known = world.cmdp.layout, world.cmdp.knowledge
    labels = []
    for row in range(layout.num_rows):
        state = row // 2
        if world.step_of[state] < 0:
            labels.append("root")
            continue
        ended, original, action = bool(world.is_copy[state]), int(world.state_of[state]), int(world.action_of[row])
        labels.append((ended, original, action))
    last = world.step_of[np.arange(layout.num_rows) // 2] == 4
    moves = [("last", row) if last[row] else label for row, label in enumerate(labels)]
    assert declared(known.same_transitions, layout.num_rows) == first_of_each(moves)
    assert declared(known.same_costs, layout.num_rows) == first_of_each(labels)
    assert any(label[0] is True for label in labels if label != "root")
    assert_true(world.cmdp)


def test_worlds_of_the_catalogue_declare_what_is_true() -> None:
    shared = 0
    for name in hr.worlds.names():
        cmdp = hr.worlds.make(name).cmdp
        assert_true(cmdp)
        shared += cmdp.knowledge.same_transitions is not None
    assert shared > 0
