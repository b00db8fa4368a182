"""`hedgerow check`: the pre-flight of a problem: a saved CMDP, an entry of the catalogue, or a saved view.

hedgerow check dope-media                                      everything about one entry
hedgerow check random-layered --set layers=[1,3,3,1]           with other parameters
hedgerow check world.npz --episodes 1000000 --json             a world of your own, for a machine
hedgerow check view.npz -T 20000 --baseline-costs delay=0.1    no simulator: what S-OPS could do (`View.save`)
hedgerow check view.npz --log days.parquet                     what recorded episodes would buy
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from hedgerow.commands import prospects
from hedgerow.commands.terminal import CONTROL, FAILED, AsJson, number, parameters, print_json
from hedgerow.display.output import Screen, Table
from hedgerow.errors import FileFormatError, HedgerowError, InvalidInput

if TYPE_CHECKING:
    from hedgerow.checks import FloatArray
    from hedgerow.model.cmdp import CMDP
    from hedgerow.model.view import View
    from hedgerow.worlds import World

MOST_STATES = 24
"""A policy of more states is not printed (JSON has it)."""


def check(
    problem: Annotated[str, typer.Argument(help="A saved CMDP or view, a world (hedgerow worlds), or file.py:Name.")],
    choices: Annotated[
        list[str] | None, typer.Option("--set", help="A parameter of the world, as in TOML: tightness=0.8")
    ] = None,
    episodes: Annotated[int, typer.Option("--episodes", "-T", min=1, help="How long the run would be.")] = 100_000,
    delta: Annotated[float, typer.Option("--delta", help="The failure probability of the learners.")] = 0.01,
    baseline_costs: Annotated[
        str | None, typer.Option("--baseline-costs", help="What your safe policy costs: NAME=VALUE,...")
    ] = None,
    log: Annotated[
        str | None, typer.Option("--log", help="Recorded episodes: show what S-OPS would gain from them.")
    ] = None,
    probe: Annotated[
        bool, typer.Option("--probe/--no-probe", help="Run every learner for a moment, to time it.")
    ] = True,
    limit: Annotated[
        float, typer.Option("--limit", help="Seconds that a world of others may take to be built; inf for no limit.")
    ] = 60.0,
    as_json: AsJson = False,
) -> None:
    """Look at a problem before a run: sizes, feasibility with proof, thresholds, radii, time and memory, and how many
    episodes S-OPS would leave to its baseline.

    A file written by View.save has neither transitions nor costs: it gets the last item alone, with its assumptions.
    A world of others is looked at in a process apart. Exit code 1 if no policy satisfies the constraints, or if such a
    world ended its process or took too long.
    """
    asked = _Asked(problem, choices or [], episodes, delta, baseline_costs, log, probe)
    data = _examined_apart(asked, limit) if _is_of_others(problem) else _examined(asked)
    feasible = data.get("feasible", True)  # nobody knows of a view
    if as_json:
        print_json(data)
    elif data.get("kind") == "view":
        prospects.print_view(Screen(), data)
    else:
        _print(Screen(), data)
    if not feasible:
        raise typer.Exit(FAILED)


class _Asked(NamedTuple):
    """What to look at, and how closely."""

    problem: str
    choices: list[str]
    episodes: int
    delta: float
    baseline_costs: str | None
    log: str | None
    probe: bool


def _is_of_others(problem: str) -> bool:
    from hedgerow.experiments.plugins import is_foreign

    return not Path(problem).exists() and is_foreign("world", problem)


def _examined_apart(asked: _Asked, limit: float) -> dict[str, Any]:
    """`_examined` in a process that may end, or be ended while the world is built."""
    from hedgerow.experiments.isolation import Apart
    from hedgerow.experiments.options import checked_limit

    place, longest = Apart(), checked_limit(limit)
    try:
        data: dict[str, Any] = place.call(_examined_there, asked, limit=longest)
    finally:
        place.close()
    return data


def _examined_there(asked: _Asked, beat: Callable[[str], None]) -> dict[str, Any]:
    beat(f"the construction of {asked.problem}")
    try:
        return _examined(asked, beat)
    except HedgerowError as error:
        raise InvalidInput(str(error)) from error


def _examined(asked: _Asked, beat: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """What is shown, as plain data; `beat` is told that the world is there."""
    problem, choices, episodes, delta, baseline_costs, log, probe = asked
    world, found = _find(problem, choices)
    beat("")
    if isinstance(found, _view_type()):
        return prospects.examine_view(problem, found, baseline_costs, log, episodes, delta)
    return examine(problem, world, found, episodes, delta, probe, baseline_costs, log)


def _view_type() -> type[View]:
    from hedgerow.model.view import View

    return View


def _find(problem: str, choices: list[str]) -> tuple[World | None, Any]:
    """The world of the catalogue, if it is one, and its CMDP; or a view."""
    from hedgerow import registry, worlds
    from hedgerow.worlds import entries

    if problem in registry.worlds.names() or not Path(problem).exists():
        if Path(problem).suffix and ":" not in problem and problem not in registry.worlds.names():
            raise InvalidInput(f"there is no file {problem}, and no such world (hedgerow worlds)")
        found, params = registry.worlds.look_up(problem), _parsed(choices)
        if not found.is_built_in:
            cmdp, loss = entries.parts_of(entries.build_foreign(found, params), found.name)
            if loss is None:
                return None, cmdp
        world = worlds.make(problem, **params)
        return world, world.cmdp
    if Path(problem).suffix == ".toml":
        raise InvalidInput(f"{problem} is an experiment, not a problem; `hedgerow run {problem} --cells` checks it")
    if choices:
        raise InvalidInput("--set belongs to entries of the catalogue; a file has no parameters")
    return None, _from_file(problem)


def _from_file(problem: str) -> CMDP | View:
    from hedgerow.model import cmdp, view
    from hedgerow.storage import datafile

    file = datafile.load(problem)
    if file.kind == view.FILE_KIND:
        return view.View.from_file(file, problem)
    if file.kind != cmdp.FILE_KIND:
        raise FileFormatError(f"{problem} holds a {file.kind!r}; `check` looks at a 'cmdp' or a 'view'")
    return cmdp.CMDP.from_file(file, problem)


def _parsed(choices: list[str]) -> dict[str, Any]:
    """KEY=VALUE with TOML values."""
    from hedgerow.checks import short_repr

    found: dict[str, Any] = {}
    for choice in choices:
        try:
            found |= tomllib.loads(choice)
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"--set {short_repr(choice)} is not KEY=VALUE as in TOML: {error}") from error
    return found


# The data -------------------------------------------------------------------------------------------------------------


def examine(
    problem: str,
    world: World | None,
    cmdp: CMDP,
    episodes: int,
    delta: float,
    probe: bool = True,
    baseline_costs: str | None = None,
    log: str | None = None,
) -> dict[str, Any]:
    """Everything that `check` shows about a world, as plain data."""
    from hedgerow.forecast import preflight

    layout = cmdp.layout
    reached = preflight.reachable_states(cmdp)
    state = preflight.feasibility(cmdp)
    lost = [layout.describe_state(int(x)) for x in (~reached).nonzero()[0]]
    return {
        "problem": problem,
        "description": None if world is None else world.description,
        "parameters": {} if world is None else dict(world.params),
        "kind": "cmdp",
        "hash": cmdp.content_hash if world is None else world.hash,
        "state_names": [layout.describe_state(x) for x in range(layout.num_decision_states)],
        "action_names": [layout.action_name(a) for a in range(layout.num_actions)],
        **preflight.sizes(layout),
        "reachable_states": int(reached.sum()),
        "unreachable": lost[:10],
        **state,
        "thresholds": [{**r._asdict(), "verdict": r.verdict} for r in preflight.threshold_ranges(cmdp)],
        "offline": None if world is None else offline_summary(world, feasible=state["feasible"]),
        "episodes": episodes,
        "delta": delta,
        "informative": preflight.informative_radii(cmdp, episodes, delta),
        "runs": preflight.probe_learners(cmdp, episodes, delta) if probe else None,
        "process_bytes": preflight.process_bytes(),
        "known": cmdp.knowledge.described(layout, cmdp.constraint_names),
        **_examine_future(world, cmdp, episodes, delta, baseline_costs, log, feasible=state["feasible"]),
    }


def _examine_future(
    world: World | None,
    cmdp: CMDP,
    episodes: int,
    delta: float,
    baseline_costs: str | None,
    log: str | None,
    *,
    feasible: bool,
) -> dict[str, Any]:
    """The forecast for S-OPS with the true world as the model, and with a log; empty if the world is infeasible."""
    if not feasible:
        return {"forecast": None, "log": None}
    from hedgerow import forecast
    from hedgerow.forecast.preflight import world_baseline

    view, model = cmdp.view(), forecast.true_model(cmdp, None if world is None else world.loss)
    baseline = prospects.told_baseline(view, baseline_costs, world_baseline(world, cmdp))
    return {
        "forecast": forecast.forecast(view, model, baseline, episodes, delta),
        "log": prospects.examine_log(view, log, baseline, episodes, delta),
    }


def offline_summary(world: World, feasible: bool = True) -> dict[str, Any]:
    """Best policies of a catalogue entry under its own loss, certified."""
    from hedgerow.forecast.preflight import baseline_choices
    from hedgerow.model.cmdp import CMDP
    from hedgerow.planning import offline

    cmdp, loss = world.cmdp, world.loss
    free = offline.optimum(CMDP(cmdp.layout, cmdp.transitions), loss)
    safest = offline.slater(cmdp)
    policies = {"without constraints": _policy(world, free.policy, free.gap)}
    multipliers: dict[str, float] = {}
    if feasible:
        best = offline.optimum(cmdp, loss)
        policies["optimum"] = _policy(world, best.policy, best.gap)
        multipliers = dict(zip(cmdp.constraint_names, best.multipliers.tolist(), strict=True))
    policies["safest"] = _policy(world, safest.policy, safest.gap)
    golden = world.golden
    return {
        "unit": world.unit,
        "policies": policies,
        "price": _price(world, policies),
        "multipliers": multipliers,
        "baselines": baseline_choices(world) if feasible else [],
        "golden": None
        if golden is None
        else {"optimum": golden.optimum, "unconstrained": golden.unconstrained, "rho": _finite(golden.margin)},
    }


def _price(world: World, policies: dict[str, Any]) -> dict[str, Any] | None:
    """The price of the constraint under the world's own loss; None if no policy is feasible."""
    from hedgerow.worlds.world import is_free, price_of

    if "optimum" not in policies or not world.cmdp.num_constraints:
        return None
    price = price_of(policies["optimum"]["loss"], policies["without constraints"]["loss"])
    return {"loss": price, "source_value": world.scale.distance(price), "control": is_free(price)}


