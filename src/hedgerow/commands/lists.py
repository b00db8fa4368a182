"""`hedgerow learners | worlds | adversaries | costs`: what there is to choose from, built in and installed."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING, Any

from hedgerow.commands import SLACK, AsJson, Verbose, parameters, print_json
from hedgerow.display.numbers import fixed
from hedgerow.display.screen import Screen
from hedgerow.display.table import Table
from hedgerow.errors import HedgerowError

if TYPE_CHECKING:
    from hedgerow.experiments.isolation import Apart
    from hedgerow.registry import Registry

LONGEST_LOADING = 60.0
"""Seconds that an installed plug-in may take to be imported."""


def worlds(verbose: Verbose = False, as_json: AsJson = False) -> None:
    """List the worlds, those of others as well.

    With --verbose, also their sizes, sources, golden values and parameters. The price is what the constraint costs: the
    least loss under it minus the least loss without it, per episode.
    Where it is 0, the constraint is slack: the best policy without it respects it. Learners may still
    violate it while they learn.
    """
    from hedgerow import registry

    entries = [entry_summary(name) for name in registry.worlds.builtin]
    others = summaries(registry.worlds, built_in=False)
    if as_json:
        print_json([*entries, *others])
        return
    (_print_catalogue if verbose else _print_briefly)(Screen(), entries)
    if others:
        _show("worlds of others", others)


def _print_briefly(screen: Screen, entries: list[dict[str, Any]]) -> None:
    """One line for each world: the words of its description up to the colon."""
    listed = Table("worlds", ["name", "what it is", "steps", "states"], num_text=2)
    for entry in entries:
        words = entry["description"].partition(": ")[0]
        listed.add_row(entry["name"], words, str(entry["steps"]), f"{entry['states']:,}")
    screen.table(listed)
    screen.line("hedgerow worlds -v: sizes, sources, values and parameters; hedgerow check NAME: all about one of them")


def _print_catalogue(screen: Screen, entries: list[dict[str, Any]]) -> None:
    sizes = {"L": "steps", "states": "states", "actions": "actions", "triples": "triples", "m": "constraints"}
    columns = ["name", "source", *sizes, "optimum", "price", "margin", "baseline"]
    listed = Table("catalogue (values: expected loss per episode)", columns, num_text=2)
    for entry in entries:
        golden = entry["golden"]
        price = "slack" if golden["control"] else fixed(golden["price"])
        values = fixed(golden["optimum"]), price, fixed(golden["slater_margin"]), fixed(golden["baseline"])
        listed.add_row(entry["name"], entry["source"], *(str(entry[key]) for key in sizes.values()), *values)
    meant = Table("what they are", ["name", "what it is", "parameters"], num_text=3)
    for entry in entries:
        meant.add_row(entry["name"], entry["description"], parameters(entry["parameters"]) or "-")
    screen.table(listed)
    screen.line("price: the loss that the constraint adds to the world's own, per episode")
    screen.line(SLACK)
    screen.line("baseline: the loss of the world's own safe policy, or the least one at a smaller budget")
    screen.line()
    screen.table(meant)


def entry_summary(name: str) -> dict[str, Any]:
    """One line of the catalogue, as plain data, from what is stored about the world: none is built."""
    from hedgerow import worlds as catalogue
    from hedgerow.worlds.entries import frozen_record

    told, record = catalogue.describe(name), frozen_record(name)
    facts, golden = record.facts, record.golden
    return {
        "name": name,
        "way": "built-in",
        "description": told.description,
        "source": told.source,
        "adversaries": list(told.adversaries),
        "parameters": dict(told.parameters),
        "steps": facts.steps,
        "states": facts.states,
        "actions": facts.actions,
        "rows": facts.rows,
        "triples": facts.triples,
        "constraints": facts.constraints,
        "baseline": facts.baseline,
        "hash": record.hash,
        "golden": {
            "optimum": golden.optimum,
            "unconstrained": golden.unconstrained,
            "price": golden.price,
            "control": golden.is_control,
            "slater_margin": golden.margin if math.isfinite(golden.margin) else None,
            "baseline": golden.baseline,
        },
        "in_source_unit": {
            "unit": facts.unit,
            "optimum": facts.scale(golden.optimum),
            "unconstrained": facts.scale(golden.unconstrained),
            "price": facts.scale.distance(golden.price),
        },
    }


def learners(verbose: Verbose = False, as_json: AsJson = False) -> None:
    """List the learners: what they do, and what they need to know.

    With --verbose, also their sources, parameters and switches.
    """
    from hedgerow import registry

    entries = [_with_facts(registry.learners, entry) for entry in summaries(registry.learners)]
    for entry in entries:
        entry["parameters"] = _own_parameters(entry)
    if as_json:
        print_json(entries)
        return
    presets = dict.fromkeys(name for entry in entries for name in entry.get("presets", ()))
    columns = ["name", "what it is", "inputs", *(("source", "switches, parameters") if verbose else ())]
    listed = Table(f"learners (presets: {', '.join(presets)})", columns, num_text=len(columns))
    for entry in entries:
        words = _words(entry)
        if entry["way"] == "built-in" and not verbose:
            words = words.partition(": ")[2]  # what comes before is its name in full
        source = entry.get("source") or ("" if entry["way"] == "built-in" else entry["way"])
        choices = ", ".join(entry.get("switches") or entry["parameters"])
        row = entry["name"], words, entry.get("inputs", ""), source, choices
        listed.add_row(*row[: len(columns)])
    screen = Screen()
    screen.table(listed)
    if not verbose:
        screen.line("hedgerow learners -v: sources, switches and parameters")


def adversaries(as_json: AsJson = False) -> None:
    """List the adversaries with their parameters. "own", not listed, repeats the world's own loss."""
    from hedgerow import registry

    entries = [_with_facts(registry.adversaries, entry) for entry in summaries(registry.adversaries)]
    if as_json:
        print_json(entries)
        return
    _show("adversaries", [entry | {"parameters": _own_parameters(entry)} for entry in entries])


