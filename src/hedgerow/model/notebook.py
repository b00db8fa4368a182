"""What layouts, policies, worlds and views show in a notebook."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from hedgerow.display import text as brief
from hedgerow.display.html import HtmlCell, card, fold, line, name, number, shaded, table, text
from hedgerow.model.cmdp import CMDP
from hedgerow.model.knowledge import Knowledge
from hedgerow.model.layout import Layout
from hedgerow.model.policy import Policy
from hedgerow.model.view import View

MOST_ACTIONS = 10
"""Columns of a policy."""
MOST_DRAWN = 12
"""Layers, and states of one, of a layout that is drawn."""
MANY_LINES = 60
"""More lines than these are drawn more faintly."""
_ACROSS, _DOWN, _RADIUS = 64, 22, 6
"""Of the drawing, in pixels: between layers, between states, of a state."""


def layout_html(layout: Layout) -> str:
    """The layers: a small drawing where that can be read, and a table."""
    return card("Layout", _sizes(layout), drawing(layout), _layers(layout))


def policy_html(policy: Policy) -> str:
    """The probabilities of the actions in each state, the likely ones shaded."""
    return card("Policy", _sizes(policy.layout), policy_table(policy))


def cmdp_html(cmdp: CMDP, title: str = "") -> str:
    """The layout, the constraints, and what learners are told beforehand; `title` is what the world is called."""
    costs = f"costs: {cmdp.costs.kind}"
    parts = (line(title), drawing(cmdp.layout), _constraints(cmdp.view(), cmdp), _known(cmdp.view()))
    return card("World" if title else "CMDP", [*_sizes(cmdp.layout), costs], *parts, _folded_layers(cmdp.layout))


def view_html(view: View) -> str:
    """What a learner may know."""
    parts = drawing(view.layout), _constraints(view), _known(view), _folded_layers(view.layout)
    return card("View", _sizes(view.layout), *parts)


def policy_table(policy: Policy) -> str:
    """State by action: the probabilities, rounded; one that is not quite 0 is never shown as 0."""
    layout = policy.layout
    shown = min(layout.num_actions, MOST_ACTIONS)
    actions = [name(label) for label in (layout.action_labels or [f"action {a}" for a in range(shown)])[:shown]]
    head: list[str | HtmlCell] = ["state", "layer", *actions]

    def rows() -> Iterator[list[str | HtmlCell]]:
        for x in range(layout.num_decision_states):
            chances = policy.probabilities[x * layout.num_actions :][:shown]
            cells = [shaded(_chance(float(p)), float(p)) for p in chances]
            yield [state_cell(layout, x), str(layout.layer_of_state[x]), *cells]

    hidden = layout.num_actions - shown
    rest = line(f"… and {hidden:,} more actions, not shown") if hidden else ""
    return table(head, rows(), num_text=1, total=layout.num_decision_states, what="states") + rest


def state_cell(layout: Layout, state: int) -> HtmlCell:
    """The label of a state, or its number within its layer."""
    if layout.state_labels is not None:
        return name(layout.state_labels[state])
    return HtmlCell(f"{state - int(layout.state_start[layout.layer_of_state[state]])}")


def action_cell(layout: Layout, action: int) -> HtmlCell:
    """The label of an action, or its number."""
    return HtmlCell(str(action)) if layout.action_labels is None else name(layout.action_labels[action])


def limits_table(view: View, bounds: list[tuple[str, list[str | HtmlCell]]]) -> str:
    """One line per constraint: its name, its threshold, and columns (heading, cells) beside them."""
    head = ["constraint", "threshold", *(heading for heading, _ in bounds)]
    rows = (
        [name(label), number(float(alpha)), *(cells[i] for _, cells in bounds)]
        for i, (label, alpha) in enumerate(zip(view.constraint_names, view.thresholds, strict=True))
    )
    return table(head, rows, num_text=1, total=view.num_constraints, what="constraints")


def drawing(layout: Layout) -> str:
    """Layers from left to right, with a line wherever some action may lead; nothing for a layout that is large."""
    sizes = layout.layer_sizes
    if len(sizes) > MOST_DRAWN or max(sizes) > MOST_DRAWN:
        return ""
    width, height = _ACROSS * (len(sizes) - 1) + 40, _DOWN * max(sizes) + 8
    place = []
    for k, size in enumerate(sizes):
        top = (height - _DOWN * (size - 1)) / 2
        place += [(20 + _ACROSS * k, top + _DOWN * i) for i in range(size)]
    pairs = sorted(
        set(zip((layout.row_of_triple // layout.num_actions).tolist(), layout.successor.tolist(), strict=True))
    )
    lines = "".join(
        f'<line x1="{place[x][0]}" y1="{place[x][1]:g}" x2="{place[y][0]}" y2="{place[y][1]:g}"/>' for x, y in pairs
    )
    dots = "".join(
        f'<circle cx="{across}" cy="{down:g}" r="{_RADIUS}"><title>{_state_words(layout, x)}</title></circle>'
        for x, (across, down) in enumerate(place)
    )
    faint = ".3" if len(pairs) <= MANY_LINES else ".12"
    words = f"{len(sizes)} layers with {', '.join(map(str, sizes))} states"
    return (
        f'<svg role="img" aria-label="{words}" width="{width}" height="{height}" style="display:block;margin:4px 0">'
        f'<g stroke="currentColor" stroke-opacity="{faint}">{lines}</g>'
        f'<g fill="rgb(38,120,210)" fill-opacity=".75" stroke="currentColor" stroke-opacity=".6">{dots}</g></svg>'
    )


def _sizes(layout: Layout) -> list[str]:
    sizes = brief.counted(layout.steps, "step"), brief.counted(layout.num_states, "state")
    support = "full support" if layout.is_full else f"{layout.num_triples:,} of {layout.num_dense_triples:,} triples"
    return [*sizes, brief.counted(layout.num_actions, "action"), support]


def _state_words(layout: Layout, state: int) -> str:
    words, hint = state_cell(layout, state).words, state_cell(layout, state).hint
    return text(f"layer {layout.layer_of_state[state]}, state {hint or words}")


def _layers(layout: Layout) -> str:
    labelled = layout.state_labels is not None
    head = ["layer", *["states called"] * labelled, "states", "triples", "of"]

    def rows() -> Iterator[list[str | HtmlCell]]:
        dense = [here * layout.num_actions * there for here, there in pairwise(layout.layer_sizes)]
        for k, size in enumerate(layout.layer_sizes):
            last = k == layout.steps
            triples = layout.triples(k) if not last else slice(0, 0)
            numbers = ["-", "-"] if last else [f"{triples.stop - triples.start:,}", f"{dense[k]:,}"]
            yield [str(k), *[_called(layout, k)] * labelled, f"{size:,}", *numbers]

    actions = ""
    if layout.action_labels is not None:
        names = brief.listed(map(brief.quoted, layout.action_labels), 8, layout.num_actions)
        actions = line(f"actions: {names}")
    return table(head, rows(), num_text=1 + labelled, total=layout.steps + 1, what="layers") + actions


def _folded_layers(layout: Layout) -> str:
    return fold("layers", _layers(layout))


def _called(layout: Layout, k: int) -> str:
    labels = (layout.state_labels or ())[layout.states(k)]
    return brief.listed(map(brief.quoted, labels), 6, len(labels))


def _constraints(view: View, cmdp: CMDP | None = None) -> str:
    if not view.num_constraints:
        return line("no constraints")
    columns: list[tuple[str, list[str | HtmlCell]]] = [
        ("an episode costs at most", [number(float(most)) for most in view.ceilings]),
    ]
    if cmdp is not None:
        spans = zip(cmdp.mean_costs.min(axis=1), cmdp.mean_costs.max(axis=1), strict=True)
        columns.append(("mean cost of a pair", [f"{low:.3g} to {high:.3g}" for low, high in spans]))
    return limits_table(view, columns)


def _known(view: View) -> str:
    told: Knowledge = view.knowledge
    if not told:
        return ""
    lines = told.described(view.layout, view.constraint_names)
    return "".join(line(f"known beforehand: {words}") for words in lines[:8])


def _chance(p: float) -> str:
    rounded = f"{p:.3f}"
    return "0" if p == 0.0 else "1" if p == 1.0 else rounded if np.float64(rounded) not in (0.0, 1.0) else f"{p:.2g}"
