"""The figures of a setting: plain data that plotly draws in the page, in files (`export`) and in notebooks.

A figure is one function, declared by `@figure`, that says all of it: curves, words, and the sentence that stands for it
where it is not seen. Lines are means over seeds, bands their intervals; the bands of margins, which are about safety,
show the range of all seeds. What a plot is made of is in `plots`.

    >>> lowest([("S-OPS", 3.0), ("SV-OPS", 1.0)])
    'the lowest is SV-OPS'
"""

# ruff: noqa: RUF001 - Greek letters and a true minus sign are meant

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hedgerow.checks import FloatArray, did_you_mean
from hedgerow.display.numbers import PAGE
from hedgerow.display.text import counted, visible
from hedgerow.errors import HedgerowError, InvalidInput
from hedgerow.report import plots
from hedgerow.report.plots import LIMIT, LineStyle, Plot, Trace, pens, plot_text, titled, words_only
from hedgerow.report.story import is_exact, story_plot
from hedgerow.results.groups import Cell, Group, Results, Setting, by_setting, heading
from hedgerow.results.manifest import machine_info
from hedgerow.results.metrics import BANDS, REGRET
from hedgerow.results.table import run_table, table_header
from hedgerow.results.verdict import keeps_budget

if TYPE_CHECKING:
    from hedgerow.simulation.result import Run

MOST_NOTES = 6
"""Figures of what learners note of their own, in one setting."""
PANELS = ("reward", "loss", "cost-0", "regret", "violation", "margin-0", "mixing")
"""Of an overview, as far as there are such figures; the first three are of runs in environments."""
MOST_PANELS = 4
OVERVIEW_HEIGHT = 620
PANEL_GAP, PANEL_ROW_GAP = 0.14, 0.18
"""Between the panels of an overview, as shares of its width and of its height."""

Styles = Mapping[str, LineStyle]
Named = Sequence[tuple[str, float]]
"""Learners with a number each"""
number, fixed, whole = PAGE.number, partial(PAGE.fixed, places=2), PAGE.whole


@dataclass(frozen=True)
class Figure:
    """A figure with its words: `plot` is what plotly takes, None where there is nothing to draw."""

    name: str
    """Part of file names"""
    title: str
    note: str
    """What is drawn, below the title; plain text, in which R_t has a lowered t"""
    plot: Plot | None
    sentence: str
    """What it shows, with its numbers, for readers who do not see it; plain text"""
    empty: str = ""
    """What to say instead of an empty plot"""
    found: str = ""
    """What follows the note: numbers beside names of learners, which are left as they are"""


class _Declared(NamedTuple):
    name: str
    make: Callable[..., Figure]
    each: Callable[[Sequence[Group]], Sequence[Any]] | None
    exact: bool


_DECLARED: list[_Declared] = []


def figure(
    name: str, *, each: Callable[[Sequence[Group]], Sequence[Any]] | None = None, exact: bool = True
) -> Callable[[Callable[..., Figure]], Callable[..., Figure]]:
    """Declare a figure: a function (name, groups of a setting, styles of learners) that makes it.

    With `each`, such as the constraints, there is one of these figures for every item, which {} stands for in the name;
    the function takes it as well. An `exact` one needs scores, which there are where the truth is known.
    """

    def declare(make: Callable[..., Figure]) -> Callable[..., Figure]:
        _DECLARED.append(_Declared(name, make, each, exact))
        return make

    return declare


def figure_makers(groups: Sequence[Group], styles: Styles | None = None) -> dict[str, Callable[[], Figure]]:
    """By name: what makes the figure. The growth of regret takes a bootstrap, so only those that are asked for."""
    styles = styles or pens([(group.learner, group.kind) for group in groups])
    known = all(group.scored == "exact" for group in groups)
    makers: dict[str, Callable[[], Figure]] = {}
    for declared in _DECLARED:
        if known or not declared.exact:
            for given in [()] if declared.each is None else [(item,) for item in declared.each(groups)]:
                name = declared.name.format(*given)
                makers[name] = partial(declared.make, name, groups, styles, *given)
    return makers


def figures(groups: Sequence[Group], styles: Styles) -> list[Figure]:
    """All figures of one setting."""
    return [make() for make in figure_makers(groups, styles).values()]


