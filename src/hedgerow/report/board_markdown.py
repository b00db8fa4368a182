"""The tables of a comparison as Markdown, and how they get into a page that people write around them.

<!-- comparison begins -->
... replaced by every `hedgerow compare ... --markdown PAGE` ...
<!-- comparison ends -->
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hedgerow.display.text import counted, visible
from hedgerow.errors import InvalidInput
from hedgerow.report.words import interval, number
from hedgerow.results.leaderboard import CHEATS, DIFFERENT, UNSAFE, Block, Leaderboard, Rank
from hedgerow.results.metrics import INTERVALS
from hedgerow.storage import atomic, datafile

COMPARISON = "comparison"
END = "<!-- end -->"
NOTHING = "-"
LARGEST = 2**24
"""Bytes of a page, at most"""


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
    parts = [
        *_command(manifest),
        _counts(board),
        *([f"Mind the noise: {_safe(warning)}."] if warning else []),
        "### Over all settings",
        table(
            ["learner", "told", "radii", "mean rank", "first", "safe", "regret / baseline's", "declined"],
            (_summary_row(summary) for summary in board.summaries),
        ),
        "### Ranks",
        "Among the safe ones; ✗ is unsafe.",
        table(
            ["setting", *(summary.learner for summary in board.summaries)],
            (_rank_row(board, block) for block in board.blocks),
        ),
        "### The best safe learners",
        INTERVALS,
        table(
            ["setting", "first", "regret", "second", "more regret", "always the baseline"],
            (_best_row(board, block) for block in board.blocks),
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _command(manifest: Mapping[str, Any]) -> list[str]:
    command = manifest.get("command")
    if not command:
        return []
    words = [str(word) for word in command] if isinstance(command, list) else shlex.split(str(command))
    # Where it is installed, where the results went and how many processes there were is nobody's business.
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
    seeds = sorted({len(s.scores.by_seed) for block in board.blocks for s in block.standings if s.scores})
    lengths = sorted({block.setting.episodes for block in board.blocks})
    return (
        f"{counted(len(board.summaries), 'learner')}, {counted(len(worlds), 'world')}, "
        f"{counted(len(board.blocks), 'setting')}; T = {', '.join(f'{t:,}' for t in lengths)}; "
        f"{seeds[0] if len(seeds) == 1 else f'{seeds[0]} to {seeds[-1]}'} seeds."
    )


def _summary_row(summary: Any) -> list[str]:
    rank = NOTHING if summary.mean_rank is None else f"{summary.mean_rank:.1f} (in {summary.ranked})"
    return [
        summary.learner,
        summary.told or NOTHING,
        summary.radii or NOTHING,
        "control" if summary.cheats else rank,
        str(summary.firsts) if summary.ranked else NOTHING,
        f"{summary.safe} of {summary.safe + summary.unsafe}",
        NOTHING if summary.share is None else f"{100.0 * summary.share:.0f} %",
        str(summary.declined) if summary.declined else NOTHING,
    ]


def _rank_row(board: Leaderboard, block: Block) -> list[str]:
    return [_setting(board, block), *(_short(board.status(block, summary.learner)) for summary in board.summaries)]


def _best_row(board: Leaderboard, block: Block) -> list[str]:
    ranked = [standing for standing in block.standings if standing.rank is not None]
    first, second = (ranked[i] if i < len(ranked) else None for i in (0, 1))
    return [
        _setting(board, block),
        NOTHING if first is None else first.learner,
        _regret(first),
        NOTHING if second is None else second.learner,
        _ahead(first),
        _regret(_baseline(block)),
    ]


def _baseline(block: Block) -> Rank | None:
    return next((standing for standing in block.standings if standing.kind == "always-baseline"), None)


def _regret(standing: Rank | None) -> str:
    if standing is None or standing.scores is None:
        return NOTHING
    found = standing.scores.numbers.get("regret")
    return NOTHING if found is None else f"{number(found.value)} {interval(found.low, found.high)}".rstrip()


def _ahead(first: Rank | None) -> str:
    if first is None or first.next is None:
        return NOTHING
    more = number(first.next.found.value)
    return more if first.next.verdict == DIFFERENT else f"{more} (not distinguishable)"


def _short(standing: Rank | None) -> str:
    if standing is None:
        return NOTHING
    return {CHEATS: "control", UNSAFE: "✗"}.get(standing.status) or str(standing.rank or standing.status)


def _setting(board: Leaderboard, block: Block) -> str:
    setting, lengths = block.setting, {each.setting.episodes for each in board.blocks}
    length = f", T = {setting.episodes:,}" if len(lengths) > 1 else ""
    return f"{setting.world}, {setting.adversary}{length}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(_safe(cell) for cell in line)} |" for line in lines)


def _safe(words: object) -> str:
    """Anything as the content of a cell: what Markdown or HTML would read is shown instead."""
    return "".join(_SPECIAL.get(sign, sign) for sign in visible(words))


_SPECIAL = {"<": "&lt;", ">": "&gt;", "&": "&amp;", **{sign: f"\\{sign}" for sign in "\\`*_[]|"}}
