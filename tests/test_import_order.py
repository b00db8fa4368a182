"""Imports between folders point leftwards only, and the modules keep to the house rules on size and docstrings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from parsed import nodes, parse

SOURCES = Path(__file__).resolve().parent.parent / "src" / "hedgerow"
MOST_LINES = 600
"""Without docstrings: the reference is made of these, and a module does not grow by explaining itself."""

# One group per place in the flow of the data; a module imports from groups further up or from its own folder.
ORDER = (
    ("_late", "_nearest", "errors", "paper"),
    ("storage",),
    ("display",),
    ("checks", "compiling"),
    ("registry",),
    ("model",),
    ("planning",),
    ("importers", "losses"),
    ("confidence", "worlds"),
    ("projection",),
    ("environments",),
    ("learners",),
    ("journal", "simulation"),
    ("results",),
    ("experiments",),
    ("forecast", "report"),
    ("gym", "serve", "testing", "verify"),
    ("__init__",),  # the public face
    ("commands",),
    ("cli",),
    ("__main__",),
)
RANK = {folder: rank for rank, group in enumerate(ORDER) for folder in group}

LATE = {
    ("experiments/sweep.py", "report.board:write_board"),
    ("importers/logs.py", "environments.play:play_many"),
    ("learners/ops/s_ops.py", "forecast.model:own_episodes"),
    ("model/cmdp.py", "environments.play:played"),
    ("simulation/files.py", "worlds.world:read_definition"),
    ("results/groups.py", "results.leaderboard:leaderboard"),
    ("results/groups.py", "report.figures:results_plot"),
    ("simulation/result.py", "report.page:report"),
    ("simulation/result.py", "report.figures:run_plot"),
}
"""The methods that end in a later folder, and where they do: `hedgerow._late` looks these up by name."""

# What is learnt must not depend on which worlds happen to be named.
READS_WORLDS = {"experiments", "forecast", "verify", "gym", "report", "__init__", "commands", "cli"}


# The families of learners share `learners/` and nothing else. Others use the learners themselves and their switches.
FAMILIES = {"ops", "field"}
FACES = {
    ("ops", "sv_ops"),
    ("ops", "s_ops"),
    ("ops", "cv_ops"),
    ("ops", "b_ops"),
    ("ops", "c_ops"),
    ("ops", "uob_reps"),
    ("ops", "settings"),
    ("field", "base"),
}
INSIDERS = {"learners", "verify"}
"""They may look into a family: `verify` checks and breaks what is inside."""
LOOKS_INSIDE = {
    "experiments/warmup.py": "compiles the kernels before they are needed",
}
"""The files elsewhere that may, and why"""


def source_files() -> list[Path]:
    return sorted(SOURCES.rglob("*.py"))


def folder_of(parts: tuple[str, ...]) -> str:
    """The folder (or root module) of a dotted path below the package: () is the public face."""
    return parts[0] if parts else "__init__"


def imported_modules(source: str, package: tuple[str, ...]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """(line, dotted path below hedgerow) of each import, wherever in the module it stands.

    `package` is the path, below hedgerow, of the package that contains the module: relative imports start there.
    """
    for node in nodes(source):
        if isinstance(node, ast.Import):
            for alias in node.names:
                parts = alias.name.split(".")
                if parts[0] == "hedgerow":
                    yield node.lineno, tuple(parts[1:])
        elif isinstance(node, ast.ImportFrom):
            base = _base(node, package)
            for alias in node.names if base is not None else ():
                yield node.lineno, (*base, alias.name) if is_module((*base, alias.name)) else base


def _base(node: ast.ImportFrom, package: tuple[str, ...]) -> tuple[str, ...] | None:
    """Where `from ... import` looks, below hedgerow; None for other packages."""
    parts = tuple((node.module or "").split(".")) if node.module else ()
    if node.level:
        return (*package[: len(package) - node.level + 1], *parts)
    return parts[1:] if parts[:1] == ("hedgerow",) else None


def is_module(parts: tuple[str, ...]) -> bool:
    path = SOURCES.joinpath(*parts)
    return path.with_suffix(".py").is_file() or path.is_dir()


def offences(source: str, parts: tuple[str, ...], package: tuple[str, ...]) -> list[str]:
    """What a module at `parts` imports although it must not."""
    here, found = folder_of(parts), []
    for line, target in imported_modules(source, package):
        there = folder_of(target)
        if there == here:
            continue
        if there not in RANK:
            found.append(f"line {line}: {there} has no place in ORDER")
        elif RANK[there] >= RANK[here]:
            found.append(f"line {line}: {here} imports {there}, which is not to its left")
        elif there == "worlds" and here not in READS_WORLDS:
            found.append(f"line {line}: {here} imports named worlds")
    return found


def family_offences(source: str, file: str, package: tuple[str, ...]) -> list[str]:
    """Where a file looks into a family of learners from outside, or one family into another."""
    own, found = Path(file).parts, []
    mine = own[1] if own[0] == "learners" and own[1] in FAMILIES else None
    for line, target in imported_modules(source, package):
        if target[:1] != ("learners",) or len(target) < 2 or target[1] not in FAMILIES:
            continue
        if mine is not None and target[1] != mine:
            found.append(f"line {line}: {mine} imports {target[1]}; what both need belongs into learners/")
        elif own[0] not in INSIDERS and target[1:3] not in FACES and file not in LOOKS_INSIDE:
            found.append(f"line {line}: {'.'.join(target)} is an inside of its family")
    return found


def private_offences(source: str, parts: tuple[str, ...], package: tuple[str, ...]) -> list[str]:
    """Names with a leading underscore that a module takes from another folder, by import or as an attribute."""
    here, found = folder_of(parts), []
    elsewhere: dict[str, str] = {}  # what modules of other folders are called here
    for node in nodes(source):
        base = _base(node, package) if isinstance(node, ast.ImportFrom) else None
        for alias in node.names if base is not None and folder_of(base) != here else ():
            if is_private(alias.name):
                found.append(f"line {node.lineno}: {alias.name} is private to {'.'.join(base)}")
            elif is_module((*base, alias.name)):
                elsewhere[alias.asname or alias.name] = ".".join((*base, alias.name))
    for node in nodes(source):
        if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
            continue
        if is_private(node.attr) and node.value.id in elsewhere:
            found.append(f"line {node.lineno}: {node.attr} is private to {elsewhere[node.value.id]}")
    return found


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def module_parts(file: Path) -> tuple[str, ...]:
    parts = file.relative_to(SOURCES).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


@pytest.mark.parametrize("file", source_files(), ids=lambda file: file.relative_to(SOURCES).as_posix())
def test_imports_point_leftwards(file: Path) -> None:
    parts = module_parts(file)
    assert folder_of(parts) in RANK, f"give {folder_of(parts)} a place in ORDER"
    package = file.relative_to(SOURCES).parts[:-1]
    assert offences(file.read_text(), parts, package) == []


def calls_with_text(file: Path, function: str) -> Iterator[str]:
    """The first arguments of the calls of `function` in a module, where they are texts."""
    for node in nodes(file.read_text()):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == function and node.args:
            first = node.args[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value


def test_the_methods_that_end_in_a_later_folder_are_these() -> None:
    files = {file.relative_to(SOURCES).as_posix(): file for file in source_files()}
    assert {(name, place) for name, file in files.items() for place in calls_with_text(file, "late")} == LATE
    for _, place in LATE:
        module, _, function = place.partition(":")
        assert f"def {function}(" in SOURCES.joinpath(*module.split(".")).with_suffix(".py").read_text()


def test_no_other_module_is_imported_by_name_from_further_right() -> None:
    for file in source_files():
        for name in calls_with_text(file, "import_module"):
            if name.startswith("hedgerow."):
                assert RANK[name.split(".")[1]] < RANK[folder_of(module_parts(file))], f"{file.name}: {name}"


@pytest.mark.parametrize("file", source_files(), ids=lambda file: file.relative_to(SOURCES).as_posix())
def test_insides_stay_inside(file: Path) -> None:
    source, name = file.read_text(), file.relative_to(SOURCES).as_posix()
    package = file.relative_to(SOURCES).parts[:-1]
    assert family_offences(source, name, package) == []
    assert private_offences(source, module_parts(file), package) == []


def test_every_exception_is_needed() -> None:
    for name in LOOKS_INSIDE:
        package = Path(name).parts[:-1]
        assert family_offences((SOURCES / name).read_text(), f"elsewhere/{name}", package)


@pytest.mark.parametrize(
    ("source", "file", "complaint"),
    [
        ("from hedgerow.learners.ops.state import Core", "learners/field/lp.py", "field imports ops"),
        ("from ..field import base", "learners/ops/base.py", "ops imports field"),
        ("from hedgerow.learners.ops import step", "results/store.py", "learners.ops.step is an inside"),
    ],
)
def test_a_look_into_a_family_is_found(source: str, file: str, complaint: str) -> None:
    found = family_offences(source, file, Path(file).parts[:-1])
    assert len(found) == 1
    assert complaint in found[0]
    assert family_offences("from hedgerow.learners.ops.s_ops import SOPS", "results/store.py", ("results",)) == []


def test_a_private_name_from_elsewhere_is_found() -> None:
    source = "from hedgerow.model.view import _hidden\nfrom hedgerow.model import view as v\nv._hidden\nv.__doc__\n"
    assert len(private_offences(source, ("results", "store"), ("results",))) == 2
    assert private_offences(source, ("model", "cmdp"), ("model",)) == []


@pytest.mark.parametrize("file", source_files(), ids=lambda file: file.relative_to(SOURCES).as_posix())
def test_module_says_what_it_is_and_stays_small(file: Path) -> None:
    text = file.read_text()
    assert ast.get_docstring(parse(text)), "a module opens with a docstring"
    assert num_lines(text) <= MOST_LINES, "this is two modules"


def num_lines(source: str) -> int:
    """How many lines a module has besides its docstrings, those of attributes included."""
    bodies = [node.body for node in nodes(source) if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)]
    texts = [
        node for body in bodies for node in body if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    ]
    return len(source.splitlines()) - sum((text.end_lineno or 0) - text.lineno + 1 for text in texts)


def test_docstrings_are_not_counted() -> None:
    assert (
        num_lines('"""One\n\ntwo.\n"""\nX = 1\n"""Three."""\ndef f():\n    """Four."""\n    return """five\n"""\n') == 4
    )


@pytest.mark.parametrize(
    ("source", "parts", "complaint"),
    [
        ("import hedgerow.cli", ("model", "layout"), "model imports cli"),
        ("from hedgerow.projection import x", ("model", "layout"), "model imports projection"),
        ("def f():\n    from hedgerow import worlds", ("model", "offline"), "line 2: model imports worlds"),
        ("from hedgerow import Layout", ("model", "offline"), "model imports __init__"),
        ("from .. import storage, cli", ("model", "offline"), "model imports cli"),
        ("from ..confidence.counts import N", ("worlds", "dope"), "worlds imports confidence"),
        ("from hedgerow.worlds import make", ("learners", "core"), "learners imports named worlds"),
        ("import hedgerow.novelty", ("cli",), "novelty has no place in ORDER"),
        ("from hedgerow.checks import frozen", ("storage", "atomic"), "storage imports checks"),
    ],
)
def test_a_wrong_import_is_found(source: str, parts: tuple[str, ...], complaint: str) -> None:
    found = offences(source, parts, parts[:-1])
    assert len(found) == 1
    assert complaint in found[0]


@pytest.mark.parametrize(
    ("source", "parts"),
    [
        ("from hedgerow import storage", ("model", "cmdp")),
        ("from .layout import Layout\nfrom . import costs\nfrom .. import errors", ("model", "cmdp")),
        ("import numpy\nfrom os import path", ("errors",)),
        ("from hedgerow.worlds import make", ("verify", "claims")),
    ],
)
def test_a_right_import_is_let_through(source: str, parts: tuple[str, ...]) -> None:
    assert offences(source, parts, parts[:-1]) == []


def test_a_class_name_has_one_meaning() -> None:
    homes: dict[str, list[str]] = {}
    for file in source_files():
        for node in parse(file.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(file.relative_to(SOURCES).as_posix())
    assert {name: files for name, files in homes.items() if len(files) > 1} == {}


OTHERS = {"file.py", "greedy.py"}
"""Files of users, in examples"""


def test_files_that_sources_name_exist() -> None:
    """A comment that names a file which was moved sends its reader nowhere."""
    known = {file.relative_to(SOURCES).as_posix() for file in source_files()}
    names = {Path(file).name for file in known}
    wrong = []
    for file in source_files():
        for named in re.findall(r"`((?:[a-z_]+/)*[a-z_0-9]+\.py)(?:::\w+)?`", file.read_text()):
            inside = named.removeprefix("src/").removeprefix("hedgerow/")
            beside = (SOURCES.parents[1] / named).is_file()
            if not beside and inside not in (known if "/" in inside else names | OTHERS):
                wrong.append(f"{file.relative_to(SOURCES)} names {named}")
    assert wrong == []
