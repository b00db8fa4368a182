"""What cannot happen in a world of which something is known: such a record is refused before anything is learnt.

    a cost other than 0 where the mean cost is known to be 0, or other than 1 where it is known to be 1
    a move whose probability is known to be 0
    costs of one episode that sum to more than `most_costs`

Costs lie in [0, 1], so a mean of 0 or 1 leaves no choice; any other mean allows every value, and only many of them can
refute it (`estimates/premises.py`). A record that is impossible shows that what was told is false, or that the record
is wrong. Either way nothing can be learnt from it.
"""

from __future__ import annotations

import numpy as np

from hedgerow.checks import FloatArray, IntArray
from hedgerow.errors import InvalidInput
from hedgerow.model.episode import Episode
from hedgerow.model.knowledge import TOL_TRUE
from hedgerow.model.view import View

ADVICE = "one of the two is wrong: correct the record, or build the learner on a view that is not told this"


def refuse_impossible(
    view: View, rows: IntArray, triples: IntArray, costs: FloatArray, starts: IntArray | None = None
) -> None:
    """Refuse steps that what `view` knows rules out.

    Args:
        view: What is known.
        rows: (n,) the visited pairs.
        triples: (n,) the moves; negative where it is not known what a step led to.
        costs: (n, m) the costs; NaN where they are not known.
        starts: (episodes + 1,) where each episode begins among the steps; None for a single one.

    Raises:
        InvalidInput: If a step is impossible; the message names episode, step and place.
    """
    if not view.knowledge:
        return
    firsts = np.array([0, len(rows)]) if starts is None else starts
    problem = _wrong_cost(view, rows, costs) or _wrong_move(view, triples) or _wrong_sum(view, costs, firsts)
    if problem is None:
        return
    step, words = problem
    episode = int(np.searchsorted(firsts, step, side="right")) - 1
    where = f"step {step - int(firsts[episode])}" + ("" if starts is None else f" of episode {episode}")
    raise InvalidInput(f"{where}: {words}; {ADVICE}")


def _wrong_cost(view: View, rows: IntArray, costs: FloatArray) -> tuple[int, str] | None:
    known = view.knowledge.costs
    if known is None:
        return None
    told = known.T[rows]
    sure = (told == 0.0) | (told == 1.0)
    wrong = np.argwhere(sure & (np.abs(costs - told) > TOL_TRUE))  # not so where either is NaN
    if not len(wrong):
        return None
    k, i = (int(place) for place in wrong[0])
    place, name = view.layout.describe_row(int(rows[k])), view.constraint_names[i]
    return k, f"{name!r} costs {float(costs[k, i]):g} in {place}, where it is known to cost {told[k, i]:g}"


def _wrong_move(view: View, triples: IntArray) -> tuple[int, str] | None:
    known = view.knowledge.transitions
    if known is None:
        return None
    wrong = np.flatnonzero((triples >= 0) & (known[triples] == 0.0))
    if not len(wrong):
        return None
    k = int(wrong[0])
    return k, f"{view.layout.describe_triple(int(triples[k]))} is known to have probability 0"


def _wrong_sum(view: View, costs: FloatArray, starts: IntArray) -> tuple[int, str] | None:
    known = view.knowledge.most_costs
    if known is None or not len(costs):
        return None
    episodes = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    paid = np.nan_to_num(costs)
    sums = np.column_stack([np.bincount(episodes, column, len(starts) - 1) for column in paid.T])
    wrong = np.argwhere(sums > known + TOL_TRUE * (1.0 + known))
    if not len(wrong):
        return None
    episode, i = (int(place) for place in wrong[0])
    name = view.constraint_names[i]
    last = int(starts[episode + 1]) - 1
    return last, f"the episode costs {sums[episode, i]:g} of {name!r}, and is known to cost at most {known[i]:g}"


def known_costs(episode: Episode) -> FloatArray:
    """(n, m): the costs of an episode, NaN where nobody knows them."""
    unknown = None if episode.irregular is None else episode.irregular.unknown
    return episode.costs if unknown is None else np.where(unknown, np.nan, episode.costs)
