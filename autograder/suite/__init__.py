"""The names that a hidden suite imports: decorators, inputs, and comparisons.

A suite is plain pytest. `student` is a proxy to a worker behind walls, `reference` is the answer
key; docs/authoring.md shows both.
"""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from autograder.suite.compare import (
    assert_close,
    assert_equal,
    assert_refused,
    assert_unchanged,
    assert_varies,
    call_twice,
)
from autograder.suite.decorators import alternate, forbid, mistake, points, sample, uses

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
    "call_twice",
    "config",
    "eye",
    "far_apart",
    "forbid",
    "full",
    "mistake",
    "moved",
    "ones",
    "points",
    "rand",
    "randint",
    "randn",
    "randperm",
    "sample",
    "tensor",
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
