"""The forecast as plain data: lambda against episodes, what keeps it large, what would help, and a verdict in words.

What keeps lambda large is U of the learner's policy less its true cost. By cause: `costs` is what the bounds of costs
add under the true transitions, `transitions` what the boxes add under the true costs, `cross` what is left. By row,
with q the true occupancy and V the values of the worst case,

    U - true = sum_r q(r) { (UCB - g)(r) + max p . V - P . V }

exactly, because P . V on both sides cancels row by row (the value difference lemma).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from hedgerow.checks import BoolArray, FloatArray, IntArray
from hedgerow.confidence.balls import ACCURACY, BallRow, ball_value
from hedgerow.display.numbers import fixed
from hedgerow.errors import InvalidInput
from hedgerow.forecast.model import Bounds, Forecaster, LambdaForecast, LambdaRange, Model, log_counts
from hedgerow.importers.logs import Log
from hedgerow.learners.ops.b_ops import budget_share
from hedgerow.learners.ops.s_ops import largest_mixing
from hedgerow.model.kernel_layout import index_of
from hedgerow.model.layout import Layout
from hedgerow.model.view import View


class Slack(NamedTuple):
    """The slack of one constraint."""

    true: float
    upper: float
    """U, before any ceiling"""
    costs: float
    transitions: float
    cross: float
    row_costs: FloatArray
    """(num_rows,)"""
    row_moves: FloatArray
    """(num_rows,)"""

    @property
    def rows(self) -> FloatArray:
        """(num_rows,): they add up to U - true."""
        return self.row_costs + self.row_moves


def slack_of(caster: Forecaster, bounds: Bounds, i: int) -> Slack:
    """The slack of constraint i; `bounds` are the last ones that `caster` computed."""
    model, g = caster.model, caster.model.costs[i]
    q = model.played
    true, widths = float(q @ g), bounds.boxes.cost_upper[:, i] - g
    worst = caster.worst(bounds.boxes, bounds.balls, bounds.boxes.cost_upper, i)
    moves = caster.worst(bounds.boxes, bounds.balls, np.ascontiguousarray(model.costs.T), i).cost - true
    costs = float(q @ widths)
    row_moves = q * (_ahead(caster, bounds, worst.values, worst.with_balls) - _nominal(caster, worst.values))
    cross = worst.cost - true - costs - moves
    return Slack(true, worst.cost, costs, moves, cross, q * widths, row_moves)


def _nominal(caster: Forecaster, V: FloatArray) -> FloatArray:
    """P . V (num_rows,)."""
    layout = caster.view.layout
    ahead: FloatArray = np.add.reduceat(caster.model.transitions * V[layout.successor], layout.row_start[:-1])
    return ahead


def _ahead(caster: Forecaster, bounds: Bounds, V: FloatArray, with_balls: bool) -> FloatArray:
    """(num_rows,): the largest p . V that boxes, and balls if they are used, allow."""
    layout, boxes, balls = caster.view.layout, bounds.boxes, bounds.balls
    successor, found = index_of(layout).successor, np.zeros(layout.num_rows)
    for r in range(layout.num_rows):
        triples = slice(int(layout.row_start[r]), int(layout.row_start[r + 1]))
        values = V[layout.successor[triples]]
        found[r] = _largest_in_box(values, boxes.lower[triples], boxes.upper[triples])
        if with_balls and caster.wide[r]:
            # Not `row_of_balls`: a kernel cannot return the arrays of a bundle to Python, which would own them.
            start, size = np.uint64(triples.start), np.uint64(triples.stop - triples.start)
            row = BallRow(balls.moves, start, int(balls.visits[r]), successor, start, size, V)
            near = ball_value(row, float(balls.radius[r]), ACCURACY)
            found[r] = min(found[r], near)
    return found


def _largest_in_box(values: FloatArray, lower: FloatArray, upper: FloatArray) -> float:
    """Fill the best successor first."""
    if len(values) == 1:
        return float(values[0])
    order = np.argsort(-values, kind="stable")
    room, rest = (upper - lower)[order], max(0.0, 1.0 - float(lower.sum()))
    more = np.minimum(room, np.maximum(0.0, rest - (np.cumsum(room) - room)))
    return float(lower @ values + more @ values[order])


# What if: lambda after T episodes, if the learner knew more -----------------------------------------------------------
#
# Each wish is the same view with one more piece of knowledge, under the same model: nothing but the bounds changes. A
# wish need not be true; only someone who knows the world can say (docs: Ties, Known parts). For a known world, a wish
# for ties is only made if they are true.


DIGITS = 9
"""Laws that agree to so many decimals are one law."""


class WhatIf(NamedTuple):
    """One more piece of knowledge."""

    words: str
    view: View
    logged: int = 0
    """Episodes of exploration before the first one"""


def wishes(view: View, model: Model, rows: IntArray, episodes: int) -> Iterator[WhatIf]:
    """What could be known beyond the view; `rows` are those that matter most."""
    known = view.knowledge
    sizes = np.diff(view.layout.row_start)
    uncertain = (sizes > 1) & (known.transitions is None or np.isnan(known.transitions[view.layout.row_start[:-1]]))
    if uncertain.any():
        yield WhatIf("all transitions", view.knowing(transitions=model.transitions))
    costs = _unknown_costs(view)
    few = _with_classes(view, rows)
    if costs[:, few].any():
        chosen = np.zeros(view.layout.num_rows, dtype=bool)
        chosen[few] = True
        words = f"the mean costs of the {len(rows)} pairs above"
        yield WhatIf(words, view.knowing(costs=_told(view, model, costs & chosen)))
    if costs.any():
        yield WhatIf("all mean costs", view.knowing(costs=_told(view, model, costs)))
    tied = time_ties(view, model)
    if tied is not None:
        words = "that layers of equal size obey the same laws (ties)"
        yield WhatIf(words, tied)
        if not known.independent_costs:
            yield WhatIf(f"{words}, and costs of an episode are independent", _independent(tied))
    elif known.same_costs is not None and not known.independent_costs:
        yield WhatIf("that the costs of one episode are independent of each other", _independent(view))
    half = np.where(0.5 * view.ceilings > view.thresholds, 0.5 * view.ceilings, view.ceilings)
    if np.any(half < view.ceilings):  # a ceiling at the threshold would leave nothing to learn
        yield WhatIf("that an episode costs half of its present ceiling at most", view.knowing(max_episode_cost=half))
    yield WhatIf(f"a log of {episodes:,} episodes of uniform actions", view, episodes)


def _independent(view: View) -> View:
    return view.knowing(independent_costs=True)


def _unknown_costs(view: View) -> BoolArray:
    """(m, num_rows) bool"""
    given = view.knowledge.costs
    shape = (view.num_constraints, view.layout.num_rows)
    return np.ones(shape, dtype=bool) if given is None else np.isnan(given)


def _with_classes(view: View, rows: IntArray) -> IntArray:
    """`rows`, and all that share the law of their costs with one of them."""
    same = view.knowledge.same_costs
    return rows if same is None else np.flatnonzero(np.isin(same, same[rows]))


def _told(view: View, model: Model, chosen: BoolArray) -> FloatArray:
    """The known costs (m, num_rows), with those of the model where `chosen`."""
    given = view.knowledge.costs
    known = np.full(chosen.shape, np.nan) if given is None else np.array(given)
    known[chosen] = model.costs[chosen]
    return known


def time_ties(view: View, model: Model) -> View | None:
    """The view in which the same pair (place in its layer, action) of equally large layers has one law, where the model
    agrees; None if ties are declared already, or nothing could be tied.
    """
    known, layout = view.knowledge, view.layout
    if known.same_transitions is not None or known.same_costs is not None:
        return None
    moves, costs, unknown = [], [], _unknown_costs(view)
    for r in range(layout.num_rows):
        pair = _pair(layout, r)
        moves.append((*pair, *_successors(layout, r), *_law(view, model, r)))
        costs.append((*pair, *model.costs[:, r].round(DIGITS), *unknown[:, r]))
    same_moves, same_costs = _numbered(moves), _numbered(costs)
    if len(set(same_moves)) == len(same_moves) and len(set(same_costs)) == len(same_costs):
        return None
    return view.knowing(same_transitions=same_moves, same_costs=same_costs)


def _pair(layout: Layout, r: int) -> tuple[int, int, int]:
    """The size of the layer, the place of the state in it, the action."""
    state, action = divmod(r, layout.num_actions)
    k = int(layout.layer_of_state[state])
    return layout.layer_sizes[k], state - int(layout.state_start[k]), action


def _successors(layout: Layout, r: int) -> tuple[int, ...]:
    """Their places in a layer of some size."""
    k = int(layout.layer_of_state[r // layout.num_actions])
    successors = layout.successor[layout.row_start[r] : layout.row_start[r + 1]] - layout.state_start[k + 1]
    return layout.layer_sizes[k + 1], *successors.tolist()


def _law(view: View, model: Model, r: int) -> tuple[float, ...]:
    """The transitions of the model, and whether they are known."""
    triples = slice(int(view.layout.row_start[r]), int(view.layout.row_start[r + 1]))
    given = view.knowledge.transitions
    known = given is not None and not np.isnan(given[triples.start])
    return float(known), *model.transitions[triples].round(DIGITS).tolist()


def _numbered(keys: list[tuple[float, ...]]) -> IntArray:
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    return np.array([numbers[key] for key in keys], dtype=np.int64)


# A log ----------------------------------------------------------------------------------------------------------------


MOST_NAMED = 10


def log_summary(view: View, log: Log) -> dict[str, Any]:
    """What a log shows of the world."""
    counts, laws = log_counts(view, log)
    visits, costs = counts.num_visits[laws.moves_at], counts.num_costs[laws.costs_at]
    unseen = np.flatnonzero(visits == 0)
    return {
        "episodes": len(log),
        "visits": _spread(visits),
        "cost_visits": _spread(costs),
        "rows": view.layout.num_rows,
        "rows_never_visited": len(unseen),
        "never_visited": [view.layout.describe_row(int(r)) for r in unseen[:MOST_NAMED]],
    }


def _spread(numbers: Any) -> dict[str, int]:
    return {"least": int(numbers.min()), "median": int(np.median(numbers)), "most": int(numbers.max())}


# The whole ------------------------------------------------------------------------------------------------------------


MARKS = (100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)
"""The episodes at which lambda is told"""
TOP = 5
"""Rows that are named"""
LITTLE, SMALL, MOST = 0.1, 0.5, 0.75
"""Shares of the episodes between which the verdict changes"""


class BaselineForecast(NamedTuple):
    """What is told, or assumed, about the safe policy."""

    costs: FloatArray
    """beta (m,)"""
    words: str
    """Where they come from"""
    policy: FloatArray | None = None
    """(num_rows,), if it is known"""


def assumed_baseline(view: View) -> BaselineForecast:
    """The baseline to assume when the costs of the safe policy are not given."""
    words = "an assumption: it costs half of each threshold (--baseline-costs says what it does cost)"
    return BaselineForecast(0.5 * view.thresholds, words)


def forecast(
    view: View, model: Model, baseline: BaselineForecast, episodes: int, delta: float, log: Log | None = None
) -> dict[str, Any]:
    """The whole forecast, for S-OPS with so many episodes after those of a log."""
    beta = baseline.costs
    best = Forecaster(view, model, beta, episodes, delta, log=log)
    bounds = best.after(episodes)
    slacks = [slack_of(best, bounds, i) for i in range(view.num_constraints)]
    course = LambdaForecast(best, _longest(episodes))
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
        "wishes": _granted(view, model, beta, rows, episodes, delta, log) if last.most > 0.0 else [],
        "budget": budget_share(view, beta, episodes, delta),
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
    course: LambdaForecast, view: View, model: Model, beta: FloatArray, episodes: int, delta: float
) -> list[dict[str, Any]]:
    """lambda after t episodes, of learners that were built for `episodes`, or for t if that is more."""
    found: list[dict[str, Any]] = []
    other: LambdaForecast | None = None
    for t in sorted({*MARKS, episodes}):
        if other is None or t > episodes:  # the radii of `sharp` are made for a number of episodes
            horizon = max(t, episodes)
            other = LambdaForecast(Forecaster(view, model, beta, horizon, delta, "sharp"), horizon)
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
    view: View, model: Model, beta: FloatArray, rows: Any, episodes: int, delta: float, log: Log | None
) -> list[dict[str, Any]]:
    """lambda at T for every wish that the log does not refute, the most helpful first."""
    found: list[dict[str, Any]] = []
    for wish in wishes(view, model, rows, episodes):
        try:
            caster = Forecaster(wish.view, model, beta, episodes, delta, log=log)
        except InvalidInput:
            continue
        course = LambdaForecast(caster, _longest(episodes), wish.logged)
        found.append({"knowledge": wish.words, **course.at(episodes)._asdict()})
    return sorted(found, key=lambda item: (item["most"], item["least"]))


def verdict(episodes: int, mean: LambdaRange, last: LambdaRange, *, has_binding: bool = True) -> str:
    """The verdict in words."""
    if not has_binding:
        return "no constraint can be violated, whatever is played: no baseline is needed; take UOB-REPS"
    left = f"of {episodes:,} episodes S-OPS would leave {percents(mean)} to the baseline, and the last one still with "
    left += f"a probability of {percents(last)}"
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


def percents(share: LambdaRange) -> str:
    """In whole percents, small shares with one decimal."""
    ends = [fixed(100.0 * end, 1 if 0.0005 <= abs(end) < 0.0995 else 0) for end in share]
    return f"{' to '.join(dict.fromkeys(ends))} %"
