"""`hedgerow check-learner NAME`: check on small worlds, in seconds, that a learner keeps to the contract."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

import typer

from hedgerow.commands.terminal import FAILED, AsJson, print_json
from hedgerow.output import Screen

Name = Annotated[str, typer.Argument(help="A registered name, package.module:Class, or file.py:Class.")]
Episodes = Annotated[int, typer.Option(help="Episodes of each run.")]
Delta = Annotated[float, typer.Option(help="The failure probability that learners are built with.")]
Seed = Annotated[int, typer.Option(help="The seed of learners and worlds.")]


def check_learner(
    learner: Name, episodes: Episodes = 24, delta: Delta = 0.05, seed: Seed = 0, as_json: AsJson = False
) -> None:
    """Check a learner: shapes, sums, seeds, restored states, no side effects; each failure explains itself."""
    from hedgerow.contract.checker import check_learner as check

    found = check(find_learner(learner), episodes=episodes, delta=delta, seed=seed)
    if as_json:
        print_json(found.data())
    else:
        screen = Screen()
        screen.table(found.table())
        for line in found.lines():
            screen.line(line)
    if not found.ok:
        raise typer.Exit(FAILED)


def find_learner(name: str) -> Any:
    """The class or function that a name stands for."""
    return import_module("hedgerow.registry").learners.find(name)
