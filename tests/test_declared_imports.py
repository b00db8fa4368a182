"""Nothing is imported that pyproject.toml does not name, and the package needs no more than its dependencies."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import pytest

from parsed import nodes

ROOT = Path(__file__).resolve().parent.parent
ABOUT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
FOLDERS = ("src", "tools", "bench", "tests", "examples", "docs")
LOADERS = {"import_module", "importorskip", "find_spec", "_package"}
ONLY_WHERE_THEY_ARE = {
    "IPython": "notebook views and bars, in a notebook, which has it",
    "mlflow": "a hook of `simulate`, for those who use it",
    "pandas": "`to_pandas`, for those who use it",
    "wandb": "a hook of `simulate`, for those who use it",
}
"""What the package itself imports beyond its dependencies and extras, in functions alone, and when."""
NOT_OURS_TO_INSTALL = {
    **ONLY_WHERE_THEY_ARE,
    "polars": "a test reads its tables where somebody has it",
    "pynol": "a benchmark compares with it where somebody has it",
    "dask": "comes with distributed",
    "sly_costs": "a module that a test writes",
    "stable_baselines3": "an example and its test, where somebody has it: torch alone has 750 MB",
    "torch": "comes with stable_baselines3",
}
"""What is asked for and need not be there."""


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def named(requirements: list[str]) -> set[str]:
    """The distributions of some requirements."""
    return {canonical(re.match(r"[\w.-]+", one).group()) for one in requirements}  # type: ignore[union-attr]


CORE = named(ABOUT["project"]["dependencies"])
EXTRAS = named([one for extra in ABOUT["project"]["optional-dependencies"].values() for one in extra])
GROUPS = named([one for group in ABOUT["dependency-groups"].values() for one in group if isinstance(one, str)])
BUILD = named(ABOUT["build-system"]["requires"])


@cache
def installed() -> dict[str, set[str]]:
    """By module at the top: the distributions that it may come from. Reading them all takes a while."""
    return {module: set(map(canonical, found)) for module, found in packages_distributions().items()}


def distributions(module: str) -> set[str]:
    """Those that a module at the top may come from; one of its own name if it is not installed."""
    return installed().get(module, {canonical(module)})


@cache
def imported(source: str) -> tuple[tuple[str, bool], ...]:
    """The modules at the top that a file imports, and whether it does so as soon as it is imported itself."""
    return tuple(_imported(nodes(source)))


def _imported(seen: Iterable[ast.AST]) -> Iterator[tuple[str, bool]]:
    late = {id(node) for outer in seen if _is_late(outer) for node in ast.walk(outer) if _may_import(node)}
    for node in seen:
        at_once = id(node) not in late
        if isinstance(node, ast.Import):
            yield from ((alias.name.split(".")[0], at_once) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0], at_once
        elif isinstance(node, ast.Call) and _loads(node) and isinstance(node.args[0], ast.Constant):
            yield str(node.args[0].value).split(".")[0], at_once


def _loads(node: ast.Call) -> bool:
    return bool(node.args) and getattr(node.func, "attr", getattr(node.func, "id", "")) in LOADERS


def _may_import(node: ast.AST) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom | ast.Call)


def _is_late(node: ast.AST) -> bool:
    typing = isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
    return typing or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


@cache
def third_parties(folder: str) -> dict[str, dict[str, bool]]:
    """By module: the files of a folder that import it, and whether they do so at once."""
    files_of_ours = [*ROOT.glob("*.py"), *(ROOT / "tests").rglob("*.py")]
    ours = {"hedgerow", "bench", "tools", "tests", *(path.stem for path in files_of_ours)}
    found: dict[str, dict[str, bool]] = {}
    for file in sorted((ROOT / folder).rglob("*.py")):
        for module, at_once in imported(file.read_text(encoding="utf-8")):
            if module not in sys.stdlib_module_names and module not in ours:
                files = found.setdefault(module, {})
                place = file.relative_to(ROOT).as_posix()
                files[place] = files.get(place, False) or at_once
    return found


OPTIONAL = tuple(f"src/hedgerow/{folder}/" for folder in ("gym", "journal", "serve"))
"""The folders that are made for an extra"""


def undeclared(modules: dict[str, dict[str, bool]], declared: set[str]) -> dict[str, list[str]]:
    return {module: sorted(files) for module, files in modules.items() if not distributions(module) & declared}


@pytest.mark.parametrize("folder", FOLDERS)
def test_whatever_is_imported_is_declared(folder: str) -> None:
    wrong = undeclared(third_parties(folder), CORE | EXTRAS | GROUPS | BUILD)
    assert not {module: files for module, files in wrong.items() if module not in NOT_OURS_TO_INSTALL}


def test_the_package_imports_its_dependencies_and_extras() -> None:
    wrong = undeclared(third_parties("src"), CORE | EXTRAS)
    assert set(wrong) == set(ONLY_WHERE_THEY_ARE)
    at_once = {
        module: {file for file, soon in files.items() if soon and not file.startswith(OPTIONAL)}
        for module, files in third_parties("src").items()
        if not distributions(module) & CORE
    }
    assert {module: files for module, files in at_once.items() if files} == {}


def test_every_dependency_is_used() -> None:
    used = {name for module in third_parties("src") for name in distributions(module)}
    assert used >= (CORE | EXTRAS) - {"psycopg"}  # which SQLAlchemy imports, by the address of a database


def test_an_undeclared_import_is_found() -> None:
    source = "import requests\n\ndef f():\n    import_module('torch.nn')\n    from attrs import define\n"
    assert dict(imported(source)) == {"requests": True, "torch": False, "attrs": False}
    assert undeclared({"requests": {"a.py": True}, "numpy": {"a.py": True}}, CORE) == {"requests": ["a.py"]}


# Without anything else ------------------------------------------------------------------------------------------------

ALONE = """
import pkgutil, sys, tempfile

hidden = set(sys.argv[1].split(","))

before = set(sys.modules)

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in hidden:
            raise ModuleNotFoundError(f"No module named {name!r} (hidden)", name=name)

sys.meta_path.insert(0, Hidden())
import importlib
import hedgerow as hr

for module in pkgutil.walk_packages(hr.__path__, "hedgerow."):
    if not module.name.startswith(("hedgerow.gym", "hedgerow.journal", "hedgerow.serve", "hedgerow.__main__")):
        importlib.import_module(module.name)
world = hr.worlds.make("lower-bound-2")
run = hr.simulate(world, hr.SOPS(world, 8, 0.05, "paper", baseline="slater"), progress=False)
with tempfile.TemporaryDirectory() as folder:
    run.report(folder + "/run.html")
seen = hidden & {name.split(".")[0] for name in set(sys.modules) - before}
assert not seen, seen
print("alone")
"""


def needed(distribution: str, found: set[str]) -> set[str]:
    """A distribution and all that it needs, as far as they are installed."""
    if distribution not in found:
        try:
            wanted = requires(distribution) or []
        except PackageNotFoundError:
            return found
        found.add(distribution)
        for one in named([one for one in wanted if "extra ==" not in one]):
            needed(one, found)
    return found


@pytest.mark.slow
def test_the_package_works_with_its_dependencies_alone() -> None:
    kept: set[str] = {"hedgerow"}
    for one in CORE:
        needed(one, kept)
    hidden = sorted(module for module, found in installed().items() if not found & kept and module.isidentifier())
    assert "pytest" in hidden
    command, surroundings = [sys.executable, "-c", ALONE, ",".join(hidden)], os.environ | {"NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(command, env=surroundings, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "alone\n"), done.stderr[-2000:]
