"""The first picture: its ticks are exactly the unsafe episodes, its curves end where the table says."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.display.numbers import PAGE
from hedgerow.experiments.options import RunOptions
from hedgerow.experiments.source import Source
from hedgerow.experiments.spec import parse
from hedgerow.experiments.sweep import run_experiment
from hedgerow.report.figures import figure_makers, run_results
from hedgerow.report.page import page
from hedgerow.report.plots import Plot, Trace
from hedgerow.report.story import MARK, Span, spans
from hedgerow.results import Results
from tests.report.page_reader import Reader

EXPERIMENT = """
title = "Charging"
seeds = 1
episodes = 600
delta = 0.01
trace = {trace}
[[world]]
name = "ev-workday"
[[adversary]]
name = "ev-days"
[[learner]]
name = "cv-ops"
preset = "sharpest"
label = "CV-OPS"
[[learner]]
name = "s-ops"
preset = "sharp"
baseline = "own"
label = "S-OPS"
[[learner]]
name = "uob-reps"
preset = "sharpest"
label = "UOB-REPS"
"""


def swept(folder: Path, trace: str) -> Results:
    source = Source("story", EXPERIMENT.format(trace=trace), folder)
    assert run_experiment(parse(source), folder / "out", RunOptions(backend="serial")).complete
    return hr.results.open(folder / "out")


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return swept(tmp_path_factory.mktemp("traced"), "true")


def story(results: Results) -> Plot:
    plot = figure_makers(results.groups)["saved"]().plot
    assert plot is not None
    return plot


def lane(plot: Plot, learner: str) -> Trace | None:
    return next((trace for trace in plot["data"] if trace["name"] == f"{learner}, over the limit"), None)


def drawn_episodes(trace: Trace | None) -> list[int]:
    """The episodes that the polygons of a lane cover; episode t is drawn from t - 1 to t."""
    if trace is None:
        return []
    polygons = [trace["x"][k : k + 4] for k in range(0, len(trace["x"]), 6)]
    return [t for left, _, right, _ in polygons for t in range(left + 1, right + 1)]


def test_ticks_are_the_unsafe_episodes(traced: Results) -> None:
    plot, unsafe = story(traced), 0
    for group in traced.groups:
        trace = traced.load_trace(group.cells[0].id)
        counts = np.asarray(trace.column("unsafe").to_numpy())
        expected = (1 + np.flatnonzero(np.diff(counts, prepend=0))).tolist()
        assert len(counts) == 600
        assert drawn_episodes(lane(plot, group.learner)) == expected
        assert len(expected) == group["over"].value
        unsafe += bool(expected)
    assert unsafe == 2  # S-OPS has none
    labels = [label["text"] for label in plot["layout"]["annotations"]]
    assert "S-OPS: no day over" in labels


def test_curves_end_at_what_was_saved(traced: Results) -> None:
    plot = story(traced)
    for group in traced.groups:
        (line,) = (trace for trace in plot["data"] if trace["name"] == group.learner)
        assert line["x"][0] == 1
        assert line["x"][-1] == 600
        assert line["y"][-1] == pytest.approx(100.0 * group["saved"].value, rel=1e-5)
        assert len({b - a for a, b in pairwise(line["x"])}) <= 2  # a linear axis, evenly
    best = plot["data"][0]
    assert best["name"] == "best possible (oracle)"
    assert best["y"][-1] == pytest.approx(100.0 * traced.groups[0]["possible"].value, rel=1e-5)


def test_without_a_trace_marks_are_shares_of_checkpoints(tmp_path: Path) -> None:
    found = swept(tmp_path, "false")
    figure = figure_makers(found.groups)["saved"]()
    assert "share of days over the limit between two checkpoints" in figure.note
    for group in found.groups:
        trace = lane(figure.plot or {}, group.learner)
        starts = [] if trace is None else range(0, len(trace["x"]), 6)
        polygons = [(trace["x"][k : k + 4], trace["y"][k : k + 2]) for k in starts] if trace else []
        counted = sum((right - left) * (top - floor) / MARK for (left, _, right, _), (floor, top) in polygons)
        assert counted == pytest.approx(group["over"].value, rel=1e-3)


def test_spans_join_neighbours_and_keep_gaps() -> None:
    assert spans([1, 2, 3, 4, 5], [1, 2, 2, 3, 3]) == [Span(1, 2, 1.0), Span(4, 4, 1.0)]
    assert spans([4, 8], [4, 6]) == [Span(1, 4, 1.0), Span(5, 8, 0.5)]
    assert spans([10], [0]) == []


def test_a_run_with_every_episode_has_exact_ticks() -> None:
    world = hr.worlds.make("ev-workday")
    run = hr.simulate(world, hr.SVOPS(world.view(), 60, 0.05, "paper"), progress=False, marks="all")
    plot = story(run_results(run))
    expected = (1 + np.flatnonzero(np.diff(run.unsafe, prepend=0))).tolist()
    assert drawn_episodes(lane(plot, run_results(run).groups[0].learner)) == expected


def test_the_page_begins_with_the_verdict_and_its_picture(traced: Results) -> None:
    read = Reader(page(traced))
    words = " ".join(read.words)
    sections = [attributes["id"] for tag, attributes in read.tags if tag == "section"]
    assert sections[0] == "verdict"
    assert next(iter(name for name in read.scripts if name.startswith("s0-"))) == "s0-saved"
    assert "S-OPS lost" in words  # 600 days are too few for its preset: a verdict says so
    assert words.index("more than today's rule (") < words.index("and no day was over the limit.")
    assert words.index("and no day was over the limit.") < words.index("Contents")
    assert "3 runs of 600 days each" in words
    rows = {row["learner"]: row for row in read.named if "carbon saved" in row}
    assert list(rows) == ["always today's rule", "UOB-REPS", "CV-OPS", "S-OPS", "best possible (oracle)"]
    found = {group.learner: group for group in traced.groups}
    for name, group in found.items():
        assert rows[name]["carbon saved"] == PAGE.percent(group["saved"].value, 1)
        assert rows[name]["days over the limit"] == PAGE.whole(group["over"].value)
    assert rows["always today's rule"]["days left to today's rule"] == "600"
