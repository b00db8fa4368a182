"""Where compiled kernels are kept: a folder of the user's own, or a temporary one, and never a file that is not whole.

What is read from a cache is executed. The folder (`hedgerow` in NUMBA_CACHE_DIR, XDG_CACHE_HOME or ~/.cache) is
therefore refused if it belongs to somebody else or if others may write to it. Then, and where there is no home or no
permission to write, kernels go to a private temporary folder that is removed when the process ends; processes that it
starts find it through HEDGEROW_PRIVATE_CACHE. All of this is decided when a kernel is first called, once per process.

Files are numba's, with a checksum after each: one that is cut short, damaged or foreign is compiled and written again.
What is not there may have come with the package (`shipped.py`).
Folders that nothing has used for KEPT_DAYS are removed when something new is compiled.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import pickle
import re
import shutil
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile

from hedgerow.compiling import shipped

KEPT_DAYS = 30
INHERITED = "HEDGEROW_PRIVATE_CACHE"
"""The variable that names the temporary folder of a parent process."""
_DAY = 24 * 3600.0
_OURS = re.compile(r"\w+-[0-9a-f]{16}")
_DIGEST_LENGTH = 32


# The folder ----------------------------------------------------------------------------------------------------------


def usual_root() -> Path:
    """Where kernels of this user belong, whether or not it can be used."""
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
    """The folder of this process, checked; None if nothing can be kept anywhere."""
    inherited = os.environ.get(INHERITED)
    if inherited and Path(inherited).is_dir() and not _objection(Path(inherited)):
        return Path(inherited)
    try:
        usual = usual_root()
        objection = _objection(usual)
    except (OSError, RuntimeError) as error:  # the latter from Path.home()
        objection = f"{error}"
    return usual if not objection else _temporary_root(objection)


def _objection(folder: Path) -> str:
    """Why a folder, which is made if need be, cannot be trusted or used; the empty string if it can."""
    try:
        _make(folder)
        if os.name == "posix":
            link, own = folder.lstat(), folder.stat()
            if {link.st_uid, own.st_uid} != {os.geteuid()}:
                return f"{folder} belongs to somebody else"
            if own.st_mode & 0o022:
                return f"{folder} can be written by others"
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        return f"{error.filename or folder}: {error.strerror}"
    return ""


def _make(folder: Path) -> None:
    """Create a folder and what is above it for nobody else."""
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
    if os.getpid() == owner:  # a fork must not take away what its parent uses
        shutil.rmtree(folder, ignore_errors=True)


@cache
def _say(message: str) -> None:
    """One line on stderr, once."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):  # a closed stream is no reason to fail
            # Not through `output.say`: whatever is imported here is part of the name of every kernel's folder.
            shown = "".join(char if char.isprintable() else repr(char)[1:-1] for char in message)
            print(f"hedgerow: {shown}", file=sys.stderr)


@cache
def _note_use(folder: Path) -> None:
    """Let others know that a folder is in use; a day is exact enough."""
    with contextlib.suppress(OSError):
        if time.time() - folder.stat().st_mtime > _DAY:
            os.utime(folder)


@cache
def remove_unused(parent: Path) -> None:
    """Remove what no process has used for KEPT_DAYS: kernels of former sources, or of a version that is gone.

    A folder gets another name first, so that nobody finds half of one. A process that still wants it compiles again.
    """
    limit = time.time() - KEPT_DAYS * _DAY
    for folder in parent.iterdir():
        with contextlib.suppress(OSError):
            if _OURS.fullmatch(folder.name) and folder.lstat().st_mtime < limit:
                leaving = folder.rename(parent / f"unused-{uuid.uuid4().hex[:16]}")
                shutil.rmtree(leaving, ignore_errors=True)


def remove_all() -> None:
    """Remove all that was compiled; what processes have loaded goes on to work."""
    parent = root()
    for folder in parent.iterdir() if parent is not None else ():
        if _OURS.fullmatch(folder.name) or folder.name.startswith("unused-"):
            shutil.rmtree(folder, ignore_errors=True)


# What is in it -------------------------------------------------------------------------------------------------------


class KernelCache(FunctionCache):
    """The compiled versions of one function. The disk is left alone until the function is first called."""

    def __init__(self, function: Callable[..., Any], folder: str) -> None:
        self._name, self._py_func, self._folder = repr(function), function, folder
        self._impl = _Conversion(function, self.ensure_cache_path)
        self.enable()

    @property
    def cache_path(self) -> str | None:
        parent = root()
        return None if parent is None else str(parent / self._folder)

    def _open(self) -> bool:
        """Know where the files are; False if nothing can be kept."""
        if self.cache_path is None:
            return False
        self._cache_file = _CheckedFiles(self.cache_path, self._impl.filename_base, source_stamp="")
        return True

    def ensure_cache_path(self) -> None:
        folder = Path(str(self.cache_path))
        if objection := _objection(folder.parent):
            raise OSError(objection)
        _make(folder)
        remove_unused(folder.parent)

    @property
    def is_empty(self) -> bool:
        """Whether nothing at all is kept of the function."""
        places = [shipped.FOLDER / self._folder] if shipped.is_usable() else []
        places += [Path(self.cache_path)] if self.cache_path is not None else []
        return not any(any(place.glob(f"{self._impl.filename_base}.*.nbc")) for place in places)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function, for this processor or as it came with the package, or None.

        Whatever a file may do wrong, the answer is None.
        """
        found = None
        if self._open():
            _note_use(Path(str(self.cache_path)))
            with contextlib.suppress(Exception):
                found = super().load_overload(sig, target_context)
        if found is None and shipped.is_usable():
            with contextlib.suppress(Exception):
                found = self._load_shipped(sig, target_context)
        return found

    def _load_shipped(self, sig: Any, target_context: Any) -> Any:
        files = _CheckedFiles(str(shipped.FOLDER / self._folder), self._impl.filename_base, source_stamp="")
        data = files.load(shipped.key_of(self._index_key(sig, target_context.codegen())))
        return None if data is None else self._impl.rebuild(target_context, data)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled function; where that fails, say so and go on with it."""
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
    """How numba turns compiled functions into bytes and back, under names that only depend on the source."""

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
            _verify(self._index_path, pickle.dumps(self._version, protocol=-1))
            found: dict[Any, str] = super()._load_index()
        except Exception:
            return {}
        return found

    def _load_data(self, name: str) -> Any:
        _verify(self._data_path(name))
        return super()._load_data(name)

    def _data_name(self, number: int) -> str:
        """A name that no other process gives away: numbers could be taken twice, and the index name other code."""
        return self._data_name_pattern.format(number=uuid.uuid4().int)


def _verify(path: str, start: bytes = b"") -> None:
    content = Path(path).read_bytes()
    body, digest = content[len(start) : -_DIGEST_LENGTH], content[-_DIGEST_LENGTH:]
    if not content.startswith(start) or hashlib.sha256(body).digest() != digest:
        raise ValueError(f"{path} is damaged or foreign")
