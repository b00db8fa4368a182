"""A comparison for people: its page, which is one HTML file that needs nothing else, and its tables as Markdown.

    write_board("out/compare-minute")                     # -> out/compare-minute/compare.html

`hedgerow compare ... --markdown PAGE` replaces what stands in a page between two lines that people write:

    <!-- table: comparison -->
    <!-- end -->
"""

# ruff: noqa: RUF001 - Greek letters and a true minus sign are meant

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby, pairwise
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

from hedgerow.display.numbers import PAGE, count_of
from hedgerow.display.table import NOTHING, Table, TableCell
from hedgerow.display.text import Html, counted, visible
from hedgerow.display.text import markdown as escape_markdown
from hedgerow.environments.columns import Column
from hedgerow.errors import InvalidInput
from hedgerow.report.figures import Styles
from hedgerow.report.page import PageSection, chip, closing, count_range, document, lead_of, macros
from hedgerow.report.plots import pens
from hedgerow.results.groups import Results
from hedgerow.results.leaderboard import (
    BUDGET,
    CHEATS,
    DIFFERENT,
    EQUAL,
    FAILED,
    SAFE,
    UNKNOWN,
    UNSAFE,
    Block,
    Difference,
    Leaderboard,
    LearnerSummary,
    Rank,
    SettingScores,
    leaderboard,
)
from hedgerow.results.metrics import INTERVALS, number_cell
from hedgerow.results.store import open as open_results
from hedgerow.results.verdict import verdicts
from hedgerow.storage import atomic, datafile

FILE = "compare.html"
COMPARISON = "comparison"
END = "<!-- end -->"
LARGEST = 2**24
"""Bytes of a page of Markdown, at most"""
OWN_COLUMNS = {
    "of baseline’s": "regret as a share of that of always playing the given safe policy, both from the oracle’s",
    "promises": "whether what the learner promises holds under its switches and in this setting",
    "regret, margin": "over episodes; threshold minus cost, the least over seeds; all of a table share their scales",
    "to the next": "how much more regret the next in rank has, seed by seed",
}
"""The columns that only a comparison has, and what they mean."""
WIDTH, HEIGHT = 200, 60
"""Of the coordinates of a picture; the style sheet says how large that is."""
GAP = 16
"""Between its two panels."""
EDGE = 3
"""Above and below, so that no line is cut."""

Range = tuple[float, float]
number = PAGE.number


def write_board(
    source: Results | str | os.PathLike[str],
    path: str | os.PathLike[str] | None = None,
    *,
    board: Leaderboard | None = None,
) -> Path:
    """Write the page of a comparison; an older page is replaced. By default it is compare.html in the directory.

    `board` is the leaderboard of these results, if it is known already.
    """
    results = source if isinstance(source, Results) else open_results(source)
    target = (results.directory or Path()) / FILE if path is None else Path(path)
    datafile.save(target, board_page(results, board).encode(errors="backslashreplace"), overwrite=True)
    return target


def board_page(results: Results, board: Leaderboard | None = None) -> str:
    """The whole page as text."""
    found = leaderboard(results) if board is None else board
    styles, write = pens([(summary.learner, summary.kind) for summary in found.summaries]), macros()
    meanings = {column.head: column.words for column in found.columns} | OWN_COLUMNS
    parts = [
        PageSection("summary", "Summary", _summary(found, styles)),
        PageSection("ranks", "Ranks, setting by setting", write.matrix(ranks_table(found).to_html("matrix"))),
        PageSection("terms", "What the columns of the tables mean", write.noted(INTERVALS, write.terms(meanings))),
    ]
    for place, (world, blocks) in enumerate(groupby(found.blocks, key=lambda block: block.setting.world)):
        content = write.blocks([_block(found, block, styles) for block in blocks])
        parts.append(PageSection(f"setting-{place}", world, content))
    # What the manifest says of every cell is thousands of lines.
    manifest = {key: value for key, value in results.manifest.items() if key not in ("cells", "hashes", "declined")}
    parts += [
        PageSection("inputs", "What the learners know", write.inputs(_inputs(found, styles))),
        PageSection("promises", "Promises", _promises(found, styles)),
        PageSection("declined", "What was declined", _declined(found)),
        *closing(results, manifest),
    ]
    worlds = {block.setting.world for block in found.blocks}
    counts = ((len(found.summaries), "learner"), (len(worlds), "world"), (len(found.blocks), "setting"))
    return document(
        results, [counted(*count) for count in counts], parts, lead=lead_of(results, verdicts(results.groups, PAGE))
    )


