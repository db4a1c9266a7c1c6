"""One submission in front of the suite: its questions and their tests."""

from __future__ import annotations

import dataclasses
import functools
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autograder.basics.errors import (
    HostFailed,
    StudentMissing,
    StudentTimeout,
    SuiteFault,
)
from autograder.course import Limits
from autograder.intake.cell_matching import find_answer_cell
from autograder.records.model import TwoAnswers
from autograder.records.submission import Submission
from autograder.sandbox.bounds import memory_bound, time_bound
from autograder.sandbox.host_process import HostClient
from autograder.sandbox.stopwatch import Stopwatch
from autograder.sandbox.student import Student
from autograder.sandbox.workplace import Workplace
from autograder.sitting.hedges import FRESH, SHARED, QuestionAttempt, find_two_answers
from autograder.sitting.loaded_suite import LoadedSuite
from autograder.sitting.unwritten import find_stub
from autograder.sitting.verdict import Verdict, judge
from autograder.suite.calls import Call, CallLog, current_log, size_in_bytes
from autograder.suite.collection import SuiteQuestion, SuiteTest
from autograder.suite.prerequisites import prerequisites

HANGS_BEFORE_GIVING_UP = 2
ATTEMPT_SECONDS = 0.5
"""The limit of a call in a worker that has served other questions. What takes longer runs in a
fresh worker, which counts and has the whole limit. The longest call of a key takes 0.04 s.
"""
_WORD = re.compile(r"\w+")
LARGEST_KEPT = 4 << 20
"""Bytes of one answer that is kept until the submission is graded."""


