"""Run all pages, each in a process and a scratch folder of its own, two at a time."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tools.docs import blocks, fences

ROOT = Path(__file__).resolve().parents[2]
AT_ONCE = 2
SECONDS = 300
"""A page that takes longer has failed."""


@dataclass(frozen=True)
class Outcome:
    """What became of one page."""

    name: str
    complaints: tuple[str, ...]
    seconds: float


def check_pages(pages: Iterable[Path], root: Path = ROOT) -> list[Outcome]:
    """Check the blocks of every page and run those that can be run; in the order of the pages."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda page: check_page(page, root), pages))


def check_page(page: Path, root: Path = ROOT) -> Outcome:
    """Mistakes that are found by reading come first; a page that has some is not run."""
    name = page.relative_to(root).as_posix() if page.is_relative_to(root) else page.name
    found = fences.blocks(page)
    mistakes = [f"{name}, {block.place}: {mistake}" for block in found for mistake in blocks.mistakes(block)]
    if mistakes or not any(_runs(block) for block in found):
        return Outcome(name, tuple(mistakes), 0.0)
    start = time.perf_counter()
    complaints = _run(page, name, root)
    return Outcome(name, tuple(complaints), time.perf_counter() - start)


def _runs(block: fences.Block) -> bool:
    return block.language in ("python", fences.HIDDEN) or "run" in block.words or blocks.is_experiment(block)


def _run(page: Path, name: str, root: Path) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="hedgerow-docs-") as scratch:
        if (root / "examples").is_dir():
            shutil.copytree(root / "examples", Path(scratch) / "examples")
        path = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
        try:
            done = subprocess.run(
                [sys.executable, "-m", "tools.docs.run_page", str(page.resolve()), name],
                cwd=scratch,
                check=False,
                capture_output=True,
                text=True,
                encoding="utf-8",
                timeout=SECONDS,
                env={**os.environ, "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8"},
            )
        except subprocess.TimeoutExpired:
            return [f"{name}: the page takes longer than {SECONDS} s"]
    try:
        found: list[str] = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        return [f"{name}: the process ended with {done.returncode}: {done.stderr.strip()[-500:]}"]
    return found
