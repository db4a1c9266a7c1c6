"""Loads, stores and atomic operations, by pointers, block pointers and descriptors."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from autograder.kernels.arithmetic import as_unsigned
from autograder.kernels.faults import KernelFault, Unreadable
from autograder.kernels.frame import Frame, Step, TileReference, Translation
from autograder.kernels.memory import ALIGNED, Lanes
from autograder.kernels.number_types import Array, ElementType, from_bits, rounder, to_bits
from autograder.kernels.ttir_text import Operation

_NAN_PADDING = 2
"""Triton's number of `padding_option="nan"`; "zero" is 1, and none says nothing of the lanes."""


def find_access_step(operation: Operation, types: Translation) -> Step | None:
    """The step of an operation on memory; None for any other operation."""
    finder = _ACCESS_FINDERS.get(operation.name)
    return None if finder is None else finder(operation, types)


# one access


def _select_lanes(
    frame: Frame, addresses: Array, mask: Array | None
) -> tuple[Array, Lanes, Array | None]:
    """The addresses of the lanes that are on, these lanes, and their mask (None: all are on)."""
    shape = (len(frame.programs), *addresses.shape[1:])
    on: Array | None = None
    if mask is not None and not mask.all():
        on = np.broadcast_to(mask, shape)
    if frame.active is not None:
        active = frame.active.reshape(-1, *(1,) * (len(shape) - 1))
        on = np.broadcast_to(active, shape) if on is None else on & active
    every = np.broadcast_to(addresses, shape)
    selected = every.reshape(-1) if on is None else every[on]
    return selected, frame.memory.lanes(frame.programs, shape, on), on


def _poison(element: ElementType) -> Array:
    """What a lane holds that was loaded without `other`: on a GPU, anything."""
    if element.kind == "float":
        return np.array(np.nan, element.array)
    if element.kind == "bool":
        return np.array(True)
    return np.array(np.iinfo(element.array).max, element.array)


def _load(
    frame: Frame,
    addresses: Array,
    mask: Array | None,
    other: Array | None,
    element: ElementType,
    volatile: bool = False,
) -> Array:
    selected, lanes, on = _select_lanes(frame, addresses, mask)
    _note_size(frame, addresses)
    bits = frame.memory.load(selected, lanes, element, volatile)
    values = from_bits(bits, element)
    if on is None:
        return values.reshape(lanes.shape)
    if other is None and mask is not None:
        _note_unfilled(frame, addresses, mask)
    fill = _poison(element) if other is None else other
    result = np.array(np.broadcast_to(fill, lanes.shape), element.array)
    result[on] = values
    return result


def _note_size(frame: Frame, addresses: Array) -> None:
    size = int(np.prod(addresses.shape[1:]))
    frame.counts.largest = max(frame.counts.largest, size)


def _note_unfilled(frame: Frame, addresses: Array, mask: Array) -> None:
    """Note the tensor of which an active program loads masked lanes without `other`."""
    off = np.broadcast_to(~mask, np.broadcast_shapes(mask.shape, addresses.shape))
    if frame.active is not None:
        off = off & frame.active.reshape(-1, *(1,) * (off.ndim - 1))
    if off.any():
        every = np.broadcast_to(addresses, off.shape if len(off) > 1 else addresses.shape)
        name = frame.memory.name_at(int(every.reshape(-1)[0]))
        if name and name not in frame.counts.unfilled:
            frame.counts.unfilled.append(name)


def _store(
    frame: Frame, addresses: Array, value: Array, mask: Array | None, element: ElementType
) -> None:
    selected, lanes, on = _select_lanes(frame, addresses, mask)
    _note_size(frame, addresses)
    every = np.broadcast_to(value, lanes.shape)
    written = every.reshape(-1) if on is None else every[on]
    frame.memory.store(selected, lanes, element, to_bits(written, element))


# pointers


