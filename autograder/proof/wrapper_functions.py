"""Wrappers around a function of the answer key: it computes the right result, and something is
wrong with what it reads, remembers or hands over.

`wrappers.py` chooses the wrappers of a mutant. A mutant's cell ends with the text of this module,
which runs in a worker; nothing here is called by the kit itself.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from autograder.wire.libraries import is_tensor, loaded_torch
from autograder.wire.trees import leaves, mapped

torch = loaded_torch()
Function = Callable[..., Any]


def tensors(value: Any) -> list[Any]:
    """The tensors among the leaves of a value."""
    return [leaf for leaf in leaves(value) if is_tensor(leaf)]


def arrays(value: Any) -> list[Any]:
    """The numpy arrays among the leaves of a value."""
    return [leaf for leaf in leaves(value) if isinstance(leaf, np.ndarray)]


def with_arguments(
    function: Function,
    change: Callable[[dict[str, Any]], None],
) -> Function:
    """The function, after a change of its arguments: a dict by parameter, with the defaults."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def answer(*values: Any, **keywords: Any) -> Any:
        bound = signature.bind(*values, **keywords)
        bound.apply_defaults()
        change(bound.arguments)
        return function(*bound.args, **bound.kwargs)

    return answer


def handing_over(
    function: Function,
    new: Callable[[Any], Any],
) -> Function:
    """Every leaf of the result is replaced."""

    @functools.wraps(function)
    def answer(*values: Any, **keywords: Any) -> Any:
        return mapped(new, function(*values, **keywords))

    return answer


def changing(function: Function, name: str) -> Function:
    """The argument `name` has another value after the call."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def answer(*values: Any, **keywords: Any) -> Any:
        result = function(*values, **keywords)
        argument = signature.bind(*values, **keywords).arguments.get(name)
        changed = tensors(argument)
        storages = {tensor.untyped_storage().data_ptr() for tensor in changed}
        if any(
            tensor.untyped_storage().data_ptr() in storages
            for tensor in tensors(result)
        ):
            result = mapped(
                lambda leaf: leaf.clone() if is_tensor(leaf) else leaf, result
            )
        for tensor in changed:
            if 0 not in tensor.stride():
                tensor.data.copy_(
                    ~tensor if tensor.dtype == torch.bool else tensor.data + 1
                )
        if changed:
            return result
        if isinstance(result, (np.ndarray, list, tuple, dict, set)):
            result = copy.deepcopy(result)
        for array in arrays(argument):
            array[...] = ~array if array.dtype == bool else array + 1
        if isinstance(argument, list) and not arrays(argument):
            argument.append(None)
        return result

    return answer


def contiguous_only(function: Function) -> Function:
    """Fails as `view` does on a tensor whose memory is not in the order of its axes."""

    @functools.wraps(function)
    def answer(*values: Any, **keywords: Any) -> Any:
        if not all(tensor.is_contiguous() for tensor in tensors((values, keywords))):
            raise RuntimeError(
                "view size is not compatible with input tensor's size and stride"
            )
        return function(*values, **keywords)

    return answer


# --- settings


def is_default(value: Any, default: Any) -> bool:
    """Whether a setting has its default value."""
    if is_tensor(value) or isinstance(value, np.ndarray):
        return value is default
    return type(value) is type(default) and bool(value == default)


def ignoring(
    function: Function,
    name: str,
    default: Any,
    other: str,
    other_default: Any,
    *,
    where_given: bool,
) -> Function:
    """The setting `name` counts for nothing where `other` is given, or where it is not."""

    def ignore(arguments: dict[str, Any]) -> None:
        is_given = not is_default(arguments[other], other_default)
        if is_given == where_given:
            arguments[name] = default

    return with_arguments(function, ignore)


def as_share(
    function: Function,
    name: str,
    whole: str,
) -> Function:
    """The number `name` is read as a share of the number `whole`."""

    def multiply(arguments: dict[str, Any]) -> None:
        if is_number(arguments[name]) and is_number(arguments[whole]):
            arguments[name] *= arguments[whole]

    return with_arguments(function, multiply)


def is_number(value: Any) -> bool:
    """Whether the value is an int or a float."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def no_larger_than_sizes(function: Function, name: str) -> Function:
    """Fails, as `topk` does, where the number `name` is above all sizes of the tensors."""

    def check(arguments: dict[str, Any]) -> None:
        sizes = [
            size
            for tensor in tensors(list(arguments.values()))
            for size in tensor.shape
        ]
        if is_number(arguments[name]) and arguments[name] > max(sizes, default=0):
            raise RuntimeError("selected index k out of range")

    return with_arguments(function, check)


def lining_up_from_the_left(function: Function, name: str) -> Function:
    """The axes of a mask of three axes or more are taken for the first ones of the scores."""

    def line_up(arguments: dict[str, Any]) -> None:
        mask = arguments[name]
        floats = [
            tensor
            for tensor in tensors(list(arguments.values()))
            if tensor.is_floating_point()
        ]
        missing = floats[0].dim() - mask.dim() if floats and is_tensor(mask) else 0
        if missing > 0 and mask.dim() > 2:
            arguments[name] = mask.reshape(
                mask.shape[:1] + (1,) * missing + mask.shape[1:]
            )

    return with_arguments(function, line_up)


