"""Judges the answers to a script: where they differ from the answer key's by more than rounding.

What counts as rounding is measured on the answer key itself: in float64, and with arguments that
differ in their last digits. Where the answer key moves as far, a difference says nothing.
"""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from autograder.basics.errors import StudentError
from autograder.diagnosis.script_play import KeyPlayer
from autograder.suite.kinds import (
    describe_other_kind,
    has_nan,
    is_array,
    numbers_in,
)
from autograder.suite.script_steps import StepAnswer
from autograder.suite.scripts import Script, is_float_tensor
from autograder.wire.libraries import dtype_name
from autograder.wire.trees import leaves

Kind = Literal["value", "not finite", "form", "error", "fault", "changed", "gradient"]
ROUNDINGS = {"float64": 5e-6, "float32": 2e-4, "float16": 2e-2, "bfloat16": 6e-2}
"""The difference that is no mistake, as a share of the largest number of a row: an answer may
compute in float32 inside, and in another order.
"""
_LAST_DIGIT = {
    "float64": 2.0**-23,
    "float32": 2.0**-22,
    "float16": 2.0**-10,
    "bfloat16": 2.0**-7,
}
_LAST_DIGIT_OF_FLOAT64 = 2.0**-50
"""Where an answer may not compute in float32 inside."""
_MOVES = 8.0
"""How many times as far as the answer key moves by rounding an answer may be from it."""
_FEW_TRIES = 8
_MANY_TRIES = 16
"""How often arguments are moved by their last digit: for numbers, and where a choice (the largest
one, an order) may have been made between equals.
"""


@dataclass(frozen=True, slots=True)
class _Precision:
    """What the arguments of a script say about the digits that its answers can have.

    Attributes:
        coarsest: the dtype with the fewest digits among the arguments.
        size: the largest float among the arguments, at most 1: sums of such numbers have rounding
            errors of this size, even where they should be 0.
    """

    coarsest: str
    size: float


@dataclass(frozen=True, slots=True)
class AnswerDifference:
    """How an answer differs from the answer key's.

    Attributes:
        kind: "value"; "not finite" for NaN or inf where the answer key has numbers; "form" for
            another type, shape or dtype; "error" for an exception; "fault" for a hang or a crash;
            "changed" for a changed argument; "gradient".
        step: the index of the step.
        text: the difference in words.
        answer, right: the two answers of the step; None where there is none.
    """

    kind: Kind
    step: int
    text: str
    answer: Any = None
    right: Any = None

    def is_like(self, other: AnswerDifference) -> bool:
        """Whether both differ in the same way; two exceptions are alike if their types are."""
        if self.kind != other.kind:
            return False
        if self.kind in ("error", "fault"):
            return self.text.partition(":")[0] == other.text.partition(":")[0]
        return True


@dataclass(slots=True)
class _LastJudged:
    """What the answer key answered to the script that was judged last: a search judges the same
    script with two tolerances, and its last one twice.

    Attributes:
        right: the script and its answers.
        moved: the script whose arguments were moved last, the step and kind of leaves that were
            asked for, and the answers.
    """

    right: tuple[Script, list[StepAnswer]] | None = None
    moved: tuple[Script, tuple[Any, ...], list[Sequence[Any]]] | None = None


