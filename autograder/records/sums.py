"""Check that a stored result adds up: points are the sums that grading makes, and no score is
above its maximum.

A result is a text file. Where somebody edited a score, by hand or with a script that slips, the
check says so.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from autograder.basics.points import format_points, total
from autograder.records.model import QuestionResult, Result

_CLOSE = 1e-6
"""Sums are rounded to six digits after the point."""


def check_sums(result: Result) -> None:
    """Raises: ValueError, in words, where a result does not add up."""
    _check_sum(
        "score",
        result.score,
        [question.score for question in result.questions],
    )
    _check_sum(
        "max_score",
        result.max_score,
        [question.max_score for question in result.questions],
    )
    for question in result.questions:
        _check_question(question)


def describe_misvaluation(result: Result, worth: Mapping[str, float]) -> str:
    """A question whose points differ from the suite that the result names, in words; "" for none.

    Args:
        worth: points by question, of that suite.
    """
    if {question.name for question in result.questions} != worth.keys():
        return "its questions are not those of the suite that it names"
    for question in result.questions:
        if not _is_close(question.max_score, worth[question.name]):
            return (
                f"{question.name} is worth {format_points(worth[question.name])}, not "
                f"{format_points(question.max_score)}"
            )
    return ""


def _check_question(question: QuestionResult) -> None:
    name = question.name
    for test in question.tests:
        _check_range(
            f"{name}: {test.name}",
            test.points,
            test.max_points,
        )
    _check_range(
        f"{name}: carried",
        question.carried,
        question.max_score,
    )
    _check_range(
        f"{name}: kept",
        question.kept,
        question.max_score,
    )
    _check_range(
        f"{name}: capped",
        question.capped,
        question.max_score,
    )
    _check_range(
        name,
        question.score,
        question.max_score,
    )
    _check_sum(
        f"{name}: max_score",
        question.max_score,
        [test.max_points for test in question.tests],
    )
    points = [test.points for test in question.tests]
    _check_sum(
        f"{name}: score",
        question.score,
        (*points, question.carried, question.kept, -question.capped),
    )


def _check_range(
    name: str,
    points: float,
    most: float,
) -> None:
    if not (math.isfinite(most) and -_CLOSE <= points <= most + _CLOSE):
        raise ValueError(f"{name} has {points:g} points of {most:g}")


def _check_sum(
    name: str,
    stated: float,
    parts: Collection[float],
) -> None:
    summed = total(parts)
    if not _is_close(stated, summed):
        raise ValueError(
            f"{name} is {stated:g}, and its parts make {format_points(summed)}"
        )


def _is_close(first: float, second: float) -> bool:
    return abs(first - second) <= _CLOSE
