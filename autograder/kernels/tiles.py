"""Operations on whole tiles: shapes, products, reductions, scans, and what moves elements about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from autograder.kernels.faults import Unreadable
from autograder.kernels.frame import Code, ProgramFrame, Step, Translation
from autograder.kernels.number_types import Array, ElementType, TileType
from autograder.kernels.ttir_text import Operation

_FAST_REDUCTIONS: dict[str, Any] = {
    "arith.addf": np.add,
    "arith.addi": np.add,
    "arith.mulf": np.multiply,
    "arith.maxnumf": np.fmax,
    "arith.minnumf": np.fmin,
    "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum,
    "arith.maxsi": np.maximum,
    "arith.minsi": np.minimum,
    "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor,
}
_EXACT_IN_NUMPY = ("i8", "i16", "i32", "i64", "f32", "f64")


def find_tile_step(operation: Operation, types: Translation) -> Step | None:
    """The step of an operation on tiles; None for any other operation."""
    finder = _TILE_FINDERS.get(operation.name)
    return None if finder is None else finder(operation, types)


def _result(operation: Operation, types: Translation) -> TileType:
    return types.type_of(operation.results[0])


def _from_one(operation: Operation, change: Callable[[Array], Array]) -> Step:
    (result,), (source,) = operation.results, operation.operands

    def step(frame: ProgramFrame) -> None:
        frame.values[result] = change(frame.values[source])

    return step


def _from_several(operation: Operation, change: Callable[..., Array]) -> Step:
    (result,), sources = operation.results, operation.operands

    def step(frame: ProgramFrame) -> None:
        frame.values[result] = change(*[frame.values[name] for name in sources])

    return step


# shapes


def _make_range(operation: Operation, types: Translation) -> Step:
    start, end = operation.number("start"), operation.number("end")
    shape = _result(operation, types).shape
    if start is None or end is None or shape != (end - start,):
        raise Unreadable(f"no range: {operation.text[:60]}")
    numbers = np.arange(start, end, dtype=np.int32)[None]
    return give_constant(operation, numbers)


def give_constant(operation: Operation, value: Array) -> Step:
    """The step of an operation whose result is always the same."""
    (result,) = operation.results

    def step(frame: ProgramFrame) -> None:
        frame.values[result] = value

    return step


def _splat(operation: Operation, types: Translation) -> Step:
    shape = _result(operation, types).shape
    ones = (1,) * len(shape)
    return _from_one(
        operation, lambda x: np.broadcast_to(x.reshape(-1, *ones), (len(x), *shape))
    )


def _broadcast(operation: Operation, types: Translation) -> Step:
    shape = _result(operation, types).shape
    return _from_one(operation, lambda x: np.broadcast_to(x, (len(x), *shape)))


def _reshape(operation: Operation, types: Translation) -> Step:
    shape = _result(operation, types).shape
    return _from_one(operation, lambda x: x.reshape(len(x), *shape))


def _expand_dims(operation: Operation, types: Translation) -> Step:
    before = (slice(None),) * _axis(operation)
    return _from_one(operation, lambda x: x[*before, None])


def _trans(operation: Operation, types: Translation) -> Step:
    order = [0, *(axis + 1 for axis in operation.numbers("order"))]
    return _from_one(operation, lambda x: x.transpose(order))


def _axis(operation: Operation) -> int:
    """The axis of an operation, in an array whose first axis are the programs."""
    axis = operation.number("axis")
    if axis is None:
        raise Unreadable(f"no axis: {operation.text[:60]}")
    return axis + 1


def _stretched(*values: Array) -> list[Array]:
    """The values, for as many programs each."""
    programs = max(map(len, values))
    return [np.broadcast_to(value, (programs, *value.shape[1:])) for value in values]


def _join(operation: Operation, types: Translation) -> Step:
    return _from_several(operation, lambda a, b: np.stack(_stretched(a, b), -1))


def _cat(operation: Operation, types: Translation) -> Step:
    return _from_several(operation, lambda a, b: np.concatenate(_stretched(a, b), 1))


def _split(operation: Operation, types: Translation) -> Step:
    (first, second), (source,) = operation.results, operation.operands

    def step(frame: ProgramFrame) -> None:
        pairs = frame.values[source]
        frame.values[first], frame.values[second] = pairs[..., 0], pairs[..., 1]

    return step


def _gather(operation: Operation, types: Translation) -> Step:
    axis = _axis(operation)

    def gather(values: Array, places: Array) -> Array:
        values, places = _stretched(values, places)
        # an index outside reads rubbish on a GPU; here, the nearest element
        inside = np.clip(places.astype(np.int64), 0, values.shape[axis] - 1)
        return np.take_along_axis(values, inside, axis)

    return _from_several(operation, gather)


def _histogram(operation: Operation, types: Translation) -> Step:
    bins = _result(operation, types).shape[0]
    result, values, *mask = *operation.results, *operation.operands

    def step(frame: ProgramFrame) -> None:
        rows = frame.values[values]
        counted = (rows >= 0) & (rows < bins)
        if mask:
            counted = counted & frame.values[mask[0]]
        rows, counted = _stretched(rows, counted)
        programs = np.arange(len(rows))[:, None] * bins
        places = (rows + programs)[counted]
        counts = np.bincount(places, minlength=len(rows) * bins)
        frame.values[result] = counts.reshape(len(rows), bins).astype(np.int32)

    return step


# reductions


def _region_of(
    operation: Operation, types: Translation, arity: int
) -> tuple[list[str], Code, list[str]]:
    """The arguments of an operation's region, its code, and the names that it returns."""
    if len(operation.regions) != 1 or len(operation.regions[0]) != 1:
        raise Unreadable(f"{operation.name} with {len(operation.regions)} regions")
    (block,) = operation.regions[0]
    if len(block.arguments) != arity or not block.operations:
        raise Unreadable(
            f"the region of {operation.name} takes {len(block.arguments)} values"
        )
    types.declare(block)
    return (
        block.arguments,
        types.code(block.operations[:-1]),
        block.operations[-1].operands,
    )


