"""Broken plug-ins: one line that names file, line and error, whatever is wrong with them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import hedgerow as hr
from hedgerow import registry
from hedgerow.errors import InvalidInput
from hedgerow.registry import plugins

# (text of the file, the line to blame or None, words of the message)
BROKEN: dict[str, tuple[str, int | None, str]] = {
    "syntax error": ("x = 1\ndef f(:\n", 2, "SyntaxError: invalid syntax"),
    "indentation": ("if True:\nx = 1\n", 2, "IndentationError: expected an indented block"),
    "NUL": ("x = '\0'\n", None, "source code string cannot contain null bytes"),
    "missing package": ("\n\nimport no_such_package\n", 3, "ModuleNotFoundError: No module named 'no_such_package'"),
    "missing member": ("from math import tau, no_such\n", 1, "ImportError: cannot import name 'no_such'"),
    "sibling file": ("import sibling_of_nobody\n", 1, "No module named 'sibling_of_nobody'"),
    "relative import": ("from . import x\n", 1, "ImportError"),
    "raises": ("def f():\n    raise KeyError('gone')\nf()\n", 2, "KeyError: 'gone'"),
    "raises in a library": ("import json\n\njson.loads('{')\n", 3, "JSONDecodeError"),
    "many lines": ("raise ValueError('one\\ntwo\\n\\nthree')\n", 1, "ValueError: one two three"),
    "a long message": ("raise ValueError('x' * 10_000)\n", 1, "xxx..."),
    "ends the process": ("import sys\nsys.exit(3)\n", 2, "SystemExit: 3"),
    "refused by hedgerow": ("import hedgerow as hr\nhr.Layout((1, 0, 1), 2)\n", 2, "size of layer 1 is 0"),
    "takes a name": ("import hedgerow as hr\n@hr.learners.register('s-ops')\nclass X: ...\n", 2, "ships with hedgerow"),
    "endless recursion": ("def f():\n    f()\nf()\n", 2, "RecursionError"),
    "missing name": ("class Greddy: ...\n", None, "has no 'Greedy'; it has: Greddy"),
    "empty": ("", None, "has no 'Greedy'; it has: nothing"),
    "a number": ("Greedy = 3\n", None, "is neither a class nor a function, but 3"),
    "a module": ("import math as Greedy\n", None, "is neither a class nor a function"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file(name: str, tmp_path: Path) -> None:
    text, line, words = BROKEN[name]
    (tmp_path / "greedy.py").write_text(text)
    before = set(sys.modules)
    with pytest.raises(InvalidInput) as refusal:
        hr.learners.find("greedy.py:Greedy", tmp_path)
    message = str(refusal.value)
    assert "\n" not in message
    assert len(message) < 700
    assert words in message
    assert str(tmp_path / "greedy.py") in message
    if line is not None:
        assert f"greedy.py, line {line}: " in message
        left = {module for module in set(sys.modules) - before if module.startswith("hedgerow_plugin_")}
        assert not left  # what failed half-way is forgotten


@pytest.mark.parametrize("name", ["syntax error", "missing package", "raises", "raises in a library", "missing name"])
def test_a_broken_module(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, line, words = BROKEN[name]
    module = f"broken_{name.replace(' ', '_')}"
    (tmp_path / f"{module}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InvalidInput) as refusal:
        hr.learners.find(f"{module}:Greedy")
    assert words in str(refusal.value)
    if line is not None and name != "raises in a library":  # that one is blamed on the library
        assert f"{module}.py, line {line}: " in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"cannot read .*none.py: No such file"):
        hr.learners.find("none.py:X", tmp_path)
    (tmp_path / "folder.py").mkdir()
    with pytest.raises(InvalidInput, match=r"cannot read .*folder.py"):
        hr.learners.find("folder.py:X", tmp_path)
    (tmp_path / "latin.py").write_bytes(b"# \xe9\n")
    with pytest.raises(InvalidInput, match=r"latin.py is not a text file in UTF-8: .* at byte 2"):
        hr.learners.find("latin.py:X", tmp_path)
    (tmp_path / "large.py").write_bytes(b"#" * (plugins.LARGEST + 1))
    with pytest.raises(InvalidInput, match=r"cannot read .*large.py"):
        hr.learners.find("large.py:X", tmp_path)


def test_an_interrupt_is_not_a_broken_plug_in(tmp_path: Path) -> None:
    (tmp_path / "greedy.py").write_text("raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        hr.learners.find("greedy.py:Greedy", tmp_path)


def test_an_error_in_a_constructor_names_the_line_of_the_plug_in(tmp_path: Path) -> None:
    text = "import hedgerow as hr\nclass Greedy:\n    def __init__(self, view):\n        self.x = hr.Layout((0,), 1)\n"
    (tmp_path / "greedy.py").write_text(text)
    found = registry.learners.look_up("greedy.py:Greedy", tmp_path)
    with pytest.raises(InvalidInput, match=r"^greedy.py:Greedy fails: .*greedy.py, line 4: "):
        found.build(view=None)
    with pytest.raises(InvalidInput, match=r"greedy.py:Greedy fails: .*greedy.py: TypeError: .*missing 1 required"):
        found.build()


def test_a_dataclass_in_a_file(tmp_path: Path) -> None:
    """It looks up its own module while that is being executed."""
    text = (
        "from __future__ import annotations\nfrom dataclasses import dataclass\n"
        "@dataclass\nclass D:\n    view: object\n    x: int = 1\n"
    )
    (tmp_path / "data.py").write_text(text)
    assert hr.learners.find("data.py:D", tmp_path)(view=None).x == 1
