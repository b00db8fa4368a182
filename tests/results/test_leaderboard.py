"""The leaderboard against numbers by hand: ranks, ties, noise, who is safe, who declined, shares, sentences."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from run_cases import made_learner, made_run, made_spec

import hedgerow as hr
from hedgerow import results
from hedgerow.errors import FileFormatError, InvalidInput
from hedgerow.learners.api import Inputs
from hedgerow.report.board import board_page
from hedgerow.results import store
from hedgerow.results.leaderboard import Block, Leaderboard, leaderboard

T = 1000
EPISODES = np.array([1, 10, 100, 500, T])


def write(
    path: Path,
    learner: str,
    regrets: list[float],
    *,
    worst: float = -0.1,
    kind: str = "s-ops",
    told: Inputs | None = None,
    world: str = "toy",
    **spec: Any,
) -> None:
    """Cells of a learner whose regret grows as a straight line to these numbers, one per seed."""
    for seed, regret in enumerate(regrets):
        made = made_learner(kind=kind)
        if told is not None:
            made.inputs = told
        curve = regret * EPISODES / T
        run = made_run(
            seed, episodes=EPISODES, worst=worst, regret=curve, loss=3.0 * EPISODES + curve, learner=made,
            unsafe=(EPISODES if worst > 0 else 0 * EPISODES),
        )  # fmt: skip
        written = store.write_cell(path, made_spec(learner, seed, world, **spec), run)
        entry = {"status": "done", "seconds": {"loop": 0.5, "total": 0.8}}
        store.update_manifest(path, {"cells": {written.stem: entry}})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    target = tmp_path / "out"
    store.create(target, {"experiment": {}, "title": "made up"})
    return target


def board(path: Path) -> Leaderboard:
    return leaderboard(results.open(path))


def only(path: Path) -> Block:
    (block,) = board(path).blocks
    return block


def test_a_budget_that_was_kept_is_neither_safe_nor_broken() -> None:
    world = hr.worlds.make("dope-factored")
    swept = hr.compare(world, ["b-ops", "s-ops", "sv-ops"], losses="own", seeds=2, episodes=600, processes=1)
    found = leaderboard(swept)
    (block,) = found.blocks
    statuses = {item.learner: (item.status, item.rank) for item in block.standings}
    assert statuses == {"s-ops": ("safe", 1), "b-ops": ("budget kept", None), "sv-ops": ("unsafe", None)}
    kept = next(item.scores for item in block.standings if item.learner == "b-ops")
    assert kept is not None
    assert kept.numbers["worst_excess"].value > 0.0  # single episodes are above the threshold
    budget = next(summary for summary in found.summaries if summary.learner == "b-ops")
    assert (budget.safe, budget.budget, budget.unsafe, budget.ran) == (0, 1, 0, 1)
    assert budget.share == pytest.approx(kept.share)
    assert "it kept its budget in 1 other" in budget.sentence()
    assert found.verdict().startswith("1 of 3 learners kept every episode within the limits")
    assert found.verdict().endswith("b-ops kept the limits as a budget for all episodes so far.")
    page = board_page(swept)
    assert "budget kept in 1" in page


def test_safe_ones_are_ranked_by_regret_and_unsafe_ones_follow_by_violation(path: Path) -> None:
    write(path, "c", [30.0, 31.0, 32.0])
    write(path, "a", [10.0, 11.0, 12.0])
    write(path, "b", [20.0, 21.0, 22.0])
    write(path, "bold", [-50.0, -50.0, -50.0], worst=0.3)
    standings = only(path).standings
    assert [(item.learner, item.status, item.rank) for item in standings] == [
        ("a", "safe", 1),
        ("b", "safe", 2),
        ("c", "safe", 3),
        ("bold", "unsafe", None),
    ]
    scores = standings[0].scores
    assert scores is not None
    numbers = {name: found.value for name, found in scores.numbers.items()}
    assert numbers["regret"] == pytest.approx(11.0)
    assert (numbers["unsafe_share"], numbers["worst_excess"], numbers["microseconds"]) == (0.0, -0.1, 500.0)
    assert numbers["mixing_mean"] == pytest.approx(0.5 * T**0.5 / T)
    assert numbers["mixing_last"] == pytest.approx(0.5 / T**0.5)
    assert scores.way == "compiled"
    assert [(p.name, p.void_because) for p in scores.promises] == [
        ("clean event", ""),
        ("safety", "confidence_scale = 0.5 < 1"),
    ]
    unsafe = standings[-1].scores
    assert unsafe is not None
    assert unsafe.numbers["violation"].value == pytest.approx(2.0 * T**0.5)  # the second constraint is the worse one
    assert (unsafe.numbers["unsafe_share"].value, unsafe.numbers["worst_excess"].value) == (1.0, 0.3)


def test_neighbours_are_told_apart_seed_by_seed(path: Path) -> None:
    write(path, "a", [10.0, 50.0, 90.0])
    write(path, "b", [11.0, 51.2, 91.1])  # surely worse than a, seed by seed
    write(path, "c", [0.0, 160.0, 10.0])  # may be better or worse
    first, second, third = only(path).standings
    assert first.next is not None
    assert second.next is not None
    assert (first.next.other, first.next.verdict) == ("b", "different")
    assert (second.next.other, second.next.verdict) == ("c", "within noise")
    assert third.next is None
    found = board(path)
    assert (found.noisy, found.pairs) == (1, 2)
    assert found.warning() == (
        "some results rest on 3 seeds: too few for fine differences; 1 of 2 pairs of neighbours in rank cannot be "
        "told apart"
    )


def test_enough_seeds_and_clear_differences_need_no_warning(path: Path) -> None:
    write(path, "a", [10.0, 11.0, 12.0, 13.0, 14.0])
    write(path, "b", [20.0, 21.0, 22.0, 23.0, 24.1])
    assert board(path).warning() == ""


def test_equal_ones_share_a_rank(path: Path) -> None:
    for learner, regret in (("a", 10.0), ("b", 10.0 + 1e-10), ("c", 10.5)):
        write(path, learner, [regret])
    standings = only(path).standings
    assert [item.rank for item in standings] == [1, 1, 3]
    assert standings[0].next is not None
    assert standings[0].next.verdict == "equal"
    assert standings[1].next is not None
    assert standings[1].next.verdict == "unknown"  # a single seed


@pytest.mark.parametrize(("worst", "status"), [(9e-10, "safe"), (2e-9, "unsafe")])
def test_rounding_is_no_violation(path: Path, worst: float, status: str) -> None:
    write(path, "a", [1.0], worst=worst)
    (standing,) = only(path).standings
    assert standing.status == status
    assert standing.scores is not None
    assert standing.scores.numbers["unsafe_share"].value == (0.0 if status == "safe" else 1.0)


def test_one_unsafe_seed_is_one_too_many(path: Path) -> None:
    write(path, "a", [1.0, 1.0])
    run = made_run(2, episodes=EPISODES, worst=0.1)
    store.write_cell(path, made_spec("a", 2), run)
    assert only(path).standings[0].status == "unsafe"


def test_shares_lie_between_the_oracle_and_the_baseline(path: Path) -> None:
    write(path, "a", [30.0])
    write(path, "base", [110.0], kind="always-baseline")
    write(path, "truth", [10.0], kind="oracle", told=Inputs(cheats="the losses to come"))
    shares = {item.learner: item.scores.share for item in only(path).standings if item.scores}
    assert shares == {"a": pytest.approx(0.2), "base": 1.0, "truth": 0.0}


def test_there_is_no_share_without_a_baseline_that_costs_anything(path: Path) -> None:
    write(path, "a", [30.0])
    assert [item.scores.share for item in only(path).standings if item.scores] == [None]
    write(path, "base", [0.0], kind="always-baseline")
    assert [item.scores.share for item in only(path).standings if item.scores] == [None, None]


def test_a_leaderboard_is_one_line(path: Path) -> None:
    write(path, "best", [1.0])
    write(path, "truth", [0.0], kind="oracle", told=Inputs(cheats="the losses to come"))
    line = repr(board(path))
    assert line.startswith("Leaderboard(")
    assert "1 setting, 2 learners, first: best" in line


def test_who_cheats_has_no_rank(path: Path) -> None:
    write(path, "a", [30.0])
    write(path, "truth", [0.0], kind="oracle", told=Inputs(cheats="the losses to come"))
    first, second = only(path).standings
    assert (first.learner, first.status, first.rank, first.why) == ("truth", "cheats", None, "the losses to come")
    assert (second.learner, second.rank) == ("a", 1)
    told = {summary.learner: summary for summary in board(path).summaries}
    assert told["truth"].sentence() == "truth is a reference and has no rank: it knows the losses to come."
    assert told["truth"].inputs == "T, delta; knows the losses to come"
    assert told["a"].inputs == "not said"


def declare(path: Path, **changes: Any) -> None:
    entry = {"world": "toy", "kind": "learner", "label": "shy", "episodes": T, "why": "two constraints"}
    store.update_manifest(path, {"declined": [{**entry, **changes}]})


def test_what_is_declined_and_what_failed_is_listed_with_the_reason(path: Path) -> None:
    write(path, "a", [1.0])
    declare(path)
    spec = made_spec("broken", 0)
    lost = {"status": "failed", "error": "out of memory", "spec": spec}
    store.update_manifest(path, {"cells": {"toy__switching-100__broken__T1000__seed0": lost}})
    found = board(path)
    assert [(item.learner, item.status, item.why) for item in found.blocks[0].standings[1:]] == [
        ("shy", "declined", "two constraints"),
        ("broken", "failed", "out of memory"),
    ]
    sentences = {summary.learner: summary.sentence() for summary in found.summaries}
    assert sentences["shy"] == "shy has not run: it declined 1 setting."
    assert sentences["broken"] == "broken has not run: it failed in 1 setting."


def test_what_is_declined_elsewhere_is_not_listed_here(path: Path) -> None:
    write(path, "a", [1.0])
    declare(path, world="zoo")
    assert len(only(path).standings) == 1
    declare(path, episodes=5)
    assert len(only(path).standings) == 1


@pytest.mark.parametrize("entry", [{"world": 3}, {"why": None}, {"episodes": "many"}])
def test_a_damaged_list_of_what_is_declined_is_refused(path: Path, entry: dict[str, Any]) -> None:
    manifest = json.loads((path / "manifest.json").read_text())
    good = {"world": "toy", "kind": "learner", "label": "shy", "episodes": T, "why": "two constraints"}
    (path / "manifest.json").write_text(json.dumps({**manifest, "declined": [{**good, **entry}]}))
    with pytest.raises(FileFormatError, match="declined"):
        results.open(path)


def test_summaries_over_settings(path: Path) -> None:
    """a: first, then second; b: second, then first; c is unsafe in one of them."""
    for world, regrets, bad in (("toy", (1.0, 2.0, 3.0), -0.1), ("zoo", (2.0, 1.0, 0.0), 0.2)):
        for learner, regret in zip("abc", regrets, strict=True):
            write(path, learner, [regret], world=world, worst=bad if learner == "c" else -0.1)
    a, b, c = board(path).summaries
    assert (a.mean_rank, a.firsts, a.safe, a.unsafe, a.ranked) == (1.5, 1, 2, 0, 2)
    assert (b.mean_rank, b.firsts) == (1.5, 1)
    assert (c.mean_rank, c.firsts, c.safe, c.unsafe, c.ranked) == (3.0, 0, 1, 1, 1)
    assert (
        a.sentence()
        == "a was safe in all of its 2 settings; its mean rank there is 1.5, and it comes first in 1 of them."
    )
    assert c.sentence() == "c was safe in 1 of 2 settings; its mean rank there is 3.0."


def test_the_order_is_that_of_the_file(tmp_path: Path) -> None:
    labels = {kind: [{"label": name} for name in names] for kind, names in (("world", "ba"), ("learner", ("z", "a")))}
    store.create(tmp_path / "out", {"experiment": labels})
    for world in "ab":
        write(tmp_path / "out", "a", [1.0], world=world)
        write(tmp_path / "out", "z", [2.0], world=world)
    found = board(tmp_path / "out")
    assert [block.setting.world for block in found.blocks] == ["b", "a"]
    assert [summary.learner for summary in found.summaries] == ["z", "a"]


def test_small_curves_have_the_ends_of_the_run(path: Path) -> None:
    write(path, "a", [10.0, 20.0], worst=-0.1)
    (standing,) = only(path).standings
    assert standing.scores is not None
    assert (standing.scores.episodes[0], standing.scores.episodes[-1]) == (1, T)
    assert standing.scores.regret_curve == pytest.approx([15.0 * t / T for t in standing.scores.episodes])
    assert set(standing.scores.margin_curve) == {0.1}


def test_data_are_plain(path: Path) -> None:
    write(path, "a", [10.0])
    declare(path)
    data = json.loads(json.dumps(board(path).as_data(), allow_nan=False))
    numbers = data["blocks"][0]["standings"][0]["scores"]["numbers"]
    assert numbers["regret"] == {"value": 10.0, "low": None, "high": None, "seeds": 1}
    assert [column["name"] for column in data["columns"]] == [name for name in numbers if name != "worst_excess"]
    assert data["columns"][0]["label"] == "regret R_T"
    assert data["summaries"][0]["sentence"].startswith("a was safe in its one setting")
    assert data["declined"][0]["why"] == "two constraints"


def test_nothing_finished_nothing_compared(path: Path) -> None:
    with pytest.raises(InvalidInput, match="no finished cell"):
        board(path)
