"""`hedgerow learners | worlds | adversaries | costs`: what there is to choose from, built in and installed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from hedgerow.commands.terminal import AsJson, number, parameters, print_json
from hedgerow.errors import HedgerowError
from hedgerow.output import Screen, Table

if TYPE_CHECKING:
    from hedgerow.catalogue import World
    from hedgerow.registry import Registry


def worlds(as_json: AsJson = False) -> None:
    """List the worlds: the catalogue with sizes and golden values, then registered and installed ones."""
    from hedgerow import catalogue, registry

    entries = [entry_summary(catalogue.make(name)) for name in catalogue.names()]
    others = summaries(registry.worlds, built_in=False)
    if as_json:
        print_json([*entries, *others])
        return
    columns = ["name", "parameters", "L", "states", "actions", "triples", "m", "optimum", "unconstrained", "margin"]
    listed = Table("catalogue (values: expected loss per episode)", columns, num_text=2)
    for entry in entries:
        sizes = [entry[key] for key in ("steps", "states", "actions", "triples", "constraints")]
        golden = entry["golden"] or {}
        values = [number(golden.get(key)) for key in ("optimum", "unconstrained", "slater_margin")]
        listed.add_row(entry["name"], parameters(entry["parameters"]), *map(str, sizes), *values)
    Screen().table(listed)
    if others:
        _show("worlds of others", others)


def entry_summary(world: World) -> dict[str, Any]:
    """One line of the catalogue, as plain data."""
    layout, golden = world.cmdp.layout, world.golden
    return {
        "name": world.name,
        "way": "built-in",
        "description": world.description,
        "parameters": dict(world.params),
        "steps": layout.steps,
        "states": layout.num_states,
        "actions": layout.num_actions,
        "rows": layout.num_rows,
        "triples": layout.num_triples,
        "constraints": world.cmdp.num_constraints,
        "hash": world.hash,
        "golden": None
        if golden is None
        else {
            "optimum": golden.optimum,
            "unconstrained": golden.unconstrained,
            "slater_margin": golden.margin if math.isfinite(golden.margin) else None,
        },
    }


def learners(as_json: AsJson = False) -> None:
    """List the learners: what they do, what they are told, their source, their parameters, switches and presets."""
    from hedgerow import registry
    from hedgerow.learners.mirror.settings import PRESETS

    entries = [_learner_entry(entry) for entry in summaries(registry.learners)]
    if as_json:
        print_json(entries)
        return
    columns = ["name", "what it is", "told", "source", "switches, parameters"]
    listed = Table(f"learners (presets: {', '.join(PRESETS)})", columns, num_text=5)
    for entry in entries:
        source = entry.get("source") or ("" if entry["way"] == "built-in" else entry["way"])
        choices = ", ".join(entry.get("switches") or entry["parameters"])
        listed.add_row(entry["name"], _words(entry), entry.get("told", ""), source, choices)
    Screen().table(listed)


def _learner_entry(entry: dict[str, Any]) -> dict[str, Any]:
    """A line of the list with what only learners have."""
    from hedgerow import registry
    from hedgerow.experiments.parts import SUPPLIED, has_presets, needs_baseline
    from hedgerow.learners.mirror.settings import PRESETS
    from hedgerow.learners.told import told_in_words

    if "error" in entry:
        return entry
    target = registry.learners.find(entry["name"])
    own = [text for text in entry["parameters"] if text.partition(":")[0].partition(" ")[0] not in SUPPLIED]
    return entry | {
        "parameters": own,
        "told": told_in_words(target),
        "source": getattr(target, "source", ""),
        "recalled": getattr(target, "recalled", ""),
        "needs_baseline": needs_baseline(target),
        "presets": list(PRESETS) if has_presets(target) else [],
        "switches": sorted(target.switches) if has_presets(target) else [],
    }


def adversaries(as_json: AsJson = False) -> None:
    """List the adversaries with their parameters. "own", not listed, repeats the world's own loss."""
    from hedgerow import registry

    _list("adversaries", summaries(registry.adversaries), as_json)


def costs(as_json: AsJson = False) -> None:
    """List the cost distributions with their parameters."""
    from hedgerow import registry

    _list("cost distributions", summaries(registry.costs), as_json)


def summaries(registry: Registry, *, built_in: bool = True) -> list[dict[str, Any]]:
    """One line for each name, as plain data; a plug-in that is broken says why."""
    found: list[dict[str, Any]] = []
    for name in registry.names():
        if not built_in and name in registry.builtin:
            continue
        entry: dict[str, Any] = {"name": name, "way": "installed", "description": "", "parameters": []}
        try:
            told = registry.describe(name)
            given = [str(parameter) for parameter in told.parameters]
            entry |= {"way": told.way, "home": told.home, "description": told.description, "parameters": given}
        except HedgerowError as error:
            entry["error"] = str(error)
        found.append(entry)
    return found


def _list(title: str, entries: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        print_json(entries)
    else:
        _show(title, entries)


def _show(title: str, entries: list[dict[str, Any]]) -> None:
    listed = Table(title, ["name", "way", "what it is", "parameters"], num_text=4)
    for entry in entries:
        listed.add_row(entry["name"], entry["way"], _words(entry), ", ".join(entry["parameters"]))
    Screen().table(listed)


def _words(entry: dict[str, Any]) -> str:
    return f"broken: {entry['error']}" if "error" in entry else entry["description"]