def _policy(world: World, policy: FloatArray, gap: float) -> dict[str, Any]:
    from hedgerow.model.occupancy import evaluate

    values = evaluate(world.cmdp, policy, world.loss)
    return {
        "loss": values.loss,
        "source_value": world.source_value(values.loss),
        "costs": dict(zip(world.cmdp.constraint_names, values.costs.tolist(), strict=True)),
        "gap": gap,
    }


def _finite(value: float) -> float | None:
    """JSON has no infinity."""
    return value if math.isfinite(value) else None


# What is printed ------------------------------------------------------------------------------------------------------


def _print(out: Screen, found: dict[str, Any]) -> None:
    given = parameters(found["parameters"])
    told = f": {found['description']}" * bool(found["description"]) + f" ({given})" * bool(given)
    out.line()
    out.line(f"{found['problem']}{told}", style="bold")
    out.line(
        f"layers {found['layers']}: {found['steps']} steps, {found['states']} states ({found['reachable_states']} "
        f"reachable), {found['actions']} actions, {found['rows']} rows (x, a), {found['triples']} triples (x, a, x')"
        + ("" if found["full_support"] else ", known sparse support")
    )
    if found["unreachable"]:
        out.line(f"no policy reaches: {'; '.join(found['unreachable'])}")
    prospects.print_known(out, found["known"])
    out.line(found["certificate"])
    if found["rho"] is not None:
        out.line(f"Slater margin rho = {found['rho']:.6f}")
        out.line()
    if found["offline"] is not None:
        _print_offline(out, found)
    if found["thresholds"]:
        _print_thresholds(out, found)
    if found["strictly_feasible"] is not None:
        _print_policy(out, found)
    _print_radii(out, found)
    if found["runs"] is not None:
        _print_runs(out, found)
    if found["forecast"] is not None:
        prospects.print_forecast(out, found["forecast"])
    if found["log"] is not None:
        prospects.print_log(out, found["log"])


