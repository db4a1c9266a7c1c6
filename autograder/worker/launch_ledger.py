"""A ledger of what torch and the kernels left in each tensor's memory during one call, so that
nobody else's writing counts.

A wrapper can write into a tensor past torch and Triton: through numpy, a pointer, a storage,
another thread. None of them shows in the record of a launch. So the ledger copies the bytes of
every storage when torch or a kernel has written them, and compares them when torch, a kernel or the
caller reads them next.
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
class LedgerEntry:
    """One storage as torch or a kernel left it.

    Attributes:
        content: a copy of all its bytes.
        from_outside: how many numbers in the storage came from neither torch nor a kernel nor the
            caller, at most.
        stored: bytes that kernels have stored since the outermost launch began.
    """

    storage: torch.UntypedStorage  # kept alive: an address names one storage while the call lasts
    name: str
    content: _Bytes
    from_outside: int = 0
    stored: _Bytes | None = None

    def accept_content(self) -> None:
        """Take the bytes in memory for those that torch or a kernel left."""
        self.content = _bytes_of(self.storage).copy()

    @property
    def is_unchanged(self) -> bool:
        """Whether the memory still holds the copied bytes."""
        return np.array_equal(_bytes_of(self.storage), self.content)


class LaunchLedger:
    """The memory of one call of a function that launches kernels.

    Args:
        strict: the interpreter that runs the kernels.
        arguments: the caller's tensors, by name.
    """

    def __init__(self, strict: Strict, arguments: dict[str, Tensor]) -> None:
        self._strict = strict
        self._entries: dict[int, LedgerEntry] = {}
        self._fault: KernelFault | None = None
        self._depth = 0
        for name, tensor in arguments.items():
            self._enter(tensor, name)

    def adopt(self, value: Any) -> None:
        """Enter the tensors in a value of the caller's, or of a function that answers from outside
        the walls.
        """
        for leaf in tree_leaves(value):
            if _is_plain(leaf) and self._entry(leaf) is None:
                self._enter(leaf, "an argument")

    # operations of torch

    def before_operation(self, inputs: Iterable[Tensor]) -> None:
        """Refuse to compute with memory that neither torch nor a kernel has written."""
        if not self._depth:
            self._check(inputs)

    def after_operation(
        self,
        inputs: list[Tensor],
        outputs: list[Tensor],
        *,
        writes: bool,
        from_python: bool,
    ) -> None:
        """Enter the outputs of an operation, and its inputs where the operation `writes` them.

        Args:
            from_python: whether the operation has filled something with a number of Python's: many
                such operations write an answer, number by number.
        """
        counts: dict[int, int] = {}
        for tensor in inputs:
            if (entry := self._entry(tensor)) is not None:
                counts[id(entry)] = entry.from_outside
        total = sum(counts.values()) + from_python
        written: set[int] = set()
        for tensor in (*outputs, *(inputs if writes else ())):
            entry = self._entry(tensor)
            if entry is None:
                self._enter(tensor, from_outside=min(total, tensor.numel()))
            elif writes and id(entry) not in written:
                written.add(id(entry))
                entry.from_outside += total - counts.get(id(entry), 0)
                entry.accept_content()

    # launches

    @contextlib.contextmanager
    def launch(self, arguments: Iterable[Any]) -> Iterator[None]:
        """Watch one launch, or all launches that autotune makes instead of it: memory may change
        only where kernels store, and only to the values that they store.
        """
        if not self._depth:
            self._check(arguments)
        contents = {
            address: _bytes_of(entry.storage).copy() for address, entry in self._entries.items()
        }
        memory = self._strict.memory
        self._depth += 1
        try:
            yield
            if self._strict.memory is not memory:
                self._compare_with_stores(contents)
            if self._depth == 1:
                self._refuse_other_writes()
        finally:
            self._depth -= 1
            if not self._depth:
                for entry in self._entries.values():
                    entry.accept_content()
                    entry.stored = None

    def _refuse_other_writes(self) -> None:
        """Refuse bytes that have changed since the launch began, and that no kernel stored."""
        for entry in self._entries.values():
            changed = _bytes_of(entry.storage) != entry.content
            if entry.stored is not None:
                changed &= entry.stored == 0
            if changed.any():
                self._refuse(entry)

    def _compare_with_stores(self, contents: dict[int, _Bytes]) -> None:
        """Compare the memory after a launch with what its programs stored.

        Args:
            contents: the bytes of each storage before the launch, by address.
        """
        memory = self._strict.memory
        for region in memory.regions.values():
            entry = self._entry(region.tensor)
            if entry is not None:
                entry.name = region.name
        views: dict[int, list[Elements]] = {}
        for (address, _), elements in memory.elements.items():
            views.setdefault(address, []).append(elements)
        for address, elements_of_sizes in views.items():
            if address in self._entries and address in contents:
                self._compare_entry(self._entries[address], contents[address], elements_of_sizes)

    def _compare_entry(
        self, entry: LedgerEntry, expected: _Bytes, elements_of_sizes: list[Elements]
    ) -> None:
        """Compare one storage with the bytes before the launch, which this method brings up to
        date; kernels may see a storage as elements of several sizes.
        """
        stored = np.zeros(expected.size, np.uint8)
        unsure = np.zeros(expected.size, bool)
        for elements in elements_of_sizes:
            elements.write_into(expected, stored, unsure)
        # stores in two sizes: which came last is not known
        if sum(elements.stored_at is not None for elements in elements_of_sizes) > 1:
            unsure |= stored > 0
        differs = _bytes_of(entry.storage) != expected
        if (differs & ~unsure).any():
            self._refuse(entry)
        is_loaded = any(elements.kept for elements in elements_of_sizes)
        if entry.from_outside > MOST_FROM_OUTSIDE and is_loaded:
            self._fail(
                f"A kernel loads {entry.name}, and its values came from numpy or a list, not "
                f"from torch. {_ADVICE}."
            )
        entry.stored = stored if entry.stored is None else entry.stored | stored
        count_stored = sum(elements.count_stored for elements in elements_of_sizes)
        entry.from_outside = max(0, entry.from_outside - count_stored)

    # the answer

    def verify(self, result: Any) -> Any:
        """The answer as torch and the kernels left it: tensors are copies that no thread can reach.

        Raises:
            KernelFault: something else has written into the answer, or into what it was made of.
        """
        if self._fault is not None:
            raise self._fault
        leaves = [leaf for leaf in tree_leaves(result) if isinstance(leaf, (Tensor, np.ndarray))]
        self._check(leaves)
        for leaf in leaves:
            self._verify_leaf(leaf)
        return tree_map(self._copy, result)

    def _verify_leaf(self, leaf: Tensor | np.ndarray[Any, Any]) -> None:
        if isinstance(leaf, Tensor):
            entry = self._entry(leaf)
            size = leaf.numel()
        else:
            entry = self._entry_around(leaf)
            size = leaf.size
            if entry is None and size > 1:
                self._fail(f"What is returned was made by numpy. {_ADVICE}.")
        if entry is None:
            return
        if not entry.is_unchanged:
            self._refuse(entry)
        if entry.from_outside and entry.from_outside >= min(size, MOST_FROM_OUTSIDE):
            self._fail(
                "What is returned got its values from numpy, a list or a thread, not from "
                f"torch. {_ADVICE}."
            )

    def _copy(self, leaf: Any) -> Any:
        entry = self._entry(leaf)
        if entry is None or leaf.requires_grad or leaf.is_conj() or leaf.is_neg():
            return leaf
        content = torch.from_numpy(entry.content.copy())
        count = content.numel() // leaf.element_size()
        elements = content[: count * leaf.element_size()].view(leaf.dtype)
        return elements.as_strided(leaf.shape, leaf.stride(), leaf.storage_offset())

    # entries

    def _check(self, values: Iterable[Any]) -> None:
        """Refuse tensors whose memory has changed since; enter those that are new."""
        for value in values:
            if not _is_plain(value):
                continue
            entry = self._entry(value)
            # made out of torch's sight: from numpy, in a thread, before the call
            if entry is None:
                self._enter(value, from_outside=value.numel())
            elif not entry.is_unchanged:
                self._refuse(entry)

    def _refuse(self, entry: LedgerEntry) -> None:
        entry.accept_content()
        self._fail(
            f"Something other than torch and the kernels has written into {entry.name}. {_ADVICE}."
        )

    def _fail(self, message: str) -> None:
        self._fault = self._fault or KernelFault(message)
        raise self._fault

    def _entry(self, value: Any) -> LedgerEntry | None:
        if not _is_plain(value):
            return None
        return self._entries.get(value.untyped_storage().data_ptr())

    def _entry_around(self, array: np.ndarray[Any, Any]) -> LedgerEntry | None:
        """The entry of the storage that an array is a view of."""
        address = array.__array_interface__["data"][0]
        for start, entry in self._entries.items():
            if start <= address < start + entry.storage.nbytes():
                return entry
        return None

    def _enter(
        self, tensor: Tensor, name: str = "a tensor of the wrapper's", from_outside: int = 0
    ) -> None:
        if _is_plain(tensor):
            storage = tensor.untyped_storage()
            content = _bytes_of(storage).copy()
            entry = LedgerEntry(storage, name, content, from_outside)
            self._entries[storage.data_ptr()] = entry


def _is_plain(value: Any) -> bool:
    """Whether a value is a tensor with memory that can be read here."""
    if not isinstance(value, Tensor):
        return False
    if value.device.type != "cpu" or value.layout != torch.strided:
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
