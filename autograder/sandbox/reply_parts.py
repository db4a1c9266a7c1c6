"""Checks the parts of a worker's reply besides the value: errors, costs, and records of kernels.

A worker may send anything, so each field is checked, shortened and cleaned before it is used.
"""

from __future__ import annotations

from typing import Any, TypeGuard

from autograder.basics.errors import StudentCrashed, StudentError, StudentFault
from autograder.basics.safe_text import clean
from autograder.suite.calls import Cost, Launch
from autograder.wire.frames import WireError

_MOST_ITEMS = 64


def read_texts(raw: Any, longest: int) -> tuple[str, ...]:
    """The texts of a list, each shortened to `longest` characters; empty where it is no list."""
    items = raw[:_MOST_ITEMS] if isinstance(raw, list) else []
    return tuple(clean(str(item), longest) for item in items)


def read_error(header: dict[str, Any], call: str) -> StudentFault:
    """The fault of a reply without a value; `call` is the call in words."""
    error = header.get("error")
    if not isinstance(error, dict):
        error = {}
    message = clean(str(error.get("message", "")), 600)
    if header.get("uncrossable") is True:
        return StudentCrashed(
            f"{call} returned a value that cannot be checked: {message}."
        )
    return StudentError(
        clean(str(error.get("type", "Exception")), 100),
        message,
        read_texts(error.get("frames"), 300)[-4:],
        read_texts(error.get("kinds"), 100)[:12],
    )


def read_cost(raw: Any) -> Cost:
    """The cost of a call, five counts.

    Raises:
        WireError: these are no five counts.
    """
    if not isinstance(raw, list) or len(raw) != 5 or not all(map(_is_count, raw)):
        raise WireError("its cost cannot be read")
    return Cost(*raw)


def read_lines(raw: Any) -> int:
    """The count of the lines that a call ran.

    Raises:
        WireError: this is no count.
    """
    if not _is_count(raw):
        raise WireError("the count of its lines cannot be read")
    return raw


def read_launch(raw: Any, call: str) -> Launch:
    """The record of a call's kernels.

    Raises:
        StudentCrashed: a count is missing or no count.
    """
    fields: dict[Any, Any] = raw if isinstance(raw, dict) else {}
    numbers: dict[str, Any] = {}
    for name in ("kernels", "programs", "dots", "largest"):
        numbers[name] = fields.get(name)
    loads = _read_counts(fields.get("loads"))
    stores = _read_counts(fields.get("stores"))
    counts = [*numbers.values(), *loads.values(), *stores.values()]
    if not all(map(_is_count, counts)):
        raise StudentCrashed(
            f"{call} came back with an unreadable record of its kernels"
        )
    return Launch(
        **numbers,
        loads=loads,
        stores=stores,
        unfilled=read_texts(fields.get("unfilled"), 80),
        computed=read_texts(fields.get("computed"), 80),
    )


def _read_counts(raw: Any) -> dict[str, Any]:
    """Counts by tensor, not checked yet; empty where it is no object."""
    items = list(raw.items())[:_MOST_ITEMS] if isinstance(raw, dict) else []
    return {clean(str(tensor), 40): count for tensor, count in items}


def _is_count(number: Any) -> TypeGuard[int]:
    return type(number) is int and 0 <= number < 2**62