def _print_offline(out: Screen, found: dict[str, Any]) -> None:
    summary = found["offline"]
    own_scale = summary["unit"] != "loss"
    columns = ["policy", "loss", *([summary["unit"]] if own_scale else []), "worst violation", "gap"]
    listed = Table("best policies under the world's own loss, per episode", columns)
    allowed = {entry["name"]: entry["threshold"] for entry in found["thresholds"]}
    for name, policy in summary["policies"].items():
        over = [cost - allowed[constraint] for constraint, cost in policy["costs"].items()]
        source = [number(policy["source_value"])] if own_scale else []
        violation = number(max(0.0, *over)) if over else "-"
        listed.add_row(name, number(policy["loss"]), *source, violation, f"{policy['gap']:.1e}")
    out.table(listed)
    if summary["price"] is not None:
        _print_price(out, summary["price"], summary["unit"])
    if summary["golden"] is not None and "optimum" in summary["policies"]:
        drift = abs(summary["policies"]["optimum"]["loss"] - summary["golden"]["optimum"])
        out.line(f"golden optimum {summary['golden']['optimum']:.6f}, difference {drift:.1e}")
    out.line("gap: distance to a bound by backward induction under the multipliers, which needs no LP solver")
    out.line()
    if summary["baselines"]:
        prospects.print_baselines(out, summary["baselines"])


