"""Read tables from files, data frames of other packages, and plain arrays, all as columns of Arrow.

Arrow is their common format: pandas, polars, DuckDB and others pass their tables on without a copy, and are not
imported here. Only the needed columns of a file are read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from hedgerow.checks import short_repr, type_name, unmasked
from hedgerow.errors import FileFormatError, InvalidInput
from hedgerow.storage import atomic, datafile

KINDS = "the path of a CSV, Parquet or Arrow file, a table of pyarrow, pandas or polars, a mapping {column: values}"
MORE_KINDS = {"log": ", or a sequence of hedgerow Episodes"}
"""Further kinds that are accepted, by the name of the table"""


class ColumnarSource(NamedTuple):
    """A table that has not been read yet."""

    names: tuple[str, ...]
    """The names of its columns"""
    read: Callable[[Sequence[str]], Any]
    """A `pyarrow.Table` of some of them"""
    typed: bool = True
    """Whether numbers and texts can be told apart; a CSV file has text only"""
    sealed: bool = False
    """Whether a checksum of the whole file was verified"""


def open_table(given: Any, what: str, names: Sequence[str] = ()) -> ColumnarSource:
    """Find the columns of a table in any of its forms.

    `what` is its name in messages, such as `log`. The columns `names` hold names: in a CSV file they are text as it is
    written, where `0456`, `0x10` and `true` would otherwise become a number or a truth value; what is empty is missing.
    """
    if isinstance(given, str | os.PathLike):
        return _from_file(given, what, names)
    table = _arrow_table(given, what)
    names = tuple(table.column_names)
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InvalidInput(f"the {what} has several columns that are called {repeated[0]!r}; rename or drop one")
    return ColumnarSource(names, table.select)


def _arrow_table(given: Any, what: str) -> Any:
    import pyarrow as pa

    kinds = KINDS + MORE_KINDS.get(what, "")
    try:
        if isinstance(given, pa.Table):
            return given
        if isinstance(given, pa.RecordBatch):
            return pa.Table.from_batches([given])
        if isinstance(given, Mapping):
            return pa.table({str(name): _values(str(name), values, what) for name, values in given.items()})
        if hasattr(given, "__arrow_c_stream__") or hasattr(given, "__arrow_c_array__"):
            return pa.table(given)
        if hasattr(given, "to_arrow"):
            return _arrow_table(given.to_arrow(), what)
        if type(given).__module__.partition(".")[0] == "pandas":
            return pa.Table.from_pandas(given, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"the {what} is no table: {short_repr(str(error))}; give {kinds}") from error
    raise InvalidInput(f"a {what} is {kinds}, not {type_name(given)}")


def _values(name: str, values: Any, what: str) -> Any:
    """One column of a mapping."""
    import pyarrow as pa

    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    given = unmasked(f"the column {name!r}", values)
    if isinstance(given, str) or not hasattr(given, "__len__") or getattr(given, "ndim", 1) != 1:
        raise InvalidInput(f"the column {name!r} of the {what} must be a list of values, one per line")
    try:
        return pa.array(given)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(f"the column {name!r} of the {what} must hold values of one kind: {error}") from error


def _from_file(given: str | os.PathLike[str], what: str, named: Sequence[str]) -> ColumnarSource:
    path = atomic.checked_path(given)
    try:
        if not path.is_file():
            raise FileFormatError(f"cannot read the {what} {path}: there is no such file")
        with path.open("rb") as stream:
            begins = stream.read(6)
    except OSError as error:
        raise FileFormatError(f"cannot read the {what} {path}: {error.strerror}") from error
    if begins.startswith(b"PAR1"):
        return _from_parquet(str(path), what)
    if begins == b"ARROW1" or begins.startswith(b"\xff\xff\xff\xff"):
        return _from_ipc(str(path), what, stream=begins != b"ARROW1")
    if path.suffix.lower() == ".csv":
        return _from_csv(str(path), what, named)
    raise FileFormatError(
        f"{path} is no CSV, Parquet or Arrow file; read it with what you have, such as pandas, and pass the table"
    )


def _from_parquet(path: str, what: str) -> ColumnarSource:
    import pyarrow as pa
    from pyarrow import parquet

    blob = _parsed(lambda: atomic.read(path), path, what)

    def opened() -> Any:
        return parquet.ParquetFile(pa.BufferReader(blob), pre_buffer=False, page_checksum_verification=True)

    def read(names: Sequence[str]) -> Any:
        # Without threads: pyarrow's may still be running when the interpreter ends.
        with opened() as file:
            return file.read(columns=list(names), use_threads=False)

    def contents() -> tuple[tuple[str, ...], bool]:
        with opened() as file:
            return tuple(file.schema_arrow.names), datafile.SEAL_KEY.encode() in (file.metadata.metadata or {})

    damaged = FileFormatError(
        f"cannot read the {what} {path}, it is damaged: it is not what was sealed. Restore it from a copy; if you "
        f"changed it on purpose, drop its entry {datafile.SEAL_KEY!r}, as with table.replace_schema_metadata(None)"
    )
    if datafile.has_seal(blob) and not datafile.is_intact(blob):  # before anything in it is interpreted
        raise damaged
    names, sealed = _parsed(contents, path, what)
    if sealed and not datafile.is_intact(blob):
        raise damaged
    return ColumnarSource(names, lambda chosen: _parsed(lambda: read(chosen), path, what), sealed=sealed)


def _from_csv(path: str, what: str, named: Sequence[str]) -> ColumnarSource:
    import pyarrow as pa
    from pyarrow import compute, csv

    def read() -> Any:
        # Without threads: pyarrow's may still be running when the interpreter ends.
        table = csv.read_csv(
            path,
            csv.ReadOptions(use_threads=False),
            convert_options=csv.ConvertOptions(column_types=dict.fromkeys(named, pa.string())),
        )
        for i, name in enumerate(table.column_names):
            if name in named:
                column = table.column(i)
                said = compute.not_equal(column, "")
                table = table.set_column(i, name, compute.if_else(said, column, pa.scalar(None, pa.string())))
        return table

    return open_table(_parsed(read, path, what), what)._replace(typed=False)


def _from_ipc(path: str, what: str, *, stream: bool) -> ColumnarSource:
    import pyarrow as pa

    def read() -> Any:
        with pa.OSFile(path) as file, (pa.ipc.open_stream if stream else pa.ipc.open_file)(file) as reader:
            return reader.read_all()

    table = _parsed(read, path, what)
    return ColumnarSource(tuple(table.column_names), table.select)


def _parsed(read: Callable[[], Any], path: str, what: str) -> Any:
    """Read a file with pyarrow; it may hold anything."""
    import pyarrow as pa

    try:
        return read()
    except (pa.ArrowException, OSError, ValueError) as error:
        raise FileFormatError(f"cannot read the {what} {path}, it is damaged: {short_repr(str(error))}") from error
