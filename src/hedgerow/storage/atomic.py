"""Whole files: `save` writes one completely or not at all, `read` reads one and nothing else.

A file is written under a temporary name beside its target, flushed to disk and closed, and only then given its name: by
a link, which fails where something exists already, or by a rename, which replaces it. A process that is killed in
between leaves its temporary file behind. The first save of a process into a folder removes those that are older than an
hour; younger ones may be in use by another process.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from contextlib import suppress
from pathlib import Path

from hedgerow.errors import InvalidInput

PathLike = str | os.PathLike[str]

TEMPORARY = ".hedgerow-"
"""How the names of temporary files begin."""
LEFT_BEHIND = 3600.0
"""Seconds without a write after which a temporary file belongs to no process any more."""
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EINVAL)
"""How file systems say that they have no hard links; EINVAL on Windows."""
_READ = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
"""Without O_NONBLOCK, opening a FIFO that has no writer would wait for one."""
_cleaned: set[Path] = set()
"""Folders from which this process has removed what others left behind."""


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


def save(path: PathLike, blob: bytes, *, overwrite: bool = False, sync_name: bool = True) -> None:
    """Write a file atomically and durably: readers find all of it or none, even after a crash.

    Without `sync_name` a power cut may still lose the file as a whole, never a part of it, until `sync_folder`.

    Without `overwrite` an existing file is refused, even one that another process creates at this moment. A symbolic
    link is followed: the file that it leads to is written and the link stays. Only regular files are replaced.
    """
    target = _target(checked_path(path), overwrite)
    temporary = target.parent / f"{TEMPORARY}{os.urandom(8).hex()}.tmp"
    try:
        _remove_left_behind(target.parent)
        try:
            with temporary.open("xb") as stream:
                stream.write(blob)
                stream.flush()
                os.fsync(stream.fileno())
            _give_name(temporary, target, overwrite)
        finally:
            with suppress(OSError):  # mostly: it has been renamed
                temporary.unlink()
        if sync_name:
            sync_folder(target.parent)
    except FileExistsError as error:
        raise _exists(target) from error
    except OSError as error:  # name the target: the user does not know the temporary file
        raise OSError(error.errno, error.strerror or str(error), str(target)) from error


def read(path: PathLike, most: int | None = None) -> bytes:
    """The content of a regular file of at most `most` bytes; anything else is an OSError that says what is wrong."""
    try:
        handle = os.open(path, _READ)
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


def _give_name(temporary: Path, target: Path, overwrite: bool) -> None:
    """Give the file its name, unless that exists and is not to be overwritten."""
    if not overwrite:
        try:
            os.link(temporary, target)
            return
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
        # Without links, create the name first and replace it at once. A process that is killed in between leaves an
        # empty file, never half of one.
        target.open("xb").close()
    temporary.replace(target)


def _remove_left_behind(folder: Path) -> None:
    """Once in each folder: listing a large one at every save would cost more than the saves."""
    if folder in _cleaned:
        return
    _cleaned.add(folder)
    for name in folder.glob(f"{TEMPORARY}*.tmp"):
        with suppress(OSError):  # another process was faster, or it is not ours to remove
            if time.time() - name.stat().st_mtime > LEFT_BEHIND:
                name.unlink()


def sync_folder(folder: Path) -> None:
    """Make the names of new files durable, where the system can."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # a system that does not open folders
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
