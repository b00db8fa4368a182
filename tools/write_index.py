"""Write `registry/index.json` and the stubs of `hr.field` and `hr.losses` from the sources: what ships is named once.

    python tools/write_index.py             after a learner, a world, an adversary was added or changed
    python tools/write_index.py --check     exit code 1 if a file is not up to date

A learner and an adversary are named by the attribute `kind` of their class, a world by the decorator `@entry` of its
function, a cost distribution by its class (`BernoulliCosts` is "bernoulli"). Names that the index has keep their place,
which is that in lists and reports; new ones follow.
"""

from __future__ import annotations

import argparse
import json
import pkgutil
import re
import sys
from ast import literal_eval
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "hedgerow"
INDEX = PACKAGE / "registry" / "index.json"
STUBS = {"learner": "learners/field", "adversary": "losses"}
"""Packages whose stub lists what the index has of them, by kind."""
sys.path[:0] = [str(ROOT / "src")]

from hedgerow import registry  # noqa: E402
from hedgerow.experiments.components import FACTS  # noqa: E402
from hedgerow.model.costs import CostDistribution  # noqa: E402
from hedgerow.registry import Found, Registry  # noqa: E402
from hedgerow.registry.registry import BUILT_IN, home_of  # noqa: E402
from hedgerow.worlds import entries  # noqa: E402

TABLES = (registry.learners, registry.worlds, registry.adversaries, registry.costs)
_LINE = re.compile(r"from \.(\S+) import (\w+) as \2")

Record = dict[str, Any]


def index() -> str:
    """The text of the index: a line for each thing."""
    parts = []
    for table in TABLES:
        found = _targets(table.kind)
        names = dict.fromkeys([*(name for name in table.builtin if name in found), *found])
        lines = [f"    {json.dumps(_record(table, name, found[name]))}" for name in names]
        parts.append(f"  {json.dumps(table.kind)}: [\n" + ",\n".join(lines) + "\n  ]")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _targets(kind: str) -> dict[str, Any]:
    """What ships of a kind, by name, in the order of the sources."""
    if kind == "world":
        list(_classes("worlds"))  # the decorator enters them
        return {name: item.build for name, item in entries._entries.items()}
    if kind == "cost distribution":
        return {
            cls.__name__.removesuffix("Costs").lower(): cls
            for cls in _classes("model")
            if issubclass(cls, CostDistribution) and cls is not CostDistribution
        }
    packages = ("learners",) if kind == "learner" else ("losses", "worlds")
    classes = (cls for package in packages for cls in _classes(package))
    return {cls.kind: cls for cls in classes if isinstance(vars(cls).get("kind"), str)}


def _classes(package: str) -> Iterator[type]:
    """The classes that are defined in a package, after all of its modules are imported."""
    top = import_module(f"hedgerow.{package}")
    for found in sorted(pkgutil.walk_packages(top.__path__, f"{top.__name__}."), key=lambda found: found.name):
        module = import_module(found.name)
        yield from (cls for cls in vars(module).values() if isinstance(cls, type) and cls.__module__ == found.name)


def _record(table: Registry, name: str, target: Any) -> Record:
    found = Found(name, BUILT_IN, target)
    parameters = [
        [item.name, item.type, None if item.required else _literal(name, item.default)]
        for item in found.signature.parameters.values()
    ]
    facts = _world_facts(found) if table.kind == "world" else FACTS[table.kind](found)
    return {
        "name": name,
        "home": home_of(target),
        "description": found.description,
        "parameters": parameters,
        "facts": facts,
    }


def _literal(name: str, default: Any) -> str:
    if literal_eval(repr(default)) != default:
        raise SystemExit(f"{name}: the default {default!r} is no literal, so that the index cannot hold it")
    return repr(default)


def _world_facts(found: Found) -> Record:
    item = entries._entries[found.name]
    adversaries = list(item.adversaries)
    return {"description": item.description, "source": item.source, "adversaries": adversaries, "frozen": item.frozen}


def stub(folder: str, old: Sequence[Record], new: Sequence[Record]) -> str:
    """The stub of a package: the lines that are about nothing that ships, and those of the index."""
    path = PACKAGE / folder / "__init__.pyi"
    lines = {found.groups() for found in map(_LINE.fullmatch, path.read_text(encoding="utf-8").splitlines()) if found}
    names = (lines - _homes(folder, old)) | _homes(folder, new)
    return "".join(f"from .{module} import {name} as {name}\n" for module, name in sorted(names, key=_place))


def _homes(folder: str, records: Sequence[Record]) -> set[tuple[str, ...]]:
    """(module, name) of what a package itself has."""
    prefix = f"hedgerow.{folder.replace('/', '.')}."
    homes = (record["home"] for record in records)
    return {tuple(home.removeprefix(prefix).split(":")) for home in homes if home.startswith(prefix)}


def _place(line: tuple[str, ...]) -> tuple[str, int, str]:
    """As imports are sorted: constants, classes, functions."""
    module, name = line
    return module, 0 if name.isupper() and len(name) > 1 else 1 if name[0].isupper() else 2, name


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Write the index of what ships, and stubs.")
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args(arguments).check
    made = {INDEX: index()}
    old, new = json.loads(INDEX.read_text(encoding="utf-8")), json.loads(made[INDEX])
    for kind, folder in STUBS.items():
        made[PACKAGE / folder / "__init__.pyi"] = stub(folder, old[kind], new[kind])
    stale = [path for path, text in made.items() if path.read_text(encoding="utf-8") != text]
    for path in stale:
        if check:
            print(f"{path.relative_to(ROOT)} is not up to date: run python tools/write_index.py", file=sys.stderr)
        else:
            path.write_text(made[path], encoding="utf-8")
    return 1 if stale and check else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
