"""The programs that run at the same time, and the lanes of one access."""

from __future__ import annotations

import functools
import math

import numpy as np

from autograder.kernels.number_types import Array

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
