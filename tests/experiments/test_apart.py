"""Learners of others that end the program, crash or hang: their cells fail by name, and the others go on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import forgers
import pytest
from small_experiments import HUNG, small, start
from typer.testing import CliRunner

import hedgerow as hr
from hedgerow import cli
from hedgerow.errors import HedgerowError, InvalidInput
from hedgerow.experiments import sweep as sweeping
from hedgerow.experiments import worker
from hedgerow.experiments.isolation import Apart, Ended
from hedgerow.experiments.options import RunOptions
from hedgerow.experiments.sweep import run_experiment
from nightly import daily

WORLD = '[[world]]\nname = "lower-bound-1"\n[[adversary]]\nname = "own"\n'
LIMIT = 8.0
"""Seconds; a machine under load is slow."""


def experiment(folder: Path, *kinds: str, head: str = "") -> Path:
    (folder / "forgers.py").write_text(Path(forgers.__file__).read_text())
    listed = "".join(f'[[learner]]\nname = "forgers.py:{kind}"\n' for kind in kinds)
    file = folder / "mine.toml"
    file.write_text(f"{head}seeds = 1\nepisodes = 6\n{WORLD}{listed}")
    return file


def nothing(argument: Any, beat: Any) -> Any:
    return argument


def ends(argument: Any, beat: Any) -> None:
    beat("episode 7")
    os._exit(int(argument))


def speaks(argument: Any, beat: Any) -> str:
    print("a learner may print")
    for episode in range(argument):
        beat(f"episode {episode}")
        time.sleep(0.05)
    return "done"


def test_calls_in_a_process_apart() -> None:
    place, heard = Apart(), []
    died = "its process ended by itself, with exit code 0, in episode 7 or a moment later"
    try:
        assert place.call(nothing, {"a": 1}) == {"a": 1}
        # Longer than the limit, but never silent.
        assert place.call(speaks, 70, limit=3.0, heard=heard.append) == "done"
        assert heard[0] == "episode 0"
        with pytest.raises(Ended, match=died):
            place.call(ends, 0)
        with pytest.raises(ZeroDivisionError):
            place.call(nothing, 1, look=lambda: 1 / 0)  # type: ignore[arg-type,return-value]
        assert place.call(nothing, 2) == 2  # a new one
    finally:
        place.close()


@pytest.mark.slow
def test_cells_fail_by_name_and_the_others_go_on(tmp_path: Path) -> None:
    kinds = ("ExitInObserve", "HardExit", "Crash", "Hang", "Interrupting", "Weights", "Honest")
    loaded = small(experiment(tmp_path, *kinds).read_text(), tmp_path)
    tally = run_experiment(loaded, tmp_path / "out", RunOptions(backend="serial", limit=LIMIT))
    told = {name.split("__")[2]: why for name, why in tally.failed.items()}
    assert set(told) == set(kinds) - {"Honest"}
    assert (tally.total, tally.done) == (7, 1)
    assert "ExitInObserve.observe raised SystemExit(0) in episode 0" in told["ExitInObserve"]
    assert "forgers.py:HardExit: its process ended by itself, with exit code 0," in told["HardExit"]
    assert "forgers.py:Crash: its process was ended by SIGSEGV in episode" in told["Crash"]
    assert "forgers.py:Hang: it was ended, since it took longer than 8 s in episode 0" in told["Hang"]
    assert "forgers.py:Interrupting: KeyboardInterrupt in episode 0" in told["Interrupting"]
    assert "the weight of a part is -4.0" in told["Weights"]


@pytest.mark.slow
@pytest.mark.parametrize("command", daily(("run", "-j", "1"), nightly=("compare", "--backend", "serial")), ids=str)
def test_a_command_with_failed_cells_does_not_exit_0(command: tuple[str, ...], tmp_path: Path) -> None:
    file, out = experiment(tmp_path, "ExitInObserve", "Honest"), tmp_path / "out"
    result = CliRunner().invoke(cli.app, [*command, str(file), "--out", str(out)])
    assert result.exit_code == 1, result.output
    assert "ExitInObserve.observe raised SystemExit(0)" in result.output
    assert [path.name.split("__")[2] for path in out.glob("cells/*.parquet")] == ["Honest"]


@pytest.mark.nightly
def test_a_sweep_with_failed_cells_is_an_error(tmp_path: Path) -> None:
    file = experiment(tmp_path, "ExitInObserve", "Honest")
    with pytest.raises(HedgerowError, match=r"1 of 2 cells failed; the first is .*ExitInObserve"):
        hr.sweep(file, tmp_path / "python", processes=1, progress=False)


def test_a_constructor_that_ends_the_program_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"forgers\.py:ExitWhenBuilt fails: .*SystemExit: 0"):
        small(experiment(tmp_path, "ExitWhenBuilt").read_text(), tmp_path)


def test_the_limit_is_a_positive_number(tmp_path: Path) -> None:
    assert small(experiment(tmp_path, "Honest").read_text(), tmp_path).limit == 60.0
    assert small(experiment(tmp_path, "Honest", head="limit = 5\n").read_text(), tmp_path).limit == 5.0
    assert small(experiment(tmp_path, "Honest", head="limit = inf\n").read_text(), tmp_path).limit == float("inf")
    for wrong, words in (
        ("0", "must be positive"),
        ("-1", "must lie in"),
        ('"long"', "must be a number"),
        ("nan", "nan"),
    ):
        with pytest.raises(InvalidInput, match=f"limit.*{words}"):
            small(experiment(tmp_path, "Honest", head=f"limit = {wrong}\n").read_text(), tmp_path)
    with pytest.raises(InvalidInput, match="must be positive"):
        RunOptions(limit=0.0)
    one, other = (
        small(experiment(tmp_path, "Honest", head=head).read_text(), tmp_path) for head in ("", "limit = 5\n")
    )
    assert one.as_data() == other.as_data()  # another limit is no other experiment


def test_cells_that_were_not_run_are_no_success(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the reason: here the sweep ends too early."""
    file = tmp_path / "plain.toml"
    file.write_text(f'seeds = 1\nepisodes = 6\n{WORLD}[[learner]]\nname = "sv-ops"\n')

    class Nothing:
        def __iter__(self) -> Any:
            return iter(())

        def close(self) -> None:
            return

    monkeypatch.setattr(sweeping.backends, "serial", lambda tasks: Nothing())
    result = CliRunner().invoke(cli.app, ["run", str(file), "--out", str(tmp_path / "out"), "-j", "1"])
    assert result.exit_code == 1
    assert "1 of 1 cells were not run" in result.output
    with pytest.raises(HedgerowError, match="1 of 1 cells are missing"):
        hr.sweep(file, tmp_path / "other", processes=1, progress=False)


