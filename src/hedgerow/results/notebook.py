"""What a sweep shows in a notebook: one line per learner and setting, seeds together."""

from __future__ import annotations

from collections.abc import Iterator

from hedgerow.display import text
from hedgerow.display.html import HtmlCell, card, line, name, number, table, verdict
from hedgerow.results.groups import Results


def results_html(results: Results) -> str:
    """Regret and violation as interquartile means with quartiles, and how many seeds were safe."""
    missing = len(results.cells) - len(results.done)
    facts = [
        name(results.title).words,
        f"{len(results.done):,} of {text.counted(len(results.cells), 'cell')} done",
        "" if results.directory is None else str(results.directory),
    ]
    failed = sum(cell.status == "failed" for cell in results.cells)
    rest = f"{failed:,} failed, {missing - failed:,} missing" if missing else ""
    groups = results.groups if results.done else []
    names = "learner", "world", "adversary", "episodes", "seeds"
    head = [*names, "regret", "[quartiles]", "violation", "[quartiles]", "safe seeds"]

    def rows() -> Iterator[list[str | HtmlCell]]:
        for group in groups:
            found, setting = group.summary(), group.setting
            exact = group.scored == "exact"
            safe = (
                verdict(found.safe == found.seeds, *[f"{found.safe} of {found.seeds}"] * 2) if exact else HtmlCell("-")
            )
            yield [
                name(group.learner),
                name(setting.world),
                name(setting.adversary),
                f"{setting.episodes:,}",
                f"{found.seeds:,}",
                HtmlCell(number(found.regret), "font-weight:600"),
                _quartiles(found.regret_quartiles),
                HtmlCell(number(found.violation), "font-weight:600"),
                _quartiles(found.violation_quartiles),
                safe,
            ]

    shown = table(head, rows(), num_text=3, total=len(groups), what="groups")
    note = line("regret and violation: interquartile means over seeds [quartiles of the seeds]") if shown else ""
    return card("Results", facts, line(rest), shown or line("no finished cell"), note)


def _quartiles(pair: tuple[float, float]) -> str:
    return f"[{number(pair[0])}, {number(pair[1])}]"
