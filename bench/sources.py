"""The hash of everything that a benchmark is made of: the package, and those modules of `bench` that it imports.

Figures with the hash of the present sources need not be measured again.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import hedgerow

BENCH = Path(__file__).resolve().parent
PACKAGE = Path(hedgerow.__file__).resolve().parent
KINDS = (".py", ".toml", ".csv", ".json", ".npz")
MADE = {"__pycache__", "compiled"}
"""Folders of what is made from sources"""


@cache
def digest(module: str) -> str:
    """Of the package and of `module`, one of `bench`, with the modules of `bench` that it imports, directly or not."""
    files = [path for path in PACKAGE.rglob("*") if path.suffix in KINDS and not MADE & set(path.parts)]
    found = hashlib.sha256()
    named = {path.relative_to(PACKAGE.parent).as_posix(): path for path in files}
    named |= {f"bench/{name}.py": BENCH / f"{name}.py" for name in modules_of(module)}
    for name, path in sorted(named.items()):
        found.update(f"{name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return found.hexdigest()


def modules_of(module: str) -> set[str]:
    """The names of a module of `bench` and of all that it imports there, without the package's."""
    found: set[str] = set()
    ahead = [module.removeprefix("bench.")]
    while ahead:
        name = ahead.pop()
        if name not in found:
            found.add(name)
            ahead += _imported(BENCH / f"{name}.py")
    return found


def _imported(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "bench":
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bench."):
            yield str(node.module).removeprefix("bench.")
