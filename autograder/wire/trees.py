"""Walks through nested lists, tuples and dicts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def leaves(value: Any) -> list[Any]:
    """The leaves of nested lists, tuples and dicts, in order; a dict's keys are no leaves."""
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, (list, tuple)):
        return [value]
    collected = []
    for part in value:
        collected += leaves(part)
    return collected


def mapped(
    function: Callable[[Any], Any],
    value: Any,
) -> Any:
    """The same lists, tuples (named ones too) and dicts, with the function applied to each leaf."""
    if isinstance(value, dict):
        return {key: mapped(function, part) for key, part in value.items()}
    if not isinstance(value, (list, tuple)):
        return function(value)
    parts = [mapped(function, part) for part in value]
    if isinstance(value, list):
        return parts
    if hasattr(value, "_fields"):
        return type(value)(*parts)
    return tuple(parts)
