"""Whatever is registered can be shown: pages, tables, figures and notebook views of every learner and every world.

The names come from the registries, so a new learner or world is covered as soon as it has a name.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from page_reader import Reader
from typer.testing import CliRunner

import hedgerow as hr
from hedgerow import cli
from hedgerow.display.numbers import DASH
from hedgerow.errors import InvalidInput
from hedgerow.report.board import board_page, markdown
from hedgerow.report.figures import figure_makers, run_results
from hedgerow.report.page import page
from hedgerow.results.groups import Results
from hedgerow.results.leaderboard import leaderboard
from hedgerow.simulation.result import COMMON
from hedgerow.testing.trial import NotApplicable, build, small_worlds

EPISODES = 8
WORLDS = ("m = 1", "m = 0", "m = 3")
SOURCES = Path(hr.__file__).parent


@cache
def run_of(learner: str, world: str) -> hr.results.Run | None:
    """A short run of a learner in one of the small worlds; None if it declines that world."""
    cmdp = next(each.cmdp for each in small_worlds() if each.name == world)
    try:
        made = build(hr.learners.find(learner), cmdp, EPISODES, 0.05, 0, {})
    except NotApplicable:
        return None
    return hr.simulate(cmdp, made, np.full(cmdp.layout.num_rows, 0.5), progress=False)


@cache
def results_of(learner: str, world: str) -> Results | None:
    """The same run as a sweep."""
    run = run_of(learner, world)
    return None if run is None else run_results(run, world="toy")


def shown_runs(learner: str) -> Iterator[tuple[hr.results.Run, Results]]:
    """The runs of a learner in all worlds that it does not decline: at least one."""
    found = [(run_of(learner, world), results_of(learner, world)) for world in WORLDS]
    made = [(run, results) for run, results in found if run is not None and results is not None]
    assert made
    yield from made


def joined(each: list[Results]) -> Results:
    """Several runs as one sweep."""
    tables = {one.cells[0].id: one.table(one.cells[0].id) for one in each}
    return Results(None, each[0].manifest, tuple(one.cells[0] for one in each), tables.__getitem__)


def demand_shown(value: Any) -> None:
    """What a notebook shows of it is HTML with something in it."""
    content = value._repr_html_()
    assert content.startswith("<div")
    assert content.count("<div") == content.count("</div")
    assert "nan" not in content.replace("nance", "").lower()


@pytest.mark.parametrize("learner", hr.learners.names())
def test_every_learner_has_a_page_that_says_who_it_is(learner: str) -> None:
    for run, results in shown_runs(learner):
        read = Reader(page(results))
        label = results.groups[0].learner
        assert read.titles["h1"].startswith(label)
        (answer,) = [row for row in read.named if "regret RT" in row and row["learner"] == label]
        (checks,) = [row for row in read.named if "loop" in row]
        assert answer["learner"] == checks["learner"] == label
        assert checks["loop"] == run.way


@pytest.mark.parametrize("learner", hr.learners.names())
def test_every_learner_has_all_of_its_figures(learner: str) -> None:
    for _, results in shown_runs(learner):
        for make in figure_makers(results.groups).values():
            figure = make()
            assert figure.plot or figure.empty
            assert len(figure.sentence) > 10
    run = run_of(learner, "m = 1")
    assert run is not None
    assert run.plot().layout.title.text == "Overview"


@pytest.mark.parametrize("learner", hr.learners.names())
def test_every_learner_has_a_row_in_tables_and_boards(learner: str) -> None:
    for _, results in shown_runs(learner):
        label = results.groups[0].learner
        assert f"{label} & " in results.to_latex()
        board = leaderboard(results)
        assert label in board_page(results, board)
        assert label in markdown(board, results.manifest)
        json.dumps(board.as_data(), allow_nan=False)
        assert results.summary().num_rows == 1


@pytest.mark.parametrize("learner", hr.learners.names())
def test_every_learner_shows_itself_in_a_notebook(learner: str) -> None:
    for run, results in shown_runs(learner):
        ledger = run.guarantees()
        assert ledger is not None
        for value in (run, results, run.learner, ledger, run.policy, getattr(run.learner, "estimates", None)):
            if value is not None:
                demand_shown(value)
    fresh = build(hr.learners.find(learner), small_worlds()[0].cmdp, EPISODES, 0.05, 0, {})
    demand_shown(fresh.plan())


def test_all_learners_stand_on_one_page() -> None:
    """Families beside each other: what one of them has, the others need not have."""
    results = joined([found for name in hr.learners.names() if (found := results_of(name, "m = 1")) is not None])
    labels = [group.learner for group in results.groups]
    assert len(set(labels)) == len(hr.learners.names())
    read = Reader(page(results))
    assert [row["learner"] for row in read.named if "loop" in row] == labels
    assert results.to_latex().count(" & ") >= 6 * len(labels)
    demand_shown(results)
    assert results.plot().layout.title.text == "Overview"
    assert all(label in board_page(results, leaderboard(results)) for label in labels)


@pytest.mark.slow
def test_the_commands_take_all_learners_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`compare` runs and ranks them, `report` writes the page of the same directory."""
    monkeypatch.chdir(tmp_path)
    lines = ["episodes = 4", "seeds = 2", '[[world]]\nname = "slater-chain"', '[[adversary]]\nname = "own"']
    for name in hr.learners.names():
        needs = hr.learners.find(name).inputs.baseline
        lines.append(f'[[learner]]\nname = "{name}"\nlabel = "{name}"' + ('\nbaseline = "offered"' if needs else ""))
    Path("all.toml").write_text("\n".join(lines), encoding="utf-8")
    for command in (["compare", "all.toml", "--backend", "serial", "--out", "out/all"], ["report", "out/all"]):
        answer = CliRunner().invoke(cli.app, command)
        assert answer.exit_code == 0, answer.output
    for file in ("compare.html", "report.html"):
        read = Reader(Path("out/all", file).read_text(encoding="utf-8"))
        shown = " ".join(row["learner"] for row in read.named if "learner" in row).split()
        assert set(hr.learners.names()) <= set(shown), file


