"""`python -m bench compile`: the time of compilation, each time in a fresh process with an empty cache.

It measures `hedgerow compile --native` (all kernels, in two processes and in one; native, so that code which came with
the package does not help), the same with `--only blocks` (what simulations and the demo need), `hedgerow demo` that has
to compile and again with everything compiled, and the first simulated episode of a process that finds everything
compiled. With `--wheel PATH` it installs a platform wheel into a folder of its own, and measures its first episode with
an empty cache, which must stay empty; `--wheel build` builds one first, which is not timed.

Processor time includes all processes that a process started and waited for. Wall time runs from the start of a process
to its end; a process that plays an episode ends right after it, without the interpreter's shutdown.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Self

from bench import terminal
from bench.benchmark import Benchmark, option
from bench.timing import Spread, at_most, duration
from hedgerow.compiling.cache import INHERITED
from hedgerow.display.table import Table
from hedgerow.errors import InvalidInput

WHOLE, ALONE, BLOCKS = "hedgerow compile", "hedgerow compile -j 1", "hedgerow compile --only blocks"
WARM, WHEEL = "first episode, all compiled", "first episode of a wheel, nothing in the cache"
DEMO, DEMO_WARM = "hedgerow demo, nothing in the cache", "hedgerow demo, all compiled"
BUILD = "build"
"""A wheel of this name is built first."""
MOST_CPU = {ALONE: 32.0, BLOCKS: 25.0}
"""Goals for one process; two share a core here, which lengthens the time of each."""
MOST_WALL = {WHEEL: 3.0}
COMPILING = (WHOLE, ALONE, BLOCKS)
"""The kinds that compile, whatever came with the package."""
LOADING = (WARM, WHEEL, DEMO_WARM)
"""The kinds that must not compile anything"""
EPISODE = """
import os, sys
import hedgerow as hr
if not hr.__file__.startswith(sys.argv[1]):
    sys.exit(f"hedgerow comes from {hr.__file__}, not from {sys.argv[1]}")
