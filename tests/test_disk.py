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

import pytest

from hedgerow.errors import FileFormatError, InvalidInput
from hedgerow.storage import atomic, datafile

LONGEST_NAME = 255
posix = pytest.mark.skipif(os.name != "posix", reason="FIFOs, locks, signals and limits as POSIX systems have them")


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
        blobs = [bytes([number]) * 50_000 for number in range(24)]  # more than may write at a time
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
from hedgerow.storage import datafile as files
step = sys.argv[2]
if step == "write":
    os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL)
else:
    link = os.link
    os.link = lambda *names: (link(*names), os.kill(os.getpid(), signal.SIGKILL))
files.save(sys.argv[1], b"of the killed", overwrite=step == "write")
"""


@posix
@pytest.mark.parametrize("step", ["write", "link"])
def test_what_a_killed_saver_leaves_is_removed_by_the_next(step: str, tmp_path: Path) -> None:
    target = tmp_path / "file.npz"
    killed = subprocess.run([sys.executable, "-c", SAVER, str(target), step], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(names(tmp_path)) == (1 if step == "write" else 2)
    assert not target.exists() or target.read_bytes() == b"of the killed"
    datafile.save(tmp_path / "other.npz", b"of another target")
    assert len(names(tmp_path)) == (2 if step == "write" else 3)  # not its business
    datafile.save(target, b"new", overwrite=True)
    assert names(tmp_path) == ["file.npz", "other.npz"]
    assert target.read_bytes() == b"new"


@posix
def test_what_somebody_is_writing_is_left_alone(tmp_path: Path) -> None:
    target = tmp_path / "file.npz"
    temporary, handle = atomic._open_temporary(target)  # a saver in the middle of its work
    os.write(handle, b"slow")
    datafile.save(target, b"quick")
    assert temporary.read_bytes() == b"slow"
    temporary.replace(target)
    os.close(handle)
    assert target.read_bytes() == b"slow"


@pytest.fixture
def like_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No locks, and nothing that is open gets another name or goes away."""
    opened, close = set[int](), os.close
    really_open, replace, unlink = os.open, Path.replace, Path.unlink

    def remember(path: object, *arguments: int) -> int:
        handle = really_open(path, *arguments)
        opened.add(handle)
        return handle

    def forget(handle: int) -> None:
        opened.discard(handle)
        close(handle)

    def is_behind(name: Path, handle: int) -> bool:
        try:
            return os.path.samestat(os.fstat(handle), name.stat())
        except OSError:  # closed meanwhile by another thread, or gone
            return False

    def refuse_if_open(name: Path) -> None:
        if any(is_behind(name, handle) for handle in list(opened)):
            raise PermissionError(errno.EACCES, "it is open", str(name))

    def careful_replace(name: Path, target: Path) -> Path:
        refuse_if_open(name)
        return replace(name, target)

    def careful_unlink(name: Path, missing_ok: bool = False) -> None:
        refuse_if_open(name)
        unlink(name, missing_ok)

    monkeypatch.setattr(atomic, "fcntl", None)
    monkeypatch.setattr(os, "open", remember)
    monkeypatch.setattr(os, "close", forget)
    monkeypatch.setattr(Path, "replace", careful_replace)
    monkeypatch.setattr(Path, "unlink", careful_unlink)


@pytest.mark.usefixtures("like_windows")
def test_a_system_without_locks_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for turn in range(atomic.MOST_SAVERS + 2):
        datafile.save(tmp_path / f"{turn}", b"new")
        datafile.save(tmp_path / "same", bytes([turn]), overwrite=True)
        with pytest.raises(InvalidInput, match="exists already"):
            datafile.save(tmp_path / "same", b"")
    assert len(names(tmp_path)) == atomic.MOST_SAVERS + 3
    monkeypatch.setattr(os, "fsync", refuse(errno.ENOSPC))
    with pytest.raises(OSError, match="No space left"):
        datafile.save(tmp_path / "full", b"x")
    assert len(names(tmp_path)) == atomic.MOST_SAVERS + 3


@pytest.mark.usefixtures("like_windows")
@pytest.mark.parametrize("has_links", [True, False])
def test_savers_without_locks(has_links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not has_links:
        monkeypatch.setattr(os, "link", refuse(errno.EINVAL))
    blobs = [bytes([number]) * 50_000 for number in range(24)]
    ends = together([partial(datafile.save, tmp_path / "once", blob) for blob in blobs])
    assert [blob for blob, end in zip(blobs, ends, strict=True) if end is None] == [(tmp_path / "once").read_bytes()]
    assert set(together([partial(datafile.save, tmp_path / "x", blob, overwrite=True) for blob in blobs])) == {None}
    assert (tmp_path / "x").read_bytes() in blobs
    assert names(tmp_path) == ["once", "x"]


@pytest.mark.usefixtures("like_windows")
def test_without_locks_an_old_temporary_file_counts_as_left_behind(tmp_path: Path) -> None:
    (old, handle), (young, other) = atomic._open_temporary(tmp_path / "x"), atomic._open_temporary(tmp_path / "x")
    os.close(handle)
    os.close(other)
    os.utime(old, (0.0, time.time() - 2 * atomic._LEFT_BEHIND))
    datafile.save(tmp_path / "x", b"new")
    assert names(tmp_path) == [young.name, "x"]


@posix
def test_too_many_unfinished_savers_are_an_error_not_a_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atomic, "_PATIENCE", 0.05)
    monkeypatch.setattr(atomic.fcntl, "flock", refuse(errno.ENOLCK))  # nobody can tell whether they live
    for _ in range(atomic.MOST_SAVERS):
        os.close(atomic._open_temporary(tmp_path / "x")[1])
    with pytest.raises(InvalidInput, match=r"16 others seem to be writing it; if there are none, remove .*-\*\.tmp"):
        datafile.save(tmp_path / "x", b"")


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
        "import resource, signal, sys\nfrom hedgerow.storage import datafile as files\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))\n"
        "files.save(sys.argv[1], b'old')\n"
        "try:\n    files.save(sys.argv[1], bytes(20_000), overwrite=True)\n"
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
        "import resource, sys\nfrom hedgerow.storage import datafile as files\n"
        "from hedgerow.errors import FileFormatError\n"
        "resource.setrlimit(resource.RLIMIT_AS, (2**33, 2**33))\n"
        "try:\n    files.load(sys.argv[1])\nexcept FileFormatError as error:\n    print(error)\n"
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