def _curves(
    groups: Sequence[Group], styles: Styles, of: Callable[[Group], FloatArray | None], **options: Any
) -> list[Trace]:
    """A line and a band for each learner that has the curve, where all seeds have a number."""
    traces = []
    for group in groups:
        values = of(group)
        if values is not None:
            t, shown = plots.thin(group.episodes, values)
            known = np.all(np.isfinite(shown), axis=0)
            if np.any(known):
                traces += plots.curve(group.learner, styles[group.learner], t[known], shown[:, known], **options)
    return traces


# The figures ----------------------------------------------------------------------------------------------------------


@figure("saved")
def _saved(name: str, groups: Sequence[Group], styles: Styles) -> Figure:
    terms, loss = groups[0].terms, groups[0].terms.loss
    found = [(group.learner, saved.value) for group in groups if (saved := group.number("saved")) is not None]
    over = [f"{visible(group.learner)} {whole(round(group['over'].value))}" for group in groups]
    exact = all(map(is_exact, groups))
    marks = f"a red mark for every {terms.episode} over the limit" if exact else (
        f"in red the share of {terms.episode}s over the limit between two checkpoints"
    )  # fmt: skip
    seeds = "" if all(len(group.cells) == 1 for group in groups) else ", of the first seed"
    grey = "; grey where the limit is a budget, and it was kept" * any(map(keeps_budget, groups))
    below = f" Below: {marks}{grey}{seeds}." if groups[0].constraints else ""
    return Figure(
        name,
        f"{loss[:1].upper()}{loss[1:]} saved, {terms.episode} by {terms.episode}",
        f"Saved so far, compared with always playing {terms.baseline} (0 %).{below}",
        story_plot(groups, styles),
        f"Share of the {loss} saved after {_episodes(groups)}: "
        f"{', '.join(f'{visible(learner)} {PAGE.percent(share, 1)}' for learner, share in found)}; "
        f"{terms.episode}s over the limit: {', '.join(over)}.",
        "There is no baseline to save from.",
    )


def _per_episode(group: Group, summed: FloatArray) -> FloatArray:
    """(seeds, C): the means of the episodes between two checkpoints, of sums (seeds, C) at the checkpoints."""
    means: FloatArray = np.diff(summed, axis=1, prepend=0.0) / np.diff(group.episodes, prepend=0)
    return means


def _column(group: Group, name: str) -> FloatArray:
    """A column (seeds, C) that only runs in environments have: NaN where a group lacks it."""
    found = group.noted(name)
    return np.full((len(group.tables), len(group.episodes)), np.nan) if found is None else found


def _gains(groups: Sequence[Group]) -> Sequence[str]:
    """What was observed: rewards where the environment has them, else losses; nothing in a CMDP."""
    return [kind for kind in ("reward", "loss") if all(group.has(f"observed_{kind}") for group in groups)][:1]


@figure("{}", each=_gains, exact=False)
def _gain(name: str, groups: Sequence[Group], styles: Styles, kind: str) -> Figure:
    def means(group: Group) -> FloatArray:
        return _per_episode(group, _column(group, f"observed_{kind}"))

    traces = _curves(groups, styles, means)
    ends = [(group.learner, float(np.mean(means(group)[:, -1]))) for group in groups]
    return Figure(
        name,
        kind.capitalize(),
        f"Mean {kind} of the episodes between two checkpoints, as observed. {BANDS}",
        plots.plot(traces, "episodes t", f"{kind} per episode"),
        f"Mean observed {kind} of the last episodes: {_list(ends)}.",
    )


@figure("cost-{}", each=lambda groups: range(len(groups[0].constraints)) if _gains(groups) else (), exact=False)
def _cost(name: str, groups: Sequence[Group], styles: Styles, i: int) -> Figure:
    exact = all(group.scored == "exact" for group in groups)

    def means(group: Group) -> FloatArray:
        return _per_episode(group, _column(group, f"cost_{i}" if exact else f"observed_cost_{i}"))

    constraint, threshold = groups[0].constraints[i], groups[0].thresholds[i]
    plot = plots.plot(_curves(groups, styles, means, least=0.0), "episodes t", f"cost per episode: {constraint}")
    plot["layout"]["shapes"] = [plots.level(threshold)]
    plot["layout"]["yaxis"]["rangemode"] = "tozero"
    ends = [(group.learner, float(np.mean(means(group)[:, -1]))) for group in groups]
    what = "expected, by the table of the environment" if exact else "as observed"
    return Figure(
        name,
        f"Cost: {constraint}",
        f"Mean cost of the episodes between two checkpoints, {what}. Red line: the threshold {number(threshold)}. "
        f"{BANDS}",
        plot,
        f"Mean cost of {visible(constraint)} in the last episodes, {what}: {_list(ends)}; the threshold is "
        f"{number(threshold)}.",
    )


