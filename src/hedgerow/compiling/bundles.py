"""Bundles and records: the arguments of kernels, passed as one pointer.

A *bundle* is an immutable object of arrays, numbers and other bundles. Compiled code gets the address of a table that
holds, word by word, the address and the shape of every array and the value of every number; a bundle within a bundle
lies in the table of the outer one. Passing a hundred arrays is passing one pointer. Reading `ws.p` in a kernel is a
load that the compiler moves out of loops, because a table never changes.

A *record* is an array of named numbers that may change: kernels and Python read and write its fields.

    >>> class Tally(Record):
    ...     seen: int
    ...     missed: int
    >>> class Basket(Bundle):
    ...     weights: np.ndarray
    ...     tally: Tally
    >>> basket = Basket(weights=np.ones(3), tally=Tally())
    >>> basket.tally.seen += 2
    >>> basket.tally.seen, basket.tally.values.tolist()
    (2, [2, 0])

Arrays of a bundle are C-ordered. A kernel can write to all of them and must itself leave alone what has to stay. The
bundle keeps its arrays alive, and must itself live as long as the call.
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, Self, dataclass_transform

import numpy as np
from numpy.typing import NDArray

WORD = 8
"""Bytes"""


@dataclass_transform(frozen_default=True, eq_default=False)
class Bundle:
    """Base class of bundles: annotate the fields; instances are built like those of a frozen dataclass."""

    fields: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        dataclasses.dataclass(frozen=True, eq=False, repr=False)(cls)
        cls.fields = tuple(field.name for field in dataclasses.fields(cls))  # type: ignore[arg-type]

    def as_dict(self) -> dict[str, Any]:
        """The fields by name; nothing is copied."""
        return {name: getattr(self, name) for name in self.fields}

    def replace(self, **changes: Any) -> Self:
        """The same bundle with some fields exchanged."""
        return type(self)(**{**self.as_dict(), **changes})

    def take(self, other: Self) -> None:
        """Copy the content of all arrays of `other`, a bundle of arrays of the same shapes."""
        for name in self.fields:
            getattr(self, name)[...] = getattr(other, name)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy or pickle the fields; the copy has its own arrays and makes its own table."""
        return type(self), tuple(self.as_dict().values())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self.fields)})"


class _Place:
    """One field of a record."""

    def __init__(self, position: int) -> None:
        self.position = position

    def __get__(self, record: Record | None, owner: type[Record]) -> Any:
        return self if record is None else record.values.item(self.position)

    def __set__(self, record: Record, value: float) -> None:
        record.values[self.position] = value


class Record:
    """Base class of records: annotate the fields, all of them int or all of them float."""

    fields: ClassVar[tuple[str, ...]] = ()
    kind: ClassVar[type[np.generic]] = np.int64
    values: NDArray[Any]
    """(number of fields,)"""

    def __init_subclass__(cls) -> None:
        cls.fields = tuple(cls.__annotations__)
        kinds = {str(getattr(kind, "__name__", kind)) for kind in cls.__annotations__.values()}
        if kinds not in ({"int"}, {"float"}):
            raise TypeError(f"the fields of {cls.__name__} must be all int or all float, not {sorted(kinds)}")
        cls.kind = np.int64 if kinds == {"int"} else np.float64
        for position, name in enumerate(cls.fields):
            setattr(cls, name, _Place(position))

    def __init__(self, values: NDArray[Any] | None = None) -> None:
        """Wrap an array without copying it; by default all fields are 0."""
        self.values = np.zeros(len(self.fields), dtype=self.kind) if values is None else values
        if self.values.shape != (len(self.fields),) or self.values.dtype != self.kind:
            raise TypeError(f"{type(self).__name__} takes {len(self.fields)} numbers of type {self.kind.__name__}")
        self._address = _data_address(self.values)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy or pickle the numbers."""
        return type(self), (self.values,)

    @classmethod
    def place(cls, name: str) -> int:
        """The position of a field in `values`."""
        return cls.fields.index(name)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({dict(zip(self.fields, self.values.tolist(), strict=True))})"


def _data_address(array: NDArray[Any]) -> int:
    """Where the numbers of an array lie."""
    found: int = array.__array_interface__["data"][0]
    return found


def words_of(bundle: Bundle) -> list[int]:
    """The words of a bundle's table, in the order of its fields; an array has its address and its shape.

    They are kept with the bundle, which never changes: it may lie in several others.
    """
    own = bundle.__dict__
    if "_words" in own:
        kept: list[int] = own["_words"]
        return kept
    words: list[int] = []
    for name in bundle.fields:
        value = own[name]
        if isinstance(value, np.ndarray):
            if not value.flags.c_contiguous:
                raise TypeError(f"{name} of {type(bundle).__name__} must be a C-ordered array")
            words += (_data_address(value), *value.shape)
        elif isinstance(value, Bundle):
            words += words_of(value)
        elif isinstance(value, Record):
            words.append(value._address)
        elif isinstance(value, float):
            words.append(int(np.float64(value).view(np.int64)))
        elif isinstance(value, int | np.integer | np.bool_):
            words.append(int(value))
        else:
            raise TypeError(f"{name} of {type(bundle).__name__} is {type(value).__name__}: no array, number or bundle")
    own["_words"] = words
    return words


def address_of(bundle: Bundle) -> int:
    """The address of a bundle's table, which is made once and kept with the bundle."""
    own = bundle.__dict__
    if "_table" not in own:
        own["_table"] = np.array(words_of(bundle) or [0], dtype=np.int64)
        own["_address"] = _data_address(own["_table"])
    found: int = own["_address"]
    return found
