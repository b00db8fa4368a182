"""What objects show in a notebook: a line of facts, tables that end, and a small drawing of a layout.

It has to work wherever the notebook is opened: no script, no network, no style sheet. Everything is inline, colours are
inherited or half transparent so that light and dark pages both can be read, and text is escaped (`text.Html`).
Tables stop after `MOST_ROWS` rows and say how many follow. Objects are read by their attributes; `_repr_html_` imports
this module inside the function (`text` says why).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice, pairwise
from typing import Any

import numpy as np

from hedgerow.display.numbers import PAGE, count_of
from hedgerow.display.table import Table, TableCell, Words
from hedgerow.display.text import Html, counted, listed, quoted, visible

MOST_ROWS = 20
"""Of a table."""
LONGEST_NAME = 48
"""Characters of a name in a cell; the whole of it appears when the pointer rests there."""
MOST_ACTIONS = 10
"""Columns of a policy."""
MOST_CONSTRAINTS = 4
"""Columns of estimates."""
MOST_DRAWN = 12
"""Layers, and states of one, of a layout that is drawn."""
MANY_LINES = 60
"""More lines than these are drawn more faintly."""
CHECKPOINTS = 5
"""Rows of the table of a run."""
SMALL_RESIDUAL = 1e-9
"""Residuals up to this are rounding: what every projection of this package stays below."""
RESIDUALS = {
    "mass": "each layer has probability 1",
    "flow": "what flows into a state flows out of it",
    "boxes": "the transitions lie in their boxes",
    "costs": "the constraints are respected",
    "complementarity": "a constraint has a price only where it binds",
    "stationarity": "the point has the exponential form of its multipliers",
    "gap": "nothing that is allowed is nearer: duality gap, relative",
    "absolute_gap": "the same, absolute: an upper bound of D(q ‖ q*)",
}
"""The attributes of a certificate, and what 0 means."""
_ACROSS, _DOWN, _RADIUS = 64, 22, 6
"""Of the drawing, in pixels: between layers, between states, of a state."""
_CARD = "font:13px/1.5 system-ui,sans-serif;color:inherit;margin:2px 0 8px;overflow-x:auto;max-width:100%"
_FAINT = "opacity:.75"

Row = Sequence[Words | TableCell]


# Pieces ---------------------------------------------------------------------------------------------------------------


def card(kind: str, facts: Iterable[str], *parts: Html) -> Html:
    """What an object shows: its kind, a few facts in one line, then `parts`."""
    said = Html(" · ").join(fact for fact in facts if fact)
    between = Html(' <span style="{}">{}</span>').format(_FAINT, said) if said else ""
    return Html('<div style="{}"><div><b>{}</b>{}</div>{}</div>').format(_CARD, kind, between, Html().join(parts))


def line(words: object) -> Html:
    """A sentence between tables."""
    return Html('<div style="{}">{}</div>').format(_FAINT, words) if str(words) else Html()


def fold(summary: str, content: Html) -> Html:
    """Something that is opened by a click."""
    inside = Html('<summary style="cursor:pointer">{}</summary>{}').format(summary, content)
    return Html('<details style="margin:4px 0">{}</details>').format(inside) if content else Html()


def table(
    head: Sequence[str | TableCell], rows: Iterable[Row], num_text: int = 0, total: int | None = None, what: str = ""
) -> Html:
    """The first `MOST_ROWS` rows, and how many of all `total` follow; `what` a row is about is a plural.

    Rows are read as far as they are shown, or counted if `total` is None; without any there is no table.
    """
    made, remaining = Table("", head, num_text), iter(rows)
    for row in islice(remaining, MOST_ROWS):
        made.add_row(*row)
    more = sum(1 for _ in remaining) if total is None else total - len(made.rows)
    rest = line(f"… and {more:,} more {what}".rstrip()) if more > 0 else ""
    return Html("{}{}").format(made.to_notebook(), rest) if made.rows else Html()


def name(label: object) -> TableCell:
    """A name, cut where it is long."""
    words = visible(label)
    short = len(words) <= LONGEST_NAME
    return TableCell(words) if short else TableCell(f"{words[: LONGEST_NAME - 1]}…", hint=words[:1000])


def verdict(fine: bool, yes: str = "yes", no: str = "no") -> TableCell:
    """Whether something is fine."""
    return TableCell(yes, tone="good") if fine else TableCell(no, tone="bad")


# Layouts, policies, worlds and views ----------------------------------------------------------------------------------


def layout_html(layout: Any) -> str:
    """The layers: a small drawing where that can be read, and a table."""
    return card("Layout", _sizes(layout), drawing(layout), _layers(layout))


def policy_html(policy: Any) -> str:
    """The probabilities of the actions in each state, the likely ones shaded."""
    return card("Policy", _sizes(policy.layout), policy_table(policy))


def cmdp_html(cmdp: Any, title: str = "") -> str:
    """The layout, the constraints, and what learners know beforehand; `title` is what the world is called."""
    means = cmdp.mean_costs
    spans = [f"{low:.3g} to {high:.3g}" for low, high in zip(means.min(axis=1), means.max(axis=1), strict=True)]
    parts = line(title), *_world(cmdp.view(), [("mean cost of a pair", spans)])
    return card("World" if title else "CMDP", [*_sizes(cmdp.layout), f"costs: {cmdp.costs.kind}"], *parts)


def view_html(view: Any) -> str:
    """What a learner may know."""
    return card("View", _sizes(view.layout), *_world(view, []))


def _world(view: Any, columns: list[tuple[str, Sequence[Words | TableCell]]]) -> list[Html]:
    """Drawing, constraints with `columns` beside them, knowledge, and the layers, folded."""
    limits = line("no constraints")
    if view.num_constraints:
        limits = limits_table(view, [("an episode costs at most", _numbers(view.ceilings)), *columns])
    known = view.knowledge.described(view.layout, view.constraint_names) if view.knowledge else []
    lines = Html().join(line(f"known beforehand: {words}") for words in known[:8])
    return [drawing(view.layout), limits, lines, fold("layers", _layers(view.layout))]


def policy_table(policy: Any) -> Html:
    """State by action: the probabilities, rounded; one that is not quite 0 is never shown as 0."""
    layout = policy.layout
    shown = min(layout.num_actions, MOST_ACTIONS)
    actions = [name(label) for label in (layout.action_labels or [f"action {a}" for a in range(shown)])[:shown]]

    def row(x: int) -> Row:
        chances = policy.probabilities[x * layout.num_actions :][:shown].tolist()
        return [
            state_cell(layout, x),
            str(layout.layer_of_state[x]),
            *(TableCell(_chance(p), shade=p) for p in chances),
        ]

    count, hidden = layout.num_decision_states, layout.num_actions - shown
    rest = line(f"… and {hidden:,} more actions, not shown") if hidden else ""
    states = table(["state", "layer", *actions], map(row, range(count)), 1, count, "states")
    return Html("{}{}").format(states, rest)


def state_cell(layout: Any, state: int) -> TableCell:
    """The label of a state, or its number within its layer."""
    if layout.state_labels is not None:
        return name(layout.state_labels[state])
    return TableCell(f"{state - int(layout.state_start[layout.layer_of_state[state]])}")


def limits_table(view: Any, columns: list[tuple[str, Sequence[Words | TableCell]]]) -> Html:
    """One line per constraint: its name, its threshold, and columns (heading, cells) beside them."""
    head = ["constraint", "threshold", *(heading for heading, _ in columns)]
    rows = (
        [name(label), PAGE.number(float(alpha)), *(cells[i] for _, cells in columns)]
        for i, (label, alpha) in enumerate(zip(view.constraint_names, view.thresholds, strict=True))
    )
    return table(head, rows, 1, view.num_constraints, "constraints")


def drawing(layout: Any) -> Html:
    """Layers from left to right, with a line wherever some action may lead; nothing for a layout that is large."""
    sizes = layout.layer_sizes
    if len(sizes) > MOST_DRAWN or max(sizes) > MOST_DRAWN:
        return Html()
    width, height = _ACROSS * (len(sizes) - 1) + 40, _DOWN * max(sizes) + 8
    place = []
    for k, size in enumerate(sizes):
        top = (height - _DOWN * (size - 1)) / 2
        place += [(20 + _ACROSS * k, top + _DOWN * i) for i in range(size)]
    moves = zip((layout.row_of_triple // layout.num_actions).tolist(), layout.successor.tolist(), strict=True)
    pairs = sorted(set(moves))
    stroke = Html('<line x1="{}" y1="{:g}" x2="{}" y2="{:g}"/>')
    dot = Html('<circle cx="{}" cy="{:g}" r="{}"><title>layer {}, state {}</title></circle>')
    cells = [state_cell(layout, x) for x in range(len(place))]
    dots = (
        dot.format(*place[x], _RADIUS, layout.layer_of_state[x], cell.hint or cell.words)
        for x, cell in enumerate(cells)
    )
    return Html(
        '<svg role="img" aria-label="{} layers with {} states" width="{}" height="{}" style="display:block;'
        'margin:4px 0"><g stroke="currentColor" stroke-opacity="{}">{}</g>'
        '<g fill="rgb(38,120,210)" fill-opacity=".75" stroke="currentColor" stroke-opacity=".6">{}</g></svg>'
    ).format(
        len(sizes),
        ", ".join(map(str, sizes)),
        width,
        height,
        ".3" if len(pairs) <= MANY_LINES else ".12",
        Html().join(stroke.format(*place[x], *place[y]) for x, y in pairs),
        Html().join(dots),
    )


def _sizes(layout: Any) -> list[str]:
    sizes = counted(layout.steps, "step"), counted(layout.num_states, "state"), counted(layout.num_actions, "action")
    support = "full support" if layout.is_full else f"{layout.num_triples:,} of {layout.num_dense_triples:,} triples"
    return [*sizes, support]


def _layers(layout: Any) -> Html:
    labelled = layout.state_labels is not None
    dense = [here * layout.num_actions * there for here, there in pairwise(layout.layer_sizes)]

    def row(k: int) -> Row:
        labels = layout.state_labels[layout.states(k)] if labelled else ()
        called = [listed(map(quoted, labels), 6, len(labels))] * labelled
        triples = layout.triples(k) if k < layout.steps else None
        sizes = ["-", "-"] if triples is None else [f"{triples.stop - triples.start:,}", f"{dense[k]:,}"]
        return [str(k), *called, f"{layout.layer_sizes[k]:,}", *sizes]

    count = layout.steps + 1
    head = ["layer", *["states called"] * labelled, "states", "triples", "of"]
    layers = table(head, map(row, range(count)), 1 + labelled, count, "layers")
    if layout.action_labels is None:
        return layers
    actions = listed(map(quoted, layout.action_labels), 8, layout.num_actions)
    return Html("{}{}").format(layers, line(f"actions: {actions}"))


def _chance(p: float) -> str:
    rounded = f"{p:.3f}"
    return f"{p:g}" if p in (0.0, 1.0) else rounded if float(rounded) not in (0.0, 1.0) else f"{p:.2g}"


def _numbers(values: Iterable[Any]) -> list[str]:
    return [PAGE.number(float(value)) for value in values]


# Estimates and certificates -------------------------------------------------------------------------------------------


def estimates_html(estimates: Any) -> str:
    """Pairs with the bounds of their mean costs, then, folded, moves with the bounds of their probabilities."""
    layout, unseen = estimates.view.layout, int(np.sum(estimates.visits == 0))
    facts = [
        f"after {counted(estimates.episode, 'episode')}",
        counted(layout.num_rows, "pair"),
        f"{unseen:,} never visited" if unseen else "all visited",
    ]
    hint = line("mean [lower, upper]; as Arrow tables: .rows and .moves")
    moves = fold(counted(layout.num_triples, "move"), _moves(estimates, layout))
    return card("Estimates", facts, _pairs(estimates, layout), moves, hint)


def _pairs(estimates: Any, layout: Any) -> Html:
    shown, most = min(len(estimates.names), MOST_CONSTRAINTS), max(1, int(estimates.visits.max(initial=0)))

    def cost(r: int, i: int) -> str:
        bounds = float(estimates.cost_lower[r, i]), float(estimates.cost_upper[r, i])
        return _estimate(float(estimates.mean_costs[r, i]), *bounds, bool(estimates.known_costs[r, i]))

    def row(r: int) -> Row:
        visits, shared = int(estimates.visits[r]), int(estimates.visits_shared_by[r])
        words = f"{visits:,}" + f" (shared by {shared})" * (shared > 1)
        return [*_place(layout, r), TableCell(words, shade=visits / most), *(cost(r, i) for i in range(shown))]

    head: list[str | TableCell] = ["layer", "state", "action", "visits", *map(name, estimates.names[:shown])]
    hidden = len(estimates.names) - shown
    rest = line(f"… and {hidden} more constraints, not shown") if hidden else ""
    return Html("{}{}").format(table(head, map(row, range(layout.num_rows)), 3, layout.num_rows, "pairs"), rest)


def _moves(estimates: Any, layout: Any) -> Html:
    def row(j: int) -> Row:
        pair = int(layout.row_of_triple[j])
        bounds = float(estimates.lower[j]), float(estimates.upper[j])
        chance = _estimate(float(estimates.p_hat[j]), *bounds, bool(estimates.known_transitions[pair]))
        target = state_cell(layout, int(layout.successor[j]))
        return [*_place(layout, pair), target, f"{int(estimates.counts[j]):,}", chance]

    head = ["layer", "state", "action", "next state", "count", "probability"]
    return table(head, map(row, range(layout.num_triples)), 4, layout.num_triples, "moves")


def _place(layout: Any, row: int) -> list[str | TableCell]:
    state, action = divmod(row, layout.num_actions)
    labels = layout.action_labels
    called = str(action) if labels is None else name(labels[action])
    return [str(layout.layer_of_state[state]), state_cell(layout, state), called]


def _estimate(value: float, lower: float, upper: float, known: bool) -> str:
    if known:
        return f"{lower:.3g} known"
    return f"{'' if np.isnan(value) else f'{value:.3g} '}[{lower:.3g}, {upper:.3g}]"


def certificate_html(certificate: Any) -> str:
    """Each residual, what it means, and whether it is small enough."""

    def row(key: str) -> Row:
        value = float(getattr(certificate, key))
        fine = verdict(abs(value) <= SMALL_RESIDUAL) if key != "absolute_gap" else "-"
        return [key.replace("_", " "), RESIDUALS[key], f"{value:.2g}", fine]

    exact = certificate.worst <= SMALL_RESIDUAL
    answer = "every residual is rounding" if exact else "this is not the projection, to within rounding"
    residuals = table(["residual", "0 means", "value", "fine"], map(row, RESIDUALS), 2)
    facts = [f"worst {certificate.worst:.2g}", answer]
    return card("Certificate", facts, residuals, line(f"fine: at most {SMALL_RESIDUAL:g}"))


# Learners, plans and ledgers ------------------------------------------------------------------------------------------


def ledger_html(ledger: Any) -> str:
    """Each promise: how surely it is kept, whether it holds, and by which theorem; then what all of them rest on."""

    def row(promise: Any) -> Row:
        status = verdict(promise.holds, "holds", promise.status)
        statement = f"{promise.statement}{promise.assumes and f' (assumes {promise.assumes})'}"
        return [name(promise.name), statement, status, promise.source, f"≥ {promise.probability:.4g}"]

    head = ["promise", "what", "status", "by", "probability"]
    holding = f"{count_of(sum(promise.holds for promise in ledger), len(ledger))} promises hold"
    assumed = Html().join(line(f"rests on: {statement}") for statement in ledger.assumptions)
    return card("Ledger", [ledger.learner, holding], table(head, map(row, ledger), 4, len(ledger)), assumed)


def plan_html(plan: Any) -> str:
    """The coin, the bounds of the costs beside the thresholds, and the policy that is to be played."""
    episode, branch = getattr(plan, "episode", None), getattr(plan, "branch", None)
    facts = []
    if episode is not None:
        facts.append(f"episode {episode:,}, counted from 0")
    if branch is not None:
        facts.append(f"plays {'its own policy' if branch == 'own' else 'the baseline'}")
    if "mixing_weight" in plan.notes:
        facts.append(f"mixing weight λ = {plan.notes['mixing_weight']:.4g}")
    elif hasattr(plan.mixture, "draw"):
        facts.append(f"chosen from {plan.mixture!r}")
    played = line("the policy to play, to the end of the episode:"), policy_table(plan.policy)
    return card("Plan", facts, _bounds(plan), *played)


def _bounds(plan: Any) -> Html:
    """Bounds of the costs where the plan has them; otherwise what it notes."""
    view, upper = getattr(plan, "view", None), getattr(plan, "cost_bounds", None)
    if view is None or upper is None:
        notes = [item for item in plan.notes.items() if item[0] != "mixing_weight"]
        return table(["note", "value"], ([name(key), PAGE.number(value)] for key, value in notes), 1)
    if not view.num_constraints:
        return Html()
    bounds = [float(bound) for bound in upper]
    kept = ["yes" if u <= a else "not proven" for u, a in zip(bounds, view.thresholds.tolist(), strict=True)]
    return limits_table(view, [("expected cost at most", _numbers(bounds)), ("within", kept)])


def learner_html(learner: Any, how: str) -> str:
    """What it is, `how` it learns, how far it is, and on what view; nothing that has to wait for its turn."""
    limit = "no limit" if learner.episodes is None else f"{learner.episodes:,}"
    facts = [how, f"episode {learner.episode:,} of {limit}"]
    facts += [f"δ = {learner.delta:g}", f"seed {learner.seed}"] if learner.inputs.delta else []
    view = learner.view
    limits = limits_table(view, []) if view.num_constraints else line("no constraints")
    return card(type(learner).__name__, facts, drawing(view.layout), limits)


# Runs and results -----------------------------------------------------------------------------------------------------


def run_html(run: Any) -> str:
    """The scores at about five checkpoints, spread evenly over the logarithm of the episodes."""
    learner, layout = run.learner, run.learner.view.layout
    preset = getattr(getattr(learner, "settings", None), "preset", "")
    facts = [
        f"{run.learner_name}{f' ({preset})' if preset else ''}",
        counted(int(run.episodes[-1]), "episode") if len(run.episodes) else "no checkpoint reached",
        ", ".join(_sizes(layout)[:3]),
        f"seed {run.seed}",
        f"{run.way}, {run.seconds:.3g} s",
    ]
    if not len(run.episodes):
        return card("Run", facts)
    if run.scored != "exact":
        unknown = line("sampled: the true transitions and costs are unknown, so nothing is scored")
        return card("Run", facts, _observed(run), unknown)
    return card("Run", facts, _scores(run), _costs(run), line(_answer(run)))


def _scores(run: Any) -> Html:
    curves, safe = (run.loss, run.regret, run.violation), run.safe

    def row(c: int) -> Row:
        scores = _numbers(values[c] for values in curves)
        return [f"{int(run.episodes[c]):,}", *scores, f"{int(run.unsafe[c]):,}", verdict(bool(safe[c]))]

    return table(["episodes", "loss", "regret", "violation", "unsafe episodes", "safe so far"], map(row, _places(run)))


def _costs(run: Any) -> Html:
    """What each constraint came to: the mean cost of an episode and the worst excess, both before the coin."""
    view = run.learner.view
    if not view.num_constraints:
        return Html()
    columns: list[tuple[str, Sequence[Words | TableCell]]] = [
        ("mean cost of an episode", _numbers(run.costs[-1] / run.episodes[-1])),
        ("most of any episode", _numbers(run.worst[-1] + view.thresholds)),
        ("violation", _numbers(run.violations[-1])),
    ]
    return limits_table(view, columns)


def _answer(run: Any) -> str:
    if not run.learner.view.num_constraints:
        return "no constraints"
    if bool(run.safe[-1]):
        return "safe: every episode respected every constraint in expectation"
    share = 100.0 * run.unsafe[-1] / run.episodes[-1]
    return f"not safe: {int(run.unsafe[-1]):,} episodes ({share:.3g} %) violated a constraint in expectation"


def _observed(run: Any) -> Html:
    names = [key for key in run.notes if key.startswith("observed_")][:8]
    rows = ([f"{int(run.episodes[c]):,}", *_numbers(run.notes[key][c] for key in names)] for c in _places(run))
    return table(["episodes", *(key.replace("_", " ") for key in names)], rows)


def _places(run: Any) -> list[int]:
    """About `CHECKPOINTS` of the checkpoints, the last one among them."""
    wanted = np.geomspace(1.0, float(run.episodes[-1]), 2 * CHECKPOINTS - 1)[::2]
    places = np.unique(np.clip(np.searchsorted(run.episodes, wanted), 0, len(run.episodes) - 1))
    return [int(place) for place in places]


def results_html(results: Any, heads: Iterable[str], cells: Iterable[Sequence[TableCell]], about: str) -> str:
    """One line per learner and setting: the `cells` of each, under these `heads`; `about` says what they are."""
    missing = len(results.cells) - len(results.done)
    failed = sum(cell.status == "failed" for cell in results.cells)
    facts = [
        visible(results.title)[:LONGEST_NAME],
        f"{len(results.done):,} of {counted(len(results.cells), 'cell')} done",
        "" if results.directory is None else str(results.directory),
    ]
    groups = results.groups if results.done else []
    head = ["learner", "world", "adversary", "episodes", "seeds", *heads]
    rows = ([*_who(group), *numbers] for group, numbers in zip(groups, cells, strict=True))
    shown = table(head, rows, 3, len(groups), "groups")
    rest = line(f"{failed:,} failed, {missing - failed:,} missing" if missing else "")
    return card("Results", facts, rest, shown or line("no finished cell"), line(about) if shown else Html())


def _who(group: Any) -> Row:
    names = group.learner, group.setting.world, group.setting.adversary
    return [*map(name, names), f"{group.setting.episodes:,}", f"{len(group.cells):,}"]
