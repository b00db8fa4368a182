"""What came of a sweep, in words: verdicts of settings, and the two rows that every learner is compared with.

The *reference rows* of a setting follow from the losses that its learners met. With B_T the loss of always playing the
baseline, and T OPT that of the oracle, both under the same losses and in expectation,

    saved = 1 - L_T / B_T        possible = 1 - T OPT / B_T        regret of the baseline = B_T - T OPT

Adversaries that answer to the learner give each its own losses. Then there is no common row, but `saved` and `possible`
of every run are still right: each compares a run with its own losses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from hedgerow.display.numbers import PLAIN, NumberFormat
from hedgerow.display.table import Table, TableCell
from hedgerow.display.terms import Terms
from hedgerow.display.text import counted, visible
from hedgerow.environments.columns import Column
from hedgerow.results.groups import Cell, Group, by_setting, table_row
from hedgerow.results.metrics import TOL_SAFE, Estimate, number_cell, over_seeds
from hedgerow.simulation.result import BASELINE_LOSS

BASELINE, ORACLE = "always-baseline", "oracle"
"""The kinds of the reference rows; a learner of that kind in the sweep takes the place of its row."""
BEST = "best possible (oracle)"
"""What tables and figures call the oracle."""
HEADS = {
    "saved": "{loss} saved",
    "over": "{episodes} over the limit",
    "left": "{episodes} left to {baseline}",
}
"""The columns of the table that belongs to a verdict."""
OVERDRAWN = "overdrawn"
"""The column of learners whose limit is a budget: episodes after which it was exceeded."""
MOST_NAMED = 3
"""Of the learners over the limit: so many are named in a verdict."""
TOL_SAME = 1e-9
"""Sums of losses that differ by no more than this, relatively, are the same losses."""


# Reference rows -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ReferenceRow:
    """The numbers of the baseline or of the oracle in one setting, over the seeds of its runs."""

    learner: str
    """What it is called in tables"""
    kind: str
    columns: Mapping[str, Column]
    numbers: Mapping[str, Estimate]

    def shown(self, table: str) -> dict[str, tuple[Column, Estimate]]:
        """What is declared for a table, by its head, as `Group.shown` has it."""
        return {
            self.columns[name].head: (self.columns[name], number)
            for name, number in self.numbers.items()
            if table in self.columns[name].tables
        }

    def number(self, name: str) -> Estimate | None:
        """The number of this name; None if it has none."""
        return self.numbers.get(name)


def reference_rows(groups: Sequence[Group]) -> list[ReferenceRow]:
    """The baseline and the oracle, in this order, for the groups of one setting; those that are known and no learner.

    There are none where the truth is not known, or where the losses answer to the learner.
    """
    present, terms = {group.kind for group in groups}, groups[0].terms
    if any(group.scored != "exact" for group in groups) or not _same_losses(groups):
        return []
    witness = max(groups, key=lambda group: len(group.cells))
    pairs = list(zip(witness.cells, witness.tables, strict=True))
    wanted = {BASELINE: (f"always {terms.baseline}", _baseline), ORACLE: (BEST, _oracle)}
    rows = []
    for kind, (name, of) in wanted.items():
        found = [numbers for cell, table in pairs if (numbers := of(cell, *_sums(cell, table)))]
        if kind not in present and len(found) == len(pairs):
            columns = {name: column for group in groups for name, column in group.columns.items()}
            rows.append(ReferenceRow(name, kind, columns, _over_seeds(found, columns, witness.setting.episodes)))
    return rows


def _same_losses(groups: Sequence[Group]) -> bool:
    """Whether all runs of a seed met the same losses, judged by what the two references lose."""
    found: dict[int, tuple[float | None, ...]] = {}
    for group in groups:
        for cell, table in zip(group.cells, group.tables, strict=True):
            sums = _sums(cell, table)
            if not all(_same(one, other) for one, other in zip(sums, found.setdefault(cell.seed, sums), strict=True)):
                return False
    return True


def _same(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return abs(one - other) <= TOL_SAME * max(1.0, abs(one), abs(other))


def _sums(cell: Cell, table: Any) -> tuple[float | None, float | None]:
    """B_T and T OPT of a run; None where there is no baseline, or no policy is feasible."""
    known, optimum = BASELINE_LOSS.name in table.column_names, cell.facts.get("optimum")
    lost = table.column(BASELINE_LOSS.name)[-1].as_py() if known else None
    return lost, None if optimum is None else float(optimum) * cell.episodes


def _baseline(cell: Cell, lost: float | None, least: float | None) -> dict[str, float | None]:
    """The numbers of always playing the baseline; nothing if there is none."""
    if lost is None:
        return {}
    excess, T = cell.facts.get("baseline_excess"), cell.episodes
    over = 0.0 if excess is None or excess <= TOL_SAFE else excess
    regret = None if least is None else lost - least
    return {
        "loss": lost,
        "regret": regret,
        "regret_per_episode": None if regret is None else regret / T,
        "saved": 0.0,
        "over": T * (over > 0.0),
        "violation": T * over,
        "safe": over == 0.0,
        "worst_margin": None if excess is None else -excess,
        "unsafe_share": float(over > 0.0),
        "left": T,
        "mixing_total": T,
    }


def _oracle(cell: Cell, lost: float | None, least: float | None) -> dict[str, float | None]:
    """The numbers of the best feasible policy in hindsight; nothing if no policy is feasible."""
    if least is None:
        return {}
    none = dict.fromkeys(("regret", "regret_per_episode", "over", "violation", "unsafe_share"), 0.0)
    return {"loss": least, "saved": 1.0 - least / lost if lost else None, "safe": True, **none}


def _over_seeds(
    found: Sequence[Mapping[str, float | None]], columns: Mapping[str, Column], episodes: int
) -> dict[str, Estimate]:
    made = {
        name: over_seeds(columns[name], [numbers[name] for numbers in found], episodes)
        for name in found[0]
        if name in columns
    }
    return {name: number for name, number in made.items() if number is not None}


def with_references(groups: Sequence[Group]) -> list[Group | ReferenceRow]:
    """The rows of a table of one setting: the baseline, the learners, the oracle."""
    rows = reference_rows(groups)
    first = [row for row in rows if row.kind == BASELINE]
    return [*first, *groups, *(row for row in rows if row.kind == ORACLE)]


def table_rows(groups: Sequence[Group], table: str, names: Iterable[str]) -> list[tuple[str, list[TableCell]]]:
    """The name and the cells of every row under these heads."""
    heads = list(names)
    return [(row.learner, table_row(row, table, heads)) for row in with_references(groups)]


# Verdicts -------------------------------------------------------------------------------------------------------------


class SettingVerdict(NamedTuple):
    """What came of one setting."""

    sentences: tuple[str, ...]
    """Plain text, the most important first"""
    rows: tuple[tuple[str, list[TableCell]], ...]
    """Of the table: references and learners, the worst offender first; cells as in `heads`"""
    heads: tuple[str, ...]
    """Without the name of the learner"""

    @property
    def text(self) -> str:
        """All sentences in one line."""
        return " ".join(self.sentences)

    def table(self, title: str) -> Table:
        """The table for terminals and pages."""
        made = Table(title, ["learner", *self.heads])
        for name, cells in self.rows:
            made.add_row(name, *cells)
        return made


def verdict(groups: Sequence[Group], numbers: NumberFormat = PLAIN) -> SettingVerdict:
    """What came of one setting: who saved how much, and at how many episodes over the limit."""
    terms, rows = groups[0].terms, with_references(groups)
    place = {BASELINE: 0, ORACLE: 2}
    order = sorted(rows, key=lambda row: (place.get(row.kind, 1), worst_first(row)))
    shown = [name for name in HEADS if any(row.number(name) is not None for row in order)]
    cells = [(row.learner, [_shown(row, name) for name in shown]) for row in order]
    sentences = tuple(_sentences(groups, terms, numbers))
    return SettingVerdict(sentences, tuple(cells), tuple(terms.said(HEADS[name]) for name in shown))


def verdicts(groups: Sequence[Group], numbers: NumberFormat = PLAIN) -> list[tuple[list[Group], SettingVerdict]]:
    """The groups of every setting, and its verdict."""
    return [(members, verdict(members, numbers)) for _, members in by_setting(groups)]


def _shown(row: Group | ReferenceRow, name: str) -> TableCell:
    """A number of a row; what is over the limit is bad, and percentages have one decimal."""
    column, found = row.columns.get(name), row.number(name)
    if name == "saved" and found is not None:
        share = found.value
        ends = (found.low, found.high) if found.low < found.high else None
        note = (lambda n: n.interval(*ends, lambda end: n.percent(end, 1))) if ends else ""
        return TableCell(lambda n: n.percent(share, 1) if share else "0 %", note)
    # A mean of counts over seeds, or a sum of weights, is no whole number: the nearest one is shown.
    cell = number_cell(column, None if found is None else replace(found, value=float(round(found.value))))
    is_bad = name == "over" and found and found.value > 0.0 and not keeps_budget(row)
    return TableCell(cell.words, cell.note, "bad") if is_bad else cell


def worst_first(row: Group | ReferenceRow) -> tuple[bool, float]:
    """Sort by the number of episodes over a limit; those whose limit is a budget, and who kept it, come after."""
    return not _value(row, "over") or keeps_budget(row), -_value(row, "over")


def keeps_budget(row: Group | ReferenceRow) -> bool:
    """Whether a learner's limit is a budget for all episodes so far, and it never exceeded that one."""
    kept = row.number(OVERDRAWN)  # in how many seeds it was not exceeded
    return kept is not None and kept.value == kept.seeds


