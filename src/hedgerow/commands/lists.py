"""`hedgerow envs` and `hedgerow learners`: what there is to choose from."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from hedgerow.commands.terminal import AsJson, number, parameters, print_json
from hedgerow.output import Screen, Table

if TYPE_CHECKING:
    from hedgerow.catalogue import World


def envs(as_json: AsJson = False) -> None:
    """List the catalogue: names, parameters with their defaults, sizes, golden values."""
    from hedgerow import catalogue

    entries = [entry_summary(catalogue.make(name)) for name in catalogue.names()]
    if as_json:
        print_json(entries)
        return
    columns = ["name", "parameters", "L", "states", "actions", "triples", "m", "optimum", "unconstrained", "margin"]
    listed = Table("catalogue (values: expected loss per episode)", columns, num_text=2)
    for entry in entries:
        sizes = [entry[key] for key in ("steps", "states", "actions", "triples", "constraints")]
        golden = entry["golden"] or {}
        values = [number(golden.get(key)) for key in ("optimum", "unconstrained", "slater_margin")]
        listed.add_row(entry["name"], parameters(entry["parameters"]), *map(str, sizes), *values)
    Screen().table(listed)


def entry_summary(world: World) -> dict[str, Any]:
    """One line of the list, as plain data."""
    layout, golden = world.cmdp.layout, world.golden
    return {
        "name": world.name,
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
    """List the learners: what they do, whether they need a baseline, their switches and presets."""
    from hedgerow.experiments.parts import needs_baseline
    from hedgerow.learners.mirror.files import LEARNERS
    from hedgerow.learners.mirror.settings import PRESETS

    entries: list[dict[str, Any]] = [
        {
            "name": name,
            "description": (cls.__doc__ or "").strip().splitlines()[0],
            "needs_baseline": needs_baseline(cls),
            "presets": list(PRESETS),
            "switches": sorted(cls.switches),
        }
        for name, cls in LEARNERS.items()
    ]
    if as_json:
        print_json(entries)
        return
    listed = Table(
        f"learners (presets: {', '.join(PRESETS)})", ["name", "what it is", "baseline", "switches"], num_text=4
    )
    for entry in entries:
        needed = "needed" if entry["needs_baseline"] else "-"
        listed.add_row(entry["name"], entry["description"], needed, ", ".join(entry["switches"]))
    Screen().table(listed)
