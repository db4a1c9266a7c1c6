"""Strict Triton, kernels on a CPU: you need not read it.

Made by `autograder build`; the notebook a7_tiled_attention.ipynb imports it.
"""

from __future__ import annotations

import linecache
import re
from dataclasses import dataclass

_TEXT_LENGTH = 80
_DEFINITION = re.compile(r"^\s*def\s+(\w+)")


class KernelFault(Exception):
    """A kernel did something wrong; the message names program, tensor, element and line."""

    is_located = False  # whether the message names the line already


class MemoryFault(KernelFault):
    """A kernel touches memory that is not its own, or that another program or lane may touch at the
    same time, or reads what nobody has put there.
    """


class StaticAssertion(KernelFault):
    """tl.static_assert fails for the constants of a launch."""


class Unreadable(KernelFault):
    """The text of a compiled kernel is not TTIR, or holds an operation without a meaning here."""


@dataclass(frozen=True, slots=True)
class SourcePlace:
    """A place in a student's source.

    Attributes:
        file: as Python names it; a notebook's cell has a name too.
        line: counted in the file, from 1.
        variable: the variable that the statement assigns; "" where it assigns none.
    """

    file: str
    line: int
    variable: str = ""

    def __str__(self) -> str:
        """Such as "line 5 of add_kernel, x (`x = tl.load(x_ptr + at)`)"."""
        lines = linecache.getlines(self.file)
        text = lines[self.line - 1].strip() if 0 < self.line <= len(lines) else ""
        name, first = _function_around(lines, self.line)
        where = f"line {self.line - first + 1}"
        if name:
            where += f" of {name}"
        if self.variable:
            where += f", {self.variable}"
        if text:
            where += f" (`{text[:_TEXT_LENGTH]}`)"
        return where


def _function_around(lines: list[str], line: int) -> tuple[str, int]:
    """The function that a line stands in, and the function's first line; ("", 1) for none."""
    for number in range(min(line, len(lines)), 0, -1):
        if match := _DEFINITION.match(lines[number - 1]):
            return match[1], number
    return "", 1


def program_in_words(program: tuple[int, ...]) -> str:
    """A program as messages name it."""
    return str(program[0]) if len(program) == 1 else str(program)


import functools
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


Array = np.ndarray[Any, Any]
_TENSOR = re.compile(r"tensor<((?:\d+x)*)(.*)>$")
_MOST_LANES = 1 << 20
"""Elements of a tile. Triton's own limit: a larger one does not come from its front end."""


@dataclass(frozen=True, slots=True)
class ElementType:
    """The type of one element.

    Attributes:
        name: as TTIR writes it, such as "bf16".
        kind: "float", "int", "bool" or "pointer".
        size: bytes in memory.
        array: the numpy type that holds values.
        pointee: for a pointer, what it points to.
    """

    name: str
    kind: str
    size: int
    array: np.dtype[Any]
    pointee: ElementType | None = None

    @property
    def stored(self) -> np.dtype[Any]:
        """The unsigned integer of this size."""
        return np.dtype(f"u{self.size}")


@dataclass(frozen=True, slots=True)
class TileType:
    """A tile's shape, () for a scalar, and the type of its elements.

    Attributes:
        reference: "block" for a block pointer to such a tile, "descriptor" for a descriptor of
            tiles, "" for the tile itself.
    """

    shape: tuple[int, ...]
    element: ElementType
    reference: str = ""


def _simple(name: str, kind: str, size: int, array: str) -> ElementType:
    return ElementType(name, kind, size, np.dtype(array))


_SIMPLE = {
    element.name: element
    for element in (
        _simple("i1", "bool", 1, "bool"),
        _simple("i8", "int", 1, "int8"),
        _simple("i16", "int", 2, "int16"),
        _simple("i32", "int", 4, "int32"),
        _simple("i64", "int", 8, "int64"),
        _simple("index", "int", 8, "int64"),
        _simple("f16", "float", 2, "float16"),
        _simple("bf16", "float", 2, "float32"),
        _simple("f32", "float", 4, "float32"),
        _simple("f64", "float", 8, "float64"),
        _simple("f8E4M3FN", "float", 1, "float32"),
        _simple("f8E5M2", "float", 1, "float32"),
        _simple("f8E4M3B11FNUZ", "float", 1, "float32"),
    )
}
BOOL, INT32 = (_SIMPLE[name] for name in ("i1", "i32"))


@functools.cache
def read_element_type(text: str) -> ElementType:
    """The element type that a text names.

    Raises:
        Unreadable: it is none.
    """
    text = text.strip()
    # descriptors say whether integers have a sign: "si32", "ui8"
    simple = _SIMPLE.get(text) or _SIMPLE.get(re.sub(r"^[su](?=i\d)", "", text))
    if simple is not None:
        return simple
    if match := re.fullmatch(r"!tt\.ptr<(.*?)(?:, \d+)?>", text):
        return ElementType(
            text, "pointer", 8, np.dtype("int64"), read_element_type(match[1])
        )
    raise Unreadable(f"numbers of the type {text[:60]} are not known here")


@functools.cache
def read_type(text: str) -> TileType:
    """The type that a text names, such as "tensor<16x16x!tt.ptr<f32>>".

    Raises:
        Unreadable: it is none.
    """
    text = text.strip()
    if match := re.fullmatch(r"!tt\.tensordesc<(?:tensor<)?(.*?)>+", text):
        return _tile_of(f"tensor<{match[1]}>", "descriptor")
    if match := re.fullmatch(r"(?:!tt\.ptr)?<(tensor<.*>)>", text):
        return _tile_of(match[1], "block")
    if text.startswith("tensor<"):
        return _tile_of(text, "")
    if re.match(r"<\d+x", text):  # a descriptor, since Triton 3.9
        return _tile_of(f"tensor{text}", "descriptor")
    if text.startswith("<"):  # in the type of an operation that makes a descriptor
        text = "!tt.ptr" + text
    return TileType((), read_element_type(text))


def _tile_of(text: str, reference: str) -> TileType:
    match = _TENSOR.match(text)
    if match is None:
        raise Unreadable(f"the type {text[:60]} is not known here")
    shape = tuple(int(size) for size in match[1].split("x")[:-1])
    if math.prod(shape) > _MOST_LANES:
        raise Unreadable(
            f"a tile of {math.prod(shape)} elements: {_MOST_LANES} at most"
        )
    # a layout may follow, which says nothing of the values
    return TileType(shape, read_element_type(match[2].split(", #")[0]), reference)


# bits


