"""The memory of one launch: the addresses of each tensor, and the order in which elements are
touched.

Every tensor gets a range of addresses, so that each access can be told apart, checked and counted.
On a GPU nothing orders programs, nor the lanes of one program: a result that depends on an order is
a fault here, with a name.
"""

from collections import Counter
from typing import Any

import numpy as np

_SPAN = 40  # every tensor owns 2**40 bytes of addresses, half of them before its first element
_ALIGNED = 16  # bytes: what tensor descriptors ask of an address holds here as it does on a GPU
_LANE = 32  # bits of a lane's number within its tile; the shape of the tile stands above them
_LANES = "nothing orders the lanes of a program, so the result would be a matter of luck"
_Array = np.ndarray[Any, Any]


class KernelFault(Exception):
    """A kernel did something wrong; the message names program, tensor and element."""


class Elements:
    """All elements of one storage, with the programs and times of loads and stores. All tensors of
    a storage share this object.
    """

    def __init__(self, storage: Any, size: int) -> None:
        self._address, self.size = storage.data_ptr(), size
        self.count = storage.nbytes() // size
        self.stored_at: _Array | None = None  # the clock of the last store; made by the first one
        self.stored_by: _Array | None = None  # its lane
        self.left: _Array | None = None  # the bits that it left
        self.added: _Array | None = None  # whether an atomic operation has changed an element
        # elements and lanes of this program's loads since a barrier
        self.loaded: list[tuple[_Array, _Array]] = []
        self.kept = False  # whether a load found what was there before the launch

    def bits(self) -> _Array:
        """The memory, each element as an unsigned number."""
        self.__array_interface__ = {
            "data": (self._address, False),
            "shape": (self.count,),
            "typestr": f"<u{self.size}",
            "version": 3,
        }
        return np.asarray(self)

    def add(self, where: _Array) -> None:
        """Note elements that an atomic operation changes; the new values are not known here."""
        if self.added is None:
            self.added = np.zeros(self.count, dtype=bool)
        self.added[where] = True

    @property
    def count_stored(self) -> int:
        """How many elements the launch has stored or added to."""
        clocks = (
            self.stored_at if self.stored_at is not None else np.zeros(self.count, dtype=np.int64)
        )
        return int(np.count_nonzero(clocks if self.added is None else (clocks > 0) | self.added))

    def write_into(self, expected: _Array, stored: _Array, unsure: _Array) -> None:
        """Apply the launch's stores to the bytes that a storage had before the launch.

        Args:
            stored: set to 1 where a byte was written.
            unsure: set to True where the value that was written is not known.
        """
        end = self.count * self.size
        if self.stored_at is not None:
            is_stored = self.stored_at > 0
            expected[:end].view(f"u{self.size}")[is_stored] = self.left[is_stored]  # type: ignore[index]  # made together
            stored[:end].reshape(-1, self.size)[is_stored] = 1
        if self.added is not None:
            stored[:end].reshape(-1, self.size)[self.added] = 1
            unsure[:end].reshape(-1, self.size)[self.added] = True

    @property
    def changed_what_it_found(self) -> bool:
        """Whether the launch loaded elements from before the launch, and stored some."""
        return self.kept and self.stored_at is not None


class Region:
    """One tensor argument of a running kernel, and its addresses."""

    def __init__(self, name: str, tensor: Any, number: int, elements: Elements) -> None:
        self.name, self.tensor, self.elements = name, tensor, elements
        self.address, self.size = tensor.data_ptr(), tensor.element_size()
        self.start = (self.address - tensor.untyped_storage().data_ptr()) // self.size
        self.base = (number << _SPAN) + self.address % _ALIGNED
        self.shape, self.strides = list(tensor.shape), list(tensor.stride())
        self.extent = (
            1 + sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))
            if tensor.numel()
            else 0
        )
        self.valid = np.zeros(self.extent, dtype=bool)
        self.in_shape(self.valid)[...] = True
        self.whole, self.bytes = bool(self.valid.all()), self.extent * self.size
        self.counts: dict[str, _Array] = {}  # by verb, where a trace asks for them

    def in_shape(self, values: _Array) -> _Array:
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


