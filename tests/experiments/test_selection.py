"""Parts of an experiment as experiments: the right tables, the same labels, and text that TOML reads back."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.errors import InvalidInput
from hedgerow.experiments.reading import selected
from hedgerow.experiments.source import Source, find, shipped
from hedgerow.experiments.spec import cells_of, parse

TEXT = """\
title = "All"
seeds = 4
episodes = 50
declined = "skip"
[[world]]
name = "lower-bound-1"
episodes = "T"
[[world]]
name = "lower-bound-2"
label = "second"
[[adversary]]
name = "own"
[[adversary]]
name = "switching"
period = 20
[[learner]]
name = "s-ops"
preset = "sharp"
baseline = "offered"
[[learner]]
name = "s-ops"
preset = "sharpest"
label = "best"
[[learner]]
name = "uniform"
"""


def source(text: str = TEXT) -> Source:
    return Source("all.toml", text, Path())


def chosen(**options: Any) -> Any:
    return parse(selected(source(), **options))


def test_nothing_asked_for_nothing_changed() -> None:
    whole = source()
    assert selected(whole) is whole


def test_tables_by_label_or_by_name_in_the_order_asked_for() -> None:
    found = chosen(learners=["uniform", "best"], worlds=["second"], adversaries=["switching"])
    assert [item.label for item in found.learners] == ["uniform", "best"]
    assert [item.given for item in found.worlds] == [{"name": "lower-bound-2"}]
    assert [item.label for item in found.adversaries] == ["switching-20"]
    assert (found.title, found.skips) == ("All", True)
    both = chosen(learners=["s-ops", "best"])
    assert [item.label for item in both.learners] == ["s-ops-sharp-baseline=offered", "best"]  # none of them twice


def test_numbers() -> None:
    found = chosen(seeds=2, episodes=30)
    assert (found.seeds, found.episodes) == ((0, 1), (30,))


def test_labels_and_cells_stay_what_they_were() -> None:
    """What a selection runs, the whole file would run as well: hash by hash."""
    whole = {cell.id: cell.hash for cell in cells_of(parse(source()))}
    part = {cell.id: cell.hash for cell in cells_of(chosen(learners=["s-ops"], worlds=["lower-bound-1"], seeds=3))}
    assert len(part) == 2 * 2 * 3
    assert part.items() <= whole.items()


def test_others_are_looked_up(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import hedgerow as hr\nclass Mine(hr.field.Uniform):\n    pass\n")
    whole = Source("all.toml", TEXT, tmp_path)
    names = {"learners": ["mine.py:Mine", "always-baseline"], "worlds": ["dope-factored"], "adversaries": ["iid"]}
    found = parse(selected(whole, **names))
    assert [item.label for item in found.learners] == ["Mine", "always-baseline"]
    assert found.learners[1].given["baseline"] == "offered"
    assert [item.given["name"] for item in (*found.worlds, *found.adversaries)] == ["dope-factored", "iid"]
    own = parse(selected(Source("x.toml", TEXT.replace('"own"', '"iid"'), tmp_path), adversaries=["own"]))
    assert own.adversaries[0].given == {"name": "own"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"learners": ["dopey"]},
            r"^unknown learner 'dopey'; did you mean 'dope' or .*\? .*all.toml has: s-ops",
        ),
        ({"worlds": ["atlantis"]}, "unknown world 'atlantis'.*; .*all.toml has: "),
        ({"adversaries": ["clever"]}, "unknown adversary 'clever'"),
        ({"sets": "loose"}, "the sets are 'loose'; choose one of source, paper, sharp, sharpest"),
    ],
)
def test_what_is_not_there_is_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        selected(source(), **options)


def test_sets_go_to_the_learners_of_the_field_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import hedgerow as hr\nclass Field(hr.field.Uniform):\n"
        "    def __init__(self, view, episodes, sets='source'):\n        super().__init__(view, episodes)\n"
        "class Other:\n    def __init__(self, view, sets='wide'):\n        self.view = view\n"
    )
    text = TEXT + '[[learner]]\nname = "mine.py:Field"\n[[learner]]\nname = "mine.py:Other"\n'
    made = selected(Source("all.toml", text, tmp_path), sets="sharp").data()
    assert [table.get("sets") for table in made["learner"]] == [None, None, None, "sharp", None]
    assert [table["label"] for table in made["learner"]][-2:] == ["Field", "Other"]


def test_a_file_without_names_is_answered_with_its_line() -> None:
    with pytest.raises(InvalidInput, match=r"all.toml, line 5, world: write one or more tables"):
        selected(source(TEXT.replace('name = "lower-bound-1"\n', "", 1)), seeds=2)


@pytest.mark.parametrize("name", shipped())
def test_what_ships_is_the_same_when_it_is_written_again(name: str) -> None:
    whole = find(name)
    again = parse(Source(name, tomli_w.dumps(whole.data()), whole.folder))
    assert again.as_data() == parse(whole).as_data()


plain = st.recursive(
    st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), plain, max_size=4))
def test_toml_reads_back_what_is_written(table: dict[str, Any]) -> None:
    data = {"seeds": 3, "world": [table, {"name": "x"}]}
    assert tomllib.loads(tomli_w.dumps(data)) == data
