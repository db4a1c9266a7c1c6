"""What a call costs, counted: operations, FLOPs, sizes of tensors. Grades style; a hostile worker
can forge it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

_expired = torch.UntypedStorage._expired  # what a StorageWeakRef asks, by way of two names


_LEFT_MATRIX = {
    torch.ops.aten.mm: 0,
    torch.ops.aten.bmm: 0,
    torch.ops.aten.addmm: 1,
    torch.ops.aten.baddbmm: 1,
}
"""Where the left one of two matrices stands that are multiplied. Torch's own formulas say the same
of these, and first walk through all arguments.
"""


class CostCounter(TorchDispatchMode):
    """Counts every torch operation that runs inside it."""

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
        """Nothing is compiled here. Saying that this must not be compiled would load the compiler
        in the host: twice the time to start, and half as much memory again for every fork to copy.
        """
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        keywords = kwargs or {}
        out = func(*args, **keywords)
        if self.paused:
            return out
        self.operations += 1
        packet = func._overloadpacket
        formula = flop_registry.get(packet)
        if formula is not None:
            left = _LEFT_MATRIX.get(packet)
            self.flops += (
                formula(*args, **keywords, out_val=out)
                if left is None
                else 2 * out.numel() * args[left].shape[-1]
            )
        for tensor in (out,) if isinstance(out, Tensor) else _tensors([out]):
            self._made(tensor, args, keywords)
        return out

    def _made(self, tensor: Tensor, args: Sequence[Any], keywords: dict[str, Any]) -> None:
        storage = tensor.untyped_storage()
        # an expanded view has more elements than it holds: count what is held
        held = min(tensor.numel(), storage.nbytes() // tensor.itemsize)
        if held > self.largest:
            self.largest = held
        key = storage._cdata
        if _is_among(key, args) or (keywords and _is_among(key, keywords.values())):  # a view
            return
        self.moved += held
        if key in self._alive:
            self._held_at_most -= self._alive[key][1]
        self._alive[key] = (StorageWeakRef(storage), held)
        self._held_at_most += held
        # else no more can be alive than once was: no need to look
        if self._held_at_most > self.peak:
            self.peak = max(self.peak, self._held())

    def _held(self) -> int:
        for key in [key for key, (storage, _) in self._alive.items() if _expired(storage.cdata)]:
            self._held_at_most -= self._alive.pop(key)[1]
        return self._held_at_most

    def add(self, figures: list[int]) -> None:
        """Charge for what was done elsewhere."""
        operations, flops, largest, peak, moved = figures
        self.operations += operations
        self.flops += flops
        self.largest = max(self.largest, largest)
        self.peak = max(self.peak, self._held() + peak)
        self.moved += moved

    def figures(self) -> list[int]:
        """In the order of the trusted side's `Cost`."""
        return [self.operations, self.flops, self.largest, self.peak, self.moved]


def _tensors(values: Sequence[Any]) -> list[Tensor]:
    """The tensors in what an operation takes or gives: single values and lists of them, nothing
    deeper.
    """
    found: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += _tensors(value)
    return found


def _is_among(storage: int, values: Iterable[Any]) -> bool:
    """Whether one of the tensors in what an operation takes lies in this memory."""
    for value in values:
        if isinstance(value, Tensor):
            if value.untyped_storage()._cdata == storage:
                return True
        elif isinstance(value, (list, tuple)) and _is_among(storage, value):
            return True
    return False
