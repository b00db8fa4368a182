"""`hr.compare`, and `hr.sweep` of a mapping: objects, classes and arrays in the place of a TOML file."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from own_learners import Failing, Still
from small_experiments import small

import hedgerow as hr
from hedgerow import registry
from hedgerow.errors import HedgerowError, InvalidInput
from hedgerow.experiments.objects import written
from hedgerow.experiments.reading import read
from hedgerow.experiments.spec import cells_of
from hedgerow.experiments.sweep import stored_experiment
from hedgerow.results.manifest import read_manifest
from nightly import daily

HEAD = "seeds = 1\nepisodes = 40\n"
NUMBERS: dict[str, Any] = {"seeds": 1, "episodes": 40}
QUIET: dict[str, Any] = {"processes": 1, "progress": False}
OWN_LOSS, SVOPS = '[[adversary]]\nname = "own"\n', '[[learner]]\nname = "sv-ops"\n'
WORLD = '[[world]]\nname = "lower-bound-1"\n'
LINES = {
    "state": ["home", "home"],
    "action": ["walk", "drive"],
    "next_state": ["done", "done"],
    "loss": [0.75, 0.25],
    "fuel": [0.0, 0.5],
}


@pytest.fixture(autouse=True)
def _nothing_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    for table in (registry.learners, registry.worlds, registry.adversaries):
        monkeypatch.setattr(table, "_registered", {})


def hashes(folder: Path, world: Any = "lower-bound-1", learner: Any = "sv-ops", adversary: Any = None) -> set[str]:
    """The hashes of the cells of an experiment that is given in Python."""
    given = {**NUMBERS, "world": world, "adversary": adversary, "learner": learner}
    experiment = written("compare", given, folder)
    with experiment.kept(folder):
        return {cell.hash for cell in cells_of(read(experiment.source, offered=experiment.offered))}


def hashes_of_text(text: str, folder: Path) -> set[str]:
    return {cell.hash for cell in cells_of(small(HEAD + text, folder))}


def table_world(fuel: float = 0.25) -> Any:
    return hr.from_table(LINES, thresholds={"fuel": fuel})


# The same cell has the same hash --------------------------------------------------------------------------------------


def test_worlds_are_the_same_from_everywhere(tmp_path: Path) -> None:
    text = '[[world]]\nname = "random-layered"\nlayers = [1, 2, 1]\n' + OWN_LOSS + SVOPS
    expected = hashes_of_text(text, tmp_path)
    table = {"name": "random-layered", "layers": (1, 2, 1)}
    assert hashes(tmp_path, world=table) == expected
    assert hashes(tmp_path, world={"mine": table}) == expected
    assert hashes(tmp_path, world=hr.worlds.make("random-layered", layers=(1, 2, 1))) == expected
    assert hashes(tmp_path, world={"name": hr.worlds.find("random-layered"), "layers": np.array([1, 2, 1])}) == expected
    assert hashes(tmp_path, world=hr.worlds.make("random-layered", layers=(1, 3, 1))) != expected


@pytest.mark.parametrize("with_loss", [False, True])
def test_a_world_is_its_content_and_no_path(with_loss: bool, tmp_path: Path) -> None:
    world = table_world()
    losses = None if with_loss else {"name": "switching", "period": 5}
    given = world if with_loss else world.cmdp
    stored = hr.worlds.WorldDefinition(world.cmdp, world.loss) if with_loss else world.cmdp
    (tmp_path / "sub").mkdir()
    stored.save(tmp_path / "sub" / "any.npz")
    adversary = OWN_LOSS if with_loss else '[[adversary]]\nname = "switching"\nperiod = 5\n'
    expected = hashes_of_text(f'[[world]]\nfile = "sub/any.npz"\n{adversary}{SVOPS}', tmp_path)
    assert hashes(tmp_path / "here", world=given, adversary=losses) == expected
    assert hashes(tmp_path / "or" / "there", world=given, adversary=losses) == expected
    assert hashes(tmp_path, world={"file": tmp_path / "sub" / "any.npz"}, adversary=losses) == expected
    assert hashes_of_text(f'[[world]]\nfile = "any.npz"\n{adversary}{SVOPS}', tmp_path / "sub") == expected
    other = table_world(0.3)
    assert hashes(tmp_path / "here", world=other if with_loss else other.cmdp, adversary=losses) != expected


def test_a_changed_world_of_the_catalogue_is_another_one(tmp_path: Path) -> None:
    from dataclasses import replace

    world = hr.worlds.make("lower-bound-1")
    assert hashes(tmp_path, world=world) == hashes(tmp_path)
    changed = replace(world, cmdp=world.cmdp.with_thresholds([0.6]))
    assert hashes(tmp_path, world=changed) != hashes(tmp_path)
    cheaper = replace(world, loss=0.5 * world.loss)
    assert hashes(tmp_path, world=cheaper) != hashes(tmp_path)


@pytest.mark.parametrize(
    ("losses", "text"),
    [
        (hr.losses.Switching(period=5), 'name = "switching"\nperiod = 5\nseed = 0\n'),
        ({"name": "switching", "period": 5}, 'name = "switching"\nperiod = 5\n'),
        ({"name": hr.losses.Switching, "period": np.int64(5)}, 'name = "switching"\nperiod = 5\n'),
        (hr.losses.Switching, 'name = "switching"\n'),
        (hr.losses.IID(seed=3), 'name = "iid"\nseed = 3\n'),
        (hr.losses.Pursuit(0.25), 'name = "pursuit"\nrate = 0.25\n'),
        (hr.losses.Cycle, 'name = "cycle"\n'),
        ("cycle", 'name = "cycle"\n'),
        (None, 'name = "own"\n'),
        (np.array([0.25, 1.0]), 'name = "fixed"\nloss = [0.25, 1.0]\n'),
        ([[0.25, 1.0]], 'name = "fixed"\nloss = [0.25, 1.0]\n'),
        (hr.losses.Fixed([0.25, 1.0]), 'name = "fixed"\nloss = [0.25, 1.0]\n'),
    ],
)
def test_losses_are_the_same_from_everywhere(losses: Any, text: str, tmp_path: Path) -> None:
    expected = hashes_of_text(f"{WORLD}[[adversary]]\n{text}{SVOPS}", tmp_path)
    assert hashes(tmp_path, adversary=losses) == expected
    assert hashes(tmp_path, adversary={"called": losses}) == expected


def test_many_losses_are_their_content_and_no_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More numbers than a description holds are a data file, which a TOML file can name as well."""
    losses = hr.losses.Replay(np.random.default_rng(0).random((11_000, 2)))
    losses.save(tmp_path / "any.npz")
    expected = hashes_of_text(f'{WORLD}[[adversary]]\nfile = "any.npz"\n{SVOPS}', tmp_path)
    assert hashes(tmp_path / "here", adversary=losses) == expected
    assert hashes(tmp_path / "or" / "there", adversary=losses) == expected
    assert hashes(tmp_path, adversary={"file": tmp_path / "any.npz"}) == expected
    assert hashes(tmp_path, adversary=hr.losses.Replay(losses.table[:10_999])) != expected
    given = {**NUMBERS, "learner": ["sv-ops", "oracle"], **QUIET}
    learners, numbers = given.pop("learner"), {**given, "episodes": 60}
    results = hr.compare("lower-bound-1", learners, [losses, losses.table[0]], directory=tmp_path / "out", **numbers)
    (file,) = (tmp_path / "out" / "losses").iterdir()
    assert hr.load(file) == losses
    assert {len(cell.spec["adversary"]) for cell in results.cells} == {2}
    # The same run as with the losses themselves.
    cell = next(cell for cell in results.cells if cell.label("adversary").startswith("replay"))
    world = hr.worlds.make("lower-bound-1")
    oracle = hr.field.Oracle(world, 60, losses=losses)
    assert hr.simulate(world, oracle, losses, progress=False).regret[-1] == pytest.approx(0.0, abs=1e-9)
    assert cell.label("adversary") == f"replay-{file.stem[:6]}"
    # A file that has changed meanwhile is not taken for the old one.
    file.unlink()
    hr.losses.Replay(np.zeros((11_000, 2))).save(file)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match=r"holds the results of another experiment"):
        hr.compare("lower-bound-1", learners, {"x": {"file": file}}, directory=tmp_path / "out", **numbers)


