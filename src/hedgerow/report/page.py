"""The page of a sweep, or of a single run: sections, document, file.

Tables have the columns that are declared for them: a learner that does not have one has a dash, and a column that no
learner of the page has is left out.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hedgerow.display.escaping import Html
from hedgerow.display.table import _html
from hedgerow.display.text import counted
from hedgerow.environments.columns import Column
from hedgerow.errors import HedgerowError, InvalidInput
from hedgerow.report.colours import DARK, LineStyle, pens
from hedgerow.report.figures import Figure, figures
from hedgerow.report.sentences import sentence
from hedgerow.report.words import DASH, fixed, number, subscripts, whole
from hedgerow.results.groups import Cell, Group, Results, Setting, heading, heads
from hedgerow.results.manifest import machine_info
from hedgerow.results.metrics import INTERVALS, Estimate, number_cell
from hedgerow.results.store import open as open_results
from hedgerow.results.table import run_table, table_header
from hedgerow.storage import datafile

if TYPE_CHECKING:
    from hedgerow.simulation.result import Run


text = Html.escape
_LOOP = "compiled, or step-wise through plan and observe; the scores are the same"


def checks(groups: Sequence[Group], pens: Mapping[str, LineStyle]) -> str:
    """What is declared for the checks: a table for each setting, and what its columns mean."""
    meanings = heads(groups, "checks")
    parts = []
    for setting, members in by_setting(groups):
        rows = [
            [chip(group.learner, pens), text(", ".join(group.ways)), *_numbers(group, "checks", meanings)]
            for group in members
        ]
        title = setting_title(setting)
        head = ["learner", "loop", *meanings]
        parts.append(f"<h3>{title}</h3>" + table(head, rows, "checks", f"Checks of the learners: {title}"))
    words = " ".join(
        f"{text(name[:1].upper() + name[1:])}: {text(meaning)}."
        for name, meaning in {"loop": _LOOP, **meanings}.items()
    )
    return "".join(parts) + f'<p class="note">{subscripts(words)}</p>'


def _numbers(group: Group, kind: str, names: Iterable[str]) -> Iterator[str]:
    """The cells of a learner under these heads."""
    shown = group.shown(kind)
    for name in names:
        column, found = shown.get(name, (None, None))
        yield DASH if column is None else value(column, found)


def value(column: Column, found: Estimate | None) -> str:
    """A number over seeds as HTML, its interval in small print; whether all seeds are safe in words."""
    cell = number_cell(column, found)
    return str(
        Html("{} <small>{}</small>").format(_html(cell.words), _html(cell.note)) if cell.note else _html(cell.words)
    )


# --------------------------------------------------------------------------------------------------------------------
# The sections of a page as HTML. Everything that comes from a file is escaped here.


# ruff: noqa: RUF001 - Greek letters and a true minus sign are meant


Rows = Iterable[Sequence[str]]


def answer(groups: Sequence[Group], pens: Mapping[str, LineStyle]) -> str:
    """The table that answers first: one row for each learner in each setting."""
    meanings = heads(groups, "answer")
    parts = []
    for setting, members in by_setting(groups):
        rows = [[chip(group.learner, pens), *_numbers(group, "answer", meanings)] for group in members]
        title = setting_title(setting)
        parts.append(
            f"<h3>{title}</h3>" + table(["learner", *meanings], rows, "answer", f"Results of the learners: {title}")
        )
    return "".join(parts) + f'<p class="note">{text(INTERVALS)}</p>' + terms(meanings)


def terms(meanings: Mapping[str, str]) -> str:
    """What the columns of a table mean."""
    items = "".join(
        f"<div><dt>{subscripts(text(name))}</dt><dd>{subscripts(text(words))}</dd></div>"
        for name, words in meanings.items()
    )
    return f'<dl class="terms">{items}</dl>'


def charts(groups: Sequence[Group], drawn: Sequence[Figure], pens: Mapping[str, LineStyle], place: int) -> str:
    """The figures of one setting, under a legend that they share."""
    seeds = sorted({len(group.cells) for group in groups})
    counts = f"{seeds[0]} to {seeds[-1]} seeds" if len(seeds) > 1 else counted(seeds[0], "seed")
    legend = "".join(f"<li>{chip(group.learner, pens)}</li>" for group in groups)
    blocks = []
    for figure in drawn:
        if figure.plot is None:
            body = f'<p class="empty">{text(figure.empty)}</p>'
        else:
            body = _chart(place, figure, sentence(figure, groups)) + _data(place, figure)
        words = subscripts(text(figure.note)) + text(figure.found)
        blocks.append(
            f"<figure><figcaption><h3>{text(figure.title)}</h3><span>{words}</span></figcaption>{body}</figure>"
        )
    return (
        f'<ul class="legend" aria-label="colours">{legend}</ul>'
        f'<p class="note">{counts} per learner.</p><div class="grid">{"".join(blocks)}</div>'
    )


def _chart(place: int, figure: Figure, words: str) -> str:
    """Where the script draws a figure. The words stand for it where nobody sees it, or nothing is drawn."""
    name = f"s{place}-{text(figure.name)}"
    return (
        f'<div class="plot" role="img" aria-label="{text(words)}" data-figure="{name}">'
        f"<noscript>{text(words)}</noscript></div>"
    )


def _data(place: int, figure: Figure) -> str:
    content = json.dumps(figure.plot, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    return f'<script type="application/json" id="s{place}-{text(figure.name)}">{script_safe(content)}</script>'


def policies(groups: Sequence[Group], pens: Mapping[str, LineStyle]) -> str:
    """What each learner ended with, state by state, in worlds whose states have names; of its first seed."""
    parts = []
    for group in groups:
        kept = group.cells[0].facts.get("policy")
        if kept:
            rows = [
                [text(state), *(fixed(p) if p > 0.0 else DASH for p in row)]
                for state, row in zip(kept["states"], kept["probabilities"], strict=True)
            ]
            title = f"{chip(group.learner, pens)} <span>{setting_title(group.setting)}</span>"
            about = f"Probabilities of the actions of {text(group.learner)}, {setting_title(group.setting)}"
            shown = table(["state", *kept["actions"]], rows, "policy", about)
            parts.append(f'<details class="learner"><summary>{title}</summary>{shown}</details>')
    return "".join(parts)


def ledger(groups: Sequence[Group], pens: Mapping[str, LineStyle]) -> str:
    """What each learner promises under its switches; a promise that depends on the setting has a row for each form."""
    by_learner: dict[str, list[Group]] = {}
    for group in groups:
        by_learner.setdefault(group.learner, []).append(group)
    head = ["promise", "statement", "probability", "source", "status"]
    return "".join(
        f'<details class="learner"><summary>{chip(learner, pens)} {_counted(members)}</summary>'
        f"{table(head, _promises(members), 'ledger', f'Promises of {text(learner)}')}{_rests_on(members)}</details>"
        for learner, members in by_learner.items()
    )


def _rests_on(members: Sequence[Group]) -> str:
    """What the learner was told in any of the settings."""
    told = [line for group in members for cell in group.cells for line in cell.facts.get("rests_on", [])]
    return "".join(f"<p>Rests on: {text(line)}.</p>" for line in dict.fromkeys(told))


def _counted(members: Sequence[Group]) -> str:
    """How many promises hold in every setting, and which do not."""
    promises = [promise for group in members for cell in group.cells for promise in cell.facts.get("ledger", [])]
    names = list(dict.fromkeys(promise["name"] for promise in promises))
    void = [name for name in names if any(promise["name"] == name and promise["void_because"] for promise in promises)]
    if not names:
        return "<span>makes no promises</span>"
    words = f"{len(names) - len(void)} of {counted(len(names), 'promise')} hold"
    if not void:
        return f"<span>{words}</span>"
    return f'<span>{words}; <b class="bad">void</b>: {text(", ".join(void))}</span>'


def _promises(members: Sequence[Group]) -> list[list[str]]:
    """The rows of a ledger. Where the seeds of a group differ (in numbers that they found), the first one speaks."""
    forms: dict[str, dict[str, list[str]]] = {}
    for group in members:
        ledgers = [cell.facts.get("ledger", []) for cell in group.cells]
        for place, promise in enumerate(ledgers[0]):
            same = all(other[place : place + 1] == [promise] for other in ledgers)
            seed = "" if same else f", seed {group.cells[0].seed}; other seeds differ"
            sharing = forms.setdefault(promise["name"], {}).setdefault(json.dumps([promise, seed], sort_keys=True), [])
            sharing.append(setting_title(group.setting) + seed)
    rows = []
    for name, variants in forms.items():
        for content, places in variants.items():
            promise, seed = json.loads(content)
            where = f" <small>({'; '.join(places)})</small>" if len(variants) > 1 or seed else ""
            status = _status(promise["void_because"])
            sure = f"≥ {number(promise['probability'])}"
            assumed = f" (assumes {promise['assumes']})" if promise.get("assumes") else ""
            what = text(promise["statement"] + assumed) + where
            rows.append([text(name), what, sure, text(promise["source"]), status])
    return rows


def _status(void_because: str) -> str:
    if not void_because:
        return '<span class="good">holds</span>'
    return f'<span class="bad">void</span>: {text(void_because)}'


def failures(cells: Sequence[Cell]) -> str:
    """Cells that left no table."""
    rows = [[f"<code>{text(cell.id)}</code>", text(cell.status), text(cell.error) or DASH] for cell in cells]
    return table(["cell", "status", "why"], rows, "failures", "Cells without a result")


def origin(manifest: Mapping[str, Any]) -> str:
    """Where the numbers come from, and the whole manifest."""
    machine = manifest.get("machine") or {}
    versions = {name: found for name, found in (manifest.get("versions") or {}).items() if found}
    facts = [
        ("created", manifest.get("created")),
        ("commit", manifest.get("commit")),
        ("python", manifest.get("python")),
        ("versions", ", ".join(f"{name} {found}" for name, found in versions.items())),
        ("system", machine.get("system")),
        ("processor", machine.get("processor")),
        ("cores", machine.get("cores")),
        ("experiment hash", manifest.get("experiment_hash")),
    ]
    items = "".join(f"<div><dt>{text(name)}</dt><dd>{text(found)}</dd></div>" for name, found in facts if found)
    parts = [f'<dl class="terms">{items}</dl>']
    if manifest.get("source"):
        parts.append(_details("the experiment file", str(manifest["source"])))
    everything = {key: value for key, value in manifest.items() if key != "source"}
    parts.append(_details("the whole manifest", json.dumps(everything, indent=1, ensure_ascii=False)))
    return "".join(parts)


def repeat(manifest: Mapping[str, Any]) -> str:
    """The command that gives the same tables again."""
    command = manifest.get("command")
    if not command:
        return ""
    line = shlex.join(map(str, command)) if isinstance(command, list | tuple) else str(command)
    version = (manifest.get("versions") or {}).get("hedgerow")
    commit = manifest.get("commit")
    at = f"hedgerow {version}" if version else "the same release"
    at += f", commit {commit}" if commit else ""
    return (
        f'<pre><code>{text(line)}</code></pre><p class="note">With {text(at)}; into an empty directory. Tables of '
        "equal runs are equal byte for byte; times and machine are in the manifest alone.</p>"
    )


# Parts ----------------------------------------------------------------------------------------------------------------


def by_setting(groups: Sequence[Group]) -> list[tuple[Setting, list[Group]]]:
    """Groups under their setting, in their order."""
    found: dict[Setting, list[Group]] = {}
    for group in groups:
        found.setdefault(group.setting, []).append(group)
    return list(found.items())


def setting_title(setting: Setting) -> str:
    return f"{text(setting.world)} · {text(setting.adversary)} · T = {whole(setting.episodes)}"


def chip(learner: str, pens: Mapping[str, LineStyle]) -> str:
    """The name of a learner beside a stroke of its pen."""
    pen = pens[learner]
    stroke = f'<svg class="pen" viewBox="0 0 22 8" aria-hidden="true"><path d="M1 4H21" {_stroke(pen)}/></svg>'
    return f'<span class="chip">{stroke}{text(learner)}</span>'


def _stroke(pen: LineStyle) -> str:
    dashes = {"solid": "", "dash": "6 3", "dashdot": "6 2 1 2", "longdash": "9 3", "dot": "1.5 2.5"}[pen.dash]
    return f'style="stroke:var(--c{pen.colour[1:]})"' + (f' stroke-dasharray="{dashes}"' if dashes else "")


def table(head: Sequence[str], rows: Rows, kind: str, caption: str, marks: Mapping[int, str] | None = None) -> str:
    """A table whose cells name their column, for narrow screens, where rows become blocks. Cells are HTML already.

    `marks` are classes of rows, by their place. The first cell of a row is its head. The caption is heard, not seen: a
    heading stands above every table. Roles are written out, because some browsers forget them where a table is shown as
    blocks.
    """
    names = [subscripts(text(name)) for name in head]
    top = "".join(f'<th scope="col" role="columnheader">{name}</th>' for name in names)
    kinds = {place: f' class="{mark}"' for place, mark in (marks or {}).items()}
    body = "".join(
        f'<tr role="row"{kinds.get(place, "")}>{"".join(_row(names, row))}</tr>' for place, row in enumerate(rows)
    )
    return (
        f'<div class="scroll"><table class="{kind}" role="table"><caption>{caption}</caption>'
        f'<thead role="rowgroup"><tr role="row">{top}</tr></thead><tbody role="rowgroup">{body}</tbody></table></div>'
    )


def _row(names: Sequence[str], row: Sequence[str]) -> Iterator[str]:
    for place, (name, content) in enumerate(zip(names, row, strict=True)):
        kind = ' class="none"' if content == DASH else ""
        tag, roles = ("td", 'role="cell"') if place else ("th", 'scope="row" role="rowheader"')
        yield f'<{tag} {roles}{kind}><i aria-hidden="true">{name}</i><span>{content}</span></{tag}>'


def script_safe(content: str) -> str:
    """JSON that cannot end the script element that holds it."""
    return content.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _details(title: str, content: str) -> str:
    lines = "\n".join(text(line.expandtabs()) for line in content.split("\n"))
    return f'<details class="file"><summary>{text(title)}</summary><pre><code>{lines}</code></pre></details>'


# --------------------------------------------------------------------------------------------------------------------
# An HTML document that needs nothing else: styles and script inside, contents, landmarks, light and dark.


class PageSection(NamedTuple):
    """A section of the page. Title and content are HTML; a part without content is left out."""

    anchor: str
    title: str
    content: str


def _section(part: PageSection) -> str:
    return f'<section id="{part.anchor}"><h2>{part.title}</h2>{part.content}</section>'


def _contents(parts: Sequence[PageSection]) -> str:
    """Links to the sections; the script folds them up on narrow screens, where they would push the answer down."""
    links = "".join(f'<li><a href="#{part.anchor}">{part.title}</a></li>' for part in parts)
    return f'<nav aria-label="Contents"><details open><summary>Contents</summary><ul>{links}</ul></details></nav>'


def document(title: str, header: str, parts: Sequence[PageSection], *, plotly: str = "") -> str:
    """The whole page: a header, links to the parts, and the parts; `plotly` is its packed script, if charts need it."""
    style = (
        _asset("page.css").replace("/* light */", _variables(light=True)).replace("/* dark */", _variables(light=False))
    )
    script = _asset("page.js").replace("/* dark colours */ {}", json.dumps(DARK))
    body = "".join(map(_section, parts))
    charts = f'<script type="application/gzip" id="plotly">{plotly}</script>\n' if plotly else ""
    return (
        "<!doctype html>\n"
        '<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">'
        f"<title>{text(title)}</title><style>{style}</style></head>\n"
        '<body><a class="skip" href="#content">Skip to the results</a>'
        f'<div class="page">{header}{_contents(parts)}<main id="content" tabindex="-1">{body}</main>'
        "<footer>Written by hedgerow. This file needs no network.</footer></div>\n"
        f"{charts}"
        f"<script>{script}</script></body></html>\n"
    )


def _variables(*, light: bool) -> str:
    """Every colour as a variable, named after its light form."""
    return "".join(f"--c{colour[1:]}:{colour if light else dark};" for colour, dark in DARK.items())


def _asset(name: str) -> str:
    return resources.files("hedgerow.report").joinpath("assets", name).read_text(encoding="utf-8")


@cache
def packed_plotly() -> str:
    """plotly's own script, compressed, as text."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise HedgerowError("reports need plotly: install it and write the report again") from error
    script: str = get_plotlyjs()
    return base64.b64encode(gzip.compress(script.encode(), 9, mtime=0)).decode()


