"""Watches a call that launches Triton kernels: runs the kernels strictly, and records the torch
operations around them.

The wrapper of a kernel may allocate, pad and rearrange; operations that compute are recorded.
Memory that the wrapper leaves uninitialized is filled with NaN, so that an element which no program
writes shows. Of everything the trusted side gets a tape (`launch_tape.py`), and plays it again.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from autograder.kernels.launch_capture import noted_launches
from autograder.kernels.recording import Recording
from autograder.kernels.resources import refuse_large_launches
from autograder.kernels.strict_triton import Strict, install
from autograder.kernels.tensors import Allocations, fill_with_rubbish
from autograder.wire.torch_operations import COPIES, EMPTY, MAKES
from autograder.worker.calls_of_torch import CallsOfTorch
from autograder.worker.launch_tape import LaunchTape

_READS_OUT = {"numpy", "tolist", "item", "__array__", "__dlpack__"}
_MAX_NAMES = 16


class LaunchRecord(TorchDispatchMode):
    """Records launches and torch operations of one call, and names copies after the argument whose
    elements they hold.

    Args:
        names: names of the arguments, by the address of their memory.
    """

    def __init__(
        self, strict: Strict, recording: Recording, names: dict[int, str]
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.tape = LaunchTape()
        self._strict = strict
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

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if self._strict.is_quiet:  # a launch that autotune makes besides
            return func(*args, **(kwargs or {}))
        inputs = [
            leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)
        ]
        self.tape.meet(inputs)
        result = func(*args, **(kwargs or {}))
        outputs = [leaf for leaf in tree_leaves(result) if isinstance(leaf, Tensor)]
        # kept alive: an address names one tensor while the call lasts
        self._storages += [tensor.untyped_storage() for tensor in outputs]
        name = func._overloadpacket.__name__
        if name not in MAKES:
            self._computed.append(name)
        if name in EMPTY:
            for tensor in outputs:
                self._strict.allocations.allocate(tensor)
                fill_with_rubbish(tensor)
        elif func._schema.is_mutable:
            for tensor in inputs[:1]:
                self._strict.allocations.fill(tensor)
        self.tape.note_operation(func, args, kwargs, inputs, outputs)
        if name in COPIES:
            self._name_copies(name, inputs, outputs)
        return result

    def _name_copies(
        self, name: str, inputs: list[Tensor], outputs: list[Tensor]
    ) -> None:
        """Give copies the name of the argument whose elements they hold."""
        addresses = map(_address, inputs)
        origins = [
            self._names[address] for address in addresses if address in self._names
        ]
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
    tensors = {
        name: value for name, value in arguments.items() if isinstance(value, Tensor)
    }
    names = {_address(value): name for name, value in tensors.items()}
    strict = install()
    with strict.record(names, allocations=Allocations()) as recording:
        record = LaunchRecord(strict, recording, names)
        record.tape.add_arguments(tree_leaves((args, kwargs)))
        strict.listener = record.tape.note_launch
        calls = CallsOfTorch(lambda name, is_method: record.note_call(name))
        try:
            with calls, record, noted_launches() as launches:
                yield record
        finally:
            strict.listener = None
        refuse_large_launches(launches, recording.largest)


def _address(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _first_counts(counts: dict[str, int]) -> dict[str, int]:
    first = list(counts.items())[:_MAX_NAMES]
    return {name[:40]: int(count) for name, count in first}
