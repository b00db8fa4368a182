"""Where something stands in a TOML text, and which texts there are."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from hedgerow.errors import InvalidInput
from hedgerow.experiments.source import Source, find, line_of, shipped

TEXT = '''\
# [[learner]] in a comment does not count
title = """
[[learner]]
name = "inside a text"
"""
seeds = 3

[[instance]]
name = "a"
layers = [
  1, 2,
  1,
]

[[learner]]      # the first
name = "x"

[[ learner ]]
"preset" = "sharp"
tol.value = 1
'''


@pytest.mark.parametrize(
    ("where", "line"),
    [
        (("title",), 2),
        (("seeds",), 6),
        (("instance", 0), 8),
        (("instance", 0, "name"), 9),
        (("instance", 0, "layers"), 10),
        (("instance", 0, "layers", 2), 10),
        (("instance", 0, "missing"), 8),
        (("learner", 0), 15),
        (("learner", 0, "name"), 16),
        (("learner", 1), 18),
        (("learner", 1, "preset"), 19),
        (("learner", 1, "tol"), 20),
        (("learner", 1, "name"), 18),
        (("learner", 2), None),
        (("nothing",), None),
        ((), None),
    ],
)
def test_line_of(where: tuple[str | int, ...], line: int | None) -> None:
    tomllib.loads(TEXT)  # it is valid
    assert line_of(TEXT, where) == line


def test_an_array_of_inline_tables_has_one_line() -> None:
    text = "seeds = 1\nlearner = [{name = 'a'}, {name = 'b'}]\n"
    assert line_of(text, ("learner", 1, "name")) == 2


def test_mistakes_name_line_and_field() -> None:
    error = Source("file.toml", TEXT, Path()).mistake(("learner", 1, "preset"), "is wrong")
    assert str(error) == "file.toml, line 19, learner 2, preset: is wrong"
    assert str(Source("file.toml", TEXT, Path()).mistake((), "is empty")) == "file.toml: is empty"


def test_what_ships() -> None:
    assert {"quickstart", "demo", "adversaries", "lower-bound"} <= set(shipped())
    assert "title" in find("demo").data()


def test_what_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"cannot read the experiment .*nowhere.*ships with hedgerow: .*quickstart"):
        find(str(tmp_path / "nowhere.toml"))
    (tmp_path / "binary.toml").write_bytes(b"seeds = \xff\xfe")
    with pytest.raises(InvalidInput, match="not a text file in UTF-8"):
        find(str(tmp_path / "binary.toml"))
