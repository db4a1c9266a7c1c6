"""What a class did: the numbers behind the class report and the terminal's table."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from autograder.model import Graded, Result
from autograder.outputs.marks import Mark
from autograder.points import is_full
from autograder.text import claim

BINS = 10
COMMONEST = 5


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
    """One question over the class. Shares lie between 0 and 1; `failing` is (claim, how many failed it)."""

    name: str
    max_score: float
    mean: float
    mean_share: float
    right_share: float
    carried: int
    kept: int
    mistakes: tuple[CommonMistake, ...]
    failing: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class TimingSummary:
    """Seconds by stage over all submissions, the median of a submission, and the slowest one."""

    stages: tuple[tuple[str, float], ...]
    median: float
    slowest: str
    slowest_seconds: float


def shares(marks: Sequence[Mark]) -> list[float]:
    """Everybody's share of the points, in 0 to 1; of the tests' alone, while a person has yet to give some."""
    graded = [mark for mark in marks if mark.result is not None]
    if all(mark.status != "waits for a person" for mark in graded):
        return [_share(mark.score or 0.0, mark.max_score) for mark in graded]
    return [_share(mark.result.score, mark.result.max_score) for mark in graded if mark.result]


def histogram(of_class: Sequence[float]) -> tuple[Bin, ...]:
    """How many shares lie in each tenth."""
    counts = Counter(min(BINS - 1, int(BINS * share + 1e-9)) for share in of_class)
    width = 100 // BINS
    return tuple(Bin(width * i, width * (i + 1), counts[i]) for i in range(BINS))


def question_statistics(results: Sequence[Result]) -> tuple[QuestionStatistics, ...]:
    """Every question in the order in which the results have them."""
    names = dict.fromkeys(question.name for result in results for question in result.questions)
    return tuple(_question(name, results) for name in names)


def _question(name: str, results: Sequence[Result]) -> QuestionStatistics:
    answers = [question for result in results for question in result.questions if question.name == name]
    named = [one for a in answers for one in (*([a.diagnosis] if a.diagnosis else []), *a.slips)]
    mistakes = Counter((one.mistake, one.hint) for one in named)
    failing = Counter(claim(test.name) for a in answers for test in a.tests if test.outcome != "passed")
    return QuestionStatistics(
        name=name,
        max_score=max(a.max_score for a in answers),
        mean=statistics.fmean(a.score for a in answers),
        mean_share=statistics.fmean(_share(a.score, a.max_score) for a in answers),
        right_share=statistics.fmean(is_full(a.score, a.max_score) for a in answers),
        carried=sum(a.carried > 0 for a in answers),
        kept=sum(a.kept > 0 for a in answers),
        mistakes=tuple(CommonMistake(*key, count) for key, count in mistakes.most_common(COMMONEST)),
        failing=tuple(failing.most_common(COMMONEST)),
    )


def timing_summary(timing: Sequence[Graded]) -> TimingSummary | None:
    """None where nothing was timed."""
    totals = {entry.student: sum(entry.seconds.values()) for entry in timing if entry.seconds}
    if not totals:
        return None
    stages: Counter[str] = Counter()
    for entry in timing:
        stages.update(entry.seconds)
    slowest = max(totals, key=lambda student: totals[student])
    return TimingSummary(tuple(stages.items()), statistics.median(totals.values()), slowest, totals[slowest])


def _share(score: float, max_score: float) -> float:
    return min(1.0, max(0.0, score / max_score)) if max_score > 0 else 1.0
