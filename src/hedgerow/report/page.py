"""The page of a sweep, or of a single run: one HTML file that needs nothing else.

    report("out/quickstart")                             # -> out/quickstart/report.html
    report(run, "out.html")

It works offline: styles, script, data and plotly itself are inside, plotly compressed, because phones prefer two
megabytes to five. It follows the reader's choice of a light or a dark page. Its HTML is in `templates`, which escape
whatever is put in. Tables have the columns that are declared for them: a learner that does not have one has a dash, and
a column that no learner of the page has is left out.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined

from hedgerow.display.numbers import PAGE
from hedgerow.display.table import NOTHING, Table, TableCell
from hedgerow.display.terms import Terms
from hedgerow.display.text import Html, counted, formulas, visible
from hedgerow.errors import HedgerowError, InvalidInput
from hedgerow.report.figures import Figure, Styles, figure_makers, run_results
from hedgerow.report.plots import DARK, LineStyle, pens
from hedgerow.results.groups import Cell, Group, Results, Setting, by_setting, heads, table_row
from hedgerow.results.leaderboard import leaderboard
from hedgerow.results.metrics import INTERVALS
from hedgerow.results.store import open as open_results
from hedgerow.results.verdict import SettingVerdict, limit_sentence, verdicts, with_references
from hedgerow.storage import datafile

if TYPE_CHECKING:
    from hedgerow.simulation.result import Run

FILE = "report.html"
FIRST = "saved"
"""The figure that belongs to a verdict."""
MOST_VERDICTS = 4
"""Up to so many settings have a verdict each at the top of a page; more of them have one together."""
LOOP = "compiled, or step-wise through plan and observe; the scores are the same"
GUARANTEES = (
    "What each learner promises under its switches, how surely, and by which statement of the paper. A promise that is "
    "void says why."
)


def report(
    source: Run | Results | str | os.PathLike[str],
    path: str | os.PathLike[str] | None = None,
    *,
    overwrite: bool | None = None,
) -> Path:
    """Write one self-contained HTML page about a run or a sweep.

    The page works offline: styles, script and data are inside.

    Args:
        source: A run; or a sweep, as its directory or as what `hr.results.open` returned.
        path: The file to write. None puts the page of a sweep into its directory as report.html; the page of a run
            needs a path.
        overwrite: Whether an existing file may be replaced; None replaces the older page of a sweep, but not that of a
            run.

    Returns:
        The path of the page.

    Raises:
        InvalidInput: If a run comes without a path, or if a sweep has no finished cell.
        HedgerowError: If plotly is not installed.

    Examples:
        >>> import hedgerow as hr
        >>> import tempfile
        >>> world = hr.worlds.make("lower-bound-2")
        >>> run = hr.simulate(world, hr.UOBREPS(world.view(), 20, 0.05), progress=False)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     print(hr.report(run, f"{folder}/run.html").name)
        run.html
    """
    if isinstance(source, Results | str | os.PathLike):
        results = source if isinstance(source, Results) else open_results(source)
        target = (results.directory or Path()) / FILE if path is None else Path(path)
    else:
        if path is None:
            raise InvalidInput("say where the page of a run is to be written: report(run, 'run.html')")
        results, target = run_results(source), Path(path)
    replace = results.directory is not None if overwrite is None else overwrite
    datafile.save(target, page(results).encode(errors="backslashreplace"), overwrite=replace)
    return target


def page(results: Results) -> str:
    """The whole page as text."""
    found = results.groups
    if not found:
        raise InvalidInput(f"{results.directory} has no finished cell, so there is nothing to report")
    styles, write = pens([(group.learner, group.kind) for group in found]), macros()
    meanings = heads(found, "answer"), {"loop": LOOP, **heads(found, "checks")}
    answer = write.answer(_tables(found, styles, "answer", "Results of the learners"), INTERVALS, meanings[0])
    judged = verdicts(found, PAGE)
    parts = [
        PageSection("verdict", "Verdict", write.verdicts([_verdict(*each, styles) for each in enumerate(judged)])),
        PageSection("answer", "All numbers", answer),
        *(_charts(place, members, styles) for place, (members, _) in enumerate(judged)),
        PageSection("policies", "What the learners ended with", write.folded(list(_policies(found, styles)))),
        PageSection("guarantees", "Guarantees", write.noted(GUARANTEES, write.folded(_ledgers(found, styles)))),
        PageSection(
            "checks", "Checks", write.checks(_tables(found, styles, "checks", "Checks of the learners"), meanings[1])
        ),
        *closing(results, results.manifest),
    ]
    settings = {(group.setting.world, group.setting.adversary) for group in found}
    counts = [counted(len({group.learner for group in found}), "learner"), counted(len(settings), "setting")]
    return document(results, counts, parts, lead=lead_of(results, judged), plotly=packed_plotly())


# The document ---------------------------------------------------------------------------------------------------------


class PageSection(NamedTuple):
    """A section of a page; one without content is left out."""

    anchor: str
    title: str
    content: Any
    """HTML, or an empty text"""


def document(
    results: Results,
    counts: Sequence[str],
    parts: Sequence[PageSection],
    *,
    lead: Sequence[tuple[str, str]],
    plotly: str = "",
) -> str:
    """The whole page; `lead` are verdicts with the names of their settings, `plotly` the packed script of charts."""
    missing = len(results.cells) - len(results.done)
    terms = {Terms.of(cell.facts).episode for cell in results.done}
    lengths, word = {cell.episodes for cell in results.done}, terms.pop() if len(terms) == 1 else "episode"
    each = f"of {counted(lengths.pop(), word)} each" if len(lengths) == 1 else ""
    done = [f"{counted(len(results.done), 'run')} {each}".strip()]
    return (
        environment()
        .get_template("document.html")
        .render(
            title=results.title,
            description=results.description,
            counts=[*counts, *done],
            lead=lead,
            missing=f"{counted(missing, 'cell')} without a result" if missing else "",
            sections=[part for part in parts if part.content.strip()],
            plotly=plotly,
            light="".join(f"--c{colour[1:]}:{colour};" for colour in DARK),
            dark="".join(f"--c{colour[1:]}:{dark};" for colour, dark in DARK.items()),
            dark_colours=DARK,
        )
    )


@cache
def environment() -> Environment:
    """The templates: all that is put in is shown as text unless it is `Html`, and what is undefined is an error."""
    made = Environment(
        loader=PackageLoader("hedgerow.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: value if hasattr(value, "__html__") else visible(value),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {"formulas": formulas, "lines": _lines}
    made.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    return made


def macros() -> Any:
    """The macros of `sections.html`, as functions that return HTML."""
    return environment().get_template("sections.html").module


def _lines(content: str) -> Html:
    """A text of several lines."""
    return Html("\n").join(line.expandtabs() for line in content.split("\n"))


@cache
def packed_plotly() -> str:
    """plotly's own script, compressed, as text."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise HedgerowError("reports need plotly: install it and write the report again") from error
    script: str = get_plotlyjs()
    return base64.b64encode(gzip.compress(script.encode(), 9, mtime=0)).decode()


