"""A script: calls of a student's code in a row, written down before they are made.

The same script can be played on the answer key and on a submission, printed as Python, and shrunk.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Literal

from autograder.wire.libraries import dtype_name, is_tensor

Settings = Mapping[str, str]
"""What was drawn for a script, by the name of the choice: `{"dtype": "float32"}`."""


@dataclass(frozen=True, slots=True)
class Made:
    """The answer of an earlier step of a script, where it is an object: a cache, a model.

    Attributes:
        step: the index of the step.
    """

    step: int


@dataclass(frozen=True, slots=True)
class ScriptStep:
    """One call of a script, or one look at an attribute.

    Attributes:
        name: of a function, a class, a method of `on`, or an attribute of `on`.
        keywords: the arguments that are given by name.
        on: the object whose method or attribute it is; None for a function of the notebook.
        kind: "call"; "read" for an attribute; "helper" for a function of the script's `helpers`.
    """

    name: str
    arguments: tuple[Any, ...] = ()
    keywords: Mapping[str, Any] = field(default_factory=dict)
    on: Made | None = None
    kind: Literal["call", "read", "helper"] = "call"


@dataclass(frozen=True, slots=True)
class Script:
    """Calls in a row.

    Attributes:
        steps: at least one.
        settings: what was drawn for the script; empty for a script that nobody drew.
        helpers: Python text with functions of the suite's own that steps of the kind "helper" call.
        gradients: whether gradients of the float arguments are part of the answer.
    """

    steps: tuple[ScriptStep, ...]
    settings: Settings = field(default_factory=dict)
    helpers: str = ""
    gradients: bool = False

    def map_arguments(self, function: Callable[[Any], Any]) -> Script:
        """The script with the function applied to every leaf of every argument."""
        steps = []
        for step in self.steps:
            arguments = tuple(map_leaves(function, part) for part in step.arguments)
            keywords = {
                name: map_leaves(function, part) for name, part in step.keywords.items()
            }
            steps.append(
                dataclasses.replace(step, arguments=arguments, keywords=keywords)
            )
        return dataclasses.replace(self, steps=tuple(steps))

    def leaves(self) -> list[Any]:
        """The leaves of all arguments, in order."""
        collected: list[Any] = []
        for step in self.steps:
            for part in (*step.arguments, *step.keywords.values()):
                _collect_leaves(part, collected)
        return collected


def map_leaves(function: Callable[[Any], Any], value: Any) -> Any:
    """The same lists, tuples, dicts and plain objects, with the function applied to each leaf."""
    if isinstance(value, (list, tuple)):
        parts = [map_leaves(function, part) for part in value]
        is_named = hasattr(value, "_fields")
        return type(value)(*parts) if is_named else type(value)(parts)
    if isinstance(value, dict):
        return {key: map_leaves(function, part) for key, part in value.items()}
    if type(value) is SimpleNamespace:
        return SimpleNamespace(**map_leaves(function, vars(value)))
    return function(value)


def _collect_leaves(value: Any, collected: list[Any]) -> None:
    """Append what `map_leaves` applies its function to, in the same order."""
    if type(value) is SimpleNamespace:
        value = vars(value)
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, (list, tuple)):
        collected.append(value)
        return
    for part in value:
        _collect_leaves(part, collected)


def is_float_tensor(value: Any) -> bool:
    """Whether the value is a tensor of floats."""
    return is_tensor(value) and value.is_floating_point()


def float_dtypes(script: Script) -> set[str]:
    """The dtypes of float tensors among the arguments."""
    return {dtype_name(leaf.dtype) for leaf in script.leaves() if is_float_tensor(leaf)}
