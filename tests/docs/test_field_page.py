"""docs/field.md: the table of learners is that of the registry, and the comparison has a place."""

from __future__ import annotations

from hedgerow.report.board import around
from tools.write_learner_table import NAME, PAGE, learner_table


def test_the_table_of_learners_is_up_to_date() -> None:
    before, after = around(PAGE, NAME)
    text = PAGE.read_text(encoding="utf-8")
    shown = text[len(before) : len(text) - len(after)].strip()
    assert shown == learner_table(), "run: python tools/write_learner_table.py"


def test_the_comparison_has_a_place() -> None:
    around(PAGE)