def test_files_of_losses(tmp_path: Path) -> None:
    for losses in (hr.losses.Switching(period=5), hr.losses.IID(seed=3), hr.losses.Fixed([[0.25, 1.0]])):
        losses.save(tmp_path / "one.npz", overwrite=True)
        assert hr.load(tmp_path / "one.npz") == losses
        assert type(losses).load(tmp_path / "one.npz") == losses
    with pytest.raises(HedgerowError, match=r"does not describe a list of losses: it holds fixed losses"):
        hr.losses.Replay.load(tmp_path / "one.npz")
    with pytest.raises(InvalidInput, match=r"Long is not one of hedgerow's own adversaries"):
        Long([[0.5]]).save(tmp_path / "two.npz")
    with pytest.raises(InvalidInput, match=r"adversary 1, period: what comes from a file has the one parameter file"):
        hashes_of_text(f'{WORLD}[[adversary]]\nfile = "one.npz"\nperiod = 3\n{SVOPS}', tmp_path)
    table_world().cmdp.save(tmp_path / "world.npz")
    with pytest.raises(InvalidInput, match=r"adversary 1: .*holds a 'cmdp', not a 'losses'"):
        hashes_of_text(f'{WORLD}[[adversary]]\nfile = "world.npz"\n{SVOPS}', tmp_path)