# Sections -------------------------------------------------------------------------------------------------------------


def lead_of(results: Results, judged: Sequence[tuple[Sequence[Group], SettingVerdict]]) -> list[tuple[str, str]]:
    """What a page begins with: the verdict of each setting under its name or, of many settings, one for all."""
    if len(judged) > MOST_VERDICTS:
        told = [("", leaderboard(results).verdict())]
    else:
        told = [(setting_title(members[0].setting) * (len(judged) > 1), made.text) for members, made in judged]
    return [(title, words.replace(" %", "\N{NO-BREAK SPACE}%")) for title, words in told]


class _VerdictEntry(NamedTuple):
    """What belongs to the verdict of one setting."""

    place: int
    title: str
    limit: str
    table: Html
    note: str
    figure: Figure | None


def _verdict(place: int, judged: tuple[Sequence[Group], SettingVerdict], styles: Styles) -> _VerdictEntry:
    members, made = judged
    title = setting_title(members[0].setting)
    rows = [(chip(name, styles) if name in styles else name, cells) for name, cells in made.rows]
    table = made._replace(rows=tuple(rows)).table(f"Verdict: {title}").to_html("verdict")
    drawn = figure_makers(members, styles).get(FIRST)
    note = INTERVALS if any(len(group.cells) > 1 for group in members) else ""
    return _VerdictEntry(place, title, limit_sentence(members[0], PAGE), table, note, drawn() if drawn else None)


