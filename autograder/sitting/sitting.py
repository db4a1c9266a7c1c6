"""One submission in front of the suite: its questions and their tests."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autograder.basics.errors import HostFailed, StudentMissing, StudentTimeout, SuiteFault
from autograder.course import Limits
from autograder.intake.cell_matching import find_answer_cell
from autograder.records.model import Submission, TwoAnswers
from autograder.sandbox.bounds import memory_bound, time_bound
from autograder.sandbox.host_process import HostClient
from autograder.sandbox.stopwatch import Stopwatch
from autograder.sandbox.student import Student
from autograder.sandbox.workplace import Workplace
from autograder.sitting.hedges import FRESH, SHARED, Attempt, two_answers
from autograder.sitting.loaded_suite import LoadedSuite
from autograder.sitting.outcomes import Verdict, judge, stub_of
from autograder.suite.calls import Call, CallLog, current_log, weight
from autograder.suite.collection import SuiteQuestion, SuiteTest

HANGS_BEFORE_GIVING_UP = 2
LARGEST_KEPT = 4 << 20
"""Bytes of an answer that is kept until the submission is graded."""


@dataclass(frozen=True, slots=True)
class TestRun:
    """One test on one submission: the verdict, every call that the test made, and how far values
    were apart.

    Attributes:
        tolerance: the least that a comparison allowed, where that was less than the default.
        refusing, answering: names of functions and methods that raised what the test asked for, and
            that answered.
        unanswered: the question itself is missing or not written, so that the test has seen no
            answer of it.
        suspect: what is to be said where not the answers, but the suite is why the test could not
            work with them.
        stand_ins: prerequisites that were stood in for.
    """

    __test__ = False

    name: str
    verdict: Verdict
    calls: tuple[Call, ...]
    distances: tuple[float, ...] = ()
    tolerance: float | None = None
    refusing: frozenset[str] = frozenset()
    answering: frozenset[str] = frozenset()
    suspect: SuiteFault | None = None
    unanswered: bool = False
    stand_ins: tuple[str, ...] = ()

    @property
    def answered(self) -> bool:
        """Whether there is an answer at all, right or wrong: the function is there, and written."""
        return bool(self.calls) and not self.unanswered


class Sitting:
    """Runs questions of a suite on one submission.

    Args:
        client: gives workers.
        suite: the collected suite; its fixtures are set for every test.
        submission: what was handed in.
        watch: counts the wall time; another sitting may have it too.
        stands_for: what stand-ins answer with, by name; the answer key where nothing is said.

    Attributes:
        two_answers: by question what it answered otherwise in a worker that had served others,
            where it ran again.
    """

    def __init__(
        self,
        client: HostClient,
        limits: Limits,
        suite: LoadedSuite,
        submission: Submission,
        watch: Stopwatch | None = None,
        stands_for: Mapping[str, Any] | None = None,
    ) -> None:
        self._client, self._limits, self._suite = client, limits, suite
        self.watch = watch or Stopwatch()
        answering = suite.fixtures.reference if stands_for is None else stands_for
        self.place = Workplace(client, limits, submission, answering, self.watch)
        self.two_answers: dict[str, tuple[TwoAnswers, ...]] = {}

    def another(self, client: HostClient, stands_for: Mapping[str, Any] | None = None) -> Sitting:
        """The same submission once more, with workers and limits of its own."""
        return Sitting(
            client, self._limits, self._suite, self.place.submission, self.watch, stands_for
        )

    def functions(self) -> Student:
        """The submission's functions, for calls that belong to no test."""
        return Student(self.place, self._limits.call_seconds, {})

    def run_all(self, questions: Sequence[SuiteQuestion]) -> dict[str, dict[str, TestRun]]:
        """Run every question, one after the other in one worker as long as their tests pass.

        A question that does not pass in a worker that has served another runs once more in a fresh
        one, and that is what counts: nothing that one question does to its process costs another
        points.
        """
        runs: dict[str, dict[str, TestRun]] = {}
        for question in questions:
            attempt = Attempt()
            runs[question.name] = self._passed_in_turn(question, attempt) or self._anew(
                question, attempt
            )
        self.close()
        return runs

    def _passed_in_turn(self, question: SuiteQuestion, attempt: Attempt) -> dict[str, TestRun]:
        """The runs of a question in the worker that is there; none where there is no such worker,
        or a test does not pass: then `attempt` gets the answers, and the time of it is not charged
        to the submission.
        """
        spent = self.place.spent
        if self.place.may_attempt and self._turns_to(question):
            runs: dict[str, TestRun] = {}
            for run in self._runs(
                question, question.tests, self._student(question, ()), keep_calls=True
            ):
                attempt.add(run.name, run.calls)
                if run.verdict.outcome != "passed":
                    break
                runs[run.name] = dataclasses.replace(run, calls=())
            else:
                return runs
        self.close()
        self.place.charge_apart(spent)
        return {}

    def _anew(self, question: SuiteQuestion, attempt: Attempt) -> dict[str, TestRun]:
        """The runs of a question in a fresh worker, which count; compared with the attempt before,
        if there was one.
        """
        runs = self.run(question, keep_worker=True, keep_calls=bool(attempt.answers))
        if attempt.answers:
            fresh = {name: run.calls for name, run in runs.items()}
            signatures = self._suite.fixtures.reference
            self.two_answers[question.name] = two_answers(
                attempt.answers, fresh, (SHARED, FRESH), signatures
            )
        return {
            name: dataclasses.replace(run, calls=()) if run.verdict.outcome == "passed" else run
            for name, run in runs.items()
        }

    def _turns_to(self, question: SuiteQuestion) -> bool:
        """Whether the worker goes on with this question. A function outside torch is forbidden
        before the cells run, or they may have it under another name.
        """
        outside_torch = any(not name.startswith("torch.") for name in question.forbidden)
        return not outside_torch and self.place.turn_to(question.forbidden)

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
        asked = [test for test in question.tests if tests is None or test.name in tests]
        student = self._student(question, stand_ins)
        runs = {
            run.name: run for run in self._runs(question, asked, student, keep_calls=keep_calls)
        }
        if stand_ins:
            runs = {
                name: dataclasses.replace(run, stand_ins=stand_ins) for name, run in runs.items()
            }
        if not keep_worker:
            self.close()
        return runs

    def _runs(
        self,
        question: SuiteQuestion,
        tests: Sequence[SuiteTest],
        student: Student,
        *,
        keep_calls: bool,
    ) -> Iterator[TestRun]:
        """Run tests of one question, one after the other; after the second that hangs none is run
        any more.
        """
        hangs = 0
        for test in tests:
            if hangs >= HANGS_BEFORE_GIVING_UP:
                yield TestRun(
                    test.name, Verdict("timeout", "Not run: two tests of this question hung."), ()
                )
                continue
            raised, log = self._test(question, test, student)
            yield self._judged(question.name, test, raised, log, keep_calls)
            hangs += isinstance(raised, StudentTimeout)

    def _test(
        self, question: SuiteQuestion, test: SuiteTest, student: Any
    ) -> tuple[BaseException | None, CallLog]:
        """Run one test on this `student`: what it raised, and what it asked.

        Raises:
            HostFailed: the machine failed, and not the student.
        """
        self._suite.fixtures.student = student
        bounds = memory_bound(self._limits.memory_mb), time_bound(self.place.left)
        began = time.process_time()
        with self.watch.stage("tests"), bounds[0], bounds[1]:
            raised = self._suite.run(question.name, test.name)
        self.place.charge(time.process_time() - began)
        if (fault := self._fault) is not None:
            raise fault
        return raised, current_log()

    @property
    def _fault(self) -> HostFailed | None:
        """What the machine did wrong meanwhile: no test is to blame, whatever it raised, or
        swallowed.
        """
        return self._client.fault

    def _judged(
        self,
        question: str,
        test: SuiteTest,
        raised: BaseException | None,
        log: CallLog,
        keep_calls: bool,
    ) -> TestRun:
        last = log.calls[-1] if log.calls and raised is not None else None
        fault = last.fault if last else None
        called = self._question_of(last, question)
        stub = stub_of(fault, self.place.submission, self._suite.released)
        verdict = judge(raised, log, test, stub, called)
        own = [call for call in log.calls if not call.of_suite]
        return TestRun(
            test.name,
            verdict,
            _kept(log) if verdict.outcome != "passed" or keep_calls else (),
            tuple(log.distances),
            log.tolerance,
            frozenset(_function(call) for call in own if call.refused),
            frozenset(_function(call) for call in own if call.fault is None),
            self._suite.fault(test.name, raised)
            if raised is not None and verdict.cause == "unfit"
            else None,
            stub.question == question
            if stub
            else isinstance(fault, StudentMissing) and called == question,
        )

    def _question_of(self, call: Call | None, tested: str) -> str:
        """The question whose function was called: the tested one, unless it has the name of
        another.
        """
        name = call.name.partition(".")[0] if call else ""
        return name if name in self._suite.released else tested

    def _student(self, question: SuiteQuestion, stand_ins: tuple[str, ...]) -> Student:
        cell = find_answer_cell(self.place.submission, question.name)
        sources = {question.name: cell.source} if cell is not None else {}
        self.place.prepare(question.forbidden, stand_ins)
        return Student(self.place, self._limits.call_seconds, sources)

    def close(self) -> None:
        """End the worker, if there is one."""
        self.place.close()


def _kept(log: CallLog) -> tuple[Call, ...]:
    """The calls of a test that diagnosis may ask for. Large answers are let go: one hostile worker
    sends hundreds.
    """
    for call in log.calls:
        if weight([call.result, call.gradients]) > LARGEST_KEPT:
            call.result, call.gradients, call.let_go = None, [], True
    return tuple(log.calls)


def _function(call: Call) -> str:
    """The function's name, or the method's alone: what its class is called is the student's
    affair.
    """
    return call.name.rpartition(".")[2]
