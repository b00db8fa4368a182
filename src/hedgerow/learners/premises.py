"""What happens when a learner finds that something it was told is false: say so, void its promises, stay safe.

The tests are those of `confidence/premises.py`. On the first refutation a learner warns once (`PremiseWarning`), its
ledger is void from then on and says why, and `on_refuted` decides how it goes on:

    stay    it leaves every further episode to its baseline, if it has one
    warn    it goes on as before
    raise   as "stay", and the call that found it raises a `PremiseError`; the episode has been learnt
"""

from __future__ import annotations

import warnings
from typing import Any

from hedgerow.checks import short_repr
from hedgerow.confidence.premises import (
    BASELINE,
    COSTS,
    LOGGED,
    NOTHING,
    SHARED_TRANSITIONS,
    TRANSITIONS,
    PremiseRule,
    Premises,
)
from hedgerow.errors import InvalidInput, PremiseError, PremiseWarning
from hedgerow.learners.guarantees import Ledger
from hedgerow.model.layout import Layout
from hedgerow.model.view import View

ON_REFUTED = ("stay", "warn", "raise")
"""What a learner can do"""
WITHOUT_BASELINE = ("confidence", "feasibility")
"""The promises that do not rest on what the baseline costs"""


def checked_response(on_refuted: Any) -> str:
    """`on_refuted`, if it is one of the three words."""
    if on_refuted not in ON_REFUTED:
        raise InvalidInput(f"on_refuted is {short_repr(on_refuted)}; choose one of {', '.join(ON_REFUTED)}")
    return str(on_refuted)


def announce(view: View, rule: PremiseRule, premises: Premises, on_refuted: str, *, mixes: bool) -> None:
    """Say what was refuted, the first time that this is called after it was.

    `mixes` says whether there is a baseline to stay with.
    """
    if premises.numbers.what == NOTHING or premises.numbers.said:
        return
    premises.numbers.said = 1
    found = refutation(view, rule, premises)
    if on_refuted == "raise":
        raise PremiseError(f"{found}; the promises of this learner are void: tell it the truth and begin again")
    goes_on = "leaves all further episodes to its baseline" if mixes and on_refuted == "stay" else "goes on as before"
    warnings.warn(
        f"{found}; the promises of this learner are void, and it {goes_on} (on_refuted={on_refuted!r})",
        PremiseWarning,
        stacklevel=4,
    )


def refutation(view: View, rule: PremiseRule, premises: Premises) -> str:
    """What was refuted, by what and when, in words; the empty string if nothing was."""
    numbers, figures, layout = premises.numbers, premises.figures, view.layout
    if numbers.what == NOTHING:
        return ""
    seen = f"between {figures.seen_low:.4g} and {figures.seen_high:.4g}"
    told = f"between {figures.told_low:.4g} and {figures.told_high:.4g}"
    when = f"after {numbers.episode} episodes"
    whose = f"{numbers.visits} {'logged' if numbers.stream == LOGGED else 'own'} visits"
    if numbers.what == BASELINE:
        name = view.constraint_names[numbers.column]
        return (
            f"{when}, the baseline costs {seen} of {name!r}, as its {numbers.visits} episodes show; it was told to "
            f"cost at most {figures.told_high:.4g}"
        )
    if numbers.what in (TRANSITIONS, SHARED_TRANSITIONS):
        what = f"the probability of {layout.describe_triple(numbers.where)}"
    else:
        what = f"the mean of {view.constraint_names[numbers.column]!r} in {layout.describe_row(numbers.where)}"
    if numbers.what in (COSTS, TRANSITIONS):
        return f"{when}, {what} lies {seen}, as {whose} show; it was told to be {figures.told_low:.4g}"
    return f"{when}, {what} lies {seen}, as {whose} show; {_elsewhere(layout, rule, premises)} say {told}"


def _elsewhere(layout: Layout, rule: PremiseRule, premises: Premises) -> str:
    """Who says something else: rows that were told to share the law, or the other stream."""
    numbers = premises.numbers
    moves = numbers.what == SHARED_TRANSITIONS
    row = int(layout.row_of_triple[numbers.where]) if moves else numbers.where
    at = rule.moves_at if moves else rule.costs_at
    parts = []
    if (at == at[row]).sum() > 1:
        parts.append("the rows that were told to share its law")
    if numbers.beside_logs:
        parts.append("the own episodes" if numbers.stream == LOGGED else "the logs")
    return " and ".join(parts)


def as_refuted(ledger: Ledger, view: View, rule: PremiseRule, premises: Premises) -> Ledger:
    """The ledger as it stands after what was seen: void where it rests on something that was refuted."""
    reason = refutation(view, rule, premises)
    if not reason:
        return ledger
    spared = WITHOUT_BASELINE if premises.numbers.what == BASELINE else ()
    return ledger.voided(f"refuted: {reason}", but=spared)