def _charts(place: int, members: Sequence[Group], styles: Styles) -> PageSection:
    """All figures of a setting but the first, which belongs to its verdict."""
    chips, seeds = [chip(group.learner, styles) for group in members], {len(group.cells) for group in members}
    drawn = [make() for name, make in figure_makers(members, styles).items() if name != FIRST]
    content = macros().charts(place, chips, count_range(seeds, "seed"), drawn)
    return PageSection(f"setting-{place}", setting_title(members[0].setting), content)


def setting_title(setting: Setting) -> str:
    return f"{setting.world} · {setting.adversary} · {PAGE.named('T', setting.episodes)}"


def count_range(counts: set[int], what: str) -> str:
    """`3 seeds`, `3 to 5 seeds`."""
    least, most = min(counts), max(counts)
    return counted(most, what) if least == most else f"{least} to {counted(most, what)}"


def chip(learner: str, styles: Styles) -> Html:
    """The name of a learner beside a stroke of its line."""
    stroke = Html('<path d="M1 4H21" style="stroke:var(--c{})"{}/>').format(*_stroke(styles[learner]))
    image = Html('<svg class="pen" viewBox="0 0 22 8" aria-hidden="true">{}</svg>').format(stroke)
    return Html('<span class="chip">{}{}</span>').format(image, learner)


def _stroke(style: LineStyle) -> tuple[str, str]:
    dashes = {"solid": "", "dash": "6 3", "dashdot": "6 2 1 2", "longdash": "9 3", "dot": "1.5 2.5"}[style.dash]
    return style.colour[1:], Html(' stroke-dasharray="{}"').format(dashes) if dashes else ""


def _tables(groups: Sequence[Group], styles: Styles, kind: str, about: str) -> list[tuple[str, Html]]:
    """A table for each setting, of what is declared for this `kind`: one row for each learner."""
    names, made = heads(groups, kind), []
    loop = ["loop"] * (kind == "checks")
    for setting, members in by_setting(groups):
        title = setting_title(setting)
        table = Table(f"{about}: {title}", ["learner", *loop, *names])
        for row in with_references(members) if kind == "answer" else members:
            ways = [", ".join(row.ways)] if loop and isinstance(row, Group) else []
            name = chip(row.learner, styles) if row.learner in styles else row.learner
            table.add_row(name, *ways, *table_row(row, kind, names))
        made.append((title, table.to_html(kind)))
    return made


class _Folded(NamedTuple):
    """Something about a learner that is opened by a click."""

    chip: Html
    summary: str
    table: Html
    void: Sequence[str] = ()
    assumptions: Sequence[str] = ()


def _policies(groups: Sequence[Group], styles: Styles) -> Iterator[_Folded]:
    """What each learner ended with, state by state, in worlds whose states have names; of its first seed."""
    for group in groups:
        kept, setting = group.cells[0].facts.get("policy"), setting_title(group.setting)
        if kept:
            about = f"Probabilities of the actions of {group.learner}, {setting}"
            table = Table(about, ["state", *map(TableCell, kept["actions"])])
            for state, row in zip(kept["states"], kept["probabilities"], strict=True):
                table.add_row(state, *(PAGE.fixed(p, 2) if p > 0.0 else NOTHING for p in row))
            yield _Folded(chip(group.learner, styles), setting, table.to_html("policy"))


def _ledgers(groups: Sequence[Group], styles: Styles) -> list[_Folded]:
    """What each learner promises under its switches; a promise that depends on the setting has a row for each form."""
    by_learner: dict[str, list[Group]] = {}
    for group in groups:
        by_learner.setdefault(group.learner, []).append(group)
    return [_ledger(learner, members, styles) for learner, members in by_learner.items()]


