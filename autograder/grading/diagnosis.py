"""Names a wrong answer: the known mistake that answered every call of the suite as the student did.

Each mistake of `mistakes.py` is graded once, by the same road as a submission, and what it answered is kept. A
mistake explains a student's failures where, on every test that the mistake fails, the student failed with the same
answers to the same calls. Of several that do, the one that explains most is named.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from autograder.errors import StudentError, StudentFault
from autograder.grading.sitting import TestRun
from autograder.model import Diagnosis
from autograder.suite.calls import Call
from autograder.suite.compare import same
from autograder.suite.register import KnownAnswer

TOLERANCE = 1e-6
"""Two ways to compute the same wrong answer differ by rounding; two mistakes by more."""


@dataclass(frozen=True, slots=True)
class MistakeRecord:
    """What one known mistake answered: its runs of every test of its question."""

    answer: KnownAnswer
    runs: dict[str, TestRun]

    @property
    def failed(self) -> list[TestRun]:
        return [run for run in self.runs.values() if run.verdict.outcome != "passed"]


class Diagnostician:
    """Knows the mistakes of a suite; grades each the first time that its question is failed."""

    def __init__(self, mistakes: Sequence[KnownAnswer], grade: Callable[[KnownAnswer], dict[str, TestRun]]) -> None:
        self._mistakes = mistakes
        self._grade = grade
        self._records: dict[str, list[MistakeRecord]] = {}

    def diagnose(self, question: str, runs: dict[str, TestRun]) -> Diagnosis | None:
        """The mistake that explains the failed tests of a question, or None."""
        if all(run.verdict.outcome == "passed" or not run.answered for run in runs.values()):
            return None
        best: MistakeRecord | None = None
        for record in self._known(question):
            if record.failed and explains(record, runs) and (best is None or len(record.failed) > len(best.failed)):
                best = record
        return Diagnosis(best.answer.name, best.answer.hint) if best else None

    def _known(self, question: str) -> list[MistakeRecord]:
        if question not in self._records:
            mine = [answer for answer in self._mistakes if answer.question == question]
            self._records[question] = [MistakeRecord(answer, self._grade(answer)) for answer in mine]
        return self._records[question]


def explains(record: MistakeRecord, runs: dict[str, TestRun]) -> bool:
    """Whether the student failed wherever the mistake fails, with the same answers."""
    for known in record.failed:
        run = runs.get(known.name)
        if run is None or run.verdict.outcome == "passed" or not same_calls(run.calls, known.calls):
            return False
    return True


def same_calls(left: Sequence[Call], right: Sequence[Call]) -> bool:
    return len(left) == len(right) and all(_same_call(a, b) for a, b in zip(left, right, strict=True))


def _same_call(left: Call, right: Call) -> bool:
    if left.name != right.name or bool(left.changed) != bool(right.changed):
        return False
    if left.fault is not None or right.fault is not None:
        return _same_fault(left.fault, right.fault)
    return same(left.result, right.result, TOLERANCE)


def _same_fault(left: StudentFault | None, right: StudentFault | None) -> bool:
    if isinstance(left, StudentError) and isinstance(right, StudentError):
        return left.type_name == right.type_name
    return type(left) is type(right)
