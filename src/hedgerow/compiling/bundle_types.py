"""How numba sees bundles and records: as pointers with attributes."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from numba.core import types
from numba.core.datamodel import models
from numba.core.imputils import lower_setattr_generic
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    lower_getattr_generic,
    register_model,
    typeof_impl,
    unbox,
)
from numba.np.arrayobj import make_array, populate_array

from hedgerow.compiling.bundles import WORD, Bundle, Record, address_of

ir: Any = import_module("llvmlite.ir")  # has no types
INT64 = ir.IntType(64)


class BundleType(types.Type):
    """The type of a bundle: its class and the types of its fields."""

    def __init__(self, name: str, fields: tuple[tuple[str, Any], ...]) -> None:
        self.fields = fields
        self.kinds, self.offsets, offset = dict(fields), {}, 0
        for field, kind in fields:
            self.offsets[field] = offset
            offset += _num_words(kind)
        self.num_words = offset
        # Short, because it becomes part of the name of every function; the digest covers what the name leaves out.
        digest = hashlib.sha256(repr(fields).encode()).hexdigest()[:12]
        super().__init__(f"{name}_{digest}")


class RecordType(types.Type):
    """The type of a record: its class, its fields and the type of all of them."""

    def __init__(self, name: str, fields: tuple[str, ...], number: Any) -> None:
        self.fields, self.number = fields, number
        digest = hashlib.sha256(repr((fields, number)).encode()).hexdigest()[:12]
        super().__init__(f"{name}_{digest}")


def _num_words(kind: Any) -> int:
    if isinstance(kind, BundleType):
        return kind.num_words
    return 1 + kind.ndim if isinstance(kind, types.Array) else 1


def _type_of(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return _array_type(value.dtype, value.ndim)
    if isinstance(value, Bundle):  # whose fields have types that never change
        own = value.__dict__
        if "_type" not in own:
            own["_type"] = _bundle_type(type(value), tuple([_type_of(own[name]) for name in value.fields]))
        return own["_type"]
    scalar: Any = type(value)
    return _record_type(scalar) if isinstance(value, Record) else _SCALARS[scalar]


@cache
def _array_type(number: np.dtype[Any], ndim: int) -> Any:
    """Treat every array as writable: one signature for frozen arrays and others."""
    return types.Array(_NUMBERS[number], ndim, "C")


def _bundle_type(cls: type[Bundle], kinds: tuple[Any, ...]) -> BundleType:
    known = _BUNDLE_TYPES.setdefault(cls, {})
    # Compared one by one, since a class has few types, and hashing those of a hundred fields takes longer.
    for other, found in known.items():
        if other == kinds:
            return found
    known[kinds] = BundleType(cls.__name__, tuple(zip(cls.fields, kinds, strict=True)))
    return known[kinds]


_BUNDLE_TYPES: dict[type[Bundle], dict[tuple[Any, ...], BundleType]] = {}


@cache
def _record_type(cls: Any) -> RecordType:
    return RecordType(cls.__name__, cls.fields, _NUMBERS[np.dtype(cls.kind)])


_NUMBERS = {
    np.dtype(np.float64): types.float64,
    np.dtype(np.int64): types.int64,
    np.dtype(np.uint64): types.uint64,
    np.dtype(np.int32): types.int32,
    np.dtype(np.int8): types.int8,
}
_SCALARS = {
    float: types.float64,
    np.float64: types.float64,
    int: types.int64,
    np.int64: types.int64,
    bool: types.boolean,
    np.bool_: types.boolean,
}


def type_of_bundle(value: Bundle) -> BundleType:
    """The type of a bundle, whose table is ready afterwards."""
    own = value.__dict__
    if "_address" not in own:
        _type_of(value)
        address_of(value)
    kind: BundleType = own["_type"]
    return kind


@typeof_impl.register(Bundle)
def _typeof_bundle(value: Bundle, context: Any) -> Any:
    return type_of_bundle(value)


@typeof_impl.register(Record)
def _typeof_record(value: Record, context: Any) -> Any:
    return _type_of(value)


for _kind in (BundleType, RecordType):

    @register_model(_kind)
    class _PointerModel(models.PrimitiveModel):
        def __init__(self, manager: Any, kind: Any) -> None:
            number = kind.number if isinstance(kind, RecordType) else types.int64
            super().__init__(manager, kind, manager.lookup(number).get_data_type().as_pointer())


@unbox(BundleType)
@unbox(RecordType)
def _unbox_bundle(kind: Any, value: Any, c: Any) -> Any:
    number = c.pyapi.object_getattr_string(value, "_address")
    pointer = c.builder.bitcast(c.pyapi.long_as_voidptr(number), c.context.get_value_type(kind))
    c.pyapi.decref(number)
    return NativeValue(pointer)


@infer_getattr
class _BundleAttributes(AttributeTemplate):
    key = BundleType

    def generic_resolve(self, value: Any, attr: str) -> Any:  # type: ignore[override]
        return value.kinds.get(attr)


@infer_getattr
class _RecordAttributes(AttributeTemplate):
    key = RecordType

    def generic_resolve(self, value: Any, attr: str) -> Any:  # type: ignore[override]
        if attr == "values":
            return types.Array(value.number, 1, "C")
        return value.number if attr in value.fields else None


@lower_getattr_generic(BundleType)
def _get_from_bundle(context: Any, builder: Any, kind: Any, table: Any, name: str) -> Any:
    wanted, place = kind.kinds[name], builder.gep(table, [INT64(kind.offsets[name])])
    if isinstance(wanted, BundleType):
        return place
    if isinstance(wanted, types.Array):
        address, *shape = (_word(builder, builder.gep(place, [INT64(i)])) for i in range(1 + wanted.ndim))
        return _array(context, builder, wanted, address, shape)
    word = _word(builder, place)
    if isinstance(wanted, RecordType):
        return builder.inttoptr(word, context.get_value_type(wanted))
    if wanted == types.float64:
        return builder.bitcast(word, ir.DoubleType())
    return builder.trunc(word, ir.IntType(1)) if wanted == types.boolean else word


def _word(builder: Any, place: Any) -> Any:
    """Load a word of a table, which never changes."""
    loaded = builder.load(place)
    loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
    return loaded


def _array(context: Any, builder: Any, kind: Any, address: Any, shape: list[Any]) -> Any:
    array = make_array(kind)(context, builder)
    element = context.get_data_type(kind.dtype)
    size = context.get_abi_sizeof(element)
    strides: list[Any] = []
    step = INT64(size)
    for extent in reversed(shape):
        strides.insert(0, step)
        step = builder.mul(step, extent)
    data = builder.inttoptr(address, element.as_pointer())
    populate_array(array, data=data, shape=shape, strides=strides, itemsize=INT64(size), meminfo=None)
    return array._getvalue()


@lower_getattr_generic(RecordType)
def _get_from_record(context: Any, builder: Any, kind: Any, start: Any, name: str) -> Any:
    if name == "values":
        length = INT64(len(kind.fields))
        return _array(context, builder, types.Array(kind.number, 1, "C"), builder.ptrtoint(start, INT64), [length])
    return builder.load(builder.gep(start, [INT64(kind.fields.index(name))]), align=WORD)


@lower_setattr_generic(RecordType)
def _set_in_record(context: Any, builder: Any, signature: Any, arguments: Any, name: str) -> None:
    start, value = arguments
    kind, given = signature.args
    number = context.cast(builder, value, given, kind.number)
    builder.store(number, builder.gep(start, [INT64(kind.fields.index(name))]), align=WORD)