def test_a_gymnasium_world_with_exact_scores_is_its_model(tmp_path: Path) -> None:
    gymnasium = pytest.importorskip("gymnasium")
    from hedgerow.gym import GymWorld

    def fell(state: int, action: int, next_state: int, reward: float, info: Any) -> float:
        return float(next_state in {5, 7, 11, 12})

    lake = gymnasium.make("FrozenLake-v1", success_rate=0.9)
    declared: dict[str, Any] = {"thresholds": {"hole": 0.2}, "costs": fell, "max_episode_cost": {"hole": 1}}
    declared |= {"costs_drawn": "step", "stationary": True}
    world = GymWorld(lake, steps=4, rewards=(0, 1), scored="exact", **declared)
    assert world.model is not None
    expected = hashes(tmp_path, world=world.model)
    assert hashes(tmp_path, world=world) == hashes(tmp_path, world={"lake": world}) == expected
    # Learners know of the model what was declared of the environment, but for what is not true of separate draws.
    ours, theirs = world.model.cmdp.knowledge, world.view().knowledge
    for name in ("same_transitions", "same_costs", "costs"):
        assert np.array_equal(getattr(ours, name), getattr(theirs, name), equal_nan=name == "costs")
    assert (ours.costs_drawn, ours.max_episode_cost) == ("step", None)
    plain = GymWorld(lake, steps=4, rewards=(0, 1), scored="exact", thresholds={"hole": 0.2}, costs=fell)
    assert plain.model is not None
    assert plain.model.cmdp.knowledge.same_transitions is None
    results = hr.compare({"lake": world}, ["s-ops", "always-baseline"], **NUMBERS, **QUIET)
    assert {cell.label("world") for cell in results.done} == {"lake"}
    with pytest.raises(InvalidInput, match=r"GymWorld has no model.*scored='exact'.*hr\.simulate\(world, learner\)"):
        hr.compare(GymWorld(lake, steps=4, rewards=(0, 1), **declared), "sv-ops", **NUMBERS, **QUIET)


def test_learners_are_the_same_from_everywhere(tmp_path: Path) -> None:
    text = WORLD + OWN_LOSS + '[[learner]]\nname = "s-ops"\nbaseline = "offered"\n'
    expected = hashes_of_text(text, tmp_path)
    for learner in ("s-ops", hr.SOPS, {"safe": hr.SOPS}, {"name": hr.SOPS, "baseline": "offered"}):
        assert hashes(tmp_path, learner=learner) == expected
    # A table means what it means in a file: there the baseline is another one.
    assert hashes(tmp_path, learner={"name": "s-ops"}) == hashes_of_text(
        WORLD + OWN_LOSS + '[[learner]]\nname = "s-ops"\n', tmp_path
    )
    assert hashes(tmp_path, learner=Still) == hashes(tmp_path, learner="own_learners:Still")


