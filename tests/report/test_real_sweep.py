"""One real sweep of 50 episodes, two seeds and two unequal constraints: what tables and page say of it is true.

The first constraint is tight and is violated early, the second one never is. Everything expected here is computed from
the curves of the sweep, episode by episode, or known from the way that the world is made.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from page_reader import Reader
from typer.testing import CliRunner

import hedgerow as hr
from hedgerow import cli
from hedgerow.results.manifest import commit

EPISODES, SEEDS = 50, 2
TITLE = "Tight & loose"
LEARNERS = ("sv-ops", "s-ops")


def world(layers: tuple[int, ...], costs: np.ndarray, thresholds: list[float]) -> hr.CMDP:
    layout = hr.Layout(layers, 2)
    uniform = 1.0 / np.diff(layout.row_start)[layout.row_of_triple]
    return hr.CMDP(layout, uniform, hr.costs.DeterministicCosts(costs), thresholds)


def swept(folder: Path, of: hr.CMDP, learners: tuple[str, ...]) -> hr.results.Results:
    """Run the learners on a world, through the command line."""
    of.save(folder / "world.npz")
    tables = "".join(f'[[learner]]\nname = "{name}"\npreset = "sharp"\nlabel = "{name}"\n' for name in learners)
    head = f'title = "{TITLE}"\nseeds = {SEEDS}\nepisodes = {EPISODES}\n[[world]]\nfile = "world.npz"\nlabel = "w"\n'
    (folder / "sweep.toml").write_text(head + '[[adversary]]\nname = "iid"\n' + tables)
    done = CliRunner().invoke(
        cli.app, ["run", str(folder / "sweep.toml"), "--out", str(folder / "out"), "-j", "1", "-q"]
    )
    assert done.exit_code == 0, done.output
    done = CliRunner().invoke(cli.app, ["report", str(folder / "out")])
    assert done.exit_code == 0, done.output
    return hr.results.open(folder / "out")


def page_of(results: hr.results.Results) -> Reader:
    assert results.directory is not None
    return Reader((results.directory / "report.html").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def lopsided(tmp_path_factory: pytest.TempPathFactory) -> hr.results.Results:
    """Action 1 costs more of the first kind, which is scarce; action 0 more of the second, of which there is plenty."""
    costs = np.tile([[0.1, 0.9], [0.45, 0.05]], 5)
    return swept(tmp_path_factory.mktemp("lopsided"), world((1, 2, 2, 1), costs, [0.6, 2.0]), LEARNERS)


@pytest.fixture(scope="session")
def hopeless(tmp_path_factory: pytest.TempPathFactory) -> hr.results.Results:
    """Both thresholds lie below what every policy costs, which is known for certain: the clean event holds."""
    return swept(tmp_path_factory.mktemp("hopeless"), world((1, 1, 1), np.full((2, 4), 0.9), [0.1, 0.2]), ("sv-ops",))


@pytest.fixture(scope="session")
def read(lopsided: hr.results.Results) -> Reader:
    return page_of(lopsided)


def excesses(results: hr.results.Results, learner: str) -> np.ndarray:
    """(seeds, episodes, constraints): g_i^T q_t - alpha_i of every episode."""
    rows = [row for row in results.curves().to_pylist() if row["learner"] == learner]
    rows.sort(key=lambda row: (row["seed"], row["episode"]))
    assert [row["episode"] for row in rows] == SEEDS * list(range(1, EPISODES + 1))  # a checkpoint for each
    return np.array([[row["excess_0"], row["excess_1"]] for row in rows]).reshape(SEEDS, EPISODES, 2)


def row(read: Reader, learner: str, column: str) -> dict[str, str]:
    """What the page says of a learner in the table that has this column, by column."""
    (found,) = (cells for cells in read.named if cells.get("learner") == learner and column in cells)
    return found


def test_a_run_is_safe_if_all_constraints_are_kept(lopsided: hr.results.Results, read: Reader) -> None:
    violated = np.max(excesses(lopsided, "sv-ops"), axis=1) > 0.0
    np.testing.assert_array_equal(violated, [[True, False]] * SEEDS)  # one constraint and not the other
    assert not np.any(excesses(lopsided, "s-ops") > 0.0)
    safe = {(cell["learner"], cell["seed"]): cell["safe"] for cell in lopsided.summary().to_pylist()}
    assert safe == {(learner, seed): learner == "s-ops" for learner in LEARNERS for seed in range(SEEDS)}
    assert {group.learner: group["safe"].value for group in lopsided.groups} == {"sv-ops": 0, "s-ops": SEEDS}
    assert row(read, "sv-ops", "safe")["safe"] == f"0 of {SEEDS}"
    assert row(read, "s-ops", "safe")["safe"] == f"{SEEDS} of {SEEDS}"


def test_violation_is_that_of_the_worst_constraint(lopsided: hr.results.Results) -> None:
    for cell in lopsided.summary().to_pylist():
        own = excesses(lopsided, cell["learner"])[cell["seed"]]
        assert cell["violation"] == pytest.approx(np.max(np.sum(np.maximum(own, 0.0), axis=0)), abs=1e-9)
        assert cell["worst_excess"] == pytest.approx(np.max(own), abs=1e-12)


@pytest.mark.parametrize("i", [0, 1])
def test_the_band_of_a_margin_is_over_all_seeds(i: int, lopsided: hr.results.Results, read: Reader) -> None:
    traces = read.plot(f"s0-margin-{i}")["data"]
    names = [trace.get("name") for trace in traces]
    for learner in LEARNERS:
        line = names.index(learner)
        band = np.array(traces[line - 1]["y"], dtype=np.float64)
        margins = -excesses(lopsided, learner)[:, :, i]
        most, least = margins.max(axis=0), margins.min(axis=0)
        np.testing.assert_allclose(band[:EPISODES], most, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(band[EPISODES:][::-1], least, rtol=1e-3, atol=1e-4)
        if learner == "sv-ops":
            assert np.max(most - least) > 0.02  # seeds differ, so that their middle half would be seen


def test_projections_without_a_solution_are_counted_as_refuted(
    lopsided: hr.results.Results, read: Reader, hopeless: hr.results.Results
) -> None:
    told = row(page_of(hopeless), "sv-ops", "refuted")
    assert told["clean seeds"].split()[0] == str(SEEDS)
    expected = sum(cell["infeasible"] for cell in hopeless.summary().to_pylist())
    assert expected > SEEDS
    assert int(told["infeasible"]) == int(told["refuted"]) == expected
    for learner in LEARNERS:
        assert row(read, learner, "refuted")["refuted"] == "0"


def test_the_page_has_the_title_of_its_sweep(lopsided: hr.results.Results, read: Reader) -> None:
    assert lopsided.title == TITLE
    assert read.titles == {"title": TITLE, "h1": TITLE}


def test_the_manifest_and_the_page_name_the_commit(lopsided: hr.results.Results, read: Reader) -> None:
    assert lopsided.manifest["commit"] == commit()
    if lopsided.manifest["commit"] is not None:
        assert lopsided.manifest["commit"] in "".join(read.words)


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_a_changed_tree_is_told_from_its_commit(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
        command: list[Any] = ["git", "-C", tmp_path, *identity, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    git("init", "-q")
    (tmp_path / "file").write_text("as it was")
    git("add", "file")
    git("commit", "-q", "-m", "first")
    head = git("rev-parse", "HEAD")
    (tmp_path / "unknown").write_text("to git")
    assert commit(tmp_path) == head
    (tmp_path / "file").write_text("changed")
    assert commit(tmp_path) == f"{head}+"
    git("add", "file")
    assert commit(tmp_path) == f"{head}+"
    git("commit", "-q", "-m", "second")
    assert commit(tmp_path) == git("rev-parse", "HEAD") != head
