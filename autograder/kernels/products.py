"""Products of matrices, with the operands rounded as a tensor core rounds them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import numpy as np

from autograder.kernels.faults import Unreadable
from autograder.kernels.frame import ProgramFrame, Step, Translation
from autograder.kernels.number_types import (
    Array,
    ElementType,
    from_bits,
    read_element_type,
    round_to_bfloat16,
    round_to_tf32,
    rounder,
)
from autograder.kernels.ttir_text import Operation

_FOUR_BIT_VALUES = np.array(
    [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32
)


def find_product_step(operation: Operation, types: Translation) -> Step | None:
    """The step of a product; None for any other operation."""
    if operation.name in ("tt.dot", "tt.warp_group_dot"):
        return _dot(operation, types)
    if operation.name == "tt.dot_scaled":
        return _scaled_dot(operation, types)
    return None


def _count(frame: ProgramFrame, shape: tuple[int, ...], depth: int) -> None:
    size = math.prod(shape)
    active = frame.count_active()
    frame.counts.dots += active
    frame.counts.flops += 2 * size * depth * active
    frame.counts.largest = max(frame.counts.largest, size)
    frame.budget.spend(size * depth * active // 16)


def _dot(operation: Operation, types: Translation) -> Step:
    (result,) = operation.results
    a, b, c = operation.operands[:3]
    shape, depth = types.type_of(result).shape, types.type_of(a).shape[-1]
    multiply = _multiplication(types.element_of(a), operation.word("inputPrecision"))
    finish = rounder(types.element_of(result))
    if types.element_of(result).kind == "int":
        finish = _wrap_to_int32

    def step(frame: ProgramFrame) -> None:
        product = multiply(frame.values[a], frame.values[b])
        frame.values[result] = finish(product + frame.values[c])
        _count(frame, shape, depth)

    return step


def _wrap_to_int32(values: Array) -> Array:
    return values.astype(np.int64).astype(np.int32)


def _multiplication(
    element: ElementType, precision: str
) -> Callable[[Array, Array], Array]:
    if element.kind == "int":
        # exact: products of 8 bits, and sums of less than 2**38 of them
        return lambda a, b: np.matmul(a.astype(np.float64), b.astype(np.float64))
    if element.name == "f64":
        return np.matmul
    if element.name != "f32":
        return lambda a, b: np.matmul(a.astype(np.float32), b.astype(np.float32))
    if precision == "tf32":
        return lambda a, b: np.matmul(round_to_tf32(a), round_to_tf32(b))
    if precision in ("bf16x3", "bf16x6"):
        return lambda a, b: _by_bfloat16(a, b, 2 if precision == "bf16x3" else 3)
    # "ieee", which the text leaves out; and "tf32x3", whose parts have 21 bits together
    return np.matmul


def _by_bfloat16(a: Array, b: Array, parts: int) -> Array:
    """The product of numbers cut into bfloat16 parts; the smallest products are left out."""
    a_parts, b_parts = _cut(a, parts), _cut(b, parts)
    total: Array = np.float32(0.0) * np.matmul(a_parts[0], b_parts[0])
    for i in reversed(range(parts)):
        for j in reversed(range(parts - i)):
            total = total + np.matmul(a_parts[i], b_parts[j])
    return total


def _cut(values: Array, parts: int) -> list[Array]:
    cut = []
    for _ in range(parts):
        cut.append(round_to_bfloat16(values))
        values = values - cut[-1]
    return cut


# products of blocks that share a scale


def _scaled_dot(operation: Operation, types: Translation) -> Step:
    names = _scaled_operands(operation)
    (result,) = operation.results
    shape = types.type_of(result).shape
    lhs, rhs = operation.word("lhs"), operation.word("rhs")
    finish = rounder(types.element_of(result))
    elements = {key: types.element_of(name) for key, name in names.items()}

    def step(frame: ProgramFrame) -> None:
        values = {key: frame.values[name] for key, name in names.items()}
        a = _unpacked(values["a"], lhs, -1)
        b = _unpacked(values["b"], rhs, -2)
        if "a_scale" in values:
            a = a * _spread_scales(values["a_scale"], elements["a_scale"], a.shape[-1])
        if "b_scale" in values:
            scales = _spread_scales(values["b_scale"], elements["b_scale"], b.shape[-2])
            b = b * scales.swapaxes(-1, -2)
        product = np.matmul(a, b)
        frame.values[result] = finish(
            product + values["c"] if "c" in values else product
        )
        _count(frame, shape, a.shape[-1])

    return step


def _scaled_operands(operation: Operation) -> dict[str, str]:
    """The operands by what they are: `%a scale %a_scale, %b scale %b_scale, %c lhs = …`."""
    head = operation.text.partition(" lhs =")[0]
    parts = head.split(",")
    names = {}
    for key, part in zip(("a", "b", "c"), parts, strict=False):
        written = re.findall(r"%[\w$.-]+(?:#\d+)?", part)
        names[key] = written[0]
        if len(written) > 1:
            names[f"{key}_scale"] = written[1]
    if "a" not in names or "b" not in names:
        raise Unreadable(f"no product: {operation.text[:60]}")
    return names


def _unpacked(values: Array, form: str, axis: int) -> Array:
    """Numbers as float32; of four bits, two lie in a byte, the lower half first."""
    if form != "e2m1":
        if values.dtype == np.int8:  # float8 that is handed over as bytes
            name = {"e4m3": "f8E4M3FN", "e5m2": "f8E5M2"}[form]
            return from_bits(values.view(np.uint8), read_element_type(name))
        return values.astype(np.float32)
    codes = values.view(np.uint8)
    axis += values.ndim
    halves = [_FOUR_BIT_VALUES[codes & 15], _FOUR_BIT_VALUES[codes >> 4]]
    shape = list(values.shape)
    shape[axis] *= 2
    return np.stack(halves, axis + 1).reshape(shape)


def _spread_scales(scales: Array, element: ElementType, depth: int) -> Array:
    """A scale for each number: 2**(scale - 127), or a float8, each for a block of numbers."""
    if element.kind == "int":
        numbers = np.exp2(scales.view(np.uint8).astype(np.float32) - 127)
    else:
        numbers = scales.astype(np.float32)
    return np.repeat(numbers, depth // scales.shape[-1], axis=-1)
