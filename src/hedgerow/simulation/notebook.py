"""What a run shows in a notebook: who played where, the scores at a few checkpoints, and whether all was safe."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hedgerow.checks import IntArray
from hedgerow.display import text
from hedgerow.display.html import HtmlCell, card, line, number, table, verdict
from hedgerow.model.notebook import limits_table
from hedgerow.simulation.result import Run

CHECKPOINTS = 5
"""Rows of the table."""


def run_html(run: Run) -> str:
    """The scores at about five checkpoints, spread evenly over the logarithm of the episodes."""
    learner, layout = run.learner, run.learner.view.layout
    preset = getattr(getattr(learner, "settings", None), "preset", "")
    sizes = text.counted(layout.num_states, "state"), text.counted(layout.num_actions, "action")
    facts = [
        f"{type(learner).__name__}{f' ({preset})' if preset else ''}",
        text.counted(int(run.episodes[-1]), "episode") if len(run.episodes) else "no checkpoint reached",
        f"{text.counted(layout.steps, 'step')}, {sizes[0]}, {sizes[1]}",
        f"seed {run.seed}",
        f"{run.way}, {run.seconds:.3g} s",
    ]
    if not len(run.episodes):
        return card("Run", facts)
    if run.scored != "exact":
        return card("Run", facts, _observed(run), line("sampled: nobody knows the truth here, so nothing is scored"))
    return card("Run", facts, _scores(run), _constraints(run), line(_answer(run)))


def _scores(run: Run) -> str:
    head = ["episodes", "loss", "regret", "violation", "unsafe episodes", "safe so far"]
    violation, safe = run.violation, run.safe

    def rows() -> Iterator[list[str | HtmlCell]]:
        for c in _places(run):
            numbers = [number(float(values[c])) for values in (run.loss, run.regret, violation)]
            yield [f"{int(run.episodes[c]):,}", *numbers, f"{int(run.unsafe[c]):,}", verdict(bool(safe[c]))]

    return table(head, rows())


def _constraints(run: Run) -> str:
    """What each constraint came to: the mean cost of an episode and the worst excess, both before the coin."""
    view = run.learner.view
    if not view.num_constraints:
        return ""
    mean = run.costs[-1] / run.episodes[-1]
    columns: list[tuple[str, list[str | HtmlCell]]] = [
        ("mean cost of an episode", [number(float(cost)) for cost in mean]),
        ("most of any episode", [number(float(cost)) for cost in run.worst[-1] + view.thresholds]),
        ("violation", [number(float(value)) for value in run.violations[-1]]),
    ]
    return limits_table(view, columns)


def _answer(run: Run) -> str:
    if not run.learner.view.num_constraints:
        return "no constraints"
    if bool(run.safe[-1]):
        return "safe: every episode respected every constraint in expectation"
    share = run.unsafe[-1] / run.episodes[-1]
    return f"not safe: {int(run.unsafe[-1]):,} episodes ({100.0 * share:.3g} %) violated a constraint in expectation"


def _observed(run: Run) -> str:
    names = [key for key in run.notes if key.startswith("observed_")][:8]

    def rows() -> Iterator[list[str | HtmlCell]]:
        for c in _places(run):
            yield [f"{int(run.episodes[c]):,}", *(number(float(run.notes[key][c])) for key in names)]

    return table(["episodes", *(key.replace("_", " ") for key in names)], rows())


def _places(run: Run) -> IntArray:
    """About `CHECKPOINTS` of the checkpoints, the last one among them."""
    wanted = np.geomspace(1.0, float(run.episodes[-1]), 2 * CHECKPOINTS - 1)[::2]
    places: IntArray = np.unique(np.clip(np.searchsorted(run.episodes, wanted), 0, len(run.episodes) - 1))
    return places