class ScriptJudge:
    """Compares answers with the answer key's.

    Args:
        player: the answer key.
        tolerance: shares that replace those of `ROUNDINGS`.
        equals_are_free: whether any of several equal numbers may be chosen.
        right_if: as in `Contract`.
        may_narrow: whether an answer to float64 may compute in float32 inside.
        tries: how often arguments are moved by their last digit.
    """

    def __init__(
        self,
        player: KeyPlayer,
        tolerance: Mapping[str, float] | None = None,
        equals_are_free: bool = False,
        right_if: Callable[[Any, Any, Sequence[Any]], bool] | None = None,
        may_narrow: bool = True,
        tries: int | None = None,
    ) -> None:
        self._player = player
        self._may_narrow = may_narrow
        self._roundings = {**ROUNDINGS, **(tolerance or {})}
        self._equals_are_free = equals_are_free
        self._right_if = right_if
        self._tries = tries if tries is not None else _usual_tries(equals_are_free)
        self._last = _LastJudged()

    def with_tolerance(self, tolerance: Mapping[str, float]) -> ScriptJudge:
        """A judge that differs in its tolerance alone. What the answer key says is asked once for
        both.
        """
        other = copy.copy(self)
        other._roundings = {**ROUNDINGS, **tolerance}
        return other

    def right_answers(self, script: Script) -> list[StepAnswer] | None:
        """The answer key's answers; None where it refuses a call, or has NaN for an answer to
        numbers.
        """
        last = self._last.right
        if last is None or last[0] is not script:
            last = self._last.right = script, self._player.play(script)
        return last[1] if self.is_sound(*last) else None

    def is_sound(self, script: Script, answers: Sequence[StepAnswer]) -> bool:
        """Whether the answer key took all calls, and has no NaN for an answer to numbers."""
        if any(answer.fault is not None for answer in answers):
            return False
        if any(map(has_nan, script.leaves())):
            return True
        return not any(map(has_nan, leaves([answer.value for answer in answers])))

    def difference(
        self,
        script: Script,
        answers: Sequence[StepAnswer],
        right_answers: Sequence[StepAnswer],
    ) -> AnswerDifference | None:
        """The first difference that is no rounding; None where there is none."""
        precision = _precision_of(script)
        for step, (answer, right) in enumerate(
            zip(answers, right_answers, strict=False)
        ):
            difference = self._step_difference(script, precision, step, answer, right)
            if difference is not None:
                return difference
        return None

    def _step_difference(
        self,
        script: Script,
        precision: _Precision,
        step: int,
        answer: StepAnswer,
        right: StepAnswer,
    ) -> AnswerDifference | None:
        if answer.fault is not None:
            is_error = isinstance(answer.fault, StudentError)
            kind: Kind = "error" if is_error else "fault"
            text = f"{type(answer.fault).__name__}: {answer.fault}"
            if isinstance(answer.fault, StudentError):
                text = f"{answer.fault.type_name}: {answer.fault.message}"
            return AnswerDifference(kind, step, text, None, right.value)
        if answer.changed:
            text = f"changes its argument {answer.changed[0]}"
            return AnswerDifference("changed", step, text, answer.value, right.value)
        is_of_notebook = (
            script.steps[step].kind == "call" and script.steps[step].on is None
        )
        if self._right_if is not None and is_of_notebook:
            if self._is_right(answer.value, right.value, script.steps[step].arguments):
                return None
            return AnswerDifference(
                "value", step, "is not right", answer.value, right.value
            )
        problem = describe_other_kind(answer.value, right.value)
        if problem and not _are_equal_numbers(answer.value, right.value):
            return AnswerDifference("form", step, problem, answer.value, right.value)
        pairs = _paired(answer.value, right.value)
        wrong = self._wrong_leaf(script, precision, step, pairs, _value_leaves)
        if wrong is not None:
            leaf, right_leaf = wrong
            kind = "value"
            if not _all_finite(leaf) and _all_finite(right_leaf):
                kind = "not finite"
            return AnswerDifference(kind, step, "", answer.value, right.value)
        gradient_pairs = [
            (_or_zeros(mine, key), _or_zeros(key, mine))
            for mine, key in zip(answer.gradients, right.gradients, strict=False)
        ]
        sizes = [
            np.abs(_numbers(key)).max(initial=0.0)
            for _, key in gradient_pairs
            if key is not None
        ]
        largest = dataclasses.replace(
            precision,
            size=max(precision.size, *sizes, 0.0),
        )
        wrong = self._wrong_leaf(
            script, largest, step, gradient_pairs, _gradient_leaves
        )
        if wrong is not None:
            return AnswerDifference(
                "gradient", step, "", answer.gradients, right.gradients
            )
        return None

    def _is_right(
        self,
        answer: Any,
        right: Any,
        arguments: Sequence[Any],
    ) -> bool:
        """Whether the contract takes an answer; one in a form that it cannot work with is wrong."""
        assert self._right_if is not None
        try:
            return bool(self._right_if(answer, right, arguments))
        except (
            ArithmeticError,
            AttributeError,
            LookupError,
            RuntimeError,
            TypeError,
            ValueError,
        ):
            return False

    def _wrong_leaf(
        self,
        script: Script,
        precision: _Precision,
        step: int,
        pairs: Sequence[tuple[Any, Any]],
        leaves_of: Callable[[StepAnswer], Sequence[Any]],
    ) -> tuple[Any, Any] | None:
        """The first pair of leaves that differ by more than rounding.

        Args:
            precision: its size counts as the largest of a row whose numbers are smaller.
        """
        apart = []
        for place, (leaf, right) in enumerate(pairs):
            if _are_same(leaf, right):
                continue
            allowed = self._allowed(right, precision.coarsest, precision.size)
            if _excess(leaf, right, allowed):
                apart.append((place, allowed))
        if not apart:
            return None
        moved = self._moved_answers(script, step, leaves_of, precision.coarsest)
        for place, allowed in apart:
            leaf, right = pairs[place]
            variants = [answer[place] for answer in moved if place < len(answer)]
            if not _is_explained(leaf, right, variants, allowed):
                return leaf, right
        return None

    def _allowed(
        self,
        right: Any,
        coarsest: str,
        floor: float,
    ) -> Any:
        """The allowed differences for a leaf: one for each row; 0 for what is exact."""
        if isinstance(right, float):
            return self._roundings[coarsest] * max(abs(right), floor, 1e-12)
        if not is_array(right):
            return 0.0
        dtype = dtype_name(right.dtype)
        rounding = self._roundings.get(dtype, 0.0)
        if not rounding or not numbers_in(right).size:
            return 0.0
        numbers = np.abs(
            np.nan_to_num(numbers_in(right).astype(np.float64), posinf=0, neginf=0)
        )
        largest = numbers.max(-1, keepdims=True) if numbers.ndim else numbers
        return rounding * np.maximum(
            largest, max(floor, _smallest_worth_telling(dtype))
        )

    def _moved_answers(
        self,
        script: Script,
        step: int,
        leaves_of: Callable[[StepAnswer], Sequence[Any]],
        coarsest: str,
    ) -> list[Sequence[Any]]:
        """The answer key's answers in another precision, and to arguments that differ in the last
        digit; without those that it refuses.
        """
        last, asked = self._last.moved, (step, leaves_of, coarsest)
        if last is None or last[0] is not script or last[1] != asked:
            moved = self._play_moved(script, *asked)
            last = self._last.moved = script, asked, moved
        return last[2]

    def _play_moved(
        self,
        script: Script,
        step: int,
        leaves_of: Callable[[StepAnswer], Sequence[Any]],
        coarsest: str,
    ) -> list[Sequence[Any]]:
        wide = script.map_arguments(_in_float64)
        digit = _LAST_DIGIT[coarsest]
        variants = []
        if coarsest != "float64":
            variants.append(wide)
        elif self._may_narrow:
            variants.append(script.map_arguments(_in_float32))
        else:
            digit = _LAST_DIGIT_OF_FLOAT64
        for number in range(self._tries):
            variants.append(
                wide.map_arguments(_Mover(number, digit, self._equals_are_free))
            )
        moved = []
        for variant in variants:
            answers = self._player.play(variant)
            if len(answers) > step and answers[step].fault is None:
                moved.append(leaves_of(answers[step]))
        return moved


