"""Whole files: concurrent savers, what the killed leave behind, links, long names, full disks, what is no file."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hedgerow.errors import FileFormatError, InvalidInput
from hedgerow.storage import atomic, datafile

LONGEST_NAME = 255
posix = pytest.mark.skipif(os.name != "posix", reason="FIFOs, signals and limits as POSIX systems have them")


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def together(work: list[Callable[[], None]]) -> list[BaseException | None]:
    """What becomes of each, all begun at the same moment."""
    start, ends = threading.Barrier(len(work)), [None] * len(work)

    def one(number: int) -> None:
        start.wait()
        try:
            work[number]()
        except BaseException as error:
            ends[number] = error

    threads = [threading.Thread(target=one, args=(number,)) for number in range(len(work))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return ends


@pytest.mark.parametrize("has_links", [True, False])
def test_one_of_many_savers_wins_and_the_others_are_told(
    has_links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_links:
        monkeypatch.setattr(os, "link", refuse(errno.EPERM))
    for turn in range(5):
        path = tmp_path / f"{turn}.npz"
        blobs = [bytes([number]) * 50_000 for number in range(24)]
        ends = together([partial(datafile.save, path, blob) for blob in blobs])
        winners = [blob for blob, end in zip(blobs, ends, strict=True) if end is None]
        assert winners == [path.read_bytes()]
        losers = [end for end in ends if end is not None]
        assert all(isinstance(end, InvalidInput) and "exists already" in str(end) for end in losers), losers
    assert names(tmp_path) == [f"{turn}.npz" for turn in range(5)]


def test_savers_that_overwrite_all_succeed(tmp_path: Path) -> None:
    blobs = [bytes([number]) * 50_000 for number in range(24)]
    ends = together([partial(datafile.save, tmp_path / "x", blob, overwrite=True) for blob in blobs])
    assert set(ends) == {None}
    assert (tmp_path / "x").read_bytes() in blobs
    assert names(tmp_path) == ["x"]


SAVER = """\
import os, signal, sys
from hedgerow.storage import datafile
step = sys.argv[2]
if step == "write":
    os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL)
else:
    link = os.link
    os.link = lambda *names: (link(*names), os.kill(os.getpid(), signal.SIGKILL))
datafile.save(sys.argv[1], b"of the killed", overwrite=step == "write")
"""


@posix
@pytest.mark.parametrize("step", ["write", "link"])
def test_what_a_killed_saver_leaves_is_removed_when_it_is_old(step: str, tmp_path: Path, new_process: None) -> None:
    target = tmp_path / "file.npz"
    killed = subprocess.run([sys.executable, "-c", SAVER, str(target), step], check=False)
    assert killed.returncode == -signal.SIGKILL
    (left,) = tmp_path.glob(".hedgerow-*.tmp")
    assert not target.exists() or target.read_bytes() == b"of the killed"
    datafile.save(target, b"new", overwrite=True)
    assert names(tmp_path) == [left.name, "file.npz"]  # somebody may be writing it
    age(left)
    atomic._cleaned.clear()
    datafile.save(target, b"newer", overwrite=True)
    assert names(tmp_path) == ["file.npz"]
    assert target.read_bytes() == b"newer"


def test_only_old_temporary_files_are_removed_and_once_in_a_folder(tmp_path: Path, new_process: None) -> None:
    old, young, other = tmp_path / ".hedgerow-1.tmp", tmp_path / ".hedgerow-2.tmp", tmp_path / ".other.tmp"
    for path in (old, young, other):
        path.write_bytes(b"half")
    age(old)
    age(other)
    datafile.save(tmp_path / "x", b"")
    assert names(tmp_path) == [young.name, other.name, "x"]
    age(young)
    datafile.save(tmp_path / "y", b"")  # a large folder is listed once, not at every save
    assert young.exists()


@pytest.fixture
def new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if nothing had been saved by this process yet."""
    monkeypatch.setattr(atomic, "_cleaned", set())


def age(path: Path) -> None:
    then = time.time() - 2 * atomic.LEFT_BEHIND
    os.utime(path, (then, then))


