"""Plug-ins that end the program or never come back while an experiment is read: named with their line, exit code 1."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from small_experiments import SMALL, source

import hedgerow as hr
from hedgerow import cli
from hedgerow.commands import lists
from hedgerow.errors import InvalidInput
from hedgerow.experiments import reading
from hedgerow.experiments.isolation import Apart, Ended
from hedgerow.experiments.spec import parse
from hedgerow.registry import plugins

LIMIT = "3"
"""Seconds; a machine under load is slow."""
DIED = "its process ended by itself, with exit code 0"
LATE = f"it was ended, since it took longer than {LIMIT} s"
RUDE = f"""\
import os
import time
import hedgerow as hr


def leave():
    assert os.getpid() != {os.getpid()}, "in the process of the command"  # it would end the tests, with exit code 0
    os._exit(0)


def stay():
    assert os.getpid() != {os.getpid()}, "in the process of the command"
    while True:
        time.sleep(0.05)
"""
PLUGIN = f"""\
{RUDE}

class Honest:
    def __init__(self, view):
        self.view = view

    def plan(self):
        return hr.Plan(hr.Policy.uniform(self.view))

    def observe(self, episode):
        pass


class Leaves(Honest):
    def __init__(self, view):
        leave()


class Stays(Honest):
    def __init__(self, view):
        stay()


class Declines(Honest):
    def __init__(self, view):
        raise hr.errors.InvalidInput("not here")


def world():
    leave()


class Foe:
    def block(self, layout, first, count):
        leave()
"""
HEAD = "seeds = 1\nepisodes = 6\n"
FILES = {"mine.py": PLUGIN, "leaves.py": f"{RUDE}\n\nleave()\n", "stays.py": f"{RUDE}\n\nstay()\n"}


def text(learner: str = "sv-ops", world: str = "lower-bound-1", adversary: str = "own") -> str:
    named = {"world": world, "adversary": adversary, "learner": learner}
    return HEAD + "".join(f'[[{kind}]]\nname = "{name}"\n' for kind, name in named.items())


# name: (text of the experiment, how the message begins, and how it ends)
WRONG = {
    "constructor leaves": (text("mine.py:Leaves"), "line 7, learner 1: in a trial of mine.py:Leaves", DIED),
    "constructor stays": (text("mine.py:Stays"), "line 7, learner 1: in a trial of mine.py:Stays", LATE),
    "import leaves": (text("leaves.py:Any"), "line 7, learner 1: in a trial of leaves.py:Any", DIED),
    "import stays": (text("stays.py:Any"), "line 7, learner 1: in a trial of stays.py:Any", LATE),
    "world leaves": (text(world="mine.py:world"), "line 3, world 1: in a trial of mine.py:world", DIED),
    "losses leave": (text(adversary="mine.py:Foe"), "line 5, adversary 1: in a trial of mine.py:Foe", DIED),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(plugins, "_loaded", {})  # messages name the file that was loaded first
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    return tmp_path


def run_main(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int | str | None:
    monkeypatch.setattr(sys, "argv", ["hedgerow", *arguments])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return stop.value.code


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("run", "constructor leaves"),
        *(pytest.param("run", name, marks=pytest.mark.slow) for name in list(WRONG)[1:]),
        pytest.param("compare", "constructor stays", marks=pytest.mark.slow),
    ],
)
def test_it_is_named_with_its_line_and_the_exit_code_is_1(
    command: str, name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    content, begins, ends = WRONG[name]
    file = folder / "mine.toml"
    file.write_text(content)
    out = folder / "out"
    limit = LIMIT if ends == LATE else "inf"  # on a busy machine, what ends by itself may take longer
    assert run_main(monkeypatch, command, str(file), "--out", str(out), "-j", "1", "--limit", limit) == 1
    assert capsys.readouterr().err == f"hedgerow: {file}, {begins}, {ends}\n"
    assert not out.exists()


def test_names_that_are_chosen_from_the_command_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are looked up before there is a line that names them."""
    file = folder / "plain.toml"
    file.write_text(text())
    assert run_main(monkeypatch, "compare", str(file), "--learners", f"sv-ops,{folder}/leaves.py:Any") == 1
    assert capsys.readouterr().err == f"hedgerow: {file}: in a trial of {folder}/leaves.py:Any, {DIED}\n"


