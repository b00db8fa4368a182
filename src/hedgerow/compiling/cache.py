"""The cache of compiled kernels: a folder of the user's own, or a temporary one, that holds complete files only.

Code that is read from a cache is executed. A folder (`hedgerow` in NUMBA_CACHE_DIR, XDG_CACHE_HOME or ~/.cache) is
therefore refused if it belongs to another user, if others may write to it, or if they could exchange it
(`objection_to`). In that case, and without a home or without permission to write, kernels go to a private temporary
folder that is removed when the process ends; child processes find it through HEDGEROW_PRIVATE_CACHE. Each process
decides this once, when it first calls a kernel. Folders in it are looked at in the same way, and removed if they are
not ours alone.

Files are numba's, each followed by a checksum: one that is truncated, damaged, or that somebody else owns or may
write to, is compiled and written again. Code that is missing here may have come with the package (`FOLDER`).
When something new is compiled, folders that nothing has used for KEPT_DAYS are removed.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import pickle
import re
import shutil
import stat
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile

# Who else could put code where it is read from ------------------------------------------------------------------------
#
# What is read from a cache is executed. Anyone who can write to a file, or to its folder, or can exchange one of the
# folders on the way there, can have their code executed by us. So
#
#     a file or a folder of ours    belongs to us, and nobody else may write to it
#     each folder on the way        belongs to us or to the system; if others may write to it, it is sticky, as /tmp is:
#                                   there they can exchange nothing but their own
#     each link on the way          belongs to us or to the system
#
# The group that a system gives to one user alone counts as that user, but not for what we have made ourselves. The
# system is root and whoever owns the root folder. Other systems than POSIX protect their users' folders otherwise.


POSIX = os.name == "posix"
GROUP, OTHERS = 0o020, 0o002
MOST_LINKS = 40


def objection_to(path: Path) -> str:
    """Why the content of a file or a folder could be somebody else's; empty if it cannot."""
    if not POSIX:
        return ""
    if path.lstat().st_uid != os.geteuid():
        return f"{path} belongs to somebody else"
    return _objection(path, path.stat())


def objection_to_the_way(path: Path) -> str:
    """Why somebody else could exchange a folder on the way to `path`; empty if nobody can."""
    if not POSIX:
        return ""
    system = {os.geteuid(), 0, Path("/").stat().st_uid}
    at, names, links = Path("/"), list(path.absolute().parts[1:]), 0
    while names:
        if (found := at.stat()).st_uid not in system:
            return f"{at} belongs to somebody else"
        if _others_may_write(found) and not found.st_mode & stat.S_ISVTX:
            return f"{at} can be written by others, who could exchange what is in it"
        name = names.pop(0)
        entry = at.parent if name == ".." else at / name
        if not entry.is_symlink():
            at = entry
            continue
        links += 1
        if links > MOST_LINKS or entry.lstat().st_uid not in system:
            return f"{entry} is a link of somebody else, or one of too many"
        target = entry.readlink()
        at, parts = (Path("/"), target.parts[1:]) if target.is_absolute() else (at, target.parts)
        names = [*parts, *names]
    return ""


def content_of(path: str) -> bytes:
    """The bytes of a file of ours.

    Raises:
        PermissionError: If somebody else may have written them, or if it is a link or no file.
    """
    if not POSIX:
        return Path(path).read_bytes()
    # What is looked at is what is read. Opening a pipe must not wait for its writer.
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        found = os.fstat(file.fileno())
        objection = _objection(path, found) if stat.S_ISREG(found.st_mode) else f"{path} is no file"
        if objection:
            raise PermissionError(objection)
        return file.read()


def _objection(path: Path | str, found: os.stat_result) -> str:
    if found.st_uid != os.geteuid():
        return f"{path} belongs to somebody else"
    return f"{path} can be written by others" if found.st_mode & (GROUP | OTHERS) else ""


def _others_may_write(found: os.stat_result) -> bool:
    return bool(found.st_mode & OTHERS or (found.st_mode & GROUP and not _is_own_group(found.st_gid)))


def _is_own_group(number: int) -> bool:
    """Whether a group has the name of this user and no other member, as many systems make one for each user."""
    import grp
    import pwd

    try:
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(number)
    except KeyError:
        return False
    return group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}


# Compiled code in the package: a platform wheel ships every kernel, and then nothing is compiled at all ---------------
#
# It is made for each of TARGETS: most x86-64 processors since 2015 or so can run the last, and those with AVX-512 the
# first, which saves them up to a third of an episode. Both give the same bits as code for the processor at hand. If the
# processor fits none, if numba or Python has another version, or if a source was changed, nothing is found here and the
# kernel is compiled.


