"""@triton.autotune without a GPU: every configuration runs, and all must write the same.

A GPU takes its fastest configuration, so each of them has to be right. Configurations that differ
only in what a kernel's text does not show (warps, stages) run once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from autograder.kernels.faults import KernelFault, StaticAssertion
from autograder.kernels.number_types import Array, from_bits, read_element_type
from autograder.kernels.tensor_regions import TensorView
from autograder.kernels.tensors import Allocations, ArgumentMemory, tensors_in

MOST_AT_ONCE = 4
"""Configurations of one launch. Where there are more, the first runs always, and the others take
turns.
"""
# by bytes of an element: how far sums in another order may differ
_TOLERANCE = {2: 2e-2, 4: 1e-3, 8: 1e-6}


class Autotuned:
    """Launches of kernels with several configurations.

    Args:
        quietly: runs a launch of which only the faults count.
    """

    def __init__(self, quietly: Callable[[Callable[[], Any]], None]) -> None:
        self._quietly = quietly
        self._launches = 0

    def run(self, tuner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Launch with each configuration in turn. What the first wrote stays.

        Args:
            tuner: Triton's `Autotuner`.
        """
        tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))
        tensors = ArgumentMemory({}, Allocations())
        for name, value in {**tuner.nargs, **kwargs}.items():
            for tensor in tensors_in(value):
                tensors.add(name, tensor)
        distinct = _distinct(tuner.prune_configs(kwargs), tuner.arg_names)
        try:
            self._all(tuner, args, kwargs, self._in_turn(distinct), tensors)
        finally:
            tuner.nargs = None

    def _in_turn(self, configs: list[Any]) -> list[Any]:
        self._launches += 1
        later = configs[1:]
        turn = (
            self._launches * (MOST_AT_ONCE - 1) % len(later)
            if len(later) >= MOST_AT_ONCE
            else 0
        )
        return configs[:1] + (later[turn:] + later[:turn])[: MOST_AT_ONCE - 1]

    def _all(
        self,
        tuner: Any,
        args: Any,
        kwargs: Any,
        configs: list[Any],
        tensors: ArgumentMemory,
    ) -> None:
        original = tensors.contents()
        written: list[tuple[Any, list[Array]]] = []
        refused: StaticAssertion | None = None
        for config in configs:
            try:
                if written:
                    tensors.restore(original)
                    launch = functools.partial(_launch, tuner, args, kwargs, config)
                    self._quietly(launch)
                else:
                    _launch(tuner, args, kwargs, config)
            except StaticAssertion as error:  # Triton leaves such a configuration out
                refused = error
                continue
            except Exception as error:
                if len(configs) == 1:
                    raise
                raise _with_configuration(config, error) from error
            if not written:
                tuner.best_config = config
                if len(tuner.configs) > 1:
                    self._refuse_a_second_run(tuner, args, kwargs, config, tensors)
            written.append((config, tensors.contents()))
        if not written:
            raise refused or KernelFault("no configuration is left to run")
        _compare(tensors, written)
        tensors.restore(written[0][1])

    def _refuse_a_second_run(
        self, tuner: Any, args: Any, kwargs: Any, config: Any, tensors: ArgumentMemory
    ) -> None:
        """Launch once more and compare: Triton times a kernel by many launches, so a kernel that
        adds to its earlier results must be reset in between.
        """
        if tuner.user_defined_pre_hook:
            return
        excused = {*tuner.reset_to_zero, *tuner.restore_value}
        shielded = {
            tensor.untyped_storage().data_ptr()
            for name, value in {**tuner.nargs, **kwargs}.items()
            if name in excused
            for tensor in tensors_in(value)
        }
        once = tensors.contents()
        self._quietly(lambda: _launch(tuner, args, kwargs, config))
        twice = tensors.contents()
        tensors.restore(once)
        for difference in _differences(tensors, once, twice):
            if tensors.storages[difference.storage].address in shielded:
                continue
            raise KernelFault(
                "launched twice, the kernel writes something else to "
                f"{difference.name}{difference.place}: autotune launches it many times to find "
                "the fastest configuration. Name it in reset_to_zero or restore_value"
            )


