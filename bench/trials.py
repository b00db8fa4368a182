"""Benchmarks that judge: compare the answers to many seeded problems with a truth, list wrong ones, exit code 1 if any.

The verdict on an answer is a sentence that says what is wrong with it, empty if nothing is.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Generic, Self, TypeVar

from bench import terminal
from bench.benchmark import Benchmark, in_any_order, option
from hedgerow.display.table import Table

TOL_CERTIFICATE = 1e-9
MOST_LISTED = 20
"""Wrong answers that are printed; the JSON has all."""


@dataclass(frozen=True)
class Trial:
    """One problem: how it ended, the worst residual of its answer, and what is wrong, if anything."""

    seed: int
    family: str
    status: str
    certificate: float | None
    complaint: str


T = TypeVar("T", bound=Trial)


@dataclass(frozen=True)
class Trials(Benchmark[list[T]], Generic[T]):
    """A range of seeds, a problem for each."""

    is_timed = False
    families: ClassVar[tuple[str, ...]]
    """The families, in the order of the table"""
    praise: ClassVar[str]
    """The line that is printed when nothing is wrong"""
    few: ClassVar[int]
    """Problems of a first look"""

    count: int = option(500, "how many problems")
    first: int = option(0, "the seed of the first problem; the others follow", least=0)
    processes: int = option(1, "processes that share the problems")

    @classmethod
    def quick(cls) -> Self:
        return cls(count=cls.few)

    @property
    @abstractmethod
    def judge(self) -> Callable[[int], T]:
        """Makes, solves and judges the problem of a seed; a function that can be sent to other processes."""

    @abstractmethod
    def row(self, family: str, trials: Sequence[T]) -> Any:
        """The figures of a family, as a dataclass."""

    @abstractmethod
    def table(self, trials: Sequence[T]) -> Table:
        """The figures for the terminal."""

    @property
    def seeds(self) -> range:
        return range(self.first, self.first + self.count)

    def run(self) -> list[T]:
        """Every problem, ordered by seed."""
        judge, trials = self.judge, []
        judge(self.first)  # compile or load the kernels before the clock counts and before processes start
        with terminal.progress(f"bench {self.name}", self.count, forecast=True) as advance:
            for trial in in_any_order(judge, self.seeds, self.processes):
                trials.append(trial)
                advance(trial.family)
        return sorted(trials, key=lambda trial: trial.seed)

    def figures(self, found: Sequence[T]) -> list[Any]:
        """One row per family that occurs."""
        names = dict.fromkeys((*self.families, *(trial.family for trial in found)))
        groups = [(name, [trial for trial in found if trial.family == name]) for name in names]
        return [self.row(name, group) for name, group in groups if group]

    def more(self, found: Sequence[T]) -> dict[str, Any]:
        return {"offenders": [asdict(trial) for trial in offenders(found)]}

    def is_right(self, found: Sequence[T]) -> bool:
        return not offenders(found)

    def shown(self, found: Sequence[T]) -> Iterator[Table | str]:
        """A table by family, then what is wrong and how to repeat it."""
        yield self.table(found)
        wrong = offenders(found)
        for trial in wrong[:MOST_LISTED]:
            repeat = f"python -m bench {self.name} --first {trial.seed} --count 1"
            yield f"seed {trial.seed} ({trial.family}): {trial.complaint}; repeat with: {repeat}"
        if len(wrong) > MOST_LISTED:
            yield f"and {len(wrong) - MOST_LISTED} more; --json lists them all"
        yield f"{len(wrong)} wrong" if wrong else self.praise


def offenders(trials: Sequence[T]) -> list[T]:
    """The trials that ended wrong."""
    return [trial for trial in trials if trial.complaint]


def worst_certificate(trials: Sequence[Trial]) -> float | None:
    """The largest residual of the trials that have an answer; None if none has."""
    return max((trial.certificate for trial in trials if trial.certificate is not None), default=None)
