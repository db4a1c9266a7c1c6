"""Block pointers and descriptors: tiles of a tensor by shape, strides and offsets."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from autograder.kernels.faults import KernelFault, Unreadable
from autograder.kernels.frame import ProgramFrame, Step, TileReference, Translation
from autograder.kernels.memory import ALIGNED
from autograder.kernels.number_types import Array
from autograder.kernels.tile_memory import CHANGES, change_tile, load_tile, store_tile
from autograder.kernels.ttir_text import Operation

_NAN_PADDING = 2
"""Triton's number of `padding_option="nan"`; "zero" is 1, and none says nothing of the lanes."""


def find_reference_step(operation: Operation, types: Translation) -> Step | None:
    """The step of an operation on block pointers or descriptors; None for any other operation."""
    if operation.name in ("tt.load", "tt.store"):
        if not types.type_of(operation.operands[0]).reference:
            return None
        return (
            _load_block(operation, types)
            if operation.results
            else _store_block(operation, types)
        )
    finder = _REFERENCE_FINDERS.get(operation.name)
    return None if finder is None else finder(operation, types)


# block pointers


def _bracketed(operation: Operation) -> list[list[str]]:
    """The names in each pair of brackets: shape, strides, offsets."""
    lists = re.findall(r"\[([^\]]*)\]", operation.text)
    return [re.findall(r"%[\w$.-]+(?:#\d+)?", names) for names in lists]


def _per_program(frame: ProgramFrame, names: Sequence[str]) -> tuple[Array, ...]:
    return tuple(frame.of_all(frame.values[name]).astype(np.int64) for name in names)


def _make_block_pointer(operation: Operation, types: Translation) -> Step:
    (result,), pointer = operation.results, operation.operands[0]
    shape, strides, offsets = _bracketed(operation)

    def step(frame: ProgramFrame) -> None:
        frame.values[result] = TileReference(
            frame.of_all(frame.values[pointer]),
            _per_program(frame, shape),
            _per_program(frame, strides),
            _per_program(frame, offsets),
        )

    return step


def _advance(operation: Operation, types: Translation) -> Step:
    (result,), (pointer, *distances) = operation.results, operation.operands

    def step(frame: ProgramFrame) -> None:
        block: TileReference = frame.values[pointer]
        moved = _per_program(frame, distances)
        offsets = tuple(a + b for a, b in zip(block.offsets, moved, strict=True))
        frame.values[result] = TileReference(
            block.base, block.shape, block.strides, offsets, block.padding
        )

    return step


def _addresses_of(
    block: TileReference, tile: Sequence[int], size: int, checked: Sequence[int]
) -> tuple[Array, Array | None]:
    """The addresses of a tile [P, *tile], and a mask of those inside along the checked axes."""
    ndim = len(tile) + 1
    addresses = block.base.reshape(-1, *(1,) * len(tile))
    mask: Array | None = None
    for axis, count in enumerate(tile):
        along = [1] * ndim
        along[axis + 1] = count
        first = block.offsets[axis].reshape(-1, *(1,) * len(tile))
        index = first + np.arange(count).reshape(along)
        stride = block.strides[axis].reshape(-1, *(1,) * len(tile))
        addresses = addresses + index * stride * size
        if axis in checked:
            limit = block.shape[axis].reshape(-1, *(1,) * len(tile))
            inside = (index >= 0) & (index < limit)
            mask = inside if mask is None else mask & inside
    return addresses, mask


def _naming_unchecked_axes(
    fault: KernelFault, axes: int, checked: Sequence[int]
) -> KernelFault:
    """A fault of a block pointer, with the axes that `boundary_check` leaves out."""
    left_out = [str(axis) for axis in range(axes) if axis not in checked]
    if not left_out:
        return fault
    return type(fault)(
        f"{fault}; boundary_check of this block pointer leaves out axis {' and '.join(left_out)}"
    )


def _load_block(operation: Operation, types: Translation) -> Step:
    (result,), pointer = operation.results, operation.operands[0]
    tile = types.type_of(pointer)
    checked = operation.numbers("boundaryCheck")
    padding = operation.number("padding")

    def step(frame: ProgramFrame) -> None:
        element = tile.element
        addresses, mask = _addresses_of(
            frame.values[pointer], tile.shape, element.size, checked
        )
        other = None
        if padding is not None:
            other = np.array(np.nan if padding == _NAN_PADDING else 0, element.array)
        try:
            frame.values[result] = load_tile(frame, addresses, mask, other, element)
        except KernelFault as fault:
            raise _naming_unchecked_axes(fault, len(tile.shape), checked) from None

    return step


def _store_block(operation: Operation, types: Translation) -> Step:
    pointer, value = operation.operands[:2]
    tile = types.type_of(pointer)
    checked = operation.numbers("boundaryCheck")

    def step(frame: ProgramFrame) -> None:
        block, size = frame.values[pointer], tile.element.size
        addresses, mask = _addresses_of(block, tile.shape, size, checked)
        try:
            store_tile(frame, addresses, frame.values[value], mask, tile.element)
        except KernelFault as fault:
            raise _naming_unchecked_axes(fault, len(tile.shape), checked) from None

    return step


# descriptors


def _make_descriptor(operation: Operation, types: Translation) -> Step:
    (result,), pointer = operation.results, operation.operands[0]
    shape, strides = _bracketed(operation)[:2]
    element = types.element_of(result)
    padding = np.nan if operation.number("padding") == _NAN_PADDING else 0.0

    def step(frame: ProgramFrame) -> None:
        zeros = (np.zeros(len(frame.programs), np.int64),) * len(shape)
        descriptor = TileReference(
            frame.of_all(frame.values[pointer]),
            _per_program(frame, shape),
            _per_program(frame, strides),
            zeros,
            padding,
        )
        refuse_descriptor(descriptor, element.size)
        frame.values[result] = descriptor

    return step