def _add_pointer(operation: Operation, types: Translation) -> Step:
    (result,), (pointer, offset) = operation.results, operation.operands
    pointee = types.element_of(pointer).pointee
    if pointee is None:
        raise Unreadable(f"no pointer: {pointer}")
    size = pointee.size

    def step(frame: Frame) -> None:
        distance = frame.values[offset].astype(np.int64)
        frame.values[result] = frame.values[pointer] + (distance if size == 1 else distance * size)

    return step


def _same_value(operation: Operation, types: Translation) -> Step:
    (result,), (source,) = operation.results, operation.operands

    def step(frame: Frame) -> None:
        frame.values[result] = frame.values[source]

    return step


def _find_load(operation: Operation, types: Translation) -> Step:
    (result,), (pointer, *rest) = operation.results, operation.operands
    element = types.element_of(result)
    if types.type_of(pointer).reference:
        return _load_block(operation, types)
    mask, other = [*rest, None, None][:2]
    volatile = operation.word("isVolatile") == "true"

    def step(frame: Frame) -> None:
        values = frame.values
        frame.values[result] = _load(
            frame,
            values[pointer],
            None if mask is None else values[mask],
            None if other is None else values[other],
            element,
            volatile,
        )

    return step


def _find_store(operation: Operation, types: Translation) -> Step:
    pointer, value, *rest = operation.operands
    if types.type_of(pointer).reference:
        return _store_block(operation, types)
    element = types.element_of(pointer).pointee
    if element is None:
        raise Unreadable(f"no pointer: {pointer}")
    mask = rest[0] if rest else None

    def step(frame: Frame) -> None:
        values = frame.values
        _store(
            frame,
            values[pointer],
            values[value],
            None if mask is None else values[mask],
            element,
        )

    return step


# block pointers


def _bracketed(operation: Operation) -> list[list[str]]:
    """The names in each pair of brackets: shape, strides, offsets."""
    lists = re.findall(r"\[([^\]]*)\]", operation.text)
    return [re.findall(r"%[\w$.-]+(?:#\d+)?", names) for names in lists]


def _per_program(frame: Frame, names: Sequence[str]) -> tuple[Array, ...]:
    return tuple(frame.of_all(frame.values[name]).astype(np.int64) for name in names)


def _make_block_pointer(operation: Operation, types: Translation) -> Step:
    (result,), pointer = operation.results, operation.operands[0]
    shape, strides, offsets = _bracketed(operation)

    def step(frame: Frame) -> None:
        frame.values[result] = TileReference(
            frame.of_all(frame.values[pointer]),
            _per_program(frame, shape),
            _per_program(frame, strides),
            _per_program(frame, offsets),
        )

    return step


def _advance(operation: Operation, types: Translation) -> Step:
    (result,), (pointer, *distances) = operation.results, operation.operands

    def step(frame: Frame) -> None:
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


def _naming_unchecked_axes(fault: KernelFault, axes: int, checked: Sequence[int]) -> KernelFault:
    """A fault of a block pointer, with the axes that `boundary_check` leaves out."""
    left_out = [str(axis) for axis in range(axes) if axis not in checked]
    if not left_out:
        return fault
    return KernelFault(
        f"{fault}; boundary_check of this block pointer leaves out axis {' and '.join(left_out)}"
    )


def _load_block(operation: Operation, types: Translation) -> Step:
    (result,), pointer = operation.results, operation.operands[0]
    tile = types.type_of(pointer)
    checked = operation.numbers("boundaryCheck")
    padding = operation.number("padding")

    def step(frame: Frame) -> None:
        element = tile.element
        addresses, mask = _addresses_of(frame.values[pointer], tile.shape, element.size, checked)
        other = None
        if padding is not None:
            other = np.array(np.nan if padding == _NAN_PADDING else 0, element.array)
        try:
            frame.values[result] = _load(frame, addresses, mask, other, element)
        except KernelFault as fault:
            raise _naming_unchecked_axes(fault, len(tile.shape), checked) from None

    return step


