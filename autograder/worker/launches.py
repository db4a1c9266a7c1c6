"""What a function that launches Triton kernels does: the kernels by the strict interpreter, and
around them torch.

The wrapper of a kernel may allocate, pad and rearrange; what it computes itself is told. Memory
that it leaves uninitialized is filled with NaN, so that an element which no program writes shows.
What it writes past torch, through numpy, a pointer or another thread, is refused
(`launch_ledger.py`).
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from autograder.kernels import strict_triton
from autograder.worker.calls_of_torch import CallsOfTorch
from autograder.worker.launch_ledger import LaunchLedger

_EMPTY = {
    "empty",
    "empty_like",
    "empty_strided",
    "empty_permuted",
    "new_empty",
    "new_empty_strided",
}
_COPIES = {
    "clone",
    "copy_",
    "_to_copy",
    "constant_pad_nd",
    "cat",
    "stack",
    "index_select",
    "repeat",
    "lift_fresh_copy",
}
_MAKES = {
    *_EMPTY,
    *_COPIES,
    "zeros",
    "zeros_like",
    "new_zeros",
    "ones",
    "ones_like",
    "new_ones",
    "full",
    "full_like",
    "new_full",
    "fill_",
    "zero_",
    "scalar_tensor",
    "set_",
    "resize_",
    "lift_fresh",
    "alias",
    "detach",
    "view",
    "_unsafe_view",
    "_reshape_alias",
    "as_strided",
    "expand",
    "permute",
    "transpose",
    "t",
    "slice",
    "select",
    "squeeze",
    "unsqueeze",
    "unbind",
    "split",
    "split_with_sizes",
    "diagonal",
    "unfold",
    "view_as_real",
    "is_pinned",
}
_FILLED = {"full", "full_like", "new_full", "scalar_tensor"}
_READS_OUT = {"numpy", "tolist", "item", "__array__"}
_MAX_NAMES = 16


class LaunchRecord(TorchDispatchMode):
    """What one call launches, and every torch operation around it: which compute, and whose
    elements a copy holds.

    Args:
        names: what the arguments' memory is called, by address.
    """

    def __init__(
        self, recording: strict_triton.Recording, names: dict[int, str], ledger: LaunchLedger
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._recording, self.names, self._ledger = recording, names, ledger
        self.settled, self.take = ledger.settled, ledger.take
        self.computed: list[str] = []
        self._kept: list[Any] = []

    def meet(self, name: str) -> None:
        """Note a call that lets elements leave torch: arithmetic on them would not be seen."""
        if name in _READS_OUT:
            self.computed.append(name)

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """As `CostCounter` has it: saying yes would load the compiler, and nothing is compiled
        here.
        """
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        self._ledger.before_operation(given)
        out = func(*args, **(kwargs or {}))
        name = func._overloadpacket.__name__
        if name not in _MAKES:
            self.computed.append(name)
        made = [leaf for leaf in tree_leaves(out) if isinstance(leaf, Tensor)]
        # an address names one tensor while this lasts
        self._kept += [tensor.untyped_storage() for tensor in made]
        if name in _EMPTY:
            for tensor in made:
                if tensor.is_floating_point() and tensor.device.type != "meta":
                    tensor.fill_(float("nan"))
        writes = func._schema.is_mutable
        number = (writes or name in _FILLED) and any(type(value) in (int, float) for value in args)
        self._ledger.after_operation(given, made, writes=writes, from_python=number)
        if name in _COPIES:
            origins = [self.names[key] for key in map(_address, given) if key in self.names]
            for tensor in made if origins else ():
                self.names.setdefault(
                    _address(tensor), origins[-1] if name == "copy_" else origins[0]
                )
        return out

    def figures(self) -> dict[str, Any]:
        """As the trusted side's `Launch` has it."""
        seen = self._recording
        return {
            "kernels": seen.kernels,
            "programs": seen.programs,
            "dots": seen.dots,
            "largest": seen.largest,
            "loads": _first(seen.loads),
            "stores": _first(seen.stores),
            "unfilled": seen.unfilled[:_MAX_NAMES],
            "computed": list(dict.fromkeys(self.computed))[:_MAX_NAMES],
        }


@contextlib.contextmanager
def watch_launches(
    function: Callable[..., Any], args: Any, kwargs: Any, parameters: Sequence[str] = ()
) -> Iterator[LaunchRecord]:
    """Watch one call of `function`. Its tensor arguments are named by their positions, as
    `parameters` has them: a student may call them otherwise. Where that says nothing, by the
    function's own parameters.
    """
    try:
        given = inspect.signature(function).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        given = {}
    given = {**given, **dict(zip(parameters, args, strict=False))} if parameters else given
    tensors = {name: value for name, value in given.items() if isinstance(value, Tensor)}
    names = {_address(value): name for name, value in tensors.items()}
    strict = strict_triton.install()
    ledger = LaunchLedger(strict, tensors)
    ledger.take((args, kwargs))
    strict.around_launch = ledger.launch
    try:
        with strict.record(names) as recording:
            record = LaunchRecord(recording, names, ledger)
            with CallsOfTorch(record.meet), record:
                yield record
    finally:
        strict.around_launch = contextlib.nullcontext


def _address(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _first(counts: dict[str, int]) -> dict[str, int]:
    return {name[:40]: int(count) for name, count in list(counts.items())[:_MAX_NAMES]}
