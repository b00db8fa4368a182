"""`hedgerow check-learner NAME`: check on small worlds, in seconds, that a learner keeps to the contract."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any

import typer

from hedgerow.commands.terminal import FAILED, AsJson, print_json
from hedgerow.display.output import Screen, say

Name = Annotated[str, typer.Argument(help="A registered name, package.module:Class, or file.py:Class.")]
Episodes = Annotated[int, typer.Option(help="Episodes of each run.")]
Delta = Annotated[float, typer.Option(help="The failure probability that learners are built with.")]
Limit = Annotated[float, typer.Option(help="Seconds that one check may take; inf for no limit.")]
Seed = Annotated[int, typer.Option(help="The seed of learners and worlds.")]


def check_learner(
    learner: Name,
    episodes: Episodes = 24,
    delta: Delta = 0.05,
    seed: Seed = 0,
    limit: Limit = 60.0,
    as_json: AsJson = False,
) -> None:
    """Check a learner: shapes, sums, seeds, restored states, no side effects; each failure explains itself.

    It runs in a process apart. Exit code: 0 if it passed, 1 if a check failed, or if the learner ended its process or
    took too long.
    """
    from hedgerow.checks import num_episodes, positive_share, seed_number
    from hedgerow.experiments.isolation import Apart, Ended
    from hedgerow.experiments.options import checked_limit

    count, chance = num_episodes(episodes, 2), positive_share("delta", delta, below_one=True)
    place = Apart()
    try:
        found = place.call(_checked, (learner, count, chance, seed_number(seed)), limit=checked_limit(limit))
    except Ended as error:
        say(f"hedgerow: the learner {learner}: {error}", error=True)
        raise typer.Exit(FAILED) from error
    finally:
        place.close()
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
    from hedgerow.testing.check_learner import examine

    name, count, delta, seed = asked
    beat(f"the loading of {name}")
    return examine(find_learner(name), count, delta, seed, {}, beat)


def find_learner(name: str) -> Any:
    """The class or function that a name stands for."""
    return import_module("hedgerow.registry").learners.find(name)
