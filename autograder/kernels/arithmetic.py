"""The arithmetic of TTIR, element by element: `arith`, `math`, and Triton's own.

Each operation has one meaning here: that of the hardware. Integers wrap around; a division rounds
towards zero; half precision is computed in float32 and rounded after each operation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from autograder.kernels.faults import Unreadable
from autograder.kernels.libdevice import FUNCTIONS
from autograder.kernels.number_types import (
    Array,
    ElementType,
    from_bits,
    rounder,
    to_bits,
)
from autograder.kernels.ttir_text import Operation

Elementwise = Callable[..., Array]


def as_unsigned(values: Array) -> Array:
    """Signless integers, read as unsigned ones."""
    if values.dtype.kind != "i":
        return values
    return np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}")


def _on_unsigned(function: Elementwise) -> Elementwise:
    def apply(a: Array, b: Array) -> Array:
        result = function(as_unsigned(a), as_unsigned(b))
        return result.view(a.dtype) if a.dtype.kind == "i" else result

    return apply


def _compare_unsigned(function: Elementwise) -> Elementwise:
    return lambda a, b: function(as_unsigned(a), as_unsigned(b))


def _signed(values: Array) -> Array:
    """Integers as signed ones: of one bit, True is -1."""
    return -values.astype(np.int8) if values.dtype.kind == "b" else values


def _compare_signed(function: Elementwise) -> Elementwise:
    return lambda a, b: function(_signed(a), _signed(b))


def _divide(a: Array, b: Array) -> Array:
    """Rounded towards zero, as hardware divides; numpy rounds down."""
    quotient = a // b
    inexact = (a - quotient * b) != 0
    return np.where(inexact & ((a < 0) != (b < 0)), quotient + 1, quotient).astype(
        a.dtype
    )


def _remainder(a: Array, b: Array) -> Array:
    return np.fmod(a, b)


def _ceil_divide(a: Array, b: Array) -> Array:
    quotient = _divide(a, b)
    exceeds = (a - quotient * b != 0) & ((a < 0) == (b < 0))
    return np.asarray(quotient + exceeds, a.dtype)


def _shift(function: Elementwise) -> Elementwise:
    """A shift by as many bits as the number has, or more, gives 0 or the sign."""

    def apply(a: Array, b: Array) -> Array:
        bits = 8 * a.dtype.itemsize
        within = as_unsigned(b) < bits
        shifted = function(a, np.where(within, b, 0).astype(b.dtype))
        beyond = np.where(a < 0, -1, 0) if function is np.right_shift else 0
        return np.where(within, shifted, beyond).astype(a.dtype)

    return apply


def multiply_high(a: Array, b: Array) -> Array:
    """The upper half of the product of two unsigned integers."""
    bits = 8 * a.dtype.itemsize
    wide_a, wide_b = as_unsigned(a), as_unsigned(b)
    if bits <= 32:
        product = wide_a.astype(np.uint64) * wide_b.astype(np.uint64)
        return (product >> np.uint64(bits)).astype(wide_a.dtype).view(a.dtype)
    low = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    low_a, high_a, low_b, high_b = (
        wide_a & low,
        wide_a >> half,
        wide_b & low,
        wide_b >> half,
    )
    middle = high_a * low_b + (low_a * low_b >> half)
    cross = (middle & low) + low_a * high_b
    product = high_a * high_b + (middle >> half) + (cross >> half)
    return np.asarray(product).view(a.dtype)


_INTEGERS: dict[str, Elementwise] = {
    "addi": np.add,
    "subi": np.subtract,
    "muli": np.multiply,
    "andi": np.bitwise_and,
    "ori": np.bitwise_or,
    "xori": np.bitwise_xor,
    "divsi": _divide,
    "remsi": _remainder,
    "ceildivsi": _ceil_divide,
    "floordivsi": np.floor_divide,
    "maxsi": np.maximum,
    "minsi": np.minimum,
    "shrsi": _shift(np.right_shift),
    "shli": _shift(np.left_shift),
    "divui": _on_unsigned(np.floor_divide),
    "remui": _on_unsigned(np.remainder),
    "ceildivui": _on_unsigned(lambda a, b: a // b + (a % b != 0).astype(a.dtype)),
    "maxui": _on_unsigned(np.maximum),
    "minui": _on_unsigned(np.minimum),
    "shrui": _on_unsigned(_shift(np.right_shift)),
}
_FLOATS: dict[str, Elementwise] = {
    "addf": np.add,
    "subf": np.subtract,
    "mulf": np.multiply,
    "divf": np.divide,
    "remf": np.fmod,
    "negf": np.negative,
    "maxnumf": np.fmax,
    "minnumf": np.fmin,
    "maximumf": np.maximum,
    "minimumf": np.minimum,
}
_ERF: Callable[[Array], Array] = np.frompyfunc(math.erf, 1, 1)
_MATHEMATICS: dict[str, Elementwise] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "tanh": np.tanh,
    "erf": lambda x: np.asarray(_ERF(x)).astype(x.dtype),
    "absf": np.abs,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
    "roundeven": np.rint,
    "powf": np.power,
    "copysign": np.copysign,
    "exp10": lambda x: np.power(x.dtype.type(10), x),
    "log10": np.log10,
    "log1p": np.log1p,
    "expm1": np.expm1,
    "atan2": np.arctan2,
}
_COMPARE_INTEGERS: dict[str, Elementwise] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "slt": _compare_signed(np.less),
    "sle": _compare_signed(np.less_equal),
    "sgt": _compare_signed(np.greater),
    "sge": _compare_signed(np.greater_equal),
    "ult": _compare_unsigned(np.less),
    "ule": _compare_unsigned(np.less_equal),
    "ugt": _compare_unsigned(np.greater),
    "uge": _compare_unsigned(np.greater_equal),
}


def _unordered(a: Array, b: Array) -> Array:
    return np.isnan(a) | np.isnan(b)


_COMPARE_FLOATS: dict[str, Elementwise] = {
    "oeq": np.equal,
    "one": lambda a, b: (a != b) & ~_unordered(a, b),
    "olt": np.less,
    "ole": np.less_equal,
    "ogt": np.greater,
    "oge": np.greater_equal,
    "ueq": lambda a, b: (a == b) | _unordered(a, b),
    "une": np.not_equal,
    "ult": lambda a, b: ~(a >= b),
    "ule": lambda a, b: ~(a > b),
    "ugt": lambda a, b: ~(a <= b),
    "uge": lambda a, b: ~(a < b),
    "uno": _unordered,
    "ord": lambda a, b: ~_unordered(a, b),
}


def find_elementwise(
    operation: Operation, sources: list[ElementType], target: ElementType
) -> Elementwise | None:
    """The function of an operation that works element by element; None for any other operation.

    Args:
        sources: the element types of the operands.
        target: the element type of the result.

    Raises:
        Unreadable: the operation is of this kind, and unknown.
    """
    dialect, _, short = operation.name.partition(".")
    if dialect == "arith":
        return _find_arith(operation, short, sources, target)
    if dialect == "math":
        return _find_math(short, target)
    if short == "bitcast":
        return _bitcast(sources[0], target)
    return _find_tt(operation, short, target)


def _find_arith(
    operation: Operation, short: str, sources: list[ElementType], target: ElementType
) -> Elementwise | None:
    if short in _INTEGERS:
        function = _INTEGERS[short]
        if target.kind == "bool":
            return lambda a, b: function(a, b) != 0
        return function
    if short in _FLOATS:
        return _rounded(_FLOATS[short], target)
    if short in ("cmpi", "cmpf"):
        table = _COMPARE_INTEGERS if short == "cmpi" else _COMPARE_FLOATS
        return table.get(operation.text.split(",")[0].split()[0])
    if short == "bitcast":
        return _bitcast(sources[0], target)
    return _find_conversion(operation, short, target)


def _rounded(function: Elementwise, target: ElementType) -> Elementwise:
    """A function of floating point numbers, rounded to the type of its result."""
    if target.name in ("f32", "f64"):
        return function
    if target.name == "f16":
        # numpy computes one operation of float16 in float32 and rounds, like the hardware
        return lambda *values: function(*values).astype(np.float16)
    finish = rounder(target)
    return lambda *values: finish(function(*values))


def _find_conversion(
    operation: Operation, short: str, target: ElementType
) -> Elementwise | None:
    if short in ("extf", "truncf"):
        return rounder(target, toward_zero="toward_zero" in operation.text)
    if short in ("sitofp", "uitofp"):
        finish = rounder(target)
        read = _signed if short == "sitofp" else as_unsigned
        return lambda values: finish(_exactly(read(values)))
    if short in ("fptosi", "fptoui"):
        return lambda values: _to_integer(values, target, signed=short == "fptosi")
    if short in ("extsi", "index_cast"):
        return lambda values: _signed(values).astype(target.array)
    if short in ("extui", "index_castui"):
        return lambda values: as_unsigned(values).astype(target.array)
    if short == "trunci":
        if target.kind == "bool":
            return lambda values: values & 1 != 0
        return lambda values: values.astype(target.array)
    return None


def _exactly(integers: Array) -> Array:
    """Integers as floating point numbers, exact up to 53 bits."""
    return integers.astype(np.float64)


def _to_integer(values: Array, target: ElementType, *, signed: bool) -> Array:
    """Rounded towards zero, and to the nearest integer that the type holds: `cvt.rzi` does so."""
    if target.kind == "bool":
        return np.asarray(np.trunc(values) != 0)
    limits = np.iinfo(target.array if signed else target.stored)
    whole = np.nan_to_num(np.trunc(values.astype(np.float64)), nan=0.0)
    too_large = whole >= float(limits.max)
    inside = np.clip(np.where(too_large, 0.0, whole), float(limits.min), None)
    result = np.where(too_large, limits.max, inside.astype(limits.dtype))
    return result.astype(limits.dtype).view(target.array)


def _find_math(short: str, target: ElementType) -> Elementwise | None:
    if short == "absi":
        return np.abs
    if short == "fma":
        return _rounded(_fused_multiply_add, target)
    function = _MATHEMATICS.get(short)
    return None if function is None else _rounded(function, target)


def _fused_multiply_add(a: Array, b: Array, c: Array) -> Array:
    """a * b + c, rounded once."""
    if a.dtype == np.float64:
        return a * b + c
    exact = a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)
    return exact.astype(a.dtype)


def _find_tt(
    operation: Operation, short: str, target: ElementType
) -> Elementwise | None:
    if short == "fp_to_fp":
        return rounder(target, toward_zero=operation.word("rounding") == "rtz")
    if short == "clampf":
        propagates = operation.word("propagateNan") == "all"
        low, high = (np.maximum, np.minimum) if propagates else (np.fmax, np.fmin)
        return lambda x, least, most: high(low(x, least), most)
    if short == "precise_sqrt":
        return np.sqrt
    if short == "precise_divf":
        return np.divide
    if short == "mulhiui":
        return multiply_high
    if short == "extern_elementwise":
        return _find_extern(operation, target)
    return None


def _find_extern(operation: Operation, target: ElementType) -> Elementwise:
    """A function of NVIDIA's library libdevice."""
    symbol = operation.text.partition('symbol = "')[2].partition('"')[0]
    function = FUNCTIONS.get(symbol.removeprefix("__nv_"))
    if function is None:
        raise Unreadable(
            f"libdevice's {symbol} has no meaning on a CPU: use a function of tl"
        )
    return lambda *values: np.asarray(function(*values)).astype(target.array)


def _bitcast(source: ElementType, target: ElementType) -> Elementwise:
    if source.kind == target.kind == "pointer":
        return lambda values: values
    if "bool" in (source.kind, target.kind):
        return lambda values: values.astype(target.array)
    if source.name == target.name:
        return lambda values: values
    return lambda values: from_bits(to_bits(values, source), target)


def constant(text: str, shape: tuple[int, ...], element: ElementType) -> Array:
    """The value of `arith.constant`, [1, *shape].

    Raises:
        Unreadable: the text is no number.
    """
    written = text.strip().removeprefix("dense<").removesuffix(">").strip('"')
    if written in ("true", "false"):
        value: Any = np.bool_(written == "true")
    elif written.startswith("0x"):
        value = from_bits(np.array(int(written, 16), element.stored), element)
    else:
        try:
            value = _number(written, element)
        except ValueError as error:
            raise Unreadable(f"no number: {text[:60]}") from error
    return np.broadcast_to(np.asarray(value, element.array), (1, *shape))


def _number(written: str, element: ElementType) -> Array:
    if element.kind == "float":
        return rounder(element)(np.array(float(written)))
    bits = np.array(int(written) & (1 << 8 * element.size) - 1, element.stored)
    return from_bits(bits, element)
