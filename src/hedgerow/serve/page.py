"""The page of a live journal, and its numbers for Prometheus.

The page is made by the service on every request; a script of a few lines fetches it again, and nothing is lost without
it. `hedgerow report URL NAME` writes the same page from the database, while the service runs or after it has ended.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from hedgerow.display import text
from hedgerow.display.numbers import percent
from hedgerow.journal import audit
from hedgerow.journal.journal import latest_of, status_of

if TYPE_CHECKING:
    from jinja2 import Template

    from hedgerow.serve.writer import Writer

WIDTH, HEIGHT = 640.0, 120.0
MOST_POINTS = 50
HIGHEST = 1.25
"""What is more than this share of its limit is drawn at the edge"""
BASELINE = None
"""What the share of the baseline is called among the names of costs: no name of a cost is this"""
LATEST = 12
"""Decisions on the page"""
WARNINGS = {
    "above its limit": "the last {outcomes} outcomes cost {recent:.3g} on average, above the limit. The law of the "
    "costs may have changed.",
    "changed": "the last {outcomes} outcomes cost {recent:.3g} on average, those before {before:.3g}. The law of the "
    "costs may have changed.",
}


@cache
def _template() -> Template:
    loader = PackageLoader("hedgerow.serve")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined).get_template("live.html")


def live_page(status: Mapping[str, Any], latest: Sequence[Mapping[str, Any]], *, refresh: int = 5) -> str:
    """The page as HTML; `refresh` seconds until it is asked for again, 0 for never."""
    rows = [_limit(name, status) for name in status["thresholds"]]
    blocks = _joined(status["history"])
    lines = [_line(blocks, name, limit) for name, limit in [(BASELINE, 1.0), *status["thresholds"].items()]]
    warnings = [(name, WARNINGS[found["warning"]].format(**found))
                for name, found in status["drift"].items() if found["warning"]]  # fmt: skip
    return _template().render(
        status=status, rows=rows, latest=latest[:LATEST], refresh=refresh, verdict=verdict(status), lines=lines,
        width=WIDTH, height=HEIGHT, warnings=warnings, tiles=_tiles(status, rows),
        per_block=round(status["told"] / max(1, len(blocks))), top=HEIGHT * (1.0 - 1.0 / HIGHEST), percent=percent,
        oldest=span(status["oldest_open_seconds"]), deadline=span(status["deadline_seconds"] or 0.0),
    )  # fmt: skip


def stored_page(url: str, name: str) -> str:
    """The page of a journal, from the database alone."""
    with audit.reading(url, name) as store:
        live = audit.current(store)
        status = status_of(live, name, live.clock, store.deadline)
        return live_page(status, latest_of(store, LATEST), refresh=0)


def verdict(status: Mapping[str, Any]) -> str:
    """How the journal is doing, in two or three sentences."""
    asked = text.counted(status["asked"], "decision")
    if not status["told"]:
        return f"{asked} so far, and no whole outcome yet."
    left, outcomes = status["share_left_to_baseline"], text.counted(status["told"], "whole outcome")
    words = f"{outcomes} of {asked}; {percent(left)} were left to the baseline."
    own, base = status["branches"].get("own", {}), status["branches"].get("baseline", {})
    if own.get("told") and base.get("told"):
        per_own, per_base = own["loss"] / own["told"], base["loss"] / base["told"]
        change = (per_base - per_own) / per_base if per_base > 0.0 else 0.0
        side = "less" if change >= 0.0 else "more"
        words += (
            f" The learner's own episodes lost {per_own:.4g} on average, those of the baseline {per_base:.4g}: "
            f"{percent(abs(change), 1)} {side}."
        )
    if status["waiting"] > status["learnt"]:
        words += f" {status['waiting']} outcomes are not learnt yet: they wait for that of an earlier decision."
    above = [name for name, mean in status["mean_costs"].items() if mean > status["thresholds"][name]]
    if above:
        return f"{words} The mean cost so far is above its limit for {', '.join(above)}."
    return f"{words} All mean costs so far are below their limits."


def saved(status: Mapping[str, Any]) -> float | None:
    """The share of the baseline's loss that was saved, by the outcomes of its own episodes; None if it had none."""
    base = status["branches"].get("baseline", {})
    if not base.get("told") or base["loss"] <= 0.0:
        return None
    return float(1.0 - status["mean_loss"] / (base["loss"] / base["told"]))


def span(seconds: float) -> str:
    """A duration in its largest unit: 36 h."""
    for unit, size in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2.0 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.0f} s"


def _tiles(status: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    share, events = saved(status) if status["told"] else None, status["events"]
    highest = max((row["share"] for row in rows), default=None) if status["told"] else None
    left = status["share_left_to_baseline"] if status["asked"] else None
    return [
        ("saved so far, estimated", percent(share, 1)), ("highest cost, of its limit", percent(highest)),
        ("left to the baseline", percent(left)), ("open", f"{status['open']:,}"), ("learnt", f"{status['learnt']:,}"),
        ("expired or late", f"{events.get('expire', 0) + events.get('late', 0):,}"),
    ]  # fmt: skip


def _limit(name: str, status: Mapping[str, Any]) -> dict[str, Any]:
    limit, mean = status["thresholds"][name], status["mean_costs"][name]
    return {"name": name, "limit": limit, "mean": mean, "share": mean / limit if limit else float(mean > 0.0)}


def _joined(history: Sequence[Mapping[str, Any]]) -> list[Mapping[str | None, float]]:
    """Means of at most MOST_POINTS blocks, of neighbours taken together: few outcomes say little."""
    size, found = -(-len(history) // MOST_POINTS) or 1, list[Mapping[str | None, float]]()
    for first in range(0, len(history), size):
        blocks = history[first : first + size]
        told = sum(block["told"] for block in blocks)
        means = {name: sum(block["costs"][name] for block in blocks) / told for name in blocks[0]["costs"]}
        left = sum(block["told"] * block["baseline"] for block in blocks)
        found.append({**means, BASELINE: left / told})
    return found


def _line(blocks: Sequence[Mapping[str | None, float]], name: str | None, limit: float) -> dict[str, Any]:
    """A curve over blocks of outcomes: the share of a cost in its limit, or of the baseline in the decisions."""
    step = WIDTH / max(1, len(blocks) - 1)
    shares = [min(HIGHEST, block[name] / limit if limit else float(block[name] > 0.0)) for block in blocks]
    points = " ".join(f"{j * step:.1f},{HEIGHT * (1.0 - share / HIGHEST):.1f}" for j, share in enumerate(shares))
    return {"name": name, "points": points}


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
    drifting = {f',constraint="{_escaped(k)}"': float(bool(v["warning"])) for k, v in status["drift"].items()}
    add("drift_warning", "gauge", "1 while the last outcomes cost more than allowed, or than before.", drifting)
    if writer is not None:
        add("commits_total", "counter", "Commits.", {"": writer.commits})
        add("calls_total", "counter", "Calls carried out.", {"": writer.calls})
        add("calls_waiting", "gauge", "Calls that wait.", {"": writer.waiting})
        add("cpu_seconds_total", "counter", "Processor time of the service.", {"": time.process_time()})
    return "\n".join(lines) + "\n"


def _escaped(label: str) -> str:
    return label.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