def _print_price(out: Screen, price: dict[str, Any], unit: str) -> None:
    if price["control"]:
        out.line("price of the constraint: 0 under the world's own loss")
        out.line(CONTROL)
        return
    own_unit = f" ({number(price['source_value'])} {unit})" if unit != "loss" else ""
    out.line(f"price of the constraint: {number(price['loss'])} loss per episode{own_unit}")


def _print_thresholds(out: Screen, found: dict[str, Any]) -> None:
    columns = ["constraint", "threshold", "meaning", "from", "to", "least alone", "safest policy", "price"]
    listed = Table("thresholds: they mean something between `from` and `to`", columns)
    safest = (found["strictly_feasible"] or {}).get("costs", {})
    prices = (found["offline"] or {}).get("multipliers", {})
    for entry in found["thresholds"]:
        low = entry["least"] if entry["least_with_others"] is None else entry["least_with_others"]
        values = [low, entry["largest"], entry["least"], safest.get(entry["name"]), prices.get(entry["name"])]
        listed.add_row(entry["name"], number(entry["threshold"]), entry["verdict"], *map(number, values))
    out.table(listed)


def _print_policy(out: Screen, found: dict[str, Any]) -> None:
    """The safest policy, state by state, where it fits."""
    policy, actions = found["strictly_feasible"]["policy"], found["actions"]
    states = len(policy) // actions
    if states > MOST_STATES:
        out.line(f"a strictly feasible policy exists (--json prints it: {states} states)")
        out.line()
        return
    listed = Table("a strictly feasible policy", ["state", *(f"action {name}" for name in found["action_names"])])
    for x, name in enumerate(found["state_names"]):
        listed.add_row(name, *(number(p, 3) for p in policy[x * actions : (x + 1) * actions]))
    out.table(listed)


def _print_radii(out: Screen, found: dict[str, Any]) -> None:
    names = list(found["informative"][0]["visits"])
    titles = [name.replace("_", " ") for name in names]
    title = (
        f"episodes until the radii say something, actions drawn uniformly (T = {found['episodes']:,}, "
        f"delta = {found['delta']:g})"
    )
    listed = Table(title, ["radii", "a pair", *titles], num_text=2, num_keys=2)
    for row in found["informative"]:
        listed.add_row(row["radii"], "visits needed", *(f"{row['visits'][name]:,}" for name in names))
        listed.add_row("", "episodes, typical pair", *(f"{row['episodes_typical_pair'][name]:,}" for name in names))
        listed.add_row("", "episodes, rarest pair", *(f"{row['episodes_rarest_pair'][name]:,}" for name in names))
    out.table(listed)


def _print_runs(out: Screen, found: dict[str, Any]) -> None:
    listed = Table(
        f"one run of {found['episodes']:,} episodes on this machine, preset sharp",
        ["learner", "us/episode", "time", "arrays"],
    )
    for run in found["runs"]:
        if "refused" in run:
            listed.add_row(run["learner"], "-", "-", "-")
            continue
        time = f"{run['seconds']:,.1f} s"
        listed.add_row(
            run["learner"], number(run["microseconds_per_episode"], 1), time, f"{run['bytes'] / 1e6:,.2f} MB"
        )
    out.table(listed)
    for run in found["runs"]:
        if "refused" in run:
            out.line(f"{run['learner']}: {run['refused']}")
    if found["process_bytes"]:
        out.line(f"a process with Python and the compiled kernels takes {found['process_bytes'] / 1e6:,.0f} MB")
