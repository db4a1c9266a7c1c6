"""Answers made from the answer key by a wrapper: property mutants, which compute the right thing and hand it over
wrongly, and trivial answers, which compute nothing.

Which of them make sense for a function is seen from what the suite gives to it and what it answers.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor
from torch.utils._pytree import tree_leaves

from autograder.proof.code_mutants import Mutant
from autograder.suite.calls import Call

_WRAPPERS = '''

import copy as _copy
import functools as _functools
import inspect as _inspect

import numpy as _np
import torch
from torch.utils import _pytree


def _tensors(value):
    return [leaf for leaf in _pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def _arrays(value):
    return [leaf for leaf in _pytree.tree_leaves(value) if isinstance(leaf, _np.ndarray)]


def _changing(function, name):
    """The argument `name` is another one afterwards."""
    signature = _inspect.signature(function)

    @_functools.wraps(function)
    def answer(*arguments, **keywords):
        result = function(*arguments, **keywords)
        argument = signature.bind(*arguments, **keywords).arguments.get(name)
        given = _tensors(argument)
        if {t.untyped_storage().data_ptr() for t in given} & {t.untyped_storage().data_ptr() for t in _tensors(result)}:
            result = _pytree.tree_map(lambda leaf: leaf.clone() if isinstance(leaf, torch.Tensor) else leaf, result)
        for tensor in given:
            if 0 not in tensor.stride():
                tensor.data.copy_(~tensor if tensor.dtype == torch.bool else tensor.data + 1)
        if given:
            return result
        result = _copy.deepcopy(result) if isinstance(result, (_np.ndarray, list, tuple, dict, set)) else result
        for array in _arrays(argument):
            array[...] = ~array if array.dtype == bool else array + 1
        if isinstance(argument, list) and not _arrays(argument):
            argument.append(None)
        return result

    return answer


def _contiguous_only(function):
    """Fails as `view` does where the memory is not in the order of the axes."""

    @_functools.wraps(function)
    def answer(*arguments, **keywords):
        if not all(tensor.is_contiguous() for tensor in _tensors((arguments, keywords))):
            raise RuntimeError("view size is not compatible with input tensor's size and stride")
        return function(*arguments, **keywords)

    return answer


def _handing_over(function, new):
    """Every tensor, array or number of the result becomes another one."""

    @_functools.wraps(function)
    def answer(*arguments, **keywords):
        return _pytree.tree_map(new, function(*arguments, **keywords))

    return answer


def _of_tensors(new):
    return lambda leaf: new(leaf) if isinstance(leaf, torch.Tensor) else leaf


def _of_float_arrays(new):
    return lambda leaf: new(leaf) if isinstance(leaf, _np.ndarray) and leaf.dtype == float else leaf


def _of_floats(new):
    return _of_tensors(lambda tensor: new(tensor) if tensor.is_floating_point() else tensor)


def _filled(number):
    def new(leaf):
        whole = number if number == number else 0
        if isinstance(leaf, torch.Tensor):
            return torch.full_like(leaf, number if leaf.is_floating_point() else whole)
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
class Observed:
    """What a suite gives to one function of the answer key, and what that answers.

    Attributes:
        function: "softmax", or "KVCache.append".
        tensors: the parameters that are given tensors.
        arrays: those that are given numpy arrays or lists, and no tensor.
        matrices: whether some tensor given has two axes or more.
        gradients: whether gradients could flow, from floating point numbers to such.
        floats, axes: whether some tensor of an answer has floating point numbers; has an axis.
        float_arrays, array_axes: whether some numpy array of an answer has float64 numbers; has an axis.
    """

    function: str
    tensors: tuple[str, ...]
    matrices: bool
    gradients: bool
    floats: bool
    axes: bool
    arrays: tuple[str, ...] = ()
    float_arrays: bool = False
    array_axes: bool = False


def observe(calls: Iterable[Call], parameters: Callable[[str], Sequence[str]]) -> list[Observed]:
    """What each function was given and answered, of all calls that ended well.

    Args:
        parameters: the names of a function's parameters.
    """
    by_function: dict[str, list[Call]] = {}
    for call in calls:
        if call.fault is None and not call.of_suite:
            by_function.setdefault(call.name, []).append(call)
    return [_observed(name, its, parameters(name)) for name, its in by_function.items()]


def _observed(function: str, calls: Sequence[Call], parameters: Sequence[str]) -> Observed:
    given: dict[str, list[Tensor]] = {}
    changeable: set[str] = set()
    for call in calls:
        for name, value in [*zip(parameters, call.arguments, strict=False), *call.keywords.items()]:
            given.setdefault(name, []).extend(_tensors(value))
            changeable |= {name} if isinstance(value, list) or _arrays(value) else set()
    everything = [tensor for tensors in given.values() for tensor in tensors]
    answers = [tensor for call in calls for tensor in _tensors(call.result)]
    arrays = [array for call in calls for array in _arrays(call.result)]
    floats = any(tensor.is_floating_point() for tensor in answers)
    return Observed(
        function,
        tensors=tuple(name for name, tensors in given.items() if tensors),
        matrices=any(tensor.dim() > 1 for tensor in everything),
        gradients=floats and any(tensor.is_floating_point() for tensor in everything),
        floats=floats,
        axes=any(tensor.dim() > 0 for tensor in answers),
        arrays=tuple(name for name, tensors in given.items() if not tensors and name in changeable),
        float_arrays=any(array.dtype == np.float64 for array in arrays),
        array_axes=any(array.ndim > 0 for array in arrays),
    )


def _tensors(value: Any) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, Tensor)]


def _arrays(value: Any) -> list[np.ndarray[Any, Any]]:
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, np.ndarray)]


def property_mutants(question: str, source: str, observed: Iterable[Observed]) -> list[Mutant]:
    """The property mutants of a question's cell, for each function of it that the suite calls."""
    own = _callables(source)
    return [
        Mutant(question, f"{seen.function}: {name}", _wrapped(source, {seen.function: wrapper}))
        for seen in observed
        if seen.function in own
        for name, wrapper in _properties(seen)
    ]


