"""Whether a stored result adds up: its points are the sums that grading makes, and none is more
than it can be.

A result is a text file. Whoever edits a score, by hand or with a script that slips, is told so
instead of believed.
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
    _same("score", result.score, [question.score for question in result.questions])
    _same("max_score", result.max_score, [question.max_score for question in result.questions])
    for question in result.questions:
        _check_question(question)


def misvaluation(result: Result, worth: Mapping[str, float]) -> str:
    """Which question is not worth what it is in the suite that the result names, in words; "" where
    each is.

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
        _within(f"{name}: {test.name}", test.points, test.max_points)
    _within(f"{name}: carried", question.carried, question.max_score)
    _within(f"{name}: kept", question.kept, question.max_score)
    _within(name, question.score, question.max_score)
    _same(f"{name}: max_score", question.max_score, [test.max_points for test in question.tests])
    points = [test.points for test in question.tests]
    _same(f"{name}: score", question.score, (*points, question.carried, question.kept))


def _within(what: str, points: float, most: float) -> None:
    if not (math.isfinite(most) and -_CLOSE <= points <= most + _CLOSE):
        raise ValueError(f"{what} has {points:g} points of {most:g}")


def _same(what: str, stated: float, parts: Collection[float]) -> None:
    summed = total(parts)
    if not _is_close(stated, summed):
        raise ValueError(f"{what} is {stated:g}, and its parts make {format_points(summed)}")


def _is_close(one: float, other: float) -> bool:
    return abs(one - other) <= _CLOSE