def test_labels() -> None:
    world = hr.worlds.make("random-layered", layers=(1, 2, 1))
    given = {
        "world": [world, {"name": "dope-media"}, table_world()],
        "adversary": [hr.losses.Switching(5), hr.losses.Switching(5, seed=2), None, "cycle"],
        "learner": {"a": "s-ops", "b": {"name": "s-ops", "label": "hidden"}},
    }
    experiment = written("compare", {**NUMBERS, **given}, Path("out"))
    (path,) = experiment.files
    assert path.parent == Path("out/worlds")
    tables = experiment.source.data()
    assert [table.get("label") for table in tables["world"]] == [None, None, f"tableworld-{path.stem[:6]}"]
    labels = [table["label"] for table in tables["adversary"]]
    assert labels == ["switching-5", "switching-5-seed=2", "own", "cycle"]
    assert [table["label"] for table in tables["learner"]] == ["a", "b"]
    assert experiment.offered == ("a",)


# What is run ----------------------------------------------------------------------------------------------------------


def test_a_temporary_directory_lives_as_long_as_the_results() -> None:
    results = hr.compare(["lower-bound-1", table_world()], [hr.UOBREPS, Still], seeds=2, episodes=2e1, **QUIET)
    place = results.directory
    assert place is not None
    assert len(results.done) == 8
    assert {cell.label("learner") for cell in results.cells} == {"uob-reps", "Still"}
    assert [path.suffix for path in (place / "worlds").iterdir()] == [".npz"]
    assert (place / "compare.html").stat().st_size > 0
    assert len(results.leaderboard().blocks) == 2
    assert results.summary().num_rows == 8
    assert hr.report(results).parent == place
    del results
    gc.collect()
    assert not place.exists()


def test_the_same_call_again_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world, target = table_world(), tmp_path / "out"
    first = hr.compare(world, "sv-ops", directory=target, **NUMBERS, **QUIET)
    before = {path: path.stat().st_mtime_ns for path in target.glob("*/*.*")}
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    again = hr.compare(world, "sv-ops", directory="../out", **NUMBERS, **QUIET)
    assert [cell.hash for cell in again.cells] == [cell.hash for cell in first.cells]
    assert {path: path.stat().st_mtime_ns for path in target.glob("*/*.*")} == before
    assert cells_of(stored_experiment(target))[0].hash == first.cells[0].hash  # what `hedgerow resume` reads
    with pytest.raises(InvalidInput, match="holds the results of another experiment"):
        hr.compare(table_world(0.3), "sv-ops", directory=target, **NUMBERS, **QUIET)
    assert {path: path.stat().st_mtime_ns for path in target.glob("*/*.*")} == before


def test_equal_results_in_any_directory(tmp_path: Path) -> None:
    contents = []
    for name in ("a", "deep/er/b"):
        hr.compare({"w": table_world()}, "sv-ops", directory=tmp_path / name, **NUMBERS, **QUIET)
        contents.append([path.read_bytes() for path in (tmp_path / name / "cells").iterdir()])
    assert contents[0] == contents[1]


def test_a_sweep_of_a_mapping(tmp_path: Path) -> None:
    given = {**NUMBERS, "title": "Mine", "world": table_world(), "adversary": [None], "learner": {"x": "sv-ops"}}
    results = hr.sweep(given, tmp_path / "out", **QUIET)
    assert (results.title, [cell.label("learner") for cell in results.cells]) == ("Mine", ["x"])
    with pytest.raises(InvalidInput, match="resume=True"):
        hr.sweep(given, tmp_path / "out", **QUIET)
    assert len(hr.sweep(given, tmp_path / "out", resume=True, **QUIET).done) == 1
    with pytest.raises(InvalidInput, match=r"^sweep: the entry 'episodes' is missing"):
        hr.sweep({key: given[key] for key in given if key != "episodes"}, tmp_path / "other", **QUIET)
    assert not (tmp_path / "other").exists()