def _fast_reduction(operation: Operation, element: ElementType) -> Any:
    """numpy's function for a region of one operation, where it rounds alike; else None."""
    (block,) = operation.regions[0]
    if len(block.operations) != 2 or element.name not in _EXACT_IN_NUMPY:
        return None
    return _FAST_REDUCTIONS.get(block.operations[0].name)


def _combiner(operation: Operation, types: Translation) -> Callable[..., list[Array]]:
    """The region as a function: of a frame and two lists of values, one element each."""
    names, code, returned = _region_of(operation, types, 2 * len(operation.operands))

    def combine(
        frame: ProgramFrame, first: list[Array], second: list[Array]
    ) -> list[Array]:
        frame.values.update(zip(names, [*first, *second], strict=True))
        code.run(frame)
        return [
            np.broadcast_to(frame.values[name], value.shape)
            for name, value in zip(returned, first, strict=True)
        ]

    return combine


def _reduce(operation: Operation, types: Translation) -> Step:
    axis = _axis(operation)
    combine = _combiner(operation, types)
    sources, results = operation.operands, operation.results
    fast = _fast_reduction(operation, types.element_of(sources[0]))
    if fast is not None:
        return _from_one(operation, lambda x: fast.reduce(x, axis=axis))

    def step(frame: ProgramFrame) -> None:
        parts = _stretched(*[frame.values[name] for name in sources])
        parts = [np.moveaxis(part, axis, -1) for part in parts]
        while (
            parts[0].shape[-1] > 1
        ):  # neighbours first: the region need not be commutative
            first = [part[..., 0::2] for part in parts]
            second = [part[..., 1::2] for part in parts]
            parts = combine(frame, first, second)
        for name, part in zip(results, parts, strict=True):
            frame.values[name] = part[..., 0]

    return step


def _scan(operation: Operation, types: Translation) -> Step:
    axis = _axis(operation)
    reverse = operation.word("reverse") == "true"
    combine = _combiner(operation, types)
    sources, results = operation.operands, operation.results

    def step(frame: ProgramFrame) -> None:
        parts = _stretched(*[frame.values[name] for name in sources])
        parts = [np.moveaxis(part, axis, -1) for part in parts]
        if reverse:
            parts = [part[..., ::-1] for part in parts]
        distance = 1
        while distance < parts[0].shape[-1]:
            before = [part[..., :-distance] for part in parts]
            after = [part[..., distance:] for part in parts]
            joined = combine(frame, before, after)
            parts = [
                np.concatenate([part[..., :distance], tail], -1)
                for part, tail in zip(parts, joined, strict=True)
            ]
            distance *= 2
        if reverse:
            parts = [part[..., ::-1] for part in parts]
        for name, part in zip(results, parts, strict=True):
            frame.values[name] = np.moveaxis(part, -1, axis)

    return step


def _map_elementwise(operation: Operation, types: Translation) -> Step:
    """A function of scalars, for each element: `pack` elements at a time."""
    pack = operation.number("pack") or 1
    sources, results = operation.operands, operation.results
    names, code, returned = _region_of(operation, types, pack * len(sources))

    def step(frame: ProgramFrame) -> None:
        parts = _stretched(*[frame.values[name] for name in sources])
        shape = parts[0].shape
        flat = [part.reshape(len(part), -1, pack) for part in parts]
        arguments = [part[..., place] for part in flat for place in range(pack)]
        frame.values.update(zip(names, arguments, strict=True))
        code.run(frame)
        outputs = [
            np.broadcast_to(frame.values[name], flat[0].shape[:-1]) for name in returned
        ]
        for number, name in enumerate(results):
            own = outputs[number * pack : (number + 1) * pack]
            frame.values[name] = np.stack(own, -1).reshape(shape)

    return step


_TILE_FINDERS: dict[str, Callable[[Operation, Translation], Step]] = {
    "tt.make_range": _make_range,
    "tt.splat": _splat,
    "tt.unsplat": _reshape,
    "tt.broadcast": _broadcast,
    "tt.reshape": _reshape,
    "tt.expand_dims": _expand_dims,
    "tt.trans": _trans,
    "tt.join": _join,
    "tt.cat": _cat,
    "tt.split": _split,
    "tt.gather": _gather,
    "tt.histogram": _histogram,
    "tt.reduce": _reduce,
    "tt.scan": _scan,
    "tt.map_elementwise": _map_elementwise,
}
