"""Command lines that the documentation shows: whether the command, its subcommand and its options exist.

Nothing is run here. `hedgerow` is looked up in its own command line, `python -m bench` in the list of benchmarks,
`make` in the Makefile, scripts and modules in the repository. Other programs are listed in `OTHERS`.
"""

from __future__ import annotations

import re
import shlex
from argparse import ArgumentParser
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
OTHERS = {
    "cd": "changes the folder",
    "curl": "asks a service",
    "dask": "Dask's own command line",
    "git": "version control",
    "pip": "installs packages",
    "pipx": "installs programs",
    "sbatch": "hands a job to SLURM",
    "uv": "installs packages",
}
"""Programs of others, whose options are not ours to check."""
_ENVIRONMENT = re.compile(r"^[A-Z_][A-Z0-9_]*=")
_PYTHON = re.compile(r"^python(3(\.\d+)?)?$")
_MAKE_TARGET = re.compile(r"^([a-z][\w-]*):", re.MULTILINE)


def command_lines(text: str) -> Iterator[tuple[int, str, str]]:
    """Commands of a console block: line inside the block from 0, command, the output that is shown below it.

    If a line starts with `$ `, such lines are the commands and the others are output. Else every line is a command.
    A line that ends in a backslash goes on in the next one.
    """
    lines = text.splitlines()
    prompted = any(line.startswith("$ ") for line in lines)
    number = 0
    while number < len(lines):
        start, line = number, lines[number]
        number += 1
        if not line.strip() or line.lstrip().startswith("#") or (prompted and not line.startswith("$ ")):
            continue
        command = line.removeprefix("$ ")
        while command.endswith("\\") and number < len(lines):
            command = command[:-1] + lines[number].removeprefix("> ").strip()
            number += 1
        shown: list[str] = []
        while prompted and number < len(lines) and not lines[number].startswith("$ "):
            shown.append(lines[number])
            number += 1
        yield start, command, "".join(f"{each}\n" for each in shown)


def problems(command: str, complete: bool = True) -> Iterator[str]:
    """What is wrong with one command line, in words; pipes and `&&` separate commands.

    In a sentence a command may stand without its arguments: then it is not `complete`.
    """
    try:
        lexer = shlex.shlex(command, posix=True, punctuation_chars="|&;<>")
        lexer.whitespace_split = True
        words = list(lexer)
    except ValueError as error:
        yield f"`{command}` cannot be read: {error}"
        return
    part: list[str] = []
    for word in [*words, ";"]:
        if word and set(word) <= set("|&;"):
            yield from _problems_of_one(part, complete)
            part = []
        else:
            part.append(word)


def _problems_of_one(words: list[str], complete: bool) -> Iterator[str]:
    while words and _ENVIRONMENT.match(words[0]):
        words = words[1:]
    if any(set(word) <= set("<>") for word in words):
        words = words[: next(number for number, word in enumerate(words) if set(word) <= set("<>"))]
    if not words:
        return
    program, arguments = words[0].rpartition("/")[2], words[1:]
    if program == "hedgerow":
        yield from _hedgerow_problems(arguments, complete)
    elif program == "make":
        yield from _make_problems(arguments)
    elif _PYTHON.match(program):
        yield from _python_problems(arguments)
    elif program not in OTHERS:
        yield f"`{program}` is a program that nobody has listed; if it is right, add it to OTHERS in commands.py"


def _hedgerow_problems(arguments: list[str], complete: bool) -> Iterator[str]:
    """By the parser that the command line itself uses, so that a missing argument is found as well."""
    command, name = hedgerow_command(), "hedgerow"
    if arguments and not arguments[0].startswith("-"):
        name, *arguments = arguments
        commands = command.commands
        if name not in commands:
            yield f"`hedgerow {name}` does not exist; there are {', '.join(sorted(commands))}"
            return
        command = commands[name]
    context = command.context_class(command)
    try:
        values, rest, _ = command.make_parser(context).parse_args(args=list(arguments))
    except Exception as error:  # a class of typer that is not public; its text names the option
        yield f"`hedgerow {name}`: {getattr(error, 'message', None) or error}"
        return
    needs_all = complete and "--help" not in arguments
    if rest and name != "hedgerow" and not getattr(command, "commands", None):
        yield f"`hedgerow {name}` takes no further argument {' '.join(rest)!r}"
    for parameter in command.params:
        if needs_all and parameter.required and values.get(parameter.name) is None:
            yield f"`hedgerow {name}` needs {parameter.name}"


@cache
def hedgerow_command() -> Any:
    """The command line of hedgerow: a command with `commands` and `params`."""
    from typer.main import get_command

    from hedgerow.cli import app

    return get_command(app)


def _make_problems(arguments: list[str]) -> Iterator[str]:
    targets = set(_MAKE_TARGET.findall((ROOT / "Makefile").read_text(encoding="utf-8")))
    for word in arguments:
        if "=" not in word and word not in targets:
            yield f"`make {word}`: the Makefile has no such target"


def _python_problems(arguments: list[str]) -> Iterator[str]:
    if arguments[:1] == ["-m"] and len(arguments) > 1:
        yield from _module_problems(arguments[1], arguments[2:])
        return
    script = next((word for word in arguments if not word.startswith("-")), "")
    if "/" in script and not (ROOT / script).is_file():
        yield f"there is no script {script}"


def _module_problems(module: str, arguments: list[str]) -> Iterator[str]:
    if module == "bench" and arguments and not arguments[0].startswith("-"):
        yield from _bench_problems(*arguments)
    elif module.partition(".")[0] in ("bench", "hedgerow", "tests", "tools"):
        try:
            found = find_spec(module)
        except ModuleNotFoundError:
            found = None
        if found is None:
            yield f"`python -m {module}`: there is no such module"


def _bench_problems(name: str, *arguments: str) -> Iterator[str]:
    from bench import benchmark
    from bench.__main__ import ALL, BENCHMARKS

    if name not in (*BENCHMARKS, ALL):
        yield f"`python -m bench {name}` does not exist; there are {', '.join(BENCHMARKS)}"
        return
    known = _option_names(benchmark, name)
    for word in arguments:
        option = word.partition("=")[0]
        if option.startswith("-") and option not in known:
            yield f"`python -m bench {name}` has no option {option}"


@cache
def _option_names(benchmark: Any, name: str) -> frozenset[str]:
    from importlib import import_module

    from bench import whole
    from bench.__main__ import ALL, BENCHMARKS

    if name == ALL:
        return frozenset(whole.parser()._option_string_actions)
    module, kind = BENCHMARKS[name]
    parser: ArgumentParser = benchmark.parser_of(getattr(import_module(module), kind))
    return frozenset(parser._option_string_actions)
