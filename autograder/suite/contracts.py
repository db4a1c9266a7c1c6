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

import itertools
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from hypothesis import reject
from hypothesis import strategies as st

from autograder.basics.errors import BadSuite
from autograder.basics.python_files import run_python_file
from autograder.course.fingerprint import CONTRACTS_FILE
from autograder.suite.contract_calls import FULL, HALF, Form, Play, allows_all, calls
from autograder.suite.contract_draws import CallRejected, Scope, WholeNumbers
from autograder.suite.contract_numbers import EDGES, FLOATS
from autograder.suite.contract_parameters import (
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
from autograder.suite.scripts import Script
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

_WITH_GRADIENTS = 20
"""Percent of scripts with gradients, where a contract asks for them."""


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
            try:
                return self._draw_script(lambda low, high: draw(st.integers(low, high)))
            except CallRejected:
                reject()

        return script()

    def _draw_script(self, draw: WholeNumbers) -> Script:
        scope = Scope(draw, self.sizes, self.dtypes)
        has_digits = str(scope.dtype).removeprefix("torch.") in FULL
        scope.is_tame = self.gradients and has_digits and scope.happens(_WITH_GRADIENTS)
        play = Play()
        self.form(scope, play, self.function)
        script = Script(
            tuple(play.steps), dict(scope.settings), play.helpers, scope.is_tame
        )
        if not self.allows(script):
            raise CallRejected
        return script

    def allows(self, script: Script) -> bool:
        """Whether all calls of a script are allowed, as far as `allowed_if` says."""
        return allows_all(self.allowed_if, self.function, script)


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


def load_contracts(suite: Path, file: str = CONTRACTS_FILE) -> list[Contract]:
    """The contracts of a suite's file, in its order; none where there is no such file.

    Raises:
        BadSuite: the file does not run.
    """
    path = suite / file
    if not path.exists():
        return []
    _registered.clear()
    try:
        run_python_file(path, f"{path.stem}_of_{suite.name}")
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
