"""Writes a script as Python that a person can paste below their notebook, and as one line."""

from __future__ import annotations

import inspect
import math
from types import SimpleNamespace
from typing import Any

import numpy as np

from autograder.suite.scripts import Made, Script, ScriptStep, map_leaves
from autograder.wire.libraries import dtype_name, is_tensor, loaded_torch

_UNSAID_DTYPES = ("float32", "int64", "bool")
"""Dtypes that `torch.tensor` chooses by itself."""
_MOST_NUMBERS = 400
"""Numbers of a tensor that are written out; beyond, its shape."""


def script_lines(script: Script) -> list[str]:
    """The script as lines of Python, one a step."""
    texts = [script.helpers] if script.helpers else []
    texts += dict.fromkeys(
        inspect.getsource(leaf) for leaf in script.leaves() if _is_own(leaf)
    )
    lines = [line for text in texts for line in [*text.strip("\n").split("\n"), ""]]
    users = {
        part.step
        for step in script.steps
        for part in (step.on, *_made_parts(step))
        if part
    }
    for number, step in enumerate(script.steps):
        text = _step_text(step, value_text)
        lines.append(f"made_{number} = {text}" if number in users else text)
    return lines


def can_be_run(script: Script) -> bool:
    """Whether the lines of a script can be run: of a large tensor they give the shape alone."""
    tensors = filter(is_tensor, script.leaves())
    return all(tensor.numel() <= _MOST_NUMBERS for tensor in tensors)


def script_title(script: Script) -> str:
    """The script in one line, tensors as shapes: `attend(scores [2, 3], states [2, 3, 4])`."""
    return "; ".join(_step_text(step, _short_text) for step in script.steps)


def _is_own(value: Any) -> bool:
    """Whether a value is a function that a contract defines, and whose text can be shown."""
    return inspect.isfunction(value)


def _made_parts(step: ScriptStep) -> list[Made]:
    parts = [*step.arguments, *step.keywords.values()]
    return [part for part in parts if isinstance(part, Made)]


def _step_text(step: ScriptStep, write: Any) -> str:
    name = f"made_{step.on.step}.{step.name}" if step.on else step.name
    if step.kind == "read":
        return name
    arguments = [write(part) for part in step.arguments]
    arguments += [f"{key}={write(part)}" for key, part in step.keywords.items()]
    return f"{name}({', '.join(arguments)})"


def value_text(value: Any) -> str:
    """A value as Python writes it, with torch imported."""
    torch = loaded_torch()
    if is_tensor(value):
        return _tensor_text(value)
    if isinstance(value, np.ndarray):
        return f"np.array({value.tolist()!r}, dtype={value.dtype.name!r})"
    if torch is not None and isinstance(value, torch.dtype):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return f"float({str(value)!r})"
    if isinstance(value, Made):
        return f"made_{value.step}"
    return _container_text(value, value_text)


def _tensor_text(value: Any) -> str:
    dtype = dtype_name(value.dtype)
    if value.numel() > _MOST_NUMBERS:
        return f"<{dtype} {list(value.shape)}>"
    suffix = "" if dtype in _UNSAID_DTYPES else f", dtype=torch.{dtype}"
    if not value.numel():
        dtype_part = "" if dtype == "float32" else f", dtype=torch.{dtype}"
        return f"torch.zeros({', '.join(map(str, value.shape))}{dtype_part})"
    numbers = value.tolist()
    if dtype == "float32":  # as few digits as float32 needs
        numbers = map_leaves(lambda number: float(str(np.float32(number))), numbers)
    text = f"torch.tensor({_numbers_text(numbers)}{suffix})"
    if value.ndim > 1 and not value.is_contiguous():
        order = sorted(range(value.ndim), key=lambda axis: -value.stride(axis))
        back = sorted(range(value.ndim), key=lambda place: order[place])
        text += f".permute({order}).contiguous().permute({back})"
    return text


def _numbers_text(numbers: Any) -> str:
    """Nested lists of numbers, as short as they stay equal: `[1., -0.5, math.inf]`."""
    if isinstance(numbers, list):
        return f"[{', '.join(_numbers_text(part) for part in numbers)}]"
    if isinstance(numbers, float):
        if not math.isfinite(numbers):
            return f"float({str(numbers)!r})"
        if numbers == int(numbers) and abs(numbers) < 1e6:
            return f"{int(numbers)}."
    return repr(numbers)


def _short_text(value: Any) -> str:
    if is_tensor(value) or isinstance(value, np.ndarray):
        dtype = dtype_name(value.dtype)
        layout = "" if not is_tensor(value) or value.is_contiguous() else " view"
        return f"{dtype}{list(value.shape)}{layout}"
    text = (
        _container_text(value, _short_text)
        if not isinstance(value, Made)
        else value_text(value)
    )
    return text if len(text) <= 60 else f"{text[:57]}…"


def _container_text(value: Any, write: Any) -> str:
    if type(value) is list:
        return f"[{', '.join(map(write, value))}]"
    if type(value) is tuple:
        comma = "," if len(value) == 1 else ""
        return f"({', '.join(map(write, value))}{comma})"
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(f"{key!r}: {write(part)}" for key, part in value.items())
            + "}"
        )
    if type(value) is SimpleNamespace:
        parts = [f"{name}={write(part)}" for name, part in vars(value).items()]
        return f"types.SimpleNamespace({', '.join(parts)})"
    if inspect.isroutine(value) or inspect.isclass(value):
        return value.__name__
    return repr(value)