_AVX2 = ("avx2", "fma", "bmi", "bmi2", "f16c", "lzcnt", "movbe")
TARGETS = {
    "x86-64-v4": (*_AVX2, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"),
    "x86-64-v3": _AVX2,
}
"""The best first; with the features that each requires beyond those of every x86-64 processor"""
FOLDER = Path(__file__).parents[1] / "compiled"


def settings_for(target: str) -> dict[str, str]:
    """Environment of the process that compiles this code, see `hatch_build.py`."""
    return {"NUMBA_CPU_NAME": target, "NUMBA_CPU_FEATURES": ""}


_ignored: list[bool] = []


def ignore() -> None:
    """Use no shipped code in this process."""
    _ignored.append(True)


def is_usable() -> bool:
    """Whether shipped code exists, is not ignored, and runs on this processor."""
    return not _ignored and FOLDER.is_dir() and bool(target())


@cache
def target() -> str:
    """The best of TARGETS that this processor can run; empty if there is none."""
    from llvmlite import binding

    found = binding.get_host_cpu_features()
    return next((name for name, needed in TARGETS.items() if all(map(found.get, needed))), "")


def key_of(native: tuple[Any, ...]) -> tuple[Any, ...]:
    """The key of the same function in shipped code."""
    signature, (triple, _, _), hashes = native
    return signature, (triple, target(), ""), hashes


KEPT_DAYS = 30
INHERITED = "HEDGEROW_PRIVATE_CACHE"
"""The variable that names the temporary folder of a parent process."""
_DAY = 24 * 3600.0
_OURS = re.compile(r"\w+-[0-9a-f]{16}")
_DIGEST_LENGTH = 32


# The folder ----------------------------------------------------------------------------------------------------------


def usual_root() -> Path:
    """The cache folder of this user, whether or not it can be used."""
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(chosen).absolute() / "hedgerow"
    home = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not home.is_absolute():  # unset, or to be ignored by the rules of XDG
        home = Path.home() / ".cache"
    if not home.is_absolute():
        raise OSError("there is no home folder")
    return home / "hedgerow"


@cache
def root() -> Path | None:
    """The cache folder of this process, checked; None if nothing can be kept anywhere."""
    inherited = os.environ.get(INHERITED)
    if inherited and Path(inherited).is_dir() and not _objection_to_folder(Path(inherited)):
        return Path(inherited)
    try:
        usual = usual_root()
        objection = _objection_to_folder(usual)
    except (OSError, RuntimeError) as error:  # the latter from Path.home()
        objection = f"{error}"
    return usual if not objection else _temporary_root(objection)


def _objection_to_folder(folder: Path) -> str:
    """Why a folder cannot be trusted or used; empty if it can. A missing folder is created."""
    try:
        _make(folder)
        if objection := objection_to(folder) or objection_to_the_way(folder):
            return objection
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        return f"{error.filename or folder}: {error.strerror}"
    return ""


def _make(folder: Path) -> None:
    """Create a folder and its parents, closed to other users."""
    if not folder.is_dir():
        _make(folder.parent)
        folder.mkdir(0o700, exist_ok=True)


def _temporary_root(objection: str) -> Path | None:
    advice = "set NUMBA_CACHE_DIR or XDG_CACHE_HOME to a folder of your own to keep them"
    try:
        folder = Path(tempfile.mkdtemp(prefix="hedgerow-"))
    except OSError:
        _say(f"compiled kernels are not kept ({objection}, and there is no temporary folder either); {advice}")
        return None
    os.environ[INHERITED] = str(folder)
    atexit.register(_remove, folder, os.getpid())
    _say(f"compiled kernels are kept for this process only ({objection}); {advice}")
    return folder


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:  # a fork must not remove what its parent uses
        shutil.rmtree(folder, ignore_errors=True)


@cache
def _say(message: str) -> None:
    """Print one line on stderr, once."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):  # a closed stream is no reason to fail
            # Not through `output.say`: every import of this module enters the name of every kernel's folder.
            shown = "".join(char if char.isprintable() else repr(char)[1:-1] for char in message)
            print(f"hedgerow: {shown}", file=sys.stderr)


@cache
def _note_use(folder: Path) -> None:
    """Record that a folder is in use, to the day."""
    with contextlib.suppress(OSError):
        if time.time() - folder.stat().st_mtime > _DAY:
            os.utime(folder)


@cache
def remove_unused(parent: Path) -> None:
    """Remove what no process has used for KEPT_DAYS: kernels of former sources, or of a version that is gone.

    A folder is renamed first, because no process may find half of one. A process that still needs it compiles again.
    """
    limit = time.time() - KEPT_DAYS * _DAY
    for folder in parent.iterdir():
        with contextlib.suppress(OSError):
            if _OURS.fullmatch(folder.name) and folder.lstat().st_mtime < limit:
                _set_aside(folder)


def _set_aside(folder: Path) -> None:
    """Remove a folder, or a link or a file in its place, from its name at once and then from the disk."""
    leaving = folder.rename(folder.parent / f"unused-{uuid.uuid4().hex[:16]}")
    if leaving.is_symlink() or not leaving.is_dir():
        leaving.unlink()
    else:
        shutil.rmtree(leaving, ignore_errors=True)


def remove_all() -> None:
    """Remove all compiled kernels; those that processes have loaded go on working."""
    parent = root()
    for folder in parent.iterdir() if parent is not None else ():
        if _OURS.fullmatch(folder.name) or folder.name.startswith("unused-"):
            shutil.rmtree(folder, ignore_errors=True)


# What is in it -------------------------------------------------------------------------------------------------------


class KernelCache(FunctionCache):
    """The cached versions of one function. Nothing touches the disk until the function is first called."""

    def __init__(self, function: Callable[..., Any], folder: str) -> None:
        self._name, self._py_func, self._folder = repr(function), function, folder
        self._impl = _Conversion(function, self.ensure_cache_path)
        self.enable()

    @property
    def cache_path(self) -> str | None:
        parent = root()
        return None if parent is None else str(parent / self._folder)

    def _open(self) -> bool:
        """Find the folder of the files; False if nothing can be kept."""
        if self.cache_path is None:
            return False
        self._cache_file = _OwnFiles(self.cache_path, self._impl.filename_base, source_stamp="")
        return True

    def ensure_cache_path(self) -> None:
        folder = Path(str(self.cache_path))
        if objection := _objection_to_folder(folder.parent):
            raise OSError(objection)
        if os.path.lexists(folder) and (folder.is_symlink() or objection_to(folder)):
            _set_aside(folder)
        _make(folder)
        remove_unused(folder.parent)

    @property
    def is_empty(self) -> bool:
        """Whether neither the cache nor the package holds any version of the function."""
        places = [FOLDER / self._folder] if is_usable() else []
        places += [Path(self.cache_path)] if self.cache_path is not None else []
        return not any(any(place.glob(f"{self._impl.filename_base}.*.nbc")) for place in places)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function, for this processor or as it came with the package, or None.

        A file that cannot be used, for whatever reason, gives None.
        """
        found = None
        if self._open():
            _note_use(Path(str(self.cache_path)))
            with contextlib.suppress(Exception):  # without a folder, too
                if objection := objection_to(Path(str(self.cache_path))):
                    raise PermissionError(objection)
                found = super().load_overload(sig, target_context)
        if found is None and is_usable():
            with contextlib.suppress(Exception):
                found = self._load_shipped(sig, target_context)
        return found

    def _load_shipped(self, sig: Any, target_context: Any) -> Any:
        files = _CheckedFiles(str(FOLDER / self._folder), self._impl.filename_base, source_stamp="")
        data = files.load(key_of(self._index_key(sig, target_context.codegen())))
        return None if data is None else self._impl.rebuild(target_context, data)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write a compiled function to the cache; if that fails, say so and use it all the same."""
        try:
            if self._open():
                super().save_overload(sig, data)
        except OSError as error:
            reason = f"{root()}: {error.strerror or error}"
            _say(f"compiled kernels cannot be kept ({reason}); the next process compiles them again")

    def flush(self) -> None:
        if self._open():
            super().flush()


class _Conversion(CompileResultCacheImpl):
    """Turns compiled functions into bytes and back, under names that depend on the source alone."""

    def __init__(self, function: Callable[..., Any], ensure_cache_path: Callable[[], None]) -> None:
        code = function.__code__
        self._locator, self._lineno = self, code.co_firstlineno
        self._py_file, self.ensure_cache_path = code.co_filename, ensure_cache_path
        self._filename_base = self.get_filename_base(
            f"{Path(code.co_filename).stem}.{function.__qualname__}", getattr(sys, "abiflags", "")
        )

    def get_disambiguator(self) -> str:
        return str(self._lineno)


class _CheckedFiles(IndexDataCacheFile):
    """Index and data of one function, each followed by its SHA-256: nothing else is unpickled."""

    def _dump(self, obj: Any) -> bytes:
        body: bytes = super()._dump(obj)
        return body + hashlib.sha256(body).digest()

    def _load_index(self) -> dict[Any, str]:
        try:
            stamp, found = pickle.loads(self._checked(self._index_path, pickle.dumps(self._version, protocol=-1)))
        except Exception:
            return {}
        return dict(found) if stamp == self._source_stamp else {}

    def _load_data(self, name: str) -> Any:
        return pickle.loads(self._checked(self._data_path(name)))

    def _data_name(self, number: int) -> str:
        """A name that no other process uses: two could pick the same number, and an index would name wrong code."""
        return self._data_name_pattern.format(number=uuid.uuid4().int)

    def _checked(self, path: str, start: bytes = b"") -> bytes:
        """What follows `start` in a file, without its checksum."""
        content = self._content(path)
        body, digest = content[len(start) : -_DIGEST_LENGTH], content[-_DIGEST_LENGTH:]
        if not content.startswith(start) or hashlib.sha256(body).digest() != digest:
            raise ValueError(f"{path} is damaged or foreign")
        return body

    def _content(self, path: str) -> bytes:
        return Path(path).read_bytes()


class _OwnFiles(_CheckedFiles):
    """Files that we have written, and nobody else."""

    def _content(self, path: str) -> bytes:
        return content_of(path)

    @contextlib.contextmanager
    def _open_for_write(self, filepath: str) -> Iterator[Any]:
        """Open a file for its owner alone; whatever stands in its place stays until all is written."""
        with super()._open_for_write(filepath) as file:
            if POSIX:
                os.fchmod(file.fileno(), 0o600)
            yield file