@functools.cache
def _float8_values(name: str) -> Array:
    """The value of each of the 256 bit patterns of a float8 type."""
    exponent_bits, bias = {
        "f8E4M3FN": (4, 7),
        "f8E5M2": (5, 15),
        "f8E4M3B11FNUZ": (4, 15),
    }[name]
    mantissa_bits = 7 - exponent_bits
    values = []
    for code in range(128):
        exponent, mantissa = code >> mantissa_bits, code & (1 << mantissa_bits) - 1
        if exponent:
            value = math.ldexp(
                (1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits
            )
        else:
            value = math.ldexp(mantissa, 1 - bias - mantissa_bits)
        if name == "f8E4M3FN" and code == 127:
            value = math.nan
        if name == "f8E5M2" and code >= 124:
            value = math.inf if code == 124 else math.nan
        values.append(value)
    positive = np.array(values, np.float32)
    return np.concatenate([positive, -positive])


def from_bits(bits: Array, element: ElementType) -> Array:
    """The values of elements, from their bits in memory."""
    if element.kind == "bool":
        return np.asarray(bits != 0)
    if element.name == "bf16":
        return (bits.astype(np.uint32) << 16).view(np.float32)
    if element.name.startswith("f8"):
        values: Array = _float8_values(element.name)[bits]
        return values
    seen: Array = bits.view(element.array)
    return seen


def to_bits(values: Array, element: ElementType) -> Array:
    """The bits of elements in memory. The values are values of the type already."""
    if element.name == "bf16":
        wide = np.ascontiguousarray(values, np.float32).view(np.uint32)
        return (wide >> 16).astype(np.uint16)
    if element.name.startswith("f8"):
        return _float8_codes(values, element.name, toward_zero=False)
    return np.ascontiguousarray(values, element.array).view(element.stored)


# rounding


def round_to_bits(
    values: Array, mantissa_bits: int, *, toward_zero: bool = False
) -> Array:
    """float32 rounded to fewer bits of mantissa, to nearest with ties to even."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    dropped = 23 - mantissa_bits
    kept = np.uint32(0xFFFFFFFF << dropped & 0xFFFFFFFF)
    if toward_zero:
        rounded = bits & kept
    else:
        half = np.uint32((1 << dropped - 1) - 1)
        rounded = (bits + half + (bits >> dropped & 1)) & kept
    special = bits & 0x7F800000 == 0x7F800000  # infinities and NaN stay as they are
    if special.any():
        quiet = bits & kept | np.where(
            bits & 0x007FFFFF, np.uint32(0x00400000), np.uint32(0)
        )
        rounded = np.where(special, quiet, rounded)
    return rounded.view(np.float32)


def round_to_tf32(values: Array) -> Array:
    """float32 as a tensor core reads it for input_precision="tf32": 10 bits of mantissa."""
    return round_to_bits(values, 10)


def round_to_bfloat16(values: Array) -> Array:
    """Numbers rounded to bfloat16, held as float32."""
    return round_to_bits(_through_odd(values), 7)


def _through_odd(values: Array) -> Array:
    """float64 as float32 that rounds on as the float64 would: to odd, where it is inexact."""
    if values.dtype != np.float64:
        return values
    single = values.astype(np.float32)
    back = single.astype(np.float64)
    inexact = (back != values) & np.isfinite(single)
    bits = np.ascontiguousarray(single).view(np.uint32)
    # one step towards the true value where single was rounded away from it
    away = inexact & (np.abs(back) > np.abs(values))
    bits = np.where(away, bits - 1, bits)
    return np.where(inexact, bits | 1, bits).view(np.float32)


def _float8_codes(values: Array, name: str, *, toward_zero: bool) -> Array:
    """The bits of a float8 type. Too large a number, infinity too, becomes the largest one: NVIDIA
    GPUs convert with `satfinite`.
    """
    positive = _float8_values(name)[:128]
    positive = positive[np.isfinite(positive)].astype(np.float64)
    size = np.abs(values).astype(np.float64)
    above = np.searchsorted(positive, size)  # the first code that is not smaller
    above = np.minimum(above, len(positive) - 1)
    below = np.maximum(above - (positive[above] > size), 0)
    to_below, to_above = size - positive[below], positive[above] - size
    upwards = (to_above < to_below) | ((to_above == to_below) & (above % 2 == 0))
    code = np.where(upwards & (not toward_zero), above, below)
    code = np.where(np.isnan(values), 127, code)
    return np.asarray(code | np.signbit(values) * 128, np.uint8)


def rounder(
    element: ElementType, *, toward_zero: bool = False
) -> Callable[[Array], Array]:
    """The function that rounds floating point numbers to a type and gives them its numpy type."""
    if element.name == "bf16":
        return lambda values: round_to_bits(
            _through_odd(values), 7, toward_zero=toward_zero
        )
    if element.name.startswith("f8"):
        return lambda values: from_bits(
            _float8_codes(values, element.name, toward_zero=toward_zero), element
        )
    if element.name == "f16" and toward_zero:
        return _half_toward_zero
    return lambda values: values.astype(element.array)


def _half_toward_zero(values: Array) -> Array:
    nearest = values.astype(np.float16)
    too_large = np.abs(nearest.astype(np.float64)) > np.abs(values)
    return np.where(too_large, np.nextafter(nearest, np.float16(0)), nearest)


from typing import Any

import numpy as np


ACQUIRES = frozenset({"acquire", "acq_rel"})
RELEASES = frozenset({"release", "acq_rel"})


class ProgramOrder:
    """The releases that each program has made, and those that the running program has seen.

    Args:
        programs: how many programs the launch has.
    """

    def __init__(self, programs: int) -> None:
        self._releases = np.zeros(programs, np.int32)
        self._seen = np.zeros(programs, np.int32)
        self._published: dict[tuple[int, int], Array] = {}
        self._running = 0

    def begin(self, program: int) -> None:
        """The next program runs. Of the others' releases it has seen none."""
        self._running = program
        self._seen[:] = 0

    @property
    def releases(self) -> int:
        """How often the running program has released: the time of what it does now."""
        return int(self._releases[self._running])

    def atomic(self, memory: int, places: Array, semantics: str) -> None:
        """One atomic operation of the running program.

        Args:
            memory: a number of the memory that the places lie in.
            semantics: "relaxed", "acquire", "release" or "acq_rel".
        """
        addresses = [(memory, place) for place in np.unique(places).tolist()]
        if semantics in ACQUIRES:
            for address in addresses:
                published = self._published.get(address)
                if published is not None:
                    np.maximum(self._seen, published, out=self._seen)
        if semantics in RELEASES:
            self._releases[self._running] += 1
            self._seen[self._running] = self._releases[self._running]
            published = self._seen.copy()
            for address in addresses:
                earlier = self._published.get(address)
                both = published if earlier is None else np.maximum(earlier, published)
                self._published[address] = both

    def unseen(self, programs: Array, times: Any) -> Array:
        """Where a program did something at a time (`releases`) that the running one has not
        seen.
        """
        unseen: Array = (programs != self._running) & (self._seen[programs] <= times)
        return unseen

    def has_seen_atomics(self, memory: int, place: int) -> bool:
        """Whether the running program has seen all that was released at an address."""
        published = self._published.get((memory, place))
        return published is not None and bool((self._seen >= published).all())


import functools
from typing import Protocol

import numpy as np


_NOBODY = -1
_SEVERAL = -2
_MOST_PENDING = 1 << 22
"""Loads that are noted later, in elements: most storages are never written, and need no notes."""


_LANES = (
    "nothing orders the lanes of a program, so the result would be a matter of luck"
)
_PROGRAMS = "programs run in any order, so the result would be a matter of luck"
_WORDS = {
    "load after store": f"reads %, which another program has written@: {_PROGRAMS}",
    "store after store": f"writes %, which another program has written@: {_PROGRAMS}",
    "store after load": f"writes %, which another program has read@: {_PROGRAMS}",
    "atomic after store": f"adds to %, which another program has written@: {_PROGRAMS}",
    "atomic after load": f"adds to %, which another program has read@: {_PROGRAMS}",
    "load after atomic": f"reads %, which another program changes atomically@: {_PROGRAMS}",
    "store after atomic": f"writes %, which another program changes atomically@: {_PROGRAMS}",
    "lane loads after store": (
        f"reads %, which another lane of it has written: {_LANES}. tl.debug_barrier() between the "
        "store and the load orders them; better is to keep the value in a variable"
    ),
    "lane stores after store": (
        f"writes %, where another lane of it has written something else: {_LANES}. "
        "tl.debug_barrier() between the two stores orders them"
    ),
    "lane stores after load": (
        f"writes %, which another lane of it has loaded: {_LANES}. tl.debug_barrier() between the "
        "load and the store orders them"
    ),
    "two lanes store": f"write %, and not the same: {_LANES}",
}
"""The words for each kind of conflict: % is the element, @ the other program."""


class Accessing(Protocol):
    """The lanes of one access that are on, in the order of their programs.

    Attributes:
        programs: the program of each lane.
        keys: a number for each lane of a program; equal ones of two accesses mean one lane.
        epochs: how many barriers the program of each lane has passed.
    """

    @property
    def programs(self) -> Array:
        """The program of each lane."""

    @property
    def keys(self) -> Array:
        """The number of each lane."""

    @property
    def epochs(self) -> Array:
        """How many barriers each lane's program has passed."""


class AccessConflict(Exception):
    """Two accesses to one element that nothing orders.

    Attributes:
        lanes: a mask of the lanes in conflict.
        kind: a key of the words above.
        others: for each lane the other program, or None where it is the same program.
    """

    def __init__(self, kind: str, lanes: Array, others: Array | None = None) -> None:
        super().__init__(kind)
        self.kind, self.lanes, self.others = kind, lanes, others

    def words(self, program: str, element: str, other: str) -> str:
        """The conflict in words, such as "program 1 reads x[0], which another program …"."""
        subject = (
            f"two lanes of {program}" if self.kind == "two lanes store" else program
        )
        return f"{subject} {_WORDS[self.kind]}".replace("%", element).replace(
            "@", other
        )


class ElementHistory:
    """The writers and readers of the elements of one storage, for one launch.

    Args:
        number: of the storage, among those of the launch.
        count: how many elements the storage has.
        order: what atomics order; None where all programs run at once.
    """

    def __init__(self, number: int, count: int, order: ProgramOrder | None) -> None:
        self._number, self._count, self._order = number, count, order
        self._pending: list[tuple[Array, Accessing]] = []
        self._pending_size = 0
        self._is_written = self._has_atomics = False
        # several programs that wrote the same value: element and program
        self._shared: list[tuple[Array, Array]] = []
        self._read_log: list[tuple[int, int, Array]] = []  # program, time, elements

    def _full(self, value: int, kind: str) -> Array:
        return np.full(self._count, value, kind)

    @functools.cached_property
    def _writer(self) -> Array:
        return self._full(_NOBODY, "int32")

    @functools.cached_property
    def _write_lane(self) -> Array:
        return self._full(_NOBODY, "int64")

    @functools.cached_property
    def _write_epoch(self) -> Array:
        return self._full(0, "int32")

    @functools.cached_property
    def _write_time(self) -> Array:
        return self._full(0, "int32")

    @functools.cached_property
    def _first_reader(self) -> Array:
        return self._full(np.iinfo(np.int32).max, "int32")

    @functools.cached_property
    def _last_reader(self) -> Array:
        return self._full(_NOBODY, "int32")

    @functools.cached_property
    def _read_lane(self) -> Array:
        return self._full(_NOBODY, "int64")

    @functools.cached_property
    def _read_epoch(self) -> Array:
        return self._full(_NOBODY, "int32")

    @functools.cached_property
    def _first_adder(self) -> Array:
        return self._full(np.iinfo(np.int32).max, "int32")

    @functools.cached_property
    def _last_adder(self) -> Array:
        return self._full(_NOBODY, "int32")

    # loads

    def note_load(self, places: Array, lanes: Accessing) -> None:
        """Note a load.

        Raises:
            AccessConflict: another program or lane writes one of the elements.
        """
        untouched = not self._is_written and not self._has_atomics
        if untouched and self._order is None:
            self._pending.append((places, lanes))
            self._pending_size += places.size
            if self._pending_size > _MOST_PENDING:
                self._note_pending()
            return
        if self._is_written:
            self._refuse_load_of_written(places, lanes)
        if self._has_atomics:
            self._refuse_adders(places, lanes, "load after atomic")
        self._note_readers(places, lanes)

    def _refuse_load_of_written(self, places: Array, lanes: Accessing) -> None:
        programs, writers = lanes.programs, self._writer[places]
        foreign = (writers != _NOBODY) & (writers != programs)
        if foreign.any():
            foreign = self._not_ordered(foreign, writers, self._write_time[places])
            foreign &= ~self._wrote_the_same(foreign, places, programs)
            if foreign.any():
                raise AccessConflict("load after store", foreign, writers)
        own = (writers == programs) & (self._write_lane[places] != lanes.keys)
        if (
            own.any()
            and (own := own & (self._write_epoch[places] == lanes.epochs)).any()
        ):
            raise AccessConflict("lane loads after store", own)

    def _wrote_the_same(self, which: Array, places: Array, programs: Array) -> Array:
        """Where the program itself has written the value that another one wrote last."""
        both = np.zeros_like(which)
        if not which.any():
            return both
        width = np.int64(1) << 32
        wanted = places * width + programs
        for shared_places, shared_programs in self._shared:
            both |= np.isin(wanted, shared_places * width + shared_programs)
        return both

    def _note_pending(self) -> None:
        for places, lanes in self._pending:
            self._note_readers(places, lanes)
        self._pending.clear()
        self._pending_size = 0

    def _note_readers(self, places: Array, lanes: Accessing) -> None:
        programs, keys, epochs = lanes.programs, lanes.keys, lanes.epochs
        # where a place stands twice, numpy keeps the last value: programs ascend
        first = np.minimum(self._first_reader[places], programs)
        self._first_reader[places[::-1]] = first[::-1]
        self._last_reader[places] = np.maximum(self._last_reader[places], programs)
        earlier = self._read_lane[places]
        is_first = (self._read_epoch[places] != epochs) | (earlier == keys)
        lane = np.where(is_first, keys, _SEVERAL)
        self._read_lane[places] = lane
        self._read_epoch[places] = epochs
        several = self._read_lane[places] != lane
        if several.any():
            self._read_lane[places[several]] = _SEVERAL
        if self._order is not None and programs.size:
            self._read_log.append((int(programs[0]), self._order.releases, places))

    # stores

    def note_store(
        self, places: Array, lanes: Accessing, bits: Array, before: Array, after: Array
    ) -> None:
        """Note a store.

        Args:
            bits: what each lane writes.
            before: what stood at each lane's place before.
            after: what stands there now; of two lanes at one place, one has won.

        Raises:
            AccessConflict: another program or lane reads an element, or writes something else.
        """
        self._note_pending()
        changes = before != bits
        self._refuse_readers(places, lanes, changes, "store after load")
        if self._is_written:
            self._refuse_store_over_store(places, lanes, changes)
        if self._has_atomics:
            self._refuse_adders(places, lanes, "store after atomic")
        self._is_written = True
        programs, keys = lanes.programs, lanes.keys
        self._writer[places] = programs
        self._write_lane[places] = keys
        self._write_epoch[places] = lanes.epochs
        if self._order is not None:
            self._write_time[places] = self._order.releases
        winners = self._writer[places]
        lost = (winners != programs) | (self._write_lane[places] != keys)
        if lost.any():
            self._settle_meeting(places, programs, winners, lost, after != bits)

    def _settle_meeting(
        self,
        places: Array,
        programs: Array,
        winners: Array,
        lost: Array,
        differs: Array,
    ) -> None:
        """Several lanes of this store write to one place."""
        clashes = lost & differs
        if (foreign := clashes & (winners != programs)).any():
            raise AccessConflict("store after store", foreign, winners)
        if clashes.any():
            raise AccessConflict("two lanes store", clashes)
        self._share(places, programs, lost & (winners != programs))

    def _share(self, places: Array, programs: Array, which: Array) -> None:
        if which.any():
            self._shared.append((places[which].astype(np.int64), programs[which]))

    def _refuse_store_over_store(
        self, places: Array, lanes: Accessing, changes: Array
    ) -> None:
        programs, writers = lanes.programs, self._writer[places]
        foreign = (writers != _NOBODY) & (writers != programs)
        if foreign.any():
            foreign = self._not_ordered(foreign, writers, self._write_time[places])
            if (clashes := foreign & changes).any():
                raise AccessConflict("store after store", clashes, writers)
            self._share(places, writers, foreign)
            self._share(places, programs, foreign)
        own = (writers == programs) & changes & (self._write_lane[places] != lanes.keys)
        if (
            own.any()
            and (own := own & (self._write_epoch[places] == lanes.epochs)).any()
        ):
            raise AccessConflict("lane stores after store", own)

    def _refuse_readers(
        self, places: Array, lanes: Accessing, changes: Array, kind: str
    ) -> None:
        programs = lanes.programs
        first, last = self._first_reader[places], self._last_reader[places]
        is_read = last != _NOBODY
        if not is_read.any():
            return
        foreign = is_read & ((first != programs) | (last != programs))
        if foreign.any():
            foreign = self._not_seen_readers(foreign, places)
            if foreign.any():
                raise AccessConflict(
                    kind, foreign, np.where(first != programs, first, last)
                )
        own = (
            is_read
            & changes
            & (self._read_lane[places] != lanes.keys)
            & (first == programs)
        )
        if (
            own.any()
            and (own := own & (self._read_epoch[places] == lanes.epochs)).any()
        ):
            raise AccessConflict("lane stores after load", own)

    # atomic operations

    def note_atomic(self, places: Array, lanes: Accessing, semantics: str) -> None:
        """Note an atomic operation: it may meet others, and no plain load or store.

        Raises:
            AccessConflict: another program reads or writes one of the elements.
        """
        self._note_pending()
        if self._order is not None:
            self._order.atomic(self._number, places, semantics)
        programs = lanes.programs
        if self._is_written:
            writers = self._writer[places]
            foreign = (writers != _NOBODY) & (writers != programs)
            foreign = self._not_ordered(foreign, writers, self._write_time[places])
            if foreign.any():
                raise AccessConflict("atomic after store", foreign, writers)
        nothing = np.zeros(
            places.size, bool
        )  # lanes of one program may meet in an atomic
        self._refuse_readers(places, lanes, nothing, "atomic after load")
        self._has_atomics = True
        first = np.minimum(self._first_adder[places], programs)
        self._first_adder[places[::-1]] = first[::-1]
        self._last_adder[places] = np.maximum(self._last_adder[places], programs)

    def acquire(self, places: Array) -> None:
        """A volatile load: where programs run one by one, it sees what was released there."""
        if self._order is not None:
            self._order.atomic(self._number, places, "acquire")

    def _refuse_adders(self, places: Array, lanes: Accessing, kind: str) -> None:
        programs = lanes.programs
        first, last = self._first_adder[places], self._last_adder[places]
        foreign = (last != _NOBODY) & ((first != programs) | (last != programs))
        if foreign.any() and self._order is not None:
            for lane in np.flatnonzero(foreign).tolist():
                place = int(places[lane])
                foreign[lane] = not self._order.has_seen_atomics(self._number, place)
        if foreign.any():
            raise AccessConflict(
                kind, foreign, np.where(first != programs, first, last)
            )

    def count_changed(self) -> int:
        """How many elements somebody has written or changed."""
        changed = np.zeros(self._count, bool)
        if self._is_written:
            changed |= self._writer != _NOBODY
        if self._has_atomics:
            changed |= self._last_adder != _NOBODY
        return int(np.count_nonzero(changed))

    # order

    def _not_ordered(self, foreign: Array, programs: Array, times: Array) -> Array:
        """Those of foreign accesses that no atomic operation orders."""
        if self._order is None:
            return foreign
        return foreign & self._order.unseen(np.maximum(programs, 0), times)

    def _not_seen_readers(self, foreign: Array, places: Array) -> Array:
        """Those of foreign readers that no atomic operation orders before this program."""
        if self._order is None:
            return foreign
        unseen = np.zeros_like(foreign)
        for program, time, read in self._read_log:
            if self._order.unseen(np.array(program), time):
                unseen |= np.isin(places, read)
        return foreign & unseen


import functools
import math
from dataclasses import dataclass

import numpy as np


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
        self.size, self.shape, self.strides = (
            view.size,
            list(view.shape),
            list(view.strides),
        )
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
        return np.lib.stride_tricks.as_strided(
            values, self.shape, steps, writeable=True
        )

    def index_of(self, offset: int) -> tuple[list[int], int]:
        """The index of the element `offset` after the first, and what is left over between two
        elements.

        An element past the end is told as a row too many: rows are the last axis but one.
        """
        index, remainder, rows = (
            [0] * len(self.shape),
            int(offset),
            max(len(self.shape) - 2, 0),
        )
        for axis in sorted(
            range(len(self.shape)), key=lambda axis: -self.strides[axis]
        ):
            if self.strides[axis] and (axis == rows or self.shape[axis] > 1):
                steps = remainder // self.strides[axis]
                index[axis] = (
                    steps if axis == rows else max(0, min(steps, self.shape[axis] - 1))
                )
                remainder -= index[axis] * self.strides[axis]
        return index, remainder


import functools
import math

import numpy as np


_LANE_BITS = (
    32  # of a lane's number in its tile; the number of the tile's shape stands above
)


class Programs:
    """The programs that run at the same time.

    Attributes:
        numbers: each program's number in the launch, ascending.
        epochs: of all programs of the launch, how many barriers each has passed.
    """

    def __init__(
        self, numbers: Array, grid: tuple[int, int, int], epochs: Array
    ) -> None:
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
        self,
        among: Programs,
        shape: tuple[int, ...],
        on: Array | None,
        tile_number: int,
    ) -> None:
        self.among, self.shape, self.on, self._tile_number = (
            among,
            shape,
            on,
            tile_number,
        )
        self._epochs = among.epochs

    @functools.cached_property
    def programs(self) -> Array:
        """The program of each lane; they ascend."""
        numbers = self.among.numbers.reshape(-1, *(1,) * (len(self.shape) - 1))
        return self._selected(np.broadcast_to(numbers, self.shape))

    @functools.cached_property
    def keys(self) -> Array:
        """A number for each lane of a program; equal ones of two accesses mean one lane."""
        lanes = np.arange(math.prod(self.shape[1:]), dtype=np.int64)
        lanes += self._tile_number << _LANE_BITS
        return self._selected(
            np.broadcast_to(lanes.reshape(1, *self.shape[1:]), self.shape)
        )

    @functools.cached_property
    def epochs(self) -> Array:
        """How many barriers each lane's program has passed."""
        epochs: Array = self._epochs[self.programs]
        return epochs

    def _selected(self, values: Array) -> Array:
        return values.reshape(-1) if self.on is None else values[self.on]

    def part(self, which: Array) -> Lanes:
        """Those of the lanes that are in a mask."""
        part = Lanes(self.among, self.shape, self.on, self._tile_number)
        part.__dict__.update(
            programs=self.programs[which],
            keys=self.keys[which],
            epochs=self.epochs[which],
        )
        return part


from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np


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


import re
from dataclasses import dataclass, field


_NAME = r"%[\w$.-]+(?:#\d+)?"
_NAMES = re.compile(_NAME)
_OPERATION = re.compile(
    r"(?:(?P<results>%[\w$.-]+(?:, %[\w$.-]+)*)(?::(?P<count>\d+))? = )?"
    r'"?(?P<name>[a-z_]+\.[\w.]+)"?(?P<rest>.*)$'
)
_FUNCTION = re.compile(
    r'tt\.func (?P<scope>public|private)? ?@(?P<name>"[^"]*"|[\w$.]+)\('
)
_LABEL = re.compile(r"\^(\w+)")
_LOCATION_AT_END = re.compile(r" loc\((#loc\d*|unknown)\)$")
_ALIAS = re.compile(r"(#loc\d*) = loc\((.*)\)$")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_MOST_DEEP = 64
_MOST_RESULTS = 1024


@dataclass(slots=True)
class Operation:
    """One operation.

    Attributes:
        name: with its dialect, such as "arith.addf".
        results: names of the values that the operation makes.
        operands: names of the values that it takes. For a loop, the initial values of what it
            carries stand last.
        text: everything between the name and the types: operands and attributes.
        types: the types after the last colon.
        regions: the code inside, as a list of blocks each.
        location: the alias of the place in the source.
        carried: for a loop, the names in the body of what it carries; its counter first.
    """

    name: str
    results: list[str]
    operands: list[str]
    text: str
    types: str
    location: str
    regions: list[list[CodeBlock]] = field(default_factory=list)
    carried: list[str] = field(default_factory=list)

    def number(self, attribute: str) -> int | None:
        """An attribute that is a number, such as `axis = 1 : i32`."""
        match = re.search(rf"\b{attribute} = (-?\d+)", self.text)
        return int(match[1]) if match else None

    def numbers(self, attribute: str) -> list[int]:
        """An attribute that is a list, such as `order = array<i32: 1, 0>`; [] where it is not
        there.
        """
        match = re.search(
            rf"\b{attribute} = array<i(?:32|64)(?:: ([-\d, ]*))?>", self.text
        )
        return [int(part) for part in match[1].split(",")] if match and match[1] else []

    def word(self, attribute: str) -> str:
        """An attribute that is a word, such as `rounding = rtne`; "" where it is not there."""
        match = re.search(rf"\b{attribute} = ([\w.]+)", self.text)
        return match[1] if match else ""

    def result_types(self) -> list[str]:
        """The types of the results, as the text has them after an arrow, or else the last type."""
        _, arrow, after = self.types.rpartition(" -> ")
        if not arrow:
            _, arrow, after = self.types.rpartition(" to ")
        text = after if arrow else self.types
        return split_types(text.strip().removeprefix("(").removesuffix(")"))


@dataclass(slots=True)
class CodeBlock:
    """Operations without a jump into their middle.

    Attributes:
        arguments: names of the values that a jump to this block hands over.
        types: the types of the arguments.
    """

    label: str
    arguments: list[str]
    types: list[str]
    operations: list[Operation]


@dataclass(slots=True)
class Function:
    """A function; its first block's arguments are the function's."""

    name: str
    is_public: bool
    blocks: list[CodeBlock]


@dataclass(slots=True)
class Module:
    """A kernel and the functions that it calls.

    Attributes:
        kernel: the public function.
        functions: all functions, by name.
    """

    kernel: Function
    functions: dict[str, Function]
    _aliases: dict[str, str]

    def place(self, location: str) -> SourcePlace | None:
        """The student's place that an operation comes from: of a function of Triton's library,
        the line that called it.
        """
        places = self._places(self._aliases.get(location, ""), 0)
        own = [place for place in places if not _is_library(place.file)]
        return next(iter(own or places), None)

    def _places(self, text: str, depth: int) -> list[SourcePlace]:
        """All places of a location, the innermost call first."""
        if depth > _MOST_DEEP:
            return []
        if match := re.fullmatch(r"(#loc\d*)", text):
            return self._places(self._aliases.get(text, ""), depth + 1)
        if match := re.fullmatch(r'"([^"]*)":(\d+):\d+', text):
            return [SourcePlace(match[1], int(match[2]))]
        if match := re.fullmatch(r"callsite\((.*) at (.*)\)", text):
            return self._places(match[1], depth + 1) + self._places(match[2], depth + 1)
        if match := re.fullmatch(r'"([^"]*)"\((.*)\)', text):
            places = self._places(match[2], depth + 1)
            return [SourcePlace(p.file, p.line, p.variable or match[1]) for p in places]
        if match := re.match(r"fused(?:<.*?>)?\[(.*)\]", text):
            return self._places(match[1].split(", ")[0], depth + 1)
        return []


def _is_library(file: str) -> bool:
    return "/triton/language/" in file or "/triton/experimental/" in file


