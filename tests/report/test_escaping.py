"""No page can forget to escape: HTML is made of literals and templates alone, and both escape what is put in."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from jinja2 import UndefinedError

import hedgerow
from hedgerow.display.table import Table, TableCell
from hedgerow.display.text import Html, formulas
from hedgerow.report.page import environment
from parsed import nodes, parse

SOURCES = Path(hedgerow.__file__).parent
TEMPLATES = SOURCES / "report" / "templates"
EVIL = "<img src=x onerror=alert(1)>\"'&\x1b\u202e"
SHOWN = "&lt;img src=x onerror=alert(1)&gt;&#34;&#39;&amp;\\x1b\\u202e"
TRUSTED = {
    "escape": "what is HTML already, and what markupsafe has escaped",
    "formulas": "escaped text with tags for indices",
}
"""The functions that may call text HTML, all in `display/text.py`, and why that is safe."""


def declared_as_html(tree: ast.AST) -> list[ast.Call]:
    """Calls that declare something HTML which is not a literal."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    return [
        call
        for call in calls
        if isinstance(call.func, ast.Name) and call.func.id in ("Html", "Markup", "cls")
        if not all(isinstance(argument, ast.Constant) for argument in call.args)
    ]


def test_only_literals_are_html() -> None:
    """An f-string, a sum or a variable in `Html(...)` would bypass the escaping."""
    for file in SOURCES.rglob("*.py"):
        source = file.read_text(encoding="utf-8")
        if "Html" not in source and "arkup" not in source:
            continue
        tree = parse(source)
        allowed: list[ast.Call] = []
        if file.name == "text.py":
            functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
            allowed = [call for node in functions if node.name in TRUSTED for call in declared_as_html(node)]
            assert len(allowed) == 3
        else:
            assert "markupsafe" not in source, file
        assert declared_as_html(tree) == allowed, file


def test_no_f_string_writes_html() -> None:
    """What an f-string puts between tags is not escaped."""
    for file in SOURCES.rglob("*.py"):
        source = file.read_text(encoding="utf-8")
        joined = [node for node in nodes(source) if isinstance(node, ast.JoinedStr)]
        parts = [str(part.value) for node in joined for part in node.values if isinstance(part, ast.Constant)]
        tags = [part for part in parts if re.search(r"</?[a-z]+[\d]?( [a-z-]+=|/?>)", part)]
        assert tags == (["<sub>", "</sub>"] if file.name == "text.py" else []), file


def test_templates_escape_everything() -> None:
    files = sorted(TEMPLATES.iterdir())
    assert len(files) >= 4
    for file in files:
        content = file.read_text(encoding="utf-8")
        assert not re.search(r"\|\s*safe\b|autoescape|Markup", content), file
    assert environment().from_string("{{ x }}{{ x ~ x }}").render(x=EVIL) == 3 * SHOWN
    with pytest.raises(UndefinedError):
        environment().from_string("{{ forgotten }}").render()


def test_html_takes_text_only_escaped() -> None:
    assert Html("<b>{}</b>").format(EVIL) == f"<b>{SHOWN}</b>"
    assert Html("<b>") + EVIL == f"<b>{SHOWN}"
    assert Html(" ").join([EVIL, Html("<i>")]) == f"{SHOWN} <i>"
    assert formulas(f"R_T {EVIL}") == f"R<sub>T</sub> {SHOWN}"


@pytest.mark.parametrize("output", ["to_html", "to_notebook"])
def test_every_place_of_a_table_is_escaped(output: str) -> None:
    table = Table(EVIL, [EVIL, TableCell(EVIL, note=EVIL, hint=EVIL)])
    table.add_row((EVIL, EVIL), TableCell(EVIL, note=EVIL, tone="bad", hint=EVIL))
    written = getattr(table, output)()
    assert "<img" not in written
    assert written.count(SHOWN) >= 7
    assert "<" not in table.to_markdown()
    assert "<" not in table.to_latex()
