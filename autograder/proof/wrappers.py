"""Variants that wrap the answer key's functions: property mutants, which compute the right result
and hand it over wrongly, and trivial answers, which compute nothing.

The arguments and results of a function's calls in the suite decide which property mutants make
sense for the function.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from autograder.proof.code_mutants import Variant
from autograder.suite.calls import Call
from autograder.wire.libraries import is_tensor
from autograder.wire.trees import leaves

if TYPE_CHECKING:
    from torch import Tensor

# runs in a worker, which has the kit's wire loaded
_WRAPPERS = '''

import copy as _copy
import functools as _functools
import inspect as _inspect

import numpy as _np
from autograder.wire.libraries import is_tensor as _is_tensor, loaded_torch as _loaded_torch
from autograder.wire.trees import leaves as _leaves, mapped as _mapped

_torch = _loaded_torch()


def _tensors(value):
    return [leaf for leaf in _leaves(value) if _is_tensor(leaf)]


def _arrays(value):
    return [leaf for leaf in _leaves(value) if isinstance(leaf, _np.ndarray)]


def _changing(function, name):
    """The argument `name` has another value after the call."""
    signature = _inspect.signature(function)

    @_functools.wraps(function)
    def answer(*arguments, **keywords):
        result = function(*arguments, **keywords)
        argument = signature.bind(*arguments, **keywords).arguments.get(name)
        tensors = _tensors(argument)
        storages = {tensor.untyped_storage().data_ptr() for tensor in tensors}
        if any(tensor.untyped_storage().data_ptr() in storages for tensor in _tensors(result)):
            result = _mapped(lambda leaf: leaf.clone() if _is_tensor(leaf) else leaf, result)
        for tensor in tensors:
            if 0 not in tensor.stride():
                tensor.data.copy_(~tensor if tensor.dtype == _torch.bool else tensor.data + 1)
        if tensors:
            return result
        if isinstance(result, (_np.ndarray, list, tuple, dict, set)):
            result = _copy.deepcopy(result)
        for array in _arrays(argument):
            array[...] = ~array if array.dtype == bool else array + 1
        if isinstance(argument, list) and not _arrays(argument):
            argument.append(None)
        return result

    return answer


def _contiguous_only(function):
    """Fails as `view` does on a tensor whose memory is not in the order of its axes."""

    @_functools.wraps(function)
    def answer(*arguments, **keywords):
        if not all(tensor.is_contiguous() for tensor in _tensors((arguments, keywords))):
            raise RuntimeError("view size is not compatible with input tensor's size and stride")
        return function(*arguments, **keywords)

    return answer


def _handing_over(function, new):
    """Every tensor, array or number of the result is replaced."""

    @_functools.wraps(function)
    def answer(*arguments, **keywords):
        return _mapped(new, function(*arguments, **keywords))

    return answer


def _of_tensors(new):
    return lambda leaf: new(leaf) if _is_tensor(leaf) else leaf


def _of_float_arrays(new):
    return lambda leaf: new(leaf) if isinstance(leaf, _np.ndarray) and leaf.dtype == float else leaf


def _of_floats(new):
    return _of_tensors(lambda tensor: new(tensor) if tensor.is_floating_point() else tensor)


def _filled(number):
    def new(leaf):
        whole = number if number == number else 0
        if _is_tensor(leaf):
            return _torch.full_like(leaf, number if leaf.is_floating_point() else whole)
        if isinstance(leaf, (_np.ndarray, _np.generic)):
            return _np.full_like(leaf, number if leaf.dtype.kind in "fc" else whole)[()]
        if isinstance(leaf, (str, bytes, set, frozenset)):
            return type(leaf)()
        if isinstance(leaf, (bool, int, float, complex)):
            return type(leaf)(number if isinstance(leaf, (float, complex)) else whole)
        return whole if leaf is None else leaf

    return new


def _refusing(*arguments, **keywords):
    raise ValueError(" ".join(str(number) for number in range(150)))


def _first_of(*arguments, **keywords):
    return [*arguments, *keywords.values()][0]

'''


@dataclass(frozen=True, slots=True)
class ObservedFunction:
    """A function of the answer key that a suite calls, with its property mutants.

    Attributes:
        function: "softmax", or "KVCache.append".
        properties: the name and the wrapper of each property mutant.
    """

    function: str
    properties: tuple[tuple[str, str], ...]


def observe(
    calls: Iterable[Call], parameters: Callable[[str], Sequence[str]]
) -> list[ObservedFunction]:
    """The functions of the calls that ended without an error.

    Args:
        parameters: gives the names of a function's parameters.
    """
    by_function: dict[str, list[Call]] = {}
    for call in calls:
        if call.fault is None and not call.of_suite:
            by_function.setdefault(call.name, []).append(call)
    return [
        ObservedFunction(name, tuple(_properties(calls, parameters(name))))
        for name, calls in by_function.items()
    ]


def _properties(
    calls: Sequence[Call],
    parameters: Sequence[str],
) -> Iterator[tuple[str, str]]:
    arguments: dict[str, list[Any]] = {}
    for call in calls:
        named = dict(zip(parameters, call.arguments, strict=False))
        named.update(call.keywords)
        for name, value in named.items():
            arguments.setdefault(name, []).append(value)
    results = [call.result for call in calls]
    tensors = _tensors(list(arguments.values()))
    answers, arrays = _tensors(results), _arrays(results)
    floats = any(answer.is_floating_point() for answer in answers)

    changeable = [name for name, values in arguments.items() if _tensors(values)]
    for name, values in arguments.items():
        if name not in changeable and any(map(_is_changeable, values)):
            changeable.append(name)
    for name in changeable:
        yield f"changes {name}", f"_changing({{}}, {name!r})"
    if any(tensor.dim() > 1 for tensor in tensors):
        yield "takes contiguous tensors only", "_contiguous_only({})"
    if any(answer.dim() > 0 for answer in answers):
        yield "squeezes its result", "_handing_over({}, _of_tensors(_torch.squeeze))"
    if floats and any(tensor.is_floating_point() for tensor in tensors):
        yield "detaches its result", "_handing_over({}, _of_tensors(_torch.Tensor.detach))"
    if floats:
        yield "returns double precision", "_handing_over({}, _of_floats(_torch.Tensor.double))"
        yield "returns half precision", "_handing_over({}, _of_floats(_torch.Tensor.half))"
    if any(array.ndim > 0 for array in arrays):
        squeeze = "lambda leaf: leaf.squeeze() if _arrays(leaf) else leaf"
        yield "squeezes its arrays", f"_handing_over({{}}, {squeeze})"
    if any(array.dtype == np.float64 for array in arrays):
        to_single = "_of_float_arrays(lambda array: array.astype('float32'))"
        yield "returns single precision", f"_handing_over({{}}, {to_single})"


def _tensors(value: Any) -> list[Tensor]:
    return [leaf for leaf in leaves(value) if is_tensor(leaf)]


def _arrays(value: Any) -> list[np.ndarray[Any, Any]]:
    return [leaf for leaf in leaves(value) if isinstance(leaf, np.ndarray)]


def _is_changeable(value: Any) -> bool:
    return isinstance(value, list) or bool(_arrays(value))


def property_mutants(
    question: str, source: str, observed: Iterable[ObservedFunction]
) -> list[Variant]:
    """The property mutants of a question's cell, for each of its functions that the suite calls."""
    defined = _callables(source)
    return [
        Variant(question, f"{called.function}: {name}", _wrap(source, {called.function: wrapper}))
        for called in observed
        if called.function in defined
        for name, wrapper in called.properties
    ]


