"""Which kinds of blocks a page may have, and what is wrong with one before anything is run.

| block | what is checked |
|---|---|
| `python` | runs, all blocks of a page in one namespace; `expression  # value` must have that value |
| `python title="file.py"` | is compiled and written into the scratch folder, for later blocks and commands |
| `console` | every command exists, with its subcommand and its options |
| `console run` | as well, and the commands are run; output that is shown below `$ command` must come |
| `toml` | is valid TOML; a whole experiment is read as `hedgerow run` would read it; `title` as above |
| `yaml`, `json`, `csv` | is valid; `title` as above |
| `text output` | what the Python block before it prints |
| `text`, `bibtex` | shown only |
"""

from __future__ import annotations

import ast
import csv
import json
import tomllib
from collections.abc import Iterator
from pathlib import PurePosixPath

from tools.docs.commands import command_lines, problems
from tools.docs.fences import HIDDEN, Block

WORDS = {
    "bibtex": (),
    "console": ("run",),
    "csv": (),
    HIDDEN: (),
    "json": (),
    "python": (),
    "text": ("output",),
    "toml": (),
    "yaml": (),
}
"""The kinds, and the words that may follow each."""
SHOWN_ONLY: dict[tuple[str, str], str] = {}
"""Python blocks that are not run: (page, first line of the block) -> the reason. It is empty; keep it short."""
EXPERIMENT = {"episodes", "world", "adversary", "learner"}
"""A TOML block with all of these is an experiment."""


def mistakes(block: Block) -> Iterator[str]:
    """What can be said about a block without running it."""
    if block.unclosed:
        yield "the block is never closed"
        return
    if block.language not in WORDS:
        named = f"the kind {block.language!r}" if block.language else "a block without a kind"
        yield f"{named} is not known; write one of {', '.join(kind for kind in WORDS if kind != HIDDEN)}"
        return
    for word in block.words:
        if word not in WORDS[block.language]:
            yield f"`{block.language}` blocks know no word {word!r}"
    for key in block.settings:
        if key != "title":
            yield f"blocks have no setting {key!r}, only title"
    yield from _title_mistakes(block)
    yield from _content_mistakes(block)


def _title_mistakes(block: Block) -> Iterator[str]:
    path = PurePosixPath(block.settings.get("title", "file"))
    if path.is_absolute() or ".." in path.parts:
        yield f"a block is written into the scratch folder, not to {path}"


def _content_mistakes(block: Block) -> Iterator[str]:
    try:
        if block.language == "toml":
            tomllib.loads(block.text)
        elif block.language == "csv":
            widths = {len(row) for row in csv.reader(block.text.splitlines())}
            if len(widths) > 1:
                raise ValueError("rows have different numbers of fields")
        elif block.language == "json":
            json.loads(block.text)
        elif block.language == "yaml":
            import yaml

            yaml.safe_load(block.text)
        elif block.language in ("python", HIDDEN):
            ast.parse(block.text)
    except Exception as error:  # every reader has its own kind
        yield f"not valid {'Python' if block.language == HIDDEN else block.language}: {error}"
    if block.language == "console":
        for line, command, _ in command_lines(block.text):
            for problem in problems(command):
                yield f"line {block.line + line}: {problem}"


def is_experiment(block: Block) -> bool:
    return block.language == "toml" and set(tomllib.loads(block.text)) >= EXPERIMENT