@pytest.mark.slow
@pytest.mark.parametrize("where", daily("cluster", nightly="processes"))
def test_processes_and_a_cluster_give_the_same(where: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    files, away = [], {"processes": 2}
    if where == "cluster":
        away = {"scheduler": request.getfixturevalue("cluster")[0]}
    for name, how in {"here": {"processes": 1}, "away": away}.items():
        learners = ["sv-ops", _local_class()]
        hr.compare(table_world(), learners, seeds=1, episodes=40, directory=tmp_path / name, progress=False, **how)
        files.append({path.name: path.read_bytes() for path in (tmp_path / name / "cells").iterdir()})
    assert len(files[0]) == 2
    assert files[0] == files[1]


def _local_class() -> type:
    class Local(hr.SVOPS):
        """No other process can import it."""

    return Local


SCRIPT = """\
import sys
import hedgerow as hr

class Scripted(hr.SVOPS):
    "A class of a script, which no worker can import."

def losses(layout, first, count):
    return [[0.5] * layout.num_rows] * count

if __name__ == "__main__":
    how = {"seeds": 2, "episodes": 40, "processes": int(sys.argv[1]), "progress": False}
    results = hr.compare("lower-bound-1", Scripted, losses, **how)
    print(len(results.done), results.cells[0].spec["learner"]["plug-in"]["module"], results.cells[0].id)
"""


@pytest.mark.slow
@pytest.mark.parametrize("processes", daily(2, nightly=1))
def test_classes_of_a_script(processes: int, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, str(tmp_path / "script.py"), str(processes)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ))
    assert result.stdout == "2 __main__ lower-bound-1__losses__Scripted__T40__seed0\n", result.stderr


def test_a_class_without_source_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code: dict[str, Any] = {"__name__": "__main__", "hr": hr}
    exec("class Typed(hr.SVOPS): ...", code)  # as in an interactive session
    words = r"^compare, learner 1, name: the source of Typed cannot be found.*write it into a file and name it file\.py"
    monkeypatch.delattr(sys.modules["__main__"], "__file__", raising=False)
    with pytest.raises(InvalidInput, match=words):
        hr.compare("lower-bound-1", code["Typed"], directory=tmp_path / "out", **NUMBERS, **QUIET)
    assert not (tmp_path / "out").exists()


def test_a_class_of_a_file_is_called_by_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("import hedgerow as hr\n\nclass Mine(hr.SVOPS): ...\n")
    found = hr.learners.find("mine.py:Mine")
    assert hashes(tmp_path, learner=found) == hashes(tmp_path, learner="mine.py:Mine")
    assert hashes_of_text(WORLD + OWN_LOSS + '[[learner]]\nname = "mine.py:Mine"\n', tmp_path) == hashes(
        tmp_path, learner={"m": found}
    )


# What is refused ------------------------------------------------------------------------------------------------------


class Long(hr.losses.Replay):
    """Losses of one's own."""


