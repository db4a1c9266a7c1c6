"""What kind of thing an answer is, in words: type, shape, dtype, and whether gradients reach it."""

from __future__ import annotations

from typing import Any

import numpy as np

from autograder.suite.objects import NotData
from autograder.wire.libraries import is_tensor, loaded_torch
from autograder.wire.values import dtype_name

CUT_OFF = (
    "is cut off from its arguments, so that no gradient reaches them. Was it detached, made "
    "under `no_grad`, or built "
    "anew with `.item()`, numpy or `torch.tensor(...)`?"
)
"""What a tensor is that should have a gradient and has none; the end of a sentence."""


def is_array(value: Any) -> bool:
    """Whether the value is a tensor or a numpy array."""
    return isinstance(value, np.ndarray) or is_tensor(value)


def numbers_in(value: Any) -> np.ndarray[Any, Any]:
    """The numbers of a tensor or an array as an array of the same shape.

    Floating point numbers of a tensor come in double precision, since numpy has no bfloat16.
    """
    if isinstance(value, np.ndarray):
        return value
    torch = loaded_torch()
    if value.is_floating_point():
        value = value.to(torch.float64)
    return value.numpy(force=True)  # type: ignore[no-any-return]


def kind_of(value: Any) -> str:
    """With an article: "a tensor of shape [2, 3]", "None (is a `return` missing?)", "an object of
    class Duck".
    """
    if value is None:
        return "None (is a `return` missing?)"
    if isinstance(value, NotData):
        return value.described()
    if is_tensor(value):
        return f"a tensor of shape {list(value.shape)}"
    if isinstance(value, np.ndarray):
        return f"a numpy array of shape {list(value.shape)}"
    article = "an" if type(value).__name__[:1] in "aeiou" else "a"
    return f"{article} {type(value).__name__}"


def unlike(mine: Any, theirs: Any, place: str = "") -> str:
    """In which way an answer is of another kind than a right one, as the rest of a sentence; ""
    where it is not.

    Args:
        place: which part of the answer this is ("[1]", "['loss']"); "" for the whole.
    """
    at = f"{place}: it " if place else ""
    if is_array(theirs) and type(mine) is type(theirs):
        if problem := other_form(mine, theirs):
            return f"{at}{problem}"
        cut_off = is_tensor(theirs) and theirs.requires_grad and not mine.requires_grad
        return f"{at}{CUT_OFF}" if cut_off else ""
    if isinstance(theirs, (list, tuple)) and isinstance(mine, (list, tuple)):
        if len(mine) != len(theirs):
            return f"{at}has {_entries(len(mine))}; it should have {len(theirs)}."
        parts = [
            unlike(a, b, f"{place}[{n}]") for n, (a, b) in enumerate(zip(mine, theirs, strict=True))
        ]
        return next((part for part in parts if part), "")
    if isinstance(theirs, dict) and isinstance(mine, dict):
        if missing := [key for key in theirs if key not in mine]:
            return f"{at}has no key {missing[0]!r}."
        return next(
            (
                part
                for key in theirs
                if (part := unlike(mine[key], theirs[key], f"{place}[{key!r}]"))
            ),
            "",
        )
    if type(mine) is type(theirs) or (isinstance(theirs, float) and type(mine) is int):
        return ""
    return f"{at}should be {kind_of(theirs)}, and is {kind_of(mine)}."


def other_form(mine: Any, theirs: Any, *, same_dtype: bool = True) -> str:
    """In which way a tensor or an array has another shape or dtype than a right one, as the rest of
    a sentence.
    """
    if mine.shape != theirs.shape:
        return f"has shape {list(mine.shape)}; it should be {list(theirs.shape)}."
    dtypes = dtype_name(mine.dtype), dtype_name(theirs.dtype)
    return (
        f"has dtype {dtypes[0]}; it should be {dtypes[1]}."
        if same_dtype and dtypes[0] != dtypes[1]
        else ""
    )


def _entries(count: int) -> str:
    return "1 entry" if count == 1 else f"{count} entries"
