"""The command line where things go wrong around it: one line on stderr, exit code 2, nothing half written."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from small_experiments import own_loss
from typer.testing import CliRunner

from hedgerow import cli, results

resource = pytest.importorskip("resource", reason="limits, closed streams and FIFOs as POSIX systems have them")
pytestmark = pytest.mark.slow

EXPERIMENT = own_loss("sv-ops", seeds=1, episodes=40)
LIMIT = 120.0
"""Seconds after which a command counts as hanging."""
FULL = "/dev/full"


def hedgerow(*arguments: str, code: int = 2, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hedgerow", *arguments]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    done = subprocess.run(command, text=True, timeout=LIMIT, check=False, **{**pipes, **options})
    assert done.returncode == code, done
    return done


def refused(*arguments: str, **options: object) -> str:
    """The one line that says why."""
    error = hedgerow(*arguments, **options).stderr
    assert error.startswith("hedgerow: "), error
    assert error.count("\n") == 1, error
    assert len(error) < 600
    return error


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """The errors of a command that runs in this process, where nothing is asked of the process itself."""

    def run(*arguments: str, code: int = 2) -> str:
        monkeypatch.setattr(sys, "argv", ["hedgerow", *arguments])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        assert stop.value.code == code
        error = capsys.readouterr().err
        assert error.count("\n") <= 1, error
        assert not code or (error.startswith("hedgerow: ") and len(error) < 600), error
        return error

    return run


def closing(*numbers: int) -> Callable[[], None]:
    """What a shell does for `>&-`."""

    def close() -> None:
        for number in numbers:
            os.close(number)

    return close


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    file = tmp_path / "tiny.toml"
    file.write_text(EXPERIMENT)
    return file


@pytest.fixture
def directory(experiment: Path, tmp_path: Path) -> Path:
    out = tmp_path / "out"
    done = CliRunner().invoke(cli.app, ["run", str(experiment), "--out", str(out), "-j", "1", "-q"])
    assert done.exit_code == 0, done.output
    return out


# Streams --------------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not Path(FULL).exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("command", [("worlds",), ("run", "--list", "--json"), ("--help",), ("--version",)])
def test_output_that_does_not_fit(command: tuple[str, ...]) -> None:
    with open(FULL, "w") as full:
        assert refused(*command, stdout=full) == "hedgerow: cannot write the output: No space left on device\n"


@pytest.mark.parametrize("command", [("worlds",), ("--version",)])
def test_output_that_is_closed(command: tuple[str, ...]) -> None:
    assert "cannot write the output: Bad file descriptor" in refused(*command, preexec_fn=closing(1))


def test_a_reader_that_has_gone_needs_no_words() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        assert hedgerow("worlds", stdout=writing).stderr == ""
    finally:
        os.close(writing)


@pytest.mark.nightly
@pytest.mark.skipif(not Path(FULL).exists(), reason="there is no /dev/full here")
def test_messages_that_nobody_can_read_do_not_end_a_sweep(experiment: Path, tmp_path: Path) -> None:
    with open(FULL, "w") as full:
        hedgerow("run", str(experiment), "--out", str(tmp_path / "full"), "-j", "1", stderr=full, code=0)
        hedgerow("run", "nowhere.toml", stderr=full)
    hedgerow("run", str(experiment), "--out", str(tmp_path / "closed"), "-j", "1", preexec_fn=closing(2), code=0)
    hedgerow("run", "nowhere.toml", preexec_fn=closing(0, 1, 2))
    assert len(results.open(tmp_path / "full").done) == len(results.open(tmp_path / "closed").done) == 1


@pytest.mark.nightly
def test_what_is_printed_never_ends_up_in_a_file(experiment: Path, tmp_path: Path) -> None:
    calm, odd = tmp_path / "calm", tmp_path / "odd"
    hedgerow("run", str(experiment), "--out", str(calm), "-j", "1", code=0)
    hedgerow("run", str(experiment), "--out", str(odd), "-j", "1", preexec_fn=closing(0, 1, 2))
    (name,) = (path.name for path in (calm / "cells").iterdir())
    assert [path.name for path in (odd / "cells").iterdir()] == [name]
    assert (odd / "cells" / name).read_bytes() == (calm / "cells" / name).read_bytes()


@pytest.mark.nightly  # what is printed of such names: test_hostile_names.py
def test_names_that_are_no_text(experiment: Path, tmp_path: Path) -> None:
    out = os.fsencode(tmp_path) + b"/\xff\xfe"
    done = hedgerow("run", str(experiment), "--out", os.fsdecode(out), "-j", "1", code=0)
    assert "\\udcff" in done.stdout
    hedgerow("report", os.fsdecode(out), code=0)
    assert "\\udcff" in refused("run", os.fsdecode(out + b".toml"))


# Disks ----------------------------------------------------------------------------------------------------------------


def small_files() -> None:
    """As on a full disk, no file grows beyond some bytes."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))


