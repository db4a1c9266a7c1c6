"""Shrinks a script that shows a difference to a small one that shows a difference of the same kind.

Sizes that are equal shrink together, and numbers become whole ones. Every candidate is examined:
the answer key must accept its calls, and the difference must stay of its kind (a wrong number never
becomes NaN, nor an exception another one). The same script gives the same result.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from autograder.diagnosis.script_judge import AnswerDifference
from autograder.suite.scripts import Made, Script, ScriptStep, is_float_tensor

Examine = Callable[[Script], AnswerDifference | None]
"""The difference that a script shows; None where there is none, or the answer key refuses a call.
"""
MOST_CALLS = 400
_FEW_ELEMENTS = 12
"""Tensors of at most so many elements are simplified element by element."""
_FEW_CANDIDATES = 40
"""With fewer candidates numbers come before sizes: a model's would fill the page."""


@dataclass(frozen=True, slots=True)
class Shrunk:
    """The smallest script that was found.

    Attributes:
        candidates: how many scripts were examined.
    """

    script: Script
    difference: AnswerDifference
    candidates: int


def shrink(
    script: Script,
    examine: Examine,
    most_candidates: int = MOST_CALLS,
) -> Shrunk | None:
    """The smallest script like `script`; None where `script` itself shows no difference.

    Args:
        most_candidates: how many scripts are examined at most; the smallest one so far counts then.
    """
    difference = examine(script)
    if difference is None:
        return None
    search = _Search(script, difference, examine, most_candidates)
    search.run()
    return Shrunk(search.script, search.difference, search.candidates)


class _Search:
    """The smallest script so far, and the passes that look for smaller ones."""

    def __init__(
        self,
        script: Script,
        difference: AnswerDifference,
        examine: Examine,
        most_candidates: int,
    ) -> None:
        self.script = script
        self.difference = difference
        self.candidates = 1
        self._examine = examine
        self._most = most_candidates

    def run(self) -> None:
        """Every pass; the passes about sizes until they find nothing smaller."""
        self._end_at_the_difference()
        while self._first_of(_fewer_steps):
            pass
        if self.script.gradients and self.difference.kind != "gradient":
            self._accept(dataclasses.replace(self.script, gradients=False))
        self._first_of(_plain_tensors)
        if self._most < _FEW_CANDIDATES:
            self._simplify_all_floats()
        while self._first_of(_smaller_sizes) | self._first_of(_smaller_parts):
            pass
        self._simplify_numbers()

    def _end_at_the_difference(self) -> None:
        """Leave the steps behind the first one that differs out."""
        steps = self.script.steps[: self.difference.step + 1]
        if len(steps) < len(self.script.steps):
            self._accept(dataclasses.replace(self.script, steps=steps))

    def _first_of(self, candidates_of: Callable[[Script], Iterator[Script]]) -> bool:
        """Take the first smaller script of a pass, and begin the pass anew, until there is none.

        Returns:
            Whether any was taken.
        """
        has_moved = False
        position = 0
        while self.candidates < self._most:
            for place, candidate in enumerate(candidates_of(self.script)):
                if place >= position and self._accept(candidate):
                    has_moved = True
                    # what failed a moment ago is tried again only in the next round
                    position = place
                    break
            else:
                return has_moved
        return has_moved

    def _simplify_numbers(self) -> None:
        """Whole numbers for all floats; then each tensor by itself; then each element of small
        ones.
        """
        self._simplify_all_floats()
        for place in range(len(self.script.leaves())):
            leaf = self.script.leaves()[place]
            for simplify in _ways_to_simplify(leaf):
                simple_leaf = simplify(leaf)
                if torch.equal(simple_leaf, leaf):
                    break
                if self._accept(_with_leaf(self.script, place, simple_leaf)):
                    break
        for place, leaf in enumerate(self.script.leaves()):
            if not isinstance(leaf, Tensor) or not 1 < leaf.numel() <= _FEW_ELEMENTS:
                continue
            for element in range(leaf.numel()):
                self._simplify_element(place, element)

    def _simplify_all_floats(self) -> None:
        """The simplest numbers that all floats may have together."""
        for simplify in _SIMPLER_FLOATS[2:]:
            simpler = self.script.map_arguments(
                functools.partial(_simplify_floats, simplify)
            )
            if _floats_differ(simpler, self.script) and self._accept(simpler):
                break

    def _simplify_element(
        self,
        place: int,
        element: int,
    ) -> None:
        """0 in the place of one element of a tensor, or True in a mask."""
        leaf = self.script.leaves()[place]
        simple = leaf.dtype == torch.bool
        if leaf.flatten()[element] != simple:
            simpler = leaf.contiguous().clone()
            simpler.view(-1)[element] = simple
            self._accept(_with_leaf(self.script, place, simpler))

    def _accept(self, candidate: Script) -> bool:
        """Keep the candidate if it shows the same kind of difference."""
        if self.candidates >= self._most:
            return False
        self.candidates += 1
        difference = self._examine(candidate)
        if difference is None or not difference.is_like(self.difference):
            return False
        self.script, self.difference = candidate, difference
        return True


