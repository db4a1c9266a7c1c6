"""What the class says about the questions: which tell strong answers from weak ones; what further attempts bring."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.model import QuestionResult, Result
from autograder.points import is_full, total
from autograder.results import HISTORY
from autograder.text import claim

FEWEST = 10
"""Results of which a correlation says something."""


@dataclass(frozen=True, slots=True)
class Discrimination:
    """How far a question, and its tests, go along with the rest of the assignment, from -1 to 1.

    Attributes:
        question: correlation of the question's points with those of all other questions (item-rest correlation); None
            where there are fewer than `FEWEST` results, everybody has the same, or there is no other question.
        against: (claim, correlation) of the tests that students fail the more often, the better the rest of their
            answers is (point-biserial correlation below 0): such a test may be wrong, or its question unclear.
    """

    question: float | None
    against: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Attempt:
    """Everybody's n-th submission: how many handed in so many, and their mean share of the tests' points.

    Attributes:
        full: how many had all points.
    """

    number: int
    students: int
    mean: float
    full: int


def discriminations(results: Sequence[Result]) -> dict[str, Discrimination]:
    """That of every question, by name, over the results that have it."""
    names = dict.fromkeys(question.name for result in results for question in result.questions)
    return {name: _discrimination(name, results) for name in names}


def _discrimination(name: str, results: Sequence[Result]) -> Discrimination:
    answers: list[QuestionResult] = []
    rests: list[float] = []
    for result in results:
        answer = next((question for question in result.questions if question.name == name), None)
        if answer is not None and len(result.questions) > 1:
            answers.append(answer)
            rests.append(total((result.score, -answer.score)))
    tests: dict[str, list[float]] = {}
    for answer in answers:
        for test in answer.tests:
            tests.setdefault(test.name, []).append(1.0 if test.outcome == "passed" else 0.0)
    correlations = ((test, correlation(passed, rests)) for test, passed in tests.items())
    against = [(claim(test), value) for test, value in correlations if value is not None and value < 0]
    return Discrimination(correlation([answer.score for answer in answers], rests), tuple(against))


def correlation(left: Sequence[float], right: Sequence[float]) -> float | None:
    """Pearson's correlation; None of fewer than `FEWEST` pairs, or where one side does not vary."""
    if len(left) != len(right) or len(left) < FEWEST or len(set(left)) < 2 or len(set(right)) < 2:
        return None
    return round(statistics.correlation(left, right), 6)


def attempts(history: Mapping[str, Sequence[Result]]) -> tuple[Attempt, ...]:
    """The first submission of everybody, the second of those who handed in two, and so on.

    Args:
        history: by student, one result for each submission, in their order.
    """
    most = max((len(results) for results in history.values()), default=0)
    rows = []
    for number in range(most):
        results = [each[number] for each in history.values() if len(each) > number]
        shares = [result.score / result.max_score if result.max_score else 1.0 for result in results]
        full = sum(is_full(result.score, result.max_score) for result in results)
        rows.append(Attempt(number + 1, len(results), statistics.fmean(shares), full))
    return tuple(rows)


def submissions_graded(results: Path, assignment: str, current: Sequence[Result]) -> dict[str, list[Result]]:
    """Every submission's last result, by student, in the order of the submissions, with those that were replaced.

    A submission that was graded again, by another suite, is no further attempt: it is told by its hash.
    """
    by_student: dict[str, dict[str, Result]] = {result.student: {} for result in current}
    for result in [*_replaced(results / HISTORY / assignment), *current]:
        if result.assignment == assignment and result.student in by_student:
            graded = by_student[result.student]
            graded.pop(result.submission_sha256, None)
            graded[result.submission_sha256] = result
    return {student: list(graded.values()) for student, graded in by_student.items()}


def _replaced(history: Path) -> list[Result]:
    """The results that others have replaced, oldest first; broken files are left out."""
    replaced = []
    for folder in sorted(history.glob("*/"), key=lambda path: _day_and_number(path.name)):
        for path in sorted(folder.glob("*.json")):
            try:
                replaced.append(Result.from_json(path.read_text(encoding="utf-8")))
            except (OSError, ValueError, RecursionError):
                continue
    return replaced


def _day_and_number(name: str) -> tuple[str, int]:
    """Folders of one day are called 2026-11-29, 2026-11-29.2, …, 2026-11-29.10."""
    day, _, number = name.partition(".")
    return day, int(number) if number.isdecimal() else 1