class Walled:
    """A world without a model."""

    def view(self) -> Any: ...

    def play(self, policy: Any, rng: Any) -> Any: ...


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no world": ({"worlds": []}, r"^compare, world: there is none; give at least one"),
    "unknown world": ({"worlds": "lower-bound"}, r"^compare, world 1, name: unknown world 'lower-bound'; did you mean"),
    "no model": (
        {"worlds": ["lower-bound-1", Walled()]},
        r"^compare, world 2: .*Walled has no model.*scored='exact'.*hr\.simulate",
    ),
    "no world at all": ({"worlds": 5}, r"^compare, world 1: a world is a name, a table with a name, a CMDP .*not 5"),
    "a parameter": (
        {"worlds": {"a": {"name": "random-layered", "layer": 1}}},
        r"^compare, world 1, layer: .*no parameter 'layer'",
    ),
    "an object in a table": (
        {"worlds": {"name": "random-layered", "layers": object()}},
        r"^compare, world 1, layers: must be a number, a text, true or false, or a list or table",
    ),
    "None in a table": ({"learners": {"name": "s-ops", "preset": None}}, r"^compare, learner 1, preset: must be"),
    "preset": (
        {"learners": ["sv-ops", {"name": "s-ops", "preset": "blunt"}]},
        r"^compare, learner 2, preset: the preset is 'blunt'; choose one of",
    ),
    "a built learner": (
        {"learners": hr.SVOPS(hr.worlds.make("lower-bound-1").view(), 10, 0.1)},
        r"^compare, learner 1: a learner is a name.*give its class, hr\.SVOPS",
    ),
    "twice": ({"learners": ["sv-ops", hr.SVOPS]}, r"^compare, learner 2: is called 'sv-ops' like learner 1"),
    "a label": ({"learners": {5: "sv-ops"}}, r"^compare, learner 1, label: must be a text of 1 to 60"),
    "no learner": ({"learners": dict}, r"^compare, learner 1: the signature of builtins:dict cannot be read"),
    "losses": ({"losses": object()}, r"^compare, adversary 1: losses are a name, a table .* not <object"),
    "a loss of 2": ({"losses": [0.5, 2.0]}, r"^compare, adversary 1: the loss is 2\.0 .*must lie in \[0, 1\]"),
    "nan": ({"losses": np.array([0.5, np.nan])}, r"^compare, adversary 1: the loss is nan"),
    "many numbers": (
        {"losses": Long(np.zeros((10_001, 2)))},
        r"^compare, adversary 1: these losses hold 20,003 numbers.*let .*:Long read them from a file.*Replay\(table\)",
    ),
    "rows": ({"losses": [0.5, 0.5, 0.5]}, r"^compare, adversary 1.*3.*2"),
    "no own loss": ({"worlds": table_world().cmdp}, r"^compare, adversary 1: this world has no loss of its own"),
    "seeds": ({"seeds": 0}, r"^compare, seeds: the number of seeds is 0; it must be at least 1"),
    "half an episode": ({"episodes": 1.5}, r"^compare, episodes: the number of episodes"),
    "delta": ({"delta": float("nan")}, r"^compare, delta: delta"),
    "declined": ({"declined": "no"}, r"^compare, declined: must be 'refuse' or 'skip', not 'no'"),
    "processes": ({"processes": "two"}, r"^the number of processes must be a whole number, not 'two'"),
    "no processes": ({"processes": 0}, r"^the number of processes is 0; it must be at least 1"),
    "scheduler": ({"scheduler": 8786}, r"^the scheduler is an address such as 'tcp://"),
    "limit": ({"limit": -1}, r"time limit is -1"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_said_and_leaves_nothing_behind(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    changes, words = WRONG[name]
    good = {"worlds": "lower-bound-1", "learners": "sv-ops", **NUMBERS, **QUIET}
    with pytest.raises(InvalidInput, match=words):
        hr.compare(**{**good, **changes}, directory=tmp_path / "or" / "out")
    with pytest.raises(InvalidInput, match=words):
        hr.compare(**{**good, **changes})
    # A world that is fine itself is written first, and goes again.
    if "worlds" not in changes:
        with pytest.raises(InvalidInput):
            hr.compare(**{**good, "worlds": table_world(), **changes}, directory=tmp_path / "or" / "out")
    assert not list(tmp_path.iterdir())


def test_a_directory_of_others_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InvalidInput, match="is not empty and holds no results"):
        hr.compare(table_world(), "sv-ops", directory=tmp_path, **NUMBERS, **QUIET)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    with pytest.raises(InvalidInput, match=r"notes\.txt cannot be a directory: .* is in the way"):
        hr.compare(table_world(), "sv-ops", directory=tmp_path / "notes.txt", **NUMBERS, **QUIET)


def test_failed_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    learners = ["sv-ops", Failing]
    with pytest.raises(HedgerowError, match=r"1 of 2 cells failed.*on purpose.*in .*out; call again for the failed"):
        hr.compare(table_world(), learners, directory=tmp_path / "out", **NUMBERS, **QUIET)
    assert len(read_manifest(tmp_path / "out")["cells"]) == 2
    assert len(list((tmp_path / "out" / "worlds").iterdir())) == 1  # the sweep has begun: its worlds stay
    with pytest.raises(HedgerowError, match=r"1 of 2 cells failed.*are lost; name a directory"):
        hr.compare(table_world(), learners, **NUMBERS, **QUIET)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
