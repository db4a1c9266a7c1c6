"""Who has read and written each element: races are found whichever order a GPU would take.

Nothing orders two programs of a launch, nor two lanes of one program between two barriers. So the
elements of a storage keep their writers and readers for the whole launch, and an access is refused
where somebody else's access to the same element could come before it or after it.
"""

from __future__ import annotations

import functools
from typing import Protocol

import numpy as np

from autograder.kernels.number_types import Array
from autograder.kernels.order import ProgramOrder

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
