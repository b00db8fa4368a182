"""Forecasts that `check` prints for S-OPS: lambda against episodes, what keeps it large, what knowledge would help."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hedgerow.display.numbers import fixed, percent, whole
from hedgerow.display.screen import Screen
from hedgerow.display.table import Table, TableCell
from hedgerow.errors import InvalidInput

if TYPE_CHECKING:
    from hedgerow.forecast.summary import BaselineForecast
    from hedgerow.model.view import View

EXPLAINED = (
    "from: every episode explores, and the own policy is the one above. to: only the episodes of the own policy "
    "explore, and it is as optimistic as S-OPS may be: it costs as much as its bounds do not notice. Of runs in six "
    "worlds four were between the two, one a little below and one above (docs/sweeps.md). The aggregate "
    "certificate of `sharpest` is left out; it can only help."
)


# The data -------------------------------------------------------------------------------------------------------------


def examine_view(
    problem: str, view: View, told: str | None, log: str | None, episodes: int, delta: float
) -> dict[str, Any]:
    """Everything that `check` shows about a view, as plain data."""
    from hedgerow import forecast
    from hedgerow.forecast import preflight
    from hedgerow.forecast.preflight import assumed_baseline

    baseline = told_baseline(view, told, assumed_baseline(view))
    return {
        "problem": problem,
        "kind": "view",
        "hash": view.content_hash,
        **preflight.sizes(view.layout),
        "known": view.knowledge.described(view.layout, view.constraint_names),
        "forecast": forecast.forecast(view, forecast.assumed_model(view), baseline, episodes, delta),
        "log": examine_log(view, log, baseline, episodes, delta),
    }


def examine_log(
    view: View, log: str | None, baseline: BaselineForecast, episodes: int, delta: float
) -> dict[str, Any] | None:
    """The value of a log, if there is one."""
    if log is None:
        return None
    from hedgerow.forecast.summary import log_value

    return log_value(view, log, baseline.costs, episodes, delta)


def told_baseline(view: View, told: str | None, otherwise: BaselineForecast) -> BaselineForecast:
    """The baseline with the costs of `--baseline-costs name=value,...`; the other costs are those of `otherwise`."""
    if not told:
        return otherwise
    import numpy as np

    from hedgerow.forecast.summary import BaselineForecast
    from hedgerow.learners.api import checked_baseline_costs

    beta = np.array(otherwise.costs)
    given = parsed_costs(told, view.constraint_names)
    for name, value in given.items():
        beta[view.constraint_names.index(name)] = value
    missing = [name for name in view.constraint_names if name not in given]
    words = "as told" + (f"; for {', '.join(map(repr, missing))} {otherwise.words}" if missing else "")
    return BaselineForecast(np.array(checked_baseline_costs(view, beta, allow_no_margin=False)), words)


def parsed_costs(told: str, names: tuple[str, ...]) -> dict[str, float]:
    """NAME=VALUE, separated by commas; a number alone is enough where there is one constraint."""
    from hedgerow.checks import did_you_mean, short_repr

    found: dict[str, float] = {}
    for piece in told.split(","):
        name, equals, value = (part.strip() for part in piece.rpartition("="))
        if not equals and len(names) == 1:
            name = names[0]
        if name not in names:
            reason = (
                f"there is no constraint {short_repr(name)}{did_you_mean(name, names)}" if name else "it names nothing"
            )
            raise InvalidInput(f"--baseline-costs {short_repr(piece.strip())} is not NAME=VALUE: {reason}")
        try:
            found[name] = float(value)
        except ValueError as error:
            raise InvalidInput(
                f"--baseline-costs {short_repr(piece.strip())}: {short_repr(value)} is not a number"
            ) from error
    return found


# What is printed ------------------------------------------------------------------------------------------------------


def print_view(out: Screen, found: dict[str, Any]) -> None:
    out.line()
    out.line(f"{found['problem']}: what a learner knows of a world; nothing here has been simulated", style="bold")
    out.line(
        f"layers {found['layers']}: {found['steps']} steps, {found['states']} states, {found['actions']} actions, "
        f"{found['rows']} rows (x, a), {found['triples']} triples (x, a, x')"
        + ("" if found["full_support"] else ", known sparse support")
    )
    print_known(out, found["known"])
    print_forecast(out, found["forecast"])
    if found["log"] is not None:
        print_log(out, found["log"])


def print_known(out: Screen, known: list[str]) -> None:
    out.line(f"known beforehand: {'; '.join(known) if known else 'nothing beyond the layout and the thresholds'}")


def print_forecast(out: Screen, found: dict[str, Any]) -> None:
    out.line()
    out.line("How much S-OPS would leave to its baseline", style="bold")
    if not found["constraints"]:
        out.line(f"verdict: {found['verdict']}")
        return
    for what, words in found["model"].items():
        out.line(f"  {what}: {words}")
    out.line(f"  baseline: {found['baseline']}")
    out.line()
    _print_thresholds(out, found)
    _print_marks(out, found)
    out.line(EXPLAINED)
    out.line()
    _print_constraints(out, found)
    if found["rows"]:
        _print_rows(out, found)
    if found["wishes"]:
        _print_wishes(out, found)
    out.line(f"verdict: {found['verdict']}", style="bold")
    out.line()


def _print_marks(out: Screen, found: dict[str, Any]) -> None:
    title = f"lambda, the probability of the baseline, after t episodes (delta = {found['delta']:g}, lambda_0 = "
    title += f"{found['lambda_0']:.3f})"
    listed = Table(title, ["t", "sharpest, from", "to", "sharp, from", "to"])
    for mark in found["marks"]:
        weights = [mark[preset][end] for preset in ("sharpest", "sharp") for end in ("least", "most")]
        tone = "strong" if mark["episodes"] == found["episodes"] else ""
        cells = [f"{mark['episodes']:,}", *(fixed(weight, 3) for weight in weights)]
        listed.add_row(*(TableCell(cell, tone=tone) for cell in cells))
    out.table(listed)


def _print_thresholds(out: Screen, found: dict[str, Any]) -> None:
    title = "thresholds; ceiling: the most that an episode can cost"
    listed = Table(title, ["constraint", "threshold", "ceiling", "baseline", "its margin"])
    for entry in found["constraints"]:
        margin = entry["threshold"] - entry["baseline_cost"]
        numbers = entry["threshold"], entry["ceiling"], entry["baseline_cost"], margin
        listed.add_row(entry["name"], *(fixed(value, 4) for value in numbers))
    out.table(listed)


def _print_constraints(out: Screen, found: dict[str, Any]) -> None:
    title = f"what keeps lambda up at t = {found['episodes']:,}: the bound is the own cost + three causes"
    listed = Table(title, ["constraint", "own cost", "+ costs", "+ transitions", "+ cross", "= bound", "lambda"])
    for entry in found["constraints"]:
        keys = ("own_cost", "costs", "transitions", "cross", "bound")
        listed.add_row(entry["name"], *(fixed(entry[key], 4) for key in keys), fixed(entry["lambda"], 3))
    out.table(listed)


def _print_rows(out: Screen, found: dict[str, Any]) -> None:
    title = f"pairs that keep lambda up most, through {found['worst']!r}"
    listed = Table(title, ["pair", "share", "by costs", "by transitions", "visits"])
    for row in found["rows"]:
        share, visits = percent(row["share"]), whole(row["visits"])
        listed.add_row(row["pair"], share, fixed(row["costs"], 4), fixed(row["transitions"], 4), visits)
    out.table(listed)


def _print_wishes(out: Screen, found: dict[str, Any]) -> None:
    listed = Table(f"if you knew ..., lambda at t = {found['episodes']:,} would be ...", ["if you knew", "from", "to"])
    listed.add_row("what you know now", fixed(found["last"]["least"], 3), fixed(found["last"]["most"], 3))
    for wish in found["wishes"]:
        listed.add_row(wish["knowledge"], fixed(wish["least"], 3), fixed(wish["most"], 3))
    out.table(listed)


def print_log(out: Screen, found: dict[str, Any]) -> None:
    """Print the value of a log."""
    size = "" if found["episodes"] is None else f" ({found['episodes']:,} episodes)"
    out.line(f"The log {found['file']}{size}", style="bold")
    listed = Table("counts of pairs (x, a)", ["", "least", "median", "most"])
    for name, key in (("visits", "visits"), ("visits whose costs count", "cost_visits")):
        listed.add_row(name, *(f"{found[key][end]:,}" for end in ("least", "median", "most")))
    out.table(listed)
    unseen = found["never_visited"]
    if unseen:
        more = "; ..." if found["rows_never_visited"] > len(unseen) else ""
        count = f"{found['rows_never_visited']} of {found['rows']} pairs are not in the log"
        out.line(f"{count}, and nothing is known of them: {'; '.join(unseen)}{more}")
    out.line(
        f"lambda of S-OPS (sharpest) in its first episode: {found['lambda_without']:.3f} without the log, "
        f"{found['lambda_with']:.3f} with it"
    )
    out.line()


def print_baselines(out: Screen, choices: list[dict[str, Any]]) -> None:
    """Print the choices of a baseline."""
    listed = Table("safe policies that a learner could be given", ["policy", "loss", "smallest margin"])
    for choice in choices:
        listed.add_row(choice["policy"], fixed(choice["loss"]), fixed(choice["margin"]))
    out.table(listed)
    out.line(
        "These were computed from the true world; you would have a policy that you know to be safe. If the losses to "
        "come are like this one, then for 10^5 episodes or less give the policy of the smallest loss, not the one of "
        "the largest margin; if they are nothing like it, the margin counts (docs/choose-a-learner.md)."
    )
    out.line()
