"""The tensors that a kernel is given: parts of storages, each with a range of addresses."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

from autograder.kernels.faults import KernelFault
from autograder.kernels.number_types import Array
from autograder.kernels.races import ElementHistory


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
