"""The command line. A command parses, calls the library and prints; everything heavy is imported inside the commands.

    hedgerow envs                    the catalogue
    hedgerow demo dope-media         the offline optimum of one entry, certified
    hedgerow demo dope-media --json  the same for a machine

Exit code 0: done. 2: the request cannot be met; one line on stderr says why.
"""

from __future__ import annotations

import json
import math
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hedgerow.errors import HedgerowError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from hedgerow.catalogue import Instance
    from hedgerow.model.occupancy import Evaluation

EXIT_REFUSED = 2
PLAIN_WIDTH = 120
"""Columns of output that does not go to a terminal."""

app = typer.Typer(
    name="hedgerow",
    help="Online learning in episodic constrained MDPs with adversarial losses and hard constraints.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]


def _print_version(wanted: bool) -> None:
    if wanted:
        from hedgerow import __version__

        print(f"hedgerow {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command()
def demo(
    name: Annotated[str, typer.Argument(help="An entry of the catalogue; see `hedgerow envs`.")] = "dope-media",
    as_json: AsJson = False,
) -> None:
    """Solve a catalogue instance offline: optimum with and without constraints, Slater margin, certificates."""
    from hedgerow import catalogue

    world = catalogue.make(name)
    summary = offline_summary(world)
    if as_json:
        _print_json(summary)
    else:
        _print_summary(_console(), summary)


@app.command()
def envs(as_json: AsJson = False) -> None:
    """List the catalogue: names, parameters with their defaults, sizes, golden values."""
    from hedgerow import catalogue

    entries = [_entry_summary(catalogue.make(name)) for name in catalogue.names()]
    if as_json:
        _print_json(entries)
    else:
        _print_entries(_console(), entries)


ELSEWHERE = {"verify": "hedgerow.promises", "bench": "hedgerow.bench"}
"""Commands whose folder brings its own; its module `commands` must be light to import."""

for _name, _folder in ELSEWHERE.items():
    if find_spec(_folder) is not None and find_spec(f"{_folder}.commands") is not None:
        app.add_typer(import_module(f"{_folder}.commands").app, name=_name)


# What is printed --------------------------------------------------------------------------------------------------


def offline_summary(world: Instance) -> dict[str, Any]:
    """Everything that `demo` shows, as plain data."""
    from hedgerow.model import offline
    from hedgerow.model.cmdp import CMDP
    from hedgerow.model.occupancy import evaluate

    cmdp = world.cmdp
    free = offline.optimum(CMDP(cmdp.layout, cmdp.transitions), world.loss)
    best = offline.optimum(cmdp, world.loss)
    slater = offline.slater(cmdp)
    return {
        **_entry_summary(world),
        "unit": world.unit,
        "thresholds": dict(zip(cmdp.constraint_names, cmdp.thresholds.tolist(), strict=True)),
        "policies": {
            "without constraints": _policy(world, evaluate(cmdp, free.policy, world.loss), free.gap),
            "optimum": _policy(world, evaluate(cmdp, best.policy, world.loss), best.gap),
            "safest": _policy(world, evaluate(cmdp, slater.policy, world.loss), slater.gap),
        },
        "multipliers": dict(zip(cmdp.constraint_names, best.multipliers.tolist(), strict=True)),
        "slater_margin": _finite(slater.margin),
    }


def _policy(world: Instance, values: Evaluation, gap: float) -> dict[str, Any]:
    return {
        "loss": values.loss,
        "source_value": world.source_value(values.loss),
        "costs": dict(zip(world.cmdp.constraint_names, values.costs.tolist(), strict=True)),
        "gap": gap,
    }


def _entry_summary(world: Instance) -> dict[str, Any]:
    layout = world.cmdp.layout
    golden = world.golden
    return {
        "name": world.name,
        "description": world.description,
        "parameters": dict(world.params),
        "horizon": layout.horizon,
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
            "slater_margin": _finite(golden.margin),
        },
    }


def _print_summary(console: Console, summary: dict[str, Any]) -> None:
    parameters = _parameters(summary["parameters"])
    console.print(
        f"\n[bold]{summary['name']}[/bold]: {summary['description']}" + (f" ({parameters})" * bool(parameters))
    )
    console.print(
        f"{summary['horizon']} steps, {summary['states']} states, {summary['actions']} actions, "
        f"{summary['rows']} rows (x, a), {summary['triples']} triples (x, a, x')\n"
    )
    console.print(_policy_table(summary))
    if summary["thresholds"]:
        console.print(_constraint_table(summary))
    if summary["slater_margin"] is not None:
        console.print(f"Slater margin rho = {summary['slater_margin']:.6f}")
    if summary["golden"] is not None:
        drift = abs(summary["policies"]["optimum"]["loss"] - summary["golden"]["optimum"])
        console.print(f"golden optimum {summary['golden']['optimum']:.6f}, difference {drift:.1e}")
    console.print("gap: distance to a bound by backward induction under the multipliers, which needs no LP solver\n")


def _policy_table(summary: dict[str, Any]) -> Table:
    own_scale = summary["unit"] != "loss"
    columns = ["policy", "loss", *([summary["unit"]] if own_scale else []), "worst violation", "gap"]
    table = _table("per episode", columns)
    for name, policy in summary["policies"].items():
        over = [cost - summary["thresholds"][constraint] for constraint, cost in policy["costs"].items()]
        source = [f"{policy['source_value']:.6f}"] if own_scale else []
        violation = f"{max(0.0, *over):.6f}" if over else "-"
        table.add_row(name, f"{policy['loss']:.6f}", *source, violation, f"{policy['gap']:.1e}")
    return table


def _constraint_table(summary: dict[str, Any]) -> Table:
    names = list(summary["policies"])
    table = _table(
        "expected costs", ["constraint", "threshold", *names, "margin at optimum", "margin of safest", "price"]
    )
    for constraint, threshold in summary["thresholds"].items():
        costs = {name: summary["policies"][name]["costs"][constraint] for name in names}
        margins = [threshold - costs["optimum"], threshold - costs["safest"], summary["multipliers"][constraint]]
        numbers = [threshold, *costs.values(), *margins]
        table.add_row(constraint, *(f"{number + 0.0:.6f}" for number in map(_without_noise, numbers)))
    return table


def _print_entries(console: Console, entries: list[dict[str, Any]]) -> None:
    columns = ["name", "parameters", "L", "states", "actions", "triples", "m", "optimum", "unconstrained", "margin"]
    table = _table("catalogue (values: expected loss per episode)", columns)
    for entry in entries:
        sizes = [entry[key] for key in ("horizon", "states", "actions", "triples", "constraints")]
        golden = entry["golden"] or {}
        values = [_number(golden.get(key)) for key in ("optimum", "unconstrained", "slater_margin")]
        table.add_row(entry["name"], _parameters(entry["parameters"]), *map(str, sizes), *values)
    console.print(table)


def _table(title: str, columns: list[str]) -> Table:
    """A table whose first column is text and whose other columns are numbers."""
    from rich import box
    from rich.table import Table

    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", title_style="italic")
    for index, column in enumerate(columns):
        is_text = index == 0 or column == "parameters"
        table.add_column(column, justify="left" if is_text else "right", no_wrap=index == 0)
    return table


def _console() -> Console:
    from rich.console import Console

    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=PLAIN_WIDTH)


def _print_json(data: object) -> None:
    print(json.dumps(data, indent=2, allow_nan=False))


def _parameters(parameters: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}".replace(" ", "") for name, value in parameters.items())


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.6f}"


def _finite(value: float) -> float | None:
    """JSON has no infinity: the Slater margin of a world without constraints becomes null."""
    return value if math.isfinite(value) else None


def _without_noise(value: float) -> float:
    """Rounding noise must not print as -0.000000."""
    return 0.0 if abs(value) < 5e-7 else value


def main() -> None:
    """Entry point: errors that hedgerow raises on purpose become one line and exit code 2."""
    try:
        app()
    except HedgerowError as error:
        print(f"hedgerow: {error}", file=sys.stderr)
        raise SystemExit(EXIT_REFUSED) from None