def split_types(text: str) -> list[str]:
    """Types that commas separate; commas inside of angle brackets separate none."""
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        if letter in "<([":
            depth += 1
        elif (
            letter == ")" or letter == "]" or (letter == ">" and text[place - 1] != "-")
        ):
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(text[start:place].strip())
            start = place + 1
    parts.append(text[start:].strip())
    return [part for part in parts if part]


def read_module(text: str) -> Module:
    """Read a text as `module.str()` prints it.

    Raises:
        Unreadable: the text is not TTIR.
    """
    aliases = {}
    lines = []
    for raw in text.splitlines():
        line = raw.strip()
        if match := _ALIAS.match(line):
            aliases[match[1]] = match[2]
        elif line:
            lines.append(line)
    functions = {}
    reader = _Reader(lines)
    while not reader.at_end:
        line = reader.next_line()
        if line.startswith("tt.func"):
            function = reader.read_function(line)
            functions[function.name] = function
    kernels = [function for function in functions.values() if function.is_public]
    if len(kernels) != 1:
        raise Unreadable(f"a text with {len(kernels)} kernels, and not one")
    return Module(kernels[0], functions, aliases)


class _Reader:
    """Goes through the lines of a text."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._next = 0
        self._depth = 0

    @property
    def at_end(self) -> bool:
        return self._next >= len(self._lines)

    def next_line(self) -> str:
        if self.at_end:
            raise Unreadable("the text ends in the middle")
        self._next += 1
        return self._lines[self._next - 1]

    def read_function(self, line: str) -> Function:
        match = _FUNCTION.match(line)
        if match is None:
            raise Unreadable(f"no function: {line[:80]}")
        names, types = _read_arguments(line[match.end() :])
        blocks, _ = self._read_region(names, types)
        return Function(match["name"].strip('"'), match["scope"] != "private", blocks)

    def _read_region(
        self, names: list[str], types: list[str]
    ) -> tuple[list[CodeBlock], str]:
        """The blocks up to the region's end, and the line that ends it."""
        self._depth += 1
        if self._depth > _MOST_DEEP:
            raise Unreadable("regions in regions, too many")
        blocks = [CodeBlock("bb0", names, types, [])]
        while True:
            line = self.next_line()
            if line.startswith("}"):
                self._depth -= 1
                return blocks, line
            if line.startswith("^"):
                block = _read_label(line)
                if blocks[-1].operations or len(blocks) > 1:
                    blocks.append(block)
                else:
                    blocks[0] = block  # a region may name its first block
            else:
                blocks[-1].operations.append(self._read_operation(line))

    def _read_operation(self, line: str) -> Operation:
        line, location = _without_location(line)
        match = _OPERATION.match(line)
        if match is None:
            raise Unreadable(f"no operation: {line[:80]}")
        rest = match["rest"].strip()
        opens = rest.endswith("{")
        text, types = _split_types_off(rest.removesuffix("{").strip(), match["name"])
        operation = Operation(
            match["name"],
            _result_names(match["results"], match["count"]),
            [],
            text,
            types,
            location,
        )
        operation.operands = _NAMES.findall(_STRING.sub('""', text))
        if operation.name == "scf.for":
            _split_for(operation)
        elif operation.name == "scf.while":
            _split_while(operation)
        while opens:
            blocks, line = self._read_region([], [])
            line, end = _without_location(line)
            operation.location = end or operation.location
            operation.regions.append(blocks)
            opens = line.endswith("{")
            if " : " in line:
                operation.types = line.split(" : ", 1)[1]
        return operation


def _result_names(name: str | None, count: str | None) -> list[str]:
    if name is None:
        return []
    if count is None:
        return name.split(", ")
    if int(count) > _MOST_RESULTS:
        raise Unreadable(f"an operation with {count} results")
    return [f"{name}#{number}" for number in range(int(count))]


def _without_location(line: str) -> tuple[str, str]:
    match = _LOCATION_AT_END.search(line)
    return (line[: match.start()], match[1]) if match else (line, "")


def _split_types_off(rest: str, name: str) -> tuple[str, str]:
    """Operands and attributes, and the types behind them."""
    if name in ("cf.br", "cf.cond_br"):  # types stand beside each list of arguments
        return rest, ""
    if name == "scf.for":
        return rest, ""
    if name == "scf.if":
        text, _, types = rest.partition(" -> ")
        return text, types
    if rest.startswith(": "):  # nothing but a type
        return "", rest[2:]
    bare = _STRING.sub(lambda match: "\0" * len(match[0]), rest)
    place = bare.rfind(" : ")
    depth_after = bare[place:].count("}") - bare[place:].count("{")
    if place < 0 or depth_after > 0:  # a colon of an attribute's type
        return rest, ""
    if name == "scf.while":
        place = bare.find(" : ")
    return rest[:place], rest[place + 3 :]


def _split_for(operation: Operation) -> None:
    """`%i = %low to %high step %step iter_args(%a = %b) -> (...)`."""
    head, _, carried = operation.text.partition("iter_args(")
    counter, *bounds = _NAMES.findall(head)
    pairs = re.findall(rf"({_NAME}) = ({_NAME})", carried)
    operation.carried = [counter, *(name for name, _ in pairs)]
    operation.operands = [*bounds, *(initial for _, initial in pairs)]
    if len(bounds) != 3:
        raise Unreadable(f"no loop: {operation.text[:80]}")


def _split_while(operation: Operation) -> None:
    pairs = re.findall(rf"({_NAME}) = ({_NAME})", operation.text)
    operation.carried = [name for name, _ in pairs]
    operation.operands = [initial for _, initial in pairs]


def _read_label(line: str) -> CodeBlock:
    """`^bb1(%a: f32 loc(...), %b: i32):  // pred: ^bb0`."""
    match = _LABEL.match(line)
    if match is None:
        raise Unreadable(f"no label: {line[:80]}")
    rest = line[match.end() :]
    names, types = _read_arguments(rest[1:]) if rest.startswith("(") else ([], [])
    return CodeBlock(match[1], names, types, [])


def _read_arguments(text: str) -> tuple[list[str], list[str]]:
    """Names and types of the arguments in a list that ends with the closing parenthesis."""
    inside = split_types(_up_to_closing(text))
    names, types = [], []
    for part in inside:
        name, _, kind = part.partition(": ")
        names.append(name.strip())
        types.append(
            re.sub(
                r" (loc\(.*\)|\{.*\})$", "", re.sub(r" loc\(.*\)$", "", kind)
            ).strip()
        )
    return names, types


def _up_to_closing(text: str) -> str:
    depth = 1
    quoted = False
    for place, letter in enumerate(text):
        if letter == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif letter == "(":
            depth += 1
        elif letter == ")":
            depth -= 1
            if depth == 0:
                return text[:place]
    raise Unreadable(f"a list without end: {text[:80]}")


def jump_targets(operation: Operation) -> list[tuple[str, list[str]]]:
    """The blocks that a jump may go to, each with the names of the values handed over."""
    targets = re.findall(r"\^(\w+)(?:\(([^:)]*)[^)]*\))?", operation.text)
    return [(label, _NAMES.findall(arguments)) for label, arguments in targets]


import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np


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


from collections.abc import Sequence

import numpy as np


_MOST_IDLE_TURNS = 1000
"""Turns of a loop that change no memory and no value: it waits for another program."""


class WaitsForever(KernelFault):
    """A program waits for another one, which does not run before this one has ended."""


def find_control_step(operation: Operation, types: Translation) -> Step | None:
    """The step of a loop or a branch; None for any other operation."""
    finder = _CONTROL_FINDERS.get(operation.name)
    return None if finder is None else finder(operation, types)


def _only_block(operation: Operation, region: int) -> CodeBlock:
    if len(operation.regions) <= region or len(operation.regions[region]) != 1:
        raise Unreadable(f"{operation.name} with jumps inside")
    return operation.regions[region][0]


def _body(
    operation: Operation, region: int, types: Translation
) -> tuple[Code, list[str]]:
    """The code of a region, and the names of the values that it yields."""
    block = _only_block(operation, region)
    operations = block.operations
    if operations and operations[-1].name == "scf.yield":
        return types.code(operations[:-1]), operations[-1].operands
    return types.code(operations), []


# loops


def _for(operation: Operation, types: Translation) -> Step:
    low, high, by, *initial = operation.operands
    counter, *carried = operation.carried
    types.types[counter] = types.type_of(low)
    for name, start in zip(carried, initial, strict=True):
        types.types[name] = types.type_of(start)
    code, yielded = _body(operation, 0, types)
    results = operation.results
    unsigned = operation.text.startswith("unsigned")
    if unsigned:
        raise Unreadable("a loop over unsigned numbers has no meaning here")

    def loop(frame: ProgramFrame) -> None:
        values = frame.values
        bounds = [values[name] for name in (low, high, by)]
        state = [values[name] for name in initial]
        if all(_is_uniform(bound, frame.active) for bound in bounds):
            state = uniform(
                frame, [_first(bound, frame.active) for bound in bounds], state
            )
        else:
            state = diverging(frame, bounds, state)
        values.update(zip(results, state, strict=True))

    def uniform(
        frame: ProgramFrame, bounds: list[int], state: list[Value]
    ) -> list[Value]:
        values = frame.values
        kind = values[low].dtype
        start, stop, stride = bounds
        if stride <= 0:
            raise KernelFault(f"a loop with a step of {stride}")
        for number in range(start, stop, stride):
            values[counter] = np.array([number], kind)
            values.update(zip(carried, state, strict=True))
            code.run(frame)
            state = [values[name] for name in yielded]
        return state

    def diverging(
        frame: ProgramFrame, bounds: list[Array], state: list[Value]
    ) -> list[Value]:
        values, outer = frame.values, frame.active
        number, stop, stride = (frame.of_all(bound) for bound in bounds)
        try:
            while True:
                running = number < stop if outer is None else (number < stop) & outer
                if not running.any():
                    return state
                frame.active = None if running.all() else running
                values[counter] = number
                values.update(zip(carried, state, strict=True))
                code.run(frame)
                state = [
                    merge(running, values[name], old)
                    for name, old in zip(yielded, state, strict=True)
                ]
                number = np.where(running, number + stride, number)
        finally:
            frame.active = outer

    return loop


def _is_uniform(value: Array, active: Array | None) -> bool:
    if len(value) == 1:
        return True
    own = value if active is None else value[active]
    return bool((own == own[0]).all()) if len(own) else True


def _first(value: Array, active: Array | None) -> int:
    if len(value) == 1 or active is None:
        return int(value[0])
    return int(value[np.argmax(active)])


def _while(operation: Operation, types: Translation) -> Step:
    for name, start in zip(operation.carried, operation.operands, strict=True):
        types.types[name] = types.type_of(start)
    before = _only_block(operation, 0)
    after = _only_block(operation, 1)
    if not before.operations or before.operations[-1].name != "scf.condition":
        raise Unreadable("a loop without a condition")
    condition, *handed_over = before.operations[-1].operands
    test = types.code(before.operations[:-1])
    types.declare(after)
    code, yielded = _body(operation, 1, types)
    carried, initial, results = operation.carried, operation.operands, operation.results

    def loop(frame: ProgramFrame) -> None:
        values, outer = frame.values, frame.active
        running = np.ones(len(frame.programs), bool) if outer is None else outer.copy()
        state = [values[name] for name in initial]
        outputs: list[Value] | None = None
        idle = _IdleTurns(frame)
        try:
            while True:
                frame.active = None if running.all() else running
                values.update(zip(carried, state, strict=True))
                test.run(frame)
                goes_on = frame.of_all(values[condition])
                outputs = _merged(
                    running, [values[name] for name in handed_over], outputs
                )
                running = running & goes_on
                if not running.any():
                    break
                frame.active = None if running.all() else running
                values.update(zip(after.arguments, outputs, strict=True))
                code.run(frame)
                new = [values[name] for name in yielded]
                idle.note(state, new)
                state = _merged(running, new, state)
        finally:
            frame.active = outer
        values.update(zip(results, outputs, strict=True))

    return loop


def _merged(mask: Array, new: list[Value], old: list[Value] | None) -> list[Value]:
    if old is None or mask.all():
        return new
    return [merge(mask, a, b) for a, b in zip(new, old, strict=True)]


class _IdleTurns:
    """Notices a loop whose turns change nothing: it waits for another program."""

    def __init__(self, frame: ProgramFrame) -> None:
        self._memory, self._changes, self._turns = frame.memory, frame.memory.changes, 0

    def note(self, old: list[Value], new: list[Value]) -> None:
        is_same = self._memory.changes == self._changes and all(
            isinstance(a, np.ndarray) and np.array_equal(a, b)
            for a, b in zip(old, new, strict=True)
        )
        self._changes = self._memory.changes
        self._turns = self._turns + 1 if is_same else 0
        if self._turns > _MOST_IDLE_TURNS:
            raise WaitsForever(
                "a loop waits for another program, and nothing promises that both run at the "
                "same time"
            )


# branches


def _if(operation: Operation, types: Translation) -> Step:
    (condition,) = operation.operands
    branches = [
        _body(operation, region, types) for region in range(len(operation.regions))
    ]
    results = operation.results

    def branch(frame: ProgramFrame) -> None:
        values, outer = frame.values, frame.active
        chosen = values[condition]
        outputs: list[list[Value] | None] = []
        try:
            for takes, (code, yielded) in zip(
                (chosen, ~chosen), branches, strict=False
            ):
                if not takes.any():
                    outputs.append(None)
                    continue
                frame.active = outer
                if not takes.all():
                    frame.active = frame.only(frame.of_all(takes))
                    if frame.active is not None and not frame.active.any():
                        outputs.append(None)
                        continue
                code.run(frame)
                outputs.append([values[name] for name in yielded])
        finally:
            frame.active = outer
        if results:
            values.update(zip(results, _either(chosen, outputs), strict=True))

    return branch


def _either(chosen: Array, outputs: Sequence[list[Value] | None]) -> list[Value]:
    first, second = outputs
    if first is None or second is None:
        return first if first is not None else second or []
    return [merge(chosen, a, b) for a, b in zip(first, second, strict=True)]


def _select_value(operation: Operation, types: Translation) -> Step:
    (result,), (condition, first, second) = operation.results, operation.operands

    def step(frame: ProgramFrame) -> None:
        values = frame.values
        chosen, a, b = values[condition], values[first], values[second]
        if isinstance(a, np.ndarray):
            ndim = max(a.ndim, b.ndim)
            mask = chosen if chosen.ndim == ndim else spread(chosen, ndim)
            values[result] = np.where(mask, a, b)
        else:
            values[result] = merge(frame.of_all(chosen), a, b)

    return step


# functions


class FunctionCode:
    """A function: its blocks, and the way through them.

    Where programs jump to different blocks, the first of the blocks in the text runs first, with
    the programs that wait before it.
    """

    def __init__(self, function: Function, types: Translation) -> None:
        self.arguments = function.blocks[0].arguments
        self._numbers = {
            block.label: number for number, block in enumerate(function.blocks)
        }
        self._blocks: list[tuple[CodeBlock, Code, Operation]] = []
        for block in function.blocks:
            types.declare(block)
        for block in function.blocks:
            if not block.operations:
                raise Unreadable(f"a function {function.name[:40]} with an empty block")
            *body, last = block.operations
            self._blocks.append((block, types.code(body), last))

    def run(self, frame: ProgramFrame) -> None:
        """Run the function. The frame holds its arguments."""
        if len(self._blocks) == 1:
            _, code, last = self._blocks[0]
            code.run(frame)
            self._return(frame, last)
            return
        outer = frame.active
        waiting = np.full(len(frame.programs), -1)
        waiting[slice(None) if outer is None else outer] = 0
        try:
            while (waiting >= 0).any():
                number = int(waiting[waiting >= 0].min())
                here = waiting == number
                frame.active = None if here.all() else here
                self._run_block(frame, number, here, waiting)
        finally:
            frame.active = outer

    def _run_block(
        self, frame: ProgramFrame, number: int, here: Array, waiting: Array
    ) -> None:
        _, code, last = self._blocks[number]
        kept = {} if here.all() else dict(frame.values)
        code.run(frame)
        if (
            kept
        ):  # programs elsewhere keep the values that they have from an earlier turn
            for name, old in kept.items():
                new = frame.values[name]
                if new is not old and getattr(new, "ndim", 0) == getattr(
                    old, "ndim", 0
                ):
                    frame.values[name] = merge(here, new, old)
        if last.name == "tt.return":
            self._return(frame, last)
            waiting[here] = -1
            return
        targets = jump_targets(last)
        if last.name == "cf.br" and len(targets) == 1:
            self._jump(frame, targets[0], here, waiting)
        elif last.name == "cf.cond_br" and len(targets) == 2:
            condition = frame.of_all(frame.values[last.operands[0]])
            self._jump(frame, targets[0], here & condition, waiting)
            self._jump(frame, targets[1], here & ~condition, waiting)
        else:
            raise Unreadable(f"no jump: {last.name}")

    def _jump(
        self,
        frame: ProgramFrame,
        target: tuple[str, list[str]],
        goes: Array,
        waiting: Array,
    ) -> None:
        if not goes.any():
            return
        label, names = target
        number = self._numbers.get(label)
        if number is None:
            raise Unreadable(f"a jump to {label[:20]}, which is nowhere")
        arguments = self._blocks[number][0].arguments
        handed_over = [frame.values[name] for name in names]
        for name, new in zip(arguments, handed_over, strict=True):
            old = frame.values.get(name)
            everybody = old is None or goes.all()
            frame.values[name] = new if everybody else merge(goes, new, old)
        waiting[goes] = number

    def _return(self, frame: ProgramFrame, last: Operation) -> None:
        new = [frame.values[name] for name in last.operands]
        if frame.returned and frame.active is not None:
            new = [
                merge(frame.active, a, b)
                for a, b in zip(new, frame.returned, strict=True)
            ]
        frame.returned = new