TRIVIAL = {
    "zeros": "_handing_over({}, _filled(0))",
    "ones": "_handing_over({}, _filled(1))",
    "NaN": "_handing_over({}, _filled(float('nan')))",
    "its first argument": "_first_of",
    "always ValueError": "_refusing",
}
"""Answers without an idea, and their wrappers."""


def trivial_answers(
    question: str, source: str, observed: Iterable[ObservedFunction]
) -> list[Variant]:
    """Variants in which each function of a question, methods too, answers without an idea.

    `_handing_over` calls the answer key's function for the form of its result. A method would
    change its object then, which is more than nothing, so classes go without these answers.
    """
    defined = _callables(source)
    functions = [called.function for called in observed if called.function in defined]
    if not functions:
        return []
    has_methods = any("." in function for function in functions)
    return [
        Variant(question, name, _wrap(source, dict.fromkeys(functions, wrapper)))
        for name, wrapper in TRIVIAL.items()
        if not (has_methods and "{}" in wrapper)
    ]


def _callables(source: str) -> set[str]:
    """Functions of a cell, and its methods without a decorator."""
    names = set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.ClassDef):
            for part in node.body:
                if isinstance(part, ast.FunctionDef) and not part.decorator_list:
                    names.add(f"{node.name}.{part.name}")
    return names


def _wrap(source: str, wrappers: dict[str, str]) -> str:
    lines = [f"{function} = {wrapper.format(function)}" for function, wrapper in wrappers.items()]
    return source.rstrip("\n") + _WRAPPERS + "\n".join(lines) + "\n"
