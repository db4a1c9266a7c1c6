"""Contracts: what the docstring of a question allows, as calls that can be drawn.

`contracts.py` of a suite registers them, one or several for a question:

    contract(
        "attend",
        calls(scores=tensor("B", "T"), states=tensor("B", "T", "H")),
        gradients=True,
    )

`autograder hunt` and `verify` draw calls and look for answers that differ from the answer key's.
"""

from __future__ import annotations

import importlib.util
import itertools
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from hypothesis import reject
from hypothesis import strategies as st

from autograder.basics.errors import BadSuite
from autograder.course.fingerprint import CONTRACTS_FILE
from autograder.suite.contract_draws import Draw, Parameter, Scope
from autograder.suite.contract_numbers import EDGES, FLOATS
from autograder.suite.contract_parameters import (
    LEFT_OUT,
    choice,
    computed,
    config_of,
    counted_words,
    dict_of,
    flag,
    list_of,
    mask,
    maybe,
    number,
    permutation,
    size,
    tensor,
    text,
    tokens,
    whole,
)
from autograder.suite.scripts import Made, Script, ScriptStep
from autograder.suite.seeded_draws import draw_examples

__all__ = [
    "EDGES",
    "FLOATS",
    "FULL",
    "HALF",
    "Play",
    "Scope",
    "calls",
    "choice",
    "computed",
    "config_of",
    "contract",
    "counted_words",
    "dict_of",
    "flag",
    "list_of",
    "mask",
    "maybe",
    "number",
    "permutation",
    "size",
    "tensor",
    "text",
    "tokens",
    "whole",
]

FULL = ("float64", "float32")
HALF = (*FULL, "float16")
"""Dtypes of a docstring that promises something for half precision too; add "bfloat16" where it
names that.
"""
_CALLS_TWICE = 25
"""Percent of scripts with a second call, which differs from the first in one argument."""
_WITH_GRADIENTS = 20
"""Percent of scripts with gradients, where a contract asks for them."""


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


@dataclass(frozen=True, slots=True)
class Contract:
    """What the docstring of a question allows.

    Attributes:
        form: draws the calls of one script.
        sizes: smallest and largest size, by name.
        dtypes: of float tensors. With float64 alone an answer may not compute in float32 inside.
        gradients: whether gradients of the arguments are part of the answer.
        equals: "ordered" where the docstring says what becomes of equal numbers, or no answer
            depends on it; "free" where any of several equal ones may be chosen.
        tolerance: by dtype, the largest difference that is no mistake, as a share of the largest
            number of a row.
        right_if: says of an answer that differs from the answer key's whether it is right too:
            (answer, right answer, arguments of the call) -> bool. None where only equal answers
            are right.
        allowed_if: says of the arguments of a call whether the docstring allows them, where the
            answer key would answer others too. A call that is made smaller keeps to it.
        definition: computes the right answer where the answer key cannot be called in the grader's
            process (kernels).
    """

    question: str
    function: str
    form: Form
    sizes: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    dtypes: tuple[str, ...] = FULL
    gradients: bool = False
    equals: Literal["ordered", "free"] = "ordered"
    tolerance: Mapping[str, float] = field(default_factory=dict)
    right_if: Callable[[Any, Any, Sequence[Any]], bool] | None = None
    allowed_if: Callable[..., bool] | None = None
    definition: Callable[..., Any] | None = None

    def scripts(self) -> st.SearchStrategy[Script]:
        """The allowed scripts, as a hypothesis strategy."""

        @st.composite
        def script(draw: st.DrawFn) -> Script:
            return self._draw_script(draw)

        return script()

    def _draw_script(self, draw: Draw) -> Script:
        scope = Scope(draw, self.sizes, self.dtypes)
        has_digits = str(scope.dtype).removeprefix("torch.") in FULL
        scope.is_tame = self.gradients and has_digits and scope.happens(_WITH_GRADIENTS)
        play = Play()
        self.form(scope, play, self.function)
        script = Script(tuple(play.steps), dict(scope.settings), play.helpers, scope.is_tame)
        if not self.allows(script):
            reject()
        return script

    def allows(self, script: Script) -> bool:
        """Whether all calls of a script are allowed, as far as `allowed_if` says."""
        if self.allowed_if is None:
            return True
        return all(
            self.allowed_if(*step.arguments, **step.keywords)
            for step in script.steps
            if step.name == self.function
        )


