"""Syntax trees of source texts, each made and walked once in a process: many tests look at all modules."""

from __future__ import annotations

import ast
from functools import cache


@cache
def parse(source: str) -> ast.Module:
    """`ast.parse`; nobody changes what it returns."""
    return ast.parse(source)


@cache
def nodes(source: str) -> tuple[ast.AST, ...]:
    """All nodes of a source text, in the order of `ast.walk`."""
    return tuple(ast.walk(parse(source)))