def _sentences(groups: Sequence[Group], terms: Terms, numbers: NumberFormat) -> Iterable[str]:
    if any(group.scored != "exact" for group in groups):
        yield "The truth of this world is not known: nothing is said of regret and limits, only of what was observed."
        return
    judged = [group for group in groups if not group.cells[0].facts.get("cheats") and group.kind != BASELINE]
    judged = sorted(judged or groups, key=lambda group: _value(group, "loss"))
    over = [group for group in judged if _value(group, "over") > 0.0]
    unsafe, budgets = ([group for group in over if keeps_budget(group) is kept] for kept in (False, True))
    safe = [group for group in judged if group.number("over") is not None and group not in over]
    limited = bool(groups[0].constraints)
    if safe:
        end = f", and no {terms.episode}{_of_seeds(safe[0])} was over the limit" if limited else ""
        yield f"{_result(safe[0], terms, numbers)}{end}."
    elif judged:
        yield f"No learner kept every {terms.episode} within the limit."
    if unsafe:
        told = [f"{_result(group, terms, numbers, brief=True)}, with {_over(group, terms)}" for group in unsafe]
        told[0] += " over it"
        more = f"; {counted(len(told) - MOST_NAMED, 'other learner')} had such {terms.episode}s too"
        yield f"{'; '.join(told[:MOST_NAMED])}{more * (len(told) > MOST_NAMED)}."
    elif limited and len(safe) > 1 and not over:
        all_of_them = "Both" if len(safe) == 2 else f"All {len(safe)}"
        yield f"{all_of_them} learners kept every {terms.episode} within the limit."
    for group in budgets:
        yield (
            f"{_result(group, terms, numbers, brief=True)}. Its limit is a budget for all {terms.episode}s so far, "
            f"which it kept after every {terms.episode}; {_over(group, terms)} cost more than the limit of one."
        )
    if not any(group.number("saved") for group in groups):
        yield f"There is no baseline to compare with, so nothing is said of {terms.loss} saved."
    elif len(groups) > 1 and limited and not _same_losses(groups):
        yield "The losses answer to the learner: each is compared with the baseline under the losses that it met."