@pytest.mark.slow
def test_what_is_read_apart_is_what_is_read_here(folder: Path) -> None:
    honest = source(text("mine.py:Honest"), folder)
    assert reading.read(honest) == parse(honest)
    chosen = reading.read(source(text(), folder), learners=["mine.py:Honest"], seeds=2)
    assert [item.label for item in chosen.learners] == ["Honest"]
    assert chosen.seeds == (0, 1)
    declined = source(text("mine.py:Declines"), folder)
    with pytest.raises(InvalidInput) as here:
        parse(declined)
    with pytest.raises(InvalidInput) as there:
        reading.read(declined)
    assert str(there.value) == str(here.value)


@pytest.mark.slow
def test_from_python(folder: Path) -> None:
    (folder / "mine.toml").write_text(text("mine.py:Leaves"))
    with pytest.raises(Ended, match=f"line 7, learner 1: in a trial of mine.py:Leaves, {DIED}"):
        hr.sweep(folder / "mine.toml", folder / "out", processes=1, progress=False)


def test_no_process_is_started_without_code_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(place: Apart) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr(Apart, "_start", refuse)
    for content in (SMALL, text("hedgerow.learners.ops.sv_ops:SVOPS")):
        assert reading.read(source(content)) == parse(source(content))
    with pytest.raises(InvalidInput, match="unknown learner 'gready'"):
        reading.read(source(text("gready")))
    with pytest.raises(InvalidInput, match="must be positive"):
        reading.read(source(SMALL), 0.0)


# Commands without an experiment ---------------------------------------------------------------------------------------


def test_a_world_that_is_checked(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = f"{folder}/mine.py:world"
    assert run_main(monkeypatch, "check", name, "--no-probe") == 1
    assert capsys.readouterr().err == f"hedgerow: {DIED}, in the construction of {name}\n"


@pytest.mark.slow
def test_a_world_that_takes_too_long(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = f"{folder}/stays.py:world"
    assert run_main(monkeypatch, "check", name, "--no-probe", "--limit", LIMIT) == 1
    assert capsys.readouterr().err == f"hedgerow: {LATE} in the construction of {name}\n"
    assert run_main(monkeypatch, "check", f"{folder}/mine.py:nothing") == 2
    assert "mine.py has no 'nothing'" in capsys.readouterr().err


@pytest.mark.slow
def test_what_is_installed_cannot_end_a_list(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lists, "LONGEST_LOADING", float(LIMIT))
    info = folder / "rude-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: rude\nVersion: 1.0\n")
    points = "a-leaves = leaves:Any\nb-stays = stays:Any\nc-honest = mine:Honest\n"
    (info / "entry_points.txt").write_text(f"[hedgerow.learners]\n{points}")
    monkeypatch.syspath_prepend(folder)
    assert run_main(monkeypatch, "learners", "--json") == 0
    listed = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert "sv-ops" in listed
    assert listed["a-leaves"]["error"] == f"{DIED}, in the loading of a-leaves"
    assert listed["b-stays"]["error"] == f"{LATE} in the loading of b-stays"
    assert listed["c-honest"]["home"] == "mine:Honest"


SCRIPT = """\
import sys
import hedgerow as hr

@hr.learners.register("scripted")
class Scripted(hr.SVOPS):
    "Registered by a script, which no other process can import."

if __name__ == "__main__":
    print(len(hr.sweep(sys.argv[1], sys.argv[2], processes=1, progress=False).cells))
"""


@pytest.mark.nightly  # a class of a script that is not registered: test_compare.py
def test_what_a_script_registers_is_tried_as_well(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "mine.toml").write_text(text("scripted"))
    command = [sys.executable, str(tmp_path / "script.py"), str(tmp_path / "mine.toml"), str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ))
    assert done.stdout == "1\n", done.stderr