def counting_once(function: Function) -> Function:
    """A tensor that stands in several places of the arguments counts in the first one alone, as one
    parameter of a module does: elsewhere it has no elements.
    """

    @functools.wraps(function)
    def answer(*values: Any, **keywords: Any) -> Any:
        seen: set[int] = set()

        def without_repetition(leaf: Any) -> Any:
            if not is_tensor(leaf):
                return leaf
            is_new = id(leaf) not in seen
            seen.add(id(leaf))
            return leaf if is_new else leaf[:0]

        return function(*mapped(without_repetition, list(values)), **keywords)

    return answer


# --- memory between calls


def fingerprint(
    value: Any,
    *,
    by_shape: bool = False,
) -> Any:
    """Equal values have equal fingerprints; tensors by their shape alone where that is wanted."""
    if is_tensor(value) or isinstance(value, np.ndarray):
        shape = (str(value.dtype), tuple(value.shape))
        if by_shape or 0 in value.shape:
            return shape
        numbers = value.detach().tolist() if is_tensor(value) else value.tolist()
        return (*shape, repr(numbers))
    if isinstance(value, (list, tuple)):
        return tuple(fingerprint(part, by_shape=by_shape) for part in value)
    if isinstance(value, dict):
        parts = value.items()
        return tuple((key, fingerprint(part, by_shape=by_shape)) for key, part in parts)
    if hasattr(value, "__dict__") and not callable(value):
        return fingerprint(vars(value), by_shape=by_shape)
    return repr(value)


def keeping_answers(
    function: Function,
    names: tuple[str, ...],
    *,
    by_shape: bool = False,
) -> Function:
    """Calls with equal arguments `names` get the answer of the first of them, as with `lru_cache`
    on a part of the arguments.
    """
    signature = inspect.signature(function)
    answers: dict[Any, Any] = {}

    @functools.wraps(function)
    def answer(*values: Any, **keywords: Any) -> Any:
        bound = signature.bind(*values, **keywords)
        bound.apply_defaults()
        key = fingerprint([bound.arguments[name] for name in names], by_shape=by_shape)
        if key not in answers:
            answers[key] = function(*values, **keywords)
        return mapped(
            lambda leaf: leaf.clone() if is_tensor(leaf) else leaf, answers[key]
        )

    return answer


def remembering(function: Function, name: str) -> Function:
    """The setting `name` stays as it was given last, as a changed default does."""
    signature = inspect.signature(function)
    last: dict[str, Any] = {}

    @functools.wraps(function)
    def answer(*values: Any, **keywords: Any) -> Any:
        bound = signature.bind(*values, **keywords)
        if name in bound.arguments:
            last[name] = bound.arguments[name]
        bound.arguments.update(last)
        return function(*bound.args, **bound.kwargs)

    return answer


def sharing_state(kind: Any) -> Any:
    """A class whose objects have all their attributes in common, as with attributes of the class;
    each new object starts them anew.
    """
    state: dict[str, Any] = {}
    start = kind.__init__

    @functools.wraps(start)
    def start_with_common_state(self: Any, *values: Any, **keywords: Any) -> None:
        start(self, *values, **keywords)
        state.clear()
        state.update(vars(self))
        self.__dict__ = state

    kind.__init__ = start_with_common_state
    return kind


# --- what is handed over


def of_tensors(new: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The change of a leaf, for tensors alone."""
    return lambda leaf: new(leaf) if is_tensor(leaf) else leaf


def of_floats(new: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The change of a leaf, for tensors of floats alone."""
    return of_tensors(
        lambda tensor: new(tensor) if tensor.is_floating_point() else tensor
    )


def of_dtype(dtype: Any, new: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The change of a leaf, for tensors of one dtype alone."""
    return of_tensors(lambda tensor: new(tensor) if tensor.dtype == dtype else tensor)


def of_arrays(new: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The change of a leaf, for numpy arrays alone."""
    return lambda leaf: new(leaf) if isinstance(leaf, np.ndarray) else leaf


def single_precision(array: Any) -> Any:
    """The array as float32, if its numbers are float64."""
    return array.astype("float32") if array.dtype == float else array


def of_type(kind: type, new: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The change of a leaf, for exactly this type of Python's."""
    return lambda leaf: new(leaf) if type(leaf) is kind else leaf


# --- answers without an idea


def filled(number: float) -> Callable[[Any], Any]:
    """The change of a leaf into something of its form, full of one number."""

    def new(leaf: Any) -> Any:
        whole = number if number == number else 0
        if is_tensor(leaf):
            return torch.full_like(leaf, number if leaf.is_floating_point() else whole)
        if isinstance(leaf, (np.ndarray, np.generic)):
            return np.full_like(leaf, number if leaf.dtype.kind in "fc" else whole)[()]
        if isinstance(leaf, (str, bytes, set, frozenset)):
            return type(leaf)()
        if isinstance(leaf, (bool, int, float, complex)):
            return type(leaf)(number if isinstance(leaf, (float, complex)) else whole)
        return whole if leaf is None else leaf

    return new


def refusing(*values: Any, **keywords: Any) -> Any:
    """Refuses everything, with a message that has every small number in it."""
    raise ValueError(" ".join(str(number) for number in range(150)))


def first_of(*values: Any, **keywords: Any) -> Any:
    """The first argument."""
    return [*values, *keywords.values()][0]
