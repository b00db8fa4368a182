"""Compare two versions of the package by turns: microseconds per episode, by learner and world of `bench episode`.

    git worktree add out/old some-commit
    python tools/compare_episode.py out/old/src src out/progress.json
    python tools/compare_episode.py src src out/shipped.json --shipped    # the code that came with the package

Each version is measured by its own benchmark: `bench` beside its src, or in the package of versions that had it there.
One process for each version keeps warm learners and waits while the other one is timed: a machine that becomes slower
or faster meanwhile does so for both. Both are compiled for this processor; with --shipped the second one uses the code
that came with it, which is made for many. The tool prints a table and saves it as JSON. It takes four minutes, and two
more for each version whose kernels have to be compiled.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

CACHE = Path(__file__).resolve().parent.parent / "out" / "compared"
"""Compiled code of both versions, apart from the user's own"""
TURNS = 30
SECONDS = 0.02


class Version:
    """A process that times episodes of the package in a folder."""

    def __init__(self, source: str, shipped: bool) -> None:
        folder = Path(source).resolve()
        kept = CACHE / ("shipped" if shipped else "native")
        environment = os.environ | {"PYTHONPATH": f"{folder}{os.pathsep}{folder.parent}", "NUMBA_CACHE_DIR": str(kept)}
        command = [sys.executable, __file__, "--worker", *(["--shipped"] if shipped else [])]
        self.process = subprocess.Popen(
            command, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def ask(self, *words: object) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(*words, sep="\t", file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit("a version ended early; its error is above")
        return answer.strip()


def compare(old: str, new: str, out: Path, shipped: bool) -> None:
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from bench import manifest

    versions = Version(old, shipped=False), Version(new, shipped)
    labels = json.loads(versions[1].ask("worlds"))
    rows = []
    for label in labels:
        names = [json.loads(version.ask("open", label)) for version in versions]
        times: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in names[1] if name in names[0]}
        for turn in range(TURNS):
            for name, pair in times.items():
                for which in (0, 1) if turn % 2 else (1, 0):
                    pair[which].append(float(versions[which].ask("turn", name)))
        for name, (before, after) in times.items():
            row = {"world": label, "learner": name, "before": statistics.median(before)}
            row |= {"after": statistics.median(after)}
            row["faster"] = statistics.median(a / b for a, b in zip(before, after, strict=True))
            rows.append(row)
            print(f"{label:22} {name:18} {row['before'] * 1e6:10.2f} {row['after'] * 1e6:10.2f} {row['faster']:6.2f}x")
    data = manifest.report("progress", {"turns": TURNS, "turn": SECONDS}, rows, "bench.episode")
    manifest.write(out.parent, out.name, manifest.as_json(data))


def work(shipped: bool) -> None:
    """Answer questions: which worlds there are, open one and name its learners, time a turn of one of them."""
    if not shipped:
        with suppress(ImportError):  # older versions have no code that comes with them
            import_module("hedgerow.compiling.cache").ignore()
    worlds, compiled = _benchmark()
    contenders: dict[str, Any] = {}
    for line in sys.stdin:
        command, *rest = line.rstrip("\n").split("\t")
        if command == "worlds":
            print(json.dumps(list(worlds)), flush=True)
        elif command == "open":
            contenders = compiled(worlds[rest[0]]())
            print(json.dumps(list(contenders)), flush=True)
        else:
            print(contenders[rest[0]].turn(), flush=True)


def _benchmark() -> tuple[dict[str, Any], Callable[[Any], dict[str, Any]]]:
    """The worlds by name, and a function that makes the warm learners of one, by name."""
    try:
        from bench.episode import EpisodeSpeed
        from bench.episode_worlds import LABELS
    except ImportError:  # a version with the benchmarks in the package
        package = import_module("hedgerow.bench.episode")
        settings = package.Settings(turn=SECONDS)

        def compiled(world: Any) -> dict[str, Any]:
            learners = package.our_learners(world, settings.horizon)
            return {name: package._warmed(world, name, each, settings) for name, each in learners.items()}

        return import_module("hedgerow.bench.episode_worlds").LABELS, compiled
    return LABELS, EpisodeSpeed(turn=SECONDS).compiled


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shipped", action="store_true", help="the second version uses the code that came with it")
    if sys.argv[1:2] == ["--worker"]:
        work(parser.parse_args(sys.argv[2:]).shipped)
    else:
        for name in ("old", "new", "out"):
            parser.add_argument(name, type=Path if name == "out" else str)
        asked = parser.parse_args()
        compare(asked.old, asked.new, asked.out, asked.shipped)
