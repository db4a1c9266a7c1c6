"""What torch and the kernels left in each tensor's memory during one call, so that nobody else's
writing counts.

A wrapper can write into a tensor past torch and Triton: through numpy, a pointer, a storage,
another thread. None of them shows in the record of a launch. So the bytes of every storage are
noted when torch or a kernel has written them, and compared when torch, a kernel or the caller reads
them next.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map

from autograder.kernels.memory import Elements, KernelFault
from autograder.kernels.strict_triton import Strict

MOST_FROM_OUTSIDE = 64
"""Numbers from Python or numpy that a tensor may hold: sizes, a scale, a slope a head, the padding
of some rows.
"""
_Bytes = np.ndarray[Any, np.dtype[np.uint8]]
_ADVICE = (
    "What counts is what the kernels store, and what torch allocates, pads and copies around them"
)


@dataclass(slots=True)
class NotedStorage:
    """One storage as torch or a kernel left it.

    Attributes:
        content: a copy of all its bytes.
        outside: how many numbers in it came from neither torch nor a kernel nor the caller, at
            most.
        stored: bytes that kernels have stored since the outermost launch began.
    """

    storage: torch.UntypedStorage
    name: str
    content: _Bytes
    outside: int = 0
    stored: _Bytes | None = None

    def note(self) -> None:
        """Take what stands there now for what may stand there."""
        self.content = _bytes_of(self.storage).copy()

    @property
    def is_unchanged(self) -> bool:
        """Whether the memory holds what was noted."""
        return np.array_equal(_bytes_of(self.storage), self.content)


class LaunchLedger:
    """The memory of one call of a function that launches kernels.

    Args:
        strict: the interpreter that runs the kernels.
        arguments: the tensors that the caller gives, by name.
    """

    def __init__(self, strict: Strict, arguments: dict[str, Tensor]) -> None:
        self._strict = strict
        self._noted: dict[int, NotedStorage] = {}
        self._fault: KernelFault | None = None
        self._depth = 0
        for name, tensor in arguments.items():
            self._adopt(tensor, name)

    def take(self, value: Any) -> None:
        """Note the tensors in what the caller gives, or a function that answers from outside the
        walls.
        """
        for leaf in tree_leaves(value):
            if _is_plain(leaf) and self._known(leaf) is None:
                self._adopt(leaf, "an argument")

    # operations of torch

    def before_operation(self, given: Iterable[Tensor]) -> None:
        """Refuse to compute with memory that somebody else has written."""
        if not self._depth:
            self._check(given)

    def after_operation(
        self,
        given: Iterable[Tensor],
        made: Iterable[Tensor],
        *,
        writes: bool,
        from_python: bool = False,
    ) -> None:
        """Note what an operation has made, and what it has written where it `writes` its arguments.

        Args:
            from_python: whether it has filled something with a number: many such write an answer,
                one by one.
        """
        given = list(given)
        sources = {
            id(noted): noted.outside
            for tensor in given
            if (noted := self._known(tensor)) is not None
        }
        written: set[int] = set()
        for tensor in (*made, *(given if writes else ())):
            noted = self._known(tensor)
            if noted is None:
                self._adopt(
                    tensor, outside=min(sum(sources.values()) + from_python, tensor.numel())
                )
            elif writes and id(noted) not in written:
                written.add(id(noted))
                noted.outside += (
                    sum(count for key, count in sources.items() if key != id(noted)) + from_python
                )
                noted.note()

    # launches

    @contextlib.contextmanager
    def launch(self, arguments: Iterable[Any]) -> Iterator[None]:
        """Around one launch, or around all that autotune makes of it: memory changes where kernels
        store, and there to what they store.
        """
        tensors = [tensor for tensor in arguments if _is_plain(tensor)]
        if not self._depth:
            self._check(tensors)
        before = {key: _bytes_of(noted.storage).copy() for key, noted in self._noted.items()}
        memory = self._strict.memory
        self._depth += 1
        try:
            yield
            if self._strict.memory is not memory:
                self._take_stores(before)
            if self._depth == 1:
                for noted in self._noted.values():
                    changed = _bytes_of(noted.storage) != noted.content
                    if noted.stored is not None:
                        changed &= noted.stored == 0
                    if changed.any():
                        self._refuse(noted)
        finally:
            self._depth -= 1
            if not self._depth:
                for noted in self._noted.values():
                    noted.note()
                    noted.stored = None

    def _take_stores(self, before: dict[int, _Bytes]) -> None:
        """Compare each tensor of the launch that has just ended with what its programs stored."""
        for region in self._strict.memory.regions.values():
            noted = self._noted.get(region.tensor.untyped_storage().data_ptr())
            if noted is not None:
                noted.name = region.name
        views: dict[int, list[Elements]] = {}
        for (address, _), elements in self._strict.memory.elements.items():
            views.setdefault(address, []).append(elements)
        for address, seen in views.items():
            noted, expected = self._noted.get(address), before.get(address)
            if noted is None or expected is None:
                continue
            stored, unsure = np.zeros(expected.size, np.uint8), np.zeros(expected.size, bool)
            for elements in seen:
                elements.write_into(expected, stored, unsure)
            # in two sizes: which came last?
            if sum(elements.stored_at is not None for elements in seen) > 1:
                unsure |= stored > 0
            if ((_bytes_of(noted.storage) != expected) & ~unsure).any():
                self._refuse(noted)
            if noted.outside > MOST_FROM_OUTSIDE and any(elements.kept for elements in seen):
                self._fail(
                    f"A kernel loads {noted.name}, and its values came from numpy or a list, not "
                    f"from torch. {_ADVICE}."
                )
            noted.stored = stored if noted.stored is None else noted.stored | stored
            written = sum(elements.count_stored for elements in seen)
            noted.outside = max(0, noted.outside - written)

    # the answer

    def settled(self, result: Any) -> Any:
        """The answer as torch and the kernels left it: tensors are copies that no thread can reach.

        Raises:
            KernelFault: something else has written into it, or into what it was made of.
        """
        if self._fault is not None:
            raise self._fault
        leaves = [leaf for leaf in tree_leaves(result) if isinstance(leaf, (Tensor, np.ndarray))]
        self._check(leaves)
        for leaf in leaves:
            noted = self._known(leaf) if isinstance(leaf, Tensor) else self._around(leaf)
            if noted is None and isinstance(leaf, np.ndarray) and leaf.size > 1:
                self._fail(f"What is returned was made by numpy. {_ADVICE}.")
            if noted is not None and not noted.is_unchanged:
                self._refuse(noted)
            if (
                noted is not None
                and noted.outside
                and noted.outside >= min(_size(leaf), MOST_FROM_OUTSIDE)
            ):
                self._fail(
                    "What is returned got its values from numpy, a list or a thread, not from "
                    f"torch. {_ADVICE}."
                )
        return tree_map(self._private, result)

    def _private(self, leaf: Any) -> Any:
        noted = self._known(leaf) if isinstance(leaf, Tensor) and _is_plain(leaf) else None
        if noted is None or leaf.requires_grad or leaf.is_conj() or leaf.is_neg():
            return leaf
        whole = torch.from_numpy(noted.content.copy())
        usable = whole[: whole.numel() // leaf.element_size() * leaf.element_size()]
        return usable.view(leaf.dtype).as_strided(leaf.shape, leaf.stride(), leaf.storage_offset())

    # storages

    def _check(self, tensors: Iterable[Any]) -> None:
        for tensor in tensors:
            if not _is_plain(tensor):
                continue
            noted = self._known(tensor)
            # made where torch does not tell: from numpy, in a thread, before the call
            if noted is None:
                self._adopt(tensor, outside=tensor.numel())
            elif not noted.is_unchanged:
                self._refuse(noted)

    def _refuse(self, noted: NotedStorage) -> None:
        noted.note()
        self._fail(
            f"Something other than torch and the kernels has written into {noted.name}. {_ADVICE}."
        )

    def _fail(self, message: str) -> None:
        self._fault = self._fault or KernelFault(message)
        raise self._fault

    def _known(self, tensor: Tensor) -> NotedStorage | None:
        return self._noted.get(tensor.untyped_storage().data_ptr()) if _is_plain(tensor) else None

    def _around(self, array: np.ndarray[Any, Any]) -> NotedStorage | None:
        """The storage that an array is a view of."""
        address = array.__array_interface__["data"][0]
        inside = (n for key, n in self._noted.items() if key <= address < key + n.storage.nbytes())
        return next(inside, None)

    def _adopt(
        self, tensor: Tensor, name: str = "a tensor of the wrapper's", outside: int = 0
    ) -> None:
        if _is_plain(tensor):
            # kept: an address names one storage while the call lasts
            storage = tensor.untyped_storage()
            self._noted[storage.data_ptr()] = NotedStorage(
                storage, name, _bytes_of(storage).copy(), outside
            )


def _size(value: Tensor | np.ndarray[Any, Any]) -> int:
    return value.numel() if isinstance(value, Tensor) else value.size


def _is_plain(value: Any) -> bool:
    """Whether a value is a tensor with memory that can be read here."""
    if not isinstance(value, Tensor) or value.device.type != "cpu" or value.layout != torch.strided:
        return False
    try:
        return value.untyped_storage().data_ptr() != 0
    except (RuntimeError, NotImplementedError):  # a wrapper around other tensors has no storage
        return False


class _Window:
    """A storage's memory as numpy reads it."""

    def __init__(self, storage: torch.UntypedStorage) -> None:
        self.__array_interface__ = {
            "data": (storage.data_ptr(), True),
            "shape": (storage.nbytes(),),
            "typestr": "|u1",
            "version": 3,
        }


def _bytes_of(storage: torch.UntypedStorage) -> _Bytes:
    return np.asarray(_Window(storage))