world = hr.worlds.make("random-layered")
run = hr.simulate(world, hr.SVOPS(world.cmdp.view(), 1, 0.01, "sharp"), progress=False)
os._exit(run.way != "compiled")
"""
"""The argument is the folder that hedgerow must come from; empty for anywhere."""


@dataclass(frozen=True)
class Spent:
    """What a process cost, in seconds."""

    wall: float
    cpu: float
    files: int
    """Files that it left in the cache"""


@dataclass(frozen=True)
class CompileRow:
    """One kind of process."""

    process: str
    wall: Spread
    cpu: Spread
    files: int
    """New files in the cache: the most of any run"""
    most_wall: float | None = None
    """A goal for the median, if there is one"""
    most_cpu: float | None = None

    @property
    def verdict(self) -> str:
        goals = ((self.wall, self.most_wall), (self.cpu, self.most_cpu))
        judged = [time.median <= most for time, most in goals if most is not None]
        return ("met" if all(judged) else "not met") if judged else ""


@dataclass(frozen=True)
class Compilation(Benchmark[dict[str, list[Spent]]]):
    """Seconds that compilation takes, and seconds to the first episode once everything is compiled."""

    name, json_file = "compile", "compile.json"

    wheel: str = option("", "a wheel of this Python with its kernels, to be measured as well; `build` builds one")
    repeats: int = option(3, "runs of each process; figures are medians")

    @classmethod
    def quick(cls) -> Self:
        return cls(repeats=1)

    def run(self) -> dict[str, list[Spent]]:
        """The time of all processes, by kind; the kinds take turns."""
        found: dict[str, list[Spent]] = {}
        with ExitStack() as stack, terminal.progress("bench compile", self.repeats * (6 + bool(self.wheel))) as advance:

            def note(process: str, spent: Spent) -> None:
                found.setdefault(process, []).append(spent)
                advance(process)

            installed = self._installed(_folder(stack)) if self.wheel else None
            for _ in range(self.repeats):
                full = _folder(stack)
                note(WHOLE, spend(compile_command(), full))
                note(WARM, spend(episode_command(), full))
                note(DEMO_WARM, spend(demo_command(_folder(stack)), full))
                note(ALONE, spend(compile_command("-j", "1"), _folder(stack)))
                note(BLOCKS, spend(compile_command("--only", "blocks"), _folder(stack)))
                note(DEMO, spend(demo_command(_folder(stack)), _folder(stack)))
                if installed is not None:
                    alone = {"PYTHONPATH": str(installed)}
                    note(WHEEL, spend(episode_command(installed), _folder(stack), alone))
        return found

    def _installed(self, folder: Path) -> Path:
        """The folder, with the wheel in it and nothing else."""
        if self.wheel == BUILD:
            self._install(_built(folder / "dist"), folder / "site")
            return folder / "site"
        if not Path(self.wheel).is_file():
            raise InvalidInput(f"there is no wheel {self.wheel!r}")
        self._install(self.wheel, folder)
        return folder

    def _install(self, wheel: Path | str, folder: Path) -> None:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*pip, "--target", str(folder), str(wheel)], check=True)

    def figures(self, found: dict[str, list[Spent]]) -> list[CompileRow]:
        return [
            CompileRow(
                process,
                Spread.of([spent.wall for spent in runs]),
                Spread.of([spent.cpu for spent in runs]),
                max(spent.files for spent in runs),
                MOST_WALL.get(process),
                MOST_CPU.get(process),
            )
            for process, runs in found.items()
        ]

    def shown(self, found: dict[str, list[Spent]]) -> Iterator[Table | str]:
        columns = ["process", "wall", "asked", "processor time", "asked", "runs", "files", "met"]
        table = Table("compilation", columns)
        for row in self.figures(found):
            wall = [duration(row.wall.median), at_most(row.most_wall)]
            cpu = [duration(row.cpu.median), at_most(row.most_cpu)]
            table.add_row(row.process, *wall, *cpu, str(row.cpu.count), str(row.files), row.verdict or "-")
        yield table
        for row in self.figures(found):
            if not _is_right(row):
                yield f"{row.process}: {'compiled something' if row.files else 'compiled nothing'}"

    def is_right(self, found: dict[str, list[Spent]]) -> bool:
        """Whether compilations left files in their cache, and no other process did."""
        return all(map(_is_right, self.figures(found)))


def _is_right(row: CompileRow) -> bool:
    return row.files > 0 if row.process in COMPILING else not (row.files and row.process in LOADING)


def compile_command(*options: str) -> list[str]:
    return ["-m", "hedgerow", "compile", "--quiet", "--native", *options]


def demo_command(folder: Path) -> list[str]:
    """The demo, to its page; it compiles what it needs unless that came with the package."""
    return ["-m", "hedgerow", "demo", "--quiet", "--out", str(folder / "demo")]


def _built(folder: Path) -> Path:
    """A new platform wheel of the sources beside `bench`."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    root = Path(__file__).resolve().parents[1]
    subprocess.run(command, cwd=root, env=os.environ | {"HEDGEROW_COMPILED": "1"}, stdout=sys.stderr, check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def episode_command(home: Path | str = "") -> list[str]:
    """One episode, by the hedgerow in the folder `home` if there is one."""
    return ["-c", EPISODE, str(home)]


def spend(command: Sequence[str], cache: Path, settings: Mapping[str, str] | None = None) -> Spent:
    """Run this Python with `command` and this cache; `settings` are further variables of its environment."""
    environment = {**os.environ, **(settings or {}), "NUMBA_CACHE_DIR": str(cache)}
    environment.pop(INHERITED, None)  # it would come first
    files, cpu, begun = _num_files(cache), _children_seconds(), perf_counter()
    subprocess.run([sys.executable, *command], env=environment, stdout=subprocess.DEVNULL, check=True)
    return Spent(perf_counter() - begun, _children_seconds() - cpu, _num_files(cache) - files)


def _children_seconds() -> float:
    """Processor time of all processes that this one has waited for, and of those that they had."""
    import resource  # not on Windows

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _num_files(folder: Path) -> int:
    return sum(path.is_file() for path in folder.rglob("*"))


def _folder(stack: ExitStack) -> Path:
    """An empty folder, which is removed in the end."""
    return Path(stack.enter_context(TemporaryDirectory(prefix="hedgerow-bench-"))).resolve()
