"""Mistakes that show by the type of an answer: a number or a list where a tensor is asked for.

Such a mistake has the right numbers. A second fault makes other numbers wrong and leaves the type
as it is, so the type alone says that the mistake was made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from autograder.diagnosis.known_sitting import AnswerRecord
from autograder.diagnosis.mistake_fit import Fit, StudentAnswer
from autograder.sitting.agreement import distance, type_name
from autograder.suite.calls import Call
from autograder.wire.trees import leaves


def fit_by_type(record: AnswerRecord, answer: StudentAnswer) -> Fit | None:
    """How a mistake fits that returns the right numbers in another type, by that type alone; None
    where the student's answers are of another type than the mistake's, or its numbers are wrong.
    """
    assert record.answer is not None
    failed = record.failed(answer.failed)
    explained = set()
    for test in failed:
        mistake_calls = record.run(test).calls
        key_calls = answer.key_runs[test].calls
        student_calls = answer.failed[test].calls
        calls = list(zip(student_calls, mistake_calls, key_calls, strict=False))
        of_other_type = [three for three in calls if _returns_other_type(*three[1:])]
        if not all(_are_equal(*three[1:]) for three in of_other_type):
            return None
        if not of_other_type:
            continue
        if not all(_are_of_one_type(*three[:2]) for three in of_other_type):
            return None
        explained.add(test)
    if not explained:
        return None
    return Fit(
        (record.answer,),
        frozenset(explained),
        against=record.failed(answer.passed),
        otherwise=frozenset(),
        mismatch=(0, 0.0),
    )


def _returns_other_type(mistake: Call, key: Call) -> bool:
    """Whether both returned, and the mistake another type than the answer key."""
    if mistake.fault is not None or key.fault is not None:
        return False
    return not _are_of_one_type(mistake, key)


def _are_of_one_type(first: Call, second: Call) -> bool:
    if first.fault is not None or first.was_dropped or first.name != second.name:
        return False
    is_same: bool = _type_of(first.result) == _type_of(second.result)
    return is_same


def _type_of(value: Any) -> Any:
    """The type of an answer by name; of a container also its entries'."""
    name = type_name(value)
    if isinstance(value, Mapping):
        return name, tuple((key, _type_of(entry)) for key, entry in value.items())
    if isinstance(value, (list, tuple)):
        return name, frozenset(map(_type_of, value))
    return name


def _are_equal(first: Call, second: Call) -> bool:
    return distance(_as_arrays(first.result), _as_arrays(second.result)) <= 1


def _as_arrays(value: Any) -> Any:
    """An answer; a list of numbers as an array, since the numbers of two types are compared."""
    if not isinstance(value, (list, tuple)):
        return value
    if not all(type(entry) in (int, float) for entry in leaves(value)):
        return value
    try:
        return np.array(value)
    except ValueError:  # rows of several lengths
        return value
