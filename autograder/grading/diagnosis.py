"""Names a wrong answer: the known mistake that answered every call of the suite as the student did.

The mistakes of `mistakes.py` are graded by the same road as a submission, and what they answered is kept
(`known_runs.py`). A mistake explains a student's failures where, on every test that the mistake fails, the student
failed with the same answers to the same calls. Of several that do, the one that explains most is named.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from autograder.errors import StudentError, StudentFault
from autograder.grading.known_runs import KnownRuns, as_data
from autograder.grading.sitting import TestRun
from autograder.model import Diagnosis
from autograder.suite.calls import Call
from autograder.suite.compare import same
from autograder.suite.register import KnownAnswer

TOLERANCE = 1e-6
"""Two ways to compute the same wrong answer differ by rounding; two mistakes by more."""


RunTests = Callable[[KnownAnswer, tuple[str, ...]], dict[str, TestRun]]
"""Runs the named tests of a known answer's question on it."""


class MistakeRecord:
    """What one known mistake answers to the tests of its question; each test is run when it is first asked for, unless
    it was on this machine before."""

    def __init__(self, answer: KnownAnswer, run: RunTests, kept: KnownRuns) -> None:
        self.answer = answer
        self._run, self._kept = run, kept
        self._runs: dict[str, TestRun] = {}

    def of(self, tests: Sequence[str]) -> list[TestRun]:
        """Its runs of these tests."""
        for test in tests:
            if test not in self._runs and (kept := self._kept.load(self.answer.name, test)) is not None:
                self._runs[test] = kept
        missing = tuple(test for test in tests if test not in self._runs)
        if missing:
            runs = self._run(self.answer, missing)
            self._kept.save(self.answer.name, list(runs.values()))
            self._runs.update(runs)
        return [self._runs[test] for test in tests]

    def explains(self, runs: dict[str, TestRun]) -> int:
        """How many of a student's failures it explains: those it shares, with the same answers.

        0 where it fails a test in another way than the student, or one that the student passes. Most mistakes are
        ruled out by the first failure, so that is asked for alone.
        """
        failed = [name for name, run in runs.items() if run.verdict.outcome != "passed"]
        passed = [name for name in runs if name not in failed]
        shared = 0
        for names in (failed[:1], failed[1:], passed):
            for known in self.of(names):
                if known.verdict.outcome == "passed":
                    continue
                if known.name in passed or not same_calls(runs[known.name].calls, known.calls):
                    return 0
                shared += 1
        return shared


class Diagnostician:
    """Knows the mistakes of a suite, and remembers what they answered."""

    def __init__(self, mistakes: Sequence[KnownAnswer], run: RunTests, kept: KnownRuns) -> None:
        self._records = [MistakeRecord(answer, run, kept) for answer in mistakes]

    def diagnose(self, question: str, runs: dict[str, TestRun]) -> Diagnosis | None:
        """The mistake that explains most of the failed tests of a question, or None."""
        if all(run.verdict.outcome == "passed" or not run.answered for run in runs.values()):
            return None
        best: MistakeRecord | None = None
        most = 0
        for record in self._records:
            if record.answer.question == question and (explained := record.explains(runs)) > most:
                best, most = record, explained
        return Diagnosis(best.answer.name, best.answer.hint) if best else None


def same_calls(left: Sequence[Call], right: Sequence[Call]) -> bool:
    return len(left) == len(right) and all(_same_call(a, b) for a, b in zip(left, right, strict=True))


def _same_call(left: Call, right: Call) -> bool:
    if left.name != right.name or bool(left.changed) != bool(right.changed):
        return False
    if left.fault is not None or right.fault is not None:
        return _same_fault(left.fault, right.fault)
    return same(as_data(left.result), as_data(right.result), TOLERANCE)


def _same_fault(left: StudentFault | None, right: StudentFault | None) -> bool:
    if isinstance(left, StudentError) and isinstance(right, StudentError):
        return left.type_name == right.type_name
    return type(left) is type(right)
