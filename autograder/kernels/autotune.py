"""@triton.autotune without a GPU: every configuration runs, and all must write the same.

A GPU takes its fastest configuration, so each of them has to be right. Configurations that differ
only in what the interpreter does not see (warps, stages) run once.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from autograder.kernels.compiler import StaticAssertion
from autograder.kernels.memory import KernelFault, Memory

MOST_AT_ONCE = 4
"""Configurations of one launch. Where there are more, the first runs always, and the others take
turns.
"""
# by bytes of an element: how far sums in another order may differ
_TOLERANCE = {2: 2e-2, 4: 1e-3, 8: 1e-6}
_Array = np.ndarray[Any, Any]


class Autotuned:
    """Launches of kernels with several configurations.

    Args:
        quietly: runs a launch of which only the faults count.
        memory: gives the memory of the last launch.
    """

    def __init__(
        self, quietly: Callable[[Callable[[], Any]], None], memory: Callable[[], Memory]
    ) -> None:
        self._quietly, self._memory = quietly, memory
        self._launches = 0

    def run(
        self, tuner: Any, plain: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Launch with each configuration in turn. What the first wrote stays.

        Args:
            tuner: Triton's `Autotuner`.
            plain: the tuner's original method `run`, for a tuner of one configuration.
        """
        if len(tuner.configs) == 1:
            return plain(tuner, *args, **kwargs)
        tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))
        tensors = Memory({}, traced=False)
        for name, value in {**tuner.nargs, **kwargs}.items():
            tensors.add(name, value)
        distinct = self._in_turn(_distinct(tuner.prune_configs(kwargs), tuner.arg_names))
        if any(region.tensor.device.type != "cpu" for region in tensors.regions.values()):
            distinct = distinct[:1]  # their memory cannot be compared from here
        try:
            self._all(tuner, args, kwargs, distinct, tensors)
        finally:
            tuner.nargs = None
        return None

    def _in_turn(self, configs: list[Any]) -> list[Any]:
        self._launches += 1
        later = configs[1:]
        turn = self._launches * (MOST_AT_ONCE - 1) % len(later) if len(later) >= MOST_AT_ONCE else 0
        return configs[:1] + (later[turn:] + later[:turn])[: MOST_AT_ONCE - 1]

    def _all(self, tuner: Any, args: Any, kwargs: Any, configs: list[Any], tensors: Memory) -> None:
        original = _kept(tensors)
        written: list[tuple[Any, list[_Array]]] = []
        refused: StaticAssertion | None = None
        for config in configs:
            try:
                if written:
                    _put_back(tensors, original)
                    self._quietly(lambda config=config: _launch(tuner, args, kwargs, config))  # type: ignore[misc]
                else:
                    _launch(tuner, args, kwargs, config)
            except StaticAssertion as error:  # Triton leaves such a configuration out
                refused = error
                continue
            except Exception as error:
                if len(configs) == 1:
                    raise
                message = (
                    str(error)
                    if isinstance(error, KernelFault)
                    else f"{type(error).__name__}: {error}"
                )
                raise KernelFault(f"with the configuration {_words(config)}: {message}") from error
            if not written:
                tuner.best_config = config
                self._refuse_a_second_run(tuner, args, kwargs, config, tensors)
            written.append((config, _kept(tensors)))
        if not written:
            raise refused or KernelFault("no configuration is left to run")
        _compare(tensors, written)
        _put_back(tensors, written[0][1])

    def _refuse_a_second_run(
        self, tuner: Any, args: Any, kwargs: Any, config: Any, tensors: Memory
    ) -> None:
        """Launch once more and compare: Triton times a kernel by many launches, so a kernel that
        adds to its earlier results must be reset in between.
        """
        excused = {*tuner.reset_to_zero, *tuner.restore_value}
        named = {**tuner.nargs, **kwargs}
        shielded = Memory({}, traced=False)
        for name in excused & named.keys():
            shielded.add(name, named[name])
        changed = [
            key
            for key, entry in self._memory().elements.items()
            if entry.changed_what_it_found and key not in shielded.elements
        ]
        if not changed or tuner.user_defined_pre_hook:
            return
        once = _kept(tensors)
        self._quietly(lambda: _launch(tuner, args, kwargs, config))
        twice = _kept(tensors)
        _put_back(tensors, once)
        for entry in _differences(tensors, once, twice):
            raise KernelFault(
                f"launched twice, the kernel writes something else to {entry.name}{entry.place}: "
                "autotune launches it "
                "many times to find the fastest configuration. Name it in reset_to_zero or "
                "restore_value"
            )


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
        visible = {name: value for name, value in config.all_kwargs().items() if name in parameters}
        seen.setdefault(f"{sorted(visible.items())} {id(config.pre_hook)}", config)
    return list(seen.values())


def _words(config: Any) -> str:
    return "(" + ", ".join(f"{name}: {value}" for name, value in config.kwargs.items()) + ")"


def _kept(tensors: Memory) -> list[_Array]:
    return [elements.bits().copy() for elements in tensors.elements.values()]


def _put_back(tensors: Memory, contents: list[_Array]) -> None:
    for elements, bits in zip(tensors.elements.values(), contents, strict=True):
        elements.bits()[...] = bits


@dataclass(frozen=True, slots=True)
class ResultDifference:
    """The first element of a tensor that two configurations have written differently."""

    name: str
    place: list[int]
    first: float
    second: float


def _compare(tensors: Memory, written: list[tuple[Any, list[_Array]]]) -> None:
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
    tensors: Memory, first: list[_Array], second: list[_Array]
) -> list[ResultDifference]:
    """The tensors whose contents differ by more than rounding."""
    pairs = {
        id(elements): pair
        for elements, *pair in zip(tensors.elements.values(), first, second, strict=True)
    }
    differences = []
    for region in tensors.regions.values():
        pair = pairs[id(region.elements)]
        if np.array_equal(pair[0], pair[1]):
            continue
        a, b = (
            _numbers(region, bits[region.start : region.start + region.extent]) for bits in pair
        )
        with np.errstate(all="ignore"):
            differs = np.abs(a - b) > _TOLERANCE.get(region.tensor.element_size(), 0) * np.maximum(
                1, np.abs(a)
            )
            differs |= (
                (np.isnan(a) != np.isnan(b)) | (np.isinf(a) & (a != b)) | (np.isinf(b) & (a != b))
            )
        places = np.nonzero(differs & region.valid)[0]
        if places.size:
            place = region.index_of(int(places[0]))[0]
            differences.append(
                ResultDifference(region.name, place, float(a[places[0]]), float(b[places[0]]))
            )
    return differences


def _numbers(region: Any, bits: _Array) -> _Array:
    """Elements as float64, whatever they are."""
    kind = str(region.tensor.dtype).removeprefix("torch.")
    if kind.startswith("float8"):
        return bits.astype(np.float64)
    if kind == "bfloat16":
        return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return bits.view(np.dtype(kind)).astype(np.float64)