def _with_facts(registry: Registry, entry: dict[str, Any]) -> dict[str, Any]:
    """A line of a list with what only this kind has: from the index, or else from the code of others."""
    if "error" in entry:
        return entry
    if entry["name"] in registry.builtin:
        return {**entry, **registry.facts(entry["name"])}
    from hedgerow.experiments.components import FACTS

    return entry | FACTS[registry.kind](registry.look_up(entry["name"]))


def _own_parameters(entry: dict[str, Any]) -> list[str]:
    """The parameters without those that an experiment fills in, which need not be given."""
    filled = entry.get("filled_in", ())
    return [text for text in entry["parameters"] if text.partition(":")[0].partition(" ")[0] not in filled]


def costs(as_json: AsJson = False) -> None:
    """List the cost distributions with their parameters."""
    from hedgerow import registry

    entries = summaries(registry.costs)
    if as_json:
        print_json(entries)
    else:
        _show("cost distributions", entries)


def summaries(registry: Registry, *, built_in: bool = True) -> list[dict[str, Any]]:
    """One line for each name, as plain data; a plug-in that is broken says why."""
    from hedgerow.experiments.isolation import Apart

    with closing(Apart()) as place:
        chosen = [name for name in registry.names() if built_in or name not in registry.builtin]
        return [_summary(registry, name, place) for name in chosen]


def _summary(registry: Registry, name: str, place: Apart) -> dict[str, Any]:
    """One line; what is installed is loaded in the process `place` first, because it may do anything."""
    entry: dict[str, Any] = {"name": name, "way": "installed", "description": "", "parameters": []}
    try:
        if name not in registry.builtin and registry.registered(name) is None:
            place.call(_load, (registry.group, name), limit=LONGEST_LOADING)
        told = registry.describe(name)
        given = [str(parameter) for parameter in told.parameters]
        entry |= {"way": told.way, "home": told.home, "description": told.description, "parameters": given}
    except HedgerowError as error:
        entry["error"] = str(error)
    return entry


def _load(asked: tuple[str, str], beat: Callable[[str], None]) -> None:
    """Load a plug-in: a name of a group of entry points."""
    from hedgerow import registry

    group, name = asked
    beat(f"the loading of {name}")
    getattr(registry, group.rpartition(".")[2]).describe(name)


def _show(title: str, entries: list[dict[str, Any]]) -> None:
    columns = ["name", "what it is", "parameters", "way"]
    if all(entry["way"] == "built-in" for entry in entries):
        columns.pop()
    listed = Table(title, columns, num_text=len(columns))
    for entry in entries:
        row = entry["name"], _words(entry), ", ".join(entry["parameters"]), entry["way"]
        listed.add_row(*row[: len(columns)])
    Screen().table(listed)


def _words(entry: dict[str, Any]) -> str:
    return f"broken: {entry['error']}" if "error" in entry else entry["description"]
