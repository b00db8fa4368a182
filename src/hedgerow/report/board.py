"""Two curves in one picture as small as a word: regret on the left, margin on the right (decision 27).

A comparison has hundreds of them. Each is a few hundred bytes of SVG with whole coordinates, without a script. Its
sentence stands for it where nobody sees it.

    >>> picture([1, 2, 3], [0.0, 1.0, 2.0], [], Scales((0.0, 2.0), None), "regret 2")[:53]
    '<svg class="spark" viewBox="0 0 200 60" role="img" ar'
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, pairwise
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

from hedgerow.display.escaping import Html
from hedgerow.display.text import counted
from hedgerow.report import page
from hedgerow.report.colours import LineStyle, pens
from hedgerow.report.page import PageSection, chip, document, table, terms, value
from hedgerow.report.words import DASH, count_of, number, percent, whole
from hedgerow.results.groups import Results
from hedgerow.results.leaderboard import (
    CHEATS,
    DECLINED,
    EQUAL,
    FAILED,
    SAFE,
    UNKNOWN,
    UNSAFE,
    WITHIN_NOISE,
    Block,
    Difference,
    Leaderboard,
    LearnerSummary,
    Rank,
    SettingScores,
    leaderboard,
)
from hedgerow.results.metrics import INTERVALS
from hedgerow.results.store import open as open_results
from hedgerow.storage import datafile

text = Html.escape

WIDTH, HEIGHT = 200, 60
"""Of the coordinates; the style sheet says how large that is."""
GAP = 16
"""Between the two panels."""
EDGE = 3
"""Above and below, so that no line is cut."""

Range = tuple[float, float]


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
) -> str:
    """The SVG of a learner in a setting; `words` say what it shows. A margin below the line is a violation."""
    half = (WIDTH - GAP) // 2
    left = _zero(0, half, common.regret, "axis") + _line(episodes, regret, common.regret, 0, half, "regret")
    right = ""
    if common.margin is not None and margin:
        start = half + GAP
        right = _forbidden(start, half, common.margin) + _zero(start, half, common.margin, "limit")
        right += _line(episodes, margin, common.margin, start, half, "margin")
    return (
        f'<svg class="spark" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{text(words)}">{left}{right}</svg>'
    )


def _line(episodes: Sequence[int], values: Sequence[float], limits: Range, start: int, width: int, kind: str) -> str:
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
    return f'<path class="{kind}" d="M{points[0][0]} {points[0][1]}{steps}"/>'


def _zero(start: int, width: int, limits: Range, kind: str) -> str:
    return f'<path class="{kind}" d="M{start} {_height(0.0, limits)}h{width}"/>'


def _forbidden(start: int, width: int, limits: Range) -> str:
    """The region below a margin of 0."""
    top = _height(0.0, limits)
    return f'<path class="forbidden" d="M{start} {top}h{width}V{HEIGHT}h-{width}z"/>' if top < HEIGHT - EDGE else ""


def _height(value: float, limits: Range) -> int:
    low, high = limits
    share = (min(max(value, low), high) - low) / (high - low)
    return round(HEIGHT - EDGE - (HEIGHT - 2 * EDGE) * share)


def _range(values: Iterable[float]) -> Range:
    known = [0.0, *(value for value in values if isfinite(value))]
    low, high = min(known), max(known)
    return (low, high) if high > low else (low, low + 1.0)


# --------------------------------------------------------------------------------------------------------------------
# The page of a comparison: one HTML file that needs nothing else, made from a leaderboard.
#
# write_board("out/compare-minute")                     # -> out/compare-minute/compare.html


# ruff: noqa: RUF001 - Greek letters and a true minus sign are meant


FILE = "compare.html"


def write_board(
    source: Results | str | os.PathLike[str],
    path: str | os.PathLike[str] | None = None,
    *,
    board: Leaderboard | None = None,
) -> Path:
    """Write the page of a comparison; an older page is replaced.

    Args:
        source: The results of a sweep, or their directory.
        path: The file to write; None puts compare.html into the directory.
        board: Their leaderboard, if it is known already.

    Returns:
        The path of the page.

    Raises:
        InvalidInput: If no cell is finished.
    """
    results = source if isinstance(source, Results) else open_results(source)
    target = (results.directory or Path()) / FILE if path is None else Path(path)
    datafile.save(target, board_page(results, board).encode(errors="backslashreplace"), overwrite=True)
    return target


def board_page(results: Results, board: Leaderboard | None = None) -> str:
    """The whole page as text."""
    found = leaderboard(results) if board is None else board
    drawn = pens([(summary.learner, summary.kind) for summary in found.summaries])
    told = {summary.learner: summary.told for summary in found.summaries}
    parts = [
        PageSection("summary", "Summary", _summary(found, drawn)),
        PageSection("ranks", "Ranks, setting by setting", _matrix(found)),
        PageSection("terms", "What the columns of the tables mean", _definitions(found)),
    ]
    for place, (world, blocks) in enumerate(groupby(found.blocks, key=lambda block: block.setting.world)):
        parts.append(
            PageSection(f"setting-{place}", text(world), "".join(_block(found, block, drawn, told) for block in blocks))
        )
    failed = [cell for cell in results.cells if cell.status != "done"]
    parts += [
        PageSection("told", "Who was told what", _told(found, drawn)),
        PageSection("promises", "Promises", _promises(found, drawn)),
        PageSection("declined", "What was declined", _declined(found)),
        PageSection("unfinished", "Cells without a result", page.failures(failed) if failed else ""),
        PageSection("repeat", "Repeat it", page.repeat(results.manifest)),
        PageSection("origin", "Where the numbers come from", page.origin(_without_cells(results.manifest))),
    ]
    return document(found.title, _header(found, results), [part for part in parts if part.content])


def _without_cells(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest without what it says of every cell: thousands of lines that nobody reads."""
    return {key: value for key, value in manifest.items() if key not in ("cells", "hashes", "declined")}