@figure("regret")
def _regret(name: str, groups: Sequence[Group], styles: Styles) -> Figure:
    traces = _curves(groups, styles, lambda group: group.curve(REGRET))
    ends = [(group.learner, float(np.mean(group.curve(REGRET)[:, -1]))) for group in groups]
    return Figure(
        name,
        "Regret",
        f"R_t after t episodes, against the best policy for the losses of these t episodes. {BANDS}",
        plots.plot(traces, "episodes t", "regret R_t") if traces else None,
        f"Regret after {_episodes(groups)}: {_list(ends)}{_lowest_of(ends)}.",
        "No policy respects the constraints of this world, so there is no optimum to compare with.",
    )


@figure("regret-growth")
def _growth(name: str, groups: Sequence[Group], styles: Styles) -> Figure:
    traces, fits, found = [], [], []
    for group in groups:
        t, values = plots.thin(group.episodes, group.curve(REGRET))
        mean, growth = np.mean(values, axis=0), group.growth
        if not np.any(mean > 0.0):
            continue
        floor = 0.3 * float(np.min(mean[mean > 0.0]))
        traces += plots.curve(group.learner, styles[group.learner], t, values, floor=floor)
        if np.isfinite(growth.exponent):
            late = t[t >= growth.first].astype(np.float64)
            fits.append(plots.fit_line(group.learner, late, growth.factor * late**growth.exponent))
            around = PAGE.interval(growth.low, growth.high, fixed)
            found.append(f"{group.learner}: {fixed(growth.exponent)} {around}".rstrip())
    exponents = "; ".join(found) or "none, the regret is not positive over the last decade"
    return Figure(
        name,
        "Regret, both axes logarithmic",
        f"{BANDS} Dotted: c·t^b, fitted to the line over the last decade of episodes. Exponents b with 95 % bootstrap "
        "intervals over seeds: ",
        plots.plot([*traces, *fits], "episodes t", "regret R_t", log_x=True, log_y=True) if traces else None,
        f"Regret on two logarithmic axes: {_exponents(groups)}.",
        "No learner has a positive regret.",
        f"{exponents}.",
    )


def _exponents(groups: Sequence[Group]) -> str:
    fitted, without = [], []
    for group in groups:
        growth, learner = group.growth, visible(group.learner)
        if isfinite(growth.exponent):
            ends = f" ({fixed(growth.low)} to {fixed(growth.high)})" if isfinite(growth.low) else ""
            fitted.append(f"{learner} {fixed(growth.exponent)}{ends}")
        else:
            without.append(learner)
    exponents = f"fitted exponents over the last decade of episodes are {', '.join(fitted)}" if fitted else ""
    none = f"no exponent can be fitted for {_joined(without)}" if without else ""
    return "; ".join(filter(None, (exponents, none)))


@figure("violation")
def _violation(name: str, groups: Sequence[Group], styles: Styles) -> Figure:
    traces = _curves(groups, styles, Group.violation, least=0.0)
    violated = any(np.any(group.violation() > 0.0) for group in groups)
    ends = [(group.learner, float(np.mean(group.violation()[:, -1]))) for group in groups]
    return Figure(
        name,
        "Violation",
        "V_t = max_i Σ [g_i·q − α_i]⁺: what the episodes so far exceed the threshold of the worst one by, summed. "
        f"{BANDS}",
        plots.plot(traces, "episodes t", "violation V_t") if violated else None,
        f"Violation after {_episodes(groups)}: {_list(ends)}{_lowest_of(ends)}.",
        "No learner exceeded a threshold in any episode." if groups[0].constraints else "There are no constraints.",
    )