# steps


def _fewer_steps(script: Script) -> Iterator[Script]:
    """Without half of the steps that no later one needs, the last ones first; without a quarter; …;
    without one of them.
    """
    idle = [
        place
        for place in reversed(range(len(script.steps)))
        if not _is_needed(script, place)
    ]
    count = max(1, len(idle) // 2)
    while count:
        for first in range(0, len(idle), count):
            left_out = idle[first : first + count]
            if len(left_out) < len(script.steps):
                yield _without_steps(script, left_out)
        count //= 2


def _is_needed(script: Script, place: int) -> bool:
    for step in script.steps[place + 1 :]:
        parts = [step.on, *Script((step,)).leaves()]
        if any(isinstance(part, Made) and part.step == place for part in parts):
            return True
    return False


def _without_steps(script: Script, left_out: Collection[int]) -> Script:
    """The script without the steps at these places, which no step that stays needs."""
    kept = [place for place in range(len(script.steps)) if place not in left_out]
    new_places = {place: new_place for new_place, place in enumerate(kept)}

    def renumbered(leaf: Any) -> Any:
        return Made(new_places[leaf.step]) if isinstance(leaf, Made) else leaf

    steps = tuple(script.steps[place] for place in kept)
    steps = tuple(dataclasses.replace(step, on=renumbered(step.on)) for step in steps)
    has_helpers = any(step.kind == "helper" for step in steps)
    shorter = dataclasses.replace(
        script,
        steps=steps,
        helpers=script.helpers if has_helpers else "",
    )
    return shorter.map_arguments(renumbered)


# sizes


def _plain_tensors(script: Script) -> Iterator[Script]:
    """Contiguous tensors, and float32, which Python's text need not name."""
    tensors = [leaf for leaf in script.leaves() if isinstance(leaf, Tensor)]
    if any(not tensor.is_contiguous() for tensor in tensors):
        yield script.map_arguments(
            lambda leaf: leaf.contiguous() if isinstance(leaf, Tensor) else leaf
        )
    for dtype in (torch.float32, torch.float64):
        if any(is_float_tensor(tensor) and tensor.dtype != dtype for tensor in tensors):
            yield script.map_arguments(functools.partial(_in_dtype, dtype=dtype))
        elif tensors:
            return


def _in_dtype(leaf: Any, dtype: torch.dtype) -> Any:
    if isinstance(leaf, torch.dtype) and leaf.is_floating_point:
        return dtype
    return leaf.to(dtype) if is_float_tensor(leaf) else leaf


AxisChoice = Callable[[Tensor, int], bool]
"""Whether an axis of a tensor is cut."""
_AXES: tuple[AxisChoice, ...] = (
    lambda tensor, axis: True,
    lambda tensor, axis: axis == 0,
    lambda tensor, axis: axis == tensor.ndim - 1,
    lambda tensor, axis: axis == tensor.ndim - 2,
)
"""Axes that are cut together, where not all of a size mean the same."""


def _smaller_sizes(script: Script) -> Iterator[Script]:
    """Every axis of one size cut to a smaller one; or only the first, last or second last axes of
    that size; or the first axis left out where all are 1.
    """
    tensors = [leaf for leaf in script.leaves() if isinstance(leaf, Tensor)]
    sizes = {size for tensor in tensors for size in tensor.shape if size > 1}
    for size in sorted(sizes, reverse=True):
        for smaller in sorted(
            {1, 2, size // 2, size - 2, size - 1} & set(range(1, size))
        ):
            yield _cut(
                script, size, smaller, lambda tensor, axis: True, with_numbers=True
            )
            yield _cut_multiples(script, size, smaller)
    for size in sorted(sizes, reverse=True):
        for smaller in sorted({1, 2, size - 1} & set(range(1, size))):
            for is_cut in _AXES:
                if any(_has_axis(tensor, size, is_cut) for tensor in tensors):
                    yield _cut(script, size, smaller, is_cut)
    if tensors and all(tensor.ndim > 1 and tensor.shape[0] == 1 for tensor in tensors):
        yield script.map_arguments(
            lambda leaf: leaf[0] if isinstance(leaf, Tensor) else leaf
        )


def _has_axis(
    tensor: Tensor,
    size: int,
    is_cut: AxisChoice,
) -> bool:
    return any(
        length == size and is_cut(tensor, axis)
        for axis, length in enumerate(tensor.shape)
    )


def _cut(
    script: Script,
    size: int,
    smaller: int,
    is_cut: AxisChoice,
    with_numbers: bool = False,
) -> Script:
    """The script with axes of one size cut; with numbers also whole numbers of that value, and
    indexes that are below it.
    """

    def cut(leaf: Any) -> Any:
        if isinstance(leaf, Tensor):
            for axis, length in enumerate(leaf.shape):
                if length == size and is_cut(leaf, axis):
                    leaf = leaf.narrow(axis, 0, smaller)
            return (
                _clamped(leaf, size, smaller).clone() if with_numbers else leaf.clone()
            )
        if with_numbers and type(leaf) is int and leaf == size:
            return smaller
        return leaf

    shorter = script.map_arguments(cut)
    return _with_shorter_lists(shorter, size, smaller) if with_numbers else shorter


def _clamped(
    tensor: Tensor,
    size: int,
    smaller: int,
) -> Tensor:
    is_index = tensor.dtype in (torch.int64, torch.int32) and tensor.numel() > 0
    if is_index and smaller <= int(tensor.max()) < size:
        return tensor.clamp(max=smaller - 1)
    return tensor


def _with_shorter_lists(
    script: Script,
    size: int,
    smaller: int,
) -> Script:
    def shorten(value: Any) -> Any:
        if isinstance(value, list) and len(value) == size:
            return [shorten(part) for part in value[:smaller]]
        if isinstance(value, list):
            return [shorten(part) for part in value]
        if isinstance(value, dict):
            return {key: shorten(part) for key, part in value.items()}
        return value

    return _with_arguments(script, shorten)


def _cut_multiples(
    script: Script,
    size: int,
    smaller: int,
) -> Script:
    """The script with a number cut, and every axis that is a multiple of it: heads times width."""

    def cut(leaf: Any) -> Any:
        if isinstance(leaf, Tensor):
            for axis, length in enumerate(leaf.shape):
                if length % size == 0 and length:
                    leaf = leaf.narrow(axis, 0, length // size * smaller)
            return _clamped(leaf, size, smaller).clone()
        return smaller if type(leaf) is int and leaf == size else leaf

    return script.map_arguments(cut)


def _with_arguments(script: Script, function: Callable[[Any], Any]) -> Script:
    """The script with the function applied to every whole argument."""
    steps = [
        dataclasses.replace(
            step,
            arguments=tuple(function(part) for part in step.arguments),
            keywords={name: function(part) for name, part in step.keywords.items()},
        )
        for step in script.steps
    ]
    return dataclasses.replace(script, steps=tuple(steps))


# parts that are no tensors


def _smaller_parts(script: Script) -> Iterator[Script]:
    """Without one keyword; with one list, text or number that is smaller."""
    for number, step in enumerate(script.steps):
        for key in step.keywords:
            keywords = {
                name: part for name, part in step.keywords.items() if name != key
            }
            yield _with_step(
                script, number, dataclasses.replace(step, keywords=keywords)
            )
        for place, argument in enumerate(step.arguments):
            for smaller in _smaller_values(argument):
                arguments = (
                    *step.arguments[:place],
                    smaller,
                    *step.arguments[place + 1 :],
                )
                yield _with_step(
                    script, number, dataclasses.replace(step, arguments=arguments)
                )
        for key, argument in step.keywords.items():
            for smaller in _smaller_values(argument):
                keywords = {**step.keywords, key: smaller}
                yield _with_step(
                    script, number, dataclasses.replace(step, keywords=keywords)
                )


def _with_step(
    script: Script,
    number: int,
    step: ScriptStep,
) -> Script:
    steps = (*script.steps[:number], step, *script.steps[number + 1 :])
    return dataclasses.replace(script, steps=steps)


def _smaller_values(value: Any) -> Iterator[Any]:
    if type(value) is bool:
        if value:
            yield False
    elif type(value) is int:
        yield from [smaller for smaller in _smaller_numbers(value) if smaller != value]
    elif isinstance(value, float):
        for simple in (
            0.0,
            1.0,
            0.5,
            *([float(round(value))] if math.isfinite(value) else []),
        ):
            if simple == value:
                break
            yield simple
    elif isinstance(value, str):
        yield from [value[:place] + value[place + 1 :] for place in range(len(value))]
    elif isinstance(value, (list, tuple)):
        kind = type(value)
        for place in range(len(value)):
            yield kind([*value[:place], *value[place + 1 :]])
        for place, part in enumerate(value):
            for smaller in _smaller_values(part):
                yield kind([*value[:place], smaller, *value[place + 1 :]])
    elif isinstance(value, dict):
        yield from _smaller_dicts(value)
    elif type(value) is SimpleNamespace:
        yield from (
            SimpleNamespace(**smaller) for smaller in _smaller_dicts(vars(value))
        )


def _smaller_numbers(value: int) -> list[int]:
    candidates = (0, 1, 2, value // 2, value - 1)
    return [
        candidate
        for candidate in dict.fromkeys(candidates)
        if abs(candidate) < abs(value)
    ]


def _smaller_dicts(value: Mapping[Any, Any]) -> Iterator[dict[Any, Any]]:
    """Without one entry, where all values are whole numbers; with one value smaller."""
    if all(type(part) is int for part in value.values()):
        for key in value:
            yield {name: part for name, part in value.items() if name != key}
    for key, part in value.items():
        for smaller in _smaller_values(part):
            yield {**value, key: smaller}


# numbers in tensors

_SIMPLER_FLOATS: tuple[Callable[[Tensor], Tensor], ...] = (
    torch.zeros_like,
    torch.ones_like,
    lambda tensor: tensor.sign(),
    lambda tensor: tensor.round().clamp(-2, 2),
    lambda tensor: tensor.round(),
    lambda tensor: (2 * tensor).round() / 2,
    lambda tensor: (100 * tensor).round() / 100,
)
_SIMPLER_WHOLE: tuple[Callable[[Tensor], Tensor], ...] = (
    torch.zeros_like,
    lambda tensor: tensor.clamp(max=1),
    lambda tensor: tensor.clamp(max=2),
)


def _simplify_floats(simplify: Callable[[Tensor], Tensor], leaf: Any) -> Any:
    return simplify(leaf) if is_float_tensor(leaf) else leaf


def _ways_to_simplify(leaf: Any) -> tuple[Callable[[Tensor], Tensor], ...]:
    if not isinstance(leaf, Tensor):
        return ()
    if is_float_tensor(leaf):
        return _SIMPLER_FLOATS
    return (torch.ones_like,) if leaf.dtype == torch.bool else _SIMPLER_WHOLE


def _floats_differ(first: Script, second: Script) -> bool:
    pairs = zip(first.leaves(), second.leaves(), strict=True)
    return any(
        is_float_tensor(mine) and not torch.equal(mine, other) for mine, other in pairs
    )


def _with_leaf(
    script: Script,
    place: int,
    value: Any,
) -> Script:
    count = -1

    def replace(leaf: Any) -> Any:
        nonlocal count
        count += 1
        return value if count == place else leaf

    return script.map_arguments(replace)
