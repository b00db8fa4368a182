"""`run.plot()` and `results.plot()`: one figure of the page, or an overview, as a figure of plotly."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from hedgerow.checks import did_you_mean
from hedgerow.errors import HedgerowError, InvalidInput
from hedgerow.report import figures as shown
from hedgerow.report.colours import pens
from hedgerow.report.figures import Figure
from hedgerow.report.page import by_setting, run_results
from hedgerow.report.plots import Plot, numbers, titled, words_only
from hedgerow.report.words import plot_text
from hedgerow.results.groups import Group, Results, Setting

if TYPE_CHECKING:
    from hedgerow.simulation.result import Run

PANELS = ("regret", "violation", "margin-0", "mixing")
"""Of an overview; where nobody knows the truth, it has what was observed instead."""
MOST_PANELS = 4
OVERVIEW_HEIGHT = 620
PANEL_GAP, PANEL_ROW_GAP = 0.14, 0.18
"""Between the panels of an overview, as shares of its width and of its height."""


def run_plot(run: Run, what: str | None = None) -> Any:
    """One figure of a run, or an overview; `Run.plot` says more."""
    return results_plot(run_results(run), what)


def results_plot(
    results: Results,
    what: str | None = None,
    *,
    world: str | None = None,
    adversary: str | None = None,
    episodes: int | None = None,
) -> Any:
    """One figure of a setting, or an overview; `Results.plot` says more."""
    setting, members = _chosen(results, world, adversary, episodes)
    about = f"{setting.world}, {setting.adversary}, {setting.episodes:,} episodes"
    makers = _makers(members)
    if what is None:
        wanted = PANELS if "regret" in makers else [name for name in makers if name.startswith("note-")]
        made = [makers[name]() for name in wanted if name in makers]
        panels = [figure for figure in made if figure.plot is not None][:MOST_PANELS]
        if not panels:
            raise InvalidInput(f"there is nothing to draw of {about}: {_others(makers)}")
        return _as_figure(_overview(panels, about))
    name = _figure_name(what, makers, members[0].constraints)
    figure = makers[name]()
    return _as_figure(titled(figure.plot or words_only(figure.empty), figure.title, about))


def _chosen(
    results: Results, world: str | None, adversary: str | None, episodes: int | None
) -> tuple[Setting, list[Group]]:
    """The one setting that was asked for, with its learners."""
    settings = by_setting(results.groups)
    if not settings:
        raise InvalidInput(f"{results.directory} has no finished cell, so there is nothing to plot")
    asked = {"world": world, "adversary": adversary, "episodes": episodes}
    for name, value in asked.items():
        known = sorted({getattr(setting, name) for setting, _ in settings})
        if value is not None and value not in known:
            hint = did_you_mean(value, known) if isinstance(value, str) and name != "episodes" else ""
            raise InvalidInput(f"there is no {name} {value!r} in these results{hint or '; known: ' + _listed(known)}")
    fitting = [
        (setting, members)
        for setting, members in settings
        if all(value is None or getattr(setting, name) == value for name, value in asked.items())
    ]
    if not fitting:
        raise InvalidInput(f"no setting of these results has all of {_arguments(asked)}; {_choices(settings)}")
    if len(fitting) > 1:
        raise InvalidInput(f"these results have {len(fitting)} settings that fit: say which; {_choices(fitting)}")
    setting, members = fitting[0]
    return setting, list(members)


def _choices(settings: Sequence[tuple[Setting, Sequence[Group]]]) -> str:
    told = [
        _arguments({name: getattr(each, name) for name in ("world", "adversary", "episodes")}) for each, _ in settings
    ]
    more = f", and {len(told) - 6} more" if len(told) > 6 else ""
    return "choose " + " or ".join(f"({words})" for words in told[:6]) + more


def _arguments(values: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in values.items() if value is not None)


def _listed(values: Sequence[Any]) -> str:
    return ", ".join(map(repr, values))


def _makers(groups: Sequence[Group]) -> dict[str, Callable[[], Figure]]:
    """By name: what makes the figure. The growth of regret takes a bootstrap, so only those that are asked for."""
    drawn = pens([(group.learner, group.kind) for group in groups])
    known = all(group.scored == "exact" for group in groups)
    makers: dict[str, Callable[[], Figure]] = {}
    if known:
        makers["regret"] = lambda: shown.regret_figure(groups, drawn)
        makers["regret-growth"] = lambda: shown.growth_figure(groups, drawn)
        makers["violation"] = lambda: shown.violation_figure(groups, drawn)
        for i in range(len(groups[0].constraints)):
            makers[f"margin-{i}"] = lambda i=i: shown.margin_figure(groups, drawn, i)  # type: ignore[misc]
    makers["mixing"] = lambda: shown.mixing_figure(groups, drawn)
    for name in shown.noted_by(groups):
        makers[f"note-{name}"] = lambda name=name: shown.note_figure(groups, drawn, name)  # type: ignore[misc]
    return makers


def _figure_name(what: str, makers: dict[str, Any], constraints: Sequence[str]) -> str:
    """The name of the figure that is meant: by its name, by that of a constraint or of a note."""
    if not isinstance(what, str):
        raise InvalidInput(f"a figure is named by a text, not by {what!r}; {_others(makers)}")
    if what in makers:
        return what
    meant = {"margin": "margin-0"}
    meant |= {name: f"margin-{i}" for i, name in enumerate(constraints)}
    meant |= {name.removeprefix("note-"): name for name in makers if name.startswith("note-")}
    if meant.get(what) in makers:
        return meant[what]
    known = [*makers, *(name for name, target in meant.items() if target in makers)]
    raise InvalidInput(f"there is no figure {what!r}{did_you_mean(what, known)}")


def _others(makers: dict[str, Any]) -> str:
    return f"there are {', '.join(makers)}"


# The overview ---------------------------------------------------------------------------------------------------------


def _overview(panels: Sequence[Figure], about: str) -> Plot:
    """Panels in two columns, each with axes of its own, and one legend for all."""
    columns, rows = min(2, len(panels)), (len(panels) + 1) // 2
    traces: list[dict[str, Any]] = []
    layout: dict[str, Any] = {"shapes": [], "legend": {"tracegroupgap": 0}}
    named: set[str] = set()
    for place, figure in enumerate(panels):
        plot = copy.deepcopy(figure.plot) or {}
        end = str(place + 1) if place else ""
        common = {key: value for key, value in plot["layout"].items() if key not in _OF_A_PANEL}
        layout = {**common, **layout}
        for trace in plot["data"]:
            in_legend = trace.get("showlegend", True) and trace["name"] not in named
            named |= {trace["name"]} if in_legend else set()
            group = trace.get("legendgroup") or trace.get("name") or _line_of(trace, plot["data"])
            traces.append(
                {**trace, "xaxis": f"x{end}", "yaxis": f"y{end}", "legendgroup": group, "showlegend": in_legend}
            )
        across, down = _domain(place % 2, columns, PANEL_GAP), _domain(rows - 1 - place // 2, rows, PANEL_ROW_GAP)
        layout[f"xaxis{end}"] = {**plot["layout"]["xaxis"], "domain": across, "anchor": f"y{end}"}
        layout[f"yaxis{end}"] = {**plot["layout"]["yaxis"], "domain": down, "anchor": f"x{end}"}
        for shape in plot["layout"].get("shapes", []):
            layout["shapes"].append({**shape, "xref": f"x{end} domain", "yref": f"y{end}"})
        if figure.name.startswith("margin-"):  # which of the constraints; the others are named by their axes
            layout[f"yaxis{end}"]["title"]["text"] = plot_text(figure.title.replace("Margin", "margin", 1))
        elif max(map(abs, numbers(plot["data"], "y"))) >= 10_000.0:
            layout[f"yaxis{end}"]["tickformat"] = "~s"  # 20k: there is little room between panels
    return titled({"data": traces, "layout": {**layout, "height": OVERVIEW_HEIGHT}}, "Overview", about)


_OF_A_PANEL = {"xaxis", "yaxis", "shapes", "annotations"}


def _line_of(band: dict[str, Any], traces: Sequence[dict[str, Any]]) -> str:
    """The name of the line that a band belongs to: the one that follows it."""
    following = [trace.get("name") for trace in traces[traces.index(band) :]]
    return str(next(name for name in following if name))


def _domain(place: int, count: int, gap: float) -> list[float]:
    """From where to where the panel stands among `count` of them, from 0 to 1."""
    size = (1.0 - gap * (count - 1)) / count
    return [round(place * (size + gap), 4), round(place * (size + gap) + size, 4)]


def _as_figure(plot: Plot) -> Any:
    try:
        from plotly.graph_objects import Figure as PlotlyFigure
    except ImportError as error:
        raise HedgerowError("plots need plotly: install it and call plot() again") from error
    return PlotlyFigure(plot)
