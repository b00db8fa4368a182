"""`hedgerow check`, the pre-flight of a problem, and `hedgerow check-learner`, the contract of learners.

hedgerow check dope-media                                      everything about one entry
hedgerow check random-layered --set layers=[1,3,3,1]           with other parameters
hedgerow check world.npz --episodes 1000000 --json             a world of your own, for a machine
hedgerow check view.npz -T 20000 --baseline-costs delay=0.1    no simulator: what S-OPS could do (`View.save`)
hedgerow check view.npz --log days.csv --losses guess.csv      what a run would save, after recorded episodes
hedgerow check-learner mine.py:Mine                            a learner on small worlds, in seconds
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hedgerow.commands import FAILED, SLACK, AsJson, episodes_of, parameters, print_json
from hedgerow.commands.group import names_of
from hedgerow.display.numbers import fixed, percent, whole
from hedgerow.display.screen import Screen, say
from hedgerow.display.table import Table, TableCell
from hedgerow.errors import FileFormatError, HedgerowError, InvalidInput

if TYPE_CHECKING:
    from hedgerow.forecast.preflight import Request
    from hedgerow.model.cmdp import CMDP
    from hedgerow.model.view import View
    from hedgerow.worlds import World

MOST_STATES = 24
"""A policy of more states is not printed (JSON has it)."""

EXPLAINED = (
    "from: every episode explores, and the learner's policy is the one above. to: only the episodes of that policy "
    "explore, and it is as optimistic as S-OPS may be: it costs as much as its bounds do not notice. Of runs in six "
    "worlds four were between the two, one a little below and one above (docs/sweeps.md). The aggregate "
    "certificate of `sharpest` is left out; it can only help. `sharp` takes no log."
)


def check(
    problem: Annotated[
        str,
        typer.Argument(
            help="A world (hedgerow worlds), file.py:Name, or a saved CMDP or view.", autocompletion=names_of("worlds")
        ),
    ],
    choices: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A parameter of the world, as in TOML: tightness=0.8"),
    ] = None,
    episodes: Annotated[
        int, typer.Option("--episodes", "-T", metavar="N", parser=episodes_of, help="How long the run would be: 100k.")
    ] = 100_000,
    delta: Annotated[float, typer.Option("--delta", help="The failure probability of the learners.")] = 0.01,
    baseline_costs: Annotated[
        str | None, typer.Option("--baseline-costs", help="What your safe policy costs: NAME=VALUE,...")
    ] = None,
    log: Annotated[
        str | None, typer.Option("--log", help="Recorded episodes, of your safe policy unless --baseline names it.")
    ] = None,
    losses: Annotated[
        str | None,
        typer.Option("--losses", help="A guess: state, action, loss or reward in [0, 1] (CSV, JSON, Parquet)."),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option("--baseline", help="Your safe policy: an action, or a table of state, action, probability."),
    ] = None,
    probe: Annotated[
        bool, typer.Option("--probe/--no-probe", help="Run every learner for a moment, to time it.")
    ] = True,
    limit: Annotated[
        float, typer.Option("--limit", help="Seconds that a world of others may take to be built; inf for no limit.")
    ] = 60.0,
    as_json: AsJson = False,
) -> None:
    """Look at a problem: what is possible, and what it takes.

    Sizes, feasibility with proof, thresholds, radii, time and memory, and how many episodes S-OPS would leave to its
    baseline. A file written by View.save has neither transitions nor costs: it gets the last item alone, with its
    assumptions. With --log or --losses S-OPS plays in a model of the world, and what it would save is told.
    A world of others is looked at in a process apart. Exit code 1 if no policy satisfies the constraints, or if such a
    world ended its process or took too long.
    """
    from hedgerow.forecast.preflight import Request

    asked = Request(problem, choices or [], episodes, delta, baseline_costs, log, probe, losses, baseline)
    data = _examined_apart(asked, limit) if _is_of_others(problem) else _examined(asked)
    if as_json:
        print_json(data)
    elif data.get("kind") == "view":
        _print_view(Screen(), data)
    else:
        _print(Screen(), data)
    if not data.get("feasible", True):  # which is unknown of a view
        raise typer.Exit(FAILED)


def _is_of_others(problem: str) -> bool:
    from hedgerow.experiments.plugins import is_foreign

    return not Path(problem).exists() and is_foreign("world", problem)


def _examined_apart(asked: Request, limit: float) -> dict[str, Any]:
    """`_examined` in a process that may end, or be ended while the world is built."""
    from hedgerow.experiments.isolation import Apart
    from hedgerow.experiments.options import checked_limit

    longest = checked_limit(limit)
    with closing(Apart()) as place:
        data: dict[str, Any] = place.call(_examined_there, asked, limit=longest)
    return data


def _examined_there(asked: Request, beat: Callable[[str], None]) -> dict[str, Any]:
    beat(f"the construction of {asked.problem}")
    try:
        return _examined(asked, beat)
    except HedgerowError as error:
        raise InvalidInput(str(error)) from error


def _examined(asked: Request, beat: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """What is shown, as plain data; `beat` is told that the world is there."""
    from hedgerow.forecast.preflight import examine, examine_view
    from hedgerow.model.view import View

    world, found = _find(asked.problem, asked.choices)
    beat("")
    return examine_view(asked, found) if isinstance(found, View) else examine(asked, world, found)


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
    if file.kind == view.View.file_kind:
        return view.View.from_file(file, problem)
    if file.kind != cmdp.CMDP.file_kind:
        raise FileFormatError(f"{problem} holds a {file.kind!r}; `check` looks at a 'cmdp' or a 'view'")
    return cmdp.CMDP.from_file(file, problem)


def _parsed(choices: list[str]) -> dict[str, Any]:
    """KEY=VALUE with TOML values."""
    import tomllib

    from hedgerow.checks import short_repr

    found: dict[str, Any] = {}
    for choice in choices:
        try:
            found |= tomllib.loads(choice)
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"--set {short_repr(choice)} is not KEY=VALUE as in TOML: {error}") from error
    return found


# Learners ------------------------------------------------------------------------------------------------------------


def check_learner(
    learner: Annotated[
        str,
        typer.Argument(
            help="A name (hedgerow learners), package.module:Class, or file.py:Class.",
            autocompletion=names_of("learners"),
        ),
    ],
    episodes: Annotated[int, typer.Option(help="Episodes of each run.")] = 24,
    delta: Annotated[float, typer.Option(help="The failure probability that learners are built with.")] = 0.05,
    seed: Annotated[int, typer.Option(help="The seed of learners and worlds.")] = 0,
    limit: Annotated[float, typer.Option(help="Seconds that one check may take; inf for no limit.")] = 60.0,
    as_json: AsJson = False,
) -> None:
    """Check that a learner keeps to the contract.

    Shapes, sums, seeds, restored states, no side effects; each failure explains itself. It runs in a process apart.
    Exit code: 0 if it passed, 1 if a check failed, or if the learner ended its process or took too long.
    """
    from hedgerow.checks import num_episodes, positive_share, seed_number
    from hedgerow.experiments.isolation import Apart, Ended
    from hedgerow.experiments.options import checked_limit

    count, chance = num_episodes(episodes, 2), positive_share("delta", delta, below_one=True)
    with closing(Apart()) as place:
        try:
            found = place.call(_checked, (learner, count, chance, seed_number(seed)), limit=checked_limit(limit))
        except Ended as error:
            say(f"hedgerow: the learner {learner}: {error}", error=True)
            raise typer.Exit(FAILED) from error
    if as_json:
        print_json(found.data())
    else:
        screen = Screen()
        screen.table(found.table())
        for line in found.lines():
            screen.line(line)
    if not found.ok:
        raise typer.Exit(FAILED)


def _checked(asked: tuple[str, int, float, int], beat: Callable[[str], None]) -> Any:
    """The findings."""
    from hedgerow.registry import learners
    from hedgerow.testing.check_learner import examine

    name, count, delta, seed = asked
    beat(f"the loading of {name}")
    return examine(learners.find(name), count, delta, seed, {}, beat)


# What is printed ------------------------------------------------------------------------------------------------------


def _print(out: Screen, found: dict[str, Any]) -> None:
    given = parameters(found["parameters"])
    out.line()
    out.line(f"{found['problem']}{f' ({given})' * bool(given)}", style="bold")
    if found["description"]:
        out.line(found["description"])
    out.line(
        f"layers {found['layers']}: {found['steps']} steps, {found['states']} states ({found['reachable_states']} "
        f"reachable), {found['actions']} actions, {found['rows']} rows (x, a), {found['triples']} triples (x, a, x')"
        + ("" if found["full_support"] else ", known sparse support")
    )
    if found["unreachable"]:
        out.line(f"no policy reaches: {'; '.join(found['unreachable'])}")
    _print_known(out, found["known"])
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
        _print_forecast(out, found["forecast"], found["course"])
    if found["log"] is not None:
        _print_log(out, found["log"])


def _print_offline(out: Screen, found: dict[str, Any]) -> None:
    summary = found["offline"]
    own_scale = summary["unit"] != "loss"
    columns = ["policy", "loss", *([summary["unit"]] if own_scale else []), "worst violation", "gap"]
    listed = Table("best policies under the world's own loss, per episode", columns)
    allowed = {entry["name"]: entry["threshold"] for entry in found["thresholds"]}
    for name, policy in summary["policies"].items():
        over = [cost - allowed[constraint] for constraint, cost in policy["costs"].items()]
        source = [fixed(policy["source_value"])] if own_scale else []
        violation = fixed(max(0.0, *over)) if over else "-"
        listed.add_row(name, fixed(policy["loss"]), *source, violation, f"{policy['gap']:.1e}")
    out.table(listed)
    if summary["price"] is not None:
        _print_price(out, summary["price"], summary["unit"])
    if summary["golden"] is not None and "optimum" in summary["policies"]:
        drift = abs(summary["policies"]["optimum"]["loss"] - summary["golden"]["optimum"])
        out.line(f"golden optimum {summary['golden']['optimum']:.6f}, difference {drift:.1e}")
    out.line("gap: distance to a bound by backward induction under the multipliers, which needs no LP solver")
    out.line()
    if summary["baselines"]:
        _print_baselines(out, summary["baselines"])


def _print_price(out: Screen, price: dict[str, Any], unit: str) -> None:
    if price["control"]:
        out.line("price of the constraint: 0 under the world's own loss")
        out.line(SLACK)
        return
    own_unit = f" ({fixed(price['source_value'])} {unit})" if unit != "loss" else ""
    out.line(f"price of the constraint: {fixed(price['loss'])} loss per episode{own_unit}")


def _print_thresholds(out: Screen, found: dict[str, Any]) -> None:
    columns = ["constraint", "threshold", "meaning", "from", "to", "least alone", "safest policy", "price"]
    listed = Table("thresholds: they mean something between `from` and `to`", columns)
    safest = (found["strictly_feasible"] or {}).get("costs", {})
    prices = (found["offline"] or {}).get("multipliers", {})
    for entry in found["thresholds"]:
        low = entry["least"] if entry["least_with_others"] is None else entry["least_with_others"]
        values = [low, entry["largest"], entry["least"], safest.get(entry["name"]), prices.get(entry["name"])]
        listed.add_row(entry["name"], fixed(entry["threshold"]), entry["verdict"], *map(fixed, values))
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
        listed.add_row(name, *(fixed(p, 3) for p in policy[x * actions : (x + 1) * actions]))
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
    from hedgerow.learners.ops.settings import DEFAULT_PRESET

    listed = Table(
        f"one run of {found['episodes']:,} episodes on this machine, preset {DEFAULT_PRESET}",
        ["learner", "us/episode", "time", "arrays"],
    )
    for run in found["runs"]:
        if "refused" in run:
            listed.add_row(run["learner"], "-", "-", "-")
            continue
        time = f"{run['seconds']:,.1f} s"
        listed.add_row(run["learner"], fixed(run["microseconds_per_episode"], 1), time, f"{run['bytes'] / 1e6:,.2f} MB")
    out.table(listed)
    for run in found["runs"]:
        if "refused" in run:
            out.line(f"{run['learner']}: {run['refused']}")
    if found["process_bytes"]:
        out.line(f"a process with Python and the compiled kernels takes {found['process_bytes'] / 1e6:,.0f} MB")


# Forecasts --------------------------------------------------------------------------------------------------------


def _print_view(out: Screen, found: dict[str, Any]) -> None:
    out.line()
    out.line(f"{found['problem']}: what a learner knows of a world; all else here is assumed", style="bold")
    out.line(
        f"layers {found['layers']}: {found['steps']} steps, {found['states']} states, {found['actions']} actions, "
        f"{found['rows']} rows (x, a), {found['triples']} triples (x, a, x')"
        + ("" if found["full_support"] else ", known sparse support")
    )
    _print_known(out, found["known"])
    _print_forecast(out, found["forecast"], found["course"])
    if found["log"] is not None:
        _print_log(out, found["log"])


def _print_known(out: Screen, known: list[str]) -> None:
    out.line(f"known beforehand: {'; '.join(known) if known else 'nothing beyond the layout and the thresholds'}")


def _print_course(out: Screen, found: dict[str, Any]) -> None:
    """Print the forecast of a run in which S-OPS played."""
    out.line()
    out.line(found["verdict"], style="bold")
    names = {
        "lambda": "lambda",
        "lambda_without_log": "without the log",
        "share": "left so far",
        "saved": "saved so far",
    }
    shown = {key: name for key, name in names.items() if found["marks"][0][key] is not None}
    listed = Table(
        "lambda of episode t, the share of t episodes left to the baseline, saved loss", ["t", *shown.values()]
    )
    for mark in found["marks"]:
        cells = [
            " to ".join(dict.fromkeys(fixed(end, 1 if key == "saved" else 3) for end in mark[key].values()))
            for key in shown
        ]
        listed.add_row(f"{mark['episodes']:,}", *cells)
    out.table(listed)
    if len(found["models"]) > 1:
        out.line(
            f"from least to most over {len(found['models'])} models; unseen costs are {'; '.join(found['models'])}"
        )
    out.line(found["note"])


def _print_forecast(out: Screen, found: dict[str, Any], course: dict[str, Any] | None) -> None:
    """Print how lambda goes on: as it was played, or else between its two ends; and what keeps it up."""
    if course is not None:
        _print_course(out, course)
    out.line()
    out.line("How much S-OPS would leave to its baseline", style="bold")
    if not found["constraints"]:
        out.line(f"verdict: {found['verdict']}")
        return
    for what, words in found["model"].items():
        out.line(f"  {what}: {words}")
    out.line(f"  baseline: {found['baseline']}")
    out.line()
    _print_ceilings(out, found)
    if course is None:
        _print_marks(out, found)
        out.line(EXPLAINED)
        out.line()
    _print_constraints(out, found)
    if found["rows"]:
        _print_rows(out, found)
    if found["wishes"]:
        _print_wishes(out, found)
    if found["budget"] < 1.0:
        left = f"leaves up to {100.0 * found['budget']:.1f} % of the run for its account"
        out.line(f"if the limit is a budget so far: B-OPS {left}, and more while its policy exceeds the thresholds")
    if course is None:
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


def _print_ceilings(out: Screen, found: dict[str, Any]) -> None:
    title = "thresholds; ceiling: the most that an episode can cost"
    listed = Table(title, ["constraint", "threshold", "ceiling", "baseline", "its margin"])
    for entry in found["constraints"]:
        margin = entry["threshold"] - entry["baseline_cost"]
        numbers = entry["threshold"], entry["ceiling"], entry["baseline_cost"], margin
        listed.add_row(entry["name"], *(fixed(value, 4) for value in numbers))
    out.table(listed)


def _print_constraints(out: Screen, found: dict[str, Any]) -> None:
    title = f"what keeps lambda up at t = {found['episodes']:,}: the bound is the policy's cost + three causes"
    listed = Table(title, ["constraint", "its cost", "+ costs", "+ transitions", "+ cross", "= bound", "lambda"])
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


def _print_log(out: Screen, found: dict[str, Any]) -> None:
    """Print what is in a log."""
    out.line(f"The log {found['file']} ({found['episodes']:,} episodes)", style="bold")
    listed = Table("counts of pairs (x, a)", ["", "least", "median", "most"])
    for name, key in (("visits", "visits"), ("visits whose costs count", "cost_visits")):
        listed.add_row(name, *(f"{found[key][end]:,}" for end in ("least", "median", "most")))
    out.table(listed)
    unseen = found["never_visited"]
    if unseen:
        more = "; ..." if found["rows_never_visited"] > len(unseen) else ""
        count = f"{found['rows_never_visited']} of {found['rows']} pairs are not in the log"
        out.line(f"{count}, and nothing is known of them: {'; '.join(unseen)}{more}")
    out.line()


def _print_baselines(out: Screen, choices: list[dict[str, Any]]) -> None:
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
