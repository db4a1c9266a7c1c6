"""A launch as data, and how it runs: the text of a kernel, the grid, the arguments, the memory."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from autograder.kernels.control_flow import WaitsForever
from autograder.kernels.executor import Executable, executable
from autograder.kernels.faults import KernelFault, Unreadable
from autograder.kernels.frame import Budget, Counts, ProgramFrame, TileReference, Value
from autograder.kernels.memory import Memory, StorageFinder, Watcher
from autograder.kernels.number_types import Array, ElementType, TileType
from autograder.kernels.order import ProgramOrder
from autograder.kernels.program_lanes import Programs
from autograder.kernels.tensor_regions import Storage, TensorView
from autograder.kernels.tile_references import refuse_descriptor

MOST_PROGRAMS = 1 << 18
"""Programs of one launch: what no limit of time allows is refused at once."""
_MOST_ELEMENTS = 1 << 19
"""Elements of the largest tile, of all programs that run at the same time: what the processor's
cache holds, and far from what fills the memory.
"""


_MOST_AXES = 16


@dataclass(frozen=True, slots=True)
class DescriptorArgument:
    """A descriptor that the host has made.

    Attributes:
        padding: what stands for elements outside, 0 or NaN.
    """

    tensor: TensorView
    padding: float = 0.0


Argument = int | float | bool | TensorView | DescriptorArgument


@dataclass(frozen=True, slots=True)
class LaunchData:
    """One launch.

    Attributes:
        text: the kernel in TTIR.
        grid: programs along each of the three axes.
        arguments: in the order of the kernel's parameters; tuples are flat.
    """

    text: str
    grid: tuple[int, int, int]
    arguments: tuple[Argument, ...]

    @property
    def programs(self) -> int:
        """How many programs the grid has."""
        return math.prod(self.grid)

    def to_data(self) -> list[Any]:
        """Grid and arguments as JSON has them."""
        return [
            list(self.grid),
            [_argument_data(argument) for argument in self.arguments],
        ]


def _argument_data(argument: Argument) -> Any:
    if isinstance(argument, DescriptorArgument):
        nan = argument.padding != argument.padding
        return {"descriptor": _view_data(argument.tensor), "nan": nan}
    if isinstance(argument, TensorView):
        return {"tensor": _view_data(argument)}
    if isinstance(argument, float):
        return {"float": argument.hex()}
    return argument


def _view_data(view: TensorView) -> list[Any]:
    shape, strides = list(view.shape), list(view.strides)
    return [
        view.name,
        view.storage,
        view.offset,
        view.size,
        shape,
        strides,
        view.element,
    ]


def launch_from_data(text: str, data: Any, storages: int) -> LaunchData:
    """A launch from what `LaunchData.to_data` made, in a process that nobody trusts.

    Args:
        storages: how many storages the launch has.

    Raises:
        Unreadable: the data is none of a launch.
    """
    try:
        grid, arguments = data
        x, y, z = (_whole(size) for size in grid)
        read = tuple(_read_argument(argument, storages) for argument in arguments)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise Unreadable("no data of a launch") from error
    return LaunchData(text, (x, y, z), read)


def _read_argument(data: Any, storages: int) -> Argument:
    if isinstance(data, bool):
        return data
    if isinstance(data, int):
        return _whole(data)
    if "float" in data:
        return float.fromhex(data["float"])
    if "descriptor" in data:
        padding = math.nan if data["nan"] is True else 0.0
        return DescriptorArgument(_read_view(data["descriptor"], storages), padding)
    return _read_view(data["tensor"], storages)


def _read_view(data: Any, storages: int) -> TensorView:
    name, storage, offset, size, shape, strides, element = data
    number = _whole(storage)
    if (
        not 0 <= number < storages
        or size not in (1, 2, 4, 8)
        or len(shape) != len(strides)
    ):
        raise ValueError("no tensor")
    sizes, steps = tuple(map(_whole, shape)), tuple(map(_whole, strides))
    start = _whole(offset)
    if min((start, *sizes, *steps)) < 0 or len(sizes) > _MOST_AXES:
        raise ValueError("no tensor")
    return TensorView(
        str(name)[:40], number, start, size, sizes, steps, str(element)[:20]
    )


def _whole(number: Any) -> int:
    if type(number) is not int or not -(2**63) <= number < 2**64:
        raise ValueError("no whole number")
    return number


@dataclass(slots=True)
class LaunchOutcome:
    """What a launch has done.

    Attributes:
        memory: the memory, which has counted the elements that were moved.
        spent: elements that were computed.
    """

    counts: Counts
    memory: Memory
    spent: int

    @property
    def loads(self) -> Counter[str]:
        """Elements loaded, by tensor."""
        return self.memory.loads

    @property
    def stores(self) -> Counter[str]:
        """Elements stored, by tensor."""
        return self.memory.stores


def run_launch(
    launch: LaunchData,
    storages: list[Storage],
    *,
    watcher: Watcher | None = None,
    find_storage: StorageFinder | None = None,
    budget: float = math.inf,
) -> LaunchOutcome:
    """Run a launch on its memory.

    Args:
        watcher: told each access, where a trace asks for it.
        find_storage: adds the storage that holds an address to the list, and gives its number.
        budget: elements that the launch may compute.

    Raises:
        KernelFault: the kernel does what a GPU would not do, or not do right.
    """
    if min(launch.grid) < 0 or launch.programs > MOST_PROGRAMS:
        raise KernelFault(
            f"a launch of {launch.programs} programs: at most {MOST_PROGRAMS} run on a CPU"
        )
    kernel = executable(launch.text)
    if not kernel.runs_one_by_one:
        run = _Run(launch, kernel, storages, watcher, find_storage, Budget(budget))
        for numbers in _chunks(launch.programs, kernel.largest_tile):
            run.run_programs(numbers)
        return run.outcome()
    return _run_in_two_orders(launch, kernel, storages, watcher, find_storage, budget)


def _chunks(programs: int, largest_tile: int) -> Iterator[Array]:
    """The numbers of programs that run at the same time."""
    size = max(1, _MOST_ELEMENTS // largest_tile)
    for start in range(0, programs, size):
        yield np.arange(start, min(start + size, programs), dtype=np.int32)


def _run_in_two_orders(
    launch: LaunchData,
    kernel: Executable,
    storages: list[Storage],
    watcher: Watcher | None,
    find_storage: StorageFinder | None,
    budget: float,
) -> LaunchOutcome:
    """Run the programs one by one, backwards on a copy of the memory first: a fault of either order
    counts. Waiting for a program that has not run yet is one only if it happens in both.
    """
    copies = [
        Storage(
            s.address, s.content.copy(), None if s.filled is None else s.filled.copy()
        )
        for s in storages
    ]
    waits: WaitsForever | None = None
    backwards = _Run(launch, kernel, copies, None, None, Budget(budget))
    try:
        for number in reversed(range(launch.programs)):
            backwards.run_programs(np.array([number], np.int32))
    except WaitsForever as fault:
        waits = fault
    forwards = _Run(launch, kernel, storages, watcher, find_storage, Budget(budget))
    saved = [storage.content.copy() for storage in storages]
    try:
        for number in range(launch.programs):
            forwards.run_programs(np.array([number], np.int32))
    except WaitsForever:
        if waits is not None:
            raise
        for storage, copy in zip(storages, copies, strict=True):
            storage.content[...] = copy.content
        return backwards.outcome()
    except KernelFault:
        for storage, content in zip(storages, saved, strict=True):
            storage.content[...] = content
        raise
    return forwards.outcome()


class _Run:
    """One run of a launch, in some order of its programs."""

    def __init__(
        self,
        launch: LaunchData,
        kernel: Executable,
        storages: list[Storage],
        watcher: Watcher | None,
        find_storage: StorageFinder | None,
        budget: Budget,
    ) -> None:
        self._launch, self._kernel, self._budget = launch, kernel, budget
        self._order = ProgramOrder(launch.programs) if kernel.runs_one_by_one else None
        self._memory = Memory(storages, self._order, watcher, find_storage)
        self._counts = Counts()
        self._epochs = np.zeros(launch.programs, np.int32)
        self._values = self._bind_arguments()

    def run_programs(self, numbers: Array) -> None:
        """Run some programs at the same time."""
        if self._order is not None:
            self._order.begin(int(numbers[0]))
        programs = Programs(numbers, self._launch.grid, self._epochs)
        frame = ProgramFrame(
            programs, self._memory, self._counts, self._budget, dict(self._values)
        )
        for name, value in self._values.items():
            if isinstance(value, TileReference):
                frame.values[name] = _for_programs(value, len(programs))
        self._kernel.run(frame)

    def outcome(self) -> LaunchOutcome:
        return LaunchOutcome(self._counts, self._memory, self._budget.spent)

    def _bind_arguments(self) -> dict[str, Value]:
        """The kernel's parameters and their values."""
        waiting = list(zip(self._kernel.arguments, self._kernel.types, strict=True))
        values: dict[str, Value] = {}
        for argument in self._launch.arguments:
            if not waiting:
                raise Unreadable("more arguments than the kernel has parameters")
            name, kind = waiting.pop(0)
            if isinstance(argument, DescriptorArgument):
                values[name] = self._descriptor(argument, kind)
                for size in (*argument.tensor.shape, *argument.tensor.strides):
                    if not waiting:
                        raise Unreadable("a descriptor without its shape")
                    part, part_kind = waiting.pop(0)
                    values[part] = _scalar(size, part_kind.element)
            elif isinstance(argument, TensorView):
                if kind.element.kind != "pointer":
                    raise Unreadable(f"a tensor for the parameter {name}")
                values[name] = np.array([self._memory.add(argument)], np.int64)
            else:
                if kind.shape or kind.reference:
                    raise Unreadable(f"a number for the parameter {name}")
                values[name] = _scalar(argument, kind.element)
        if waiting:
            raise Unreadable(
                f"the kernel has {len(waiting)} more parameters than arguments"
            )
        return values

    def _descriptor(
        self, argument: DescriptorArgument, kind: TileType
    ) -> TileReference:
        if kind.reference != "descriptor":
            raise Unreadable("a descriptor for a parameter that is none")
        view = argument.tensor
        descriptor = TileReference(
            np.array([self._memory.add(view)], np.int64),
            tuple(np.array([size], np.int64) for size in view.shape),
            tuple(np.array([stride], np.int64) for stride in view.strides),
            tuple(np.zeros(1, np.int64) for _ in view.shape),
            argument.padding,
        )
        refuse_descriptor(descriptor, view.size)
        return descriptor


def _for_programs(descriptor: TileReference, programs: int) -> TileReference:
    def spread(value: Array) -> Array:
        return np.broadcast_to(value, (programs,))

    return TileReference(
        spread(descriptor.base),
        tuple(map(spread, descriptor.shape)),
        tuple(map(spread, descriptor.strides)),
        tuple(map(spread, descriptor.offsets)),
        descriptor.padding,
    )


def _scalar(value: float, element: ElementType) -> Array:
    """A number as the kernel sees it."""
    if element.kind == "float":
        return np.array([value], element.array)
    if element.kind == "bool":
        return np.array([bool(value)])
    bits = int(value) & (1 << 8 * element.size) - 1
    return np.array([bits], element.stored).view(element.array)
