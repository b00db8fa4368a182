"""`python -m bench all`: every benchmark whose figures the docs show, one by one, and then the tables of the docs.

    python -m bench all                          everything: some hours on two idle cores
    python -m bench all --skip samples,samples-paper    all but the long ones
    python -m bench all --only episode,calls     these parts
    python -m bench all --list                   what is finished, what is not and why, how long it takes

A part is a command in a process of its own, which writes a JSON file. It is finished if that file has the same sources
(`bench/sources.py`), settings, processor and Python, and no wrong answer; finished parts are skipped, unless `--fresh`
is given. So whatever was interrupted is started again with the same command. `samples` keeps single runs as well, in
out/samples, by the hash of the sources. In the end the tables and numbers of the pages are written from the files.
Exit code 1: a part failed; it is named. Times that are announced are those of the last run of a part, where its file
has one.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from time import monotonic
from typing import Any

from bench import manifest, sources
from bench.benchmark import Benchmark, asked
from hedgerow.display.screen import say
from hedgerow.report.export import check_browser

ROOT = Path(__file__).resolve().parents[1]
FIGURES = "figures"
WITHOUT_EFFECT = ("keep", "processes", "wheel")
"""Settings that change no figure, or where files come from"""
BEFORE, OLD = "efe77c4", ROOT / "out" / "before"
"""The version that `progress` compares with, and where its sources are put"""


@dataclass(frozen=True)
class Part:
    """A benchmark as `all` runs it."""

    name: str
    minutes: float
    """How long it takes about, on two idle cores"""
    arguments: tuple[str, ...] = ()
    keeps: bool = False
    """Whether it keeps single runs"""
    command: str = ""
    """The benchmark, where it has another name"""

    @property
    def benchmark(self) -> type[Benchmark[Any]]:
        from bench.__main__ import BENCHMARKS

        module, name = BENCHMARKS[self.command or self.name]
        found: type[Benchmark[Any]] = getattr(import_module(module), name)
        return found

    @property
    def module(self) -> str:
        return self.benchmark.__module__

    @property
    def draws(self) -> bool:
        return bool(self.benchmark.figure_file)

    def file(self, figures: Path) -> Path:
        return figures / self.made(False).file_name()

    def settings(self, quick: bool) -> dict[str, Any]:
        return asdict(self.made(quick))

    def made(self, quick: bool) -> Benchmark[Any]:
        return asked(self.benchmark, self._options(quick))[0]

    def commands(self, figures: Path, quick: bool) -> list[list[str]]:
        return [
            [sys.executable, "-m", "bench", self.command or self.name, *self._options(quick), "--out", str(figures)]
        ]

    def _options(self, quick: bool) -> list[str]:
        kept = ["--keep", f"out/samples/{sources.digest(self.module)[:12]}"] if self.keeps else []
        return [*self.arguments, *kept, *(["--quick"] if quick else [])]

    def unfinished(self, figures: Path, quick: bool) -> str:
        """Why its file will not do; empty if it will."""
        try:
            data = json.loads(self.file(figures).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return "not measured"
        except ValueError:
            return "its file is damaged"
        machine = {"processor": manifest.processor(), "python": platform.python_version()}
        if any(data.get(name) != value for name, value in machine.items()):
            return "measured on another machine"
        if data.get("sources") != sources.digest(self.module):
            return "measured with other sources"
        if _with_effect(data["settings"]) != _with_effect(self.settings(quick)):
            return "measured with other settings"
        return "" if data.get("right", True) else "an answer was wrong"

    def expected(self, figures: Path) -> float:
        """Seconds that it takes: those of the last run, if its file knows them."""
        try:
            data = json.loads(self.file(figures).read_text(encoding="utf-8"))
            return float(data["seconds"])
        except (OSError, ValueError, KeyError):
            return 60.0 * self.minutes


class Progress(Part):
    """Two versions of the package by turns."""

    module, draws = "bench.episode", False

    def file(self, figures: Path) -> Path:
        return figures / "episode-progress.json"

    def settings(self, quick: bool) -> dict[str, Any]:
        from tools.compare_episode import SECONDS, TURNS

        return {"turns": TURNS, "turn": SECONDS}

    def commands(self, figures: Path, quick: bool) -> list[list[str]]:
        checkout = [] if OLD.exists() else [["git", "worktree", "add", "--detach", str(OLD), BEFORE]]
        tool = [sys.executable, "tools/compare_episode.py", str(OLD / "src"), "src", str(self.file(figures))]
        return [*checkout, tool]


SHARP, HARD, CARS = ("--preset", "sharp"), ("--world", "ev-workday-hard", "--seeds", "2"), ("--cars", "1")
EV_WORKDAYS = {
    "sharp": SHARP,
    "hard": HARD,
    "hard-sharp": (*HARD, *SHARP),
    "cars": (*CARS, "--seeds", "1"),
    "cars-sharp": (*CARS, *SHARP),
}
"""What `ev-workday` is run with as well, by the end of the name"""
PARTS = (
    Part("calls", 0.5),
    Part("plans", 1.5),
    Part("field", 1),
    Part("cells", 0.5),
    Part("cores", 1),
    Part("presets", 2),
    Part("scale", 2),
    Part("projection", 5),
    Part("episode", 8),
    Progress("progress", 7),
    Part("compile", 15, ("--wheel", "build")),
    Part("replay", 13),
    Part("serve", 3, ("--decisions", "300", "--seconds", "5")),
    Part("safety", 7),
    Part("agree", 1),
    Part("stress", 3),
    Part("extreme", 6),
    Part("ev-workday", 2),
    *(Part(f"ev-workday-{name}", 2, options, command="ev-workday") for name, options in EV_WORKDAYS.items()),
    Part("budget", 10),
    Part("samples-paper", 60, keeps=True),
    Part("samples", 120, keeps=True),
)
"""The short ones first: an evening is enough for all but the last two."""


def main(arguments: Sequence[str]) -> int:
    """Run what is not finished; the exit code."""
    given = parser().parse_args(arguments)
    parts = [part for part in PARTS if part.name in (given.only or [part.name]) and part.name not in (given.skip or [])]
    figures: Path = given.docs / FIGURES
    reasons = {part.name: part.unfinished(figures, given.quick) for part in parts}
    if given.list:
        for part in parts:
            print(f"{part.name:18} {spoken(part.expected(figures)):>8}  {reasons[part.name] or 'finished'}")
        return 0
    ahead = [part for part in parts if given.fresh or reasons[part.name]]
    say(f"bench all: {len(parts) - len(ahead)} of {len(parts)} parts are finished already", error=True)
    if any(part.draws for part in ahead):
        check_browser()  # before hours of measuring, not after them
    failed = run(ahead, figures, given.quick)
    tables = [sys.executable, "-m", "bench.tables", str(given.docs)]
    if not given.quick and subprocess.run(tables, cwd=ROOT).returncode:
        failed.append("bench.tables")
    if failed:
        say(f"bench all: failed: {', '.join(failed)}", error=True)
    return 1 if failed else 0


def run(parts: Sequence[Part], figures: Path, quick: bool, call: Callable[[list[str]], int] | None = None) -> list[str]:
    """Run these parts, and say how long the rest will take; the names of those that failed."""
    call = call or (lambda command: subprocess.run(command, cwd=ROOT).returncode)
    failed: list[str] = []
    for number, part in enumerate(parts, 1):
        left = sum(other.expected(figures) for other in parts[number - 1 :])
        say(f"bench all {number}/{len(parts)}: {part.name}; about {spoken(left)} left", error=True)
        begun = monotonic()
        code = next((code for command in part.commands(figures, quick) if (code := call(command))), 0)
        ended = f"failed ({code})" if code else f"took {spoken(monotonic() - begun)}"
        if code:
            failed.append(part.name)
        say(f"bench all {number}/{len(parts)}: {part.name} {ended}", error=True)
    return failed


def spoken(seconds: float) -> str:
    """Seconds for people: `40 s`, `3 min`, `2.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _with_effect(settings: dict[str, Any]) -> Any:
    return json.loads(json.dumps({name: value for name, value in settings.items() if name not in WITHOUT_EFFECT}))


def parser() -> ArgumentParser:
    """The options."""
    made = ArgumentParser(prog="python -m bench all", description="Measure everything that the docs show.")
    made.add_argument("--only", type=_names, metavar="NAMES", help="these parts, separated by commas")
    made.add_argument("--skip", type=_names, metavar="NAMES", help="all but these parts")
    made.add_argument("--fresh", action="store_true", help="measure finished parts again")
    made.add_argument("--list", action="store_true", help="say what is finished and how long the rest takes")
    made.add_argument(
        "--docs", type=_folder, default=ROOT / "docs", metavar="FOLDER", help="figures go to FOLDER/figures"
    )
    made.add_argument("--quick", action="store_true", help="small sizes, for a first look; pages stay as they are")
    return made


def _folder(text: str) -> Path:
    return Path(text).resolve()


def _names(text: str) -> list[str]:
    names, known = text.split(","), [part.name for part in PARTS]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ArgumentTypeError(f"there is no part {unknown[0]!r}; known: {', '.join(known)}")
    return names
