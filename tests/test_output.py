"""What is printed: names as they are, whatever is in them, and tables that fit without losing anything."""

from __future__ import annotations

import ast
import io
import re
import sys
import types
from pathlib import Path

import pytest
from rich.console import Console

import hedgerow
from hedgerow.display import screen as printing
from hedgerow.display.screen import Screen, make_progress, progress_bar
from hedgerow.display.table import Table, TableCell
from hedgerow.display.text import visible
from parsed import nodes

SOURCES = Path(hedgerow.__file__).parent
NAMES = {
    "sv [sharp]": "sv [sharp]",
    "sv [/x]": "sv [/x]",
    "[link=file:///etc/passwd]here[/link]": "[link=file:///etc/passwd]here[/link]",
    ":smile: <script>": ":smile: <script>",
    "red \x1b[31m": r"red \x1b[31m",
    "a\x00b\x07c\x7fd\x9be": r"a\x00b\x07c\x7fd\x9be",
    "two\nlines\r\ttab": r"two\nlines\r\ttab",
    "gnp.\u202etxt\u2066!": r"gnp.\u202etxt\u2066!",
    "para\u2028graph\ufeff\u200b": r"para\u2028graph\ufeff\u200b",
    "bad\udc80byte": r"bad\udc80byte",
    "λ = 日本, ½ space\u00a0here": "λ = 日本, ½ space\u00a0here",
}


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> tuple[Screen, io.StringIO]:
    return terminal(monkeypatch, 80)


def terminal(monkeypatch: pytest.MonkeyPatch, width: int) -> tuple[Screen, io.StringIO]:
    """A screen that is a terminal, without colours, and what appears on it."""
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("LINES", "50")
    monkeypatch.setenv("TERM", "dumb")
    paper = io.StringIO()
    screen = Screen()
    screen.rich.file = paper
    monkeypatch.setattr(screen.rich, "_force_terminal", True)
    screen.rich.width = width
    return screen, paper


@pytest.mark.parametrize(("name", "shown"), NAMES.items())
def test_names_are_shown_and_never_obeyed(
    name: str, shown: str, narrow: tuple[Screen, io.StringIO], capsys: pytest.CaptureFixture[str]
) -> None:
    assert visible(name) == shown
    screen, paper = narrow
    screen.line(name)
    table = Table(name, [name, "value"])
    table.add_row(name, "1.0")
    table.add_row(TableCell(name, tone="bad"), "2.0")
    screen.table(table)
    assert paper.getvalue().count(shown) == 5
    assert not re.search(r"[^\n\x20-\x7e\xa0-\u1fff\u2500-\ud7ff]", paper.getvalue())
    printing.say(name, error=True)
    assert capsys.readouterr().err == f"{shown}\n"


def test_names_in_a_progress_display() -> None:
    paper = io.StringIO()
    screen = Screen()
    screen.__dict__["rich"] = Console(file=paper, width=100, force_terminal=True, color_system=None)
    with make_progress(screen) as bar:
        bar.add_task("sv [/x] \x1b[31m", total=1)
    assert r"sv [/x] \x1b[31m" in paper.getvalue()


class Paper(io.StringIO):
    """A terminal that keeps what is written."""

    def isatty(self) -> bool:
        return True


def test_a_bar_appears_when_it_is_moved_and_a_second_one_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    paper = Paper()
    monkeypatch.setattr(sys, "stderr", paper)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    with progress_bar("episodes", 100) as move:
        assert paper.getvalue() == ""
        move(10)
        with progress_bar("compiling", 5) as other:
            other(1)
        move(50)
    assert "episodes" in paper.getvalue()
    assert "compiling" not in paper.getvalue()
    with progress_bar("later", 1, shown=False) as move:
        move(1)
    with progress_bar("again", 1) as move:
        move(1)
    assert "later" not in paper.getvalue()
    assert "again" in paper.getvalue()


def test_without_a_terminal_there_is_no_bar(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar("episodes", 100) as move:
        move(10)
    assert capsys.readouterr() == ("", "")


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """What a notebook is asked to show, one after the other."""
    shown: list[dict[str, str]] = []

    class Handle:
        def update(self, content: dict[str, str], raw: bool) -> None:
            assert raw
            shown.append(content)

    def display(content: dict[str, str], raw: bool, display_id: bool) -> Handle:
        shown.append(content)
        return Handle()

    class ZMQInteractiveShell:
        pass

    class Shell(ZMQInteractiveShell):
        pass

    module, part = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    module.get_ipython, part.display = Shell, display
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setitem(sys.modules, "IPython.display", part)
    return shown


def test_a_notebook_shows_a_bar_without_widgets(
    notebook: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = notebook
    clock = iter([0.0, 0.5, 2.0, 2.1, 3.0, 4.0, *[100.0] * 9])
    monkeypatch.setattr(printing.time, "monotonic", lambda: next(clock))
    with progress_bar("episodes <b>", 2000) as move:
        move(100)  # too early to be shown
        move(400)
        move(500)  # too soon after the last one
        move(1100)
    assert [entry["text/plain"] for entry in shown] == [
        "episodes <b>: 20 %, 200/s, 8.0 s left",
        "episodes <b>: 55 %, 400/s, 2.2 s left",
        "episodes <b>: done after 4.0 s, 275/s",
    ]
    assert shown[0]["text/html"].startswith('<progress value="400" max="2000"></progress> episodes &lt;b&gt;: 20 %')
    assert shown[-1]["text/html"] == "episodes &lt;b&gt;: done after 4.0 s, 275/s"


def test_a_notebook_is_told_what_was_cut_short_and_not_what_was_quick(
    notebook: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(printing.time, "monotonic", lambda: now[0])
    with progress_bar("quick", 10) as move:
        move(10)
    assert notebook == []

    def stopped() -> None:
        with progress_bar("long", 10) as move:
            now[0] += 1.05
            move(4)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert notebook[-1]["text/plain"] == "long: stopped at 40 % after 1.1 s"
    assert len(notebook) == 2


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.04, "0.0 s"), (9.94, "9.9 s"), (59.4, "59 s"), (185.0, "3:05 min"), (7800.0, "2:10 h")]
)
def test_durations(seconds: float, words: str) -> None:
    assert printing._duration(seconds) == words


