"""Finds arguments that a call has changed: compares copies of them, taken before, with what they
are after the call.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from autograder.wire.libraries import is_tensor
from autograder.wire.trees import mapped

_COMPARED_BY_VALUE = (bool, int, float, complex, str, set)


def copy_data(value: Any) -> Any:
    """A deep copy of data; objects that are handles elsewhere are not copied."""
    return mapped(_copy_leaf, value)


def _copy_leaf(value: Any) -> Any:
    if is_tensor(value):
        return value.detach().clone()
    if isinstance(value, np.ndarray) or type(value) is set:
        return value.copy()
    if type(value) is SimpleNamespace:
        return SimpleNamespace(**copy_data(vars(value)))
    return value


def changed_arguments(
    function: Callable[..., Any],
    copies: tuple[Sequence[Any], Mapping[str, Any]],
    arguments: tuple[Sequence[Any], Mapping[str, Any]],
) -> list[str]:
    """Places in which arguments differ from their copies, one place an argument: "x",
    "params['w1']".

    Args:
        copies: of the positional arguments and of those by keyword, from before the call.
        arguments: the arguments themselves, after the call.
    """
    changes = []
    positional = zip(copies[0], arguments[0], strict=True)
    for number, (old, new) in enumerate(positional):
        place = _first_difference(old, new)
        if place is not None:
            changes.append(_parameter_name(function, number) + place)
    for name, old in copies[1].items():
        place = _first_difference(old, arguments[1][name])
        if place is not None:
            changes.append(name + place)
    return changes


def _parameter_name(function: Any, number: int) -> str:
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        names = []
    return names[number] if number < len(names) else f"argument {number + 1}"


def _first_difference(old: Any, new: Any) -> str | None:
    """The first place in which two values differ ("" where they do as a whole), or None."""
    if is_tensor(old):
        is_same = _is_same_tensor(old, new)
    elif isinstance(old, np.ndarray):
        is_same = _is_same_array(old, new)
    elif type(old) is not type(new):
        is_same = False
    elif type(old) in (list, tuple, dict, SimpleNamespace):
        return _first_different_part(old, new)
    elif type(old) in _COMPARED_BY_VALUE:
        is_nan = old != old
        is_same = is_nan or old == new
    else:
        is_same = True  # an object of the student's, whose __eq__ is not asked
    return None if is_same else ""


def _first_different_part(old: Any, new: Any) -> str | None:
    old_parts, step = _parts(old)
    new_parts, _ = _parts(new)
    if old_parts.keys() != new_parts.keys():
        return ""
    for key, part in old_parts.items():
        place = _first_difference(part, new_parts[key])
        if place is not None:
            return step.format(key) + place
    return None


def _parts(value: Any) -> tuple[dict[Any, Any], str]:
    """What a container holds, by key, and how a place in it is written."""
    if isinstance(value, dict):
        return value, "[{!r}]"
    if isinstance(value, SimpleNamespace):
        return vars(value), ".{}"
    return dict(enumerate(value)), "[{}]"


def _is_same_tensor(old: Any, new: Any) -> bool:
    if not is_tensor(new) or old.shape != new.shape or old.dtype != new.dtype:
        return False
    numbers = new.detach()
    return old.equal(numbers) or old.allclose(numbers, 0, 0, equal_nan=True)  # type: ignore[no-any-return]


def _is_same_array(old: np.ndarray[Any, Any], new: Any) -> bool:
    if not isinstance(new, np.ndarray) or old.dtype != new.dtype:
        return False
    return np.array_equal(old, new, equal_nan=old.dtype.kind in "fc")
