"""What a sweep shows in a notebook: one line per learner and setting, seeds together."""

from __future__ import annotations

from collections.abc import Iterator

from hedgerow.display import text
from hedgerow.display.html import HtmlCell, card, line, name, number, table, verdict
from hedgerow.environments.columns import Column
from hedgerow.results.groups import Results, heads
from hedgerow.results.metrics import INTERVALS, Estimate, in_words


def results_html(results: Results) -> str:
    """The columns that are declared for short tables: regret, violation, how many seeds were safe, ..."""
    missing = len(results.cells) - len(results.done)
    facts = [
        name(results.title).words,
        f"{len(results.done):,} of {text.counted(len(results.cells), 'cell')} done",
        "" if results.directory is None else str(results.directory),
    ]
    failed = sum(cell.status == "failed" for cell in results.cells)
    rest = f"{failed:,} failed, {missing - failed:,} missing" if missing else ""
    groups = results.groups if results.done else []
    shown = list(heads(groups, "short"))
    head = ["learner", "world", "adversary", "episodes", "seeds", *shown]

    def rows() -> Iterator[list[str | HtmlCell]]:
        for group in groups:
            found, setting = group.shown("short"), group.setting
            names = [name(group.learner), name(setting.world), name(setting.adversary)]
            counts = [f"{setting.episodes:,}", f"{len(group.cells):,}"]
            yield [*names, *counts, *(_cell(*found[each]) if each in found else "-" for each in shown)]

    drawn = table(head, rows(), num_text=3, total=len(groups), what="groups")
    return card("Results", facts, line(rest), drawn or line("no finished cell"), line(INTERVALS) if drawn else "")


def _cell(column: Column, found: Estimate) -> HtmlCell:
    words, around = in_words(column, found, FORMATS, "-")
    if column.type == "bool":
        return verdict(found.value == found.seeds, words, words)
    return HtmlCell(f"{words} {around}".strip())


FORMATS = {
    "number": number,
    "sum": number,
    "whole": lambda value: f"{value:,.0f}",
    "fixed": lambda value: f"{value:.2f}",
    "share": lambda value: f"{100.0 * value:.2f} %",
}
