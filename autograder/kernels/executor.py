"""Turns the text of a kernel into functions of numpy arrays: a meaning for each operation."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator

import numpy as np

from autograder.kernels.accesses import find_access_step
from autograder.kernels.arithmetic import constant, find_elementwise
from autograder.kernels.control_flow import FunctionCode, find_control_step, make_call
from autograder.kernels.faults import KernelFault, Unreadable, program_in_words
from autograder.kernels.frame import ProgramFrame, Step, Translation
from autograder.kernels.number_types import INT32, TileType
from autograder.kernels.products import find_product_step
from autograder.kernels.tile_references import find_reference_step
from autograder.kernels.tiles import find_tile_step, give_constant
from autograder.kernels.ttir_text import CodeBlock, Module, Operation, read_module

_SILENT = frozenset(
    {"llvm.intr.assume", "tt.assume", "gpu.barrier.noop", "ttg.warp_yield"}
)
"""Operations that compute nothing."""
_BARRIERS = frozenset(
    {"ttg.barrier", "gpu.barrier", "ttg.local_barrier", "nvvm.barrier0"}
)
_AXES = {"x": 0, "y": 1, "z": 2}
_MOST_EXECUTABLES = 256
_MOST_DEEP_CALLS = 32


class Executable:
    """A kernel that can be run.

    Attributes:
        module: the text as it was read.
        types: the types of the kernel's arguments.
        largest_tile: elements of the largest tile that the kernel makes.
        runs_one_by_one: whether atomics let programs wait for each other, so that each program
            has to run to its end before the next.
    """

    def __init__(self, text: str) -> None:
        self.module = read_module(text)
        self._functions: dict[str, FunctionCode] = {}
        translation = Translation(self.module, self._find_step)
        for name, function in self.module.functions.items():
            self._functions[name] = FunctionCode(function, translation)
        self._kernel = self._functions[self.module.kernel.name]
        self.arguments = self._kernel.arguments
        self.types: list[TileType] = [
            translation.types[name] for name in self.arguments
        ]
        _refuse_recursion(self.module)
        sizes = [
            math.prod(kind.shape) for kind in translation.types.values() if kind.shape
        ]
        self.largest_tile = max(sizes, default=1)
        self.runs_one_by_one = _waits(self.module)

    def run(self, frame: ProgramFrame) -> None:
        """Run the kernel for the programs of a frame, which holds the arguments."""
        with np.errstate(all="ignore"):  # a GPU does not warn of infinities
            self._kernel.run(frame)

    def _find_step(self, operation: Operation, types: Translation) -> Step | None:
        name = operation.name
        if name in _SILENT:
            return None
        if name == "tt.call":
            return make_call(operation, self._functions)
        step = (
            _find_simple(operation, types)
            or find_reference_step(operation, types)
            or find_access_step(operation, types)
            or find_tile_step(operation, types)
            or find_product_step(operation, types)
            or find_control_step(operation, types)
            or _find_elementwise_step(operation, types)
        )
        if step is None:
            raise Unreadable(f"the operation {name[:60]} has no meaning on a CPU")
        return step


@functools.lru_cache(maxsize=_MOST_EXECUTABLES)
def executable(text: str) -> Executable:
    """The kernel of a text.

    Raises:
        Unreadable: the text is not TTIR, or asks for what only a GPU has.
    """
    try:
        return Executable(text)
    except (ValueError, IndexError, KeyError, TypeError, RecursionError) as error:
        raise Unreadable(f"a text that is not TTIR: {type(error).__name__}") from error


def all_operations(module: Module) -> Iterator[Operation]:
    """Every operation of a module, those of regions too."""
    waiting: list[CodeBlock] = [
        b for function in module.functions.values() for b in function.blocks
    ]
    while waiting:
        for operation in waiting.pop().operations:
            yield operation
            for region in operation.regions:
                waiting.extend(region)


def _waits(module: Module) -> bool:
    """Whether an atomic operation's result is used, or a volatile load."""
    operations = list(all_operations(module))
    used = {name for operation in operations for name in operation.operands}
    for operation in operations:
        if operation.name == "tt.atomic_cas":
            return True
        if operation.name == "tt.atomic_rmw" and used.intersection(operation.results):
            return True
    return False