class Memory:
    """All tensors of one launch, and a clock that goes on by one with each access.

    Args:
        names: names of tensors, by the address of their storage; other tensors have the name of
            the kernel's parameter.
    """

    def __init__(self, names: dict[int, str], *, traced: bool) -> None:
        self.regions: dict[int, Region] = {}
        self.elements: dict[tuple[int, int], Elements] = {}  # by address and size of an element
        self.loads: Counter[str] = Counter()
        self.stores: Counter[str] = Counter()
        self.program: tuple[int, ...] = ()
        self._names, self._traced = names, traced
        self._by_argument: dict[int, Region] = {}
        self._clock = 0
        self._starts: list[int] = []  # the clock when each program began
        # the clock at each program's last atomic operation, which publishes its earlier stores
        self._released: list[int] = []
        self._ordered = 0  # the clock at the last barrier of this program
        self._shapes: dict[tuple[int, ...], int] = {}
        self._lanes: dict[tuple[int, ...], _Array] = {}

    # tensors

    def add(self, name: str, value: Any) -> None:
        """Give the tensors of an argument (a tensor, a descriptor, a tuple of them) their
        addresses.
        """
        if isinstance(value, tuple):
            for part in value:
                self.add(name, part)
            return
        # of a tensor descriptor, or of a tensor seen in another dtype
        tensor = getattr(value, "base", value)
        if not hasattr(tensor, "data_ptr"):
            return
        storage, size, number = (
            tensor.untyped_storage(),
            tensor.element_size(),
            len(self.regions) + 1,
        )
        elements = self.elements.setdefault((storage.data_ptr(), size), Elements(storage, size))
        given_name = self._names.get(storage.data_ptr())
        region = Region(given_name or name.removesuffix("_ptr"), tensor, number, elements)
        self.regions[number] = self._by_argument[id(value)] = self._by_argument[id(tensor)] = region

    def _who(self) -> str:
        return f"program {program_in_words(self.program)}"

    def region_of(self, argument: Any) -> Region | None:
        """The region of a kernel's argument; None for an argument that is no tensor."""
        return self._by_argument.get(id(argument))

    # time

    def begin(self, program: tuple[int, ...]) -> None:
        """The next program starts. They run one after the other here."""
        self.program = program
        self._starts.append(self._clock + 1)
        self._released.append(0)
        self.barrier()

    def barrier(self) -> None:
        """A barrier: lanes of this program see all earlier accesses of the program's lanes."""
        self._ordered = self._clock + 1
        for elements in self.elements.values():
            elements.loaded.clear()

    def atomic(self) -> None:
        """An atomic operation: publishes the stores of this program, and sees those that earlier
        programs have published.
        """
        self._released[-1] = self._clock

    # accesses

    def touch(
        self, addresses: _Array, on: _Array, verb: str, values: _Array | None = None
    ) -> tuple[_Array, list[tuple[Region, _Array]]]:
        """Check and count one access of the lanes that are `on`.

        Args:
            verb: "reads", "writes" or "adds to".
            values: what is written, a number a lane.

        Returns:
            The addresses in real memory, and each tensor that is touched with the offsets of its
            elements.

        Raises:
            KernelFault: the access leaves its tensor, or the result would depend on an order that
                nobody promises.
        """
        self._clock += 1
        lanes = self._lanes_of(addresses.shape)
        everything = bool(np.logical_and.reduce(on, axis=None))
        active = (addresses.reshape(-1) if everything else addresses[on]).view(np.int64)
        written = values
        if not everything:
            lanes = lanes[on.reshape(-1)]
            written = values[on] if values is not None else None
        elif values is not None:
            written = values.reshape(-1)
        moved, touched = active, []
        for region, owned, ends in self._by_region(active, verb):
            if owned is None:
                offsets = self._offsets(region, active, ends, verb)
                self._check(region, offsets, lanes, verb, written)
                moved = active + (region.address - region.base)
            else:
                offsets = self._offsets(region, active[owned], ends, verb)
                self._check(
                    region, offsets, lanes[owned], verb, None if written is None else written[owned]
                )
                moved = np.where(owned, active + (region.address - region.base), moved)
            touched.append((region, offsets))
        if everything:
            return moved.view(np.uint64).reshape(addresses.shape), touched
        real = np.zeros(addresses.shape, dtype=np.uint64)
        real[on] = moved.view(np.uint64)
        return real, touched

    def _check(
        self, region: Region, offsets: _Array, lanes: _Array, verb: str, written: _Array | None
    ) -> None:
        if written is not None:
            self._check_store(region, offsets, lanes, written)
        else:
            self._check_load(region, offsets, lanes, verb)
        self._count(region, offsets, verb)

    def _lanes_of(self, shape: tuple[int, ...]) -> _Array:
        """A number a lane. Equal numbers in two accesses mean one lane: an element of tiles of one
        shape.
        """
        lanes = self._lanes.get(shape)
        if lanes is None:
            squeezed = tuple(n for n in shape if n > 1)
            kind = self._shapes.setdefault(squeezed, len(self._shapes))
            lanes = self._lanes[shape] = np.arange(int(np.prod(shape)), dtype=np.int64) + (
                kind << _LANE
            )
        return lanes

    def _by_region(
        self, addresses: _Array, verb: str
    ) -> list[tuple[Region, _Array | None, tuple[int, int]]]:
        """Each tensor that is touched, a mask of the tensor's addresses (None: all), and the first
        and the last of these.
        """
        if not addresses.size:
            return []
        half = 1 << (_SPAN - 1)
        ends = _ends(addresses)
        first, last = ends[0] + half >> _SPAN, ends[1] + half >> _SPAN
        if first == last:
            return [(self._region(first, verb), None, ends)]
        numbers = (addresses + half) >> _SPAN
        touched = [
            (self._region(number, verb), numbers == number)
            for number in np.unique(numbers).tolist()
        ]
        return [(region, owned, _ends(addresses[owned])) for region, owned in touched]

    def _region(self, number: int, verb: str) -> Region:
        region = self.regions.get(number)
        if region is None:
            raise KernelFault(f"{self._who()} {verb} an address that belongs to no tensor")
        return region

    def _offsets(
        self, region: Region, addresses: _Array, ends: tuple[int, int], verb: str
    ) -> _Array:
        """How many elements after the first each address lies; all must be elements."""
        distances = addresses - region.base
        offsets: _Array = (
            distances >> region.size.bit_length() - 1
        )  # an element has 1, 2, 4 or 8 bytes
        misalignments = distances & region.size - 1
        between = np.logical_or.reduce(misalignments)
        if (
            region.whole
            and not between
            and ends[0] >= region.base
            and ends[1] - region.base < region.bytes
        ):
            return offsets
        inside = (offsets >= 0) & (offsets < region.extent)
        inside[inside] = region.valid[offsets[inside]]
        wrong = ~inside | (misalignments != 0)
        if not wrong.any():
            return offsets
        name, shape = region.name, region.shape
        index, remainder = region.index_of(int(offsets[wrong][0]))
        if remainder or misalignments[wrong][0]:
            raise KernelFault(
                f"{self._who()} {verb} memory between the elements of {name} (shape "
                f"{shape}, strides "
                f"{region.strides}): do the strides belong to {name}?"
            )
        row = max(len(shape) - 2, 0)
        if shape and index[row] >= shape[row]:
            raise KernelFault(
                f"{self._who()} {verb} {name}{index}, and {name} has {shape[row]} rows (its "
                f"shape is {shape})"
            )
        raise KernelFault(f"{self._who()} {verb} {name}{index}, and the shape of {name} is {shape}")

    def _count(self, region: Region, offsets: _Array, verb: str) -> None:
        if verb != "writes":
            self.loads[region.name] += offsets.size
        if verb != "reads":
            self.stores[region.name] += offsets.size
        if self._traced:
            for kind in {
                "reads": ("reads",),
                "writes": ("writes",),
                "adds to": ("reads", "writes"),
            }[verb]:
                counts = region.counts.setdefault(kind, np.zeros(region.extent, dtype=np.int64))
                np.add.at(counts, offsets, 1)

    # order

    def _check_load(self, region: Region, offsets: _Array, lanes: _Array, verb: str) -> None:
        """Refuse a load or an atomic operation after a store that nothing orders before this
        lane.
        """
        elements, where = region.elements, offsets + region.start
        if (
            elements.stored_at is not None
            and elements.stored_by is not None
            and (stored := elements.stored_at[where]).any()
        ):
            self._refuse_foreign(region, offsets, stored, verb)
            clashes = (stored >= self._ordered) & (elements.stored_by[where] != lanes)
            if verb == "reads" and clashes.any():
                raise KernelFault(
                    f"{self._who()} reads {_place(region, offsets, clashes)}, which another lane "
                    "of it has written: "
                    f"{_LANES}. tl.debug_barrier() between the store and the load orders them; "
                    "better is to keep the "
                    "value in a variable"
                )
            elements.kept = elements.kept or not stored.all()
        else:
            elements.kept = True
        if verb == "reads":
            elements.loaded.append((where, lanes))
        else:
            elements.add(where)

    def _check_store(self, region: Region, offsets: _Array, lanes: _Array, values: _Array) -> None:
        """Refuse a store where another lane or program has read or written another value, and
        nothing orders the two.
        """
        elements, where = region.elements, offsets + region.start
        if elements.stored_at is None or elements.stored_by is None:
            elements.stored_at = np.zeros(elements.count, dtype=np.int64)
            elements.stored_by = np.zeros(elements.count, dtype=np.int64)
            elements.left = np.zeros(elements.count, dtype=f"u{elements.size}")
        clocks, by = elements.stored_at, elements.stored_by
        bits = values.view(f"u{values.itemsize}")
        if (stored := clocks[where]).any():
            self._refuse_foreign(region, offsets, stored, "writes")
            clashes = (stored >= self._ordered) & (by[where] != lanes)
            if clashes.any() and (clashes := clashes & (elements.bits()[where] != bits)).any():
                raise KernelFault(
                    f"{self._who()} writes {_place(region, offsets, clashes)}, where another lane "
                    "of it has written "
                    f"something else: {_LANES}. tl.debug_barrier() between the two "
                    "stores orders them"
                )
        clocks[where] = self._clock
        by[where] = lanes
        # two lanes of this store, one element
        if lanes.size > 1 and (lost := by[where] != lanes).any():
            last = dict(zip(lanes.tolist(), bits.tolist(), strict=True))
            lost &= bits != np.array([last[lane] for lane in by[where].tolist()], dtype=bits.dtype)
            if lost.any():
                raise KernelFault(
                    f"two lanes of {self._who()} write {_place(region, offsets, lost)}, and not "
                    f"the same: {_LANES}"
                )
        if elements.loaded:
            self._refuse_late(region, where, lanes, bits)
        elements.left[where] = bits  # type: ignore[index]  # made with `stored_at`

    def _refuse_late(self, region: Region, where: _Array, lanes: _Array, bits: _Array) -> None:
        """Refuse a store into elements that other lanes of this program have loaded: on a GPU these
        loads may come later.
        """
        elements = region.elements
        writer = np.full(elements.count, -1, dtype=np.int64)
        writer[where] = lanes
        changed = np.zeros(elements.count, dtype=bool)
        changed[where] = elements.bits()[where] != bits
        for seen, by in elements.loaded:
            clashes = (writer[seen] >= 0) & (writer[seen] != by) & changed[seen]
            if clashes.any():
                raise KernelFault(
                    f"{self._who()} writes {_place(region, seen - region.start, clashes)}, "
                    "which another "
                    f"lane of it has loaded: {_LANES}. tl.debug_barrier() between the load and "
                    "the store orders them"
                )

    def _refuse_foreign(self, region: Region, offsets: _Array, stored: _Array, verb: str) -> None:
        """Refuse to touch elements that another program has stored, unless both programs have done
        an atomic operation since.
        """
        foreign = (stored > 0) & (stored < self._starts[-1])
        if foreign.any() and self._released[-1]:
            owners = np.searchsorted(self._starts, stored[foreign], side="right") - 1
            foreign[foreign] = np.array(self._released)[owners] < stored[foreign]
        if foreign.any():
            raise KernelFault(
                f"{self._who()} {verb} {_place(region, offsets, foreign)}, which another "
                "program has "
                "written: programs run in any order, so the result would be a matter of luck"
            )


def _ends(addresses: _Array) -> tuple[int, int]:
    """The first and the last."""
    if addresses.size == 1:
        return (only := int(addresses[0])), only
    return int(np.minimum.reduce(addresses)), int(np.maximum.reduce(addresses))


def _place(region: Region, offsets: _Array, which: _Array) -> str:
    return f"{region.name}{region.index_of(int(offsets[which][0]))[0]}"


def program_in_words(program: tuple[int, ...]) -> str:
    """A program as messages name it."""
    return str(program[0]) if len(program) == 1 else str(program)