def refuse_descriptor(descriptor: TileReference, size: int) -> None:
    """Refuse what the hardware does not take: rows that do not begin at 16 bytes."""
    if (descriptor.base % ALIGNED).any():
        raise KernelFault(
            "a descriptor of a tensor that does not begin at a multiple of 16 bytes"
        )
    for stride in descriptor.strides[:-1]:
        if (stride * size % ALIGNED).any():
            raise KernelFault(
                f"a descriptor with a stride of {int(stride[0])} elements: all but the last must "
                "be multiples of 16 bytes"
            )
    if (descriptor.strides[-1] != 1).any():
        raise KernelFault("a descriptor whose last stride is not 1")


def _tile_at(
    frame: ProgramFrame, descriptor: str, offsets: Sequence[str]
) -> TileReference:
    whole: TileReference = frame.values[descriptor]
    places = _per_program(frame, offsets)
    return TileReference(whole.base, whole.shape, whole.strides, places, whole.padding)


def _descriptor_load(operation: Operation, types: Translation) -> Step:
    (result,), descriptor = operation.results, operation.operands[0]
    (offsets,) = _bracketed(operation)
    tile, shape = types.type_of(descriptor), types.type_of(result).shape

    def step(frame: ProgramFrame) -> None:
        block = _tile_at(frame, descriptor, offsets)
        element, every = tile.element, range(len(tile.shape))
        addresses, mask = _addresses_of(block, tile.shape, element.size, every)
        other = np.array(block.padding if element.kind == "float" else 0, element.array)
        values = load_tile(frame, addresses, mask, other, element)
        frame.values[result] = values.reshape(len(values), *shape)

    return step


def _descriptor_store(operation: Operation, types: Translation) -> Step:
    descriptor, value = operation.operands[0], operation.operands[-1]
    (offsets,) = _bracketed(operation)
    tile = types.type_of(descriptor)

    def step(frame: ProgramFrame) -> None:
        block = _tile_at(frame, descriptor, offsets)
        every = range(len(tile.shape))
        addresses, mask = _addresses_of(block, tile.shape, tile.element.size, every)
        values = frame.values[value]
        store_tile(
            frame,
            addresses,
            values.reshape(len(values), *tile.shape),
            mask,
            tile.element,
        )

    return step


def _rows_of(
    frame: ProgramFrame, descriptor: str, rows: str, column: str, width: int, size: int
) -> tuple[Array, Array]:
    """The addresses of chosen rows of a matrix, and a mask of those inside."""
    whole: TileReference = frame.values[descriptor]
    index = frame.values[rows].astype(np.int64)[:, :, None]
    first = frame.of_all(frame.values[column]).astype(np.int64)
    columns = first[:, None, None] + np.arange(width)
    base, heights, widths, steps, gaps = (
        array[:, None, None] for array in (whole.base, *whole.shape, *whole.strides)
    )
    addresses = base + (index * steps + columns * gaps) * size
    inside = (index >= 0) & (index < heights) & (columns >= 0) & (columns < widths)
    return addresses, inside


def _descriptor_gather(operation: Operation, types: Translation) -> Step:
    (result,), (descriptor, rows, column) = operation.results, operation.operands
    element, width = types.element_of(result), types.type_of(result).shape[1]

    def step(frame: ProgramFrame) -> None:
        addresses, mask = _rows_of(frame, descriptor, rows, column, width, element.size)
        other = np.array(0, element.array)
        frame.values[result] = load_tile(frame, addresses, mask, other, element)

    return step


def _descriptor_scatter(operation: Operation, types: Translation) -> Step:
    descriptor, rows, column, value = operation.operands
    element, width = types.element_of(value), types.type_of(value).shape[1]

    def step(frame: ProgramFrame) -> None:
        addresses, mask = _rows_of(frame, descriptor, rows, column, width, element.size)
        store_tile(frame, addresses, frame.values[value], mask, element)

    return step


def _descriptor_reduce(operation: Operation, types: Translation) -> Step:
    descriptor, value = operation.operands[0], operation.operands[-1]
    (offsets,) = _bracketed(operation)
    tile = types.type_of(descriptor)
    kind = operation.text.split(",")[0].strip()
    if kind not in CHANGES:
        raise Unreadable(f"the atomic operation {kind[:20]} has no meaning here")
    combine = CHANGES[kind]

    def step(frame: ProgramFrame) -> None:
        block = _tile_at(frame, descriptor, offsets)
        every = range(len(tile.shape))
        addresses, mask = _addresses_of(block, tile.shape, tile.element.size, every)
        values = frame.values[value]
        change_tile(
            frame,
            addresses,
            values.reshape(len(values), *tile.shape),
            mask,
            tile.element,
            lambda old, new, which: combine(old, new),
            "relaxed",
        )

    return step


_REFERENCE_FINDERS: dict[str, Callable[[Operation, Translation], Step]] = {
    "tt.make_tensor_ptr": _make_block_pointer,
    "tt.advance": _advance,
    "tt.make_tensor_descriptor": _make_descriptor,
    "tt.descriptor_load": _descriptor_load,
    "tt.descriptor_store": _descriptor_store,
    "tt.descriptor_gather": _descriptor_gather,
    "tt.descriptor_scatter": _descriptor_scatter,
    "tt.descriptor_reduce": _descriptor_reduce,
}
