"""The fault of a function that ends in an error for float64 alone: somewhere a tensor is made in
torch's default dtype, float32.

Tests hand out float64, so that this one slip fails nearly all of them. A function that answers the
same calls rightly in float32 has no other fault in them, and costs what one fault costs.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from autograder.diagnosis.smallest_repair import Evidence
from autograder.suite.answer_predicates import equal
from autograder.suite.sight import Sight, Unseen
from autograder.wire.libraries import is_tensor, loaded_torch
from autograder.wire.trees import mapped

_TEXT = (
    "In the calls that end in an error, your function answers rightly once the arguments are "
    "float32: somewhere it makes a tensor of torch's default dtype. Give such a tensor the dtype "
    "of the arguments."
)


def find_default_dtype(
    errors: Mapping[str, Sight], unexplained: int
) -> Evidence | None:
    """The evidence that a function works in float32 alone; None where it does not.

    Args:
        errors: by test, a call that ended in an error of the student's code, without an answer.
        unexplained: how many failed tests no mistake explains. Half of them must show the fault.
    """
    shown = []
    for test, sight in errors.items():
        answers_rightly = _answers_rightly_in_float32(sight)
        if answers_rightly is False:
            return None
        if answers_rightly:
            shown.append(test)
        elif not shown:
            return None  # most errors have another cause: one further call tells
    if not shown or 2 * len(shown) < unexplained:
        return None
    return Evidence(_TEXT, frozenset(shown), is_repair=True)


def _answers_rightly_in_float32(sight: Sight) -> bool | None:
    """Whether the call is answered rightly with float32 in place of float64; None where it has no
    float64, or no answer then either.
    """
    narrowed: dict[str, Any] = {}
    for name, value in sight.arguments.items():
        narrow = _in_float32(value)
        if narrow is not value:
            narrowed[name] = narrow
    if not narrowed:
        return None
    try:
        other = sight.ask_with("float32 arguments", narrowed)
        return equal(other.answer, other.right)
    except Unseen:
        return None


def _in_float32(value: Any) -> Any:
    """The argument with its float64 tensors in float32; the argument itself where it has none."""
    torch = loaded_torch()
    has_changed = False

    def narrow(leaf: Any) -> Any:
        nonlocal has_changed
        if isinstance(leaf, SimpleNamespace):
            parts = mapped(narrow, vars(leaf))
            return SimpleNamespace(**parts)
        if is_tensor(leaf) and leaf.dtype == torch.float64:
            has_changed = True
            return leaf.detach().float()
        return leaf

    narrowed = mapped(narrow, value)
    return narrowed if has_changed else value
