"""Loads, stores and changes the memory of one tile, for all programs that run at the same time."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from autograder.kernels.arithmetic import as_unsigned
from autograder.kernels.frame import ProgramFrame
from autograder.kernels.number_types import (
    Array,
    ElementType,
    from_bits,
    rounder,
    to_bits,
)
from autograder.kernels.program_lanes import Lanes


def select_lanes(
    frame: ProgramFrame, addresses: Array, mask: Array | None
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


def load_tile(
    frame: ProgramFrame,
    addresses: Array,
    mask: Array | None,
    other: Array | None,
    element: ElementType,
    volatile: bool = False,
) -> Array:
    """Load a tile.

    Args:
        mask: which lanes are on; None for all.
        other: what lanes hold that are off; None for anything.
    """
    selected, lanes, on = select_lanes(frame, addresses, mask)
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


def _note_size(frame: ProgramFrame, addresses: Array) -> None:
    size = math.prod(addresses.shape[1:])
    frame.counts.largest = max(frame.counts.largest, size)


def _note_unfilled(frame: ProgramFrame, addresses: Array, mask: Array) -> None:
    """Note the tensor of which an active program loads masked lanes without `other`."""
    off = np.broadcast_to(~mask, np.broadcast_shapes(mask.shape, addresses.shape))
    if frame.active is not None:
        off = off & frame.active.reshape(-1, *(1,) * (off.ndim - 1))
    if off.any():
        every = np.broadcast_to(
            addresses, off.shape if len(off) > 1 else addresses.shape
        )
        name = frame.memory.name_at(int(every.reshape(-1)[0]))
        if name and name not in frame.counts.unfilled:
            frame.counts.unfilled.append(name)


def store_tile(
    frame: ProgramFrame,
    addresses: Array,
    value: Array,
    mask: Array | None,
    element: ElementType,
) -> None:
    """Store a tile, the lanes that are on."""
    selected, lanes, on = select_lanes(frame, addresses, mask)
    _note_size(frame, addresses)
    every = np.broadcast_to(value, lanes.shape)
    written = every.reshape(-1) if on is None else every[on]
    frame.memory.store(selected, lanes, element, to_bits(written, element))


CHANGES: dict[str, Callable[[Array, Array], Array]] = {
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
"""What an atomic operation makes of the old value and its own, by its name in TTIR."""


def change_tile(
    frame: ProgramFrame,
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
    selected, lanes, on = select_lanes(frame, addresses, mask)
    every = np.broadcast_to(value, lanes.shape)
    given = every.reshape(-1) if on is None else every[on]
    finish = (
        rounder(element) if element.kind == "float" else lambda x: x.view(element.array)
    )

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