def make_call(operation: Operation, functions: dict[str, FunctionCode]) -> Step:
    """The step of a call of a function that was not inlined."""
    symbol = operation.text.removeprefix("@").split("(")[0].strip('"')
    if operation.text.startswith('@"'):
        symbol = operation.text[2:].partition('"')[0]
    sources, results = operation.operands, operation.results

    def call(frame: ProgramFrame) -> None:
        function = functions.get(symbol)
        if function is None:
            raise Unreadable(f"a call of {symbol[:40]}, which is nowhere")
        arguments = [frame.values[name] for name in sources]
        inner = ProgramFrame(
            frame.programs,
            frame.memory,
            frame.counts,
            frame.budget,
            dict(zip(function.arguments, arguments, strict=True)),
            frame.active,
        )
        function.run(inner)
        frame.values.update(zip(results, inner.returned, strict=True))

    return call


_CONTROL_FINDERS = {
    "scf.for": _for,
    "scf.while": _while,
    "scf.if": _if,
    "arith.select": _select_value,
}


import math
from collections.abc import Callable
from typing import Any

import numpy as np


def _one_by_one(function: Callable[..., float], arity: int = 1) -> Callable[..., Array]:
    """A function of Python's, for each element; where Python raises, a GPU gives NaN."""

    def guarded(*values: float) -> float:
        try:
            return function(*values)
        except (ValueError, OverflowError, ZeroDivisionError):
            return math.nan

    universal = np.frompyfunc(guarded, arity, 1)
    return lambda *values: np.asarray(universal(*values)).astype(np.float64)


def _float_functions() -> dict[str, Callable[..., Any]]:
    """Functions of floating point numbers, under the names that they have for float64."""
    pi = math.pi
    return {
        "abs": np.abs,
        "acos": np.arccos,
        "acosh": np.arccosh,
        "asin": np.arcsin,
        "asinh": np.arcsinh,
        "atan": np.arctan,
        "atan2": np.arctan2,
        "atanh": np.arctanh,
        "cbrt": np.cbrt,
        "ceil": np.ceil,
        "copysign": np.copysign,
        "cos": np.cos,
        "cosh": np.cosh,
        "cospi": lambda x: np.cos(pi * x.astype(np.float64)),
        "erf": _one_by_one(math.erf),
        "erfc": _one_by_one(math.erfc),
        "exp": np.exp,
        "exp10": lambda x: np.power(10.0, x.astype(np.float64)),
        "exp2": np.exp2,
        "expm1": np.expm1,
        "fabs": np.abs,
        "fdim": lambda x, y: np.where(
            x > y, x - y, np.where(np.isnan(x + y), np.nan, 0)
        ),
        "floor": np.floor,
        "fma": lambda x, y, z: x.astype(np.float64) * y + z,
        "fmax": np.fmax,
        "fmin": np.fmin,
        "fmod": np.fmod,
        "hypot": np.hypot,
        "ldexp": np.ldexp,
        "lgamma": _one_by_one(math.lgamma),
        "log": np.log,
        "log10": np.log10,
        "log1p": np.log1p,
        "log2": np.log2,
        "logb": lambda x: np.floor(np.log2(np.abs(x))),
        "nearbyint": np.rint,
        "nextafter": np.nextafter,
        "normcdf": _one_by_one(lambda x: 0.5 * math.erfc(-x / math.sqrt(2))),
        "pow": np.power,
        "powi": np.power,
        "rcbrt": lambda x: 1 / np.cbrt(x),
        "remainder": _one_by_one(math.remainder, 2),
        "rhypot": lambda x, y: 1 / np.hypot(x, y),
        "rint": np.rint,
        "round": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
        "rsqrt": lambda x: 1 / np.sqrt(x),
        "scalbn": np.ldexp,
        "sin": np.sin,
        "sinh": np.sinh,
        "sinpi": lambda x: np.sin(pi * x.astype(np.float64)),
        "sqrt": np.sqrt,
        "tan": np.tan,
        "tanh": np.tanh,
        "tgamma": _one_by_one(math.gamma),
        "trunc": np.trunc,
    }


_ROUNDED_TO_NEAREST: dict[str, Callable[..., Any]] = {
    "add_rn": np.add,
    "sub_rn": np.subtract,
    "mul_rn": np.multiply,
    "div_rn": np.divide,
    "sqrt_rn": np.sqrt,
    "rcp_rn": lambda x: 1 / x,
}
_FAST = ("exp", "exp10", "log", "log2", "log10", "sin", "cos", "tan", "pow", "tanh")


def _popcount(values: Array) -> Array:
    bits = np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}")
    return np.asarray(np.bitwise_count(bits))


def _leading_zeros(values: Array) -> Array:
    """Zeros before the first bit that is set, as `clz` counts them."""
    bits = 8 * values.dtype.itemsize
    lengths = np.frompyfunc(
        lambda value: bits - (int(value) % (1 << bits)).bit_length(), 1, 1
    )
    return np.asarray(lengths(values)).astype(np.int32)


def _first_set(values: Array) -> Array:
    """The place of the lowest bit that is set, from 1; 0 where none is."""
    lowest = np.frompyfunc(lambda value: (int(value) & -int(value)).bit_length(), 1, 1)
    return np.asarray(lowest(values)).astype(np.int32)


def _all_functions() -> dict[str, Callable[..., Any]]:
    functions: dict[str, Callable[..., Any]] = {}
    for name, function in _float_functions().items():
        functions[name] = functions[f"{name}f"] = function
    for name in _FAST:
        functions[f"fast_{name}f"] = functions[name]
    functions["fast_fdividef"] = np.divide
    for name, function in _ROUNDED_TO_NEAREST.items():
        functions[f"f{name}"] = functions[f"d{name}"] = function
    functions["fmaf_rn"] = functions["fma_rn"] = functions["fma"]
    tests = {
        "isnan": np.isnan,
        "isinf": np.isinf,
        "signbit": np.signbit,
        "finite": np.isfinite,
    }
    for name, test in tests.items():
        for suffix in ("f", "d", ""):
            functions[f"{name}{suffix}"] = test
    functions["isfinited"] = np.isfinite
    for suffix in ("", "ll"):
        functions[f"popc{suffix}"] = _popcount
        functions[f"clz{suffix}"] = _leading_zeros
        functions[f"ffs{suffix}"] = _first_set
    functions["abs"] = functions["llabs"] = functions["fabsf"] = np.abs
    return functions


FUNCTIONS = _all_functions()
"""By their names in libdevice without `__nv_`."""


import math
from collections.abc import Callable
from typing import Any

import numpy as np


Elementwise = Callable[..., Array]


def as_unsigned(values: Array) -> Array:
    """Signless integers, read as unsigned ones."""
    if values.dtype.kind != "i":
        return values
    return np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}")


def _on_unsigned(function: Elementwise) -> Elementwise:
    def apply(a: Array, b: Array) -> Array:
        result = function(as_unsigned(a), as_unsigned(b))
        return result.view(a.dtype) if a.dtype.kind == "i" else result

    return apply


def _compare_unsigned(function: Elementwise) -> Elementwise:
    return lambda a, b: function(as_unsigned(a), as_unsigned(b))


def _signed(values: Array) -> Array:
    """Integers as signed ones: of one bit, True is -1."""
    return -values.astype(np.int8) if values.dtype.kind == "b" else values


def _compare_signed(function: Elementwise) -> Elementwise:
    return lambda a, b: function(_signed(a), _signed(b))


def _divide(a: Array, b: Array) -> Array:
    """Rounded towards zero, as hardware divides; numpy rounds down."""
    quotient = a // b
    inexact = (a - quotient * b) != 0
    return np.where(inexact & ((a < 0) != (b < 0)), quotient + 1, quotient).astype(
        a.dtype
    )


def _remainder(a: Array, b: Array) -> Array:
    return np.fmod(a, b)


def _ceil_divide(a: Array, b: Array) -> Array:
    quotient = _divide(a, b)
    exceeds = (a - quotient * b != 0) & ((a < 0) == (b < 0))
    return np.asarray(quotient + exceeds, a.dtype)


def _shift(function: Elementwise) -> Elementwise:
    """A shift by as many bits as the number has, or more, gives 0 or the sign."""

    def apply(a: Array, b: Array) -> Array:
        bits = 8 * a.dtype.itemsize
        within = as_unsigned(b) < bits
        shifted = function(a, np.where(within, b, 0).astype(b.dtype))
        beyond = np.where(a < 0, -1, 0) if function is np.right_shift else 0
        return np.where(within, shifted, beyond).astype(a.dtype)

    return apply


def multiply_high(a: Array, b: Array) -> Array:
    """The upper half of the product of two unsigned integers."""
    bits = 8 * a.dtype.itemsize
    wide_a, wide_b = as_unsigned(a), as_unsigned(b)
    if bits <= 32:
        product = wide_a.astype(np.uint64) * wide_b.astype(np.uint64)
        return (product >> np.uint64(bits)).astype(wide_a.dtype).view(a.dtype)
    low = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    low_a, high_a, low_b, high_b = (
        wide_a & low,
        wide_a >> half,
        wide_b & low,
        wide_b >> half,
    )
    middle = high_a * low_b + (low_a * low_b >> half)
    cross = (middle & low) + low_a * high_b
    product = high_a * high_b + (middle >> half) + (cross >> half)
    return np.asarray(product).view(a.dtype)


_INTEGERS: dict[str, Elementwise] = {
    "addi": np.add,
    "subi": np.subtract,
    "muli": np.multiply,
    "andi": np.bitwise_and,
    "ori": np.bitwise_or,
    "xori": np.bitwise_xor,
    "divsi": _divide,
    "remsi": _remainder,
    "ceildivsi": _ceil_divide,
    "floordivsi": np.floor_divide,
    "maxsi": np.maximum,
    "minsi": np.minimum,
    "shrsi": _shift(np.right_shift),
    "shli": _shift(np.left_shift),
    "divui": _on_unsigned(np.floor_divide),
    "remui": _on_unsigned(np.remainder),
    "ceildivui": _on_unsigned(lambda a, b: a // b + (a % b != 0).astype(a.dtype)),
    "maxui": _on_unsigned(np.maximum),
    "minui": _on_unsigned(np.minimum),
    "shrui": _on_unsigned(_shift(np.right_shift)),
}
_FLOATS: dict[str, Elementwise] = {
    "addf": np.add,
    "subf": np.subtract,
    "mulf": np.multiply,
    "divf": np.divide,
    "remf": np.fmod,
    "negf": np.negative,
    "maxnumf": np.fmax,
    "minnumf": np.fmin,
    "maximumf": np.maximum,
    "minimumf": np.minimum,
}
_ERF: Callable[[Array], Array] = np.frompyfunc(math.erf, 1, 1)
_MATHEMATICS: dict[str, Elementwise] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "tanh": np.tanh,
    "erf": lambda x: np.asarray(_ERF(x)).astype(x.dtype),
    "absf": np.abs,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
    "roundeven": np.rint,
    "powf": np.power,
    "copysign": np.copysign,
    "exp10": lambda x: np.power(x.dtype.type(10), x),
    "log10": np.log10,
    "log1p": np.log1p,
    "expm1": np.expm1,
    "atan2": np.arctan2,
}
_COMPARE_INTEGERS: dict[str, Elementwise] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "slt": _compare_signed(np.less),
    "sle": _compare_signed(np.less_equal),
    "sgt": _compare_signed(np.greater),
    "sge": _compare_signed(np.greater_equal),
    "ult": _compare_unsigned(np.less),
    "ule": _compare_unsigned(np.less_equal),
    "ugt": _compare_unsigned(np.greater),
    "uge": _compare_unsigned(np.greater_equal),
}


def _unordered(a: Array, b: Array) -> Array:
    return np.isnan(a) | np.isnan(b)


_COMPARE_FLOATS: dict[str, Elementwise] = {
    "oeq": np.equal,
    "one": lambda a, b: (a != b) & ~_unordered(a, b),
    "olt": np.less,
    "ole": np.less_equal,
    "ogt": np.greater,
    "oge": np.greater_equal,
    "ueq": lambda a, b: (a == b) | _unordered(a, b),
    "une": np.not_equal,
    "ult": lambda a, b: ~(a >= b),
    "ule": lambda a, b: ~(a > b),
    "ugt": lambda a, b: ~(a <= b),
    "uge": lambda a, b: ~(a < b),
    "uno": _unordered,
    "ord": lambda a, b: ~_unordered(a, b),
}


def find_elementwise(
    operation: Operation, sources: list[ElementType], target: ElementType
) -> Elementwise | None:
    """The function of an operation that works element by element; None for any other operation.

    Args:
        sources: the element types of the operands.
        target: the element type of the result.

    Raises:
        Unreadable: the operation is of this kind, and unknown.
    """
    dialect, _, short = operation.name.partition(".")
    if dialect == "arith":
        return _find_arith(operation, short, sources, target)
    if dialect == "math":
        return _find_math(short, target)
    if short == "bitcast":
        return _bitcast(sources[0], target)
    return _find_tt(operation, short, target)


def _find_arith(
    operation: Operation, short: str, sources: list[ElementType], target: ElementType
) -> Elementwise | None:
    if short in _INTEGERS:
        function = _INTEGERS[short]
        if target.kind == "bool":
            return lambda a, b: function(a, b) != 0
        return function
    if short in _FLOATS:
        return _rounded(_FLOATS[short], target)
    if short in ("cmpi", "cmpf"):
        table = _COMPARE_INTEGERS if short == "cmpi" else _COMPARE_FLOATS
        return table.get(operation.text.split(",")[0].split()[0])
    if short == "bitcast":
        return _bitcast(sources[0], target)
    return _find_conversion(operation, short, target)


def _rounded(function: Elementwise, target: ElementType) -> Elementwise:
    """A function of floating point numbers, rounded to the type of its result."""
    if target.name in ("f32", "f64"):
        return function
    if target.name == "f16":
        # numpy computes one operation of float16 in float32 and rounds, like the hardware
        return lambda *values: function(*values).astype(np.float16)
    finish = rounder(target)
    return lambda *values: finish(function(*values))


def _find_conversion(
    operation: Operation, short: str, target: ElementType
) -> Elementwise | None:
    if short in ("extf", "truncf"):
        return rounder(target, toward_zero="toward_zero" in operation.text)
    if short in ("sitofp", "uitofp"):
        finish = rounder(target)
        read = _signed if short == "sitofp" else as_unsigned
        return lambda values: finish(_exactly(read(values)))
    if short in ("fptosi", "fptoui"):
        return lambda values: _to_integer(values, target, signed=short == "fptosi")
    if short in ("extsi", "index_cast"):
        return lambda values: _signed(values).astype(target.array)
    if short in ("extui", "index_castui"):
        return lambda values: as_unsigned(values).astype(target.array)
    if short == "trunci":
        if target.kind == "bool":
            return lambda values: values & 1 != 0
        return lambda values: values.astype(target.array)
    return None


def _exactly(integers: Array) -> Array:
    """Integers as floating point numbers, exact up to 53 bits."""
    return integers.astype(np.float64)


def _to_integer(values: Array, target: ElementType, *, signed: bool) -> Array:
    """Rounded towards zero, and to the nearest integer that the type holds: `cvt.rzi` does so."""
    if target.kind == "bool":
        return np.asarray(np.trunc(values) != 0)
    limits = np.iinfo(target.array if signed else target.stored)
    whole = np.nan_to_num(np.trunc(values.astype(np.float64)), nan=0.0)
    too_large = whole >= float(limits.max)
    inside = np.clip(np.where(too_large, 0.0, whole), float(limits.min), None)
    result = np.where(too_large, limits.max, inside.astype(limits.dtype))
    return result.astype(limits.dtype).view(target.array)


def _find_math(short: str, target: ElementType) -> Elementwise | None:
    if short == "absi":
        return np.abs
    if short == "fma":
        return _rounded(_fused_multiply_add, target)
    function = _MATHEMATICS.get(short)
    return None if function is None else _rounded(function, target)


def _fused_multiply_add(a: Array, b: Array, c: Array) -> Array:
    """a * b + c, rounded once."""
    if a.dtype == np.float64:
        return a * b + c
    exact = a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)
    return exact.astype(a.dtype)


def _find_tt(
    operation: Operation, short: str, target: ElementType
) -> Elementwise | None:
    if short == "fp_to_fp":
        return rounder(target, toward_zero=operation.word("rounding") == "rtz")
    if short == "clampf":
        propagates = operation.word("propagateNan") == "all"
        low, high = (np.maximum, np.minimum) if propagates else (np.fmax, np.fmin)
        return lambda x, least, most: high(low(x, least), most)
    if short == "precise_sqrt":
        return np.sqrt
    if short == "precise_divf":
        return np.divide
    if short == "mulhiui":
        return multiply_high
    if short == "extern_elementwise":
        return _find_extern(operation, target)
    return None


