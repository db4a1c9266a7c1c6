"""The names that a hidden suite imports: decorators, inputs, and comparisons.

A suite is plain pytest. `student` is a proxy to a worker behind walls, `reference` is the answer
key; docs/authoring.md shows both.
"""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from autograder.suite.answer_predicates import (
    axes_exchanged,
    back_to_front,
    complement,
    equal_shares,
    finite_for_infinite,
    has_dtype,
    in_another_order,
    is_what,
    lacks,
    needs_softmax,
    not_finite,
    nothing_where_something_is_right,
    one_axis_less,
    one_axis_more,
    one_hot,
    outside,
    part,
    parts_exchanged,
    repeats,
    same_along,
    shape_with_axes_exchanged,
    shifted_along,
    something_only_where_nothing_is_right,
    something_where_nothing_is_right,
    sums_to,
    sums_to_one,
    triangle_at_the_top_left,
)
from autograder.suite.compare import (
    assert_close,
    assert_equal,
    assert_refused,
    assert_unchanged,
    assert_varies,
    call_twice,
)
from autograder.suite.decorators import alternate, forbid, mistake, points, sample, uses
from autograder.suite.factor_predicates import (
    off_by_a_constant,
    off_by_a_factor,
    scores_off_by,
)
from autograder.suite.probing_predicates import (
    depends_on_later,
    ignores,
    ignores_the_size_of,
    is_no_average,
    mixes_the_batch,
    needs_the_first_only,
    needs_the_last_only,
    right_once_exchanged,
    right_once_inverted,
    right_once_scaled,
    right_once_transposed,
    right_without,
    through_unit,
)

if TYPE_CHECKING:
    from autograder.suite.backward import assert_same_gradients
    from autograder.suite.in_turn import assert_close_in_turn
    from autograder.suite.inputs import (
        arange,
        eye,
        far_apart,
        full,
        moved,
        ones,
        rand,
        randint,
        randn,
        randperm,
        tensor,
        zeros,
    )

__all__ = [
    "alternate",
    "arange",
    "assert_close",
    "assert_close_in_turn",
    "assert_equal",
    "assert_refused",
    "assert_same_gradients",
    "assert_unchanged",
    "assert_varies",
    "axes_exchanged",
    "back_to_front",
    "call_twice",
    "complement",
    "config",
    "depends_on_later",
    "equal_shares",
    "eye",
    "far_apart",
    "finite_for_infinite",
    "forbid",
    "full",
    "has_dtype",
    "ignores",
    "ignores_the_size_of",
    "in_another_order",
    "is_no_average",
    "is_what",
    "lacks",
    "mistake",
    "mixes_the_batch",
    "moved",
    "needs_softmax",
    "needs_the_first_only",
    "needs_the_last_only",
    "not_finite",
    "nothing_where_something_is_right",
    "off_by_a_constant",
    "off_by_a_factor",
    "one_axis_less",
    "one_axis_more",
    "one_hot",
    "ones",
    "outside",
    "part",
    "parts_exchanged",
    "points",
    "rand",
    "randint",
    "randn",
    "randperm",
    "repeats",
    "right_once_exchanged",
    "right_once_inverted",
    "right_once_scaled",
    "right_once_transposed",
    "right_without",
    "same_along",
    "sample",
    "scores_off_by",
    "shape_with_axes_exchanged",
    "shifted_along",
    "something_only_where_nothing_is_right",
    "something_where_nothing_is_right",
    "sums_to",
    "sums_to_one",
    "tensor",
    "through_unit",
    "triangle_at_the_top_left",
    "uses",
    "zeros",
]


def config(**settings: Any) -> SimpleNamespace:
    """A configuration for the student's code: a plain object with these attributes."""
    return SimpleNamespace(**settings)


def __getattr__(name: str) -> Any:
    """Import a helper that needs torch, when a suite first uses one.

    Raises:
        ImportError: torch is not installed.
    """
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    modules = {"assert_same_gradients": "backward", "assert_close_in_turn": "in_turn"}
    module = modules.get(name, "inputs")
    try:
        return getattr(importlib.import_module(f"{__name__}.{module}"), name)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ImportError(
            f"{name} needs torch, which is not installed here; numpy.random is seeded too"
        ) from None
