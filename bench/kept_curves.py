"""The runs of `python -m bench samples`, and a folder that keeps them: hours of work survive an interruption. Their
means over seeds are kept in one small table, from which the figure is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from hedgerow.checks import FloatArray, IntArray
from hedgerow.errors import FileFormatError
from hedgerow.storage import atomic, datafile

KIND, VERSION = "bench samples run", 2
SUFFIX = ".hedgerow"


class Task(NamedTuple):
    """One run."""

    world: str
    learner: str
    variant: str
    losses: str
    baseline: str
    episodes: int
    seed: int

    @property
    def file_name(self) -> str:
        words = "-".join(map(str, self))
        return "".join(c if c.isalnum() or c == "-" else "_" for c in words) + SUFFIX


class Curves(NamedTuple):
    """The curves of one run, at its checkpoints."""

    task: Task
    episodes: IntArray
    regret: FloatArray
    violation: FloatArray
    mixing: FloatArray
    """lambda; 0 without a baseline"""
    t_bar: FloatArray
    """The length of the first phase of CV-OPS, the same at all checkpoints; T for others"""

    def average(self, measure: str) -> FloatArray:
        """R(t)/t, V(t)/t, or lambda_t."""
        found: FloatArray = getattr(self, measure)
        return found if measure == "mixing" else found / self.episodes


def save(folder: Path, curves: Curves) -> None:
    """One file per run, written atomically; the folder is made if need be."""
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {name: getattr(curves, name) for name in Curves._fields[1:]}
    blob = datafile.pack(KIND, VERSION, curves.task._asdict(), arrays)
    datafile.save(folder / curves.task.file_name, blob, overwrite=True)


def load(folder: Path, tasks: Iterable[Task]) -> list[Curves]:
    """The curves of those tasks whose runs are in the folder."""
    return [_read(folder / task.file_name, task) for task in tasks if (folder / task.file_name).exists()]


def _read(path: Path, task: Task) -> Curves:
    data = datafile.load(path, KIND)
    if data.meta != task._asdict() or set(data.arrays) != set(Curves._fields[1:]):
        raise FileFormatError(f"{path} holds another run than its name says; delete it, and it is run again")
    return Curves(task, **data.arrays)


class MeanPoint(NamedTuple):
    """The regret of S-OPS at one checkpoint: its mean over seeds, with the interval of level 95 %."""

    world: str
    variant: str
    length: int
    """The episodes of the whole run"""
    episode: int
    seeds: int
    mean: float
    low: float
    high: float
    """NaN, as the other end, if there is one seed"""


SCHEMA = pa.schema(
    [("world", pa.string()), ("variant", pa.string())]
    + [(name, pa.int64()) for name in ("length", "episode", "seeds")]
    + [(name, pa.float64()) for name in ("mean", "low", "high")]
)


def save_means(path: Path, points: Sequence[MeanPoint]) -> None:
    """Write the table of a figure as a Parquet file."""
    out = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist([point._asdict() for point in points], SCHEMA), out, compression="zstd")
    atomic.save(path, out.getvalue().to_pybytes(), overwrite=True)


def load_means(path: Path) -> list[MeanPoint]:
    table = pq.read_table(path)
    if not table.schema.equals(SCHEMA):
        raise FileFormatError(f"{path} is no table of `python -m bench samples`; its columns are {table.column_names}")
    return [MeanPoint(**row) for row in table.to_pylist()]
