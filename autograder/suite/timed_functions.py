"""What of an assignment is timed on a GPU: `speed.py` beside the tests of its suite
(docs/authoring.md).
"""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from autograder.basics.errors import BadSuite

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
    """Which function is timed, against what, and with which arguments.

    Attributes:
        question, function: the function, and the question that it answers.
        baseline: source of a function `baseline` that takes the same arguments.
        cases: makes the calls.
        answer: what of the function's result the baseline gives too.
        tolerance: by how much the two may differ.
    """

    question: str
    function: str
    baseline: str
    cases: Callable[[], tuple[SpeedCase, ...]]
    answer: Callable[[Any], Tensor]
    tolerance: float


def load_speed_test(suite: Path) -> SpeedTest | None:
    """The suite's `speed.py`, or None where it has none.

    Raises:
        BadSuite: it does not import, or lacks a part.
    """
    path = suite / "speed.py"
    if not path.exists():
        return None
    module = _module(path)
    missing = [
        name for name in ("QUESTION", "TOLERANCE", BASELINE, "cases") if not hasattr(module, name)
    ]
    if missing:
        raise BadSuite(f"{path}: {missing[0]} is missing; docs/authoring.md says what it holds")
    return SpeedTest(
        question=module.QUESTION,
        function=getattr(module, "FUNCTION", module.QUESTION),
        baseline=f"import math\n\nimport torch\n\n\n{inspect.getsource(module.baseline)}",
        cases=lambda: tuple(
            SpeedCase(name, tuple(args), dict(keys)) for name, args, keys in module.cases()
        ),
        answer=getattr(module, "answer", lambda result: result),
        tolerance=module.TOLERANCE,
    )


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"{path.parent.name}.speed", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise BadSuite(f"{path}: it does not import: {type(error).__name__}: {error}") from error
    return module