def test_a_disk_without_room_for_a_sweep(experiment: Path, tmp_path: Path) -> None:
    error = refused("run", str(experiment), "--out", str(tmp_path / "out"), "-j", "1", "-q", preexec_fn=small_files)
    assert "manifest.json: File too large" in error
    assert [path for path in (tmp_path / "out").rglob("*") if path.is_file()] == []


def test_a_disk_without_room_for_a_report(directory: Path) -> None:
    before = sorted(path.name for path in directory.iterdir())
    assert "report.html: File too large" in refused("report", str(directory), preexec_fn=small_files)
    assert sorted(path.name for path in directory.iterdir()) == before


@pytest.fixture
def small_disk(tmp_path: Path) -> Path:
    """A file system of 64 KiB, where this may be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("a small file system cannot be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_disk_that_fills_up_in_the_middle_of_a_sweep(experiment: Path, small_disk: Path, tmp_path: Path) -> None:
    experiment.write_text(EXPERIMENT.replace("seeds = 1", "seeds = 40"))
    error = refused("run", str(experiment), "--out", str(small_disk / "out"), "-j", "1", "-q")
    assert "No space left on device" in error
    found = results.store.inspect(small_disk / "out")
    assert found.finished
    assert not found.damaged
    assert not list((small_disk / "out").rglob("*.tmp"))


# Files that are none --------------------------------------------------------------------------------------------------


@pytest.mark.nightly
def test_fifos_do_not_keep_us_waiting(experiment: Path, directory: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for arguments in (("run", str(pipe)), ("check", str(pipe))):
        assert "pipe: it is not a regular file" in refused(*arguments)
    assert "not a regular file" in refused("report", str(directory), "--out", str(pipe))
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    experiment.write_text(EXPERIMENT.replace('name = "lower-bound-1"', 'file = "pipe"'))
    assert "line 3, world 1: cannot read" in refused("run", str(experiment), "--cells")
    (directory / "manifest.json").unlink()
    os.mkfifo(directory / "manifest.json")
    for command in ("resume", "report"):
        assert "it is not a regular file" in refused(command, str(directory))


def test_nul_characters(experiment: Path, directory: Path, told: Callable[..., str]) -> None:
    experiment.write_text(EXPERIMENT.replace('name = "lower-bound-1"', 'file = "a\\u0000b"'))
    assert "no file can have this name" in told("run", str(experiment), "--cells")
    experiment.write_bytes(EXPERIMENT.encode() + b"\0")
    assert "is not valid TOML" in told("run", str(experiment), "--cells")
    manifest = (directory / "manifest.json").read_text()
    (directory / "manifest.json").write_text(manifest.replace('"source_folder": "', '"source_folder": "\\u0000'))
    assert "names have no NUL characters" in told("resume", str(directory))


def test_a_strange_manifest(directory: Path, told: Callable[..., str]) -> None:
    (directory / "manifest.json").write_bytes(b"[" * 100_000)
    for command in ("resume", "report"):
        assert "is no manifest of hedgerow results" in told(command, str(directory))


def test_a_damaged_cell(directory: Path, told: Callable[..., str]) -> None:
    (cell,) = (directory / "cells").iterdir()
    blob = cell.read_bytes()
    cell.write_bytes(blob[:-30] + bytes([blob[-30] ^ 8]) + blob[-29:])
    assert "its checksum does not fit its content; remove it, or run" in told("report", str(directory))
    error = told("resume", str(directory), "-j", "1", "-q", code=0)
    assert f"{cell} is corrupt: its checksum does not fit its content; its cell runs again" in error
    assert cell.read_bytes() == blob
    assert told("resume", str(directory), "-j", "1", "-q", code=0) == ""
