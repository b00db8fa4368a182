"""The first picture of a setting: what was saved over its episodes, and below which of them were over a limit.

A lane has a mark for every episode over a limit, at its place: of runs with `trace = true`, and of those whose every
episode is a checkpoint. Between the checkpoints of other runs it is only known how many there were. There a mark is as
wide as the gap and as high as their share; it is full height where all of them were over.

    >>> spans([1, 2, 3, 5], [0, 1, 2, 2])
    [Span(first=2, last=3, share=1.0)]
    >>> spans([10, 20], [0, 5])
    [Span(first=11, last=20, share=0.5)]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hedgerow.checks import FloatArray, IntArray
from hedgerow.report import plots
from hedgerow.report.plots import GRID, INK, LIMIT, SOFT, LineStyle, Plot, Trace, plot_text
from hedgerow.results.groups import Group
from hedgerow.results.metrics import TOL_SAFE, numbers_in
from hedgerow.results.verdict import BEST, keeps_budget, worst_first
from hedgerow.simulation.result import BASELINE_LOSS

CURVE_POINTS = 240
"""Of a curve on a linear axis."""
CURVES_HEIGHT, LANE_HEIGHT = 320, 44
"""Of the two parts, in pixels."""
MARK = 0.5
"""The height of a mark, as a share of its lane; its words stand above."""


class Span(NamedTuple):
    """Episodes first..last, counted from 1, of which a share is over a limit."""

    first: int
    last: int
    share: float


def spans(episodes: ArrayLike, unsafe: ArrayLike) -> list[Span]:
    """Where episodes are over a limit, from checkpoints (C,) and the number of such episodes up to each (C,)."""
    ends, counts = np.asarray(episodes, dtype=np.int64), np.asarray(unsafe, dtype=np.int64)
    lengths, more = np.diff(ends, prepend=0), np.diff(counts, prepend=0)
    found: list[Span] = []
    for place in np.flatnonzero(more).tolist():
        last, share = int(ends[place]), float(more[place] / lengths[place])
        first = last - int(lengths[place]) + 1
        if found and share == found[-1].share == 1.0 and found[-1].last == first - 1:
            found[-1] = found[-1]._replace(last=last)
        else:
            found.append(Span(first, last, share))
    return found


def lane_spans(group: Group) -> list[Span]:
    """The marks of a learner's lane, of its first seed; what only rounding puts over a limit is none."""
    table = group.finest
    worst = [table.column(f"worst_{i}")[-1].as_py() for i in range(len(group.constraints))]
    if max(worst, default=0.0) <= TOL_SAFE:
        return []
    return spans(numbers_in(table, "episode"), numbers_in(table, "unsafe"))


def is_exact(group: Group) -> bool:
    """Whether the place of every mark of a lane is known."""
    return all(span.share == 1.0 for span in lane_spans(group))


def story_plot(groups: Sequence[Group], styles: dict[str, LineStyle] | Any) -> Plot | None:
    """Curves above lanes, both over episodes on one linear axis; None without a baseline to save from."""
    drawn = [group for group in groups if group.has(BASELINE_LOSS.name)]
    if not drawn:
        return None
    terms = groups[0].terms
    traces = [*_oracle(drawn[0])]
    for group in drawn:
        t, shares = _saved(group)
        traces += plots.curve(group.learner, styles[group.learner], t, 100.0 * shares)
    plot = plots.plot(traces, f"{terms.episode}s", f"{terms.loss} saved so far")
    plot["layout"] |= {"annotations": _named_oracle(traces[0]) if traces[0]["name"] == BEST else [], "shapes": []}
    plot["layout"]["yaxis"]["ticksuffix"] = " %"
    lanes = sorted((group for group in groups if group.constraints), key=worst_first)
    return _with_lanes(plot, lanes, styles) if lanes else plot


def _saved(group: Group) -> tuple[IntArray, FloatArray]:
    """Episodes (C,), and (B_t - L_t) / B_T there (seeds, C): it ends at the share of all that was saved."""
    single = len(group.cells) == 1
    tables = [group.finest] if single else group.tables
    episodes = numbers_in(tables[0], "episode").astype(np.int64) if single else group.episodes
    chosen = _evenly(episodes)
    curves = []
    for table in tables:
        kept = np.isin(numbers_in(table, "episode"), episodes[chosen])
        lost = numbers_in(table, BASELINE_LOSS.name)
        curves.append((lost[kept] - numbers_in(table, "loss")[kept]) / max(float(lost[-1]), 1e-300))
    return episodes[chosen], np.stack(curves)


