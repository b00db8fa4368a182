"""The page of a sweep, or of a single run: one HTML file that needs nothing else.

    report("out/quickstart")                             # -> out/quickstart/report.html
    report(run, "out.html")

It works offline: styles, script, data and plotly itself are inside, plotly compressed, because phones prefer two
megabytes to five. It follows the reader's choice of a light or a dark page.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hedgerow import files
from hedgerow.brief import counted
from hedgerow.errors import InvalidInput
from hedgerow.html_parts import text
from hedgerow.pages import sections
from hedgerow.pages.check_table import checks
from hedgerow.pages.colours import pens
from hedgerow.pages.document import Part, document, packed_plotly
from hedgerow.pages.figures import figures
from hedgerow.pages.words import whole
from hedgerow.results.groups import Group
from hedgerow.results.record import Cell, Results, heading
from hedgerow.results.store import open as open_results
from hedgerow.results.surroundings import surroundings
from hedgerow.results.tables import run_table, table_header

if TYPE_CHECKING:
    from hedgerow.simulation.outcome import Run

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
        >>> world = hr.catalogue.make("lower-bound-2")
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
    files.save(target, page(results).encode(errors="backslashreplace"), overwrite=replace)
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
    about = {key: value for key, value in surroundings().items() if key != "command"}
    manifest = {**heading(f"{name} on {world}"), **about}
    return Results(None, manifest, (cell,), lambda name: table)


def page(results: Results) -> str:
    """The whole page as text."""
    found = results.groups
    if not found:
        raise InvalidInput(f"{results.directory} has no finished cell, so there is nothing to report")
    drawn = pens([(group.learner, group.kind) for group in found])
    failed = [cell for cell in results.cells if cell.status != "done"]
    parts = [Part("answer", "Answer", sections.answer(found, drawn))]
    for place, (setting, members) in enumerate(sections.by_setting(found)):
        content = sections.charts(members, figures(members, drawn), drawn, place)
        parts.append(Part(f"setting-{place}", sections.setting_title(setting), content))
    parts += [
        Part("policies", "What the learners ended with", sections.policies(found, drawn)),
        Part("guarantees", "Guarantees", _GUARANTEES + sections.ledger(found, drawn)),
        Part("checks", "Checks", checks(found, drawn)),
        Part("unfinished", "Cells without a result", sections.failures(failed) if failed else ""),
        Part("repeat", "Repeat it", sections.repeat(results.manifest)),
        Part("origin", "Where the numbers come from", sections.origin(results.manifest)),
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
