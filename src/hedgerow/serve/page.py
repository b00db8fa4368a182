"""The page of a live journal, and its numbers for Prometheus.

The page is made by the service on every request, needs no script and refreshes itself. `hedgerow journal page` writes
the same page from the database, while the service runs or after it has ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from hedgerow.journal import audit
from hedgerow.journal.journal import status_of

if TYPE_CHECKING:
    from jinja2 import Template

    from hedgerow.serve.writer import Writer

WIDTH, HEIGHT = 640.0, 120.0


@cache
def _template() -> Template:
    loader = PackageLoader("hedgerow.serve")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined).get_template("live.html")


def live_page(status: Mapping[str, Any], latest: Sequence[Mapping[str, Any]], *, refresh: int = 5) -> str:
    """The page as HTML; `refresh` seconds until it is asked for again, 0 for never."""
    rows = [_limit(name, status) for name in status["thresholds"]]
    lines = [_line(status["history"], "baseline", 1.0)]
    lines += [_line(status["history"], name, limit) for name, limit in status["thresholds"].items()]
    return _template().render(
        status=status, rows=rows, latest=latest, refresh=refresh, verdict=verdict(status),
        lines=lines, width=WIDTH, height=HEIGHT,
    )  # fmt: skip


def stored_page(url: str, name: str) -> str:
    """The page of a journal, from the database alone."""
    with audit.reading(url, name) as store:
        live = audit.current(store)
        latest = [{"id": event.decision, "at": event.at, **event.content} for event in store.newest("ask", 20)]
        status = status_of(live, name, live.clock, audit.deadline_of(store.settings))
    return live_page(status, latest, refresh=0)


def verdict(status: Mapping[str, Any]) -> str:
    """How the journal is doing, in two or three sentences."""
    if not status["told"]:
        return f"{status['asked']} decisions so far, and no whole outcome yet."
    left = status["share_left_to_baseline"]
    words = f"{status['told']} whole outcomes of {status['asked']} decisions; {left:.0%} were left to the baseline."
    own, base = status["branches"].get("own", {}), status["branches"].get("baseline", {})
    if own.get("told") and base.get("told"):
        per_own, per_base = own["loss"] / own["told"], base["loss"] / base["told"]
        change = (per_base - per_own) / per_base if per_base > 0.0 else 0.0
        side = "less" if change >= 0.0 else "more"
        words += (
            f" The learner's own episodes lost {per_own:.4g} on average, those of the baseline {per_base:.4g}: "
            f"{abs(change):.1%} {side}."
        )
    above = [name for name, mean in status["mean_costs"].items() if mean > status["thresholds"][name]]
    if above:
        return f"{words} The mean cost is above its limit for {', '.join(above)}."
    return f"{words} All mean costs are below their limits."


def _limit(name: str, status: Mapping[str, Any]) -> dict[str, Any]:
    limit, mean = status["thresholds"][name], status["mean_costs"][name]
    return {"name": name, "limit": limit, "mean": mean, "share": mean / limit if limit else float(mean > 0.0)}


def _line(history: Sequence[Mapping[str, Any]], name: str, limit: float) -> dict[str, Any]:
    """A curve over the blocks of outcomes: the share of a cost in its limit, or of the baseline in the decisions."""
    values = [block["costs"].get(name, 0.0) / block["told"] / limit if name != "baseline" else block["baseline"]
              for block in history if block["told"]]  # fmt: skip
    step = WIDTH / max(1, len(values) - 1)
    points = " ".join(f"{j * step:.1f},{HEIGHT * (1.0 - min(1.25, v) / 1.25):.1f}" for j, v in enumerate(values))
    return {"name": name, "points": points, "last": values[-1] if values else None}


def prometheus(status: Mapping[str, Any], writer: Writer | None = None) -> str:
    """The numbers of a journal in the text format of Prometheus."""
    lines: list[str] = []
    label = f'journal="{_escaped(status["journal"])}"'

    def add(name: str, kind: str, words: str, values: Mapping[str, float]) -> None:
        lines.append(f"# HELP hedgerow_{name} {words}")
        lines.append(f"# TYPE hedgerow_{name} {kind}")
        lines.extend(f"hedgerow_{name}{{{label}{more}}} {value:.17g}" for more, value in values.items())

    add("events_total", "counter", "Events by kind.", {f',kind="{k}"': v for k, v in status["events"].items()})
    for name, words in (
        ("asked", "Decisions asked for."), ("told", "Whole outcomes."), ("learnt", "Outcomes learnt."),
    ):  # fmt: skip
        add(f"{name}_total", "counter", words, {"": status[name]})
    for name, words in (
        ("open", "Decisions that wait for their outcome."), ("waiting", "Outcomes that wait for earlier ones."),
        ("oldest_open_seconds", "Service time since the oldest open decision."),
        ("share_left_to_baseline", "Mean probability of the baseline."), ("mean_loss", "Mean loss of whole episodes."),
    ):  # fmt: skip
        add(name, "gauge", words, {"": status[name]})
    for name in ("thresholds", "mean_costs"):
        values = {f',constraint="{_escaped(k)}"': v for k, v in status[name].items()}
        add(name, "gauge", "Limits of costs." if name == "thresholds" else "Mean costs of whole episodes.", values)
    void = {f',promise="{_escaped(p["name"])}"': float(p["holds"]) for p in status["ledger"]["promises"]}
    add("promise_holds", "gauge", "1 while the ledger says that a promise holds.", void)
    if writer is not None:
        add("commits_total", "counter", "Commits.", {"": writer.commits})
        add("calls_total", "counter", "Calls carried out.", {"": writer.calls})
        add("calls_waiting", "gauge", "Calls that wait.", {"": writer.waiting})
    return "\n".join(lines) + "\n"


def _escaped(label: str) -> str:
    return label.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
