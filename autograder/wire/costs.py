"""What a call costs, counted: operations, FLOPs, sizes of tensors. Grades style; a hostile worker can forge it."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry


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

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing is compiled here. Saying that this must not be compiled would load the compiler in the host: twice
        the time to start, and half as much memory again for every fork to copy."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        keywords = kwargs or {}
        out = func(*args, **keywords)
        if self.paused:
            return out
        self.operations += 1
        formula = flop_registry.get(func._overloadpacket)
        if formula is not None:
            self.flops += formula(*args, **keywords, out_val=out)
        given = {t.untyped_storage()._cdata for t in tree_leaves((args, keywords)) if isinstance(t, Tensor)}
        for tensor in tree_leaves(out):
            if isinstance(tensor, Tensor):
                self._made(tensor, is_view=tensor.untyped_storage()._cdata in given)
        return out

    def _made(self, tensor: Tensor, *, is_view: bool) -> None:
        # an expanded view has more elements than it holds: count what is held
        held = min(tensor.numel(), tensor.untyped_storage().nbytes() // max(tensor.element_size(), 1))
        self.largest = max(self.largest, held)
        if is_view:
            return
        self.moved += held
        storage = tensor.untyped_storage()
        self._alive[storage._cdata] = (StorageWeakRef(storage), held)
        self.peak = max(self.peak, self._held())

    def _held(self) -> int:
        self._alive = {key: entry for key, entry in self._alive.items() if not entry[0].expired()}
        return sum(size for _, size in self._alive.values())

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
