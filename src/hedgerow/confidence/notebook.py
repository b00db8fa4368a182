"""What estimates show in a notebook: counts and bounds of the first pairs and moves."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hedgerow.confidence.snapshot import Estimates
from hedgerow.display import text
from hedgerow.display.html import HtmlCell, card, fold, line, name, shaded, table
from hedgerow.model.layout import Layout
from hedgerow.model.notebook import action_cell, state_cell

MOST_CONSTRAINTS = 4
"""Columns; the table has all of them."""


def estimates_html(estimates: Estimates) -> str:
    """Pairs with the bounds of their mean costs, then, folded, moves with the bounds of their probabilities."""
    layout = estimates.view.layout
    unseen = int(np.sum(estimates.visits == 0))
    facts = [
        f"after {text.counted(estimates.episode, 'episode')}",
        text.counted(layout.num_rows, "pair"),
        f"{unseen:,} never visited" if unseen else "all visited",
    ]
    hint = line("mean [lower, upper]; as Arrow tables: .rows and .moves")
    moves = fold(f"{text.counted(layout.num_triples, 'move')}", _moves(estimates))
    return card("Estimates", facts, _rows(estimates), moves, hint)


def _rows(estimates: Estimates) -> str:
    layout, shown = estimates.view.layout, min(len(estimates.names), MOST_CONSTRAINTS)
    most = max(1, int(estimates.visits.max(initial=0)))
    head: list[str | HtmlCell] = ["layer", "state", "action", "visits", *map(name, estimates.names[:shown])]

    def rows() -> Iterator[list[str | HtmlCell]]:
        for r in range(layout.num_rows):
            visits = int(estimates.visits[r])
            cells = [_cost(estimates, r, i) for i in range(shown)]
            shared = int(estimates.visits_shared_by[r])
            words = f"{visits:,}" + f" (shared by {shared})" * (shared > 1)
            yield [*_place(layout, r), shaded(words, visits / most), *cells]

    hidden = len(estimates.names) - shown
    rest = line(f"… and {hidden} more constraints, not shown") if hidden else ""
    return table(head, rows(), num_text=3, total=layout.num_rows, what="pairs") + rest


def _cost(estimates: Estimates, row: int, i: int) -> str:
    lower, upper = float(estimates.cost_lower[row, i]), float(estimates.cost_upper[row, i])
    if estimates.known_costs[row, i]:
        return f"{lower:.3g} known"
    return _estimate(float(estimates.mean_costs[row, i]), lower, upper)


def _moves(estimates: Estimates) -> str:
    layout = estimates.view.layout
    head = ["layer", "state", "action", "next state", "count", "probability"]

    def rows() -> Iterator[list[str | HtmlCell]]:
        for j in range(layout.num_triples):
            row = int(layout.row_of_triple[j])
            lower, upper = float(estimates.lower[j]), float(estimates.upper[j])
            known = f"{lower:.3g} known"
            words = known if estimates.known_transitions[row] else _estimate(float(estimates.p_hat[j]), lower, upper)
            yield [
                *_place(layout, row),
                state_cell(layout, int(layout.successor[j])),
                f"{int(estimates.counts[j]):,}",
                words,
            ]

    return table(head, rows(), num_text=4, total=layout.num_triples, what="moves")


def _place(layout: Layout, row: int) -> list[str | HtmlCell]:
    state, action = divmod(row, layout.num_actions)
    return [str(layout.layer_of_state[state]), state_cell(layout, state), action_cell(layout, action)]


def _estimate(value: float, lower: float, upper: float) -> str:
    return f"{'' if np.isnan(value) else f'{value:.3g} '}[{lower:.3g}, {upper:.3g}]"
