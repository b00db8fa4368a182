"""From TOML to the hash of a cell: how a file is written does not matter, what it says does."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.experiments.source import Source
from hedgerow.experiments.spec import cells_of, parse

Data = dict[str, Any]
BASE: Data = {
    "seed": 7,
    "seeds": 2,
    "episodes": [50, 1000],
    "delta": 0.05,
    "world": {"name": "random-layered", "layers": [1, 2, 2, 1], "actions": 2, "constraints": 1, "tightness": 0.5},
    "adversary": {"name": "switching", "period": 20},
    "learner": {"name": "s-ops", "preset": "sharp", "joint_cost": True, "confidence_scale": 0.5},
}
TABLES = ("world", "adversary", "learner")
CHANGES: list[tuple[str, str | None, Any]] = [
    ("seed", None, 8),
    ("delta", None, 0.06),
    ("episodes", None, [51, 1001]),
    ("seeds", None, [2, 3]),
    ("world", "layers", [1, 2, 3, 1]),
    ("world", "actions", 3),
    ("world", "constraints", 2),
    ("world", "tightness", 0.25),
    ("adversary", "name", "drifting"),
    ("adversary", "period", 21),
    ("learner", "name", "sv-ops"),
    ("learner", "preset", "paper"),
    ("learner", "joint_cost", False),
    ("learner", "confidence_scale", 0.25),
]
"""Entry, its key if it is a table, and another value."""
SOLE_KEYS = {("learner", "name"): ("joint_cost",)}
"""Keys that the other name does not have."""
comments = st.sampled_from(["", "  # a note", " # [[learner]]", "\t# 1"])
gaps = st.sampled_from(["", "\n", "# a line of its own\n", "   \n\n"])


def hashes(text: str) -> list[str]:
    return sorted(cell.hash for cell in cells_of(parse(Source("one.toml", text, Path()))))


def numbers(value: int) -> st.SearchStrategy[str]:
    return st.sampled_from([f"{value}", f"{value:_}", hex(value), f"+{value}"])


def values(value: Any) -> st.SearchStrategy[str]:
    """Ways to write a value in TOML."""
    if isinstance(value, bool):
        return st.just(str(value).lower())
    if isinstance(value, int):
        return numbers(value)
    if isinstance(value, float):
        return st.sampled_from([repr(value), f"{value:e}", f"{value:.6f}", f"+{value!r}"])
    if isinstance(value, str):
        return st.sampled_from([f'"{value}"', f"'{value}'"])
    separators = st.sampled_from([", ", ",", " ,\n  "])
    return st.tuples(st.tuples(*map(values, value)), separators).map(lambda drawn: f"[{drawn[1].join(drawn[0])}]")


@st.composite
def written(draw: st.DrawFn, data: Data, titles: bool = True) -> str:
    """A file that says `data`: keys in any order, comments, numbers in any form, with or without titles."""

    def lines(entries: Data) -> str:
        order = draw(st.permutations(list(entries)))
        spaces = draw(st.sampled_from([" = ", "=", "   =  "]))
        return "".join(f"{draw(gaps)}{key}{spaces}{draw(values(entries[key]))}{draw(comments)}\n" for key in order)

    top = {key: value for key, value in data.items() if key not in TABLES}
    if titles and draw(st.booleans()):
        top |= {"title": "any", "description": "of no consequence"}
    text = lines(top)
    for table in draw(st.permutations(TABLES)):
        label = {"label": f"my {table}"} if titles and draw(st.booleans()) else {}
        text += f"{draw(gaps)}[[{table}]]{draw(comments)}\n" + lines({**data[table], **label})
    return text


@settings(max_examples=settings.default.max_examples // 2)
@given(written(BASE), written(BASE))
def test_the_way_of_writing_does_not_change_a_hash(one: str, other: str) -> None:
    assert hashes(one) == hashes(other)
    assert len(set(hashes(one))) == 4


@settings(max_examples=settings.default.max_examples // 2)
@given(st.data(), st.sampled_from(CHANGES))
def test_every_parameter_changes_every_hash(data: st.DataObject, change: tuple[str, str | None, Any]) -> None:
    changed = deepcopy(BASE)
    entry, key, value = change
    if key is None:
        changed[entry] = value
    else:
        changed[entry][key] = value
        for gone in SOLE_KEYS.get((entry, key), ()):
            del changed[entry][gone]
    draw: Callable[..., Any] = data.draw
    assert set(hashes(draw(written(BASE)))).isdisjoint(hashes(draw(written(changed))))
