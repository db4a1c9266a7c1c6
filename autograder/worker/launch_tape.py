"""A tape of one call: what torch and the kernels did to which memory, as data.

The trusted side plays it again on memory of its own, from the arguments that it has sent
(`sandbox/launch_replay.py`), so nothing that a wrapper does beside torch and the kernels counts.
A tensor is a view of a storage: its number, dtype, shape, strides and offset. Views are made by
nobody, so a tape holds only operations that write.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from autograder.kernels.launch import LaunchData
from autograder.kernels.tensors import ArgumentMemory, bytes_of

MOST_FROM_OUTSIDE = 64
"""Numbers of a tensor from numpy or a list that cross with the tape: sizes, slopes, a table."""
_MOST_STEPS = 20_000


class LaunchTape:
    """The memory of one call, and what was done to it."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._kept: list[
            torch.UntypedStorage
        ] = []  # an address names one storage meanwhile
        self._storages: list[dict[str, Any]] = []
        self._texts: dict[str, int] = {}
        self._steps: list[list[Any]] = []
        self._has_answers = False

    # memory

    def add_arguments(self, leaves: Iterable[Any]) -> None:
        """Enter the tensors that the trusted side has sent."""
        for number, leaf in enumerate(leaves):
            if is_plain(leaf):
                storage = self._storages[self._enter(leaf, {"argument": number})]
                storage.setdefault("view", self._view(leaf))

    def _enter(self, tensor: Tensor, origin: dict[str, Any]) -> int:
        storage = tensor.untyped_storage()
        number = self._numbers.get(storage.data_ptr())
        if number is None:
            number = self._numbers[storage.data_ptr()] = len(self._storages)
            self._kept.append(storage)
            self._storages.append({"bytes": storage.nbytes(), **origin})
        return number

    def _view(self, tensor: Tensor) -> list[Any]:
        """A tensor as data. Memory that nobody has entered came from outside of torch."""
        number = self._numbers.get(_address(tensor))
        if number is None:
            number = self._enter(tensor, _from_outside(tensor))
        return [
            number,
            str(tensor.dtype).removeprefix("torch."),
            list(tensor.shape),
            list(tensor.stride()),
            tensor.storage_offset(),
        ]

    # steps

    def meet(self, inputs: Iterable[Tensor]) -> None:
        """Enter what an operation is about to take: it may change what came from outside."""
        for tensor in inputs:
            if is_plain(tensor):
                self._view(tensor)

    def adopt_answer(self) -> None:
        """Note that the trusted side has answered in the middle of the call, for a stand-in."""
        self._has_answers = True

    def note_operation(
        self,
        func: Any,
        args: Any,
        kwargs: Any,
        inputs: list[Tensor],
        outputs: list[Tensor],
    ) -> None:
        """Note an operation of torch that has just run."""
        writes = func._schema.is_mutable
        known = {_address(tensor) for tensor in inputs}
        fresh = [
            tensor
            for tensor in outputs
            if is_plain(tensor) and _address(tensor) not in known
        ]
        if not writes and not fresh:
            return  # a view
        name = func._overloadpacket.__name__
        parts = [self._encode(args), self._encode(kwargs or {})]
        for tensor in fresh:
            self._enter(tensor, {})
        results = (
            []
            if writes
            else [self._view(tensor) for tensor in outputs if is_plain(tensor)]
        )
        self._append(["torch", name, func._overloadname, *parts, results])

    def note_launch(self, launch: LaunchData, memory: ArgumentMemory) -> None:
        """Note a launch that is about to run."""
        storages = []
        for storage in memory.torch_storages:
            number = self._numbers.get(storage.data_ptr())
            if number is None:
                whole = torch.tensor([], dtype=torch.uint8).set_(storage)
                number = self._enter(whole, _from_outside(whole))
            storages.append([number, storage.data_ptr()])
        text = self._texts.setdefault(launch.text, len(self._texts))
        self._append(["launch", text, storages, launch.to_data()])

    def _append(self, step: list[Any]) -> None:
        if len(self._steps) < _MOST_STEPS:
            self._steps.append(step)

    def _encode(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            return {"tensor": self._view(value)} if is_plain(value) else None
        if isinstance(value, dict):
            return {str(key): self._encode(part) for key, part in value.items()}
        if isinstance(value, list | tuple):
            return [self._encode(part) for part in value]
        if isinstance(value, torch.dtype):
            return {"dtype": str(value).removeprefix("torch.")}
        if isinstance(value, float):
            return {"float": value.hex()}
        if value is None or isinstance(value, bool | int | str):
            return value
        return None  # a device or a layout: memory is the trusted side's

    # the end

    def finish(self, result: Any) -> dict[str, Any]:
        """The tape as data, with the views that the call returns."""
        leaves = [leaf for leaf in tree_leaves(result) if isinstance(leaf, Tensor)]
        views = [self._view(leaf) if is_plain(leaf) else None for leaf in leaves]
        return {
            "storages": self._storages,
            "texts": list(self._texts),
            "steps": self._steps,
            "result": views,
            "has_answers": self._has_answers,
        }


def _address(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _from_outside(tensor: Tensor) -> dict[str, Any]:
    """A storage that torch has not made in this call. Of a small one the bytes cross."""
    storage, size = tensor.untyped_storage(), tensor.element_size()
    is_small = storage.nbytes() <= MOST_FROM_OUTSIDE * size
    content = bytes_of(storage).tobytes().hex() if is_small else None
    return {"outside": content, "size": size}


def is_plain(value: Any) -> bool:
    """Whether a value is a tensor with memory that can be read here."""
    if not isinstance(value, Tensor):
        return False
    if value.device.type != "cpu" or value.layout != torch.strided:
        return False
    try:
        return value.untyped_storage().data_ptr() != 0
    except (
        RuntimeError,
        NotImplementedError,
    ):  # a wrapper around other tensors has no storage
        return False