# Over all settings ----------------------------------------------------------------------------------------------------


def _summary(board: Leaderboard, styles: Styles) -> Html:
    order = by_rank(board.summaries)
    radii = sorted({s.radii for s in order if s.radii and not s.radii.startswith("preset")})
    table = summary_table(
        order,
        ["mean rank", "first", "safe", "regret / baseline's", "unsafe", "declined", "failed"],
        lambda learner: chip(learner, styles),
    )
    sentences = [summary.sentence() for summary in order]
    made: Html = macros().summary(board.warning(), table.to_html("answer"), radii, sentences)
    return made


def by_rank(summaries: Sequence[LearnerSummary]) -> list[LearnerSummary]:
    """Those that keep their limits most often first, then by mean rank; references in front, budgets after the safe."""
    return sorted(
        summaries,
        key=lambda summary: (
            not summary.cheats,
            -(summary.safe + summary.budget) / max(1, summary.ran),
            summary.budget > 0,
            float("inf") if summary.mean_rank is None else summary.mean_rank,
        ),
    )


def summary_table(
    summaries: Sequence[LearnerSummary], columns: Sequence[str], named: Callable[[str], str] = str
) -> Table:
    """The learners over all settings: some of the columns that `_summary_cells` has."""
    table = Table("All learners over all settings", ["learner", *columns], 1 + len({"inputs", "radii"} & {*columns}))
    for summary in summaries:
        cells = _summary_cells(summary)
        table.add_row(named(summary.learner), *(cells[column] for column in columns))
    return table


def _summary_cells(summary: LearnerSummary) -> dict[str, str | TableCell]:
    rank, share = summary.mean_rank, summary.share
    ranked = NOTHING if rank is None else TableCell(f"{rank:.1f}", note=f"in {summary.ranked}")
    return {
        "inputs": summary.inputs or NOTHING,
        "radii": summary.radii or NOTHING,
        "mean rank": "reference" if summary.cheats else ranked,
        "first": str(summary.firsts) if summary.ranked else NOTHING,
        "safe": TableCell(
            count_of(summary.safe, summary.ran), note=f"budget kept in {summary.budget}" * bool(summary.budget)
        ),
        "regret / baseline's": TableCell(lambda numbers: numbers.percent(share)),
        "unsafe": TableCell(str(summary.unsafe), tone="bad") if summary.unsafe else NOTHING,
        "declined": str(summary.declined) if summary.declined else NOTHING,
        "failed": TableCell(str(summary.failed), tone="bad") if summary.failed else NOTHING,
    }


def ranks_table(board: Leaderboard) -> Table:
    """Settings by learners, the learners in the order of the summary."""
    learners = [summary.learner for summary in by_rank(board.summaries)]
    table = Table("Ranks of all learners in all settings", ["setting", *map(TableCell, learners)])
    for block in board.blocks:
        table.add_row(_setting(board, block), *(_rank(board.status(block, learner)) for learner in learners))
    return table


def _setting(board: Leaderboard, block: Block) -> str:
    setting, lengths = block.setting, {each.setting.episodes for each in board.blocks}
    length = [PAGE.named("T", setting.episodes)] if len(lengths) > 1 else []
    return " · ".join([setting.world, setting.adversary, *length])


def _rank(standing: Rank | None) -> TableCell:
    if standing is None:
        return NOTHING
    if standing.rank is not None:
        noisy = standing.next is not None and standing.next.verdict != DIFFERENT
        return TableCell(f"{standing.rank}{'≈' * noisy}", tone="good")
    if standing.status == UNSAFE:
        return TableCell(Html('<abbr title="unsafe">✗</abbr>'), tone="bad")
    if standing.status == BUDGET:
        return TableCell(Html('<abbr title="unsafe in single episodes, budget kept">budget</abbr>'), tone="good")
    return TableCell(
        "reference" if standing.status == CHEATS else standing.status, tone="bad" * (standing.status == FAILED)
    )


# One setting ----------------------------------------------------------------------------------------------------------


class _BlockEntry(NamedTuple):
    title: str
    about: str
    table: Html


