"""Vector code for the short loops of the projection: eight neighbouring numbers at a time, the last piece masked.

The compiler vectorises plain loops for long vectors, and calls a function of the C library for every exponential. Rows
and layers have 3 to 30 entries, so this module writes both as vector operations, for `row_vectors.py` and
`elementary.py`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from numba import config

ir: Any = import_module("llvmlite.ir")  # has no types

LANES = 8
PLAIN: bool = bool(config.DISABLE_JIT)  # type: ignore[attr-defined]
"""Whether kernels run as Python; then numpy replaces the lanes."""


class Lanes:
    """Writes operations on LANES numbers into a function; the first `count` of them are in use."""

    def __init__(self, context: Any, builder: Any, signature: Any, arguments: Any, count: Any) -> None:
        self.context, self.builder, self.signature, self.arguments = context, builder, signature, arguments
        self.double, self.byte, self.integer, self.short = (
            ir.VectorType(kind, LANES) for kind in (ir.DoubleType(), *map(ir.IntType, (8, 64, 32)))
        )
        numbers = ir.Constant(self.integer, list(range(LANES)))
        self.mask = builder.icmp_unsigned("<", numbers, self.spread(count, self.integer))

    def spread(self, value: Any, kind: Any) -> Any:
        """The same value in all lanes."""
        none = ir.Constant(kind, ir.Undefined)
        one = self.builder.insert_element(none, value, ir.IntType(32)(0))
        return self.builder.shuffle_vector(one, none, ir.Constant(self.short, [0] * LANES))

    def constant(self, value: float) -> Any:
        return ir.Constant(self.double, [value] * LANES)

    def load(self, array: int, offset: Any, kind: Any, otherwise: Any = None) -> Any:
        """Lanes of the argument number `array` from `offset` on; 0, or `otherwise`, in those that are not in use."""
        load = self._masked("load", kind, kind, [], [self.mask.type, kind])
        rest = ir.Constant(kind, None) if otherwise is None else otherwise
        return self.builder.call(load, [self._place(array, offset, kind), self._alignment(kind), self.mask, rest])

    def store(self, value: Any, array: int, offset: Any) -> None:
        kind = value.type
        store = self._masked("store", kind, ir.VoidType(), [kind], [self.mask.type])
        self.builder.call(store, [value, self._place(array, offset, kind), self._alignment(kind), self.mask])

    def total(self, vector: Any) -> Any:
        """The sum of all lanes: halves, quarters, eighths."""
        builder, width = self.builder, LANES
        while width > 1:
            width //= 2
            none, places = ir.Constant(vector.type, ir.Undefined), ir.VectorType(ir.IntType(32), width)
            low = builder.shuffle_vector(vector, none, ir.Constant(places, list(range(width))))
            high = builder.shuffle_vector(vector, none, ir.Constant(places, list(range(width, 2 * width))))
            vector = builder.fadd(low, high)
        return builder.extract_element(vector, ir.IntType(32)(0))

    def number(self, bits: Any) -> Any:
        """How many lanes are set, as a 64-bit integer."""
        packed = self.builder.zext(self.builder.bitcast(bits, ir.IntType(LANES)), ir.IntType(64))
        return self.builder.ctpop(packed)

    def multiply_add(self, a: Any, b: Any, c: Any) -> Any:
        """a b + c, rounded once where the processor can."""
        kind = ir.FunctionType(self.double, [self.double] * 3)
        fused = self.builder.module.declare_intrinsic("llvm.fmuladd.v8f64", fnty=kind)
        return self.builder.call(fused, [a, b, c])

    def polynomial(self, x: Any, coefficients: list[float]) -> Any:
        """sum of coefficients[k] x^k, in pairs, pairs of pairs and so on: few operations wait for each other."""
        terms, power = [self.constant(c) for c in coefficients], x
        while len(terms) > 1:
            pairs = [self.multiply_add(terms[i + 1], power, terms[i]) for i in range(0, len(terms) - 1, 2)]
            terms = pairs + ([terms[-1]] if len(terms) % 2 else [])
            if len(terms) > 1:
                power = self.builder.fmul(power, power)
        return terms[0]

    def _place(self, array: int, offset: Any, kind: Any) -> Any:
        made = self.context.make_array(self.signature.args[array])
        data = made(self.context, self.builder, self.arguments[array]).data
        return self.builder.bitcast(self.builder.gep(data, [offset]), kind.as_pointer())

    @staticmethod
    def _alignment(kind: Any) -> Any:
        return ir.IntType(32)(8 if isinstance(kind.element, ir.DoubleType) else 1)

    def _masked(self, name: str, kind: Any, result: Any, first: list[Any], last: list[Any]) -> Any:
        suffix = "v8f64" if isinstance(kind.element, ir.DoubleType) else "v8i8"
        signature = ir.FunctionType(result, [*first, kind.as_pointer(), ir.IntType(32), *last])
        return self.builder.module.declare_intrinsic(f"llvm.masked.{name}.{suffix}.p0", fnty=signature)
