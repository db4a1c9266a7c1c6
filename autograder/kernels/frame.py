"""What the operations of a kernel work on: the values of all programs that run at the same time.

A value is an array [P, *tile], one column for each of P programs, or [1, *tile] where all programs
have the same. Operations become functions of a frame, called steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from autograder.kernels.faults import KernelFault, Unreadable
from autograder.kernels.memory import Memory
from autograder.kernels.number_types import (
    BOOL,
    Array,
    ElementType,
    TileType,
    read_type,
)
from autograder.kernels.program_lanes import Programs
from autograder.kernels.ttir_text import CodeBlock, Module, Operation, split_types

Value = Any
"""An array, or a `TileReference`."""


@dataclass(slots=True)
class Counts:
    """The work of one launch.

    Attributes:
        dots: calls of `tl.dot`, of all programs.
        flops: their floating point operations; a multiply-add is 2.
        largest: elements of the largest tile that was loaded, stored, or the result of a dot.
        unfilled: tensors with masked lanes that were loaded without `other`.
    """

    dots: int = 0
    flops: int = 0
    largest: int = 0
    unfilled: list[str] = field(default_factory=list)


class Budget:
    """How much a launch may compute; the next operation is refused where it is spent.

    Attributes:
        spent: elements that were computed.
    """

    def __init__(self, elements: float) -> None:
        self._most = elements
        self.spent = 0

    def spend(self, elements: int) -> None:
        """Count elements that are about to be computed.

        Raises:
            KernelFault: they are too many.
        """
        self.spent += elements
        if self.spent > self._most:
            raise KernelFault("the kernel computes more than the time allows")


@dataclass(slots=True)
class ProgramFrame:
    """The values of one function's call, for the programs that are in it.

    Attributes:
        active: which programs run the current step; None where all do.
        returned: the values of `tt.return`.
    """

    programs: Programs
    memory: Memory
    counts: Counts
    budget: Budget
    values: dict[str, Value] = field(default_factory=dict)
    active: Array | None = None
    returned: list[Value] = field(default_factory=list)

    def count_active(self) -> int:
        """How many programs run the current step."""
        return len(self.programs) if self.active is None else int(self.active.sum())

    def only(self, mask: Array) -> Array | None:
        """The mask together with that of the frame; None where all programs are in it."""
        active = mask if self.active is None else mask & self.active
        return None if active.all() else active

    def of_all(self, value: Array) -> Array:
        """A scalar of each program, [P]."""
        return np.broadcast_to(value, (len(self.programs),))


Step = Callable[[ProgramFrame], None]


@dataclass(frozen=True, slots=True)
class TileReference:
    """A block pointer or a descriptor of tiles.

    Attributes:
        base: the address of the tensor's first element, [P].
        shape, strides, offsets: one array [P] for each axis.
        padding: what stands for elements outside: 0 or NaN.
    """

    base: Array
    shape: tuple[Array, ...]
    strides: tuple[Array, ...]
    offsets: tuple[Array, ...]
    padding: float = 0.0


def spread(mask: Array, ndim: int) -> Array:
    """A mask of programs, [P, 1, …, 1]."""
    return mask.reshape(-1, *(1,) * (ndim - 1))


def merge(mask: Array, new: Value, old: Value) -> Value:
    """For programs in the mask the new value, for others the old one."""
    if new is old:
        return new
    if isinstance(new, TileReference):
        shape, strides, offsets = (
            tuple(merge(mask, a, b) for a, b in zip(*parts, strict=True))
            for parts in (
                (new.shape, old.shape),
                (new.strides, old.strides),
                (new.offsets, old.offsets),
            )
        )
        return TileReference(
            merge(mask, new.base, old.base), shape, strides, offsets, new.padding
        )
    return np.where(spread(mask, new.ndim), new, old)


class Code:
    """Steps in a row.

    Attributes:
        cost: elements that the steps compute for one program.
    """

    __slots__ = ("_module", "_places", "cost", "steps")

    def __init__(
        self, steps: list[Step], places: dict[Step, str], module: Module, cost: int
    ) -> None:
        self.steps, self._places, self._module, self.cost = steps, places, module, cost

    def run(self, frame: ProgramFrame) -> None:
        """Run the steps, one after the other.

        Raises:
            KernelFault: with the student's line.
        """
        frame.budget.spend(self.cost * len(frame.programs))
        for step in self.steps:
            try:
                step(frame)
            except KernelFault as fault:
                raise self._located(fault, step) from None
            except MemoryError:
                raise KernelFault("the tiles do not fit into memory") from None

    def _located(self, fault: KernelFault, step: Step) -> KernelFault:
        if fault.is_located:
            return fault
        place = self._module.place(self._places[step])
        located = fault if place is None else type(fault)(f"{fault} ({place})")
        located.is_located = True
        return located


def declare_results(operation: Operation, types: dict[str, TileType]) -> None:
    """Note the types of what an operation makes.

    Raises:
        Unreadable: the operation's text does not say them.
    """
    if not operation.results:
        return
    if operation.name == "scf.for":
        initial = operation.operands[3:]
        kinds = [types[name] for name in initial if name in types]
    elif operation.name in ("arith.cmpi", "arith.cmpf"):
        kinds = [TileType(read_type(operation.types).shape, BOOL)]
    elif operation.name == "tt.load":
        kinds = [_loaded_type(read_type(operation.types))]
    elif operation.name == "tt.addptr":
        kinds = [read_type(split_types(operation.types)[0])]
    elif operation.name == "tt.unsplat":  # its text has the type of the tile alone
        kinds = [TileType((), read_type(operation.types).element)]
    elif operation.name == "arith.constant" and not operation.types:
        kinds = [TileType((), BOOL)]
    else:
        written = operation.result_types()
        if operation.name == "tt.split":  # one type is written, of both halves
            written = written[-1:] * 2
        kinds = [read_type(kind) for kind in written[-len(operation.results) :]]
    if len(kinds) != len(operation.results):
        raise Unreadable(
            f"{operation.name} makes {len(operation.results)} values of no type"
        )
    types.update(zip(operation.results, kinds, strict=True))


def _loaded_type(pointer: TileType) -> TileType:
    if pointer.reference:
        return TileType(pointer.shape, pointer.element)
    if pointer.element.pointee is None:
        raise Unreadable(f"{pointer.element.name} is no pointer")
    return TileType(pointer.shape, pointer.element.pointee)


class Translation:
    """The translation of a module into steps: the types of all values, and code for regions.

    Args:
        find_step: makes the step of an operation; None for one that does nothing.
    """

    def __init__(
        self, module: Module, find_step: Callable[[Operation, Translation], Step | None]
    ) -> None:
        self.module, self._find_step = module, find_step
        self.types: dict[str, TileType] = {}

    def type_of(self, name: str) -> TileType:
        """The type of a value.

        Raises:
            Unreadable: no operation before makes the value.
        """
        try:
            return self.types[name]
        except KeyError:
            raise Unreadable(f"{name[:60]} is used before it is there") from None

    def element_of(self, name: str) -> ElementType:
        """The type of a value's elements."""
        return self.type_of(name).element

    def declare(self, block: CodeBlock) -> None:
        """Note the types of a block's arguments."""
        for name, kind in zip(block.arguments, block.types, strict=True):
            self.types[name] = read_type(kind)

    def code(self, operations: Sequence[Operation]) -> Code:
        """The code of operations in a row."""
        steps: list[Step] = []
        places: dict[Step, str] = {}
        cost = 0
        for operation in operations:
            declare_results(operation, self.types)
            step = self._find_step(operation, self)
            for name in operation.results[:1]:
                shape = self.type_of(name).shape
                cost += math.prod(shape) if shape else 1
            if step is not None:
                steps.append(step)
                places[step] = operation.location
        return Code(steps, places, self.module, cost + 1)