def _properties(seen: Observed) -> Iterator[tuple[str, str]]:
    for name in (*seen.tensors, *seen.arrays):
        yield f"changes {name}", f"_changing({{}}, {name!r})"
    if seen.matrices:
        yield "takes contiguous tensors only", "_contiguous_only({})"
    if seen.axes:
        yield "squeezes its result", "_handing_over({}, _of_tensors(torch.squeeze))"
    if seen.gradients:
        yield "detaches its result", "_handing_over({}, _of_tensors(torch.Tensor.detach))"
    if seen.floats:
        yield "returns double precision", "_handing_over({}, _of_floats(torch.Tensor.double))"
        yield "returns half precision", "_handing_over({}, _of_floats(torch.Tensor.half))"
    if seen.array_axes:
        yield "squeezes its arrays", "_handing_over({}, lambda leaf: leaf.squeeze() if _arrays(leaf) else leaf)"
    if seen.float_arrays:
        yield "returns single precision", "_handing_over({}, _of_float_arrays(lambda array: array.astype('float32')))"


TRIVIAL = {
    "zeros": "_handing_over({}, _filled(0))",
    "ones": "_handing_over({}, _filled(1))",
    "NaN": "_handing_over({}, _filled(float('nan')))",
    "its first argument": "_first_of",
    "always ValueError": "_refusing",
}
"""Answers without an idea, and their wrappers."""


def trivial_answers(question: str, source: str, observed: Iterable[Observed]) -> list[Mutant]:
    """Trivial answers to a question: all its functions, those of a class too, answer without an idea.

    For the form of its result the answer key's function is called. A method would change its object then, which is
    more than nothing, so classes have only those answers that do without.
    """
    own = [seen.function for seen in observed if seen.function in _callables(source)]
    of_a_class = any("." in function for function in own)
    return [
        Mutant(question, name, _wrapped(source, dict.fromkeys(own, wrapper)))
        for name, wrapper in TRIVIAL.items()
        if own and not (of_a_class and "{}" in wrapper)
    ]


def _callables(source: str) -> set[str]:
    """Functions of a cell, and methods that are called as such."""
    names = set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.ClassDef):
            methods = (part for part in node.body if isinstance(part, ast.FunctionDef) and not part.decorator_list)
            names |= {f"{node.name}.{method.name}" for method in methods}
    return names


def _wrapped(source: str, wrappers: dict[str, str]) -> str:
    lines = [f"{function} = {wrapper.format(function)}" for function, wrapper in wrappers.items()]
    return source.rstrip("\n") + _WRAPPERS + "\n".join(lines) + "\n"
