"""Counts what a call costs: operations, FLOPs, sizes of tensors. Grades style; a hostile worker can
forge the figures.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

# what `StorageWeakRef.expired` calls, without its two look-ups by name
_expired = torch.UntypedStorage._expired

_LEFT_MATRIX = {
    torch.ops.aten.mm: 0,
    torch.ops.aten.bmm: 0,
    torch.ops.aten.addmm: 1,
    torch.ops.aten.baddbmm: 1,
}
"""Position of the left matrix among the arguments of a matrix product. Torch's own formulas give
the same FLOPs, but walk through all arguments first.
"""


class CostCounter(TorchDispatchMode):
    """Counts the torch operations that run inside this context."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operations = 0
        self.flops = 0
        self.largest = 0
        self.peak = 0
        self.moved = 0
        self.paused = False
        self._alive: dict[int, tuple[StorageWeakRef, int]] = {}
        self._held_at_most = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Allow compilation, though nothing is compiled here. To forbid it would load the compiler
        in
        the host: twice the time to start, and half as much memory again for every fork to copy.
        """
        return False

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: Any = (),
        kwargs: Any = None,
    ) -> Any:
        keywords = kwargs or {}
        out = func(*args, **keywords)
        if self.paused:
            return out
        self.operations += 1
        packet = func._overloadpacket
        formula = flop_registry.get(packet)
        if formula is not None:
            position = _LEFT_MATRIX.get(packet)
            if position is None:
                self.flops += formula(*args, **keywords, out_val=out)
            else:
                self.flops += 2 * out.numel() * args[position].shape[-1]
        arguments = [*args, *keywords.values()]
        for tensor in _tensors([out]):
            self._count_result(tensor, arguments)
        return out

    def _count_result(self, tensor: Tensor, arguments: list[Any]) -> None:
        storage = tensor.untyped_storage()
        # an expanded view has more elements than it holds: count what is held
        held = min(tensor.numel(), storage.nbytes() // tensor.itemsize)
        self.largest = max(self.largest, held)
        key = storage._cdata
        if any(
            argument.untyped_storage()._cdata == key for argument in _tensors(arguments)
        ):
            return  # a view of an argument, or the argument itself
        self.moved += held
        if key in self._alive:
            self._held_at_most -= self._alive[key][1]
        self._alive[key] = (StorageWeakRef(storage), held)
        self._held_at_most += held
        # below the peak the count of what is alive, which takes time, can change nothing
        if self._held_at_most > self.peak:
            self.peak = max(self.peak, self._held())

    def _held(self) -> int:
        """Elements of the tensors that are alive."""
        dead = [
            key for key, (storage, _) in self._alive.items() if _expired(storage.cdata)
        ]
        for key in dead:
            _, held = self._alive.pop(key)
            self._held_at_most -= held
        return self._held_at_most

    def add(self, figures: list[int]) -> None:
        """Charge for what the trusted side computed: the figures of a stand-in's answer."""
        operations, flops, largest, peak, moved = figures
        self.operations += operations
        self.flops += flops
        self.largest = max(self.largest, largest)
        self.peak = max(self.peak, self._held() + peak)
        self.moved += moved

    def figures(self) -> list[int]:
        """The figures in the order of the trusted side's `Cost`."""
        return [
            self.operations,
            self.flops,
            self.largest,
            self.peak,
            self.moved,
        ]


def _tensors(values: Iterable[Any]) -> Iterator[Tensor]:
    """The tensors among an operation's arguments or results, those in lists and tuples too."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value)
