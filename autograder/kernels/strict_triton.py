"""Strict Triton: kernels on a CPU, run as Triton's compiler makes them, with every access checked.

Importing this module has the launches of this process come here. A kernel goes through Triton's own
front end; the text of the result is executed with numpy, for all programs of a grid at once. What a
GPU would not forgive is a `KernelFault` with a name: an address outside of its tensor, a result
that depends on an order that nobody promises, memory that nobody has filled, code that no GPU would
compile.
"""

from __future__ import annotations

import contextlib
import inspect
import operator
from collections.abc import Callable, Iterator
from typing import Any

import torch
import triton
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from autograder.kernels.autotune import Autotuned
from autograder.kernels.compiler import Compiler
from autograder.kernels.faults import KernelFault
from autograder.kernels.launch import LaunchData, run_launch
from autograder.kernels.recording import Recording, StepWatcher
from autograder.kernels.tensors import Allocations, ArgumentMemory, fill_with_rubbish
from autograder.kernels.triton_versions import (
    TESTED,
    UnknownTriton,
    hook_launches,
    is_interpreting,
    owner_of_launches,
    refuse_version,
    triton_version,
)

EMPTY = frozenset(
    {
        "empty",
        "empty_like",
        "empty_strided",
        "empty_permuted",
        "new_empty",
        "new_empty_strided",
    }
)
"""Operations of torch that allocate memory and do not fill it."""
Listener = Callable[[LaunchData, ArgumentMemory], None]


class Strict:
    """The launches of this process; `install()` makes the one object or finds it.

    Attributes:
        recording: where launches are counted now.
        allocations: memory that nobody has filled.
        listener: told each launch that counts, before it runs.
        is_quiet: whether a launch runs of which only the faults count.
    """

    def __init__(self) -> None:
        self.recording = Recording({}, keep_steps=False)
        self.allocations = Allocations()
        self.listener: Listener | None = None
        self.is_quiet = False
        self._compiler = Compiler()
        self._autotuned = Autotuned(self._quietly)
        strict = self

        def run(
            kernel: Any, /, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any
        ) -> None:
            strict.launch(kernel, args, kwargs, grid, warmup)

        def run_tuned(tuner: Any, /, *args: Any, **kwargs: Any) -> None:
            strict._autotuned.run(tuner, args, kwargs)

        hook_launches(self, run, run_tuned)

    @contextlib.contextmanager
    def record(
        self,
        names: dict[int, str],
        *,
        keep_steps: bool = False,
        allocations: Allocations | None = None,
    ) -> Iterator[Recording]:
        """Record every kernel launched inside.

        Args:
            names: names of tensors by the address of their storage.
            keep_steps: whether to keep the story of each program.
            allocations: memory that nobody has filled.
        """
        outer = self.recording, self.allocations
        self.recording = Recording(names, keep_steps)
        self.allocations = allocations or Allocations()
        try:
            yield self.recording
        finally:
            self.recording, self.allocations = outer

    def launch(
        self,
        kernel: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        grid: Any,
        warmup: bool,
    ) -> None:
        """Compile a kernel and run it on the memory of its arguments."""
        for hook in getattr(kernel, "pre_run_hooks", ()):
            hook(*args, **kwargs)
        compiled = self._compiler.compile(kernel, args, kwargs)
        if warmup:
            return
        sizes = (
            grid(self._compiler.bind(kernel, args, kwargs)) if callable(grid) else grid
        )
        memory = ArgumentMemory(self.recording.names, self.allocations)
        arguments = tuple(memory.add(name, value) for name, value in compiled.arguments)
        launch = LaunchData(compiled.text, _three_axes(sizes), arguments)
        if self.listener is not None and not self.is_quiet:
            self.listener(launch, memory)
        watcher = None
        if self.recording.keep_steps and not self.is_quiet:
            watcher = StepWatcher(self.recording)
        outcome = run_launch(
            launch, memory.storages, watcher=watcher, find_storage=memory.find
        )
        if watcher is not None:
            watcher.finish()
        if self.is_quiet:
            self.recording.add_notes(outcome)
        else:
            self.recording.add(launch, outcome)

    def _quietly(self, launch: Callable[[], Any]) -> None:
        """Launch once more: faults count, and the largest tile, but no accesses."""
        outer, self.is_quiet = self.is_quiet, True
        try:
            launch()
        finally:
            self.is_quiet = outer