# --------------------------------------------------------------------------------------------------------------------
# The page of a sweep, or of a single run: one HTML file that needs nothing else.
#
#     report("out/quickstart")                             # -> out/quickstart/report.html
#     report(run, "out.html")
#
# It works offline: styles, script, data and plotly itself are inside, plotly compressed, because phones prefer two
# megabytes to five. It follows the reader's choice of a light or a dark page.


FILE = "report.html"


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
        >>> run = hr.simulate(world, None, hr.UOBREPS(world.view(), 20, 0.05), progress=False)
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


def run_results(run: Run, world: str = "", adversary: str = "given losses") -> Results:
    """A single run as if it had been a sweep."""
    learner, layout = run.learner, run.learner.view.layout
    layers = "-".join(str(size) for size in layout.layer_sizes)
    world = world or f"layers {layers}, {counted(layout.num_actions, 'action')}"
    kind = str(getattr(learner, "kind", type(learner).__name__))
    preset = getattr(getattr(learner, "settings", None), "preset", None)
    name = f"{kind} ({preset})" if preset else kind
    spec = {
        "world": {"name": world},
        "adversary": {"name": adversary},
        "learner": {"name": kind, **({"preset": preset} if preset else {})},
        "episodes": int(run.episodes[-1]),
        "delta": getattr(learner, "delta", None),
        "seed": run.seed,
        "label": {"learner": name},
    }
    table = run_table(spec, run)
    cell = Cell.of(table_header(table.schema.metadata, "this run"), {"seconds": {"loop": run.seconds}}, "done")
    about = {key: value for key, value in machine_info().items() if key != "command"}
    manifest = {**heading(f"{name} on {world}"), **about}
    return Results(None, manifest, (cell,), lambda name: table)


