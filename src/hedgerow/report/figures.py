"""The figures of a setting, as plain data that plotly draws: in the page and, by `export`, in files.

Lines are means over seeds, bands their intervals; only margins, which are about safety, show the whole range. What a
plot is made of is in `plots`.
"""

# ruff: noqa: RUF001 - Greek letters and a true minus sign are meant

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hedgerow.report import plots
from hedgerow.report.colours import LIMIT, LineStyle
from hedgerow.report.words import fixed, interval, number
from hedgerow.results.groups import Group
from hedgerow.results.metrics import BANDS, REGRET

MOST_NOTES = 6
"""Figures of what learners note of their own, in one setting."""
Pens = dict[str, LineStyle]


@dataclass(frozen=True)
class Figure:
    """A figure with its words: `plot` is what plotly takes, None where there is nothing to draw."""

    name: str
    """Part of file names"""
    title: str
    note: str
    """What is drawn, below the title; plain text, in which R_t has a lowered t"""
    plot: dict[str, Any] | None
    empty: str = ""
    """What to say instead of an empty plot"""
    found: str = ""
    """What follows the note: numbers beside names of learners, which are left as they are"""


def figures(groups: Sequence[Group], pens: Pens) -> list[Figure]:
    """All figures of one setting."""
    return [
        regret_figure(groups, pens),
        growth_figure(groups, pens),
        violation_figure(groups, pens),
        *[margin_figure(groups, pens, i) for i in range(len(groups[0].constraints))],
        mixing_figure(groups, pens),
        *[note_figure(groups, pens, name) for name in noted_by(groups)],
    ]


def regret_figure(groups: Sequence[Group], pens: Pens) -> Figure:
    traces = []
    for group in groups:
        t, values = plots.thin(group.episodes, group.curve(REGRET))
        traces += plots.curve(group.learner, pens[group.learner], t, values)
    return Figure(
        "regret",
        "Regret",
        f"R_t after t episodes, against the best policy for the losses of these t episodes. {BANDS}",
        plots.plot(traces, "episodes t", "regret R_t") if plots.numbers(traces, "y") else None,
        "No policy respects the constraints of this world, so there is no optimum to compare with.",
    )


def growth_figure(groups: Sequence[Group], pens: Pens) -> Figure:
    traces, fits, found = [], [], []
    for group in groups:
        t, values = plots.thin(group.episodes, group.curve(REGRET))
        mean = np.mean(values, axis=0)
        if not np.any(mean > 0.0):
            continue
        pen, growth = pens[group.learner], group.growth
        traces += plots.curve(group.learner, pen, t, values, floor=0.3 * float(np.min(mean[mean > 0.0])))
        if np.isfinite(growth.exponent):
            late = t[t >= growth.first].astype(np.float64)
            fits.append(plots.fit_line(group.learner, late, growth.factor * late**growth.exponent))
            ends = interval(growth.low, growth.high)
            found.append(f"{group.learner}: {fixed(growth.exponent)}{' ' + ends if ends else ''}")
    exponents = "; ".join(found) or "none, the regret is not positive over the last decade"
    return Figure(
        "regret-growth",
        "Regret, both axes logarithmic",
        f"{BANDS} Dotted: c·t^b, fitted to the line over the last decade of episodes. Exponents b with 95 % bootstrap "
        "intervals over seeds: ",
        plots.plot([*traces, *fits], "episodes t", "regret R_t", log_x=True, log_y=True) if traces else None,
        "No learner has a positive regret.",
        f"{exponents}.",
    )


def violation_figure(groups: Sequence[Group], pens: Pens) -> Figure:
    traces = []
    for group in groups:
        t, values = plots.thin(group.episodes, group.violation())
        traces += plots.curve(group.learner, pens[group.learner], t, values, least=0.0)
    violated = any(np.any(group.violation() > 0.0) for group in groups)
    return Figure(
        "violation",
        "Violation",
        "V_t = max_i Σ [g_i·q − α_i]⁺: what the episodes so far exceed the threshold of the worst one by, summed. "
        f"{BANDS}",
        plots.plot(traces, "episodes t", "violation V_t") if violated else None,
        "No learner exceeded a threshold in any episode." if groups[0].constraints else "There are no constraints.",
    )


def margin_figure(groups: Sequence[Group], pens: Pens, i: int) -> Figure:
    traces, least, most = [], 0.0, 0.0
    for group in groups:
        t, values = plots.thin(group.episodes, group.margin(i))
        least, most = min(least, float(np.min(values))), max(most, float(np.max(values)))
        ends = np.min(values, axis=0), np.max(values, axis=0)
        traces += plots.curve(group.learner, pens[group.learner], t, values, ends=ends)
    room = 0.14 * max(most - least, 1e-9)  # below all curves: where the label of the shaded region stands
    name, threshold = groups[0].constraints[i], groups[0].thresholds[i]
    plot = plots.plot(traces, "episode t", "margin", log_x=True)
    layout = plot["layout"]
    layout["yaxis"]["range"] = [plots.short(least - room), plots.short(most + 0.5 * room)]
    layout["yaxis"] |= {"zeroline": True, "zerolinecolor": LIMIT, "zerolinewidth": 2}
    layout["shapes"] = [plots.forbidden(least - room)]
    layout["annotations"] = [plots.corner_label(f"below the line: over the threshold of {number(threshold)}")]
    return Figure(
        f"margin-{i}",
        f"Margin: {name}",
        f"Threshold {number(threshold)} minus the expected cost of episode t; below 0 (shaded) the episode is unsafe. "
        "Line: mean over seeds; band: from the least to the largest of all seeds.",
        plot,
    )


def mixing_figure(groups: Sequence[Group], pens: Pens) -> Figure:
    traces = []
    for group in groups:
        weights = group.noted("mixing_weight")
        if weights is None:
            continue
        t, values = plots.thin(group.episodes, weights)
        if np.any(values > 0.0):
            traces += plots.curve(group.learner, pens[group.learner], t, values, least=0.0)
    plot = plots.plot(traces, "episode t", "mixing weight λ_t", log_x=True)
    plot["layout"]["yaxis"]["range"] = [-0.03, 1.03]
    return Figure(
        "mixing",
        "Mixing weight",
        "λ_t: the probability with which episode t is left to the safe baseline. Learners without one are not shown. "
        f"{BANDS}",
        plot if traces else None,
        "No learner here mixes with a safe baseline.",
    )


def noted_by(groups: Sequence[Group]) -> list[str]:
    """What the learners of a setting noted of their own, at most MOST_NOTES names."""
    return list(dict.fromkeys(name for group in groups for name in group.notes))[:MOST_NOTES]


def note_figure(groups: Sequence[Group], pens: Pens, name: str) -> Figure:
    traces = []
    for group in groups:
        noted = group.noted(name)
        if noted is not None:
            t, values = plots.thin(group.episodes, noted)
            known = np.all(np.isfinite(values), axis=0)
            traces += (
                plots.curve(group.learner, pens[group.learner], t[known], values[:, known]) if np.any(known) else []
            )
    words = f"What the learners note under this name in episode t. {BANDS}"
    plot = plots.plot(traces, "episode t", name, log_x=True) if traces else None
    return Figure(f"note-{name}", f"Note: {name}", words, plot, "Nothing was noted at these checkpoints.")