def _evenly(episodes: IntArray) -> IntArray:
    """Places of checkpoints that are about evenly spaced over the run, the first and the last among them."""
    wanted = np.linspace(episodes[0], episodes[-1], min(CURVE_POINTS, len(episodes)))
    return np.unique(np.searchsorted(episodes, wanted).clip(0, len(episodes) - 1))


def _oracle(group: Group) -> list[Trace]:
    """What the best policy would have saved, of the first seed: a dotted line; nothing if no policy is feasible."""
    table = group.finest
    episodes, lost = numbers_in(table, "episode").astype(np.int64), numbers_in(table, BASELINE_LOSS.name)
    least = numbers_in(table, "loss") - numbers_in(table, "regret")
    if not np.all(np.isfinite(least)) or not lost[-1] > 0.0:
        return []
    chosen = _evenly(episodes)
    values = 100.0 * (lost - least)[chosen] / lost[-1]
    drawn = plots.curve(BEST, LineStyle(INK, "dot"), episodes[chosen], values[np.newaxis])
    return [{**trace, "showlegend": False} for trace in drawn]


def _named_oracle(line: Trace) -> list[dict[str, Any]]:
    """The name of the dotted line, left of its end and above it."""
    place = {"x": line["x"][-1], "xanchor": "right", "y": line["y"][-1], "yanchor": "bottom"}
    return [{"text": BEST, "showarrow": False, "xshift": -60, **place, "font": {"color": INK, "size": 12}}]


def _with_lanes(plot: Plot, groups: Sequence[Group], styles: Any) -> Plot:
    """The plot with one lane per learner below it, on the same axis of episodes."""
    count, layout, terms = len(groups), plot["layout"], groups[0].terms
    height = CURVES_HEIGHT + LANE_HEIGHT * count
    split = LANE_HEIGHT * count / height
    layout["meta"] = {"height": height}
    layout["xaxis"] |= {"anchor": "y2", "range": [0, int(groups[0].setting.episodes)], "tickformat": ","}
    layout["yaxis"]["domain"] = [round(split + 0.06, 4), 1.0]
    hidden = {"showgrid": False, "zeroline": False, "showticklabels": False, "fixedrange": True}
    layout["yaxis2"] = {"domain": [0.0, round(split, 4)], "range": [0, count], "anchor": "x", **hidden}
    for place, group in enumerate(groups):
        floor, marks = count - 1 - place, lane_spans(group)
        over = int(numbers_in(group.finest, "unsafe")[-1])
        said = f"{terms.counted(over)} over" if marks else f"no {terms.episode} over"  # short: phones are narrow
        said += ", budget kept" * (bool(marks) and keeps_budget(group))
        words = f"{plot_text(group.learner)}: {said}"
        layout["annotations"].append(_lane_label(words, floor + MARK, styles[group.learner].colour))
        layout["shapes"] += [_lane_floor(floor)] * bool(floor)  # the lowest lane stands on the axis
        if marks:
            plot["data"].append(_marks(group.learner, marks, floor, SOFT if keeps_budget(group) else LIMIT))
    return plot


def _marks(learner: str, marks: Sequence[Span], floor: float, colour: str) -> Trace:
    """One polygon per span, from the episode before it to its last: episode t is drawn from t - 1 to t."""
    x: list[int | None] = []
    y: list[float | None] = []
    for first, last, share in marks:
        top = plots.short(floor + MARK * share)
        x += [first - 1, first - 1, last, last, first - 1, None]
        y += [floor, top, top, floor, floor, None]
    return {
        "type": "scatter", "mode": "lines", "name": f"{plot_text(learner)}, over the limit", "x": x, "y": y,
        "yaxis": "y2", "fill": "toself", "fillcolor": colour, "line": {"width": 0.7, "color": colour},
        "hoverinfo": "skip", "showlegend": False,
    }  # fmt: skip


def _lane_label(words: str, height: float, colour: str) -> dict[str, Any]:
    return {
        "text": words, "showarrow": False, "xref": "paper", "x": 0, "xanchor": "left", "yref": "y2", "y": height,
        "yanchor": "bottom", "font": {"color": colour, "size": 12},
    }  # fmt: skip


def _lane_floor(height: float) -> dict[str, Any]:
    line = {"width": 1, "color": GRID}
    return {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "yref": "y2", "y0": height, "y1": height, "line": line}