def _ledger(learner: str, members: Sequence[Group], styles: Styles) -> _Folded:
    cells = [cell for group in members for cell in group.cells]
    promises = [promise for cell in cells for promise in cell.facts.get("ledger", [])]
    names = dict.fromkeys(promise["name"] for promise in promises)
    void = list(dict.fromkeys(promise["name"] for promise in promises if promise["void_because"]))
    summary = f"{len(names) - len(void)} of {counted(len(names), 'promise')} hold" if names else "makes no promises"
    table = Table(f"Promises of {learner}", ["promise", "statement", "probability", "source", "status"])
    for promise, places in _promises(members):
        assumed = f" (assumes {promise['assumes']})" if promise.get("assumes") else ""
        statement = TableCell(promise["statement"] + assumed, note=f"({'; '.join(places)})" if places else "")
        probability = f"≥ {PAGE.number(promise['probability'])}"
        table.add_row(promise["name"], statement, probability, promise["source"], _status(promise["void_because"]))
    assumptions = dict.fromkeys(line for cell in cells for line in cell.facts.get("assumptions", []))
    return _Folded(chip(learner, styles), summary, table.to_html("ledger"), void, list(assumptions))


def _promises(members: Sequence[Group]) -> Iterator[tuple[Mapping[str, Any], list[str]]]:
    """Every promise in each of its forms, with the settings of a form where there are several.

    Where the seeds of a group differ (in numbers that they found), the first one speaks.
    """
    forms: dict[str, dict[str, list[str]]] = {}
    for group in members:
        ledgers = [cell.facts.get("ledger", []) for cell in group.cells]
        for place, promise in enumerate(ledgers[0]):
            same = all(other[place : place + 1] == [promise] for other in ledgers)
            seed = "" if same else f", seed {group.cells[0].seed}; other seeds differ"
            sharing = forms.setdefault(promise["name"], {}).setdefault(json.dumps([promise, seed], sort_keys=True), [])
            sharing.append(setting_title(group.setting) + seed)
    for variants in forms.values():
        for content, places in variants.items():
            promise, seed = json.loads(content)
            yield promise, places if len(variants) > 1 or seed else []


def _status(void_because: str) -> TableCell:
    if not void_because:
        return TableCell("holds", tone="good")
    return TableCell(Html('<span class="bad">void</span>: {}').format(void_because))


def closing(results: Results, manifest: Mapping[str, Any]) -> list[PageSection]:
    """What every page ends with: cells without a result, how to repeat it, and where the numbers come from."""
    failed = [cell for cell in results.cells if cell.status != "done"]
    return [
        PageSection("unfinished", "Cells without a result", _failures(failed) if failed else ""),
        PageSection("repeat", "Repeat it", _repeat(manifest)),
        PageSection("origin", "Where the numbers come from", _origin(manifest)),
    ]


def _failures(cells: Sequence[Cell]) -> Html:
    table = Table("Cells without a result", ["cell", "status", "why"])
    for cell in cells:
        table.add_row(Html("<code>{}</code>").format(cell.id), cell.status, cell.error or NOTHING)
    return table.to_html("failures")


def _repeat(manifest: Mapping[str, Any]) -> Any:
    """The command that gives the same tables again."""
    command = manifest.get("command")
    if not command:
        return ""
    line = shlex.join(map(str, command)) if isinstance(command, list | tuple) else str(command)
    version, commit = (manifest.get("versions") or {}).get("hedgerow"), manifest.get("commit")
    release = f"hedgerow {version}" if version else "the same release"
    return macros().repeat(line, f"{release}, commit {commit}" if commit else release)


def _origin(manifest: Mapping[str, Any]) -> Any:
    """Where the numbers come from, and the whole manifest."""
    machine = manifest.get("machine") or {}
    versions = [f"{name} {found}" for name, found in (manifest.get("versions") or {}).items() if found]
    facts = [
        *((name, manifest.get(name)) for name in ("created", "commit", "python")),
        ("versions", ", ".join(versions)),
        *((name, machine.get(name)) for name in ("system", "processor", "cores")),
        ("experiment hash", manifest.get("experiment_hash")),
    ]
    files = [("the experiment file", str(manifest["source"]))] if manifest.get("source") else []
    rest = {key: value for key, value in manifest.items() if key != "source"}
    files.append(("the whole manifest", json.dumps(rest, indent=1, ensure_ascii=False)))
    return macros().origin(facts, files)
