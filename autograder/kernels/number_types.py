"""The types of TTIR, and how numbers are rounded to them.

Numbers that numpy has no type for (bfloat16, float8) are held as float32, rounded to the values of
their type. In memory each element is an unsigned integer of its size.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from autograder.kernels.faults import Unreadable

Array = np.ndarray[Any, Any]
_TENSOR = re.compile(r"tensor<((?:\d+x)*)(.*)>$")
_MOST_LANES = 1 << 20
"""Elements of a tile. Triton's own limit: a larger one does not come from its front end."""


@dataclass(frozen=True, slots=True)
class ElementType:
    """The type of one element.

    Attributes:
        name: as TTIR writes it, such as "bf16".
        kind: "float", "int", "bool" or "pointer".
        size: bytes in memory.
        array: the numpy type that holds values.
        pointee: for a pointer, what it points to.
    """

    name: str
    kind: str
    size: int
    array: np.dtype[Any]
    pointee: ElementType | None = None

    @property
    def stored(self) -> np.dtype[Any]:
        """The unsigned integer of this size."""
        return np.dtype(f"u{self.size}")


@dataclass(frozen=True, slots=True)
class TileType:
    """A tile's shape, () for a scalar, and the type of its elements.

    Attributes:
        reference: "block" for a block pointer to such a tile, "descriptor" for a descriptor of
            tiles, "" for the tile itself.
    """

    shape: tuple[int, ...]
    element: ElementType
    reference: str = ""


def _simple(name: str, kind: str, size: int, array: str) -> ElementType:
    return ElementType(name, kind, size, np.dtype(array))


_SIMPLE = {
    element.name: element
    for element in (
        _simple("i1", "bool", 1, "bool"),
        _simple("i8", "int", 1, "int8"),
        _simple("i16", "int", 2, "int16"),
        _simple("i32", "int", 4, "int32"),
        _simple("i64", "int", 8, "int64"),
        _simple("index", "int", 8, "int64"),
        _simple("f16", "float", 2, "float16"),
        _simple("bf16", "float", 2, "float32"),
        _simple("f32", "float", 4, "float32"),
        _simple("f64", "float", 8, "float64"),
        _simple("f8E4M3FN", "float", 1, "float32"),
        _simple("f8E5M2", "float", 1, "float32"),
        _simple("f8E4M3B11FNUZ", "float", 1, "float32"),
    )
}
BOOL, INT32 = (_SIMPLE[name] for name in ("i1", "i32"))


@functools.cache
def read_element_type(text: str) -> ElementType:
    """The element type that a text names.

    Raises:
        Unreadable: it is none.
    """
    text = text.strip()
    # descriptors say whether integers have a sign: "si32", "ui8"
    simple = _SIMPLE.get(text) or _SIMPLE.get(re.sub(r"^[su](?=i\d)", "", text))
    if simple is not None:
        return simple
    if match := re.fullmatch(r"!tt\.ptr<(.*?)(?:, \d+)?>", text):
        return ElementType(
            text, "pointer", 8, np.dtype("int64"), read_element_type(match[1])
        )
    raise Unreadable(f"numbers of the type {text[:60]} are not known here")


@functools.cache
def read_type(text: str) -> TileType:
    """The type that a text names, such as "tensor<16x16x!tt.ptr<f32>>".

    Raises:
        Unreadable: it is none.
    """
    text = text.strip()
    if match := re.fullmatch(r"!tt\.tensordesc<(?:tensor<)?(.*?)>+", text):
        return _tile_of(f"tensor<{match[1]}>", "descriptor")
    if match := re.fullmatch(r"(?:!tt\.ptr)?<(tensor<.*>)>", text):
        return _tile_of(match[1], "block")
    if text.startswith("tensor<"):
        return _tile_of(text, "")
    if re.match(r"<\d+x", text):  # a descriptor, since Triton 3.9
        return _tile_of(f"tensor{text}", "descriptor")
    if text.startswith("<"):  # in the type of an operation that makes a descriptor
        text = "!tt.ptr" + text
    return TileType((), read_element_type(text))


def _tile_of(text: str, reference: str) -> TileType:
    match = _TENSOR.match(text)
    if match is None:
        raise Unreadable(f"the type {text[:60]} is not known here")
    shape = tuple(int(size) for size in match[1].split("x")[:-1])
    if math.prod(shape) > _MOST_LANES:
        raise Unreadable(
            f"a tile of {math.prod(shape)} elements: {_MOST_LANES} at most"
        )
    # a layout may follow, which says nothing of the values
    return TileType(shape, read_element_type(match[2].split(", #")[0]), reference)


# bits


