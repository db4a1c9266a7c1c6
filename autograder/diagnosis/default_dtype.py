"""The fault of a function that ends in an error for float64 alone: somewhere a tensor is made in
torch's default dtype, float32.

Tests hand out float64, so that this one slip fails nearly all of them. A function that answers the
same calls rightly in float32 has no other fault in them, and costs what one fault costs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from autograder.diagnosis.smallest_repair import Evidence
from autograder.suite.answer_predicates import equal
from autograder.suite.scripts import Script, ScriptStep, float_dtypes, is_float_tensor
from autograder.suite.sight import Sight, Unseen
from autograder.wire.libraries import dtype_name

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
    call = Script((ScriptStep("", (), sight.arguments),))
    if "float64" not in float_dtypes(call):
        return None
    (narrowed,) = call.map_arguments(_in_float32).steps
    try:
        other = sight.ask_with("float32 arguments", narrowed.keywords)
        return equal(other.answer, other.right)
    except Unseen:
        return None


def _in_float32(leaf: Any) -> Any:
    is_float64 = is_float_tensor(leaf) and dtype_name(leaf.dtype) == "float64"
    return leaf.detach().float() if is_float64 else leaf