def _refuse_recursion(module: Module) -> None:
    """Refuse functions that call each other, which no front end makes."""
    calls = {
        name: {
            other
            for block in function.blocks
            for operation in _operations_in(block)
            if operation.name == "tt.call"
            for other in module.functions
            if f"@{other}(" in operation.text or f'@"{other}"' in operation.text
        }
        for name, function in module.functions.items()
    }
    level = {module.kernel.name}
    for _ in range(_MOST_DEEP_CALLS):
        level = {other for name in level for other in calls[name]}
        if not level:
            return
    raise Unreadable("functions that call each other")


def _operations_in(block: CodeBlock) -> Iterator[Operation]:
    for operation in block.operations:
        yield operation
        for region in operation.regions:
            for inner in region:
                yield from _operations_in(inner)


# single operations


def _find_simple(operation: Operation, types: Translation) -> Step | None:
    name = operation.name
    if name == "arith.constant":
        kind = types.type_of(operation.results[0])
        return give_constant(
            operation, constant(operation.text, kind.shape, kind.element)
        )
    if name == "ub.poison":
        kind = types.type_of(operation.results[0])
        return give_constant(operation, np.zeros((1, *kind.shape), kind.element.array))
    if name == "tt.get_program_id":
        return _program_id(operation)
    if name == "tt.get_num_programs":
        return _program_count(operation)
    if name in _BARRIERS:
        return _barrier
    if name == "tt.assert":
        return _assertion(operation)
    if name == "tt.print":
        return _printing(operation)
    if name == "tt.elementwise_inline_asm":
        raise Unreadable(
            "inline_asm_elementwise is a GPU's own assembler: it has no meaning on a CPU"
        )
    return None


def _axis_of(operation: Operation) -> int:
    axis = operation.text.split()[0] if operation.text else ""
    if axis not in _AXES:
        raise Unreadable(f"a grid has no axis {axis[:10]}")
    return _AXES[axis]


def _program_id(operation: Operation) -> Step:
    (result,), axis = operation.results, _axis_of(operation)

    def step(frame: ProgramFrame) -> None:
        frame.values[result] = frame.programs.ids[axis].astype(INT32.array)

    return step


def _program_count(operation: Operation) -> Step:
    (result,), axis = operation.results, _axis_of(operation)

    def step(frame: ProgramFrame) -> None:
        frame.values[result] = np.array([frame.programs.grid[axis]], INT32.array)

    return step


def _barrier(frame: ProgramFrame) -> None:
    """Lanes see all earlier accesses of their program."""
    frame.programs.pass_barrier(frame.active)


def _assertion(operation: Operation) -> Step:
    condition, *mask = operation.operands
    message = operation.text.partition('"')[2].rpartition('"')[0]

    def step(frame: ProgramFrame) -> None:
        fails = ~frame.values[condition]
        if mask:
            fails = fails & frame.values[mask[0]]
        fails = frame.of_all(fails.reshape(len(fails), -1).any(axis=1))
        if frame.active is not None:
            fails = fails & frame.active
        if fails.any():
            number = int(frame.programs.numbers[np.argmax(fails)])
            who = program_in_words(frame.programs.words(number))
            raise KernelFault(f"program {who}: device_assert fails: {message[:200]}")

    return step


def _printing(operation: Operation) -> Step:
    prefix = operation.text.partition('"')[2].partition('"')[0].strip()

    def step(frame: ProgramFrame) -> None:
        active = range(len(frame.programs))
        for place in active:
            if frame.active is not None and not frame.active[place]:
                continue
            who = program_in_words(
                frame.programs.words(int(frame.programs.numbers[place]))
            )
            values = [frame.values[name] for name in operation.operands]
            shown = [str(value[place if len(value) > 1 else 0]) for value in values]
            print(f"program {who} {prefix}", *shown)

    return step


def _find_elementwise_step(operation: Operation, types: Translation) -> Step | None:
    if len(operation.results) != 1:
        return None
    sources = [types.element_of(name) for name in operation.operands]
    result = operation.results[0]
    function = find_elementwise(operation, sources, types.element_of(result))
    if function is None:
        return None
    if len(operation.operands) == 1:
        (source,) = operation.operands

        def one(frame: ProgramFrame) -> None:
            frame.values[result] = function(frame.values[source])

        return one
    if len(operation.operands) == 2:
        first, second = operation.operands

        def two(frame: ProgramFrame) -> None:
            frame.values[result] = function(frame.values[first], frame.values[second])

        return two
    names = operation.operands

    def several(frame: ProgramFrame) -> None:
        frame.values[result] = function(*[frame.values[name] for name in names])

    return several