def _three_axes(sizes: Any) -> tuple[int, int, int]:
    """A grid's sizes as a launch has them."""
    try:
        numbers = [operator.index(size) for size in tuple(sizes)]
    except TypeError as error:
        raise KernelFault(
            f"a grid is a tuple of integers, and not {str(sizes)[:60]}"
        ) from error
    if not 1 <= len(numbers) <= 3:
        raise KernelFault(f"a grid has one to three axes, and not {len(numbers)}")
    x, y, z = [*numbers, 1, 1][:3]
    return x, y, z


def install() -> Strict:
    """Have all kernels of this process run here.

    Raises:
        UnknownTriton: this Triton is older than the tested versions, or newer, and a small kernel
            fails in it; or it was imported with TRITON_INTERPRET=1.
    """
    installed: Strict | None = owner_of_launches()
    if installed is not None:
        return installed
    version = triton_version()
    if version < TESTED[0]:
        raise refuse_version()
    if is_interpreting():
        raise UnknownTriton(
            "Triton was imported with TRITON_INTERPRET=1, for its own interpreter: leave the "
            "variable out, and restart"
        )
    try:
        strict = Strict()
        if version > TESTED[1]:
            _probe(strict)
    except Exception as error:
        reason = f", in which it fails ({type(error).__name__}: {error})"
        raise refuse_version(reason) from error
    return strict


@triton.jit  # type: ignore[untyped-decorator]
def _probe_kernel(x_ptr, y_ptr, n, block: triton.language.constexpr):  # type: ignore[no-untyped-def]
    """Each program adds its row's sum to its row."""
    places = triton.language.program_id(0) * n + triton.language.arange(0, block)
    inside = triton.language.arange(0, block) < n
    x = triton.language.load(x_ptr + places, mask=inside, other=0.0)
    triton.language.store(y_ptr + places, x + triton.language.sum(x, 0), mask=inside)


def _probe(strict: Strict) -> None:
    """Run a right kernel, and check that a kernel which leaves its tensor is refused."""
    x, y = torch.arange(6.0), torch.zeros(6)
    with strict.record({}) as seen:
        _probe_kernel[(2,)](x, y, 3, block=4)
    counts = seen.programs, dict(seen.loads)
    if y.tolist() != [3.0, 4.0, 5.0, 15.0, 16.0, 17.0] or counts != (2, {"x": 6}):
        raise RuntimeError("a small kernel is not what it should be")
    with contextlib.suppress(KernelFault):
        _probe_kernel[(2,)](x, y, 4, block=4)
        raise RuntimeError("an address past the end is not refused")


class _WatchAllocations(TorchDispatchMode):
    """Notes memory that torch allocates, and whether torch fills it."""

    def __init__(self, allocations: Allocations) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._allocations = allocations

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if func._overloadpacket.__name__ in EMPTY:
            self._allocations.allocate(result)
            fill_with_rubbish(result)
        elif func._schema.is_mutable:
            for leaf in tree_leaves((args, kwargs)):
                if isinstance(leaf, torch.Tensor):
                    self._allocations.fill(leaf)
        return result


def trace(
    function: Callable[..., Any], *arguments: Any, **keywords: Any
) -> tuple[Any, Recording]:
    """Call a function that launches kernels; returns its result and a recording of all accesses.

    Print the recording to read it; `recording.reads["k"]` counts how often each element of k was
    read. Tensors that the function was given have the names of its parameters, others those of the
    kernel's parameters.
    """
    strict = install()
    bound = inspect.signature(function).bind(*arguments, **keywords).arguments
    names = {
        tensor.untyped_storage().data_ptr(): name
        for name, tensor in bound.items()
        if isinstance(tensor, torch.Tensor)
    }
    allocations = Allocations()
    recorded = strict.record(names, keep_steps=True, allocations=allocations)
    with recorded as recording, _WatchAllocations(allocations):
        result = function(*arguments, **keywords)
    return result, recording


install()