@figure("margin-{}", each=lambda groups: range(len(groups[0].constraints)))
def _margin(name: str, groups: Sequence[Group], styles: Styles, i: int) -> Figure:
    traces, least, most = [], 0.0, 0.0
    for group in groups:
        t, values = plots.thin(group.episodes, group.margin(i))
        least, most = min(least, float(np.min(values))), max(most, float(np.max(values)))
        ends = np.min(values, axis=0), np.max(values, axis=0)
        traces += plots.curve(group.learner, styles[group.learner], t, values, ends=ends)
    room = 0.14 * max(most - least, 1e-9)  # below all curves: where the label of the shaded region stands
    constraint, threshold = groups[0].constraints[i], number(groups[0].thresholds[i])
    plot = plots.plot(traces, "episode t", "margin", log_x=True)
    layout = plot["layout"]
    layout["yaxis"]["range"] = [plots.short(least - room), plots.short(most + 0.5 * room)]
    layout["yaxis"] |= {"zeroline": True, "zerolinecolor": LIMIT, "zerolinewidth": 2}
    layout["shapes"] = [plots.forbidden(least - room)]
    layout["annotations"] = [plots.corner_label(f"below the line: over the threshold of {threshold}")]
    return Figure(
        name,
        f"Margin: {constraint}",
        f"Threshold {threshold} minus the expected cost of episode t; below 0 (shaded) the episode is unsafe. "
        "Line: mean over seeds; band: from the least to the largest of all seeds.",
        plot,
        margin_sentence(constraint, threshold, [(g.learner, -float(np.max(g.curve(f"worst_{i}")))) for g in groups]),
    )


def margin_sentence(constraint: str, threshold: str, found: Named) -> str:
    """The least margins, and who keeps to the threshold; nothing is claimed of a margin that is unknown."""
    over = [visible(learner) for learner, margin in found if margin < 0.0]
    kept = [visible(learner) for learner, margin in found if margin >= 0.0]
    said = [
        f"Least margin to the threshold {threshold} of {visible(constraint)} in any episode and seed: {_list(found)}"
    ]
    if kept:
        said.append(f"{_joined(kept)} {'keeps' if len(kept) == 1 else 'keep'} to the threshold")
    if over:
        said.append(f"{_joined(over)} {'exceeds' if len(over) == 1 else 'exceed'} it in some episode")
    return "; ".join(said) + "."


@figure("mixing", exact=False)
def _mixing(name: str, groups: Sequence[Group], styles: Styles) -> Figure:
    def weights(group: Group) -> FloatArray | None:
        found = group.noted("mixing_weight")
        return found if found is not None and np.any(found > 0.0) else None

    traces = _curves(groups, styles, weights, least=0.0)
    plot = plots.plot(traces, "episode t", "mixing weight λ_t", log_x=True)
    plot["layout"]["yaxis"]["range"] = [-0.03, 1.03]
    return Figure(
        name,
        "Mixing weight",
        "λ_t: the probability with which episode t is left to the safe baseline. Learners without one are not shown. "
        f"{BANDS}",
        plot if traces else None,
        f"Probability of leaving an episode to the safe baseline: {_courses(groups, weights)}.",
        "No learner here mixes with a safe baseline.",
    )


def _noted_by(groups: Sequence[Group]) -> list[str]:
    """What the learners of a setting noted of their own, at most MOST_NOTES names."""
    return list(dict.fromkeys(name for group in groups for name in group.notes))[:MOST_NOTES]


@figure("note-{}", each=_noted_by, exact=False)
def _note(name: str, groups: Sequence[Group], styles: Styles, column: str) -> Figure:
    traces = _curves(groups, styles, lambda group: group.noted(column))
    return Figure(
        name,
        f"Note: {column}",
        f"What the learners note under this name in episode t. {BANDS}",
        plots.plot(traces, "episode t", column, log_x=True) if traces else None,
        f"{visible(column)}, as the learners note it: {_courses(groups, lambda group: group.noted(column))}.",
        "Nothing was noted at these checkpoints.",
    )


# Parts of a sentence --------------------------------------------------------------------------------------------------


def lowest(found: Named) -> str:
    """Who has the least of these numbers; all of them, where some are equal."""
    least = min(value for _, value in found)
    names = [visible(name) for name, value in found if value == least]
    return f"the lowest {'is' if len(names) == 1 else 'are'} {_joined(names)}"


