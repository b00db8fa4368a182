"""`hedgerow verify`: every promise of the paper on running code, with a verdict that could have been otherwise.

hedgerow verify --quick              under a minute
hedgerow verify                      some minutes; results go to out/verify-default and are resumed from there
hedgerow verify --full               half an hour
hedgerow verify --full --finished    the verdicts that the finished runs allow, of a verification that was interrupted
hedgerow verify --deterministic      the implications that need no statistics, on 1,995 long runs
hedgerow verify --only T7 --json     one promise, with the controls that it must refute, for a machine
hedgerow verify --quick --power      how small a mistake in each constant the level refutes
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hedgerow.commands import FAILED, AsJson, one_thread, print_json
from hedgerow.display.screen import Screen, say
from hedgerow.errors import InvalidInput

if TYPE_CHECKING:
    from hedgerow.verify.levels import Level

PATIENCE = 5.0
"""Seconds between two lines of progress where there is no terminal."""


def verify(
    quick: Annotated[bool, typer.Option("--quick", help="Short runs: under a minute on two cores.")] = False,
    full: Annotated[
        bool, typer.Option("--full", help="Horizons to 10^7, paper radii, many seeds: half an hour.")
    ] = False,
    deterministic: Annotated[
        bool, typer.Option("--deterministic", help="Only what needs no statistics, on 1,995 runs of 20,000 episodes.")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="T1,...",
            help="A promise, T1 to T38, or with --power a constant; may be repeated or a,b,c.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", file_okay=False, help="Where results go; by default out/verify-LEVEL.")
    ] = None,
    figures: Annotated[
        bool, typer.Option("--figures", help="Also write tables and figures (SVG; needs hedgerow[figures]) there.")
    ] = False,
    power: Annotated[
        bool,
        typer.Option("--power", help="Find the smallest mistake in each constant that the level refutes (slow)."),
    ] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Run everything again, even what is there already.")] = False,
    finished: Annotated[
        bool, typer.Option("--finished", help="Run nothing: judge the promises whose runs are finished already.")
    ] = False,
    processes: Annotated[int, typer.Option("--processes", "-j", metavar="N", min=1, help="How many processes.")] = 2,
    as_json: AsJson = False,
) -> None:
    """Check every theorem and lemma of the paper on running code.

    Broken learners must fail the same checks. Exit code 1 if a promise is refuted.
    """
    if quick + full + deterministic > 1:
        raise InvalidInput("choose one of --quick, --full and --deterministic")
    if finished and (fresh or power):
        raise InvalidInput("--finished runs nothing; leave --fresh and --power out")
    name = "quick" if quick else "full" if full else "deterministic" if deterministic else "default"
    one_thread()
    from hedgerow.experiments.progress import watcher
    from hedgerow.verify.levels import make_level
    from hedgerow.verify.verify import show_report
    from hedgerow.verify.verify import verify as run

    chosen = [key.strip() for part in only or [] for key in part.split(",") if key.strip()]
    if power:
        _measure_power(make_level(name), out or Path("out") / f"power-{name}", chosen, processes)
        return
    if figures:
        from hedgerow.report.export import check_browser

        check_browser()  # before minutes of running, not after them
    keys = [key.upper() for key in chosen]
    folder = out or Path("out") / f"verify-{name}"
    level, watch = make_level(name), watcher(quiet=False, patience=PATIENCE)
    report = run(level, folder, only=keys, processes=processes, fresh=fresh, finished=finished, watch=watch)
    if as_json:
        print_json(report.as_data())
    else:
        show_report(report)
    written = [folder / "verdicts.json", *([] if keys else [folder / "verdicts.md"])]
    if figures:
        from hedgerow.verify.verify import draw

        written += draw(level, folder)
    say("written: " + ", ".join(map(str, written)), error=True)
    if not report.passed:
        raise typer.Exit(FAILED)


def _measure_power(level: Level, folder: Path, chosen: list[str], processes: int) -> None:
    from hedgerow.verify.verify import power, power_table

    Screen().table(power_table(power(level, folder, only=chosen, processes=processes), level.name))
    say(f"written: {folder / 'power.json'}, {folder / 'power.md'}", error=True)
