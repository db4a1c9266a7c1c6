"""Collects the launches of kernels that a function makes, without running one of them."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from unittest import mock

from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction


@dataclass(frozen=True)
class KernelLaunch:
    """A kernel with the arguments of one launch.

    Attributes:
        kernel: Triton's `JITFunction`.
        keywords: arguments by name, and options such as `num_warps`.
    """

    kernel: Any
    grid: Any
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]


def capture_launches(
    function: Callable[..., Any], *arguments: Any, **keywords: Any
) -> list[KernelLaunch]:
    """The launches that a call of `function` makes.

    No kernel runs, so tensors may lie on torch's device "meta", which has no memory: sizes can be
    as large as on a GPU. A kernel with several configurations gives a launch for each.
    """
    launches: list[KernelLaunch] = []

    def note(
        kernel: Any, /, *args: Any, grid: Any, warmup: bool = False, **options: Any
    ) -> None:
        launches.append(KernelLaunch(kernel, grid, args, options))

    def note_each_configuration(tuner: Any, /, *args: Any, **options: Any) -> None:
        for config in tuner.configs:
            tuner.fn.run(*args, **{**options, **config.all_kwargs()})

    with _replaced(JITFunction, note), _replaced(Autotuner, note_each_configuration):
        function(*arguments, **keywords)
    return launches


@contextlib.contextmanager
def noted_launches() -> Iterator[list[KernelLaunch]]:
    """Inside the block, the launches of kernels, which run as without it."""
    launches: list[KernelLaunch] = []
    run_kernel = JITFunction.run

    def run(
        kernel: Any, /, *args: Any, grid: Any, warmup: bool = False, **options: Any
    ) -> Any:
        launches.append(KernelLaunch(kernel, grid, args, options))
        return run_kernel(kernel, *args, grid=grid, warmup=warmup, **options)

    with _replaced(JITFunction, run):
        yield launches


def _replaced(kernel_type: Any, run: Callable[..., Any]) -> Any:
    """Inside the block, launches of this kind of kernel call `run`."""
    return mock.patch.object(kernel_type, "run", run)