@pytest.mark.parametrize("name", hr.worlds.names())
def test_every_world_can_be_shown(name: str) -> None:
    world = hr.worlds.make(name)
    learner = hr.field.Uniform(world.view(), 2)
    run = hr.simulate(world, learner, progress=False)
    results = run_results(run, world=name)
    assert name in Reader(page(results)).titles["h1"]
    assert name in results.to_latex()
    assert name in board_page(results, leaderboard(results))
    assert run.plot().layout.title.text == "Overview"
    assert len(figure_makers(results.groups)) >= 4 + len(world.view().constraint_names)
    for value in (world, world.cmdp, world.view(), world.view().layout, run, results, learner):
        demand_shown(value)


# Columns that only some learners have --------------------------------------------------------------------------------


def without(results: Results, columns: set[str]) -> Results:
    """The same runs, as if nobody had noted these columns."""

    def table(name: str) -> Any:
        whole = results.table(name)
        return whole.drop_columns([column for column in whole.column_names if column in columns])

    return Results(None, results.manifest, results.cells, table)


def own_columns() -> list[str]:
    """The columns that some learner has and others need not have."""
    runs = [run for name in ("s-ops", "dope") if (run := run_of(name, "m = 1")) is not None]
    return sorted({name for run in runs for name in run.notes})


OWN = own_columns()


@pytest.mark.parametrize("missing", [*OWN, "all of them"])
def test_no_page_rests_on_a_column_that_a_learner_may_not_have(missing: str) -> None:
    gone = set(OWN) if missing == "all of them" else {missing}
    each = [without(found, gone) for name in ("s-ops", "dope") if (found := results_of(name, "m = 1")) is not None]
    results = joined(each)
    read = Reader(page(results))
    rows = [row for row in read.named if "loop" in row]
    assert [row["loop"] for row in rows] == ["compiled", "compiled"]
    assert all("unclean" not in gone or "clean seeds" not in row for row in rows)
    assert results.to_latex()
    assert board_page(results, leaderboard(results))
    demand_shown(results)
    assert results.plot()


def test_a_check_is_shown_for_those_that_have_it() -> None:
    each = [found for name in ("s-ops", "dope", "uniform") if (found := results_of(name, "m = 1")) is not None]
    ours, programs, uniform = (row for row in Reader(page(joined(each))).named if "loop" in row)
    assert (ours["clean seeds"], programs["clean seeds"], uniform["clean seeds"]) == ("1 of 1", "1 of 1", DASH)
    assert ours["slow solver"].isdigit()
    assert programs["slow solver"].isdigit()
    assert float(ours["steps / episode"]) > 0.0
    assert (programs["steps / episode"], programs["largest residual"], programs["refuted"]) == (DASH, DASH, "0")
    assert set(uniform.values()) == {"uniform", "compiled", DASH}


def test_a_column_that_is_not_there_is_named() -> None:
    results = results_of("uniform", "m = 1")
    assert results is not None
    (group,) = results.groups
    assert group.noted("suspect") is None
    with pytest.raises(InvalidInput, match=r"the runs of uniform have no column 'regert'; did you mean 'regret'"):
        group.curve("regert")


def test_readers_of_results_take_only_common_columns_for_granted() -> None:
    """`curve` is for columns that every run has; what only some have is read by `noted`, which may be None."""
    common = {f"{column.name}_" if column.each else column.name for column in COMMON} | {"REGRET"}
    read = []
    for file in [*SOURCES.glob("report/*.py"), *SOURCES.glob("results/*.py"), *SOURCES.glob("commands/*.py")]:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "curve":
                owner = node.func.value
                if not (isinstance(owner, ast.Name) and owner.id == "plots"):  # which draws curves
                    read.append((file.name, ast.unparse(node.args[0])))
    names = {(file, said.removeprefix("f").strip("'\"").split("{")[0]) for file, said in read}
    assert len(read) > 8
    assert not {(file, name) for file, name in names if name not in common}
