"""Loads `speed.py` of a suite: the function of an assignment that is timed on a GPU
(docs/authoring.md).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from autograder.basics.errors import BadSuite
from autograder.basics.python_files import run_python_file

if TYPE_CHECKING:
    from torch import Tensor

BASELINE = "baseline"


@dataclass(frozen=True, slots=True)
class SpeedCase:
    """One call that is timed."""

    name: str
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]


@dataclass(frozen=True, slots=True)
class SpeedTest:
    """A timed function, its baseline, and the calls of both.

    Attributes:
        question, function: name of the function, and of the question that the function answers.
        baseline: source of a function `baseline` that takes the same arguments.
        cases: makes the calls.
        answer: picks the part of the function's result that the baseline computes too.
        tolerance: the allowed difference between function and baseline.
    """

    question: str
    function: str
    baseline: str
    cases: Callable[[], tuple[SpeedCase, ...]]
    answer: Callable[[Any], Tensor]
    tolerance: float


def load_speed_test(suite: Path) -> SpeedTest | None:
    """The suite's `speed.py`, or None where the suite has none.

    Raises:
        BadSuite: the file does not import, or lacks a part.
    """
    path = suite / "speed.py"
    if not path.exists():
        return None
    module = _module(path)
    missing = [
        name
        for name in ("QUESTION", "TOLERANCE", BASELINE, "cases")
        if not hasattr(module, name)
    ]
    if missing:
        raise BadSuite(
            f"{path}: {missing[0]} is missing; docs/authoring.md says what it holds"
        )
    return SpeedTest(
        question=module.QUESTION,
        function=getattr(module, "FUNCTION", module.QUESTION),
        baseline=f"import math\n\nimport torch\n\n\n{inspect.getsource(module.baseline)}",
        cases=lambda: tuple(
            SpeedCase(name, tuple(args), dict(keys))
            for name, args, keys in module.cases()
        ),
        answer=getattr(module, "answer", lambda result: result),
        tolerance=module.TOLERANCE,
    )


def _module(path: Path) -> ModuleType:
    try:
        return run_python_file(path, f"{path.parent.name}.speed")
    except Exception as error:
        raise BadSuite(
            f"{path}: it does not import: {type(error).__name__}: {error}"
        ) from error
