"""What atomic operations order, where programs run one after the other.

A program that releases at an address publishes all that it has done before; a program that later
acquires at the address may see it. Nothing else orders two programs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from autograder.kernels.number_types import Array

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
