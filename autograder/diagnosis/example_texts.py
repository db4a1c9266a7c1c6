"""Writes an example for a student: the call, both answers, and where they differ."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from autograder.basics.safe_text import clean, one_line
from autograder.diagnosis.script_judge import AnswerDifference
from autograder.records.model import DifferenceTable, SmallExample
from autograder.sitting.agreement import without_addresses
from autograder.suite.kinds import is_array, numbers_in
from autograder.suite.script_text import can_be_run, script_lines, value_text
from autograder.suite.scripts import Script, map_leaves
from autograder.wire.trees import leaves

EASY_CALL = 1500
"""Characters of a call that a person still reads."""
_LONGEST_CALL = 4000
"""Characters of a call that is only pasted and run: the smallest model with an encoder and a
decoder has forty tensors.
"""
_LONGEST_ANSWER = 800
_LONGEST_ERROR = 300
_DIGITS = 4
_MOST_CELLS = 64
_MOST_COLUMNS = 12
_CLEAR_SHARE = 1e-3
"""A number differs clearly from another by more than this share of the largest one."""
_IMPORTS = {
    "types.SimpleNamespace": "import types",
    "np.array": "import numpy as np",
    "math.": "import math",
}
"""Imports that a notebook may lack, by what needs them."""


def call_for_a_page(script: Script) -> str | None:
    """The script as a student pastes it; None where it is too long or has a large tensor."""
    if not can_be_run(script):
        return None
    call = _call_text(script)
    return call if len(call) <= _LONGEST_CALL else None


def write_example(
    script: Script,
    difference: AnswerDifference,
    note: str,
) -> SmallExample | None:
    """The example of a script that shows a difference; None where it cannot be shown: a call that
    is too long or has a large tensor, or an answer without an order.
    """
    call = call_for_a_page(script)
    answers = leaves([difference.answer, difference.right])
    if call is None or any(isinstance(leaf, (set, frozenset)) for leaf in answers):
        return None
    if difference.kind == "changed":
        return SmallExample(call, one_line(difference.text), "leaves it as it is", note)
    if difference.kind == "error":
        error = clean(one_line(without_addresses(difference.text)), _LONGEST_ERROR)
        expected = answer_text(difference.right, is_rounded=True)
        return SmallExample(call, f"raises {error}", expected, note)
    yours, expected = (
        answer_text(answer, is_rounded=True)
        for answer in (difference.answer, difference.right)
    )
    if yours == expected:  # the difference is beyond the digits that are usually shown
        yours = answer_text(difference.answer, is_rounded=False)
        expected = answer_text(difference.right, is_rounded=False)
    table = _find_table(difference.answer, difference.right)
    return SmallExample(call, yours, expected, note, table)


def _call_text(script: Script) -> str:
    lines = script_lines(script)
    text = "\n".join(lines)
    imports = [line for name, line in _IMPORTS.items() if name in text]
    return "\n".join([*imports, *lines])


def answer_text(answer: Any, *, is_rounded: bool) -> str:
    """An answer as the page has it.

    Args:
        is_rounded: whether its numbers have few digits.
    """
    text = value_text(map_leaves(_rounded, answer) if is_rounded else answer)
    return clean(one_line(text), _LONGEST_ANSWER)


def _rounded(leaf: Any) -> Any:
    """Numbers with few digits."""
    if type(leaf) is float and math.isfinite(leaf):
        return float(f"{leaf:.{_DIGITS}g}")
    if isinstance(leaf, torch.Tensor) and leaf.is_floating_point():
        numbers = map_leaves(_rounded, leaf.double().tolist())
        return (
            torch.tensor(numbers, dtype=torch.float64).view(leaf.shape).to(leaf.dtype)
        )
    return leaf


def _find_table(answer: Any, right: Any) -> DifferenceTable | None:
    """The first two arrays of the answers that differ and have a place on a page; None for none."""
    for mine, key in zip(_arrays(answer), _arrays(right), strict=False):
        if (
            mine.shape != key.shape
            or mine.dtype.kind not in "biuf"
            or key.dtype.kind not in "biuf"
        ):
            return None
        differs = _differing(mine.astype(np.float64), key.astype(np.float64))
        if not differs.any():
            continue
        if not 1 < mine.size <= _MOST_CELLS or mine.shape[-1] > _MOST_COLUMNS:
            return None
        rows = (-1, mine.shape[-1])
        return DifferenceTable(
            _cells(mine.reshape(rows)),
            _cells(key.reshape(rows)),
            tuple(tuple(row) for row in differs.reshape(rows).tolist()),
        )
    return None


def _arrays(value: Any) -> list[Any]:
    if isinstance(value, SimpleNamespace):
        value = vars(value)
    return [numbers_in(leaf) for leaf in leaves(value) if is_array(leaf)]


def _differing(mine: Any, key: Any) -> Any:
    finite = np.nan_to_num(key, posinf=0.0, neginf=0.0)
    largest = float(np.abs(finite).max(initial=0.0))
    close = np.isclose(mine, key, rtol=0.0, atol=_CLEAR_SHARE * largest, equal_nan=True)
    is_clear = not close.all()
    return ~close if is_clear else mine != key


def _cells(rows: Any) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(_cell(number) for number in row) for row in rows.tolist())


def _cell(number: Any) -> str:
    return str(number) if isinstance(number, bool) else f"{number:.{_DIGITS}g}"
