"""Run the code of others: import a module, execute a file, call a constructor. An error becomes one line.

The line names the place in *their* code: the innermost frame of the traceback that lies in the plug-in's own file, or
else the innermost one that is neither Python's import machinery nor hedgerow.

A file is loaded as a module whose name contains the hash of its text: another text is another module, and a worker that
was sent the text finds the very same one.
"""

from __future__ import annotations

import hashlib
import importlib
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from types import ModuleType
from typing import Any

from hedgerow.checks import short_repr
from hedgerow.errors import HedgerowError, InvalidInput
from hedgerow.storage import atomic

LARGEST = 2**22
"""Bytes of a file."""
LONGEST_MESSAGE = 300
"""Characters of an error of foreign code that are repeated."""
_PREFIX = "hedgerow_plugin_"
_HEDGEROW = Path(__file__).parent.parent


@dataclass(frozen=True, eq=False)
class LoadedFile:
    """A file that was executed."""

    path: str
    text: str
    module: ModuleType

    @property
    def digest(self) -> str:
        return text_digest(self.text)


_loaded: dict[str, LoadedFile] = {}
"""By the hash of their text."""
_loading = RLock()


def text_digest(text: str) -> str:
    """SHA-256 of a source text."""
    return hashlib.sha256(text.encode()).hexdigest()


def read_text(path: Path) -> str:
    """The source text of a file; line ends are those of Unix wherever it was written."""
    try:
        text = atomic.read(path, LARGEST).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not a text file in UTF-8: {error.reason} at byte {error.start}") from error
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror or error}") from error
    return text.replace("\r\n", "\n")


def load_text(text: str, path: str) -> LoadedFile:
    """Execute `text` as a module, once per process; `path` says in messages where it comes from."""
    digest = text_digest(text)
    with _loading:  # the threads of a worker load it once
        if digest not in _loaded:
            _loaded[digest] = LoadedFile(path, text, _executed(text, path, f"{_PREFIX}{digest}"))
    return _loaded[digest]


def _executed(text: str, path: str, name: str) -> ModuleType:
    module = ModuleType(name)
    module.__file__, module.__package__ = path, ""  # it stands alone: there is nothing to import relatively
    with in_one_line("the plug-in cannot be loaded", path):
        code = compile(text, path, "exec", dont_inherit=True)
        sys.modules[module.__name__] = module  # dataclasses look their module up while it is being executed
        try:
            exec(code, module.__dict__)
        except BaseException:
            del sys.modules[module.__name__]
            raise
    return module


def loaded_file(digest: str) -> LoadedFile | None:
    """The file of that hash, if it was loaded before."""
    return _loaded.get(digest)


def file_of_module(name: str) -> LoadedFile | None:
    """The file that was loaded as the module `name`; None for modules that Python imported itself."""
    return _loaded.get(name.removeprefix(_PREFIX)) if name.startswith(_PREFIX) else None


def load_module(name: str) -> ModuleType:
    """Import a module by its dotted name."""
    if not all(part.isidentifier() for part in name.split(".")):
        raise InvalidInput(f"{short_repr(name)} is neither a module (package.module) nor a Python file (file.py)")
    with in_one_line(f"cannot import {name}", None):
        return importlib.import_module(name)


def member(module: ModuleType, name: str, source: str) -> Any:
    """The class or function `name` (dots lead into classes) of a module that was loaded from `source`."""
    found: Any = module
    for part in name.split("."):
        if not part.isidentifier() or not hasattr(found, part):
            raise InvalidInput(
                f"{source} has no {short_repr(name)}; it has: {', '.join(_offered(module)) or 'nothing'}"
            )
        found = getattr(found, part)
    if isinstance(found, ModuleType) or not callable(found):
        raise InvalidInput(f"{name} in {source} is neither a class nor a function, but {short_repr(found)}")
    return found


def _offered(module: ModuleType) -> list[str]:
    """The classes and functions that a module defines itself."""
    defined = {name: value for name, value in vars(module).items() if callable(value) and not name.startswith("_")}
    return [name for name, value in defined.items() if getattr(value, "__module__", None) == module.__name__][:12]


def call(target: Callable[..., Any], arguments: dict[str, Any], name: str) -> Any:
    """What `target` makes of its arguments."""
    with in_one_line(f"{name} fails", source_file(target)):
        return target(**arguments)


def source_file(target: Any) -> str | None:
    """The file that an object was defined in, as tracebacks name it."""
    module = sys.modules.get(getattr(target, "__module__", None) or "")
    return getattr(module, "__file__", None)


# Errors ---------------------------------------------------------------------------------------------------------------


@contextmanager
def in_one_line(what: str, file: str | None) -> Iterator[None]:
    """Turn any error of foreign code in `file` into one line that begins with `what`."""
    try:
        yield
    except (Exception, SystemExit) as error:  # a script without a main guard may want to end the process
        raise InvalidInput(f"{what}: {described(error, file)}") from error


def described(error: BaseException, file: str | None) -> str:
    """`FILE, line N: KeyError: 'x'`: where an error was raised, and what it says, in one line."""
    message = " ".join(str(error.msg if isinstance(error, SyntaxError) else error).split())
    if len(message) > LONGEST_MESSAGE:
        message = f"{message[:LONGEST_MESSAGE]}..."
    kind = "" if isinstance(error, HedgerowError) else type(error).__name__
    return ": ".join(word for word in (_place(error, file), kind, message) if word)


def _place(error: BaseException, file: str | None) -> str:
    """Where in the code of others an error was raised; only the file if it was not raised in a line of it."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}, line {error.lineno}"
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith("<frozen ") and frame.filename != importlib.__file__
    ]
    own = [frame for frame in frames if frame.filename == file]
    others = own or [frame for frame in frames if not Path(frame.filename).is_relative_to(_HEDGEROW)]
    if others:
        return f"{others[-1].filename}, line {others[-1].lineno}"
    return file if file is not None and not isinstance(error, HedgerowError) else ""