COLUMNS = ["name of the row", "parameters", *(f"number {i}" for i in range(12))]


@pytest.mark.parametrize("width", [40, 60, 80, 140, 400])
def test_a_table_fits_and_loses_nothing(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    screen, paper = terminal(monkeypatch, width)
    table = Table("a title", COLUMNS, num_text=2)
    for row in range(3):
        numbers = [f"{row}{column:02d}.123456" for column in range(12)]
        table.add_row(f"row-number-{row}", "first=(1,2,3), second=0.5, third=some words", *numbers)
    screen.table(table)
    printed = paper.getvalue()
    assert max(map(len, printed.splitlines())) <= width
    assert "…" not in printed
    assert printed.count("a title") == 1
    for row in range(3):
        assert f"row-number-{row}" in printed
        for column in range(12):
            assert printed.count(f"{row}{column:02d}.123456") == 1
    for word in ["first=(1,2,3),", "second=0.5,", "third=some", "words"]:
        assert printed.count(word) == 3
    assert (printed.count("row-number-0") == 1) == (width == 400)  # else in several parts, each with the names


def test_a_name_that_is_longer_than_the_terminal_is_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    screen, paper = terminal(monkeypatch, 40)
    table = Table("", ["learner", "regret", "violation"])
    table.add_row("x" * 60, "123456.7", "0.5")
    screen.table(table)
    assert paper.getvalue().count("x") == 2 * 60  # in two parts
    assert max(map(len, paper.getvalue().splitlines())) <= 40
    assert "123456.7" in paper.getvalue()


def test_the_columns_that_name_a_row_stand_in_every_part(monkeypatch: pytest.MonkeyPatch) -> None:
    screen, paper = terminal(monkeypatch, 50)
    table = Table("", ["radii", "a pair", *(f"quantity {i}" for i in range(6))], num_text=2, num_keys=2)
    table.add_row("", "rarest", *["1,234,567"] * 6)
    screen.table(table)
    assert paper.getvalue().count("rarest") == paper.getvalue().count("a pair") > 1
    assert paper.getvalue().count("1,234,567") == 6


@pytest.mark.parametrize(("columns", "width"), [("60", 60), ("0", 140), ("", 140), ("wide", 140), (None, 140)])
def test_output_that_is_no_terminal_is_as_wide_as_columns_says(
    columns: str | None, width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if columns is None:
        monkeypatch.delenv("COLUMNS", raising=False)
    else:
        monkeypatch.setenv("COLUMNS", columns)
    screen = Screen()
    table = Table("", ["name", "words"], num_text=2)
    table.add_row("row", "word " * 60)
    screen.table(table)
    assert max(map(len, capsys.readouterr().out.splitlines())) == width
    screen.line("word " * 60)
    lines = capsys.readouterr().out.splitlines()
    assert (max(map(len, lines)) <= width, len(lines) > 1) == (width == 60, width == 60)


def test_lines_wrap_between_words_and_what_is_copied_stays_whole(narrow: tuple[Screen, io.StringIO]) -> None:
    screen, paper = narrow
    path = "/a/very/long/path" * 8
    screen.line(f"{'word ' * 30}{path}")
    lines = paper.getvalue().splitlines()
    assert lines[-1] == path
    assert all(set(line.split()) == {"word"} for line in lines[:-1])
    paper.truncate(0)
    screen.line(f"hedgerow resume {path} --only {path}", wrap=False)
    assert paper.getvalue().strip("\x00").count("\n") == 1


def test_without_a_terminal_lines_are_never_broken(capsys: pytest.CaptureFixture[str]) -> None:
    Screen().line("word " * 100)
    assert capsys.readouterr().out.count("\n") == 1


def test_nobody_else_prints() -> None:
    """Consoles, tables and lines of rich are made in one module, so that nothing can print markup from data."""
    for file in SOURCES.rglob("*.py"):
        if file.parent.name == "display":
            continue
        seen = nodes(file.read_text())
        imported = {
            f"{node.module}.{name.name}"
            for node in seen
            if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "rich"
            for name in node.names
        }
        assert not {name for name in imported if not name.startswith(("rich.progress.", "rich.text.Text"))}, file
        printing = [node for node in seen if isinstance(node, ast.Call) and _is_print(node)]
        allowed = {
            "cli.py": 1,
            "commands/__init__.py": 1,
            "importers/tables.py": 1,
            "compiling/cache.py": 1,
        }
        # A version, JSON, advice.
        assert len(printing) <= allowed.get(file.relative_to(SOURCES).as_posix(), 0), file


def _is_print(node: ast.Call) -> bool:
    return (isinstance(node.func, ast.Name) and node.func.id == "print") or (
        isinstance(node.func, ast.Attribute) and node.func.attr == "echo"
    )
