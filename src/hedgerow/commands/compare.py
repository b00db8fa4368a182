"""`compare`: the learners of the field on many worlds, ranked on one page.

hedgerow compare                                   about a minute
hedgerow compare hour -j 8                         the sizes are minute, hour, long and day; or a TOML file
hedgerow compare minute --learners s-ops,mine.py:Mine --seeds 8
hedgerow compare hour --markdown page.md           its tables into a page, between two markers
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hedgerow.commands import AsJson, Quiet, episodes_of, one_thread, print_json
from hedgerow.commands.group import names_of
from hedgerow.commands.run import FOLDER, NO_OPTIONS, end, open_tally, run_sweep, with_options
from hedgerow.display.screen import Screen, say
from hedgerow.display.table import Table
from hedgerow.experiments.options import RunOptions

if TYPE_CHECKING:
    from hedgerow.experiments.spec import Experiment
    from hedgerow.results.leaderboard import Block, Leaderboard

SIZES = {name: f"compare-{name}" for name in ("minute", "hour", "long", "day")}
MOST_BLOCKS = 4
"""Up to so many settings are printed one by one; the page has all of them."""

SUMMARY = ("inputs", "mean rank", "first", "safe", "regret / baseline's", "declined")
"""The columns of the summary."""
PATIENCE = 5.0
"""Seconds between two lines of progress where there is no terminal: a comparison has thousands of cells."""

Size = Annotated[
    str, typer.Argument(help="minute, hour, long or day; or a TOML file.", autocompletion=lambda: list(SIZES))
]


def _names(kind: str) -> Any:
    words = "Labels or names of the file, separated by commas; others are looked up."
    return typer.Option(help=words, metavar="NAME,...", autocompletion=names_of(kind))


@with_options("processes", "backend", "scheduler", "fail_fast", "limit")
def compare(
    size: Size = "minute",
    out: Annotated[Path | None, typer.Option("--out", help="Directory of the results; out/NAME by default.")] = None,
    learners: Annotated[str, _names("learners")] = "",
    worlds: Annotated[str, _names("worlds")] = "",
    adversaries: Annotated[str, _names("adversaries")] = "",
    seeds: Annotated[int | None, typer.Option("--seeds", metavar="N", min=1, help="Number of seeds.")] = None,
    episodes: Annotated[
        int | None, typer.Option("--episodes", metavar="N", parser=episodes_of, help="How many: 100k.")
    ] = None,
    sets: Annotated[
        str | None,
        typer.Option("--sets", help="source, paper, sharp or sharpest, for the other learners of the field."),
    ] = None,
    options: RunOptions = NO_OPTIONS,
    markdown: Annotated[
        Path | None, typer.Option("--markdown", help="Also write the tables into this page, between its markers.")
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Compare learners on many worlds: one page, and who is ahead.

    The same command again goes on where it was interrupted. Safe learners are ranked by regret; differences within
    noise are marked. Exit code: 0 if all cells are finished; 1 if some failed, or if code of others ended its process
    or took too long before the first; 2 if the request cannot be met; 130 after Ctrl-C.
    """
    one_thread()
    loaded, is_changed = _experiment(size, learners, worlds, adversaries, seeds, episodes, sets, options.limit)
    target = out or FOLDER / (f"{loaded.name}-{_mark(loaded)}" if is_changed else loaded.name)
    if markdown is not None:
        _check_page(markdown)
    if not quiet:
        _announce(loaded)
    tally = run_sweep(loaded, target, replace(options, resume=True), quiet, PATIENCE)
    found = None if tally.interrupted else open_tally(tally)
    if found is not None:
        from hedgerow.report.board import write_board
        from hedgerow.results.leaderboard import leaderboard

        board = leaderboard(found)
        page = write_board(found, board=board)
        if markdown is not None:
            from hedgerow.report.board import markdown as as_markdown
            from hedgerow.report.board import write_into

            write_into(markdown, as_markdown(board, found.manifest))
        if as_json:
            print_json({"directory": str(target), "page": str(page), **board.as_data()})
        elif not quiet:
            _print(board, page)
    end(tally)


def _experiment(
    size: str,
    learners: str,
    worlds: str,
    adversaries: str,
    seeds: int | None,
    episodes: int | None,
    sets: str | None,
    limit: float | None,
) -> tuple[Experiment, bool]:
    """The comparison, and whether the options make it another one than the file says."""
    from hedgerow.experiments.reading import read
    from hedgerow.experiments.source import find

    source = find(SIZES.get(size, size))
    loaded = read(
        source,
        limit,
        learners=_split(learners),
        worlds=_split(worlds),
        adversaries=_split(adversaries),
        seeds=seeds,
        episodes=episodes,
        sets=sets,
    )
    return loaded, loaded.source != source


def _split(names: str) -> list[str]:
    return [name.strip() for name in names.split(",") if name.strip()]


def _mark(experiment: Experiment) -> str:
    """Six signs that tell this choice of options from others: each has a directory of its own."""
    from hedgerow.results.manifest import fingerprint

    return fingerprint(experiment.as_data())[:6]


def _check_page(path: Path) -> None:
    """Refuse a page without markers before anything runs."""
    from hedgerow.report.board import around

    around(path)


def _announce(experiment: Experiment) -> None:
    from hedgerow.experiments.spec import cells_of

    cells = cells_of(experiment)
    episodes = sum(cell.episodes for cell in cells)
    declined = f", {len(experiment.declined)} times a world is declined" if experiment.declined else ""
    say(f"{experiment.title or experiment.name}: {len(cells):,} cells, {episodes:,} episodes{declined}", error=True)


# What is printed ------------------------------------------------------------------------------------------------------


def _print(board: Leaderboard, page: Path) -> None:
    from hedgerow.report.board import summary_table
    from hedgerow.results.metrics import INTERVALS

    screen = Screen()
    if len(board.blocks) <= MOST_BLOCKS:
        for block in board.blocks:
            screen.table(_block_table(board, block))
        screen.line(INTERVALS)
    screen.table(summary_table(board.summaries, SUMMARY))
    screen.line(board.verdict())
    if board.warning():
        screen.line(f"mind the noise: {board.warning()}")
    screen.line(f"page: {page}", wrap=False)


def _block_table(board: Leaderboard, block: Block) -> Table:
    from hedgerow.results.metrics import number_cell

    setting = block.setting
    title = f"{setting.world}, {setting.adversary}, {setting.episodes:,} episodes"
    result = Table(title, ["learner", "status", "rank", *(column.head for column in board.columns)], num_text=2)
    for standing in block.standings:
        scores, rank = standing.scores, "-" if standing.rank is None else str(standing.rank)
        if scores is None:
            result.add_row(standing.learner, f"{standing.status}: {standing.why}", rank, *["-"] * len(board.columns))
            continue
        noise = standing.next is not None and standing.next.verdict != "different"
        status = f"{standing.status}, as good as the next" if noise else standing.status
        numbers = (number_cell(column, scores.numbers.get(column.name)) for column in board.columns)
        result.add_row(standing.learner, status, rank, *numbers)
    for row in block.references:
        result.add_row(row.learner, "reference", "-", *(number_cell(c, row.number(c.name)) for c in board.columns))
    return result
