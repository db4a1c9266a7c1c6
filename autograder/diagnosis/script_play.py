"""Plays a script on the answer key or on a submission: the answers of its steps."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from autograder.basics.errors import KitError
from autograder.sandbox.student import Student
from autograder.suite.calls import start_log
from autograder.suite.scripts import Made, Script, ScriptStep, is_float_tensor, map_leaves
from autograder.wire.trees import leaves

_OBJECT = "an object"
"""Stands for an answer that is an object: two objects are compared by what they answer later."""


@dataclass(slots=True)
class StepAnswer:
    """The answer of one step.

    Attributes:
        value: data, or the word for an object.
        fault: the exception in its place: a StudentFault of a submission, any of the answer key.
        changed: places in the arguments that the call changed.
        gradients: of the float tensors among the arguments, where the script asks for them; None
            for a tensor that no gradient reaches.
    """

    value: Any = None
    fault: Exception | None = None
    changed: tuple[str, ...] = ()
    gradients: list[Tensor | None] = field(default_factory=list)


FindFunction = Callable[[ScriptStep], Any]
"""The function of a step that is called on no object: a question's, or a helper of the script."""


class KeyPlayer:
    """Plays scripts on the answer key, in this process.

    Args:
        names: the answer key's names.
    """

    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names = names
        self._helpers: dict[str, dict[str, Any]] = {}

    def play(self, script: Script) -> list[StepAnswer]:
        """The answers up to the first exception."""

        def find(step: ScriptStep) -> Any:
            names = self._helper_names(script.helpers) if step.kind == "helper" else self._names
            return names[step.name]

        return _play(script, find)

    def _helper_names(self, text: str) -> dict[str, Any]:
        if text not in self._helpers:
            names: dict[str, Any] = {"torch": torch}
            exec(compile(text, "<suite>", "exec", dont_inherit=True), names)
            self._helpers[text] = names
        return self._helpers[text]


class StudentPlayer:
    """Plays scripts on a submission, whose code runs in a worker.

    Args:
        student: the submission's functions.
        signatures: the answer key's names, for messages.
    """

    def __init__(self, student: Student, signatures: Mapping[str, Any]) -> None:
        self._student = student
        self._signatures = signatures

    def play(self, script: Script) -> list[StepAnswer]:
        """The answers up to the first fault."""
        log = start_log(self._signatures)

        def find(step: ScriptStep) -> Any:
            if step.kind == "helper":
                return self._student.define(script.helpers, step.name)
            return getattr(self._student, step.name)

        answers = _play(script, find)
        noted_calls = iter([call for call in log.calls if not call.is_attribute])
        for step, answer in zip(script.steps, answers, strict=False):
            noted = None if step.kind == "read" else next(noted_calls, None)
            answer.changed = tuple(noted.changed) if noted else ()
        return answers


def _play(script: Script, find: FindFunction) -> list[StepAnswer]:
    answers: list[StepAnswer] = []
    made: list[Any] = []
    for step in script.steps:
        answer, answer_object = _play_step(step, made, find, script.gradients)
        answers.append(answer)
        made.append(answer_object)
        if answer.fault is not None:
            break
    return answers


def _play_step(
    step: ScriptStep,
    made: list[Any],
    find: FindFunction,
    with_gradients: bool,
) -> tuple[StepAnswer, Any]:
    """The answer of a step, and the object that it made, for later steps."""
    inputs: list[Tensor] = []

    def fill_in(leaf: Any) -> Any:
        if isinstance(leaf, Made):
            return made[leaf.step]
        if isinstance(leaf, Tensor):
            fresh = _fresh(leaf)
            if with_gradients and is_float_tensor(leaf):
                inputs.append(fresh.requires_grad_())
            return fresh
        return leaf

    arguments = tuple(map_leaves(fill_in, part) for part in step.arguments)
    keywords = {name: map_leaves(fill_in, part) for name, part in step.keywords.items()}
    answer = StepAnswer()
    try:
        result = _call(step, made, find, arguments, keywords)
        if inputs:
            answer.gradients = _gradients(result, inputs)
    except KitError:
        raise
    except Exception as error:
        answer.fault = error
        return answer, None
    answer.value = map_leaves(_as_data, result)
    return answer, result


def _call(
    step: ScriptStep,
    made: list[Any],
    find: FindFunction,
    arguments: tuple[Any, ...],
    keywords: dict[str, Any],
) -> Any:
    if step.on is not None:
        target = getattr(made[step.on.step], step.name)
        return target if step.kind == "read" else target(*arguments, **keywords)
    if step.kind == "helper":
        return find(step)(*arguments)
    return find(step)(*arguments, **keywords)


def _fresh(tensor: Tensor) -> Tensor:
    """A copy of a tensor with the same layout in memory."""
    if tensor.is_contiguous():
        return tensor.detach().clone()
    return copy.deepcopy(tensor.detach())


def _gradients(result: Any, inputs: Sequence[Tensor]) -> list[Tensor | None]:
    """Gradients of a weighted sum of the result's floats."""
    total: Tensor | None = None
    for place, leaf in enumerate(leaves(result)):
        if not is_float_tensor(leaf) or not leaf.requires_grad:
            continue
        weights = torch.cos(torch.arange(leaf.numel(), dtype=torch.float64) + place)
        part = (leaf.double() * weights.view(leaf.shape)).sum()
        total = part if total is None else total + part
    if total is None:
        return [None for _ in inputs]
    total.backward()
    return [None if tensor.grad is None else tensor.grad.detach().clone() for tensor in inputs]


def _as_data(leaf: Any) -> Any:
    if isinstance(leaf, Tensor):
        return leaf.detach()
    is_data = leaf is None or isinstance(leaf, (bool, int, float, complex, str, bytes, torch.dtype))
    if is_data or type(leaf).__module__ == "numpy":
        return leaf
    return _OBJECT if not isinstance(leaf, (set, frozenset)) else leaf
