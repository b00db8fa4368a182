"""The forecast as plain data: lambda against episodes, what keeps it large, what would help, and a verdict in words."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hedgerow.checks import FloatArray
from hedgerow.experiments.forecast.bounds import Forecaster, Mixing
from hedgerow.experiments.forecast.course import Course
from hedgerow.experiments.forecast.model import Model
from hedgerow.experiments.forecast.slack import Slack, slack_of
from hedgerow.experiments.forecast.wishes import wishes
from hedgerow.learners.mirror.sops import largest_mixing
from hedgerow.model.view import View

MARKS = (100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)
"""The episodes at which lambda is told"""
TOP = 5
"""Rows that are named"""
LITTLE, SMALL, MOST = 0.1, 0.5, 0.75
"""Shares of the episodes between which the verdict changes"""


class Baseline(NamedTuple):
    """What is told, or assumed, about the safe policy."""

    costs: FloatArray
    """beta (m,)"""
    words: str
    """Where they come from"""


def forecast(view: View, model: Model, baseline: Baseline, episodes: int, delta: float) -> dict[str, Any]:
    """The whole forecast, for S-OPS with so many episodes."""
    beta = baseline.costs
    best = Forecaster(view, model, beta, episodes, delta)
    bounds = best.after(episodes)
    slacks = [slack_of(best, bounds, i) for i in range(view.num_constraints)]
    course = Course(best, _longest(episodes))
    last, alone = course.at(episodes), best.weights(bounds.upper)
    worst = int(np.argmax(alone)) if len(alone) else None
    rows = top_rows(slacks[worst].rows) if worst is not None and alone[worst] > 0.0 else np.zeros(0, dtype=np.int64)
    mean = course.mean(episodes)
    return {
        "episodes": episodes,
        "delta": delta,
        "lambda_0": largest_mixing(view, beta),
        "baseline": baseline.words,
        "model": dict(model.assumptions),
        "marks": _marks(course, view, model, beta, episodes, delta),
        "last": last._asdict(),
        "mean": mean._asdict(),
        "constraints": [
            {
                "name": name,
                "threshold": float(view.thresholds[i]),
                "ceiling": float(view.ceilings[i]),
                "baseline_cost": float(beta[i]),
                "own_cost": slacks[i].true,
                "bound": slacks[i].upper,
                "costs": slacks[i].costs,
                "transitions": slacks[i].transitions,
                "cross": slacks[i].cross,
                "lambda": float(alone[i]),
            }
            for i, name in enumerate(view.constraint_names)
        ],
        "worst": None if worst is None or alone[worst] <= 0.0 else view.constraint_names[worst],
        "rows": [] if worst is None else _rows(best, slacks[worst], rows, episodes),
        "wishes": _granted(view, model, beta, rows, episodes, delta) if last.most > 0.0 else [],
        "verdict": verdict(episodes, mean, last, has_binding=bool(len(view.binding))),
    }


def top_rows(contributions: FloatArray) -> Any:
    """The rows that contribute most, at most TOP, in order."""
    order = np.argsort(-contributions, kind="stable")[:TOP]
    return order[contributions[order] > 0.0]


def _longest(episodes: int) -> int:
    """The last mark: all courses go this far and are computed at the same points."""
    return max(MARKS[-1], episodes)


def _marks(
    course: Course, view: View, model: Model, beta: FloatArray, episodes: int, delta: float
) -> list[dict[str, Any]]:
    """lambda after t episodes, of learners that were built for `episodes`, or for t if that is more."""
    found: list[dict[str, Any]] = []
    other: Course | None = None
    for t in sorted({*MARKS, episodes}):
        if other is None or t > episodes:  # the radii of `sharp` are made for a number of episodes
            horizon = max(t, episodes)
            other = Course(Forecaster(view, model, beta, horizon, delta, "sharp"), horizon)
        found.append({"episodes": t, "sharpest": course.at(t)._asdict(), "sharp": other.at(t)._asdict()})
    return found


def _rows(caster: Forecaster, slack: Slack, rows: Any, episodes: int) -> list[dict[str, Any]]:
    layout, total = caster.view.layout, slack.upper - slack.true
    counts, laws = caster.exploration.after(episodes), caster.unknowns.laws
    return [
        {
            "row": int(r),
            "pair": layout.describe_row(int(r)),
            "share": float(slack.rows[r] / total),
            "costs": float(slack.row_costs[r]),
            "transitions": float(slack.row_moves[r]),
            "visits": int(counts.num_visits[laws.moves_at[r]]),
        }
        for r in rows
    ]


def _granted(
    view: View, model: Model, beta: FloatArray, rows: Any, episodes: int, delta: float
) -> list[dict[str, Any]]:
    """lambda at T for every wish, the most helpful first."""
    found: list[dict[str, Any]] = []
    for wish in wishes(view, model, rows, episodes):
        course = Course(Forecaster(wish.view, model, beta, episodes, delta), _longest(episodes), wish.logged)
        found.append({"knowledge": wish.words, **course.at(episodes)._asdict()})
    return sorted(found, key=lambda item: (item["most"], item["least"]))


def verdict(episodes: int, mean: Mixing, last: Mixing, *, has_binding: bool = True) -> str:
    """The verdict in words."""
    if not has_binding:
        return "no constraint can be violated, whatever is played: no baseline is needed; take UOB-REPS"
    left = f"of {episodes:,} episodes S-OPS would leave {_percents(mean)} to the baseline, and the last one still with "
    left += f"a probability of {_percents(last)}"
    if mean.least >= MOST:
        return (
            f"{left}. It would be little more than the baseline: more episodes, a log or more knowledge may help; if "
            "violations average out, SV-OPS learns much sooner"
        )
    if mean.most >= SMALL:
        return f"{left}. Much of this run is the baseline's: it pays if the baseline itself is good, or the run longer"
    if mean.most >= LITTLE:
        return f"{left}. It pays if what it learns is clearly better than the baseline"
    return f"{left}. It would soon play what it has learnt"


def _percents(share: Mixing) -> str:
    least, most = _percent(share.least), _percent(share.most)
    return f"{least} %" if least == most else f"{least} to {most} %"


def _percent(share: float) -> str:
    return f"{100.0 * share:.{0 if share >= 0.0995 or share < 0.0005 else 1}f}"
