"""The tensors of a launch's arguments, as the memory that a kernel sees."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from autograder.kernels.faults import KernelFault
from autograder.kernels.launch import Argument, DescriptorArgument
from autograder.kernels.number_types import Array
from autograder.kernels.tensor_regions import Storage, TensorView

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
