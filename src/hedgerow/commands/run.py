"""`run`, `resume`, `demo`, `report`: experiments from the command line.

hedgerow run --list                          the experiments that ship with the package
hedgerow run quickstart                      run one of them into out/quickstart
hedgerow run mine.toml --out results -j 8    one of your own, on 8 processes
hedgerow resume results                      run what is missing
hedgerow report results                      the page
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields, replace
from functools import wraps
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from hedgerow.commands import FAILED, INTERRUPTED, AsJson, Quiet, one_thread, print_json
from hedgerow.commands.group import experiments
from hedgerow.display.screen import Screen, say
from hedgerow.display.table import Table
from hedgerow.experiments.options import RunOptions

if TYPE_CHECKING:
    from hedgerow.experiments.spec import Experiment
    from hedgerow.experiments.sweep import Tally
    from hedgerow.results.groups import Group, Results

FOLDER = Path("out")
"""Results go below this folder unless another one is named."""
NO_OPTIONS = RunOptions()
MOST_VERDICTS = 4
"""Up to so many settings have their verdicts printed; the page has all of them."""
KEYWORD_ONLY = Parameter.KEYWORD_ONLY

Command = Callable[..., None]


def with_options(*names: str) -> Callable[[Command], Command]:
    """Give a command the options of `RunOptions` in the place of its parameter `options`: these, or all that have help.

    An option is declared once, as a field there.
    """
    shown = [each for each in fields(RunOptions) if each.metadata and (not names or each.name in names)]
    hints = get_type_hints(RunOptions)

    def decorate(command: Command) -> Command:
        @wraps(command)
        def called(**given: Any) -> None:
            told: dict[str, Any] = {each.name: given.pop(each.name) for each in shown}
            if "only" in told:
                told["only"] = tuple(told["only"])
            command(**given, options=RunOptions(**told))

        own, parameters = get_type_hints(command, include_extras=True), []
        for parameter in inspect.signature(command).parameters.values():
            if parameter.name != "options":
                parameters.append(parameter.replace(annotation=own[parameter.name]))
                continue
            for each in shown:
                kind = list[str] if hints[each.name] == tuple[str, ...] else hints[each.name]
                told = typer.Option(*each.metadata["names"], help=each.metadata["help"], **each.metadata["limits"])
                default = [] if each.default == () else each.default
                parameters.append(Parameter(each.name, KEYWORD_ONLY, default=default, annotation=Annotated[kind, told]))
        parameters = [parameter.replace(kind=KEYWORD_ONLY) for parameter in parameters]
        called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return called

    return decorate


@with_options()
def run(
    experiment: Annotated[
        str, typer.Argument(help="A TOML file, or an experiment that ships (see --list).", autocompletion=experiments)
    ] = "",
    out: Annotated[Path | None, typer.Option("--out", help="Directory of the results; out/NAME by default.")] = None,
    listing: Annotated[bool, typer.Option("--list", help="List the experiments that ship, and stop.")] = False,
    dry: Annotated[bool, typer.Option("--cells", help="List the cells with their hashes, and stop.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Continue in a directory that was begun before.")] = False,
    options: RunOptions = NO_OPTIONS,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Run an experiment, from a TOML file or one that ships.

    Its cells are all combinations of a world, an adversary, a learner, a number of episodes and a seed of the file.

    Exit code: 0 if all cells are finished; 1 if some failed, or if code of others ended its process or took too long
    before the first; 2 if the request cannot be met; 130 after Ctrl-C.
    """
    if listing:
        _print_shipped(as_json)
        return
    if not experiment:
        raise typer.BadParameter("name a TOML file, or an experiment that ships (hedgerow run --list)")
    one_thread()
    from hedgerow.experiments.reading import read
    from hedgerow.experiments.source import find

    loaded = read(find(experiment), options.limit)
    if dry:
        _print_cells(loaded, as_json)
        return
    _execute(loaded, out or FOLDER / loaded.name, replace(options, resume=resume), as_json, quiet)


