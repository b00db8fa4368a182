"""`hedgerow journal`, the questions of an auditor, and `hedgerow serve`, a journal as a service.

hedgerow serve sqlite:///site.db chargers                       the service, on 127.0.0.1:8000
hedgerow journal show sqlite:///site.db chargers                where it stands
hedgerow journal show sqlite:///site.db chargers --id monday    why a decision was allowed; or --episode 4711
hedgerow journal verify sqlite:///site.db chargers              the chain of hashes, and replay with the same bits
hedgerow journal export sqlite:///site.db chargers days.parquet a log that learners absorb
hedgerow report sqlite:///site.db chargers                      its page, written by `run.report`
hedgerow journal fork sqlite:///site.db chargers other --threshold unserved=0.12
"""

from __future__ import annotations

import os
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Literal

import typer

from hedgerow.commands import FAILED, AsJson, print_json
from hedgerow.commands.group import PlainCommand, PlainGroup
from hedgerow.display.screen import say
from hedgerow.errors import InvalidInput

Url = Annotated[str, typer.Argument(metavar="URL", help="sqlite:///site.db or postgresql://user@host/name")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of the journal.")]
TOKEN = "HEDGEROW_TOKEN"

app = typer.Typer(cls=PlainGroup, help="Look at the journal of a learner, check it, and take data out of it.")


@app.command(cls=PlainCommand)
def show(
    url: Url,
    name: Name,
    key: Annotated[
        str | None, typer.Option("--id", help="A decision: why it was allowed, and what became of it.")
    ] = None,
    episode: Annotated[int | None, typer.Option("--episode", help="The same, by the number of its episode.")] = None,
    as_json: AsJson = False,
) -> None:
    """Say where a journal stands, or why a decision was allowed."""
    from hedgerow.journal import audit
    from hedgerow.journal.journal import UnknownDecisionError, asked_as, decision_of, status_of
    from hedgerow.serve.page import verdict

    with audit.reading(url, name) as store:
        live = audit.current(store)
        if episode is not None:
            key = asked_as(live, store, episode)
        if key is None:
            status = status_of(live, name, live.clock, None)
            if as_json:
                print_json(status)
                return
            say(verdict(status))
            for word in ("asked", "told", "learnt", "open", "waiting"):
                say(f"{word:>10}  {status[word]}")
            return
        decision = decision_of(live, store, key)
    if decision is None:
        raise UnknownDecisionError(f"no decision {key!r} was asked for")
    if as_json:
        print_json(decision.to_dict(events=True))
        return
    content, asked = decision.content, decision.events[0]
    say(f"{key}: {decision.status}. {decision.explain()}.")
    say(f"Asked at {asked.at}, after {content['learnt']} outcomes were learnt (event {asked.number}).")
    for constraint, limit in content["thresholds"].items():
        bound = (content["cost_bounds"] or {}).get(constraint)
        say(f"  {constraint}: limit {limit:g}" + ("" if bound is None else f", bound of the expected cost {bound:g}"))
    for event in decision.events[1:]:
        say(f"  {event.at}  {event.kind}  {event.body}")


@app.command(cls=PlainCommand)
def verify(url: Url, name: Name, as_json: AsJson = False) -> None:
    """Check the chain of hashes, and replay every decision bit for bit. Exit code 1 if something differs."""
    from hedgerow.display.screen import progress_bar
    from hedgerow.journal import audit

    with audit.reading(url, name) as store:
        total = store.last_number()
    with progress_bar("replaying", max(1, total)) as move:
        verdict = audit.verify(url, name, move)
    if as_json:
        print_json(verdict._asdict())
    elif verdict.problem:
        say(f"not whole: {verdict.problem}")
    else:
        say(
            f"whole: {verdict.events - verdict.skipped} events and {verdict.snapshots} snapshots replayed with the "
            f"same bits; the last hash is {verdict.hash}"
        )
        if verdict.skipped:
            say(f"{verdict.skipped} events of other releases have a whole chain; to replay them takes those releases")
    if verdict.problem:
        raise typer.Exit(FAILED)


@app.command(cls=PlainCommand)
def export(
    url: Url,
    name: Name,
    path: Annotated[Path, typer.Argument(help="A Parquet file.")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file if there is one.")] = False,
) -> None:
    """Write all outcomes that were told into a log, which `Log.read` and `absorb` take."""
    from hedgerow.journal import audit

    log = audit.exported(url, name)
    log.write(path, overwrite=overwrite)
    say(f"{path}: {len(log)} episodes")


@app.command(cls=PlainCommand)
def fork(
    url: Url,
    name: Name,
    other: Annotated[str, typer.Argument(metavar="OTHER", help="The name of the new journal.")],
    thresholds: Annotated[
        list[str], typer.Option("--threshold", metavar="NAME=VALUE", help="A new limit; may be repeated.")
    ],
) -> None:
    """Make a journal that starts with all that another has observed, under other thresholds."""
    from hedgerow.journal import audit

    found = audit.fork(url, name, other, dict(_threshold(each) for each in thresholds))
    say(
        f"{other}: the next decision leaves {found['baseline_there']:.1%} to the baseline; in {name} it is "
        f"{found['baseline_here']:.1%}"
    )


def _threshold(text: str) -> tuple[str, float]:
    name, _, value = text.rpartition("=")
    try:
        return name, float(value)
    except ValueError as error:
        raise typer.BadParameter(f"a threshold is written NAME=VALUE, not {text!r}") from error


def serve(
    url: Url,
    name: Name,
    host: Annotated[str, typer.Option("--host", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0 for any that is free.")] = 8000,
    durability: Annotated[
        Literal["full", "normal"],
        typer.Option("--durability", help="full waits for the disk at every commit; normal does not."),
    ] = "full",
    group_commit: Annotated[
        bool, typer.Option("--group-commit/--no-group-commit", help="Calls that come together share a commit.")
    ] = True,
    wait: Annotated[
        str, typer.Option("--wait", metavar="TIME", help="Wait so long for another process to end that serves it: 30d.")
    ] = "",
) -> None:
    """Serve the decisions of a journal over HTTP, until it is stopped.

    Anywhere but on this machine clients need a token: set HEDGEROW_TOKEN for the service and for them.
    """
    token = os.environ.get(TOKEN) or None
    if token is None and not _is_loopback(host):
        raise InvalidInput(f"beyond this machine a token is needed: set {TOKEN} to a long secret text")
    from hedgerow.journal.journal import Journal
    from hedgerow.serve.app import make_app, run

    journal = Journal.open(url, name, durability=durability, wait=wait or 0.0)
    run(make_app(journal, token=token, group_commit=group_commit), host, port)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
