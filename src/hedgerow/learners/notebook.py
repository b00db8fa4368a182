"""What plans, ledgers and learners show in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.display.html import HtmlCell, card, line, name, number, table, verdict
from hedgerow.learners.api import Plan
from hedgerow.learners.guarantees import Ledger, Promise
from hedgerow.model.notebook import drawing, limits_table, policy_table
from hedgerow.model.policy import Mixture

if TYPE_CHECKING:
    from hedgerow.learners.base import BaseLearner


def ledger_html(ledger: Ledger) -> str:
    """Each promise: how surely it is kept, whether it holds, and by which theorem; then what all of them rest on."""

    def row(promise: Promise) -> list[str | HtmlCell]:
        status = verdict(promise.holds, "holds", promise.status)
        statement = f"{promise.statement}{promise.assumes and f' (assumes {promise.assumes})'}"
        return [name(promise.name), statement, status, promise.source, f"≥ {promise.probability:.4g}"]

    head = ["promise", "what", "status", "by", "probability"]
    promises = table(head, map(row, ledger), num_text=4, total=len(ledger))
    told = "".join(line(f"rests on: {statement}") for statement in ledger.rests_on)
    return card("Ledger", [ledger.learner, _holding(ledger)], promises, told)


def plan_html(plan: Plan) -> str:
    """The coin, the bounds of the costs beside the thresholds, and the policy that is to be played."""
    episode, branch = getattr(plan, "episode", None), getattr(plan, "branch", None)
    facts: list[object] = []
    if episode is not None:
        facts.append(f"episode {episode:,}, counted from 0")
    if branch is not None:
        facts.append(f"plays its {'own policy' if branch == 'own' else 'baseline'}")
    if "mixing_weight" in plan.notes:
        facts.append(f"mixing weight λ = {plan.notes['mixing_weight']:.4g}")
    elif isinstance(plan.mixture, Mixture):
        facts.append(f"chosen from {plan.mixture!r}")
    played = line("the policy to play, to the end of the episode:") + policy_table(plan.policy)
    return card("Plan", facts, _bounds(plan), _notes(plan), played)


def learner_html(learner: BaseLearner, how: str) -> str:
    """What it is, `how` it learns, how far it is, and on what view; nothing that has to wait for its turn."""
    limit = "no limit" if learner.episodes is None else f"{learner.episodes:,}"
    facts = [how, f"episode {learner.episode:,} of {limit}"]
    facts += [f"δ = {learner.delta:g}", f"seed {learner.seed}"] if learner.told.delta else []
    view, limits = learner.view, line("no constraints")
    if view.num_constraints:
        limits = limits_table(view, [])
    return card(type(learner).__name__, facts, drawing(view.layout), limits)


def _holding(ledger: Ledger) -> str:
    return f"{sum(promise.holds for promise in ledger)} of {len(ledger)} promises hold"


def _bounds(plan: Plan) -> str:
    view, upper_bounds = getattr(plan, "view", None), getattr(plan, "cost_bounds", None)
    if view is None or upper_bounds is None or not view.num_constraints:
        return ""
    bounds = [float(bound) for bound in upper_bounds]
    alphas = view.thresholds.tolist()
    kept: list[str | HtmlCell] = [
        HtmlCell("yes") if u <= a else HtmlCell("not proven") for u, a in zip(bounds, alphas, strict=True)
    ]
    upper: list[str | HtmlCell] = [number(bound) for bound in bounds]
    return limits_table(view, [("expected cost at most", upper), ("within", kept)])


def _notes(plan: Plan) -> str:
    shown = {"mixing_weight"} if getattr(plan, "cost_bounds", None) is None else set(plan.notes)  # all are above
    rest = [(key, value) for key, value in plan.notes.items() if key not in shown]
    return table(["note", "value"], ([name(key), number(value)] for key, value in rest), num_text=1, total=len(rest))