def _lowest_of(found: Named) -> str:
    """`; the lowest is ...` where there is a choice."""
    known = [(name, value) for name, value in found if isfinite(value)]
    return f"; {lowest(known)}" if len(known) > 1 and len({value for _, value in known}) > 1 else ""


def _list(found: Named) -> str:
    return ", ".join(f"{visible(name)} {number(value) if isfinite(value) else 'unknown'}" for name, value in found)


def _courses(groups: Sequence[Group], of: Callable[[Group], FloatArray | None]) -> str:
    """From where to where a curve of each learner goes, between the first and the last checkpoint with a number."""
    said = []
    for group in groups:
        values = of(group)
        known = [] if values is None else np.flatnonzero(np.all(np.isfinite(values), axis=0)).tolist()
        if values is not None and known:
            ends = [known[0], known[-1]]
            (first, last), (start, end) = group.episodes[ends], np.mean(values[:, ends], axis=0)
            begin = f"{number(float(start))} in episode {whole(first)}"
            course = begin if first == last else f"from {begin} to {number(float(end))} in episode {whole(last)}"
            said.append(f"{visible(group.learner)} {course}")
    return ", ".join(said)


def _joined(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`"""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _episodes(groups: Sequence[Group]) -> str:
    return groups[0].terms.counted(int(groups[0].episodes[-1]))


# What is drawn --------------------------------------------------------------------------------------------------------


def run_results(run: Run, world: str = "", adversary: str = "given losses", name: str = "") -> Results:
    """A single run as if it had been a sweep; `name` is what its learner is called."""
    learner, layout = run.learner, run.learner.view.layout
    layers = "-".join(str(size) for size in layout.layer_sizes)
    world = world or f"layers {layers}, {counted(layout.num_actions, 'action')}"
    kind = str(getattr(learner, "kind", run.learner_name))
    preset = getattr(getattr(learner, "settings", None), "preset", None)
    name = name or (f"{kind} ({preset})" if preset else kind)
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


def runs_results(runs: Mapping[str, Run], world: str) -> Results:
    """Runs of several learners in one world, by the names of the learners, as if they had been a sweep.

    The name may be empty, which stands for the learner's kind and preset.
    """
    found = [run_results(run, world, run.adversary or "its own rewards", name) for name, run in runs.items()]
    cells = tuple(cell for each in found for cell in each.cells)
    tables = {cell.id: each.load(cell.id) for each in found for cell in each.cells}
    return Results(None, {**found[0].manifest, **heading(world)}, cells, tables.__getitem__)


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
    makers = figure_makers(members)
    if what is None:
        noted = [name for name in makers if name.startswith("note-") and "regret" not in makers]
        drawn = [makers[name]() for name in (*PANELS, *noted) if name in makers]
        panels = [each for each in drawn if each.plot is not None][:MOST_PANELS]
        if not panels:
            raise InvalidInput(f"there is nothing to draw of {about}: {_others(makers)}")
        return _as_figure(_overview(panels, about))
    name = _figure_name(what, makers, members[0].constraints)
    made = makers[name]()
    return _as_figure(titled(made.plot or words_only(made.empty), made.title, about))


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


def _figure_name(what: str, makers: dict[str, Any], constraints: Sequence[str]) -> str:
    """The name of the figure that is meant: by its name, by that of a constraint or of a note."""
    if not isinstance(what, str):
        raise InvalidInput(f"a figure is named by a text, not by {what!r}; {_others(makers)}")
    if what in makers:
        return what
    meant = {"margin": "margin-0", "cost": "cost-0", "observed_reward": "reward", "observed_loss": "loss"}
    for i, name in enumerate(constraints):
        meant |= {name: f"margin-{i}" if f"margin-{i}" in makers else f"cost-{i}", f"observed_cost_{i}": f"cost-{i}"}
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
    for place, panel in enumerate(panels):
        plot = copy.deepcopy(panel.plot) or {}
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
        if panel.name.startswith("margin-"):  # which of the constraints; the others are named by their axes
            layout[f"yaxis{end}"]["title"]["text"] = plot_text(panel.title.replace("Margin", "margin", 1))
        elif max(map(abs, plots.numbers(plot["data"], "y"))) >= 10_000.0:
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
