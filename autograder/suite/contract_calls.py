"""The calls of a contract: written down one by one before they are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from autograder.suite.contract_draws import Parameter, Scope
from autograder.suite.contract_parameters import LEFT_OUT
from autograder.suite.scripts import Made, Script, ScriptStep

FULL = ("float64", "float32")
HALF = (*FULL, "float16")
"""Dtypes of a docstring that promises something for half precision too; add "bfloat16" where it
names that.
"""
_CALLS_TWICE = 25
"""Percent of scripts with a second call, which differs from the first in one argument."""


class Play:
    """Writes a script down, call by call.

    Attributes:
        steps: the calls so far.
        helpers: Python text with functions of the suite's own, for `helper`.
    """

    def __init__(self) -> None:
        self.steps: list[ScriptStep] = []
        self.helpers = ""

    def call(
        self,
        name: str,
        /,
        *arguments: Any,
        on: Made | None = None,
        **keywords: Any,
    ) -> Made:
        """Call a function or a class of the notebook, or a method of an object that was made."""
        return self._add(ScriptStep(name, arguments, keywords, on))

    def read(self, name: str, on: Made) -> None:
        """Look at an attribute of an object that was made."""
        self._add(ScriptStep(name, on=on, kind="read"))

    def helper(self, name: str, /, *arguments: Any) -> Made:
        """Call a function of the helpers; it runs beside the student's code."""
        return self._add(ScriptStep(name, arguments, kind="helper"))

    def _add(self, step: ScriptStep) -> Made:
        self.steps.append(step)
        return Made(len(self.steps) - 1)


Form = Callable[[Scope, Play, str], None]
"""Draws the calls of a script: (draws, script, name of the question's function)."""


def allows_all(
    accepts: Callable[..., bool] | None, function: str, script: Script
) -> bool:
    """Whether all calls of a function in a script are allowed, as far as `accepts` says."""
    if accepts is None:
        return True
    steps = [step for step in script.steps if step.name == function]
    return all(accepts(*step.arguments, **step.keywords) for step in steps)


def calls(**parameters: Parameter) -> Form:
    """One call with these arguments, in the order of the signature; now and then a second call that
    differs in one of them.

    Arguments in `maybe(…)` are given by keyword, the others by position.
    """

    def draw_call(scope: Scope, play: Play, name: str) -> None:
        for key, parameter in parameters.items():
            scope.arguments[key] = parameter.draw(scope, key)
        _write_call(play, name, parameters, scope.arguments)
        changeable = [
            key for key in parameters if getattr(parameters[key], "can_change", False)
        ]
        if not changeable or not scope.happens(_CALLS_TWICE):
            return
        key = changeable[scope.whole(0, len(changeable) - 1)]
        second = {**scope.arguments, key: parameters[key].draw(scope, key)}
        scope.settings["second call differs in"] = key
        _write_call(play, name, parameters, second)

    draw_call.parameters = parameters  # type: ignore[attr-defined]  # harder inputs read axes there
    return draw_call


def _write_call(
    play: Play,
    name: str,
    parameters: Mapping[str, Parameter],
    values: Mapping[str, Any],
) -> None:
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    for key, value in values.items():
        if value is LEFT_OUT:
            continue
        if getattr(parameters[key], "by_keyword", False):
            keywords[key] = value
        else:
            positional.append(value)
    play.call(name, *positional, **keywords)