def _store_block(operation: Operation, types: Translation) -> Step:
    pointer, value = operation.operands[:2]
    tile = types.type_of(pointer)
    checked = operation.numbers("boundaryCheck")

    def step(frame: Frame) -> None:
        block, size = frame.values[pointer], tile.element.size
        addresses, mask = _addresses_of(block, tile.shape, size, checked)
        try:
            _store(frame, addresses, frame.values[value], mask, tile.element)
        except KernelFault as fault:
            raise _naming_unchecked_axes(fault, len(tile.shape), checked) from None

    return step


# descriptors


def _make_descriptor(operation: Operation, types: Translation) -> Step:
    (result,), pointer = operation.results, operation.operands[0]
    shape, strides = _bracketed(operation)[:2]
    element = types.element_of(result)
    padding = np.nan if operation.number("padding") == _NAN_PADDING else 0.0

    def step(frame: Frame) -> None:
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
        raise KernelFault("a descriptor of a tensor that does not begin at a multiple of 16 bytes")
    for stride in descriptor.strides[:-1]:
        if (stride * size % ALIGNED).any():
            raise KernelFault(
                f"a descriptor with a stride of {int(stride[0])} elements: all but the last must "
                "be multiples of 16 bytes"
            )
    if (descriptor.strides[-1] != 1).any():
        raise KernelFault("a descriptor whose last stride is not 1")


def _tile_at(frame: Frame, descriptor: str, offsets: Sequence[str]) -> TileReference:
    whole: TileReference = frame.values[descriptor]
    places = _per_program(frame, offsets)
    return TileReference(whole.base, whole.shape, whole.strides, places, whole.padding)


def _descriptor_load(operation: Operation, types: Translation) -> Step:
    (result,), descriptor = operation.results, operation.operands[0]
    (offsets,) = _bracketed(operation)
    tile, shape = types.type_of(descriptor), types.type_of(result).shape

    def step(frame: Frame) -> None:
        block = _tile_at(frame, descriptor, offsets)
        element, every = tile.element, range(len(tile.shape))
        addresses, mask = _addresses_of(block, tile.shape, element.size, every)
        other = np.array(block.padding if element.kind == "float" else 0, element.array)
        values = _load(frame, addresses, mask, other, element)
        frame.values[result] = values.reshape(len(values), *shape)

    return step


def _descriptor_store(operation: Operation, types: Translation) -> Step:
    descriptor, value = operation.operands[0], operation.operands[-1]
    (offsets,) = _bracketed(operation)
    tile = types.type_of(descriptor)

    def step(frame: Frame) -> None:
        block = _tile_at(frame, descriptor, offsets)
        every = range(len(tile.shape))
        addresses, mask = _addresses_of(block, tile.shape, tile.element.size, every)
        values = frame.values[value]
        _store(frame, addresses, values.reshape(len(values), *tile.shape), mask, tile.element)

    return step


def _rows_of(
    frame: Frame, descriptor: str, rows: str, column: str, width: int, size: int
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

    def step(frame: Frame) -> None:
        addresses, mask = _rows_of(frame, descriptor, rows, column, width, element.size)
        other = np.array(0, element.array)
        frame.values[result] = _load(frame, addresses, mask, other, element)

    return step


def _descriptor_scatter(operation: Operation, types: Translation) -> Step:
    descriptor, rows, column, value = operation.operands
    element, width = types.element_of(value), types.type_of(value).shape[1]

    def step(frame: Frame) -> None:
        addresses, mask = _rows_of(frame, descriptor, rows, column, width, element.size)
        _store(frame, addresses, frame.values[value], mask, element)

    return step


# atomic operations

_CHANGES: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "fadd": np.add,
    "max": np.maximum,
    "min": np.minimum,
    "umax": lambda a, b: np.maximum(as_unsigned(a), as_unsigned(b)),
    "umin": lambda a, b: np.minimum(as_unsigned(a), as_unsigned(b)),
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "exch": lambda a, b: b,
}


