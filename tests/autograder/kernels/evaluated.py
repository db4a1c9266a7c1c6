"""Evaluates lines of TTIR on values that a test has worked out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from autograder.kernels.executor import Executable
from autograder.kernels.frame import Budget, Counts, ProgramFrame
from autograder.kernels.memory import Memory
from autograder.kernels.number_types import read_type, rounder
from autograder.kernels.program_lanes import Programs


def evaluate(lines: str, returns: str, **inputs: tuple[str, Any]) -> Any:
    """The values of `%r`, or of all that `returns` names, for one program.

    Args:
        lines: operations, one a line.
        returns: the type of `%r`; or "%a, %b : type, type".
        inputs: name → type, and the value as numbers in lists.
    """
    parameters = ", ".join(f"%{name}: {kind}" for name, (kind, _) in inputs.items())
    names = returns if ":" in returns else f"%r : {returns}"
    text = f"module {{\n tt.func public @k({parameters}) {{\n{lines}\n tt.return {names}\n }}\n}}"
    frame = ProgramFrame(
        Programs(np.zeros(1, np.int32), (1, 1, 1), np.zeros(1, np.int32)),
        Memory([]),
        Counts(),
        Budget(math.inf),
    )
    for name, (kind, value) in inputs.items():
        frame.values[f"%{name}"] = _array(kind, value)
    Executable(text).run(frame)
    results = [value[0].tolist() for value in frame.returned]
    return results[0] if len(results) == 1 else results


def _array(kind: str, value: Any) -> Any:
    element = read_type(kind).element
    array = np.asarray(value, np.float64 if element.kind == "float" else element.array)
    return (rounder(element)(array) if element.kind == "float" else array)[None]
