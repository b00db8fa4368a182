"""The reference of the command line, made of the commands themselves."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

from tools.docs.commands import hedgerow_command
from tools.docs.docstrings import cell, code, markdown, parse


def write(file: Path) -> None:
    """Write the page."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(page(), encoding="utf-8")


def page() -> str:
    """Every command with its arguments and options."""
    import hedgerow.cli

    whole = hedgerow_command()
    about = inspect.cleandoc(hedgerow.cli.__doc__ or "").partition("Exit code")
    parts = [
        "# Command line\n",
        f"{whole.help}\n",
        "`hedgerow COMMAND --help` prints what this page says.\n",
        f"**Exit codes.** {' '.join((about[1] + about[2]).split())}\n",
        _options(whole),
    ]
    for name, command in whole.commands.items():
        parts.append(_command(name, command))
    return "\n".join(parts)


def _command(name: str, command: Any) -> str:
    words = [f"hedgerow {name}"]
    words += [_metavar(each) if each.required else f"[{_metavar(each)}]" for each in _arguments(command)]
    words += ["[OPTIONS]"] if _listed(command) else []
    doc = parse(command.help)
    parts = [
        f"## hedgerow {name} {{ #{name.replace(' ', '-')} }}\n",
        f"```text\n{' '.join(words)}\n```\n",
        markdown(doc.text, code) + "\n",
    ]
    arguments = _arguments(command)
    if arguments:
        rows = [f"| {code(_metavar(each))} | {cell(each.help or '', code)} |" for each in arguments]
        parts.append("\n".join(["| argument | meaning |", "|---|---|", *rows]) + "\n")
    parts.append(_options(command))
    for sub, below in getattr(command, "commands", {}).items():
        parts.append(_command(f"{name} {sub}", below))
    return "\n".join(parts)


def _arguments(command: Any) -> list[Any]:
    return [each for each in command.params if each.param_type_name == "argument"]


def _listed(command: Any) -> list[Any]:
    return [each for each in command.params if each.param_type_name == "option" and not each.hidden]


def _options(command: Any) -> str:
    rows = [f"| {_spelling(each)} | {_default(each)} | {cell(each.help or '', code)} |" for each in _listed(command)]
    return "\n".join(["| option | default | meaning |", "|---|---|---|", *rows]) + "\n" if rows else ""


def _spelling(option: Any) -> str:
    names = ", ".join([*option.opts, *option.secondary_opts])
    takes = "" if option.is_flag or option.count else f" {_metavar(option)}"
    return code(names + takes)


def _metavar(parameter: Any) -> str:
    return parameter.metavar or re.sub(r"\W", "_", parameter.name).upper()


def _default(option: Any) -> str:
    value = option.default
    if value is None or value is False or value == "" or value == () or callable(value):
        return ""
    return code("yes" if value is True else str(value))