def _block(board: Leaderboard, block: Block, styles: Styles) -> _BlockEntry:
    """The table of a setting: safe ones by rank, then, below a line, the others."""
    setting, inputs = block.setting, {summary.learner: summary.inputs for summary in board.summaries}
    title = f"{setting.adversary} · {PAGE.named('T', setting.episodes)}"
    ran = [standing.scores for standing in block.standings if standing.scores]
    common = scales((scores.regret_curve for scores in ran), (scores.margin_curve for scores in ran))
    heads = ["learner", *(column.head for column in board.columns), *OWN_COLUMNS]
    table = Table(f"Learners in {setting.world} · {title}", heads)
    for standing in block.standings:
        table.add_row(_who(standing, styles, inputs.get(standing.learner, "")), *_cells(board, standing, common))
    for row in block.references:
        numbers = (number_cell(column, row.number(column.name)) for column in board.columns)
        table.add_row(row.learner, *numbers, *[NOTHING] * len(OWN_COLUMNS))
    below = [place for place, item in enumerate(block.standings) if item.status not in (SAFE, CHEATS)]
    marks = {below[0]: "below"} if below and below[0] else {}
    seeds = count_range({len(scores.by_seed) for scores in ran}, "seed")
    about = [seeds, *([f"baseline: {', '.join(block.baselines)}"] if block.baselines else [])]
    return _BlockEntry(title, "; ".join(about), table.to_html("board", marks=marks))


def _who(standing: Rank, styles: Styles, inputs: str) -> TableCell:
    rank = Html('<b class="rank">{}</b> ').format(standing.rank) if standing.rank is not None else ""
    notes = ["reference, no rank"] * (standing.status == CHEATS) + ["budget kept"] * (standing.status == BUDGET)
    notes += [f"inputs: {inputs}"] * bool(inputs)
    if standing.scores and standing.scores.way != "compiled":
        notes.append(f"{standing.scores.way} loop")
    return TableCell(Html("{}{}").format(rank, chip(standing.learner, styles)), note="; ".join(notes))


def _cells(board: Leaderboard, standing: Rank, common: Scales) -> list[str | TableCell]:
    scores = standing.scores
    if scores is None:
        why = Html('<span class="why">{}: {}</span>').format(standing.status, standing.why)
        return [why, *[NOTHING] * (len(board.columns) + len(OWN_COLUMNS) - 1)]
    words = _picture_words(standing, scores)
    return [
        *(number_cell(column, scores.numbers.get(column.name)) for column in board.columns),
        PAGE.percent(scores.share),
        _held(scores),
        picture(scores.episodes, scores.regret_curve, scores.margin_curve, common, words),
        _next(standing.next),
    ]


def _held(scores: SettingScores) -> str | TableCell:
    void = [promise.name for promise in scores.promises if promise.void_because]
    if not scores.promises:
        return "none"
    return TableCell("void", note=", ".join(void), tone="bad") if void else TableCell("hold", tone="good")


def _next(found: Difference | None) -> TableCell:
    """How surely one is ahead of the next."""
    if found is None:
        return NOTHING
    if found.verdict == EQUAL:
        return TableCell(f"equal to {found.other}", tone="noise")
    value, around = number(found.found.value), PAGE.interval(found.found.low, found.found.high)
    if found.verdict == UNKNOWN:
        return TableCell(f"+{value}", note=f"{found.other}: one seed, not distinguishable", tone="noise")
    if found.verdict == DIFFERENT:
        return TableCell(f"+{value}", note=f"{found.other}: {around}")
    return TableCell("not distinguishable", note=f"{found.other}: {value} {around}", tone="noise")


