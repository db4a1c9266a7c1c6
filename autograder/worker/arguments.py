"""What a call did to its arguments: a picture of them before, compared with what they are
afterwards.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from autograder.wire.libraries import is_tensor
from autograder.wire.trees import mapped


def picture(value: Any) -> Any:
    """A copy of data through and through; objects that stay here are not looked into."""
    return mapped(_copied, value)


def _copied(value: Any) -> Any:
    if is_tensor(value):
        return value.detach().clone()
    if isinstance(value, np.ndarray) or type(value) is set:
        return value.copy()
    return SimpleNamespace(**picture(vars(value))) if type(value) is SimpleNamespace else value


def changed_arguments(
    function: Callable[..., Any],
    before: tuple[Sequence[Any], Mapping[str, Any]],
    after: tuple[Sequence[Any], Mapping[str, Any]],
) -> list[str]:
    """Where arguments are not what they were, one place an argument: "x", "params['w1']".

    Args:
        before: pictures of the positional arguments and of those by keyword.
        after: the arguments themselves.
    """
    places = [_first(old, new) for old, new in zip(before[0], after[0], strict=True)]
    names = _parameters(function) if any(place is not None for place in places) else []
    named = [names[n] if n < len(names) else f"argument {n + 1}" for n in range(len(places))]
    places += [_first(old, after[1][name]) for name, old in before[1].items()]
    return [
        name + place
        for name, place in zip([*named, *before[1]], places, strict=True)
        if place is not None
    ]


def _first(old: Any, new: Any) -> str | None:
    """The first place in which they differ ("" where they do as a whole), or None."""
    return next(_differences(old, new, ""), None)


def _differences(old: Any, new: Any, path: str) -> Iterator[str]:
    if is_tensor(old):
        if not _same_tensor(old, new):
            yield path
    elif isinstance(old, np.ndarray):
        same_kind = isinstance(new, np.ndarray) and old.dtype == new.dtype
        if not same_kind or not np.array_equal(old, new, equal_nan=old.dtype.kind in "fc"):
            yield path
    elif type(old) is not type(new):
        yield path
    elif type(old) in (list, tuple):
        if len(old) != len(new):
            yield path
        else:
            for n, (left, right) in enumerate(zip(old, new, strict=True)):
                yield from _differences(left, right, f"{path}[{n}]")
    elif type(old) is dict:
        yield from _in_mapping(old, new, path, "[{!r}]")
    elif type(old) is SimpleNamespace:
        yield from _in_mapping(vars(old), vars(new), path, ".{}")
    elif type(old) in (bool, int, float, complex, str, set) and old != new and old == old:
        yield path


def _in_mapping(old: dict[Any, Any], new: dict[Any, Any], path: str, step: str) -> Iterator[str]:
    if old.keys() != new.keys():
        yield path
        return
    for key in old:
        yield from _differences(old[key], new[key], path + step.format(key))


def _same_tensor(old: Any, new: Any) -> bool:
    if not is_tensor(new) or old.shape != new.shape or old.dtype != new.dtype:
        return False
    now = new.detach()
    return old.equal(now) or old.allclose(now, 0, 0, equal_nan=True)  # type: ignore[no-any-return]


def _parameters(function: Any) -> list[str]:
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return []
