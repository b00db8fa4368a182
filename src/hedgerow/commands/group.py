"""The program `hedgerow` as its user meets it: names that are nearly right, help, and the completion of names.

hedgerow envs               there is no command 'envs'; did you mean 'worlds'?
hedgerow check dope-<Tab>   completed by the shell, after `hedgerow --install-completion`

Nothing here imports a compiler: the shell waits for a completion.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from typer.core import TyperCommand, TyperGroup

from hedgerow.display.screen import literal

MEANT = {
    **dict.fromkeys(("env", "envs", "environment", "environments"), "worlds"),
    **dict.fromkeys(("agent", "agents", "algo", "algos", "algorithm", "algorithms"), "learners"),
    **dict.fromkeys(("losses", "opponents"), "adversaries"),
    **dict.fromkeys(("train", "start", "sweep"), "run"),
    **dict.fromkeys(("list", "experiments"), "run --list"),
    **dict.fromkeys(("bench", "benchmark", "leaderboard"), "compare"),
    **dict.fromkeys(("plot", "figures"), "report"),
    "version": "--version",
    "help": "--help",
}
"""What other programs call it, and what it is here."""


class _Explained:
    """Help as it is written: paragraphs are wrapped, brackets are no markup, and flags take no value."""

    help: str | None
    rich_markup_mode: Any

    def format_help(self, ctx: Any, formatter: Any) -> None:
        shown: Any = super()
        options = shown.get_params(ctx)
        for option in options:
            if getattr(option, "is_flag", False):
                option.metavar = ""
        if self.rich_markup_mode == "rich":
            self.help = literal(re.sub(r"(?<!\n)\n *(?!\s)", " ", self.help or ""))
            for option in options:
                option.help = literal(getattr(option, "help", None) or "")
        shown.format_help(ctx, formatter)


class PlainCommand(_Explained, TyperCommand):
    """One command."""


class PlainGroup(_Explained, TyperGroup):
    """The program: a name that is no command is answered with the one that is meant."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0]
        if name not in self.commands and name[:1].isalnum() and not ctx.resilient_parsing:
            from hedgerow.checks import did_you_mean

            meant = MEANT.get(name.lower())
            near = f"; did you mean {meant!r}?" if meant else did_you_mean(name, self.commands)
            ctx.fail(f"there is no command {name!r}{near}")
        return super().resolve_command(ctx, args)


# Completion -----------------------------------------------------------------------------------------------------------


def names_of(kind: str) -> Callable[[str], list[str]]:
    """A function that completes a name of a registry, such as "worlds"; in a list, the one after the last comma."""

    def complete(incomplete: str) -> list[str]:
        from hedgerow import registry

        before, comma, _ = incomplete.rpartition(",")
        return [f"{before}{comma}{name}" for name in getattr(registry, kind).names()]

    return complete


def experiments(incomplete: str) -> list[str]:
    """The experiments that ship."""
    from hedgerow.experiments.source import shipped

    return list(shipped())
