"""Run the blocks of one page, in order, in the present folder: `python -m tools.docs.run_page PAGE NAME`.

Prints a JSON list of complaints, the last line of stdout. It is a process of its own, with a scratch folder as working
directory, so that pages cannot disturb each other and may write files.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import io
import json
import linecache
import os
import re
import subprocess
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.docs import blocks, fences
from tools.docs.commands import command_lines
from tools.docs.fences import HIDDEN, Block

SECONDS = 240
"""A command that takes longer has failed."""
COLUMNS = "100"
_OWN_PROGRAM = re.compile(r"(^|[\s;|&])\.venv/bin/")
_FREE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class PageRun:
    """One page: the names that its Python blocks share, and what the last one printed."""

    def __init__(self, page: Path, name: str) -> None:
        self.page, self.name = page, name
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self.printed = ""

    def complaints(self) -> Iterator[str]:
        for block in fences.blocks(self.page):
            try:
                self._run(block)
            except Exception as error:  # whatever an example raises is a complaint about the example
                yield f"{self.name}, {_where(block, error)}: {type(error).__name__}: {error}"

    def _run(self, block: Block) -> None:
        if "title" in block.settings:
            target = Path(block.settings["title"])
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.text, encoding="utf-8")
        elif block.language in ("python", HIDDEN):
            first_line = block.text.strip().partition("\n")[0]
            if (self.name, first_line) not in blocks.SHOWN_ONLY:
                self._run_python(block)
        elif block.language == "console" and "run" in block.words:
            for _, command, shown in command_lines(block.text):
                run_command(command, shown)
        elif block.language == "text" and "output" in block.words:
            _compare("the Python block before it", block.text, self.printed)
        if blocks.is_experiment(block):
            _read_experiment(block)

    def _run_python(self, block: Block) -> None:
        """Execute statement by statement; an expression with `  # value` behind it must have that value."""
        name = f"{self.name}, block in {block.place}"
        linecache.cache[name] = (len(block.text), None, block.text.splitlines(keepends=True), name)
        lines = block.text.splitlines()
        printed = io.StringIO()
        for statement in ast.parse(block.text).body:
            shown = lines[(statement.end_lineno or 1) - 1].partition("  # ")[2].strip()
            with contextlib.redirect_stdout(printed):
                before = printed.tell()
                if not isinstance(statement, ast.Expr):
                    exec(compile(ast.Module([statement], []), name, "exec"), self.names)
                    continue
                value = eval(compile(ast.Expression(statement.value), name, "eval"), self.names)
            if not shown or (value is None and not _prints(statement)):
                continue  # what is called for its effect may carry a remark
            said = printed.getvalue()[before:].rstrip("\n") if _prints(statement) else repr(value)
            if said != shown and not (_prints(statement) and "\n" in said):  # several lines: it can only be a remark
                raise AssertionError(f"{ast.unparse(statement)} is {said}, the text says {shown}")
        self.printed = printed.getvalue()


def run_command(command: str, shown: str = "") -> None:
    """Run one command in a shell; it must end with 0, and print what is shown, where something is."""
    bin_folder = str(Path(sys.executable).parent)
    path = os.pathsep.join([bin_folder, os.environ.get("PATH", "")])
    own = _OWN_PROGRAM.sub(lambda match: match[1], command)
    if own.partition(" ")[0] == "make":
        raise ValueError("`make` works in the repository, not in the scratch folder; leave out the word `run`")
    done = subprocess.run(
        own,
        shell=True,
        check=False,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=SECONDS,
        env={**os.environ, "PATH": path, "COLUMNS": COLUMNS, "NO_COLOR": "1"},
    )
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise RuntimeError(f"`{command}` ended with {done.returncode}: {' '.join(last)}")
    if shown.strip():
        _compare(f"`{command}`", shown, done.stdout)


def _compare(what: str, shown: str, printed: str) -> None:
    """Equal up to white space; `...` stands for anything."""
    if not doctest.OutputChecker().check_output(shown, printed, _FREE):
        raise AssertionError(f"{what} prints\n{printed}\nthe text shows\n{shown}")


def _prints(statement: ast.Expr) -> bool:
    call = statement.value
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "print"


def _read_experiment(block: Block) -> None:
    from hedgerow.experiments.source import Source
    from hedgerow.experiments.spec import parse

    parse(Source(block.settings.get("title", "experiment.toml"), block.text, Path.cwd()))


def _where(block: Block, error: Exception) -> str:
    """The line of the page: that of the statement, if it can be told."""
    name = f"block in {block.place}"
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename.endswith(name) and frame.lineno:
            return f"line {block.line - 1 + frame.lineno}"
    return f"block in {block.place}"


def main(page: str, name: str) -> int:
    sys.path.insert(0, str(Path.cwd()))  # modules that the page itself wrote
    found = list(PageRun(Path(page), name).complaints())
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
