"""Guard standard streams that are closed, full or broken: printing never spoils a file nor ends in a traceback.

Output that cannot be written is an error, `OutputLost`. A message on stderr that cannot be written is dropped: it must
not end hours of work. A stream that was closed (`>&-`) is opened again first; otherwise the next opened file would get
its number, and everything that is printed would go into that file.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import Any

from hedgerow.errors import HedgerowError


class OutputLost(HedgerowError):  # noqa: N818 - read as a sentence
    """Standard output takes no more; `reader_left` if its reader has closed it, as `head` does."""

    def __init__(self, cause: OSError) -> None:
        super().__init__(f"cannot write the output: {cause.strerror or cause}")
        self.reader_left = cause.errno == errno.EPIPE


@contextmanager
def safe_streams() -> Iterator[None]:
    """Guard the standard streams during a command; flush them at its end."""
    _occupy()

    def lose(error: OSError) -> None:
        raise OutputLost(error) from None

    out, err = _Guarded(sys.stdout, lose), _Guarded(sys.stderr, lambda error: None)
    with redirect_stdout(out), redirect_stderr(err):
        yield
        out.flush()


class _Guarded:
    """A text stream that reports the first failed write and discards everything after it."""

    def __init__(self, stream: Any, on_failure: Callable[[OSError], None]) -> None:
        self._stream, self._on_failure = stream, on_failure
        with suppress(AttributeError, OSError):
            # File names may hold bytes that are no text.
            stream.reconfigure(errors="backslashreplace")

    def write(self, text: str) -> int:
        try:
            return int(self._stream.write(text))
        except OSError as error:
            self._fail(error)
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            self._fail(error)

    def _fail(self, error: OSError) -> None:
        with suppress(OSError):
            _point(self._stream.fileno(), os.O_WRONLY)
            self._stream.flush()  # what could not be written before, now to nothing
        self._on_failure(error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _occupy() -> None:
    """Open the standard streams that are closed: writing to the output fails, messages go to nothing."""
    for number, name, mode, flags in (
        (0, "stdin", "r", os.O_RDONLY),
        (1, "stdout", "w", os.O_RDONLY),
        (2, "stderr", "w", os.O_WRONLY),
    ):
        try:
            os.fstat(number)
        except OSError:
            _point(number, flags)
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115 - for ever


def _point(number: int, flags: int) -> None:
    """Point a descriptor at the null device."""
    handle = os.open(os.devnull, flags)
    if handle != number:
        os.dup2(handle, number)
        os.close(handle)
    os.set_inheritable(number, True)