@with_options()
def resume(
    directory: Annotated[Path, typer.Argument(help="Results of an earlier `hedgerow run`.")],
    options: RunOptions = NO_OPTIONS,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Finish what was interrupted: run the cells that are missing.

    Cells that failed are run again; finished ones are kept.
    """
    one_thread()
    from hedgerow.experiments.sweep import stored_experiment

    loaded = stored_experiment(directory, options.limit)
    _execute(loaded, directory, replace(options, resume=True), as_json, quiet)


@with_options("processes")
def demo(
    out: Annotated[Path, typer.Option("--out", help="Directory of the results and the report.")] = FOLDER / "demo",
    options: RunOptions = NO_OPTIONS,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Charge cars at work on 19,440 real days: print who saved how much carbon and at what risk, write a page.

    A second call shows what the first one found; remove the directory to compute it again.
    """
    one_thread()
    from hedgerow.experiments.spec import load

    loaded = load("demo")
    if not quiet:
        Screen(error=True).line(f"{loaded.title}. {loaded.description}")
    _execute(loaded, out, replace(options, resume=True), as_json, quiet, report=True)


def report(
    directory: Annotated[
        str, typer.Argument(metavar="DIRECTORY|URL", help="Results of `hedgerow run`, or the database of a journal.")
    ],
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="The name of the journal.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="The page; inside the directory, or journal.html, by default.")
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option("--figures", help="Also draw every figure into this folder (needs hedgerow[figures])."),
    ] = None,
    formats: Annotated[
        list[str] | None,
        typer.Option(
            "--format", metavar="NAME", help="pdf, svg or png; may be repeated; svg and png by default. With --figures."
        ),
    ] = None,
    width: Annotated[float | None, typer.Option("--width", help="Of the figures, in mm; 84 by default.")] = None,
    height: Annotated[float | None, typer.Option("--height", help="In mm; 0.6 of the width and a legend.")] = None,
    font: Annotated[str | None, typer.Option("--font", help="Of the figures, such as Times.")] = None,
    font_size: Annotated[float | None, typer.Option("--font-size", help="In points as printed; 8 by default.")] = None,
    title: Annotated[bool, typer.Option("--title", help="Print the titles of the figures.")] = False,
    quiet: Quiet = False,
) -> None:
    """Write the page of a directory of results, or of the journal of a live learner (URL NAME).

    It is one HTML file that needs no network. With --figures, the figures are also drawn into files. A journal is only
    read, so that its service may run meanwhile.
    """
    if ("://" in directory) != (name is not None):
        raise typer.BadParameter("a journal has an address and a name: hedgerow report sqlite:///site.db chargers")
    wanted = {"width_mm": width, "height_mm": height, "font": font, "font_size": font_size, "title": title or None}
    given: dict[str, Any] = {name: value for name, value in wanted.items() if value is not None}
    if figures is None and (given or formats):
        raise typer.BadParameter(
            "formats, sizes, fonts and titles are those of the figures: name a folder by --figures"
        )
    if name is not None:
        from hedgerow.serve.page import stored_page
        from hedgerow.storage import atomic

        if figures is not None:
            raise typer.BadParameter("the page of a journal has no figures to be drawn into files")
        page = out or Path("journal.html")
        atomic.save(page, stored_page(directory, name).encode(), overwrite=True)
        if not quiet:
            say(page)
        return
    from hedgerow import results
    from hedgerow.report.page import report

    found = results.open(Path(directory))
    written = [report(found, out)]
    if figures is not None:
        from hedgerow.report.export import write_figures

        written += write_figures(found, figures, formats or ["svg", "png"], **given)
    for path in written if not quiet else []:
        say(path)


# Running --------------------------------------------------------------------------------------------------------------


def _execute(
    experiment: Experiment, target: Path, options: RunOptions, as_json: bool, quiet: bool, report: bool = False
) -> None:
    """Sweep, print what came of it, and end with the code that says so."""
    tally = run_sweep(experiment, target, options, quiet)
    report = report and not tally.interrupted and not tally.failed
    found = open_tally(tally) if report or as_json or not quiet else None
    page = _report(found) if report and found is not None else None
    if as_json:
        print_json(_as_data(experiment, tally, found, page))
    elif not quiet:
        _print_tally(tally, found, page)
    end(tally)


def run_sweep(experiment: Experiment, target: Path, options: RunOptions, quiet: bool, patience: float = 0.0) -> Tally:
    """Run what is missing, with progress; Ctrl-C and a polite request to end leave the books in order.

    `patience` is the least number of seconds between two plain lines.
    """
    from hedgerow.experiments.progress import watcher
    from hedgerow.experiments.sweep import run_experiment

    return run_experiment(experiment, target, options, watcher(quiet, patience))


def end(tally: Tally) -> None:
    """Say what is missing, and end with the code that says so."""
    target = tally.directory
    for name, error in tally.failed.items():
        say(f"hedgerow: the cell {name} failed: {error}", error=True)
        say(f"    repeat it alone: hedgerow resume {target} --backend serial --only {name}", error=True)
    if tally.interrupted:
        left = tally.total - tally.skipped - tally.done
        say(f"hedgerow: interrupted with {left} of {tally.total} cells to do: hedgerow resume {target}", error=True)
        raise typer.Exit(INTERRUPTED)
    if not tally.complete:
        missing = tally.total - tally.skipped - tally.done - len(tally.failed)
        if missing:
            say(f"hedgerow: {missing} of {tally.total} cells were not run: hedgerow resume {target}", error=True)
        raise typer.Exit(FAILED)


def open_tally(tally: Tally) -> Results | None:
    """What the directory holds now, for the table and the page alike."""
    if not tally.done + tally.skipped:
        return None
    from hedgerow import results

    return results.open(tally.directory)


def _report(found: Results) -> Path:
    from hedgerow.report.page import report

    path: Path = report(found)
    return path


# What is printed ------------------------------------------------------------------------------------------------------


