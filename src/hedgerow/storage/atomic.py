"""Whole files: `save` writes one completely or not at all, `read` reads one and nothing else.

A file is written under a name of its own beside its target, flushed to disk, and only then given its name: by a link,
which fails where something stands already, or by a rename, which replaces it. Whoever writes holds a lock on the
temporary file. A killed saver holds none: the next one that saves the same target can tell a file left behind from one
being written, and removes it.

Windows has no such locks, and gives no file another name while it is open. There a file is closed first, and a
temporary file counts as left behind when it has not been written to for an hour.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import time
from contextlib import suppress
from pathlib import Path

from hedgerow.errors import InvalidInput

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

PathLike = str | os.PathLike[str]

MOST_SAVERS = 16
"""Savers of one target at a time; further ones wait. So few names can all be tried without listing the folder."""
TEMPORARY = ".hedgerow-"
"""How the names of temporary files begin."""
_PAUSE, _PATIENCE = 0.005, 20.0
"""Seconds between two attempts, and of all of them."""
_LEFT_BEHIND = 3600.0
"""Seconds after which a temporary file has no owner any more, where there are no locks to tell."""
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EINVAL)
"""How file systems say that they have no hard links; EINVAL on Windows."""
_NO_WAITING = getattr(os, "O_NONBLOCK", 0)
_FLAGS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def checked_path(path: PathLike) -> Path:
    """`path`; refused if no file of any system can have that name."""
    name = os.fspath(path)
    try:
        encoded = os.fsencode(name)
    except UnicodeEncodeError as error:
        raise InvalidInput(f"no file can be called {name!r}: {error.reason}") from error
    if b"\0" in encoded:
        raise InvalidInput(f"no file can be called {name!r}: names have no NUL characters")
    return Path(path)


def save(path: PathLike, blob: bytes, *, overwrite: bool = False) -> None:
    """Write a file atomically and durably: readers find all of it or none, even after a crash.

    Without `overwrite` an existing file is refused, even one that another process creates at this moment. A symbolic
    link is followed: the file that it leads to is written and the link stays. Only regular files are replaced.
    """
    target = _target(checked_path(path), overwrite)
    try:
        temporary, handle = _open_temporary(target)
        if fcntl is None:
            _save_closed(temporary, handle, target, blob, overwrite)
        else:
            _save_locked(temporary, handle, target, blob, overwrite)
        _sync_folder(target.parent)
    except FileExistsError as error:
        raise _exists(target) from error
    except OSError as error:  # name the target: the user does not know the temporary file
        raise OSError(error.errno, error.strerror or str(error), str(target)) from error


def read(path: PathLike, most: int | None = None) -> bytes:
    """The content of a regular file of at most `most` bytes; anything else is an OSError that says what is wrong."""
    try:
        # A FIFO without a writer would block; this way it opens, and is refused.
        handle = os.open(path, os.O_RDONLY | _NO_WAITING | _FLAGS)
    except ValueError as error:
        raise OSError(errno.EINVAL, "no file can have this name", str(path)) from error
    with open(handle, "rb") as stream:  # which refuses folders
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        if most is not None and found.st_size > most:
            raise OSError(errno.EFBIG, f"it has {found.st_size:,} bytes; at most {most:,} are read", str(path))
        return stream.read()


def _target(path: Path, overwrite: bool) -> Path:
    """The path to write to, links followed; refuse it if what is there must not be replaced."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        mode = None
    if mode is not None and not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "not a regular file"
        raise InvalidInput(f"cannot write {path}: it is {kind}; choose another name")
    if mode is not None and not overwrite:
        raise _exists(path)
    target = Path(os.path.realpath(path)) if path.is_symlink() else path
    if not target.parent.is_dir():
        raise InvalidInput(f"cannot write {path}: the folder {target.parent} does not exist")
    return target


def _exists(path: Path) -> InvalidInput:
    return InvalidInput(f"{path} exists already; choose another name or pass overwrite=True")


def _save_locked(temporary: Path, handle: int, target: Path, blob: bytes, overwrite: bool) -> None:
    """Hold the lock until the file has its name: whoever can lock a temporary file may remove it."""
    try:
        _write(handle, blob)
        _give_name(temporary, target, overwrite)
    finally:
        _remove(temporary, handle)
        os.close(handle)


def _save_closed(temporary: Path, handle: int, target: Path, blob: bytes, overwrite: bool) -> None:
    """Close the file before it gets its name, or is removed: with it open, Windows refuses both."""
    is_ours = True
    try:
        try:
            _write(handle, blob)
        finally:
            os.close(handle)
        is_ours = _give_name(temporary, target, overwrite)
    finally:
        if is_ours:  # else the next saver may have taken the name already
            with suppress(OSError):
                temporary.unlink()


def _write(handle: int, blob: bytes) -> None:
    with os.fdopen(handle, "wb", closefd=False) as stream:
        stream.write(blob)
    os.fsync(handle)


def _give_name(temporary: Path, target: Path, overwrite: bool) -> bool:
    """Give the file its name, unless that exists and is not to be overwritten; whether it has two names now."""
    if overwrite:
        temporary.replace(target)
        return False
    try:
        os.link(temporary, target)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # Without links, create the name first and replace it at once. A process that is killed in between leaves an
        # empty file, never half of one.
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, 0o666))
        temporary.replace(target)
        return False
    return True


# Temporary files ------------------------------------------------------------------------------------------------------


def _open_temporary(target: Path) -> tuple[Path, int]:
    """Open and lock a new file beside `target`; remove those of savers that were killed."""
    digest = hashlib.sha256(os.fsencode(target.name)).hexdigest()  # short, however long the name of the target is
    stem = target.parent / f"{TEMPORARY}{digest[:24]}"
    names = [Path(f"{stem}-{number}.tmp") for number in range(MOST_SAVERS)]
    for name in names:
        _remove_if_left_behind(name)
    limit = time.monotonic() + _PATIENCE
    while time.monotonic() < limit:
        for name in names:
            with suppress(FileExistsError):
                handle = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | _FLAGS, 0o666)
                if fcntl is None:
                    return name, handle
                _lock(handle, wait=True)
                if _is_called(name, handle):
                    return name, handle
                os.close(handle)  # another saver took it for left behind before it was locked
        time.sleep(_PAUSE)
    raise InvalidInput(
        f"cannot write {target}: {MOST_SAVERS} others seem to be writing it; if there are none, remove {stem}-*.tmp"
    )


def _remove_if_left_behind(name: Path) -> None:
    if fcntl is None:
        with suppress(OSError):  # mostly: there is none; or somebody has it open
            if time.time() - name.stat().st_mtime > _LEFT_BEHIND:
                name.unlink()
        return
    try:
        handle = os.open(name, os.O_RDWR | _NO_WAITING | _FLAGS)
    except OSError:  # mostly: there is none
        return
    try:
        if _lock(handle, wait=False):
            _remove(name, handle)
    finally:
        os.close(handle)


def _lock(handle: int, wait: bool) -> bool:
    """Whether this process now has the lock; a file system without locks grants none."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True


def _remove(name: Path, handle: int) -> None:
    """Remove `name` if it still is the file behind `handle`: this process has its lock, and no other may remove it."""
    with suppress(OSError):
        if _is_called(name, handle):
            name.unlink()


def _is_called(name: Path, handle: int) -> bool:
    try:
        return os.path.samestat(name.stat(follow_symlinks=False), os.fstat(handle))
    except FileNotFoundError:
        return False


def _sync_folder(folder: Path) -> None:
    """Make the new name itself durable, where the system can."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # a system that does not open folders
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
