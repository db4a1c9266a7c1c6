"""Watches a call that launches Triton kernels: runs the kernels in the strict interpreter, and
records the torch operations around them.

The wrapper of a kernel may allocate, pad and rearrange; operations that compute are recorded.
Memory that the wrapper leaves uninitialized is filled with NaN, so that an element which no program
writes shows. Writes past torch, through numpy, a pointer or another thread, are refused
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
from autograder.kernels.launch_capture import noted_launches
from autograder.kernels.resources import refuse_large_launches
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
"""Operations that compute nothing: they make, copy or rearrange."""
_FILLS = {"full", "full_like", "new_full", "scalar_tensor"}
_READS_OUT = {"numpy", "tolist", "item", "__array__"}
_MAX_NAMES = 16


class LaunchRecord(TorchDispatchMode):
    """Records launches and computing torch operations of one call, and names copies after the
    argument whose elements they hold.

    Args:
        names: names of the arguments, by the address of their memory.
    """

    def __init__(
        self, recording: strict_triton.Recording, names: dict[int, str], ledger: LaunchLedger
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.ledger = ledger
        self._recording = recording
        self._names = names
        self._computed: list[str] = []
        self._storages: list[Any] = []

    def note_call(self, name: str) -> None:
        """Record a call that lets elements leave torch: arithmetic on them would not be seen."""
        if name in _READS_OUT:
            self._computed.append(name)

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """False, as in `CostCounter`: True would load the compiler, and nothing is compiled
        here.
        """
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        inputs = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        self.ledger.before_operation(inputs)
        result = func(*args, **(kwargs or {}))
        outputs = [leaf for leaf in tree_leaves(result) if isinstance(leaf, Tensor)]
        # kept alive: an address names one tensor while the call lasts
        self._storages += [tensor.untyped_storage() for tensor in outputs]
        name = func._overloadpacket.__name__
        if name not in _MAKES:
            self._computed.append(name)
        if name in _EMPTY:
            _fill_with_nan(outputs)
        writes = func._schema.is_mutable
        takes_number = any(type(value) in (int, float) for value in args)
        from_python = (writes or name in _FILLS) and takes_number
        self.ledger.after_operation(inputs, outputs, writes=writes, from_python=from_python)
        if name in _COPIES:
            self._name_copies(name, inputs, outputs)
        return result

    def _name_copies(self, name: str, inputs: list[Tensor], outputs: list[Tensor]) -> None:
        """Give copies the name of the argument whose elements they hold."""
        addresses = map(_address, inputs)
        origins = [self._names[address] for address in addresses if address in self._names]
        if not origins:
            return
        origin = origins[-1] if name == "copy_" else origins[0]
        for tensor in outputs:
            self._names.setdefault(_address(tensor), origin)

    def figures(self) -> dict[str, Any]:
        """What the call launched and computed, as the trusted side's `Launch` has it."""
        recording = self._recording
        return {
            "kernels": recording.kernels,
            "programs": recording.programs,
            "dots": recording.dots,
            "largest": recording.largest,
            "loads": _first_counts(recording.loads),
            "stores": _first_counts(recording.stores),
            "unfilled": recording.unfilled[:_MAX_NAMES],
            "computed": list(dict.fromkeys(self._computed))[:_MAX_NAMES],
        }


@contextlib.contextmanager
def watch_launches(
    function: Callable[..., Any],
    args: Any,
    kwargs: Any,
    parameters: Sequence[str] = (),
) -> Iterator[LaunchRecord]:
    """Watch one call of `function`.

    Args:
        parameters: names of the positional arguments, since a student's function may have others;
            where there are none, arguments have the function's names.
    """
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
        arguments = dict(bound.arguments)
    except (TypeError, ValueError):
        arguments = {}
    arguments.update(zip(parameters, args, strict=False))
    tensors = {name: value for name, value in arguments.items() if isinstance(value, Tensor)}
    names = {_address(value): name for name, value in tensors.items()}
    strict = strict_triton.install()
    ledger = LaunchLedger(strict, tensors)
    ledger.adopt((args, kwargs))
    strict.around_launch = ledger.launch
    try:
        with strict.record(names) as recording:
            record = LaunchRecord(recording, names, ledger)
            calls = CallsOfTorch(lambda name, is_method: record.note_call(name))
            with calls, record, noted_launches() as launches:
                yield record
        refuse_large_launches(launches, recording.largest)
    finally:
        strict.around_launch = contextlib.nullcontext


def _address(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _fill_with_nan(tensors: list[Tensor]) -> None:
    for tensor in tensors:
        if tensor.is_floating_point() and tensor.device.type != "meta":
            tensor.fill_(float("nan"))


def _first_counts(counts: dict[str, int]) -> dict[str, int]:
    first = list(counts.items())[:_MAX_NAMES]
    return {name[:40]: int(count) for name, count in first}
