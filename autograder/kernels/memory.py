"""The memory that the programs of a launch see: its tensors, each with a range of addresses.

Every access is checked: inside of its tensor, on an element, against the accesses of others
(`races.py`), and filled by somebody.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from autograder.kernels.faults import KernelFault, program_in_words
from autograder.kernels.number_types import Array, ElementType
from autograder.kernels.order import ProgramOrder
from autograder.kernels.races import Conflict, ElementHistory

_SPAN = 40  # a tensor owns 2**40 bytes of addresses, half of them before its first element
_FIRST = 1 << 10  # above every address of a real process, which has 47 bits
ALIGNED = 16  # bytes: what descriptors ask of an address holds here as it does on a GPU
_LANE_BITS = 32  # of a lane's number in its tile; the number of the tile's shape stands above
_LANES = "nothing orders the lanes of a program, so the result would be a matter of luck"
_PROGRAMS = "programs run in any order, so the result would be a matter of luck"
_CONFLICTS = {
    "load after store": f"{{who}} reads {{place}}, which another program has written{{other}}: {_PROGRAMS}",
    "store after store": (
        f"{{who}} writes {{place}}, which another program has written{{other}}: {_PROGRAMS}"
    ),
    "store after load": f"{{who}} writes {{place}}, which another program has read{{other}}: {_PROGRAMS}",
    "atomic after store": (
        f"{{who}} adds to {{place}}, which another program has written{{other}}: {_PROGRAMS}"
    ),
    "atomic after load": f"{{who}} adds to {{place}}, which another program has read{{other}}: {_PROGRAMS}",
    "load after atomic": (
        f"{{who}} reads {{place}}, which another program changes by an atomic operation"
        f"{{other}}: {_PROGRAMS}"
    ),
    "store after atomic": (
        f"{{who}} writes {{place}}, which another program changes by an atomic operation"
        f"{{other}}: {_PROGRAMS}"
    ),
    "lane loads after store": (
        f"{{who}} reads {{place}}, which another lane of it has written: {_LANES}. "
        "tl.debug_barrier() between the store and the load orders them; better is to keep the "
        "value in a variable"
    ),
    "lane stores after store": (
        "{who} writes {place}, where another lane of it has written something else: "
        f"{_LANES}. tl.debug_barrier() between the two stores orders them"
    ),
    "lane stores after load": (
        f"{{who}} writes {{place}}, which another lane of it has loaded: {_LANES}. "
        "tl.debug_barrier() between the load and the store orders them"
    ),
    "two lanes store": f"two lanes of {{who}} write {{place}}, and not the same: {_LANES}",
}


@dataclass(slots=True)
class Storage:
    """A block of memory, which several tensors may share.

    Attributes:
        address: where it lies in the process that launched the kernel; kernels that load addresses
            out of memory meet this number.
        content: all its bytes.
        filled: for each byte whether somebody has filled it; None where all are.
    """

    address: int
    content: Array
    filled: Array | None = None

    def elements(self, size: int) -> Array:
        """The memory as unsigned integers of this size."""
        whole = self.content.size // size * size
        return self.content[:whole].view(f"u{size}")

    def filled_elements(self, size: int) -> Array | None:
        """For each element of this size whether its bytes are filled."""
        if self.filled is None:
            return None
        whole = self.filled.size // size * size
        return self.filled[:whole].reshape(-1, size)


@dataclass(frozen=True, slots=True)
class TensorView:
    """A tensor that a kernel is given: a part of a storage, with its name.

    Attributes:
        storage: the storage's place in the list of a launch.
        offset: bytes from the storage's beginning to the first element.
        size: bytes of an element.
        strides: in elements.
        element: the type of its elements, as TTIR names it; "" where only their size is known.
    """

    name: str
    storage: int
    offset: int
    size: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    element: str = ""


class Region:
    """The addresses of one tensor argument."""

    def __init__(
        self, view: TensorView, storage: Storage, base: int, history: ElementHistory
    ) -> None:
        self.view, self.name, self.base, self.history = view, view.name, base, history
        self.size, self.shape, self.strides = view.size, list(view.shape), list(view.strides)
        # whether a number that nobody has filled shows: it is NaN
        self.shows_unfilled = view.element.startswith(("f", "bf"))
        self.elements = storage.elements(view.size)
        self.filled = storage.filled_elements(view.size)
        self.start = view.offset // view.size
        self.extent = 0
        if math.prod(view.shape):
            steps = zip(view.shape, view.strides, strict=True)
            self.extent = 1 + sum((count - 1) * stride for count, stride in steps)
        fits = view.offset % view.size == 0 and min(view.strides, default=0) >= 0
        if not fits or self.start + self.extent > self.elements.size:
            raise KernelFault(f"{view.name} does not lie inside of its memory")
        self.shift = view.size.bit_length() - 1
        # without gaps each address from the first to the last is an element
        self.is_whole = self.extent <= math.prod(view.shape)
        self.counts: dict[str, Array] = {}  # by verb, where a trace asks for them

    @functools.cached_property
    def valid(self) -> Array:
        """Which addresses, from the first to the last, are elements of the tensor."""
        valid = np.zeros(self.extent, bool)
        self.in_shape(valid)[...] = True
        return valid

    def in_shape(self, values: Array) -> Array:
        """A number for each address, seen in the tensor's shape."""
        steps = [stride * values.itemsize for stride in self.strides]
        return np.lib.stride_tricks.as_strided(values, self.shape, steps, writeable=True)

    def index_of(self, offset: int) -> tuple[list[int], int]:
        """The index of the element `offset` after the first, and what is left over between two
        elements.

        An element past the end is told as a row too many: rows are the last axis but one.
        """
        index, remainder, rows = [0] * len(self.shape), int(offset), max(len(self.shape) - 2, 0)
        for axis in sorted(range(len(self.shape)), key=lambda axis: -self.strides[axis]):
            if self.strides[axis] and (axis == rows or self.shape[axis] > 1):
                steps = remainder // self.strides[axis]
                index[axis] = steps if axis == rows else max(0, min(steps, self.shape[axis] - 1))
                remainder -= index[axis] * self.strides[axis]
        return index, remainder