def _find_extern(operation: Operation, target: ElementType) -> Elementwise:
    """A function of NVIDIA's library libdevice."""
    symbol = operation.text.partition('symbol = "')[2].partition('"')[0]
    function = FUNCTIONS.get(symbol.removeprefix("__nv_"))
    if function is None:
        raise Unreadable(
            f"libdevice's {symbol} has no meaning on a CPU: use a function of tl"
        )
    return lambda *values: np.asarray(function(*values)).astype(target.array)


def _bitcast(source: ElementType, target: ElementType) -> Elementwise:
    if source.kind == target.kind == "pointer":
        return lambda values: values
    if "bool" in (source.kind, target.kind):
        return lambda values: values.astype(target.array)
    if source.name == target.name:
        return lambda values: values
    return lambda values: from_bits(to_bits(values, source), target)


def constant(text: str, shape: tuple[int, ...], element: ElementType) -> Array:
    """The value of `arith.constant`, [1, *shape].

    Raises:
        Unreadable: the text is no number.
    """
    written = text.strip().removeprefix("dense<").removesuffix(">").strip('"')
    if written in ("true", "false"):
        value: Any = np.bool_(written == "true")
    elif written.startswith("0x"):
        value = from_bits(np.array(int(written, 16), element.stored), element)
    else:
        try:
            value = _number(written, element)
        except ValueError as error:
            raise Unreadable(f"no number: {text[:60]}") from error
    return np.broadcast_to(np.asarray(value, element.array), (1, *shape))


def _number(written: str, element: ElementType) -> Array:
    if element.kind == "float":
        return rounder(element)(np.array(float(written)))
    bits = np.array(int(written) & (1 << 8 * element.size) - 1, element.stored)
    return from_bits(bits, element)


import math
from collections.abc import Callable

import numpy as np


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


from collections.abc import Callable

import numpy as np


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


import math
import re
from collections.abc import Callable

import numpy as np