@pytest.fixture
def like_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that is open gets another name or goes away."""
    opened, really_open = set[Path](), Path.open

    def remember(path: Path, *arguments: Any, **options: Any) -> Any:
        stream = really_open(path, *arguments, **options)
        close = stream.close
        opened.add(path)

        def forget() -> None:
            opened.discard(path)
            close()

        return Closing(stream, forget)

    def refused_if_open(method: Callable[..., Any]) -> Callable[..., Any]:
        def careful(name: Path, *arguments: Any, **options: Any) -> Any:
            if name in opened:
                raise PermissionError(errno.EACCES, "it is open", str(name))
            return method(name, *arguments, **options)

        return careful

    monkeypatch.setattr(Path, "open", remember)
    monkeypatch.setattr(Path, "replace", refused_if_open(Path.replace))
    monkeypatch.setattr(Path, "unlink", refused_if_open(Path.unlink))


class Closing:
    """A stream that says when it is closed."""

    def __init__(self, stream: Any, close: Callable[[], None]) -> None:
        self.stream, self.close = stream, close

    def __enter__(self) -> Any:
        return self.stream

    def __exit__(self, *_: object) -> None:
        self.close()


@pytest.mark.usefixtures("like_windows")
def test_what_is_open_is_neither_renamed_nor_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for turn in range(3):
        datafile.save(tmp_path / f"{turn}", b"new")
        datafile.save(tmp_path / "same", bytes([turn]), overwrite=True)
        with pytest.raises(InvalidInput, match="exists already"):
            datafile.save(tmp_path / "same", b"")
    assert len(names(tmp_path)) == 4
    monkeypatch.setattr(os, "fsync", refuse(errno.ENOSPC))
    with pytest.raises(OSError, match="No space left"):
        datafile.save(tmp_path / "full", b"x")
    assert len(names(tmp_path)) == 4


@pytest.mark.usefixtures("like_windows")
@pytest.mark.parametrize("has_links", [True, False])
def test_savers_of_one_file_on_such_a_system(has_links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not has_links:
        monkeypatch.setattr(os, "link", refuse(errno.EINVAL))
    blobs = [bytes([number]) * 50_000 for number in range(24)]
    ends = together([partial(datafile.save, tmp_path / "once", blob) for blob in blobs])
    assert [blob for blob, end in zip(blobs, ends, strict=True) if end is None] == [(tmp_path / "once").read_bytes()]
    assert set(together([partial(datafile.save, tmp_path / "x", blob, overwrite=True) for blob in blobs])) == {None}
    assert (tmp_path / "x").read_bytes() in blobs
    assert names(tmp_path) == ["once", "x"]


@posix
def test_a_name_as_long_as_names_may_be(tmp_path: Path) -> None:
    for name in ("x" * LONGEST_NAME, "ä" * (LONGEST_NAME // 2)):
        datafile.save(tmp_path / name, b"1")
        datafile.save(tmp_path / name, b"2", overwrite=True)
        assert (tmp_path / name).read_bytes() == b"2"
    with pytest.raises(OSError, match="too long") as caught:
        datafile.save(tmp_path / ("x" * (LONGEST_NAME + 1)), b"")
    assert Path(caught.value.filename).parent == tmp_path


@posix
def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    link, real = tmp_path / "link.npz", tmp_path / "far" / "real.npz"
    link.symlink_to(Path("far") / "real.npz")
    datafile.save(link, b"1")  # it led nowhere
    with pytest.raises(InvalidInput, match=r"link\.npz exists already"):
        datafile.save(link, b"2")
    datafile.save(link, b"3", overwrite=True)
    assert link.is_symlink()
    assert real.read_bytes() == b"3"
    assert (names(tmp_path), names(tmp_path / "far")) == (["far", "link.npz"], ["real.npz"])
    real.unlink()
    real.parent.rmdir()
    with pytest.raises(InvalidInput, match=r"cannot write .*link\.npz: the folder .*far does not exist"):
        datafile.save(link, b"4")
    (tmp_path / "round").symlink_to("round")
    with pytest.raises(OSError, match="symbolic links"):
        datafile.save(tmp_path / "round", b"5", overwrite=True)


@posix
def test_only_regular_files_are_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "device").symlink_to(os.devnull)
    (tmp_path / "folder").mkdir()
    for name, kind in (("fifo", "not a regular file"), ("device", "not a regular file"), ("folder", "a folder")):
        with pytest.raises(InvalidInput, match=f"it is {kind}; choose another name"):
            datafile.save(tmp_path / name, b"", overwrite=True)
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)
    assert names(tmp_path) == ["device", "fifo", "folder"]


@posix
def test_a_full_disk_leaves_the_old_file_and_is_named(tmp_path: Path) -> None:
    script = (
        "import resource, signal, sys\nfrom hedgerow.storage import datafile\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))\n"
        "datafile.save(sys.argv[1], b'old')\n"
        "try:\n    datafile.save(sys.argv[1], bytes(20_000), overwrite=True)\n"
        "except OSError as error:\n    print(error.filename)\n"
    )
    path = tmp_path / "x.npz"
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout == f"{path}\n"
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["x.npz"]


@posix
def test_reading_a_fifo_does_not_wait(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(FileFormatError, match=r"cannot read .*fifo: it is not a regular file"):
        datafile.load(tmp_path / "fifo")
    with pytest.raises(FileFormatError, match="cannot read /dev/zero: it is not a regular file"):
        datafile.load("/dev/zero")


def test_reading_has_a_limit_where_it_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(bytes(1001))
    assert atomic.read(tmp_path / "x", 1001) == bytes(1001)
    with pytest.raises(OSError, match="it has 1,001 bytes; at most 1,000 are read"):
        atomic.read(tmp_path / "x", 1000)


@posix
def test_names_that_no_file_can_have(tmp_path: Path) -> None:
    for name in ("a\0b", "a\ud800b"):
        with pytest.raises(InvalidInput, match="no file can be called"):
            datafile.save(tmp_path / name, b"")
        with pytest.raises(FileFormatError, match="no file can have this name"):
            datafile.load(tmp_path / name)


@posix
def test_a_file_larger_than_the_memory(tmp_path: Path) -> None:
    with (tmp_path / "huge.npz").open("wb") as stream:
        stream.truncate(2**40)  # without content
    script = (
        "import resource, sys\nfrom hedgerow.storage import datafile\n"
        "from hedgerow.errors import FileFormatError\n"
        "resource.setrlimit(resource.RLIMIT_AS, (2**33, 2**33))\n"
        "try:\n    datafile.load(sys.argv[1])\nexcept FileFormatError as error:\n    print(error)\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "huge.npz")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "larger than the memory" in done.stdout
    import resource

    assert resource.getrlimit(resource.RLIMIT_AS)[0] != 2**33


def refuse(number: int) -> Callable[..., None]:
    def raise_it(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return raise_it
