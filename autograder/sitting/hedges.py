"""Questions whose function answered one call differently in two runs: flagged for a person, with
both answers.

Code can tell a worker that has served other questions from a fresh one, and stand-ins from its own
functions (by what they did not do, by time). So it can try one answer, and where that fails
another. What counts is the fresh run alone; here the runs are compared. What one question leaves
behind for another, in all honesty, looks the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from autograder.basics.errors import StudentError
from autograder.basics.safe_text import clean
from autograder.records.model import TwoAnswers
from autograder.sitting.agreement import apart, same_answer
from autograder.suite.calls import Call, CallLog, weight
from autograder.suite.kinds import is_array, numbers_in
from autograder.wire.libraries import is_tensor
from autograder.wire.trees import leaves
from autograder.wire.values import dtype_name

SHARED = "a worker that had served other questions"
FRESH = "a fresh worker, which counts"
MOST_TEXT = 300
LARGEST_ATTEMPT = 64 << 20
"""Bytes of all answers that are kept of one question's attempt."""


class Attempt:
    """What a question answered in a worker that had served others: calls by test, without their
    arguments.

    Answers beyond 64 MB in all are let go: no comparison is made with those.
    """

    def __init__(self) -> None:
        self.answers: dict[str, list[Call]] = {}
        self._room = LARGEST_ATTEMPT

    def add(self, test: str, calls: Iterable[Call]) -> None:
        """Keep what the calls of one test gave."""
        self.answers[test] = [self._kept(call) for call in calls]

    def _kept(self, call: Call) -> Call:
        answer = Call(
            call.name, (), {}, fault=call.fault, changed=call.changed, of_suite=call.of_suite
        )
        size = weight([call.result, call.gradients])
        answer.let_go = call.let_go or size > self._room
        if not answer.let_go:
            answer.result, answer.gradients = call.result, call.gradients
            self._room -= size
        return answer


def two_answers(
    first: Mapping[str, Sequence[Call]],
    second: Mapping[str, Sequence[Call]],
    runs: tuple[str, str],
    signatures: Mapping[str, Any],
) -> tuple[TwoAnswers, ...]:
    """The first call that two runs of a question's tests answered differently, if there is one.

    Args:
        first, second: the calls of each test, with their arguments in `second`. After one that
            differs, tests may go on to ask for other things.
        runs: both runs in words.
        signatures: the answer key's names, which the call's text needs.
    """
    for test in first:
        for one, other in zip(first[test], second.get(test, ()), strict=False):
            same = same_answer(one, other) if one.name == other.name else None
            if same is None:
                break  # no two answers: what follows need not be the same
            if not same and not one.of_suite:
                shown = clean(CallLog(signatures).describe(other), MOST_TEXT)
                return (
                    TwoAnswers(test, shown, runs, (_in_words(one, other), _in_words(other, one))),
                )
            if not same:
                break
    return ()


def _in_words(call: Call, other: Call) -> str:
    """What a call gave, at the place where the other one's answer lies farthest from it."""
    if isinstance(call.fault, StudentError):
        return clean(f"{call.fault.type_name}: {call.fault.message}", MOST_TEXT)
    mine, theirs = leaves([call.result, call.gradients]), leaves([other.result, other.gradients])
    if len(mine) != len(theirs):
        parts = [_value(leaf, None) for leaf in mine[:4]] + ["…"] * (len(mine) > 4)
        return clean(f"{type(call.result).__name__} of {len(mine)}: {', '.join(parts)}", MOST_TEXT)
    differing = [i for i, pair in enumerate(zip(mine, theirs, strict=True)) if apart(*pair) > 1]
    place = differing[0] if differing else 0
    text = _value(mine[place], theirs[place]) if mine else "nothing"
    if call.changed != other.changed:
        text += f", and it changed {', '.join(call.changed) or 'no argument'}"
    return clean(text, MOST_TEXT)


def _value(value: Any, other: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if not is_array(value):
        return (
            repr(value)
            if isinstance(value, (bool, int, str)) or value is None
            else type(value).__name__
        )
    kind = f"{dtype_name(value.dtype)}{list(value.shape)}"
    numbers = numbers_in(value)
    if not numbers.size:
        return kind
    if (
        not numbers.ndim
        or not is_tensor(other)
        or other.shape != value.shape
        or numbers.dtype.kind == "c"
    ):
        shown = ", ".join(f"{number:.6g}" for number in numbers.flatten()[:6].tolist())
        return f"{kind}: {shown}{', …' if numbers.size > 6 else ''}"
    with np.errstate(invalid="ignore", over="ignore"):
        far = np.nan_to_num(
            abs(numbers.astype(float) - numbers_in(other).astype(float)), nan=np.inf
        )
    index = tuple(int(i) for i in np.unravel_index(far.argmax(), far.shape))
    return f"{kind}, at {list(index)}: {numbers[index].item():.6g}"
