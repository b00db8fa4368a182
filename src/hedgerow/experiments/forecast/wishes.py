"""Find the knowledge that would help most: lambda after T episodes, if the learner knew more.

Each wish is the same view with one more piece of knowledge, under the same model: nothing but the bounds changes. A
wish need not be true; only someone who knows the world can say (docs: Ties, Known parts). For a known world, a wish for
ties is only made if they are true.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from hedgerow.checks import BoolArray, FloatArray, IntArray
from hedgerow.experiments.forecast.model import Model
from hedgerow.model.layout import Layout
from hedgerow.model.view import View

DIGITS = 9
"""Laws that agree to so many decimals are one law."""


class Wish(NamedTuple):
    """One more piece of knowledge."""

    words: str
    view: View
    logged: int = 0
    """Episodes of exploration before the first one"""


def wishes(view: View, model: Model, rows: IntArray, episodes: int) -> Iterator[Wish]:
    """What could be known beyond the view; `rows` are those that matter most."""
    known = view.knowledge
    sizes = np.diff(view.layout.row_start)
    uncertain = (sizes > 1) & (known.transitions is None or np.isnan(known.transitions[view.layout.row_start[:-1]]))
    if uncertain.any():
        yield Wish("all transitions", view.knowing(transitions=model.transitions))
    costs = _unknown_costs(view)
    few = _with_classes(view, rows)
    if costs[:, few].any():
        chosen = np.zeros(view.layout.num_rows, dtype=bool)
        chosen[few] = True
        words = f"the mean costs of the {len(rows)} pairs above"
        yield Wish(words, view.knowing(costs=_told(view, model, costs & chosen)))
    if costs.any():
        yield Wish("all mean costs", view.knowing(costs=_told(view, model, costs)))
    tied = time_ties(view, model)
    if tied is not None:
        words = "that layers of equal size obey the same laws (ties)"
        yield Wish(words, tied)
        if not known.independent_costs:
            yield Wish(f"{words}, and costs of an episode are independent", _independent(tied))
    elif known.same_costs is not None and not known.independent_costs:
        yield Wish("that the costs of one episode are independent of each other", _independent(view))
    half = np.where(0.5 * view.ceilings > view.thresholds, 0.5 * view.ceilings, view.ceilings)
    if np.any(half < view.ceilings):  # a ceiling at the threshold would leave nothing to learn
        yield Wish("that an episode costs half of its present ceiling at most", view.knowing(most_costs=half))
    yield Wish(f"a log of {episodes:,} episodes of uniform actions", view, episodes)


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