def page(results: Results) -> str:
    """The whole page as text."""
    found = results.groups
    if not found:
        raise InvalidInput(f"{results.directory} has no finished cell, so there is nothing to report")
    drawn = pens([(group.learner, group.kind) for group in found])
    failed = [cell for cell in results.cells if cell.status != "done"]
    parts = [PageSection("answer", "Answer", answer(found, drawn))]
    for place, (setting, members) in enumerate(by_setting(found)):
        content = charts(members, figures(members, drawn), drawn, place)
        parts.append(PageSection(f"setting-{place}", setting_title(setting), content))
    parts += [
        PageSection("policies", "What the learners ended with", policies(found, drawn)),
        PageSection("guarantees", "Guarantees", _GUARANTEES + ledger(found, drawn)),
        PageSection("checks", "Checks", checks(found, drawn)),
        PageSection("unfinished", "Cells without a result", failures(failed) if failed else ""),
        PageSection("repeat", "Repeat it", repeat(results.manifest)),
        PageSection("origin", "Where the numbers come from", origin(results.manifest)),
    ]
    shown = [part for part in parts if part.content]
    return document(results.title, _header(results, found), shown, plotly=packed_plotly())


_GUARANTEES = (
    '<p class="note">What each learner promises under its switches, how surely, and by which statement of the paper. '
    "A promise that is void says why.</p>"
)


def _header(results: Results, found: Sequence[Group]) -> str:
    settings = {(group.setting.world, group.setting.adversary) for group in found}
    episodes = sum(cell.episodes for cell in results.done)
    counts = [
        counted(len({group.learner for group in found}), "learner"),
        counted(len(settings), "setting"),
        counted(len(results.done), "run"),
        f"{whole(episodes)} episodes",
    ]
    missing = len(results.cells) - len(results.done)
    if missing:
        counts.append(f'<span class="bad">{counted(missing, "cell")} without a result</span>')
    about = f'<p class="about">{text(results.description)}</p>' if results.description else ""
    return f"<header><h1>{text(results.title)}</h1>{about}<p>{' · '.join(counts)}</p></header>"