def _header(board: Leaderboard, results: Results) -> str:
    worlds = {block.setting.world for block in board.blocks}
    counts = [
        counted(len(board.summaries), "learner"),
        counted(len(worlds), "world"),
        counted(len(board.blocks), "setting"),
        counted(len(results.done), "run"),
        f"{whole(sum(cell.episodes for cell in results.done))} episodes",
    ]
    about = f'<p class="about">{text(board.description)}</p>' if board.description else ""
    return f"<header><h1>{text(board.title)}</h1>{about}<p>{' · '.join(counts)}</p></header>"


# Summary --------------------------------------------------------------------------------------------------------------


def _summary(board: Leaderboard, drawn: dict[str, LineStyle]) -> str:
    head = ["learner", "mean rank", "first", "safe", "regret / baseline’s", "unsafe", "declined", "failed"]
    rows = [
        [
            chip(summary.learner, drawn),
            DASH if summary.mean_rank is None else f"{summary.mean_rank:.1f} <small>in {summary.ranked}</small>",
            whole(summary.firsts) if summary.ranked else DASH,
            count_of(summary.safe, summary.safe + summary.unsafe),
            percent(summary.share),
            f'<span class="bad">{summary.unsafe}</span>' if summary.unsafe else DASH,
            whole(summary.declined) if summary.declined else DASH,
            f'<span class="bad">{summary.failed}</span>' if summary.failed else DASH,
        ]
        for summary in _by_rank(board.summaries)
    ]
    warning = board.warning()
    told = f'<p><strong class="bad">Mind the noise:</strong> {text(warning)}.</p>' if warning else ""
    sentences = "".join(f"<li>{text(summary.sentence())}</li>" for summary in _by_rank(board.summaries))
    radii = sorted({s.radii for s in board.summaries if s.radii and not s.radii.startswith("preset")})
    words = f"Radii of the other learners of the field: {text(', '.join(radii))}. " if radii else ""
    return (
        f"{told}{table(head, rows, 'answer', 'All learners over all settings')}"
        f'<p class="note">{words}{_SUMMARY}</p><ul class="sentences">{sentences}</ul>'
    )


_SUMMARY = (
    "Safe: no episode of any seed exceeded a threshold by more than 1e-9, in expectation over what was played. "
    "Ranks are by mean regret among the safe ones of a setting; a mean rank is over the settings with a rank. "
    "Regret / baseline’s: the median over settings in which it is safe, where 0 % is the best policy in hindsight and "
    "100 % is to play the given safe policy for ever."
)