def _with_configuration(config: Any, error: Exception) -> KernelFault:
    message = (
        str(error)
        if isinstance(error, KernelFault)
        else f"{type(error).__name__}: {error}"
    )
    kind = type(error) if isinstance(error, KernelFault) else KernelFault
    fault = kind(f"with the configuration {_words(config)}: {message}")
    fault.is_located = True
    return fault


def _launch(tuner: Any, args: Any, kwargs: Any, config: Any) -> None:
    """Launch one configuration as Triton does: reset tensors first, then call the configuration's
    hook.
    """
    if conflicts := kwargs.keys() & config.kwargs.keys():
        raise KernelFault(
            f"{', '.join(sorted(conflicts))} is passed to the launch and set by autotune: "
            "leave it to one"
        )
    named = {**tuner.nargs, **kwargs, **config.all_kwargs()}
    tuner.pre_hook(named, reset_only=True)
    if config.pre_hook is not None:
        config.pre_hook(named)
    tuner.fn.run(*args, **kwargs, **config.all_kwargs())


def _distinct(configs: list[Any], parameters: list[str]) -> list[Any]:
    """The configurations without those that the kernel cannot tell from an earlier one."""
    seen: dict[str, Any] = {}
    for config in configs:
        visible = {
            name: value
            for name, value in config.all_kwargs().items()
            if name in parameters
        }
        seen.setdefault(f"{sorted(visible.items())} {id(config.pre_hook)}", config)
    return list(seen.values())


def _words(config: Any) -> str:
    return (
        "("
        + ", ".join(f"{name}: {value}" for name, value in config.kwargs.items())
        + ")"
    )


@dataclass(frozen=True, slots=True)
class ResultDifference:
    """The first element of a tensor that two configurations have written differently."""

    name: str
    storage: int
    place: list[int]
    first: float
    second: float


def _compare(tensors: ArgumentMemory, written: list[tuple[Any, list[Array]]]) -> None:
    """All configurations must have written the same, but for rounding."""
    (first, first_contents), *later = written
    unequal = [
        (config, unlike[0])
        for config, contents in later
        if (unlike := _differences(tensors, first_contents, contents))
    ]
    if not unequal:
        return
    config, difference = unequal[0]
    outcomes = [
        f"{_words(config)} the kernel writes {difference.second:.6g}",
        f"{_words(first)} {difference.first:.6g}",
    ]
    outvoted = len(unequal) == len(later) > 1 and not _differences(
        tensors, later[0][1], later[1][1]
    )
    if outvoted or difference.first != difference.first:
        outcomes = [
            f"{_words(first)} the kernel writes {difference.first:.6g}",
            f"{_words(config)} {difference.second:.6g}",
        ]
    raise KernelFault(
        f"with the configuration {outcomes[0]} to {difference.name}{difference.place}, with "
        f"{outcomes[1]}: autotune takes the fastest, so each must be right"
    )


def _differences(
    tensors: ArgumentMemory, first: list[Array], second: list[Array]
) -> list[ResultDifference]:
    """The tensors whose contents differ by more than rounding."""
    differences = []
    for view in tensors.views:
        pair = first[view.storage], second[view.storage]
        if np.array_equal(*pair):
            continue
        a, b = (_numbers(view, content) for content in pair)
        with np.errstate(all="ignore"):
            differs = np.abs(a - b) > _TOLERANCE.get(view.size, 0) * np.maximum(
                1, np.abs(a)
            )
            differs |= np.isnan(a) != np.isnan(b)
            differs |= (np.isinf(a) | np.isinf(b)) & (a != b)
        places = np.argwhere(differs)
        if len(places):
            place = places[0].tolist()
            values = float(a[tuple(place)]), float(b[tuple(place)])
            differences.append(
                ResultDifference(view.name, view.storage, place, *values)
            )
    return differences


def _numbers(view: TensorView, content: Array) -> Array:
    """A tensor's elements as float64, in its shape."""
    start = view.offset // view.size
    whole = content.size // view.size * view.size
    elements = content[:whole].view(f"u{view.size}")[start:]
    steps = [stride * view.size for stride in view.strides]
    bits = np.lib.stride_tricks.as_strided(elements, view.shape, steps)
    if not view.element:
        return bits.astype(np.float64)
    return from_bits(
        np.ascontiguousarray(bits), read_element_type(view.element)
    ).astype(np.float64)
