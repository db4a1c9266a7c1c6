"""Plays the tape of a call that launched kernels again, on memory of the trusted side's own.

The results and counts of the call are those of the replay. A worker that sends another tape than
its call's gets what that tape computes, from the arguments that the suite has sent.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from autograder.basics.errors import StudentCrashed, StudentError
from autograder.basics.safe_text import clean
from autograder.kernels.faults import KernelFault, Unreadable
from autograder.kernels.launch import launch_from_data, run_launch
from autograder.kernels.tensor_regions import Storage
from autograder.kernels.tensors import fill_with_rubbish
from autograder.suite.calls import Call, Launch
from autograder.wire.libraries import loaded_torch
from autograder.wire.torch_operations import EMPTY, MAKES, REPLAYED
from autograder.wire.values import CODES

if TYPE_CHECKING:
    from torch import Tensor

_MOST_BYTES = 1 << 29
_MOST_STEPS = 20_000
_MOST_ELEMENTS = 1 << 32
"""Elements that the kernels of one call may compute: some ten seconds."""
_FEW = 64
"""Numbers from Python or numpy that a tensor may hold: sizes, a scale, a slope a head, the padding
of some rows.
"""
_ADVICE = (
    "What counts is what the kernels store, and what torch allocates, pads and copies around "
    "them"
)
_DTYPES = frozenset({*CODES, "float8_e4m3fn", "float8_e5m2"})


class BadTape(Exception):
    """The worker sent something that is no tape."""


@dataclass(slots=True)
class ReplayedStorage:
    """One storage of the replay.

    Attributes:
        filled: for each byte whether somebody has filled it; None where all are.
        from_outside: how many numbers in it came from neither torch nor a kernel nor the suite, at
            most.
    """

    content: Tensor
    filled: np.ndarray[Any, Any] | None = None
    from_outside: int = 0


@dataclass(slots=True)
class ReplayedCounts:
    """The work of the kernels, counted again."""

    kernels: int = 0
    programs: int = 0
    dots: int = 0
    largest: int = 0
    loads: Counter[str] = field(default_factory=Counter)
    stores: Counter[str] = field(default_factory=Counter)
    unfilled: list[str] = field(default_factory=list)
    computed: list[str] = field(default_factory=list)


class LaunchReplay:
    """One tape, played once.

    Args:
        tape: as the worker has sent it.
        arguments: the tensors that the suite has sent, in their order.

    Raises:
        BadTape: it is none.
        KernelFault: a kernel does what a GPU would not forgive, or what is returned came from
            elsewhere.
    """

    def __init__(self, tape: Any, arguments: list[Any]) -> None:
        self._torch = loaded_torch()
        self._arguments = arguments
        self._storages: list[ReplayedStorage] = []
        self._left = float(_MOST_ELEMENTS)
        self.counts = ReplayedCounts()
        try:
            self._texts = [str(text) for text in tape["texts"]]
            self._allocate(tape["storages"])
            if len(tape["steps"]) >= _MOST_STEPS:
                raise KernelFault(f"the call makes more than {_MOST_STEPS} steps")
            for step in tape["steps"]:
                self._play(step)
            self.results = [self._result(view) for view in tape["result"]]
        except (KernelFault, BadTape):
            raise
        except Exception as error:  # of any kind: whatever the worker may have sent
            raise BadTape(f"{type(error).__name__}") from error

    # memory

    def _allocate(self, entries: Any) -> None:
        total = 0
        for entry in entries:
            size = _natural(entry["bytes"])
            total += size
            if total > _MOST_BYTES:
                raise KernelFault(f"the call uses more than {_MOST_BYTES >> 20} MiB")
            content = self._torch.zeros(size, dtype=self._torch.uint8)
            storage = ReplayedStorage(content)
            self._storages.append(storage)
            if "argument" in entry:
                argument = self._arguments[_natural(entry["argument"])]
                self._tensor(entry["view"]).copy_(argument.detach())
            elif "outside" in entry:
                storage.from_outside = max(1, size // max(1, _natural(entry["size"])))
                if entry["outside"] is not None:
                    numbers = np.frombuffer(bytes.fromhex(entry["outside"]), np.uint8)
                    content.numpy()[...] = numbers

    def _tensor(self, view: Any) -> Tensor:
        """The tensor that a view names."""
        number, dtype, shape, strides, offset = view
        if dtype not in _DTYPES or not 0 <= _natural(number) < len(self._storages):
            raise BadTape("a view of nothing")
        kind = getattr(self._torch, dtype)
        content = self._storages[number].content
        elements = content.numel() // kind.itemsize
        typed = content[: elements * kind.itemsize].view(kind)
        sizes, steps = [_natural(n) for n in shape], [_natural(n) for n in strides]
        tensor: Tensor = typed.as_strided(sizes, steps, _natural(offset))
        return tensor

    # steps

    def _play(self, step: Any) -> None:
        if step[0] == "launch":
            self._launch(*step[1:])
        elif step[0] == "torch":
            self._operation(*step[1:])
        else:
            raise BadTape("a step of no kind")

    def _operation(
        self, name: str, overload: str, args: Any, keywords: Any, results: Any
    ) -> None:
        """One operation of torch."""
        if name in EMPTY:
            for view in results:
                self._fill_with_rubbish(view)
            return
        if name not in REPLAYED:
            raise KernelFault(
                f"the wrapper calls torch's {str(name)[:40]}, which cannot be made again by the "
                f"grader. {_ADVICE}."
            )
        if name not in MAKES and name not in self.counts.computed:
            self.counts.computed.append(name)
        packet = getattr(self._torch.ops.aten, name)
        function = getattr(packet, overload)
        values = [self._decode(value) for value in args]
        named = {key: self._decode(value) for key, value in keywords.items()}
        sources = self._views_in([args, keywords])
        outside = sum({n: self._storages[n].from_outside for n in sources}.values())
        is_number_written = name.endswith("_") or name in (
            "full",
            "full_like",
            "scalar_tensor",
        )
        numbers = any(type(v) in (int, float) for v in values)
        outside += is_number_written and numbers
        given = function(*values, **named)
        if function._schema.is_mutable:
            written = self._views_in([args[0]])
            for number in written:
                storage = self._storages[number]
                storage.from_outside = outside  # its own numbers are among them
                storage.filled = None
            return
        outputs = [given] if isinstance(given, self._torch.Tensor) else list(given)
        for view, output in zip(results, outputs, strict=True):
            target = self._tensor(view)
            target.copy_(output)
            self._storages[view[0]].from_outside = min(outside, target.numel())

    def _decode(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._decode(part) for part in value]
        if isinstance(value, dict):
            if "tensor" in value:
                return self._tensor(value["tensor"])
            if "dtype" in value:
                if value["dtype"] not in _DTYPES:
                    raise BadTape("no dtype")
                return getattr(self._torch, value["dtype"])
            return float.fromhex(value["float"])
        if value is None or type(value) in (bool, int, str):
            return value
        raise BadTape("no argument")

    def _views_in(self, value: Any) -> list[int]:
        """The storages of all tensors in encoded arguments."""
        if isinstance(value, dict):
            if "tensor" in value:
                return [value["tensor"][0]]
            return [n for part in value.values() for n in self._views_in(part)]
        if isinstance(value, list):
            return [n for part in value for n in self._views_in(part)]
        return []

    def _fill_with_rubbish(self, view: Any) -> None:
        tensor = self._tensor(view)
        fill_with_rubbish(tensor)
        storage = self._storages[view[0]]
        storage.filled = np.zeros(storage.content.numel(), bool)

    def _launch(self, text: int, storages: Any, data: Any) -> None:
        """One launch."""
        numbers = [_natural(number) for number, _ in storages]
        memory = [
            Storage(
                _natural(address),
                self._storages[n].content.numpy(),
                self._storages[n].filled,
            )
            for n, (_, address) in zip(numbers, storages, strict=True)
        ]
        try:
            launch = launch_from_data(self._texts[text], data, len(memory))
            outcome = run_launch(launch, memory, budget=self._left)
        except Unreadable as error:
            raise BadTape(str(error)) from error
        self._left -= outcome.spent
        counts = self.counts
        counts.kernels += 1
        counts.programs += launch.programs
        counts.dots += outcome.counts.dots
        counts.largest = max(counts.largest, outcome.counts.largest)
        counts.loads.update(outcome.loads)
        counts.stores.update(outcome.stores)
        counts.unfilled += [
            n for n in outcome.counts.unfilled if n not in counts.unfilled
        ]
        for place, number in enumerate(numbers):
            storage = self._storages[number]
            if storage.from_outside > _FEW and place in outcome.memory.loaded_storages:
                raise KernelFault(
                    f"A kernel loads {outcome.memory.name_of(place)}, and its values came from "
                    f"numpy or a list, not from torch. {_ADVICE}."
                )
            storage.from_outside = max(
                0, storage.from_outside - outcome.memory.count_changed(place)
            )

    # the end

    def launch_record(self, reported: Launch | None) -> Launch:
        """The counts of the replay.

        Args:
            reported: the worker's own record, which knows what left torch in its process.
        """
        counts = self.counts
        seen = reported.computed if reported is not None else ()
        return Launch(
            counts.kernels,
            counts.programs,
            counts.dots,
            counts.largest,
            dict(counts.loads),
            dict(counts.stores),
            tuple(counts.unfilled),
            tuple(dict.fromkeys([*seen, *counts.computed])),
        )

    def _result(self, view: Any) -> Tensor | None:
        if view is None:
            return None
        tensor = self._tensor(view)
        from_outside = self._storages[view[0]].from_outside
        if from_outside and from_outside >= min(tensor.numel(), _FEW):
            raise KernelFault(
                "What is returned got its values from numpy, a list or a thread, not from torch. "
                f"{_ADVICE}."
            )
        return tensor


def _natural(number: Any) -> int:
    if type(number) is not int or not 0 <= number < 2**63:
        raise BadTape("no size")
    return number


def replay_call(call: Call, tape: Any, has_stand_ins: bool) -> None:
    """Replace the result and the counts of a call by those of the replay.

    Args:
        has_stand_ins: whether this side has answered the worker in the middle of calls. A tape does
            not have these answers, so the worker's result stays.

    Raises:
        StudentFault: the replay finds a fault, or something else has written into the result.
    """
    if has_stand_ins and isinstance(tape, dict) and tape.get("has_answers") is True:
        return
    try:
        replay = LaunchReplay(tape, tree_leaves([list(call.arguments), call.keywords]))
        call.result = _replace(call.result, replay.results)
    except KernelFault as fault:
        kinds = tuple(kind.__name__ for kind in type(fault).__mro__)
        raise StudentError(kinds[0], clean(str(fault), 600), (), kinds) from None
    except BadTape as error:
        raise StudentCrashed(
            f"{call.name} came back with a record of its kernels that is none ({error})"
        ) from None
    call.launch = replay.launch_record(call.launch)


def _replace(result: Any, replayed: list[Tensor | None]) -> Any:
    """The result with the replay's tensors in place of the worker's.

    Raises:
        KernelFault: the worker's tensors are others.
    """
    torch = loaded_torch()
    leaves, structure = tree_flatten(result)
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    if len(tensors) != len(replayed):
        raise BadTape("other results")
    waiting = iter(replayed)
    replaced = []
    for leaf in leaves:
        if isinstance(leaf, np.ndarray) and leaf.size > 1:
            raise KernelFault(f"What is returned was made by numpy. {_ADVICE}.")
        if not isinstance(leaf, torch.Tensor):
            replaced.append(leaf)
            continue
        own = next(waiting)
        if own is None or _is_altered(leaf, own):
            raise KernelFault(
                "Something other than torch and the kernels has written into what is returned, "
                f"or into what it was made of. {_ADVICE}."
            )
        replaced.append(own)
    return tree_unflatten(replaced, structure)


def _is_altered(value: Any, replayed: Tensor) -> bool:
    """Whether a tensor from the worker differs from the replay's by more than rounding."""
    torch = loaded_torch()
    if value.shape != replayed.shape or value.dtype != replayed.dtype:
        return True
    if not value.is_floating_point():
        return not torch.equal(value, replayed)
    a, b = value.double(), replayed.double()
    return not torch.allclose(a, b, rtol=1e-2, atol=1e-3, equal_nan=True)