def _by_rank(summaries: Sequence[LearnerSummary]) -> list[LearnerSummary]:
    """Those that are safe most often first, then by mean rank; controls that cheat in front."""
    return sorted(
        summaries,
        key=lambda summary: (
            not summary.cheats,
            -summary.safe / max(1, summary.safe + summary.unsafe),
            float("inf") if summary.mean_rank is None else summary.mean_rank,
        ),
    )


def _matrix(board: Leaderboard) -> str:
    """Settings by learners, the learners in the order of the summary."""
    learners = [summary.learner for summary in _by_rank(board.summaries)]
    one_length = len({block.setting.episodes for block in board.blocks}) == 1
    rows = []
    for block in board.blocks:
        cells = [_short(board.status(block, learner)) for learner in learners]
        setting = f"{text(block.setting.world)} · {text(block.setting.adversary)}"
        rows.append([setting if one_length else f"{setting} · T = {whole(block.setting.episodes)}", *cells])
    return table(["setting", *learners], rows, "matrix", "Ranks of all learners in all settings") + _MATRIX


_MATRIX = (
    '<p class="note">A number is the rank among the safe ones; “≈” says that the next one in rank is within noise; '
    "“✗” is unsafe. A dash: the learner was not there.</p>"
)


def _short(standing: Rank | None) -> str:
    if standing is None:
        return DASH
    if standing.rank is not None:
        noisy = standing.next is not None and standing.next.verdict in (WITHIN_NOISE, EQUAL, UNKNOWN)
        return f'<b class="good">{standing.rank}</b>' + ("≈" if noisy else "")
    return {
        UNSAFE: '<abbr class="bad" title="unsafe">✗</abbr>',
        CHEATS: "control",
        DECLINED: "declined",
        FAILED: '<span class="bad">failed</span>',
    }[standing.status]


# One setting ----------------------------------------------------------------------------------------------------------


def _title(block: Block) -> str:
    return f"{text(block.setting.adversary)} · T = {whole(block.setting.episodes)}"


def _block(board: Leaderboard, block: Block, drawn: dict[str, LineStyle], told: dict[str, str]) -> str:
    """The table of a setting: safe ones by rank, then, below a line, the others."""
    head = ["learner", *(column.head for column in board.columns), *_OWN]
    ran = [standing.scores for standing in block.standings if standing.scores]
    common = scales((scores.regret_curve for scores in ran), (scores.margin_curve for scores in ran))
    rows = [[_who(item, drawn, told.get(item.learner, "")), *_numbers(board, item, common)] for item in block.standings]
    below = [place for place, item in enumerate(block.standings) if item.status not in (SAFE, CHEATS)]
    marks = {below[0]: "below"} if below and below[0] else {}
    seeds = sorted({len(scores.by_seed) for scores in ran})
    counts = f"{seeds[0]} to {seeds[-1]} seeds" if len(seeds) > 1 else counted(seeds[0], "seed")
    about = [counts] + ([f"baseline: {', '.join(block.baselines)}"] if block.baselines else [])
    title = _title(block)
    caption = f"Learners in {text(block.setting.world)} · {_title(block)}"
    return f'<h3>{title}</h3><p class="note">{text("; ".join(about))}</p>' + table(head, rows, "board", caption, marks)


def _who(standing: Rank, drawn: dict[str, LineStyle], told: str) -> str:
    rank = f'<b class="rank">{standing.rank}</b> ' if standing.rank is not None else ""
    given = f" <small>told: {text(told)}</small>" if told else ""
    return f"{rank}{chip(standing.learner, drawn)}{given}"


def _numbers(board: Leaderboard, standing: Rank, common: Scales) -> list[str]:
    scores = standing.scores
    if scores is None:
        why = f'<span class="why">{text(standing.status)}: {text(standing.why)}</span>'
        return [why, *[DASH] * (len(board.columns) + len(_OWN) - 1)]
    note = " <small>control, no rank</small>" if standing.status == CHEATS else ""
    numbers = [value(column, scores.numbers.get(column.name)) for column in board.columns]
    return [
        numbers[0] + note,
        *numbers[1:],
        percent(scores.share),
        text(scores.way),
        _held(scores),
        picture(scores.episodes, scores.regret_curve, scores.margin_curve, common, _picture_words(standing, scores)),
        _next(standing.next),
    ]


