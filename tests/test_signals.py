"""Signals and the command line: an ignored SIGINT is heard, SIGTERM ends with 143, SIGHUP is left alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from hedgerow.cli import TERMINATED, Terminated, ending_in_order
from hedgerow.commands import INTERRUPTED

posix = pytest.mark.skipif(os.name != "posix", reason="signals as POSIX systems have them")

# A command of the real command line that gets signals while it works.
COMMAND = """
import signal
from hedgerow import cli
from hedgerow.commands import lists

@cli.app.command()
def work():
    print("hangup ignored:", signal.getsignal(signal.SIGHUP) == signal.SIG_IGN, flush=True)
    for name in {names!r}:
        signal.raise_signal(getattr(signal, name))
    print("not ended")

cli.main()
"""


def ended_by(*names: str, ignored: str = "") -> tuple[int, str, str]:
    """Run a command that raises signals, from a shell that has some of them ignored."""
    code = COMMAND.format(names=names)
    shell = f"trap '' {ignored}; " if ignored else ""
    done = subprocess.run(
        ["sh", "-c", f'{shell}exec "$0" -c "$1" work', sys.executable, code],
        capture_output=True, text=True, env={**os.environ},
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@posix
@pytest.mark.parametrize(
    ("names", "ignored", "code"),
    [
        (("SIGINT",), "", 130),
        (("SIGINT",), "INT", 130),
        (("SIGTERM",), "", 143),
        (("SIGTERM",), "INT TERM", 143),
    ],
)
def test_commands_end_with_the_code_of_the_signal(names: tuple[str, ...], ignored: str, code: int) -> None:
    found, output, errors = ended_by(*names, ignored=ignored)
    assert (found, output) == (code, "hangup ignored: False\n"), errors
    assert "Traceback" not in errors


@posix
def test_a_hangup_stays_ignored() -> None:
    found, output, _ = ended_by("SIGHUP", ignored="HUP INT")
    assert (found, output) == (0, "hangup ignored: True\nnot ended\n")


def test_handlers_are_those_of_before_afterwards() -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    with ending_in_order() as code:
        assert code(INTERRUPTED) == INTERRUPTED
        with pytest.raises(Terminated):
            signal.raise_signal(signal.SIGTERM)
        assert [code(INTERRUPTED), code(0), code(1)] == [TERMINATED, 0, 1]
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before


def test_other_threads_leave_handlers_alone() -> None:
    seen: list[Any] = []

    def inside() -> None:
        with ending_in_order() as code:
            seen.extend((signal.getsignal(signal.SIGTERM), code(INTERRUPTED)))

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGTERM), INTERRUPTED]


@posix
def test_importing_the_package_changes_no_handler() -> None:
    code = "import signal, hedgerow, hedgerow.cli; print(signal.getsignal(signal.SIGINT) == signal.SIG_IGN)"
    command = ["sh", "-c", 'trap \'\' INT; exec "$0" -c "$1"', sys.executable, code]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "True\n"


@pytest.mark.nightly  # of a command: test_commands_end_with_the_code_of_the_signal
@posix
def test_tests_pass_where_ctrl_c_is_ignored() -> None:
    """`make test &` in a shell that is not interactive: the tests of signals are run again like that."""
    file = Path(__file__).parent / "simulation" / "test_interrupts.py"
    command = ["sh", "-c", 'trap \'\' INT; exec "$0" -m pytest -q -p no:cacheprovider "$1"', sys.executable, str(file)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
