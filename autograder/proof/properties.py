"""Property mutants of a function: their names, and expressions of `wrapper_functions.py` and
`torch_changes.py` that make them of `function`.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any

import numpy as np

from autograder.suite.calls import Call
from autograder.wire.libraries import dtype_name, is_tensor
from autograder.wire.trees import leaves

if TYPE_CHECKING:
    from torch import Tensor

Property = tuple[str, str]
"""The name of a property mutant, and the expression of its wrapper."""
Arguments = Mapping[str, Sequence[Any]]
"""The values that each parameter of a function had in the calls."""
_HALF = ("float16", "bfloat16")


@dataclass(frozen=True, slots=True)
class ReachedNames:
    """Names, attributes and texts in a function and in what it calls.

    Attributes:
        everywhere: through all helpers.
        near: through other answers, and in the given helpers that an answer itself calls.
        own: through other answers alone.
    """

    everywhere: frozenset[str]
    near: frozenset[str]
    own: frozenset[str]


def list_properties(
    calls: Sequence[Call],
    signature: Signature | None,
    reached: ReachedNames,
) -> Iterator[Property]:
    """The property mutants that make sense for a function.

    Args:
        calls: the suite's calls of the function.
        signature: of the function, without `self`.
        reached: the names that the function reaches.
    """
    parameters = dict(signature.parameters) if signature else {}
    arguments = _arguments(calls, list(parameters))
    results = [call.result for call in calls]
    yield from _of_arguments(arguments)
    yield from _of_results(results, arguments)
    yield from _of_types(results)
    if parameters:
        yield from _of_settings(parameters, arguments)
        yield from _of_masks(arguments)
    if "." not in calls[0].name:
        yield from _of_memory(parameters, arguments)
        yield from _of_torch(arguments, reached)
        yield from _of_costs(calls, results, arguments)


def _arguments(
    calls: Sequence[Call],
    parameters: Sequence[str],
) -> dict[str, list[Any]]:
    arguments: dict[str, list[Any]] = {}
    for call in calls:
        by_name = dict(zip(parameters, call.arguments, strict=False)) | call.keywords
        for name, value in by_name.items():
            arguments.setdefault(name, []).append(value)
    return arguments


def _tensors(value: Any) -> list[Tensor]:
    return [leaf for leaf in leaves(value) if is_tensor(leaf)]


def _arrays(value: Any) -> list[np.ndarray[Any, Any]]:
    return [leaf for leaf in leaves(value) if isinstance(leaf, np.ndarray)]


def _precision(value: Any) -> str:
    """The dtype of the first tensor of floats; "" without one."""
    for tensor in _tensors(value):
        if tensor.is_floating_point():
            return dtype_name(tensor.dtype)
    return ""


# --- arguments and results


def _of_arguments(arguments: Arguments) -> Iterator[Property]:
    changeable = [name for name, values in arguments.items() if _tensors(values)]
    for name, values in arguments.items():
        if name not in changeable and any(map(_is_changeable, values)):
            changeable.append(name)
    for name in changeable:
        yield f"changes {name}", f"changing(function, {name!r})"
    if any(tensor.dim() > 1 for tensor in _tensors(list(arguments.values()))):
        yield "takes contiguous tensors only", "contiguous_only(function)"


def _is_changeable(value: Any) -> bool:
    return isinstance(value, list) or bool(_arrays(value))


def _of_results(
    results: Sequence[Any],
    arguments: Arguments,
) -> Iterator[Property]:
    answers, arrays = _tensors(results), _arrays(results)
    inputs = _tensors(list(arguments.values()))
    floats = any(answer.is_floating_point() for answer in answers)
    if any(answer.dim() > 0 for answer in answers):
        yield "squeezes its result", _handing_over("of_tensors(torch.Tensor.squeeze)")
    if floats and any(tensor.is_floating_point() for tensor in inputs):
        yield "detaches its result", _handing_over("of_tensors(torch.Tensor.detach)")
    if floats:
        yield (
            "returns double precision",
            _handing_over("of_floats(torch.Tensor.double)"),
        )
        yield "returns half precision", _handing_over("of_floats(torch.Tensor.half)")
    if any(array.ndim > 0 for array in arrays):
        yield "squeezes its arrays", _handing_over("of_arrays(np.squeeze)")
    if any(array.dtype == np.float64 for array in arrays):
        yield "returns single precision", _handing_over("of_arrays(single_precision)")


def _handing_over(new: str) -> str:
    return f"handing_over(function, {new})"


_TYPES: tuple[tuple[str, Callable[[Any], bool], str], ...] = (
    ("floats for whole numbers", lambda leaf: type(leaf) is int, "of_type(int, float)"),
    (
        "tensors for numbers",
        lambda leaf: type(leaf) is float,
        "of_type(float, torch.tensor)",
    ),
    (
        "1 and 0 for True and False",
        lambda leaf: type(leaf) is bool,
        "of_type(bool, int)",
    ),
    ("lists for tensors", is_tensor, "of_tensors(torch.Tensor.tolist)"),
    (
        "int32 for int64",
        lambda leaf: is_tensor(leaf) and dtype_name(leaf.dtype) == "int64",
        "of_dtype(torch.int64, torch.Tensor.int)",
    ),
    (
        "floats for truth values",
        lambda leaf: is_tensor(leaf) and dtype_name(leaf.dtype) == "bool",
        "of_dtype(torch.bool, torch.Tensor.float)",
    ),
)
"""Types that a result can have in place of the right one: the mutant's name, the leaves that are
concerned, and the change of a leaf.
"""


def _of_types(results: Sequence[Any]) -> Iterator[Property]:
    all_leaves = leaves(list(results))
    for name, concerns, new in _TYPES:
        if any(map(concerns, all_leaves)):
            yield f"returns {name}", _handing_over(new)


# --- settings


def _of_settings(
    parameters: Mapping[str, Parameter],
    arguments: Arguments,
) -> Iterator[Property]:
    """Settings of which one counts for nothing beside another, or is read as a share of another."""
    neutral = _neutral_values(parameters, arguments)
    optional = [
        name for name in neutral if parameters[name].default is not Parameter.empty
    ]
    for name, other in itertools.permutations(neutral, 2):
        if name not in optional and other not in optional:
            continue
        settings = f"{name!r}, {neutral[name]!r}, {other!r}, {neutral[other]!r}"
        wrapper = f"ignoring(function, {settings}, where_given="
        yield f"ignores {name} where {other} is given", f"{wrapper}True)"
        if other in optional:
            yield f"ignores {name} where {other} is not given", f"{wrapper}False)"
    shares = [
        name
        for name, values in arguments.items()
        if any(type(x) is float for x in values)
    ]
    for name, whole in itertools.permutations(shares, 2):
        yield (
            f"takes {name} as a share of {whole}",
            f"as_share(function, {name!r}, {whole!r})",
        )
    for name in optional:
        values = [neutral[name], *arguments.get(name, [])]
        if any(type(value) is int for value in values):
            yield (
                f"fails for a large {name}",
                f"no_larger_than_sizes(function, {name!r})",
            )


def _neutral_values(
    parameters: Mapping[str, Parameter],
    arguments: Arguments,
) -> dict[str, Any]:
    """By setting, the value with which it counts for nothing: the default, or else the most
    frequent value in the suite's calls. A float or bool without a default is a setting too.
    """
    neutral = {}
    for name, parameter in parameters.items():
        values = arguments.get(name, [])
        if parameter.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD):
            continue
        if parameter.default is not Parameter.empty:
            neutral[name] = parameter.default
        elif any(type(value) in (float, bool) for value in values):
            plain = [value for value in values if type(value) in (int, float, bool)]
            neutral[name] = Counter(plain).most_common(1)[0][0]
    return neutral


def _of_masks(arguments: Arguments) -> Iterator[Property]:
    first_values = next(iter(arguments.values()), [])
    has_four_axes = any(tensor.dim() > 3 for tensor in _tensors(list(first_values)))
    for name, values in arguments.items():
        masks = [value for value in values if is_tensor(value)]
        if has_four_axes and any(dtype_name(mask.dtype) == "bool" for mask in masks):
            yield (
                f"lines {name} up from the left",
                f"lining_up_from_the_left(function, {name!r})",
            )


# --- memory between calls


def _of_memory(
    parameters: Mapping[str, Parameter],
    arguments: Arguments,
) -> Iterator[Property]:
    plain = [
        name
        for name, parameter in parameters.items()
        if parameter.kind not in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    ]
    if len(plain) == len(parameters) > 1:
        for name in plain:
            yield (
                f"keeps answers by {name} alone",
                f"keeping_answers(function, {(name,)!r})",
            )
        for name in plain if len(plain) > 2 else ():
            others = tuple(other for other in plain if other != name)
            yield (
                f"keeps answers by all but {name}",
                f"keeping_answers(function, {others!r})",
            )
    if plain and _tensors(list(arguments.values())):
        by_shape = f"keeping_answers(function, {tuple(plain)!r}, by_shape=True)"
        yield "keeps answers by the shapes of tensors", by_shape
    for name in plain:
        if parameters[name].default is not Parameter.empty:
            yield f"remembers {name}", f"remembering(function, {name!r})"


# --- a changed torch

_SHIFTS = (
    ("subtracts the mean, not the maximum", "shifted_by(mean_of_row)"),
    ("subtracts one maximum from all rows", "shifted_by(largest_of_all)"),
    ("subtracts no maximum", "shifted_by(nothing)"),
    ("clamps scores to ±30", "shifted_by(nothing, 30.0)"),
    ("clamps scores to ±50", "shifted_by(nothing, 50.0)"),
)
_SOFTMAX = frozenset(["softmax", "log_softmax", "logsumexp", "amax"])
FILL = "a call with minus infinity"
"""Stands among the names that a function reaches, where it fills with minus infinity."""
_FILLS = (
    ("-50", "-50.0"),
    ("-100", "-100.0"),
    ("-1e4", "-1e4"),
    ("the smallest number", "None"),
)


def over_last_axis(name: str) -> str:
    """Stands among the names that a function reaches, where a call of `name` has the axis -1."""
    return f"{name} over the last axis"


_REDUCTIONS = (
    "all",
    "amax",
    "any",
    "argmax",
    "cumsum",
    "log_softmax",
    "logsumexp",
    "mean",
    "softmax",
    "sum",
    "vector_norm",
)
_WIDENING = frozenset(["float", "float32", "promote_types", "widen"])
"""Names of what an answer that computes half precision in float32 has."""
_SUMS = frozenset(["sum", "mean", "vector_norm", "norm", "cumsum", "logsumexp"])
_PRODUCTS = frozenset(["matmul", "einsum", "linear"])
_STEPS = "STATISTICS + PRODUCTS + ELEMENTWISE"
_IN_HALF = (
    ("sums in half precision", "STATISTICS", _SUMS),
    ("multiplies matrices in half precision", "PRODUCTS", _PRODUCTS),
    ("rounds each step to half precision", _STEPS, _SUMS | _PRODUCTS),
)


def _of_torch(
    arguments: Arguments,
    reached: ReachedNames,
) -> Iterator[Property]:
    values = [value for of_parameter in arguments.values() for value in of_parameter]
    precisions = {_precision(value) for value in values}
    if reached.everywhere & _SOFTMAX:
        for name, changes in _SHIFTS:
            yield name, f"computing(function, {changes})"
            if not reached.near & _SOFTMAX:
                continue
            if {"float32", "float64"} <= precisions:
                yield (
                    f"{name}, in float32",
                    f"computing(function, {changes}, (torch.float32,))",
                )
            if precisions & set(_HALF):
                yield (
                    f"{name}, in half precision",
                    f"computing(function, {changes}, HALF)",
                )
    if FILL in reached.everywhere:
        for name, value in _FILLS:
            yield f"fills with {name}", f"computing(function, filling({value}))"
    if precisions & set(_HALF) and reached.own & _WIDENING:
        for name, functions, words in _IN_HALF:
            if words & reached.own:
                yield name, f"in_half_precision(function, {functions})"
    if {"pow", "mean", "sub"} <= reached.own:
        yield (
            "variance as E[x²] − E[x]²",
            "computing(function, difference_of_squares())",
        )
    has_many_axes = any(tensor.dim() > 2 for tensor in _tensors(values))
    for name in _REDUCTIONS:
        if has_many_axes and over_last_axis(name) in reached.near:
            yield f"{name} over axis 1", f"computing(function, over_axis_1({name!r}))"


# --- what is counted


def _of_costs(
    calls: Sequence[Call],
    results: Sequence[Any],
    arguments: Arguments,
) -> Iterator[Property]:
    """Memory for a copy of all that is half precision; a tensor in two places, counted once."""
    values = [value for of_parameter in arguments.values() for value in of_parameter]
    precisions = {_precision(value) for value in values}
    is_pure = all(
        value is None or is_tensor(value) or isinstance(value, int) for value in values
    )
    if is_pure and precisions & set(_HALF) and any(call.cost for call in calls):
        yield "widens half precision as a whole", "widening_first(function)"
    has_nested_tensors = any(
        isinstance(value, dict) and _tensors(value) for value in values
    )
    has_counts = any(type(leaf) is int for leaf in leaves(list(results)))
    if has_nested_tensors and has_counts and not _tensors(list(results)):
        yield "counts a tensor in two places once", "counting_once(function)"