@functools.cache
def _float8_values(name: str) -> Array:
    """The value of each of the 256 bit patterns of a float8 type."""
    exponent_bits, bias = {
        "f8E4M3FN": (4, 7),
        "f8E5M2": (5, 15),
        "f8E4M3B11FNUZ": (4, 15),
    }[name]
    mantissa_bits = 7 - exponent_bits
    values = []
    for code in range(128):
        exponent, mantissa = code >> mantissa_bits, code & (1 << mantissa_bits) - 1
        if exponent:
            value = math.ldexp(
                (1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits
            )
        else:
            value = math.ldexp(mantissa, 1 - bias - mantissa_bits)
        if name == "f8E4M3FN" and code == 127:
            value = math.nan
        if name == "f8E5M2" and code >= 124:
            value = math.inf if code == 124 else math.nan
        values.append(value)
    positive = np.array(values, np.float32)
    return np.concatenate([positive, -positive])


def from_bits(bits: Array, element: ElementType) -> Array:
    """The values of elements, from their bits in memory."""
    if element.kind == "bool":
        return np.asarray(bits != 0)
    if element.name == "bf16":
        return (bits.astype(np.uint32) << 16).view(np.float32)
    if element.name.startswith("f8"):
        values: Array = _float8_values(element.name)[bits]
        return values
    seen: Array = bits.view(element.array)
    return seen


def to_bits(values: Array, element: ElementType) -> Array:
    """The bits of elements in memory. The values are values of the type already."""
    if element.name == "bf16":
        wide = np.ascontiguousarray(values, np.float32).view(np.uint32)
        return (wide >> 16).astype(np.uint16)
    if element.name.startswith("f8"):
        return _float8_codes(values, element.name, toward_zero=False)
    return np.ascontiguousarray(values, element.array).view(element.stored)


# rounding


def round_to_bits(
    values: Array, mantissa_bits: int, *, toward_zero: bool = False
) -> Array:
    """float32 rounded to fewer bits of mantissa, to nearest with ties to even."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    dropped = 23 - mantissa_bits
    kept = np.uint32(0xFFFFFFFF << dropped & 0xFFFFFFFF)
    if toward_zero:
        rounded = bits & kept
    else:
        half = np.uint32((1 << dropped - 1) - 1)
        rounded = (bits + half + (bits >> dropped & 1)) & kept
    special = bits & 0x7F800000 == 0x7F800000  # infinities and NaN stay as they are
    if special.any():
        quiet = bits & kept | np.where(
            bits & 0x007FFFFF, np.uint32(0x00400000), np.uint32(0)
        )
        rounded = np.where(special, quiet, rounded)
    return rounded.view(np.float32)


def round_to_tf32(values: Array) -> Array:
    """float32 as a tensor core reads it for input_precision="tf32": 10 bits of mantissa."""
    return round_to_bits(values, 10)


def round_to_bfloat16(values: Array) -> Array:
    """Numbers rounded to bfloat16, held as float32."""
    return round_to_bits(_through_odd(values), 7)


def _through_odd(values: Array) -> Array:
    """float64 as float32 that rounds on as the float64 would: to odd, where it is inexact."""
    if values.dtype != np.float64:
        return values
    single = values.astype(np.float32)
    back = single.astype(np.float64)
    inexact = (back != values) & np.isfinite(single)
    bits = np.ascontiguousarray(single).view(np.uint32)
    # one step towards the true value where single was rounded away from it
    away = inexact & (np.abs(back) > np.abs(values))
    bits = np.where(away, bits - 1, bits)
    return np.where(inexact, bits | 1, bits).view(np.float32)


def _float8_codes(values: Array, name: str, *, toward_zero: bool) -> Array:
    """The bits of a float8 type. Too large a number, infinity too, becomes the largest one: NVIDIA
    GPUs convert with `satfinite`.
    """
    positive = _float8_values(name)[:128]
    positive = positive[np.isfinite(positive)].astype(np.float64)
    size = np.abs(values).astype(np.float64)
    above = np.searchsorted(positive, size)  # the first code that is not smaller
    above = np.minimum(above, len(positive) - 1)
    below = np.maximum(above - (positive[above] > size), 0)
    to_below, to_above = size - positive[below], positive[above] - size
    upwards = (to_above < to_below) | ((to_above == to_below) & (above % 2 == 0))
    code = np.where(upwards & (not toward_zero), above, below)
    code = np.where(np.isnan(values), 127, code)
    return np.asarray(code | np.signbit(values) * 128, np.uint8)


def rounder(
    element: ElementType, *, toward_zero: bool = False
) -> Callable[[Array], Array]:
    """The function that rounds floating point numbers to a type and gives them its numpy type."""
    if element.name == "bf16":
        return lambda values: round_to_bits(
            _through_odd(values), 7, toward_zero=toward_zero
        )
    if element.name.startswith("f8"):
        return lambda values: from_bits(
            _float8_codes(values, element.name, toward_zero=toward_zero), element
        )
    if element.name == "f16" and toward_zero:
        return _half_toward_zero
    return lambda values: values.astype(element.array)


def _half_toward_zero(values: Array) -> Array:
    nearest = values.astype(np.float16)
    too_large = np.abs(nearest.astype(np.float64)) > np.abs(values)
    return np.where(too_large, np.nextafter(nearest, np.float16(0)), nearest)
