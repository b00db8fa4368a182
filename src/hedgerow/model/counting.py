"""What may be counted of an episode: one decision, which boxes, balls, certificates, searches, logs and ledgers read.

The complete sequence of draws is that of the *played branch*, the policy that the coin chose, continued by draws that
nobody makes. Every cost and every move of it is one of

    counted        observed, and nobody chose by its value whether it is reported
    independent    left out, and the reason is declared to have nothing to do with its value
    unknown        prevented, left out or never observed, for whatever reason

    episode                     moves                                        costs
    aborted in x_k              those of its steps are counted; a last one   those of its steps are counted; every pair
                                of which nobody saw the end is unknown       that the branch could have visited from x_k
                                                                             on has one unknown visit
    overridden in x_k           counted: each is a fresh draw                before x_k counted; then dropped, and one
                                                                             unknown visit of each pair as above
    missing                     one unknown visit of every pair that the     the same
                                branch can reach
    a cost nobody knows         counted                                      that one is unknown
    a reason is declared        those of its steps are counted               those of its steps are counted

Where costs of one episode are known to be independent of each other, a cut or a person's choice, which can have seen
earlier costs only, makes none of the others unknown; a missing cost or outcome stays unknown. docs/counting.md has the
proofs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hedgerow.checks import BoolArray, FloatArray, IntArray
from hedgerow.errors import InvalidInput
from hedgerow.model.episode import UNSEEN, Episode, Irregular
from hedgerow.model.knowledge import TOL_TRUE
from hedgerow.model.view import View

COUNTED, INDEPENDENT, UNKNOWN = "counted", "independent", "unknown"


class Counting(NamedTuple):
    """The decision for one episode of n steps."""

    word: str = COUNTED
    """COUNTED if nothing is left out, or what is left out does no harm; else INDEPENDENT or UNKNOWN"""
    moves: int = 0
    """The first so many moves are counted"""
    costs: int = 0
    """The costs of the first so many steps are counted, but for those in `gaps`"""
    own: int = 0
    """The first so many steps are those of the played branch"""
    gaps: BoolArray | None = None
    """(n, m): costs that are unknown, or, if a reason is declared, left out; None for none"""
    layer: int = -1
    """The layer from which on the branch may have gone anywhere; -1 if all its visits are known"""
    states: IntArray | None = None
    """The states of that layer in which it may have been"""
    moves_lost: bool = False
    """Whether its moves from there on are unknown as well, and not only its costs"""
    last_lost: bool = False
    """Whether the move of the last step is unknown"""
    planned: bool = True
    """Whether the branch was played to the end, so that the losses are those of the plan"""
    skipped: bool = False
    """Whether sums over whole episodes leave it out, as if it had not been played"""

    @property
    def closes(self) -> bool:
        """Whether sums over whole episodes cannot go on: the path is not known, and nobody says why."""
        return not self.planned and not self.skipped


def decide(episode: Episode, *, independent_costs: bool = False) -> Counting:
    """What is counted of an episode; `independent_costs` says that costs of one episode do not depend on each other."""
    count = len(episode.rows)
    irregular = episode.irregular
    if irregular is None:
        return Counting(COUNTED, count, count, count)
    if irregular.missing:
        return _missing(irregular)
    declared = irregular.independent is not None
    moves = count - 1 if count and episode.triples[-1] == UNSEEN else count
    own = count if irregular.overridden_from is None else irregular.overridden_from
    planned = own == episode.layout.steps
    open_ended = not (planned or declared or independent_costs)
    layer, states = _place(episode, own) if open_ended else (-1, None)
    last_lost = moves < count and not declared
    unknown = open_ended or last_lost or (irregular.unknown is not None and not declared)
    return Counting(
        word=INDEPENDENT if declared else UNKNOWN if unknown else COUNTED,
        moves=moves,
        costs=own if open_ended else count,
        own=own,
        gaps=irregular.unknown,
        layer=layer,
        states=states,
        last_lost=last_lost,
        planned=planned,
        skipped=declared,
    )


def _missing(irregular: Irregular) -> Counting:
    if irregular.independent is not None:
        return Counting(INDEPENDENT, planned=False, skipped=True)
    first = np.zeros(1, dtype=np.int64)
    return Counting(UNKNOWN, layer=0, states=first, moves_lost=True, planned=False)


def _place(episode: Episode, own: int) -> tuple[int, IntArray]:
    """The layer after `own` steps of the branch, and the states of it in which the episode may have been."""
    layout, count = episode.layout, len(episode.rows)
    if own < count:
        return own, episode.rows[own : own + 1] // layout.num_actions
    if not count:
        return 0, np.zeros(1, dtype=np.int64)
    last = int(episode.triples[-1])
    if last != UNSEEN:
        return count, layout.successor[last : last + 1].astype(np.int64)
    row = int(episode.rows[-1])
    return count, layout.successor[layout.row_start[row] : layout.row_start[row + 1]].astype(np.int64)


def filled_costs(episode: Episode, counting: Counting) -> tuple[FloatArray, BoolArray]:
    """(L, m): the costs of the branch, 1 in the place of each that was not observed on it; and which were observed.

    In sum, and cut at what an episode can cost, that is at least what the branch would have cost.
    """
    filled = np.ones((episode.layout.steps, episode.costs.shape[1]))
    observed, own = np.zeros(filled.shape, dtype=bool), counting.own
    observed[:own] = True if counting.gaps is None else ~counting.gaps[:own]
    filled[:own] = np.where(observed[:own], episode.costs[:own], 1.0)
    return filled, observed


# --------------------------------------------------------------------------------------------------------------------
# What cannot happen in a world of which something is known: such a record is refused before anything is learnt.
#
#     a cost other than 0 where the mean cost is known to be 0, or other than 1 where it is known to be 1
#     a move whose probability is known to be 0
#     costs of one episode that sum to more than `most_costs`
#
# Costs lie in [0, 1], so a mean of 0 or 1 leaves no choice; any other mean allows every value, and only many of them
# can refute it (`confidence/premises.py`). A record that is impossible shows that what was told is false, or that the
# record is wrong. Either way nothing can be learnt from it.


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
