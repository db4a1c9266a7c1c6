"""Statistics of a class for its report: means, common mistakes, correlations, attempts, times."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.basics.points import is_full, total
from autograder.basics.safe_text import describe_test
from autograder.marks.marks import Mark
from autograder.outputs.terminal import question_names
from autograder.records.model import Graded, QuestionResult, Result
from autograder.records.results import HISTORY

BINS = 10
"""Bars of the histogram, each a tenth of the points."""
COMMONEST = 5
"""Mistakes and failing tests that the report shows for a question."""
FEWEST = 10
"""Results: of fewer a correlation says nothing."""


@dataclass(frozen=True, slots=True)
class QuestionStatistics:
    """One question over the class. Shares lie between 0 and 1.

    Attributes:
        carried, kept: students with such points.
        mistakes: ((name, hint), students) of the commonest known mistakes.
        failing: (claim, students) of the tests that most students fail.
        discrimination: the correlation of the question's points with the points of all other
            questions, from -1 to 1 (item-rest correlation); None with fewer than `FEWEST` results,
            with equal points for everybody, or without another question.
        against: (claim, correlation) of the tests that good students fail more often than weak
            ones (point-biserial correlation below 0): such a test may be wrong, or its question
            unclear.
    """

    name: str
    max_score: float
    mean: float
    mean_share: float
    right_share: float
    carried: int
    kept: int
    mistakes: tuple[tuple[tuple[str, str], int], ...]
    failing: tuple[tuple[str, int], ...]
    discrimination: float | None
    against: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class AttemptSummary:
    """The n-th submissions of a class.

    Attributes:
        students: students with so many submissions.
        mean: their mean share of the tests' points.
        full: students who had all points.
    """

    students: int
    mean: float
    full: int


@dataclass(frozen=True, slots=True)
class TimingSummary:
    """Seconds by stage over all submissions, the median submission, and the slowest submission."""

    stages: tuple[tuple[str, float], ...]
    median: float
    slowest: str
    slowest_seconds: float


def class_shares(marks: Sequence[Mark]) -> list[float]:
    """Everybody's share of the points, from 0 to 1.

    While somebody waits for a person's points, the shares are of the tests' points alone.
    """
    of_tests = []
    of_marks = []
    waiting = False
    for mark in marks:
        if mark.result is None:
            continue
        of_tests.append(share(mark.result.score, mark.result.max_score))
        of_marks.append(share(mark.score or 0.0, mark.max_score))
        waiting |= mark.status == "waits for a person"
    return of_tests if waiting else of_marks


def share(score: float, max_score: float) -> float:
    """A score's share of the points, from 0 to 1: extra credit gives no more."""
    if max_score <= 0:
        return 1.0
    return min(1.0, max(0.0, score / max_score))


def _mean_share(scored: Sequence[QuestionResult] | Sequence[Result]) -> float:
    return statistics.fmean(share(each.score, each.max_score) for each in scored)


def _full_count(scored: Sequence[QuestionResult] | Sequence[Result]) -> int:
    return sum(is_full(each.score, each.max_score) for each in scored)


def histogram(shares: Sequence[float]) -> list[int]:
    """Count the shares in each tenth; the last one holds full marks too."""
    counts = [0] * BINS
    for each in shares:
        number = int(BINS * each + 1e-9)  # a rounding error must not cost a bar
        counts[min(number, BINS - 1)] += 1
    return counts


def summarize_questions(results: Sequence[Result]) -> list[QuestionStatistics]:
    """Every question, in the order of the results."""
    return [_summarize_question(name, results) for name in question_names(results)]


def _summarize_question(name: str, results: Sequence[Result]) -> QuestionStatistics:
    answers = []
    compared_answers = []
    other_points = []
    for result in results:
        for answer in result.questions:
            if answer.name != name:
                continue
            answers.append(answer)
            if len(result.questions) > 1:
                compared_answers.append(answer)
                other_points.append(total((result.score, -answer.score)))
    scores = [answer.score for answer in answers]
    compared_scores = [answer.score for answer in compared_answers]
    return QuestionStatistics(
        name=name,
        max_score=max(answer.max_score for answer in answers),
        mean=statistics.fmean(scores),
        mean_share=_mean_share(answers),
        right_share=_full_count(answers) / len(answers),
        carried=sum(answer.carried > 0 for answer in answers),
        kept=sum(answer.kept > 0 for answer in answers),
        mistakes=_commonest_mistakes(answers),
        failing=_commonest_failures(answers),
        discrimination=correlation(compared_scores, other_points),
        against=_find_contrary_tests(compared_answers, other_points),
    )


