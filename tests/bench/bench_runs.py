"""What the tests of the benchmarks share: a command run in this process."""

from __future__ import annotations

import io
from contextlib import redirect_stdout

from bench.__main__ import main


def invoke(*arguments: str, code: int = 0) -> str:
    """`python -m bench` with these arguments; what it printed on stdout."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        assert main(arguments) == code, printed.getvalue()
    return printed.getvalue()