class Programs:
    """The programs that run at the same time.

    Attributes:
        numbers: each program's number in the launch, ascending.
        epochs: of all programs of the launch, how many barriers each has passed.
    """

    def __init__(self, numbers: Array, grid: tuple[int, int, int], epochs: Array) -> None:
        self.numbers, self.grid, self.epochs = numbers, grid, epochs
        x, y, _ = grid
        self.ids = (numbers % x, numbers // x % y, numbers // (x * y))

    def __len__(self) -> int:
        return int(self.numbers.size)

    def pass_barrier(self, active: Array | None) -> None:
        """Some of the programs (None: all) pass a barrier. Earlier accesses keep their epochs."""
        numbers = self.numbers if active is None else self.numbers[active]
        self.epochs = self.epochs.copy()
        self.epochs[numbers] += 1

    def words(self, number: int) -> tuple[int, ...]:
        """A program's place in the grid, as long as the grid has axes."""
        return program_place(number, self.grid)


def program_place(number: int, grid: tuple[int, int, int]) -> tuple[int, ...]:
    """A program's place in the grid, as long as the grid has axes."""
    x, y, _ = grid
    place = (number % x, number // x % y, number // (x * y))
    axes = max([axis + 1 for axis in range(3) if grid[axis] > 1], default=1)
    return place[:axes]


class Lanes:
    """The lanes of one access that are on.

    Args:
        shape: [programs, *tile].
        on: a mask in that shape; None where all are on.
        tile_number: a number of the tile's shape.
    """

    def __init__(
        self, among: Programs, shape: tuple[int, ...], on: Array | None, tile_number: int
    ) -> None:
        self.among, self.shape, self.on, self._tile_number = among, shape, on, tile_number
        self._epochs = among.epochs

    @functools.cached_property
    def programs(self) -> Array:
        numbers = self.among.numbers.reshape(-1, *(1,) * (len(self.shape) - 1))
        return self._selected(np.broadcast_to(numbers, self.shape))

    @functools.cached_property
    def keys(self) -> Array:
        lanes = np.arange(math.prod(self.shape[1:]), dtype=np.int64)
        lanes += self._tile_number << _LANE_BITS
        return self._selected(np.broadcast_to(lanes.reshape(1, *self.shape[1:]), self.shape))

    @functools.cached_property
    def epochs(self) -> Array:
        epochs: Array = self._epochs[self.programs]
        return epochs

    def _selected(self, values: Array) -> Array:
        return values.reshape(-1) if self.on is None else values[self.on]

    def part(self, which: Array) -> Lanes:
        """Those of the lanes that are in a mask."""
        part = Lanes(self.among, self.shape, self.on, self._tile_number)
        part.__dict__.update(
            programs=self.programs[which], keys=self.keys[which], epochs=self.epochs[which]
        )
        return part


Watcher = Callable[[str, Region, Array, Lanes], None]
StorageFinder = Callable[[int], int | None]


class Memory:
    """All tensors of one launch.

    Args:
        storages: the memory that the tensors lie in.
        order: what atomics order; None where all programs run at once.
        watcher: told each access that was allowed, where a trace asks for it: verb, region,
            offsets and lanes.
        find_storage: adds the storage that holds an address to the list, and gives its number.
    """

    def __init__(
        self,
        storages: list[Storage],
        order: ProgramOrder | None = None,
        watcher: Watcher | None = None,
        find_storage: StorageFinder | None = None,
    ) -> None:
        self._storages, self._order, self._watcher = storages, order, watcher
        self._find_storage = find_storage
        self.regions: dict[int, Region] = {}
        self.loads: Counter[str] = Counter()
        self.stores: Counter[str] = Counter()
        self._histories: dict[tuple[int, int], ElementHistory] = {}
        self._tile_numbers: dict[tuple[int, ...], int] = {}
        self._foreign: list[Region] = []
        self._resized: dict[tuple[int, int], Region] = {}
        self.loaded_storages: set[int] = set()
        self.changes = 0  # stores, and atomic operations that changed something

    def add(self, view: TensorView) -> int:
        """Give a tensor its addresses; returns the first."""
        number = _FIRST + len(self.regions)
        address = self._storages[view.storage].address + view.offset
        base = (number << _SPAN) + address % ALIGNED
        self.regions[number] = self._region_at(view, base)
        return base

    def _region_at(self, view: TensorView, base: int) -> Region:
        key = (view.storage, view.size)
        storage = self._storages[view.storage]
        if key not in self._histories:
            count = storage.elements(view.size).size
            self._histories[key] = ElementHistory(len(self._histories), count, self._order)
        return Region(view, storage, base, self._histories[key])

    def name_at(self, address: int) -> str:
        """The name of the tensor that owns an address; "" for none."""
        region = self.regions.get(address + (1 << (_SPAN - 1)) >> _SPAN)
        return region.name if region is not None else ""

    def lanes(self, among: Programs, shape: tuple[int, ...], on: Array | None) -> Lanes:
        """The lanes of one access."""
        tile = tuple(size for size in shape[1:] if size > 1)
        number = self._tile_numbers.setdefault(tile, len(self._tile_numbers))
        return Lanes(among, shape, on, number)

    def name_of(self, storage: int) -> str:
        """The name of the first tensor in a storage."""
        names = (r.name for r in self.regions.values() if r.view.storage == storage)
        return next(names, "a tensor")

    def count_changed(self, storage: int) -> int:
        """How many elements of a storage the launch has stored or changed."""
        return sum(
            history.count_changed()
            for (number, _), history in self._histories.items()
            if number == storage
        )

    # accesses, each of the lanes that are on

    def load(self, addresses: Array, lanes: Lanes, element: ElementType, volatile: bool) -> Array:
        """The bits that lie at the addresses."""
        result: Array | None = None
        for region, part, offsets, own in self._locate(addresses, lanes, "reads", element):
            places = offsets + region.start
            if volatile:
                region.history.acquire(places)
            else:
                self._checked(region, offsets, own, region.history.note_load, places, own)
            if not (region.shows_unfilled and element.kind == "float"):
                self._refuse_unfilled(region, offsets, places, own)
            self._count("reads", region, offsets, own)
            bits = region.elements[places]
            if part is None:
                return bits
            if result is None:
                result = np.zeros(addresses.size, element.stored)
            result[part] = bits
        return np.zeros(0, element.stored) if result is None else result

    def store(self, addresses: Array, lanes: Lanes, element: ElementType, bits: Array) -> None:
        """Write bits to the addresses."""
        for region, part, offsets, own in self._locate(addresses, lanes, "writes", element):
            places = offsets + region.start
            own_bits = bits if part is None else bits[part]
            before = region.elements[places]
            region.elements[places] = own_bits
            self.changes += 1
            after = region.elements[places]
            note = region.history.note_store
            self._checked(region, offsets, own, note, places, own, own_bits, before, after)
            if region.filled is not None:
                region.filled[places] = True
            self._count("writes", region, offsets, own)

    def change(
        self,
        addresses: Array,
        lanes: Lanes,
        element: ElementType,
        change: Callable[[Array, Array], Array],
        semantics: str,
    ) -> Array:
        """Let an atomic operation change what lies at the addresses; returns the bits before.

        Args:
            change: is given the old bits of some lanes, all at different places, and which lanes
                these are; returns the new bits.
        """
        result = np.zeros(addresses.size, element.stored)
        for region, part, offsets, own in self._locate(addresses, lanes, "adds to", element):
            places = offsets + region.start
            note = region.history.note_atomic
            self._checked(region, offsets, own, note, places, own, semantics)
            self._refuse_unfilled(region, offsets, places, own)
            self._count("adds to", region, offsets, own)
            own_lanes = np.arange(addresses.size) if part is None else np.flatnonzero(part)
            for turn in _turns(places):
                at = places[turn]
                old = region.elements[at]
                result[own_lanes[turn]] = old
                new = change(old, own_lanes[turn])
                region.elements[at] = new
                self.changes += bool((new != old).any())
        return result

    def _count(self, verb: str, region: Region, offsets: Array, lanes: Lanes) -> None:
        if verb != "writes":
            self.loads[region.name] += offsets.size
            self.loaded_storages.add(region.view.storage)
        if verb != "reads":
            self.stores[region.name] += offsets.size
        if self._watcher is not None:
            self._watcher(verb, region, offsets, lanes)

    def _checked(
        self, region: Region, offsets: Array, lanes: Lanes, note: Callable[..., None], *args: Any
    ) -> None:
        """Note an access, with conflicts put into words."""
        try:
            note(*args)
        except Conflict as conflict:
            lane = int(np.flatnonzero(conflict.lanes)[0])
            index, _ = region.index_of(int(offsets[lane]))
            other = ""
            if conflict.others is not None:
                place = lanes.among.words(int(conflict.others[lane]))
                other = f" (program {program_in_words(place)})"
            words = _CONFLICTS[conflict.kind]
            raise KernelFault(
                words.format(who=_who(lanes, lane), place=f"{region.name}{index}", other=other)
            ) from None

    def _refuse_unfilled(
        self, region: Region, offsets: Array, places: Array, lanes: Lanes
    ) -> None:
        """Refuse numbers that nobody has put there; floating point ones are NaN, and show."""
        if region.filled is None:
            return
        unfilled = ~region.filled[places].all(axis=1)
        if unfilled.any():
            lane = int(np.flatnonzero(unfilled)[0])
            index, _ = region.index_of(int(offsets[lane]))
            raise KernelFault(
                f"{_who(lanes, lane)} reads {region.name}{index}, which nobody has filled: "
                "torch.empty leaves what was there before"
            )

    # addresses

    def _locate(
        self, addresses: Array, lanes: Lanes, verb: str, element: ElementType
    ) -> list[tuple[Region, Array | None, Array, Lanes]]:
        """Each tensor that is touched: a mask of its lanes (None: all), how many elements after
        the first each address lies, and the lanes.
        """
        if not addresses.size:
            return []
        half = 1 << (_SPAN - 1)
        first = int(addresses.min()) + half >> _SPAN
        last = int(addresses.max()) + half >> _SPAN
        if first == last:
            region = self._region(first, int(addresses[0]), lanes, 0, verb, element)
            return [(region, None, self._offsets(region, addresses, lanes, verb, element), lanes)]
        located = []
        left = np.ones(addresses.size, bool)
        while left.any():
            lane = int(np.flatnonzero(left)[0])
            number = int(addresses[lane]) + half >> _SPAN
            region = self._region(number, int(addresses[lane]), lanes, lane, verb, element)
            part = left & (addresses + half >> _SPAN == number)
            own = lanes.part(part)
            offsets = self._offsets(region, addresses[part], own, verb, element)
            located.append((region, part, offsets, own))
            left &= ~part
        return located

    def _region(
        self, number: int, address: int, lanes: Lanes, lane: int, verb: str, element: ElementType
    ) -> Region:
        region = self.regions.get(number)
        if region is None and number < _FIRST:
            region = self._region_of_real_address(address, element)
        if region is None:
            raise KernelFault(
                f"{_who(lanes, lane)} {verb} an address that belongs to no tensor"
            )
        if region.size != element.size and region.is_whole:
            return self._in_other_elements(number, region, element.size)
        return region

    def _in_other_elements(self, number: int, region: Region, size: int) -> Region:
        """A tensor without gaps as one row of larger or smaller elements."""
        key = (number, size)
        if key not in self._resized:
            view = region.view
            count = region.extent * region.size // size
            row = TensorView(view.name, view.storage, view.offset, size, (count,), (1,))
            self._resized[key] = self._region_at(row, region.base)
        return self._resized[key]

    def _region_of_real_address(self, address: int, element: ElementType) -> Region | None:
        """The storage that an address out of memory points into, as one row of elements."""
        for region in self._foreign:
            if region.base <= address < region.base + region.extent * region.size:
                return region
        number = self._storage_around(address)
        if number is None:
            return None
        storage = self._storages[number]
        count = storage.content.size // element.size
        view = TensorView(f"memory {number}", number, 0, element.size, (count,), (1,))
        self._foreign.append(self._region_at(view, storage.address))
        return self._foreign[-1]

    def _storage_around(self, address: int) -> int | None:
        for number, storage in enumerate(self._storages):
            if storage.address <= address < storage.address + storage.content.size:
                return number
        return None if self._find_storage is None else self._find_storage(address)

    def _offsets(
        self, region: Region, addresses: Array, lanes: Lanes, verb: str, element: ElementType
    ) -> Array:
        """How many elements after the first each address lies; all must be elements."""
        distances = addresses - region.base
        offsets: Array = distances >> region.shift
        misaligned = distances & region.size - 1
        is_aligned = not misaligned.any() and element.size == region.size
        if (
            is_aligned
            and region.is_whole
            and int(offsets.min()) >= 0
            and int(offsets.max()) < region.extent
        ):
            return offsets
        inside = (offsets >= 0) & (offsets < region.extent)
        inside[inside] = region.valid[offsets[inside]]
        wrong = ~inside | (misaligned != 0)
        if wrong.any():
            lane = int(np.flatnonzero(wrong)[0])
            raise self._outside(region, int(offsets[lane]), bool(misaligned[lane]), lanes, lane, verb)
        if element.size != region.size:
            raise KernelFault(
                f"{_who(lanes, 0)} {verb} {region.name} as elements of {element.size} bytes, and "
                f"they have {region.size}"
            )
        return offsets

    def _outside(
        self, region: Region, offset: int, is_misaligned: bool, lanes: Lanes, lane: int, verb: str
    ) -> KernelFault:
        name, shape, who = region.name, region.shape, _who(lanes, lane)
        index, remainder = region.index_of(offset)
        if remainder or is_misaligned:
            return KernelFault(
                f"{who} {verb} memory between the elements of {name} (shape {shape}, strides "
                f"{region.strides}): do the strides belong to {name}?"
            )
        row = max(len(shape) - 2, 0)
        if shape and index[row] >= shape[row]:
            return KernelFault(
                f"{who} {verb} {name}{index}, and {name} has {shape[row]} rows (its shape is "
                f"{shape})"
            )
        return KernelFault(f"{who} {verb} {name}{index}, and the shape of {name} is {shape}")


def _who(lanes: Lanes, lane: int) -> str:
    return f"program {program_in_words(lanes.among.words(int(lanes.programs[lane])))}"


def _turns(places: Array) -> list[Array]:
    """Lanes in groups that touch each place once; earlier lanes come in earlier groups."""
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    lengths = np.diff(np.r_[starts, ordered.size])
    if lengths.max(initial=0) <= 1:
        return [np.arange(places.size)]
    rank = np.arange(ordered.size) - np.repeat(starts, lengths)
    return [np.sort(order[rank == turn]) for turn in range(int(lengths.max()))]