def _groups(found: Results | None) -> list[dict[str, Any]]:
    """One entry per learner and setting, seeds together: all numbers of short tables, with the ends of intervals."""
    rows: list[dict[str, Any]] = []
    for group in [] if found is None else found.groups:
        rows.append({"learner": group.learner, **asdict(group.setting), "seeds": len(group.cells)})
        shown = {column.name: number for column, number in group.shown("short").values()}
        for name, number in (shown | {name: group.number(name) for name in ("saved", "over", "left")}).items():
            rows[-1][name] = number.value if number is not None and number.value == number.value else None
            if number is not None and number.low < number.high:
                rows[-1] |= {f"{name}_low": number.low, f"{name}_high": number.high}
    return rows


def _verdicts(found: Results | None) -> list[dict[str, Any]]:
    """What came of each setting, in words, and the numbers of its reference rows."""
    from hedgerow.results.verdict import reference_rows, verdicts

    return [
        {
            **asdict(members[0].setting),
            "verdict": made.text,
            "references": {
                row.kind: {name: number.value for name, number in row.numbers.items()}
                for row in reference_rows(members)
            },
        }
        for members, made in verdicts([] if found is None else found.groups)
    ]


def _as_data(experiment: Experiment, tally: Tally, found: Results | None, page: Path | None) -> dict[str, Any]:
    return {
        "experiment": experiment.name,
        "directory": str(tally.directory),
        "cells": {"total": tally.total, "skipped": tally.skipped, "done": tally.done, "failed": len(tally.failed)},
        "damaged": dict(tally.damaged),
        "failed": tally.failed,
        "interrupted": tally.interrupted,
        "seconds": round(tally.seconds, 3),
        "results": _groups(found),
        "verdicts": _verdicts(found),
        "report": None if page is None else str(page),
    }


def _print_tally(tally: Tally, found: Results | None, page: Path | None) -> None:
    from hedgerow.results.metrics import INTERVALS

    out = Screen()
    if found is not None:
        if page is None:
            out.table(_result_table(found.groups))
        _print_verdicts(out, found, tables=page is not None)
        if any(len(group.cells) > 1 for group in found.groups):
            out.line(INTERVALS)
    told = [f"{tally.done} cells run"] + [f"{tally.skipped} finished before"] * bool(tally.skipped)
    told += [f"{len(tally.failed)} failed"] * bool(tally.failed)
    out.line(f"{', '.join(told)}, {tally.seconds:.1f} s; results in {tally.directory}", wrap=False)
    if page is not None:
        out.line(f"report: {page}", wrap=False)
    elif tally.complete:
        out.line(f"report: hedgerow report {tally.directory}", wrap=False)


def _print_verdicts(out: Screen, found: Results, *, tables: bool) -> None:
    """The verdict of each setting, in sentences; with its table above, where that takes the place of all numbers."""
    from hedgerow.results.verdict import verdicts

    judged = verdicts(found.groups)
    for members, made in judged if tables or len(judged) <= MOST_VERDICTS else ():
        setting = members[0].setting
        where = f"{setting.world}, {setting.adversary}, {members[0].terms.counted(setting.episodes)}"
        if tables:
            out.table(made.table(where))
        out.line(made.text if len(judged) == 1 else f"{where}: {made.text}")
        out.line()


def _result_table(groups: Sequence[Group]) -> Table:
    """Learner by learner; settings are only named where there is more than one of them."""
    from hedgerow.results.groups import heads, table_row

    settings = [asdict(group.setting) for group in groups]
    names = [key for key in settings[0] if len({setting[key] for setting in settings}) > 1]
    common = {**settings[0], "episodes": f"{settings[0]['episodes']:,} episodes"}
    shown = list(heads(groups, "short"))
    title = ", ".join(str(value) for key, value in common.items() if key not in names)
    result = Table(title, ["learner", *names, *shown], num_text=1 + len(names), num_keys=1 + len(names))
    for group, setting in zip(groups, settings, strict=True):
        result.add_row(group.learner, *(str(setting[key]) for key in names), *table_row(group, "short", shown))
    return result


def _print_shipped(as_json: bool) -> None:
    from hedgerow.experiments.source import find, shipped

    entries = []
    for name in shipped():
        data = find(name).data()
        entries.append({"name": name, "title": data.get("title", ""), "description": data.get("description", "")})
    if as_json:
        print_json(entries)
        return
    listed = Table("experiments that ship with hedgerow: hedgerow run NAME", ["name", "what it shows"], num_text=2)
    for entry in entries:
        listed.add_row(entry["name"], entry["description"])
    Screen().table(listed)


def _print_cells(experiment: Experiment, as_json: bool) -> None:
    from hedgerow.experiments.spec import cells_of

    cells = cells_of(experiment)
    if as_json:
        print_json([{"id": cell.id, "hash": cell.hash, "spec": cell.data} for cell in cells])
        return
    for planned in cells:
        say(f"{planned.hash[:12]}  {planned.id}")
