"""Describes the kind of an answer for a student: type, shape, dtype, gradients."""

from __future__ import annotations

from collections.abc import Iterable, Sized
from typing import Any

import numpy as np

from autograder.suite.objects import NotData
from autograder.wire.libraries import dtype_name, is_tensor, loaded_torch

CUT_OFF = (
    "is cut off from its arguments, so that no gradient reaches them. Was it detached, made under "
    "`no_grad`, or built anew with `.item()`, numpy or `torch.tensor(...)`?"
)
"""The end of a sentence about a tensor that should have a gradient and has none."""


def is_array(value: Any) -> bool:
    """Whether the value is a tensor or a numpy array."""
    return isinstance(value, np.ndarray) or is_tensor(value)


def numbers_in(value: Any) -> np.ndarray[Any, Any]:
    """The numbers of a tensor or an array as an array of the same shape.

    A tensor's floats are converted to double precision, since numpy has no bfloat16.
    """
    if isinstance(value, np.ndarray):
        return value
    torch = loaded_torch()
    if value.is_floating_point():
        value = value.to(torch.float64)
    return value.numpy(force=True)  # type: ignore[no-any-return]


def has_nan(value: Any) -> bool:
    """Whether a number is NaN, or an array or a tensor has a NaN in it."""
    if isinstance(value, (float, complex)):
        return value != value
    if is_tensor(value):
        return bool(value.isnan().any())
    is_number = isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "fc"
    return is_number and bool(np.isnan(value).any())


def kind_of(value: Any) -> str:
    """The kind of a value, with an article: "a tensor of shape [2, 3]", "an int"."""
    if value is None:
        return "None (is a `return` missing?)"
    if isinstance(value, NotData):
        return value.describe_kind()
    if is_tensor(value):
        return f"a tensor of shape {list(value.shape)}"
    if isinstance(value, np.ndarray):
        return f"a numpy array of shape {list(value.shape)}"
    article = "an" if type(value).__name__[:1] in "aeiou" else "a"
    return f"{article} {type(value).__name__}"


def count_entries(values: Sized) -> str:
    """How many entries a container has, in words."""
    return "1 entry" if len(values) == 1 else f"{len(values)} entries"


def describe_other_kind(actual: Any, expected: Any, place: str = "") -> str:
    """How an answer is of another kind than the right one, as the rest of a sentence; "" where it
    is of the same kind.

    Args:
        place: which part of the answer is compared ("[1]", "['loss']"); "" for the whole.
    """
    subject = f"{place}: it " if place else ""
    if is_array(expected) and type(actual) is type(expected):
        if problem := describe_other_form(actual, expected):
            return subject + problem
        cut_off = (
            is_tensor(expected) and expected.requires_grad and not actual.requires_grad
        )
        return subject + CUT_OFF if cut_off else ""
    if isinstance(expected, (list, tuple)) and isinstance(actual, (list, tuple)):
        if len(actual) != len(expected):
            return (
                f"{subject}has {count_entries(actual)}; it should have {len(expected)}."
            )
        keys: Iterable[Any] = range(len(expected))
    elif isinstance(expected, dict) and isinstance(actual, dict):
        if missing := [key for key in expected if key not in actual]:
            return f"{subject}has no key {missing[0]!r}."
        keys = expected
    elif type(actual) is type(expected) or (
        isinstance(expected, float) and type(actual) is int
    ):
        return ""
    else:
        return f"{subject}should be {kind_of(expected)}, and is {kind_of(actual)}."
    for key in keys:
        if problem := describe_other_kind(
            actual[key], expected[key], f"{place}[{key!r}]"
        ):
            return problem
    return ""


def describe_other_form(
    actual: Any,
    expected: Any,
    *,
    same_dtype: bool = True,
) -> str:
    """How a tensor or an array differs from the right one in shape or dtype, as the rest of a
    sentence; "" where it does not.
    """
    if actual.shape != expected.shape:
        return f"has shape {list(actual.shape)}; it should be {list(expected.shape)}."
    dtype, right_dtype = dtype_name(actual.dtype), dtype_name(expected.dtype)
    if same_dtype and dtype != right_dtype:
        return f"has dtype {dtype}; it should be {right_dtype}."
    return ""