def _usual_tries(equals_are_free: bool) -> int:
    return _MANY_TRIES if equals_are_free else _FEW_TRIES


class _Mover:
    """Moves floats by their last digit, each in its own direction.

    Args:
        adds: whether zeros move too, so that equal numbers differ.
    """

    def __init__(
        self,
        number: int,
        digit: float,
        adds: bool,
    ) -> None:
        self._generator = torch.Generator().manual_seed(number)
        self._digit = digit
        self._adds = adds

    def __call__(self, leaf: Any) -> Any:
        if not is_float_tensor(leaf):
            return leaf
        moves = self._digit * (2 * self._random(leaf) - 1)
        moved = leaf * (1 + moves)
        if self._adds:
            finite = leaf[leaf.isfinite()]
            largest = float(finite.abs().max()) if finite.numel() else 0.0
            moved = moved + self._digit * (largest or 1.0) * (
                2 * self._random(leaf) - 1
            )
        return moved.to(leaf.dtype)

    def _random(self, leaf: Tensor) -> Tensor:
        return torch.rand(leaf.shape, generator=self._generator, dtype=torch.float64)


def _in_float64(leaf: Any) -> Any:
    if isinstance(leaf, torch.dtype):
        return torch.float64 if leaf.is_floating_point else leaf
    return leaf.double() if is_float_tensor(leaf) else leaf


def _in_float32(leaf: Any) -> Any:
    return leaf.float() if is_float_tensor(leaf) else leaf


def _value_leaves(answer: StepAnswer) -> Sequence[Any]:
    return leaves(answer.value)


def _gradient_leaves(answer: StepAnswer) -> Sequence[Any]:
    return answer.gradients