@dataclass(frozen=True, slots=True)
class TestRun:
    """One test on one submission: the verdict, the calls that the test made, and how far values
    were apart.

    Attributes:
        calls: kept of failed tests; of passed tests only where they will be compared.
        tolerance: the least that a comparison allowed, where that was less than the default.
        refusing, answering: names of functions and methods that raised what the test asked for, and
            that answered.
        suite_fault: the fault to report where the test cannot work with the answer key's answers
            either; None unless the verdict's cause is "unfit".
        unanswered: whether the question itself is missing or not written, so that the test has seen
            no answer.
        stand_ins: prerequisites that were stood in for.
    """

    __test__ = False  # pytest would take the class for tests

    name: str
    verdict: Verdict
    calls: tuple[Call, ...]
    distances: tuple[float, ...] = ()
    tolerance: float | None = None
    refusing: frozenset[str] = frozenset()
    answering: frozenset[str] = frozenset()
    suite_fault: SuiteFault | None = None
    unanswered: bool = False
    stand_ins: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the test passed."""
        return self.verdict.outcome == "passed"

    @property
    def answered(self) -> bool:
        """Whether there is an answer at all, right or wrong: the function is there, and written."""
        return bool(self.calls) and not self.unanswered


class Sitting:
    """Runs questions of a suite on one submission.

    Args:
        client: gives workers.
        suite: the collected suite; its fixtures are set for every test.
        submission: the notebook that was handed in.
        watch: counts the wall time; several sittings may share a watch.
        stand_in_functions: the functions that answer for stand-ins, by name; the answer key's
            where this is None.

    Attributes:
        workplace: the submission's worker and its time.
        two_answers: by question the calls that were answered differently in a worker that had
            served other questions and in a fresh one.
    """

    def __init__(
        self,
        client: HostClient,
        limits: Limits,
        suite: LoadedSuite,
        submission: Submission,
        watch: Stopwatch | None = None,
        stand_in_functions: Mapping[str, Any] | None = None,
    ) -> None:
        self._client = client
        self._limits = limits
        self._suite = suite
        self.watch = watch or Stopwatch()
        if stand_in_functions is None:
            stand_in_functions = suite.fixtures.reference
        self.workplace = Workplace(
            client, limits, submission, stand_in_functions, self.watch
        )
        self.two_answers: dict[str, tuple[TwoAnswers, ...]] = {}
        self._given_up: set[str] = set()

    @functools.cached_property
    def uses(self) -> dict[str, tuple[str, ...]]:
        """The questions that each question of the suite builds on."""
        return find_uses(self.workplace.submission, self._suite.questions)

    def start_another(
        self,
        client: HostClient,
        stand_in_functions: Mapping[str, Any] | None = None,
    ) -> Sitting:
        """A second sitting of the same submission, with workers and limits of its own."""
        submission = self.workplace.submission
        return Sitting(
            client,
            self._limits,
            self._suite,
            submission,
            self.watch,
            stand_in_functions,
        )

    def functions(self) -> Student:
        """The submission's functions, for calls that belong to no test."""
        return self._open_student({})

    def open_functions(
        self,
        question: SuiteQuestion,
        stand_ins: tuple[str, ...] = (),
    ) -> Student:
        """The submission's functions as a question's tests call them, in a fresh worker."""
        self.close()
        return self._prepare_student(question, stand_ins)

    def run_all(
        self, questions: Sequence[SuiteQuestion]
    ) -> dict[str, dict[str, TestRun]]:
        """Run every question, one after the other in one worker as long as their tests pass.

        A question that does not pass in a worker that has served another runs once more in a fresh
        one, and that run counts: a question that spoils its process costs no other question points.
        """
        runs: dict[str, dict[str, TestRun]] = {}
        for question in questions:
            attempt = QuestionAttempt()
            passed = self._run_in_open_worker(question, attempt)
            runs[question.name] = passed or self._run_in_fresh_worker(question, attempt)
            if _hangs_always(runs[question.name]):
                self._given_up.add(question.name)
        self.close()
        return runs

    def _run_in_open_worker(
        self,
        question: SuiteQuestion,
        attempt: QuestionAttempt,
    ) -> dict[str, TestRun]:
        """The runs of a question in the worker that is open, where all tests pass there.

        Nothing where no worker is open, or a test does not pass: then `attempt` has the answers,
        and the time is not charged to the submission.
        """
        spent = self.workplace.spent
        if self.workplace.may_attempt and self._continue_worker(question):
            seconds = min(ATTEMPT_SECONDS, self._limits.call_seconds)
            student = self._prepare_student(question, (), seconds)
            runs: dict[str, TestRun] = {}
            for run in self._run_tests(
                question, question.tests, student, keep_calls=True
            ):
                attempt.add(run.name, run.calls)
                if not run.passed:
                    break
                runs[run.name] = dataclasses.replace(run, calls=())
            else:
                return runs
        self.close()
        self.workplace.refund_since(spent)
        return {}

    def _run_in_fresh_worker(
        self,
        question: SuiteQuestion,
        attempt: QuestionAttempt,
    ) -> dict[str, TestRun]:
        """The runs of a question in a fresh worker, which count; compared with the answers of the
        attempt before, if there was one.
        """
        runs = self.run(question, keep_worker=True, keep_calls=bool(attempt.answers))
        if attempt.answers:
            calls = {name: run.calls for name, run in runs.items()}
            self.two_answers[question.name] = find_two_answers(
                attempt.answers, calls, (SHARED, FRESH), self._suite.fixtures.reference
            )
        for name, run in runs.items():
            if run.passed:
                runs[name] = dataclasses.replace(run, calls=())
        return runs

    def _continue_worker(self, question: SuiteQuestion) -> bool:
        """Whether the open worker goes on with this question.

        A function outside torch is forbidden before the cells run, or they may have it under
        another name; so such a question needs a fresh worker.
        """
        if any(not name.startswith("torch.") for name in question.forbidden):
            return False
        return self.workplace.switch_question(question.forbidden)

    def run(
        self,
        question: SuiteQuestion,
        tests: tuple[str, ...] | None = None,
        stand_ins: tuple[str, ...] = (),
        *,
        keep_worker: bool = False,
        keep_calls: bool = False,
    ) -> dict[str, TestRun]:
        """Run a question's tests (all, or those named) with some of its prerequisites stood in for.

        The calls of tests that fail are kept, and with `keep_calls` those of all.
        """
        selected = [
            test for test in question.tests if tests is None or test.name in tests
        ]
        student = self._prepare_student(question, stand_ins)
        hung = "" if stand_ins else self._given_up_prerequisite(question.name)
        runs = {}
        for run in self._run_tests(
            question, selected, student, keep_calls=keep_calls, hung=hung
        ):
            runs[run.name] = (
                dataclasses.replace(run, stand_ins=stand_ins) if stand_ins else run
            )
        if not keep_worker:
            self.close()
        return runs

    def _run_tests(
        self,
        question: SuiteQuestion,
        tests: Sequence[SuiteTest],
        student: Student,
        *,
        keep_calls: bool,
        hung: str = "",
    ) -> Iterator[TestRun]:
        """Run tests of one question in turn; none any more after the second that hangs, or after
        the first where a prerequisite was given up.

        Args:
            hung: a prerequisite that hung in its own tests and passed none.
        """
        hangs = 0
        message = "Not run: two tests of this question hung."
        if hung:
            message = f"Not run: a test of this question hung, and so did `{hung}`."
        for test in tests:
            if hangs >= (1 if hung else HANGS_BEFORE_GIVING_UP):
                yield TestRun(test.name, Verdict("timeout", message), ())
                continue
            raised, log = self._run_test(question, test, student)
            yield self._judge_run(question.name, test, raised, log, keep_calls)
            hangs += isinstance(raised, StudentTimeout)

    def _run_test(
        self,
        question: SuiteQuestion,
        test: SuiteTest,
        student: Any,
    ) -> tuple[BaseException | None, CallLog]:
        """Run one test on this `student`: the exception that the test raised, and its calls.

        Raises:
            HostFailed: the machine failed, and not the student.
        """
        self._suite.fixtures.student = student
        bounds = (
            memory_bound(self._limits.memory_mb),
            time_bound(self.workplace.remaining),
        )
        started = time.process_time()
        with self.watch.stage("tests"), bounds[0], bounds[1]:
            raised = self._suite.run(question.name, test.name)
        self.workplace.charge(time.process_time() - started)
        fault = self._machine_fault
        if fault is not None:
            raise fault
        return raised, current_log()

    @property
    def _machine_fault(self) -> HostFailed | None:
        """The machine's fault during a test: no test is to blame, whatever it raised or caught."""
        return self._client.fault

    def _judge_run(
        self,
        question: str,
        test: SuiteTest,
        raised: BaseException | None,
        log: CallLog,
        keep_calls: bool,
    ) -> TestRun:
        last_call = log.calls[-1] if log.calls and raised is not None else None
        fault = last_call.fault if last_call else None
        called_question = self._find_question(last_call, question)
        stub = find_stub(fault, self.workplace.submission, self._suite.released)
        verdict = judge(raised, log, test, stub, called_question)
        suite_fault = None
        if raised is not None and verdict.cause == "unfit":
            suite_fault = self._suite.make_fault(test.name, raised)
        if stub is not None:
            unanswered = stub.question == question
        else:
            unanswered = (
                isinstance(fault, StudentMissing) and called_question == question
            )
        keep_calls = keep_calls or verdict.outcome != "passed"
        student_calls = [call for call in log.calls if not call.of_suite]
        return TestRun(
            test.name,
            verdict,
            _drop_large_answers(log.calls) if keep_calls else (),
            distances=tuple(log.distances),
            tolerance=log.tolerance,
            refusing=frozenset(
                [_function(call) for call in student_calls if call.refused]
            ),
            answering=frozenset(
                [_function(call) for call in student_calls if call.fault is None]
            ),
            suite_fault=suite_fault,
            unanswered=unanswered,
        )

    def _find_question(
        self,
        call: Call | None,
        tested_question: str,
    ) -> str:
        """The question whose function was called: the tested one, unless the function has the name
        of another.
        """
        name = call.name.partition(".")[0] if call else ""
        return name if name in self._suite.released else tested_question

    def _given_up_prerequisite(self, question: str) -> str:
        """A prerequisite that was given up before; "" where none was."""
        if not self._given_up:
            return ""
        for name in prerequisites(question, self.uses):
            if name in self._given_up:
                return name
        return ""

    def _prepare_student(
        self,
        question: SuiteQuestion,
        stand_ins: tuple[str, ...],
        call_seconds: float = 0.0,
    ) -> Student:
        """The functions for a question's tests.

        Args:
            call_seconds: the limit of a call; 0 for the course's.
        """
        cell = find_answer_cell(self.workplace.submission, question.name)
        sources = {question.name: cell.source} if cell is not None else {}
        self.workplace.prepare(question.forbidden, stand_ins)
        return self._open_student(sources, call_seconds)

    def _open_student(
        self, sources: Mapping[str, str], call_seconds: float = 0.0
    ) -> Student:
        return Student(
            self.workplace.worker,
            call_seconds or self._limits.call_seconds,
            sources,
            self.workplace.explain_missing,
        )

    def close(self) -> None:
        """End the worker, if there is one."""
        self.workplace.close()


