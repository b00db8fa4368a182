"""Cells that a learner or an adversary declines are left out where a file says so, and an error where it does not."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_experiments import small

import hedgerow as hr
from hedgerow import results
from hedgerow.errors import InvalidInput
from hedgerow.experiments.options import RunOptions
from hedgerow.experiments.spec import Experiment, SkippedCell, cells_of, experiment_data
from hedgerow.experiments.sweep import run_experiment, stored_experiment
from hedgerow.registry import plugins
from hedgerow.results.leaderboard import leaderboard

PICKY = """
import hedgerow as hr

class Picky(hr.field.Uniform):
    def __init__(self, view, episodes):
        if view.num_constraints != 1:
            raise hr.errors.InvalidInput("it takes one constraint")
        if episodes < 30:
            raise hr.errors.InvalidInput("it takes 30 episodes or more")
        super().__init__(view, episodes)
"""
FILE = """\
seeds = 2
episodes = {episodes}
{skip}
[[world]]
name = "lower-bound-1"
label = "one"

[[world]]
name = "random-layered"
layers = [1, 2, 1]
actions = 2
constraints = 2
label = "two"

[[world]]
file = "world.npz"
label = "lossless"

[[adversary]]
name = "own"

[[adversary]]
name = "iid"

[[learner]]
name = "uniform"

[[learner]]
name = "picky.py:Picky"
label = "picky"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(plugins, "_loaded", {})  # messages name the file that was loaded first
    (tmp_path / "picky.py").write_text(PICKY)
    hr.worlds.make("lower-bound-1").cmdp.save(tmp_path / "world.npz")
    return tmp_path


def made(folder: Path, skip: str = 'declined = "skip"', episodes: str = "40") -> Experiment:
    return small(FILE.format(skip=skip, episodes=episodes), folder)


def test_what_is_declined_is_known_before_the_run(folder: Path) -> None:
    declined = made(folder).declined
    (picky,) = [item for item in declined if item.kind == "learner"]
    assert picky == SkippedCell("two", "learner", "picky", 40, picky.why)
    assert picky.why.endswith("it takes one constraint")
    (other,) = [item for item in declined if item.kind == "adversary"]
    assert (other.world, other.label) == ("lossless", "own")
    assert "no loss of its own" in other.why
    assert len(declined) == 2


def test_only_these_cells_are_left_out(folder: Path) -> None:
    labels = [cell.label for cell in cells_of(made(folder))]
    found = {(label["world"], label["adversary"], label["learner"]) for label in labels}
    worlds, adversaries, learners = ("one", "two", "lossless"), ("own", "iid"), ("uniform", "picky")
    every = {(w, a, x) for w in worlds for a in adversaries for x in learners}
    missing = {(w, a, x) for w, a, x in every if (w, x) == ("two", "picky") or (w, a) == ("lossless", "own")}
    assert found == every - missing
    assert len(labels) == 2 * len(found)


def test_what_is_declined_may_depend_on_the_number_of_episodes(folder: Path) -> None:
    experiment = made(folder, episodes="[20, 40]")
    short = {item.world for item in experiment.declined if item.kind == "learner" and item.episodes == 20}
    assert short == {"one", "two", "lossless"}
    assert sum(cell.label["learner"] == "picky" for cell in cells_of(experiment)) == 2 * 3


@pytest.mark.parametrize("skip", ["", 'declined = "refuse"'])
def test_otherwise_it_is_an_error_with_its_line(folder: Path, skip: str) -> None:
    with pytest.raises(InvalidInput, match=r"line \d+, learner 2, name: in the world 'two': .*it takes one constraint"):
        made(folder, skip)


def test_a_wrong_choice_is_an_error_with_its_line(folder: Path) -> None:
    with pytest.raises(InvalidInput, match=r"line 3, declined: must be 'refuse' or 'skip', not 'maybe'"):
        made(folder, 'declined = "maybe"')


def test_mistakes_are_not_declined(folder: Path) -> None:
    """Only what does not fit a world is skipped; what fits nowhere is a mistake in the file."""
    text = FILE.format(skip='declined = "skip"', episodes=40)
    with pytest.raises(InvalidInput, match="no parameter 'speed'"):
        small(text + "speed = 3\n", folder)
    with pytest.raises(InvalidInput, match="unknown learner 'unifrom'"):
        small(text.replace('"uniform"', '"unifrom"'), folder)


def test_if_nothing_is_left_that_is_said(folder: Path) -> None:
    text = FILE.format(skip='declined = "skip"', episodes=20).replace('[[learner]]\nname = "uniform"\n\n', "")
    with pytest.raises(
        InvalidInput, match=r"every cell is declined, so there is nothing to run: .*it takes 30 episodes"
    ):
        cells_of(small(text, folder))


def test_the_hash_of_other_experiments_is_what_it_was(folder: Path) -> None:
    """A directory that an earlier release began can be resumed."""
    text = FILE.format(skip="", episodes=40).replace('[[learner]]\nname = "picky.py:Picky"\nlabel = "picky"\n', "")
    text = text.replace('[[adversary]]\nname = "own"\n', "")
    experiment = small(text, folder)
    data = experiment_data(experiment, cells_of(experiment))
    assert list(data) == [
        "seed", "seeds", "episodes", "delta", "trace", "world", "adversary", "learner", "cells",
    ]  # fmt: skip


def test_the_manifest_knows_and_the_directory_can_be_resumed(folder: Path) -> None:
    experiment = made(folder)
    first = run_experiment(experiment, folder / "out", RunOptions(backend="serial", only=(cells_of(experiment)[0].id,)))
    assert (first.done, first.total) == (1, 1)
    again = stored_experiment(folder / "out")
    assert again.declined == experiment.declined
    rest = run_experiment(again, folder / "out", RunOptions(backend="serial", resume=True))
    assert (rest.skipped, rest.done, rest.total, rest.failed) == (1, 15, 16, {})
    declined = results.open(folder / "out").manifest["declined"]
    assert {(entry["kind"], entry["world"]) for entry in declined} == {("learner", "two"), ("adversary", "lossless")}


def test_losses_that_answer_are_declined_by_a_learner_that_must_know_them(folder: Path) -> None:
    """Before the run, and only against them: such cells failed, and a comparison with them ended with an error."""
    text = FILE.format(skip='declined = "skip"', episodes=40)
    text = text.replace('name = "iid"', 'name = "pursuit"\nrate = 0.1\nlabel = "pursuit"')
    text = text.replace('[[learner]]\nname = "picky.py:Picky"\nlabel = "picky"', '[[learner]]\nname = "oracle"')
    experiment = small(text, folder)
    oracles = [item for item in experiment.declined if item.kind == "learner"]
    assert {(item.world, item.label, item.adversary) for item in oracles} == {
        (world, "oracle", "pursuit") for world in ("one", "two", "lossless")
    }
    assert all("take an adversary that is fixed beforehand" in item.why for item in oracles)
    done = run_experiment(experiment, folder / "out", RunOptions(backend="serial"))
    assert (done.done, done.failed) == (2 * (2 + 3 + 2), {})
    board = leaderboard(results.open(folder / "out"))
    by_setting = {(block.setting.world, block.setting.adversary): block.standings for block in board.blocks}
    status = {key: {rank.learner: rank.status for rank in ranks} for key, ranks in by_setting.items()}
    assert status["one", "pursuit"]["oracle"] == "declined"
    assert status["one", "own"]["oracle"] == "cheats"
    with pytest.raises(InvalidInput, match="answer to the learner"):
        small(text.replace('declined = "skip"', "").replace('[[adversary]]\nname = "own"\n', ""), folder)
