"""The base of all benchmarks: settings from the command line, a run, tables, JSON with a manifest, a figure.

A benchmark is a frozen dataclass. Its fields are its settings, and those made with `option` can be set from the command
line. `run` measures and returns what was found; everything that is printed or written is made from that.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from time import monotonic
from typing import Any, ClassVar, Generic, Self, TypeVar, cast

from bench import manifest, terminal
from hedgerow.display.screen import Screen, say
from hedgerow.display.table import Table
from hedgerow.report.export import FOR_DOCS, check_browser, save_figures
from hedgerow.report.plots import Plot

Found = TypeVar("Found")
Item = TypeVar("Item")
Result = TypeVar("Result")


def option(default: int | str, help_text: str, least: int = 1) -> Any:
    """A field that the command line can set: to a text, or to a whole number of at least `least`."""
    kind = str if isinstance(default, str) else _at_least(least)
    return field(default=default, metadata={"help": help_text, "kind": kind})


@dataclass(frozen=True)
class Benchmark(ABC, Generic[Found]):
    """One benchmark. `Found` is what a run returns: rows of figures, or what they are made of."""

    name: ClassVar[str]
    """The name in the JSON file and on the command line"""
    json_file: ClassVar[str]
    figure_file: ClassVar[str] = ""
    """Empty if nothing is drawn"""
    is_timed: ClassVar[bool] = True
    """Whether a busy machine spoils the figures"""

    @classmethod
    def quick(cls) -> Self:
        """Settings for a first look."""
        return cls()

    @abstractmethod
    def run(self) -> Found:
        """Measure everything."""

    def file_name(self) -> str:
        """Of the JSON file; a benchmark may have one for each of some settings."""
        return self.json_file

    def figures(self, found: Found) -> Sequence[Any]:
        """The rows of the JSON file, as dataclasses: what was found, unless a benchmark says otherwise."""
        return cast(Sequence[Any], found)

    @abstractmethod
    def shown(self, found: Found) -> Iterator[Table | str]:
        """Tables and lines for the terminal."""

    def more(self, found: Found) -> dict[str, Any]:
        """Further content of the JSON file, besides rows."""
        return {}

    def plot(self, found: Found) -> Plot:
        """The figure as plotly takes it, where `figure_file` names one."""
        raise NotImplementedError(f"{self.name} has a figure file and no figure")

    def is_right(self, found: Found) -> bool:
        """Whether the command ends with 0."""
        return True

    def data(self, found: Found) -> dict[str, Any]:
        """Everything as JSON can hold it."""
        rows = [as_row(row) for row in self.figures(found)]
        return manifest.report(self.name, asdict(self), rows, type(self).__module__) | self.more(found)

    def show(self, found: Found) -> None:
        """Print tables and lines."""
        out = Screen()
        for part in self.shown(found):
            if isinstance(part, Table):
                out.table(part)
            else:
                out.line(part)
        if self.is_timed:
            terminal.mention_load(out)

    def write(self, folder: Path, found: Found, seconds: float) -> list[Path]:
        """Write the JSON file and the figure, if there is one; their paths. The run took so many seconds."""
        data = self.data(found) | {"right": self.is_right(found), "seconds": round(seconds, 1)}
        written = [manifest.write(folder, self.file_name(), manifest.as_json(data))]
        if self.figure_file:
            written += save_figures([(self.plot(found), folder / self.figure_file)], FOR_DOCS)
        return written


def as_row(row: Any) -> dict[str, Any]:
    """A row as data, with its verdict if it has one."""
    return asdict(row) | ({"verdict": row.verdict} if hasattr(row, "verdict") else {})


def parser_of(benchmark: type[Benchmark[Any]]) -> ArgumentParser:
    """The options of a benchmark: those that all have, and its own."""
    parser = ArgumentParser(prog=f"python -m bench {benchmark.name}", description=benchmark.__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer and smaller problems, for a first look")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--out", type=_folder, metavar="FOLDER", help="also write the figures into this folder")
    for each in fields(benchmark):
        if "help" in each.metadata:
            kind, shown = each.metadata["kind"], "TEXT" if each.metadata["kind"] is str else "N"
            parser.add_argument(f"--{each.name}", type=kind, metavar=shown, help=each.metadata["help"])
    return parser


def main(benchmark: type[Benchmark[Any]], arguments: Sequence[str]) -> int:
    """Run a benchmark with these arguments, print and write what was found; the exit code."""
    made, given = asked(benchmark, arguments)
    if given.out is not None and made.figure_file:
        check_browser()  # before hours of measuring, not after them
    begun = monotonic()
    found = made.run()
    took = monotonic() - begun
    if given.json:
        print(manifest.as_json(made.data(found)), end="")
    else:
        made.show(found)
    if given.out is not None:
        written = made.write(given.out, found, took)
        say("written: " + ", ".join(map(str, written)), error=True)  # stdout may be JSON
    return 0 if made.is_right(found) else 1


def asked(benchmark: type[Benchmark[Any]], arguments: Sequence[str]) -> tuple[Benchmark[Any], Namespace]:
    """The benchmark with the settings that arguments ask for, and all options."""
    given = parser_of(benchmark).parse_args(arguments)
    names = [each.name for each in fields(benchmark) if "help" in each.metadata]
    chosen = {name: getattr(given, name) for name in names if getattr(given, name) is not None}
    return replace(benchmark.quick() if given.quick else benchmark(), **chosen), given


def _folder(text: str) -> Path:
    """A folder that exists or can be created; checked before hours of measuring."""
    path = Path(text)
    if path.exists() and not path.is_dir():
        raise ArgumentTypeError(f"{text!r} is not a folder")
    return path


def _at_least(least: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise ArgumentTypeError(f"{text!r} is not a whole number of at least {least}")
        return int(text)

    return number


def in_any_order(function: Callable[[Item], Result], items: Iterable[Item], processes: int) -> Iterator[Result]:
    """`function` of every item, in any order if several processes share them: a slow item delays no other."""
    if processes == 1:
        yield from map(function, items)
        return
    from joblib import Parallel, delayed

    yield from Parallel(n_jobs=processes, return_as="generator_unordered")(delayed(function)(item) for item in items)
