"""What a sweep shows in a notebook: one line per learner and setting, seeds together."""

from __future__ import annotations

from collections.abc import Iterator

from hedgerow import brief
from hedgerow.html_parts import Cell, card, line, name, number, table, verdict
from hedgerow.results.record import Results


def results_html(results: Results) -> str:
    """Regret and violation as interquartile means with quartiles, and how many seeds were safe."""
    missing = len(results.cells) - len(results.done)
    facts = [
        name(results.title).words,
        f"{len(results.done):,} of {brief.counted(len(results.cells), 'cell')} done",
        "" if results.directory is None else str(results.directory),
    ]
    failed = sum(cell.status == "failed" for cell in results.cells)
    rest = f"{failed:,} failed, {missing - failed:,} missing" if missing else ""
    groups = results.groups if results.done else []
    names = "learner", "world", "adversary", "episodes", "seeds"
    head = [*names, "regret", "[quartiles]", "violation", "[quartiles]", "safe seeds"]

    def rows() -> Iterator[list[str | Cell]]:
        for group in groups:
            found, setting = group.summary(), group.setting
            exact = group.scored == "exact"
            safe = verdict(found.safe == found.seeds, *[f"{found.safe} of {found.seeds}"] * 2) if exact else Cell("-")
            yield [
                name(group.learner),
                name(setting.world),
                name(setting.adversary),
                f"{setting.episodes:,}",
                f"{found.seeds:,}",
                Cell(number(found.regret), "font-weight:600"),
                _quartiles(found.regret_quartiles),
                Cell(number(found.violation), "font-weight:600"),
                _quartiles(found.violation_quartiles),
                safe,
            ]

    shown = table(head, rows(), num_text=3, total=len(groups), what="groups")
    note = line("regret and violation: interquartile means over seeds [quartiles of the seeds]") if shown else ""
    return card("Results", facts, line(rest), shown or line("no finished cell"), note)


def _quartiles(pair: tuple[float, float]) -> str:
    return f"[{number(pair[0])}, {number(pair[1])}]"
