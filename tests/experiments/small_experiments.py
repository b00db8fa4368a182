"""Experiments that take a second, and what the tests ask of their results."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hedgerow.experiments import components
from hedgerow.experiments.source import Source
from hedgerow.experiments.spec import Experiment, parse

HEAD = """\
seeds = 2
episodes = [50, 80]
"""
BODY = """\
[[world]]
name = "lower-bound-1"
episodes = "T"
label = "first"

[[adversary]]
name = "switching"
period = 20

[[learner]]
name = "sv-ops"

[[learner]]
name = "s-ops"
preset = "sharp"
"""
SMALL = HEAD + BODY


def own_loss(*learners: str, seeds: int, episodes: int) -> str:
    """The text of an experiment with the smallest world and its own loss."""
    world = '[[world]]\nname = "lower-bound-1"\n[[adversary]]\nname = "own"\n'
    listed = "".join(f'[[learner]]\nname = "{name}"\n' for name in learners)
    return f"seeds = {seeds}\nepisodes = {episodes}\n{world}{listed}"


NUM_CELLS = 8
HUNG = 1200.0
"""Seconds after which a process counts as one that hangs: no machine is so busy that an honest one takes as long."""


def source(text: str, folder: Path | None = None) -> Source:
    return Source("small.toml", text, folder or Path())


def small(text: str = SMALL, folder: Path | None = None) -> Experiment:
    return parse(source(text, folder))


def overlooked(text: str) -> Experiment:
    """An experiment with learners that cannot be built, as if nobody had looked before the run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(components, "check_learner", lambda *arguments: None)
        return small(text)


def cell_files(directory: Path) -> dict[str, bytes]:
    """The content of all finished cells and traces, by path."""
    paths = [*directory.glob("cells/*.parquet"), *directory.glob("traces/*.parquet")]
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in paths}


def start(*arguments: str, **options: Any) -> subprocess.Popen[str]:
    """`hedgerow ...` in a process group of its own."""
    command = [sys.executable, "-m", "hedgerow", *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, start_new_session=True, env=dict(os.environ), **{**pipes, **options})
