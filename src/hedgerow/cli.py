"""The command line: which commands there are, and what becomes of errors.

    hedgerow demo                the learners side by side, and a page with the figures
    hedgerow run FILE            an experiment; `run --list` names those that ship with the package
    hedgerow resume DIR          finish one that was interrupted
    hedgerow report DIR          its page; report URL NAME: that of a journal
    hedgerow compare minute      all learners of the field on many worlds, ranked on one page
    hedgerow check PROBLEM       look at a problem before a run
    hedgerow learners            what there is to choose from; also worlds, adversaries, costs
    hedgerow check-learner NAME  whether a learner keeps to the contract
    hedgerow serve URL NAME      the decisions of a journal over HTTP
    hedgerow journal COMMAND     show, verify, export or fork a journal
    hedgerow compile             compile everything now

Exit code 0: done. 1: some cells or checks failed, code of others ended its process or took too long, or the problem is
infeasible. 2: the request cannot be met; one line on stderr says why. 130: interrupted by Ctrl-C. 143: asked to
end by SIGTERM.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import Annotated, Any

import typer

from hedgerow.commands import FAILED, INTERRUPTED, REFUSED, check, compare, journal, lists, run, verify
from hedgerow.commands.compile import compile_kernels
from hedgerow.commands.group import PlainCommand, PlainGroup
from hedgerow.display.screen import say
from hedgerow.errors import HedgerowError
from hedgerow.experiments.isolation import Ended

TERMINATED = 128 + signal.SIGTERM
"""The exit code, as shells make it"""

app = typer.Typer(
    name="hedgerow",
    help="Online learning in episodic constrained MDPs with adversarial losses and hard constraints.",
    cls=PlainGroup,
    context_settings={"help_option_names": ["--help", "-h"]},
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from hedgerow import __version__

        print(f"hedgerow {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", "-V", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


COMMANDS: dict[str, dict[str, Callable[..., None]]] = {
    "Experiments": {
        "demo": run.demo,
        "run": run.run,
        "resume": run.resume,
        "report": run.report,
        "compare": compare.compare,
    },
    "Before a run": {"check": check.check, "check-learner": check.check_learner},
    "What there is": {
        "learners": lists.learners,
        "worlds": lists.worlds,
        "adversaries": lists.adversaries,
        "costs": lists.costs,
    },
    "In service": {"serve": journal.serve},
    "The package": {"compile": compile_kernels, "verify": verify.verify},
}
"""By the panel of `hedgerow --help` that shows them."""
for _panel, _commands in COMMANDS.items():
    for _name, _command in _commands.items():
        app.command(_name, cls=PlainCommand, rich_help_panel=_panel)(_command)


app.add_typer(journal.app, name="journal", rich_help_panel="In service")


def main() -> None:
    """Entry point: errors that hedgerow raises on purpose, and those of the system, become one line."""
    code: int | str | None = REFUSED
    if os.environ.get("COLUMNS") == "0":  # the width is not known; taken at its word, nothing would be printed
        del os.environ["COLUMNS"]
    try:
        with safe_streams(), ending_in_order() as code_of:
            code = code_of(_outcome())
    except OutputLost as error:  # the last of it, when buffers were emptied
        code = _refuse(error)
    raise SystemExit(code)


def _outcome() -> int | str | None:
    """Run the command; its exit code."""
    try:
        app(prog_name="hedgerow")
    except SystemExit as stop:
        if not stop.code and not _ended_in_order(stop):
            _complain("code that this command has called wanted to end the program; the work is not finished")
            return FAILED
        return stop.code
    except Ended as error:
        _complain(error)
        return FAILED
    except HedgerowError as error:
        return _refuse(error)
    except OSError as error:
        where = "" if error.filename is None else f"cannot use {error.filename}: "
        return _refuse(f"{where}{error.strerror or error}")
    except MemoryError as error:
        return _refuse(f"the memory is too small for this: {error}")
    except KeyboardInterrupt:
        _complain("interrupted")
        return INTERRUPTED
    return 0


def _ended_in_order(stop: SystemExit) -> bool:
    """Whether the command line itself ends the program, as it does after every command; not sys.exit in a plug-in."""
    place = stop.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    return place is not None and place.tb_frame.f_globals.get("__name__", "").partition(".")[0] in ("typer", "click")


def _refuse(reason: object) -> int:
    if not (isinstance(reason, OutputLost) and reason.reader_left):
        _complain(reason)
    return REFUSED


def _complain(reason: object) -> None:
    with suppress(OSError):
        say(f"hedgerow: {reason}", error=True)


# Signals --------------------------------------------------------------------------------------------------------------
#
# Ctrl-C and SIGTERM end a command in order, with the code that says which. SIGINT is heard even where it is inherited
# as ignored: a shell that is not interactive does so for what it starts with `&`, and such a command could not be
# stopped in order. SIGHUP is left alone: `nohup` has it ignored, and the command goes on after its terminal is closed.
# Only the command line does this; importing hedgerow changes no handler.


class Terminated(KeyboardInterrupt):
    """SIGTERM: what ends in order after Ctrl-C does so after this as well."""


@contextmanager
def ending_in_order() -> Iterator[Callable[[Any], Any]]:
    """Turn signals into exceptions; the function that it yields says which exit code replaces that of Ctrl-C."""
    came: list[int] = []

    def end(number: int, frame: Any) -> None:
        came.append(number)
        raise Terminated

    def code(wanted: Any) -> Any:
        return TERMINATED if wanted == INTERRUPTED and came else wanted

    if threading.current_thread() is not threading.main_thread():  # only there can handlers be set
        yield code
        return
    before: dict[int, Any] = {signal.SIGTERM: signal.signal(signal.SIGTERM, end)}
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        before[signal.SIGINT] = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield code
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# Standard streams -----------------------------------------------------------------------------------------------------
#
# They may be closed, full or broken: printing never spoils a file nor ends in a traceback. Output that cannot be
# written is an error; a message on stderr that cannot be written is dropped, because it must not end hours of work. A
# stream that was closed (`>&-`) is opened again first; otherwise the next opened file would get its number, and
# everything that is printed would go into that file.


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
