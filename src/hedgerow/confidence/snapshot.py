"""Estimates as labelled tables: what was seen of each pair and triple, and between which bounds the truth lies.

`learner.estimates` and `Statistics.estimates` are snapshots: they hold copies, and nothing that is learnt later changes
them. `rows` and `moves` are Arrow tables, so that `learner.estimates.rows.to_pandas()` is a data frame where pandas is
installed.

    rows    layer, state, action, visits, costs_counted, visits_shared_by, costs_shared_by, unknown_moves, and for each
            constraint "<name> mean", "<name> lower", "<name> upper", "<name> known", "<name> unknown"
    moves   layer, state, action, next_state, count, p_hat, lower, upper, known

States and actions are labels where the layout has them, else numbers, states over all layers. Rows that share a law
(`View.knowing`) share their counts: each of them shows those of the whole class, and `..._shared_by` says how many rows
the class has. A mean or p_hat without a single visit is null. What is known beforehand has `known`, and two equal
bounds; what was seen of it is shown all the same. A row with one successor is known, too.

Bounds are those that the learner works with. Where these are made anew only when a count has grown by 2 % (radii `kt`),
or has doubled (UOB-REPS), they may be a little older than the counts beside them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.checks import BoolArray, FloatArray, IntArray, frozen
from hedgerow.display import text
from hedgerow.model.view import View

if TYPE_CHECKING:
    from hedgerow.confidence.boxes import Boxes, BoxRule
    from hedgerow.confidence.counts import Counts

LOSS = "loss"
"""What the column after those of the constraints is called."""


@dataclass(frozen=True, eq=False, repr=False)
class Estimates:
    """A snapshot of what a learner has seen of a world, and of the bounds that follow from it.

    `learner.estimates` makes one. `rows` and `moves` show it as labelled tables. There are c columns of costs: the m
    constraints, and the loss where the learner estimates it like a cost.

    Examples:
        >>> import hedgerow as hr
        >>> view = hr.View.of([["home"]], ["wait", "go"], thresholds={"delay": 0.5})
        >>> learner = hr.SVOPS(view, episodes=100, delta=0.05)
        >>> learner.estimates.episode, learner.estimates.visits.tolist()
        (0, [0, 0])
    """

    view: View
    """What the learner knows of the world."""
    episode: int
    """The number of episodes that were observed."""
    names: tuple[str, ...]
    """(c,): the names of the constraints, and "loss" where the loss is estimated like a cost."""
    visits: IntArray
    """(num_rows,): how many episodes visited each row, or any row that shares its law; N in the paper."""
    costs_counted: IntArray
    """(num_rows,): how many visits counted for the costs, those with unknown costs included."""
    visits_shared_by: IntArray
    """(num_rows,): how many rows share these visits."""
    costs_shared_by: IntArray
    """(num_rows,): how many rows share these costs."""
    unknown_moves: IntArray
    """(num_rows,): how many visits there may have been beside these, with moves that are unknown."""
    unknown_costs: IntArray
    """(num_rows, c): how many of the costs are unknown."""
    mean_costs: FloatArray
    """(num_rows, c): the mean observed costs, NaN where none was observed."""
    cost_lower: FloatArray
    """(num_rows, c): lower bounds of the mean costs."""
    cost_upper: FloatArray
    """(num_rows, c): upper bounds of the mean costs."""
    known_costs: BoolArray
    """(num_rows, c): whether the mean cost is known beforehand."""
    counts: IntArray
    """(num_triples,): how many episodes went on to each successor; M in the paper."""
    p_hat: FloatArray
    """(num_triples,): the observed frequencies of next states, NaN in rows without visits."""
    lower: FloatArray
    """(num_triples,): lower bounds of the transition probabilities."""
    upper: FloatArray
    """(num_triples,): upper bounds of the transition probabilities."""
    known_transitions: BoolArray
    """(num_rows,): whether the transitions of the row are known beforehand, or there is only one successor."""

    @classmethod
    def of(cls, view: View, episode: int, counts: Counts, boxes: Boxes, rule: BoxRule) -> Estimates:
        """A copy of the numbers that a learner keeps.

        Args:
            view: What the learner knows of the world.
            episode: How many episodes were observed.
            counts: What was seen, rows of one class at the first of them.
            boxes: The bounds that follow from it.
            rule: Which rows share laws, and what is known.

        Returns:
            The snapshot; it shares no array with the learner.
        """
        layout, laws = view.layout, rule.laws
        row = layout.row_of_triple
        place = laws.moves_at[row]
        moved = counts.num_moves[layout.row_start[place] + np.arange(layout.num_triples) - layout.row_start[row]]
        visits, counted = counts.num_visits[laws.moves_at], counts.num_costs[laws.costs_at]
        unknown = counts.unknown_costs[laws.costs_at]
        return cls(
            view=view,
            episode=int(episode),
            names=_names(view, counts.cost_sums.shape[1]),
            visits=frozen(visits),
            costs_counted=frozen(counted),
            visits_shared_by=frozen(np.bincount(laws.moves_at)[laws.moves_at].astype(np.int64)),
            costs_shared_by=frozen(np.bincount(laws.costs_at)[laws.costs_at].astype(np.int64)),
            unknown_moves=frozen(counts.unknown_moves[laws.moves_at]),
            unknown_costs=frozen(unknown),
            mean_costs=frozen(_ratio(counts.cost_sums[laws.costs_at], counted[:, None] - unknown)),
            cost_lower=frozen(boxes.cost_lower),
            cost_upper=frozen(boxes.cost_upper),
            known_costs=frozen(rule.unknown_costs == 0),
            counts=frozen(moved),
            p_hat=frozen(_ratio(moved, visits[row])),
            lower=frozen(boxes.lower),
            upper=frozen(boxes.upper),
            known_transitions=frozen(rule.uncertain == 0),
        )

    @cached_property
    def rows(self) -> Any:
        """One line per pair (state, action): a `pyarrow.Table`, its columns as in the module's text.

        Examples:
            >>> from hedgerow.learners.statistics import Statistics
            >>> view = View.of([["home"]], ["wait", "go"], thresholds={"delay": 0.5})
            >>> Statistics(view, 100, 0.01).estimates.rows.column("delay upper").to_pylist()
            [1.0, 1.0]
        """
        import pyarrow as pa

        columns = {
            **self._places(np.arange(self.view.layout.num_rows)),
            "visits": self.visits,
            "costs_counted": self.costs_counted,
            "visits_shared_by": self.visits_shared_by,
            "costs_shared_by": self.costs_shared_by,
            "unknown_moves": self.unknown_moves,
        }
        for i, name in enumerate(self.names):
            columns[f"{name} mean"] = pa.array(self.mean_costs[:, i], from_pandas=True)  # NaN becomes null
            columns[f"{name} lower"] = self.cost_lower[:, i]
            columns[f"{name} upper"] = self.cost_upper[:, i]
            columns[f"{name} known"] = self.known_costs[:, i]
            columns[f"{name} unknown"] = self.unknown_costs[:, i]
        return pa.table(columns)

    @cached_property
    def moves(self) -> Any:
        """Return one line per triple (state, action, next state) as a `pyarrow.Table`.

        The text of the module lists its columns.
        """
        import pyarrow as pa

        layout = self.view.layout
        return pa.table(
            {
                **self._places(layout.row_of_triple),
                "next_state": _named(layout.successor.astype(np.int64), layout.state_labels),
                "count": self.counts,
                "p_hat": pa.array(self.p_hat, from_pandas=True),
                "lower": self.lower,
                "upper": self.upper,
                "known": self.known_transitions[layout.row_of_triple],
            }
        )

    def _places(self, rows: IntArray) -> dict[str, Any]:
        layout = self.view.layout
        state, action = np.divmod(rows, layout.num_actions)
        return {
            "layer": layout.layer_of_state[state],
            "state": _named(state, layout.state_labels),
            "action": _named(action, layout.action_labels),
        }

    def __repr__(self) -> str:
        layout = self.view.layout
        unseen = int(np.sum(self.visits == 0))
        return text.line(
            "Estimates",
            f"after {text.counted(self.episode, 'episode')}",
            f"{text.counted(layout.num_rows, 'row')}{f', {unseen:,} of them unseen' if unseen else ''}",
            text.counted(layout.num_triples, "move"),
            text.listed(map(text.quoted, self.names), 3, len(self.names)),
        )

    def _repr_html_(self) -> str:
        from hedgerow.display.views import estimates_html

        return estimates_html(self)


def _names(view: View, columns: int) -> tuple[str, ...]:
    """The constraints; one more column is the loss, under a name that none of them has."""
    names = view.constraint_names
    if columns == len(names):
        return names
    loss = LOSS
    while loss in names:
        loss += "_"
    return (*names, loss)


def _ratio(sums: Any, counts: IntArray) -> FloatArray:
    """sums / counts, NaN where nothing was counted."""
    ratio: FloatArray = np.where(counts > 0, sums / np.maximum(1, counts), np.nan)
    return ratio


def _named(numbers: IntArray, labels: tuple[str, ...] | None) -> Any:
    """The numbers, or the labels that they stand for."""
    return numbers if labels is None else [labels[number] for number in numbers.tolist()]