def _atomic(
    frame: Frame,
    addresses: Array,
    value: Array,
    mask: Array | None,
    element: ElementType,
    change: Callable[[Array, Array, Array], Array],
    semantics: str,
) -> Array:
    """Change memory, one lane after the other; returns what was there before each.

    Args:
        change: of old values, values of the operation, and the numbers of their lanes.
    """
    selected, lanes, on = _select_lanes(frame, addresses, mask)
    every = np.broadcast_to(value, lanes.shape)
    given = every.reshape(-1) if on is None else every[on]
    finish = rounder(element) if element.kind == "float" else lambda x: x.view(element.array)

    def change_bits(old: Array, which: Array) -> Array:
        new = change(from_bits(old, element), given[which], which)
        return to_bits(finish(new), element)

    bits = frame.memory.change(selected, lanes, element, change_bits, semantics)
    before = from_bits(bits, element)
    if on is None:
        return before.reshape(lanes.shape)
    result = np.zeros(lanes.shape, element.array)
    result[on] = before
    return result


def _atomic_rmw(operation: Operation, types: Translation) -> Step:
    (result,), (pointer, value, *rest) = operation.results, operation.operands
    kind, semantics = (part.strip() for part in operation.text.split(",")[:2])
    if kind not in _CHANGES:
        raise Unreadable(f"the atomic operation {kind[:20]} has no meaning here")
    combine, element = _CHANGES[kind], types.element_of(result)
    mask = rest[0] if rest else None

    def step(frame: Frame) -> None:
        values = frame.values
        frame.values[result] = _atomic(
            frame,
            values[pointer],
            values[value],
            None if mask is None else values[mask],
            element,
            lambda old, new, which: combine(old, new),
            semantics,
        )

    return step


def _atomic_cas(operation: Operation, types: Translation) -> Step:
    (result,), (pointer, compare, value) = operation.results, operation.operands
    semantics, element = operation.text.split(",")[0].strip(), types.element_of(result)

    def step(frame: Frame) -> None:
        values = frame.values
        shape = (len(frame.programs), *values[pointer].shape[1:])
        wanted = np.broadcast_to(values[compare], shape)
        active = frame.active
        chosen = wanted.reshape(-1) if active is None else wanted[active].reshape(-1)
        frame.values[result] = _atomic(
            frame,
            values[pointer],
            values[value],
            None,
            element,
            lambda old, new, which: np.where(old == chosen[which], new, old),
            semantics,
        )

    return step


def _descriptor_reduce(operation: Operation, types: Translation) -> Step:
    descriptor, value = operation.operands[0], operation.operands[-1]
    (offsets,) = _bracketed(operation)
    tile = types.type_of(descriptor)
    kind = operation.text.split(",")[0].strip()
    if kind not in _CHANGES:
        raise Unreadable(f"the atomic operation {kind[:20]} has no meaning here")
    combine = _CHANGES[kind]

    def step(frame: Frame) -> None:
        block = _tile_at(frame, descriptor, offsets)
        every = range(len(tile.shape))
        addresses, mask = _addresses_of(block, tile.shape, tile.element.size, every)
        values = frame.values[value]
        _atomic(
            frame,
            addresses,
            values.reshape(len(values), *tile.shape),
            mask,
            tile.element,
            lambda old, new, which: combine(old, new),
            "relaxed",
        )

    return step


_ACCESS_FINDERS: dict[str, Callable[[Operation, Translation], Step]] = {
    "tt.addptr": _add_pointer,
    "tt.int_to_ptr": _same_value,
    "tt.ptr_to_int": _same_value,
    "tt.load": _find_load,
    "tt.store": _find_store,
    "tt.make_tensor_ptr": _make_block_pointer,
    "tt.advance": _advance,
    "tt.make_tensor_descriptor": _make_descriptor,
    "tt.descriptor_load": _descriptor_load,
    "tt.descriptor_store": _descriptor_store,
    "tt.descriptor_gather": _descriptor_gather,
    "tt.descriptor_scatter": _descriptor_scatter,
    "tt.descriptor_reduce": _descriptor_reduce,
    "tt.atomic_rmw": _atomic_rmw,
    "tt.atomic_cas": _atomic_cas,
}
