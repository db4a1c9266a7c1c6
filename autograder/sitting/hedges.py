"""Finds questions whose function answered one call differently in two runs, and shows both answers
to a person.

Code can tell a worker that has served other questions from a fresh one, and stand-ins from its own
functions (by what they did not do, by time). So code can try an answer, and where that fails a
second one. The fresh run alone counts; here the runs are compared. State that an honest question
leaves behind for the next looks the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from autograder.basics.errors import StudentError
from autograder.basics.safe_text import clean
from autograder.records.model import TwoAnswers
from autograder.sitting.agreement import distance, same_answer
from autograder.suite.calls import Call, CallLog, size_in_bytes
from autograder.suite.kinds import is_array, numbers_in
from autograder.wire.libraries import dtype_name, is_tensor
from autograder.wire.trees import leaves

SHARED = "a worker that had served other questions"
FRESH = "a fresh worker, which counts"
MOST_TEXT = 300
LARGEST_ATTEMPT = 64 << 20
"""Bytes of all answers of one question's attempt that are kept."""
_MOST_LEAVES = 4
_MOST_NUMBERS = 6
"""How many parts of an answer, and how many numbers of an array, are shown."""


class QuestionAttempt:
    """The answers of a question in a worker that had served others: calls by test, without their
    arguments.

    Answers beyond 64 MB in all are dropped, and compared with nothing.
    """

    def __init__(self) -> None:
        self.answers: dict[str, list[Call]] = {}
        self._room = LARGEST_ATTEMPT

    def add(
        self,
        test: str,
        calls: Iterable[Call],
    ) -> None:
        """Keep the answers to the calls of one test."""
        self.answers[test] = [self._answer_alone(call) for call in calls]

    def _answer_alone(self, call: Call) -> Call:
        answer = Call(
            call.name,
            (),
            {},
            fault=call.fault,
            changed=call.changed,
            of_suite=call.of_suite,
        )
        size = size_in_bytes([call.result, call.gradients])
        answer.was_dropped = call.was_dropped or size > self._room
        if not answer.was_dropped:
            answer.result = call.result
            answer.gradients = call.gradients
            self._room -= size
        return answer


def find_two_answers(
    first_run: Mapping[str, Sequence[Call]],
    second_run: Mapping[str, Sequence[Call]],
    run_names: tuple[str, str],
    signatures: Mapping[str, Any],
) -> tuple[TwoAnswers, ...]:
    """The first call that two runs of a question's tests answered differently, if there is one.

    Args:
        first_run, second_run: the calls of each test, with their arguments in `second_run`. Calls
            after the first different one are not compared: a test may go on otherwise.
        run_names: both runs in words.
        signatures: the answer key's names, which the call's text needs.
    """
    for test, calls in first_run.items():
        for first, second in zip(calls, second_run.get(test, ()), strict=False):
            same = same_answer(first, second) if first.name == second.name else None
            if same:
                continue
            if same is None or first.of_suite:
                break
            text = clean(CallLog(signatures).describe(second), MOST_TEXT)
            answers = _describe_answer(first, second), _describe_answer(second, first)
            return (TwoAnswers(test, text, run_names, answers),)
    return ()


def _describe_answer(call: Call, other_call: Call) -> str:
    """The answer to a call, at the place where the other call's answer lies farthest from it."""
    if isinstance(call.fault, StudentError):
        return clean(f"{call.fault.type_name}: {call.fault.message}", MOST_TEXT)
    parts = leaves([call.result, call.gradients])
    other_parts = leaves([other_call.result, other_call.gradients])
    if len(parts) != len(other_parts):
        texts = [_describe_value(part, None) for part in parts[:_MOST_LEAVES]]
        if len(parts) > _MOST_LEAVES:
            texts.append("…")
        kind = type(call.result).__name__
        return clean(f"{kind} of {len(parts)}: {', '.join(texts)}", MOST_TEXT)
    pairs = list(zip(parts, other_parts, strict=True))
    differing = [pair for pair in pairs if distance(*pair) > 1]
    text = _describe_value(*(differing or pairs)[0]) if pairs else "nothing"
    if call.changed != other_call.changed:
        text += f", and it changed {', '.join(call.changed) or 'no argument'}"
    return clean(text, MOST_TEXT)


def _describe_value(value: Any, other_value: Any) -> str:
    """A value in words; of an array the number that differs most from the other array's."""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, (bool, int, str)) or value is None:
        return repr(value)
    if not is_array(value):
        return type(value).__name__
    kind = f"{dtype_name(value.dtype)}{list(value.shape)}"
    numbers = numbers_in(value)
    if not numbers.size:
        return kind
    is_complex = numbers.dtype.kind == "c"
    is_alike = is_tensor(other_value) and other_value.shape == value.shape
    if not numbers.ndim or not is_alike or is_complex:
        texts = [
            f"{number:.6g}" for number in numbers.flatten()[:_MOST_NUMBERS].tolist()
        ]
        if numbers.size > _MOST_NUMBERS:
            texts.append("…")
        return f"{kind}: {', '.join(texts)}"
    with np.errstate(invalid="ignore", over="ignore"):
        differences = abs(numbers.astype(float) - numbers_in(other_value).astype(float))
    farthest = np.nan_to_num(differences, nan=np.inf).argmax()
    index = tuple(int(i) for i in np.unravel_index(farthest, differences.shape))
    return f"{kind}, at {list(index)}: {numbers[index].item():.6g}"