def _picture_words(standing: Rank, scores: SettingScores) -> str:
    """What the two curves show, for those who do not see them."""
    half = scores.regret_curve[len(scores.regret_curve) // 2]
    middle = f"{number(half)} after {scores.episodes[len(scores.episodes) // 2]:,} episodes, "
    words = f"{standing.learner}: regret {middle}{number(scores.regret_curve[-1])} at the end"
    if scores.margin_curve:
        words += f"; least margin {number(min(scores.margin_curve))}, in the end {number(scores.margin_curve[-1])}"
    return words


# The rest -------------------------------------------------------------------------------------------------------------


def _inputs(board: Leaderboard, styles: Styles) -> Html:
    table = Table("What the learners know", ["learner", "kind", "inputs", "radii"])
    for summary in board.summaries:
        facts = summary.kind, summary.inputs, summary.radii
        table.add_row(chip(summary.learner, styles), *(fact or NOTHING for fact in facts))
    return table.to_html("ledger")


def _promises(board: Leaderboard, styles: Styles) -> str:
    """For each learner and promise in how many settings it holds, and why it does not elsewhere."""
    found: dict[tuple[str, str], list[str]] = {}
    for block in board.blocks:
        for standing in block.standings:
            for promise in standing.scores.promises if standing.scores else ():
                found.setdefault((standing.learner, promise.name), []).append(promise.void_because)
    order = [summary.learner for summary in board.summaries]
    table = Table("Promises of the learners", ["learner", "promise", "settings", "void because"])
    for (learner, name), reasons in sorted(found.items(), key=lambda item: order.index(item[0][0])):
        void = [reason for reason in reasons if reason]
        mark = Html('<span class="{}">{}</span> in {}')
        many = mark.format("bad", "void", count_of(len(void), len(reasons)))
        status = many if void else mark.format("good", "holds", "all")
        table.add_row(chip(learner, styles), name, status, "; ".join(dict.fromkeys(void)) or NOTHING)
    return table.to_html("ledger") if table.rows else ""


def _declined(board: Leaderboard) -> str:
    """What was left out before the run, the same reasons together."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for entry in board.declined:
        against = f" against {entry['adversary']}" if entry.get("adversary") else ""
        found.setdefault((entry["label"], entry["kind"] + against, entry["why"]), []).append(entry["world"])
    table = Table("What was declined", ["who", "what it is", "worlds", "why"])
    for (label, kind, why), worlds in found.items():
        table.add_row(label, kind, ", ".join(dict.fromkeys(worlds)), why)
    return table.to_html("ledger") if table.rows else ""


# Two curves in one picture as small as a word: regret on the left, margin on the right (decision 27) -----------------
#
# A comparison has hundreds of them. Each is a few hundred bytes of SVG with whole coordinates, without a script. Its
# sentence stands for it where it is not seen.


class Scales(NamedTuple):
    """What the panels of all pictures of a table share: the same height means the same number."""

    regret: Range
    margin: Range | None
    """None in a world without constraints"""


def scales(regrets: Iterable[Sequence[float]], margins: Iterable[Sequence[float]]) -> Scales:
    """Ranges that hold all these curves, and 0."""
    margin = [value for curve in margins for value in curve]
    return Scales(_range(value for curve in regrets for value in curve), _range(margin) if margin else None)


def picture(
    episodes: Sequence[int], regret: Sequence[float], margin: Sequence[float], common: Scales, words: str
) -> Html:
    """The SVG of a learner in a setting; `words` say what it shows. A margin below the line is a violation."""
    half = (WIDTH - GAP) // 2
    paths = [("axis", _zero(0, half, common.regret)), ("regret", _line(episodes, regret, common.regret, 0, half))]
    if common.margin is not None and margin:
        start = half + GAP
        paths.append(("forbidden", _forbidden(start, half, common.margin)))
        paths.append(("limit", _zero(start, half, common.margin)))
        paths.append(("margin", _line(episodes, margin, common.margin, start, half)))
    drawn = Html().join(Html('<path class="{}" d="{}"/>').format(kind, steps) for kind, steps in paths if steps)
    svg = Html('<svg class="spark" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>')
    return svg.format(WIDTH, HEIGHT, words, drawn)


def _line(episodes: Sequence[int], values: Sequence[float], limits: Range, start: int, width: int) -> str:
    """A path in steps from point to point, which are shorter to write than places."""
    last = max(1, max(episodes))
    points = [
        (start + round(width * t / last), _height(value, limits))
        for t, value in zip(episodes, values, strict=True)
        if isfinite(value)
    ]
    if not points:
        return ""
    if len(points) == 1:
        points.append((points[0][0] + 1, points[0][1]))
    steps = "".join(f"l{x - u} {y - v}" for (u, v), (x, y) in pairwise(points))
    return f"M{points[0][0]} {points[0][1]}{steps}"


def _zero(start: int, width: int, limits: Range) -> str:
    return f"M{start} {_height(0.0, limits)}h{width}"


def _forbidden(start: int, width: int, limits: Range) -> str:
    """The region below a margin of 0."""
    top = _height(0.0, limits)
    return f"M{start} {top}h{width}V{HEIGHT}h-{width}z" if top < HEIGHT - EDGE else ""


def _height(value: float, limits: Range) -> int:
    low, high = limits
    share = (min(max(value, low), high) - low) / (high - low)
    return round(HEIGHT - EDGE - (HEIGHT - 2 * EDGE) * share)


def _range(values: Iterable[float]) -> Range:
    known = [0.0, *(value for value in values if isfinite(value))]
    low, high = min(known), max(known)
    return (low, high) if high > low else (low, low + 1.0)


# Markdown -------------------------------------------------------------------------------------------------------------


def write_into(path: Path, content: str, name: str = COMPARISON) -> None:
    """Replace the table of this name in a page; everything else stays as it is."""
    before, after = around(path, name)
    datafile.save(path, f"{before}\n\n{content.strip()}\n\n{after}".encode(), overwrite=True)


def around(path: Path, name: str = COMPARISON) -> tuple[str, str]:
    """What stands in a page up to the first marker of a table, and from its end on; both markers included."""
    try:
        text = atomic.read(path, LARGEST).decode()
    except OSError as error:
        raise InvalidInput(f"cannot read the page {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not a text file in UTF-8: {error.reason} at byte {error.start}") from error
    begin = f"<!-- table: {name} -->"
    before, found, rest = text.partition(begin)
    if not found or begin in rest or END not in rest:
        raise InvalidInput(f"{path} needs the lines {begin} and {END}, in this order, around the place of the tables")
    return before + begin, rest[rest.index(END) :]


def markdown(board: Leaderboard, manifest: Mapping[str, Any]) -> str:
    """All tables: learners over all settings, ranks by setting, and the first of every setting."""
    warning = board.warning()
    columns = ["inputs", "radii", "mean rank", "first", "safe", "regret / baseline's", "declined"]
    best = Table("", ["setting", "first", "regret", "second", "more regret", "always the baseline"])
    for block in board.blocks:
        best.add_row(_setting(board, block), *_best(block))
    parts = [
        *_command(manifest),
        _counts(board),
        *([f"Mind the noise: {escape_markdown(warning)}."] if warning else []),
        "### Over all settings",
        summary_table(board.summaries, columns).to_markdown(),
        "### Ranks",
        "Among the safe ones; ≈ is within noise of the next, ✗ is unsafe.",
        ranks_table(board).to_markdown(),
        "### The best safe learners",
        INTERVALS,
        best.to_markdown(),
    ]
    return "\n\n".join(parts) + "\n"


def _command(manifest: Mapping[str, Any]) -> list[str]:
    command = manifest.get("command")
    if not command:
        return []
    words = [str(word) for word in command] if isinstance(command, list) else shlex.split(str(command))
    # Where it is installed, where the results went and how many processes there were does not belong on a public page.
    words = ["hedgerow", *_without_options(words[words.index("compare") :] if "compare" in words else words[1:])]
    version = (manifest.get("versions") or {}).get("hedgerow")
    made = f"Made with hedgerow {visible(version)}" if version else "Made"
    return [f"{made} by", f"```console\n{visible(shlex.join(words))}\n```"]


def _without_options(words: Sequence[str]) -> list[str]:
    """The words of a command without those that do not change its numbers."""
    kept, skipped = [], False
    for word in words:
        if not skipped and word not in ("--out", "-j", "--processes", "--markdown", "-q", "--quiet"):
            kept.append(word)
        skipped = not skipped and word in ("--out", "-j", "--processes", "--markdown")
    return kept


def _counts(board: Leaderboard) -> str:
    worlds = {block.setting.world for block in board.blocks}
    seeds = {len(s.scores.by_seed) for block in board.blocks for s in block.standings if s.scores}
    lengths = sorted({block.setting.episodes for block in board.blocks})
    return (
        f"{counted(len(board.summaries), 'learner')}, {counted(len(worlds), 'world')}, "
        f"{counted(len(board.blocks), 'setting')}; T = {', '.join(f'{t:,}' for t in lengths)}; "
        f"{count_range(seeds, 'seed')}."
    )


def _best(block: Block) -> list[str | TableCell]:
    """The first and the second of a setting, how surely they differ, and the regret of always playing the baseline."""
    ranked = [standing for standing in block.standings if standing.rank is not None]
    first, second = (ranked[i] if i < len(ranked) else None for i in (0, 1))
    baseline = next((standing for standing in block.standings if standing.kind == "always-baseline"), None)
    ahead = first.next if first else None
    more = (
        "" if ahead is None else f"{number(ahead.found.value)}{' (not distinguishable)' * (ahead.verdict != DIFFERENT)}"
    )
    return [
        first.learner if first else NOTHING,
        _regret(first),
        second.learner if second else NOTHING,
        more or NOTHING,
        _regret(baseline),
    ]


def _regret(standing: Rank | None) -> TableCell:
    found = standing.scores.numbers.get("regret") if standing and standing.scores else None
    return number_cell(Column("regret"), found)