_FOUR_BIT_VALUES = np.array(
    [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32
)


def find_product_step(operation: Operation, types: Translation) -> Step | None:
    """The step of a product; None for any other operation."""
    if operation.name in ("tt.dot", "tt.warp_group_dot"):
        return _dot(operation, types)
    if operation.name == "tt.dot_scaled":
        return _scaled_dot(operation, types)
    return None


def _count(frame: ProgramFrame, shape: tuple[int, ...], depth: int) -> None:
    size = math.prod(shape)
    active = frame.count_active()
    frame.counts.dots += active
    frame.counts.flops += 2 * size * depth * active
    frame.counts.largest = max(frame.counts.largest, size)
    frame.budget.spend(size * depth * active // 16)


def _dot(operation: Operation, types: Translation) -> Step:
    (result,) = operation.results
    a, b, c = operation.operands[:3]
    shape, depth = types.type_of(result).shape, types.type_of(a).shape[-1]
    multiply = _multiplication(types.element_of(a), operation.word("inputPrecision"))
    finish = rounder(types.element_of(result))
    if types.element_of(result).kind == "int":
        finish = _wrap_to_int32

    def step(frame: ProgramFrame) -> None:
        product = multiply(frame.values[a], frame.values[b])
        frame.values[result] = finish(product + frame.values[c])
        _count(frame, shape, depth)

    return step


def _wrap_to_int32(values: Array) -> Array:
    return values.astype(np.int64).astype(np.int32)


def _multiplication(
    element: ElementType, precision: str
) -> Callable[[Array, Array], Array]:
    if element.kind == "int":
        # exact: products of 8 bits, and sums of less than 2**38 of them
        return lambda a, b: np.matmul(a.astype(np.float64), b.astype(np.float64))
    if element.name == "f64":
        return np.matmul
    if element.name != "f32":
        return lambda a, b: np.matmul(a.astype(np.float32), b.astype(np.float32))
    if precision == "tf32":
        return lambda a, b: np.matmul(round_to_tf32(a), round_to_tf32(b))
    if precision in ("bf16x3", "bf16x6"):
        return lambda a, b: _by_bfloat16(a, b, 2 if precision == "bf16x3" else 3)
    # "ieee", which the text leaves out; and "tf32x3", whose parts have 21 bits together
    return np.matmul


def _by_bfloat16(a: Array, b: Array, parts: int) -> Array:
    """The product of numbers cut into bfloat16 parts; the smallest products are left out."""
    a_parts, b_parts = _cut(a, parts), _cut(b, parts)
    total: Array = np.float32(0.0) * np.matmul(a_parts[0], b_parts[0])
    for i in reversed(range(parts)):
        for j in reversed(range(parts - i)):
            total = total + np.matmul(a_parts[i], b_parts[j])
    return total


def _cut(values: Array, parts: int) -> list[Array]:
    cut = []
    for _ in range(parts):
        cut.append(round_to_bfloat16(values))
        values = values - cut[-1]
    return cut


# products of blocks that share a scale


def _scaled_dot(operation: Operation, types: Translation) -> Step:
    names = _scaled_operands(operation)
    (result,) = operation.results
    shape = types.type_of(result).shape
    lhs, rhs = operation.word("lhs"), operation.word("rhs")
    finish = rounder(types.element_of(result))
    elements = {key: types.element_of(name) for key, name in names.items()}

    def step(frame: ProgramFrame) -> None:
        values = {key: frame.values[name] for key, name in names.items()}
        a = _unpacked(values["a"], lhs, -1)
        b = _unpacked(values["b"], rhs, -2)
        if "a_scale" in values:
            a = a * _spread_scales(values["a_scale"], elements["a_scale"], a.shape[-1])
        if "b_scale" in values:
            scales = _spread_scales(values["b_scale"], elements["b_scale"], b.shape[-2])
            b = b * scales.swapaxes(-1, -2)
        product = np.matmul(a, b)
        frame.values[result] = finish(
            product + values["c"] if "c" in values else product
        )
        _count(frame, shape, a.shape[-1])

    return step


def _scaled_operands(operation: Operation) -> dict[str, str]:
    """The operands by what they are: `%a scale %a_scale, %b scale %b_scale, %c lhs = …`."""
    head = operation.text.partition(" lhs =")[0]
    parts = head.split(",")
    names = {}
    for key, part in zip(("a", "b", "c"), parts, strict=False):
        written = re.findall(r"%[\w$.-]+(?:#\d+)?", part)
        names[key] = written[0]
        if len(written) > 1:
            names[f"{key}_scale"] = written[1]
    if "a" not in names or "b" not in names:
        raise Unreadable(f"no product: {operation.text[:60]}")
    return names


def _unpacked(values: Array, form: str, axis: int) -> Array:
    """Numbers as float32; of four bits, two lie in a byte, the lower half first."""
    if form != "e2m1":
        if values.dtype == np.int8:  # float8 that is handed over as bytes
            name = {"e4m3": "f8E4M3FN", "e5m2": "f8E5M2"}[form]
            return from_bits(values.view(np.uint8), read_element_type(name))
        return values.astype(np.float32)
    codes = values.view(np.uint8)
    axis += values.ndim
    halves = [_FOUR_BIT_VALUES[codes & 15], _FOUR_BIT_VALUES[codes >> 4]]
    shape = list(values.shape)
    shape[axis] *= 2
    return np.stack(halves, axis + 1).reshape(shape)


def _spread_scales(scales: Array, element: ElementType, depth: int) -> Array:
    """A scale for each number: 2**(scale - 127), or a float8, each for a block of numbers."""
    if element.kind == "int":
        numbers = np.exp2(scales.view(np.uint8).astype(np.float32) - 127)
    else:
        numbers = scales.astype(np.float32)
    return np.repeat(numbers, depth // scales.shape[-1], axis=-1)


import re
from collections.abc import Callable, Sequence

import numpy as np


_NAN_PADDING = 2
"""Triton's number of `padding_option="nan"`; "zero" is 1, and none says nothing of the lanes."""


def find_reference_step(operation: Operation, types: Translation) -> Step | None:
    """The step of an operation on block pointers or descriptors; None for any other operation."""
    if operation.name in ("tt.load", "tt.store"):
        if not types.type_of(operation.operands[0]).reference:
            return None
        return (
            _load_block(operation, types)
            if operation.results
            else _store_block(operation, types)
        )
    finder = _REFERENCE_FINDERS.get(operation.name)
    return None if finder is None else finder(operation, types)


# block pointers


def _bracketed(operation: Operation) -> list[list[str]]:
    """The names in each pair of brackets: shape, strides, offsets."""
    lists = re.findall(r"\[([^\]]*)\]", operation.text)
    return [re.findall(r"%[\w$.-]+(?:#\d+)?", names) for names in lists]


def _per_program(frame: ProgramFrame, names: Sequence[str]) -> tuple[Array, ...]:
    return tuple(frame.of_all(frame.values[name]).astype(np.int64) for name in names)


def _make_block_pointer(operation: Operation, types: Translation) -> Step:
    (result,), pointer = operation.results, operation.operands[0]
    shape, strides, offsets = _bracketed(operation)

    def step(frame: ProgramFrame) -> None:
        frame.values[result] = TileReference(
            frame.of_all(frame.values[pointer]),
            _per_program(frame, shape),
            _per_program(frame, strides),
            _per_program(frame, offsets),
        )

    return step


def _advance(operation: Operation, types: Translation) -> Step:
    (result,), (pointer, *distances) = operation.results, operation.operands

    def step(frame: ProgramFrame) -> None:
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


def _naming_unchecked_axes(
    fault: KernelFault, axes: int, checked: Sequence[int]
) -> KernelFault:
    """A fault of a block pointer, with the axes that `boundary_check` leaves out."""
    left_out = [str(axis) for axis in range(axes) if axis not in checked]
    if not left_out:
        return fault
    return type(fault)(
        f"{fault}; boundary_check of this block pointer leaves out axis {' and '.join(left_out)}"
    )


def _load_block(operation: Operation, types: Translation) -> Step:
    (result,), pointer = operation.results, operation.operands[0]
    tile = types.type_of(pointer)
    checked = operation.numbers("boundaryCheck")
    padding = operation.number("padding")

    def step(frame: ProgramFrame) -> None:
        element = tile.element
        addresses, mask = _addresses_of(
            frame.values[pointer], tile.shape, element.size, checked
        )
        other = None
        if padding is not None:
            other = np.array(np.nan if padding == _NAN_PADDING else 0, element.array)
        try:
            frame.values[result] = load_tile(frame, addresses, mask, other, element)
        except KernelFault as fault:
            raise _naming_unchecked_axes(fault, len(tile.shape), checked) from None

    return step


def _store_block(operation: Operation, types: Translation) -> Step:
    pointer, value = operation.operands[:2]
    tile = types.type_of(pointer)
    checked = operation.numbers("boundaryCheck")

    def step(frame: ProgramFrame) -> None:
        block, size = frame.values[pointer], tile.element.size
        addresses, mask = _addresses_of(block, tile.shape, size, checked)
        try:
            store_tile(frame, addresses, frame.values[value], mask, tile.element)
        except KernelFault as fault:
            raise _naming_unchecked_axes(fault, len(tile.shape), checked) from None

    return step


# descriptors


def _make_descriptor(operation: Operation, types: Translation) -> Step:
    (result,), pointer = operation.results, operation.operands[0]
    shape, strides = _bracketed(operation)[:2]
    element = types.element_of(result)
    padding = np.nan if operation.number("padding") == _NAN_PADDING else 0.0

    def step(frame: ProgramFrame) -> None:
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
        raise KernelFault(
            "a descriptor of a tensor that does not begin at a multiple of 16 bytes"
        )
    for stride in descriptor.strides[:-1]:
        if (stride * size % ALIGNED).any():
            raise KernelFault(
                f"a descriptor with a stride of {int(stride[0])} elements: all but the last must "
                "be multiples of 16 bytes"
            )
    if (descriptor.strides[-1] != 1).any():
        raise KernelFault("a descriptor whose last stride is not 1")


def _tile_at(
    frame: ProgramFrame, descriptor: str, offsets: Sequence[str]
) -> TileReference:
    whole: TileReference = frame.values[descriptor]
    places = _per_program(frame, offsets)
    return TileReference(whole.base, whole.shape, whole.strides, places, whole.padding)


def _descriptor_load(operation: Operation, types: Translation) -> Step:
    (result,), descriptor = operation.results, operation.operands[0]
    (offsets,) = _bracketed(operation)
    tile, shape = types.type_of(descriptor), types.type_of(result).shape

    def step(frame: ProgramFrame) -> None:
        block = _tile_at(frame, descriptor, offsets)
        element, every = tile.element, range(len(tile.shape))
        addresses, mask = _addresses_of(block, tile.shape, element.size, every)
        other = np.array(block.padding if element.kind == "float" else 0, element.array)
        values = load_tile(frame, addresses, mask, other, element)
        frame.values[result] = values.reshape(len(values), *shape)

    return step


def _descriptor_store(operation: Operation, types: Translation) -> Step:
    descriptor, value = operation.operands[0], operation.operands[-1]
    (offsets,) = _bracketed(operation)
    tile = types.type_of(descriptor)

    def step(frame: ProgramFrame) -> None:
        block = _tile_at(frame, descriptor, offsets)
        every = range(len(tile.shape))
        addresses, mask = _addresses_of(block, tile.shape, tile.element.size, every)
        values = frame.values[value]
        store_tile(
            frame,
            addresses,
            values.reshape(len(values), *tile.shape),
            mask,
            tile.element,
        )

    return step


def _rows_of(
    frame: ProgramFrame, descriptor: str, rows: str, column: str, width: int, size: int
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

    def step(frame: ProgramFrame) -> None:
        addresses, mask = _rows_of(frame, descriptor, rows, column, width, element.size)
        other = np.array(0, element.array)
        frame.values[result] = load_tile(frame, addresses, mask, other, element)

    return step


def _descriptor_scatter(operation: Operation, types: Translation) -> Step:
    descriptor, rows, column, value = operation.operands
    element, width = types.element_of(value), types.type_of(value).shape[1]

    def step(frame: ProgramFrame) -> None:
        addresses, mask = _rows_of(frame, descriptor, rows, column, width, element.size)
        store_tile(frame, addresses, frame.values[value], mask, element)

    return step


def _descriptor_reduce(operation: Operation, types: Translation) -> Step:
    descriptor, value = operation.operands[0], operation.operands[-1]
    (offsets,) = _bracketed(operation)
    tile = types.type_of(descriptor)
    kind = operation.text.split(",")[0].strip()
    if kind not in CHANGES:
        raise Unreadable(f"the atomic operation {kind[:20]} has no meaning here")
    combine = CHANGES[kind]

    def step(frame: ProgramFrame) -> None:
        block = _tile_at(frame, descriptor, offsets)
        every = range(len(tile.shape))
        addresses, mask = _addresses_of(block, tile.shape, tile.element.size, every)
        values = frame.values[value]
        change_tile(
            frame,
            addresses,
            values.reshape(len(values), *tile.shape),
            mask,
            tile.element,
            lambda old, new, which: combine(old, new),
            "relaxed",
        )

    return step


_REFERENCE_FINDERS: dict[str, Callable[[Operation, Translation], Step]] = {
    "tt.make_tensor_ptr": _make_block_pointer,
    "tt.advance": _advance,
    "tt.make_tensor_descriptor": _make_descriptor,
    "tt.descriptor_load": _descriptor_load,
    "tt.descriptor_store": _descriptor_store,
    "tt.descriptor_gather": _descriptor_gather,
    "tt.descriptor_scatter": _descriptor_scatter,
    "tt.descriptor_reduce": _descriptor_reduce,
}


from collections.abc import Callable
from typing import Any

import numpy as np


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


import functools
import math
from collections.abc import Iterator

import numpy as np


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


import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np


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


import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch


ELEMENT_NAMES = {
    torch.bool: "i1",
    torch.uint8: "i8",
    torch.int8: "i8",
    torch.int16: "i16",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.float32: "f32",
    torch.float64: "f64",
    torch.float8_e4m3fn: "f8E4M3FN",
    torch.float8_e5m2: "f8E5M2",
}
"""The names of torch's types in TTIR."""
_RUBBISH = 0x5A


class _Window:
    """A storage's memory as numpy reads it."""

    def __init__(self, storage: torch.UntypedStorage) -> None:
        self.__array_interface__ = {
            "data": (storage.data_ptr(), False),
            "shape": (storage.nbytes(),),
            "typestr": "|u1",
            "version": 3,
        }


def bytes_of(storage: torch.UntypedStorage) -> Array:
    """The bytes of a storage on the CPU; writing to the array writes to the storage."""
    if storage.nbytes() == 0:
        return np.zeros(0, np.uint8)
    return np.asarray(_Window(storage))


def fill_with_rubbish(tensor: torch.Tensor) -> None:
    """Fill fresh memory with what shows: NaN, or a large number that is always the same."""
    if tensor.device.type == "cpu" and tensor.layout == torch.strided:
        if tensor.is_floating_point():
            tensor.fill_(float("nan"))
        else:
            bytes_of(tensor.untyped_storage())[...] = _RUBBISH


class Allocations:
    """Storages that were allocated and not filled, with a mask of the bytes filled since.

    Storages are kept alive: an address names one storage as long as this object lives.
    """

    def __init__(self) -> None:
        self._unfilled: dict[int, tuple[torch.UntypedStorage, Array]] = {}

    def allocate(self, tensor: torch.Tensor) -> None:
        """Note a tensor whose memory is fresh."""
        storage = tensor.untyped_storage()
        filled = np.zeros(storage.nbytes(), bool)
        self._unfilled[storage.data_ptr()] = (storage, filled)

    def fill(self, tensor: torch.Tensor) -> None:
        """Note that torch has written to a tensor's storage."""
        self._unfilled.pop(tensor.untyped_storage().data_ptr(), None)

    def filled(self, storage: torch.UntypedStorage) -> Array | None:
        """For each byte whether somebody has filled it; None where all are."""
        entry = self._unfilled.get(storage.data_ptr())
        return None if entry is None else entry[1]


class ArgumentMemory:
    """The storages of a launch's tensors, and the arguments as data.

    Args:
        names: names of tensors by the address of their storage; other tensors have the name of the
            kernel's parameter.
        allocations: storages that nobody may have filled.
    """

    def __init__(self, names: dict[int, str], allocations: Allocations) -> None:
        self._names, self._allocations = names, allocations
        self._numbers: dict[int, int] = {}
        self.torch_storages: list[torch.UntypedStorage] = []
        self.storages: list[Storage] = []
        self.views: list[TensorView] = []

    def add(self, name: str, value: Any) -> Argument:
        """An argument of a launch as data.

        Raises:
            KernelFault: a tensor that is not in the memory of the CPU.
        """
        if hasattr(value, "block_shape"):  # a descriptor
            padding = np.nan if getattr(value, "padding", "zero") == "nan" else 0.0
            tensor = getattr(value.base, "base", value.base)
            view = self._view(name, tensor, tuple(value.shape), tuple(value.strides))
            return DescriptorArgument(view, padding)
        tensor = getattr(value, "base", value)  # of a tensor seen in another dtype
        if isinstance(tensor, torch.Tensor):
            return self._view(name, tensor, tuple(tensor.shape), tuple(tensor.stride()))
        number: int | float | bool = value
        return number

    def _view(
        self,
        name: str,
        tensor: torch.Tensor,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
    ) -> TensorView:
        if tensor.device.type != "cpu":
            raise KernelFault(
                f"{name} is on {tensor.device}: on a CPU kernels take its tensors"
            )
        number = self.add_storage(tensor.untyped_storage())
        size = tensor.element_size()
        element = ELEMENT_NAMES.get(tensor.dtype, "")
        name = self._names.get(
            tensor.untyped_storage().data_ptr()
        ) or name.removesuffix("_ptr")
        offset = int(tensor.storage_offset()) * size
        view = TensorView(name, number, offset, size, shape, strides, element)
        self.views.append(view)
        return view

    def add_storage(self, storage: torch.UntypedStorage) -> int:
        """The number of a storage."""
        address = storage.data_ptr()
        if address not in self._numbers or address == 0:
            self._numbers[address] = len(self.storages)
            self.torch_storages.append(storage)
            filled = self._allocations.filled(storage)
            self.storages.append(Storage(address, bytes_of(storage), filled))
        return self._numbers[address]

    def find(self, address: int) -> int | None:
        """The number of the storage that holds an address: of any tensor of this process, since a
        kernel may load addresses out of memory.
        """
        for thing in gc.get_objects():
            if type(thing) is torch.Tensor and thing.device.type == "cpu":
                storage = thing.untyped_storage()
                if (
                    storage.data_ptr()
                    <= address
                    < storage.data_ptr() + storage.nbytes()
                ):
                    return self.add_storage(storage)
        return None

    # contents

    def contents(self) -> list[Array]:
        """A copy of all memory."""
        return [storage.content.copy() for storage in self.storages]

    def restore(self, contents: list[Array]) -> None:
        """Put back what `contents` has copied."""
        for storage, content in zip(self.storages, contents, strict=True):
            storage.content[...] = content


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """The tensors of an argument, which may be a tensor, a descriptor or a tuple."""
    if isinstance(value, tuple | list):
        for part in value:
            yield from tensors_in(part)
        return
    tensor = getattr(value, "base", value)
    if isinstance(tensor, torch.Tensor):
        yield tensor


import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


MOST_AT_ONCE = 4
"""Configurations of one launch. Where there are more, the first runs always, and the others take
turns.
"""
# by bytes of an element: how far sums in another order may differ
_TOLERANCE = {2: 2e-2, 4: 1e-3, 8: 1e-6}


class Autotuned:
    """Launches of kernels with several configurations.

    Args:
        quietly: runs a launch of which only the faults count.
    """

    def __init__(self, quietly: Callable[[Callable[[], Any]], None]) -> None:
        self._quietly = quietly
        self._launches = 0

    def run(self, tuner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Launch with each configuration in turn. What the first wrote stays.

        Args:
            tuner: Triton's `Autotuner`.
        """
        tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))
        tensors = ArgumentMemory({}, Allocations())
        for name, value in {**tuner.nargs, **kwargs}.items():
            for tensor in tensors_in(value):
                tensors.add(name, tensor)
        distinct = _distinct(tuner.prune_configs(kwargs), tuner.arg_names)
        try:
            self._all(tuner, args, kwargs, self._in_turn(distinct), tensors)
        finally:
            tuner.nargs = None

    def _in_turn(self, configs: list[Any]) -> list[Any]:
        self._launches += 1
        later = configs[1:]
        turn = (
            self._launches * (MOST_AT_ONCE - 1) % len(later)
            if len(later) >= MOST_AT_ONCE
            else 0
        )
        return configs[:1] + (later[turn:] + later[:turn])[: MOST_AT_ONCE - 1]

    def _all(
        self,
        tuner: Any,
        args: Any,
        kwargs: Any,
        configs: list[Any],
        tensors: ArgumentMemory,
    ) -> None:
        original = tensors.contents()
        written: list[tuple[Any, list[Array]]] = []
        refused: StaticAssertion | None = None
        for config in configs:
            try:
                if written:
                    tensors.restore(original)
                    launch = functools.partial(_launch, tuner, args, kwargs, config)
                    self._quietly(launch)
                else:
                    _launch(tuner, args, kwargs, config)
            except StaticAssertion as error:  # Triton leaves such a configuration out
                refused = error
                continue
            except Exception as error:
                if len(configs) == 1:
                    raise
                raise _with_configuration(config, error) from error
            if not written:
                tuner.best_config = config
                if len(tuner.configs) > 1:
                    self._refuse_a_second_run(tuner, args, kwargs, config, tensors)
            written.append((config, tensors.contents()))
        if not written:
            raise refused or KernelFault("no configuration is left to run")
        _compare(tensors, written)
        tensors.restore(written[0][1])

    def _refuse_a_second_run(
        self, tuner: Any, args: Any, kwargs: Any, config: Any, tensors: ArgumentMemory
    ) -> None:
        """Launch once more and compare: Triton times a kernel by many launches, so a kernel that
        adds to its earlier results must be reset in between.
        """
        if tuner.user_defined_pre_hook:
            return
        excused = {*tuner.reset_to_zero, *tuner.restore_value}
        shielded = {
            tensor.untyped_storage().data_ptr()
            for name, value in {**tuner.nargs, **kwargs}.items()
            if name in excused
            for tensor in tensors_in(value)
        }
        once = tensors.contents()
        self._quietly(lambda: _launch(tuner, args, kwargs, config))
        twice = tensors.contents()
        tensors.restore(once)
        for difference in _differences(tensors, once, twice):
            if tensors.storages[difference.storage].address in shielded:
                continue
            raise KernelFault(
                "launched twice, the kernel writes something else to "
                f"{difference.name}{difference.place}: autotune launches it many times to find "
                "the fastest configuration. Name it in reset_to_zero or restore_value"
            )


def _with_configuration(config: Any, error: Exception) -> KernelFault:
    message = (
        str(error)
        if isinstance(error, KernelFault)
        else f"{type(error).__name__}: {error}"
    )
    kind = type(error) if isinstance(error, KernelFault) else KernelFault
    fault = kind(f"with the configuration {_words(config)}: {message}")
    fault.is_located = True
    return fault


def _launch(tuner: Any, args: Any, kwargs: Any, config: Any) -> None:
    """Launch one configuration as Triton does: reset tensors first, then call the configuration's
    hook.
    """
    if conflicts := kwargs.keys() & config.kwargs.keys():
        raise KernelFault(
            f"{', '.join(sorted(conflicts))} is passed to the launch and set by autotune: "
            "leave it to one"
        )
    named = {**tuner.nargs, **kwargs, **config.all_kwargs()}
    tuner.pre_hook(named, reset_only=True)
    if config.pre_hook is not None:
        config.pre_hook(named)
    tuner.fn.run(*args, **kwargs, **config.all_kwargs())


def _distinct(configs: list[Any], parameters: list[str]) -> list[Any]:
    """The configurations without those that the kernel cannot tell from an earlier one."""
    seen: dict[str, Any] = {}
    for config in configs:
        visible = {
            name: value
            for name, value in config.all_kwargs().items()
            if name in parameters
        }
        seen.setdefault(f"{sorted(visible.items())} {id(config.pre_hook)}", config)
    return list(seen.values())


def _words(config: Any) -> str:
    return (
        "("
        + ", ".join(f"{name}: {value}" for name, value in config.kwargs.items())
        + ")"
    )


@dataclass(frozen=True, slots=True)
class ResultDifference:
    """The first element of a tensor that two configurations have written differently."""

    name: str
    storage: int
    place: list[int]
    first: float
    second: float


def _compare(tensors: ArgumentMemory, written: list[tuple[Any, list[Array]]]) -> None:
    """All configurations must have written the same, but for rounding."""
    (first, first_contents), *later = written
    unequal = [
        (config, unlike[0])
        for config, contents in later
        if (unlike := _differences(tensors, first_contents, contents))
    ]
    if not unequal:
        return
    config, difference = unequal[0]
    outcomes = [
        f"{_words(config)} the kernel writes {difference.second:.6g}",
        f"{_words(first)} {difference.first:.6g}",
    ]
    outvoted = len(unequal) == len(later) > 1 and not _differences(
        tensors, later[0][1], later[1][1]
    )
    if outvoted or difference.first != difference.first:
        outcomes = [
            f"{_words(first)} the kernel writes {difference.first:.6g}",
            f"{_words(config)} {difference.second:.6g}",
        ]
    raise KernelFault(
        f"with the configuration {outcomes[0]} to {difference.name}{difference.place}, with "
        f"{outcomes[1]}: autotune takes the fastest, so each must be right"
    )


def _differences(
    tensors: ArgumentMemory, first: list[Array], second: list[Array]
) -> list[ResultDifference]:
    """The tensors whose contents differ by more than rounding."""
    differences = []
    for view in tensors.views:
        pair = first[view.storage], second[view.storage]
        if np.array_equal(*pair):
            continue
        a, b = (_numbers(view, content) for content in pair)
        with np.errstate(all="ignore"):
            differs = np.abs(a - b) > _TOLERANCE.get(view.size, 0) * np.maximum(
                1, np.abs(a)
            )
            differs |= np.isnan(a) != np.isnan(b)
            differs |= (np.isinf(a) | np.isinf(b)) & (a != b)
        places = np.argwhere(differs)
        if len(places):
            place = places[0].tolist()
            values = float(a[tuple(place)]), float(b[tuple(place)])
            differences.append(
                ResultDifference(view.name, view.storage, place, *values)
            )
    return differences


def _numbers(view: TensorView, content: Array) -> Array:
    """A tensor's elements as float64, in its shape."""
    start = view.offset // view.size
    whole = content.size // view.size * view.size
    elements = content[:whole].view(f"u{view.size}")[start:]
    steps = [stride * view.size for stride in view.strides]
    bits = np.lib.stride_tricks.as_strided(elements, view.shape, steps)
    if not view.element:
        return bits.astype(np.float64)
    return from_bits(
        np.ascontiguousarray(bits), read_element_type(view.element)
    ).astype(np.float64)


import ast
import contextlib
import functools
import gc
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import triton
from triton import knobs
from triton._C.libtriton import ir, passes
from triton._utils import find_paths_if, get_iterable_path
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import ASTSource, make_backend
from triton.runtime import autotuner
from triton.runtime.jit import JITFunction, mangle_type

TESTED = ((3, 6), (3, 9))
TARGET = ("cuda", 90, 32)  # an H100 or H200
_OPTIONS = {
    "arch": "sm90",
    "debug": True,  # device_assert is checked
    # a check of each operation on integers would be most of the text
    "sanitize_overflow": False,
    "enable_fp_fusion": True,  # the default, about which Triton 3.9 warns
}
_PASSES = ("add_inliner", "add_canonicalizer", "add_cse", "add_licm")
_MOST_TREES = 1024


class UnknownTriton(ImportError):
    """This version of Triton has no front end that is known here."""


def triton_version() -> tuple[int, ...]:
    """The version of Triton, two numbers."""
    return tuple(int(part) for part in triton.__version__.split(".")[:2])


def refuse_version(reason: str = "") -> UnknownTriton:
    """The error for a version that is not known here."""
    return UnknownTriton(
        "strict Triton knows Triton 3.6 to 3.9, and this is "
        f"{triton.__version__}{reason}: pip install triton==3.7.1"
    )


@contextlib.contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """The front end makes many objects at once, and a collection in between is a tenth of its
    time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class FrontEnd:
    """Triton's front end. One for a process: it loads its dialects once."""

    def __init__(self) -> None:
        self._target = GPUTarget(*TARGET)
        self._backend = make_backend(self._target)
        self._options = self._backend.parse_options(dict(_OPTIONS))
        self._context = ir.context()
        ir.load_dialects(self._context)
        self._backend.load_dialects(self._context)

    @property
    def launch_options(self) -> set[str]:
        """Keywords of a launch that are no parameters of the kernel, such as num_warps."""
        return {*vars(self._options), "grid", "warmup"}

    def text_of(
        self,
        kernel: JITFunction[Any],
        signature: dict[str, Any],
        constants: dict[Any, Any],
    ) -> str:
        """A kernel in TTIR, for the types and constants of a launch."""
        with warnings.catch_warnings(), _without_garbage_collection():
            warnings.simplefilter("ignore")
            source = ASTSource(kernel, signature, constants, {})
            module = source.make_ir(
                self._target,
                self._options,
                self._backend.get_codegen_implementation(self._options),
                self._backend.get_module_map(),
                self._context,
            )
        manager = ir.pass_manager(
            self._context
        )  # for one run: a second one aborts the process
        for name in _PASSES:
            getattr(passes.common, name)(manager)
        manager.run(module, "strict_triton")
        text: str = module.str()
        return text


def signature_of(kernel: JITFunction[Any], values: list[Any]) -> dict[str, Any]:
    """The types of a launch's arguments, by parameter: "constexpr" for a constant.

    Raises:
        Exception: of any kind, where Triton does not know the type of a value; the parameter is
            its last argument.
    """
    signature = {}
    for parameter, value in zip(kernel.params, values, strict=True):
        if parameter.is_constexpr:
            signature[parameter.name] = "constexpr"
            continue
        try:
            signature[parameter.name] = mangle_type(
                value, not parameter.do_not_specialize
            )
        except Exception as error:
            error.args = (*error.args, parameter.name, value)
            raise
    return signature


def constants_of(signature: dict[str, Any], values: list[Any]) -> dict[Any, Any]:
    """The constants of a launch; in tuples, too, an integer that is 1 is a constant."""
    paths = find_paths_if(list(signature.values()), lambda _, kind: kind == "constexpr")
    return {path: get_iterable_path(values, path) for path in paths}


def hook_launches(
    owner: Any, run: Callable[..., Any], run_tuned: Callable[..., Any]
) -> None:
    """Have all launches of this process go to functions of ours.

    Args:
        owner: whom `owner_of_launches` gives from now on.
        run: in place of `JITFunction.run`.
        run_tuned: in place of `Autotuner.run`.
    """
    # kernels would be made for Triton's own interpreter, where a student sets TRITON_INTERPRET
    knobs.runtime.interpret = False
    JITFunction.run = run
    JITFunction.parse = _parse_once
    JITFunction.owner_of_launches = owner
    autotuner.Autotuner.run = run_tuned


def _parse_once(function: JITFunction[Any]) -> ast.Module:
    """The tree of a function's text. The front end asks for it at each compilation, and for each
    function that the kernel calls; what it notes in a tree is the same each time.
    """
    return _tree_of(function.src)


@functools.lru_cache(maxsize=_MOST_TREES)
def _tree_of(source: str) -> ast.Module:
    return ast.parse(source)


def owner_of_launches() -> Any:
    """The owner that `hook_launches` was given, by whichever copy of this module; None for none."""
    return getattr(JITFunction, "owner_of_launches", None)


def is_interpreting() -> bool:
    """Whether Triton was imported with TRITON_INTERPRET=1: its library is then not compilable."""
    return not isinstance(triton.language.max, JITFunction)


import ast
import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from triton.compiler.errors import CompilationError, CompileTimeAssertionFailure
from triton.runtime.jit import JITFunction


_MOST_TEXTS = 4096


@dataclass(frozen=True, slots=True)
class CompiledKernel:
    """A kernel, compiled for the types and constants of a launch.

    Attributes:
        arguments: names and values of those parameters that are no constants, tuples flat.
    """

    text: str
    arguments: list[tuple[str, Any]]


class Compiler:
    """Compiles each kernel once for each combination of types and constants."""

    def __init__(self) -> None:
        self._front_end = FrontEnd()
        self._texts: dict[Any, str | KernelFault] = {}
        # by identity: Triton makes a function's hash of all functions that it calls, each time
        self._kernels: dict[int, JITFunction[Any]] = {}

    def compile(
        self, kernel: JITFunction[Any], args: tuple[Any, ...], keywords: dict[str, Any]
    ) -> CompiledKernel:
        """Compile a kernel for the arguments of a launch.

        Raises:
            KernelFault: the kernel does not compile; the message says which line, and why.
        """
        unknown = keywords.keys() - {p.name for p in kernel.params}
        if unknown := unknown - self._front_end.launch_options:
            raise KernelFault(
                f"{kernel.__name__} has no parameter {sorted(unknown)[0]}, and no launch has such "
                "an option"
            )
        values = list(self.bind(kernel, args, keywords).values())
        signature = _signature(kernel, values)
        constants = constants_of(signature, values)
        self._kernels[id(kernel)] = kernel
        key = (id(kernel), str(signature), repr(constants))
        if key not in self._texts:
            if len(self._texts) >= _MOST_TEXTS:
                self._texts.clear()
            self._texts[key] = self._text_or_fault(kernel, signature, constants)
        text = self._texts[key]
        if isinstance(text, KernelFault):
            raise text
        arguments = []
        for (name, kind), value in zip(signature.items(), values, strict=True):
            arguments += list(_flat(name, kind, value))
        return CompiledKernel(text, arguments)

    @staticmethod
    def bind(
        kernel: JITFunction[Any], args: tuple[Any, ...], keywords: dict[str, Any]
    ) -> dict[str, Any]:
        """The kernel's parameters and their values."""
        own = {p.name for p in kernel.params}
        named = {name: value for name, value in keywords.items() if name in own}
        bound = kernel.signature.bind(*args, **named)
        bound.apply_defaults()
        return dict(bound.arguments)

    def _text_or_fault(
        self,
        kernel: JITFunction[Any],
        signature: dict[str, Any],
        constants: dict[Any, Any],
    ) -> str | KernelFault:
        try:
            for function in own_functions(kernel):
                _refuse_print(function)
            return self._front_end.text_of(kernel, signature, constants)
        except CompilationError as error:
            return _describe(kernel, error)
        except KernelFault as fault:
            return fault


def _signature(kernel: JITFunction[Any], values: list[Any]) -> dict[str, Any]:
    try:
        return signature_of(kernel, values)
    except (
        Exception
    ) as error:  # of any kind, where Triton does not know the value's type
        name, value = error.args[-2:]
        raise KernelFault(
            f"{kernel.__name__} is given {name} = {str(value)[:60]} ({type(value).__name__}), "
            "which cannot be passed to a kernel: tensors and numbers can, anything else only as "
            "tl.constexpr"
        ) from error


def _flat(name: str, kind: Any, value: Any) -> Iterator[tuple[str, Any]]:
    """The arguments that the compiled kernel takes for a parameter."""
    if kind == "constexpr":
        return
    if isinstance(kind, tuple | list):
        for part_kind, part in zip(kind, value, strict=True):
            yield from _flat(name, part_kind, part)
        return
    yield name, value


def is_library(function: JITFunction[Any]) -> bool:
    """Whether a function of @triton.jit is Triton's own."""
    return str(function.fn.__module__).startswith("triton.")


def own_functions(kernel: JITFunction[Any]) -> list[JITFunction[Any]]:
    """A kernel, and the functions of @triton.jit that it calls, but for Triton's own."""
    functions = [kernel]
    for function in functions:
        scope = function.fn.__globals__
        for name in sorted(_names_in(function)):
            value = scope.get(name)
            if not isinstance(value, JITFunction) or is_library(value):
                continue
            if all(value is not known for known in functions):
                functions.append(value)
    return functions


def _names_in(function: JITFunction[Any]) -> frozenset[str]:
    """Names that a function's text mentions."""
    return _names_in_text(function.src)


@functools.lru_cache(maxsize=_MOST_TEXTS)
def _names_in_text(source: str) -> frozenset[str]:
    nodes = ast.walk(ast.parse(source))
    return frozenset(node.id for node in nodes if isinstance(node, ast.Name))


def _refuse_print(function: JITFunction[Any]) -> None:
    if "print" not in _names_in(function):
        return
    for node in ast.walk(function.parse()):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "print"
        ):
            raise KernelFault(
                f"{_line_of(function.src, node)}: `print` belongs to Python. On a GPU it is "
                "refused, or prints a line for each element of each program: take it out "
                "(tl.device_print is there while you look for an error)"
            )


def _describe(kernel: JITFunction[Any], error: CompilationError) -> KernelFault:
    """The compiler's refusal in our words, with the student's line that led to it last."""
    chain: list[BaseException] = [error]
    while isinstance(chain[-1].__cause__, CompilationError):
        chain.append(chain[-1].__cause__)
    errors = [link for link in chain if isinstance(link, CompilationError)]
    own_texts = {function.src for function in own_functions(kernel)}
    last = next(
        link for link in reversed(errors) if link.src in own_texts or link is error
    )
    reason = next(
        (link.error_message for link in reversed(errors) if link.error_message), ""
    )
    kind = (
        StaticAssertion
        if isinstance(errors[-1], CompileTimeAssertionFailure)
        else KernelFault
    )
    return kind(f"{_line_of(last.src, last.node)}: {_reason(str(reason), last.node)}")


def _line_of(source: str, node: Any) -> str:
    """Where in the student's text a node stands: "no GPU would compile line 5 of softmax_kernel
    (`break`)".
    """
    lines, line = source.splitlines(), getattr(node, "lineno", 1)
    text = lines[line - 1].strip() if 0 < line <= len(lines) else ""
    match = re.search(r"^\s*def\s+(\w+)", source, re.MULTILINE)
    name = match[1] if match else "a kernel"
    return f"no GPU would compile line {line} of {name} (`{text[:80]}`)"


_REASONS: tuple[tuple[str, Callable[..., str]], ...] = (
    (
        r"Cannot access global variable (\w+) from",
        lambda name: (
            f"`{name}` is neither an argument, nor a tl.constexpr, nor a function of "
            "@triton.jit or of tl"
        ),
    ),
    (
        r"unsupported AST node type: (\w+)",
        lambda name: f"kernels know no `{name.lower()}`",
    ),
    (
        r"^NameError\(['\"](\w+) is not defined['\"]\)$",
        lambda name: f"`{name}` is not defined",
    ),
    (
        r"^\w+\((['\"])(.*)\1,?\)$",
        lambda _, text: str(text),
    ),  # the repr of an exception
)


def _reason(text: str, node: Any) -> str:
    for pattern, words in _REASONS:
        if match := re.search(pattern, text, re.DOTALL):
            return words(*match.groups())
    return text or f"kernels know no `{type(node).__name__.lower()}`"


from collections import Counter

import numpy as np


TraceStep = tuple[tuple[int, ...], str, str, list[range]]
"""A program, a verb, a tensor, and the box of its elements."""


class Recording:
    """The accesses of the kernels of one call.

    Attributes:
        kernels, programs: launches, and their programs.
        dots, flops: calls of `tl.dot`, and their floating point operations.
        largest: elements of the largest tile that was loaded, stored or the result of a dot.
        loads, stores: elements moved, by tensor.
        unfilled: tensors with masked lanes loaded without `other`.
        reads, writes: how often each element was touched, in the tensor's shape.
        steps: the accesses, program by program.

    The last three are filled where `keep_steps` is set.

    Args:
        names: names of tensors, by the address of their storage.
    """

    def __init__(self, names: dict[int, str], keep_steps: bool) -> None:
        self.names, self.keep_steps = names, keep_steps
        self.kernels = self.programs = self.dots = self.flops = self.largest = 0
        self.loads: Counter[str] = Counter()
        self.stores: Counter[str] = Counter()
        self.unfilled: list[str] = []
        self.reads: dict[str, Array] = {}
        self.writes: dict[str, Array] = {}
        self.steps: list[TraceStep] = []

    def __str__(self) -> str:
        lines: dict[tuple[int, ...], list[str]] = {}
        for program, verb, name, box in self.steps:
            spans = ", ".join(
                str(r.start) if len(r) == 1 else f"{r.start}…{r.stop - 1}" for r in box
            )
            lines.setdefault(program, []).append(f"    {verb} {name}[{spans}]")
        text = [
            f"program {program_in_words(program)}\n" + "\n".join(lines[program])
            for program in sorted(lines)
        ]
        moved = ", ".join(
            f"{name} {count}"
            for name, count in [*self.loads.items(), *self.stores.items()]
        )
        return "\n".join(
            [
                *text,
                f"{self.programs} programs, {self.dots} dots; elements moved: {moved}",
            ]
        )

    def add(self, launch: LaunchData, outcome: LaunchOutcome) -> None:
        """Add the work of one launch."""
        self.kernels += 1
        self.programs += launch.programs
        self.dots += outcome.counts.dots
        self.flops += outcome.counts.flops
        self.loads.update(outcome.loads)
        self.stores.update(outcome.stores)
        self.add_notes(outcome)

    def add_notes(self, outcome: LaunchOutcome) -> None:
        """Add what counts of every launch, of those too that autotune makes besides."""
        self.largest = max(self.largest, outcome.counts.largest)
        self.unfilled += [
            name for name in outcome.counts.unfilled if name not in self.unfilled
        ]


class StepWatcher:
    """Notes each access of a launch: its story, and how often each element is touched."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._steps: list[tuple[int, TraceStep]] = []

    def __call__(self, verb: str, region: Region, offsets: Array, lanes: Lanes) -> None:
        """Note the accesses of all programs, by one operation."""
        verbs = {
            "reads": ("reads",),
            "writes": ("writes",),
            "adds to": ("reads", "writes"),
        }[verb]
        for name in verbs:
            totals: dict[str, Array] = getattr(self._recording, name)
            counts = np.bincount(offsets, minlength=region.extent)
            shaped = region.in_shape(counts)
            earlier = totals.get(region.name)
            same = earlier is not None and earlier.shape == shaped.shape
            totals[region.name] = shaped + earlier if same else shaped.copy()
        programs = lanes.programs
        for number in np.unique(programs).tolist():
            touched = np.zeros(region.extent, bool)
            touched[offsets[programs == number]] = True
            axes = np.nonzero(region.in_shape(touched))
            box = []
            for axis in axes:
                box.append(range(int(axis.min()), int(axis.max()) + 1))
            step = (lanes.among.words(number), verb, region.name, box)
            self._steps.append((number, step))

    def finish(self) -> None:
        """Hand the story over, program by program."""
        self._recording.steps += [
            step for _, step in sorted(self._steps, key=lambda s: s[0])
        ]


import contextlib
import inspect
import operator
from collections.abc import Callable, Iterator
from typing import Any

import torch
import triton
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


EMPTY = frozenset(
    {
        "empty",
        "empty_like",
        "empty_strided",
        "empty_permuted",
        "new_empty",
        "new_empty_strided",
    }
)
"""Operations of torch that allocate memory and do not fill it."""
Listener = Callable[[LaunchData, ArgumentMemory], None]


class Strict:
    """The launches of this process; `install()` makes the one object or finds it.

    Attributes:
        recording: where launches are counted now.
        allocations: memory that nobody has filled.
        listener: told each launch that counts, before it runs.
        is_quiet: whether a launch runs of which only the faults count.
    """

    def __init__(self) -> None:
        self.recording = Recording({}, keep_steps=False)
        self.allocations = Allocations()
        self.listener: Listener | None = None
        self.is_quiet = False
        self._compiler = Compiler()
        self._autotuned = Autotuned(self._quietly)
        strict = self

        def run(
            kernel: Any, /, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any
        ) -> None:
            strict.launch(kernel, args, kwargs, grid, warmup)

        def run_tuned(tuner: Any, /, *args: Any, **kwargs: Any) -> None:
            strict._autotuned.run(tuner, args, kwargs)

        hook_launches(self, run, run_tuned)

    @contextlib.contextmanager
    def record(
        self,
        names: dict[int, str],
        *,
        keep_steps: bool = False,
        allocations: Allocations | None = None,
    ) -> Iterator[Recording]:
        """Record every kernel launched inside.

        Args:
            names: names of tensors by the address of their storage.
            keep_steps: whether to keep the story of each program.
            allocations: memory that nobody has filled.
        """
        outer = self.recording, self.allocations
        self.recording = Recording(names, keep_steps)
        self.allocations = allocations or Allocations()
        try:
            yield self.recording
        finally:
            self.recording, self.allocations = outer

    def launch(
        self,
        kernel: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        grid: Any,
        warmup: bool,
    ) -> None:
        """Compile a kernel and run it on the memory of its arguments."""
        for hook in getattr(kernel, "pre_run_hooks", ()):
            hook(*args, **kwargs)
        compiled = self._compiler.compile(kernel, args, kwargs)
        if warmup:
            return
        sizes = (
            grid(self._compiler.bind(kernel, args, kwargs)) if callable(grid) else grid
        )
        memory = ArgumentMemory(self.recording.names, self.allocations)
        arguments = tuple(memory.add(name, value) for name, value in compiled.arguments)
        launch = LaunchData(compiled.text, _three_axes(sizes), arguments)
        if self.listener is not None and not self.is_quiet:
            self.listener(launch, memory)
        watcher = None
        if self.recording.keep_steps and not self.is_quiet:
            watcher = StepWatcher(self.recording)
        outcome = run_launch(
            launch, memory.storages, watcher=watcher, find_storage=memory.find
        )
        if watcher is not None:
            watcher.finish()
        if self.is_quiet:
            self.recording.add_notes(outcome)
        else:
            self.recording.add(launch, outcome)

    def _quietly(self, launch: Callable[[], Any]) -> None:
        """Launch once more: faults count, and the largest tile, but no accesses."""
        outer, self.is_quiet = self.is_quiet, True
        try:
            launch()
        finally:
            self.is_quiet = outer


def _three_axes(sizes: Any) -> tuple[int, int, int]:
    """A grid's sizes as a launch has them."""
    try:
        numbers = [operator.index(size) for size in tuple(sizes)]
    except TypeError as error:
        raise KernelFault(
            f"a grid is a tuple of integers, and not {str(sizes)[:60]}"
        ) from error
    if not 1 <= len(numbers) <= 3:
        raise KernelFault(f"a grid has one to three axes, and not {len(numbers)}")
    x, y, z = [*numbers, 1, 1][:3]
    return x, y, z


def install() -> Strict:
    """Have all kernels of this process run here.

    Raises:
        UnknownTriton: this Triton is older than the tested versions, or newer, and a small kernel
            fails in it; or it was imported with TRITON_INTERPRET=1.
    """
    installed: Strict | None = owner_of_launches()
    if installed is not None:
        return installed
    version = triton_version()
    if version < TESTED[0]:
        raise refuse_version()
    if is_interpreting():
        raise UnknownTriton(
            "Triton was imported with TRITON_INTERPRET=1, for its own interpreter: leave the "
            "variable out, and restart"
        )
    try:
        strict = Strict()
        if version > TESTED[1]:
            _probe(strict)
    except Exception as error:
        reason = f", in which it fails ({type(error).__name__}: {error})"
        raise refuse_version(reason) from error
    return strict


@triton.jit
def _probe_kernel(x_ptr, y_ptr, n, block: triton.language.constexpr):
    """Each program adds its row's sum to its row."""
    places = triton.language.program_id(0) * n + triton.language.arange(0, block)
    inside = triton.language.arange(0, block) < n
    x = triton.language.load(x_ptr + places, mask=inside, other=0.0)
    triton.language.store(y_ptr + places, x + triton.language.sum(x, 0), mask=inside)


def _probe(strict: Strict) -> None:
    """Run a right kernel, and check that a kernel which leaves its tensor is refused."""
    x, y = torch.arange(6.0), torch.zeros(6)
    with strict.record({}) as seen:
        _probe_kernel[(2,)](x, y, 3, block=4)
    counts = seen.programs, dict(seen.loads)
    if y.tolist() != [3.0, 4.0, 5.0, 15.0, 16.0, 17.0] or counts != (2, {"x": 6}):
        raise RuntimeError("a small kernel is not what it should be")
    with contextlib.suppress(KernelFault):
        _probe_kernel[(2,)](x, y, 4, block=4)
        raise RuntimeError("an address past the end is not refused")


class _WatchAllocations(TorchDispatchMode):
    """Notes memory that torch allocates, and whether torch fills it."""

    def __init__(self, allocations: Allocations) -> None:
        super().__init__()
        self._allocations = allocations

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if func._overloadpacket.__name__ in EMPTY:
            self._allocations.allocate(result)
            fill_with_rubbish(result)
        elif func._schema.is_mutable:
            for leaf in tree_leaves((args, kwargs)):
                if isinstance(leaf, torch.Tensor):
                    self._allocations.fill(leaf)
        return result


def trace(
    function: Callable[..., Any], *arguments: Any, **keywords: Any
) -> tuple[Any, Recording]:
    """Call a function that launches kernels; returns its result and a recording of all accesses.

    Print the recording to read it; `recording.reads["k"]` counts how often each element of k was
    read. Tensors that the function was given have the names of its parameters, others those of the
    kernel's parameters.
    """
    strict = install()
    bound = inspect.signature(function).bind(*arguments, **keywords).arguments
    names = {
        tensor.untyped_storage().data_ptr(): name
        for name, tensor in bound.items()
        if isinstance(tensor, torch.Tensor)
    }
    allocations = Allocations()
    recorded = strict.record(names, keep_steps=True, allocations=allocations)
    with recorded as recording, _WatchAllocations(allocations):
        result = function(*arguments, **keywords)
    return result, recording


install()


from dataclasses import dataclass


@dataclass(frozen=True)
class Gpu:
    """A GPU's figures.

    Attributes:
        half_flops: operations in a second by the tensor cores on float16 and bfloat16.
        tf32_flops: the same on float32 that is rounded to 10 bits.
        float32_flops: operations in a second on whole float32, without the tensor cores.
        bytes_a_second: between the chip and its memory.
        capability: NVIDIA's number of the chip's kind.
        shared_bytes: the most shared memory of one program.
        shared_bytes_of_processor: shared memory of a multiprocessor, for all programs on it.
        registers: registers of a multiprocessor.
        registers_of_thread: the most registers of one thread.
        warps: the most warps on a multiprocessor; a warp is 32 threads.
        programs: the most programs on a multiprocessor.
        warps_of_program: the most warps of one program.
    """

    name: str
    half_flops: float
    tf32_flops: float
    float32_flops: float
    bytes_a_second: float
    capability: int = 90
    shared_bytes: int = 227 << 10
    shared_bytes_of_processor: int = 228 << 10
    registers: int = 64 << 10
    registers_of_thread: int = 255
    warps: int = 64
    programs: int = 32
    warps_of_program: int = 32


H100 = Gpu("H100", 989.5e12, 494.7e12, 67e12, 3.35e12)
H200 = Gpu("H200", 989.5e12, 494.7e12, 67e12, 4.8e12)


import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from unittest import mock

from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction


@dataclass(frozen=True)
class KernelLaunch:
    """A kernel with the arguments of one launch.

    Attributes:
        kernel: Triton's `JITFunction`.
        keywords: arguments by name, and options such as `num_warps`.
    """

    kernel: Any
    grid: Any
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]


def capture_launches(
    function: Callable[..., Any], *arguments: Any, **keywords: Any
) -> list[KernelLaunch]:
    """The launches that a call of `function` makes.

    No kernel runs, so tensors may lie on torch's device "meta", which has no memory: sizes can be
    as large as on a GPU. A kernel with several configurations gives a launch for each.
    """
    launches: list[KernelLaunch] = []

    def note(
        kernel: Any, /, *args: Any, grid: Any, warmup: bool = False, **options: Any
    ) -> None:
        launches.append(KernelLaunch(kernel, grid, args, options))

    def note_each_configuration(tuner: Any, /, *args: Any, **options: Any) -> None:
        for config in tuner.configs:
            tuner.fn.run(*args, **{**options, **config.all_kwargs()})

    with _replaced(JITFunction, note), _replaced(Autotuner, note_each_configuration):
        function(*arguments, **keywords)
    return launches


@contextlib.contextmanager
def noted_launches() -> Iterator[list[KernelLaunch]]:
    """Inside the block, the launches of kernels, which run as without it."""
    launches: list[KernelLaunch] = []
    run_kernel = JITFunction.run

    def run(
        kernel: Any, /, *args: Any, grid: Any, warmup: bool = False, **options: Any
    ) -> Any:
        launches.append(KernelLaunch(kernel, grid, args, options))
        return run_kernel(kernel, *args, grid=grid, warmup=warmup, **options)

    with _replaced(JITFunction, run):
        yield launches


def _replaced(kernel_type: Any, run: Callable[..., Any]) -> Any:
    """Inside the block, launches of this kind of kernel call `run`."""
    return mock.patch.object(kernel_type, "run", run)


import functools
import re
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from triton._C.libtriton import ir, nvidia, passes
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import ASTSource, make_backend
from triton.runtime.jit import create_function_from_signature


_SHARED_OF_SYSTEM = 1 << 10  # bytes that CUDA adds to the shared memory of each program
_REGISTER_STEP = 8  # a warp gets registers in steps of 8 for each of its 32 threads
_THREADS = 32
_ASSEMBLER_SECONDS = 120.0
_USUAL_WARPS, _USUAL_STAGES = 4, 3
_WARPS = (1, 2, 4, 8, 16, 32)
_PTX_VERSION = (
    80  # of PTX, for a pass that asks for a version and needs none without a GPU
)


class OutOfResources(Exception):
    """No such GPU could launch the kernel: a program asks for more than the GPU has."""


@dataclass(frozen=True)
class Resources:
    """The needs of one program of a kernel.

    Attributes:
        registers: of each thread.
        spilled_bytes: bytes of each thread that found no register and go to memory and back.
        shared_bytes: shared memory.
        programs: programs that a multiprocessor keeps at a time; 0 where it can launch none.
        bound_by: what keeps more programs away.
    """

    kernel: str
    types: str
    gpu: Gpu
    num_warps: int
    registers: int
    spilled_bytes: int
    shared_bytes: int
    programs: int
    bound_by: str

    @property
    def occupancy(self) -> float:
        """The share of the warps that a multiprocessor could keep."""
        return self.programs * self.num_warps / self.gpu.warps

    def __str__(self) -> str:
        spills = (
            f"{self.spilled_bytes} bytes spilled"
            if self.spilled_bytes
            else "nothing spilled"
        )
        return (
            f"{self.kernel}({self.types}) on {self.gpu.name}: {self.registers} registers a thread, "
            f"{spills}, {self.shared_bytes} of {self.gpu.shared_bytes} bytes of shared memory, "
            f"{self.num_warps} warps; a multiprocessor keeps {self.programs} programs "
            f"({self.occupancy:.0%} of its warps), limited by {self.bound_by}"
        )


def resources(
    function: Callable[..., Any], *arguments: Any, gpu: Gpu = H200, **keywords: Any
) -> list[Resources]:
    """Compile the kernels that a call of `function` launches, and tell their needs.

    No kernel runs, and tensors may be on torch's device "meta".

    Raises:
        OutOfResources: no such GPU could launch a kernel.
    """
    needs = []
    for launch in capture_launches(function, *arguments, **keywords):
        resource = resources_of(launch, gpu)
        if resource not in needs:
            needs.append(resource)
    return needs


def resources_of(launch: KernelLaunch, gpu: Gpu = H200) -> Resources:
    """The needs of one launch's kernel. Takes seconds: the assembler runs.

    Raises:
        OutOfResources: no such GPU could launch the kernel.
    """
    compiled = GpuCompilation(launch, gpu)
    shared_bytes = compiled.shared_bytes()
    refuse_too_much(compiled.name, compiled.num_warps, shared_bytes, gpu)
    registers, spilled_bytes = assemble(compiled.ptx(), gpu.capability)
    programs, bound_by = occupancy(gpu, compiled.num_warps, registers, shared_bytes)
    return Resources(
        kernel=compiled.name,
        types=compiled.types,
        gpu=gpu,
        num_warps=compiled.num_warps,
        registers=registers,
        spilled_bytes=spilled_bytes,
        shared_bytes=shared_bytes,
        programs=programs,
        bound_by=bound_by,
    )


def refuse_too_much(kernel: str, num_warps: int, shared_bytes: int, gpu: Gpu) -> None:
    """Refuse what a launch on a GPU would refuse.

    Raises:
        OutOfResources: names the resource, and what to do.
    """
    if shared_bytes > gpu.shared_bytes:
        raise OutOfResources(
            f"{kernel} needs {shared_bytes} bytes of shared memory for a program, and an "
            f"{gpu.name} has {gpu.shared_bytes}: smaller tiles, or a smaller num_stages"
        )
    if num_warps > gpu.warps_of_program:
        raise OutOfResources(
            f"{kernel} asks for num_warps={num_warps}, and a program on an {gpu.name} has at most "
            f"{gpu.warps_of_program}"
        )


def occupancy(
    gpu: Gpu, num_warps: int, registers: int, shared_bytes: int
) -> tuple[int, str]:
    """How many programs a multiprocessor keeps at a time, and what keeps more away."""
    of_a_thread = -(-registers // _REGISTER_STEP) * _REGISTER_STEP
    limits = {
        "the number of programs": gpu.programs,
        "the number of warps": gpu.warps // num_warps,
        "shared memory": gpu.shared_bytes_of_processor
        // (shared_bytes + _SHARED_OF_SYSTEM),
        "registers": gpu.registers // (of_a_thread * _THREADS) // num_warps,
    }
    bound_by = min(limits, key=limits.__getitem__)
    return limits[bound_by], bound_by


def refuse_large_launches(
    launches: list[KernelLaunch], largest: int, gpu: Gpu = H200
) -> None:
    """Refuse launches that a GPU would refuse. Compiles the kernels where the largest tile could
    make one too large; no assembler runs, and no other process.

    Args:
        largest: elements of the largest tile of these launches.

    Raises:
        OutOfResources: names the kernel.
    """
    for launch in launches:
        name = launch.kernel.__name__
        options = {
            key: value for key, value in launch.keywords.items() if value is not None
        }
        num_warps = options.get("num_warps", _USUAL_WARPS)
        stages = options.get("num_stages", _USUAL_STAGES)
        if num_warps not in _WARPS:
            choices = "1, 2, 4, 8, 16 or 32"
            raise OutOfResources(
                f"{name} asks for num_warps={num_warps}; a GPU takes {choices}"
            )
        # two operands in each stage of the loop, of 4 bytes an element
        if 2 * 4 * largest * max(stages, 1) > gpu.shared_bytes:
            compiled = GpuCompilation(launch, gpu)
            refuse_too_much(name, num_warps, compiled.shared_bytes(), gpu)


class GpuCompilation:
    """A kernel on its way to a GPU, for the argument types and constants of one launch.

    Attributes:
        types: the types and constants, for people.
    """

    def __init__(self, launch: KernelLaunch, gpu: Gpu) -> None:
        kernel = launch.kernel
        target = GPUTarget("cuda", gpu.capability, _THREADS)
        self._backend = make_backend(target)
        bind = create_function_from_signature(
            kernel.signature, kernel.params, self._backend
        )
        bound, specialization, options = bind(*launch.arguments, **launch.keywords)
        options.setdefault(
            "enable_fp_fusion", True
        )  # the default, about which Triton 3.9 warns
        self._options, signature, constant_values, attributes = kernel._pack_args(
            self._backend, options, bound, specialization, options
        )
        self.name = str(kernel.__name__)
        self.num_warps = int(self._options.num_warps)
        pointers = [kind for kind in signature.values() if str(kind).startswith("*")]
        constants = {p.name: bound[p.name] for p in kernel.params if p.is_constexpr}
        chosen = [
            f"{name}={getattr(v, '__name__', v)}" for name, v in constants.items()
        ]
        self.types = ", ".join([*dict.fromkeys(pointers), *chosen])
        context = ir.context()
        ir.load_dialects(context)
        self._backend.load_dialects(context)
        source = ASTSource(kernel, signature, constant_values, attributes)
        self._module = source.make_ir(
            target,
            self._options,
            self._backend.get_codegen_implementation(self._options),
            self._backend.get_module_map(),
            context,
        )
        self._stages: dict[str, Callable[..., Any]] = {}
        self._backend.add_stages(self._stages, self._options, source.language)
        self._metadata: dict[str, Any] = {}
        self._module = self._stages["ttir"](self._module, self._metadata)
        self.text = str(self._module)
        self._context = context

    @functools.cached_property
    def _gpu_module(self) -> Any:
        return self._stages["ttgir"](self._module, self._metadata)

    def shared_bytes(self) -> int:
        """Shared memory of one program. Takes a tenth of a second: no code is generated."""
        module = self._gpu_module
        manager = ir.pass_manager(module.context)
        passes.ttgpuir.add_combine_tensor_select_and_if(manager)
        try:
            passes.ttgpuir.add_allocate_warp_groups(manager)
        except (
            TypeError
        ):  # from Triton 3.9 on it also asks whether races are looked for
            passes.ttgpuir.add_allocate_warp_groups(manager, False)
        passes.convert.add_scf_to_cf(manager)
        capability = self._backend.target.arch
        nvidia.passes.ttgpuir.add_allocate_shared_memory_nv(
            manager, capability, _PTX_VERSION
        )
        manager.run(module, "shared_memory")
        return int(module.get_int_attr("ttg.shared"))

    def ptx(self) -> str:
        """The text for the assembler."""
        module = self._stages["llir"](self._gpu_module, self._metadata)
        return str(self._stages["ptx"](module, self._metadata))


def assemble(ptx: str, capability: int) -> tuple[int, int]:
    """Registers of a thread, and bytes of a thread that are spilled, by the assembler's report.

    Raises:
        OSError: the assembler fails, or is not there.
    """
    from triton.backends.nvidia.compiler import get_ptxas, sm_arch_from_capability

    arch = sm_arch_from_capability(capability)
    with tempfile.TemporaryDirectory(prefix="resources-") as folder:
        text, program = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        text.write_text(ptx, encoding="utf-8")
        command = [get_ptxas(capability).path, "-v", f"--gpu-name={arch}", str(text)]
        done = subprocess.run(
            [*command, "-o", str(program)],
            capture_output=True,
            text=True,
            timeout=_ASSEMBLER_SECONDS,
            check=False,
        )
    registers = re.search(r"Used (\d+) registers", done.stderr)
    spills = re.search(
        r"(\d+) bytes spill stores, (\d+) bytes spill loads", done.stderr
    )
    if done.returncode or registers is None or spills is None:
        raise OSError(f"NVIDIA's assembler fails: {done.stderr.strip()[-300:]}")
    return int(registers[1]), int(spills[1])


import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch


__all__ = ["H100", "H200", "Roofline", "resources", "roofline"]

_DOT = re.compile(r"tt\.dot [^:]*?(inputPrecision = tf32)?\s*: tensor<[\dx]+x(\w+)[,>]")
_WHOLE, _ROUNDED, _HALF = "float32", "tf32", "half"


@dataclass(frozen=True)
class Roofline:
    """The work of a function's kernels.

    Attributes:
        flops: operations of `tl.dot`; a product and its sum are two.
        bytes_moved: bytes that programs load and store. Some come from the chip's cache: a GPU can
            be faster than this traffic says.
        precision: of the slowest product: "float32", "tf32" or "half"; "half" where there is none.
    """

    flops: int
    bytes_moved: int
    precision: str

    @property
    def intensity(self) -> float:
        """Operations for each byte."""
        return self.flops / self.bytes_moved

    def flops_a_second(self, gpu: Gpu) -> float:
        """The most that the GPU can do of these operations in a second."""
        return min(self.peak(gpu), self.intensity * gpu.bytes_a_second)

    def peak(self, gpu: Gpu) -> float:
        """The GPU's speed for products of this precision, if no byte had to be moved."""
        peaks = {
            _WHOLE: gpu.float32_flops,
            _ROUNDED: gpu.tf32_flops,
            _HALF: gpu.half_flops,
        }
        return peaks[self.precision]

    def seconds(self, gpu: Gpu) -> float:
        """The least time on this GPU."""
        return max(self.flops / self.peak(gpu), self.bytes_moved / gpu.bytes_a_second)

    def bound_by(self, gpu: Gpu) -> str:
        """What the GPU waits for: "traffic" or "products"."""
        waits = self.intensity * gpu.bytes_a_second < self.peak(gpu)
        return "traffic" if waits else "products"


def roofline(
    recording: Any, function: Callable[..., Any], *arguments: Any, **keywords: Any
) -> Roofline:
    """The work of the kernels that a function launches.

    Args:
        recording: the trace of the same call, `trace(function, …)[1]`.
    """
    launches = capture_launches(function, *arguments, **keywords)
    sizes = _element_sizes(function, arguments, keywords, launches)
    moved = sum(
        count * sizes[name]
        for counts in (recording.loads, recording.stores)
        for name, count in counts.items()
    )
    return Roofline(recording.flops, moved, _slowest_precision(launches))


def _element_sizes(
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    keywords: Mapping[str, Any],
    launches: list[KernelLaunch],
) -> dict[str, int]:
    """Bytes of an element of each tensor, by the names of a recording."""
    tensors: dict[str, Any] = {}
    for launch in launches:
        parameters = launch.kernel.arg_names
        by_parameter = {
            **dict(zip(parameters, launch.arguments, strict=False)),
            **launch.keywords,
        }
        for name, value in by_parameter.items():
            tensors[name.removesuffix("_ptr")] = value
    tensors |= inspect.signature(function).bind(*arguments, **keywords).arguments
    return {
        name: value.element_size()
        for name, value in tensors.items()
        if isinstance(value, torch.Tensor)
    }


def _slowest_precision(launches: list[KernelLaunch]) -> str:
    precisions = set()
    for text in {GpuCompilation(launch, H200).text for launch in launches}:
        for rounded, element in _DOT.findall(text):
            if element != "f32":
                precisions.add(_HALF)
            else:
                precisions.add(_ROUNDED if rounded else _WHOLE)
    slowest_first = (_WHOLE, _ROUNDED, _HALF)
    return next((kind for kind in slowest_first if kind in precisions), _HALF)


CARRIES = "autograder.kernels.strict_triton autograder.kernels.roofline"
