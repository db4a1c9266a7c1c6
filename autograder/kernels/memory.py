"""The memory that the programs of a launch see: its tensors, each with a range of addresses.

Every access is checked: inside of its tensor, on an element, against the accesses of others
(`races.py`), and filled by somebody.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from autograder.kernels.faults import MemoryFault, program_in_words
from autograder.kernels.number_types import Array, ElementType
from autograder.kernels.order import ProgramOrder
from autograder.kernels.program_lanes import Lanes, Programs
from autograder.kernels.races import AccessConflict, ElementHistory
from autograder.kernels.tensor_regions import Region, Storage, TensorView

_SPAN = (
    40  # a tensor owns 2**40 bytes of addresses, half of them before its first element
)
_FIRST = 1 << 10  # above every address of a real process, which has 47 bits
ALIGNED = 16  # bytes: what descriptors ask of an address holds here as it does on a GPU
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
            self._histories[key] = ElementHistory(
                len(self._histories), count, self._order
            )
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

    def load(
        self, addresses: Array, lanes: Lanes, element: ElementType, volatile: bool
    ) -> Array:
        """The bits that lie at the addresses."""
        result: Array | None = None
        for region, part, offsets, own in self._locate(
            addresses, lanes, "reads", element
        ):
            places = offsets + region.start
            if volatile:
                region.history.acquire(places)
            else:
                self._checked(
                    region, offsets, own, region.history.note_load, places, own
                )
            if not (region.shows_unfilled and element.kind == "float"):
                self._refuse_unfilled(region, offsets, places, own)
            self._count("reads", region, offsets, own)
            bits: Array = region.elements[places]
            if part is None:
                return bits
            if result is None:
                result = np.zeros(addresses.size, element.stored)
            result[part] = bits
        return np.zeros(0, element.stored) if result is None else result

    def store(
        self, addresses: Array, lanes: Lanes, element: ElementType, bits: Array
    ) -> None:
        """Write bits to the addresses."""
        for region, part, offsets, own in self._locate(
            addresses, lanes, "writes", element
        ):
            places = offsets + region.start
            own_bits = bits if part is None else bits[part]
            before = region.elements[places]
            region.elements[places] = own_bits
            self.changes += 1
            after = region.elements[places]
            note = region.history.note_store
            self._checked(
                region, offsets, own, note, places, own, own_bits, before, after
            )
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
        for region, part, offsets, own in self._locate(
            addresses, lanes, "adds to", element
        ):
            places = offsets + region.start
            note = region.history.note_atomic
            self._checked(region, offsets, own, note, places, own, semantics)
            self._refuse_unfilled(region, offsets, places, own)
            self._count("adds to", region, offsets, own)
            own_lanes = (
                np.arange(addresses.size) if part is None else np.flatnonzero(part)
            )
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
        self,
        region: Region,
        offsets: Array,
        lanes: Lanes,
        note: Callable[..., None],
        *args: Any,
    ) -> None:
        """Note an access, with conflicts put into words."""
        try:
            note(*args)
        except AccessConflict as conflict:
            lane = int(np.flatnonzero(conflict.lanes)[0])
            index, _ = region.index_of(int(offsets[lane]))
            other = ""
            if conflict.others is not None:
                place = lanes.among.words(int(conflict.others[lane]))
                other = f" (program {program_in_words(place)})"
            element = f"{region.name}{index}"
            raise MemoryFault(
                conflict.words(_who(lanes, lane), element, other)
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
            raise MemoryFault(
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
            return [
                (
                    region,
                    None,
                    self._offsets(region, addresses, lanes, verb, element),
                    lanes,
                )
            ]
        located = []
        left = np.ones(addresses.size, bool)
        while left.any():
            lane = int(np.flatnonzero(left)[0])
            number = int(addresses[lane]) + half >> _SPAN
            region = self._region(
                number, int(addresses[lane]), lanes, lane, verb, element
            )
            part = left & (addresses + half >> _SPAN == number)
            own = lanes.part(part)
            offsets = self._offsets(region, addresses[part], own, verb, element)
            located.append((region, part, offsets, own))
            left &= ~part
        return located

    def _region(
        self,
        number: int,
        address: int,
        lanes: Lanes,
        lane: int,
        verb: str,
        element: ElementType,
    ) -> Region:
        region = self.regions.get(number)
        if region is None and number < _FIRST:
            region = self._region_of_real_address(address, element)
        if region is None:
            raise MemoryFault(
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

    def _region_of_real_address(
        self, address: int, element: ElementType
    ) -> Region | None:
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
        self,
        region: Region,
        addresses: Array,
        lanes: Lanes,
        verb: str,
        element: ElementType,
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
            raise self._outside(
                region, int(offsets[lane]), bool(misaligned[lane]), lanes, lane, verb
            )
        if element.size != region.size:
            raise MemoryFault(
                f"{_who(lanes, 0)} {verb} {region.name} as elements of {element.size} bytes, and "
                f"they have {region.size}"
            )
        return offsets

    def _outside(
        self,
        region: Region,
        offset: int,
        is_misaligned: bool,
        lanes: Lanes,
        lane: int,
        verb: str,
    ) -> MemoryFault:
        name, shape, who = region.name, region.shape, _who(lanes, lane)
        index, remainder = region.index_of(offset)
        if remainder or is_misaligned:
            return MemoryFault(
                f"{who} {verb} memory between the elements of {name} (shape {shape}, strides "
                f"{region.strides}): do the strides belong to {name}?"
            )
        row = max(len(shape) - 2, 0)
        if shape and index[row] >= shape[row]:
            return MemoryFault(
                f"{who} {verb} {name}{index}, and {name} has {shape[row]} rows (its shape is "
                f"{shape})"
            )
        return MemoryFault(
            f"{who} {verb} {name}{index}, and the shape of {name} is {shape}"
        )


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