def _result(group: Group, terms: Terms, numbers: NumberFormat, brief: bool = False) -> str:
    """`S-OPS saved 13.4 % of the carbon, of 19.7 % possible`."""
    name, saved, possible = visible(group.learner), group.number("saved"), group.number("possible")
    if saved is None:
        regret = group.number("regret")
        known = "" if regret is None else f", {numbers.number(regret.value)} more than the best possible"
        return f"{name} had a {terms.loss} of {numbers.number(_value(group, 'loss'))}{known}"
    share, most = numbers.percent(abs(saved.value), 1), None if possible is None else possible.value
    if saved.value < 0.0:
        best = "" if most is None or brief else f" ({numbers.percent(most, 1)} could have been saved)"
        return f"{name} lost {share} more than {terms.baseline}{best}"
    of = "" if most is None else f", of {numbers.percent(most, 1)} possible"
    return f"{name} saved {share}" if brief else f"{name} saved {share} of the {terms.loss}{of}"


def _over(group: Group, terms: Terms) -> str:
    found = round(_value(group, "over"))
    return f"{terms.counted(max(1, found))}{' on average' if len(group.cells) > 1 else ''}"


def _of_seeds(group: Group) -> str:
    return f" in {counted(len(group.cells), 'seed')}" if len(group.cells) > 1 else ""


def _value(row: Group | ReferenceRow, name: str) -> float:
    found = row.number(name)
    return 0.0 if found is None else found.value


def limit_sentence(group: Group, numbers: NumberFormat = PLAIN) -> str:
    """The limit of every episode in words; the empty text in a world without constraints."""
    if not group.constraints:
        return ""
    pairs = zip(group.constraints, group.thresholds, strict=True)
    named = " and ".join(f"{visible(name)} at most {numbers.number(threshold)}" for name, threshold in pairs)
    words = group.terms.limit or f"in every {group.terms.episode}, expected {named}"
    return f"The limit: {visible(words)}."