def _commonest_mistakes(
    answers: Sequence[QuestionResult],
) -> tuple[tuple[tuple[str, str], int], ...]:
    """((name, hint), students) of the mistakes that most students made."""
    mistakes: Counter[tuple[str, str]] = Counter()
    for answer in answers:
        for diagnosis in (answer.diagnosis, *answer.slips):
            if diagnosis:
                mistakes[diagnosis.mistake, diagnosis.hint] += 1
    return tuple(mistakes.most_common(COMMONEST))


def _commonest_failures(
    answers: Sequence[QuestionResult],
) -> tuple[tuple[str, int], ...]:
    """(claim, students) of the tests that most students fail."""
    failing: Counter[str] = Counter()
    for answer in answers:
        for test in answer.tests:
            if test.outcome != "passed":
                failing[describe_test(test.name)] += 1
    return tuple(failing.most_common(COMMONEST))


def _find_contrary_tests(
    answers: Sequence[QuestionResult], other_points: Sequence[float]
) -> tuple[tuple[str, float], ...]:
    """The tests whose correlation with the points of other questions is below 0."""
    passed: dict[str, list[float]] = {}
    for answer in answers:
        for test in answer.tests:
            is_passed = float(test.outcome == "passed")
            passed.setdefault(test.name, []).append(is_passed)
    contrary = []
    for name, values in passed.items():
        value = correlation(values, other_points)
        if value is not None and value < 0:
            contrary.append((describe_test(name), value))
    return tuple(contrary)


def correlation(left: Sequence[float], right: Sequence[float]) -> float | None:
    """Pearson's correlation; None of fewer than `FEWEST` pairs, or where one side does not vary."""
    if len(left) != len(right) or len(left) < FEWEST:
        return None
    if len(set(left)) == 1 or len(set(right)) == 1:
        return None
    return round(statistics.correlation(left, right), 6)


def summarize_attempts(history: Mapping[str, Sequence[Result]]) -> list[AttemptSummary]:
    """The first submissions of the class, the second submissions, and so on.

    Args:
        history: by student, a result for each submission, in their order.
    """
    attempts: list[list[Result]] = []
    for results in history.values():
        for number, result in enumerate(results):
            if number == len(attempts):
                attempts.append([])
            attempts[number].append(result)
    summaries = []
    for results in attempts:
        mean = _mean_share(results)
        full = _full_count(results)
        summaries.append(AttemptSummary(len(results), mean, full))
    return summaries


def read_attempts(
    results: Path, assignment: str, current: Sequence[Result]
) -> dict[str, list[Result]]:
    """The last result of every submission, replaced submissions too: by student, in order.

    A submission that was graded again by another suite is no further attempt: the hash of the
    notebook tells.
    """
    by_student: dict[str, dict[str, Result]] = {
        result.student: {} for result in current
    }
    replaced = _read_replaced(results / HISTORY / assignment)
    for result in [*replaced, *current]:
        graded = by_student.get(result.student)
        if graded is None or result.assignment != assignment:
            continue
        graded.pop(
            result.submission_sha256, None
        )  # the later result stands at the later place
        graded[result.submission_sha256] = result
    return {student: list(graded.values()) for student, graded in by_student.items()}


def _read_replaced(history: Path) -> list[Result]:
    """The results in the history, oldest first; broken files are left out."""
    replaced = []
    for folder in sorted(
        history.glob("*/"), key=lambda path: _day_and_number(path.name)
    ):
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


def summarize_timing(timing: Sequence[Graded]) -> TimingSummary | None:
    """Sum up the seconds of all submissions; None where nothing was timed."""
    seconds: dict[str, float] = {}
    stages: Counter[str] = Counter()
    for entry in timing:
        if entry.seconds:
            seconds[entry.student] = sum(entry.seconds.values())
            stages.update(entry.seconds)
    if not seconds:
        return None
    slowest = max(seconds, key=lambda student: seconds[student])
    return TimingSummary(
        stages=tuple(stages.items()),
        median=statistics.median(seconds.values()),
        slowest=slowest,
        slowest_seconds=seconds[slowest],
    )
