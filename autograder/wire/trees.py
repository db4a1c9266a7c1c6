"""Lists, tuples and dicts of values, gone through to what lies in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def leaves(value: Any) -> list[Any]:
    """What lies in nested lists, tuples and dicts, in order; of a dict its values."""
    if isinstance(value, (list, tuple)):
        return [leaf for part in value for leaf in leaves(part)]
    if isinstance(value, dict):
        return [leaf for part in value.values() for leaf in leaves(part)]
    return [value]


def mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """The same lists, tuples (named ones too) and dicts around what the function makes of each
    leaf.
    """
    if isinstance(value, list):
        return [mapped(function, part) for part in value]
    if isinstance(value, tuple):
        parts = (mapped(function, part) for part in value)
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, dict):
        return {key: mapped(function, part) for key, part in value.items()}
    return function(value)