def find_uses(
    submission: Submission, questions: Sequence[SuiteQuestion]
) -> dict[str, tuple[str, ...]]:
    """The questions that each question builds on: questions that the suite declares, and earlier
    questions that the student's cell names. A student's right answer may call other questions than
    the answer key does.

    Args:
        questions: in the order of the notebook.
    """
    uses: dict[str, tuple[str, ...]] = {}
    for question in questions:
        cell = find_answer_cell(submission, question.name)
        words = set(_WORD.findall(cell.source)) if cell else set()
        named = [earlier for earlier in uses if earlier in words]
        uses[question.name] = tuple(dict.fromkeys([*question.uses, *named]))
    return uses


def _hangs_always(runs: Mapping[str, TestRun]) -> bool:
    """Whether several tests of a question hung, and none passed."""
    hangs = sum(run.verdict.outcome == "timeout" for run in runs.values())
    has_passed = any(run.passed for run in runs.values())
    return hangs >= HANGS_BEFORE_GIVING_UP and not has_passed


def _drop_large_answers(calls: Sequence[Call]) -> tuple[Call, ...]:
    """The calls that diagnosis may compare, without large answers: one hostile worker sends
    hundreds.
    """
    for call in calls:
        if size_in_bytes([call.result, call.gradients]) > LARGEST_KEPT:
            call.result = None
            call.gradients = []
            call.was_dropped = True
    return tuple(calls)


def _function(call: Call) -> str:
    """The function's name, or the method's alone: students name their classes as they like."""
    return call.name.rpartition(".")[2]
