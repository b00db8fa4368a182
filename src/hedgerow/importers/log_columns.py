"""The columns of a log as arrays of numbers, line by line: labels become numbers, and nothing is guessed.

A missing value (null or NaN) is -1 among whole numbers and NaN among costs; the caller decides whether it may be
missing. Anything else that is wrong is refused with its place: episode, step and line, lines counted from 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.checks import BoolArray, FloatArray, IntArray, Locator, did_you_mean, shown
from hedgerow.errors import InvalidInput
from hedgerow.importers.columnar import Source
from hedgerow.model.axis import Axis
from hedgerow.model.identity import MISSING


class Columns:
    """The columns of a log, under the names of the format."""

    def __init__(self, source: Source, known: Sequence[str], renamed: Mapping[str, str] | None) -> None:
        """`known` are the names of the format, `renamed` says how some of them are called in the source."""
        self._own = dict(renamed or {})
        for name, own in self._own.items():
            if name not in known:
                raise InvalidInput(f"columns renames {name!r}, which no log has{did_you_mean(str(name), known)}")
            if own not in source.names:
                raise InvalidInput(
                    f"columns says that {name!r} is called {own!r}, which the log does not have"
                    f"{_nearest(str(own), source.names)}"
                )
        self._names, self._typed = source.names, source.typed
        self._table = source.read([own for own in dict.fromkeys(map(self.own, known)) if own in source.names])
        self.num_lines: int = self._table.num_rows

    def own(self, name: str) -> str:
        """The name of a column in the log."""
        return self._own.get(name, name)

    def __contains__(self, name: object) -> bool:
        return self._own.get(str(name), name) in self._names

    def need(self, name: str, why: str) -> None:
        """Refuse a log without this column."""
        if name not in self:
            raise InvalidInput(
                f"the log has no column {name!r} ({why}){_nearest(name, self._names)}; if yours is called otherwise, "
                f"say so: columns={{{name!r}: ...}}"
            )

    def raw(self, name: str) -> Any:
        """The `pyarrow.Array` of a column, plain."""
        import pyarrow as pa

        column = self._table.column(self.own(name)).combine_chunks()
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        return column

    def codes(self, name: str) -> tuple[IntArray, Any]:
        """Numbers 0, 1, ... for the values of a column, in the order in which they first occur, and these values."""
        column = self.raw(name)
        if column.null_count:
            line = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
            raise InvalidInput(f"line {line} of the log has no {name!r}; every line needs one")
        encoded = column.dictionary_encode()
        return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), encoded.dictionary

    def whole(self, name: str, count: int, where: Locator) -> IntArray:
        """Whole numbers in 0..count - 1, or MISSING."""
        import pyarrow as pa

        column, kind = self.raw(name), self.raw(name).type
        if pa.types.is_null(kind):
            return np.full(self.num_lines, MISSING, dtype=np.int64)
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
            raise InvalidInput(f"{self._called(name)} must hold whole numbers; its type is {kind}")
        missing = _nulls(column)
        values = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)  # exact up to 2^53
        missing = missing | np.isnan(values)
        with np.errstate(invalid="ignore"):
            outside = ~missing & ~((values >= 0) & (values < count) & (values == np.floor(values)))
        self._refuse(name, outside, column, where, f"it must be a whole number in 0..{count - 1}")
        return np.where(missing, MISSING, np.where(missing, 0.0, values)).astype(np.int64)

    def placed(self, name: str, axis: Axis, where: Locator) -> IntArray:
        """The positions of states or actions that are given by label or number, as the axis says; or MISSING."""
        import pyarrow as pa
        import pyarrow.compute as pc

        column, kind = self.raw(name), self.raw(name).type
        if pa.types.is_null(kind) or not (_is_text(kind) or axis.numbers_are_labels):
            return self.whole(name, axis.count, where)
        if _is_text(kind) and axis.labels is None and self._typed:
            raise InvalidInput(
                f"{self._called(name)} holds labels, but the {axis.what}s of this view have none; give numbers in "
                f"0..{axis.count - 1}, or a view with labels"
            )
        if not (_is_text(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)):
            raise InvalidInput(f"{self._called(name)} must hold labels or whole numbers; its type is {kind}")
        if pa.types.is_floating(kind):
            column = pc.if_else(pc.is_nan(column), pa.scalar(None, kind), column)
        encoded = column.dictionary_encode()
        codes = encoded.indices.fill_null(MISSING).to_numpy(zero_copy_only=False).astype(np.int64)
        read = axis.position if self._typed else axis.read
        places: IntArray = np.full(len(encoded.dictionary) + 1, MISSING, dtype=np.int64)  # the last for MISSING
        for code, value in enumerate(encoded.dictionary.to_pylist()):
            try:
                places[code] = read(value)
            except InvalidInput as error:
                line = int(np.flatnonzero(codes == code)[0])
                raise InvalidInput(f"{self._called(name)} is {shown(value)} at {where(line)}; {error}") from error
        found: IntArray = places[codes]
        return found

    def costs(self, name: str, where: Locator) -> FloatArray:
        """Numbers in [0, 1], or NaN where there is none."""
        import pyarrow as pa

        column, kind = self.raw(name), self.raw(name).type
        if pa.types.is_null(kind):
            return np.full(self.num_lines, np.nan)
        numeric = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
        if not any(test(kind) for test in numeric):
            raise InvalidInput(f"{self._called(name)} must hold numbers; its type is {kind}")
        if pa.types.is_boolean(kind):
            column = column.cast(pa.int8())
        values: FloatArray = np.array(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))
        values[_nulls(column)] = np.nan
        with np.errstate(invalid="ignore"):
            outside = (values < 0.0) | (values > 1.0)
        self._refuse(name, outside, column, where, "costs lie in [0, 1]: divide by the largest one that is possible")
        return values

    def flags(self, name: str) -> NDArray[np.int8]:
        """1 for True, 0 for False, MISSING for neither."""
        import pyarrow as pa

        column = self.raw(name)
        if pa.types.is_null(column.type):
            return np.full(self.num_lines, MISSING, dtype=np.int8)
        if not pa.types.is_boolean(column.type):
            raise InvalidInput(f"{self._called(name)} must be True or False; its type is {column.type}")
        return np.asarray(column.cast(pa.int8()).fill_null(MISSING).to_numpy(zero_copy_only=False), dtype=np.int8)

    def texts(self, name: str) -> tuple[IntArray, tuple[str, ...]]:
        """Numbers 0, 1, ... for the texts of a column, MISSING where there is none, and these texts."""
        import pyarrow as pa

        column = self.raw(name)
        if pa.types.is_null(column.type):
            return np.full(self.num_lines, MISSING, dtype=np.int64), ()
        if not _is_text(column.type):
            raise InvalidInput(f"{self._called(name)} must hold texts; its type is {column.type}")
        encoded = column.dictionary_encode()
        codes = np.asarray(encoded.indices.fill_null(MISSING).to_numpy(zero_copy_only=False), dtype=np.int64)
        return codes, tuple(encoded.dictionary.to_pylist())

    def _called(self, name: str) -> str:
        own = self.own(name)
        return f"the column {name!r}" if own == name else f"the column {own!r} ({name})"

    def _refuse(self, name: str, wrong: BoolArray, column: Any, where: Locator, rule: str) -> None:
        if wrong.any():
            line = int(np.flatnonzero(wrong)[0])
            raise InvalidInput(f"{self._called(name)} is {shown(column[line].as_py())} at {where(line)}; {rule}")


def _nearest(name: str, names: Sequence[str]) -> str:
    return did_you_mean(name, names).replace("known:", "its columns are")


def _nulls(column: Any) -> BoolArray:
    """Where there is no value."""
    if not column.null_count:
        return np.zeros(len(column), dtype=bool)
    return np.asarray(column.is_null().to_numpy(zero_copy_only=False), dtype=bool)


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    tests = ("is_string", "is_large_string", "is_string_view")
    return any(getattr(pa.types, test)(kind) for test in tests if hasattr(pa.types, test))