def _precision_of(script: Script) -> _Precision:
    leaves_of_script = script.leaves()
    tensors = [leaf for leaf in leaves_of_script if is_float_tensor(leaf)]
    dtypes = [dtype_name(tensor.dtype) for tensor in tensors]
    dtypes += [
        dtype_name(leaf) for leaf in leaves_of_script if isinstance(leaf, torch.dtype)
    ]
    known_dtypes = [dtype for dtype in dtypes if dtype in _LAST_DIGIT]
    coarsest = max(
        known_dtypes, key=lambda dtype: _LAST_DIGIT[dtype], default="float64"
    )
    floats = [tensor[tensor.isfinite()] for tensor in tensors]
    sizes = [float(numbers.abs().max()) for numbers in floats if numbers.numel()]
    return _Precision(coarsest, min(1.0, max(sizes, default=0.0)))


def _smallest_worth_telling(dtype: str) -> float:
    """Below this, a number of the dtype has lost digits; in float64 one of float32."""
    limits = torch.finfo(torch.float32 if dtype == "float64" else getattr(torch, dtype))
    return float(limits.smallest_normal / limits.eps)


def _are_equal_numbers(answer: Any, right: Any) -> bool:
    """Whether two answers are numbers, or lists of numbers, that comparisons take for equal: 65.0
    for 65.
    """
    if isinstance(right, (list, tuple)) and type(answer) is type(right):
        same_length = len(answer) == len(right)
        return same_length and all(map(_are_equal_numbers, answer, right))
    is_number = type(right) in (int, float) and type(answer) in (int, float)
    return is_number and bool(answer == right)


def _are_same(leaf: Any, right: Any) -> bool:
    """Whether two leaves of one form are equal in every bit that counts: most answers are, and need
    no look at rounding.
    """
    if isinstance(leaf, Tensor) and isinstance(right, Tensor):
        return leaf.dtype == right.dtype and torch.equal(leaf, right)
    return type(leaf) is type(right) and not is_array(leaf) and bool(leaf == right)


def _excess(
    leaf: Any,
    right: Any,
    allowed: Any,
) -> bool:
    """Whether two leaves of one form differ by more than is allowed."""
    if isinstance(right, float) or is_array(right):
        mine, key = _numbers(leaf), _numbers(right)
        if mine.shape != key.shape:
            return True
        with np.errstate(invalid="ignore", over="ignore"):
            close = (mine == key) | (np.isnan(mine) & np.isnan(key))
            close = close | (np.isfinite(key) & (np.abs(mine - key) <= allowed))
        return not bool(close.all())
    return bool(leaf != right)


def _is_explained(
    leaf: Any,
    right: Any,
    variants: Sequence[Any],
    allowed: Any,
) -> bool:
    """Whether the answer key itself moves as far as the leaf is from it."""
    if not (isinstance(right, float) or is_array(right)) or not np.any(allowed):
        return any(_excess(variant, right, 0.0) for variant in variants)
    mine, key = _numbers(leaf), _numbers(right)
    moves = np.zeros_like(key, dtype=np.float64)
    for variant in variants:
        numbers = np.zeros_like(key) if variant is None else _numbers(variant)
        if numbers.shape != key.shape or not np.array_equal(
            np.isfinite(numbers), np.isfinite(key)
        ):
            return True
        with np.errstate(invalid="ignore"):
            apart = np.nan_to_num(np.abs(numbers - key), posinf=0.0)
        moves = np.maximum(moves, apart)
    if moves.ndim:  # rounding of one number of a row reaches the others
        moves = np.broadcast_to(moves.max(-1, keepdims=True, initial=0.0), moves.shape)
    return not _excess(mine, key, allowed + _MOVES * moves)


def _paired(answer: Any, right: Any) -> list[tuple[Any, Any]]:
    """The leaves of two answers of one form, in the order of the right one."""
    if isinstance(right, dict):
        return [pair for key in right for pair in _paired(answer[key], right[key])]
    if isinstance(right, (list, tuple)):
        parts = zip(answer, right, strict=True)
        return [pair for mine, key in parts for pair in _paired(mine, key)]
    return [(answer, right)]


def _or_zeros(gradient: Tensor | None, other: Tensor | None) -> Tensor | None:
    """A gradient; zeros where none arrives and there is another to compare with."""
    if gradient is None and other is not None:
        return torch.zeros_like(other)
    return gradient


def _numbers(value: Any) -> Any:
    numbers = numbers_in(value) if is_array(value) else np.asarray(value)
    return numbers.astype(np.float64) if numbers.dtype.kind in "biuf" else numbers


def _all_finite(value: Any) -> bool:
    if isinstance(value, Tensor):
        return bool(value.isfinite().all())
    return not isinstance(value, float) or math.isfinite(value)