def test_a_new_learner_begins_at_the_beginning(tmp_path: Path) -> None:
    file = experiment(tmp_path, "Honest")
    text = (tmp_path / "forgers.py").read_text()
    late = "class Late(Honest):\n    episode, episodes = 3, property(lambda self: 9, lambda self, value: None)\n"
    (tmp_path / "forgers.py").write_text(f"{text}\n\n{late}")
    loaded = small(file.read_text().replace("forgers.py:Honest", "forgers.py:Late"), tmp_path)
    (task,) = sweeping._tasks(sweeping.cells_of(loaded), tmp_path, False, LIMIT)
    assert task.cell.is_foreign
    assert "says that it has observed 3 episodes already" in worker.perform(task).error


def test_sys_exit_in_a_command_is_no_success() -> None:
    """A plug-in that ends the program while a command works: the exit code is not that of success."""
    code = (
        "import sys\nfrom hedgerow import cli\nfrom hedgerow.commands import lists\n"
        "import typer\n"
        "@cli.app.command()\ndef leave() -> None:\n    sys.exit(0)\n"
        "@cli.app.command()\ndef stay() -> None:\n    print('done')\n"
        "cli.main()\n"
    )
    for name, expected in (("leave", 1), ("stay", 0)):
        done = subprocess.run([sys.executable, "-c", code, name], capture_output=True, text=True, check=False)
        assert done.returncode == expected, done.stderr
        assert ("the work is not finished" in done.stderr) == bool(expected)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks at processes as Linux shows them")
def test_nobody_is_left_behind_when_a_sweep_is_killed(tmp_path: Path) -> None:
    """A learner that hangs, for ever, in a process of a process that is killed."""
    file = experiment(tmp_path, "Hang")
    process = start("run", str(file), "--out", str(tmp_path / "out"), "-j", "1", "--limit", "inf")
    limit = time.monotonic() + HUNG
    while not (below := children(process.pid)):
        assert time.monotonic() < limit
        time.sleep(0.05)
    time.sleep(2.0)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=HUNG)
    limit = time.monotonic() + HUNG
    while any(Path(f"/proc/{child}").exists() for child in below):
        assert time.monotonic() < limit, "an orphan"
        time.sleep(0.1)


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
