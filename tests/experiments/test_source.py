"""Where something stands in a TOML text, and which texts there are."""

from __future__ import annotations

import time
import tomllib
from pathlib import Path

import pytest

from hedgerow.errors import InvalidInput
from hedgerow.experiments.source import Source, find, line_of, shipped
from hedgerow.experiments.spec import parse

TEXT = '''\
# [[learner]] in a comment does not count
title = """
[[learner]]
name = "inside a text"
"""
seeds = 3

[[world]]
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
        (("world", 0), 8),
        (("world", 0, "name"), 9),
        (("world", 0, "layers"), 10),
        (("world", 0, "layers", 2), 10),
        (("world", 0, "missing"), 8),
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


DEEP = {
    "lists": "episodes = " + "[" * 100_000 + "]" * 100_000,
    "some lists": "episodes = " + "[" * 100 + "]" * 100,
    "tables": "[[learner]]\nname = " + "{a = " * 200 + "1" + "}" * 200,
    "many tables": "learner = " + "{a = " * 100_000,
    "keys": ".".join(["a"] * 100_000) + " = 1",
    "keys of a table": "[[learner]]\n" + ".".join(["name"] * 1000) + " = 1",
    "keys of an inline table": "learner = {" + ".".join(["a"] * 20_000) + " = 1}",
    "digits": "episodes = " + "9" * 10_000,
    "hexadecimal digits": "[[world]]\nlayers = [1, 0x" + "f" * 10_000 + "]",
    "a number": f"seeds = 2\nepisodes = {10**400}",
    "a name": f'[[learner]]\n"{"x" * 100_000}" = 1\n"{"x" * 100_000}" = 2',
}


@pytest.mark.parametrize("name", DEEP)
def test_deep_and_large_text_is_refused_in_one_short_line(name: str) -> None:
    begun = time.process_time()
    with pytest.raises(InvalidInput) as caught:
        parse(Source("file.toml", DEEP[name], Path()))
    message = str(caught.value)
    assert message.startswith("file.toml")
    assert "\n" not in message
    assert len(message) < 500
    assert time.process_time() - begun < 5.0


def test_a_number_that_is_too_large_has_its_line() -> None:
    with pytest.raises(InvalidInput, match=r"file\.toml, line 2, episodes: a whole number has more than 308 digits"):
        Source("file.toml", DEEP["a number"], Path()).data()


def test_a_file_that_is_too_large(tmp_path: Path) -> None:
    with (tmp_path / "large.toml").open("wb") as stream:
        stream.truncate(2**40)
    with pytest.raises(InvalidInput, match="it has 1,099,511,627,776 bytes; at most 4,194,304 are read"):
        find(str(tmp_path / "large.toml"))


def test_lines_may_end_as_on_other_systems(tmp_path: Path) -> None:
    (tmp_path / "dos.toml").write_bytes(b"seeds = 1\r\nepisodes = 2\r\n")
    assert find(str(tmp_path / "dos.toml")).data() == {"seeds": 1, "episodes": 2}