_registered: list[Contract] = []


def contract(
    question: str,
    form: Form,
    *,
    function: str = "",
    sizes: Mapping[str, tuple[int, int]] | None = None,
    dtypes: Sequence[str] = FULL,
    gradients: bool = False,
    equals: Literal["ordered", "free"] = "ordered",
    tolerance: Mapping[str, float] | None = None,
    right_if: Callable[[Any, Any, Sequence[Any]], bool] | None = None,
    allowed_if: Callable[..., bool] | None = None,
    definition: Callable[..., Any] | None = None,
) -> None:
    """Register what the docstring of a question allows; the arguments are those of `Contract`.

    Args:
        form: `calls(…)`, or a function of draws, script and name that makes several calls.
        function: the name of the question's function, where it differs from the question's.
    """
    _registered.append(
        Contract(
            question,
            function or question,
            form,
            sizes or {},
            tuple(dtypes),
            gradients,
            equals,
            tolerance or {},
            right_if,
            allowed_if,
            definition,
        )
    )


def calls(**parameters: Parameter) -> Form:
    """One call with these arguments, in the order of the signature; now and then a second call that
    differs in one of them.

    Arguments in `maybe(…)` are given by keyword, the others by position.
    """

    def draw_call(scope: Scope, play: Play, name: str) -> None:
        for key, parameter in parameters.items():
            scope.arguments[key] = parameter.draw(scope, key)
        _write_call(play, name, parameters, scope.arguments)
        changeable = [key for key in parameters if getattr(parameters[key], "can_change", False)]
        if not changeable or not scope.happens(_CALLS_TWICE):
            return
        key = changeable[scope.whole(0, len(changeable) - 1)]
        second = {**scope.arguments, key: parameters[key].draw(scope, key)}
        scope.settings["second call differs in"] = key
        _write_call(play, name, parameters, second)

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


def load_contracts(suite: Path) -> list[Contract]:
    """The contracts of a suite, in the order of the file; none where there is no such file.

    Raises:
        BadSuite: the file does not run.
    """
    path = suite / CONTRACTS_FILE
    if not path.exists():
        return []
    name = f"contracts_of_{suite.name}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    _registered.clear()
    try:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    except Exception as error:
        raise BadSuite(f"{path}: does not run: {error!r}") from error
    contracts = list(_registered)
    _registered.clear()
    return contracts


def deal_scripts(
    contracts: Sequence[Contract],
    count: int,
    seed: int,
) -> list[tuple[Contract, Script]]:
    """At most `count` scripts of some contracts, drawn in turn, the same ones for the same seed.

    The first scripts have as many pairs of settings as possible.
    """
    share = max(1, count // max(1, len(contracts)))
    dealt: list[tuple[Contract, Script]] = []
    for place, dealt_contract in enumerate(contracts):
        number = zlib.crc32(f"{dealt_contract.question} {place} {seed}".encode())
        scripts = draw_examples(dealt_contract.scripts(), share, number)
        dealt += [(dealt_contract, script) for script in pairs_first(scripts)]
    return dealt


def pairs_first(scripts: Sequence[Script]) -> list[Script]:
    """The scripts in another order: first those that bring pairs of settings which no script before
    them has.
    """
    seen: set[Any] = set()
    early, late = [], []
    for script in scripts:
        pairs = set(itertools.combinations(sorted(script.settings.items()), 2))
        if pairs - seen:
            early.append(script)
        else:
            late.append(script)
        seen |= pairs
    return early + late