def _held(scores: SettingScores) -> str:
    void = [promise.name for promise in scores.promises if promise.void_because]
    if not scores.promises:
        return "none"
    if not void:
        return '<span class="good">hold</span>'
    return f'<span class="bad">void</span> <small>{text(", ".join(void))}</small>'


def _next(found: Difference | None) -> str:
    """How surely one is ahead of the next."""
    if found is None:
        return DASH
    other = text(found.other)
    if found.verdict == EQUAL:
        return f'<span class="noise">equal to {other}</span>'
    more = found.found
    if found.verdict == UNKNOWN:
        return f'+{number(more.value)} <small class="noise">{other}: one seed, not distinguishable</small>'
    around = f"[{number(more.low)}, {number(more.high)}]"
    if found.verdict == WITHIN_NOISE:
        return f'<span class="noise">not distinguishable</span> <small>{other}: {number(more.value)} {around}</small>'
    return f"+{number(more.value)} <small>{other}: {around}</small>"


def _picture_words(standing: Rank, scores: SettingScores) -> str:
    """What the two curves show, for those who do not see them."""
    half = scores.regret_curve[len(scores.regret_curve) // 2]
    middle = f"{number(half)} after {whole(scores.episodes[len(scores.episodes) // 2])} episodes, "
    words = f"{standing.learner}: regret {middle}{number(scores.regret_curve[-1])} at the end"
    if scores.margin_curve:
        words += f"; least margin {number(min(scores.margin_curve))}, in the end {number(scores.margin_curve[-1])}"
    return words


# The rest -------------------------------------------------------------------------------------------------------------


def _told(board: Leaderboard, drawn: dict[str, LineStyle]) -> str:
    rows = [
        [chip(summary.learner, drawn), *(text(fact) or DASH for fact in (summary.kind, summary.told, summary.radii))]
        for summary in board.summaries
    ]
    return table(["learner", "kind", "told", "radii"], rows, "ledger", "What the learners were told") + _TOLD


_TOLD = (
    '<p class="note">Everybody knows the layout and the thresholds, and sees the losses and costs of the visited pairs '
    "unless it says otherwise. Radii: those of a learner’s source, those of hedgerow, or those of a preset.</p>"
)


def _promises(board: Leaderboard, drawn: dict[str, LineStyle]) -> str:
    """For each learner and promise in how many settings it holds, and why it does not elsewhere."""
    found: dict[tuple[str, str], list[str]] = {}
    for block in board.blocks:
        for standing in block.standings:
            for promise in standing.scores.promises if standing.scores else ():
                found.setdefault((standing.learner, promise.name), []).append(promise.void_because)
    order = [summary.learner for summary in board.summaries]
    rows = []
    for (learner, name), reasons in sorted(found.items(), key=lambda item: order.index(item[0][0])):
        void = [reason for reason in reasons if reason]
        status = f'<span class="bad">void</span> in {count_of(len(void), len(reasons))}' if void else _HOLDS
        rows.append([chip(learner, drawn), text(name), status, text("; ".join(dict.fromkeys(void))) or DASH])
    head = ["learner", "promise", "settings", "void because"]
    return table(head, rows, "ledger", "Promises of the learners") if rows else ""


_HOLDS = '<span class="good">holds</span> in all'


def _declined(board: Leaderboard) -> str:
    """What was left out before the run, the same reasons together."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for entry in board.declined:
        found.setdefault((entry["label"], entry["kind"], entry["why"]), []).append(entry["world"])
    rows = [
        [text(label), text(kind), text(", ".join(dict.fromkeys(worlds))), text(why)]
        for (label, kind, why), worlds in found.items()
    ]
    head = ["who", "what it is", "worlds", "why"]
    return table(head, rows, "ledger", "What was declined") if rows else ""


_OWN = {
    "of baseline’s": "regret as a share of that of always playing the given safe policy, both from the oracle’s",
    "loop": "compiled, or step-wise through plan and observe",
    "promises": "whether what the learner promises holds under its switches and in this setting",
    "regret, margin": "over episodes; threshold minus cost, the least over seeds; all of a table share their scales",
    "to the next": "how much more regret the next in rank has, seed by seed",
}
"""The columns that only a comparison has, and what they mean."""


def _definitions(board: Leaderboard) -> str:
    """What the columns of a table mean."""
    meanings = {column.head: column.words for column in board.columns}
    return f'<p class="note">{text(INTERVALS)}</p>' + terms(meanings | _OWN)
