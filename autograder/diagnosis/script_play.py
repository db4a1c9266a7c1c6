"""Plays a script on the answer key or on a submission: the answers of its steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from autograder.basics.errors import KitError, StudentFault
from autograder.sandbox.script_calls import call_in_one_request
from autograder.sandbox.student import Student
from autograder.suite.calls import start_log
from autograder.suite.script_steps import (
    FindFunction,
    StepAnswer,
    as_step_value,
    play_step,
)
from autograder.suite.scripts import Script, ScriptStep


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
            names = (
                self._helper_names(script.helpers)
                if step.kind == "helper"
                else self._names
            )
            return names[step.name]

        return _play(script, find)

    def _helper_names(self, text: str) -> dict[str, Any]:
        if text not in self._helpers:
            names: dict[str, Any] = {**self._names, "torch": torch}
            exec(compile(text, "<suite>", "exec", dont_inherit=True), names)
            self._helpers[text] = names
        return self._helpers[text]


class StudentPlayer:
    """Plays scripts on a submission, whose code runs in a worker.

    Args:
        student: the submission's functions.
        signatures: the answer key's names, for messages.
    """

    def __init__(
        self,
        student: Student,
        signatures: Mapping[str, Any],
    ) -> None:
        self._student = student
        self._signatures = signatures

    def play(self, script: Script) -> list[StepAnswer]:
        """The answers up to the first fault."""
        log = start_log(self._signatures)
        # gradients cross one call at a time; and one call is one request anyway
        if len(script.steps) > 1 and not script.gradients:
            return self._play_at_once(script)

        def find(step: ScriptStep) -> Any:
            if step.kind == "helper":
                return self._student.define(
                    script.helpers,
                    step.name,
                    sees_notebook=True,
                )
            return getattr(self._student, step.name)

        answers = _play(script, find)
        noted_calls = iter([call for call in log.calls if not call.is_attribute])
        for step, answer in zip(script.steps, answers, strict=False):
            noted = None if step.kind == "read" else next(noted_calls, None)
            answer.changed = tuple(noted.changed) if noted else ()
        return answers

    def _play_at_once(self, script: Script) -> list[StepAnswer]:
        try:
            calls = call_in_one_request(self._student, script)
        except StudentFault as fault:
            return [StepAnswer(fault=fault)]
        return [
            StepAnswer(as_step_value(call.result), call.fault, tuple(call.changed))
            for call in calls
        ]


def _play(script: Script, find: FindFunction) -> list[StepAnswer]:
    answers: list[StepAnswer] = []
    made: list[Any] = []
    for step in script.steps:
        try:
            answer, answer_object = play_step(
                step, made, find, with_gradients=script.gradients
            )
        except KitError:
            raise
        except Exception as error:
            answers.append(StepAnswer(fault=error))
            break
        answers.append(answer)
        made.append(answer_object)
    return answers
