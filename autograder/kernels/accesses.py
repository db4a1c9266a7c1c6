"""Loads, stores and atomic operations by pointers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from autograder.kernels.faults import Unreadable
from autograder.kernels.frame import ProgramFrame, Step, Translation
from autograder.kernels.tile_memory import CHANGES, change_tile, load_tile, store_tile
from autograder.kernels.ttir_text import Operation


def find_access_step(operation: Operation, types: Translation) -> Step | None:
    """The step of an operation on memory; None for any other operation."""
    finder = _ACCESS_FINDERS.get(operation.name)
    return None if finder is None else finder(operation, types)


# pointers


def _add_pointer(operation: Operation, types: Translation) -> Step:
    (result,), (pointer, offset) = operation.results, operation.operands
    pointee = types.element_of(pointer).pointee
    if pointee is None:
        raise Unreadable(f"no pointer: {pointer}")
    size = pointee.size

    def step(frame: ProgramFrame) -> None:
        distance = frame.values[offset].astype(np.int64)
        frame.values[result] = frame.values[pointer] + (
            distance if size == 1 else distance * size
        )

    return step


def _same_value(operation: Operation, types: Translation) -> Step:
    (result,), (source,) = operation.results, operation.operands

    def step(frame: ProgramFrame) -> None:
        frame.values[result] = frame.values[source]

    return step


def _find_load(operation: Operation, types: Translation) -> Step:
    (result,), (pointer, *rest) = operation.results, operation.operands
    element = types.element_of(result)
    mask, other = [*rest, None, None][:2]
    volatile = operation.word("isVolatile") == "true"

    def step(frame: ProgramFrame) -> None:
        values = frame.values
        frame.values[result] = load_tile(
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
    element = types.element_of(pointer).pointee
    if element is None:
        raise Unreadable(f"no pointer: {pointer}")
    mask = rest[0] if rest else None

    def step(frame: ProgramFrame) -> None:
        values = frame.values
        store_tile(
            frame,
            values[pointer],
            values[value],
            None if mask is None else values[mask],
            element,
        )

    return step


# atomic operations


def _atomic_rmw(operation: Operation, types: Translation) -> Step:
    (result,), (pointer, value, *rest) = operation.results, operation.operands
    kind, semantics = (part.strip() for part in operation.text.split(",")[:2])
    if kind not in CHANGES:
        raise Unreadable(f"the atomic operation {kind[:20]} has no meaning here")
    combine, element = CHANGES[kind], types.element_of(result)
    mask = rest[0] if rest else None

    def step(frame: ProgramFrame) -> None:
        values = frame.values
        frame.values[result] = change_tile(
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

    def step(frame: ProgramFrame) -> None:
        values = frame.values
        shape = (len(frame.programs), *values[pointer].shape[1:])
        wanted = np.broadcast_to(values[compare], shape)
        active = frame.active
        chosen = wanted.reshape(-1) if active is None else wanted[active].reshape(-1)
        frame.values[result] = change_tile(
            frame,
            values[pointer],
            values[value],
            None,
            element,
            lambda old, new, which: np.where(old == chosen[which], new, old),
            semantics,
        )

    return step


_ACCESS_FINDERS: dict[str, Callable[[Operation, Translation], Step]] = {
    "tt.addptr": _add_pointer,
    "tt.int_to_ptr": _same_value,
    "tt.ptr_to_int": _same_value,
    "tt.load": _find_load,
    "tt.store": _find_store,
    "tt.atomic_rmw": _atomic_rmw,
    "tt.atomic_cas": _atomic_cas,
}
