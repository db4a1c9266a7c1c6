"""What a class did: the numbers behind the class report. Which questions tell strong answers from
weak ones is one.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.basics.points import is_full, total
from autograder.basics.safe_text import describe_test
from autograder.marks.marks import Mark
from autograder.records.model import Graded, QuestionResult, Result
from autograder.records.results import HISTORY

BINS = 10
COMMONEST = 5
FEWEST = 10
"""Results of which a correlation says something."""


@dataclass(frozen=True, slots=True)
class Bin:
    """One bar of the histogram: scores from `low` to `high` percent (the last one with 100)."""

    low: int
    high: int
    count: int


@dataclass(frozen=True, slots=True)
class CommonMistake:
    """A known mistake that several people may have made."""

    name: str
    hint: str
    count: int


@dataclass(frozen=True, slots=True)
class QuestionStatistics:
    """One question over the class. Shares lie between 0 and 1.

    Attributes:
        failing: (claim, how many failed it) of the tests that most failed.
        discrimination: how far the question's points go along with those of all other questions,
            from -1 to 1 (item-rest correlation); None where there are fewer than `FEWEST` results,
            everybody has the same, or there is no other question.
        against: (claim, correlation) of the tests that students fail the more often, the better the
            rest of their answers is (point-biserial correlation below 0): such a test may be wrong,
                or its question unclear.
    """

    name: str
    max_score: float
    mean: float
    mean_share: float
    right_share: float
    carried: int
    kept: int
    mistakes: tuple[CommonMistake, ...]
    failing: tuple[tuple[str, int], ...]
    discrimination: float | None
    against: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Attempt:
    """Everybody's n-th submission: how many handed in so many, and their mean share of the tests'
    points.

    Attributes:
        full: how many had all points.
    """

    number: int
    students: int
    mean: float
    full: int


@dataclass(frozen=True, slots=True)
class TimingSummary:
    """Seconds by stage over all submissions, the median of a submission, and the slowest one."""

    stages: tuple[tuple[str, float], ...]
    median: float
    slowest: str
    slowest_seconds: float


def class_shares(marks: Sequence[Mark]) -> list[float]:
    """Everybody's share of the points, in 0 to 1; of the tests' alone, while a person has yet to
    give some.
    """
    graded = [mark for mark in marks if mark.result is not None]
    if all(mark.status != "waits for a person" for mark in graded):
        return [_share(mark.score or 0.0, mark.max_score) for mark in graded]
    return [_share(mark.result.score, mark.result.max_score) for mark in graded if mark.result]


def histogram(of_class: Sequence[float]) -> tuple[Bin, ...]:
    """How many shares lie in each tenth."""
    counts = Counter(min(BINS - 1, int(BINS * share + 1e-9)) for share in of_class)
    width = 100 // BINS
    return tuple(Bin(width * i, width * (i + 1), counts[i]) for i in range(BINS))


def summarize_questions(results: Sequence[Result]) -> tuple[QuestionStatistics, ...]:
    """Every question in the order in which the results have them."""
    names = dict.fromkeys(question.name for result in results for question in result.questions)
    return tuple(_question(name, results) for name in names)


def _question(name: str, results: Sequence[Result]) -> QuestionStatistics:
    pairs = [
        (question, result)
        for result in results
        for question in result.questions
        if question.name == name
    ]
    answers = [answer for answer, _ in pairs]
    named = [one for a in answers for one in (*([a.diagnosis] if a.diagnosis else []), *a.slips)]
    mistakes = Counter((one.mistake, one.hint) for one in named)
    failing = Counter(
        describe_test(test.name) for a in answers for test in a.tests if test.outcome != "passed"
    )
    among_others = [(answer, result) for answer, result in pairs if len(result.questions) > 1]
    rests = [total((result.score, -answer.score)) for answer, result in among_others]
    return QuestionStatistics(
        name=name,
        max_score=max(a.max_score for a in answers),
        mean=statistics.fmean(a.score for a in answers),
        mean_share=statistics.fmean(_share(a.score, a.max_score) for a in answers),
        right_share=statistics.fmean(is_full(a.score, a.max_score) for a in answers),
        carried=sum(a.carried > 0 for a in answers),
        kept=sum(a.kept > 0 for a in answers),
        mistakes=tuple(
            CommonMistake(*key, count) for key, count in mistakes.most_common(COMMONEST)
        ),
        failing=tuple(failing.most_common(COMMONEST)),
        discrimination=correlation([answer.score for answer, _ in among_others], rests),
        against=_against([answer for answer, _ in among_others], rests),
    )


def _against(
    answers: Sequence[QuestionResult], rests: Sequence[float]
) -> tuple[tuple[str, float], ...]:
    """The tests that go against the rest of the answers, with their correlations."""
    passed: dict[str, list[float]] = {}
    for answer in answers:
        for test in answer.tests:
            passed.setdefault(test.name, []).append(float(test.outcome == "passed"))
    correlations = ((test, correlation(outcomes, rests)) for test, outcomes in passed.items())
    return tuple(
        (describe_test(test), value)
        for test, value in correlations
        if value is not None and value < 0
    )


def correlation(left: Sequence[float], right: Sequence[float]) -> float | None:
    """Pearson's correlation; None of fewer than `FEWEST` pairs, or where one side does not vary."""
    if len(left) != len(right) or len(left) < FEWEST or len(set(left)) < 2 or len(set(right)) < 2:
        return None
    return round(statistics.correlation(left, right), 6)


def summarize_attempts(history: Mapping[str, Sequence[Result]]) -> tuple[Attempt, ...]:
    """The first submission of everybody, the second of those who handed in two, and so on.

    Args:
        history: by student, one result for each submission, in their order.
    """
    most = max((len(results) for results in history.values()), default=0)
    rows = []
    for number in range(most):
        results = [each[number] for each in history.values() if len(each) > number]
        mean = statistics.fmean(_share(result.score, result.max_score) for result in results)
        full = sum(is_full(result.score, result.max_score) for result in results)
        rows.append(Attempt(number + 1, len(results), mean, full))
    return tuple(rows)


def read_attempts(
    results: Path, assignment: str, current: Sequence[Result]
) -> dict[str, list[Result]]:
    """Every submission's last result, by student, in the order of the submissions, with those that
    were replaced.

    A submission that was graded again, by another suite, is no further attempt: it is told by its
    hash.
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


def summarize_timing(timing: Sequence[Graded]) -> TimingSummary | None:
    """None where nothing was timed."""
    totals = {entry.student: sum(entry.seconds.values()) for entry in timing if entry.seconds}
    if not totals:
        return None
    stages: Counter[str] = Counter()
    for entry in timing:
        stages.update(entry.seconds)
    slowest = max(totals, key=lambda student: totals[student])
    return TimingSummary(
        tuple(stages.items()), statistics.median(totals.values()), slowest, totals[slowest]
    )


def _share(score: float, max_score: float) -> float:
    return min(1.0, max(0.0, score / max_score)) if max_score > 0 else 1.0
