"""Mistakes that a second fault half hides: the student's answer is the mistake's in most of the
numbers in which the mistake departs from the answer key.

Parts of an answer in parts count by themselves: of a table with two wrong entries, each may be the
doing of another mistake.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from autograder.diagnosis.known_sitting import AnswerRecord
from autograder.diagnosis.mistake_fit import (
    Fit,
    StudentAnswer,
    has_telling_values,
)
from autograder.diagnosis.telling_numbers import are_close, find_telling
from autograder.sitting.agreement import distance
from autograder.suite.calls import Call
from autograder.suite.kinds import has_nan, is_array, numbers_in

_MOST_OF_THEM = 0.6
"""The share of the departing numbers in which a student's answer must be the mistake's."""
_FEWEST_RIGHT = 0.05
"""The share of the departing numbers that are right in a student's answer, from which on the
mistake was not made: a second fault makes wrong numbers, and not right ones.
"""
_FEWEST_NUMBERS = 3
"""Floats of one array that must agree: a single number can do so by chance."""


def fit_in_part(record: AnswerRecord, answer: StudentAnswer) -> Fit | None:
    """How a mistake fits most of the student's wrong numbers; None where it does not."""
    assert record.answer is not None
    explained = set()
    least_share = 1.0
    failed = record.failed(answer.failed)
    for test in failed:
        shares = _shares_in_test(record, test, answer)
        if shares and min(shares) >= _MOST_OF_THEM:
            explained.add(test)
            least_share = min(least_share, *shares)
    if not explained or 2 * len(explained) < len(failed):
        return None
    return Fit(
        (record.answer,),
        frozenset(explained),
        against=record.failed(answer.passed),
        otherwise=failed - explained,
        mismatch=(0, 1.0 - least_share),
        is_telling=has_telling_values(record, explained, answer),
    )


def _shares_in_test(
    record: AnswerRecord,
    test: str,
    answer: StudentAnswer,
) -> list[float]:
    """For each call in which the mistake departs from the answer key by value: the share of the
    departing numbers in which the student's answer is the mistake's.
    """
    mistake_run, key_run = record.run(test), answer.key_runs[test]
    calls = zip(
        answer.failed[test].calls, mistake_run.calls, key_run.calls, strict=False
    )
    shares = []
    for student_call, mistake_call, key_call in calls:
        if student_call.name != mistake_call.name or mistake_call.name != key_call.name:
            break
        if mistake_call.fault is not None or key_call.fault is not None:
            continue
        share = _share(student_call, mistake_call, key_call)
        if share is not None:
            shares.append(share)
    return shares


def _share(
    student: Call,
    mistake: Call,
    key: Call,
) -> float | None:
    """None where the mistake does not depart, or departs in too few numbers to tell."""
    if student.of_suite or student.was_dropped:
        return None
    if student.fault is not None:
        return 0.0
    agreeing, departing = 0, 0
    mistake_parts, key_parts = _parts(mistake.result), _parts(key.result)
    student_parts = _parts(student.result)
    for name, mistake_part in mistake_parts.items():
        if name not in key_parts or distance(mistake_part, key_parts[name]) <= 1:
            continue
        departures = _departing_numbers(mistake_part, key_parts[name])
        if departures is None:
            if has_nan(mistake_part):  # which many faults make
                continue
            departing += 1
            agreeing += distance(student_parts.get(name), mistake_part) <= 1
            continue
        if departures.sum() < _FEWEST_NUMBERS:
            continue
        student_part, key_part = student_parts.get(name), key_parts[name]
        departing += int(departures.sum())
        agreeing += _agreeing_numbers(student_part, mistake_part, departures)
        if (
            _agreeing_numbers(student_part, key_part, departures)
            > _FEWEST_RIGHT * departures.sum()
        ):
            return 0.0
    return agreeing / departing if departing else None


def _parts(answer: Any, place: str = "") -> dict[str, Any]:
    """The parts of a nested answer by their places; an answer in one part has the place ""."""
    if isinstance(answer, Mapping):
        entries = [(str(key), value) for key, value in answer.items()]
    elif isinstance(answer, (list, tuple)):
        entries = [(str(number), value) for number, value in enumerate(answer)]
    else:
        return {place: answer}
    parts: dict[str, Any] = {}
    for name, value in entries:
        parts |= _parts(value, f"{place}/{name}")
    return parts


def _departing_numbers(mistake: Any, key: Any) -> np.ndarray[Any, Any] | None:
    """In which numbers of an array of floats a mistake departs from the answer key; None where the
    whole counts: numbers of other kinds, single ones, arrays of another shape.
    """
    if not is_array(mistake) or not is_array(key) or mistake.shape != key.shape:
        return None
    wrong, right = numbers_in(mistake), numbers_in(key)
    if (
        wrong.dtype.kind != "f"
        or right.dtype.kind != "f"
        or wrong.size < _FEWEST_NUMBERS
    ):
        return None
    return find_telling(wrong, right)


def _agreeing_numbers(
    student: Any,
    other: Any,
    departures: np.ndarray[Any, Any],
) -> int:
    if not is_array(student) or student.shape != other.shape:
        return 0
    agrees = are_close(numbers_in(student), numbers_in(other))
    return int((agrees & departures).sum())
